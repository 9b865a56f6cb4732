//! How structured merge treats a value: as one leaf, as a map merged by field, or as a list merged
//! by key.
//!
//! Main types: [`Ty`], [`Form`]. Also [`validate_fields`], which checks an applied configuration.

use super::{path::PathElement, print};
use crate::schema::{ListType, MapType, ScalarKind, TypeKind, TypeRef};
use serde_json::{Map, Value};
use std::{collections::BTreeSet, sync::LazyLock};

/// The type of a value; without a schema maps are merged and lists are leaves.
#[derive(Clone, Copy)]
pub(super) enum Ty<'a> {
    Known(TypeRef<'a>),
    Deduced,
}

/// How a value is merged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Form {
    Leaf,
    Map,
    /// A set, or a list with keys.
    List,
}

impl<'a> Ty<'a> {
    pub(super) fn new(ty: Option<TypeRef<'a>>) -> Self {
        match ty {
            Some(ty) if !holds_anything(ty) || ty.map_type() == Some(MapType::Atomic) => {
                Self::Known(ty)
            }
            _ => Self::Deduced,
        }
    }

    /// The type of a field. An undeclared field has no schema.
    pub(super) fn field(self, name: &str) -> Self {
        match self {
            Self::Known(ty) => Self::new(ty.field(name)),
            Self::Deduced => Self::Deduced,
        }
    }

    pub(super) fn items(self) -> Self {
        match self {
            Self::Known(ty) => Self::new(ty.items()),
            Self::Deduced => Self::Deduced,
        }
    }

    /// Whether the type declares this field by name, as opposed to a key of a map.
    pub(super) fn names_field(self, name: &str) -> bool {
        matches!(self, Self::Known(ty) if ty.named_field(name).is_some())
    }

    pub(super) fn is_built_in(self) -> bool {
        matches!(self, Self::Known(ty) if ty.is_built_in())
    }

    /// The type below `step`.
    pub(super) fn step(self, step: &PathElement) -> Self {
        match step {
            PathElement::Field(name) => self.field(name),
            _ => self.items(),
        }
    }

    /// Whether values of this type are replaced as a whole although they contain fields.
    pub(super) fn is_atomic(self) -> bool {
        match self {
            Self::Known(ty) => match ty.kind() {
                TypeKind::Object | TypeKind::Map | TypeKind::Any => {
                    ty.map_type() == Some(MapType::Atomic)
                }
                TypeKind::List => matches!(ty.list_type(), None | Some(ListType::Atomic)),
                _ => false,
            },
            Self::Deduced => false,
        }
    }

    pub(super) fn form(self, value: &Value) -> Form {
        let Self::Known(ty) = self else {
            return if matches!(value, Value::Object(_) | Value::Null) {
                Form::Map
            } else {
                Form::Leaf
            };
        };
        match (ty.kind(), value) {
            (TypeKind::Object | TypeKind::Map, Value::Object(_) | Value::Null)
                if ty.map_type() != Some(MapType::Atomic) =>
            {
                Form::Map
            }
            (TypeKind::List, Value::Array(_) | Value::Null)
                if matches!(ty.list_type(), Some(ListType::Map | ListType::Set)) =>
            {
                Form::List
            }
            _ => Form::Leaf,
        }
    }

