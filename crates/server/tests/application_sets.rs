//! applicationset.ApplicationSetService over REST: what is created, listed, generated and deleted,
//! and who may do it.

use crate::common::World;
use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};
use std::time::Duration;
use tiphys_api::ApplicationSet;
use tiphys_server::ports::Sets as _;

const SETS: &str = "/api/v1/applicationsets";

fn set(name: &str, project: &str) -> Value {
    json!({
        "metadata": {"name": name},
        "spec": {
            "generators": [{"list": {"elements": [{"name": "a"}, {"name": "b"}]}}],
            "template": {
                "metadata": {"name": "{{name}}"},
                "spec": {
                    "project": project,
                    "source": {"repoURL": "https://u:CANARY@example.com/r", "path": "."},
                    "destination": {"server": "https://kubernetes.default.svc"},
                },
            },
        },
    })
}

#[tokio::test]
async fn a_set_is_created_listed_and_deleted() {
    let world = World::start().await;
    let (status, created) = world
        .rest(Method::POST, SETS, Some(set("one", "default")))
        .await;
    assert_eq!(status, 200, "{created}");
    assert_eq!(created["metadata"]["namespace"], "argocd");
    assert!(!created.to_string().contains("CANARY"), "{created}");

    // The same again is no change; another one needs `upsert`.
    let (status, same) = world
        .rest(Method::POST, SETS, Some(set("one", "default")))
        .await;
    assert_eq!((status, &same["metadata"]["uid"]), (200, &json!("uid-one")));
    let mut other = set("one", "default");
    other["spec"]["goTemplate"] = json!(true);
    let (status, refused) = world.rest(Method::POST, SETS, Some(other.clone())).await;
    assert_eq!(status, 400, "{refused}");
    let upsert = format!("{SETS}?upsert=true");
    let (status, updated) = world.rest(Method::POST, &upsert, Some(other)).await;
    assert_eq!(
        (status, &updated["spec"]["goTemplate"]),
        (200, &json!(true))
    );

    let (_, list) = world
        .rest(Method::GET, &format!("{SETS}?projects=default"), None)
        .await;
    assert_eq!(list["items"][0]["metadata"]["name"], "one", "{list}");
    let (_, none) = world
        .rest(Method::GET, &format!("{SETS}?projects=other"), None)
        .await;
    assert_eq!(none["items"], json!([]));
    let (status, _) = world
        .rest(Method::GET, &format!("{SETS}/one/resource-tree"), None)
        .await;
    assert_eq!(status, 200);

    let (status, _) = world
        .rest(Method::DELETE, &format!("{SETS}/one"), None)
        .await;
    assert_eq!(status, 200);
    let (status, gone) = world.rest(Method::GET, &format!("{SETS}/one"), None).await;
    assert_eq!(status, 404, "{gone}");
}

#[tokio::test]
async fn a_set_of_another_version_is_not_replaced() {
    let world = World::start().await;
    let send = |version: &str, name: &str, go_template: bool| {
        let upsert = format!("{SETS}?upsert=true&resourceVersion={version}");
        let mut wanted = set(name, "default");
        wanted["spec"]["goTemplate"] = json!(go_template);
        let world = &world;
        async move { world.rest(Method::POST, &upsert, Some(wanted)).await }
    };
    let (status, absent) = send("1", "one", true).await;
    assert_eq!(status, 404, "what is gone is not created again: {absent}");
    let (status, created) = send("", "one", false).await;
    assert_eq!(status, 200, "{created}");
    let version = created["metadata"]["resourceVersion"].as_str();
    let version = version.expect("a version");
    let (status, refused) = send("999", "one", true).await;
    assert_eq!(status, 409, "{refused}");
    let (status, updated) = send(version, "one", true).await;
    assert_eq!(
        (status, &updated["spec"]["goTemplate"]),
        (200, &json!(true))
    );
    // Somebody else has looked at the first one, too.
    let (status, refused) = send(version, "one", false).await;
    assert_eq!(status, 409, "{refused}");
    let (_, kept) = world.rest(Method::GET, &format!("{SETS}/one"), None).await;
    assert_eq!(kept["spec"]["goTemplate"], json!(true));
    // That of a file says nothing, as in Argo CD.
    let mut file = set("one", "default");
    file["metadata"]["resourceVersion"] = json!("999");
    let upsert = format!("{SETS}?upsert=true");
    let (status, updated) = world.rest(Method::POST, &upsert, Some(file)).await;
    assert_eq!(status, 200, "{updated}");
}

