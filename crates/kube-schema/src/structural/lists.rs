//! Elements of sets, and keys of lists that are maps, are unique. Main function: [`check`].

use super::Node;
use super::problem::Problem;
use serde_json::{Map, Value, json};
use std::collections::HashMap;

/// Every repeated element, in the object and below.
pub fn check(node: &Node, value: &Value) -> Vec<Problem> {
    let mut problems = Vec::new();
    if let Value::Object(map) = value {
        in_map(node, map, "", &mut problems);
    }
    problems
}

fn in_map(node: &Node, map: &Map<String, Value>, path: &str, problems: &mut Vec<Problem>) {
    if let Some(of) = node.additional.schema() {
        map.iter()
            .for_each(|(key, item)| below(of, item, &format!("{path}[{key}]"), problems));
    }
    for (key, item) in map {
        if let Some(of) = node.properties.get(key) {
            below(
                of,
                item,
                &if path.is_empty() {
                    key.clone()
                } else {
                    format!("{path}.{key}")
                },
                problems,
            );
        }
    }
}

fn below(node: &Node, value: &Value, path: &str, problems: &mut Vec<Problem>) {
    match value {
        Value::Object(map) => in_map(node, map, path, problems),
        Value::Array(list) => {
            match node.list_type.as_deref() {
                Some("set") => repeated(list.iter().map(gone_over))
                    .into_iter()
                    .for_each(|i| {
                        problems.push(Problem::duplicate(&format!("{path}[{i}]"), &list[i]));
                    }),
                Some("map") => keyed(node, list, path, problems),
                _ => {}
            }
            if let Some(items) = &node.items {
                list.iter()
                    .enumerate()
                    .for_each(|(i, item)| below(items, item, &format!("{path}[{i}]"), problems));
            }
        }
        _ => {}
    }
}

/// The identity of an element: its JSON text.
fn gone_over(value: &Value) -> String {
    value.to_string()
}

/// The second occurrence of everything that occurs more than once.
fn repeated(identities: impl Iterator<Item = String>) -> Vec<usize> {
    let mut seen: HashMap<String, usize> = HashMap::new();
    let mut found = Vec::new();
    for (i, identity) in identities.enumerate() {
        let times = seen.entry(identity).or_insert(0);
        *times += 1;
        if *times == 2 {
            found.push(i);
        }
    }
    found
}

fn keyed(node: &Node, list: &[Value], path: &str, problems: &mut Vec<Problem>) {
    if let Some(i) = list
        .iter()
        .position(|item| !item.is_object() && !item.is_null())
    {
        problems.push(Problem::invalid(
            &format!("{path}[{i}]"),
            &list[i],
            "must be an object for an array of list-type map",
        ));
        return;
    }
    let key_of = |item: &Value| -> Value {
        let keys = node
            .list_map_keys
            .iter()
            .filter_map(|k| Some((k.clone(), item.get(k)?.clone())));
        json!(keys.collect::<Map<String, Value>>())
    };
    for i in repeated(list.iter().map(|item| key_of(item).to_string())) {
        problems.push(Problem::duplicate(
            &format!("{path}[{i}]"),
            &key_of(&list[i]),
        ));
    }
}
