//! `--show-patch`: what a patch changes and the reason for each change, for users and for programs.
//! Main functions: [`text`] and [`json`].

use super::print::print_name;
use serde_json::{Map, Value, json};
use std::fmt::Write as _;
use tiphys_apimachinery::{Object, patch::last_applied};
use tiphys_cluster::apply::{Explanation, Failure, OwnershipChange};
use tiphys_gocompat::yaml;

/// Longer values are truncated in text output.
const MAX_VALUE: usize = 72;
/// Printed instead of a Secret's values.
const MASK: &str = "********";
/// Printed for the last-applied annotation.
const REMEMBERED: &str = "(what is applied now)";
/// Shorter patches are printed completely.
const MAX_PATCH_LINES: usize = 60;

/// One change, from any kind of apply.
struct Row {
    path: String,
    from: Option<Value>,
    to: Option<Value>,
    cause: String,
    why: String,
}

/// What to explain: the patch if there is one, and its changes.
struct Story {
    title: String,
    kind: &'static str,
    patch: Option<Value>,
    rows: Vec<Row>,
    /// The last-applied annotation changes too.
    remembers: bool,
}

fn story(object: &Object, explanation: &Explanation) -> Story {
    let mask = Mask {
        secret: object.kind() == "Secret" && object.group().is_empty(),
    };
    match explanation {
        Explanation::Created { .. } => whole("a new object: every field is the file's", "create"),
        Explanation::Recreated { .. } => whole(
            "deleted and created anew, as it cannot be patched",
            "recreate",
        ),
        Explanation::Patch {
            strategic,
            patch,
            changes,
        } => {
            let mut rows = Vec::new();
            let mut remembers = false;
            for change in changes {
                if is_remembered(&change.path) {
                    remembers = true;
                    continue;
                }
                let (from, to) =
                    mask.values(&change.path, change.from.as_ref(), change.to.as_ref());
                let cause = change.cause.as_str();
                let why = match cause {
                    "difference" if change.from.is_none() => "only the file has it",
                    "difference" => "the file and the live object differ",
                    "deletion" => "it was applied last time and the file no longer has it",
                    "list order" => "the file has the elements in another order",
                    _ => "the file has other fields, which exclude it",
                };
                rows.push(Row {
                    path: change.path.clone(),
                    from,
                    to,
                    cause: cause.to_owned(),
                    why: why.to_owned(),
                });
            }
            let kind = if *strategic {
                "strategic merge patch"
            } else {
                "JSON merge patch"
            };
            Story {
                title: title(kind, rows.len()),
                kind,
                patch: Some(mask.patch(patch)),
                rows,
                remembers,
            }
        }
        Explanation::Ownership {
            manager,
            created,
            changes,
        } => {
            let rows: Vec<Row> = changes
                .iter()
                .map(|change| {
                    let (from, to) =
                        mask.values(&change.path, change.from.as_ref(), change.to.as_ref());
                    let why = why(change.effect, &change.managers);
                    Row {
                        path: change.path.clone(),
                        from,
                        to,
                        cause: change.effect.as_str().to_owned(),
                        why,
                    }
                })
                .collect();
            let title = if *created {
                format!(
                    "server-side apply of a new object: {manager} owns {} fields",
                    rows.len()
                )
            } else {
                title(&format!("server-side apply by {manager}"), rows.len())
            };
            Story {
                title,
                kind: "server-side apply",
                patch: None,
                rows: if *created { Vec::new() } else { rows },
                remembers: false,
            }
        }
    }
}

fn whole(title: &str, kind: &'static str) -> Story {
    Story {
        title: title.to_owned(),
        kind,
        patch: None,
        rows: Vec::new(),
        remembers: false,
    }
}

fn title(kind: &str, changes: usize) -> String {
    match changes {
        0 => format!("{kind}: no change"),
        1 => format!("{kind}: 1 change"),
        n => format!("{kind}: {n} changes"),
    }
}

