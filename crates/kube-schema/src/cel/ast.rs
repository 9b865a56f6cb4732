//! Expression trees. Main type: [`Expr`].

/// A constant as written.
#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    Null,
    Bool(bool),
    Int(i64),
    /// An integer before its sign is known.
    Whole(u64),
    Uint(u64),
    Double(f64),
    String(String),
    Bytes(Vec<u8>),
}

/// An expression; `at` is the position that messages point to.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    pub at: usize,
    pub kind: Kind,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    Literal(Literal),
    Ident(String),
    /// `a.b`, `a.?b`, and with `test` `has(a.b)`.
    Select {
        operand: Box<Expr>,
        field: String,
        optional: bool,
        test: bool,
    },
    /// Functions and operators; operators are named `_+_` and so on.
    Call {
        function: String,
        target: Option<Box<Expr>>,
        args: Vec<Expr>,
    },
    /// Elements, and whether each is optional (`[?a]`).
    List(Vec<(Expr, bool)>),
    Map(Vec<(Expr, Expr, bool)>),
    /// `name{field: value}`
    Struct(String, Vec<Field>),
    Fold(Box<Fold>),
}

/// `field: value`, or `?field: value`, where `at` is the position of the colon.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    pub name: String,
    pub at: usize,
    pub value: Expr,
    pub optional: bool,
}

/// The expansion of macros such as `all`: a loop with an accumulator.
#[derive(Clone, Debug, PartialEq)]
pub struct Fold {
    pub range: Expr,
    pub var: String,
    /// With two variables the first is the index or key.
    pub second: Option<String>,
    pub accu: String,
    pub init: Expr,
    pub condition: Expr,
    pub step: Expr,
    pub result: Expr,
}

/// The accumulator's name, which cannot appear in source text.
pub const ACCU: &str = "@result";

impl Expr {
    pub fn new(at: usize, kind: Kind) -> Self {
        Self { at, kind }
    }

    pub fn ident(at: usize, name: &str) -> Self {
        Self::new(at, Kind::Ident(name.to_owned()))
    }

    pub fn bool(at: usize, value: bool) -> Self {
        Self::new(at, Kind::Literal(Literal::Bool(value)))
    }

    pub fn int(at: usize, value: i64) -> Self {
        Self::new(at, Kind::Literal(Literal::Int(value)))
    }

    pub fn call(at: usize, function: &str, args: Vec<Expr>) -> Self {
        Self::new(
            at,
            Kind::Call {
                function: function.to_owned(),
                target: None,
                args,
            },
        )
    }

    /// The name of an identifier.
    pub fn as_ident(&self) -> Option<&str> {
        match &self.kind {
            Kind::Ident(name) => Some(name),
            _ => None,
        }
    }

    /// `a.b.c` as a qualified name.
    pub fn qualified(&self) -> Option<String> {
        match &self.kind {
            Kind::Ident(name) => Some(name.clone()),
            Kind::Select {
                operand,
                field,
                optional: false,
                test: false,
            } => Some(format!("{}.{field}", operand.qualified()?)),
            _ => None,
        }
    }

    /// Calls `see` for this expression and all below.
    pub fn visit(&self, see: &mut dyn FnMut(&Expr)) {
        see(self);
        match &self.kind {
            Kind::Literal(_) | Kind::Ident(_) => {}
            Kind::Select { operand, .. } => operand.visit(see),
            Kind::Call { target, args, .. } => target
                .iter()
                .map(|t| &**t)
                .chain(args)
                .for_each(|part| part.visit(see)),
            Kind::List(items) => items.iter().for_each(|(e, _)| e.visit(see)),
            Kind::Map(entries) => entries.iter().for_each(|(k, v, _)| {
                k.visit(see);
                v.visit(see);
            }),
            Kind::Struct(_, fields) => fields.iter().for_each(|field| field.value.visit(see)),
            Kind::Fold(fold) => {
                for part in [
                    &fold.range,
                    &fold.init,
                    &fold.condition,
                    &fold.step,
                    &fold.result,
                ] {
                    part.visit(see);
                }
            }
        }
    }
}
