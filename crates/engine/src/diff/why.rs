//! Explains a difference: field by field, who wrote it, and how to ignore it.
//!
//! Main function: [`why`]. It reads a finished comparison and decides nothing.

use super::type_of;
use crate::base::{Diff, IgnoreRule};
use serde_json::Value;
use tiphys_apimachinery::{
    Object,
    patch::apply::{
        self,
        fieldset::{FieldSet, path_text},
        path::PathElement,
    },
};

/// One field that differs.
#[derive(Clone, Debug, PartialEq)]
pub struct Reason {
    /// `.spec.template.spec.containers[name="web"].image`
    pub path: String,
    /// `None`: the field is not live.
    pub live: Option<Value>,
    /// `None`: a sync would remove it.
    pub desired: Option<Value>,
    /// The managers that own the live value.
    pub owners: Vec<Owner>,
    /// The `ignoreDifferences` entry that would ignore this difference.
    pub ignore: IgnoreRule,
}

/// A manager of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    pub manager: String,
    /// `Apply` or `Update`
    pub operation: String,
    /// RFC 3339; empty if unknown.
    pub time: String,
}

/// The fields that differ, sorted by path. `live` provides the managers; the values come from the
/// difference, so masked values stay masked.
pub fn why(diff: &Diff, live: &Object) -> Vec<Reason> {
    let side = |value: &Value| Object::from_value(value.clone()).unwrap_or_default();
    let (from, to) = (side(&diff.normalized_live), side(&diff.predicted_live));
    if !diff.modified || from.0.is_empty() || to.0.is_empty() {
        return Vec::new();
    }
    let owners = owners(live);
    let mut paths = differing(&from, &to);
    paths.sort_by_cached_key(|path| path_text(path));
    let reason = |path: Vec<PathElement>| Reason {
        path: path_text(&path),
        live: value_at(&diff.normalized_live, &path),
        desired: value_at(&diff.predicted_live, &path),
        owners: owners
            .iter()
            .filter(|(fields, _)| touches(fields, &path))
            .map(|(_, owner)| owner.clone())
            .collect(),
        ignore: ignoring(live, &path),
    };
    paths.into_iter().map(reason).collect()
}

/// The topmost paths at which the two differ. Lists without keys, and values that cannot be
/// compared by type, differ as a whole.
fn differing(from: &Object, to: &Object) -> Vec<Vec<PathElement>> {
    let found = apply::difference(from, to, type_of(&from.gvk()))
        .or_else(|_| apply::difference(from, to, None));
    let Ok(found) = found else { return Vec::new() };
    let mut all = found.added;
    all.extend(found.modified);
    all.extend(found.removed);
    let mut tops: Vec<Vec<PathElement>> = Vec::new();
    // A path comes before those inside it.
    let mut paths = all.paths();
    paths.sort();
    for path in paths {
        if !tops.last().is_some_and(|top| path.starts_with(top)) {
            tops.push(path);
        }
    }
    tops
}

fn value_at(value: &Value, path: &[PathElement]) -> Option<Value> {
    path.iter()
        .try_fold(value, |at, step| step.find(at))
        .cloned()
}

