//! Values at keys, slices and paths: reading, setting and deleting.
//!
//! Main functions: [`index`], [`slice`], [`get`], [`set`], [`delete`].

use super::{
    budget::{Budget, TOO_DEEP},
    fault::{Fault, Out, ended, fail},
    number::{as_int, as_int_up},
    text::{described, preview},
    value::{MAX_DEPTH, Map, Nested, Val, lists},
};
use std::sync::Arc;

/// Largest index that a list may grow to; gojq's is 2^29, and then the memory is the limit.
const MAX_INDEX: i64 = 1 << 29;

fn not_a_list<T>(value: &Val) -> Result<T, Fault> {
    fail(format!("expected an array but got: {}", described(value)))
}

pub fn index(of: &Val, key: &Val) -> Out {
    match (key, of) {
        (
            Val::Text(_) | Val::Int(_) | Val::Big(_) | Val::Float(_) | Val::List(_) | Val::Map(_),
            Val::Null,
        ) => Ok(Val::Null),
        (Val::Text(key), Val::Map(map)) => Ok(map.items.get(key).cloned().unwrap_or(Val::Null)),
        (Val::Text(_), other) => fail(format!("expected an object but got: {}", described(other))),
        (Val::Int(_) | Val::Big(_) | Val::Float(_), Val::List(list)) => {
            let at = place(key, list.items.len());
            Ok(at
                .and_then(|at| list.items.get(at))
                .cloned()
                .unwrap_or(Val::Null))
        }
        (Val::Int(_) | Val::Big(_) | Val::Float(_), Val::Text(text)) => {
            let at = place(key, text.chars().count());
            Ok(at
                .and_then(|at| text.chars().nth(at))
                .map_or(Val::Null, |c| Val::text(c.to_string())))
        }
        (Val::List(part), Val::List(list)) => Ok(Val::list(
            indices(&list.items, &part.items).map(Val::count).collect(),
        )),
        (Val::Map(range), of) => {
            let (start, end) = bounds(&range.items)?;
            slice(of, start, end)
        }
        (Val::Int(_) | Val::Big(_) | Val::Float(_) | Val::List(_), other) => not_a_list(other),
        (key, Val::List(_)) => fail(format!(
            "expected a number for indexing an array but got: {}",
            described(key)
        )),
        (key, Val::Text(_)) => fail(format!(
            "expected a number for indexing a string but got: {}",
            described(key)
        )),
        (key, _) => fail(format!(
            "expected a string for object key but got: {}",
            described(key)
        )),
    }
}

/// The positions at which a part occurs in a list.
pub fn indices<'v>(
    list: &'v [Val],
    part: &'v [Val],
) -> impl DoubleEndedIterator<Item = usize> + 'v {
    let starts = if part.is_empty() || part.len() > list.len() {
        0
    } else {
        list.len() - part.len() + 1
    };
    (0..starts).filter(move |at| lists(&list[*at..at + part.len()], part).is_eq())
}

/// The index for a number in a list of this length; counted from the end if negative.
fn place(key: &Val, length: usize) -> Option<usize> {
    let at = as_int(key)?;
    let at = if at < 0 {
        at.saturating_add(length as i64)
    } else {
        at
    };
    usize::try_from(at).ok().filter(|at| *at < length)
}

fn bounds(range: &Map) -> Result<(&Val, &Val), Fault> {
    match (range.get("start"), range.get("end")) {
        (Some(start), Some(end)) => Ok((start, end)),
        _ => fail(format!(
            "expected \"start\" and \"end\" for slicing but got: {}",
            described(&Val::map(range.clone()))
        )),
    }
}

/// The range of a slice in a list of this length.
fn range(start: &Val, end: &Val, length: usize, what: &str) -> Result<(usize, usize), Fault> {
    let clamp = |at: i64, least: usize| {
        let at = if at < 0 {
            at.saturating_add(length as i64)
        } else {
            at
        };
        usize::try_from(at).unwrap_or(0).clamp(least, length)
    };
    let bad = |side: &Val| {
        fail(format!(
            "expected a number for indexing {what} but got: {}",
            described(side)
        ))
    };
    let start = match (start, as_int(start)) {
        (Val::Null, _) => 0,
        (_, Some(at)) => clamp(at, 0),
        (other, None) => return bad(other),
    };
    let end = match (end, as_int_up(end)) {
        (Val::Null, _) => length,
        (_, Some(at)) => clamp(at, start),
        (other, None) => return bad(other),
    };
    Ok((start, end))
}

