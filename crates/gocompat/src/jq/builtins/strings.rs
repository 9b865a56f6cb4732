//! Functions of texts.
//!
//! Main value: [`TABLE`].

use super::{Native, lists::sum, refuses, refuses_with};
use crate::jq::{
    budget::Budget,
    fault::Out,
    number::{self, as_int},
    text::to_json,
    value::Val,
};

pub const TABLE: &[Native] = &[
    Native::flat("startswith", 1, |_, v, a| {
        with("startswith", v, &a[0], |text, part| {
            text.starts_with(part).into()
        })
    }),
    Native::flat("endswith", 1, |_, v, a| {
        with("endswith", v, &a[0], |text, part| {
            text.ends_with(part).into()
        })
    }),
    Native::flat("ltrimstr", 1, |_, v, a| {
        with("ltrimstr", v, &a[0], |text, part| {
            Val::text(text.strip_prefix(part).unwrap_or(text))
        })
    }),
    Native::flat("rtrimstr", 1, |_, v, a| {
        with("rtrimstr", v, &a[0], |text, part| {
            Val::text(text.strip_suffix(part).unwrap_or(text))
        })
    }),
    Native::flat("trimstr", 1, |_, v, a| {
        with("trimstr", v, &a[0], |text, part| {
            let text = text.strip_prefix(part).unwrap_or(text);
            Val::text(text.strip_suffix(part).unwrap_or(text))
        })
    }),
    Native::flat("ltrim", 0, |_, v, _| {
        of("ltrim", v, |text| {
            Val::text(text.trim_start_matches(char::is_whitespace))
        })
    }),
    Native::flat("rtrim", 0, |_, v, _| {
        of("rtrim", v, |text| {
            Val::text(text.trim_end_matches(char::is_whitespace))
        })
    }),
    Native::flat("trim", 0, |_, v, _| {
        of("trim", v, |text| Val::text(text.trim()))
    }),
    Native::flat("ascii_downcase", 0, |_, v, _| {
        of("ascii_downcase", v, |text| {
            Val::text(text.to_ascii_lowercase())
        })
    }),
    Native::flat("ascii_upcase", 0, |_, v, _| {
        of("ascii_upcase", v, |text| {
            Val::text(text.to_ascii_uppercase())
        })
    }),
    Native::deep("explode", 0, |budget, v, _| {
        budget.bytes(v.size())?;
        of("explode", v, |text| {
            Val::list(
                text.chars()
                    .map(|c| Val::Int(i64::from(u32::from(c))))
                    .collect(),
            )
        })
    }),
    Native::deep("implode", 0, |_, v, _| implode(v)),
    Native::deep("split", 1, |budget, v, a| match (v, &a[0]) {
        (Val::Text(text), Val::Text(separator)) => {
            // Each part becomes a separate text.
            budget.bytes(number::parts(text, separator).saturating_mul(48))?;
            Ok(number::split(text, separator))
        }
        (Val::Text(_), other) | (other, _) => refuses("split", other),
    }),
    Native::deep("join", 1, |budget, v, a| join(budget, v, &a[0])),
];

fn of(name: &str, value: &Val, result: impl FnOnce(&str) -> Val) -> Out {
    match value {
        Val::Text(text) => Ok(result(text)),
        other => refuses(name, other),
    }
}

fn with(name: &str, value: &Val, part: &Val, result: impl FnOnce(&str, &str) -> Val) -> Out {
    match (value, part) {
        (Val::Text(text), Val::Text(part)) => Ok(result(text, part)),
        _ => refuses_with(name, value, part),
    }
}

fn implode(value: &Val) -> Out {
    let points = value
        .as_list()
        .and_then(|list| list.iter().map(as_int).collect::<Option<Vec<i64>>>());
    let letter = |point: i64| {
        u32::try_from(point)
            .ok()
            .and_then(char::from_u32)
            .unwrap_or(char::REPLACEMENT_CHARACTER)
    };
    match points {
        Some(points) => Ok(Val::text(
            points.into_iter().map(letter).collect::<String>(),
        )),
        None => refuses("implode", value),
    }
}

/// Numbers and booleans are joined as JSON; nulls as empty texts.
fn join(budget: &mut Budget, value: &Val, separator: &Val) -> Out {
    let Some(values) = value.values() else {
        return refuses_with("join", value, separator);
    };
    if values.is_empty() {
        return Ok(Val::text(""));
    }
    budget.bytes(values.len() * 2 * size_of::<Val>())?;
    let mut parts = Vec::with_capacity(values.len() * 2);
    for value in values {
        parts.push(if parts.is_empty() {
            Val::text("")
        } else {
            separator.clone()
        });
        parts.push(match value {
            Val::Bool(_) | Val::Int(_) | Val::Big(_) | Val::Float(_) => Val::text(to_json(&value)),
            other => other,
        });
    }
    sum(budget, parts)
}
