//! What an expression gives for a document: values, and where in the document they are.

use super::{
    JqError, Step,
    builtins::{self, order},
    parser::{Comparison, Expr},
};
use serde_json::Value;
use std::{borrow::Cow, cmp::Ordering};

/// A value and, unless it was made up, its place.
#[derive(Clone)]
pub struct Item<'v> {
    pub path: Option<Vec<Step>>,
    pub value: Cow<'v, Value>,
}

impl<'v> Item<'v> {
    pub fn made(value: impl Into<Value>) -> Self {
        Self { path: None, value: Cow::Owned(value.into()) }
    }

    fn child(&self, step: Step, value: Cow<'v, Value>) -> Self {
        let path = self.path.clone().map(|mut path| {
            path.push(step);
            path
        });
        Self { path, value }
    }
}

pub type Items<'v> = Result<Vec<Item<'v>>, Fault>;

/// An error that `?` catches, or the end of the budget, which nothing catches.
pub enum Fault {
    Error(String),
    Budget,
}

pub fn error<T>(text: impl Into<String>) -> Result<T, Fault> {
    Err(Fault::Error(text.into()))
}

/// The places that an expression names.
pub fn paths(expr: &Expr, document: &Value, steps: usize) -> Result<Vec<Vec<Step>>, JqError> {
    let mut eval = Eval { steps };
    let start = Item { path: Some(Vec::new()), value: Cow::Borrowed(document) };
    let items = eval.run(expr, &start).map_err(|fault| match fault {
        Fault::Error(text) => JqError::new(text),
        Fault::Budget => JqError::new("the expression takes too many steps"),
    })?;
    let place = |item: Item<'_>| item.path.ok_or_else(|| JqError::new(format!("it gives {} instead of naming a field", item.value)));
    items.into_iter().map(place).collect()
}

pub struct Eval {
    steps: usize,
}

impl Eval {
    fn spend(&mut self, steps: usize) -> Result<(), Fault> {
        self.steps = self.steps.checked_sub(steps).ok_or(Fault::Budget)?;
        Ok(())
    }

