//! The `fields` parameter of REST: which parts of a reply a client wants, or with a leading `-` which it does not.

use serde_json::{Map, Value};

/// A selection; paths go through lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fields {
    exclude: bool,
    paths: Vec<Vec<String>>,
}

/// What a stream wraps each message in, and a path for a stream therefore starts with.
const RESULT: &str = "result";

impl Fields {
    /// From the parameter's text; nothing when it is empty.
    pub fn parse(text: &str) -> Option<Self> {
        let (text, exclude) = text.strip_prefix('-').map_or((text, false), |rest| (rest, true));
        let path = |field: &str| {
            let mut words: Vec<String> = field.split('.').map(str::to_owned).collect();
            if words.len() > 1 && words[0] == RESULT {
                words.remove(0);
            }
            words
        };
        let paths: Vec<_> = text.split(',').filter(|f| !f.is_empty()).map(path).collect();
        (!paths.is_empty()).then_some(Self { exclude, paths })
    }

    /// The message with what is wanted of it.
    pub fn apply(&self, message: &[u8]) -> Vec<u8> {
        let Ok(mut value) = serde_json::from_slice::<Value>(message) else { return message.to_vec() };
        let list_metadata = value.get("items").and(value.get("metadata")).cloned();
        let paths: Vec<&[String]> = self.paths.iter().map(Vec::as_slice).collect();
        if self.exclude {
            remove(&mut value, &paths);
        } else {
            keep(&mut value, &paths);
        }
        // A list's version is needed to watch from it.
        if let (Some(metadata), Value::Object(map)) = (list_metadata, &mut value) {
            map.insert("metadata".into(), metadata);
        }
        value.to_string().into_bytes()
    }
}

fn below<'a>(paths: &[&'a [String]], key: &str) -> Vec<&'a [String]> {
    paths.iter().filter_map(|p| p.split_first()).filter(|(first, _)| *first == key).map(|(_, rest)| rest).collect()
}

fn keep(value: &mut Value, paths: &[&[String]]) {
    if paths.iter().any(|p| p.is_empty()) {
        return;
    }
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| keep(item, paths)),
        Value::Object(map) => {
            let kept = std::mem::take(map).into_iter().filter_map(|(key, mut inner)| {
                let deeper = below(paths, &key);
                (!deeper.is_empty()).then(|| {
                    keep(&mut inner, &deeper);
                    (key, inner)
                })
            });
            *map = kept.collect::<Map<_, _>>();
        }
        _ => {}
    }
}

fn remove(value: &mut Value, paths: &[&[String]]) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| remove(item, paths)),
        Value::Object(map) => {
            map.retain(|key, _| !below(paths, key).iter().any(|p| p.is_empty()));
            for (key, inner) in map.iter_mut() {
                remove(inner, &below(paths, key));
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
        let list = json!({"metadata": {"resourceVersion": "5"}, "items": [
            {"metadata": {"name": "a", "labels": {"x": "y"}}, "spec": {"project": "p", "source": {"path": "q"}}}
        ]});
        for (fields, items) in [
            ("items.metadata.name,items.spec.source", json!([{"metadata": {"name": "a"}, "spec": {"source": {"path": "q"}}}])),
            ("items.spec,items.spec.project", json!([{"spec": {"project": "p", "source": {"path": "q"}}}])),
            ("-items.metadata,items.spec.source", json!([{"spec": {"project": "p"}}])),
        ] {
            let got = Fields::parse(fields).expect("a selection").apply(list.to_string().as_bytes());
            let got: Value = serde_json::from_slice(&got).expect("JSON");
            assert_eq!(got, json!({"metadata": {"resourceVersion": "5"}, "items": items}), "{fields}");
        }
        assert_eq!(Fields::parse(""), None);
        let event = Fields::parse("result.type").expect("a selection").apply(br#"{"type": "ADDED", "application": {}}"#);
        assert_eq!(event, br#"{"type":"ADDED"}"#);
    }
}
