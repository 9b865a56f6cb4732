//! Converts schemas to types, and objects to values. Main functions: [`of_schema`], [`value`].

use super::parser::RESERVED;
use super::time;
use super::types::{ObjectType, Type};
use super::value::{Key, List, ListKind, Map, Value};
use crate::structural::Node;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The maximum request size, which limits everything without a limit of its own.
pub const MAX_REQUEST: u64 = 3 * 1024 * 1024;

/// Keywords of the grammar, which the lexer recognizes before names.
const WORDS: [&str; 4] = ["true", "false", "null", "in"];

pub fn is_reserved(name: &str) -> bool {
    WORDS.contains(&name) || RESERVED.contains(&name)
}

/// A field's name as written in expressions; None if it cannot be written.
pub fn escaped(name: &str) -> Option<String> {
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    if is_reserved(name) {
        return Some(format!("__{name}__"));
    }
    let mut out = String::new();
    let mut rest = name;
    while let Some(c) = rest.chars().next() {
        let (taken, word) = match c {
            '_' if rest.starts_with("__") => (2, "__underscores__"),
            '.' => (1, "__dot__"),
            '-' => (1, "__dash__"),
            '/' => (1, "__slash__"),
            c if c.is_ascii_alphanumeric() || c == '_' => (1, ""),
            _ => return None,
        };
        if word.is_empty() {
            out.push(c);
        } else {
            out.push_str(word);
        }
        rest = &rest[taken..];
    }
    Some(out)
}

/// The type of a schema; None if expressions cannot see it. `root`: the schema is that of an object
/// with a kind.
pub fn of_schema(node: &Node, root: bool, name: &str) -> Option<Type> {
    if node.int_or_string {
        return Some(Type::Dyn);
    }
    Some(match node.kind.as_str() {
        "array" => {
            let items = node.items.as_deref()?;
            Type::list(of_schema(items, items.embedded, &format!("{name}.@idx"))?)
        }
        "object" => match node.additional.schema() {
            Some(values) => Type::map(
                Type::String,
                of_schema(values, values.embedded, &format!("{name}.@elem"))?,
            ),
            None => object(node, root, name),
        },
        "string" => match node.format.as_str() {
            "byte" => Type::Bytes,
            "duration" => Type::Duration,
            "date" | "date-time" => Type::Timestamp,
            _ => Type::String,
        },
        "boolean" => Type::Bool,
        "number" => Type::Double,
        "integer" => Type::Int,
        _ => return None,
    })
}

fn named(name: String, fields: BTreeMap<String, Type>) -> Type {
    Type::Object(Arc::new(ObjectType {
        name,
        fields,
        open: false,
    }))
}

fn object(node: &Node, root: bool, name: &str) -> Type {
    let mut fields = BTreeMap::new();
    for (key, property) in &node.properties {
        if let Some(field) = escaped(key)
            && let Some(ty) = of_schema(property, property.embedded, &format!("{name}.{field}"))
        {
            fields.insert(field, ty);
        }
    }
    if root {
        let names = [("name", Type::String), ("generateName", Type::String)];
        let metadata = names
            .into_iter()
            .map(|(key, ty)| (key.to_owned(), ty))
            .collect();
        fields.insert("kind".into(), Type::String);
        fields.insert("apiVersion".into(), Type::String);
        fields.insert(
            "metadata".into(),
            named(format!("{name}.metadata"), metadata),
        );
    }
    named(name.to_owned(), fields)
}

/// A JSON value, typed by its schema.
pub fn value(json: &Json, node: &Node, root: bool) -> Value {
    match json {
        Json::Null => Value::Null,
        Json::Bool(b) => Value::Bool(*b),
        Json::Number(n) if node.kind == "number" && !node.int_or_string => {
            Value::Double(n.as_f64().unwrap_or(0.0))
        }
        Json::Number(_) => dynamic(json),
        Json::String(text) => of_text(text, node),
        Json::Array(items) => {
            let default = Node::default();
            let of = node.items.as_deref().unwrap_or(&default);
            let kind = match node.list_type.as_deref() {
                Some("set") => ListKind::Set,
                Some("map") => ListKind::Keyed(
                    node.list_map_keys
                        .iter()
                        .map(|k| escaped(k).unwrap_or_else(|| k.clone()))
                        .collect(),
                ),
                _ => ListKind::Plain,
            };
            Value::List(Arc::new(List {
                items: items.iter().map(|i| value(i, of, of.embedded)).collect(),
                kind,
            }))
        }
        Json::Object(map) => match node.additional.schema() {
            Some(of) => Value::map(
                map.iter()
                    .map(|(k, v)| (Key::String(k.as_str().into()), value(v, of, of.embedded)))
                    .collect(),
            ),
            None => Value::map(fields(map, node, root)),
        },
    }
}

fn fields(map: &serde_json::Map<String, Json>, node: &Node, root: bool) -> Map {
    let mut fields = Map::new();
    for (key, item) in map {
        let meta = root && matches!(key.as_str(), "kind" | "apiVersion" | "metadata");
        let found = match node.properties.get(key) {
            _ if meta => dynamic(item),
            Some(of) => value(item, of, of.embedded),
            None => continue,
        };
        if let Some(name) = escaped(key) {
            fields.insert(Key::String(name.into()), found);
        }
    }
    fields
}

fn of_text(text: &str, node: &Node) -> Value {
    let typed = match node.format.as_str() {
        _ if node.kind != "string" => None,
        "byte" => {
            use base64::Engine;
            base64::engine::general_purpose::STANDARD
                .decode(text)
                .ok()
                .map(|b| Value::Bytes(b.into()))
        }
        "duration" => crate::structural::formats::parse_duration(text).map(Value::Duration),
        "date" => format!("{text}T00:00:00Z")
            .parse()
            .ok()
            .map(Value::Timestamp),
        "date-time" => time::parse_timestamp(text).map(Value::Timestamp),
        _ => None,
    };
    typed.unwrap_or_else(|| text.into())
}

/// A JSON value without a schema.
pub fn dynamic(json: &Json) -> Value {
    match json {
        Json::Null => Value::Null,
        Json::Bool(b) => Value::Bool(*b),
        Json::Number(n) => match (n.as_i64(), n.as_f64()) {
            (Some(n), _) => Value::Int(n),
            (None, Some(f)) => Value::Double(f),
            _ => Value::Null,
        },
        Json::String(text) => text.as_str().into(),
        Json::Array(items) => Value::list(items.iter().map(dynamic).collect()),
        Json::Object(map) => Value::map(
            map.iter()
                .map(|(k, v)| (Key::String(k.as_str().into()), dynamic(v)))
                .collect(),
        ),
    }
}
