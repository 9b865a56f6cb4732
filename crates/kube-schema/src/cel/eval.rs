//! Evaluates an expression within a budget. Main type: [`Evaluator`].

use super::ast::{ACCU, Expr, Fold, Kind, Literal};
use super::kinds::Opaque;
use super::library;
use super::value::{Key, List, Map, Value};
use std::sync::Arc;

/// Why there is no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EvalError {
    /// The expression failed, with the real library's message.
    Failed(String),
    /// The cost limit was exceeded.
    Cost,
}

pub const COST_TEXT: &str = "operation cancelled: actual cost limit exceeded";

impl EvalError {
    pub fn text(&self) -> &str {
        match self {
            Self::Failed(text) => text,
            Self::Cost => COST_TEXT,
        }
    }
}

/// The value of a variable, if there is such a variable.
pub type Vars<'a> = &'a dyn Fn(&str) -> Option<Evaluated>;

pub type Evaluated = Result<Value, EvalError>;

pub fn failed<T>(text: impl Into<String>) -> Result<T, EvalError> {
    Err(EvalError::Failed(text.into()))
}

/// The object that holds a policy's own variables.
const COMPOSED: &str = "variables";

/// The maximum depth of a tree that is evaluated.
const MAX_DEPTH: usize = 600;

pub struct Evaluator<'a> {
    vars: Vars<'a>,
    scopes: Vec<(&'a str, Value)>,
    pub cost: u64,
    limit: u64,
    depth: usize,
}

impl<'a> Evaluator<'a> {
    pub fn new(vars: Vars<'a>, limit: u64) -> Self {
        Self {
            vars,
            scopes: Vec::new(),
            cost: 0,
            limit,
            depth: 0,
        }
    }

    fn spend(&mut self, cost: u64) -> Result<(), EvalError> {
        self.cost = self.cost.saturating_add(cost);
        if self.cost > self.limit {
            Err(EvalError::Cost)
        } else {
            Ok(())
        }
    }

