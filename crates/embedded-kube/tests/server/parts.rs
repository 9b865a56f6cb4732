//! Requests to subresources: binding, debugging, resizing and evicting pods, approving
//! certificates.

use crate::server::support::{get, post, send};
use serde_json::{Value, json};
use tiphys_embedded_kube::{EmbeddedKube, Options};

const PODS: &str = "/api/v1/namespaces/default/pods";
const MERGE: &str = "application/merge-patch+json";

/// An API server without controllers: nothing schedules or starts the pods.
async fn start() -> EmbeddedKube {
    EmbeddedKube::start(Options {
        controllers: false,
        ..Options::default()
    })
    .await
    .expect("it starts")
}

fn pod(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": "x"}},
           "spec": {"containers": [{"name": "c", "image": "nginx:1", "resources": {"requests": {"cpu": "1"}}}]}})
}

/// Makes a pod that runs and is ready.
async fn running(router: &axum::Router, name: &str) {
    let account =
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}});
    post(
        router,
        "/api/v1/namespaces/default/serviceaccounts",
        &account,
    )
    .await;
    let (code, answer) = post(router, PODS, &pod(name)).await;
    assert_eq!(code, 201, "{answer}");
    let binding = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": {"kind": "Node", "name": "n1"}});
    let (code, answer) = post(router, &format!("{PODS}/{name}/binding"), &binding).await;
    assert_eq!(code, 201, "{answer}");
    let mut status = json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}});
    [status["status"]["podIP"], status["status"]["podIPs"]] =
        ["10.1.1.1".into(), json!([{"ip": "10.1.1.1"}])];
    assert_eq!(
        send(
            router,
            "PATCH",
            &format!("{PODS}/{name}/status"),
            MERGE,
            &status
        )
        .await
        .0,
        200
    );
}

#[tokio::test]
async fn a_pod_is_bound_once_debugged_and_resized() {
    let kube = start().await;
    let router = kube.router();
    running(&router, "p").await;
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "status": {"capacity": {"cpu": "4", "memory": "8Gi", "pods": "10"}}});
    assert_eq!(post(&router, "/api/v1/nodes", &node).await.0, 201);
    let binding = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n2"}});
    let (code, answer) = post(&router, "/api/v1/namespaces/default/bindings", &binding).await;
    let text = "Operation cannot be fulfilled on pods/binding \"p\": pod p is already assigned to node \"n1\"";
    assert_eq!((code, answer["message"].as_str()), (409, Some(text)));
    let debug = json!({"spec": {"ephemeralContainers": [{"name": "d", "image": "busybox:1"}]}});
    let path = format!("{PODS}/p/ephemeralcontainers");
    let (code, answer) = send(&router, "PATCH", &path, MERGE, &debug).await;
    assert_eq!(
        (code, &answer["spec"]["ephemeralContainers"][0]["image"]),
        (200, &json!("busybox:1"))
    );
    let (code, answer) = send(
        &router,
        "PATCH",
        &path,
        MERGE,
        &json!({"spec": {"ephemeralContainers": []}}),
    )
    .await;
    assert!(
        code == 422
            && answer["message"]
                .as_str()
                .is_some_and(|m| m.contains("\"d\" may not be removed")),
        "{answer}"
    );
    let (_, mut live) = get(&router, &format!("{PODS}/p")).await;
    live["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "2".into();
    live["spec"]["containers"][0]["image"] = "other:1".into();
    let (code, answer) = send(
        &router,
        "PUT",
        &format!("{PODS}/p/resize"),
        "application/json",
        &live,
    )
    .await;
    let container = &answer["spec"]["containers"][0];
    assert_eq!(
        (
            code,
            &container["resources"]["requests"]["cpu"],
            &container["image"]
        ),
        (200, &json!("2"), &json!("nginx:1")),
        "{answer}"
    );
    kube.shutdown().await;
}

#[tokio::test]
async fn an_eviction_asks_the_budget() {
    let kube = start().await;
    let router = kube.router();
    running(&router, "p").await;
    let budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
    let budget = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"},
                        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}}});
    assert_eq!(post(&router, budgets, &budget).await.0, 201);
    let eviction =
        json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}});
    let path = format!("{PODS}/p/eviction");
    let (code, answer) = post(&router, &path, &eviction).await;
    let cause = "The disruption budget b is still being processed by the server.";
    assert_eq!(
        (code, &answer["details"]["causes"][0]["message"]),
        (429, &json!(cause))
    );
    let status = |allowed: i64, healthy: i64| {
        json!({"status": {"observedGeneration": 1, "disruptionsAllowed": allowed, "currentHealthy": healthy,
                                                               "desiredHealthy": 1, "expectedPods": 1}})
    };
    send(
        &router,
        "PATCH",
        &format!("{budgets}/b/status"),
        MERGE,
        &status(0, 1),
    )
    .await;
    let (code, answer) = post(&router, &path, &eviction).await;
    let refused = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 429, "reason": "TooManyRequests",
        "message": "Cannot evict pod as it would violate the pod's disruption budget.",
        "details": {"causes": [{"reason": "DisruptionBudget", "message": "The disruption budget b needs 1 healthy pods and has 1 currently"}]}});
    assert_eq!((code, answer), (429, refused));
    send(
        &router,
        "PATCH",
        &format!("{budgets}/b/status"),
        MERGE,
        &status(1, 2),
    )
    .await;
    assert_eq!(
        post(&router, &format!("{path}?dryRun=All"), &eviction)
            .await
            .0,
        201
    );
    assert_eq!(post(&router, &path, &eviction).await.0, 201);
    let (_, live) = get(&router, &format!("{budgets}/b")).await;
    assert_eq!(
        (
            &live["status"]["disruptionsAllowed"],
            live["status"]["disruptedPods"]["p"].is_string()
        ),
        (&json!(0), true)
    );
    let (_, live) = get(&router, &format!("{PODS}/p")).await;
    assert!(live["metadata"]["deletionTimestamp"].is_string(), "{live}");
    kube.shutdown().await;
}

#[tokio::test]
async fn components_and_certificates_are_answered() {
    let kube = start().await;
    let router = kube.router();
    let (_, list) = get(&router, "/api/v1/componentstatuses").await;
    assert_eq!(
        (&list["kind"], list["items"].as_array().map(Vec::len)),
        (&json!("ComponentStatusList"), Some(3))
    );
    assert_eq!(
        get(&router, "/api/v1/componentstatuses/nothing").await.0,
        404
    );
    let (_, keys) = get(&router, "/openid/v1/jwks").await;
    assert_eq!(keys["keys"][0]["alg"], "ES256");
    for name in ["exec", "attach", "portforward", "proxy"] {
        running(&router, &format!("p-{name}")).await;
        let (code, answer) = get(&router, &format!("{PODS}/p-{name}/{name}")).await;
        assert!(
            code == 501
                && answer["message"]
                    .as_str()
                    .is_some_and(|m| m.contains("there is no container")),
            "{answer}"
        );
    }
    kube.shutdown().await;
}