    pub fn run<'v>(&mut self, expr: &Expr, input: &Item<'v>) -> Items<'v> {
        self.spend(1)?;
        match expr {
            Expr::Identity => Ok(vec![input.clone()]),
            Expr::Descend => {
                let mut all = Vec::new();
                self.descend(input, &mut all)?;
                Ok(all)
            }
            Expr::Literal(value) => Ok(vec![Item::made(value.clone())]),
            Expr::List(inner) => {
                let values: Vec<Value> = self.run(inner, input)?.into_iter().map(|i| i.value.into_owned()).collect();
                Ok(vec![Item::made(values)])
            }
            Expr::Index(of, key) => self.index(of, key, input),
            Expr::Iterate(of) => {
                let mut all = Vec::new();
                for item in self.run(of, input)? {
                    all.extend(self.iterate(&item)?);
                }
                Ok(all)
            }
            Expr::Try(inner) => match self.run(inner, input) {
                Err(Fault::Error(_)) => Ok(Vec::new()),
                other => other,
            },
            Expr::Pipe(first, then) => {
                let mut all = Vec::new();
                for item in self.run(first, input)? {
                    all.extend(self.run(then, &item)?);
                }
                Ok(all)
            }
            Expr::Comma(a, b) => {
                let mut all = self.run(a, input)?;
                all.extend(self.run(b, input)?);
                Ok(all)
            }
            Expr::Alternative(a, b) => {
                let first = match self.run(a, input) {
                    Err(Fault::Error(_)) => Vec::new(),
                    other => other?,
                };
                let truthy: Vec<_> = first.into_iter().filter(|i| is_true(&i.value)).collect();
                if truthy.is_empty() { self.run(b, input) } else { Ok(truthy) }
            }
            Expr::Or(a, b) => self.logic(a, b, input, true),
            Expr::And(a, b) => self.logic(a, b, input, false),
            Expr::Compare(comparison, a, b) => self.compare(*comparison, a, b, input),
            Expr::If(condition, then, otherwise) => {
                let mut all = Vec::new();
                for item in self.run(condition, input)? {
                    all.extend(self.run(if is_true(&item.value) { then } else { otherwise }, input)?);
                }
                Ok(all)
            }
            Expr::Call(builtin, arguments) => builtins::call(self, *builtin, arguments, input),
        }
    }

    /// Whether any value that the expression gives is true.
    pub fn holds(&mut self, expr: &Expr, input: &Item<'_>) -> Result<bool, Fault> {
        Ok(self.run(expr, input)?.iter().any(|item| is_true(&item.value)))
    }

    fn descend<'v>(&mut self, item: &Item<'v>, all: &mut Vec<Item<'v>>) -> Result<(), Fault> {
        self.spend(1)?;
        all.push(item.clone());
        if item.value.is_object() || item.value.is_array() {
            for child in self.iterate(item)? {
                self.descend(&child, all)?;
            }
        }
        Ok(())
    }

    pub fn iterate<'v>(&mut self, item: &Item<'v>) -> Items<'v> {
        let children: Vec<Item<'v>> = match &item.value {
            Cow::Borrowed(Value::Object(map)) => map.iter().map(|(k, v)| item.child(Step::Key(k.clone()), Cow::Borrowed(v))).collect(),
            Cow::Borrowed(Value::Array(list)) => {
                list.iter().enumerate().map(|(i, v)| item.child(Step::Index(i), Cow::Borrowed(v))).collect()
            }
            Cow::Owned(Value::Object(map)) => map.iter().map(|(k, v)| item.child(Step::Key(k.clone()), Cow::Owned(v.clone()))).collect(),
            Cow::Owned(Value::Array(list)) => {
                list.iter().enumerate().map(|(i, v)| item.child(Step::Index(i), Cow::Owned(v.clone()))).collect()
            }
            other => return error(format!("cannot iterate over {}", builtins::type_of(other))),
        };
        self.spend(children.len())?;
        Ok(children)
    }

    fn index<'v>(&mut self, of: &Expr, key: &Expr, input: &Item<'v>) -> Items<'v> {
        let keys = self.run(key, input)?;
        let mut all = Vec::new();
        for item in self.run(of, input)? {
            for key in &keys {
                all.push(at(&item, &key.value)?);
            }
        }
        Ok(all)
    }

    /// `or` stops at the first true, `and` at the first false.
    fn logic<'v>(&mut self, a: &Expr, b: &Expr, input: &Item<'v>, stops_at: bool) -> Items<'v> {
        let mut all = Vec::new();
        for left in self.run(a, input)? {
            if is_true(&left.value) == stops_at {
                all.push(Item::made(stops_at));
            } else {
                all.extend(self.run(b, input)?.iter().map(|right| Item::made(is_true(&right.value))));
            }
        }
        Ok(all)
    }

    fn compare<'v>(&mut self, comparison: Comparison, a: &Expr, b: &Expr, input: &Item<'v>) -> Items<'v> {
        let (left, right) = (self.run(a, input)?, self.run(b, input)?);
        self.spend(left.len() * right.len())?;
        let holds = |a: &Value, b: &Value| match comparison {
            Comparison::Equal => order(a, b) == Ordering::Equal,
            Comparison::NotEqual => order(a, b) != Ordering::Equal,
            Comparison::Less => order(a, b) == Ordering::Less,
            Comparison::LessOrEqual => order(a, b) != Ordering::Greater,
            Comparison::Greater => order(a, b) == Ordering::Greater,
            Comparison::GreaterOrEqual => order(a, b) != Ordering::Less,
        };
        Ok(right.iter().flat_map(|b| left.iter().map(move |a| Item::made(holds(&a.value, &b.value)))).collect())
    }
}

pub fn is_true(value: &Value) -> bool {
    !matches!(value, Value::Null | Value::Bool(false))
}

/// The value at a key or an index; `null` when it is not there.
pub fn at<'v>(item: &Item<'v>, key: &Value) -> Result<Item<'v>, Fault> {
    let step = match (&*item.value, key) {
        (Value::Object(_) | Value::Null, Value::String(key)) => Step::Key(key.clone()),
        (Value::Array(list), Value::Number(n)) => {
            let index = n.as_i64().unwrap_or(0);
            let from_end = index.checked_add_unsigned(list.len() as u64).unwrap_or(-1);
            match usize::try_from(if index < 0 { from_end } else { index }) {
                Ok(index) => Step::Index(index),
                Err(_) => return Ok(Item::made(Value::Null)),
            }
        }
        (Value::Null, Value::Number(n)) => Step::Index(n.as_u64().and_then(|n| usize::try_from(n).ok()).unwrap_or(0)),
        (value, key) => return error(format!("cannot index {} with {}", builtins::type_of(value), builtins::type_of(key))),
    };
    let value = match (&item.value, &step) {
        (Cow::Borrowed(value), Step::Key(key)) => value.get(key).map(Cow::Borrowed),
        (Cow::Borrowed(value), Step::Index(index)) => value.get(index).map(Cow::Borrowed),
        (Cow::Owned(value), Step::Key(key)) => value.get(key).cloned().map(Cow::Owned),
        (Cow::Owned(value), Step::Index(index)) => value.get(index).cloned().map(Cow::Owned),
    };
    Ok(item.child(step, value.unwrap_or(Cow::Owned(Value::Null))))
}