fn why(effect: OwnershipChange, managers: &[String]) -> String {
    let others = managers.join(", ");
    match effect {
        OwnershipChange::Gained => "nobody owned it before".to_owned(),
        OwnershipChange::Shared => format!("also owned by {others}"),
        OwnershipChange::Taken => format!("owned by {others} before"),
        OwnershipChange::Changed if others.is_empty() => {
            "we own it, and the file has another value".to_owned()
        }
        OwnershipChange::Changed => {
            format!("we own it, and the file has another value; no longer owned by {others}")
        }
        OwnershipChange::Lost if others.is_empty() => {
            "no longer in the file; nobody owns it now".to_owned()
        }
        OwnershipChange::Lost => format!("no longer in the file; still owned by {others}"),
        OwnershipChange::Removed => "no longer in the file, and nobody else owns it".to_owned(),
    }
}

/// For a terminal: printed below the line of the object.
pub fn text(object: &Object, explanation: &Explanation) -> String {
    let story = story(object, explanation);
    let mut out = format!("  {}\n", story.title);
    for row in &story.rows {
        let values = match (&row.from, &row.to) {
            (None, Some(to)) => short(to),
            (Some(from), None) => format!("{} -> (none)", short(from)),
            (Some(from), Some(to)) if from == to => short(to),
            (Some(from), Some(to)) => format!("{} -> {}", short(from), short(to)),
            (None, None) => String::new(),
        };
        let sign = match (&row.from, &row.to) {
            (None, _) => '+',
            (_, None) => '-',
            (from, to) if from == to => '=',
            _ => '~',
        };
        let _ = write!(
            out,
            "  {sign} {}: {values}\n      {}: {}\n",
            row.path, row.cause, row.why
        );
    }
    if story.remembers {
        let _ = writeln!(
            out,
            "  (and the annotation that remembers what was applied)"
        );
    }
    if let Some(patch) = story
        .patch
        .filter(|p| p.as_object().is_some_and(|p| !p.is_empty()))
    {
        let text = yaml::to_string(&patch);
        out.push_str("  the patch:\n");
        for line in text.lines().take(MAX_PATCH_LINES) {
            let _ = writeln!(out, "    {line}");
        }
        let rest = text.lines().count().saturating_sub(MAX_PATCH_LINES);
        if rest > 0 {
            let _ = writeln!(out, "    ... {rest} more lines; -o json has all of them");
        }
    }
    out
}

/// For a terminal: which managers conflict.
pub fn conflicts(failure: &Failure) -> String {
    let Failure::Conflict { error, .. } = failure else {
        return String::new();
    };
    let rows = error
        .causes
        .iter()
        .filter(|(reason, ..)| reason == "FieldManagerConflict");
    rows.map(|(_, message, field)| format!("  ! {field}\n      {message}\n"))
        .collect()
}

/// For programs.
pub fn json(object: &Object, verb: &str, explanation: &Explanation) -> Value {
    let story = story(object, explanation);
    let changes: Vec<Value> = story
        .rows
        .iter()
        .map(|row| {
            let mut change = Map::new();
            change.insert("path".into(), row.path.as_str().into());
            row.from
                .iter()
                .for_each(|v| drop(change.insert("from".into(), v.clone())));
            row.to
                .iter()
                .for_each(|v| drop(change.insert("to".into(), v.clone())));
            change.insert("cause".into(), row.cause.as_str().into());
            change.insert("why".into(), row.why.as_str().into());
            Value::Object(change)
        })
        .collect();
    let mut out = identity(object, verb);
    out["method"] = story.kind.into();
    out["changes"] = changes.into();
    if let Some(patch) = story.patch {
        out["patch"] = patch;
    }
    out
}

/// For programs: an object whose apply was refused.
pub fn refused(object: &Object, failure: &Failure) -> Value {
    let mut out = identity(object, "failed");
    out["error"] = failure.to_string().into();
    if let Some(error) = failure.api() {
        let causes = error.causes.iter().map(|(reason, message, field)| json!({"reason": reason, "message": message, "field": field}));
        out["causes"] = causes.collect();
    }
    out
}

