//! What the API shows of an Application, in a form in which two fleets, or one fleet under two
//! programs, can be compared. Main functions: [`shown`], [`differences`].

use super::apps::Fleet;
use anyhow::{Context, ensure};
use regex::Regex;
use serde_json::{Map, Value};
use std::{collections::BTreeMap, sync::LazyLock};
use tiphys_testkit::Api;

static TIME: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$").expect("it is valid")
});
/// Names that a controller of Kubernetes makes end so.
static MADE_NAME: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(-[a-z0-9]{8,10})?-[a-z0-9]{5}$|-[a-f0-9]{8,10}$").expect("it is valid")
});
/// What differs from object to object.
const OF_AN_OBJECT: &[&str] = &[
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "createdAt",
    "generation",
    "managedFields",
];

/// By application and question, what the API answers.
pub type Shown = BTreeMap<String, Value>;

/// Asks the API for everything that a page shows of each Application.
///
/// # Errors
/// If the API does not answer.
pub fn shown(api: &Api, fleet: &Fleet) -> anyhow::Result<Shown> {
    let mut all = Shown::new();
    for app in &fleet.apps {
        let path = format!("/api/v1/applications/{}", app.name);
        let whole = ask(api, &path)?;
        let mut status = whole["status"].clone();
        sort(&mut status, "/operationState/syncResult/resources", "/kind");
        sort(&mut status, "/conditions", "/message");
        keep("status", &status, fleet, &app.name, &mut all)?;
        for question in ["resource-tree", "managed-resources"] {
            let mut answer = ask(api, &format!("{path}/{question}"))?;
            sort(&mut answer, "/nodes", "/kind");
            sort(&mut answer, "/items", "/kind");
            keep(question, &answer, fleet, &app.name, &mut all)?;
        }
        let revision = whole["status"]["sync"]["revision"]
            .as_str()
            .unwrap_or_default();
        if revision.len() == 40 {
            let answer = ask(api, &format!("{path}/revisions/{revision}/metadata"))?;
            keep("metadata", &answer, fleet, &app.name, &mut all)?;
        }
    }
    Ok(all)
}

fn ask(api: &Api, path: &str) -> anyhow::Result<Value> {
    let answer = api.get(path).map_err(|e| anyhow::anyhow!(e.0))?;
    ensure!(
        answer.is_success(),
        "{path}: {} {}",
        answer.status,
        answer.body
    );
    Ok(answer.body)
}

fn keep(
    question: &str,
    answer: &Value,
    fleet: &Fleet,
    app: &str,
    all: &mut Shown,
) -> anyhow::Result<()> {
    let text = fleet.without_marks(&answer.to_string());
    let mut answer: Value = serde_json::from_str(&text).context("marks are no part of JSON")?;
    comparable(&mut answer);
    all.insert(format!("{} {question}", fleet.without_marks(app)), answer);
    Ok(())
}

/// A list in an order of its own: programs collect it in parallel.
fn sort(value: &mut Value, list: &str, by: &str) {
    if let Some(Value::Array(items)) = value.pointer_mut(list) {
        items.sort_by_cached_key(|item| {
            let name = item["name"].as_str().unwrap_or_default();
            let first = item.pointer(by).and_then(Value::as_str).unwrap_or_default();
            format!("{first} {}", MADE_NAME.replace(name, ""))
        });
    }
}

/// Without what differs from object to object.
pub fn comparable(value: &mut Value) {
    match value {
        Value::Object(map) => object(map),
        Value::Array(items) => items.iter_mut().for_each(comparable),
        Value::String(text) if TIME.is_match(text) => "TIME".clone_into(text),
        Value::String(text) if text.starts_with('{') => {
            if let Ok(mut inner) = serde_json::from_str::<Value>(text) {
                comparable(&mut inner);
                *value = inner;
            }
        }
        _ => {}
    }
}

fn object(map: &mut Map<String, Value>) {
    map.retain(|key, _| !OF_AN_OBJECT.contains(&key.as_str()));
    // How many syncs there were is another matter.
    if let (true, Some(Value::Array(history))) = (map.contains_key("sync"), map.get_mut("history"))
    {
        let last = history.pop();
        *history = last.into_iter().collect();
    }
    map.values_mut().for_each(comparable);
    let is_made =
        |kind: &str| ["Pod", "ReplicaSet", "EndpointSlice", "ControllerRevision"].contains(&kind);
    if map.get("kind").and_then(Value::as_str).is_some_and(is_made)
        && let Some(Value::String(name)) = map.get_mut("name")
    {
        *name = MADE_NAME.replace(name, "-*").into_owned();
    }
    if map.contains_key("deployedAt") {
        map.remove("id");
    }
}

/// One line for each place in which two states differ.
pub fn differences(before: &Shown, after: &Shown) -> Vec<String> {
    let mut lines = Vec::new();
    for (name, value) in before {
        match after.get(name) {
            Some(other) => compare(name, value, other, &mut lines),
            None => lines.push(format!("{name}: is missing afterwards")),
        }
    }
    let new = after.keys().filter(|name| !before.contains_key(*name));
    lines.extend(new.map(|name| format!("{name}: only afterwards")));
    lines
}

fn compare(place: &str, before: &Value, after: &Value, lines: &mut Vec<String>) {
    match (before, after) {
        (Value::Object(a), Value::Object(b)) => {
            let keys: std::collections::BTreeSet<_> = a.keys().chain(b.keys()).collect();
            for key in keys {
                let of = |map: &Map<String, Value>| map.get(key).cloned();
                match (of(a), of(b)) {
                    (Some(a), Some(b)) => compare(&format!("{place}/{key}"), &a, &b, lines),
                    (a, b) => lines.push(format!("{place}/{key}: {} | {}", brief(a), brief(b))),
                }
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (n, (a, b)) in a.iter().zip(b).enumerate() {
                compare(&format!("{place}/{n}"), a, b, lines);
            }
        }
        _ if before == after => {}
        _ => lines.push(format!(
            "{place}: {} | {}",
            brief(Some(before.clone())),
            brief(Some(after.clone()))
        )),
    }
}

fn brief(value: Option<Value>) -> String {
    let Some(value) = value else {
        return "-".to_owned();
    };
    let text = value.to_string();
    match text.char_indices().nth(400) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_what_two_installations_share_is_compared() {
        let of = |value: Value| {
            let mut value = value;
            comparable(&mut value);
            value
        };
        let one = json!({"reconciledAt": "2026-01-02T03:04:05Z", "uid": "a",
            "nodes": [{"kind": "Pod", "name": "web-5d4f8c7b9-abcde", "version": "v1"}],
            "liveState": "{\"metadata\":{\"uid\":\"1\",\"name\":\"x\"}}"});
        let other = json!({"reconciledAt": "2027-01-02T03:04:05Z", "uid": "b",
            "nodes": [{"kind": "Pod", "name": "web-6d4f8c7b9-fghij", "version": "v1"}],
            "liveState": "{\"metadata\":{\"name\":\"x\",\"uid\":\"2\"}}"});
        assert_eq!(of(one.clone()), of(other));
        let mut third = one.clone();
        third["nodes"][0]["version"] = json!("v2");
        let shown = |value| Shown::from([("a".to_owned(), of(value))]);
        assert_eq!(
            differences(&shown(one), &shown(third)),
            ["a/nodes/0/version: \"v1\" | \"v2\""]
        );
    }
}
