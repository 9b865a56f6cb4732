//! What an API server does to a custom resource's values by its schema: unknown fields go, defaults come.
//!
//! Main functions: [`prune`], [`apply_defaults`].

use super::{TypeKind, TypeRef};
use serde_json::{Map, Value};

/// Removes fields that the type does not have. Returns the paths that were removed, such as `spec.colour` or `spec.list[0].x`.
pub fn prune(value: &mut Value, ty: TypeRef<'_>) -> Vec<String> {
    let mut removed = Vec::new();
    prune_at(value, ty, "", &mut removed);
    removed
}

fn prune_at(value: &mut Value, ty: TypeRef<'_>, path: &str, removed: &mut Vec<String>) {
    match (value, ty.kind()) {
        (Value::Object(map), TypeKind::Object | TypeKind::Map) => prune_map(map, ty, path, removed),
        (Value::Array(list), TypeKind::List) => {
            let Some(items) = ty.items() else { return };
            if matches!(items.kind(), TypeKind::Scalar(_) | TypeKind::Any) {
                return;
            }
            for (i, item) in list.iter_mut().enumerate() {
                prune_at(item, items, &format!("{path}[{i}]"), removed);
            }
        }
        _ => {}
    }
}

fn prune_map(map: &mut Map<String, Value>, ty: TypeRef<'_>, path: &str, removed: &mut Vec<String>) {
    let unknown: Vec<String> = map.keys().filter(|k| ty.field(k).is_none()).cloned().collect();
    for key in unknown {
        map.remove(&key);
        removed.push(join(path, &key));
    }
    for (key, value) in map.iter_mut() {
        if let (Value::Object(_) | Value::Array(_), Some(field)) = (&*value, ty.field(key)) {
            prune_at(value, field, &join(path, key), removed);
        }
    }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

/// Fills in defaults of fields that are absent, and of fields that are null but may not be.
pub fn apply_defaults(value: &mut Value, ty: TypeRef<'_>) {
    match (value, ty.kind()) {
        (Value::Object(map), TypeKind::Object | TypeKind::Map) => {
            for (name, field) in ty.fields() {
                let absent = match map.get(name) {
                    None => true,
                    Some(Value::Null) => !field.nullable(),
                    Some(_) => false,
                };
                if let (true, Some(default)) = (absent, field.default()) {
                    map.insert(name.to_owned(), default.clone());
                }
            }
            for (key, value) in map.iter_mut() {
                if let (Value::Object(_) | Value::Array(_), Some(field)) = (&*value, ty.field(key)) {
                    apply_defaults(value, field);
                }
            }
        }
        (Value::Array(list), TypeKind::List) => {
            if let Some(items) = ty.items() {
                list.iter_mut().for_each(|item| apply_defaults(item, items));
            }
        }
        _ => {}
    }
}
