//! Functions with a predicate, which is evaluated for each element of a list.
//!
//! Main method: [`Machine::predicate_call`].

use super::access::length;
use super::builtins::Builtin;
use super::error::ExprError;
use super::eval::{Machine, Out};
use super::node::{BuiltinCall, Expr, Op};
use super::operators::{arithmetic, compare};
use super::value::{IntKind, List, ListKind, MapKind, Value};
use std::{cmp::Ordering, collections::BTreeMap, rc::Rc};

/// What the pointers of a predicate stand for.
pub(super) struct Scope {
    item: Value,
    index: usize,
    acc: Value,
    elements: Elements,
}

/// What a predicate is evaluated for.
#[derive(Clone, Copy)]
enum Elements {
    Listed,
    /// A value of this type has a length, but no element that a number selects: a predicate that
    /// needs no element can go over it all the same.
    Unselectable(&'static str),
}

impl Elements {
    fn select(self) -> Result<(), ExprError> {
        match self {
            Elements::Listed => Ok(()),
            Elements::Unselectable(kind) => Err(ExprError::run(format!(
                "reflect: call of reflect.Value.Index on {kind} Value"
            ))),
        }
    }
}

impl<'r> Machine<'r> {
    pub(super) fn pointer(&self, name: &str) -> Result<Value, ExprError> {
        let Some(scope) = self.scopes.last() else {
            return Err(ExprError::run("runtime error: invalid memory address"));
        };
        Ok(match name {
            "index" => Value::int(i64::try_from(scope.index).unwrap_or(i64::MAX)),
            "acc" => scope.acc.clone(),
            _ => {
                scope.elements.select()?;
                scope.item.clone()
            }
        })
    }

    pub(super) fn predicate_call(&mut self, call: &'r BuiltinCall) -> Out {
        let [list, rest @ ..] = call.args.as_slice() else {
            return Ok(Value::Nil);
        };
        let list = self.eval(list)?;
        if matches!(list, Value::Str(_) | Value::Bytes(_) | Value::Map(_)) {
            // They are copied, also for a predicate that looks at the first one only.
            self.steps(length(&list)? as u64 / 16)?;
        }
        let (list, elements) = items(&list)?;
        let scopes = self.scopes.len();
        self.scopes.push(Scope {
            item: Value::Nil,
            index: 0,
            acc: Value::Nil,
            elements,
        });
        let result = self.over(call, &list.items, rest);
        self.scopes.truncate(scopes);
        result
    }

    fn over(&mut self, call: &'r BuiltinCall, items: &[Value], rest: &'r [Expr]) -> Out {
        let predicate = rest.first();
        match call.function {
            Builtin::All => Ok(self.first(items, predicate, false)?.is_none().into()),
            Builtin::None => Ok(self.first(items, predicate, true)?.is_none().into()),
            Builtin::Any => Ok(self.first(items, predicate, true)?.is_some().into()),
            Builtin::One => Ok((self.count(items, predicate, None)? == 1).into()),
            Builtin::Count => Ok(Value::int(self.count(items, predicate, call.enough)?)),
            Builtin::Filter => self.filter(items, predicate, call.map.as_ref()),
            Builtin::Map => {
                let mut mapped = Vec::with_capacity(items.len());
                for (index, item) in items.iter().enumerate() {
                    mapped.push(self.at(index, item, predicate)?);
                }
                self.list(mapped)
            }
            Builtin::Find | Builtin::FindIndex => {
                let found = self.first(items, predicate, true)?;
                self.found(call, items, found)
            }
            Builtin::FindLast | Builtin::FindLastIndex => {
                let found = self.last(items, predicate)?;
                self.found(call, items, found)
            }
            Builtin::Sum => {
                let mut sum = Value::int(0);
                for (index, item) in items.iter().enumerate() {
                    sum = arithmetic(Op::Add, &self.at(index, item, predicate)?, &sum)?;
                }
                Ok(sum)
            }
            Builtin::GroupBy => self.group(items, predicate),
            Builtin::SortBy => self.sort_by(items, rest),
            _ => self.reduce(items, rest),
        }
    }

    /// An element as part of a result.
    fn element(&self, item: &Value) -> Out {
        if let Some(scope) = self.scopes.last() {
            scope.elements.select()?;
        }
        Ok(item.clone())
    }

    /// The predicate's value for an element; without one, the element.
    fn at(&mut self, index: usize, item: &Value, predicate: Option<&'r Expr>) -> Out {
        self.steps(1)?;
        let Some(predicate) = predicate else {
            return self.element(item);
        };
        if let Some(scope) = self.scopes.last_mut() {
            scope.item = item.clone();
            scope.index = index;
        }
        self.eval(predicate)
    }

    fn holds(&mut self, index: usize, item: &Value, predicate: Option<&'r Expr>) -> Out<bool> {
        Ok(self.at(index, item, predicate)?.as_bool()?)
    }

    /// The first element for which the predicate is as wanted.
    fn first(
        &mut self,
        items: &[Value],
        predicate: Option<&'r Expr>,
        wanted: bool,
    ) -> Out<Option<usize>> {
        for (index, item) in items.iter().enumerate() {
            if self.holds(index, item, predicate)? == wanted {
                return Ok(Some(index));
            }
        }
        Ok(None)
    }

    fn last(&mut self, items: &[Value], predicate: Option<&'r Expr>) -> Out<Option<usize>> {
        for (index, item) in items.iter().enumerate().rev() {
            if self.holds(index, item, predicate)? {
                return Ok(Some(index));
            }
        }
        Ok(None)
    }