    /// The value that an omitted field has in Go. The API server decodes built-in kinds into Go
    /// structs: an embedded plain struct is an empty map, a required list or map is usually null,
    /// and so neither is ever added or removed itself.
    pub(super) fn present_anyway(self, name: &str) -> Option<&'static Value> {
        static EMPTY: LazyLock<Value> = LazyLock::new(|| Value::Object(serde_json::Map::new()));
        let Self::Known(ty) = self else { return None };
        let field = ty.named_field(name)?;
        if field.is_plain_struct() {
            return Some(&EMPTY);
        }
        let composed = matches!(
            field.kind(),
            TypeKind::Object | TypeKind::Map | TypeKind::List
        );
        (composed && ty.is_built_in() && ty.is_required(name) && !field.is_left_out())
            .then_some(&Value::Null)
    }

    /// What identifies an element of this list.
    pub(super) fn element(self, item: &Value) -> Result<PathElement, String> {
        let Self::Known(ty) = self else {
            return Err("a list without a type has no keys".into());
        };
        if ty.list_type() != Some(ListType::Map) || ty.list_map_keys().is_empty() {
            return match item {
                Value::Object(_) => {
                    Err("associative list without keys has an element that's a map type".into())
                }
                Value::Array(_) => {
                    Err("not supported: associative list with lists as elements".into())
                }
                Value::Null => Err(
                    "associative list without keys has an element that's an explicit null".into(),
                ),
                scalar => Ok(PathElement::Value(scalar.clone())),
            };
        }
        let map = match item {
            Value::Object(map) => map,
            Value::Null => {
                return Err("associative list with keys may not have a null element".into());
            }
            _ => return Err("associative list with keys may not have non-map elements".into()),
        };
        let items = self.items();
        let default = |key: &str| match items {
            Ty::Known(ty) => ty
                .named_field(key)
                .and_then(|f| f.default().cloned().or_else(|| zero(ty, key))),
            Ty::Deduced => None,
        };
        let value_of = |key: &str| {
            map.get(key)
                .cloned()
                .or_else(|| default(key))
                .map(|value| (key.to_owned(), value))
        };
        let mut fields: Vec<(String, Value)> = ty
            .list_map_keys()
            .iter()
            .filter_map(|key| value_of(key))
            .collect();
        if fields.is_empty() {
            let keys = ty
                .list_map_keys()
                .iter()
                .map(|k| format!("{k:?}"))
                .collect::<Vec<_>>()
                .join(" ");
            return Err(format!(
                "{WITHOUT_KEYS} [{keys}] (and doesn't have default values for any key fields)"
            ));
        }
        fields.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(PathElement::Key(fields))
    }
}

/// Whether a type does not define how its values are merged. Types for numbers and strings say
/// nothing about it; invalid values are found when they are decoded. A quantity is a scalar.
fn holds_anything(ty: TypeRef<'_>) -> bool {
    match ty.kind() {
        TypeKind::Any => true,
        TypeKind::Scalar(ScalarKind::IntOrString) => {
            !ty.name().is_some_and(|name| name.ends_with(".Quantity"))
        }
        _ => false,
    }
}

/// The value of a required field that is missing, in a Go struct of the API server.
fn zero(ty: TypeRef<'_>, name: &str) -> Option<Value> {
    match ty.named_field(name)?.kind() {
        _ if !ty.is_built_in() || !ty.is_required(name) => None,
        TypeKind::Scalar(ScalarKind::String) => Some("".into()),
        TypeKind::Scalar(ScalarKind::Integer) => Some(0.into()),
        TypeKind::Scalar(ScalarKind::Boolean) => Some(false.into()),
        _ => None,
    }
}

/// Where an existing object does not match its type, except for duplicate list elements. Objects of
/// built-in kinds are decoded into Go types first, which contain everything except the keys of
/// elements.
pub(super) fn misfits(object: &Map<String, Value>, ty: Ty<'_>) -> Vec<String> {
    let mut errors = validate_fields(object, ty);
    errors.retain(|error| {
        if ty.is_built_in() {
            error.contains(WITHOUT_KEYS)
        } else {
            !error.contains(DUPLICATE)
        }
    });
    errors
}

const DUPLICATE: &str = ": duplicate entries for key ";
const WITHOUT_KEYS: &str = "associative list with keys has an element that omits all key fields";

fn may_have(ty: TypeRef<'_>, key: &str) -> bool {
    ty.field(key).is_some() || ty.merges_undeclared()
}

