//! Applies a parsed rule to an object.
//!
//! Main functions: [`judge`] and [`decide`]. They cannot fail: a missing field is a missing value,
//! and a comparison of incomparable values is false.

use super::{
    syntax::{Comparison, Expr, Function, ListFunction, Statement},
    value::Val,
};
use crate::types::Health;
use serde_json::{Map, Value};
use std::{borrow::Cow, cmp::Ordering};

/// The first verdict that applies; `None` if none does, which means that the object has no health.
pub fn judge(rules: &[Statement], object: &Map<String, Value>) -> Option<Health> {
    decide(rules, object).map(|(_, health)| health)
}

/// Like [`judge`], with the statement that decided.
pub fn decide<'a>(
    rules: &'a [Statement],
    object: &'a Map<String, Value>,
) -> Option<(&'a Statement, Health)> {
    Scope {
        object,
        names: Vec::new(),
        items: Vec::new(),
    }
    .run(rules)
}

/// What expressions can refer to at one place in a rule.
struct Scope<'a> {
    object: &'a Map<String, Value>,
    names: Vec<Val<'a>>,
    /// The current items with their indices, innermost last.
    items: Vec<(Val<'a>, usize)>,
}

impl<'a> Scope<'a> {
    fn run(&mut self, block: &'a [Statement]) -> Option<(&'a Statement, Health)> {
        let outer = self.names.len();
        let verdict = block.iter().find_map(|statement| self.step(statement));
        self.names.truncate(outer);
        verdict
    }

    fn step(&mut self, statement: &'a Statement) -> Option<(&'a Statement, Health)> {
        match statement {
            Statement::Let(value) => {
                let value = self.value(value);
                self.names.push(value);
                None
            }
            Statement::Each { list, named, body } => {
                self.value(list).items().enumerate().find_map(|(at, item)| {
                    if *named {
                        self.names.push(item.clone());
                    }
                    self.items.push((item, at + 1));
                    let verdict = self.run(body);
                    self.items.pop();
                    if *named {
                        self.names.pop();
                    }
                    verdict
                })
            }
            Statement::If { when, body } => self.holds(when).then(|| self.run(body)).flatten(),
            Statement::Verdict {
                status,
                when,
                message,
            } => {
                if when.as_ref().is_some_and(|when| !self.holds(when)) {
                    return None;
                }
                let message = message
                    .as_ref()
                    .map(|message| self.value(message).into_text().into_owned());
                Some((statement, Health::new(*status, message.unwrap_or_default())))
            }
        }
    }

    fn holds(&mut self, expr: &'a Expr) -> bool {
        self.value(expr).holds()
    }

    fn text(&mut self, expr: &'a Expr) -> Cow<'a, str> {
        self.value(expr).into_text()
    }

    fn value(&mut self, expr: &'a Expr) -> Val<'a> {
        match expr {
            Expr::Null => Val::Null,
            Expr::Bool(b) => Val::Bool(*b),
            Expr::Number(n) => Val::Number(*n),
            Expr::Text(text) => Val::Text(Cow::Borrowed(text)),
            Expr::Template(parts) => Val::Text(Cow::Owned(
                parts.iter().map(|part| self.text(part)).collect(),
            )),
            Expr::Root(name) => self.object.get(name).map_or(Val::Null, Val::from),
            Expr::Item => self
                .items
                .last()
                .map_or(Val::Null, |(item, _)| item.clone()),
            Expr::Index => self
                .items
                .last()
                .map_or(Val::Null, |(_, at)| Val::Number(*at as f64)),
            Expr::Name(slot) => self.names.get(*slot).cloned().unwrap_or(Val::Null),
            Expr::Field(of, name) => self.value(of).field(name),
            Expr::Not(expr) => Val::Bool(!self.holds(expr)),
            Expr::And(a, b) => {
                if self.holds(a) {
                    self.value(b)
                } else {
                    Val::Null
                }
            }
            Expr::Or(a, b) => {
                let a = self.value(a);
                if a.holds() { a } else { self.value(b) }
            }
            Expr::Compare(how, a, b) => Val::Bool(compare(*how, &self.value(a), &self.value(b))),
            Expr::In(value, list) => {
                let value = self.value(value);
                Val::Bool(list.iter().any(|one| self.value(one) == value))
            }
            Expr::Add(a, b) => self.numbers(a, b, |a, b| a + b),
            Expr::Subtract(a, b) => self.numbers(a, b, |a, b| a - b),
            Expr::OverList {
                what,
                list,
                each,
                separator,
            } => self.over_list(*what, list, each.as_deref(), separator.as_deref()),
            Expr::Call(function, arguments) => self.call(*function, arguments),
        }
    }

    fn numbers(&mut self, a: &'a Expr, b: &'a Expr, of: fn(f64, f64) -> f64) -> Val<'a> {
        match (self.value(a).number(), self.value(b).number()) {
            (Some(a), Some(b)) => Val::Number(of(a, b)),
            _ => Val::Null,
        }
    }

    /// The value of `each` for one item.
    fn of_item(&mut self, item: &Val<'a>, at: usize, each: Option<&'a Expr>) -> Val<'a> {
        let Some(each) = each else {
            return item.clone();
        };
        self.items.push((item.clone(), at));
        let value = self.value(each);
        self.items.pop();
        value
    }

