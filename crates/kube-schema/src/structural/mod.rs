//! The schema of a custom resource, parsed once, and its uses in an API server: validation,
//! pruning, defaulting.
//!
//! Main type: [`Node`], one level of `openAPIV3Schema`. It is lenient: errors that the definition's
//! own checks reject are ignored here. Pure: no registry, no HTTP.

pub mod embedded;
pub mod formats;
pub mod internal;
pub mod lists;
pub mod path;
pub mod problem;
pub mod shape;
pub mod validate;

use crate::go_regex::compile_pattern;
use regex::Regex;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Deeper schemas are truncated: the decoder does not allow deeper objects either.
const MAX_DEPTH: usize = 200;

/// The value of `additionalProperties`.
#[derive(Debug, Default)]
pub enum Additional {
    #[default]
    Unsaid,
    Any(bool),
    Schema(Box<Node>),
}

impl Additional {
    pub fn schema(&self) -> Option<&Node> {
        match self {
            Self::Schema(node) => Some(node),
            _ => None,
        }
    }

    pub fn is_said(&self) -> bool {
        !matches!(self, Self::Unsaid)
    }
}

/// An `x-kubernetes-validations` rule as written.
#[derive(Debug, Default, Clone)]
pub struct Rule {
    pub rule: String,
    pub message: String,
    pub message_expression: String,
    pub reason: Option<String>,
    pub field_path: String,
    pub optional_old_self: Option<bool>,
}

/// A numeric bound, and whether it is exclusive.
#[derive(Debug, Clone, Copy)]
pub struct Bound {
    pub limit: f64,
    pub exclusive: bool,
}

/// `pattern`, compiled if possible.
#[derive(Debug)]
pub struct Pattern {
    pub text: String,
    pub regex: Option<Regex>,
}

/// One level of a schema.
#[derive(Debug, Default)]
pub struct Node {
    /// `type` as written; empty if absent.
    pub kind: String,
    /// `format` as written.
    pub format: String,
    /// For checking a definition's own defaults: formats are checked even if this version of
    /// Kubernetes does not know them, and numbers and strings are not distinguished from other
    /// values.
    pub of_defaults: bool,
    pub nullable: bool,
    pub int_or_string: bool,
    pub preserve_unknown: bool,
    pub embedded: bool,
    pub maximum: Option<Bound>,
    pub minimum: Option<Bound>,
    pub multiple_of: Option<f64>,
    pub max_length: Option<i64>,
    pub min_length: Option<i64>,
    pub pattern: Option<Pattern>,
    pub max_items: Option<i64>,
    pub min_items: Option<i64>,
    pub unique_items: bool,
    pub max_properties: Option<i64>,
    pub min_properties: Option<i64>,
    pub required: Vec<String>,
    pub enum_values: Vec<Value>,
    pub all_of: Vec<Node>,
    pub any_of: Vec<Node>,
    pub one_of: Vec<Node>,
    pub not: Option<Box<Node>>,
    pub items: Option<Box<Node>>,
    pub properties: BTreeMap<String, Node>,
    pub additional: Additional,
    pub list_type: Option<String>,
    pub list_map_keys: Vec<String>,
    pub map_type: Option<String>,
    pub default: Option<Value>,
    pub rules: Vec<Rule>,
    /// Whether there is any rule at this level or below.
    pub has_rules: bool,
}

fn text(map: &Map<String, Value>, key: &str) -> String {
    map.get(key)
        .and_then(Value::as_str)
        .unwrap_or("")
        .to_owned()
}

fn optional_text(map: &Map<String, Value>, key: &str) -> Option<String> {
    map.get(key).and_then(Value::as_str).map(str::to_owned)
}

fn flag(map: &Map<String, Value>, key: &str) -> bool {
    map.get(key) == Some(&Value::Bool(true))
}

pub fn integer(map: &Map<String, Value>, key: &str) -> Option<i64> {
    let value = map.get(key)?;
    value.as_i64().or_else(|| value.as_f64().map(|f| f as i64))
}

pub fn words(map: &Map<String, Value>, key: &str) -> Vec<String> {
    let list = map.get(key).and_then(Value::as_array);
    list.map(|l| {
        l.iter()
            .filter_map(|w| w.as_str().map(str::to_owned))
            .collect()
    })
    .unwrap_or_default()
}

