//! A client that watches from any resourceVersion ever seen ends up with the same objects as a
//! client that lists.

use crate::server::support::{get, post, send, start};
use axum::Router;
use axum::body::Body;
use http_body_util::BodyExt;
use rand::{Rng, SeedableRng, rngs::StdRng};
use serde_json::{Value, json};
use std::{collections::BTreeMap, time::Duration};
use tiphys_embedded_kube::Data;
use tower::ServiceExt;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const NAMES: u64 = 6;
const OPERATIONS: usize = 120;

/// Names with resourceVersion and content, and the resourceVersion of the list.
type State = (String, BTreeMap<String, (String, Value)>);

fn entry(object: &Value) -> (String, (String, Value)) {
    let text = |pointer: &str| {
        object
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    (
        text("/metadata/name"),
        (text("/metadata/resourceVersion"), object["data"].clone()),
    )
}

async fn list(router: &Router) -> State {
    let (code, list) = get(router, MAPS).await;
    assert_eq!(code, 200);
    let items = list["items"]
        .as_array()
        .expect("items")
        .iter()
        .map(entry)
        .collect();
    (
        list["metadata"]["resourceVersion"]
            .as_str()
            .expect("a revision")
            .to_owned(),
        items,
    )
}

async fn change(router: &Router, rng: &mut StdRng, number: usize) {
    let name = format!("m{}", rng.random_range(0..NAMES));
    let data = json!({"n": number.to_string()});
    let at = format!("{MAPS}/{name}");
    match rng.random_range(0..10) {
        0..4 => drop(post(router, MAPS, &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})).await),
        4..7 => drop(send(router, "PATCH", &at, "application/merge-patch+json", &json!({"data": data})).await),
        7 => {
            let finalizers = json!({"metadata": {"finalizers": if rng.random_range(0..2) == 0 { json!(["a/b"]) } else { Value::Null }}});
            send(router, "PATCH", &at, "application/merge-patch+json", &finalizers).await;
        }
        _ => drop(send(router, "DELETE", &at, "application/json", &Value::Null).await),
    }
}

/// Follows a watch from `state` until the map `end` is added. Every event must fit what is known.
async fn follow(router: Router, state: State) -> BTreeMap<String, (String, Value)> {
    let (from, mut known) = state;
    let uri = format!("{MAPS}?watch=1&allowWatchBookmarks=true&resourceVersion={from}");
    let request = http::Request::builder()
        .uri(uri)
        .body(Body::empty())
        .expect("a request");
    let mut body = router
        .oneshot(request)
        .await
        .expect("it answers")
        .into_body();
    let mut last: u64 = from.parse().expect("a number");
    let mut text = String::new();
    loop {
        while let Some((line, rest)) = text.split_once('\n') {
            let event: Value = serde_json::from_str(line).expect("JSON");
            text = rest.to_owned();
            let (name, (version, data)) = entry(&event["object"]);
            let revision: u64 = version
                .parse()
                .unwrap_or_else(|_| panic!("no revision in {event}"));
            assert!(revision >= last, "revisions rise: {event} after {last}");
            last = revision;
            match event["type"].as_str() {
                Some("BOOKMARK") => {}
                Some("ADDED") => {
                    assert!(
                        known.insert(name.clone(), (version, data)).is_none(),
                        "{name} was there already, seen from {from}"
                    )
                }
                Some("MODIFIED") => {
                    assert!(
                        known.insert(name.clone(), (version, data)).is_some(),
                        "{name} was not there, seen from {from}"
                    )
                }
                Some("DELETED") => assert!(
                    known.remove(&name).is_some(),
                    "{name} was gone already, seen from {from}"
                ),
                other => panic!("{other:?}: {event}"),
            }
            if name == "end" {
                return known;
            }
        }
        let frame = body
            .frame()
            .await
            .expect("the watch goes on")
            .expect("a frame");
        text.push_str(std::str::from_utf8(frame.data_ref().expect("data")).expect("text"));
    }
}

#[tokio::test]
async fn a_watch_from_any_revision_leads_to_the_list() {
    let first = tiphys_testkit::first_seed();
    for seed in first..first + 3 {
        println!("TIPHYS_SEED={seed}");
        let kube = start(Data::Memory).await;
        let router = kube.router();
        let mut rng = StdRng::seed_from_u64(seed);
        // Waits for the objects that the server creates itself; they would interfere otherwise.
        while !list(&router).await.1.contains_key("kube-root-ca.crt") {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let mut seen = vec![list(&router).await];
        let mut followers = Vec::new();
        for number in 0..OPERATIONS {
            change(&router, &mut rng, number).await;
            seen.push(list(&router).await);
            if rng.random_range(0..10) == 0 {
                let state = seen[rng.random_range(0..seen.len())].clone();
                followers.push(tokio::spawn(follow(router.clone(), state)));
            }
        }
        followers.extend(
            seen.into_iter()
                .map(|state| tokio::spawn(follow(router.clone(), state))),
        );
        post(
            &router,
            MAPS,
            &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "end"}}),
        )
        .await;
        let (_, expected) = list(&router).await;
        for follower in followers {
            let reached = tokio::time::timeout(Duration::from_secs(30), follower)
                .await
                .expect("it comes to the end")
                .expect("it follows");
            assert_eq!(reached, expected, "seed {seed}");
        }
        kube.shutdown().await;
    }
}
