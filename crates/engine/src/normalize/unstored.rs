//! What an API server does not store: nulls and, in typed fields, empty maps and lists, and with
//! `omitempty` zero values that are not behind a pointer.
//!
//! Main functions: [`prepare`], for what is applied, and [`canonical`], for comparing. Storing an
//! empty value and omitting the field are equivalent.

use crate::{normalize::secret, remarshal};
use serde_json::{Map, Value};
use tiphys_apimachinery::{
    Gvk, Object,
    schema::{self, TypeKind, TypeRef},
};

const SCHEMA: &str = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps";
const METADATA: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// Removes from a desired object what an API server would store differently, or differently each
/// time it is applied: null as the value of a map's key (`""` on create, no key on patch), null in
/// the metadata, and `stringData`, which is write-only, so that a key removed from it would stay in
/// `data`. A null field elsewhere stays, because a patch uses it to remove the live value.
pub fn prepare(object: &mut Object) {
    if secret::is_secret(object) {
        fold_string_data(object);
    }
    let ty = schema::builtin().type_for(&object.gvk());
    if let Some(Value::Object(metadata)) = object.0.get_mut("metadata") {
        metadata.retain(|_, value| !value.is_null());
        if ty.is_none() {
            // A JSON merge patch of such a kind would overwrite the whole list, again on every
            // sync.
            metadata.retain(|field, value| {
                !matches!(field.as_str(), "finalizers" | "ownerReferences") || !is_empty_list(value)
            });
        }
        if let Some(ty) = schema::builtin().definition(METADATA) {
            drop_null_keys(metadata, ty);
        }
    }
    if let Some(ty) = ty {
        drop_null_keys(&mut object.0, ty);
    }
}

/// Only if all values are strings; otherwise the API server must refuse them with its own message.
fn fold_string_data(secret: &mut Object) {
    let Some(Value::Object(plain)) = secret.0.get_mut("stringData") else {
        return;
    };
    plain.retain(|_, value| !value.is_null());
    if plain.values().all(Value::is_string) {
        secret::fold_string_data(secret);
    }
}

fn is_empty_list(value: &Value) -> bool {
    value.as_array().is_some_and(Vec::is_empty)
}

fn drop_null_keys(map: &mut Map<String, Value>, ty: TypeRef<'_>) {
    if ty.kind() == TypeKind::Map {
        map.retain(|_, value| !value.is_null());
    }
    for (key, value) in map.iter_mut() {
        match (value, ty.field(key)) {
            (Value::Object(inner), Some(field)) => drop_null_keys(inner, field),
            (Value::Array(list), Some(field)) => {
                let Some(items) = field.items() else { continue };
                list.iter_mut()
                    .filter_map(Value::as_object_mut)
                    .for_each(|item| drop_null_keys(item, items));
            }
            _ => {}
        }
    }
}

/// A document of this kind without what the API server does not store. If two of them are equal, an
/// apply would change nothing.
pub fn canonical(document: &Value, gvk: &Gvk) -> Value {
    let Value::Object(map) = document else {
        return document.clone();
    };
    if let Some(ty) = schema::builtin().type_for(gvk) {
        return Value::Object(stored(map, Some(ty)));
    }
    let mut out = stored(map, None);
    if let (Some(Value::Object(metadata)), Some(ty)) =
        (map.get("metadata"), schema::builtin().definition(METADATA))
    {
        out.insert("metadata".into(), Value::Object(stored(metadata, Some(ty))));
    }
    Value::Object(out)
}

