//! Field ownership: scripts of applies, updates and patches, with the answers of a kube-apiserver
//! 1.36, one per line in `ownership.jsonl`. They cover configurations of two versions of a custom
//! kind, subresources, conflicts, force, and managedFields reset, renamed and broken by patches.

use crate::server::support::{get, post, send, start};
use axum::Router;
use serde_json::{Value, json};
use std::time::Duration;
use tiphys_embedded_kube::Data;

const SCRIPTS: &str = include_str!("ownership.jsonl");
const WIDGETS: &str = include_str!("ownership_crd.json");

/// The recorded form of an answer: without what a server makes up, and with the name of the object
/// put in again.
fn told(code: u16, body: &Value, name: &str) -> Value {
    let mut body: Value =
        serde_json::from_str(&body.to_string().replace(name, "NAME")).expect("it was JSON before");
    if body["kind"] == "Status" {
        let mut causes: Vec<Value> = body
            .pointer("/details/causes")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        causes.sort_by_key(Value::to_string);
        // A status without a reason is written without one.
        return json!({"code": code, "reason": body.get("reason"), "message": body["message"], "causes": causes});
    }
    if let Some(metadata) = body["metadata"].as_object_mut() {
        for field in ["uid", "resourceVersion", "creationTimestamp", "generation"] {
            metadata.remove(field);
        }
        if let Some(entries) = metadata
            .get_mut("managedFields")
            .and_then(Value::as_array_mut)
        {
            entries
                .iter_mut()
                .filter(|e| e.get("time").is_some())
                .for_each(|e| e["time"] = "T".into());
            let key = |e: &Value| {
                ["operation", "manager", "apiVersion", "subresource"]
                    .map(|k| e[k].as_str().unwrap_or_default().to_owned())
            };
            entries.sort_by_key(key);
        }
    }
    json!({"code": code, "body": body})
}

/// The same for what was recorded.
fn recorded(answer: &Value) -> Value {
    let mut answer = answer.clone();
    if let Some(causes) = answer.get_mut("causes").and_then(Value::as_array_mut) {
        let mut parsed: Vec<Value> = causes
            .iter()
            .filter_map(|c| serde_json::from_str(c.as_str()?).ok())
            .collect();
        parsed.sort_by_key(Value::to_string);
        *causes = parsed;
    }
    if let Some(entries) = answer
        .pointer_mut("/body/metadata/managedFields")
        .and_then(Value::as_array_mut)
    {
        let key = |e: &Value| {
            ["operation", "manager", "apiVersion", "subresource"]
                .map(|k| e[k].as_str().unwrap_or_default().to_owned())
        };
        entries.sort_by_key(key);
    }
    answer
}

async fn play(router: &Router, kind: &str, step: &Value, name: &str) -> Value {
    let text = |key: &str| step[key].as_str().expect("a text");
    let (operation, part) = text("op").split_once('/').unwrap_or((text("op"), ""));
    let resources = match kind {
        "configmap" => "/api/v1/namespaces/ssa-diff/configmaps".to_owned(),
        _ => format!("/apis/{}/namespaces/ssa-diff/widgets", text("version")),
    };
    let mut body = step["body"].clone();
    if body.pointer("/metadata/name").is_some() {
        body["metadata"]["name"] = name.into();
    }
    let object = format!(
        "{resources}/{name}{}{part}",
        if part.is_empty() { "" } else { "/" }
    );
    let (method, path, media) = match operation {
        "create" => ("POST", resources, "application/json"),
        "put" => ("PUT", object, "application/json"),
        "apply" => ("PATCH", object, "application/apply-patch+yaml"),
        "json" => ("PATCH", object, "application/json-patch+json"),
        "merge" => ("PATCH", object, "application/merge-patch+json"),
        _ => ("PATCH", object, "application/strategic-merge-patch+json"),
    };
    let (code, answer) = send(
        router,
        method,
        &format!("{path}?{}", text("query")),
        media,
        &body,
    )
    .await;
    told(code, &answer, name)
}

#[tokio::test]
async fn ownership_is_as_a_real_server_says() {
    let kube = start(Data::Memory).await;
    let router = kube.router();
    post(
        &router,
        "/api/v1/namespaces",
        &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ssa-diff"}}),
    )
    .await;
    let definition: Value = serde_json::from_str(WIDGETS).expect("JSON");
    post(
        &router,
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        &definition,
    )
    .await;
    while get(&router, "/apis/ssa.example/v2/namespaces/ssa-diff/widgets")
        .await
        .0
        != 200
    {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    for (number, line) in SCRIPTS.lines().enumerate() {
        let script: Value = serde_json::from_str(line).expect("JSON");
        let name = format!("object-{number}");
        for (i, step) in script["steps"]
            .as_array()
            .expect("steps")
            .iter()
            .enumerate()
        {
            let answer = play(
                &router,
                script["kind"].as_str().expect("a kind"),
                step,
                &name,
            )
            .await;
            assert_eq!(
                answer,
                recorded(&step["answer"]),
                "line {} step {i}: {}",
                number + 1,
                step["body"]
            );
        }
    }
    kube.shutdown().await;
}