pub fn slice(of: &Val, start: &Val, end: &Val) -> Out {
    match of {
        Val::Null => Ok(Val::Null),
        Val::List(list) => {
            let (start, end) = range(start, end, list.items.len(), "an array")?;
            Ok(Val::list(list.items[start..end].to_vec()))
        }
        Val::Text(text) => {
            let (start, end) = range(start, end, text.chars().count(), "a string")?;
            Ok(Val::text(
                text.chars()
                    .skip(start)
                    .take(end - start)
                    .collect::<String>(),
            ))
        }
        other => not_a_list(other),
    }
}

pub fn get(of: &Val, path: &Val) -> Out {
    let refused = || format!("getpath({}) cannot be applied to", preview(path));
    let Some(keys) = path.as_list() else {
        return fail(format!("{}: {}", refused(), described(of)));
    };
    let mut at = of.clone();
    for key in keys {
        at = match at {
            Val::Null | Val::List(_) | Val::Map(_) => match index(&at, key) {
                Err(Fault::Message(why)) => {
                    return fail(format!("{} {}: {why}", refused(), preview(of)));
                }
                other => other?,
            },
            _ => return fail(format!("{}: {}", refused(), described(of))),
        };
    }
    Ok(at)
}

/// The value with a new value at a path. Unshared parts are changed in place.
pub fn set(value: Val, path: &Val, new: Val, budget: &mut Budget) -> Out {
    let Some(keys) = path.as_list() else {
        return fail(format!(
            "setpath({}) cannot be applied to: {}",
            preview(path),
            described(&value)
        ));
    };
    let (shown, shown_new) = (preview(&value), preview(&new));
    match put(value, keys, new, budget) {
        Err(Fault::Message(why)) => fail(format!(
            "setpath({}; {shown_new}) cannot be applied to {shown}: {why}",
            preview(path)
        )),
        Err(other) => Err(other),
        Ok(value) => {
            budget.made_from(&value)?;
            Ok(value)
        }
    }
}

/// The value without the paths. All are marked first, because indices must not shift before all are
/// processed.
pub fn delete(value: Val, paths: &Val, budget: &mut Budget) -> Out {
    let Some(list) = paths.as_list() else {
        return fail(format!(
            "delpaths({}) cannot be applied to: {}",
            preview(paths),
            described(&value)
        ));
    };
    let refused = format!(
        "delpaths({}) cannot be applied to {}",
        preview(paths),
        preview(&value)
    );
    let mut value = value;
    for path in list {
        let Some(keys) = path.as_list() else {
            return fail(format!(
                "{refused}: expected an array but got: {}",
                described(path)
            ));
        };
        value = match put(value, keys, Val::Deleted, budget) {
            Err(Fault::Message(why)) => return fail(format!("{refused}: {why}")),
            other => other?,
        };
    }
    if list.is_empty() {
        return Ok(value);
    }
    budget.walk(&value)?;
    Ok(swept(value))
}

/// Sets the value at the keys. Deleting creates no missing containers.
fn put(value: Val, keys: &[Val], new: Val, budget: &mut Budget) -> Out {
    let Some((key, rest)) = keys.split_first() else {
        return Ok(new);
    };
    if keys.len() > MAX_DEPTH as usize {
        return ended(TOO_DEEP);
    }
    budget.steps(1)?;
    let deletes = matches!(new, Val::Deleted);
    match (key, value) {
        (_, Val::Deleted)
            if matches!(
                key,
                Val::Text(_) | Val::Int(_) | Val::Big(_) | Val::Float(_) | Val::Map(_)
            ) =>
        {
            Ok(Val::Deleted)
        }
        (Val::Text(_), Val::Null) if deletes => Ok(Val::Null),
        (Val::Text(key), Val::Null) => {
            put_field(<Nested<Map>>::empty_map(), key, rest, new, budget)
        }
        (Val::Text(key), Val::Map(map)) => put_field(map, key, rest, new, budget),
        (Val::Text(_), other) => fail(format!("expected an object but got: {}", described(&other))),
        (Val::Int(_) | Val::Big(_) | Val::Float(_), Val::Null) if deletes => Ok(Val::Null),
        (Val::Int(_) | Val::Big(_) | Val::Float(_), Val::Null) => {
            put_element(<Nested<Vec<Val>>>::empty_list(), key, rest, new, budget)
        }
        (Val::Int(_) | Val::Big(_) | Val::Float(_), Val::List(list)) => {
            put_element(list, key, rest, new, budget)
        }
        (Val::Map(range), Val::Null) => match put_slice(
            &<Nested<Vec<Val>>>::empty_list(),
            &range.items,
            rest,
            new,
            budget,
        )? {
            Val::List(list) if deletes && list.items.is_empty() => Ok(Val::Null),
            other => Ok(other),
        },
        (Val::Map(range), Val::List(list)) => put_slice(&list, &range.items, rest, new, budget),
        (Val::Int(_) | Val::Big(_) | Val::Float(_) | Val::Map(_), other) => not_a_list(&other),
        (key, Val::List(_)) => fail(format!(
            "expected a number for indexing an array but got: {}",
            described(key)
        )),
        (key, _) => fail(format!(
            "expected a string for object key but got: {}",
            described(key)
        )),
    }
}

