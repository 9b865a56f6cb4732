//! Keeps what a generator answered from becoming part of a template. Main functions: [`protected`]
//! and [`restore`].
//!
//! The parameters of one generator are filled into another one, and some of its texts are rendered
//! again with the parameters of that one. A title of a pull request with `{{` in it would then be a
//! template that anybody may write. Functions in the first of the two templates see the mark that
//! prevents it: the length or the hash of such a title is another one there.

use crate::params::{Param, Params};
use serde_json::Value as Json;
use std::borrow::Cow;

/// Stands between two opening braces of a parameter until nothing is rendered any more: a
/// noncharacter, which has no meaning in a text.
const BETWEEN: char = '\u{FDD0}';

/// How deep parameters may be nested that are protected; documents are bounded before.
const DEPTH: usize = 200;

/// Parameters whose texts do not begin a template.
pub(crate) fn protected(params: &Params) -> Cow<'_, Params> {
    match params.values().any(|param| opens(param, 0)) {
        true => Cow::Owned(
            params
                .iter()
                .map(|(key, param)| (key.clone(), of_param(param)))
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

fn opens(param: &Param, depth: usize) -> bool {
    let text = |text: &String| text.contains("{{");
    match param {
        Param::String(value) => text(value),
        Param::Strings(items) => items.iter().any(text),
        Param::StringMap(map) => map.values().any(text),
        // Deeper ones are treated as if they did.
        Param::List(_) | Param::Map(_) if depth > DEPTH => true,
        Param::List(items) => items.iter().any(|item| opens(item, depth + 1)),
        Param::Map(map) => map.values().any(|item| opens(item, depth + 1)),
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
                .map(|(key, text)| (key.clone(), of_text(text)))
                .collect(),
        ),
        Param::List(items) => Param::List(items.iter().map(of_param).collect()),
        Param::Map(map) => Param::Map(
            map.iter()
                .map(|(key, param)| (key.clone(), of_param(param)))
                .collect(),
        ),
        other => other.clone(),
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
    out
}

#[cfg(test)]
mod tests {
    use super::{is_in, of_text, restore_json};
    use serde_json::json;

    #[test]
    fn no_two_braces_stay_together_and_all_come_back() {
        for text in ["", "{", "a {b} c", "{{", "{{{", "x{{{{.y}}}}", "{ {"] {
            let protected = of_text(text);
            assert!(!protected.contains("{{"), "{protected}");
            let mut document = json!({"a": [protected.clone()], protected: 1});
            assert_eq!(is_in(&document), text.contains("{{"));
            restore_json(&mut document);
            assert_eq!(document, json!({"a": [text], text: 1}));
        }
    }
}