    fn over_list(
        &mut self,
        what: ListFunction,
        list: &'a Expr,
        each: Option<&'a Expr>,
        separator: Option<&'a Expr>,
    ) -> Val<'a> {
        let list = self.value(list);
        let mut worth = list.items().enumerate().map(|(at, item)| {
            let value = self.of_item(&item, at + 1, each);
            (item, value)
        });
        match what {
            ListFunction::Any => Val::Bool(worth.any(|(_, v)| v.holds())),
            ListFunction::All => Val::Bool(worth.all(|(_, v)| v.holds())),
            ListFunction::Count => Val::Number(worth.filter(|(_, v)| v.holds()).count() as f64),
            ListFunction::Sum => Val::Number(worth.filter_map(|(_, v)| v.number()).sum()),
            ListFunction::First => worth
                .find(|(_, v)| v.holds())
                .map_or(Val::Null, |(item, _)| item),
            ListFunction::Last => worth
                .filter(|(_, v)| v.holds())
                .last()
                .map_or(Val::Null, |(item, _)| item),
            ListFunction::Where => Val::List(
                worth
                    .filter(|(_, v)| v.holds())
                    .map(|(item, _)| item)
                    .collect(),
            ),
            ListFunction::UpTo => {
                let mut kept = Vec::new();
                for (item, value) in worth {
                    kept.push(item);
                    if value.holds() {
                        break;
                    }
                }
                Val::List(kept)
            }
            ListFunction::Since => {
                let mut kept = Vec::new();
                for (item, value) in worth {
                    if value.holds() {
                        kept.clear();
                    }
                    kept.push(item);
                }
                Val::List(kept)
            }
            ListFunction::Sorted => {
                let mut all: Vec<_> = worth.collect();
                all.sort_by(|(_, a), (_, b)| by_key(a, b));
                Val::List(all.into_iter().map(|(item, _)| item).collect())
            }
            ListFunction::Join => {
                let texts: Vec<_> = worth
                    .filter(|(_, v)| *v != Val::Null)
                    .map(|(_, v)| v.into_text())
                    .collect();
                Val::Text(Cow::Owned(
                    texts.join(&*separator.map_or(Cow::Borrowed(", "), |s| self.text(s))),
                ))
            }
        }
    }

    fn call(&mut self, function: Function, arguments: &'a [Expr]) -> Val<'a> {
        let [first, more @ ..] = arguments else {
            return Val::Null;
        };
        let first = self.value(first);
        let mut more = more.iter().map(|argument| self.value(argument));
        let (second, third) = (
            more.next().unwrap_or(Val::Null),
            more.next().unwrap_or(Val::Null),
        );
        match function {
            Function::Empty => Val::Bool(first.is_empty()),
            Function::Number => match first {
                Val::Number(n) => Val::Number(n),
                Val::Text(text) => text.trim().parse().map_or(Val::Null, Val::Number),
                _ => Val::Null,
            },
            Function::Lower => Val::Text(Cow::Owned(first.into_text().to_lowercase())),
            Function::Starts => Val::Bool(first.into_text().starts_with(&*second.into_text())),
            Function::Ends => Val::Bool(first.into_text().ends_with(&*second.into_text())),
            Function::Contains => Val::Bool(first.into_text().contains(&*second.into_text())),
            Function::Before => owned(parts(&first, &second).map(|(before, _)| before)),
            Function::After => owned(parts(&first, &second).map(|(_, after)| after)),
            Function::Replace => Val::Text(Cow::Owned(
                first
                    .into_text()
                    .replace(&*second.into_text(), &third.into_text()),
            )),
            Function::Cut => {
                let keep = second.number().map_or(usize::MAX, |n| n as usize);
                Val::Text(Cow::Owned(first.into_text().chars().take(keep).collect()))
            }
        }
    }
}

fn compare(how: Comparison, a: &Val, b: &Val) -> bool {
    match how {
        Comparison::Equal => a == b,
        Comparison::Different => a != b,
        Comparison::Less => a.order(b).is_some_and(|o| o.is_lt()),
        Comparison::AtMost => a.order(b).is_some_and(|o| o.is_le()),
        Comparison::Greater => a.order(b).is_some_and(|o| o.is_gt()),
        Comparison::AtLeast => a.order(b).is_some_and(|o| o.is_ge()),
    }
}

/// Numbers before texts; items without a key come last.
fn by_key(a: &Val, b: &Val) -> Ordering {
    let rank = |value: &Val| match value {
        Val::Number(_) => 0,
        Val::Text(_) => 1,
        Val::Null => 3,
        _ => 2,
    };
    rank(a)
        .cmp(&rank(b))
        .then_with(|| a.order(b).unwrap_or(Ordering::Equal))
}

/// The two parts of a text around a separator; missing if the separator is not found.
fn parts(text: &Val, mark: &Val) -> Option<(String, String)> {
    let (Val::Text(text), Val::Text(mark)) = (text, mark) else {
        return None;
    };
    text.split_once(&**mark)
        .map(|(before, after)| (before.to_owned(), after.to_owned()))
}

fn owned<'a>(text: Option<String>) -> Val<'a> {
    text.map_or(Val::Null, |text| Val::Text(Cow::Owned(text)))
}
