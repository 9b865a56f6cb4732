//! Functions of lists: sorting, grouping, searching, flattening.
//!
//! Main value: [`TABLE`].

use super::{Native, fails_on, refuses, refuses_with};
use crate::jq::{
    budget::Budget,
    fault::{Fault, Out, fail},
    number,
    paths::indices,
    text::preview,
    value::{Val, order, sort_order},
};
use std::cmp::Ordering;

pub const TABLE: &[Native] = &[
    Native::flat("add", 0, |budget, v, _| match v.values() {
        Some(values) => sum(budget, values),
        None => refuses("add", v),
    }),
    Native::flat("reverse", 0, |_, v, _| match v {
        Val::List(list) => Ok(Val::list(list.items.iter().rev().cloned().collect())),
        v => refuses("reverse", v),
    }),
    Native::flat("flatten", 0, |budget, v, _| {
        flatten(budget, v, &Val::Int(-1), true)
    }),
    Native::flat("flatten", 1, |budget, v, a| {
        flatten(budget, v, &a[0], false)
    }),
    Native::deep("min", 0, |_, v, _| extreme("min", v, v, Ordering::Greater)),
    Native::deep("max", 0, |_, v, _| extreme("max", v, v, Ordering::Less)),
    Native::deep("_min_by", 1, |_, v, a| {
        extreme("min_by", v, &a[0], Ordering::Greater)
    }),
    Native::deep("_max_by", 1, |_, v, a| {
        extreme("max_by", v, &a[0], Ordering::Less)
    }),
    Native::deep("sort", 0, |budget, v, _| {
        sorted(budget, "sort", v, v).map(values)
    }),
    Native::deep("_sort_by", 1, |budget, v, a| {
        sorted(budget, "sort_by", v, &a[0]).map(values)
    }),
    Native::deep("unique", 0, |budget, v, _| {
        sorted(budget, "unique", v, v).map(unique)
    }),
    Native::deep("_unique_by", 1, |budget, v, a| {
        sorted(budget, "unique_by", v, &a[0]).map(unique)
    }),
    Native::deep("_group_by", 1, |budget, v, a| {
        sorted(budget, "group_by", v, &a[0]).map(grouped)
    }),
    Native::deep("indices", 1, |budget, v, a| {
        search("indices", budget, v, &a[0], |list, part| {
            Val::list(indices(list, part).map(Val::count).collect())
        })
    }),
    Native::deep("index", 1, |budget, v, a| {
        search("index", budget, v, &a[0], |list, part| {
            indices(list, part).next().map_or(Val::Null, Val::count)
        })
    }),
    Native::deep("rindex", 1, |budget, v, a| {
        search("rindex", budget, v, &a[0], |list, part| {
            indices(list, part)
                .next_back()
                .map_or(Val::Null, Val::count)
        })
    }),
    Native::flat("transpose", 0, |budget, v, _| transpose(budget, v)),
    Native::deep("bsearch", 1, |_, v, a| match v {
        Val::List(list) => {
            let at = list
                .items
                .partition_point(|item| order(item, &a[0]).is_lt());
            let found = list
                .items
                .get(at)
                .is_some_and(|item| order(item, &a[0]).is_eq());
            Ok(Val::Int(if found { at as i64 } else { -(at as i64) - 1 }))
        }
        v => refuses_with("bsearch", v, &a[0]),
    }),
];

/// The sum of all values. Texts and lists are concatenated in one go.
pub fn sum(budget: &mut Budget, values: Vec<Val>) -> Out {
    let mut texts = String::new();
    let mut all_text = !values.is_empty();
    for value in values.iter().filter(|v| !matches!(v, Val::Null)) {
        match value {
            Val::Text(text) => {
                budget.bytes(text.len())?;
                texts.push_str(text);
            }
            _ => all_text = false,
        }
    }
    if all_text && values.iter().any(|v| !matches!(v, Val::Null)) {
        return Ok(Val::text(texts));
    }
    if values.iter().all(|v| matches!(v, Val::List(_) | Val::Null)) {
        let lists: Vec<&[Val]> = values.iter().filter_map(Val::as_list).collect();
        return Ok(if lists.is_empty() {
            Val::Null
        } else {
            Val::list(lists.concat())
        });
    }
    let mut total = Val::Null;
    for value in &values {
        total = number::add(&total, value)?;
        budget.bytes(total.size())?;
    }
    Ok(total)
}

fn flatten(budget: &mut Budget, value: &Val, depth: &Val, all: bool) -> Out {
    let Some(values) = value.values() else {
        return refuses("flatten", value);
    };
    let Some(levels) = number::as_float(depth) else {
        return refuses("flatten", depth);
    };
    if !all && (levels < 0.0 || levels.is_nan()) {
        return fail(format!(
            "flatten depth should not be negative: {}",
            preview(&Val::Float(levels))
        ));
    }
    let mut flat = Vec::new();
    flatten_into(budget, &values, levels, &mut flat)?;
    Ok(Val::list(flat))
}

