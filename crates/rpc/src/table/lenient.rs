//! Reads a request message from JSON as Go's `encoding/json` does, with its errors. Parameters of a
//! query or a path are still text: the target type decides whether `"true"` is a boolean, `"5"` a
//! number, and a single value a list of one.
//!
//! Main functions: [`from_request`] and, where everything is text, [`from_value`].

use super::{
    go_types::{self, qualified},
    texts::{Given, Text, Texts},
};
use serde::{
    Deserializer,
    de::{
        DeserializeOwned, DeserializeSeed, Error as _, IntoDeserializer, MapAccess, SeqAccess,
        Visitor,
    },
    forward_to_deserialize_any,
};
use serde_json::{Map, Value};
use std::fmt;

/// Why a message cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// In the words of Go's packages, which name the field themselves.
    #[error("{0}")]
    Gos(String),
    /// The fields, from the outermost one, and what is wrong.
    #[error("{0}")]
    Other(String),
}

/// How texts begin that Go's packages would give.
const GOS: [&str; 2] = ["parsing time ", "illegal base64 data "];

impl serde::de::Error for MessageError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        let text = message.to_string();
        if GOS.iter().any(|beginning| text.starts_with(beginning)) {
            return Self::Gos(text);
        }
        Self::Other(text)
    }
}

impl From<serde_json::Error> for MessageError {
    fn from(e: serde_json::Error) -> Self {
        Self::custom(e)
    }
}

impl MessageError {
    fn below(self, key: &str) -> Self {
        match self {
            Self::Other(text) => Self::Other(format!("{key}: {text}")),
            gos => gos,
        }
    }
}

/// A request of REST in JSON.
#[derive(Debug, Default)]
pub struct JsonRequest {
    pub message: Value,
    /// What of it was in the query or the path.
    pub texts: Texts,
    /// The field that is the body, if that is not the whole message.
    pub body: Option<&'static str>,
    /// The error for a required field that it lacks. What is wrong with another comes first.
    pub lacks: Option<String>,
}

/// Deserialises a message in which all scalars are text.
pub fn from_value<T: DeserializeOwned>(value: Value) -> Result<T, MessageError> {
    let place = Place {
        text: Some(Given::Query),
        ..Place::default()
    };
    T::deserialize(Lenient { value, place })
}

/// Deserialises an object that is no request; the error is in Go's words.
pub fn from_json<T: DeserializeOwned>(value: Value) -> Result<T, MessageError> {
    let request = JsonRequest {
        message: value,
        ..JsonRequest::default()
    };
    from_request(request, "")
}

/// Deserialises a request of a service; `package` is that of the service's messages in Go.
pub fn from_request<T: DeserializeOwned>(
    request: JsonRequest,
    package: &str,
) -> Result<T, MessageError> {
    let place = Place {
        package,
        body: request.body,
        texts: Some(&request.texts),
        ..Place::default()
    };
    let value = request.message;
    T::deserialize(Lenient { value, place })
}

/// Where in a message a value is.
#[derive(Clone, Copy, Default)]
struct Place<'a> {
    package: &'a str,
    body: Option<&'static str>,
    /// The name of the innermost message.
    message: &'static str,
    /// The field, and where its message is.
    field: Option<(&'a str, &'a Place<'a>)>,
    texts: Option<&'a Texts>,
    /// Whether the value is text of a query or path.
    text: Option<Given>,
}

impl Place<'_> {
    /// The names of the fields down to this one.
    fn fields(&self) -> Vec<&str> {
        let mut fields: Vec<&str> = Vec::new();
        let mut place = self;
        while let Some((field, above)) = place.field {
            fields.push(field);
            place = above;
        }
        fields.reverse();
        fields
    }

    /// The error for a value of another type than `wanted`.
    fn mismatch(&self, found: &str, wanted: &str) -> MessageError {
        let fields = self.fields();
        let of_body = match self.body {
            Some(body) if fields.first() == Some(&body) => &fields[1..],
            _ => &fields[..],
        };
        let place = if of_body.is_empty() {
            "value".to_owned()
        } else {
            format!("struct field {}.{}", self.message, of_body.join("."))
        };
        MessageError::Gos(format!(
            "json: cannot unmarshal {found} into Go {place} of type {wanted}"
        ))
    }

    /// The error for text that is no `what`.
    fn unparsed(&self, given: Given, what: &str, text: &str, why: &str) -> MessageError {
        let error = format!("strconv.Parse{what}: parsing {text:?}: {why}");
        MessageError::Gos(match given {
            Given::Query => error,
            Given::Path => {
                let parameter = self.fields().join(".");
                format!("type mismatch, parameter: {parameter}, error: {error}")
            }
        })
    }
}

