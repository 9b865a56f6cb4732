//! The changes of an API server to a custom object before validation: it removes unknown fields,
//! removes nulls, and adds defaults.
//!
//! Main functions, in the order of the real server: [`prune`], [`drop_nulls`], [`fill_in`].

use super::{Additional, Node};
use serde_json::Value;

/// The fields of every object with a kind; their contents are not checked here.
const META: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Removes unknown fields; returns their paths, sorted. The root is an object with metadata.
pub fn prune(value: &mut Value, node: &Node) -> Vec<String> {
    let mut removed = Vec::new();
    walk(value, Some(node), true, "", &mut removed);
    removed.sort();
    removed
}

/// Like [`prune`], for a value inside an object.
pub fn prune_part(value: &mut Value, node: &Node) {
    walk(value, Some(node), false, "", &mut Vec::new());
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() {
        key.to_owned()
    } else {
        format!("{path}.{key}")
    }
}

fn walk(value: &mut Value, node: Option<&Node>, root: bool, path: &str, removed: &mut Vec<String>) {
    let preserve = node.is_some_and(|n| n.preserve_unknown);
    match value {
        Value::Object(map) => {
            let embedded = root || node.is_some_and(|n| n.embedded);
            let mut gone = Vec::new();
            for (key, item) in map.iter_mut() {
                if embedded && META.contains(&key.as_str()) {
                    continue;
                }
                let (property, additional) = match node {
                    Some(n) => (n.properties.get(key), &n.additional),
                    None => (None, &Additional::Unsaid),
                };
                match property {
                    Some(of) => walk(item, Some(of), false, &join(path, key), removed),
                    None if additional.is_said() => {
                        walk(item, additional.schema(), false, &join(path, key), removed)
                    }
                    None if preserve => {}
                    None => gone.push(key.clone()),
                }
            }
            for key in gone {
                map.remove(&key);
                removed.push(join(path, &key));
            }
        }
        Value::Array(list) => {
            let items = node.and_then(|n| n.items.as_deref());
            for (i, item) in list.iter_mut().enumerate() {
                let at = format!("{path}[{i}]");
                match items {
                    // Below a list that preserves unknown fields, they are preserved as well.
                    Some(of) if preserve => walk_keeping(item, of, &at, removed),
                    None if preserve => {}
                    of => walk(item, of, false, &at, removed),
                }
            }
        }
        _ => {}
    }
}

/// Like [`walk`], but an element's own unknown fields are kept although its schema does not say so.
fn walk_keeping(value: &mut Value, node: &Node, path: &str, removed: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            for (key, item) in map
                .iter_mut()
                .filter(|(key, _)| !(node.embedded && META.contains(&key.as_str())))
            {
                match node.properties.get(key) {
                    Some(of) => walk(item, Some(of), false, &join(path, key), removed),
                    None if node.additional.is_said() => walk(
                        item,
                        node.additional.schema(),
                        false,
                        &join(path, key),
                        removed,
                    ),
                    None => {}
                }
            }
        }
        Value::Array(list) => {
            for (i, item) in list.iter_mut().enumerate() {
                if let Some(items) = &node.items {
                    walk_keeping(item, items, &format!("{path}[{i}]"), removed);
                }
            }
        }
        _ => {}
    }
}

/// Removes nulls from maps if null is not allowed and there is no default.
pub fn drop_nulls(value: &mut Value, node: Option<&Node>) {
    match value {
        Value::Object(map) => {
            map.retain(|key, item| {
                let of = node.and_then(|n| n.field(key));
                !(item.is_null() && of.is_some_and(|of| !of.nullable && of.default.is_none()))
            });
            map.iter_mut()
                .for_each(|(key, item)| drop_nulls(item, node.and_then(|n| n.field(key))));
        }
        Value::Array(list) => list
            .iter_mut()
            .for_each(|item| drop_nulls(item, node.and_then(|n| n.items.as_deref()))),
        _ => {}
    }
}

/// Sets the defaults of absent fields, and of null fields that are not nullable.
pub fn fill_in(value: &mut Value, node: &Node) {
    let put = |item: &mut Value, of: &Node| {
        if item.is_null() && !of.nullable {
            *item = of.default.clone().unwrap_or(Value::Null);
        }
    };
    match value {
        Value::Object(map) => {
            for (name, of) in &node.properties {
                if let Some(default) = &of.default
                    && map.get(name).is_none_or(|v| v.is_null() && !of.nullable)
                {
                    map.insert(name.clone(), default.clone());
                }
            }
            for (key, item) in map.iter_mut() {
                if let Some(of) = node.properties.get(key) {
                    fill_in(item, of);
                } else if let Some(of) = node.additional.schema() {
                    put(item, of);
                    fill_in(item, of);
                }
            }
        }
        Value::Array(list) => {
            for (item, of) in list
                .iter_mut()
                .zip(std::iter::repeat(node.items.as_deref()))
            {
                if let Some(of) = of {
                    put(item, of);
                    fill_in(item, of);
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
    fn unknown_fields_and_nulls_go_and_defaults_come() {
        let node = Node::read(
            &json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
            "a": {"type": "string", "default": "x"}, "n": {"type": "string", "nullable": true, "default": "y"},
            "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": true,
                "properties": {"known": {"type": "object", "properties": {"k": {"type": "string"}}}}},
            "list": {"type": "array", "items": {"type": "object", "properties": {"q": {"type": "integer", "default": 1}}}}}}}}),
        );
        let mut value = json!({"kind": "K", "metadata": {"odd": 1}, "spec": {"a": null, "n": null, "b": 1,
            "open": {"any": {"x": 1}, "known": {"k": "v", "gone": 1}}, "list": [{"q": null, "z": 1}, {}]}});
        assert_eq!(
            prune(&mut value, &node),
            ["spec.b", "spec.list[0].z", "spec.open.known.gone"]
        );
        drop_nulls(&mut value, Some(&node));
        fill_in(&mut value, &node);
        assert_eq!(
            value,
            json!({"kind": "K", "metadata": {"odd": 1}, "spec": {"a": "x", "n": null,
                "open": {"any": {"x": 1}, "known": {"k": "v"}}, "list": [{"q": 1}, {"q": 1}]}})
        );
    }
}
