//! Checks the types that are known before a program runs.
//!
//! Main function: [`check`]. The rules are those of the library's checker without a declared
//! environment: a name is unknown, and fits everywhere.

mod calls;
mod predicates;
mod signatures;

use super::builtins::Builtin;
use super::error::ExprError;
use super::methods;
use super::node::{Expr, Known, Node, Op};
use super::types::{Kind, Ty};
use super::value::MapKind;
use crate::regex::Regex;

type Checked<T = Ty> = Result<T, ExprError>;

/// # Errors
/// The first mistake.
pub(super) fn check(tree: &mut Expr) -> Checked<()> {
    let mut checker = Checker {
        scopes: Vec::new(),
        variables: Vec::new(),
    };
    checker.visit(tree).map(drop)
}

struct Checker {
    /// The lists of the predicates around the current node.
    scopes: Vec<Scope>,
    variables: Vec<(String, Ty)>,
}

struct Scope {
    list: Ty,
    index: bool,
    acc: bool,
}

fn fails<T>(at: &Expr, message: impl Into<String>) -> Checked<T> {
    Err(ExprError::compile(at.at as usize, message))
}

impl Checker {
    fn visit(&mut self, expr: &mut Expr) -> Checked {
        let ty = self.node(expr)?;
        expr.known = match &ty {
            Ty::Int => Known::Int,
            Ty::Str => Known::Text,
            Ty::Method(method) if method.refuses_nil() => Known::Method,
            _ => Known::Nothing,
        };
        Ok(ty)
    }

    fn node(&mut self, expr: &mut Expr) -> Checked {
        let at = expr.at as usize;
        match &mut expr.node {
            Node::Nil => Ok(Ty::Nil),
            Node::Bool(_) | Node::InTexts(..) | Node::InRange(..) => Ok(Ty::Bool),
            Node::Int(_) => Ok(Ty::Int),
            Node::Float(_) => Ok(Ty::Float),
            Node::Str(_) => Ok(Ty::Str),
            Node::Bytes(_) => Ok(Ty::Bytes),
            Node::Ident(name) => Ok(self.identifier(name)),
            Node::Not(of) => match self.visit(of)? {
                ty if ty.is_bool() || ty.is_unknown() => Ok(Ty::Bool),
                ty => Err(mismatch(at, "not", &ty)),
            },
            Node::Sign { negative, of } => match self.visit(of)? {
                ty if ty.is_number() => Ok(ty),
                ty if ty.is_unknown() => Ok(Ty::Unknown),
                ty => Err(mismatch(at, if *negative { "-" } else { "+" }, &ty)),
            },
            Node::Matches(of, _) => self.visit(of).map(|_| Ty::Bool),
            Node::Binary(op, left, right) => {
                let (l, r) = (self.visit(left)?, self.visit(right)?);
                binary(at, *op, &l, &r, right)
            }
            Node::Chain(inner) => self.visit(inner),
            Node::Member {
                of,
                property,
                method,
                ..
            } => self.member(of, property, *method, at),
            Node::Slice { of, from, to } => self.slice(of, from, to, at),
            Node::Call(callee, args) => self.call(callee, args, at),
            Node::Builtin(call) => match call.function.predicate_args() {
                Some(_) => self.predicate_call(call),
                None => self.builtin(call.function, &mut call.args, at),
            },
            Node::Predicate(body) => self.visit(body),
            Node::Pointer(name) => self.pointer(name, at),
            Node::Let { name, value, then } => self.declaration(name, value, then, at),
            Node::Sequence(nodes) => {
                let mut last = Ty::Unknown;
                for node in nodes {
                    last = self.visit(node)?;
                }
                Ok(last)
            }
            Node::Condition(condition, a, b) => self.condition(condition, a, b),
            Node::Array(nodes) => self.array(nodes),
            Node::Map(pairs) => {
                for (key, value) in pairs {
                    self.visit(key)?;
                    self.visit(value)?;
                }
                Ok(Ty::Map(MapKind::Text))
            }
        }
    }

    fn identifier(&self, name: &str) -> Ty {
        match self.variables.iter().rev().find(|(own, _)| own == name) {
            Some((_, ty)) => ty.clone(),
            None if Builtin::of(name).is_some() => Ty::Func,
            None => Ty::Unknown,
        }
    }