fn stored(map: &Map<String, Value>, ty: Option<TypeRef<'_>>) -> Map<String, Value> {
    let keep = |(key, value): (&String, &Value)| {
        let field = ty.and_then(|ty| ty.field(key));
        let value = stored_value(value, field);
        let empty = match &value {
            Value::Null => true,
            // Stored as protobuf, an empty list or map cannot be told from one that is missing,
            // even where Go writes it (`rules: null`).
            Value::Array(list) => {
                list.is_empty() && field.is_some_and(|f| f.kind() == TypeKind::List)
            }
            // A struct that is not a pointer is always present.
            Value::Object(map) => {
                map.is_empty()
                    && field.is_some_and(|f| f.kind() == TypeKind::Map || f.is_plain_struct())
            }
            other => ty.is_some_and(|ty| remarshal::is_omitted_zero(ty, key, other)),
        };
        // The keys of a map are stored whatever their values are.
        let in_map = !value.is_null() && ty.is_some_and(|ty| ty.kind() == TypeKind::Map);
        (!empty || in_map).then(|| (key.clone(), value))
    };
    map.iter().filter_map(keep).collect()
}

fn stored_value(value: &Value, ty: Option<TypeRef<'_>>) -> Value {
    let ty = ty.map(|ty| nested_schema(ty).unwrap_or(ty));
    match value {
        Value::Object(map) => Value::Object(stored(map, ty)),
        Value::Array(list) => {
            let items = ty.and_then(|ty| ty.items());
            Value::Array(list.iter().map(|item| stored_value(item, items)).collect())
        }
        other => other.clone(),
    }
}

