//! Clusters through REST: what is stored, what is shown, and who may do it.

use crate::common::World;
use http::Method;
use serde_json::{Value, json};
use tiphys_api::{cluster::ClusterList, rpc::cluster::ClusterQuery};
use tiphys_server::ports::{SecretRecord, Store as _};

const PATH: &str = "/api/v1/clusters";
const FAR: &str = "https://far.example:6443";
const FAR_ESCAPED: &str = "https%3A%2F%2Ffar.example%3A6443";
const SECRET: &str = "cluster-far.example-41668368";
const CONFIG: &str = r#"{"bearerToken":"t0","tlsClientConfig":{"insecure":true,"certData":"Yw==","serverName":"kube"},"proxyUrl":"http://u:pw@proxy.example:3128"}"#;

async fn store_far(world: &World) {
    let values = [
        ("server", FAR),
        ("name", "far"),
        ("config", CONFIG),
        ("namespaces", "a,b"),
        ("shard", "1"),
        ("custom", "kept"),
    ];
    world.store_secret("by-hand", "cluster", &values).await;
}

async fn secret(world: &World, name: &str) -> SecretRecord {
    world.store.secret(name).await.expect("it is there")
}

async fn is_gone(world: &World, name: &str) -> bool {
    world.store.secret(name).await.is_err()
}

#[tokio::test]
async fn a_cluster_is_stored_as_argo_cd_stores_it() {
    let world = World::start().await;
    let body = json!({"server": format!("{FAR}/"), "config": {"bearerToken": "t0"},
        "namespaces": ["a", "b"], "clusterResources": true, "shard": 0, "project": "p",
        "labels": {"env": "prod"}, "annotations": {"owner": "ops"}});
    let (status, reply) = world.rest(Method::POST, PATH, Some(body.clone())).await;
    assert_eq!(status, 200, "{reply}");
    assert_eq!(reply["serverVersion"], "v1.36.3");
    assert_eq!(reply["connectionState"]["status"], "Successful");
    assert_eq!(
        reply["config"],
        json!({"tlsClientConfig": {"insecure": false}})
    );
    let stored = secret(&world, SECRET).await;
    for (key, value) in [
        ("server", FAR),
        ("name", FAR),
        (
            "config",
            r#"{"bearerToken":"t0","tlsClientConfig":{"insecure":false}}"#,
        ),
        ("namespaces", "a,b"),
        ("clusterResources", "true"),
        ("shard", "0"),
        ("project", "p"),
    ] {
        assert_eq!(stored.text(key), value, "{key}");
    }
    assert_eq!(stored.labels["env"], "prod");
    assert_eq!(stored.annotations["managed-by"], "argocd.argoproj.io");
    assert_eq!(stored.annotations["owner"], "ops");

    // The same again changes nothing; something else needs `upsert`.
    let (status, _) = world.rest(Method::POST, PATH, Some(body.clone())).await;
    assert_eq!(status, 200);
    let mut other = body;
    other["labels"] = json!({});
    let (status, reply) = world.rest(Method::POST, PATH, Some(other.clone())).await;
    assert_eq!(
        (status, reply["message"].as_str()),
        (
            400,
            Some("existing cluster spec is different; use upsert flag to force update")
        )
    );
    let upsert = format!("{PATH}?upsert=true");
    let (status, reply) = world.rest(Method::POST, &upsert, Some(other)).await;
    assert_eq!(status, 200, "{reply}");
    assert!(!secret(&world, SECRET).await.labels.contains_key("env"));
    // What the connection showed is shown until the controller knows more.
    let (_, shown) = world
        .rest(Method::GET, &format!("{PATH}/{FAR_ESCAPED}"), None)
        .await;
    assert_eq!(shown["info"]["serverVersion"], "v1.36.3");
}

