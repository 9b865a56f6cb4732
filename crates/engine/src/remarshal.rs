//! An object as Go encodes it after decoding it into a type: without empty values, and with
//! canonical quantities.
//!
//! Main function: [`remarshal`]. Without it, `hostNetwork: false` in Git would always be drift,
//! because no API server returns it.

mod time;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Map, Value};
use std::{borrow::Cow, collections::HashMap, sync::OnceLock};
use tiphys_apimachinery::{
    quantity,
    schema::{ScalarKind, TypeKind, TypeRef},
};

const QUANTITY: &str = "io.k8s.apimachinery.pkg.api.resource.Quantity";
const MICRO_TIME: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime";
const GO_FIELDS: &str = include_str!("diff/go_fields.txt");

/// How Go encodes the fields of a type.
struct GoFields {
    /// Plain values that are omitted when zero.
    omitted: Vec<&'static str>,
    /// Lists, maps and pointers that are encoded even when empty.
    kept: Vec<&'static str>,
}

fn go_fields(name: &str) -> Option<&'static GoFields> {
    static TABLE: OnceLock<HashMap<String, GoFields>> = OnceLock::new();
    let table = TABLE.get_or_init(|| {
        let lines = GO_FIELDS.lines().filter(|l| !l.starts_with('#'));
        let read = |line: &'static str| {
            let (name, fields) = line.split_once('|')?;
            let (omitted, kept) = fields.split_once('|')?;
            let full = match name.split_at(1) {
                ("~", rest) => format!("io.k8s.api.{rest}"),
                ("^", rest) => format!("io.k8s.apimachinery.pkg.apis.meta.v1.{rest}"),
                _ => name.to_owned(),
            };
            Some((
                full,
                GoFields {
                    omitted: omitted.split(' ').collect(),
                    kept: kept.split(' ').collect(),
                },
            ))
        };
        lines.filter_map(read).collect()
    });
    table.get(name)
}

/// `None` if the object cannot be decoded into the type: a field is unknown, or has a value of the
/// wrong type. Such an object is compared unchanged.
pub fn remarshal(object: &Value, ty: TypeRef<'_>) -> Option<Value> {
    value(object, ty, true).map(Cow::into_owned)
}

/// Like [`remarshal`], but drops unknown fields.
pub fn lenient(object: &Value, ty: TypeRef<'_>) -> Option<Value> {
    value(object, ty, false).map(Cow::into_owned)
}

/// Whether an object can be decoded into the type, ignoring unknown fields.
pub fn is_readable(object: &Value, ty: TypeRef<'_>) -> bool {
    value(object, ty, false).is_some()
}

/// Whether Go omits this plain value of a type because it is zero.
pub fn is_omitted_zero(ty: TypeRef<'_>, field: &str, value: &Value) -> bool {
    let fields = ty.name().and_then(go_fields);
    is_zero(value) && fields.is_some_and(|names| names.omitted.contains(&field))
}

fn value<'a>(value: &'a Value, ty: TypeRef<'_>, strict: bool) -> Option<Cow<'a, Value>> {
    if value.is_null() {
        return Some(Cow::Borrowed(value));
    }
    match ty.kind() {
        TypeKind::Object => object(value.as_object()?, ty, strict).map(Cow::Owned),
        TypeKind::Map => {
            let values = ty.values();
            let mut out = Map::new();
            for (key, v) in value.as_object()? {
                let v = values.map_or(Some(Cow::Borrowed(v)), |values| {
                    self::value(v, values, strict)
                })?;
                let text = matches!(
                    values.map(|t| (t.kind(), t.format())),
                    Some((TypeKind::Scalar(ScalarKind::String), None))
                );
                out.insert(
                    key.clone(),
                    if v.is_null() && text {
                        "".into()
                    } else {
                        v.into_owned()
                    },
                );
            }
            Some(Cow::Owned(out.into()))
        }
        TypeKind::List => {
            let items = value.as_array()?;
            let Some(ty) = ty.items() else {
                return Some(Cow::Borrowed(value));
            };
            let items: Option<Vec<Value>> = items
                .iter()
                .map(|i| self::value(i, ty, strict).map(Cow::into_owned))
                .collect();
            items.map(|items| Cow::Owned(items.into()))
        }
        TypeKind::Scalar(kind) => scalar(value, kind, ty),
        TypeKind::Any => Some(Cow::Borrowed(value)),
    }
}

fn scalar<'a>(value: &'a Value, kind: ScalarKind, ty: TypeRef<'_>) -> Option<Cow<'a, Value>> {
    if ty.name() == Some(QUANTITY) {
        let text = match value {
            Value::String(text) => quantity::kept(text).ok(),
            other => quantity::canonical(other),
        };
        return text.map(|text| Cow::Owned(text.into()));
    }
    if ty.format() == Some("date-time") {
        let micro = ty.name() == Some(MICRO_TIME);
        return time::rewritten(value.as_str()?, micro).map(Cow::Owned);
    }
    let fits = match kind {
        ScalarKind::String if ty.format() == Some("byte") => STANDARD
            .decode(value.as_str()?.replace(['\n', '\r'], ""))
            .is_ok(),
        ScalarKind::String => value.is_string(),
        ScalarKind::Integer => value.is_i64() || value.is_u64(),
        ScalarKind::Number => value.is_number(),
        ScalarKind::Boolean => value.is_boolean(),
        ScalarKind::IntOrString => value.is_string() || value.is_i64(),
    };
    fits.then_some(Cow::Borrowed(value))
}