/// What Go calls the type of a JSON value.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

struct Lenient<'a> {
    value: Value,
    place: Place<'a>,
}

/// The fields under their own names: Go reads names in any case.
fn spelled(map: Map<String, Value>, fields: &'static [&'static str]) -> Map<String, Value> {
    let is_known = |name: &String| fields.contains(&name.as_str());
    if map.keys().all(is_known) {
        return map;
    }
    let (mut spelled, others): (Map<_, _>, Vec<_>) = {
        let (known, others): (Vec<_>, Vec<_>) =
            map.into_iter().partition(|(name, _)| is_known(name));
        (known.into_iter().collect(), others)
    };
    for (name, value) in others {
        let own = fields.iter().find(|own| own.eq_ignore_ascii_case(&name));
        let name = own.map_or(name, |own| (*own).to_owned());
        spelled.entry(name).or_insert(value);
    }
    spelled
}

/// What Go's package says of text that is not in the range of a type.
const RANGE: &str = "value out of range";

macro_rules! numbers {
    ($($method:ident $go:literal $parse:literal)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
            let place = self.place;
            match (self.single(), place.text) {
                (Value::String(text), Some(given)) => {
                    let unparsed = |why: &str| place.unparsed(given, $parse, &text, why);
                    let number: serde_json::Number = serde_json::from_str(text.trim())
                        .map_err(|_| unparsed("invalid syntax"))?;
                    Value::Number(number).$method(visitor).map_err(|_| unparsed(RANGE))
                }
                (Value::Number(number), _) => {
                    let found = format!("number {number}");
                    let read = Value::Number(number).$method(visitor);
                    read.map_err(|_| place.mismatch(&found, $go))
                }
                (Value::Null, _) => Ok(Value::Null.$method(visitor)?),
                (other, _) => Err(place.mismatch(kind(&other), $go)),
            }
        }
    )*};
}

impl Lenient<'_> {
    /// The first value of a repeated parameter that is not a list.
    fn single(self) -> Value {
        match self.value {
            Value::Array(items) if self.place.text.is_some() => {
                items.into_iter().next().unwrap_or_default()
            }
            other => other,
        }
    }
}

