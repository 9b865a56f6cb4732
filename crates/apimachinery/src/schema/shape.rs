//! What an API server does to a custom resource by its schema: prunes unknown fields and applies
//! defaults.
//!
//! Main functions: [`prune`], [`apply_defaults`].

use super::{TypeKind, TypeRef};
use serde_json::{Map, Value};

/// Removes fields that the type does not have. Returns the paths that were removed, such as
/// `spec.colour` or `spec.list[0].x`.
pub fn prune(value: &mut Value, ty: TypeRef<'_>) -> Vec<String> {
    let mut removed = Vec::new();
    prune_at(value, ty, &Path::Root, &mut |path| {
        removed.push(path.text(true))
    });
    removed
}

/// The same with paths as Go reports them for a decoded tree instead of JSON: without the keys of
/// maps, and sorted.
pub fn prune_tree(value: &mut Value, ty: TypeRef<'_>) -> Vec<String> {
    let mut removed = Vec::new();
    prune_at(value, ty, &Path::Root, &mut |path| {
        removed.push(path.text(false))
    });
    removed.sort();
    removed
}

/// A path that is only formatted if needed.
enum Path<'a> {
    Root,
    Field(&'a Path<'a>, &'a str),
    /// A key in a map.
    Key(&'a Path<'a>, &'a str),
    Item(&'a Path<'a>, usize),
}

impl Path<'_> {
    fn text(&self, with_keys: bool) -> String {
        match self {
            Self::Root => String::new(),
            Self::Key(of, _) if !with_keys => of.text(with_keys),
            Self::Item(of, index) => format!("{}[{index}]", of.text(with_keys)),
            Self::Field(of, name) | Self::Key(of, name) => match of.text(with_keys) {
                of if of.is_empty() => (*name).to_owned(),
                of => format!("{of}.{name}"),
            },
        }
    }
}

fn prune_at(
    value: &mut Value,
    ty: TypeRef<'_>,
    path: &Path<'_>,
    removed: &mut impl FnMut(&Path<'_>),
) {
    match (value, ty.kind()) {
        (Value::Object(map), TypeKind::Object | TypeKind::Map) => prune_map(map, ty, path, removed),
        (Value::Array(list), TypeKind::List) => {
            let Some(items) = ty.items() else { return };
            if matches!(items.kind(), TypeKind::Scalar(_) | TypeKind::Any) {
                return;
            }
            for (i, item) in list.iter_mut().enumerate() {
                prune_at(item, items, &Path::Item(path, i), removed);
            }
        }
        _ => {}
    }
}

fn prune_map(
    map: &mut Map<String, Value>,
    ty: TypeRef<'_>,
    path: &Path<'_>,
    removed: &mut impl FnMut(&Path<'_>),
) {
    let in_map = ty.kind() == TypeKind::Map;
    map.retain(|key, value| {
        let Some(field) = ty.field(key) else {
            removed(&Path::Field(path, key));
            return false;
        };
        if value.is_object() || value.is_array() {
            let at = if in_map {
                Path::Key(path, key)
            } else {
                Path::Field(path, key)
            };
            prune_at(value, field, &at, removed);
        }
        true
    });
}

/// Sets defaults for absent fields, and for null fields that are not nullable.
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
                if let (Value::Object(_) | Value::Array(_), Some(field)) = (&*value, ty.field(key))
                {
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
