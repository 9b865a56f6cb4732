//! Objects larger than one piece of a list, at any position in the list and in every response form.

use crate::server::support::{get, post};
use axum::Router;
use axum::body::Body;
use http::Request;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use std::io::Read;
use tiphys_embedded_kube::{EmbeddedKube, Options};
use tower::ServiceExt;

const MAPS: &str = "/api/v1/namespaces/sizes/configmaps";
/// Of one piece of a list.
const PIECE: usize = 64 * 1024;

async fn ask(
    router: &Router,
    path: &str,
    name: &'static str,
    value: &str,
) -> (Option<String>, Vec<u8>) {
    let request = Request::builder()
        .uri(path)
        .header(name, value)
        .header("authorization", "Bearer t-admin")
        .body(Body::empty())
        .expect("a request");
    let answer = router.clone().oneshot(request).await.expect("it answers");
    assert_eq!(answer.status(), 200, "{path}");
    let encoding = answer
        .headers()
        .get("content-encoding")
        .map(|v| v.to_str().expect("text").to_owned());
    (
        encoding,
        answer
            .into_body()
            .collect()
            .await
            .expect("a body")
            .to_bytes()
            .to_vec(),
    )
}

fn names(list: &Value, of: &str) -> Vec<String> {
    let name = |item: &Value| {
        item.pointer(of)
            .and_then(Value::as_str)
            .expect("a name")
            .to_owned()
    };
    list["items"]
        .as_array()
        .or(list["rows"].as_array())
        .expect("a list")
        .iter()
        .map(name)
        .collect()
}

#[tokio::test]
async fn large_objects_are_listed_wherever_they_stand() {
    let options = Options {
        admin_token: Some("t-admin".into()),
        ..Options::default()
    };
    let kube = EmbeddedKube::start(options)
        .await
        .expect("the server starts");
    let router = kube.router();
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "sizes"}});
    assert_eq!(post(&router, "/api/v1/namespaces", &namespace).await.0, 201);
    let sizes = [
        ("a", PIECE + 1),
        ("b", 1),
        ("c", 10 * PIECE),
        ("d", PIECE - 300),
        ("e", 3 * PIECE),
        ("f", 5),
    ];
    for (name, size) in sizes {
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"x": "x".repeat(size)}});
        assert_eq!(post(&router, MAPS, &map).await.0, 201);
    }
    let mut known: Vec<String> = sizes.iter().map(|(name, _)| (*name).to_owned()).collect();
    known.push("kube-root-ca.crt".to_owned());
    let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while get(&router, &format!("{MAPS}/kube-root-ca.crt")).await.0 != 200
        && std::time::Instant::now() < until
    {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }

    let (code, list) = get(&router, MAPS).await;
    assert_eq!((code, names(&list, "/metadata/name")), (200, known.clone()));
    for ((_, size), item) in sizes.iter().zip(list["items"].as_array().expect("items")) {
        assert_eq!(item["data"]["x"].as_str().map(str::len), Some(*size));
    }
    let whole = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).expect("JSON");
    let (encoding, zipped) = ask(&kube.client_router(), MAPS, "accept-encoding", "gzip").await;
    let mut plain = Vec::new();
    flate2::read::GzDecoder::new(zipped.as_slice())
        .read_to_end(&mut plain)
        .expect("it is gzip");
    assert_eq!(
        (encoding.as_deref(), whole(&plain)),
        (Some("gzip"), list.clone())
    );

    for limit in 1..=3 {
        let (mut seen, mut next) = (Vec::new(), String::new());
        loop {
            let (code, page) = get(&router, &format!("{MAPS}?limit={limit}&continue={next}")).await;
            assert_eq!(code, 200, "{page}");
            seen.extend(names(&page, "/metadata/name"));
            match page["metadata"]["continue"]
                .as_str()
                .filter(|token| !token.is_empty())
            {
                Some(token) => token.clone_into(&mut next),
                None => break,
            }
        }
        assert_eq!(seen, known, "{limit} at a time");
    }

    for (form, of) in [
        ("Table", "/object/metadata/name"),
        ("PartialObjectMetadataList", "/metadata/name"),
    ] {
        let accept = format!("application/json;as={form};v=v1;g=meta.k8s.io");
        let path = format!("{MAPS}?includeObject=Object");
        assert_eq!(
            names(&whole(&ask(&router, &path, "accept", &accept).await.1), of),
            known,
            "{form}"
        );
    }

    let path = format!(
        "{MAPS}?watch=1&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=1"
    );
    let events =
        String::from_utf8(ask(&router, &path, "accept", "application/json").await.1).expect("text");
    let events: Vec<Value> = events.lines().map(|line| whole(line.as_bytes())).collect();
    let added = events.iter().filter(|e| e["type"] == "ADDED").map(|e| {
        e["object"]["metadata"]["name"]
            .as_str()
            .expect("a name")
            .to_owned()
    });
    assert_eq!(added.collect::<Vec<_>>(), known);
    kube.shutdown().await;
}
