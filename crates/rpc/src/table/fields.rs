//! The `fields` parameter of REST: the parts of a reply to include or, with a leading `-`, to leave
//! out.

use super::query;
use crate::ApiError;
use serde::{
    Deserialize as _, Deserializer,
    de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Value};
use std::{collections::BTreeMap, fmt};

/// A selection of fields; paths continue through lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fields {
    exclude: bool,
    /// Whether a list keeps its metadata although they are not selected: clients need its resource
    /// version to watch from it.
    keeps_list_metadata: bool,
    root: Node,
}

/// The selection below one key; at most [`query::MAX_DEPTH`] levels deep.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Node {
    /// Whether a path ends here.
    whole: bool,
    below: BTreeMap<String, Node>,
}

/// The field in which a stream wraps each message; paths for a stream start with it.
const RESULT: &str = "result";
const ITEMS: &str = "items";
const METADATA: &str = "metadata";

impl Fields {
    /// Parses the parameter; `None` if it is empty.
    pub fn parse(text: &str) -> Result<Option<Self>, ApiError> {
        let (text, exclude) = text
            .strip_prefix('-')
            .map_or((text, false), |rest| (rest, true));
        let mut root = Node::default();
        for path in text.split(',').filter(|f| !f.is_empty()) {
            let words = query::parts(path, "a path in fields")?;
            let words = if words.len() > 1 && words[0] == RESULT {
                &words[1..]
            } else {
                &words[..]
            };
            let mut node = &mut root;
            for word in words {
                node = node.below.entry((*word).to_owned()).or_default();
            }
            node.whole = true;
        }
        Ok((!text.is_empty()).then_some(Self {
            exclude,
            keeps_list_metadata: true,
            root,
        }))
    }

    /// The same selection for lists whose metadata are like any other field.
    pub fn strictly(self) -> Self {
        Self {
            keeps_list_metadata: false,
            ..self
        }
    }

    /// Returns the message reduced to the selection.
    pub fn apply(&self, message: &[u8]) -> Vec<u8> {
        let reduced = match self.exclude {
            true => self.without(message),
            false => self.only(message),
        };
        reduced.map_or_else(|_| message.to_vec(), |value| value.to_string().into_bytes())
    }

    fn without(&self, message: &[u8]) -> serde_json::Result<Value> {
        let mut value: Value = serde_json::from_slice(message)?;
        let list_metadata = value
            .get(ITEMS)
            .and(value.get(METADATA))
            .filter(|_| self.keeps_list_metadata)
            .cloned();
        remove(&mut value, &self.root);
        if let (Some(metadata), Value::Object(map)) = (list_metadata, &mut value) {
            map.insert(METADATA.into(), metadata);
        }
        Ok(value)
    }

    /// What is not selected is not even read: it is most of a long list.
    fn only(&self, message: &[u8]) -> serde_json::Result<Value> {
        let mut root = self.root.clone();
        // A list keeps its length although nothing of its items is selected.
        root.below.entry(ITEMS.to_owned()).or_default();
        if self.keeps_list_metadata {
            // It comes before the items, which tell that the message is a list.
            let all = Node {
                whole: true,
                ..Node::default()
            };
            root.below.insert(METADATA.to_owned(), all);
        }
        let mut json = serde_json::Deserializer::from_slice(message);
        let mut value = Selected(&root).deserialize(&mut json)?;
        json.end()?;
        if let Value::Object(map) = &mut value
            && self.keeps_list_metadata
            && !map.contains_key(ITEMS)
        {
            match self.root.below.get(METADATA) {
                Some(node) => map
                    .get_mut(METADATA)
                    .into_iter()
                    .for_each(|m| keep(m, node)),
                None => {
                    map.remove(METADATA);
                }
            }
        }
        Ok(value)
    }
}

/// Reads what is selected of a value.
#[derive(Clone, Copy)]
struct Selected<'a>(&'a Node);

impl<'de> DeserializeSeed<'de> for Selected<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        match self.0.whole {
            true => Value::deserialize(from),
            false => from.deserialize_any(self),
        }
    }
}

impl<'de> Visitor<'de> for Selected<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut kept = Vec::new();
        while let Some(item) = items.next_element_seed(self)? {
            kept.push(item);
        }
        Ok(kept.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut kept = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            match self.0.below.get(&key) {
                Some(below) => {
                    let value = entries.next_value_seed(Selected(below))?;
                    kept.insert(key, value);
                }
                None => {
                    entries.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(kept.into())
    }
}

fn keep(value: &mut Value, node: &Node) {
    if node.whole {
        return;
    }
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| keep(item, node)),
        Value::Object(map) => {
            let kept = std::mem::take(map)
                .into_iter()
                .filter_map(|(key, mut inner)| {
                    keep(&mut inner, node.below.get(&key)?);
                    Some((key, inner))
                });
            *map = kept.collect::<Map<_, _>>();
        }
        _ => {}
    }
}

