//! The API through its router: behaviour that clients rely on beyond single objects.

use crate::server::support::{get, post, send, start};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use std::time::Duration;
use tiphys_embedded_kube::Data;
use tower::ServiceExt;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn map(name: &str, data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
}

/// The next lines of a watch, as JSON, until `n` have come.
async fn lines(router: &axum::Router, path: &str, n: usize) -> Vec<Value> {
    let request = http::Request::builder()
        .uri(path)
        .body(axum::body::Body::empty())
        .expect("a request");
    let mut body = router
        .clone()
        .oneshot(request)
        .await
        .expect("it answers")
        .into_body();
    let mut text = String::new();
    let read = async {
        while text.lines().count() < n {
            let Some(frame) = body.frame().await else {
                break;
            };
            text.push_str(
                std::str::from_utf8(frame.expect("a frame").data_ref().expect("data"))
                    .expect("text"),
            );
        }
    };
    tokio::time::timeout(Duration::from_secs(10), read)
        .await
        .expect("the lines come");
    text.lines()
        .map(|l| serde_json::from_str(l).expect("JSON"))
        .collect()
}

#[tokio::test]
async fn a_watch_from_a_list_sees_what_comes_after_it_and_an_old_one_is_gone() {
    let kube = start(Data::Memory).await;
    let router = kube.router();
    let (_, list) = get(&router, MAPS).await;
    let from = list["metadata"]["resourceVersion"]
        .as_str()
        .expect("a revision")
        .to_owned();
    for i in 0..3 {
        assert_eq!(
            post(&router, MAPS, &map(&format!("m{i}"), &json!({"k": "v"})))
                .await
                .0,
            201
        );
    }
    send(
        &router,
        "DELETE",
        &format!("{MAPS}/m1"),
        "application/json",
        &Value::Null,
    )
    .await;
    let selector = "fieldSelector=metadata.name%21%3Dkube-root-ca.crt";
    let seen = lines(
        &router,
        &format!("{MAPS}?watch=1&resourceVersion={from}&{selector}"),
        4,
    )
    .await;
    let words: Vec<String> = seen
        .iter()
        .map(|e| format!("{} {}", e["type"], e["object"]["metadata"]["name"]))
        .collect();
    assert_eq!(
        words,
        [
            "\"ADDED\" \"m0\"",
            "\"ADDED\" \"m1\"",
            "\"ADDED\" \"m2\"",
            "\"DELETED\" \"m1\""
        ]
    );
    // More changes than the history keeps.
    for i in 0..8_300 {
        let patch = json!({"data": {"k": i.to_string()}});
        send(
            &router,
            "PATCH",
            &format!("{MAPS}/m0"),
            "application/merge-patch+json",
            &patch,
        )
        .await;
    }
    let seen = lines(
        &router,
        &format!("{MAPS}?watch=1&resourceVersion={from}"),
        1,
    )
    .await;
    assert_eq!(
        (&seen[0]["type"], &seen[0]["object"]["code"]),
        (&json!("ERROR"), &json!(410))
    );
    kube.shutdown().await;
}

#[tokio::test]
async fn a_streaming_list_ends_its_first_part_with_a_bookmark() {
    let kube = start(Data::Memory).await;
    let router = kube.router();
    post(&router, MAPS, &map("a", &json!({}))).await;
    let query = "watch=1&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan&fieldSelector=metadata.name%3Da";
    let seen = lines(&router, &format!("{MAPS}?{query}"), 2).await;
    assert_eq!(seen[0]["object"]["metadata"]["name"], "a");
    assert_eq!(
        seen[1]["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"],
        "true"
    );
    kube.shutdown().await;
}