fn identity(object: &Object, verb: &str) -> Value {
    json!({
        "apiVersion": object.api_version(), "kind": object.kind(), "namespace": object.namespace(), "name": object.name(),
        "object": print_name(object), "result": verb,
    })
}

/// A value on one line.
fn short(value: &Value) -> String {
    let text = match value {
        Value::String(s) if s == MASK || s == REMEMBERED => s.clone(),
        other => other.to_string(),
    };
    if text.chars().count() <= MAX_VALUE {
        text
    } else {
        text.chars().take(MAX_VALUE - 3).collect::<String>() + "..."
    }
}

fn is_remembered(path: &str) -> bool {
    path.contains(last_applied::ANNOTATION)
}

/// Hides a Secret's values.
struct Mask {
    secret: bool,
}

impl Mask {
    fn values(
        &self,
        path: &str,
        from: Option<&Value>,
        to: Option<&Value>,
    ) -> (Option<Value>, Option<Value>) {
        if is_remembered(path) {
            return (
                from.map(|_| REMEMBERED.into()),
                to.map(|_| REMEMBERED.into()),
            );
        }
        let hide = |v: &Value| self.hidden(path, v);
        (from.map(hide), to.map(hide))
    }

    fn hidden(&self, path: &str, value: &Value) -> Value {
        if self.secret && (path.starts_with(".data") || path.starts_with(".stringData")) {
            masked(value)
        } else {
            value.clone()
        }
    }

    fn patch(&self, patch: &Value) -> Value {
        let mut patch = patch.clone();
        if let Some(Value::String(text)) = patch
            .pointer_mut("/metadata/annotations")
            .and_then(|a| a.get_mut(last_applied::ANNOTATION))
        {
            REMEMBERED.clone_into(text);
        }
        if self.secret {
            for field in ["data", "stringData"] {
                if let Some(values) = patch.get_mut(field) {
                    *values = masked(values);
                }
            }
        }
        patch
    }
}

/// The same structure without values; removed fields stay null.
fn masked(value: &Value) -> Value {
    match value {
        Value::Null => Value::Null,
        Value::Object(map) => {
            Value::Object(map.iter().map(|(k, v)| (k.clone(), masked(v))).collect())
        }
        Value::Array(list) => list.iter().map(masked).collect(),
        _ => MASK.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiphys_apimachinery::patch::three_way::{Cause, Change};

    fn explain(kind: &str, path: &str, patch: Value) -> (Object, Explanation) {
        let object = Object::from_value(
            json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": "a"}}),
        )
        .expect("a map");
        let change = Change {
            path: path.into(),
            from: Some("old".into()),
            to: Some("new".into()),
            cause: Cause::Difference,
        };
        let remembered = Change {
            path: format!(".metadata.annotations.{}", last_applied::ANNOTATION),
            ..change.clone()
        };
        (
            object,
            Explanation::Patch {
                strategic: true,
                patch,
                changes: vec![change, remembered],
            },
        )
    }

    #[test]
    fn changes_are_told_with_their_cause() {
        let (object, explanation) = explain("ConfigMap", ".data.k", json!({"data": {"k": "new"}}));
        let want = "  strategic merge patch: 1 change\n  ~ .data.k: \"old\" -> \"new\"\n      difference: the file and the live object differ\n  \
                    (and the annotation that remembers what was applied)\n  the patch:\n    data:\n      k: new\n";
        assert_eq!(text(&object, &explanation), want);
        let value = super::json(&object, "configured", &explanation);
        assert_eq!(value["changes"][0]["cause"], "difference");
        assert_eq!(value["result"], "configured");
    }

    #[test]
    fn secrets_stay_secret() {
        let (object, explanation) = explain(
            "Secret",
            ".data.k",
            json!({"data": {"k": "new", "gone": null}, "type": "Opaque"}),
        );
        let told = text(&object, &explanation)
            + &super::json(&object, "configured", &explanation).to_string();
        assert!(
            !told.contains("\"old\"") && !told.contains("new\""),
            "{told}"
        );
        assert!(
            told.contains("gone: null") && told.contains("Opaque"),
            "{told}"
        );
    }
}
