//! The `string` functions whose cost is not proportional to the size of their arguments: patterns,
//! slices, repetition.

use crate::{
    Limit,
    call::{Answer, Args, Fault},
    pattern::{Capture, Found, Pattern, PatternError},
};
use mlua::Value;
use std::ops::Range;

/// Maximum number of values that `string.byte` returns at once, below the virtual machine's own
/// limit for results.
const BYTES: usize = 4000;

/// Converts Lua's indexes, which start at 1 or count from the end, to offsets.
fn slice(from: i64, to: i64, length: usize) -> Range<usize> {
    let length = i64::try_from(length).unwrap_or(i64::MAX);
    let absolute = |i: i64| {
        if i < 0 {
            length.saturating_add(i).saturating_add(1)
        } else {
            i
        }
    };
    let (from, to) = (absolute(from).max(1) - 1, absolute(to).min(length));
    let (from, to) = (
        usize::try_from(from).unwrap_or(0),
        usize::try_from(to).unwrap_or(0),
    );
    from..to.max(from)
}

pub fn sub(args: &Args<'_>) -> Result<Answer, Fault> {
    let text = args.bytes(1)?;
    let range = slice(args.number(2)? as i64, args.integer_or(3, -1)?, text.len());
    args.text(text.get(range).unwrap_or_default())
}

pub fn byte(args: &Args<'_>) -> Result<Answer, Fault> {
    let text = args.bytes(1)?;
    let from = args.integer_or(2, 1)?;
    let bytes = text
        .get(slice(from, args.integer_or(3, from)?, text.len()))
        .unwrap_or_default();
    if bytes.len() > BYTES {
        return Err(Fault::text("string slice too long".into()));
    }
    Ok(bytes.iter().map(|b| Value::Number(f64::from(*b))).collect())
}

pub fn char(args: &Args<'_>) -> Result<Answer, Fault> {
    let bytes: Result<Vec<u8>, Fault> = (1..=args.len())
        .map(|n| args.number(n).map(|code| code as i64 as u8))
        .collect();
    args.text(&bytes?)
}

pub fn rep(args: &Args<'_>) -> Result<Answer, Fault> {
    let text = args.bytes(1)?;
    let times = usize::try_from(args.number(2)? as i64).unwrap_or(0);
    let length = text
        .len()
        .checked_mul(times)
        .filter(|l| *l <= args.meter.memory())
        .ok_or_else(|| args.meter.reach(Limit::Memory))?;
    args.charge(length as u64 / 16)?;
    args.text(&if length == 0 {
        Vec::new()
    } else {
        text.repeat(times)
    })
}

pub fn upper(args: &Args<'_>) -> Result<Answer, Fault> {
    let text = args.bytes(1)?;
    args.text(&match std::str::from_utf8(&text) {
        Ok(text) => letters(text, |c| single(c.to_uppercase())),
        Err(_) => text.to_ascii_uppercase(),
    })
}

pub fn lower(args: &Args<'_>) -> Result<Answer, Fault> {
    let text = args.bytes(1)?;
    args.text(&match std::str::from_utf8(&text) {
        Ok(text) => letters(text, |c| single(c.to_lowercase())),
        Err(_) => text.to_ascii_lowercase(),
    })
}

fn letters(text: &str, other_case: impl Fn(char) -> Option<char>) -> Vec<u8> {
    let changed: String = text.chars().map(|c| other_case(c).unwrap_or(c)).collect();
    changed.into_bytes()
}

/// Go changes a letter to one letter, or not at all.
fn single(mut letters: impl Iterator<Item = char>) -> Option<char> {
    letters.next().filter(|_| letters.next().is_none())
}

pub fn find(args: &Args<'_>) -> Result<Answer, Fault> {
    let (text, pattern) = (args.bytes(1)?, args.bytes(2)?);
    let Some(from) = start(args, 3, text.len())? else {
        return Ok(vec![Value::Nil]);
    };
    let plain = !matches!(args.get(4), Value::Nil | Value::Boolean(false));
    let found = if plain {
        plain_find(args, &text[from..], &pattern)?.map(|at| Found {
            range: from + at..from + at + pattern.len(),
            captures: Vec::new(),
        })
    } else {
        search(args, &text, &pattern, from)?
    };
    let Some(found) = found else {
        return Ok(vec![Value::Nil]);
    };
    let mut answer = vec![number(found.range.start + 1), number(found.range.end)];
    answer.extend(captures(args, &text, &found, false)?);
    Ok(answer)
}

fn plain_find(args: &Args<'_>, text: &[u8], pattern: &[u8]) -> Result<Option<usize>, Fault> {
    if pattern.is_empty() {
        return Ok(Some(0));
    }
    for (at, window) in text.windows(pattern.len()).enumerate() {
        args.charge(1)?;
        if window[0] == pattern[0] {
            args.charge(pattern.len() as u64 / 16)?;
            if window == pattern {
                return Ok(Some(at));
            }
        }
    }
    Ok(None)
}

pub fn first_match(args: &Args<'_>) -> Result<Answer, Fault> {
    let (text, pattern) = (args.bytes(1)?, args.bytes(2)?);
    let Some(from) = start(args, 3, text.len())? else {
        return Ok(vec![Value::Nil]);
    };
    match search(args, &text, &pattern, from)? {
        Some(found) => captures(args, &text, &found, true),
        None => Ok(vec![Value::Nil]),
    }
}