    fn member(&mut self, of: &mut Expr, property: &mut Expr, method: bool, at: usize) -> Checked {
        if matches!(&of.node, Node::Ident(name) if name == "$env") {
            return Ok(Ty::Unknown);
        }
        let (base, key) = (self.visit(of)?, self.visit(property)?);
        if base.is_unknown() {
            return Ok(Ty::Unknown);
        }
        let name = match &property.node {
            Node::Str(name) => Some(name.to_str()),
            _ => None,
        };
        if let Some(name) = &name {
            if base.is_nil() {
                let message = format!("type nil has no field {name}");
                return Err(ExprError::compile(at, message));
            }
            if let Some(method) = methods::of_type(&base, name) {
                return Ok(Ty::Method(method));
            }
        }
        match base.kind() {
            Kind::Map if key.is_assignable_to(&base.key()) || key.is_unknown() => {
                Ok(base.element())
            }
            Kind::Map => fails(
                property,
                format!("cannot use {key} to get an element from {base}"),
            ),
            Kind::Slice if key.is_integer() || key.is_unknown() => Ok(base.element()),
            Kind::Slice => fails(
                property,
                format!("array elements can only be selected using an integer (got {key})"),
            ),
            _ => {
                let message = match name {
                    Some(name) if method => format!("type {base} has no method {name}"),
                    Some(name) => format!("type {base} has no field {name}"),
                    None => format!("type {base}[{key}] is undefined"),
                };
                Err(ExprError::compile(at, message))
            }
        }
    }

    fn slice(
        &mut self,
        of: &mut Expr,
        from: &mut Option<Box<Expr>>,
        to: &mut Option<Box<Expr>>,
        at: usize,
    ) -> Checked {
        let ty = self.visit(of)?;
        if ty.is_unknown() {
            return Ok(Ty::Unknown);
        }
        if !matches!(ty.kind(), Kind::String | Kind::Slice) {
            return Err(ExprError::compile(at, format!("cannot slice {ty}")));
        }
        for bound in from.iter_mut().chain(to) {
            let index = self.visit(bound)?;
            if !index.is_integer() && !index.is_unknown() {
                return fails(bound, format!("non-integer slice index {index}"));
            }
        }
        Ok(ty)
    }

    fn pointer(&self, name: &str, at: usize) -> Checked {
        let fails = |message: String| Err(ExprError::compile(at, message));
        let Some(scope) = self.scopes.last() else {
            return fails("cannot use pointer accessor outside predicate".into());
        };
        match name {
            "" if scope.list.is_unknown() => Ok(Ty::Unknown),
            "" if scope.list.is_array() => Ok(scope.list.element()),
            "" => fails(format!("cannot use {} as array", scope.list)),
            "index" if scope.index => Ok(Ty::Int),
            "acc" if scope.acc => Ok(Ty::Unknown),
            _ => fails(format!("unknown pointer #{name}")),
        }
    }

    fn declaration(&mut self, name: &str, value: &mut Expr, then: &mut Expr, at: usize) -> Checked {
        let fails = |what: &str| {
            let message = format!("cannot redeclare {what} {name}");
            Err(ExprError::compile(at, message))
        };
        if Builtin::of(name).is_some() {
            return fails("builtin");
        }
        if self.variables.iter().any(|(own, _)| own == name) {
            return fails("variable");
        }
        let ty = self.visit(value)?;
        self.variables.push((name.to_owned(), ty));
        let result = self.visit(then)?;
        self.variables.pop();
        Ok(result)
    }

    fn condition(&mut self, condition: &mut Expr, a: &mut Expr, b: &mut Expr) -> Checked {
        let ty = self.visit(condition)?;
        if !ty.is_bool() && !ty.is_unknown() {
            return fails(
                condition,
                format!("non-bool expression (type {ty}) used as condition"),
            );
        }
        let (a, b) = (self.visit(a)?, self.visit(b)?);
        Ok(match (a.is_nil(), b.is_nil()) {
            (true, true) => Ty::Nil,
            (true, false) => b,
            (false, true) => a,
            (false, false) if !a.is_assignable_to(&b) => Ty::Unknown,
            (false, false) if a.is_array() && b.is_array() => {
                let (x, y) = (a.element(), b.element());
                if x.is_assignable_to(&y) && y.is_assignable_to(&x) {
                    a
                } else {
                    Ty::list(Ty::Any)
                }
            }
            (false, false) => a,
        })
    }

    fn array(&mut self, nodes: &mut [Expr]) -> Checked {
        let mut previous: Option<Ty> = None;
        let mut same = true;
        for node in nodes {
            let ty = self.visit(node)?;
            same &= previous
                .as_ref()
                .is_none_or(|previous| previous.kind() == ty.kind());
            previous = Some(ty);
        }
        Ok(if same {
            Ty::list(previous.unwrap_or_default())
        } else {
            Ty::list(Ty::Any)
        })
    }
}

fn mismatch(at: usize, operator: &str, ty: &Ty) -> ExprError {
    let message = format!("invalid operation: {operator} (mismatched type {ty})");
    ExprError::compile(at, message)
}