#[tokio::test]
async fn a_list_in_pieces_is_one_state() {
    let kube = start(Data::Memory).await;
    let router = kube.router();
    for i in 0..5 {
        post(&router, "/api/v1/namespaces", &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": format!("z{i}")}})).await;
    }
    let (mut names, mut token) = (Vec::new(), String::new());
    loop {
        let (_, page) = get(
            &router,
            &format!("/api/v1/namespaces?limit=2&continue={token}"),
        )
        .await;
        let items = page["items"].as_array().expect("items").clone();
        assert!(items.len() <= 2);
        names.extend(
            items
                .iter()
                .map(|o| o["metadata"]["name"].as_str().expect("a name").to_owned()),
        );
        // Concurrent changes are not visible.
        post(
            &router,
            "/api/v1/namespaces",
            &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": format!("z9{}", names.len())}}),
        )
        .await;
        match page["metadata"]["continue"].as_str() {
            Some(next) => token = next.to_owned(),
            None => break,
        }
    }
    assert_eq!(
        names,
        [
            "default",
            "kube-node-lease",
            "kube-public",
            "kube-system",
            "z0",
            "z1",
            "z2",
            "z3",
            "z4"
        ]
    );
    kube.shutdown().await;
}

#[tokio::test]
async fn bad_bodies_are_refused_with_a_status() {
    let kube = start(Data::Memory).await;
    let router = kube.router();
    let big = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"k": "x".repeat(4 << 20)}});
    assert_eq!(post(&router, MAPS, &big).await.0, 413);
    assert_eq!(post(&router, MAPS, &json!([1])).await.0, 400);
    assert_eq!(
        post(
            &router,
            MAPS,
            &json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "x"}})
        )
        .await
        .0,
        400
    );
    assert_eq!(
        send(&router, "POST", MAPS, "text/plain", &json!({}))
            .await
            .0,
        415
    );
    let (code, answer) = post(&router, MAPS, &map("Upper", &json!({}))).await;
    assert_eq!((code, &answer["reason"]), (422, &json!("Invalid")));
    let (code, answer) = post(
        &router,
        "/api/v1/namespaces/none/configmaps",
        &map("x", &json!({})),
    )
    .await;
    assert_eq!(
        (code, &answer["message"]),
        (404, &json!("namespaces \"none\" not found"))
    );
    let (code, answer) = post(
        &router,
        "/api/v1/namespaces/default/pods/x/exec",
        &json!({}),
    )
    .await;
    assert_eq!(
        (code, &answer["message"]),
        (404, &json!("pods \"x\" not found"))
    );
    kube.shutdown().await;
}

#[tokio::test]
async fn owners_take_their_dependents_with_them() {
    let kube = start(Data::Memory).await;
    let router = kube.router();
    let (_, owner) = post(&router, MAPS, &map("owner", &json!({}))).await;
    let mut child = map("child", &json!({}));
    child["metadata"]["ownerReferences"] = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner",
        "uid": owner["metadata"]["uid"], "blockOwnerDeletion": true}]);
    post(&router, MAPS, &child).await;
    let body =
        json!({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Foreground"});
    let (_, marked) = send(
        &router,
        "DELETE",
        &format!("{MAPS}/owner"),
        "application/json",
        &body,
    )
    .await;
    assert_eq!(
        marked["metadata"]["finalizers"],
        json!(["foregroundDeletion"])
    );
    for _ in 0..200 {
        if get(&router, &format!("{MAPS}/owner")).await.0 == 404 {
            assert_eq!(get(&router, &format!("{MAPS}/child")).await.0, 404);
            kube.shutdown().await;
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the owner is still there");
}

#[tokio::test]
async fn a_restart_finds_everything_and_goes_on() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let data = || Data::Dir(folder.path().to_owned());
    let kube = start(data()).await;
    let services = "/api/v1/namespaces/default/services";
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}});
    let (_, first) = post(&kube.router(), services, &service).await;
    kube.shutdown().await;
    let kube = start(data()).await;
    let (_, found) = get(&kube.router(), &format!("{services}/s")).await;
    assert_eq!(found, first);
    let mut other = service.clone();
    other["metadata"]["name"] = json!("t");
    let (_, second) = post(&kube.router(), services, &other).await;
    assert_ne!(first["spec"]["clusterIP"], second["spec"]["clusterIP"]);
    other["metadata"]["name"] = json!("u");
    other["spec"]["clusterIP"] = first["spec"]["clusterIP"].clone();
    let (code, answer) = post(&kube.router(), services, &other).await;
    assert_eq!(code, 422, "{answer}");
    kube.shutdown().await;
}

#[tokio::test]
async fn this_process_acts_as_somebody_else_with_that_ones_rights() {
    let kube = start(Data::Memory).await;
    let request = http::Request::get("/api/v1/pods")
        .header("Impersonate-User", "bob")
        .body(axum::body::Body::empty())
        .expect("a request");
    let response = tower::ServiceExt::oneshot(kube.router(), request)
        .await
        .expect("it answers");
    assert_eq!(
        response.status(),
        403,
        "an answer as the administrator would be a made-up one"
    );
    kube.shutdown().await;
}
