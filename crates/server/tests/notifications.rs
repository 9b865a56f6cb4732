//! The names in the configuration of notifications, through REST and gRPC.

use crate::common::World;
use http::Method;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tiphys_api::rpc::notification::{ListRequest, NamedList};
use tiphys_server::ports::Store as _;

async fn names(world: &World, what: &str) -> Value {
    let path = format!("/api/v1/notifications/{what}");
    let (status, answer) = world.rest(Method::GET, &path, None).await;
    assert_eq!(status, 200, "{answer}");
    answer
}

#[tokio::test]
async fn names_are_listed() {
    let world = World::start().await;
    for what in ["triggers", "services", "templates"] {
        assert_eq!(names(&world, what).await, json!({}), "{what}");
    }
    let keys = [
        "trigger.on-deployed",
        "trigger.broken",
        "template.app-deployed",
        "service.email",
        "service.webhook.hook",
        "service.webhook.a.b",
        "context",
    ];
    let values = keys.map(|key| (key.to_owned(), Some("[".to_owned())));
    let values = BTreeMap::from(values);
    let set = world
        .store
        .set_in_config_map("argocd-notifications-cm", "", &values);
    set.await.expect("set");
    let named = |names: &[&str]| -> Value {
        let items: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
        json!({ "items": items })
    };
    for (what, expected) in [
        ("triggers", named(&["broken", "on-deployed"])),
        ("services", named(&["email", "hook"])),
        ("templates", named(&["app-deployed"])),
    ] {
        assert_eq!(names(&world, what).await, expected, "{what}");
    }
    let list: NamedList = world
        .grpc(
            "/notification.NotificationService/ListTemplates",
            ListRequest::default(),
        )
        .await
        .expect("listed");
    assert_eq!(list.items[0].name, "app-deployed");
}
