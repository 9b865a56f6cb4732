//! Puts an answer into the recorded form, so that the two can be compared. Main function:
//! [`compare`].

use super::{
    client::Received,
    normalise::{Normaliser, differences, ordered},
    world::LOGGING,
};
use serde_json::{Map, Value, json};
use std::io::Read as _;

/// Headers that depend on the connection.
const OF_CONNECTION: [&str; 6] = [
    "date",
    "content-length",
    "connection",
    "keep-alive",
    "server",
    "transfer-encoding",
];
/// Parts of files cannot be asked for from our server.
const OF_PARTS: [&str; 2] = ["accept-ranges", "last-modified"];
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
    let told = wanted.pointer_mut("/body/headers");
    if let Some(told) = told.and_then(Value::as_object_mut) {
        // What a client adds that passes a request on.
        told.remove("accept-encoding");
    }
    if let Some(text) = wanted["text"].as_str() {
        let text = without_logo(text);
        wanted["text"] = text.into();
    }
    if let Some(headers) = wanted["headers"].as_object_mut() {
        headers.retain(|name, _| !OF_CONNECTION.contains(&name.as_str()));
    }
    let mut got = answer(request, want, received, normaliser);
    as_link(want, &mut got);
    if !want["body"].to_string().contains("\\\"status\\\"")
        && let Some(manifest) = got.pointer_mut("/body/manifest")
    {
        without_controllers(manifest);
    }
    tolerate(&mut wanted["headers"], &mut got["headers"]);
    if is_loose {
        (wanted, got) = (ordered(&wanted), ordered(&got));
    }
    if request["path"]
        .as_str()
        .is_some_and(|path| path.ends_with("/api/version"))
    {
        // The build is ours.
        (wanted["body"], got["body"]) = (keys(&wanted["body"]), keys(&got["body"]));
    }
    let mut found = Vec::new();
    differences(&wanted, &got, "", &mut found);
    found
}

fn keys(object: &Value) -> Value {
    object
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, _)| Value::from(key.as_str()))
        .collect()
}

/// A live object without what the controllers of its cluster add, where the recorded one is.
fn without_controllers(manifest: &mut Value) {
    let text = manifest.as_str().unwrap_or_default();
    let object = text.strip_prefix("json:");
    let Some(Ok(mut object)) = object.map(serde_json::from_str::<Value>) else {
        return;
    };
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
    }
    if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
        spec.remove("nodeName");
        let containers = spec.get_mut("containers").and_then(Value::as_array_mut);
        for container in containers
            .into_iter()
            .flatten()
            .filter_map(Value::as_object_mut)
        {
            if container.get("command").is_some_and(|c| c[2] == LOGGING) {
                container.remove("command");
            }
        }
    }
    *manifest = format!("json:{object}").into();
}

/// Badges have another logo.
fn without_logo(text: &str) -> String {
    const BEGIN: &str = "xlink:href=\"data:image/";
    match text.split_once(BEGIN) {
        Some((before, after)) => {
            let after = after.split_once('"').map_or("", |(_, after)| after);
            format!("{before}{BEGIN}\"{after}")
        }
        None => text.to_owned(),
    }
}

/// Puts a place to go to, and the page with a link to it, into the recorded form.
fn as_link(want: &Value, got: &mut Value) {
    let location = got["headers"]["location"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    if want["headers"]["location"].is_object() {
        let (url, query) = location.split_once('?').unwrap_or((&location, ""));
        let decoded = |text: &str| tiphys_rpc::table::percent_decode(&text.replace('+', " "));
        let mut pairs: Vec<[String; 2]> = query
            .split('&')
            .filter(|pair| !pair.is_empty())
            .map(|pair| {
                let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
                let value = if name == "state" {
                    "<VALUE>".to_owned()
                } else {
                    decoded(value)
                };
                [name.to_owned(), value]
            })
            .collect();
        pairs.sort();
        got["headers"]["location"] = json!({"url": url, "query": pairs});
    }
    let is_link = got["text"].as_str().is_some_and(|text| {
        let text = text
            .replace("&amp;", "&")
            .replace("&#34;", "\"")
            .replace("&#39;", "'");
        text == format!("<a href=\"{location}\">See Other</a>.\n\n")
    });
    if is_link && want["text"] == "<LINK TO LOCATION>" {
        got["text"] = want["text"].clone();
    }
}

/// Leaves out by how much our headers for browsers are stricter.
fn tolerate(wanted: &mut Value, got: &mut Value) {
    let (Some(wanted), Some(got)) = (wanted.as_object_mut(), got.as_object_mut()) else {
        return;
    };
    got.retain(|name, _| !OURS.contains(&name.as_str()) || wanted.contains_key(name));
    for name in OF_PARTS {
        wanted.remove(name);
    }
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
    let plain = unpacked(received);
    let text = String::from_utf8_lossy(&plain);
    if received.status.is_none() {
        got["text"] = want["text"].clone();
    } else if want["body"] == NOT_RECORDED {
        got["body"] = if text.is_empty() { "" } else { NOT_RECORDED }.into();
    } else if request["transport"] == "grpc-web" && want.get("frames").is_some() {
        got["frames"] = web_frames(&received.body, &want["frames"]);
    } else if want.get("frames").is_some() {
        got["frames"] = frames(&text, &got["headers"], normaliser);
    } else if want.get("body").is_some() {
        match serde_json::from_str::<Value>(text.trim()) {
            Ok(body) => got["body"] = body_of(request, &normaliser.value(&body)),
            Err(_) if text.trim().is_empty() => got["body"] = "".into(),
            Err(_) => got["text"] = normaliser.text(&text).into(),
        }
    } else {
        got["text"] = normaliser.text(&without_logo(&text)).into();
    }
    got
}

/// The content as it was before it was compressed.
fn unpacked(received: &Received) -> Vec<u8> {
    let is_packed = received
        .headers
        .iter()
        .any(|(name, value)| name == "content-encoding" && value == "gzip");
    let mut plain = Vec::new();
    let mut reader = flate2::read::GzDecoder::new(received.body.as_slice());
    if is_packed && reader.read_to_end(&mut plain).is_ok() {
        return plain;
    }
    received.body.clone()
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

/// The frames of gRPC-web: whether there are messages, and the trailers.
fn web_frames(mut body: &[u8], want: &Value) -> Value {
    let mut frames = Vec::new();
    while let [kind, a, b, c, d, rest @ ..] = body {
        let length = u32::from_be_bytes([*a, *b, *c, *d]) as usize;
        let Some((content, rest)) = rest.split_at_checked(length) else {
            break;
        };
        body = rest;
        if kind & 0x80 == 0 {
            // Messages are binary here and JSON there.
            let message = want[frames.len()]["message"].clone();
            frames.push(json!({"message": message}));
            continue;
        }
        let text = String::from_utf8_lossy(content);
        let lines = text.lines().filter_map(|line| line.split_once(':'));
        let lines = lines.map(|(name, value)| format!("{name}: {}\r\n", value.trim()));
        frames.push(json!({"trailers": lines.collect::<String>()}));
    }
    frames.into()
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
