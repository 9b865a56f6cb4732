//! Functions of regular expressions with Go's syntax.
//!
//! Main value: [`TABLE`]. An expression is translated ([`syntax`]) and then matched in linear time,
//! as in Go; its size is limited. Recent ones are cached. Bytes that are not UTF-8 match nothing,
//! where Go treats each as U+FFFD.

pub(crate) mod syntax;

use super::args::{Out, string};
use super::words::width;
use crate::template::{
    Budget, Call, Error, Function, INT, List, STRINGS, Str, Type, Value, format,
};
use regex::bytes::{Captures, Regex, RegexBuilder};
use std::{cell::RefCell, collections::HashMap};

const TWO: &[Type] = &[Type::String, Type::String];
const THREE: &[Type] = &[Type::String, Type::String, Type::String];
const COUNTED: &[Type] = &[Type::String, Type::String, INT];

pub(super) const TABLE: &[(&str, Function)] = &[
    (
        "regexMatch",
        Function::new(TWO, |call| {
            Ok(Value::Bool(
                compiled(call, false)
                    .and_then(|r| matches(call, &r))
                    .unwrap_or(false),
            ))
        }),
    ),
    (
        "mustRegexMatch",
        Function::new(TWO, |call| {
            matches(call, &compiled(call, false)?).map(Value::Bool)
        }),
    ),
    ("regexFind", Function::new(TWO, |call| find(call, true))),
    (
        "mustRegexFind",
        Function::new(TWO, |call| find(call, false)),
    ),
    (
        "regexFindAll",
        Function::new(COUNTED, |call| find_all(call, true)),
    ),
    (
        "mustRegexFindAll",
        Function::new(COUNTED, |call| find_all(call, false)),
    ),
    (
        "regexReplaceAll",
        Function::new(THREE, |call| replace(call, true, false)),
    ),
    (
        "mustRegexReplaceAll",
        Function::new(THREE, |call| replace(call, false, false)),
    ),
    (
        "regexReplaceAllLiteral",
        Function::new(THREE, |call| replace(call, true, true)),
    ),
    (
        "mustRegexReplaceAllLiteral",
        Function::new(THREE, |call| replace(call, false, true)),
    ),
    (
        "regexSplit",
        Function::new(COUNTED, |call| split(call, true)),
    ),
    (
        "mustRegexSplit",
        Function::new(COUNTED, |call| split(call, false)),
    ),
    ("regexQuoteMeta", Function::new(&[Type::String], quote_meta)),
];

/// Largest compiled expression.
const SIZE: usize = 2 << 20;
/// Longest expression.
const LONGEST: usize = 64 << 10;
/// How many expressions are cached.
const KEPT: usize = 64;

thread_local! {
    static LAST: RefCell<HashMap<String, Regex>> = RefCell::default();
}

/// The expression in the first argument. `panics`: word the error like Go's `MustCompile`.
fn compiled(call: &Call<'_>, panics: bool) -> Result<Regex, Error> {
    let pattern = call.string(0)?;
    compile(pattern, call.budget()).map_err(|e| match e {
        e if panics && e.kind() != crate::template::ErrorKind::Limit => {
            let shown = match format::quote::can_backquote(pattern.as_bytes()) {
                true => format!("`{}`", pattern.to_str()),
                false => format::quote::quoted(&pattern.to_str()),
            };
            Error::function(format!("regexp: Compile({shown}): {e}"))
        }
        e => e,
    })
}

/// What is wrong with an expression.
pub(super) fn check(pattern: &str) -> Result<(), String> {
    if pattern.len() > LONGEST {
        return Err("error parsing regexp: expression too large".to_owned());
    }
    built(pattern).map(drop)
}

