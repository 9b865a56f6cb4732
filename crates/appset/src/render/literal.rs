//! Keeps what a generator answered from becoming part of a template. Main functions: [`protected`]
//! and [`restore`].
//!
//! The parameters of one generator are filled into another one, and some of its texts are rendered
//! again with the parameters of that one. A title of a pull request with `{{` in it would then be a
//! template that anybody may write. Functions in the first of the two templates see the mark that
//! prevents it only as parts of maps and lists; a text is given to them as it was, and what they
//! make of it is protected again.
//!
//! A brace at the end of a text gets a mark, too: what is put beside it may begin with one. So does
//! one at the beginning, where something may stand before it; but not in maps and lists, since it
//! decides how YAML quotes the text. Such a text gets it when it is printed after a brace.

use crate::params::{Param, Params};
use serde_json::Value as Json;
use std::borrow::Cow;
use tiphys_gocompat::template::{Around, Call, List, Map, Str, Value};

/// Stands between two opening braces of a parameter, and beside one at an end, until nothing is
/// rendered any more: a noncharacter, which has no meaning in a text.
const BETWEEN: char = '\u{FDD0}';

/// How deep parameters may be nested that are protected; documents are bounded before.
const DEPTH: usize = 200;

/// Parameters whose texts do not begin a template.
pub(crate) fn protected(params: &Params) -> Cow<'_, Params> {
    let begins = |param: &Param| matches!(param, Param::String(text) if text.starts_with('{'));
    match params.values().any(begins) || map_opens(params, 0) {
        true => Cow::Owned(
            params
                .iter()
                .map(|(key, param)| match param {
                    Param::String(text) => (of_text(key), Param::String(of_scalar(text))),
                    param => (of_text(key), of_param(param)),
                })
                .collect(),
        ),
        false => Cow::Borrowed(params),
    }
}

/// The text as the parameter had it.
pub(crate) fn restore(text: &mut String) {
    if text.contains(BETWEEN) {
        text.retain(|c| c != BETWEEN);
    }
}

/// The same for all texts of a document.
pub(crate) fn restore_json(document: &mut Json) {
    match document {
        Json::String(text) => restore(text),
        Json::Array(items) => items.iter_mut().for_each(restore_json),
        Json::Object(members) => {
            members.values_mut().for_each(restore_json);
            if members.keys().any(|key| key.contains(BETWEEN)) {
                let all = std::mem::take(members);
                members.extend(all.into_iter().map(|(mut key, member)| {
                    restore(&mut key);
                    (key, member)
                }));
            }
        }
        Json::Null | Json::Bool(_) | Json::Number(_) => {}
    }
}

/// Whether a document has a protected text.
pub(crate) fn is_in(document: &Json) -> bool {
    match document {
        Json::String(text) => text.contains(BETWEEN),
        Json::Array(items) => items.iter().any(is_in),
        Json::Object(members) => {
            members.keys().any(|key| key.contains(BETWEEN)) || members.values().any(is_in)
        }
        Json::Null | Json::Bool(_) | Json::Number(_) => false,
    }
}

/// Gives functions the texts without the mark, and protects what they make of them.
pub(super) const AROUND: Around = Around {
    before: without_marks,
    after: protected_result,
    between_braces: Some(BETWEEN),
};

/// They put their arguments beside each other: braces of the template's author stay what they are.
/// What they make is a text, also of maps and lists.
const PRINT: [&[u8]; 7] = [
    b"print", b"printf", b"println", b"cat", b"join", b"html", b"js",
];

/// Takes the mark out of a call's texts. Returns whether the result is to be protected: also where
/// braces come together that were apart, or were encoded, in what a generator answered.
///
/// Nothing happens where there is a map or a list, too: unless it prints, the function may put the
/// text into it, where nobody would protect it again. Nor does it where the template's author opens
/// a template.
fn without_marks(name: &[u8], call: &mut Call<'_>) -> bool {
    let holds = |value: &Value| matches!(value, Value::Map(_) | Value::List(_) | Value::Object(_));
    let prints = PRINT.contains(&name);
    if !prints && call.rest(0).any(holds) {
        return false;
    }
    if name == b"join"
        && let Value::List(list) = call.arg(1)
    {
        let list = list.clone();
        mark_joined(call, &list);
        return false;
    }
    let marked: Vec<usize> = (0..call.len())
        .filter(|i| is_marked(call.arg(*i)))
        .collect();
    if (prints || marked.is_empty()) && call.rest(0).any(|value| has_authors(value, 0)) {
        if prints {
            mark_beginnings(name, call);
        }
        return false;
    }
    for index in marked {
        if let Value::String(text) = call.arg(index) {
            let plain = plain(text.as_bytes());
            call.replace(index, Value::String(plain.into()));
        }
    }
    true
}

