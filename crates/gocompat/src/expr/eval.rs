//! Runs a program: the tree is walked, with limits on what it does.
//!
//! Main function: [`run`]; main type: [`Machine`].

use super::access::{contains, fetch, length, lookup, slice};
use super::builtins::{self, Builtin};
use super::error::ExprError;
use super::node::{Expr, Known, Node, Op};
use super::operators::{arithmetic, compare, equal, negated};
use super::predicates::Scope;
use super::print;
use super::value::{Key, ListKind, Map, MapKind, Value};
use crate::regex::Regex;
use crate::template::Str;
use jiff::{Timestamp, tz::TimeZone};
use std::{collections::BTreeMap, rc::Rc};

/// The time, and the zone that times are in where none is named.
#[derive(Clone, Debug)]
pub struct Clock {
    pub now: Timestamp,
    pub zone: TimeZone,
}

/// The most that a value weighs.
const MAX_WEIGHT: u64 = 64 << 20;

/// The limits of one run.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Nodes that are evaluated, and what expensive functions count.
    pub steps: u64,
    /// Elements of lists and maps that are made; as many as the library allows.
    pub elements: usize,
    /// Bytes of texts that are made.
    pub bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            steps: 4_000_000,
            elements: 1_000_000,
            bytes: 24 << 20,
        }
    }
}

/// Why a node has no value.
pub(super) enum Stop {
    Error(ExprError),
    /// A chain with `?.` ends at nil.
    Chain,
}

impl From<ExprError> for Stop {
    fn from(error: ExprError) -> Self {
        Stop::Error(error)
    }
}

pub(super) type Out<T = Value> = Result<T, Stop>;

pub(super) fn run(
    tree: &Expr,
    env: &Value,
    clock: &Clock,
    limits: Limits,
) -> Result<Value, ExprError> {
    let mut machine = Machine {
        env,
        clock,
        limits,
        variables: Vec::new(),
        scopes: Vec::new(),
        patterns: None,
    };
    machine.eval(tree).or_else(|stop| match stop {
        Stop::Error(error) => Err(error),
        Stop::Chain => Ok(Value::Nil),
    })
}

pub(super) struct Machine<'r> {
    env: &'r Value,
    pub clock: &'r Clock,
    limits: Limits,
    variables: Vec<(&'r str, Value)>,
    /// The predicates around the current node.
    pub scopes: Vec<Scope>,
    /// The last pattern that was not known beforehand.
    patterns: Option<(Str, Regex)>,
}

impl<'r> Machine<'r> {
    pub fn steps(&mut self, steps: u64) -> Result<(), ExprError> {
        match self.limits.steps.checked_sub(steps) {
            Some(left) => {
                self.limits.steps = left;
                Ok(())
            }
            None => Err(ExprError::run("the expression takes too many steps")),
        }
    }

    pub fn elements(&mut self, count: usize) -> Result<(), ExprError> {
        // The library stops when its budget is used up, not only beyond it.
        match self.limits.elements.checked_sub(count) {
            Some(left) if left > 0 => {
                self.limits.elements = left;
                Ok(())
            }
            _ => Err(ExprError::run("memory budget exceeded")),
        }
    }

    pub fn bytes(&mut self, count: usize) -> Result<(), ExprError> {
        match self.limits.bytes.checked_sub(count) {
            Some(left) => {
                self.limits.bytes = left;
                Ok(())
            }
            None => Err(ExprError::run("the expression makes too much text")),
        }
    }

    /// Refuses a text before it is made; `bytes` counts it when it is there.
    pub fn room(&self, bytes: usize) -> Result<(), ExprError> {
        if bytes > self.limits.bytes {
            return Err(ExprError::run("the expression makes too much text"));
        }
        Ok(())
    }

    /// The same for a text that shows a value.
    pub fn room_to_print(&self, value: &Value) -> Result<(), ExprError> {
        if print::fits(value, self.limits.bytes) {
            Ok(())
        } else {
            self.room(usize::MAX)
        }
    }

