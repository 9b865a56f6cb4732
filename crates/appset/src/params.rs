//! Parameters: what generators make and templates use.
//!
//! Main types: [`Param`] and [`Params`]. Values keep the distinctions of Go's types where templates
//! or merging can tell them apart.

use crate::error::GenerateError;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use tiphys_gocompat::template::{List, MAP, Map, STRINGS, Str, Type, Value, format};

/// One parameter set. An empty one leaves a template as it is.
pub type Params = BTreeMap<String, Param>;

/// A parameter.
#[derive(Clone, Debug, PartialEq)]
pub enum Param {
    Null,
    Bool(bool),
    /// Every number of JSON or YAML is a float64 in Go.
    Number(f64),
    /// A number that a provider gives.
    Int(i64),
    String(String),
    List(Vec<Param>),
    /// `[]string`
    Strings(Vec<String>),
    /// A nil `[]string`, which JSON writes as null.
    NoStrings,
    Map(Params),
    /// `map[string]string`
    StringMap(BTreeMap<String, String>),
    /// `map[string]JSON`: texts of JSON, which Go prints as their bytes.
    RawMap(BTreeMap<String, Vec<u8>>),
}

const STRING_MAP: Type = Type::Map(&Type::String);
const BYTE_LISTS: Type = Type::Map(&Type::Any);

impl Param {
    fn memory(&self) -> usize {
        const TEXT: usize = size_of::<String>();
        let content = match self {
            Self::Null | Self::Bool(_) | Self::Number(_) | Self::Int(_) | Self::NoStrings => 0,
            Self::String(text) => text.len(),
            Self::List(items) => items.iter().map(Self::memory).sum(),
            Self::Strings(texts) => texts.iter().map(|text| TEXT + text.len()).sum(),
            Self::Map(params) => memory(params),
            Self::StringMap(map) => map.iter().map(|(k, v)| 2 * TEXT + k.len() + v.len()).sum(),
            Self::RawMap(map) => map.iter().map(|(k, v)| 2 * TEXT + k.len() + v.len()).sum(),
        };
        size_of::<Self>() + content
    }

    /// A parameter of a JSON value.
    pub fn from_json(json: &Json) -> Self {
        match json {
            Json::Null => Self::Null,
            Json::Bool(b) => Self::Bool(*b),
            Json::Number(n) => Self::Number(n.as_f64().unwrap_or(f64::NAN)),
            Json::String(s) => Self::String(s.clone()),
            Json::Array(items) => Self::List(items.iter().map(Self::from_json).collect()),
            Json::Object(map) => Self::Map(params_of(map)),
        }
    }

    /// For templates. Every call makes new lists and maps, so that a template which changes one
    /// does not change another parameter set.
    pub fn to_value(&self) -> Value {
        match self {
            Self::Null => Value::Nil,
            Self::Bool(b) => Value::Bool(*b),
            Self::Number(n) => Value::Float(*n),
            Self::Int(n) => Value::int64(*n),
            Self::String(s) => Value::from(s.as_str()),
            Self::List(items) => Value::List(items.iter().map(Self::to_value).collect()),
            Self::Strings(items) => Value::List(List::of(
                STRINGS,
                items.iter().map(|s| Value::from(s.as_str())).collect(),
            )),
            Self::NoStrings => Value::List(List::nil(STRINGS)),
            Self::Map(map) => Value::Map(value_of(map)),
            Self::StringMap(map) => Value::Map(Map::of(
                STRING_MAP,
                map.iter()
                    .map(|(k, v)| (Str::from(k.as_str()), Value::from(v.as_str()))),
            )),
            // A struct with one field of bytes prints as a list of one list of numbers.
            Self::RawMap(map) => Value::Map(Map::of(
                BYTE_LISTS,
                map.iter()
                    .map(|(k, v)| (Str::from(k.as_str()), Value::from(raw_text(v)))),
            )),
        }
    }

