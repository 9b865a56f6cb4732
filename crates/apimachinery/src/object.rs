//! A Kubernetes object of any kind.

use crate::{gvk::Gvk, key::ResourceKey};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// A JSON object with accessors for what every Kubernetes object has. Keys are sorted, as Go prints
/// maps.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Object(pub Map<String, Value>);

/// Why a JSON value is not a Kubernetes object.
#[derive(Debug, thiserror::Error, Clone, PartialEq, Eq)]
pub enum ObjectError {
    #[error("a Kubernetes object must be a map, not {0}")]
    NotAMap(&'static str),
    #[error("field `{0}` is missing")]
    Missing(&'static str),
    #[error("field `{0}` must be a string")]
    NotAString(&'static str),
}

/// An entry of `metadata.ownerReferences`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OwnerReference {
    pub api_version: String,
    pub kind: String,
    pub name: String,
    pub uid: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub controller: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block_owner_deletion: Option<bool>,
}

impl Object {
    /// Accepts a JSON map without further checks; see [`Object::check_identity`].
    pub fn from_value(value: Value) -> Result<Self, ObjectError> {
        match value {
            Value::Object(map) => Ok(Self(map)),
            Value::Null => Err(ObjectError::NotAMap("null")),
            Value::Array(_) => Err(ObjectError::NotAMap("a list")),
            _ => Err(ObjectError::NotAMap("a scalar")),
        }
    }

    pub fn into_value(self) -> Value {
        Value::Object(self.0)
    }

    /// A copy without `metadata.managedFields`, which is often the larger part of an object.
    pub fn without_managers(&self) -> Self {
        let but_managers = |metadata: &Map<String, Value>| {
            metadata
                .iter()
                .filter(|(key, _)| *key != "managedFields")
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect()
        };
        let part = |(key, value): (&String, &Value)| match value {
            Value::Object(metadata) if key == "metadata" => {
                (key.clone(), Value::Object(but_managers(metadata)))
            }
            _ => (key.clone(), value.clone()),
        };
        Self(self.0.iter().map(part).collect())
    }

    /// An object with only apiVersion, kind, namespace (omitted if empty) and name.
    pub fn skeleton(gvk: &Gvk, namespace: &str, name: &str) -> Self {
        let mut o = Self::default();
        o.0.insert("apiVersion".into(), gvk.api_version().into());
        o.0.insert("kind".into(), gvk.kind.clone().into());
        o.set_name(name);
        o.set_namespace(namespace);
        o
    }

    /// Checks that apiVersion and kind are non-empty strings, and that name and generateName, if
    /// present, are strings. Whether one of these is required depends on the operation.
    pub fn check_identity(&self) -> Result<(), ObjectError> {
        for field in ["apiVersion", "kind"] {
            match self.0.get(field) {
                Some(Value::String(s)) if !s.is_empty() => {}
                None | Some(Value::Null | Value::String(_)) => {
                    return Err(ObjectError::Missing(field));
                }
                Some(_) => return Err(ObjectError::NotAString(field)),
            }
        }
        let names = [
            ("name", "metadata.name"),
            ("generateName", "metadata.generateName"),
        ];
        let broken = |(field, _): &(&str, _)| {
            self.metadata(field)
                .is_some_and(|v| !v.is_null() && !v.is_string())
        };
        names
            .into_iter()
            .find(broken)
            .map_or(Ok(()), |(_, field)| Err(ObjectError::NotAString(field)))
    }

    fn str_of(value: Option<&Value>) -> &str {
        value.and_then(Value::as_str).unwrap_or("")
    }

    pub fn api_version(&self) -> &str {
        Self::str_of(self.0.get("apiVersion"))
    }

    pub fn kind(&self) -> &str {
        Self::str_of(self.0.get("kind"))
    }

    pub fn gvk(&self) -> Gvk {
        Gvk::from_api_version(self.api_version(), self.kind())
    }

    pub fn group(&self) -> &str {
        crate::gvk::split_api_version(self.api_version()).0
    }

    pub fn key(&self) -> ResourceKey {
        ResourceKey::new(self.group(), self.kind(), self.namespace(), self.name())
    }

    /// A field of `metadata`.
    pub fn metadata(&self, field: &str) -> Option<&Value> {
        self.0.get("metadata").and_then(|m| m.get(field))
    }

    /// `metadata` as a map, created if it is absent (or not a map).
    pub fn metadata_mut(&mut self) -> &mut Map<String, Value> {
        map_entry(&mut self.0, "metadata")
    }

    pub fn name(&self) -> &str {
        Self::str_of(self.metadata("name"))
    }

    pub fn generate_name(&self) -> &str {
        Self::str_of(self.metadata("generateName"))
    }

    /// Empty for cluster scope.
    pub fn namespace(&self) -> &str {
        Self::str_of(self.metadata("namespace"))
    }

    pub fn uid(&self) -> &str {
        Self::str_of(self.metadata("uid"))
    }

    pub fn resource_version(&self) -> &str {
        Self::str_of(self.metadata("resourceVersion"))
    }

    pub fn generation(&self) -> i64 {
        self.metadata("generation")
            .and_then(Value::as_i64)
            .unwrap_or(0)
    }

    /// RFC 3339, empty when absent.
    pub fn creation_timestamp(&self) -> &str {
        Self::str_of(self.metadata("creationTimestamp"))
    }

    /// RFC 3339 of the requested deletion, if one was requested.
    pub fn deletion_timestamp(&self) -> Option<&str> {
        self.metadata("deletionTimestamp").and_then(Value::as_str)
    }

    pub fn set_name(&mut self, name: &str) {
        self.metadata_mut().insert("name".into(), name.into());
    }

    /// An empty namespace removes the field.
    pub fn set_namespace(&mut self, namespace: &str) {
        if namespace.is_empty() {
            self.metadata_mut().remove("namespace");
        } else {
            self.metadata_mut()
                .insert("namespace".into(), namespace.into());
        }
    }

    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.metadata("annotations")
            .and_then(|a| a.get(key))
            .and_then(Value::as_str)
    }

    pub fn label(&self, key: &str) -> Option<&str> {
        self.metadata("labels")
            .and_then(|a| a.get(key))
            .and_then(Value::as_str)
    }

    pub fn labels(&self) -> BTreeMap<String, String> {
        string_map(self.metadata("labels"))
    }

    pub fn annotations(&self) -> BTreeMap<String, String> {
        string_map(self.metadata("annotations"))
    }

    pub fn set_annotation(&mut self, key: &str, value: &str) {
        map_entry(self.metadata_mut(), "annotations").insert(key.into(), value.into());
    }

    pub fn set_label(&mut self, key: &str, value: &str) {
        map_entry(self.metadata_mut(), "labels").insert(key.into(), value.into());
    }

    /// Removes an annotation, and `annotations` itself if it was the last one.
    pub fn remove_annotation(&mut self, key: &str) {
        if let Some(Value::Object(m)) = self.metadata_mut().get_mut("annotations") {
            m.remove(key);
            if m.is_empty() {
                self.metadata_mut().remove("annotations");
            }
        }
    }

    pub fn finalizers(&self) -> Vec<String> {
        let list = self.metadata("finalizers").and_then(Value::as_array);
        list.map(|l| {
            l.iter()
                .filter_map(|v| v.as_str().map(str::to_owned))
                .collect()
        })
        .unwrap_or_default()
    }

    /// Replaces the finalizers; an empty list removes the field.
    pub fn set_finalizers(&mut self, finalizers: Vec<String>) {
        if finalizers.is_empty() {
            self.metadata_mut().remove("finalizers");
        } else {
            self.metadata_mut()
                .insert("finalizers".into(), finalizers.into());
        }
    }

    pub fn owner_references(&self) -> Vec<OwnerReference> {
        let list = self.metadata("ownerReferences").and_then(Value::as_array);
        list.map(|l| {
            l.iter()
                .filter_map(|v| OwnerReference::deserialize(v).ok())
                .collect()
        })
        .unwrap_or_default()
    }

    /// The owner whose `controller` is true.
    pub fn controller_of(&self) -> Option<OwnerReference> {
        self.owner_references()
            .into_iter()
            .find(|o| o.controller == Some(true))
    }

    /// The value at a JSON pointer, such as `/spec/replicas`.
    pub fn pointer(&self, pointer: &str) -> Option<&Value> {
        let (first, rest) = pointer
            .strip_prefix('/')?
            .split_once('/')
            .map_or((pointer.strip_prefix('/')?, ""), |(a, b)| (a, b));
        let first = first.replace("~1", "/").replace("~0", "~");
        let value = self.0.get(&first)?;
        if rest.is_empty() {
            Some(value)
        } else {
            value.pointer(&pointer[pointer.len() - rest.len() - 1..])
        }
    }

    /// The string at a JSON pointer, empty when absent or of another type.
    pub fn str_at(&self, pointer: &str) -> &str {
        Self::str_of(self.pointer(pointer))
    }

    /// The integer at a JSON pointer.
    pub fn i64_at(&self, pointer: &str) -> Option<i64> {
        self.pointer(pointer).and_then(Value::as_i64)
    }
}

/// Whether the value contains a null at any level.
pub fn holds_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(list) => list.iter().any(holds_null),
        Value::Object(map) => map.values().any(holds_null),
        _ => false,
    }
}