    /// The same for a list.
    pub fn room_for(&self, elements: usize) -> Result<(), ExprError> {
        if elements >= self.limits.elements {
            return Err(ExprError::run("memory budget exceeded"));
        }
        Ok(())
    }

    /// Refuses a value that is too large without what it shares.
    pub fn weighed(&self, value: Value) -> Result<Value, ExprError> {
        if value.weight() > MAX_WEIGHT {
            return Err(ExprError::run("the expression makes too much data"));
        }
        Ok(value)
    }

    pub fn eval(&mut self, expr: &'r Expr) -> Out {
        self.steps(1)?;
        match &expr.node {
            Node::Nil => Ok(Value::Nil),
            Node::Bool(b) => Ok(Value::Bool(*b)),
            Node::Int(i) => Ok(Value::int(*i)),
            Node::Float(f) => Ok(Value::Float(*f)),
            Node::Str(text) => Ok(Value::Str(text.clone())),
            Node::Bytes(bytes) => Ok(Value::Bytes(bytes.clone())),
            Node::Ident(name) => self.identifier(name),
            Node::Not(of) => Ok((!self.eval(of)?.as_bool()?).into()),
            Node::Sign { negative, of } => {
                let value = self.eval(of)?;
                if *negative {
                    Ok(negated(&value)?)
                } else {
                    Ok(value)
                }
            }
            Node::Binary(op, left, right) => self.binary(*op, left, right),
            Node::Matches(of, pattern) => matches(&self.eval(of)?, pattern),
            Node::InTexts(of, texts) => in_texts(&self.eval(of)?, texts),
            Node::InRange(of, from, to) => {
                let value = self.eval(of)?.to_int()?;
                Ok((*from..=*to).contains(&value).into())
            }
            Node::Chain(inner) => match self.eval(inner) {
                Err(Stop::Chain) => Ok(Value::Nil),
                // Not a list that is nil: a chain has no nil with a type.
                Ok(value) if value.is_nil() => Ok(Value::Nil),
                other => other,
            },
            Node::Member {
                of,
                property,
                optional,
                ..
            } => self.member(of, property, *optional),
            Node::Slice { of, from, to } => self.slice(of, from.as_deref(), to.as_deref()),
            Node::Call(callee, args) => self.call(callee, args),
            Node::Builtin(call) => match call.function.predicate_args() {
                Some(_) => self.predicate_call(call),
                None => self.builtin(call.function, &call.args),
            },
            Node::Predicate(body) => self.eval(body),
            Node::Pointer(name) => Ok(self.pointer(name)?),
            Node::Let { name, value, then } => {
                let value = self.eval(value)?;
                self.variables.push((name, value));
                let result = self.eval(then);
                self.variables.pop();
                result
            }
            Node::Sequence(nodes) => {
                let mut last = Value::Nil;
                for node in nodes {
                    last = self.eval(node)?;
                }
                Ok(last)
            }
            Node::Condition(condition, a, b) => {
                let holds = self.eval(condition)?.as_bool()?;
                self.eval(if holds { a } else { b })
            }
            Node::Array(nodes) => self.array(nodes),
            Node::Map(pairs) => self.map(pairs),
        }
    }

    fn identifier(&mut self, name: &str) -> Out {
        let variable = self.variables.iter().rev().find(|(own, _)| *own == name);
        if let Some((_, value)) = variable {
            return Ok(value.clone());
        }
        if name == "$env" {
            return Ok(self.env.clone());
        }
        match self.env {
            Value::Map(map) => Ok(lookup(map, &name.into())?.cloned().unwrap_or_default()),
            other => Ok(fetch(other, &name.into())?),
        }
    }