#[tokio::test]
async fn what_cannot_be_reached_or_read_is_not_stored() {
    let world = World::start().await;
    for (body, code, part) in [
        (
            json!({"server": "https://dead.example", "config": {}}),
            500,
            "error getting server version: failed to get server version: connection refused",
        ),
        (
            json!({"config": {}}),
            500,
            "the address of its API server is missing",
        ),
        (
            json!({"server": "not a url", "config": {}}),
            500,
            "\"not a url\" is not the URL of an API server",
        ),
        (
            json!({"server": FAR, "config": {}, "annotations":
                {"kubectl.kubernetes.io/last-applied-configuration": "{}"}}),
            400,
            "cannot be set",
        ),
    ] {
        let (status, reply) = world.rest(Method::POST, PATH, Some(body.clone())).await;
        assert_eq!(status, code, "{body}: {reply}");
        let said = reply["message"].as_str().unwrap_or_default();
        assert!(said.contains(part), "{body}: {said}");
    }
    let left = world
        .store
        .secrets_of_type("cluster")
        .await
        .expect("a list");
    assert!(left.is_empty());
}

#[tokio::test]
async fn updates_change_only_the_named_fields() {
    let world = World::start().await;
    store_far(&world).await;
    let path = |fields: &str| {
        let fields = fields.split(',').filter(|f| !f.is_empty());
        let query: Vec<String> = fields.map(|f| format!("updatedFields={f}")).collect();
        format!("{PATH}/far?id.type=name&{}", query.join("&"))
    };
    let body = json!({"name": "renamed", "namespaces": [], "shard": 5, "labels": {"x": "y"}});
    let put = |fields: &str, body: &Value| {
        let (path, body) = (path(fields), body.clone());
        let world = &world;
        async move { world.rest(Method::PUT, &path, Some(body)).await }
    };
    let (status, reply) = put("labels,namespaces", &body).await;
    assert_eq!(status, 200, "{reply}");
    assert_eq!(reply["name"], "far");
    assert_eq!(
        reply["config"]["proxyUrl"],
        "http://u:******@proxy.example:3128"
    );
    let stored = secret(&world, "by-hand").await;
    assert_eq!(stored.text("shard"), "1");
    assert_eq!(stored.text("namespaces"), "");
    assert_eq!(stored.labels["x"], "y");
    assert_eq!(stored.text("custom"), "kept");
    assert!(
        stored.text("config").contains("u:pw@"),
        "{}",
        stored.text("config")
    );
    assert!(stored.text("config").contains("t0"));

    // Argo CD looks at the fields that it knows.
    let (status, reply) = put("colour", &body).await;
    assert_eq!(status, 200, "{reply}");
    let moved = json!({"server": "https://other.example", "config": {}});
    let (status, reply) = put("", &moved).await;
    assert_eq!(status, 400, "{reply}");
    let (status, reply) = world
        .rest(
            Method::PUT,
            &format!("{PATH}/https%3A%2F%2Fnone?updatedFields=name"),
            Some(body),
        )
        .await;
    assert_eq!(
        (status, reply["message"].as_str()),
        (403, Some("permission denied"))
    );
}

#[tokio::test]
async fn deleting_takes_ours_away_and_releases_those_of_others() {
    let world = World::start().await;
    store_far(&world).await;
    let twin = json!({"server": "https://twin.example", "name": "far", "config": {}});
    let (status, _) = world.rest(Method::POST, PATH, Some(twin)).await;
    assert_eq!(status, 200);
    let ours = "cluster-twin.example-873355708";
    secret(&world, ours).await;
    let (status, reply) = world
        .rest(Method::DELETE, &format!("{PATH}/far?id.type=name"), None)
        .await;
    assert_eq!((status, reply), (200, json!({})));
    assert!(is_gone(&world, ours).await);
    let stays = secret(&world, "by-hand").await;
    assert!(!stays.labels.contains_key("argocd.argoproj.io/secret-type"));
    assert_eq!(stays.text("server"), FAR);

    for (id, code) in [
        ("far?id.type=name", 403),
        ("https%3A%2F%2Fkubernetes.default.svc", 404),
    ] {
        let (status, _) = world
            .rest(Method::DELETE, &format!("{PATH}/{id}"), None)
            .await;
        assert_eq!(status, code, "{id}");
    }
}

