//! Functions of strings. Lengths and positions count bytes, as in Go.
//!
//! Main value: [`TABLE`].

use super::args::{Out, fails, string, text_of};
use super::words;
use crate::template::{Call, Error, Function, INT, Map, Str, Type, Value, format};

const ONE: &[Type] = &[Type::String];
const TWO: &[Type] = &[Type::String, Type::String];
const COUNTED: &[Type] = &[INT, Type::String];
const ANY: &[Type] = &[Type::Any];

pub(super) const TABLE: &[(&str, Function)] = &[
    ("hello", Function::new(&[], |_| Ok("Hello!".into()))),
    ("fail", Function::new(ONE, |call| fails(call.text(0)?))),
    (
        "abbrev",
        Function::new(COUNTED, |call| abbreviated(call, 0, call.integer(0)?, 1)),
    ),
    (
        "abbrevboth",
        Function::new(&[INT, INT, Type::String], |call| {
            abbreviated(call, call.integer(0)?, call.integer(1)?, 2)
        }),
    ),
    ("trunc", Function::new(COUNTED, trunc)),
    ("substr", Function::new(&[INT, INT, Type::String], substr)),
    ("trim", Function::new(ONE, |call| mapped(call, 0, trim))),
    (
        "upper",
        Function::new(ONE, |call| mapped(call, 0, |b| map_runes(b, upper))),
    ),
    (
        "lower",
        Function::new(ONE, |call| mapped(call, 0, |b| map_runes(b, lower))),
    ),
    (
        "title",
        Function::new(ONE, |call| mapped(call, 0, words::title)),
    ),
    (
        "untitle",
        Function::new(ONE, |call| mapped(call, 0, words::untitle)),
    ),
    (
        "initials",
        Function::new(ONE, |call| mapped(call, 0, words::initials)),
    ),
    (
        "swapcase",
        Function::new(ONE, |call| mapped(call, 0, words::swap_case)),
    ),
    (
        "snakecase",
        Function::new(ONE, |call| mapped(call, 0, |b| words::separated(b, '_'))),
    ),
    (
        "kebabcase",
        Function::new(ONE, |call| mapped(call, 0, |b| words::separated(b, '-'))),
    ),
    (
        "camelcase",
        Function::new(ONE, |call| mapped(call, 0, words::pascal)),
    ),
    (
        "nospace",
        Function::new(ONE, |call| mapped(call, 0, words::without_spaces)),
    ),
    ("repeat", Function::new(COUNTED, repeat)),
    ("trimall", Function::new(TWO, trim_all)),
    ("trimAll", Function::new(TWO, trim_all)),
    (
        "trimSuffix",
        Function::new(TWO, |call| {
            without_affix(call, |text, affix| text.strip_suffix(affix))
        }),
    ),
    (
        "trimPrefix",
        Function::new(TWO, |call| {
            without_affix(call, |text, affix| text.strip_prefix(affix))
        }),
    ),
    (
        "contains",
        Function::new(TWO, |call| {
            compared(call, |text, part| find(text, part).is_some())
        }),
    ),
    (
        "hasPrefix",
        Function::new(TWO, |call| {
            compared(call, |text, part| text.starts_with(part))
        }),
    ),
    (
        "hasSuffix",
        Function::new(TWO, |call| {
            compared(call, |text, part| text.ends_with(part))
        }),
    ),
    (
        "wrap",
        Function::new(COUNTED, |call| wrapped(call, b"\n", 1, false)),
    ),
    (
        "wrapWith",
        Function::new(&[INT, Type::String, Type::String], wrap_with),
    ),
    ("quote", Function::variadic(ANY, quote)),
    ("squote", Function::variadic(ANY, squote)),
    ("cat", Function::variadic(ANY, cat)),
    ("indent", Function::new(COUNTED, |call| indented(call, ""))),
    (
        "nindent",
        Function::new(COUNTED, |call| indented(call, "\n")),
    ),
    (
        "replace",
        Function::new(&[Type::String, Type::String, Type::String], replace),
    ),
    (
        "plural",
        Function::new(&[Type::String, Type::String, INT], |call| {
            Ok(call.take(usize::from(call.integer(2)? != 1)))
        }),
    ),
    (
        "toString",
        Function::new(ANY, |call| {
            string(call.budget(), text_of(call.arg(0))?.into_owned())
        }),
    ),
    (
        "split",
        Function::new(TWO, |call| {
            numbered(
                split(call.string(1)?.as_bytes(), call.string(0)?.as_bytes(), -1),
                call,
            )
        }),
    ),
    (
        "splitn",
        Function::new(&[Type::String, INT, Type::String], |call| {
            numbered(
                split(
                    call.string(2)?.as_bytes(),
                    call.string(0)?.as_bytes(),
                    call.integer(1)?,
                ),
                call,
            )
        }),
    ),
    ("splitList", Function::new(TWO, split_list)),
];