    fn binary(&mut self, op: Op, left: &'r Expr, right: &'r Expr) -> Out {
        let a = self.eval(left)?;
        match op {
            Op::And if !a.as_bool()? => return Ok(a),
            Op::Or if a.as_bool()? => return Ok(a),
            Op::And | Op::Or => return self.eval(right),
            Op::Coalesce if !a.is_nil() => return Ok(a),
            Op::Coalesce => return self.eval(right),
            _ => {}
        }
        let b = self.eval(right)?;
        if matches!(op, Op::Equal | Op::NotEqual) {
            // What the checker knows is asserted; `find` and `findIndex` may give nil all the same.
            match (left.known, right.known) {
                (Known::Int, Known::Int) => {
                    a.as_int().and(b.as_int())?;
                }
                (Known::Text, Known::Text) => {
                    a.as_str().and(b.as_str())?;
                }
                _ => {}
            }
        }
        self.operate(op, &a, &b)
    }

    fn operate(&mut self, op: Op, a: &Value, b: &Value) -> Out {
        match op {
            Op::Equal | Op::NotEqual => {
                self.compared(a, b)?;
                Ok((equal(a, b) == (op == Op::Equal)).into())
            }
            Op::Less | Op::Greater | Op::LessEqual | Op::GreaterEqual => {
                Ok(compare(op, a, b)?.into())
            }
            Op::In => {
                self.searched(a, b)?;
                Ok(contains(a, b)?.into())
            }
            Op::Matches => self.matches(a, b),
            Op::Contains | Op::StartsWith | Op::EndsWith => texts(op, a, b),
            Op::Range => Ok(self.range(a.to_int()?, b.to_int()?)?),
            _ => {
                let value = arithmetic(op, a, b)?;
                if let Value::Str(text) = &value {
                    self.bytes(text.len())?;
                }
                Ok(value)
            }
        }
    }

    /// Charges a comparison, which ends where the lighter one does.
    fn compared(&mut self, a: &Value, b: &Value) -> Result<(), ExprError> {
        match (a, b) {
            (Value::List(_) | Value::Map(_), Value::List(_) | Value::Map(_)) => {
                self.steps(a.weight().min(b.weight()) / 64)
            }
            _ => Ok(()),
        }
    }

    /// Charges the comparison of a value with all elements.
    fn searched(&mut self, value: &Value, all: &Value) -> Result<(), ExprError> {
        let count = match all {
            Value::List(_) | Value::Map(_) => length(all)? as u64,
            _ => 0,
        };
        let content = count.saturating_mul(value.weight()).min(all.weight());
        self.steps(count.saturating_add(content / 64))
    }

    fn range(&mut self, from: i64, to: i64) -> Result<Value, ExprError> {
        let size = to.wrapping_sub(from).wrapping_add(1).max(0);
        self.elements(usize::try_from(size).unwrap_or(usize::MAX))?;
        let items = (0..size).map(|i| Value::int(from + i)).collect();
        Ok(Value::list_of(ListKind::Ints, items))
    }

    fn matches(&mut self, a: &Value, b: &Value) -> Out {
        if a.is_nil() || b.is_nil() {
            return Ok(false.into());
        }
        let text = b.as_str()?;
        if self.patterns.as_ref().is_none_or(|(own, _)| own != text) {
            self.steps(1000 + 10 * text.len() as u64)?;
            let pattern = Regex::new(&text.to_str()).map_err(ExprError::run)?;
            self.patterns = Some((text.clone(), pattern));
        }
        match &self.patterns {
            Some((_, pattern)) => matches(a, pattern),
            None => Ok(false.into()),
        }
    }

    fn member(&mut self, of: &'r Expr, property: &'r Expr, optional: bool) -> Out {
        let base = self.eval(of)?;
        if optional && base.is_nil() {
            return Err(Stop::Chain);
        }
        let property = self.eval(property)?;
        Ok(fetch(&base, &property)?)
    }

