//! Parses OpenAPI documents, and the schemas in CRDs, into a [`Schema`].

use super::{
    Attributes, ListType, MapType, ScalarKind, Schema, SchemaError, Shape, Str, builder::Builder,
};
use crate::gvk::Gvk;
use serde_json::{Map, Value};

/// Deepest nesting of one definition.
const MAX_DEPTH: usize = 200;

pub(super) fn read(document: &Value) -> Result<Schema, SchemaError> {
    let definitions = document
        .pointer("/components/schemas")
        .or_else(|| document.get("definitions"))
        .and_then(Value::as_object);
    let definitions =
        definitions.ok_or_else(|| invalid("components.schemas", "it is missing, or not a map"))?;
    let mut reader = Reader::default();
    for (name, schema) in definitions {
        let node = reader.node(schema, name, 0)?;
        reader
            .builder
            .define(name.clone().into(), node, gvks(schema));
    }
    reader.builder.finish()
}

/// Any JSON; structured merge treats it as atomic although no document says so.
const RAW: &str = "io.k8s.apimachinery.pkg.runtime.RawExtension";

pub(super) fn invalid(path: &str, reason: &str) -> SchemaError {
    SchemaError::Invalid {
        path: path.to_owned(),
        reason: reason.to_owned(),
    }
}

fn gvks(schema: &Value) -> Vec<Gvk> {
    let list = schema
        .get("x-kubernetes-group-version-kind")
        .and_then(Value::as_array);
    let text = |v: &Value, key: &str| v.get(key).and_then(Value::as_str).unwrap_or("").to_owned();
    list.map(|l| {
        l.iter()
            .map(|v| Gvk {
                group: text(v, "group"),
                version: text(v, "version"),
                kind: text(v, "kind"),
            })
            .collect()
    })
    .unwrap_or_default()
}

#[derive(Default)]
pub(super) struct Reader {
    pub(super) builder: Builder,
    /// The schema belongs to a CRD: objects without named fields lose their fields when pruned, and
    /// embedded objects have metadata.
    pub(super) structural: bool,
    /// An enclosing object preserves unknown fields.
    pub(super) within_preserved: bool,
}

impl Reader {
    pub(super) fn node(
        &mut self,
        schema: &Value,
        path: &str,
        depth: usize,
    ) -> Result<u32, SchemaError> {
        if depth > MAX_DEPTH {
            return Err(SchemaError::TooLarge {
                what: "levels",
                limit: MAX_DEPTH,
            });
        }
        let Some(map) = schema.as_object() else {
            // `true` and `{}` allow everything.
            return if schema == &Value::Bool(true) {
                self.builder.node(Shape::Any, None)
            } else {
                Err(invalid(path, "it must be a map"))
            };
        };
        let mut attributes = attributes(map);
        if path == RAW {
            attributes.get_or_insert_default().map_type = Some(MapType::Atomic);
        }
        let around = self.within_preserved;
        if around && map.contains_key("properties") {
            attributes.get_or_insert_default().within_preserved = true;
        }
        self.within_preserved |= attributes.as_ref().is_some_and(|a| a.preserve_unknown);
        let shape = self.shape(map, attributes.as_ref(), path, depth);
        self.within_preserved = around;
        self.builder.node(shape?, attributes)
    }