    fn count(
        &mut self,
        items: &[Value],
        predicate: Option<&'r Expr>,
        enough: Option<i64>,
    ) -> Out<i64> {
        let mut count = 0;
        for (index, item) in items.iter().enumerate() {
            count += i64::from(self.holds(index, item, predicate)?);
            if enough.is_some_and(|enough| count >= enough) {
                break;
            }
        }
        Ok(count)
    }

    fn filter(
        &mut self,
        items: &[Value],
        predicate: Option<&'r Expr>,
        map: Option<&'r Expr>,
    ) -> Out {
        let mut kept = Vec::new();
        for (index, item) in items.iter().enumerate() {
            if self.holds(index, item, predicate)? {
                kept.push(match map {
                    Some(map) => self.eval(map)?,
                    None => self.element(item)?,
                });
            }
        }
        self.list(kept)
    }

    fn found(&mut self, call: &'r BuiltinCall, items: &[Value], found: Option<usize>) -> Out {
        let indices = matches!(call.function, Builtin::FindIndex | Builtin::FindLastIndex);
        match found {
            Some(index) if indices => Ok(Value::int(i64::try_from(index).unwrap_or(i64::MAX))),
            Some(index) => match &call.map {
                Some(map) => self.at(index, &items[index], Some(map)),
                None => self.element(&items[index]),
            },
            None if call.throws => Err(ExprError::run("reflect: slice index out of range").into()),
            None => Ok(Value::Nil),
        }
    }

    fn group(&mut self, items: &[Value], predicate: Option<&'r Expr>) -> Out {
        let mut groups: BTreeMap<_, Vec<Value>> = BTreeMap::new();
        for (index, item) in items.iter().enumerate() {
            let key = self.at(index, item, predicate)?.key()?;
            let item = self.element(item)?;
            groups.entry(key).or_default().push(item);
        }
        self.elements(items.len())?;
        let entries = groups
            .into_iter()
            .map(|(key, items)| (key, Value::list(items)))
            .collect();
        self.map_of(MapKind::Groups, entries)
    }

    fn sort_by(&mut self, items: &[Value], rest: &'r [Expr]) -> Out {
        let descending = match rest.get(1) {
            None => false,
            Some(order) => match &self.eval(order)? {
                Value::Str(order) if order.as_bytes() == b"asc" => false,
                Value::Str(order) if order.as_bytes() == b"desc" => true,
                Value::Str(_) => {
                    return Err(ExprError::run("unknown order, use asc or desc").into());
                }
                _ => {
                    return Err(ExprError::run("sortBy order argument must be a string").into());
                }
            },
        };
        let mut keyed = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            keyed.push((self.at(index, item, rest.first())?, self.element(item)?));
        }
        let sorted = sorted(keyed, descending)?;
        self.elements(items.len())?;
        Ok(Value::list(sorted))
    }

    fn reduce(&mut self, items: &[Value], rest: &'r [Expr]) -> Out {
        let (mut acc, from) = match (rest.get(1), items.first()) {
            (Some(initial), _) => (self.eval(initial)?, 0),
            (None, Some(first)) => (self.element(first)?, 1),
            (None, None) => {
                let message = "reduce of empty array with no initial value";
                return Err(ExprError::run(message).into());
            }
        };
        for (index, item) in items.iter().enumerate().skip(from) {
            if let Some(scope) = self.scopes.last_mut() {
                scope.acc = acc;
            }
            acc = self.at(index, item, rest.first())?;
        }
        Ok(acc)
    }
}

/// The elements that a predicate sees.
fn items(list: &Value) -> Result<(Rc<List>, Elements), ExprError> {
    let any = |items| Rc::new(List::new(ListKind::Any, items));
    match list {
        Value::List(list) => Ok((list.clone(), Elements::Listed)),
        Value::Bytes(bytes) | Value::Str(bytes) => {
            let bytes = bytes.as_bytes().iter();
            let items = bytes.map(|byte| Value::Int(IntKind::Uint8, i64::from(*byte)));
            Ok((any(items.collect()), Elements::Listed))
        }
        Value::Map(map) => Ok((
            any(vec![Value::Nil; map.entries.len()]),
            Elements::Unselectable("map"),
        )),
        Value::Nil => Err(ExprError::run(
            "reflect: call of reflect.Value.Len on zero Value",
        )),
        other => Err(ExprError::run(format!(
            "reflect: call of reflect.Value.Len on {} Value",
            other.go_type()
        ))),
    }
}

/// Elements in the order of their keys.
///
/// # Errors
/// For keys that can not be compared.
pub(super) fn sorted(
    mut keyed: Vec<(Value, Value)>,
    descending: bool,
) -> Result<Vec<Value>, ExprError> {
    let mut failed = None;
    keyed.sort_by(|(a, _), (b, _)| {
        let (a, b) = if descending { (b, a) } else { (a, b) };
        let less = |x, y| compare(Op::Less, x, y);
        match (less(a, b), less(b, a)) {
            (Ok(true), _) => Ordering::Less,
            (_, Ok(true)) => Ordering::Greater,
            (Err(error), _) | (_, Err(error)) => {
                failed.get_or_insert(error);
                Ordering::Equal
            }
            _ => Ordering::Equal,
        }
    });
    match failed {
        Some(error) => Err(error),
        None => Ok(keyed.into_iter().map(|(_, item)| item).collect()),
    }
}