    pub fn eval(&mut self, expr: &'a Expr) -> Evaluated {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return failed("expression is nested too deeply");
        }
        let result = self.step(expr);
        self.depth -= 1;
        result
    }

    fn step(&mut self, expr: &'a Expr) -> Evaluated {
        match &expr.kind {
            Kind::Literal(literal) => Ok(of_literal(literal)),
            Kind::Ident(name) => {
                self.spend(1)?;
                self.variable(name)
            }
            Kind::Select {
                operand,
                field,
                optional: false,
                test,
            } if self.is_composed(operand) => {
                self.spend(2)?;
                if *test {
                    return Ok(Value::Bool(true));
                }
                (self.vars)(&format!("{COMPOSED}.{field}"))
                    .unwrap_or_else(|| failed(format!("no such key: {field}")))
            }
            Kind::Select {
                operand,
                field,
                optional,
                test,
            } => {
                let value = self.eval(operand)?;
                if !test {
                    self.spend(1)?;
                }
                select(value, field, *optional, *test)
            }
            Kind::Call {
                function,
                target,
                args,
            } => self.call(function, target.as_deref(), args),
            Kind::List(items) => {
                let mut list = Vec::with_capacity(items.len());
                for (item, optional) in items {
                    match (self.eval(item)?, optional) {
                        (Value::Optional(inner), true) => list.extend(inner.map(|v| *v)),
                        (value, _) => list.push(value),
                    }
                }
                self.spend(10)?;
                Ok(Value::list(list))
            }
            Kind::Map(entries) => {
                let mut map = Map::new();
                for (key, value, optional) in entries {
                    let key = self.eval(key)?;
                    let Some(key) = Key::of(&key) else {
                        return failed(format!("unsupported key type: {}", key.type_name()));
                    };
                    let value = match (self.eval(value)?, optional) {
                        (Value::Optional(None), true) => continue,
                        (Value::Optional(Some(inner)), true) => *inner,
                        (value, _) => value,
                    };
                    map.insert(key, value);
                }
                self.spend(30)?;
                Ok(Value::map(map))
            }
            Kind::Struct(name, fields) => {
                let mut map = Map::new();
                for field in fields {
                    let value = match (self.eval(&field.value)?, field.optional) {
                        (Value::Optional(None), true) => continue,
                        (Value::Optional(Some(inner)), true) => *inner,
                        (value, _) => value,
                    };
                    map.insert(Key::String(field.name.as_str().into()), value);
                }
                self.spend(40)?;
                Ok(Value::opaque(Opaque::Made(name.clone(), map)))
            }
            Kind::Fold(fold) => self.fold(fold),
        }
    }

    /// `variables`, unless a loop has a variable of that name: its fields are evaluated on access.
    fn is_composed(&self, operand: &Expr) -> bool {
        operand.as_ident() == Some(COMPOSED)
            && !self.scopes.iter().any(|(name, _)| *name == COMPOSED)
    }

    fn variable(&self, name: &str) -> Evaluated {
        if let Some((_, value)) = self.scopes.iter().rev().find(|(n, _)| *n == name) {
            return Ok(value.clone());
        }
        if let Some(value) = (self.vars)(name) {
            return value;
        }
        match name {
            "bool"
            | "int"
            | "uint"
            | "double"
            | "string"
            | "bytes"
            | "list"
            | "map"
            | "null_type"
            | "type"
            | "optional_type"
            | "google.protobuf.Timestamp"
            | "google.protobuf.Duration"
            | "net.IP"
            | "net.CIDR"
            | "kubernetes.Quantity"
            | "kubernetes.Semver"
            | "kubernetes.URL" => Ok(Value::Type(name.into())),
            _ => failed(format!("no such attribute(s): {name}")),
        }
    }

    fn call(&mut self, function: &'a str, target: Option<&'a Expr>, args: &'a [Expr]) -> Evaluated {
        match (function, args) {
            ("_&&_", [a, b]) => return self.logical(a, b, false),
            ("_||_", [a, b]) => return self.logical(a, b, true),
            ("_?_:_", [condition, yes, no]) => {
                return match self.eval(condition)? {
                    Value::Bool(true) => self.eval(yes),
                    Value::Bool(false) => self.eval(no),
                    _ => failed("no such overload"),
                };
            }
            ("@not_strictly_false", [a]) => {
                return match self.eval(a) {
                    Ok(Value::Bool(b)) => Ok(Value::Bool(b)),
                    Err(EvalError::Cost) => Err(EvalError::Cost),
                    _ => Ok(Value::Bool(true)),
                };
            }
            ("or" | "orValue", [other]) => {
                if let Some(target) = target {
                    return match (self.eval(target)?, function) {
                        (Value::Optional(Some(inner)), "orValue") => Ok(*inner),
                        (Value::Optional(None), _) => self.eval(other),
                        (some @ Value::Optional(Some(_)), _) => Ok(some),
                        _ => failed("no such overload"),
                    };
                }
            }
            _ => {}
        }
        let mut values = Vec::with_capacity(args.len() + 1);
        if let Some(target) = target {
            values.push(self.eval(target)?);
        }
        for arg in args {
            values.push(self.eval(arg)?);
        }
        let left = self.limit.saturating_sub(self.cost);
        self.spend(library::cost_before(function, &values, left))?;
        let result = library::call(function, target.is_some(), &values)?;
        self.spend(library::cost_after(function, &values, &result))?;
        Ok(result)
    }

    /// Either side may decide, even if the other is an error.
    fn logical(&mut self, a: &'a Expr, b: &'a Expr, decides: bool) -> Evaluated {
        let left = self.eval(a);
        match left {
            Ok(Value::Bool(value)) if value == decides => return Ok(Value::Bool(decides)),
            Err(EvalError::Cost) => return Err(EvalError::Cost),
            _ => {}
        }
        let right = self.eval(b);
        match (left, right) {
            (_, Ok(Value::Bool(value))) if value == decides => Ok(Value::Bool(decides)),
            (_, Err(EvalError::Cost)) => Err(EvalError::Cost),
            (Err(error), _) | (Ok(Value::Bool(_)), Err(error)) => Err(error),
            (Ok(Value::Bool(_)), Ok(Value::Bool(_))) => Ok(Value::Bool(!decides)),
            _ => failed("no such overload"),
        }
    }

    fn fold(&mut self, fold: &'a Fold) -> Evaluated {
        let range = self.eval(&fold.range)?;
        let mut accu = self.eval(&fold.init)?;
        let items: Vec<(Value, Value)> = match &range {
            Value::List(list) => list
                .items
                .iter()
                .enumerate()
                .map(|(i, v)| (Value::Int(i as i64), v.clone()))
                .collect(),
            Value::Map(map) => map.iter().map(|(k, v)| (k.value(), v.clone())).collect(),
            other => return failed(format!("got '{}', expected iterable type", other.go_type())),
        };
        let keys_first = fold.second.is_some() || matches!(range, Value::Map(_));
        let depth = self.scopes.len();
        for (key, value) in items {
            self.scopes.push((&fold.accu, accu));
            let condition = self.eval(&fold.condition);
            accu = self.scopes.pop().map_or(Value::Null, |(_, v)| v);
            // Reading the loop's variables has a cost, too.
            if matches!(condition, Err(EvalError::Cost)) {
                return Err(EvalError::Cost);
            }
            if matches!(condition, Ok(Value::Bool(false))) {
                break;
            }
            if let Some(name) = &fold.second {
                self.scopes.push((&fold.var, key));
                self.scopes.push((name, value));
            } else {
                self.scopes
                    .push((&fold.var, if keys_first { key } else { value }));
            }
            let stepped = self.accumulate(fold, accu);
            self.scopes.truncate(depth);
            accu = stepped?;
        }
        self.scopes.push((&fold.accu, accu));
        let result = self.eval(&fold.result);
        self.scopes.truncate(depth);
        result
    }

    /// One iteration of a loop. Errors of predicates are deferred: a later element may decide.
    fn accumulate(&mut self, fold: &'a Fold, accu: Value) -> Evaluated {
        if let Some((filter, element)) = collecting(&fold.step) {
            if let Some(filter) = filter {
                match self.eval(filter)? {
                    Value::Bool(true) => {}
                    Value::Bool(false) => {
                        self.spend(1)?;
                        return Ok(accu);
                    }
                    _ => return failed("no such overload"),
                }
            }
            let item = self.eval(element)?;
            // The accumulator, the one-element list and the addition.
            self.spend(1 + 10 + 1)?;
            let Value::List(mut list) = accu else {
                return failed("no such overload");
            };
            Arc::make_mut(&mut list).items.push(item);
            return Ok(Value::List(list));
        }
        self.scopes.push((&fold.accu, accu));
        self.eval(&fold.step)
    }
}

