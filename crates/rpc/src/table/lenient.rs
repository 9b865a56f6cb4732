//! Reads a request message from JSON in which query parameters are still text: the target type
//! decides whether `"true"` is a boolean, `"5"` a number, and a single value a list of one.

use serde::{
    Deserializer,
    de::{
        DeserializeOwned, DeserializeSeed, Error as _, IntoDeserializer, MapAccess, SeqAccess,
        Visitor,
    },
    forward_to_deserialize_any,
};
use serde_json::{Map, Value};

/// Deserialises the message.
pub fn from_value<T: DeserializeOwned>(value: Value) -> Result<T, serde_json::Error> {
    T::deserialize(Lenient(value))
}

struct Lenient(Value);

/// How messages begin that Go's package of that name would give; the field is not in them.
pub(super) const STRCONV: &str = "strconv.";

fn unparsed(what: &str, text: &str) -> serde_json::Error {
    let text = format!("{STRCONV}Parse{what}: parsing {text:?}: invalid syntax");
    serde_json::Error::custom(text)
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

macro_rules! numbers {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
            match self.single() {
                Value::String(text) => match serde_json::from_str::<serde_json::Number>(text.trim()) {
                    Ok(number) => Value::Number(number).$method(visitor),
                    Err(_) => Err(unparsed("Int", &text)),
                },
                other => other.$method(visitor),
            }
        }
    )*};
}

impl Lenient {
    /// The first value of a repeated parameter that is not a list.
    fn single(self) -> Value {
        match self.0 {
            Value::Array(items) => items.into_iter().next().unwrap_or_default(),
            other => other,
        }
    }
}

impl<'de> Deserializer<'de> for Lenient {
    type Error = serde_json::Error;

    numbers! { deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_f32 deserialize_f64 }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        match self.0 {
            Value::Array(items) => visitor.visit_seq(Items(items.into_iter())),
            Value::Object(map) => visitor.visit_map(Fields::new(map)),
            other => other.deserialize_any(visitor),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        match self.single() {
            Value::String(text) => match text.as_str() {
                "true" | "True" | "TRUE" | "t" | "T" | "1" => visitor.visit_bool(true),
                "false" | "False" | "FALSE" | "f" | "F" | "0" => visitor.visit_bool(false),
                other => Err(unparsed("Bool", other)),
            },
            other => other.deserialize_bool(visitor),
        }
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        self.single().deserialize_str(visitor)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        self.single().deserialize_string(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        if self.0.is_null() {
            visitor.visit_none()
        } else {
            visitor.visit_some(self)
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        match self.0 {
            Value::Array(items) => visitor.visit_seq(Items(items.into_iter())),
            text @ Value::String(_) => visitor.visit_seq(Items(vec![text].into_iter())),
            other => other.deserialize_seq(visitor),
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
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        match self.0 {
            Value::Object(map) => visitor.visit_map(Fields::new(spelled(map, fields))),
            other => Lenient(other).deserialize_any(visitor),
        }
    }

    forward_to_deserialize_any! {
        i128 u128 char bytes byte_buf unit unit_struct tuple tuple_struct map enum identifier ignored_any
    }
}

struct Items(std::vec::IntoIter<Value>);

impl<'de> SeqAccess<'de> for Items {
    type Error = serde_json::Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Self::Error> {
        self.0
            .next()
            .map(|value| seed.deserialize(Lenient(value)))
            .transpose()
    }
}

struct Fields {
    fields: serde_json::map::IntoIter,
    at: Option<(String, Value)>,
}

impl Fields {
    fn new(map: Map<String, Value>) -> Self {
        Self {
            fields: map.into_iter(),
            at: None,
        }
    }
}

impl<'de> MapAccess<'de> for Fields {
    type Error = serde_json::Error;

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
            .ok_or_else(|| serde_json::Error::custom("a value without a key"))?;
        seed.deserialize(Lenient(value))
            .map_err(|e| match e.to_string() {
                text if text.starts_with(STRCONV) => serde_json::Error::custom(text),
                text => serde_json::Error::custom(format!("{key}: {text}")),
            })
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
            (json!({"application": {"spec": 5}}), "application: spec: "),
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
}
