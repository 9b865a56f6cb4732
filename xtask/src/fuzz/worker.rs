//! The target for what a worker process says of a render: frames that the worker's owner reads, and
//! believes nothing of.
//!
//! Main function: [`run`]; what is nested is [`NESTED`]. The repository is made anew for each
//! input, so that no input depends on those before it.

use super::nested::{Nested, nest};
use serde_json::{Value, json};
use tiphys_repo::Repos;

const CHART: &str = "apiVersion: v2\nname: app\nversion: 0.1.0\n";

/// `[frame, ...]`, where a frame is `[header, body]` or `[header, body, length]`, or the text of a
/// header. A body is a text, or a list: a line for each. `length` is what the frame says of its
/// header.
pub fn run(input: &[u8]) -> Result<(), String> {
    let Ok(Value::Array(frames)) = serde_json::from_slice::<Value>(input) else {
        return Ok(());
    };
    let dir = tempfile::tempdir().map_err(|e| e.to_string())?;
    let files = [
        ("app/Chart.yaml", CHART),
        ("app/templates/a.yaml", "a: {{ .Values }}\n"),
        ("base/kustomization.yaml", "resources: [a.yaml]\n"),
        ("base/a.yaml", "a: 1\n"),
    ];
    let sha = Repos::init_example(dir.path(), files).map_err(|e| e.to_string())?;
    let frames: Vec<u8> = frames.iter().flat_map(frame).collect();
    tiphys_repo::read_worker(dir.path(), &sha, &frames)
}

fn frame(parts: &Value) -> Vec<u8> {
    let (header, body, length) = match parts {
        Value::String(text) => (text.clone(), Vec::new(), None),
        parts => {
            let header = parts.get(0).map(Value::to_string).unwrap_or_default();
            let body = parts.get(1).map(bytes).unwrap_or_default();
            (header, body, parts.get(2).and_then(Value::as_u64))
        }
    };
    let length = length.unwrap_or(header.len() as u64);
    let length = u32::try_from(length).unwrap_or(u32::MAX);
    let of_body = u32::try_from(body.len()).unwrap_or(u32::MAX);
    let lengths = [length.to_le_bytes(), of_body.to_le_bytes()].concat();
    [&lengths[..], header.as_bytes(), &body].concat()
}

fn bytes(body: &Value) -> Vec<u8> {
    match body {
        Value::String(text) => text.clone().into_bytes(),
        Value::Array(lines) => lines
            .iter()
            .flat_map(|line| format!("{line}\n").into_bytes())
            .collect(),
        other => other.to_string().into_bytes(),
    }
}

pub const NESTED: &[Nested] = &[
    |n| json!([nest("[", "1", "]", n)]).to_string(),
    |n| json!([nest("{\"Failed\":", "1", "}", n)]).to_string(),
    |n| {
        let object = format!("{}\n", nest("{\"a\":", "1", "}", n));
        let made = json!({"Manifests": {"objects": 1, "errors": [], "warnings": []}});
        json!([[made, object]]).to_string()
    },
    |n| {
        let path = "a/".repeat(n);
        let ask = json!({"Ask": {"files": 0, "question": "Kind", "path": path}});
        json!([[ask, ""]]).to_string()
    },
    |n| {
        let paths = vec!["base"; n];
        let expect = json!({"Expect": {"files": 0, "paths": paths, "inside": ["a.yaml", "b"]}});
        json!([[expect, ""]]).to_string()
    },
];