#[tokio::test]
async fn a_new_token_is_stored_before_the_old_one_is_withdrawn() {
    let world = World::start().await;
    store_far(&world).await;
    let rotate = format!("{PATH}/{FAR_ESCAPED}/rotate-auth");
    let (status, reply) = world.rest(Method::POST, &rotate, Some(json!({}))).await;
    assert_eq!((status, &reply), (200, &json!({})));
    let config: Value =
        serde_json::from_str(&secret(&world, "by-hand").await.text("config")).expect("JSON");
    assert_eq!(config["bearerToken"], "t0-2");
    assert!(config["tlsClientConfig"].get("certData").is_none());
    let probed = world.live.probed.lock().expect("not poisoned").clone();
    let tried: Value = serde_json::from_str(&probed[0].text("config")).expect("JSON");
    assert_eq!(tried["bearerToken"], "t0-2");
    assert_eq!(
        *world.live.retired.lock().expect("not poisoned"),
        ["t0 for argocd-manager-long-lived-2"]
    );

    let values = [("server", "https://cert.example"), ("config", "{}")];
    world.store_secret("cert", "cluster", &values).await;
    let rotate = format!("{PATH}/https%3A%2F%2Fcert.example/rotate-auth");
    let (status, reply) = world.rest(Method::POST, &rotate, Some(json!({}))).await;
    assert_eq!(
        (status, reply["message"].as_str()),
        (
            400,
            Some("Cluster 'https://cert.example' does not use bearer token authentication")
        )
    );
}

#[tokio::test]
async fn reading_anew_is_asked_for_by_an_annotation() {
    let world = World::start().await;
    let mark = "argocd.argoproj.io/refresh";
    let path = format!("{PATH}/https%3A%2F%2Fkubernetes.default.svc/invalidate-cache");
    let (status, reply) = world.rest(Method::POST, &path, Some(json!({}))).await;
    assert_eq!(status, 200, "{reply}");
    assert_eq!(reply["annotations"][mark], reply["refreshRequestedAt"]);
    // The own cluster needs a Secret for that.
    let stored = secret(&world, "cluster-kubernetes.default.svc-3396314289").await;
    assert_eq!(
        reply["annotations"][mark],
        stored.annotations[mark].as_str()
    );
}

/// `dev` may manage the clusters of project `p`.
#[tokio::test]
async fn members_of_a_project_manage_its_clusters_without_programs() {
    const SECRET: &str = "another password";
    let hash = bcrypt::hash(SECRET, 4).expect("it hashes");
    let policy = "p, dev, clusters, *, p/*, allow\n";
    let world = World::start_by_policy(
        &[("accounts.dev", "login"), ("policy.csv", policy)],
        &[("accounts.dev.password", hash.as_str())],
    )
    .await;
    store_far(&world).await;
    let body = json!({"username": "dev", "password": SECRET});
    let (_, session) = world
        .rest_as("", Method::POST, "/api/v1/session", Some(body))
        .await;
    let token = session["token"].as_str().expect("a token").to_owned();
    let send = |method: Method, path: &str, body: Value| {
        let (world, token, path) = (&world, token.clone(), path.to_owned());
        async move { world.rest_as(&token, method, &path, Some(body)).await }
    };
    let program = json!({"execProviderConfig": {"command": "sh"}});
    let ours = json!({"server": "https://ours.example", "project": "p", "config": {}});
    let mut with_program = ours.clone();
    with_program["config"] = program.clone();
    let far = format!("{PATH}/{FAR_ESCAPED}");
    let into_p = format!("{far}?updatedFields=project");
    let ours_path = format!("{PATH}/https%3A%2F%2Fours.example");
    let config = format!("{ours_path}?updatedFields=config");
    let out_of_p = format!("{ours_path}?updatedFields=project");
    for (what, method, path, body, code) in [
        ("ours", Method::POST, PATH, ours, 200),
        ("a program", Method::POST, PATH, with_program, 403),
        (
            "of no project",
            Method::POST,
            PATH,
            json!({"server": "https://x.example", "config": {}}),
            403,
        ),
        // The address belongs to a cluster of no project.
        (
            "theirs as ours",
            Method::POST,
            "/api/v1/clusters?upsert=true",
            json!({"server": FAR, "project": "p", "config": {}}),
            403,
        ),
        (
            "take theirs",
            Method::PUT,
            &into_p,
            json!({"project": "p"}),
            403,
        ),
        (
            "give away",
            Method::PUT,
            &out_of_p,
            json!({"project": ""}),
            403,
        ),
        (
            "a program later",
            Method::PUT,
            &config,
            json!({"config": program}),
            403,
        ),
        ("see theirs", Method::GET, &far, Value::Null, 403),
        ("delete theirs", Method::DELETE, &far, Value::Null, 403),
        ("delete ours", Method::DELETE, &ours_path, Value::Null, 200),
    ] {
        let (status, reply) = send(method, path, body).await;
        assert_eq!(status, code, "{what}: {reply}");
    }
    assert_eq!(secret(&world, "by-hand").await.text("project"), "");
}

