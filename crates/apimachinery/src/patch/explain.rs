//! Explains a three-way patch: each change of the live object with its cause.
//!
//! Main function: [`explain`]. The changes are those that the patch of [`super::three_way::create`]
//! makes to the live object. A patch without effect (such as one that repeats the current order of
//! a list) has no explanation.

use super::{PatchError, apply::path::PathElement, json_merge, strategic, three_way};
use crate::schema::TypeRef;
use serde_json::{Map, Value};

/// The cause of a change in a three-way patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// The configuration differs from the live object.
    Difference,
    /// It was applied last time, but is no longer in the configuration.
    Deletion,
    /// The same elements are in a different order.
    ListOrder,
    /// Only fields in the configuration may remain (patch strategy `retainKeys`).
    RetainKeys,
}

impl Cause {
    /// A text for users.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Difference => "difference",
            Self::Deletion => "deletion",
            Self::ListOrder => "list order",
            Self::RetainKeys => "retain keys",
        }
    }
}

/// One change of the live object.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// In the notation of field manager conflicts:
    /// `.spec.template.spec.containers[name="web"].image`.
    pub path: String,
    /// None: the live object does not have it. For an order, the keys of the elements.
    pub from: Option<Value>,
    /// None: it is removed.
    pub to: Option<Value>,
    pub cause: Cause,
}

/// All changes that [`three_way::create`]'s patch makes to `current`, sorted by path; assumes
/// `overwrite`.
pub fn explain(
    original: &Value,
    modified: &Value,
    current: &Value,
    ty: Option<TypeRef<'_>>,
) -> Result<Vec<Change>, PatchError> {
    let patch = three_way::create(original, modified, current, ty, true)?;
    let result = match ty {
        Some(ty) => strategic::apply(current, &patch, ty)?,
        None => json_merge::apply(current, &patch)?,
    };
    let mut walk = Walk {
        path: String::new(),
        found: Vec::new(),
    };
    let empty = Map::new();
    let map = |v: &'_ Value| v.as_object().cloned().unwrap_or_else(|| empty.clone());
    walk.maps(
        &map(current),
        &map(&result),
        Said {
            patch: Some(&patch),
            modified: Some(modified),
        },
        ty,
    );
    Ok(walk.found)
}

/// The values of the patch and the configuration at one path.
#[derive(Clone, Copy, Default)]
struct Said<'a> {
    patch: Option<&'a Value>,
    modified: Option<&'a Value>,
}

impl<'a> Said<'a> {
    fn field(self, key: &str) -> Self {
        Self {
            patch: self.patch.and_then(|v| v.get(key)),
            modified: self.modified.and_then(|v| v.get(key)),
        }
    }

    fn element(self, merge_key: &str, identity: &Value) -> Self {
        let find = |list: Option<&'a Value>| {
            list.and_then(Value::as_array)?
                .iter()
                .find(|v| v.get(merge_key) == Some(identity))
        };
        Self {
            patch: find(self.patch),
            modified: find(self.modified),
        }
    }
}

struct Walk {
    path: String,
    found: Vec<Change>,
}

impl Walk {
    fn add(&mut self, from: Option<&Value>, to: Option<&Value>, cause: Cause) {
        self.found.push(Change {
            path: self.path.clone(),
            from: from.cloned(),
            to: to.cloned(),
            cause,
        });
    }

    fn at(&mut self, step: &PathElement, visit: impl FnOnce(&mut Self)) {
        let length = self.path.len();
        self.path.push_str(&step.to_string());
        visit(self);
        self.path.truncate(length);
    }

    fn maps(
        &mut self,
        old: &Map<String, Value>,
        new: &Map<String, Value>,
        said: Said<'_>,
        ty: Option<TypeRef<'_>>,
    ) {
        let mut keys: Vec<&String> = old
            .keys()
            .chain(new.keys().filter(|k| !old.contains_key(*k)))
            .collect();
        keys.sort();
        let retains = said
            .patch
            .is_some_and(|p| p.get(strategic::RETAIN_KEYS).is_some());
        for key in keys {
            let (old, new, below) = (old.get(key), new.get(key), said.field(key));
            let explicit_null = below.modified.is_some_and(Value::is_null);
            let gone = match below.patch {
                None if retains => Cause::RetainKeys,
                _ if explicit_null => Cause::Difference,
                _ => Cause::Deletion,
            };
            self.at(&PathElement::Field(key.clone()), |walk| {
                walk.values(old, new, gone, below, ty.and_then(|t| t.field(key)))
            });
        }
    }

    fn values(
        &mut self,
        old: Option<&Value>,
        new: Option<&Value>,
        gone: Cause,
        said: Said<'_>,
        ty: Option<TypeRef<'_>>,
    ) {
        match (old, new) {
            (old, new) if old == new => {}
            (Some(_), None) => self.add(old, None, gone),
            (Some(Value::Object(old)), Some(Value::Object(new))) => self.maps(old, new, said, ty),
            (Some(Value::Array(old)), Some(Value::Array(new))) if merges(ty) => {
                self.lists(old, new, said, ty)
            }
            _ => self.add(old, new, Cause::Difference),
        }
    }

