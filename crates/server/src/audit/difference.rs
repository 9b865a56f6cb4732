//! What changed in an object, without secrets. Main functions: [`between`] and [`names`].

use super::record::Difference;
use serde_json::Value;
use std::collections::BTreeSet;
use tiphys_api::access::without_passwords;

/// Most values of one change, and bytes of one value.
const MAX_VALUES: usize = 200;
const MAX_TEXT: usize = 1024;
const MAX_DEPTH: usize = 64;
/// What is shown in place of a secret. No digest: a short password could be guessed by it.
const HIDDEN: &str = "++++++++";
/// Fields whose content may be secret, in lower case.
const SECRET: [&str; 12] = [
    "password",
    "secret",
    "token",
    "privatekey",
    "key",
    "credential",
    "values",
    "valuesobject",
    "manifests",
    "data",
    "stringdata",
    "value",
];

/// The values that differ, by the paths of their fields.
pub fn between(from: &Value, to: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    add((from, to), "", 0, &mut found);
    found
}

/// The paths that a patch names, without the values.
pub fn names(patch: &Value) -> Vec<Difference> {
    let named = |path: &str| Difference {
        path: path.to_owned(),
        from: Value::Null,
        to: Value::Null,
    };
    if let Value::Array(operations) = patch {
        let paths = operations.iter().filter_map(|o| o["path"].as_str());
        return paths.take(MAX_VALUES).map(named).collect();
    }
    let changes = between(&Value::Null, patch).into_iter();
    changes.map(|change| named(&change.path)).collect()
}

fn add((from, to): (&Value, &Value), path: &str, depth: usize, found: &mut Vec<Difference>) {
    if from == to || found.len() >= MAX_VALUES {
        return;
    }
    let (old, new) = match (from, to) {
        (Value::Object(old), Value::Object(new)) => (Some(old), Some(new)),
        (Value::Object(old), Value::Null) => (Some(old), None),
        (Value::Null, Value::Object(new)) => (None, Some(new)),
        _ => (None, None),
    };
    if (old.is_none() && new.is_none()) || depth == MAX_DEPTH || is_secret(path) {
        found.push(Difference {
            path: path.to_owned(),
            from: shown(from, path),
            to: shown(to, path),
        });
        return;
    }
    let keys = |map: Option<&serde_json::Map<String, Value>>| -> Vec<String> {
        map.into_iter()
            .flat_map(|map| map.keys().cloned())
            .collect()
    };
    let names: BTreeSet<String> = keys(old).into_iter().chain(keys(new)).collect();
    for name in names {
        let value = |map: Option<&serde_json::Map<String, Value>>| {
            map.and_then(|map| map.get(&name).cloned())
                .unwrap_or_default()
        };
        let path = if path.is_empty() {
            name.clone()
        } else {
            format!("{path}.{name}")
        };
        add((&value(old), &value(new)), &path, depth + 1, found);
    }
}

fn is_secret(path: &str) -> bool {
    let name = path.rsplit('.').next().unwrap_or_default();
    let name = name.to_ascii_lowercase();
    SECRET.iter().any(|secret| name.ends_with(secret))
}

/// A value as it may be shown.
fn shown(value: &Value, path: &str) -> Value {
    if value.is_null() {
        return Value::Null;
    }
    if is_secret(path) {
        return HIDDEN.into();
    }
    match value {
        Value::String(text) => {
            let text = without_passwords(text);
            let end = text.floor_char_boundary(MAX_TEXT);
            if end == text.len() {
                text.into()
            } else {
                format!("{}…", &text[..end]).into()
            }
        }
        Value::Array(items) => {
            let items = items.iter().take(MAX_VALUES);
            items.map(|item| shown_item(item, path, 0)).collect()
        }
        other => other.clone(),
    }
}

/// An item of a list, or what is in it.
fn shown_item(value: &Value, path: &str, depth: usize) -> Value {
    match value {
        Value::Object(fields) if depth < MAX_DEPTH => {
            let fields = fields.iter().map(|(name, value)| {
                let shown = match value {
                    Value::Object(_) if !is_secret(name) => shown_item(value, name, depth + 1),
                    value => shown(value, name),
                };
                (name.clone(), shown)
            });
            Value::Object(fields.collect())
        }
        Value::Object(_) => Value::Null,
        value => shown(value, path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_differs_is_there_by_its_path() {
        let from = json!({"spec": {"project": "a", "same": 1, "labels": {"x": "1"}}});
        let to = json!({"spec": {"project": "b", "same": 1, "sources": [{"path": "p"}]}});
        let paths: Vec<_> = between(&from, &to)
            .into_iter()
            .map(|d| (d.path, d.from, d.to))
            .collect();
        assert_eq!(
            paths,
            [
                ("spec.labels.x".into(), json!("1"), Value::Null),
                ("spec.project".into(), json!("a"), json!("b")),
                ("spec.sources".into(), Value::Null, json!([{"path": "p"}])),
            ]
        );
    }

    #[test]
    fn no_secret_is_in_a_difference() {
        let canary = "c4n4ry";
        let to = json!({
            "password": canary, "sshPrivateKey": canary, "bearerToken": canary,
            "spec": {
                "source": {
                    "repoURL": format!("https://user:{canary}@host/r"),
                    "helm": {
                        "values": format!("password: {canary}"),
                        "valuesObject": {"db": canary},
                        "parameters": [{"name": "db", "value": canary}],
                    },
                    "plugin": {"env": [{"name": "X", "value": canary}]},
                },
            },
            "operation": {"sync": {"manifests": [format!("kind: Secret {canary}")]}},
            "data": {"x": canary}, "stringData": {"x": canary},
        });
        let found = between(&json!({}), &to);
        assert!(found.len() > 8, "{found:?}");
        let text = serde_json::to_string(&found).expect("JSON");
        assert!(!text.contains(canary), "{text}");
        let text = serde_json::to_string(&names(&to)).expect("JSON");
        assert!(!text.contains(canary), "{text}");
    }

    #[test]
    fn that_a_secret_changed_is_told() {
        let of = |value: &str| json!({"password": value, "name": "n"});
        let found = between(&of("a"), &of("b"));
        let hidden = json!(HIDDEN);
        assert_eq!((found.len(), &found[0].from), (1, &hidden));
        assert_eq!(found[0].to, hidden);
        assert!(between(&of("a"), &of("a")).is_empty());
    }

    #[test]
    fn a_json_patch_is_named_by_its_paths() {
        let patch = json!([{"op": "replace", "path": "/data/x", "value": "v"}]);
        let found = names(&patch);
        assert_eq!((found.len(), found[0].path.as_str()), (1, "/data/x"));
    }
}
