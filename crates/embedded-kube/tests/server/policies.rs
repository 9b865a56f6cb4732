//! Admission policies, compared with the answers of kube-apiserver 1.36.3 to requests that they
//! match (`policies.json`).

use crate::server::support::start;
use axum::Router;
use axum::body::Body;
use http::{Request, header::CONTENT_TYPE};
use http_body_util::BodyExt;
use serde_json::{Map, Value, json};
use tiphys_embedded_kube::Data;
use tower::ServiceExt;

const GROUP: &str = "/apis/admissionregistration.k8s.io/v1";
const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps?dryRun=All";
const PICKED: [&str; 4] = [
    "/data",
    "/metadata/labels",
    "/metadata/annotations",
    "/spec",
];

/// Code, answer and warnings.
pub async fn send(
    router: &Router,
    method: &str,
    path: &str,
    media: &str,
    body: &Value,
) -> (u16, Value, Vec<Value>) {
    let body = if body.is_null() {
        Body::empty()
    } else {
        Body::from(body.to_string())
    };
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(CONTENT_TYPE, media)
        .body(body)
        .expect("a request");
    let response = router.clone().oneshot(request).await.expect("it answers");
    let code = response.status().as_u16();
    let warnings = response
        .headers()
        .get_all("warning")
        .iter()
        .map(|w| Value::from(w.to_str().unwrap_or("")))
        .collect();
    let bytes = response
        .into_body()
        .collect()
        .await
        .expect("a body")
        .to_bytes();
    (
        code,
        serde_json::from_slice(&bytes).unwrap_or(Value::Null),
        warnings,
    )
}

/// The fields given over those that most have.
fn with(mut defaults: Value, given: &Value) -> Value {
    let map = defaults.as_object_mut().expect("a map");
    map.extend(given.as_object().cloned().unwrap_or_default());
    defaults
}

fn policy(case: &Value) -> Value {
    let validating = case["kind"] == "Validating";
    let operations = if validating {
        json!(["CREATE", "UPDATE", "DELETE"])
    } else {
        json!(["CREATE", "UPDATE"])
    };
    let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": operations, "resources": ["configmaps"]});
    let spec = with(
        json!({"matchConstraints": {"resourceRules": [rule]}}),
        &case["policy"],
    );
    let kind = format!("{}AdmissionPolicy", case["kind"].as_str().unwrap_or(""));
    json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": case["name"]}, "spec": spec})
}

fn binding(case: &Value) -> Value {
    let mut spec = json!({"policyName": case["name"], "matchResources": {"objectSelector": {"matchLabels": {"case": case["name"]}}}});
    if case["kind"] == "Validating" {
        spec["validationActions"] = json!(["Deny"]);
    }
    let kind = format!(
        "{}AdmissionPolicyBinding",
        case["kind"].as_str().unwrap_or("")
    );
    let spec = with(spec, &case["binding"]);
    json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": case["name"]}, "spec": spec})
}

fn collection(case: &Value, of: &str) -> String {
    format!(
        "{GROUP}/{}admissionpolic{of}",
        case["kind"].as_str().unwrap_or("").to_lowercase()
    )
}

/// Generated names are not the same twice.
pub fn same_names(text: &str) -> String {
    match text.split_once("gen-") {
        Some((before, rest)) => format!("{before}gen-*{}", same_names(rest.get(5..).unwrap_or(""))),
        None => text.to_owned(),
    }
}

/// The parts of an answer at some paths.
pub fn picked<'p>(answer: &Value, paths: impl Iterator<Item = &'p str>) -> Map<String, Value> {
    paths
        .filter_map(|p| Some((p.to_owned(), answer.pointer(p)?.clone())))
        .collect()
}

