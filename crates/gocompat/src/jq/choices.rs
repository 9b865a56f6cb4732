//! Backtracking: to the last choice that has another result or, after an error, to its handler.
//!
//! Main functions: [`Machine::go_back`] and [`Machine::unwind`].

use super::{
    fault::Fault,
    machine::{Choice, Kind, Machine, Next, Stepped},
    number, paths,
    value::{Val, order},
};
use std::{
    cmp::Ordering,
    ops::Bound::{Excluded, Unbounded},
};

impl<'p> Machine<'p> {
    pub fn go_back(&mut self) -> Stepped<'p> {
        let top = self.choices.len() - 1;
        self.restore(top);
        let Some(choice) = self.choices.last_mut() else {
            return Ok(Next::Back);
        };
        if let Some((from, key, value)) = advance(choice)? {
            if let Some(from) = from {
                self.follow(&from, || key, &value)?;
            }
            return Ok(Next::Give(value));
        }
        let Some(choice) = self.choices.pop() else {
            return Ok(Next::Back);
        };
        match choice.kind {
            Kind::Node(node, env, input) => Ok(Next::Eval(node, env, input)),
            Kind::Collect(values) => {
                let list = Val::list(values);
                self.budget.made(&list)?;
                Ok(Next::Give(list))
            }
            Kind::Reduce(value) | Kind::Last(Some(value)) => Ok(Next::Give(value)),
            Kind::Alternative {
                found: false,
                right,
                env,
                input,
            } => Ok(Next::Eval(right, env, input)),
            Kind::Update { value, deleted } => {
                let value = match deleted.is_empty() {
                    true => value,
                    false => paths::delete(value, &Val::list(deleted), &mut self.budget)?,
                };
                Ok(Next::Give(value))
            }
            Kind::UpdateOne { choice, path } => {
                if let Kind::Update { deleted, .. } = &mut self.choices[choice].kind {
                    deleted.push(path);
                }
                Ok(Next::Back)
            }
            _ => Ok(Next::Back),
        }
    }

    /// Goes back to the handler of an error, if there is one.
    pub fn unwind(&mut self, mut fault: Fault) -> Stepped<'p> {
        while let Some(top) = self.choices.len().checked_sub(1) {
            if matches!(fault, Fault::Ended(_)) {
                self.choices.clear();
                break;
            }
            self.restore(top);
            let Some(choice) = self.choices.pop() else {
                break;
            };
            match choice.kind {
                Kind::TryDone(of) => self.choices.truncate(of),
                Kind::Try { handler: None, .. } => return Ok(Next::Back),
                Kind::Try {
                    handler: Some(handler),
                    env,
                } => {
                    return Ok(Next::Eval(
                        handler,
                        env,
                        fault.caught().unwrap_or(Val::Null),
                    ));
                }
                Kind::Patterns {
                    bind,
                    next,
                    value,
                    input,
                    env,
                } => match self.bind_pattern(bind, next, value, input, env) {
                    Err(another) => fault = another,
                    stepped => return stepped,
                },
                _ => {}
            }
        }
        Err(fault)
    }
}

/// For a step of a path: the value it starts from (if a path is tracked), the key, and the next
/// value.
type Advanced = Option<(Option<Val>, Val, Val)>;

/// The next value of a choice with several values.
fn advance(choice: &mut Choice<'_>) -> Result<Advanced, Fault> {
    Ok(match &mut choice.kind {
        Kind::List(list, at) => list.items.get(*at).cloned().map(|value| {
            *at += 1;
            (Some(Val::List(list.clone())), Val::count(*at - 1), value)
        }),
        Kind::Map(map, last) => {
            let next = map
                .items
                .range::<str, _>((Excluded(&**last), Unbounded))
                .next();
            next.map(|(key, value)| (key.clone(), value.clone()))
                .map(|(key, value)| {
                    *last = key.clone();
                    (Some(Val::Map(map.clone())), Val::Text(key), value)
                })
        }
        Kind::Range { at, end, step } => {
            let up = order(step, &Val::Int(0));
            let more = match up {
                Ordering::Greater => order(at, end).is_lt(),
                Ordering::Less => order(at, end).is_gt(),
                Ordering::Equal => false,
            };
            if !more {
                return Ok(None);
            }
            let next = number::add(at, step)?;
            Some((None, Val::Null, std::mem::replace(at, next)))
        }
        _ => None,
    })
}
