//! Parts of definitions in the form of the real server's messages: its internal structs have no
//! JSON names.
//!
//! Main functions: [`versions`], [`schema`], [`rule`].

use crate::gofmt;
use serde_json::{Map, Value};

/// How Go shows a field.
#[derive(Clone, Copy)]
enum As {
    Text,
    Bool,
    /// A pointer, or any JSON.
    Maybe,
    Schema,
    Schemas,
    SchemaMap,
    /// `items`
    SchemaOrList,
    /// `additionalProperties`
    SchemaOrBool,
    /// `dependencies`
    SchemaOrTextsMap,
    /// A list of plain values.
    List,
}

/// Go's names of a schema's fields, in the order of the struct.
const SCHEMA: &[(&str, &str, As)] = &[
    ("ID", "id", As::Text),
    ("Schema", "$schema", As::Text),
    ("Ref", "$ref", As::Maybe),
    ("Description", "description", As::Text),
    ("Type", "type", As::Text),
    ("Nullable", "nullable", As::Bool),
    ("Format", "format", As::Text),
    ("Title", "title", As::Text),
    ("Default", "default", As::Maybe),
    ("Maximum", "maximum", As::Maybe),
    ("ExclusiveMaximum", "exclusiveMaximum", As::Bool),
    ("Minimum", "minimum", As::Maybe),
    ("ExclusiveMinimum", "exclusiveMinimum", As::Bool),
    ("MaxLength", "maxLength", As::Maybe),
    ("MinLength", "minLength", As::Maybe),
    ("Pattern", "pattern", As::Text),
    ("MaxItems", "maxItems", As::Maybe),
    ("MinItems", "minItems", As::Maybe),
    ("UniqueItems", "uniqueItems", As::Bool),
    ("MultipleOf", "multipleOf", As::Maybe),
    ("Enum", "enum", As::List),
    ("MaxProperties", "maxProperties", As::Maybe),
    ("MinProperties", "minProperties", As::Maybe),
    ("Required", "required", As::List),
    ("Items", "items", As::SchemaOrList),
    ("AllOf", "allOf", As::Schemas),
    ("OneOf", "oneOf", As::Schemas),
    ("AnyOf", "anyOf", As::Schemas),
    ("Not", "not", As::Schema),
    ("Properties", "properties", As::SchemaMap),
    (
        "AdditionalProperties",
        "additionalProperties",
        As::SchemaOrBool,
    ),
    ("PatternProperties", "patternProperties", As::SchemaMap),
    ("Dependencies", "dependencies", As::SchemaOrTextsMap),
    ("AdditionalItems", "additionalItems", As::SchemaOrBool),
    ("Definitions", "definitions", As::SchemaMap),
    ("ExternalDocs", "externalDocs", As::Maybe),
    ("Example", "example", As::Maybe),
    (
        "XPreserveUnknownFields",
        "x-kubernetes-preserve-unknown-fields",
        As::Maybe,
    ),
    (
        "XEmbeddedResource",
        "x-kubernetes-embedded-resource",
        As::Bool,
    ),
    ("XIntOrString", "x-kubernetes-int-or-string", As::Bool),
    ("XListMapKeys", "x-kubernetes-list-map-keys", As::List),
    ("XListType", "x-kubernetes-list-type", As::Maybe),
    ("XMapType", "x-kubernetes-map-type", As::Maybe),
    ("XValidations", "x-kubernetes-validations", As::List),
];

/// Fields that the root of a schema may have together with a status subresource.
const ROOT: &[&str] = &[
    "Description",
    "Type",
    "Format",
    "Title",
    "Maximum",
    "ExclusiveMaximum",
    "Minimum",
    "ExclusiveMinimum",
    "MaxLength",
    "MinLength",
    "Pattern",
    "MaxItems",
    "MinItems",
    "UniqueItems",
    "MultipleOf",
    "Required",
    "Items",
    "Properties",
    "ExternalDocs",
    "Example",
    "XPreserveUnknownFields",
    "XValidations",
];

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(b) => !b,
        Value::String(s) => s.is_empty(),
        _ => false,
    }
}

/// The first field, in Go's order, that is not allowed at the root; None if all are. `Type` stands
/// for a type other than object.
pub fn forbidden_at_root(schema: &Map<String, Value>) -> Option<&'static str> {
    let there = SCHEMA
        .iter()
        .filter(|(_, json, how)| match (schema.get(*json), how) {
            (None | Some(Value::Null), _) => false,
            (Some(value), As::Text | As::Bool) => !is_empty(value),
            _ => true,
        });
    there.map(|(go, ..)| *go).find(|go| {
        if *go == "Type" {
            schema.get("type").and_then(Value::as_str) != Some("object")
        } else {
            !ROOT.contains(go)
        }
    })
}

/// The list of allowed fields, as Go prints it.
pub fn allowed_at_root() -> String {
    format!("[{}]", ROOT.join(" "))
}

pub fn schema(value: &Value) -> String {
    if value.is_null() {
        return "null".into();
    }
    let parts: Vec<String> = SCHEMA
        .iter()
        .map(|(go, json, how)| {
            format!(
                "\"{go}\":{}",
                shown(value.get(*json).unwrap_or(&Value::Null), *how, json)
            )
        })
        .collect();
    format!("{{{}}}", parts.join(","))
}

pub fn schemas(value: &Value) -> String {
    match value.as_array() {
        Some(list) => format!(
            "[{}]",
            list.iter().map(schema).collect::<Vec<_>>().join(",")
        ),
        None => "null".into(),
    }
}

