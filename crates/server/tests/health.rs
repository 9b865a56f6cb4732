//! `/healthz`: what it says while the server works, while it cannot read what it needs, and when it
//! ends.

use crate::common;

use common::World;
use http::Method;
use serde_json::{Value, json};
use std::{sync::atomic::Ordering, time::Duration};
use tiphys_server::Options;

const SIMPLE: &str = "/healthz";
const FULL: &str = "/healthz?full=true";

async fn get(world: &World, path: &str) -> (u16, Value) {
    world.rest_as("", Method::GET, path, None).await
}

fn ok() -> (u16, Value) {
    (200, json!("ok\n"))
}

/// A probe that fails starts the server again, which would know nothing until Kubernetes is back.
#[tokio::test]
async fn what_cannot_be_followed_is_no_reason_to_start_again() {
    let world = World::start().await;
    world.server.ready().await;
    assert_eq!(get(&world, FULL).await, ok());
    assert_eq!(world.server.health(true).await, Ok(()));

    let problem = "secrets cannot be followed: forbidden";
    *world.store.problem.lock().expect("not poisoned") = Some(problem.to_owned());
    for path in [FULL, SIMPLE, "/healthz?full=false"] {
        assert_eq!(get(&world, path).await, ok(), "{path}");
    }
}

#[tokio::test]
async fn settings_that_cannot_be_read_are_told() {
    let first = World::start().await;
    // It has not read them yet.
    let world = first.again(Options::default()).await;
    world.server.ready().await;
    world.store.is_unreadable.store(true, Ordering::SeqCst);
    let (status, text) = get(&world, FULL).await;
    let text = text.as_str().unwrap_or_default();
    assert_eq!(status, 503, "{text}");
    assert!(text.contains("cannot read argocd-cm"), "{text}");
    assert_eq!(get(&world, SIMPLE).await, ok());
    world.store.is_unreadable.store(false, Ordering::SeqCst);
    assert_eq!(get(&world, FULL).await, ok());
}

#[tokio::test]
async fn a_server_that_ends_says_so_while_it_still_answers() {
    let world = World::start()
        .await
        .again(Options {
            notice: Duration::from_secs(600),
            ..Options::default()
        })
        .await;
    world.server.ready().await;
    assert_eq!(get(&world, SIMPLE).await, ok());
    world.stop.cancel();
    for path in [SIMPLE, FULL] {
        assert_eq!(get(&world, path).await, (503, json!("")), "{path}");
    }
    assert_eq!(world.server.health(false).await, Err(String::new()));
    assert_eq!(get(&world, "/api/version").await.0, 200);
}
