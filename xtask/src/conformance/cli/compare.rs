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
/// The condition that says why resources differ after a sync: only Tiphys writes it.
const WHY: &str = "OutOfSyncWarning";
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
    let mut got = without_why(normaliser.text(printed), wanted);
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

/// Without that condition, and without a table that has no other.
fn without_why(got: String, wanted: &str) -> String {
    let header = got.lines().position(|line| line.starts_with("CONDITION "));
    let (Some(header), false) = (header, wanted.contains(WHY)) else {
        return got;
    };
    let mut lines: Vec<&str> = got.split('\n').collect();
    let before = lines.len();
    lines.retain(|line| !line.starts_with(WHY));
    let is_empty = |at: usize| lines.get(at).is_some_and(|line| line.is_empty());
    if lines.len() < before && is_empty(header + 1) {
        // Two empty lines follow a table.
        let end = header + if is_empty(header + 2) { 3 } else { 2 };
        lines.drain(header..end);
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::without_why;

    #[test]
    fn the_condition_of_ours_is_left_out_and_no_other() {
        let table = "GROUP  KIND\n";
        let text = |rows: &str| format!("Name: a\n\nCONDITION  MESSAGE\n{rows}\n\n{table}");
        let ours = text("OutOfSyncWarning  The last sync\n");
        let plain = format!("Name: a\n\n{table}");
        assert_eq!(without_why(ours.clone(), &plain), plain);
        assert_eq!(without_why(ours.clone(), &ours), ours);
        let other = text("SyncError  failed\n");
        assert_eq!(without_why(other.clone(), &plain), other);
        let last = "Name: a\n\nCONDITION  MESSAGE\nOutOfSyncWarning  b\n\nGROUP  KIND\n".to_owned();
        let rest = "Name: a\n\nGROUP  KIND\n";
        assert_eq!(without_why(last, rest), rest);
        let both = text("SyncError  failed\nOutOfSyncWarning  The last sync\n");
        assert_eq!(without_why(both, &plain), other);
    }
}
