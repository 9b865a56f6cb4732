//! applicationset.ApplicationSetService over REST: what is created, listed, generated and deleted,
//! and who may do it.

use crate::common::World;
use http::Method;
use serde_json::{Value, json};

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