/// The type of an operation.
fn binary(at: usize, op: Op, l: &Ty, r: &Ty, right: &Expr) -> Checked {
    let number = |ty: &Ty| ty.is_number();
    let text = |ty: &Ty| ty.is_string();
    let ordered = |ty: &Ty| ty.is_number() || ty.is_string() || ty.is_time() || ty.is_duration();
    let fits = match op {
        Op::Equal | Op::NotEqual => l.is_comparable_to(r).then_some(Ty::Bool),
        Op::Or | Op::And => {
            let fits = l.is_bool() && r.is_bool() || l.may_fit(r, &Ty::is_bool);
            fits.then_some(Ty::Bool)
        }
        Op::Less | Op::Greater | Op::LessEqual | Op::GreaterEqual => {
            let fits = l.is_number() && r.is_number()
                || l.is_string() && r.is_string()
                || l.is_time() && r.is_time()
                || l.is_duration() && r.is_duration()
                || l.may_fit(r, &ordered);
            fits.then_some(Ty::Bool)
        }
        Op::Add | Op::Subtract | Op::Multiply => sum(op, l, r),
        Op::Divide | Op::Power => {
            let fits = l.is_number() && r.is_number() || l.may_fit(r, &number);
            fits.then_some(Ty::Float)
        }
        Op::Modulo => {
            let fits = l.is_integer() && r.is_integer() || l.may_fit(r, &Ty::is_integer);
            fits.then_some(Ty::Int)
        }
        Op::In => return membership(at, l, r),
        Op::Matches => {
            if let Node::Str(pattern) = &right.node
                && let Err(message) = Regex::new(&pattern.to_str())
            {
                return Err(ExprError::compile(at, message));
            }
            let fits = matches!(l, Ty::Str | Ty::Bytes) && r.is_string() || l.may_fit(r, &text);
            fits.then_some(Ty::Bool)
        }
        Op::Contains | Op::StartsWith | Op::EndsWith => {
            let fits = l.is_string() && r.is_string() || l.may_fit(r, &text);
            fits.then_some(Ty::Bool)
        }
        Op::Range => {
            let fits = l.is_integer() && r.is_integer() || l.may_fit(r, &Ty::is_integer);
            fits.then(|| Ty::list(Ty::Int))
        }
        Op::Coalesce => Some(match (l.is_nil(), r.is_nil()) {
            (true, true) => Ty::Nil,
            (true, false) => r.clone(),
            (false, true) => l.clone(),
            (false, false) if r.is_assignable_to(l) => l.clone(),
            (false, false) => Ty::Unknown,
        }),
    };
    fits.ok_or_else(|| mismatched(at, op, l, r))
}

fn mismatched(at: usize, op: Op, l: &Ty, r: &Ty) -> ExprError {
    let op = op.text();
    let message = format!("invalid operation: {op} (mismatched types {l} and {r})");
    ExprError::compile(at, message)
}

/// `+`, `-`, `*`
fn sum(op: Op, l: &Ty, r: &Ty) -> Option<Ty> {
    let fit = match (op, l, r) {
        (Op::Add, Ty::Str, Ty::Str) => Ty::Str,
        (Op::Add, Ty::Time, Ty::Duration) | (Op::Add, Ty::Duration, Ty::Time) => Ty::Time,
        (Op::Subtract, Ty::Time, Ty::Time) => Ty::Duration,
        (Op::Subtract, Ty::Time, Ty::Duration) => Ty::Time,
        (_, Ty::Duration, Ty::Duration) => Ty::Duration,
        (Op::Multiply, l, Ty::Duration) if l.is_number() => Ty::Duration,
        (Op::Multiply, Ty::Duration, r) if r.is_number() => Ty::Duration,
        (_, l, r) if l.is_number() && r.is_number() => l.promoted(r),
        _ => {
            let sort = |ty: &Ty| {
                ty.is_number()
                    || ty.is_duration()
                    || op != Op::Multiply && ty.is_time()
                    || op == Op::Add && ty.is_string()
            };
            return l.may_fit(r, &sort).then_some(Ty::Unknown);
        }
    };
    Some(fit)
}

fn membership(at: usize, l: &Ty, r: &Ty) -> Checked {
    let fails = |message: String| Err(ExprError::compile(at, message));
    if (l.is_string() || l.is_unknown()) && r.is_time() {
        return Ok(Ty::Bool);
    }
    if r.is_map() {
        let key = r.key();
        if !l.is_unknown() && !l.is_assignable_to(&key) {
            return fails(format!("cannot use {l} as type {key} in map key"));
        }
        return Ok(Ty::Bool);
    }
    if r.is_array() {
        let element = r.element();
        if !l.is_comparable_to(&element) {
            return fails(format!("cannot use {l} as type {element} in array"));
        }
        return Ok(Ty::Bool);
    }
    if r.is_unknown() || l.is_unknown() && r.is_string() {
        return Ok(Ty::Bool);
    }
    Err(mismatched(at, Op::In, l, r))
}