fn built(text: &str) -> Result<Regex, String> {
    let failed = |why: String| format!("error parsing regexp: {why}");
    let translated = syntax::translate(text).map_err(failed)?;
    let regex = RegexBuilder::new(&translated)
        .size_limit(SIZE)
        .dfa_size_limit(SIZE)
        .build();
    regex.map_err(|e| match e {
        regex::Error::CompiledTooBig(_) => failed(format!("expression too large: `{text}`")),
        other => failed(other.to_string()),
    })
}

fn compile(pattern: &Str, budget: &Budget) -> Result<Regex, Error> {
    let text = pattern.to_str();
    if let Some(known) = LAST.with_borrow(|last| last.get(&*text).cloned()) {
        return Ok(known);
    }
    if text.len() > LONGEST {
        return Err(Error::limit(format!(
            "a regular expression is longer than {LONGEST} bytes"
        )));
    }
    budget.steps(1000 + 20 * text.len() as u64)?;
    let regex = built(&text).map_err(Error::function)?;
    LAST.with_borrow_mut(|last| {
        if last.len() >= KEPT {
            last.clear();
        }
        last.insert(text.into_owned(), regex.clone());
    });
    Ok(regex)
}

/// Charges for a pass over a text.
fn charge(call: &Call<'_>) -> Result<(), Error> {
    call.budget().steps(16 + call.string(1)?.len() as u64 / 4)
}

fn matches(call: &Call<'_>, regex: &Regex) -> Result<bool, Error> {
    charge(call)?;
    Ok(regex.is_match(call.string(1)?.as_bytes()))
}

fn find(call: &Call<'_>, panics: bool) -> Out {
    let regex = compiled(call, panics)?;
    charge(call)?;
    let found = regex
        .find(call.string(1)?.as_bytes())
        .map_or(&b""[..], |m| m.as_bytes());
    string(call.budget(), found)
}