fn flatten_into(
    budget: &mut Budget,
    values: &[Val],
    levels: f64,
    flat: &mut Vec<Val>,
) -> Result<(), Fault> {
    budget.steps(1)?;
    for value in values {
        match value {
            Val::List(list) if levels != 0.0 => {
                flatten_into(budget, &list.items, levels - 1.0, flat)?
            }
            other => {
                budget.bytes(size_of::<Val>())?;
                flat.push(other.clone());
            }
        }
    }
    Ok(())
}

/// Values with their keys.
fn keyed<'v>(name: &str, value: &'v Val, keys: &'v Val) -> Result<(&'v [Val], &'v [Val]), Fault> {
    let by = name.ends_with("_by");
    let wrong = || {
        if by {
            refuses_with(name, value, keys)
        } else {
            refuses(name, value)
        }
    };
    match (value.as_list(), keys.as_list()) {
        (Some(values), Some(keys)) if values.len() == keys.len() => Ok((values, keys)),
        (Some(_), Some(_)) => fails_on(
            &format!("{name}({})", preview(keys)),
            value,
            "length mismatch",
        )
        .map(|_| (&[][..], &[][..])),
        _ => wrong().map(|_| (&[][..], &[][..])),
    }
}

fn extreme(name: &str, value: &Val, keys: &Val, better: Ordering) -> Out {
    let (values, keys) = keyed(name, value, keys)?;
    let mut best = 0;
    for at in 1..keys.len() {
        // Of equal values the last counts as the largest, the first as the smallest.
        let is_better =
            (order(&keys[best], &keys[at]) == Ordering::Greater) == (better == Ordering::Greater);
        if is_better {
            best = at;
        }
    }
    Ok(values.get(best).cloned().unwrap_or(Val::Null))
}

fn sorted(
    budget: &mut Budget,
    name: &str,
    value: &Val,
    keys: &Val,
) -> Result<Vec<(Val, Val)>, Fault> {
    let (values, keys) = keyed(name, value, keys)?;
    budget.bytes(values.len() * 2 * size_of::<Val>())?;
    budget.steps(keys.iter().map(|key| 1 + key.weight() / 16).sum::<u64>())?;
    let mut pairs: Vec<(Val, Val)> = keys.iter().cloned().zip(values.iter().cloned()).collect();
    pairs.sort_by(|a, b| sort_order(&a.0, &b.0));
    Ok(pairs)
}

fn values(pairs: Vec<(Val, Val)>) -> Val {
    Val::list(pairs.into_iter().map(|(_, value)| value).collect())
}

fn unique(mut pairs: Vec<(Val, Val)>) -> Val {
    pairs.dedup_by(|a, b| order(&b.0, &a.0).is_eq());
    values(pairs)
}

fn grouped(pairs: Vec<(Val, Val)>) -> Val {
    let groups = pairs.chunk_by(|a, b| order(&a.0, &b.0).is_eq());
    Val::list(
        groups
            .map(|group| Val::list(group.iter().map(|(_, value)| value.clone()).collect()))
            .collect(),
    )
}

fn search(
    name: &str,
    budget: &mut Budget,
    value: &Val,
    part: &Val,
    find: fn(&[Val], &[Val]) -> Val,
) -> Out {
    let letters = |text: &str| {
        text.chars()
            .map(|c| Val::Int(i64::from(u32::from(c))))
            .collect::<Vec<_>>()
    };
    let mut charge = |list: &[Val], part: &[Val]| {
        budget.bytes((list.len() + part.len()) * size_of::<Val>())?;
        budget.steps((list.len() as u64).saturating_mul(1 + part.len() as u64 / 16) / 8)
    };
    match (value, part) {
        (Val::Null, _) => Ok(Val::Null),
        (Val::List(list), Val::List(part)) => {
            charge(&list.items, &part.items)?;
            budget.steps(
                (list.items.len() as u64).saturating_mul(value.weight().min(part.weight)) / 512,
            )?;
            Ok(find(&list.items, &part.items))
        }
        (Val::List(list), part) => {
            charge(&list.items, &[])?;
            Ok(find(&list.items, std::slice::from_ref(part)))
        }
        (Val::Text(text), Val::Text(part)) => {
            let (text, part) = (letters(text), letters(part));
            charge(&text, &part)?;
            Ok(find(&text, &part))
        }
        _ => refuses_with(name, value, part),
    }
}

fn transpose(budget: &mut Budget, value: &Val) -> Out {
    let rows: Option<Vec<&[Val]>> = value
        .as_list()
        .and_then(|rows| rows.iter().map(Val::as_list).collect());
    let Some(rows) = rows else {
        return refuses("transpose", value);
    };
    let width = rows.iter().map(|row| row.len()).max().unwrap_or(0);
    budget.bytes(
        width
            .saturating_mul(rows.len())
            .saturating_mul(size_of::<Val>()),
    )?;
    let column = |at: usize| {
        Val::list(
            rows.iter()
                .map(|row| row.get(at).cloned().unwrap_or(Val::Null))
                .collect(),
        )
    };
    Ok(Val::list((0..width).map(column).collect()))
}