fn shown(value: &Value, how: As, name: &str) -> String {
    match how {
        As::Text if value.is_null() => "\"\"".into(),
        As::Bool if value.is_null() => "false".into(),
        As::Text | As::Bool | As::Maybe => gofmt::json(value),
        As::List if name == "x-kubernetes-validations" => match value.as_array() {
            Some(list) => format!("[{}]", list.iter().map(rule).collect::<Vec<_>>().join(",")),
            None => "null".into(),
        },
        As::List => gofmt::json(value),
        As::Schema => schema(value),
        As::Schemas => schemas(value),
        As::SchemaMap => by_name(value, schema),
        As::SchemaOrTextsMap => by_name(value, |one| match one {
            Value::Object(_) => format!("{{\"Schema\":{},\"Property\":null}}", schema(one)),
            texts => format!("{{\"Schema\":null,\"Property\":{}}}", gofmt::json(texts)),
        }),
        As::SchemaOrList => match value {
            Value::Null => "null".into(),
            Value::Array(_) | Value::Bool(_) => {
                format!("{{\"Schema\":null,\"JSONSchemas\":{}}}", schemas(value))
            }
            one => format!("{{\"Schema\":{},\"JSONSchemas\":null}}", schema(one)),
        },
        As::SchemaOrBool => match value {
            Value::Null => "null".into(),
            Value::Bool(b) => format!("{{\"Allows\":{b},\"Schema\":null}}"),
            one => format!("{{\"Allows\":true,\"Schema\":{}}}", schema(one)),
        },
    }
}

fn by_name(value: &Value, show: impl Fn(&Value) -> String) -> String {
    let Some(map) = value.as_object() else {
        return "null".into();
    };
    let entries: Vec<String> = map
        .iter()
        .map(|(key, value)| format!("{}:{}", gofmt::json(&key.as_str().into()), show(value)))
        .collect();
    format!("{{{}}}", entries.join(","))
}

/// A rule of `x-kubernetes-validations`.
pub fn rule(value: &Value) -> String {
    let fields = [
        ("Rule", "rule", true),
        ("Message", "message", true),
        ("MessageExpression", "messageExpression", true),
        ("Reason", "reason", false),
        ("FieldPath", "fieldPath", true),
        ("OptionalOldSelf", "optionalOldSelf", false),
    ];
    named(value, &fields)
}

/// `(Go's name, JSON name, whether it is a string that is always present)`
fn named(value: &Value, fields: &[(&str, &str, bool)]) -> String {
    let one = |(go, json, text): &(&str, &str, bool)| {
        let held = value.get(*json).unwrap_or(&Value::Null);
        let shown = if held.is_null() && *text {
            "\"\"".to_owned()
        } else {
            gofmt::json(held)
        };
        format!("\"{go}\":{shown}")
    };
    format!(
        "{{{}}}",
        fields.iter().map(one).collect::<Vec<_>>().join(",")
    )
}

fn maybe(value: Option<&Value>, show: impl Fn(&Value) -> String) -> String {
    value
        .filter(|v| !v.is_null())
        .map_or_else(|| "null".to_owned(), show)
}

fn each(value: &Value, show: impl Fn(&Value) -> String) -> String {
    match value.as_array() {
        Some(list) if !list.is_empty() => {
            format!("[{}]", list.iter().map(show).collect::<Vec<_>>().join(","))
        }
        _ => "null".into(),
    }
}

fn version(value: &Value) -> String {
    let flag = |key: &str| value.get(key).and_then(Value::as_bool).unwrap_or(false);
    let scale = |s: &Value| {
        named(
            s,
            &[
                ("SpecReplicasPath", "specReplicasPath", true),
                ("StatusReplicasPath", "statusReplicasPath", true),
                ("LabelSelectorPath", "labelSelectorPath", false),
            ],
        )
    };
    let subresources = |s: &Value| {
        format!(
            "{{\"Status\":{},\"Scale\":{}}}",
            maybe(s.get("status"), |_| "{}".into()),
            maybe(s.get("scale"), scale)
        )
    };
    let column = |c: &Value| {
        let head = named(
            c,
            &[
                ("Name", "name", true),
                ("Type", "type", true),
                ("Format", "format", true),
                ("Description", "description", true),
            ],
        );
        let priority = c.get("priority").and_then(Value::as_i64).unwrap_or(0);
        let path = gofmt::json(c.get("jsonPath").unwrap_or(&"".into()));
        format!(
            "{},\"Priority\":{priority},\"JSONPath\":{path}}}",
            head.trim_end_matches('}')
        )
    };
    format!(
        "{{\"Name\":{},\"Served\":{},\"Storage\":{},\"Deprecated\":{},\"DeprecationWarning\":{},\"Schema\":{},\"Subresources\":{},\
         \"AdditionalPrinterColumns\":{},\"SelectableFields\":{}}}",
        gofmt::json(value.get("name").unwrap_or(&"".into())),
        flag("served"),
        flag("storage"),
        flag("deprecated"),
        gofmt::json(value.get("deprecationWarning").unwrap_or(&Value::Null)),
        maybe(value.get("schema"), |s| format!(
            "{{\"OpenAPIV3Schema\":{}}}",
            schema(s.get("openAPIV3Schema").unwrap_or(&Value::Null))
        )),
        maybe(value.get("subresources"), subresources),
        each(
            value
                .get("additionalPrinterColumns")
                .unwrap_or(&Value::Null),
            column
        ),
        each(value.get("selectableFields").unwrap_or(&Value::Null), |f| {
            named(f, &[("JSONPath", "jsonPath", true)])
        }),
    )
}

/// `spec.versions`
pub fn versions(value: &Value) -> String {
    match value.as_array() {
        Some(list) => format!(
            "[{}]",
            list.iter().map(version).collect::<Vec<_>>().join(",")
        ),
        None => "null".into(),
    }
}
