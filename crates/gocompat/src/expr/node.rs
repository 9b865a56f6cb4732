//! The syntax tree.
//!
//! Main type: [`Expr`].

use super::builtins::Builtin;
use super::error::ExprError;
use crate::regex::Regex;
use crate::template::Str;

/// Deepest tree. The checker and the evaluation recurse along it.
pub(super) const MAX_DEPTH: u16 = 128;

/// A node with its place.
#[derive(Clone, Debug)]
pub(super) struct Expr {
    pub node: Node,
    /// Offset of its token, in characters.
    pub at: u32,
    pub depth: u16,
    pub known: Known,
}

/// What the checker knows of a value, as far as the evaluation asserts it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Known {
    #[default]
    Nothing,
    Int,
    Text,
    /// A method that takes no nil.
    Method,
}

#[derive(Clone, Debug)]
pub(super) enum Node {
    Nil,
    Bool(bool),
    Int(i64),
    Float(f64),
    Str(Str),
    Bytes(Str),
    Ident(String),
    /// `!`, `not`
    Not(Box<Expr>),
    /// `+`, `-`
    Sign {
        negative: bool,
        of: Box<Expr>,
    },
    Binary(Op, Box<Expr>, Box<Expr>),
    /// `matches` with a pattern that is known when the program is compiled.
    Matches(Box<Expr>, Regex),
    /// `in` with a list of literal texts, which are the keys of a set.
    InTexts(Box<Expr>, Vec<Str>),
    /// `in` with a range of literal integers.
    InRange(Box<Expr>, i64, i64),
    /// A chain with `?.`, which ends early at nil.
    Chain(Box<Expr>),
    Member {
        of: Box<Expr>,
        property: Box<Expr>,
        optional: bool,
        method: bool,
    },
    Slice {
        of: Box<Expr>,
        from: Option<Box<Expr>>,
        to: Option<Box<Expr>>,
    },
    Call(Box<Expr>, Vec<Expr>),
    Builtin(Box<BuiltinCall>),
    Predicate(Box<Expr>),
    /// `#`, `#index`, `#acc`
    Pointer(String),
    Let {
        name: String,
        value: Box<Expr>,
        then: Box<Expr>,
    },
    Sequence(Vec<Expr>),
    Condition(Box<Expr>, Box<Expr>, Box<Expr>),
    Array(Vec<Expr>),
    Map(Vec<(Expr, Expr)>),
}

/// A call of a builtin function.
#[derive(Clone, Debug)]
pub(super) struct BuiltinCall {
    pub function: Builtin,
    pub args: Vec<Expr>,
    /// What `filter`, `find` and `findLast` give instead of the element.
    pub map: Option<Expr>,
    /// Whether `find` and `findLast` fail where there is none.
    pub throws: bool,
    /// The number at which `count` stops.
    pub enough: Option<i64>,
}

/// A binary operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Op {
    Or,
    And,
    Equal,
    NotEqual,
    Less,
    Greater,
    LessEqual,
    GreaterEqual,
    In,
    Matches,
    Contains,
    StartsWith,
    EndsWith,
    Range,
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    Power,
    Coalesce,
}

impl Op {
    /// An operator and its precedence.
    pub fn of(text: &str) -> Option<(Self, u16)> {
        Some(match text {
            "or" | "||" => (Op::Or, 10),
            "and" | "&&" => (Op::And, 15),
            "==" => (Op::Equal, 20),
            "!=" => (Op::NotEqual, 20),
            "<" => (Op::Less, 20),
            ">" => (Op::Greater, 20),
            ">=" => (Op::GreaterEqual, 20),
            "<=" => (Op::LessEqual, 20),
            "in" => (Op::In, 20),
            "matches" => (Op::Matches, 20),
            "contains" => (Op::Contains, 20),
            "startsWith" => (Op::StartsWith, 20),
            "endsWith" => (Op::EndsWith, 20),
            ".." => (Op::Range, 25),
            "+" => (Op::Add, 30),
            "-" => (Op::Subtract, 30),
            "*" => (Op::Multiply, 60),
            "/" => (Op::Divide, 60),
            "%" => (Op::Modulo, 60),
            "**" | "^" => (Op::Power, 100),
            "??" => (Op::Coalesce, 500),
            _ => return None,
        })
    }

    pub fn is_comparison(self) -> bool {
        matches!(
            self,
            Op::Less | Op::Greater | Op::LessEqual | Op::GreaterEqual
        )
    }

    /// For error texts.
    pub fn text(self) -> &'static str {
        match self {
            Op::Or => "or",
            Op::And => "and",
            Op::Equal => "==",
            Op::NotEqual => "!=",
            Op::Less => "<",
            Op::Greater => ">",
            Op::LessEqual => "<=",
            Op::GreaterEqual => ">=",
            Op::In => "in",
            Op::Matches => "matches",
            Op::Contains => "contains",
            Op::StartsWith => "startsWith",
            Op::EndsWith => "endsWith",
            Op::Range => "..",
            Op::Add => "+",
            Op::Subtract => "-",
            Op::Multiply => "*",
            Op::Divide => "/",
            Op::Modulo => "%",
            Op::Power => "**",
            Op::Coalesce => "??",
        }
    }
}