/// Whether a text is certainly the author's: such a one of a generator has a mark. A brace at its
/// beginning proves nothing, since those in maps and lists have no mark there.
fn is_of_author(value: &Value) -> bool {
    match value {
        Value::String(text) if !is_marked(value) => {
            let bytes = text.as_bytes();
            bytes.ends_with(b"{") || bytes.windows(2).any(|pair| pair == b"{{")
        }
        _ => false,
    }
}

/// Whether it is such a text or has one.
fn has_authors(value: &Value, depth: usize) -> bool {
    match value {
        // The deepest are treated as if they had.
        Value::List(_) | Value::Map(_) if depth > DEPTH => true,
        Value::List(list) => {
            let items = list.items();
            items.iter().any(|item| has_authors(item, depth + 1))
        }
        Value::Map(map) => map.entries().into_iter().any(|(key, value)| {
            is_of_author(&Value::String(key)) || has_authors(&value, depth + 1)
        }),
        _ => is_of_author(value),
    }
}

/// Whether it begins with a brace and is not certainly the author's.
fn may_begin(value: &Value) -> bool {
    match value {
        Value::String(text) => text.as_bytes().starts_with(b"{") && !is_of_author(value),
        _ => false,
    }
}

/// Keeps what `join` puts after a brace from making two of it.
fn mark_joined(call: &mut Call<'_>, list: &List) {
    // Whether a text that ends with a brace, or not, does so with this value behind it.
    let ends = |before: bool, value: &Value| match value {
        Value::String(text) if text.is_empty() => before,
        Value::String(text) => text.as_bytes().ends_with(b"{"),
        _ => false,
    };
    let separator = call.arg(0).clone();
    let mut items = list.items();
    let (mut is_open, mut is_first) = (false, true);
    let (mut marks_separator, mut marks_items) = (false, false);
    // Nils are left out.
    for item in items.iter_mut().filter(|item| !matches!(item, Value::Nil)) {
        if !is_first {
            marks_separator |= is_open && may_begin(&separator);
            is_open = ends(is_open, &separator);
        }
        is_first = false;
        let next = ends(is_open, item);
        if is_open && may_begin(item) {
            *item = with_mark(item);
            marks_items = true;
        }
        is_open = next;
    }
    if marks_separator {
        call.replace(0, with_mark(&separator));
    }
    if marks_items {
        // A new list: others may refer to this one.
        call.replace(1, Value::List(List::of(list.go_type(), items)));
    }
}

/// A text with the mark before it.
fn with_mark(value: &Value) -> Value {
    let Value::String(text) = value else {
        return value.clone();
    };
    let mut mark = [0; 4];
    let mut out = BETWEEN.encode_utf8(&mut mark).as_bytes().to_vec();
    out.extend_from_slice(text.as_bytes());
    Value::String(out.into())
}

/// Keeps what is printed after a brace of the author from making two of it.
fn mark_beginnings(name: &[u8], call: &mut Call<'_>) {
    // The first argument of `printf` is the format.
    let from = usize::from(name == b"printf");
    for index in from..call.len() {
        if may_begin(call.arg(index)) {
            let marked = with_mark(call.arg(index));
            call.replace(index, marked);
        }
    }
}

fn is_marked(value: &Value) -> bool {
    let mut mark = [0; 4];
    let mark = BETWEEN.encode_utf8(&mut mark).as_bytes();
    match value {
        Value::String(text) => text.as_bytes().windows(mark.len()).any(|part| part == mark),
        _ => false,
    }
}

/// Without the mark. Bytes that are no UTF-8 stay as they are.
fn plain(bytes: &[u8]) -> Vec<u8> {
    let mut mark = [0; 4];
    let mark = BETWEEN.encode_utf8(&mut mark).as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((first, after)) = rest.split_first() {
        match rest.strip_prefix(mark) {
            Some(after) => rest = after,
            None => {
                out.push(*first);
                rest = after;
            }
        }
    }
    out
}

/// What a function made of protected texts, protected again.
fn protected_result(value: Value) -> Value {
    match &value {
        Value::String(text) if text.as_bytes().starts_with(b"{") => {
            with_mark(&Value::String(of_bytes(text)))
        }
        _ => protected_value(value),
    }
}

