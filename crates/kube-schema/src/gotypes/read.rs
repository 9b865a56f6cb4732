//! Decodes an object like Go's JSON decoder: field by field in the order of the text, reporting the
//! first type error. Main function: [`read`].

use super::{Field, Message, SCHEMA, Struct, Type, time};
use base64::engine::general_purpose::{GeneralPurpose, PAD, STANDARD};
use base64::{Engine, alphabet};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::fmt;
use tiphys_apimachinery::quantity::{self, Quantity};
use tiphys_gocompat::json;

/// A value of the wrong type, as Go's JSON decoder reports it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WrongType {
    #[error("json: cannot unmarshal {found} into Go struct field {field} of type {wanted}")]
    Json {
        found: String,
        field: String,
        wanted: String,
        /// Go's message when it converts a tree instead of parsing text.
        converting: String,
    },
    #[error("illegal base64 data at input byte {0}")]
    Base64(usize),
    /// An error of a type with its own decoder.
    #[error("{0}")]
    Own(String),
    #[error("{0}")]
    Quantity(String),
    #[error("{0}")]
    Time(String),
}

impl WrongType {
    /// Go's message when it converts a tree into the struct, instead of parsing text.
    pub fn converting(&self) -> String {
        match self {
            Self::Json { converting, .. } => converting.clone(),
            Self::Base64(_) => format!("error decoding from json: {self}"),
            other => other.to_string(),
        }
    }
}

/// Brings values to the form in which Go holds them, or returns the first type error: in a text the
/// first in its order, in a tree the one in the first field of the struct.
pub fn read(
    map: &mut Map<String, Value>,
    of: &'static Struct,
    tree: bool,
) -> Result<(), WrongType> {
    let mut reader = Reader { misfit: None, tree };
    reader.object(map, of, Path::default())?;
    reader.misfit.map_or(Ok(()), Err)
}

/// Errors of types with their own decoder end the decoding; of other type errors, the first is
/// reported at the end.
#[derive(Default)]
struct Reader {
    misfit: Option<WrongType>,
    /// A tree is converted field by field.
    tree: bool,
}

/// The last step to a value and those before it, which are joined only for a message.
#[derive(Clone, Copy, Default)]
struct Path<'a> {
    before: Option<&'a Path<'a>>,
    step: &'a str,
}

impl<'a> Path<'a> {
    fn below(&'a self, step: &'a str) -> Self {
        Self {
            before: (!self.is_empty()).then_some(self),
            step,
        }
    }

    fn is_empty(&self) -> bool {
        self.step.is_empty()
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.before
            .map_or(Ok(()), |before| write!(f, "{before}."))?;
        f.write_str(self.step)
    }
}

/// The location of a value: its path, the struct around it, and its type's name if that is a
/// special one.
#[derive(Clone, Copy)]
struct Place<'a> {
    path: Path<'a>,
    of: &'static Struct,
    go: Option<&'a str>,
}

impl Place<'_> {
    /// The place of an element of a list or map.
    fn element(&self) -> Self {
        let item = |go: &'_ str| go.starts_with("[]") || go.starts_with("map[");
        let go = self
            .go
            .filter(|go| item(go))
            .and_then(|go| go.split_once(']'))
            .map(|(_, of)| of.trim_start_matches('*'));
        Self { go, ..*self }
    }
}

impl Reader {
    fn object(
        &mut self,
        map: &mut Map<String, Value>,
        of: &'static Struct,
        path: Path<'_>,
    ) -> Result<(), WrongType> {
        if self.tree {
            return self.fields(map, of, path);
        }
        for (key, value) in map.iter_mut().filter(|(_, value)| !value.is_null()) {
            if let Some((field, step)) = field(of, key) {
                self.value(
                    value,
                    &field.ty,
                    Place {
                        path: path.below(&step),
                        of,
                        go: field.go,
                    },
                )?;
            }
        }
        Ok(())
    }

