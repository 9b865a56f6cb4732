//! What Go calls the types of fields, found by reading them from nothing. Main functions:
//! [`of_list`], [`of_map`] and [`qualified`].

use super::inside::looks_inside;
use serde::{
    Deserializer,
    de::{DeserializeSeed, MapAccess, SeqAccess, Visitor, value::StrDeserializer},
};
use std::fmt;

/// Messages of a service that do not end as [`REQUESTS`] say.
const OF_SERVICES: [&str; 3] = ["ClusterID", "SyncOptions", "ResourceActionParameters"];
const REQUESTS: [&str; 3] = ["Request", "Query", "Response"];
/// Lists that have names of their own.
const LISTS: [(&str, &str); 11] = [
    ("v1alpha1.ApplicationSource", "v1alpha1.ApplicationSources"),
    (
        "v1alpha1.ApplicationSourcePluginParameter",
        "v1alpha1.ApplicationSourcePluginParameters",
    ),
    (
        "v1alpha1.ApplicationSetNestedGenerator",
        "v1alpha1.ApplicationSetNestedGenerators",
    ),
    (
        "v1alpha1.ApplicationSetTerminalGenerator",
        "v1alpha1.ApplicationSetTerminalGenerators",
    ),
    (
        "v1alpha1.ApplicationSetResourceIgnoreDifferences",
        "v1alpha1.ApplicationSetIgnoreDifferences",
    ),
    ("v1alpha1.EnvEntry", "v1alpha1.Env"),
    ("v1alpha1.KustomizePatch", "v1alpha1.KustomizePatches"),
    ("v1alpha1.KustomizeReplica", "v1alpha1.KustomizeReplicas"),
    (
        "v1alpha1.ResourceIgnoreDifferences",
        "v1alpha1.IgnoreDifferences",
    ),
    ("v1alpha1.RevisionHistory", "v1alpha1.RevisionHistories"),
    ("v1alpha1.SyncWindow", "v1alpha1.SyncWindows"),
];
/// Lists of text that have names of their own: their message, their field, and the name.
const TEXTS: [(&str, &str, &str); 3] = [
    (
        "ApplicationSourceKustomize",
        "images",
        "v1alpha1.KustomizeImages",
    ),
    ("SyncOperation", "syncOptions", "v1alpha1.SyncOptions"),
    ("SyncPolicy", "syncOptions", "v1alpha1.SyncOptions"),
];
const ANY: &str = "interface {}";

/// The name of a message with its package; `package` is that of the service.
pub fn qualified(name: &str, package: &str) -> String {
    let of_service =
        OF_SERVICES.contains(&name) || REQUESTS.iter().any(|ending| name.ends_with(ending));
    let package = match name {
        "ObjectMeta" | "OwnerReference" | "ListMeta" | "LabelSelector" => "v1",
        _ if of_service => package,
        _ => "v1alpha1",
    };
    format!("{package}.{name}")
}

/// The type of a list that the visitor takes for this field of a message.
pub fn of_list<'de, V: Visitor<'de>>(
    visitor: V,
    package: &str,
    message: &str,
    field: &str,
) -> String {
    let named = |(of, own, _): &&(&str, &str, &str)| (*of, *own) == (message, field);
    match TEXTS.iter().find(named) {
        Some((_, _, name)) => (*name).to_owned(),
        None => name(visitor.visit_seq(Nothing(package))),
    }
}

/// The type of a map that the visitor takes.
pub fn of_map<'de, V: Visitor<'de>>(visitor: V, package: &str) -> String {
    name(visitor.visit_map(Nothing(package)))
}

fn name<T>(read: Result<T, Name>) -> String {
    read.err().map_or_else(|| ANY.to_owned(), |name| name.0)
}

/// The name of a type, as the error of reading it.
#[derive(Debug)]
struct Name(String);

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Name {}

impl serde::de::Error for Name {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self(ANY.to_owned())
    }
}

/// Has no value, and answers each question for one with the name of the type.
#[derive(Clone, Copy)]
struct Nothing<'a>(&'a str);

macro_rules! scalars {
    ($($method:ident $name:literal)*) => {$(
        fn $method<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Name> {
            Err(Name($name.to_owned()))
        }
    )*};
}

impl<'de> Deserializer<'de> for Nothing<'_> {
    type Error = Name;

    scalars! {
        deserialize_bool "bool" deserialize_str "string" deserialize_string "string"
        deserialize_char "int32" deserialize_bytes "[]uint8" deserialize_byte_buf "[]uint8"
        deserialize_i8 "int8" deserialize_i16 "int16" deserialize_i32 "int32"
        deserialize_i64 "int64" deserialize_u8 "uint8" deserialize_u16 "uint16"
        deserialize_u32 "uint32" deserialize_u64 "uint64" deserialize_f32 "float32"
        deserialize_f64 "float64" deserialize_any "interface {}" deserialize_unit "interface {}"
        deserialize_identifier "string" deserialize_ignored_any "interface {}"
    }

    looks_inside!(Name);

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        _: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Name> {
        Err(Name(qualified(name, self.0)))
    }
}

impl<'de> SeqAccess<'de> for Nothing<'_> {
    type Error = Name;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Name> {
        let item = name(seed.deserialize(*self));
        let named = LISTS.iter().find(|(own, _)| *own == item);
        let of_service = !self.0.is_empty() && item.starts_with(&format!("{}.", self.0));
        Err(Name(match named {
            Some((_, list)) => (*list).to_owned(),
            // Messages of services are pointers in Go.
            None if of_service => format!("[]*{item}"),
            None => format!("[]{item}"),
        }))
    }
}

impl<'de> MapAccess<'de> for Nothing<'_> {
    type Error = Name;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Name> {
        seed.deserialize(StrDeserializer::new("")).map(Some)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, Name> {
        let value = name(seed.deserialize(*self));
        Err(Name(format!("map[string]{value}")))
    }
}
