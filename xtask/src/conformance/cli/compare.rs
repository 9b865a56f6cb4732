//! Compares what a program printed with what was recorded. Main function: [`output`].

use super::normalise::Normaliser;
use crate::conformance::first_difference;
use serde_json::{Map, Value};
use tiphys_gocompat::yaml;

static EMPTY: Value = Value::Null;
const MANAGED: &str = "<MANAGED>";
/// Annotations that the recorded server leaves behind for a hydrator that does not run.
const LEFT_BEHIND: [&str; 2] = [
    "argocd.argoproj.io/hydrate",
    "argocd.argoproj.io/hydrate-timestamp",
];
/// Lines of a difference that are shown.
const SHOWN: usize = 3;

/// How a stream differs; `None`: it does not.
pub fn output(
    step: &Value,
    stream: &str,
    printed: &str,
    normaliser: &Normaliser,
    spaces: bool,
) -> Option<String> {
    let has = |list: &str| {
        let streams = step[list].as_array().into_iter().flatten();
        streams.into_iter().any(|name| name == stream)
    };
    if has("unstable") || !step[stream].is_string() {
        return None;
    }
    let wanted = normaliser.without_stream(step[stream].as_str().unwrap_or_default());
    let wanted = wanted.as_str();
    let mut got = normaliser.text(printed);
    if stream == "stdout" && wanted.ends_with("<REST>") {
        // Only the first line of a script is compared.
        got = format!("{}\n<REST>", got.lines().next().unwrap_or_default());
    }
    if wanted == "<USAGE>" && ["", "<USAGE>\n"].contains(&got.as_str()) {
        // Groups of commands: on one of the two streams.
        return None;
    }
    let is_loose = spaces || wanted.contains("<COUNT>") && !wanted.contains('"');
    let form = |text: &str| {
        let text = if is_loose {
            normaliser.counts(text)
        } else {
            text.to_owned()
        };
        let mut lines: Vec<String> = text.lines().map(|line| normaliser.line(line)).collect();
        if has("unordered") {
            lines.sort();
        }
        lines
    };
    let (mut wanted_lines, got_lines) = (form(wanted), form(&got));
    let lacks = |text: &str| text.contains(MANAGED) && !got.contains(MANAGED);
    if lacks(wanted) {
        // Records are kept without them on purpose: they are half of an Application.
        wanted_lines.retain(|line| !line.contains(MANAGED));
    }
    let parsed = parsed(wanted, &got, has("unordered"));
    if wanted_lines == got_lines || parsed.as_ref().is_some_and(String::is_empty) {
        return None;
    }
    Some(match parsed {
        Some(difference) => format!("{stream}: {difference}"),
        None => format!("{stream}: {}", lines(&wanted_lines, &got_lines)),
    })
}

/// The first difference of two documents; empty: they are equal. `None`: one is no document.
/// `unordered`: lists of objects have no order.
fn parsed(wanted: &str, got: &str, unordered: bool) -> Option<String> {
    let is_document = |text: &str| text.starts_with(['{', '[', '-']) || text.contains(":\n");
    if !is_document(wanted) || wanted.contains("\n===") {
        return None;
    }
    let read = |text: &str| {
        let json = serde_json::from_str::<Value>(text).ok();
        json.or_else(|| {
            let read = yaml::parse_documents(text, &yaml::Limits::default()).ok()?;
            let all: Vec<Value> = read.into_iter().map(|d| d.value).collect();
            let is_it = |v: &Value| v.is_object() || v.is_array();
            (!all.is_empty() && all.iter().all(is_it)).then(|| all.into())
        })
    };
    let (mut wanted, mut got) = (read(wanted)?, read(got)?);
    if unordered {
        sort(&mut wanted);
        sort(&mut got);
    }
    relax(&mut wanted, &got);
    Some(first_difference(&wanted, &got, ""))
}

/// Puts lists of resources in the order of their identities.
fn sort(value: &mut Value) {
    let identity = |value: &Value| {
        ["group", "kind", "namespace", "name"].map(|key| value[key].as_str().map(str::to_owned))
    };
    match value {
        Value::Array(list) => {
            list.iter_mut().for_each(sort);
            list.sort_by_cached_key(identity);
        }
        Value::Object(fields) => fields.values_mut().for_each(sort),
        _ => {}
    }
}

/// Takes from what was recorded what is missing on purpose: fields of managers, of which records
/// are kept without, and annotations without a meaning.
fn relax(wanted: &mut Value, got: &Value) {
    match (wanted, got) {
        (Value::Array(wanted), Value::Array(got)) => {
            wanted.iter_mut().zip(got).for_each(|(w, g)| relax(w, g));
        }
        (Value::Object(wanted), Value::Object(got)) => {
            let is_missing = |key: &str| !got.contains_key(key);
            if is_missing("managedFields") {
                wanted.remove("managedFields");
            }
            LEFT_BEHIND
                .into_iter()
                .filter(|key| is_missing(key))
                .for_each(|key| drop(wanted.remove(key)));
            for (key, value) in wanted.iter_mut() {
                relax(value, got.get(key).unwrap_or(&EMPTY));
            }
            let is_empty = |value: &Value| value.as_object().is_some_and(Map::is_empty);
            if is_missing("annotations") && wanted.get("annotations").is_some_and(is_empty) {
                wanted.remove("annotations");
            }
        }
        (Value::Object(wanted), _) => LEFT_BEHIND
            .into_iter()
            .for_each(|key| drop(wanted.remove(key))),
        _ => {}
    }
}

fn lines(wanted: &[String], got: &[String]) -> String {
    let differs = (0..wanted.len().max(got.len())).filter(|at| wanted.get(*at) != got.get(*at));
    let shown = differs.take(SHOWN).map(|at| {
        let line = |lines: &[String]| lines.get(at).map_or("<end>".to_owned(), Clone::clone);
        format!(
            "\n      line {}:\n      - {}\n      + {}",
            at + 1,
            line(wanted),
            line(got)
        )
    });
    shown.collect()
}
