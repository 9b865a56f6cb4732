//! Pod Security and RuntimeClasses, compared with the answers of kube-apiserver 1.36.3
//! (`pod_security.json`).

use crate::server::policies::send;
use crate::server::support::{Comparison, start};
use axum::Router;
use serde_json::{Map, Value, json};
use tiphys_embedded_kube::Data;

const PREFIX: &str = "pod-security.kubernetes.io/";

async fn post(router: &Router, path: &str, body: &Value) -> (u16, Value, Vec<Value>) {
    send(router, "POST", path, "application/json", body).await
}

fn labels(given: &Value) -> Value {
    let map = given.as_object().into_iter().flatten();
    Value::Object(
        map.map(|(key, value)| (format!("{PREFIX}{key}"), value.clone()))
            .collect(),
    )
}

fn namespace(name: &str, given: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels(given)}})
}

async fn make(router: &Router, name: &str, given: &Value) {
    assert_eq!(
        post(router, "/api/v1/namespaces", &namespace(name, given))
            .await
            .0,
        201
    );
    let account =
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}});
    let made = post(
        router,
        &format!("/api/v1/namespaces/{name}/serviceaccounts"),
        &account,
    )
    .await;
    assert!(matches!(made.0, 201 | 409), "{}", made.1);
}

fn pod(name: &str, spec: &Value, metadata: &Value) -> Value {
    let mut all: Map<String, Value> = metadata.as_object().cloned().unwrap_or_default();
    all.insert("name".into(), name.into());
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": all, "spec": spec})
}

/// Code, message of a refusal without `prefix`, warnings.
fn outcome((code, answer, warnings): (u16, Value, Vec<Value>), prefix: &str) -> Value {
    let message =
        (code >= 400).then(|| answer["message"].as_str().unwrap_or("").replace(prefix, ""));
    json!([code, message, warnings])
}

fn rows(data: &Value, field: &str) -> Vec<Value> {
    data[field].as_array().cloned().unwrap_or_default()
}

/// Every Pod in every one of these namespaces.
async fn compare_pods(
    router: &Router,
    data: &Value,
    namespaces: &[String],
    comparison: &mut Comparison,
) {
    for row in rows(data, "pods") {
        let name = row["name"].as_str().unwrap_or("");
        for (namespace, wanted) in namespaces
            .iter()
            .zip(row["answers"].as_array().into_iter().flatten())
        {
            let path = format!("/api/v1/namespaces/{namespace}/pods?dryRun=All");
            let prefix = format!("pods \"{name}\" is forbidden: violates PodSecurity ");
            let found = outcome(
                post(router, &path, &pod(name, &row["spec"], &row["metadata"])).await,
                &prefix,
            );
            comparison.add(&format!("{name} in {namespace}"), &found, wanted);
        }
    }
}

/// What makes Pods, or changes them.
async fn compare_others(router: &Router, data: &Value, comparison: &mut Comparison) {
    for row in rows(data, "others") {
        for (namespace, wanted) in ["ps0", "pswarn", "psfree"]
            .iter()
            .zip(row["answers"].as_array().into_iter().flatten())
        {
            let path = format!(
                "{}?dryRun=All",
                row["path"].as_str().unwrap_or("").replace("NS", namespace)
            );
            let found = outcome(post(router, &path, &row["body"]).await, "");
            comparison.add(&path, &found, wanted);
        }
    }
}

/// What is said of the Pods in a namespace when its labels are written.
async fn compare_namespaces(router: &Router, data: &Value, comparison: &mut Comparison) {
    for row in rows(data, "namespaces") {
        let name = row["name"].as_str().unwrap_or("");
        let found = match row["method"] == "POST" {
            true => {
                post(
                    router,
                    "/api/v1/namespaces?dryRun=All",
                    &namespace(name, &row["labels"]),
                )
                .await
            }
            false => {
                let path = format!("/api/v1/namespaces/{name}?dryRun=All");
                let patch = json!({"metadata": {"labels": labels(&row["labels"])}});
                send(
                    router,
                    "PATCH",
                    &path,
                    "application/merge-patch+json",
                    &patch,
                )
                .await
            }
        };
        comparison.add(
            &format!("{name} {}", row["labels"]),
            &outcome(found, ""),
            &row["answer"],
        );
    }
}

#[tokio::test]
async fn levels_forbid_what_they_forbid_on_a_real_server() {
    let kube = start(Data::Memory).await;
    let router = kube.router();
    let data: Value =
        serde_json::from_str(include_str!("pod_security.json")).expect("the answers are JSON");
    let mut comparison = Comparison::default();
    let mut names = Vec::new();
    for (i, standard) in rows(&data, "standards").iter().enumerate() {
        names.push(format!("ps{i}"));
        make(
            &router,
            &names[i],
            &json!({"enforce": standard[0], "enforce-version": standard[1]}),
        )
        .await;
    }
    make(
        &router,
        "pswarn",
        &json!({"warn": "baseline", "audit": "restricted"}),
    )
    .await;
    make(&router, "psfree", &json!({})).await;
    names.push("pswarn".to_owned());
    compare_pods(&router, &data, &names, &mut comparison).await;
    compare_others(&router, &data, &mut comparison).await;
    let spec = |name: &str| {
        rows(&data, "pods")
            .iter()
            .find(|p| p["name"] == name)
            .map(|p| p["spec"].clone())
            .unwrap_or_default()
    };
    for (name, of) in [
        ("p1", "plain"),
        ("p2", "plain"),
        ("p3", "privileged"),
        ("p4", "good"),
    ] {
        assert_eq!(
            post(
                &router,
                "/api/v1/namespaces/psfree/pods",
                &pod(name, &spec(of), &Value::Null)
            )
            .await
            .0,
            201
        );
    }
    compare_namespaces(&router, &data, &mut comparison).await;
    comparison.finish();
    kube.shutdown().await;
}

#[tokio::test]
async fn pods_get_what_their_runtime_class_says() {
    let kube = start(Data::Memory).await;
    let router = kube.router();
    let data: Value =
        serde_json::from_str(include_str!("pod_security.json")).expect("the answers are JSON");
    let class = json!({"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "rc"}, "handler": "h",
        "overhead": {"podFixed": {"cpu": "100m", "memory": "1Gi"}}, "scheduling": {"nodeSelector": {"k": "v"}, "tolerations": [
            {"key": "t", "operator": "Exists"}, {"key": "u", "operator": "Equal", "value": "x", "effect": "NoSchedule"}]}});
    let bare = json!({"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "bare"}, "handler": "h"});
    for class in [class, bare] {
        assert_eq!(
            post(&router, "/apis/node.k8s.io/v1/runtimeclasses", &class)
                .await
                .0,
            201
        );
    }
    make(&router, "psfree", &json!({})).await;
    for row in data["runtime"].as_array().into_iter().flatten() {
        let pod = pod("r", &row["spec"], &Value::Null);
        let (code, answer, _) =
            post(&router, "/api/v1/namespaces/psfree/pods?dryRun=All", &pod).await;
        let field = |name: &str| answer["spec"][name].clone();
        let found = match code {
            201 => {
                json!({"overhead": field("overhead"), "nodeSelector": field("nodeSelector"), "tolerations": field("tolerations")})
            }
            _ => answer["message"].clone(),
        };
        assert_eq!(json!([code, found]), row["answer"], "{}", row["spec"]);
    }
    kube.shutdown().await;
}
