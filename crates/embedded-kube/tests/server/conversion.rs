//! Conversion webhooks of custom resources, compared with how kube-apiserver 1.36.3 handled the
//! same webhook answers (`conversion.json`).

use crate::server::policies::send;
use crate::server::support::start;
use crate::server::webhooks::{normal, pki, serve};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tiphys_embedded_kube::Data;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// A converter that records the requested version in `spec.seen`, and fails as `mode` says.
pub fn converted(mode: &str, review: &Value) -> Option<Value> {
    let (request, wanted) = (&review["request"], &review["request"]["desiredAPIVersion"]);
    let mut objects = request["objects"].clone();
    for object in objects.as_array_mut().into_iter().flatten() {
        object["apiVersion"] = wanted.clone();
        object["spec"]["seen"] = wanted.clone();
        match mode {
            "badname" => object["metadata"]["name"] = "other".into(),
            "badkind" => object["kind"] = "Other".into(),
            "badversion" => object["apiVersion"] = "x.example.com/v9".into(),
            "nometa" => drop(object.as_object_mut().and_then(|o| o.remove("metadata"))),
            "labels" => {
                object["metadata"]["labels"] = json!({"l": "m"});
                object["metadata"]["finalizers"] = json!(["a.b/c"]);
                drop(
                    object["metadata"]
                        .as_object_mut()
                        .and_then(|m| m.remove("annotations")),
                );
            }
            _ => {}
        }
    }
    let uid = if mode == "wronguid" {
        json!("other")
    } else {
        request["uid"].clone()
    };
    let failed = |result: Value| Some(json!({"uid": uid, "result": result}));
    match mode {
        "noresponse" => None,
        "fail" => failed(json!({"status": "Failed", "message": "cannot do that"})),
        "failnomsg" => failed(json!({"status": "Failure"})),
        "none" => {
            Some(json!({"uid": uid, "result": {"status": "Success"}, "convertedObjects": []}))
        }
        _ => {
            Some(json!({"uid": uid, "result": {"status": "Success"}, "convertedObjects": objects}))
        }
    }
}

fn definition(mode: &str, port: u16, ca: &str) -> Value {
    let mut config = match mode {
        "refused" => json!({"url": "https://127.0.0.1:1/x"}),
        "service" => {
            json!({"service": {"namespace": "default", "name": "nosvc", "path": "/convert"}})
        }
        _ => json!({"url": format!("https://127.0.0.1:{port}/{mode}")}),
    };
    if !matches!(mode, "service" | "badca") {
        config["caBundle"] = STANDARD.encode(ca).into();
    }
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}});
    let version = |name: &str| json!({"name": name, "served": true, "storage": name == "v1", "schema": {"openAPIV3Schema": schema}});
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("t{mode}s.conv.example.com")}, "spec": {"group": "conv.example.com", "scope": "Namespaced",
            "names": {"plural": format!("t{mode}s"), "kind": format!("T{mode}")},
            "conversion": {"strategy": "Webhook", "webhook": {"clientConfig": config, "conversionReviewVersions": ["v1"]}},
            "versions": [version("v1"), version("v2")]}})
}

/// An answer as it was recorded.
fn outcome(code: u16, answer: &Value, port: u16) -> Value {
    if code >= 400 {
        let message = normal(answer["message"].as_str().unwrap_or(""), port);
        return json!([code, answer["reason"], message]);
    }
    if answer["kind"] == "Status" {
        return json!([code, "Status", answer["status"]]);
    }
    if let Some(items) = answer["items"].as_array() {
        let items: Vec<Value> = items
            .iter()
            .map(|i| json!([i["apiVersion"], i["metadata"]["name"], i["spec"]]))
            .collect();
        return json!([code, answer["apiVersion"], items]);
    }
    let metadata = &answer["metadata"];
    json!([
        code,
        answer["apiVersion"],
        [
            metadata["labels"],
            metadata["annotations"],
            metadata["finalizers"],
            answer["spec"]
        ]
    ])
}

#[tokio::test]
async fn versions_are_converted_by_webhooks_as_by_a_real_server() {
    let kube = start(Data::Memory).await;
    let router = kube.router();
    let cases: Vec<(String, Vec<Value>)> =
        serde_json::from_str(include_str!("conversion.json")).expect("the answers are JSON");
    let pki = pki("good");
    let port = serve(&pki, Value::Null);
    let (mut compared, mut differences) = (0, Vec::new());
    for (mode, steps) in &cases {
        let made = send(
            &router,
            "POST",
            DEFINITIONS,
            "application/json",
            &definition(mode, port, &pki.ca),
        )
        .await;
        assert_eq!(made.0, 201, "{}", made.1);
        for step in steps {
            let text = |i: usize| step[i].as_str().unwrap_or("");
            let (method, version) = (text(0), text(1));
            let mut path = format!("/apis/conv.example.com/{version}/namespaces/default/t{mode}s");
            if !text(2).is_empty() {
                path = format!("{path}/{}", text(2));
            }
            let (media, body) = match method {
                "POST" => (
                    "application/json",
                    json!({"apiVersion": format!("conv.example.com/{version}"), "kind": format!("T{mode}"),
                        "metadata": {"name": step[4], "annotations": {"k": "v"}}, "spec": step[3]}),
                ),
                "PATCH" => ("application/merge-patch+json", json!({"spec": step[3]})),
                _ => ("application/json", Value::Null),
            };
            let (code, answer, _) = send(&router, method, &path, media, &body).await;
            let found = outcome(code, &answer, port);
            let mut wanted = step[5].clone();
            if wanted[0].as_u64().is_some_and(|code| code >= 400) {
                wanted[2] = normal(wanted[2].as_str().unwrap_or(""), port).into();
            }
            compared += 1;
            if found != wanted {
                differences.push(format!(
                    "{mode} {method} {path}\n  real {wanted}\n  here {found}"
                ));
            }
        }
    }
    println!(
        "{} of {compared} answers are equal",
        compared - differences.len()
    );
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    kube.shutdown().await;
}
