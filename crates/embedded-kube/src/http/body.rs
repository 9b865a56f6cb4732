//! Request bodies: size, media type, JSON or YAML, duplicate keys. Main function: [`read_object`].

use crate::gotypes;
use crate::status::Status;
use axum::body::Body;
use bytes::Bytes;
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use std::fmt;
use tiphys_apimachinery::Object;
use tiphys_gocompat::yaml;

/// As kube-apiserver's limit.
const MAX_BODY: usize = 3 * 1024 * 1024;
const MAX_DEPTH: usize = 200;
const ACCEPTED: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";

/// The whole body, up to the limit.
pub async fn read(body: Body) -> Result<Bytes, Status> {
    match Limited::new(body, MAX_BODY).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.downcast_ref::<LengthLimitError>().is_some() => Err(Status::too_large()),
        Err(error) => Err(Status::bad_request(format!("unable to read the request body: {error}"))),
    }
}

/// The media type without parameters, lower case.
pub fn media_type(headers: &HeaderMap) -> String {
    let value = headers.get(CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or("");
    value.split(';').next().unwrap_or("").trim().to_ascii_lowercase()
}

/// A document and the keys that appear twice in it, as findings.
pub fn parse(headers: &HeaderMap, bytes: &[u8]) -> Result<(Value, Vec<String>), Status> {
    match media_type(headers).as_str() {
        "" | "application/json" | "*/*" => parse_json(bytes),
        "application/yaml" | "text/yaml" | "application/x-yaml" => parse_yaml(bytes),
        "application/vnd.kubernetes.protobuf" => {
            let value = gotypes::decode(bytes).map_err(|e| Status::bad_request(format!("cannot read the protobuf body: {e}")))?;
            Ok((value, Vec::new()))
        }
        _ => Err(Status::unsupported_media_type(ACCEPTED)),
    }
}

pub fn parse_json(bytes: &[u8]) -> Result<(Value, Vec<String>), Status> {
    let mut findings = Vec::new();
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let seed = Tree { path: Path::default(), findings: &mut findings };
    let value = seed.deserialize(&mut reader).and_then(|v| reader.end().map(|()| v));
    match value {
        Ok(value) => Ok((value, findings)),
        Err(error) => Err(Status::bad_request(format!("the object provided is unrecognized: invalid JSON: {error}"))),
    }
}

pub fn parse_yaml(bytes: &[u8]) -> Result<(Value, Vec<String>), Status> {
    // JSON is YAML, and clients send JSON as `application/apply-patch+yaml`; it is read faster as JSON.
    if bytes.iter().find(|b| !b.is_ascii_whitespace()) == Some(&b'{')
        && let Ok(found) = parse_json(bytes)
    {
        return Ok(found);
    }
    let limits = yaml::Limits { bytes: MAX_BODY, depth: MAX_DEPTH, ..yaml::Limits::default() };
    match yaml::parse_document(bytes, &limits, yaml::Duplicates::Refuse) {
        Ok(value) => Ok((value, Vec::new())),
        Err(error) => Err(Status::bad_request(format!("error decoding YAML: {error}"))),
    }
}

/// An object and the decoder's findings.
pub fn read_object(headers: &HeaderMap, bytes: &[u8]) -> Result<(Object, Vec<String>), Status> {
    if bytes.is_empty() {
        return Err(Status::bad_request("the request body is empty; an object is needed"));
    }
    let (value, findings) = parse(headers, bytes)?;
    Ok((Object::from_value(value).map_err(|e| Status::bad_request(e.to_string()))?, findings))
}

/// The way to a value, for messages: `spec.containers[0].name`.
#[derive(Clone, Default)]
struct Path(String);

impl Path {
    fn key(&self, key: &str) -> Self {
        if self.0.is_empty() { Self(key.to_owned()) } else { Self(format!("{}.{key}", self.0)) }
    }
}

/// Builds a tree and notes duplicate keys (the last one wins, as in Go). Nulls inside maps are kept.
struct Tree<'a> {
    path: Path,
    findings: &'a mut Vec<String>,
}

impl<'de> DeserializeSeed<'de> for Tree<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Tree<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, v: bool) -> Result<Value, E> {
        Ok(v.into())
    }

    fn visit_i64<E>(self, v: i64) -> Result<Value, E> {
        Ok(v.into())
    }

    fn visit_u64<E>(self, v: u64) -> Result<Value, E> {
        Ok(v.into())
    }

    fn visit_f64<E>(self, v: f64) -> Result<Value, E> {
        Ok(v.into())
    }

    fn visit_str<E>(self, v: &str) -> Result<Value, E> {
        Ok(v.into())
    }

    fn visit_string<E>(self, v: String) -> Result<Value, E> {
        Ok(v.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        loop {
            let path = Path(format!("{}[{}]", self.path.0, list.len()));
            match seq.next_element_seed(Tree { path, findings: &mut *self.findings })? {
                Some(value) => list.push(value),
                None => return Ok(Value::Array(list)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            let path = self.path.key(&key);
            if map.contains_key(&key) {
                self.findings.push(format!("duplicate field \"{}\"", path.0));
            }
            let value = access.next_value_seed(Tree { path, findings: &mut *self.findings })?;
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn duplicate_keys_are_found_with_their_path_and_the_last_wins() {
        let (value, findings) = parse_json(br#"{"a":{"b":1,"b":2},"l":[{"x":1,"x":3}]}"#).expect("parses");
        assert_eq!(value, json!({"a": {"b": 2}, "l": [{"x": 3}]}));
        assert_eq!(findings, ["duplicate field \"a.b\"", "duplicate field \"l[0].x\""]);
        assert!(parse_json(b"{\"a\":1} x").is_err());
        let deep = "[".repeat(10_000);
        assert!(parse_json(deep.as_bytes()).is_err());
    }
}