impl<'de> Deserializer<'de> for Lenient<'_> {
    type Error = MessageError;

    numbers! {
        deserialize_i8 "int8" "Int" deserialize_i16 "int16" "Int" deserialize_i32 "int32" "Int"
        deserialize_i64 "int64" "Int" deserialize_u8 "uint8" "Uint"
        deserialize_u16 "uint16" "Uint" deserialize_u32 "uint32" "Uint"
        deserialize_u64 "uint64" "Uint" deserialize_f32 "float32" "Float"
        deserialize_f64 "float64" "Float"
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        match self.value {
            Value::Array(items) => visitor.visit_seq(Items::new(items, self.place)),
            Value::Object(map) => visitor.visit_map(Fields::of_map(map, self.place)),
            other => Ok(other.deserialize_any(visitor)?),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        let place = self.place;
        match (self.single(), place.text) {
            (Value::String(text), Some(given)) => match text.as_str() {
                "true" | "True" | "TRUE" | "t" | "T" | "1" => visitor.visit_bool(true),
                "false" | "False" | "FALSE" | "f" | "F" | "0" => visitor.visit_bool(false),
                other => Err(place.unparsed(given, "Bool", other, "invalid syntax")),
            },
            (value @ (Value::Bool(_) | Value::Null), _) => Ok(value.deserialize_bool(visitor)?),
            (other, _) => Err(place.mismatch(kind(&other), "bool")),
        }
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        self.deserialize_string(visitor)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        let place = self.place;
        match self.single() {
            value @ (Value::String(_) | Value::Null) => Ok(value.deserialize_string(visitor)?),
            other => Err(place.mismatch(kind(&other), "string")),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        if self.value.is_null() {
            visitor.visit_none()
        } else {
            visitor.visit_some(self)
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        let place = self.place;
        match (self.value, place.text) {
            (Value::Array(items), _) => visitor.visit_seq(Items::new(items, place)),
            (text @ Value::String(_), Some(_)) => visitor.visit_seq(Items::new(vec![text], place)),
            (Value::Null, _) => Ok(Value::Null.deserialize_seq(visitor)?),
            (other, _) => {
                let field = place.field.map_or("", |(name, _)| name);
                let wanted = go_types::of_list(visitor, place.package, place.message, field);
                Err(place.mismatch(kind(&other), &wanted))
            }
        }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        let place = self.place;
        match self.value {
            Value::Object(map) => visitor.visit_map(Fields::of_map(map, place)),
            Value::Null => Ok(Value::Null.deserialize_map(visitor)?),
            other => {
                let wanted = go_types::of_map(visitor, place.package);
                Err(place.mismatch(kind(&other), &wanted))
            }
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        let mut place = self.place;
        match self.value {
            Value::Object(map) => {
                place.message = name;
                visitor.visit_map(Fields::of_message(spelled(map, fields), place))
            }
            other @ Value::Null => Ok(other.deserialize_any(visitor)?),
            other => Err(place.mismatch(kind(&other), &qualified(name, place.package))),
        }
    }

    forward_to_deserialize_any! {
        i128 u128 char bytes byte_buf unit unit_struct tuple tuple_struct enum identifier
        ignored_any
    }
}

struct Items<'a> {
    items: std::vec::IntoIter<Value>,
    place: Place<'a>,
}

impl<'a> Items<'a> {
    fn new(items: Vec<Value>, place: Place<'a>) -> Self {
        let items = items.into_iter();
        Self { items, place }
    }
}

impl<'de> SeqAccess<'de> for Items<'_> {
    type Error = MessageError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Self::Error> {
        let place = self.place;
        self.items
            .next()
            .map(|value| seed.deserialize(Lenient { value, place }))
            .transpose()
    }
}

struct Fields<'a> {
    fields: serde_json::map::IntoIter,
    at: Option<(String, Value)>,
    place: Place<'a>,
    /// Keys of a map are no fields.
    is_message: bool,
}

impl<'a> Fields<'a> {
    fn of_message(map: Map<String, Value>, place: Place<'a>) -> Self {
        Self {
            is_message: true,
            ..Self::of_map(map, place)
        }
    }

    fn of_map(map: Map<String, Value>, place: Place<'a>) -> Self {
        Self {
            fields: map.into_iter(),
            at: None,
            place,
            is_message: false,
        }
    }
}