fn remove(value: &mut Value, node: &Node) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| remove(item, node)),
        Value::Object(map) => {
            map.retain(|key, _| !node.below.get(key).is_some_and(|below| below.whole));
            for (key, inner) in map.iter_mut() {
                if let Some(below) = node.below.get(key) {
                    remove(inner, below);
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn parts_of_a_reply() {
        let parse = |text: &str| {
            Fields::parse(text)
                .expect("it is read")
                .expect("a selection")
        };
        let list = json!({"metadata": {"resourceVersion": "5"}, "items": [
            {"metadata": {"name": "a", "labels": {"x": "y"}}, "spec": {"project": "p", "source": {"path": "q"}}}
        ]});
        for (fields, items) in [
            (
                "items.metadata.name,items.spec.source",
                json!([{"metadata": {"name": "a"}, "spec": {"source": {"path": "q"}}}]),
            ),
            (
                "items.spec,items.spec.project",
                json!([{"spec": {"project": "p", "source": {"path": "q"}}}]),
            ),
            (
                "-items.metadata,items.spec.source",
                json!([{"spec": {"project": "p"}}]),
            ),
        ] {
            let got = parse(fields).apply(list.to_string().as_bytes());
            let got: Value = serde_json::from_slice(&got).expect("JSON");
            assert_eq!(
                got,
                json!({"metadata": {"resourceVersion": "5"}, "items": items}),
                "{fields}"
            );
        }
        assert_eq!(Fields::parse(""), Ok(None));
        for none in [",", "bogus", "Items.metadata"] {
            let got = parse(none).apply(list.to_string().as_bytes());
            let got: Value = serde_json::from_slice(&got).expect("JSON");
            let want = json!({"metadata": {"resourceVersion": "5"}, "items": [{}]});
            assert_eq!(got, want, "{none}");
        }
        let strict = parse("items.metadata.name").strictly();
        let got = strict.apply(list.to_string().as_bytes());
        assert_eq!(got, br#"{"items":[{"metadata":{"name":"a"}}]}"#);
        let event = parse("result.type").apply(br#"{"type": "ADDED", "application": {}}"#);
        assert_eq!(event, br#"{"type":"ADDED"}"#);
    }

    #[test]
    fn what_is_not_selected_is_left_out_as_if_it_had_been_read() {
        let resources = json!([{"kind": "A", "health": {"status": "Healthy"}}, 1.5, null, true]);
        let app = json!({
            "metadata": {"name": "a", "labels": {"x": "y"}, "generation": 3},
            "status": {"resources": resources, "items": [-4, "\u{e4}\n"]},
        });
        let messages = [
            app.clone(),
            json!({"metadata": {"resourceVersion": "5", "continue": ""}, "items": [app, {}, 7]}),
            json!({"items": null}),
            json!({"items": []}),
            json!({"type": "ADDED", "application": {"metadata": {"name": "a"}}}),
        ];
        let selections = [
            "metadata",
            "metadata.name",
            "items.metadata.name",
            "items.metadata.name.first",
            "items.status.resources.health,items.metadata.labels",
            "status.resources.kind,status.items",
            "metadata.resourceVersion,items.status",
            "items",
            "application.metadata",
            "nothing",
        ];
        let mut reduced = 0;
        for fields in selections {
            for strictly in [true, false] {
                let selection = Fields::parse(fields).expect("it is read");
                let mut selection = selection.expect("a selection");
                if strictly {
                    selection = selection.strictly();
                }
                for message in &messages {
                    let mut want = message.clone();
                    let mut root = selection.root.clone();
                    root.below.entry(ITEMS.to_owned()).or_default();
                    keep(&mut want, &root);
                    if let (Some(_), Some(metadata)) = (message.get(ITEMS), message.get(METADATA))
                        && !strictly
                    {
                        want[METADATA] = metadata.clone();
                    }
                    let got = selection.apply(message.to_string().as_bytes());
                    let got: Value = serde_json::from_slice(&got).expect("JSON");
                    assert_eq!(got, want, "{fields} {strictly}");
                    reduced += usize::from(want != *message);
                }
            }
        }
        assert!(reduced > 50, "{reduced}");
        let selection = Fields::parse("items").expect("it is read");
        let selection = selection.expect("a selection");
        for broken in ["{\"items\": [1}", "{} x"] {
            assert_eq!(selection.apply(broken.as_bytes()), broken.as_bytes());
        }
    }
}