#[tokio::test]
async fn what_a_set_generates_is_shown_without_a_set() {
    let world = World::start().await;
    let body = json!({"applicationSet": set("none", "default")});
    let path = format!("{SETS}/generate");
    let (status, made) = world.rest(Method::POST, &path, Some(body)).await;
    assert_eq!(status, 200, "{made}");
    assert_eq!(made["applications"].as_array().map(Vec::len), Some(2));
    assert!(!made.to_string().contains("CANARY"), "{made}");
    // They have the namespace that the request stated.
    let namespace = |made: &Value| {
        let metadata = &made["applications"][0]["metadata"];
        metadata["namespace"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    assert_eq!(namespace(&made), "");
    let mut stated = set("none", "default");
    stated["metadata"]["namespace"] = "argocd".into();
    let body = json!({"applicationSet": stated});
    let (status, made) = world.rest(Method::POST, &path, Some(body)).await;
    assert_eq!(status, 200, "{made}");
    assert_eq!(namespace(&made), "argocd");
    let (_, list) = world.rest(Method::GET, SETS, None).await;
    assert_eq!(list["items"], json!([]), "nothing was created");
}

#[tokio::test]
async fn what_cannot_be_checked_is_refused() {
    let world = World::start().await;
    let refused = [
        (set("x", "{{project}}"), 500, "templated `project`"),
        (
            set("x", "nope"),
            400,
            "references project nope which does not exist",
        ),
        (
            {
                let mut unknown = set("x", "default");
                unknown["spec"]["generators"] = json!([{"nonsense": {}}]);
                unknown
            },
            400,
            "contains unrecognized generators",
        ),
    ];
    for (set, code, why) in refused {
        let (status, answer) = world.rest(Method::POST, SETS, Some(set)).await;
        assert_eq!(status, code, "{answer}");
        assert!(answer["message"].to_string().contains(why), "{answer}");
    }
}

#[tokio::test]
async fn sets_belong_to_projects() {
    let policy = "p, role:dev, applicationsets, get, default/*, allow\ng, dev, role:dev\n";
    let hash = bcrypt::hash("another password", 4).expect("it hashes");
    let config = [("accounts.dev", "login"), ("policy.csv", policy)];
    let secrets = [("accounts.dev.password", hash.as_str())];
    let world = World::start_by_policy(&config, &secrets).await;
    let (status, created) = world
        .rest(Method::POST, SETS, Some(set("one", "default")))
        .await;
    assert_eq!(status, 200, "{created}");
    let login = json!({"username": "dev", "password": "another password"});
    let (_, session) = world
        .rest_as("", Method::POST, "/api/v1/session", Some(login))
        .await;
    let token = session["token"].as_str().expect("a token");
    let one = format!("{SETS}/one");
    let (status, _) = world.rest_as(token, Method::GET, &one, None).await;
    assert_eq!(status, 200);
    let (_, list) = world.rest_as(token, Method::GET, SETS, None).await;
    assert_eq!(list["items"].as_array().map(Vec::len), Some(1));
    let (status, _) = world.rest_as(token, Method::DELETE, &one, None).await;
    assert_eq!(status, 403);
    let body = json!({"applicationSet": set("none", "default")});
    let path = format!("{SETS}/generate");
    let (status, _) = world.rest_as(token, Method::POST, &path, Some(body)).await;
    assert_eq!(status, 403, "generating reads what a creator may read");
}

#[tokio::test]
async fn a_deleted_set_is_shown_and_restored_by_who_may() {
    let policy = "p, role:dev, applicationsets, get, default/*, allow\ng, dev, role:dev\n";
    let hash = bcrypt::hash("another password", 4).expect("it hashes");
    let config = [("accounts.dev", "login"), ("policy.csv", policy)];
    let secrets = [("accounts.dev.password", hash.as_str())];
    let world = World::start_by_policy(&config, &secrets).await;
    let login = json!({"username": "dev", "password": "another password"});
    let (_, session) = world
        .rest_as("", Method::POST, "/api/v1/session", Some(login))
        .await;
    let token = session["token"].as_str().expect("a token");
    let gone = format!("{SETS}/fleet-gone");
    let (status, _) = world.rest(Method::GET, &gone, None).await;
    assert_eq!(
        status, 404,
        "it is gone for whoever does not ask for deleted ones"
    );
    let gone = format!("{gone}?deleted=true");
    for viewer in [true, false] {
        let (status, shown) = match viewer {
            true => world.rest_as(token, Method::GET, &gone, None).await,
            false => world.rest(Method::GET, &gone, None).await,
        };
        assert_eq!(
            (status, &shown["metadata"]["name"]),
            (200, &json!("fleet-gone"))
        );
        assert!(!shown.to_string().contains("CANARY"), "{shown}");
    }
    let unknown = format!("{SETS}/one?deleted=true");
    let (status, _) = world.rest(Method::GET, &unknown, None).await;
    assert_eq!(status, 404);

    // Of what is sent only the name counts.
    let restore = format!("{SETS}?restore=true");
    let mut body = set("fleet-gone", "other");
    body["spec"]["generators"] = json!([]);
    let (status, _) = world
        .rest_as(token, Method::POST, &restore, Some(body.clone()))
        .await;
    assert_eq!(status, 403);
    let (status, restored) = world.rest(Method::POST, &restore, Some(body)).await;
    assert_eq!(status, 200, "{restored}");
    assert_eq!(restored["spec"]["template"]["spec"]["project"], "default");
    let (status, _) = world
        .rest(Method::POST, &restore, Some(set("one", "default")))
        .await;
    assert_eq!(status, 404);
}

#[tokio::test]
async fn a_watch_tells_nothing_of_namespaces_that_are_not_permitted() {
    let world = World::start().await;
    let made = |name: &str, namespace: &str| -> ApplicationSet {
        let mut made = set(name, "default");
        made["metadata"]["namespace"] = json!(namespace);
        serde_json::from_value(made).expect("a set")
    };
    let (far, near) = (made("far", "elsewhere"), made("near", "argocd"));
    let read = async {
        let request = Request::get("/api/v1/stream/applicationsets")
            .header("authorization", format!("Bearer {}", world.token))
            .body(Full::<Bytes>::default());
        let answer = world.send(request.expect("a request")).await;
        let (mut body, mut text) = (answer.into_body(), String::new());
        while text.matches("\"near\"").count() < 3 {
            let frame = body.frame().await.expect("a message").expect("it comes");
            text.push_str(&String::from_utf8_lossy(&frame.into_data().expect("data")));
        }
        text
    };
    let change = async {
        // Nobody tells when the watch has begun.
        for _ in 0..10_000 {
            for set in [&far, &near] {
                world.sets.update(set).await.expect("stored");
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let text = tokio::select! {
        text = read => text,
        () = change => panic!("no change came"),
    };
    assert!(!text.contains("elsewhere"), "{text}");
}