fn object(map: &Map<String, Value>, ty: TypeRef<'_>, strict: bool) -> Option<Value> {
    let names = ty.name().and_then(go_fields);
    let mut out = Map::new();
    for (key, v) in map {
        let Some(field) = ty.field(key) else {
            if strict {
                return None;
            }
            continue;
        };
        let mut written = value(v, field, strict)?;
        if written.is_null() && ty.is_required(key) {
            // A plain value cannot be null; a required field that is not set is zero.
            match field.kind() {
                TypeKind::Scalar(ScalarKind::String) if field.format().is_none() => {
                    written = Cow::Owned("".into())
                }
                TypeKind::Scalar(ScalarKind::Boolean) => written = Cow::Owned(false.into()),
                TypeKind::Scalar(ScalarKind::Integer) => written = Cow::Owned(0.into()),
                _ => {}
            }
        }
        let keep = match &*written {
            Value::Null => names.is_some_and(|n| n.kept.contains(&key.as_str())),
            Value::Array(list) if list.is_empty() => {
                names.is_some_and(|n| n.kept.contains(&key.as_str()))
            }
            Value::Object(m) if m.is_empty() && field.kind() == TypeKind::Map => {
                names.is_some_and(|n| n.kept.contains(&key.as_str()))
            }
            other => !(is_zero(other) && names.is_some_and(|n| n.omitted.contains(&key.as_str()))),
        };
        if keep {
            out.insert(key.clone(), written.into_owned());
        }
    }
    Some(out.into())
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::String(text) => text.is_empty(),
        Value::Bool(flag) => !flag,
        Value::Number(n) => n.as_f64() == Some(0.0),
        _ => false,
    }
}

/// Removes every field from `live` that `config` does not have. List elements are matched by index;
/// those beyond the end of `config`'s list stay.
pub fn remove_unnamed(config: &Value, live: &Value) -> Value {
    match (config, live) {
        (Value::Object(config), Value::Object(live)) => {
            let both = config
                .iter()
                .filter_map(|(key, c)| Some((key.clone(), remove_unnamed(c, live.get(key)?))));
            Value::Object(both.collect())
        }
        (Value::Array(config), Value::Array(live)) => {
            let pairs = live.iter().enumerate().map(|(i, l)| {
                config
                    .get(i)
                    .map_or_else(|| l.clone(), |c| remove_unnamed(c, l))
            });
            Value::Array(pairs.collect())
        }
        _ => live.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tiphys_apimachinery::schema;

    /// A spec as Argo CD's comparison sees it; `None` if Go cannot read the object.
    fn written(api_version: &str, kind: &str, spec: &Value) -> Option<Value> {
        let object = json!({"apiVersion": api_version, "kind": kind, "spec": spec});
        let gvk = tiphys_apimachinery::Object::from_value(object.clone())
            .expect("a map")
            .gvk();
        let ty = schema::builtin().type_for(&gvk).expect("a known kind");
        remarshal(&object, ty).map(|object| object["spec"].clone())
    }

    /// All results are those of Argo CD's `remarshal`.
    #[test]
    fn times_are_written_in_utc_and_wrong_ones_leave_the_object_as_it_is() {
        let node = |time: &str| {
            let taints = json!([{"effect": "NoExecute", "key": "a", "timeAdded": time}]);
            let spec = written("v1", "Node", &json!({"taints": taints}))?;
            Some(spec["taints"][0]["timeAdded"].clone())
        };
        for given in [
            "2024-01-01T00:00:00Z",
            "2024-01-01T02:00:00+02:00",
            "2024-01-01T00:00:00.75Z",
            "2023-12-31T23:30:00-00:30",
        ] {
            assert_eq!(node(given), Some(json!("2024-01-01T00:00:00Z")), "{given}");
        }
        for given in [
            "2024-01-01",
            "2024-01-01T00:00Z",
            "2024-01-01 00:00:00Z",
            "2024-01-01T00:00:00",
            "2024-13-01T00:00:00Z",
            "2024-01-01T00:00:60Z",
            "100m",
            "é",
        ] {
            assert_eq!(node(given), None, "{given}");
        }
        assert_eq!(
            node("9999-12-31T23:59:59Z"),
            Some(json!("9999-12-31T23:59:59Z"))
        );
        let lease = |time: &str| {
            let spec = json!({"renewTime": time});
            let spec = written("coordination.k8s.io/v1", "Lease", &spec)?;
            Some(spec["renewTime"].clone())
        };
        assert_eq!(
            lease("2024-01-01T02:00:00.123456+02:00"),
            Some(json!("2024-01-01T00:00:00.123456Z"))
        );
        assert_eq!(
            lease("2024-01-01T00:00:00.000000Z"),
            Some(json!("2024-01-01T00:00:00.000000Z"))
        );
        assert_eq!(lease("2024-01-01T00:00:00Z"), None);
        assert_eq!(lease("2024-01-01T00:00:00.123Z"), None);
    }

    #[test]
    fn quantities_stay_as_the_api_server_keeps_them() {
        for (given, want) in [("+5", "+5"), ("5.", "5."), ("0.5", "500m"), ("1000m", "1")] {
            let hard = json!({"hard": {"pods": given}});
            let spec = written("v1", "ResourceQuota", &hard).expect("readable");
            assert_eq!(spec["hard"]["pods"], want, "{given}");
        }
    }
}