    fn slice(&mut self, of: &'r Expr, from: Option<&'r Expr>, to: Option<&'r Expr>) -> Out {
        let value = self.eval(of)?;
        let to = match to {
            Some(to) => self.eval(to)?,
            None => Value::int(i64::try_from(length(&value)?).unwrap_or(i64::MAX)),
        };
        let from = from.map_or(Ok(Value::int(0)), |from| self.eval(from))?;
        let part = slice(&value, &from, &to)?;
        self.bytes(length(&part)?)?;
        Ok(part)
    }

    fn call(&mut self, callee: &'r Expr, args: &'r [Expr]) -> Out {
        let known = callee.known;
        let args = self.all(args)?;
        self.steps(10)?;
        match self.eval(callee)? {
            Value::Nil => Err(ExprError::run("invalid operation: cannot call nil").into()),
            Value::Func(_) if known == Known::Method && args.iter().any(Value::is_nil) => {
                Err(ExprError::run("interface conversion: interface {} is nil").into())
            }
            Value::Func(func) => Ok(func.call(args)?),
            other => Err(ExprError::run(format!(
                "invalid operation: cannot call non-function of type {}",
                other.go_type()
            ))
            .into()),
        }
    }

    fn builtin(&mut self, function: Builtin, args: &'r [Expr]) -> Out {
        let args = self.all(args)?;
        self.steps(10)?;
        Ok(builtins::call(function, &args, self)?)
    }

    fn all(&mut self, nodes: &'r [Expr]) -> Out<Vec<Value>> {
        nodes.iter().map(|node| self.eval(node)).collect()
    }

    fn array(&mut self, nodes: &'r [Expr]) -> Out {
        let items = self.all(nodes)?;
        self.list(items)
    }

    /// A new list. Not a part of the recursive functions, whose frames it would enlarge.
    pub(super) fn list(&mut self, items: Vec<Value>) -> Out {
        self.elements(items.len())?;
        Ok(self.weighed(Value::list(items))?)
    }

    /// A new map.
    pub(super) fn map_of(&self, kind: MapKind, entries: BTreeMap<Key, Value>) -> Out {
        Ok(self.weighed(Value::Map(Rc::new(Map::new(kind, entries))))?)
    }

    fn map(&mut self, pairs: &'r [(Expr, Expr)]) -> Out {
        let mut values = Vec::with_capacity(pairs.len());
        for (key, value) in pairs {
            values.push((self.eval(key)?, self.eval(value)?));
        }
        self.elements(values.len())?;
        let mut entries = BTreeMap::new();
        // The first of equal keys stays, because the library takes them from the end.
        for (key, value) in values.into_iter().rev() {
            entries.insert(Key::Str(key.as_str()?.clone()), value);
        }
        self.map_of(MapKind::Text, entries)
    }
}

fn matches(value: &Value, pattern: &Regex) -> Out {
    match value {
        Value::Nil => Ok(false.into()),
        Value::Str(text) | Value::Bytes(text) => Ok(pattern.is_match(&text.to_str()).into()),
        other => Err(ExprError::run(format!(
            "interface conversion: interface {{}} is {}, not []uint8",
            other.go_type()
        ))
        .into()),
    }
}

/// A set of texts has only texts as keys.
fn in_texts(value: &Value, texts: &[Str]) -> Out {
    match value {
        Value::Nil => Ok(texts.iter().any(Str::is_empty).into()),
        Value::Str(text) => Ok(texts.contains(text).into()),
        other => Err(super::access::not_assignable(other).into()),
    }
}

/// `contains`, `startsWith`, `endsWith`
fn texts(op: Op, a: &Value, b: &Value) -> Out {
    if a.is_nil() || b.is_nil() {
        return Ok(false.into());
    }
    let (part, whole) = (b.as_str()?, a.as_str()?);
    let (whole, part) = (whole.as_bytes(), part.as_bytes());
    Ok(match op {
        Op::StartsWith => whole.starts_with(part),
        Op::EndsWith => whole.ends_with(part),
        _ => part.is_empty() || whole.windows(part.len()).any(|window| window == part),
    }
    .into())
}