/// The arguments and the environment of the program that gives a token.
#[tokio::test]
async fn no_answer_has_what_a_program_is_given() {
    const DEAD: &str = "https%3A%2F%2Fdead.example";
    let world = World::start().await;
    let program = |value: &str| {
        json!({"tlsClientConfig": {"insecure": false}, "execProviderConfig": {
            "command": "tokens", "args": ["--key", value], "env": {"KEY": value}}})
    };
    let config = program("CANARY");
    for (name, server) in [("far", FAR), ("dead", "https://dead.example")] {
        let config = config.to_string();
        let values = [("server", server), ("name", name), ("config", &config)];
        world.store_secret(name, "cluster", &values).await;
    }
    let is = |server: &str, name: &str, config: &Value| json!({"server": server, "name": name, "config": config});
    let far = format!("{PATH}/{FAR_ESCAPED}");
    let dead = format!("{PATH}/{DEAD}");
    for (method, path, body, code) in [
        (Method::GET, PATH.to_owned(), None, 200),
        (Method::GET, far.clone(), None, 200),
        (Method::GET, format!("{PATH}/far?id.type=name"), None, 200),
        (
            Method::POST,
            PATH.into(),
            Some(is(FAR, "far", &config)),
            200,
        ),
        // Another specification than the stored one.
        (
            Method::POST,
            PATH.into(),
            Some(is(FAR, "far", &program("CANARY2"))),
            400,
        ),
        (
            Method::POST,
            format!("{PATH}?upsert=true"),
            Some(is(FAR, "far", &program("CANARY3"))),
            200,
        ),
        (
            Method::POST,
            PATH.into(),
            Some(is("https://dead2.example", "dead2", &config)),
            500,
        ),
        (
            Method::PUT,
            format!("{far}?updatedFields=config"),
            Some(is(FAR, "far", &config)),
            200,
        ),
        (
            Method::PUT,
            format!("{dead}?updatedFields=config"),
            Some(is("https://dead.example", "dead", &config)),
            500,
        ),
        (
            Method::POST,
            format!("{far}/rotate-auth"),
            Some(json!({})),
            400,
        ),
        (
            Method::POST,
            format!("{far}/invalidate-cache"),
            Some(json!({})),
            200,
        ),
    ] {
        let what = format!("{method} {path}");
        let (status, reply) = world.rest(method, &path, body).await;
        assert_eq!(status, code, "{what}: {reply}");
        assert!(!reply.to_string().contains("CANARY"), "{what}: {reply}");
    }
    let stored = secret(&world, "far").await.text("config");
    assert_eq!(stored.matches("CANARY").count(), 2, "it is kept: {stored}");
    let list: ClusterList = world
        .grpc("/cluster.ClusterService/List", ClusterQuery::default())
        .await
        .expect("a list");
    assert!(list.items.iter().any(|cluster| cluster.name == "far"));
    assert!(!format!("{list:?}").contains("CANARY"), "{list:?}");

    // A parser's message repeats what it does not expect.
    let broken = json!({"execProviderConfig": {"command": "tokens", "args": "CANARY"}}).to_string();
    let values = [
        ("server", "https://broken.example"),
        ("config", broken.as_str()),
    ];
    world.store_secret("broken", "cluster", &values).await;
    for path in [
        PATH.to_owned(),
        far,
        format!("{PATH}/https%3A%2F%2Fbroken.example"),
    ] {
        let (status, reply) = world.rest(Method::GET, &path, None).await;
        assert!(
            !reply.to_string().contains("CANARY"),
            "{path}: {status} {reply}"
        );
    }
}