    fn shape(
        &mut self,
        map: &Map<String, Value>,
        attributes: Option<&Attributes>,
        path: &str,
        depth: usize,
    ) -> Result<Shape, SchemaError> {
        if let Some(name) = reference(map) {
            return Ok(self.builder.reference(Str::from(name.to_owned())));
        }
        let int_or_string = map.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true))
            || map.get("format").and_then(Value::as_str) == Some("int-or-string");
        if int_or_string || path == "io.k8s.apimachinery.pkg.api.resource.Quantity" {
            return Ok(Shape::Scalar(ScalarKind::IntOrString));
        }
        match map.get("type").and_then(Value::as_str) {
            Some("string") => Ok(Shape::Scalar(ScalarKind::String)),
            Some("integer") => Ok(Shape::Scalar(ScalarKind::Integer)),
            Some("number") => Ok(Shape::Scalar(ScalarKind::Number)),
            Some("boolean") => Ok(Shape::Scalar(ScalarKind::Boolean)),
            Some("array") => match map.get("items") {
                Some(items) => Ok(Shape::List(self.node(
                    items,
                    &format!("{path}[]"),
                    depth + 1,
                )?)),
                None => Ok(Shape::List(self.builder.node(Shape::Any, None)?)),
            },
            Some("object") => self.object(map, attributes, path, depth),
            None if map.contains_key("properties") => self.object(map, attributes, path, depth),
            _ => Ok(Shape::Any),
        }
    }

    fn object(
        &mut self,
        map: &Map<String, Value>,
        attributes: Option<&Attributes>,
        path: &str,
        depth: usize,
    ) -> Result<Shape, SchemaError> {
        let preserves = attributes.is_some_and(|a| a.preserve_unknown);
        let embedded = self.structural && attributes.is_some_and(|a| a.embedded_resource);
        let properties = map.get("properties").and_then(Value::as_object);
        let values = map
            .get("additionalProperties")
            .filter(|v| v.is_object() || *v == &Value::Bool(true));
        let rest = match values {
            Some(values) => Some(self.node(values, &format!("{path}.*"), depth + 1)?),
            None if preserves => Some(self.builder.node(Shape::Any, None)?),
            None => None,
        };
        let required: Vec<&str> = map
            .get("required")
            .and_then(Value::as_array)
            .map(|l| l.iter().filter_map(Value::as_str).collect())
            .unwrap_or_default();
        let mut fields = Vec::new();
        for (name, schema) in properties.into_iter().flatten() {
            if (embedded || (self.structural && depth == 0)) && name == "metadata" {
                continue;
            }
            let node = self.node(schema, &format!("{path}.{name}"), depth + 1)?;
            fields.push((
                Str::from(name.clone()),
                node,
                required.contains(&name.as_str()),
            ));
        }
        if embedded || (self.structural && depth == 0) {
            self.add_object_fields(&mut fields)?;
        }
        Ok(match (fields.is_empty(), rest) {
            (true, Some(values)) => Shape::Map(values),
            // Outside of CRDs an object without any declaration may contain anything.
            (true, None) if !self.structural && properties.is_none() => Shape::Any,
            (_, rest) => self.builder.object(fields, rest),
        })
    }

    /// Adds apiVersion, kind and metadata, which every object has whatever its schema declares.
    fn add_object_fields(&mut self, fields: &mut Vec<(Str, u32, bool)>) -> Result<(), SchemaError> {
        for name in ["apiVersion", "kind"] {
            if !fields.iter().any(|(n, ..)| n == name) {
                fields.push((
                    name.into(),
                    self.builder.node(Shape::Scalar(ScalarKind::String), None)?,
                    false,
                ));
            }
        }
        let builtin = super::builtin();
        let shape = match builtin
            .by_name
            .get("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta")
        {
            Some(definition) => Shape::Builtin(*definition),
            None => Shape::Any,
        };
        fields.push(("metadata".into(), self.builder.node(shape, None)?, false));
        Ok(())
    }
}

/// The name in `$ref`, also if it is wrapped in a one-element `allOf`, as in OpenAPI v3.
fn reference(map: &Map<String, Value>) -> Option<&str> {
    let direct = map.get("$ref").and_then(Value::as_str);
    let wrapped = || match map
        .get("allOf")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
    {
        Some([one]) => one.get("$ref").and_then(Value::as_str),
        _ => None,
    };
    direct
        .or_else(wrapped)
        .map(|r| r.rsplit('/').next().unwrap_or(r))
}

fn attributes(map: &Map<String, Value>) -> Option<Attributes> {
    let text = |key: &str| {
        map.get(key)
            .and_then(Value::as_str)
            .map(|s| Str::from(s.to_owned()))
    };
    let flag = |key: &str| map.get(key) == Some(&Value::Bool(true));
    let keys = map
        .get("x-kubernetes-list-map-keys")
        .and_then(Value::as_array);
    let attributes = Attributes {
        list_type: match map.get("x-kubernetes-list-type").and_then(Value::as_str) {
            Some("map") => Some(ListType::Map),
            Some("set") => Some(ListType::Set),
            Some("atomic") => Some(ListType::Atomic),
            _ => None,
        },
        list_map_keys: keys
            .map(|l| {
                l.iter()
                    .filter_map(|k| k.as_str().map(|k| Str::from(k.to_owned())))
                    .collect()
            })
            .unwrap_or_default(),
        map_type: match map.get("x-kubernetes-map-type").and_then(Value::as_str) {
            Some("atomic") => Some(MapType::Atomic),
            Some(_) => Some(MapType::Granular),
            None => None,
        },
        patch_strategy: text("x-kubernetes-patch-strategy"),
        patch_merge_key: text("x-kubernetes-patch-merge-key"),
        format: text("format"),
        default: map.get("default").cloned(),
        enum_values: map
            .get("enum")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default(),
        nullable: flag("nullable"),
        preserve_unknown: flag("x-kubernetes-preserve-unknown-fields"),
        within_preserved: false,
        embedded_resource: flag("x-kubernetes-embedded-resource"),
        plain_struct: false,
        left_out: false,
    };
    let says_something = attributes.list_type.is_some()
        || attributes.map_type.is_some()
        || attributes.patch_strategy.is_some()
        || attributes.patch_merge_key.is_some()
        || attributes.format.is_some()
        || attributes.default.is_some()
        || !attributes.enum_values.is_empty()
        || attributes.nullable
        || attributes.preserve_unknown
        || attributes.embedded_resource;
    says_something.then_some(attributes)
}