/// The filter and the element of a loop that appends to a list.
fn collecting(step: &Expr) -> Option<(Option<&Expr>, &Expr)> {
    let Kind::Call {
        function,
        target: None,
        args,
    } = &step.kind
    else {
        return None;
    };
    match (function.as_str(), args.as_slice()) {
        ("_+_", [accu, one]) if accu.as_ident() == Some(ACCU) => match &one.kind {
            Kind::List(items) if items.len() == 1 && !items[0].1 => Some((None, &items[0].0)),
            _ => None,
        },
        ("_?_:_", [filter, yes, no]) if no.as_ident() == Some(ACCU) => match collecting(yes)? {
            (None, element) => Some((Some(filter), element)),
            _ => None,
        },
        _ => None,
    }
}

fn of_literal(literal: &Literal) -> Value {
    match literal {
        Literal::Null => Value::Null,
        Literal::Bool(b) => Value::Bool(*b),
        Literal::Int(n) => Value::Int(*n),
        Literal::Whole(n) => Value::Int(*n as i64),
        Literal::Uint(n) => Value::Uint(*n),
        Literal::Double(f) => Value::Double(*f),
        Literal::String(s) => s.as_str().into(),
        Literal::Bytes(b) => Value::Bytes(b.as_slice().into()),
    }
}

/// `a.b`, `a.?b` and `has(a.b)`.
fn select(value: Value, field: &str, optional: bool, test: bool) -> Evaluated {
    let (value, was_optional) = match value {
        Value::Optional(None) if test => return Ok(Value::Bool(false)),
        Value::Optional(None) => return Ok(Value::Optional(None)),
        Value::Optional(Some(inner)) => (*inner, true),
        other => (other, false),
    };
    let found = match &value {
        // A field with a reserved name may be written without escaping where the grammar allows it.
        Value::Map(map) => {
            let plain = || map.get(&Key::String(format!("__{field}__").into()));
            map.get(&Key::String(field.into()))
                .or_else(|| super::declare::is_reserved(field).then(plain).flatten())
                .cloned()
        }
        Value::Opaque(made) if matches!(**made, Opaque::Made(..)) => match &**made {
            Opaque::Made(_, fields) => fields.get(&Key::String(field.into())).cloned(),
            _ => None,
        },
        Value::List(_) => return failed("unsupported index type 'string' in list"),
        _ => None,
    };
    match (found, test, optional || was_optional) {
        (found, true, _) => Ok(Value::Bool(found.is_some())),
        (Some(already @ Value::Optional(_)), false, true) => Ok(already),
        (Some(found), false, true) => Ok(Value::some(found)),
        (Some(found), false, false) => Ok(found),
        (None, false, true) => Ok(Value::Optional(None)),
        (None, false, false) => failed(format!("no such key: {field}")),
    }
}

/// Also used by index expressions: `a[b]` and `a[?b]`.
pub fn index(of: &Value, at: &Value, optional: bool) -> Evaluated {
    let (of, was_optional) = match of {
        Value::Optional(None) => return Ok(Value::Optional(None)),
        Value::Optional(Some(inner)) => (&**inner, true),
        other => (other, false),
    };
    let soft = optional || was_optional;
    let found = match of {
        Value::Map(map) => match Key::of(at) {
            Some(key) => map
                .get(&key)
                .cloned()
                .ok_or_else(|| format!("no such key: {}", at.text().unwrap_or_default())),
            None => Err(format!("no such key: {}", at.text().unwrap_or_default())),
        },
        Value::List(list) => element(list, at),
        _ => Err(format!("no such key: {}", at.text().unwrap_or_default())),
    };
    match found {
        Ok(value) if soft => Ok(Value::some(value)),
        Ok(value) => Ok(value),
        Err(_) if soft => Ok(Value::Optional(None)),
        Err(text) => failed(text),
    }
}

fn element(list: &List, at: &Value) -> Result<Value, String> {
    let i = match at {
        Value::Int(n) => *n,
        Value::Uint(n) => i64::try_from(*n).unwrap_or(i64::MAX),
        Value::Double(f) if f.fract() == 0.0 => *f as i64,
        _ => {
            return Err(format!(
                "unsupported index type '{}' in list",
                at.type_name()
            ));
        }
    };
    usize::try_from(i)
        .ok()
        .and_then(|i| list.items.get(i))
        .cloned()
        .ok_or_else(|| format!("index out of bounds: {i}"))
}
