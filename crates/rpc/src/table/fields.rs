//! The `fields` parameter of REST: the parts of a reply to include or, with a leading `-`, to leave
//! out.

use super::query;
use crate::ApiError;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

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
        let Ok(mut value) = serde_json::from_slice::<Value>(message) else {
            return message.to_vec();
        };
        let list_metadata = value
            .get(ITEMS)
            .and(value.get("metadata"))
            .filter(|_| self.keeps_list_metadata)
            .cloned();
        if self.exclude {
            remove(&mut value, &self.root);
        } else if self.root.below.contains_key(ITEMS) || value.get(ITEMS).is_none() {
            keep(&mut value, &self.root);
        } else {
            // A list keeps its length although nothing of its items is selected.
            let mut root = self.root.clone();
            root.below.insert(ITEMS.to_owned(), Node::default());
            keep(&mut value, &root);
        }
        if let (Some(metadata), Value::Object(map)) = (list_metadata, &mut value) {
            map.insert("metadata".into(), metadata);
        }
        value.to_string().into_bytes()
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
}
