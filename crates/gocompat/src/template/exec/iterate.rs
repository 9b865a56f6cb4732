//! `with`, and the iterations of `range`.
//!
//! Main type: [`Iterator`]. A map is iterated in the order of the keys it had at the start; a list
//! has its initial length, but current elements.

use super::super::code::Op;
use super::super::format::default_text;
use super::super::function::Slot;
use super::super::types::{IntKind, Type, UintKind};
use super::super::value::{List, Str, Value};
use super::{Done, Fault, Machine, boxed};
use std::vec::IntoIter;

pub(super) enum Iterator {
    Ints(IntKind, std::ops::Range<i64>),
    Uints(UintKind, std::ops::Range<u64>),
    List(List, usize),
    Bytes(Str, usize),
    Map(IntoIter<(Str, Value)>, Type),
}

impl Iterator {
    /// The next key or index, and the element.
    fn next(&mut self) -> Option<(Slot, Slot)> {
        let index = |i: usize| Slot::new(Value::int(i as i64));
        match self {
            Iterator::Ints(kind, range) => range
                .next()
                .map(|i| (Slot::default(), Slot::new(Value::Int(*kind, i)))),
            Iterator::Uints(kind, range) => range
                .next()
                .map(|u| (Slot::default(), Slot::new(Value::Uint(*kind, u)))),
            Iterator::List(list, at) => {
                let element = list.get(*at)?;
                *at += 1;
                Some((
                    index(*at - 1),
                    Slot {
                        value: element,
                        boxed: boxed(list.go_type().element()),
                    },
                ))
            }
            Iterator::Bytes(bytes, at) => {
                let byte = *bytes.as_bytes().get(*at)?;
                *at += 1;
                Some((
                    index(*at - 1),
                    Slot::new(Value::Uint(UintKind::Uint8, u64::from(byte))),
                ))
            }
            Iterator::Map(entries, kind) => {
                let (key, value) = entries.next()?;
                Some((
                    Slot::new(Value::String(key)),
                    Slot {
                        value,
                        boxed: boxed(*kind),
                    },
                ))
            }
        }
    }
}

impl Machine<'_> {
    pub(super) fn control(&mut self, op: &Op) -> Done {
        match op {
            Op::With { slot, otherwise } => {
                let value = self.pop();
                if value.value.truth() {
                    *self.slot(*slot) = value;
                } else {
                    self.frame.next = *otherwise as usize;
                }
            }
            Op::Range {
                variables,
                otherwise,
            } => {
                let value = self.pop().value;
                match self.iterator(&value, *variables)? {
                    Some(iterator) => self.iterators.push(iterator),
                    None => self.frame.next = *otherwise as usize,
                }
            }
            Op::Next {
                dot,
                index,
                element,
                end,
            } => match self.iterators.last_mut().and_then(Iterator::next) {
                Some((key, value)) => {
                    if let Some(slot) = index {
                        *self.slot(*slot) = key;
                    }
                    if let Some(slot) = element {
                        *self.slot(*slot) = value.clone();
                    }
                    *self.slot(*dot) = value;
                }
                None => {
                    self.iterators.pop();
                    self.frame.next = *end as usize;
                }
            },
            Op::Break(to) => {
                self.iterators.pop();
                self.frame.next = *to as usize;
            }
            _ => {}
        }
        Ok(())
    }

    /// The iterator for `range`; `None` if there is nothing to iterate over.
    fn iterator(&mut self, value: &Value, variables: u8) -> Result<Option<Iterator>, Fault> {
        let inner = value.underlying();
        let iterator = match inner.as_ref() {
            Value::Nil => return Ok(None),
            Value::Int(..) | Value::Uint(..) if variables > 1 => {
                return Err(Fault::Here(format!(
                    "can't use {} to iterate over more than one variable",
                    default_text(value)
                )));
            }
            Value::Int(kind, count) => (*count > 0).then(|| Iterator::Ints(*kind, 0..*count)),
            Value::Uint(kind, count) => (*count > 0).then(|| Iterator::Uints(*kind, 0..*count)),
            Value::List(list) => (!list.is_empty()).then(|| Iterator::List(list.clone(), 0)),
            Value::Bytes(bytes) => (!bytes.is_empty()).then(|| Iterator::Bytes(bytes.clone(), 0)),
            Value::Map(map) => {
                self.budget.steps(map.len() as u64)?;
                (!map.is_empty())
                    .then(|| Iterator::Map(map.entries().into_iter(), map.go_type().element()))
            }
            _ => {
                return Err(Fault::Here(format!(
                    "range can't iterate over {}",
                    default_text(value)
                )));
            }
        };
        Ok(iterator)
    }
}