fn mapped(call: &Call<'_>, index: usize, map: fn(&[u8]) -> Vec<u8>) -> Out {
    let text = call.string(index)?;
    call.budget().memory(text.len().saturating_mul(2))?;
    Ok(Value::String(map(text.as_bytes()).into()))
}

/// `strings.Map`: a byte that is not UTF-8 becomes U+FFFD.
pub(super) fn map_runes(bytes: &[u8], map: fn(char) -> char) -> Vec<u8> {
    String::from_utf8_lossy(bytes)
        .chars()
        .map(map)
        .collect::<String>()
        .into_bytes()
}

/// `unicode.ToUpper`: a single character; one whose upper case has several characters is unchanged.
pub(crate) fn upper(c: char) -> char {
    let mut all = c.to_uppercase();
    match (all.next(), all.next()) {
        (Some(one), None) => one,
        _ => c,
    }
}

/// `unicode.ToLower`
pub(crate) fn lower(c: char) -> char {
    let mut all = c.to_lowercase();
    match (all.next(), all.next()) {
        (Some(one), None) => one,
        (Some(one), _) if c == 'İ' => one,
        _ => c,
    }
}

fn trim(bytes: &[u8]) -> Vec<u8> {
    let mut rest = bytes;
    for chunk in [rest].into_iter().flat_map(<[u8]>::utf8_chunks) {
        let valid = chunk.valid();
        let spaces = valid.len() - valid.trim_start().len();
        rest = &rest[spaces..];
        if spaces < valid.len() || !chunk.invalid().is_empty() {
            break;
        }
    }
    let tail = rest
        .utf8_chunks()
        .last()
        .map_or(0, |chunk| match chunk.invalid() {
            [] => chunk.valid().len() - chunk.valid().trim_end().len(),
            _ => 0,
        });
    rest[..rest.len() - tail].to_vec()
}

fn abbreviated(call: &Call<'_>, offset: i64, width: i64, index: usize) -> Out {
    let text = call.string(index)?;
    let unchanged = width < 4 || (index == 2 && offset > 0 && width < 7);
    match (unchanged, usize::try_from(width)) {
        (false, Ok(width)) => string(call.budget(), abbreviate(text.as_bytes(), offset, width)),
        _ => Ok(Value::String(text.clone())),
    }
}

/// Truncates a text to a width with `...`, beginning at an offset.
fn abbreviate(text: &[u8], offset: i64, width: usize) -> Vec<u8> {
    let len = text.len();
    if len <= width {
        return text.to_vec();
    }
    let room = width - 3;
    let mut offset = usize::try_from(offset).unwrap_or(0).min(len);
    if len - offset < room {
        offset = len - room;
    }
    if offset <= 4 {
        return [&text[..room], b"..."].concat();
    }
    if width < 7 {
        return Vec::new();
    }
    if offset + room < len {
        return [b"...", &abbreviate(&text[offset..], 0, room)[..]].concat();
    }
    [b"...", &text[len - room..]].concat()
}

fn trunc(call: &mut Call<'_>) -> Out {
    let (count, text) = (call.integer(0)?, call.string(1)?);
    let size = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
    if size >= text.len() {
        return Ok(call.take(1));
    }
    let bytes = text.as_bytes();
    let cut = if count < 0 {
        &bytes[bytes.len() - size..]
    } else {
        &bytes[..size]
    };
    string(call.budget(), cut)
}