/// The same in a map or a list. It is new: nothing else refers to it.
fn protected_value(value: Value) -> Value {
    match &value {
        Value::String(text) => Value::String(of_bytes(text)),
        Value::List(list) if !list.is_nil() => {
            let items = list.items().into_iter().map(protected_value);
            Value::List(List::of(list.go_type(), items.collect()))
        }
        Value::Map(map) if !map.is_nil() => {
            let entries = map.entries().into_iter();
            let entries = entries.map(|(key, value)| (of_bytes(&key), protected_value(value)));
            Value::Map(Map::of(map.go_type(), entries))
        }
        _ => value,
    }
}

fn of_bytes(text: &Str) -> Str {
    let mut mark = [0; 4];
    let mark = BETWEEN.encode_utf8(&mut mark).as_bytes();
    let mut out = Vec::with_capacity(text.len());
    for byte in text.as_bytes() {
        if *byte == b'{' && out.last() == Some(&b'{') {
            out.extend_from_slice(mark);
        }
        out.push(*byte);
    }
    if out.last() == Some(&b'{') {
        out.extend_from_slice(mark);
    }
    out.into()
}

fn map_opens(map: &Params, depth: usize) -> bool {
    let mut members = map.iter();
    members.any(|(key, param)| joins(key) || opens(param, depth))
}

fn joins(text: &str) -> bool {
    text.contains("{{") || text.ends_with('{')
}

fn opens(param: &Param, depth: usize) -> bool {
    let text = |text: &String| joins(text);
    match param {
        Param::String(value) => text(value),
        Param::Strings(items) => items.iter().any(text),
        Param::StringMap(map) => map.keys().chain(map.values()).any(text),
        // Deeper ones are treated as if they did.
        Param::List(_) | Param::Map(_) if depth > DEPTH => true,
        Param::List(items) => items.iter().any(|item| opens(item, depth + 1)),
        Param::Map(map) => map_opens(map, depth + 1),
        // Texts of JSON are printed as numbers.
        Param::Null
        | Param::Bool(_)
        | Param::Number(_)
        | Param::Int(_)
        | Param::NoStrings
        | Param::RawMap(_) => false,
    }
}

fn of_param(param: &Param) -> Param {
    match param {
        Param::String(text) => Param::String(of_text(text)),
        Param::Strings(items) => Param::Strings(items.iter().map(|text| of_text(text)).collect()),
        Param::StringMap(map) => Param::StringMap(
            map.iter()
                .map(|(key, text)| (of_text(key), of_text(text)))
                .collect(),
        ),
        Param::List(items) => Param::List(items.iter().map(of_param).collect()),
        Param::Map(map) => Param::Map(
            map.iter()
                .map(|(key, param)| (of_text(key), of_param(param)))
                .collect(),
        ),
        other => other.clone(),
    }
}

/// A text that is put beside others as it is.
fn of_scalar(text: &str) -> String {
    match text.starts_with('{') {
        true => format!("{BETWEEN}{}", of_text(text)),
        false => of_text(text),
    }
}

fn of_text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c == '{' && out.ends_with('{') {
            out.push(BETWEEN);
        }
        out.push(c);
    }
    if out.ends_with('{') {
        out.push(BETWEEN);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{is_in, of_scalar, of_text, restore_json};
    use serde_json::json;

    const TEXTS: [&str; 8] = ["", "{", "a {b} c", "{{", "{{{", "x{{{{.y}}}}", "{ {", "a{"];

    #[test]
    fn no_two_braces_stay_together_and_all_come_back() {
        for text in TEXTS {
            let protected = of_text(text);
            assert!(!protected.contains("{{"), "{protected}");
            let mut document = json!({"a": [protected.clone()], protected: 1});
            let opens = text.contains("{{") || text.ends_with('{');
            assert_eq!(is_in(&document), opens, "{text}");
            restore_json(&mut document);
            assert_eq!(document, json!({"a": [text], text: 1}));
        }
    }

    #[test]
    fn texts_beside_each_other_do_not_bring_braces_together() {
        for first in TEXTS {
            for second in TEXTS {
                let joined = format!("{{{}{}", of_scalar(first), of_scalar(second));
                assert!(!joined.contains("{{"), "{joined}");
                let joined = format!("{}{}{{", of_text(first), of_scalar(second));
                assert!(!joined.contains("{{"), "{joined}");
            }
        }
    }
}