/// All mismatches between an object and its type, with the API server's messages.
pub(super) fn validate_fields(object: &Map<String, Value>, ty: Ty<'_>) -> Vec<String> {
    let mut errors = Vec::new();
    for (key, value) in object {
        // One field at a time, to avoid wrapping the object itself into a value.
        if let Ty::Known(known) = ty
            && !may_have(known, key)
        {
            errors.push(format!(".{key}: field not declared in schema"));
            break;
        }
        validate_at(value, ty.field(key), &format!(".{key}"), &mut errors);
    }
    errors
}

fn validate_at(value: &Value, ty: Ty<'_>, path: &str, errors: &mut Vec<String>) {
    let Ty::Known(known) = ty else { return };
    let mut fail = |text: String| {
        errors.push(if path.is_empty() {
            text
        } else {
            format!("{path}: {text}")
        })
    };
    match (known.kind(), value) {
        (_, Value::Null) | (TypeKind::Any, _) => {}
        (TypeKind::Object | TypeKind::Map, Value::Object(map)) => {
            for (key, value) in map {
                if !may_have(known, key) {
                    errors.push(format!("{path}.{key}: field not declared in schema"));
                    return;
                }
                validate_at(value, ty.field(key), &format!("{path}.{key}"), errors);
            }
        }
        (TypeKind::Object | TypeKind::Map, other) => {
            fail(format!("expected map, got {}", printed(other)))
        }
        (TypeKind::List, Value::Array(list)) => validate_list(list, ty, path, errors),
        (TypeKind::List, other) => fail(format!("expected list, got {}", printed(other))),
        (TypeKind::Scalar(kind), value) => {
            // Only plain strings and bytes are known to be strings; times and the like are scalars
            // of any kind.
            let special = kind == ScalarKind::String
                && known
                    .format()
                    .is_some_and(|format| !matches!(format, "" | "byte"));
            let kind = if special {
                ScalarKind::IntOrString
            } else {
                kind
            };
            let expected = match (kind, value) {
                (ScalarKind::String, Value::String(_))
                | (ScalarKind::Integer | ScalarKind::Number, Value::Number(_))
                | (ScalarKind::Boolean, Value::Bool(_))
                | (ScalarKind::IntOrString, Value::String(_) | Value::Number(_) | Value::Bool(_)) =>
                {
                    return;
                }
                (ScalarKind::String, _) => "string",
                (ScalarKind::Integer | ScalarKind::Number, _) => "numeric (int or float)",
                (ScalarKind::Boolean, _) => "boolean",
                (ScalarKind::IntOrString, _) => "any scalar",
            };
            let got = match expected {
                "string" => format!("&value.valueUnstructured{{Value:{}}}", print::source(value)),
                "numeric (int or float)" => print::type_name(value).to_owned(),
                _ => printed(value),
            };
            fail(format!("expected {expected}, got {got}"));
        }
    }
}

fn validate_list(list: &[Value], ty: Ty<'_>, path: &str, errors: &mut Vec<String>) {
    let keyed =
        matches!(ty, Ty::Known(t) if matches!(t.list_type(), Some(ListType::Map | ListType::Set)));
    let mut seen = BTreeSet::new();
    for (i, item) in list.iter().enumerate() {
        let element = match if keyed {
            ty.element(item)
        } else {
            Ok(PathElement::Index(i as i64))
        } {
            Ok(element) => element,
            Err(text) => {
                errors.push(format!("{path}: element {i}: {text}"));
                return;
            }
        };
        let at = format!("{path}{element}");
        if !seen.insert(element) {
            errors.push(format!("{path}{DUPLICATE}{}", &at[path.len()..]));
        }
        validate_at(item, ty.items(), &at, errors);
    }
}

/// A value in an error message: in Go it is behind a pointer to a struct.
fn printed(value: &Value) -> String {
    format!("&{{{}}}", print::plain(value))
}