fn substr(call: &mut Call<'_>) -> Out {
    let (start, end, text) = (call.integer(0)?, call.integer(1)?, call.string(2)?);
    let len = text.len() as i64;
    let (from, to) = match (start, end) {
        (..0, end) => (0, end),
        (start, end) if end < 0 || end > len => (start, len),
        both => both,
    };
    if to < 0 {
        return fails(format!("runtime error: slice bounds out of range [:{to}]"));
    }
    if to > len {
        return fails(format!(
            "runtime error: slice bounds out of range [:{to}] with length {len}"
        ));
    }
    if from > to {
        return fails(format!(
            "runtime error: slice bounds out of range [{from}:{to}]"
        ));
    }
    string(call.budget(), &text.as_bytes()[from as usize..to as usize])
}

fn repeat(call: &mut Call<'_>) -> Out {
    let (count, text) = (call.integer(0)?, call.string(1)?);
    let Ok(count) = usize::try_from(count) else {
        return fails("strings: negative Repeat count");
    };
    call.budget().memory(count.saturating_mul(text.len()))?;
    Ok(Value::String(
        text.as_bytes()
            .repeat(if text.is_empty() { 0 } else { count })
            .into(),
    ))
}

fn trim_all(call: &mut Call<'_>) -> Out {
    let (set, text) = (call.text(0)?, call.string(1)?);
    match std::str::from_utf8(text.as_bytes()) {
        Ok(valid) => string(call.budget(), valid.trim_matches(|c| set.contains(c))),
        // Bytes that are not UTF-8 are kept by a set that is.
        Err(_) => {
            let keep = |b: &u8| !(b.is_ascii() && set.contains(char::from(*b)));
            let bytes = text.as_bytes();
            let from = bytes.iter().position(keep).unwrap_or(bytes.len());
            let to = bytes.iter().rposition(keep).map_or(from, |last| last + 1);
            string(call.budget(), &bytes[from..to])
        }
    }
}

fn without_affix(call: &Call<'_>, strip: for<'t> fn(&'t [u8], &[u8]) -> Option<&'t [u8]>) -> Out {
    let (affix, text) = (call.string(0)?, call.string(1)?);
    match strip(text.as_bytes(), affix.as_bytes()) {
        Some(rest) => string(call.budget(), rest),
        None => Ok(Value::String(text.clone())),
    }
}

fn compared(call: &Call<'_>, holds: fn(&[u8], &[u8]) -> bool) -> Out {
    Ok(Value::Bool(holds(
        call.string(1)?.as_bytes(),
        call.string(0)?.as_bytes(),
    )))
}

/// The position of a text in another.
pub(super) fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    if part.is_empty() {
        return Some(0);
    }
    let mut from = 0;
    while let Some(at) = text[from..].iter().position(|b| *b == part[0]) {
        if text[from + at..].starts_with(part) {
            return Some(from + at);
        }
        from += at + 1;
    }
    None
}

fn wrap_with(call: &mut Call<'_>) -> Out {
    let separator = call.string(1)?.clone();
    wrapped(
        call,
        if separator.is_empty() {
            b"\n"
        } else {
            separator.as_bytes()
        },
        2,
        true,
    )
}

fn wrapped(call: &Call<'_>, separator: &[u8], index: usize, cut_words: bool) -> Out {
    let text = call.string(index)?.as_bytes();
    let width = usize::try_from(call.integer(0)?).unwrap_or(0).max(1);
    call.budget()
        .memory((text.len() / width).saturating_mul(separator.len()))?;
    let mut out = Vec::new();
    let mut rest = text;
    while rest.len() > width {
        if rest[0] == b' ' {
            rest = &rest[1..];
            continue;
        }
        let space = rest[..=width].iter().rposition(|b| *b == b' ');
        let (line, next) = match space {
            Some(at) => (at, at + 1),
            None if cut_words => (width, width),
            None => match rest[width..].iter().position(|b| *b == b' ') {
                Some(at) => (width + at, width + at + 1),
                None => break,
            },
        };
        out.extend_from_slice(&rest[..line]);
        out.extend_from_slice(separator);
        rest = &rest[next..];
    }
    out.extend_from_slice(rest);
    string(call.budget(), out)
}

fn quote(call: &mut Call<'_>) -> Out {
    let text = present(call, |value| {
        text_of(value).map(|text| format::quote::quote(&text, false))
    })?;
    string(call.budget(), text)
}