fn rules(map: &Map<String, Value>) -> Vec<Rule> {
    let list = map
        .get("x-kubernetes-validations")
        .and_then(Value::as_array);
    let rule = |rule: &Map<String, Value>| Rule {
        rule: text(rule, "rule"),
        message: text(rule, "message"),
        message_expression: text(rule, "messageExpression"),
        reason: optional_text(rule, "reason"),
        field_path: text(rule, "fieldPath"),
        optional_old_self: rule.get("optionalOldSelf").and_then(Value::as_bool),
    };
    list.map(|l| l.iter().filter_map(Value::as_object).map(rule).collect())
        .unwrap_or_default()
}

impl Node {
    /// Parses `openAPIV3Schema`, or any part of it.
    pub fn read(schema: &Value) -> Self {
        Self::at(schema, 0, false)
    }

    /// The same for the check of a definition's defaults.
    pub fn for_defaults(schema: &Value) -> Self {
        Self::at(schema, 0, true)
    }

    fn at(schema: &Value, depth: usize, of_defaults: bool) -> Self {
        let Some(map) = schema.as_object().filter(|_| depth <= MAX_DEPTH) else {
            return Self::default();
        };
        let child = |value: &Value| Self::at(value, depth + 1, of_defaults);
        let list = |key: &str| -> Vec<Node> {
            map.get(key)
                .and_then(Value::as_array)
                .map(|l| l.iter().map(child).collect())
                .unwrap_or_default()
        };
        let boxed = |key: &str| {
            map.get(key)
                .filter(|v| v.is_object())
                .map(|v| Box::new(child(v)))
        };
        let bound = |key: &str, exclusive: &str| {
            map.get(key).and_then(Value::as_f64).map(|limit| Bound {
                limit,
                exclusive: flag(map, exclusive),
            })
        };
        let properties = map.get("properties").and_then(Value::as_object);
        let mut node = Self {
            kind: text(map, "type"),
            format: text(map, "format"),
            of_defaults,
            nullable: flag(map, "nullable"),
            int_or_string: flag(map, "x-kubernetes-int-or-string"),
            preserve_unknown: flag(map, "x-kubernetes-preserve-unknown-fields"),
            embedded: flag(map, "x-kubernetes-embedded-resource"),
            maximum: bound("maximum", "exclusiveMaximum"),
            minimum: bound("minimum", "exclusiveMinimum"),
            multiple_of: map.get("multipleOf").and_then(Value::as_f64),
            max_length: integer(map, "maxLength"),
            min_length: integer(map, "minLength"),
            pattern: optional_text(map, "pattern")
                .filter(|p| !p.is_empty())
                .map(|text| Pattern {
                    regex: compile_pattern(&text),
                    text,
                }),
            max_items: integer(map, "maxItems"),
            min_items: integer(map, "minItems"),
            unique_items: flag(map, "uniqueItems"),
            max_properties: integer(map, "maxProperties"),
            min_properties: integer(map, "minProperties"),
            required: words(map, "required"),
            enum_values: map
                .get("enum")
                .and_then(Value::as_array)
                .cloned()
                .unwrap_or_default(),
            all_of: list("allOf"),
            any_of: list("anyOf"),
            one_of: list("oneOf"),
            not: boxed("not"),
            items: boxed("items"),
            properties: properties
                .into_iter()
                .flatten()
                .map(|(name, value)| (name.clone(), child(value)))
                .collect(),
            additional: match map.get("additionalProperties") {
                Some(Value::Bool(allowed)) => Additional::Any(*allowed),
                Some(value @ Value::Object(_)) => Additional::Schema(Box::new(child(value))),
                _ => Additional::Unsaid,
            },
            list_type: optional_text(map, "x-kubernetes-list-type"),
            list_map_keys: words(map, "x-kubernetes-list-map-keys"),
            map_type: optional_text(map, "x-kubernetes-map-type"),
            default: map.get("default").filter(|v| !v.is_null()).cloned(),
            rules: rules(map),
            has_rules: false,
        };
        node.has_rules = !node.rules.is_empty() || node.children().any(|c| c.has_rules);
        node
    }

    /// The subschemas that can have rules.
    fn children(&self) -> impl Iterator<Item = &Node> {
        self.properties
            .values()
            .chain(self.items.as_deref())
            .chain(self.additional.schema())
            .chain(&self.all_of)
    }

    /// The schema of a key of a map: a property's, or that of `additionalProperties`.
    pub fn field(&self, name: &str) -> Option<&Node> {
        self.properties
            .get(name)
            .or_else(|| self.additional.schema())
    }

    /// The format to check, if this version of Kubernetes knows it for the type.
    pub fn checked_format(&self) -> &str {
        if self.of_defaults
            || formats::is_known(
                if self.int_or_string { "*" } else { &self.kind },
                &self.format,
            )
        {
            &self.format
        } else {
            ""
        }
    }
}
