//! Records are kept as JSON, without `metadata.managedFields`, which is half of an Application's
//! bytes and is not used here.
//!
//! Main types: [`Raw`], a record whose metadata is parsed, and [`Lean`], what is kept of it, with
//! the positions of its parts, so that unchanged parts need not be parsed again.

use crate::{discovery::Kind, watch::metadata_of};
use serde::{Deserialize, de::Error as _};
use serde_json::value::RawValue;
use std::{borrow::Cow, collections::BTreeMap, ops::Range};

/// The metadata that every reader needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Meta {
    pub namespace: String,
    pub name: String,
    pub uid: String,
    pub resource_version: String,
    pub labels: BTreeMap<String, String>,
    pub finalizers: Vec<String>,
    /// It is deleted once it has no finalizers.
    pub is_deleting: bool,
}

/// The JSON of a record without managedFields.
pub struct Lean {
    json: Box<str>,
    metadata: Range<u32>,
    spec: Range<u32>,
    status: Range<u32>,
    operation: Range<u32>,
}

impl Lean {
    pub fn json(&self) -> &str {
        &self.json
    }

    pub fn metadata(&self) -> &str {
        self.part(&self.metadata)
    }

    pub fn spec(&self) -> &str {
        self.part(&self.spec)
    }

    pub fn status(&self) -> &str {
        self.part(&self.status)
    }

    pub fn operation(&self) -> &str {
        self.part(&self.operation)
    }

    /// An absent part is equivalent to null.
    fn part(&self, place: &Range<u32>) -> &str {
        let text = &self.json[place.start as usize..place.end as usize];
        if text.is_empty() { "null" } else { text }
    }
}

/// A record as the server sent it.
pub struct Raw<'a> {
    json: &'a str,
    outer: Outer<'a>,
    /// The text of the metadata.
    metadata: &'a str,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Outer<'a> {
    #[serde(borrow, default)]
    api_version: Cow<'a, str>,
    #[serde(borrow, default)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    metadata: Metadata<'a>,
    #[serde(borrow, default)]
    spec: Option<&'a RawValue>,
    #[serde(borrow, default)]
    status: Option<&'a RawValue>,
    #[serde(borrow, default)]
    operation: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata<'a> {
    #[serde(borrow, default)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    namespace: Cow<'a, str>,
    #[serde(borrow, default)]
    uid: Cow<'a, str>,
    #[serde(borrow, default)]
    resource_version: Cow<'a, str>,
    #[serde(default)]
    labels: Option<BTreeMap<String, String>>,
    #[serde(default)]
    finalizers: Option<Vec<String>>,
    #[serde(borrow, default)]
    deletion_timestamp: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    managed_fields: Option<&'a RawValue>,
}

impl<'a> Raw<'a> {
    pub fn read(json: &'a str) -> Result<Self, serde_json::Error> {
        let outer: Outer<'a> = serde_json::from_str(json)?;
        let metadata = metadata_of(json)
            .ok_or_else(|| serde_json::Error::custom("its metadata cannot be found"))?;
        Ok(Self {
            json,
            outer,
            metadata,
        })
    }

    pub fn kind(&self) -> &str {
        &self.outer.kind
    }

    pub fn key(&self) -> (String, String) {
        (
            self.outer.metadata.namespace.clone().into_owned(),
            self.outer.metadata.name.clone().into_owned(),
        )
    }

    /// 0: it has none.
    pub fn version(&self) -> u64 {
        self.outer.metadata.resource_version.parse().unwrap_or(0)
    }

    /// Its JSON and metadata. Items of a list of a built-in kind omit apiVersion and kind, custom
    /// resources have them.
    pub fn keep(self, kind: &Kind) -> (Lean, Meta) {
        let (json, outer) = (self.json, &self.outer);
        let typed = !outer.api_version.is_empty();
        let before = if typed {
            String::new()
        } else {
            format!(
                r#""apiVersion":"{}","kind":"{}","#,
                kind.gvk.api_version(),
                kind.gvk.kind
            )
        };
        let open = json.find('{').map_or(0, |at| at + 1);
        let (from, to) = outer
            .metadata
            .managed_fields
            .and_then(|value| entry(json, value))
            .unwrap_or((json.len(), json.len()));
        let place = |at: usize| at + before.len() - if at >= to { to - from } else { 0 };
        let part = |text: Option<&str>| {
            let Some(text) = text else {
                return 0..0;
            };
            let start = offset(json, text);
            let kept =
                |at: usize| u32::try_from(place(at)).expect("a record is smaller than 4 GiB");
            kept(start)..kept(start + text.len())
        };
        let lean = Lean {
            metadata: part(Some(self.metadata)),
            spec: part(outer.spec.map(RawValue::get)),
            status: part(outer.status.map(RawValue::get)),
            operation: part(outer.operation.map(RawValue::get)),
            json: [&json[..open], &before, &json[open..from], &json[to..]]
                .concat()
                .into(),
        };
        let m = self.outer.metadata;
        let meta = Meta {
            namespace: m.namespace.into_owned(),
            name: m.name.into_owned(),
            uid: m.uid.into_owned(),
            resource_version: m.resource_version.into_owned(),
            labels: m.labels.unwrap_or_default(),
            finalizers: m.finalizers.unwrap_or_default(),
            is_deleting: m.deletion_timestamp.is_some(),
        };
        (lean, meta)
    }
}