/// The container to change, copied if it is shared.
fn own<T: Clone>(
    shared: &mut Arc<Nested<T>>,
    size: usize,
    budget: &mut Budget,
) -> Result<(), Fault> {
    if Arc::get_mut(shared).is_none() {
        budget.bytes(size)?;
    }
    Arc::make_mut(shared);
    Ok(())
}

fn put_field(
    mut map: Arc<Nested<Map>>,
    key: &Arc<str>,
    rest: &[Val],
    new: Val,
    budget: &mut Budget,
) -> Out {
    if matches!(new, Val::Deleted) && !map.items.contains_key(key) {
        return Ok(Val::Map(map));
    }
    let size = 64 + map.items.len() * 96;
    own(&mut map, size, budget)?;
    let inner = Arc::make_mut(&mut map);
    let before = inner.items.remove(key).unwrap_or(Val::Null);
    let weight = before.weight();
    let after = put(before, rest, new, budget)?;
    inner.replaced(weight, &after);
    inner.items.insert(key.clone(), after);
    Ok(Val::Map(map))
}

fn put_element(
    mut list: Arc<Nested<Vec<Val>>>,
    key: &Val,
    rest: &[Val],
    new: Val,
    budget: &mut Budget,
) -> Out {
    let length = list.items.len();
    let at = match place(key, length) {
        Some(at) => at,
        None if matches!(new, Val::Deleted) => return Ok(Val::List(list)),
        None => match as_int(key).unwrap_or(0) {
            at if at < 0 => return fail(format!("array index should not be negative: {at}")),
            at if at >= MAX_INDEX => return fail(format!("array index too large: {at}")),
            at => at as usize,
        },
    };
    own(&mut list, 64 + length * size_of::<Val>(), budget)?;
    let inner = Arc::make_mut(&mut list);
    if at >= length {
        budget.bytes((at + 1 - length) * size_of::<Val>() * 2)?;
        inner.items.resize(at + 1, Val::Null);
        inner.weight = inner.weight.saturating_add(16 * (at + 1 - length) as u64);
    }
    let before = std::mem::replace(&mut inner.items[at], Val::Null);
    let weight = before.weight();
    let after = put(before, rest, new, budget)?;
    inner.replaced(weight, &after);
    inner.items[at] = after;
    Ok(Val::List(list))
}

fn put_slice(
    list: &Arc<Nested<Vec<Val>>>,
    bound: &Map,
    rest: &[Val],
    new: Val,
    budget: &mut Budget,
) -> Out {
    let (start, end) = bounds(bound)?;
    let (start, end) = range(start, end, list.items.len(), "an array")?;
    if start == end && matches!(new, Val::Deleted) {
        return Ok(Val::List(list.clone()));
    }
    let part = Val::list(list.items[start..end].to_vec());
    budget.bytes(64 + list.items.len() * size_of::<Val>())?;
    let part = match put(part, rest, new, budget)? {
        Val::List(part) => part.items.clone(),
        Val::Deleted => vec![Val::Deleted; end - start],
        other => return not_a_list(&other),
    };
    Ok(Val::list(
        [&list.items[..start], &part, &list.items[end..]].concat(),
    ))
}

/// Removes the marked values.
fn swept(value: Val) -> Val {
    match value {
        Val::Deleted => Val::Null,
        Val::List(list) => {
            let items = Arc::unwrap_or_clone(list).items;
            Val::list(
                items
                    .into_iter()
                    .filter(|item| !matches!(item, Val::Deleted))
                    .map(swept)
                    .collect(),
            )
        }
        Val::Map(map) => {
            let items = Arc::unwrap_or_clone(map).items;
            Val::map(
                items
                    .into_iter()
                    .filter(|(_, item)| !matches!(item, Val::Deleted))
                    .map(|(key, item)| (key, swept(item)))
                    .collect(),
            )
        }
        other => other,
    }
}