/// An answer as it was recorded.
fn outcome(
    (code, answer, warnings): &(u16, Value, Vec<Value>),
    recorded: &Value,
    pick: &Value,
) -> Value {
    let mut map = Map::new();
    map.insert("code".into(), (*code).into());
    let causes: Vec<&Value> = answer["details"]["causes"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|c| &c["message"])
        .collect();
    if *code >= 400 {
        map.insert(
            "message".into(),
            same_names(answer["message"].as_str().unwrap_or("")).into(),
        );
        map.insert("reason".into(), answer["reason"].clone());
    }
    if recorded["causes"].is_array() {
        map.insert("causes".into(), json!(causes));
    } else if *code == 403 {
        // The only cause repeats the end of the message.
        let tail = causes.first().and_then(|c| c.as_str()).unwrap_or("-");
        assert!(
            causes.len() == 1
                && answer["message"]
                    .as_str()
                    .is_some_and(|m| m.ends_with(tail)),
            "{answer}"
        );
    }
    if !warnings.is_empty() {
        map.insert("warnings".into(), json!(warnings));
    }
    if *code < 400 && !pick.is_null() {
        let paths: Vec<&str> = match pick {
            Value::Array(list) => list.iter().filter_map(Value::as_str).collect(),
            _ => PICKED.to_vec(),
        };
        map.insert("picked".into(), picked(answer, paths.into_iter()).into());
    }
    Value::Object(map)
}

fn normal(recorded: &Value) -> Value {
    let mut recorded = recorded.clone();
    if let Some(text) = recorded["message"].as_str().map(same_names) {
        recorded["message"] = text.into();
    }
    recorded
}

#[tokio::test]
async fn policies_say_what_those_of_a_real_server_say() {
    let kube = start(Data::Memory).await;
    let router = kube.router();
    let answers: Value =
        serde_json::from_str(include_str!("policies.json")).expect("the answers are JSON");
    let (mut compared, mut differences) = (0, Vec::new());
    let mut compare = |what: String, found: Value, wanted: &Value| {
        compared += 1;
        let wanted = normal(wanted);
        if found != wanted {
            differences.push(format!("{what}\n  real {wanted}\n  here {found}"));
        }
    };
    for case in answers["refused"].as_array().into_iter().flatten() {
        let found = send(
            &router,
            "POST",
            &format!("{}?dryRun=All", collection(case, "ies")),
            "application/json",
            &policy(case),
        )
        .await;
        compare(
            case["name"].to_string(),
            outcome(&found, &case["answer"], &Value::Null),
            &case["answer"],
        );
    }
    let cases = answers["cases"].as_array().cloned().unwrap_or_default();
    for case in &cases {
        for more in case["more"].as_array().into_iter().flatten() {
            let path = more[0].as_str().unwrap_or("");
            assert_eq!(
                send(&router, "POST", path, "application/json", &more[1])
                    .await
                    .0,
                201
            );
        }
        let found = send(
            &router,
            "POST",
            &collection(case, "ies"),
            "application/json",
            &policy(case),
        )
        .await;
        let created = found.0 == 201;
        let wanted = if case["created"].is_null() {
            json!({"code": 201})
        } else {
            case["created"].clone()
        };
        compare(
            case["name"].to_string(),
            outcome(&found, &wanted, &Value::Null),
            &wanted,
        );
        if created {
            let found = send(
                &router,
                "POST",
                &collection(case, "ybindings"),
                "application/json",
                &binding(case),
            )
            .await;
            assert_eq!(found.0, 201, "{}", found.1);
        }
    }
    for case in &cases {
        for request in case["requests"].as_array().into_iter().flatten() {
            let text = |field: &str, default: &'static str| {
                request[field].as_str().unwrap_or(default).to_owned()
            };
            let mut body = request["body"].clone();
            if body["metadata"].is_object() {
                body["metadata"]["labels"]["case"] = case["name"].clone();
            }
            let (method, path, media) = (
                text("method", "POST"),
                text("path", CONFIG_MAPS),
                text("media", "application/json"),
            );
            let found = send(&router, &method, &path, &media, &body).await;
            let found = outcome(&found, &request["answer"], &request["pick"]);
            compare(
                format!("{} {method} {path} {body}", case["name"]),
                found,
                &request["answer"],
            );
        }
    }
    println!(
        "{} of {compared} answers are equal",
        compared - differences.len()
    );
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    kube.shutdown().await;
}