/// The offset of a part in the text.
fn offset(json: &str, part: &str) -> usize {
    part.as_ptr() as usize - json.as_ptr() as usize
}

/// The range of the `managedFields` entry with this value in the text, including one comma.
fn entry(json: &str, value: &RawValue) -> Option<(usize, usize)> {
    let from = offset(json, value.get());
    let key = json[..from].rfind("\"managedFields\"")?;
    let end = from + value.get().len();
    let after = json[end..].trim_start();
    if after.starts_with(',') {
        return Some((key, json.len() - after.len() + 1));
    }
    let before = json[..key].trim_end();
    Some((before.strip_suffix(',').map_or(key, str::len), end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn kept(json: &str) -> (Value, Meta) {
        let (lean, meta) = Raw::read(json)
            .expect("readable")
            .keep(&super::super::kind("g", "v1", "Thing", "things"));
        let read = |json: &str| {
            serde_json::from_str::<Value>(json).unwrap_or_else(|e| panic!("{json}: {e}"))
        };
        let whole = read(lean.json());
        let parts = [
            ("metadata", lean.metadata()),
            ("spec", lean.spec()),
            ("status", lean.status()),
            ("operation", lean.operation()),
        ];
        for (name, part) in parts {
            assert_eq!(read(part), whole[name], "{name} of {json}");
        }
        (whole, meta)
    }

    #[test]
    fn only_managed_fields_of_the_metadata_are_left_out() {
        let whole = json!({
            "apiVersion": "v1", "kind": "A", "managedFields": [1],
            "metadata": {"managedFields": [{"fieldsV1": {"f:metadata": {}}}], "name": "a", "labels": {"managedFields": "x"}},
            "spec": {"metadata": {"managedFields": 2}, "many": [1, 1.5, null, "\u{e9}\"managedFields\""]},
            "operation": null, "status": {"operation": "o"},
        });
        let mut wanted = whole.clone();
        wanted["metadata"]
            .as_object_mut()
            .expect("a map")
            .remove("managedFields");
        assert_eq!(kept(&whole.to_string()).0, wanted);
        assert_eq!(
            kept(&serde_json::to_string_pretty(&whole).expect("text")).0,
            wanted
        );
        for (metadata, left) in [
            (r#"{"name":"a","managedFields":[1]}"#, json!({"name": "a"})),
            (r#"{ "managedFields" : [1] }"#, json!({})),
            (
                r#"{"managedFields":[ 1 ] , "name":"a"}"#,
                json!({"name": "a"}),
            ),
            (
                r#"{"managedFields":null,"name":"a"}"#,
                json!({"managedFields": null, "name": "a"}),
            ),
            (r#"{}"#, json!({})),
        ] {
            let found = kept(&format!(
                r#"{{"apiVersion":"v1","metadata":{metadata},"z":1}}"#
            ))
            .0;
            assert_eq!(
                found,
                json!({"apiVersion": "v1", "metadata": left, "z": 1}),
                "{metadata}"
            );
        }
        for bad in [
            "",
            "[]",
            "null",
            "{",
            r#"{"metadata": 1}"#,
            r#"{"metadata": {}} x"#,
            r#"{"spec": {}}"#,
        ] {
            assert!(Raw::read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_metadata_is_read_in_any_order() {
        let text = r#"{"spec": {"metadata": {"name": "no"}}, "metadata": {"resourceVersion": "7", "name": "a\"b", "uid": "u",
            "finalizers": ["f"], "labels": {"l": "v"}, "deletionTimestamp": "2026-01-01T00:00:00Z"}, "kind": "K", "apiVersion": "v1"}"#;
        let raw = Raw::read(text).expect("readable");
        assert_eq!(
            (raw.key(), raw.version(), raw.kind()),
            ((String::new(), "a\"b".to_owned()), 7, "K")
        );
        let meta = kept(text).1;
        assert_eq!(
            (
                meta.uid.as_str(),
                meta.finalizers.as_slice(),
                meta.is_deleting
            ),
            ("u", ["f".to_owned()].as_slice(), true)
        );
        assert_eq!(meta.labels.get("l").map(String::as_str), Some("v"));
        assert_eq!(
            Raw::read(r#"{"metadata": {"name": "a"}}"#)
                .expect("readable")
                .version(),
            0
        );
    }

    #[test]
    fn an_item_of_a_list_learns_what_it_is() {
        let (value, _) = kept(r#"{"metadata": {"name": "a", "managedFields": []}, "data": {}}"#);
        assert_eq!(
            value,
            json!({"apiVersion": "g/v1", "kind": "Thing", "metadata": {"name": "a"}, "data": {}})
        );
    }
}
