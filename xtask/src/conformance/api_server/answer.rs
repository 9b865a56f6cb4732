//! Puts an answer into the recorded form, so that the two can be compared. Main function:
//! [`compare`].

use super::{
    client::Received,
    normalise::{Normaliser, differences, ordered},
};
use serde_json::{Map, Value, json};

/// Headers that depend on the connection.
const OF_CONNECTION: [&str; 6] = [
    "date",
    "content-length",
    "connection",
    "keep-alive",
    "server",
    "transfer-encoding",
];
/// Headers that we give every answer, and other servers only some.
const OURS: [&str; 5] = [
    "content-security-policy",
    "x-frame-options",
    "x-content-type-options",
    "referrer-policy",
    "vary",
];
const NOT_RECORDED: &str = "<NOT RECORDED>";

/// How the answer to a request differs from the recorded one; `is_loose` ignores the order of
/// lists.
pub fn compare(
    (request, want): (&Value, &Value),
    received: &Received,
    normaliser: &Normaliser,
    is_loose: bool,
) -> Vec<String> {
    let fields = ["status", "headers", "body", "text", "frames"];
    let mut wanted = Map::new();
    for field in fields {
        if let Some(value) = want.get(field) {
            wanted.insert(field.to_owned(), value.clone());
        }
    }
    let mut wanted = Value::Object(wanted);
    if let Some(headers) = wanted["headers"].as_object_mut() {
        headers.retain(|name, _| !OF_CONNECTION.contains(&name.as_str()));
    }
    let mut got = answer(request, want, received, normaliser);
    tolerate(&mut wanted["headers"], &mut got["headers"]);
    if is_loose {
        (wanted, got) = (ordered(&wanted), ordered(&got));
    }
    let mut found = Vec::new();
    differences(&wanted, &got, "", &mut found);
    found
}

/// Leaves out by how much our headers for browsers are stricter.
fn tolerate(wanted: &mut Value, got: &mut Value) {
    let (Some(wanted), Some(got)) = (wanted.as_object_mut(), got.as_object_mut()) else {
        return;
    };
    got.retain(|name, _| !OURS.contains(&name.as_str()) || wanted.contains_key(name));
    // A new token is in the cookie only, which scripts of the page cannot read.
    wanted.remove("grpc-metadata-renew-token");
    let policy = "content-security-policy";
    let parts = |policy: &Value| -> Vec<String> {
        let text = policy.as_str().unwrap_or_default();
        text.split(';').map(|part| part.trim().to_owned()).collect()
    };
    if let (Some(theirs), Some(ours)) = (wanted.get(policy).map(parts), got.get(policy).map(parts))
        && theirs
            .iter()
            .all(|part| part.is_empty() || ours.contains(part))
    {
        wanted.remove(policy);
        got.remove(policy);
    }
}

fn answer(request: &Value, want: &Value, received: &Received, normaliser: &Normaliser) -> Value {
    let mut got = json!({"status": received.status, "headers": headers(received, normaliser)});
    let text = String::from_utf8_lossy(&received.body);
    if received.status.is_none() {
        got["text"] = want["text"].clone();
    } else if want["body"] == NOT_RECORDED {
        got["body"] = if text.is_empty() { "" } else { NOT_RECORDED }.into();
    } else if want.get("frames").is_some() {
        got["frames"] = frames(&text, &got["headers"], normaliser);
    } else if want.get("body").is_some() {
        match serde_json::from_str::<Value>(text.trim()) {
            Ok(body) => got["body"] = body_of(request, &normaliser.value(&body)),
            Err(_) if text.trim().is_empty() => got["body"] = "".into(),
            Err(_) => got["text"] = normaliser.text(&text).into(),
        }
    } else {
        got["text"] = normaliser.text(&text).into();
    }
    got
}

/// Only the keys of the description of the API are recorded.
fn body_of(request: &Value, body: &Value) -> Value {
    if request["path"] != "/swagger.json" {
        return body.clone();
    }
    let fields = body.as_object().into_iter().flatten().map(|(name, value)| {
        let value = match value {
            Value::Array(items) => format!("<{} entries>", items.len()).into(),
            Value::Object(fields) => format!("<{} entries>", fields.len()).into(),
            value => value.clone(),
        };
        (name.clone(), value)
    });
    Value::Object(fields.collect())
}

fn frames(text: &str, headers: &Value, normaliser: &Normaliser) -> Value {
    let is_event_stream = headers["content-type"]
        .as_str()
        .is_some_and(|kind| kind.contains("event-stream"));
    let mut frames: Vec<Value> = text
        .split('\n')
        .filter(|line| is_event_stream || !line.trim().is_empty())
        .map(|line| match serde_json::from_str::<Value>(line) {
            Ok(frame) => normaliser.value(&frame),
            Err(_) => normaliser.text(line).into(),
        })
        .collect();
    while frames.last().is_some_and(|last| last == "") {
        frames.pop();
    }
    frames.into()
}

fn headers(received: &Received, normaliser: &Normaliser) -> Value {
    let mut headers = Map::new();
    for (name, value) in &received.headers {
        if OF_CONNECTION.contains(&name.as_str()) {
            continue;
        }
        let value = Value::from(normaliser.header(name, value));
        let entry = headers.entry(name.clone());
        entry
            .and_modify(|had| match had {
                Value::Array(values) => values.push(value.clone()),
                first => *first = json!([first.clone(), value.clone()]),
            })
            .or_insert(value);
    }
    headers.into()
}

/// The headers of a recorded request.
pub fn sent(request: &Value) -> Vec<(String, String)> {
    let mut headers = Vec::new();
    for (name, value) in request["headers"].as_object().into_iter().flatten() {
        let values = match value {
            Value::Array(values) => values.iter().collect(),
            one => vec![one],
        };
        let values = values.into_iter().filter_map(Value::as_str);
        headers.extend(values.map(|value| (name.clone(), value.to_owned())));
    }
    headers
}