fn owners(live: &Object) -> Vec<(FieldSet, Owner)> {
    let entries = live.metadata("managedFields").and_then(Value::as_array);
    let read = |entry: &Value| {
        let text = |field: &str| {
            entry
                .get(field)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        let fields = FieldSet::from_json(entry.get("fieldsV1")?).ok()?;
        Some((
            fields,
            Owner {
                manager: text("manager"),
                operation: text("operation"),
                time: text("time"),
            },
        ))
    };
    entries.into_iter().flatten().filter_map(read).collect()
}

/// Whether a manager owns the path, a field in it, or a parent of it.
fn touches(fields: &FieldSet, path: &[PathElement]) -> bool {
    let mut at = fields;
    for (index, step) in path.iter().enumerate() {
        let Some(below) = at.children.get(step) else {
            let last = index + 1 == path.len();
            // A list or map without separately owned parts is owned as a whole.
            return at.members.contains(step)
                && (last
                    || !matches!(path[index + 1], PathElement::Key(_) | PathElement::Value(_)));
        };
        at = below;
    }
    true
}

/// The rule that selects exactly this field of this object.
fn ignoring(live: &Object, path: &[PathElement]) -> IgnoreRule {
    let rule = IgnoreRule {
        group: live.group().to_owned(),
        kind: live.kind().to_owned(),
        name: live.name().to_owned(),
        namespace: live.namespace().to_owned(),
        ..IgnoreRule::default()
    };
    match pointer(path) {
        Some(pointer) => IgnoreRule {
            json_pointers: vec![pointer],
            ..rule
        },
        None => IgnoreRule {
            jq_path_expressions: vec![expression(path)],
            ..rule
        },
    }
}

/// A JSON pointer, if every step is a field.
fn pointer(path: &[PathElement]) -> Option<String> {
    let step = |step: &PathElement| match step {
        PathElement::Field(name) => {
            Some(format!("/{}", name.replace('~', "~0").replace('/', "~1")))
        }
        _ => None,
    };
    path.iter().map(step).collect()
}

/// A jq expression: list elements are selected by their keys.
fn expression(path: &[PathElement]) -> String {
    let plain = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    let field = |name: &str| {
        if plain(name) {
            format!(".{name}")
        } else {
            format!(".[{}]", Value::from(name))
        }
    };
    let mut text = String::new();
    for step in path {
        let piped = text.ends_with(')');
        match step {
            PathElement::Field(name) if piped => text += &format!(" | {}", field(name)),
            PathElement::Field(name) => text += &field(name),
            PathElement::Key(keys) => {
                let tests: Vec<String> = keys
                    .iter()
                    .map(|(k, v)| format!("{} == {v}", field(k)))
                    .collect();
                text += &format!("[] | select({})", tests.join(" and "));
            }
            PathElement::Value(value) => text += &format!("[] | select(. == {value})"),
            PathElement::Index(index) => text += &format!("[{index}]"),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diff::{Options, diff};
    use serde_json::json;

    fn object(value: Value) -> Object {
        Object::from_value(value).expect("a map")
    }

    fn deployment(replicas: u64, image: &str, extra: &Value) -> Value {
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "n", "annotations": extra},
            "spec": {"replicas": replicas, "selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}},
                "spec": {"containers": [{"name": "side", "image": "s"}, {"name": "web", "image": image}]}}}})
    }

    #[test]
    fn each_field_with_values_owners_and_the_rule_that_silences_it() {
        let desired = object(deployment(1, "web:2", &json!({"example.com/a": "git"})));
        let mut live = deployment(3, "web:1", &json!({"example.com/a": "hand"}));
        live["metadata"]["managedFields"] = json!([
            {"manager": "argocd-controller", "operation": "Update", "time": "2026-01-01T00:00:00Z",
             "fieldsV1": {"f:spec": {"f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"web\"}": {".": {}, "f:image": {}}}}}}}},
            {"manager": "kubectl-scale", "operation": "Update", "time": "2026-01-02T00:00:00Z", "fieldsV1": {"f:spec": {"f:replicas": {}}}},
        ]);
        let live = object(live);
        let reasons = why(
            &diff(Some(&desired), Some(&live), &Options::default()),
            &live,
        );
        let seen: Vec<_> = reasons
            .iter()
            .map(|r| (r.path.as_str(), r.live.clone(), r.desired.clone()))
            .collect();
        assert_eq!(
            seen,
            [
                (
                    ".metadata.annotations.example.com/a",
                    Some(json!("hand")),
                    Some(json!("git"))
                ),
                (".spec.replicas", Some(json!(3)), Some(json!(1))),
                (
                    ".spec.template.spec.containers[name=\"web\"].image",
                    Some(json!("web:1")),
                    Some(json!("web:2"))
                ),
            ]
        );
        let managers: Vec<Vec<&str>> = reasons
            .iter()
            .map(|r| r.owners.iter().map(|o| o.manager.as_str()).collect())
            .collect();
        assert_eq!(
            managers,
            [vec![], vec!["kubectl-scale"], vec!["argocd-controller"]]
        );
        assert_eq!(
            reasons[0].ignore.json_pointers,
            ["/metadata/annotations/example.com~1a"]
        );
        let image = ".spec.template.spec.containers[] | select(.name == \"web\") | .image";
        assert_eq!(reasons[2].ignore.jq_path_expressions, [image]);
        // Each rule ignores its own field, and all of them together the whole difference.
        for left in 0..reasons.len() {
            let rules: Vec<IgnoreRule> = reasons
                .iter()
                .enumerate()
                .filter(|(i, _)| *i != left)
                .map(|(_, r)| r.ignore.clone())
                .collect();
            let rest = why(
                &diff(
                    Some(&desired),
                    Some(&live),
                    &Options {
                        ignore: &rules,
                        ..Options::default()
                    },
                ),
                &live,
            );
            assert_eq!(
                rest.iter().map(|r| &r.path).collect::<Vec<_>>(),
                [&reasons[left].path]
            );
        }
        let rules: Vec<IgnoreRule> = reasons.into_iter().map(|r| r.ignore).collect();
        assert!(
            !diff(
                Some(&desired),
                Some(&live),
                &Options {
                    ignore: &rules,
                    ..Options::default()
                }
            )
            .modified
        );
    }

    #[test]
    fn a_new_part_is_one_reason_and_an_equal_pair_has_none() {
        let map = |data: Value| {
            object(
                json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data}),
            )
        };
        let (bare, full) = (map(Value::Null), map(json!({"a": "1", "b": "2"})));
        let reasons = why(&diff(Some(&full), Some(&bare), &Options::default()), &bare);
        assert_eq!(
            reasons.iter().map(|r| r.path.as_str()).collect::<Vec<_>>(),
            [".data"]
        );
        assert!(why(&diff(Some(&full), Some(&full), &Options::default()), &full).is_empty());
        assert!(why(&diff(Some(&full), None, &Options::default()), &full).is_empty());
    }
}