impl Expr {
    /// A node one level above its deepest child.
    ///
    /// # Errors
    /// If the tree is deeper than [`MAX_DEPTH`].
    pub fn new(node: Node, at: u32) -> Result<Self, ExprError> {
        let mut depth = 0;
        node.children(&mut |child| depth = depth.max(child.depth));
        if depth >= MAX_DEPTH {
            return Err(ExprError::compile(
                at as usize,
                "the expression is nested too deeply",
            ));
        }
        Ok(Self {
            node,
            at,
            depth: depth + 1,
            known: Known::Nothing,
        })
    }

    /// Calls for each child.
    pub fn children_mut(
        &mut self,
        visit: &mut dyn FnMut(&mut Expr) -> Result<(), ExprError>,
    ) -> Result<(), ExprError> {
        match &mut self.node {
            Node::Not(a)
            | Node::Sign { of: a, .. }
            | Node::Matches(a, _)
            | Node::InTexts(a, _)
            | Node::InRange(a, ..)
            | Node::Chain(a)
            | Node::Predicate(a) => visit(a),
            Node::Binary(_, a, b) => visit(a).and_then(|()| visit(b)),
            Node::Member { of, property, .. } => visit(of).and_then(|()| visit(property)),
            Node::Slice { of, from, to } => {
                visit(of)?;
                from.iter_mut().chain(to).try_for_each(|e| visit(e))
            }
            Node::Call(callee, args) => {
                visit(callee)?;
                args.iter_mut().try_for_each(visit)
            }
            Node::Builtin(call) => call
                .args
                .iter_mut()
                .chain(&mut call.map)
                .try_for_each(visit),
            Node::Let { value, then, .. } => visit(value).and_then(|()| visit(then)),
            Node::Sequence(nodes) | Node::Array(nodes) => nodes.iter_mut().try_for_each(visit),
            Node::Condition(a, b, c) => {
                visit(a)?;
                visit(b)?;
                visit(c)
            }
            Node::Map(pairs) => pairs
                .iter_mut()
                .try_for_each(|(k, v)| visit(k).and_then(|()| visit(v))),
            _ => Ok(()),
        }
    }

    /// Whether the condition holds somewhere in the tree.
    pub fn any(&self, wanted: &dyn Fn(&Node) -> bool) -> bool {
        let mut found = wanted(&self.node);
        self.node.children(&mut |child| found |= child.any(wanted));
        found
    }

    /// Whether both are written alike.
    pub fn is_like(&self, other: &Expr) -> bool {
        self.node.shape() == other.node.shape()
    }
}

impl Node {
    fn children(&self, visit: &mut dyn FnMut(&Expr)) {
        match self {
            Node::Not(a)
            | Node::Sign { of: a, .. }
            | Node::Matches(a, _)
            | Node::InTexts(a, _)
            | Node::InRange(a, ..)
            | Node::Chain(a)
            | Node::Predicate(a) => visit(a),
            Node::Binary(_, a, b) => {
                visit(a);
                visit(b);
            }
            Node::Member { of, property, .. } => {
                visit(of);
                visit(property);
            }
            Node::Slice { of, from, to } => {
                visit(of);
                from.iter().chain(to).for_each(|e| visit(e));
            }
            Node::Call(callee, args) => {
                visit(callee);
                args.iter().for_each(visit);
            }
            Node::Builtin(call) => call.args.iter().chain(&call.map).for_each(visit),
            Node::Let { value, then, .. } => {
                visit(value);
                visit(then);
            }
            Node::Sequence(nodes) | Node::Array(nodes) => nodes.iter().for_each(visit),
            Node::Condition(a, b, c) => {
                visit(a);
                visit(b);
                visit(c);
            }
            Node::Map(pairs) => pairs.iter().for_each(|(k, v)| {
                visit(k);
                visit(v);
            }),
            _ => {}
        }
    }

    /// The node without places, for comparisons.
    fn shape(&self) -> String {
        let mut out = match self {
            Node::Binary(op, ..) => op.text().to_owned(),
            Node::Ident(name) | Node::Pointer(name) => name.clone(),
            Node::Builtin(call) => format!("{:?}", call.function),
            Node::Member { optional, .. } => format!("member {optional}"),
            Node::Let { name, .. } => format!("let {name}"),
            Node::Sign { negative, .. } => format!("sign {negative}"),
            Node::Int(_) | Node::Float(_) | Node::Str(_) | Node::Bytes(_) | Node::Bool(_) => {
                format!("{self:?}")
            }
            Node::InTexts(_, texts) => format!("{texts:?}"),
            Node::InRange(_, from, to) => format!("{from}..{to}"),
            _ => String::new(),
        };
        out.insert_str(0, &format!("{:?} ", std::mem::discriminant(self)));
        self.children(&mut |child| {
            out.push('(');
            out.push_str(&child.node.shape());
            out.push(')');
        });
        out
    }
}