impl<'de> MapAccess<'de> for Fields<'_> {
    type Error = MessageError;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Self::Error> {
        self.at = self.fields.next();
        self.at
            .as_ref()
            .map(|(key, _)| seed.deserialize(key.as_str().into_deserializer()))
            .transpose()
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<T::Value, Self::Error> {
        let (key, value) = self
            .at
            .take()
            .ok_or_else(|| MessageError::custom("a value without a key"))?;
        let mut place = self.place;
        if let Some(texts) = place.texts {
            (place.text, place.texts) = match texts.of(&key) {
                None => (None, None),
                Some(Text::Whole(given)) => (Some(*given), None),
                Some(Text::Fields(texts)) => (None, Some(texts)),
            };
        }
        if self.is_message {
            place.field = Some((&key, &self.place));
        }
        seed.deserialize(Lenient { value, place })
            .map_err(|e| e.below(&key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tiphys_api::rpc::application::{
        ApplicationCreateRequest, ApplicationQuery, ApplicationResourceDeleteRequest,
        RevisionMetadataQuery,
    };

    #[test]
    fn text_becomes_what_the_field_is() {
        let q: ApplicationResourceDeleteRequest =
            from_value(json!({"name": "a", "force": "true", "orphan": "false"})).expect("it reads");
        assert_eq!((q.force, q.orphan), (Some(true), Some(false)));
        let q: RevisionMetadataQuery = from_value(json!({"sourceIndex": "3"})).expect("it reads");
        assert_eq!(q.source_index, Some(3));
        let q: ApplicationQuery =
            from_value(json!({"projects": "a", "name": ["x", "y"]})).expect("it reads");
        assert_eq!(
            (q.projects, q.name),
            (vec!["a".to_owned()], Some("x".to_owned()))
        );
    }

    #[test]
    fn a_body_passes_unchanged() {
        let app = json!({"metadata": {"name": "a"}, "spec": {"project": "p", "destination": {}, "source": {"repoURL": "r", "helm": {"valuesObject": {"n": "1", "deep": [1, true]}}}}});
        let q: ApplicationCreateRequest =
            from_value(json!({"application": app, "upsert": "true"})).expect("it reads");
        let values = q
            .application
            .spec
            .into_inner()
            .source
            .and_then(|s| s.helm)
            .and_then(|h| h.values_object)
            .expect("it has values");
        assert_eq!(values.value(), json!({"n": "1", "deep": [1, true]}));
        assert_eq!(q.upsert, Some(true));
    }

    #[test]
    fn an_error_is_gos_or_names_the_field() {
        for (json, text) in [
            (
                json!({"upsert": "maybe"}),
                "strconv.ParseBool: parsing \"maybe\": invalid syntax",
            ),
            (
                json!({"application": {"spec": 5}}),
                "json: cannot unmarshal number into Go struct field Application.application.spec of type \
                 v1alpha1.ApplicationSpec",
            ),
        ] {
            let e = from_value::<ApplicationCreateRequest>(json).expect_err("it is wrong");
            assert!(e.to_string().starts_with(text), "{e}");
        }
    }

    #[test]
    fn names_are_read_in_any_case() {
        let q: ApplicationQuery =
            from_value(json!({"NAME": "a", "Projects": ["p"], "projects": ["q"]}))
                .expect("it reads");
        assert_eq!(
            (q.name.as_deref(), q.projects),
            (Some("a"), vec!["q".to_owned()])
        );
    }

    /// A body that is the Application, or the whole message.
    fn refused<T: DeserializeOwned + fmt::Debug>(
        message: Value,
        body: Option<&'static str>,
    ) -> String {
        let request = JsonRequest {
            message,
            body,
            ..JsonRequest::default()
        };
        let e = from_request::<T>(request, "application").expect_err("it is wrong");
        e.to_string()
    }

    #[test]
    fn a_body_of_another_type_is_refused_in_gos_words() {
        let application = |app: Value| {
            let message = json!({"application": app});
            refused::<ApplicationCreateRequest>(message, Some("application"))
        };
        let whole = |message: Value| refused::<ApplicationResourceDeleteRequest>(message, None);
        for (got, found, place) in [
            (
                application(json!([])),
                "array",
                "value of type v1alpha1.Application",
            ),
            (
                application(json!({"spec": {"sources": {}}})),
                "object",
                "struct field ApplicationSpec.spec.sources of type v1alpha1.ApplicationSources",
            ),
            (
                application(json!({"spec": {"ignoreDifferences": {}}})),
                "object",
                "struct field ApplicationSpec.spec.ignoreDifferences of type \
                 v1alpha1.IgnoreDifferences",
            ),
            (
                application(json!({"spec": {"syncPolicy": {"syncOptions": "x"}}})),
                "string",
                "struct field SyncPolicy.spec.syncPolicy.syncOptions of type \
                 v1alpha1.SyncOptions",
            ),
            (
                application(json!({"spec": {"revisionHistoryLimit": 1.5}})),
                "number 1.5",
                "struct field ApplicationSpec.spec.revisionHistoryLimit of type int64",
            ),
            (
                application(json!({"metadata": {"labels": [1]}})),
                "array",
                "struct field ObjectMeta.metadata.labels of type map[string]string",
            ),
            (
                application(json!({"metadata": {"labels": {"a": 1}}})),
                "number",
                "struct field ObjectMeta.metadata.labels of type string",
            ),
            (
                whole(json!({"force": "true"})),
                "string",
                "struct field ApplicationResourceDeleteRequest.force of type bool",
            ),
            (
                whole(json!([])),
                "array",
                "value of type application.ApplicationResourceDeleteRequest",
            ),
        ] {
            assert_eq!(
                got,
                format!("json: cannot unmarshal {found} into Go {place}")
            );
        }
    }

    #[test]
    fn text_of_a_path_is_named() {
        let mut texts = Texts::default();
        texts.add(&["sourceIndex"], Given::Path);
        let request = JsonRequest {
            message: json!({"sourceIndex": "x"}),
            texts,
            ..JsonRequest::default()
        };
        let e = from_request::<RevisionMetadataQuery>(request, "application");
        let why = "strconv.ParseInt: parsing \"x\": invalid syntax";
        assert_eq!(
            e.expect_err("it is wrong").to_string(),
            format!("type mismatch, parameter: sourceIndex, error: {why}")
        );
    }
}