    fn lists(&mut self, old: &[Value], new: &[Value], said: Said<'_>, ty: Option<TypeRef<'_>>) {
        let merge_key = ty.and_then(|t| t.patch_merge_key()).unwrap_or("");
        let identity = |item: &Value| {
            if merge_key.is_empty() {
                Some(item.clone())
            } else {
                item.get(merge_key).cloned()
            }
        };
        let (before, after): (Vec<_>, Vec<_>) = (
            old.iter().map(identity).collect(),
            new.iter().map(identity).collect(),
        );
        let step = |id: &Option<Value>| match id {
            Some(id) if !merge_key.is_empty() => {
                PathElement::Key(vec![(merge_key.to_owned(), id.clone())])
            }
            id => PathElement::Value(id.clone().unwrap_or(Value::Null)),
        };
        for (item, id) in old
            .iter()
            .zip(&before)
            .filter(|(_, id)| !after.contains(id))
        {
            self.at(&step(id), |walk| {
                walk.add(Some(item), None, Cause::Deletion)
            });
        }
        for (item, id) in new.iter().zip(&after) {
            let old = before.iter().position(|b| b == id).map(|i| &old[i]);
            let below = id
                .as_ref()
                .map(|id| said.element(merge_key, id))
                .unwrap_or_default();
            self.at(&step(id), |walk| {
                walk.values(
                    old,
                    Some(item),
                    Cause::Deletion,
                    below,
                    ty.and_then(|t| t.items()),
                )
            });
        }
        let stayed = |list: &[Option<Value>], other: &[Option<Value>]| -> Vec<Value> {
            list.iter()
                .filter(|id| other.contains(id))
                .map(|id| id.clone().unwrap_or(Value::Null))
                .collect()
        };
        let (before, after) = (stayed(&before, &after), stayed(&after, &before));
        if before != after {
            self.add(
                Some(&Value::Array(before)),
                Some(&Value::Array(after)),
                Cause::ListOrder,
            );
        }
    }
}

fn merges(ty: Option<TypeRef<'_>>) -> bool {
    ty.and_then(|t| t.patch_strategy())
        .is_some_and(|s| s.split(',').any(|word| word == "merge"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{gvk::Gvk, schema};
    use serde_json::json;

    fn told(changes: &[Change]) -> Vec<String> {
        let text = |v: &Option<Value>| v.as_ref().map_or("-".to_owned(), Value::to_string);
        changes
            .iter()
            .map(|c| {
                format!(
                    "{} {} {} ({})",
                    c.path,
                    text(&c.from),
                    text(&c.to),
                    c.cause.as_str()
                )
            })
            .collect()
    }

    fn pod_spec(spec: Value) -> Value {
        json!({"metadata": {"finalizers": ["a"]}, "spec": {"template": {"spec": spec}}})
    }

    #[test]
    fn each_change_has_its_cause() {
        let ty = schema::builtin().type_for(&Gvk::new("apps", "v1", "Deployment"));
        let original = pod_spec(
            json!({"containers": [{"name": "a", "args": ["x"]}, {"name": "b"}, {"name": "old"}], "hostname": "h"}),
        );
        let mut modified = pod_spec(
            json!({"containers": [{"name": "b", "image": "2"}, {"name": "a"}], "subdomain": null}),
        );
        modified["spec"]["strategy"] = json!({"type": "Recreate"});
        let mut current = pod_spec(json!({
            "containers": [{"name": "a", "args": ["x"], "image": "d"}, {"name": "b", "image": "1"}, {"name": "old"}, {"name": "injected"}],
            "hostname": "h", "subdomain": "s",
        }));
        current["spec"]["strategy"] = json!({"type": "RollingUpdate", "rollingUpdate": {}});
        let changes = explain(&original, &modified, &current, ty).expect("explained");
        let pod = ".spec.template.spec";
        let expected = [
            ".spec.strategy.rollingUpdate {} - (retain keys)".to_owned(),
            r#".spec.strategy.type "RollingUpdate" "Recreate" (difference)"#.to_owned(),
            format!(r#"{pod}.containers[name="old"] {{"name":"old"}} - (deletion)"#),
            format!(r#"{pod}.containers[name="b"].image "1" "2" (difference)"#),
            format!(r#"{pod}.containers[name="a"].args ["x"] - (deletion)"#),
            format!(r#"{pod}.containers ["a","b","injected"] ["b","a","injected"] (list order)"#),
            format!(r#"{pod}.hostname "h" - (deletion)"#),
            format!(r#"{pod}.subdomain "s" - (difference)"#),
        ];
        assert_eq!(told(&changes), expected);
    }

    #[test]
    fn without_a_type_lists_change_as_a_whole() {
        let changes = explain(
            &json!({"a": 1, "b": 2}),
            &json!({"a": [1], "c": {}}),
            &json!({"a": [2], "b": 2}),
            None,
        )
        .expect("explained");
        assert_eq!(
            told(&changes),
            [
                ".a [2] [1] (difference)",
                ".b 2 - (deletion)",
                ".c - {} (difference)"
            ]
        );
    }

    #[test]
    fn a_patch_without_effect_explains_to_nothing() {
        let ty = schema::builtin().type_for(&Gvk::new("apps", "v1", "Deployment"));
        let applied = pod_spec(json!({"containers": [{"name": "a"}], "hostname": "h"}));
        let modified = pod_spec(json!({"containers": [{"name": "a"}]}));
        let current = pod_spec(json!({"containers": [{"name": "a"}, {"name": "b"}]}));
        assert_eq!(explain(&applied, &modified, &current, ty), Ok(Vec::new()));
    }
}