/// Whether maps and lists are nested in more than this many levels; an empty one counts as one
/// level.
pub fn is_deeper_than(value: &Value, levels: usize) -> bool {
    let below = |inner: &Value| levels == 0 || is_deeper_than(inner, levels - 1);
    match value {
        Value::Array(list) => levels == 0 || list.iter().any(below),
        Value::Object(map) => levels == 0 || map.values().any(below),
        _ => false,
    }
}

/// The map under `key`, created if it is absent or not a map.
pub fn map_entry<'a>(parent: &'a mut Map<String, Value>, key: &str) -> &'a mut Map<String, Value> {
    let slot = parent
        .entry(key)
        .or_insert_with(|| Value::Object(Map::new()));
    if !slot.is_object() {
        *slot = Value::Object(Map::new());
    }
    slot.as_object_mut()
        .expect("it was made a map on the line before")
}

fn string_map(value: Option<&Value>) -> BTreeMap<String, String> {
    let map = value.and_then(Value::as_object);
    map.map(|m| {
        m.iter()
            .filter_map(|(k, v)| v.as_str().map(|v| (k.clone(), v.to_owned())))
            .collect()
    })
    .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(v: Value) -> Object {
        Object::from_value(v).expect("a map")
    }

    #[test]
    fn accessors_read_what_is_there_and_default_for_what_is_not() {
        let mut o = object(
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "annotations": {"a/b": "1"}}, "spec": {"replicas": 3}}),
        );
        assert_eq!(o.gvk().to_string(), "apps/v1, Kind=Deployment");
        assert_eq!(o.key().to_string(), "apps/Deployment//web");
        assert_eq!(o.i64_at("/spec/replicas"), Some(3));
        assert_eq!(o.pointer("/metadata/annotations/a~1b"), Some(&json!("1")));
        o.remove_annotation("a/b");
        assert!(o.metadata("annotations").is_none());
    }

    #[test]
    fn identity_names_the_missing_field() {
        assert_eq!(
            object(json!({"kind": "A"})).check_identity(),
            Err(ObjectError::Missing("apiVersion"))
        );
        assert_eq!(
            object(json!({"apiVersion": "v1", "kind": "A"})).check_identity(),
            Ok(())
        );
        let named = |name: Value| {
            object(json!({"apiVersion": "v1", "kind": "A", "metadata": {"name": name}}))
                .check_identity()
        };
        assert_eq!(
            (named(json!(null)), named(json!(5))),
            (Ok(()), Err(ObjectError::NotAString("metadata.name")))
        );
        assert_eq!(
            object(json!({"apiVersion": "v1", "kind": "A", "metadata": {"generateName": "x-"}}))
                .check_identity(),
            Ok(())
        );
        assert_eq!(
            object(json!({"apiVersion": 1, "kind": "A"})).check_identity(),
            Err(ObjectError::NotAString("apiVersion"))
        );
    }
}