fn squote(call: &mut Call<'_>) -> Out {
    let text = present(call, |value| {
        format::sprint([value]).map(|text| [b"'", &text[..], b"'"].concat())
    })?;
    string(call.budget(), text)
}

/// The arguments except nils, as text with spaces between them.
fn present(
    call: &Call<'_>,
    show: impl Fn(&Value) -> Result<Vec<u8>, Error>,
) -> Result<Vec<u8>, Error> {
    let mut parts = call
        .rest(0)
        .filter(|value| !matches!(value, Value::Nil))
        .map(show);
    // There is usually only one.
    let mut text = parts.next().transpose()?.unwrap_or_default();
    for part in parts {
        text.push(b' ');
        text.extend(part?);
    }
    Ok(text)
}

fn cat(call: &mut Call<'_>) -> Out {
    let text = present(call, |value| format::sprint([value]))?;
    string(call.budget(), text)
}

fn indented(call: &Call<'_>, front: &str) -> Out {
    let text = call.string(1)?.as_bytes();
    let Ok(width) = usize::try_from(call.integer(0)?) else {
        return fails("strings: negative Repeat count");
    };
    let lines = text.iter().filter(|b| **b == b'\n').count() + 1;
    call.budget()
        .memory(width.saturating_mul(lines).saturating_add(text.len()))?;
    let pad = vec![b' '; width];
    let mut out = Vec::with_capacity(front.len() + text.len() + width * lines);
    out.extend_from_slice(front.as_bytes());
    let mut rest = text;
    while let Some(end) = memchr::memchr(b'\n', rest) {
        let (line, more) = rest.split_at(end + 1);
        out.extend_from_slice(&pad);
        out.extend_from_slice(line);
        rest = more;
    }
    out.extend_from_slice(&pad);
    out.extend_from_slice(rest);
    Ok(Value::String(out.into()))
}

fn replace(call: &mut Call<'_>) -> Out {
    let [old, new, text] = [
        call.string(0)?.as_bytes(),
        call.string(1)?.as_bytes(),
        call.string(2)?.as_bytes(),
    ];
    if old == new {
        return Ok(call.take(2));
    }
    let mut parts = split(text, old, -1);
    if old.is_empty() {
        // Between all characters, at the beginning and at the end.
        parts.insert(0, b"");
        parts.push(b"");
        if text.is_empty() {
            parts.truncate(2);
        }
    }
    call.budget().memory(
        text.len()
            .saturating_add(new.len().saturating_mul(parts.len())),
    )?;
    Ok(Value::String(parts.join(new).into()))
}

/// `strings.SplitN`; a negative count means all.
pub(super) fn split<'t>(text: &'t [u8], separator: &[u8], count: i64) -> Vec<&'t [u8]> {
    let most = usize::try_from(count).unwrap_or(usize::MAX);
    let mut parts = Vec::new();
    let mut rest = text;
    if most == 0 {
        return parts;
    }
    if separator.is_empty() {
        while !rest.is_empty() && parts.len() + 1 < most {
            let width = words::width(rest);
            parts.push(&rest[..width]);
            rest = &rest[width..];
        }
        if !rest.is_empty() {
            parts.push(rest);
        }
        return parts;
    }
    while parts.len() + 1 < most {
        let Some(at) = find(rest, separator) else {
            break;
        };
        parts.push(&rest[..at]);
        rest = &rest[at + separator.len()..];
    }
    parts.push(rest);
    parts
}

/// The parts with keys `_0`, `_1` and so on.
fn numbered(parts: Vec<&[u8]>, call: &Call<'_>) -> Out {
    call.budget()
        .memory(parts.len().saturating_mul(size_of::<Value>() * 3))?;
    let entries = parts
        .iter()
        .enumerate()
        .map(|(i, part)| (Str::from(format!("_{i}")), Value::String(Str::from(*part))));
    Ok(Map::of(Type::Map(&Type::String), entries).into())
}

fn split_list(call: &mut Call<'_>) -> Out {
    let parts = split(call.string(1)?.as_bytes(), call.string(0)?.as_bytes(), -1);
    call.budget()
        .memory(parts.len().saturating_mul(size_of::<Value>() * 2))?;
    Ok(Value::strings(parts))
}