    /// The fields in their order.
    fn fields(
        &mut self,
        map: &mut Map<String, Value>,
        of: &'static Struct,
        path: Path<'_>,
    ) -> Result<(), WrongType> {
        for field in &of.fields {
            match (&field.ty, map.get_mut(field.name)) {
                (Type::Message(message), _) if field.inline => {
                    message.find().map_or(Ok(()), |inner| {
                        self.fields(map, inner, path.below(message.short()))
                    })?;
                }
                (ty, Some(value)) if !value.is_null() => {
                    self.value(
                        value,
                        ty,
                        Place {
                            path: path.below(field.name),
                            of,
                            go: field.go,
                        },
                    )?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn value(&mut self, value: &mut Value, ty: &Type, at: Place<'_>) -> Result<(), WrongType> {
        match (ty, &mut *value) {
            (Type::Message(message), Value::Object(map)) => {
                return message
                    .find()
                    .map_or(Ok(()), |inner| self.object(map, inner, at.path));
            }
            (Type::SchemaOrList | Type::SchemaOrBool | Type::SchemaOrTexts, Value::Object(_)) => {
                return self.apart(value, &Type::Message(Message::new(SCHEMA)), at);
            }
            (Type::List(item), Value::Array(list)) => {
                return self.elements(list.iter_mut(), item, at.element());
            }
            (Type::SchemaOrList, Value::Array(_)) => {
                return self.apart(
                    value,
                    &Type::List(Box::new(Type::Message(Message::new(SCHEMA)))),
                    at,
                );
            }
            (Type::SchemaOrTexts, Value::Array(_)) => {
                return self.apart(value, &Type::List(Box::new(Type::String)), at);
            }
            // Neither a schema nor a list of schemas, but present.
            (Type::SchemaOrList, _) => *value = false.into(),
            (Type::SchemaOrTexts, _) => *value = Value::Null,
            (Type::SchemaOrBool, Value::Bool(_)) => {}
            (Type::SchemaOrBool, Value::Array(_)) => drop(self.misfit.get_or_insert(no_schema())),
            (Type::SchemaOrBool, _) => return Err(no_schema()),
            (Type::Map(item), Value::Object(map)) => {
                self.elements(map.values_mut(), item, at.element())?;
                if at.go == Some(AMOUNTS) {
                    map.values_mut().for_each(round_up);
                }
                return Ok(());
            }
            (Type::Quantity, found) => {
                let text = found
                    .as_str()
                    .map_or_else(|| found.to_string(), str::to_owned);
                *value = quantity::kept(text.trim())
                    .map_err(|e| WrongType::Quantity(e.to_string()))?
                    .into();
            }
            (Type::Bytes, Value::String(text)) => match base64_error(text) {
                Some(at) if self.tree => return Err(WrongType::Base64(at)),
                Some(at) => drop(self.misfit.get_or_insert(WrongType::Base64(at))),
                None => *value = as_encoded(std::mem::take(text)).into(),
            },
            (Type::Bytes, Value::Array(list)) => {
                let element = Place {
                    go: Some(BYTE),
                    ..at
                };
                let odd = list
                    .iter()
                    .find(|v| !v.is_null() && v.as_u64().is_none_or(|n| n > 255));
                if let Some(odd) = odd {
                    return self.misfit(odd, &Type::Int32, element);
                }
                let bytes: Vec<u8> = list
                    .iter()
                    .map(|v| u8::try_from(v.as_u64().unwrap_or(0)).unwrap_or(0))
                    .collect();
                *value = STANDARD.encode(bytes).into();
            }
            (Type::Time | Type::MicroTime, Value::String(text)) => {
                let layout = if matches!(ty, Type::MicroTime) {
                    time::RFC3339_MICRO
                } else {
                    time::RFC3339
                };
                time::parse(text, layout).map_err(WrongType::Time)?;
                if let Some(shown) = time::as_written(text, layout) {
                    *value = shown;
                }
            }
            (Type::Float, Value::Number(n)) if n.is_f64() => {
                let whole = n.as_f64().filter(|f| f.fract() == 0.0 && f.abs() < 1e15);
                whole
                    .into_iter()
                    .for_each(|whole| *value = (whole as i64).into());
            }
            (Type::String | Type::Duration | Type::IntOrString, Value::String(_))
            | (Type::Bool, Value::Bool(_))
            | (Type::Float, Value::Number(_))
            | (Type::Raw, _) => {}
            (Type::Int32 | Type::IntOrString, Value::Number(n))
                if n.as_i64().is_some_and(|n| i32::try_from(n).is_ok()) => {}
            (Type::Int64, Value::Number(n)) if n.is_i64() => {}
            // In a tree an integer may be a float; in a text it must not be written as one.
            (Type::Int32 | Type::Int64, Value::Number(n))
                if self.tree && n.as_f64().is_some_and(|f| f.fract() == 0.0) =>
            {
                *value = converted(n.as_f64().unwrap_or(0.0), ty).into();
            }
            (wanted, found) => return self.misfit(found, wanted, at),
        }
        Ok(())
    }

    /// A type with its own decoder: it is parsed as text, even when a tree is converted, and its
    /// errors end the decoding.
    fn apart(&self, value: &mut Value, ty: &Type, at: Place<'_>) -> Result<(), WrongType> {
        let mut inner = Self::default();
        let at = if self.tree {
            Place {
                path: Path::default(),
                ..at
            }
        } else {
            at
        };
        let outcome = inner.value(value, ty, at);
        let misfit = outcome.err().or(inner.misfit);
        misfit.map_or(Ok(()), |misfit| {
            Err(if self.tree {
                WrongType::Own(misfit.to_string())
            } else {
                misfit
            })
        })
    }

    /// A null element is the zero value in Go.
    fn elements<'v>(
        &mut self,
        list: impl Iterator<Item = &'v mut Value>,
        item: &Type,
        at: Place<'_>,
    ) -> Result<(), WrongType> {
        for element in list {
            // A null list in a map is not an empty list, and a null time has no text.
            if element.is_null() && matches!(item, Type::List(_) | Type::Time | Type::MicroTime) {
                continue;
            }
            if element.is_null() {
                *element = null_element(item);
            }
            self.value(element, item, at)?;
        }
        Ok(())
    }

    fn misfit(&mut self, found: &Value, wanted: &Type, at: Place<'_>) -> Result<(), WrongType> {
        let short = at.of.name.split('.').next_back().unwrap_or(at.of.name);
        let wanted_word = at.go.map_or_else(|| go_name(wanted), str::to_owned);
        let converting = not_converted(found, wanted, &wanted_word);
        let (found, field) = (word(found, wanted), format!("{short}.{}", at.path));
        if at.path.is_empty() {
            return Err(WrongType::Own(format!(
                "json: cannot unmarshal {found} into Go value of type {wanted_word}"
            )));
        }
        let misfit = WrongType::Json {
            found,
            field,
            wanted: wanted_word,
            converting,
        };
        if self.tree
            || matches!(
                wanted,
                Type::Time | Type::MicroTime | Type::Duration | Type::IntOrString
            )
        {
            return Err(misfit);
        }
        self.misfit.get_or_insert(misfit);
        Ok(())
    }
}

/// Go's conversion of a float to an integer: the lowest number if it is out of range, truncated to
/// the size of the field.
fn converted(fraction: f64, ty: &Type) -> i64 {
    let long = if fraction < i64::MAX as f64 {
        fraction as i64
    } else {
        i64::MIN
    };
    if matches!(ty, Type::Int32) {
        i64::from(long as i32)
    } else {
        long
    }
}

fn no_schema() -> WrongType {
    WrongType::Own("boolean or JSON schema expected".to_owned())
}

/// The field of that name, and its path: Go includes the structs that it is inlined from.
pub(super) fn field(
    of: &'static Struct,
    name: &str,
) -> Option<(&'static Field, Cow<'static, str>)> {
    let own = of.fields.iter().find(|f| !f.inline && f.name == name);
    let inlined = || {
        of.fields.iter().filter(|f| f.inline).find_map(|f| {
            let Type::Message(message) = &f.ty else {
                return None;
            };
            let (found, path) = field(message.find()?, name)?;
            Some((found, format!("{}.{path}", message.short()).into()))
        })
    };
    own.map(|f| (f, f.name.into())).or_else(inlined)
}

fn word(value: &Value, wanted: &Type) -> String {
    match value {
        // If a number is expected, Go shows the number that does not fit.
        Value::Number(n)
            if matches!(
                wanted,
                Type::Int32 | Type::Int64 | Type::Float | Type::IntOrString
            ) =>
        {
            format!("number {n}")
        }
        other => json::kind(other).to_owned(),
    }
}

fn go_name(ty: &Type) -> String {
    match ty {
        Type::String => "string".into(),
        Type::Bytes => "[]uint8".into(),
        Type::Bool => "bool".into(),
        Type::Int32 | Type::IntOrString => "int32".into(),
        Type::Int64 => "int64".into(),
        Type::Float => "float64".into(),
        Type::List(item) => format!("[]{}", item_name(item)),
        Type::Map(item) => format!("map[string]{}", item_name(item)),
        // Go names types by package and type: `v1.PodSpec`.
        // Texts of JSON are lists of them only in schemas.
        Type::Raw => "v1.JSON".into(),
        Type::Message(message) => message
            .name
            .split('/')
            .next_back()
            .unwrap_or(message.name)
            .to_owned(),
        _ => "string".into(),
    }
}

/// The element type of a list or map is shown by name, even if it has its own decoder.
fn item_name(ty: &Type) -> String {
    match ty {
        Type::Quantity => "resource.Quantity".into(),
        Type::Time => "v1.Time".into(),
        other => go_name(other),
    }
}

/// Resource quantities, which are counted in thousandths.
const AMOUNTS: &str = "v1.ResourceList";

fn round_up(value: &mut Value) {
    let quantity = value
        .as_str()
        .and_then(|text| text.parse::<Quantity>().ok());
    if let Some(rounded) = quantity.and_then(|quantity| quantity.in_thousandths()) {
        *value = rounded.to_string().into();
    }
}

/// The element type of a byte list.
const BYTE: &str = "uint8";

/// Go's message for a value in a tree that it cannot convert.
fn not_converted(found: &Value, wanted: &Type, name: &str) -> String {
    let kind = match found {
        Value::String(_) => "string",
        Value::Bool(_) => "bool",
        Value::Number(n) if n.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::Array(_) => "slice",
        _ => "map",
    };
    match wanted {
        Type::Map(_) => format!("cannot restore map from {kind}"),
        Type::List(_) | Type::Bytes => format!("cannot restore slice from {kind}"),
        Type::Message(_) => format!("cannot restore struct from: {kind}"),
        // Go can convert a number to a string or to another number type, but JSON cannot.
        Type::String if kind == "int64" => format!("cannot convert int64 to {name}"),
        Type::Int32 | Type::Int64 if kind == "float64" => {
            format!("cannot convert float64 to {name}")
        }
        // These have their own decoder, for JSON.
        Type::Time | Type::MicroTime | Type::Duration | Type::IntOrString => {
            format!(
                "json: cannot unmarshal {} into Go value of type {}",
                word(found, wanted),
                go_name(wanted)
            )
        }
        _ if name == BYTE => format!("unrecognized type: {BYTE}"),
        scalar => format!("unrecognized type: {}", go_name(scalar)),
    }
}

/// The text that Go writes for these bytes: without line breaks and with zero in the unused bits.
fn as_encoded(text: String) -> String {
    const LENIENT: GeneralPurpose = GeneralPurpose::new(
        &alphabet::STANDARD,
        PAD.with_decode_allow_trailing_bits(true),
    );
    if STANDARD.decode(&text).is_ok() {
        return text;
    }
    LENIENT
        .decode(text.replace(['\n', '\r'], ""))
        .map_or(text, |bytes| STANDARD.encode(bytes))
}

/// The position at which Go's decoder stops with an error, if any. It skips line breaks.
fn base64_error(text: &str) -> Option<usize> {
    let bytes: Vec<(usize, u8)> = text
        .bytes()
        .enumerate()
        .filter(|(_, b)| !matches!(b, b'\n' | b'\r'))
        .collect();
    let is_digit = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/');
    let count = bytes.iter().take_while(|(_, b)| is_digit(*b)).count();
    let padding = bytes.len() - count;
    match bytes.get(count) {
        None if count % 4 == 0 => None,
        None => Some(text.len() - count % 4),
        Some((at, b'=')) => match (count % 4, bytes[count..].iter().all(|(_, b)| *b == b'=')) {
            (2, true) if padding == 2 => None,
            (3, true) if padding == 1 => None,
            (2, _) if padding == 1 => Some(text.len()),
            (2, _) if bytes[count + 1].1 != b'=' => Some(bytes[count + 1].0),
            (2, _) => Some(bytes[count + 2].0),
            (3, _) => Some(bytes[count + 1].0),
            _ => Some(*at),
        },
        Some((at, _)) => Some(*at),
    }
}

fn null_element(item: &Type) -> Value {
    match item {
        Type::String | Type::Bytes => "".into(),
        Type::Bool => false.into(),
        Type::Int32 | Type::Int64 | Type::Float => 0.into(),
        Type::Quantity => "0".into(),
        Type::Message(_) | Type::Map(_) => Value::Object(Map::new()),
        _ => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::super::of;
    use super::*;
    use serde_json::json;
    use tiphys_apimachinery::Gvk;

    fn refused(group: &str, kind: &str, value: Value) -> String {
        let Value::Object(mut map) = value else {
            panic!("a map")
        };
        read(
            &mut map,
            of(&Gvk::new(group, "v1", kind)).expect("a known kind"),
            false,
        )
        .expect_err("wrong")
        .to_string()
    }

    #[test]
    fn a_wrong_type_is_reported_as_go_does() {
        let wrong = |field: &str, of: &str| {
            format!("json: cannot unmarshal string into Go struct field {field} of type {of}")
        };
        assert_eq!(
            refused("apps", "Deployment", json!({"spec": {"replicas": "3"}})),
            wrong("DeploymentSpec.spec.replicas", "int32")
        );
        let usages = refused(
            "certificates.k8s.io",
            "CertificateSigningRequest",
            json!({"spec": {"usages": "x"}}),
        );
        assert_eq!(
            usages,
            wrong("CertificateSigningRequestSpec.spec.usages", "[]v1.KeyUsage")
        );
        let labels = refused(
            "",
            "Pod",
            json!({"metadata": {"labels": "a", "uid": "b"}, "spec": "c"}),
        );
        assert_eq!(
            labels,
            wrong("ObjectMeta.metadata.labels", "map[string]string")
        );
    }

    #[test]
    fn bytes_are_written_as_go_writes_them() {
        for (sent, kept) in [
            ("YG==", "YA=="),
            ("YWJ=", "YWI="),
            ("YW\r\nI=\n", "YWI="),
            ("YWI=", "YWI="),
            ("", ""),
        ] {
            let Value::Object(mut map) = json!({"data": {"a": sent}}) else {
                panic!("a map")
            };
            read(
                &mut map,
                of(&Gvk::new("", "v1", "Secret")).expect("a known kind"),
                false,
            )
            .expect("bytes");
            assert_eq!(map["data"]["a"], kept);
        }
    }

    #[test]
    fn a_type_that_reads_itself_is_heard_first() {
        let two = json!({"metadata": {"name": 3}, "spec": {"limits": [{"max": {"cpu": "x"}}]}});
        assert!(refused("", "LimitRange", two).starts_with("quantities must match"));
        let schema = json!({"description": [], "items": {"format": {}}});
        let spec = json!({"spec": {"versions": [{"schema": {"openAPIV3Schema": schema}}]}});
        assert!(
            refused("apiextensions.k8s.io", "CustomResourceDefinition", spec)
                .contains("unmarshal object")
        );
    }
}
