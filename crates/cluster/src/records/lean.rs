//! Records are read without `metadata.managedFields`: half of an Application's bytes, which nobody here looks at.
//!
//! Main functions: [`object`] and [`head`].

use serde::{
    Deserialize,
    de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor},
};
use serde_json::{Map, Value};
use std::{borrow::Cow, fmt};
use tiphys_apimachinery::Object;

/// An object without its managedFields, which are skipped as bytes.
pub fn object(json: &[u8]) -> Result<Object, serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_slice(json);
    let map = Without { fields: &["metadata", "managedFields"] }.deserialize(&mut reader)?;
    reader.end()?;
    Ok(Object(map))
}

/// Reads a map but what is at a path, of which the last name is left out.
struct Without {
    fields: &'static [&'static str],
}

impl<'de> DeserializeSeed<'de> for Without {
    type Value = Map<String, Value>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Without {
    type Value = Map<String, Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
        let mut map = Map::new();
        while let Some(name) = access.next_key::<String>()? {
            match self.fields {
                [field] if name == *field => {
                    access.next_value::<IgnoredAny>()?;
                }
                [field, rest @ ..] if name == *field => {
                    map.insert(name, Value::Object(access.next_value_seed(Self { fields: rest })?));
                }
                _ => {
                    map.insert(name, access.next_value()?);
                }
            }
        }
        Ok(map)
    }
}

/// Which object it is and in which version, without reading the rest.
#[derive(Deserialize)]
pub struct Head<'a> {
    #[serde(borrow)]
    pub metadata: HeadMeta<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HeadMeta<'a> {
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    #[serde(borrow, default)]
    pub namespace: Cow<'a, str>,
    #[serde(borrow)]
    pub resource_version: Cow<'a, str>,
}

/// `None`: it is not as objects of a server are.
pub fn head(json: &str) -> Option<HeadMeta<'_>> {
    serde_json::from_str::<Head<'_>>(json).ok().map(|h| h.metadata)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_managed_fields_of_the_metadata_are_left_out() {
        let whole = json!({
            "apiVersion": "v1", "kind": "A", "managedFields": [1],
            "metadata": {"managedFields": [{"fieldsV1": {"f:metadata": {}}}], "name": "a", "labels": {"managedFields": "x"}},
            "spec": {"metadata": {"managedFields": 2}, "many": [1, 1.5, null, "\u{e9}"]},
        });
        let mut wanted = whole.clone();
        wanted["metadata"].as_object_mut().expect("a map").remove("managedFields");
        assert_eq!(object(whole.to_string().as_bytes()).expect("readable").into_value(), wanted);
        for bad in ["", "[]", "null", "{", r#"{"metadata": 1}"#, r#"{"metadata": {}} x"#] {
            assert!(object(bad.as_bytes()).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_head_is_read_in_any_order() {
        let head = head(r#"{"spec": {"metadata": {"name": "no"}}, "metadata": {"resourceVersion": "7", "name": "a\"b"}}"#).expect("a head");
        assert_eq!((&*head.name, &*head.namespace, &*head.resource_version), ("a\"b", "", "7"));
        assert!(super::head(r#"{"metadata": {"name": "a"}}"#).is_none());
    }
}