    /// As Go's `%v` prints it.
    pub fn printed(&self) -> String {
        if let Self::String(text) = self {
            return text.clone();
        }
        let bytes = format::sprint([&self.to_value()]).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// As encoding/json writes it.
    pub fn to_json(&self) -> Json {
        match self {
            Self::Null | Self::NoStrings => Json::Null,
            Self::Bool(b) => Json::Bool(*b),
            Self::Number(n) => serde_json::Number::from_f64(*n).map_or(Json::Null, Json::Number),
            Self::Int(n) => Json::from(*n),
            Self::String(s) => Json::from(s.as_str()),
            Self::List(items) => items.iter().map(Self::to_json).collect(),
            Self::Strings(items) => Json::from(items.clone()),
            Self::Map(map) => map.iter().map(|(k, v)| (k.clone(), v.to_json())).collect(),
            Self::StringMap(map) => map.iter().map(|(k, v)| (k.clone(), v.clone())).collect(),
            Self::RawMap(map) => map
                .iter()
                .map(|(k, v)| {
                    (
                        k.clone(),
                        serde_json::from_slice::<Json>(v).unwrap_or_default(),
                    )
                })
                .collect(),
        }
    }
}

impl From<&str> for Param {
    fn from(text: &str) -> Self {
        Self::String(text.to_owned())
    }
}

impl From<String> for Param {
    fn from(text: String) -> Self {
        Self::String(text)
    }
}

/// The memory of parameters, about.
pub(crate) fn memory(params: &Params) -> usize {
    params
        .iter()
        .map(|(key, param)| size_of::<String>() + key.len() + param.memory())
        .sum()
}

fn raw_text(bytes: &[u8]) -> String {
    let numbers: Vec<String> = bytes.iter().map(u8::to_string).collect();
    format!("{{[{}]}}", numbers.join(" "))
}

/// The parameters of a JSON object.
pub fn params_of(map: &serde_json::Map<String, Json>) -> Params {
    map.iter()
        .map(|(k, v)| (k.clone(), Param::from_json(v)))
        .collect()
}

/// The data of templates.
pub(crate) fn value_of(params: &Params) -> Map {
    Map::of(
        MAP,
        params
            .iter()
            .map(|(k, v)| (Str::from(k.as_str()), v.to_value())),
    )
}

/// The leaves of nested maps and lists, by paths joined with dots. Typed lists are leaves.
pub(crate) fn flattened(params: &Params) -> BTreeMap<String, &Param> {
    let mut flat = BTreeMap::new();
    for (key, param) in params {
        flatten_into(&mut flat, key.clone(), param);
    }
    flat
}

fn flatten_into<'p>(flat: &mut BTreeMap<String, &'p Param>, path: String, param: &'p Param) {
    match param {
        Param::Map(map) => {
            for (key, param) in map {
                flatten_into(flat, format!("{path}.{key}"), param);
            }
        }
        Param::List(items) => {
            for (index, param) in items.iter().enumerate() {
                flatten_into(flat, format!("{path}.{index}"), param);
            }
        }
        leaf => {
            flat.insert(path, leaf);
        }
    }
}

/// The printed leaves, as parameters of fasttemplate.
pub(crate) fn flat_params(params: &Params) -> Params {
    flattened(params)
        .into_iter()
        .map(|(path, leaf)| (path, Param::String(leaf.printed())))
        .collect()
}

/// The printed leaves, for a selector; maps of strings are entered too.
pub(crate) fn flat_labels(params: &Params) -> BTreeMap<String, String> {
    let mut labels = BTreeMap::new();
    for (path, leaf) in flattened(params) {
        match leaf {
            Param::StringMap(map) => {
                labels.extend(map.iter().map(|(k, v)| (format!("{path}.{k}"), v.clone())));
            }
            leaf => {
                labels.insert(path, leaf.printed());
            }
        }
    }
    labels
}

/// Merges maps deeply; what `from` has wins, even if it is empty.
pub(crate) fn merge(into: &mut Params, from: &Params) -> Result<(), GenerateError> {
    for (key, new) in from {
        let old = into.get_mut(key);
        match (old, new) {
            (Some(Param::Map(old)), Param::Map(new)) if !old.is_empty() => merge(old, new)?,
            (Some(Param::StringMap(old)), Param::StringMap(new)) if !old.is_empty() => {
                old.extend(new.clone());
            }
            (Some(Param::Map(old)), Param::StringMap(new)) if !old.is_empty() => {
                old.extend(new.iter().map(|(k, v)| (k.clone(), v.as_str().into())));
            }
            (Some(Param::StringMap(old)), Param::Map(new)) if !old.is_empty() => {
                if !new.is_empty() {
                    return Err(GenerateError::content(format!(
                        "the map {key} of the first generator has texts only and cannot be merged"
                    )));
                }
            }
            _ => {
                into.insert(key.clone(), new.clone());
            }
        }
    }
    Ok(())
}
