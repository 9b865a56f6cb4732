//! Regular expressions, the basis of `test`, `match` and similar functions.
//!
//! Main value: [`TABLE`]. Expressions have Go's syntax; they are translated, matched in linear
//! time, and limited in size.

use super::Native;
use crate::{
    jq::{
        budget::Budget,
        fault::{Fault, Out, fail},
        text::{described, preview, to_json},
        value::{Map, Val},
    },
    sprig::regexp::syntax,
};
use regex::{Captures, Regex, RegexBuilder};
use std::{cell::RefCell, collections::HashMap};

/// Largest compiled expression.
const SIZE: usize = 1 << 18;
/// Longest expression.
const LONGEST: usize = 16 << 10;
/// How many expressions are cached.
const KEPT: usize = 32;

thread_local! {
    static LAST: RefCell<HashMap<String, Regex>> = RefCell::default();
}

pub const TABLE: &[Native] = &[
    Native::flat("_match", 3, |budget, v, a| {
        found(budget, v, &a[0], &a[1], a[2].is_true())
    }),
    Native::flat("_captures", 0, |_, v, _| match v {
        Val::List(captures) => {
            let named = captures
                .items
                .iter()
                .filter_map(Val::as_map)
                .filter_map(|capture| match capture.get("name") {
                    Some(Val::Text(name)) => Some((
                        name.clone(),
                        capture.get("string").cloned().unwrap_or(Val::Null),
                    )),
                    _ => None,
                });
            Ok(Val::map(named.collect()))
        }
        v => fail(format!("expected an array but got: {}", described(v))),
    }),
];

fn compile(pattern: &str, flags: &str, budget: &mut Budget) -> Result<Regex, Fault> {
    if flags.contains(|flag| !matches!(flag, 'g' | 'i' | 'm')) {
        return fail(format!(
            "unsupported regular expression flag: {}",
            to_json(&Val::text(flags))
        ));
    }
    let ignoring_case = if flags.contains('i') { "(?i)" } else { "" };
    let across_lines = if flags.contains('m') { "(?s)" } else { "" };
    let pattern = [across_lines, ignoring_case, pattern].concat();
    if let Some(known) = LAST.with_borrow(|last| last.get(&pattern).cloned()) {
        return Ok(known);
    }
    let invalid = |why: &str| {
        fail(format!(
            "invalid regular expression {}: {why}",
            to_json(&Val::text(pattern.as_str()))
        ))
    };
    if pattern.len() > LONGEST {
        return fail(format!("a regular expression may have {LONGEST} bytes"));
    }
    budget.steps(1000 + 20 * pattern.len() as u64)?;
    let translated = match syntax::translate(&pattern) {
        Ok(translated) => translated,
        Err(why) => return invalid(&format!("error parsing regexp: {why}")),
    };
    let regex = match RegexBuilder::new(&translated)
        .size_limit(SIZE)
        .dfa_size_limit(SIZE)
        .build()
    {
        Ok(regex) => regex,
        Err(regex::Error::CompiledTooBig(_)) => return invalid("it is too large"),
        Err(why) => return invalid(&why.to_string()),
    };
    LAST.with_borrow_mut(|last| {
        if last.len() >= KEPT {
            last.clear();
        }
        last.insert(pattern, regex.clone());
    });
    Ok(regex)
}

fn found(budget: &mut Budget, value: &Val, pattern: &Val, flags: &Val, test: bool) -> Out {
    let flag_text = if let Val::Null = flags {
        Some("")
    } else {
        flags.as_text()
    };
    let (Some(text), Some(expression), Some(flag_text)) =
        (value.as_text(), pattern.as_text(), flag_text)
    else {
        let name = if test { "test" } else { "match" };
        return fail(format!(
            "{name}({}; {}) cannot be applied to: {}",
            preview(pattern),
            preview(flags),
            described(value)
        ));
    };
    let regex = compile(expression, flag_text, budget)?;
    budget.steps(text.len() as u64 * (4 + expression.len() as u64) / 16)?;
    if test {
        return Ok(regex.is_match(text).into());
    }
    let most = if flag_text.contains('g') {
        usize::MAX
    } else {
        1
    };
    let mut counted = (0, 0);
    let mut all = Vec::new();
    for captures in regex.captures_iter(text).take(most) {
        let Some(whole) = captures.get(0) else { break };
        budget.bytes(600 * captures.len() + whole.len() * 2)?;
        counted = (
            whole.start(),
            counted.1 + text[counted.0..whole.start()].chars().count(),
        );
        all.push(described_match(text, &regex, &captures, counted));
    }
    Ok(Val::list(all))
}

/// A match as an object. Positions are counted in characters, relative to where matching starts.
fn described_match(
    text: &str,
    regex: &Regex,
    captures: &Captures<'_>,
    start: (usize, usize),
) -> Val {
    let place = |group: usize| {
        let found = captures.get(group);
        let offset = found.map_or(Val::Int(-1), |m| {
            Val::count(start.1 + text[start.0..m.start()].chars().count())
        });
        let length = Val::count(found.map_or(0, |m| m.as_str().chars().count()));
        let string = found.map_or(Val::Null, |m| Val::text(m.as_str()));
        [("offset", offset), ("length", length), ("string", string)]
    };
    let names = regex.capture_names().enumerate().skip(1);
    let groups = names.map(|(group, name)| {
        let mut fields: Map = place(group)
            .into_iter()
            .map(|(key, value)| (key.into(), value))
            .collect();
        fields.insert("name".into(), name.map_or(Val::Null, Val::text));
        Val::map(fields)
    });
    let mut fields: Map = [("captures".into(), Val::list(groups.collect()))].into();
    fields.extend(place(0).map(|(key, value)| (key.into(), value)));
    Val::map(fields)
}
