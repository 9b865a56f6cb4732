//! Creates the default roles and bindings of a cluster. Main function: [`make_defaults`]; the data
//! is in `bootstrap.txt`.

use crate::base::WriteOptions;
use crate::rbac::policy::GROUP;
use crate::rbac::rules::{Rule, missing};
use crate::registry::Registry;
use crate::status::Status;
use serde_json::{Map, Value, json};
use tiphys_apimachinery::{Gvr, Object};

const TABLE: &str = include_str!("bootstrap.txt");
const AUTOUPDATE: &str = "rbac.authorization.kubernetes.io/autoupdate";

/// Creates the missing roles and bindings. Existing ones keep their changes, but get back missing
/// rules and subjects, unless their annotation `autoupdate` is `false`.
pub fn make_defaults(registry: &Registry) -> Result<(), Status> {
    let options = WriteOptions::manager("kube-apiserver");
    for (resource, object) in objects() {
        let gvr = Gvr::new(GROUP, "v1", resource);
        match registry.get(&gvr, object.namespace(), object.name()) {
            Err(status) if status.is_not_found() => {
                let namespace = object.namespace().to_owned();
                registry.create(&gvr, &namespace, object, &options)?;
            }
            Err(status) => return Err(status),
            Ok(live) => {
                if let Some(mended) = mend(&live, &object) {
                    registry.update(&gvr, object.namespace(), mended, &options)?;
                }
            }
        }
    }
    Ok(())
}

/// The object with its missing rules and subjects restored, if there are any.
fn mend(live: &Object, wanted: &Object) -> Option<Object> {
    if live.annotation(AUTOUPDATE) == Some("false") {
        return None;
    }
    let list = |o: &Object, field: &str| {
        o.0.get(field)
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default()
    };
    let mut mended = live.clone();
    let held = Rule::list(live.0.get("rules"));
    let lost = |value: &Value, field: &str| match field {
        "rules" => !missing(&held, &[Rule::from_json(value)]).is_empty(),
        _ => !list(live, field).contains(value),
    };
    let mut changed = false;
    for field in ["rules", "subjects"] {
        let add: Vec<Value> = list(wanted, field)
            .into_iter()
            .filter(|v| lost(v, field))
            .collect();
        if !add.is_empty() {
            changed = true;
            mended
                .0
                .insert(field.to_owned(), [list(live, field), add].concat().into());
        }
    }
    changed.then_some(mended)
}

/// The objects of the table with their plural names.
fn objects() -> Vec<(&'static str, Object)> {
    let mut all: Vec<(&str, Object)> = Vec::new();
    for line in TABLE.lines().filter(|l| !l.starts_with('#')) {
        match line.strip_prefix("  ") {
            None => all.push(head(line)),
            Some(part) => {
                let Some((resource, object)) = all.last_mut() else {
                    continue;
                };
                let (field, value) = if resource.ends_with("bindings") {
                    ("subjects", subject(part))
                } else {
                    ("rules", rule(part))
                };
                let list = object.0.entry(field).or_insert_with(|| json!([]));
                list.as_array_mut().expect("it was made here").push(value);
            }
        }
    }
    all
}

fn head(line: &str) -> (&'static str, Object) {
    let words: Vec<&str> = line.split(' ').collect();
    let [kind, namespace, name, more @ ..] = words.as_slice() else {
        return ("", Object::default());
    };
    let mut labels = json!({"kubernetes.io/bootstrapping": "rbac-defaults"});
    let mut object = Map::new();
    object.insert("apiVersion".into(), format!("{GROUP}/v1").into());
    object.insert("kind".into(), (*kind).into());
    let resource = match *kind {
        "ClusterRole" => "clusterroles",
        "Role" => "roles",
        "ClusterRoleBinding" => "clusterrolebindings",
        _ => "rolebindings",
    };
    if resource.ends_with("bindings") {
        if let [role_kind, role] = more {
            object.insert(
                "roleRef".into(),
                json!({"apiGroup": GROUP, "kind": role_kind, "name": role}),
            );
        }
    } else {
        for word in more {
            match word.strip_prefix("collects=") {
                None => labels[format!("{GROUP}/{word}")] = "true".into(),
                Some(label) => {
                    let selector = json!({"matchLabels": {format!("{GROUP}/{label}"): "true"}});
                    object.insert(
                        "aggregationRule".into(),
                        json!({"clusterRoleSelectors": [selector]}),
                    );
                }
            }
        }
    }
    let mut metadata = json!({"name": name, "labels": labels, "annotations": {AUTOUPDATE: "true"}});
    if *namespace != "-" {
        metadata["namespace"] = (*namespace).into();
    }
    object.insert("metadata".into(), metadata);
    (resource, Object(object))
}

/// `verbs | groups | resources [| names]`, or `verbs | url | paths`.
fn rule(line: &str) -> Value {
    let words = |text: &str| {
        text.split_whitespace()
            .map(|w| {
                if w == "core" {
                    String::new()
                } else {
                    w.to_owned()
                }
            })
            .collect::<Vec<_>>()
    };
    let parts: Vec<&str> = line.split(" | ").collect();
    let rule = match parts.as_slice() {
        [verbs, "url", urls] => Rule {
            verbs: words(verbs),
            urls: words(urls),
            ..Rule::default()
        },
        [verbs, groups, resources, names @ ..] => {
            let names = names.first().map(|n| words(n)).unwrap_or_default();
            Rule {
                verbs: words(verbs),
                groups: words(groups),
                resources: words(resources),
                names,
                urls: Vec::new(),
            }
        }
        _ => Rule::default(),
    };
    rule.to_json()
}

/// `kind namespace name`
fn subject(line: &str) -> Value {
    let words: Vec<&str> = line.split(' ').collect();
    match words.as_slice() {
        ["ServiceAccount", namespace, name] => {
            json!({"kind": "ServiceAccount", "namespace": namespace, "name": name})
        }
        [kind, _, name] => json!({"apiGroup": GROUP, "kind": kind, "name": name}),
        _ => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_read_whole() {
        let all = objects();
        let count = |resource: &str| all.iter().filter(|(r, _)| *r == resource).count();
        assert_eq!(
            [
                count("clusterroles"),
                count("clusterrolebindings"),
                count("roles"),
                count("rolebindings")
            ],
            [69, 50, 7, 7]
        );
        let rules: usize = all
            .iter()
            .map(|(_, o)| Rule::list(o.0.get("rules")).len())
            .sum();
        assert_eq!(rules, 322);
        let broken = |r: &Rule| {
            r.verbs.is_empty()
                || (r.urls.is_empty() && (r.groups.is_empty() || r.resources.is_empty()))
        };
        assert!(
            !all.iter()
                .any(|(_, o)| Rule::list(o.0.get("rules")).iter().any(broken))
        );
    }
}