/// For the prelude: returns start, end, and the captures or the whole match. An anchored pattern
/// matches only at the start of the text.
pub fn match_at(args: &Args<'_>) -> Result<Answer, Fault> {
    let (text, pattern) = (args.bytes(1)?, args.bytes(2)?);
    let Some(from) = start(args, 3, text.len())? else {
        return Ok(vec![Value::Nil]);
    };
    if from > 0 && pattern.first() == Some(&b'^') {
        return Ok(vec![Value::Nil]);
    }
    let Some(found) = search(args, &text, &pattern, from)? else {
        return Ok(vec![Value::Nil]);
    };
    let mut answer = vec![number(found.range.start + 1), number(found.range.end)];
    answer.extend(captures(args, &text, &found, true)?);
    Ok(answer)
}

/// `gsub` with a replacement string.
pub fn gsub(args: &Args<'_>) -> Result<Answer, Fault> {
    let (text, pattern, replacement) = (args.bytes(1)?, args.bytes(2)?, args.bytes(3)?);
    let limit = args.integer_or(4, i64::MAX)?;
    let pattern = Pattern::parse(&pattern).map_err(|e| Fault::text(e.to_string()))?;
    let (mut out, mut at, mut count) = (Vec::new(), 0, 0);
    while count < limit {
        let Some(found) = next(args, &pattern, &text, at)? else {
            break;
        };
        out.extend_from_slice(&text[at..found.range.start]);
        expand(args, &text, &found, &replacement, &mut out)?;
        count += 1;
        at = found.range.end;
        if found.range.is_empty() {
            let Some(byte) = text.get(at) else { break };
            out.push(*byte);
            at += 1;
        }
        if pattern.is_anchored() {
            break;
        }
    }
    out.extend_from_slice(text.get(at..).unwrap_or_default());
    let mut answer = args.text(&out)?;
    answer.push(Value::Number(count as f64));
    Ok(answer)
}

/// The replacement with `%0` to `%9` filled in; `%` before anything else is kept, as in Argo CD.
fn expand(
    args: &Args<'_>,
    text: &[u8],
    found: &Found,
    replacement: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), Fault> {
    let before = out.len();
    let mut rest = replacement.iter();
    while let Some(byte) = rest.next() {
        match (byte, if *byte == b'%' { rest.next() } else { None }) {
            (b'%', Some(b'0')) => out.extend_from_slice(&text[found.range.clone()]),
            (b'%', Some(digit @ b'1'..=b'9')) => {
                match found.captures.get(usize::from(digit - b'1')) {
                    Some(Capture::Text(range)) => out.extend_from_slice(&text[range.clone()]),
                    Some(Capture::Position(at)) => {
                        out.extend_from_slice((at + 1).to_string().as_bytes())
                    }
                    None if *digit == b'1' => out.extend_from_slice(&text[found.range.clone()]),
                    None => return Err(Fault::text("invalid capture index".into())),
                }
            }
            (b'%', Some(b'%')) => out.push(b'%'),
            (b'%', Some(other)) => out.extend_from_slice(&[b'%', *other]),
            (other, _) => out.push(*other),
        }
    }
    args.charge(1 + (out.len() - before) as u64 / 16)?;
    if out.len() > args.meter.memory() {
        Err(args.meter.reach(Limit::Memory).into())
    } else {
        Ok(())
    }
}

/// The start offset, or `None` if it is beyond the end.
fn start(args: &Args<'_>, n: usize, length: usize) -> Result<Option<usize>, Fault> {
    let from = slice(args.integer_or(n, 1)?, -1, length).start;
    Ok((from <= length).then_some(from))
}

fn search(
    args: &Args<'_>,
    text: &[u8],
    pattern: &[u8],
    from: usize,
) -> Result<Option<Found>, Fault> {
    let pattern = Pattern::parse(pattern).map_err(|e| Fault::text(e.to_string()))?;
    next(args, &pattern, text, from)
}

fn next(
    args: &Args<'_>,
    pattern: &Pattern,
    text: &[u8],
    from: usize,
) -> Result<Option<Found>, Fault> {
    pattern
        .find(text, from, &mut || args.meter.charge(1).is_ok())
        .map_err(|error| match (error, args.meter.reached()) {
            (PatternError::Stopped, Some(limit)) => limit.into(),
            (error, _) => Fault::text(error.to_string()),
        })
}

fn captures(args: &Args<'_>, text: &[u8], found: &Found, whole: bool) -> Result<Answer, Fault> {
    let text_of = |range: &Range<usize>| -> Result<Value, Fault> {
        args.charge(range.len() as u64 / 16)?;
        Ok(Value::String(args.lua.create_string(&text[range.clone()])?))
    };
    if found.captures.is_empty() && whole {
        return Ok(vec![text_of(&found.range)?]);
    }
    let value = |capture: &Capture| match capture {
        Capture::Text(range) => text_of(range),
        Capture::Position(at) => Ok(number(at + 1)),
    };
    found.captures.iter().map(value).collect()
}

fn number(n: usize) -> Value {
    Value::Number(n as f64)
}