/// Iterates over the matches as Go does: no empty match directly after another match, and none
/// inside a character.
fn each_match(
    text: &[u8],
    regex: &Regex,
    budget: &Budget,
    mut each: impl FnMut(&Captures<'_>) -> bool,
) -> Result<(), Error> {
    let mut at = 0;
    let mut before = None;
    while at <= text.len() {
        budget.steps(4)?;
        let Some(found) = regex.captures_at(text, at) else {
            break;
        };
        let Some(whole) = found.get(0) else { break };
        let inside = whole.is_empty()
            && text.get(whole.start()).is_some_and(|b| b & 0xc0 == 0x80)
            && within(text, whole.start());
        if inside {
            at = whole.start() + 1;
            continue;
        }
        let accepted = !(whole.is_empty() && before == Some(whole.start()));
        before = Some(whole.end());
        at = if whole.end() > at {
            whole.end()
        } else {
            at + width(&text[at..]).max(1)
        };
        if accepted && !each(&found) {
            break;
        }
    }
    Ok(())
}

/// Whether a position is inside a character.
fn within(text: &[u8], at: usize) -> bool {
    (1..=3.min(at)).any(|back| width(&text[at - back..]) > back)
}

fn spans(call: &Call<'_>, regex: &Regex, most: usize) -> Result<Vec<(usize, usize)>, Error> {
    charge(call)?;
    let mut found = Vec::new();
    each_match(
        call.string(1)?.as_bytes(),
        regex,
        call.budget(),
        |captures| {
            found.extend(captures.get(0).map(|m| (m.start(), m.end())));
            found.len() < most
        },
    )?;
    call.budget()
        .memory(found.len().saturating_mul(size_of::<Value>() * 2))?;
    Ok(found)
}

fn find_all(call: &Call<'_>, panics: bool) -> Out {
    let regex = compiled(call, panics)?;
    let most = usize::try_from(call.integer(2)?).unwrap_or(usize::MAX);
    let found = if most == 0 {
        Vec::new()
    } else {
        spans(call, &regex, most)?
    };
    if found.is_empty() {
        return Ok(Value::List(List::nil(STRINGS)));
    }
    let text = call.string(1)?.as_bytes();
    Ok(Value::strings(
        found.iter().map(|(from, to)| &text[*from..*to]),
    ))
}

fn split(call: &Call<'_>, panics: bool) -> Out {
    let regex = compiled(call, panics)?;
    let count = call.integer(2)?;
    let text = call.string(1)?.as_bytes();
    if count == 0 {
        return Ok(Value::List(List::nil(STRINGS)));
    }
    if text.is_empty() && !call.string(0)?.is_empty() {
        return Ok(Value::strings([""]));
    }
    let most = usize::try_from(count).unwrap_or(usize::MAX);
    let mut parts = Vec::new();
    let (mut from, mut end) = (0, 0);
    for (start, stop) in spans(call, &regex, most)? {
        if parts.len() + 1 >= most {
            break;
        }
        end = start;
        if stop != 0 {
            parts.push(&text[from..start]);
        }
        from = stop;
    }
    if end != text.len() {
        parts.push(&text[from..]);
    }
    Ok(Value::strings(parts))
}

fn replace(call: &Call<'_>, panics: bool, literal: bool) -> Out {
    let regex = compiled(call, panics)?;
    charge(call)?;
    let (text, with) = (call.string(1)?.as_bytes(), call.string(2)?.as_bytes());
    let mut out = Vec::new();
    let mut done = 0;
    let mut charged = Ok(());
    each_match(text, &regex, call.budget(), |captures| {
        let Some(whole) = captures.get(0) else {
            return false;
        };
        let before = out.len();
        out.extend_from_slice(&text[done..whole.start()]);
        if literal {
            out.extend_from_slice(with);
        } else {
            expand(with, captures, &mut out);
        }
        done = whole.end();
        charged = call.budget().memory(out.len() - before);
        charged.is_ok()
    })?;
    charged?;
    out.extend_from_slice(&text[done..]);
    string(call.budget(), out)
}

/// Replaces `$1`, `$name` and `${name}` by the text of the groups, and `$$` by `$`.
fn expand(template: &[u8], captures: &Captures<'_>, out: &mut Vec<u8>) {
    let mut rest = template;
    while let Some(at) = rest.iter().position(|b| *b == b'$') {
        out.extend_from_slice(&rest[..at]);
        rest = &rest[at..];
        if rest.starts_with(b"$$") {
            out.push(b'$');
            rest = &rest[2..];
            continue;
        }
        let Some((name, after)) = group_name(rest) else {
            out.push(b'$');
            rest = &rest[1..];
            continue;
        };
        let group = match name.parse::<usize>() {
            Ok(number) if !(name.len() > 1 && name.starts_with('0')) => captures.get(number),
            _ => captures.name(&name),
        };
        out.extend_from_slice(group.map_or(b"", |m| m.as_bytes()));
        rest = after;
    }
    out.extend_from_slice(rest);
}

/// The name after a `$`, with or without braces, and the rest.
fn group_name(text: &[u8]) -> Option<(String, &[u8])> {
    let (braced, body) = match text[1..].strip_prefix(b"{") {
        Some(body) => (true, body),
        None => (false, &text[1..]),
    };
    let valid = body.utf8_chunks().next().map_or("", |chunk| chunk.valid());
    let len = valid
        .find(|c: char| c != '_' && !super::words::is_letter(c) && !super::words::is_digit(c))
        .unwrap_or(valid.len());
    let after = &body[len..];
    match (len, braced) {
        (0, _) => None,
        (_, false) => Some((valid[..len].to_owned(), after)),
        (_, true) => Some((valid[..len].to_owned(), after.strip_prefix(b"}")?)),
    }
}

fn quote_meta(call: &mut Call<'_>) -> Out {
    let mut out = Vec::new();
    for b in call.string(0)?.as_bytes() {
        if br"\.+*?()|[]{}^$".contains(b) {
            out.push(b'\\');
        }
        out.push(*b);
    }
    string(call.budget(), out)
}