/// The type of what `items` and `additionalProperties` of a CRD's schema hold besides lists and
/// booleans.
fn nested_schema(ty: TypeRef<'_>) -> Option<TypeRef<'static>> {
    let name = ty.name()?;
    let either = ["OrArray", "OrBool", "OrStringArray"];
    (name.starts_with(SCHEMA) && either.contains(&&name[SCHEMA.len()..]))
        .then(|| schema::builtin().definition(SCHEMA))?
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(value: Value) -> Object {
        Object::from_value(value).expect("a map")
    }

    #[test]
    fn what_is_applied_has_no_nulls_that_are_stored_as_something_else() {
        let rows = [
            // One key alone; the others stay.
            (
                json!({"apiVersion": "v1", "kind": "Service", "metadata": {"annotations": {"a": "1", "b": null}, "labels": {"c": null}}}),
                json!({"apiVersion": "v1", "kind": "Service", "metadata": {"annotations": {"a": "1"}, "labels": {}}}),
            ),
            (
                json!({"apiVersion": "x.io/v1", "kind": "X", "metadata": {"labels": {"a": null, "b": "1"}, "finalizers": [], "ownerReferences": null}, "spec": {"a": null}}),
                json!({"apiVersion": "x.io/v1", "kind": "X", "metadata": {"labels": {"b": "1"}}, "spec": {"a": null}}),
            ),
            // A typed field that is null removes the live value; null for a map's key has a
            // different effect on create and patch.
            (
                json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"strategy": {"type": "Recreate", "rollingUpdate": null},
                    "template": {"metadata": {"labels": {"a": "1", "b": null}}, "spec": {"nodeSelector": {"x": null}}}}}),
                json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"strategy": {"type": "Recreate", "rollingUpdate": null},
                    "template": {"metadata": {"labels": {"a": "1"}}, "spec": {"nodeSelector": {}}}}}),
            ),
            (
                json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": null, "b": ""}}),
                json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"b": ""}}),
            ),
            (
                json!({"apiVersion": "v1", "kind": "Secret", "data": {"a": "eA==", "b": null}, "stringData": {"c": "y", "d": null}}),
                json!({"apiVersion": "v1", "kind": "Secret", "data": {"a": "eA==", "c": "eQ=="}}),
            ),
            // The API server must refuse it with its own message.
            (
                json!({"apiVersion": "v1", "kind": "Secret", "stringData": {"c": 1, "d": "x"}}),
                json!({"apiVersion": "v1", "kind": "Secret", "stringData": {"c": 1, "d": "x"}}),
            ),
        ];
        for (given, want) in rows {
            let mut got = object(given.clone());
            prepare(&mut got);
            assert_eq!(Value::Object(got.0), want, "{given}");
        }
    }

    #[test]
    fn what_the_api_server_does_not_store_is_the_same_as_nothing() {
        let custom = |fields: Value| json!({"apiVersion": "x.io/v1", "kind": "X", "metadata": {"name": "x"}, "spec": fields});
        let same = |a: &Value, b: &Value| {
            let gvk = object(a.clone()).gvk();
            canonical(a, &gvk) == canonical(b, &gvk)
        };
        for (name, value) in [
            ("labels", json!({})),
            ("annotations", json!({})),
            ("finalizers", json!([])),
            ("ownerReferences", json!([])),
            ("creationTimestamp", Value::Null),
        ] {
            let mut with = custom(json!({}));
            with["metadata"][name] = value;
            assert!(same(&with, &custom(json!({}))), "{name}");
        }
        assert!(same(
            &custom(json!({"a": null, "b": [{"c": null}]})),
            &custom(json!({"b": [{}]}))
        ));
        // A custom resource keeps empty values.
        for empty in [json!([]), json!({}), json!("")] {
            assert!(
                !same(&custom(json!({"a": empty})), &custom(json!({}))),
                "{empty}"
            );
        }
        let definition = |names: Value| json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "spec": {"names": names}});
        assert!(same(
            &definition(json!({"shortNames": [], "categories": null})),
            &definition(json!({}))
        ));
        assert!(!same(
            &definition(json!({"shortNames": ["a"]})),
            &definition(json!({}))
        ));
        let schema = |schema: Value| {
            definition(json!({"x": 1})).as_object().cloned().map(|mut d| {
                d["spec"] = json!({"preserveUnknownFields": false, "versions": [{"name": "v1", "deprecated": false,
                    "schema": {"openAPIV3Schema": {"properties": {"a": {"items": {"additionalProperties": schema}}}}}}]});
                Value::Object(d)
            }).expect("a map")
        };
        let bare = {
            let mut bare = schema(json!({"type": "string"}));
            bare["spec"]
                .as_object_mut()
                .map(|s| s.remove("preserveUnknownFields"));
            bare["spec"]["versions"][0]
                .as_object_mut()
                .map(|s| s.remove("deprecated"));
            bare
        };
        for (name, value, dropped) in [
            ("description", json!(""), true),
            ("nullable", json!(false), true),
            ("uniqueItems", json!(false), true),
            ("x-kubernetes-int-or-string", json!(false), true),
            ("enum", json!([]), true),
            ("required", json!([]), true),
            ("properties", json!({}), true),
            // Behind pointers, and raw JSON.
            ("x-kubernetes-preserve-unknown-fields", json!(false), false),
            ("minLength", json!(0), false),
            ("default", json!([]), false),
            ("default", json!(false), false),
            ("default", json!(""), false),
        ] {
            let mut with = json!({"type": "string"});
            with[name] = value;
            assert_eq!(same(&schema(with), &bare), dropped, "{name}");
        }
        let range = |limits: Value| json!({"apiVersion": "v1", "kind": "LimitRange", "spec": {"limits": limits}});
        assert!(same(&range(json!([])), &range(Value::Null)));
        let role = |rules: Value| json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "rules": rules});
        assert!(same(&role(json!([])), &role(Value::Null)));
        // A pointer to a struct is stored even if empty; an empty string in a map is a value.
        let pod = |spec: Value| json!({"apiVersion": "v1", "kind": "Pod", "spec": spec});
        assert!(!same(&pod(json!({"securityContext": {}})), &pod(json!({}))));
        assert!(same(
            &pod(json!({"containers": [{"name": "c", "resources": {}}]})),
            &pod(json!({"containers": [{"name": "c"}]}))
        ));
        assert!(same(
            &pod(json!({"tolerations": [], "nodeSelector": {}, "volumes": null})),
            &pod(json!({}))
        ));
        assert!(!same(
            &pod(json!({"nodeSelector": {"a": ""}})),
            &pod(json!({}))
        ));
        let secret = |data: Value| json!({"apiVersion": "v1", "kind": "Secret", "data": data});
        assert!(!same(&secret(json!({"a": ""})), &secret(json!({}))));
    }
}
