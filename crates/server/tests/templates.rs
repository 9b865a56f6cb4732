//! Credential templates through REST and gRPC.

use crate::common::World;
use http::Method;
use serde_json::{Value, json};
use tiphys_api::{
    repository::RepoCreds,
    rpc::repocreds::{RepoCredsCreateRequest, RepoCredsDeleteRequest, RepoCredsResponse},
};
use tiphys_server::{Code, ports::Store as _};

const PATH: &str = "/api/v1/repocreds";
const WRITE_PATH: &str = "/api/v1/write-repocreds";
const URL: &str = "https://git.example.com/team";
const ESCAPED: &str = "https%3A%2F%2Fgit.example.com%2Fteam";
const LABEL: &str = "argocd.argoproj.io/secret-type";

async fn post(world: &World, path: &str, body: Value) -> (u16, Value) {
    world.rest(Method::POST, path, Some(body)).await
}

async fn urls(world: &World, path: &str) -> Vec<String> {
    let (status, list) = world.rest(Method::GET, path, None).await;
    assert_eq!(status, 200, "{list}");
    let items = list["items"].as_array().expect("a list");
    let url = |item: &Value| item["url"].as_str().unwrap_or_default().to_owned();
    items.iter().map(url).collect()
}

/// The stored Secret's type and these values.
async fn stored(world: &World, name: &str, keys: &[&str]) -> (String, Vec<String>) {
    let secret = world.store.secret(name).await.expect("it is there");
    let kind = secret.labels.get(LABEL).cloned().unwrap_or_default();
    (kind, keys.iter().map(|key| secret.text(key)).collect())
}

#[tokio::test]
async fn a_template_is_stored_as_argo_cd_stores_it() {
    let world = World::start().await;
    let creds = json!({"url": "https://new.example.com", "username": "u", "password": "p",
        "githubAppID": 5, "enableOCI": true, "type": "helm", "azureServicePrincipalClientId": "c"});
    let (status, reply) = post(&world, PATH, creds).await;
    assert_eq!(
        (status, &reply),
        (200, &json!({"url": "https://new.example.com"}))
    );
    let keys = [
        "url",
        "username",
        "password",
        "githubAppID",
        "enableOCI",
        "type",
        "azureServicePrincipalClientID",
    ];
    let values = [
        "https://new.example.com",
        "u",
        "p",
        "5",
        "true",
        "helm",
        "c",
    ];
    assert_eq!(
        stored(&world, "creds-4244170087", &keys).await,
        ("repo-creds".to_owned(), values.map(str::to_owned).to_vec())
    );
    let (status, _) = post(
        &world,
        WRITE_PATH,
        json!({"url": "https://w.example.com", "username": "u", "password": "p"}),
    )
    .await;
    assert_eq!(status, 200);
    assert_eq!(
        stored(&world, "creds-write-1285190888", &["password"]).await,
        ("repo-write-creds".to_owned(), vec!["p".to_owned()])
    );
    // Neither list has what is for the other use.
    assert_eq!(urls(&world, PATH).await, ["https://new.example.com"]);
    assert_eq!(urls(&world, WRITE_PATH).await, ["https://w.example.com"]);
}

#[tokio::test]
async fn secrets_of_templates_are_not_shown() {
    let world = World::start().await;
    let all: Vec<(&str, &str)> = [
        "password",
        "bearerToken",
        "sshPrivateKey",
        "tlsClientCertData",
        "tlsClientCertKey",
        "githubAppPrivateKey",
        "gcpServiceAccountKey",
        "azureServicePrincipalClientSecret",
    ]
    .map(|key| (key, "CANARY"))
    .into_iter()
    .chain([
        ("url", "https://u:CANARY@git.example.com/team"),
        ("proxy", "http://p:CANARY@proxy:3128"),
        ("username", "u"),
        ("type", "git"),
    ])
    .collect();
    world.store_secret("t", "repo-creds", &all).await;
    world.store_secret("w", "repo-write-creds", &all).await;
    for path in [PATH, WRITE_PATH] {
        let (_, list) = world.rest(Method::GET, path, None).await;
        assert!(!list.to_string().contains("CANARY"), "{list}");
        assert_eq!(
            (&list["items"][0]["username"], &list["items"][0]["type"]),
            (&json!("u"), &json!("git"))
        );
    }
    for (method, path) in [
        (Method::POST, format!("{PATH}?upsert=true")),
        (
            Method::PUT,
            format!("{PATH}/https%3A%2F%2Fu:CANARY@git.example.com%2Fteam"),
        ),
    ] {
        let body = json!({"url": "https://u:CANARY@git.example.com/team", "password": "CANARY"});
        let (status, reply) = world.rest(method, &path, Some(body)).await;
        assert_eq!(status, 200, "{reply}");
        assert!(!reply.to_string().contains("CANARY"), "{reply}");
    }
}

/// Where a repository's credentials come from is shown, not what they are.
#[tokio::test]
async fn inherited_credentials_are_named() {
    let world = World::start().await;
    let template = [
        ("url", "https://h/team"),
        ("githubAppID", "7"),
        ("githubAppPrivateKey", "CANARY"),
    ];
    world.store_secret("t", "repo-creds", &template).await;
    for (name, url, values) in [
        ("a", "https://h/team/inherits", &[][..]),
        (
            "b",
            "https://h/team/has-its-own",
            &[("username", "u"), ("password", "CANARY")],
        ),
        ("c", "https://h/public", &[]),
    ] {
        let values: Vec<_> = values.iter().copied().chain([("url", url)]).collect();
        world.store_secret(name, "repository", &values).await;
    }
    let list = world
        .rest(Method::GET, "/api/v1/repositories", None)
        .await
        .1;
    let found: Vec<(&str, bool)> = list["items"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|r| {
            let url = r["repo"].as_str().unwrap_or_default();
            (url, r["inheritedCreds"] == true)
        })
        .collect();
    assert_eq!(
        found,
        [
            ("https://h/public", false),
            ("https://h/team/has-its-own", false),
            ("https://h/team/inherits", true),
        ]
    );
    let one = "/api/v1/repositories/https%3A%2F%2Fh%2Fteam%2Finherits";
    let one = world.rest(Method::GET, one, None).await.1;
    assert_eq!(one["inheritedCreds"], true, "{one}");
    assert!(!format!("{list}{one}").contains("CANARY"));
}

/// R129. Differs: a repository with a template's URL is no obstacle, and what is for reading is not
/// used for repositories that are pushed to.
#[tokio::test]
async fn a_template_stands_beside_repositories_and_is_for_its_use_only() {
    let (world, url) = (World::start().await, "https://git.invalid/team");
    for (name, kind) in [("a", "repository"), ("b", "repository-write")] {
        world.store_secret(name, kind, &[("url", url)]).await;
    }
    let inherits = async |use_: &str| {
        let path = format!("/api/v1/{use_}");
        let list = world.rest(Method::GET, &path, None).await.1;
        assert_eq!(list["items"].as_array().map(Vec::len), Some(1), "{list}");
        list["items"][0]["inheritedCreds"] == true
    };
    let creds = json!({"url": url, "githubAppID": 7, "githubAppPrivateKey": "k"});
    let (status, reply) = post(&world, PATH, creds.clone()).await;
    assert_eq!(status, 200, "{reply}");
    assert_eq!(urls(&world, PATH).await, [url]);
    assert!(inherits("repositories").await);
    assert!(!inherits("write-repositories").await);
    let (status, reply) = post(&world, WRITE_PATH, creds).await;
    assert_eq!(status, 200, "{reply}");
    assert!(inherits("write-repositories").await);
}

#[tokio::test]
async fn a_template_that_differs_needs_upsert() {
    let world = World::start().await;
    let creds = |password: &str| json!({"url": URL, "username": "u", "password": password});
    for _ in 0..2 {
        assert_eq!(
            post(&world, PATH, creds("one")).await.0,
            200,
            "the same again"
        );
    }
    let (status, refused) = post(&world, PATH, creds("two")).await;
    assert_eq!(status, 400);
    let told = "existing repository credentials spec is different; use upsert flag to force update";
    assert_eq!(refused["message"], told);
    let upsert = format!("{PATH}?upsert=true");
    assert_eq!(post(&world, &upsert, creds("two")).await.0, 200);
    // Another spelling of the URL is the same template.
    let mut other = creds("three");
    other["url"] = "https://Git.Example.com/team/".into();
    assert_eq!(post(&world, PATH, other.clone()).await.0, 400);
    assert_eq!(post(&world, &upsert, other).await.0, 200);
    assert_eq!(urls(&world, PATH).await, ["https://Git.Example.com/team/"]);

    let none = json!({"username": "u"});
    let (status, refused) = post(&world, PATH, none).await;
    assert_eq!(
        (status, &refused["message"]),
        (400, &json!("must specify URL"))
    );
}

#[tokio::test]
async fn an_update_keeps_what_else_is_in_the_secret() {
    let world = World::start().await;
    let values = [
        ("url", URL),
        ("password", "old"),
        ("other", "kept"),
        ("name", "mine"),
    ];
    world.store_secret("mine", "repo-creds", &values).await;
    let path = format!("{PATH}/{ESCAPED}");
    let body = json!({"url": URL, "username": "u", "password": "new"});
    let (status, reply) = world.rest(Method::PUT, &path, Some(body)).await;
    assert_eq!((status, &reply), (200, &json!({"url": URL})));
    let keys = ["username", "password", "other", "name"];
    assert_eq!(
        stored(&world, "mine", &keys).await,
        (
            "repo-creds".to_owned(),
            ["u", "new", "kept", "mine"].map(str::to_owned).to_vec()
        )
    );
    let none = format!("{PATH}/https%3A%2F%2Fnone");
    let (status, refused) = world
        .rest(Method::PUT, &none, Some(json!({"url": "https://none"})))
        .await;
    assert_eq!(status, 404);
    assert_eq!(
        refused["message"],
        "repository credentials 'https://none' not found"
    );
}

#[tokio::test]
async fn only_templates_are_deleted() {
    let world = World::start().await;
    let delete = async |url: &'static str| {
        let query = RepoCredsDeleteRequest { url: url.into() };
        let rpc = "/repocreds.RepoCredsService/DeleteRepositoryCredentials";
        world
            .grpc::<_, RepoCredsResponse>(rpc, query)
            .await
            .map_err(|e| (e.code() as i32, e.message().to_owned()))
    };
    // A Secret with such a URL is no template without the label, and another one is not
    // the template of a URL below its own.
    world.store_secret("plain", "", &[("url", URL)]).await;
    world
        .store_secret("above", "repo-creds", &[("url", "https://git.example.com")])
        .await;
    let told = format!("repository credentials '{URL}' not found");
    assert_eq!(delete(URL).await, Err((Code::NotFound as i32, told)));
    assert!(world.store.secret("plain").await.is_ok());
    assert_eq!(urls(&world, PATH).await, ["https://git.example.com"]);

    // A Secret that was not created through the API is only no template any more.
    assert!(delete("https://git.example.com/").await.is_ok());
    assert_eq!(stored(&world, "above", &[]).await.0, "");
    assert!(urls(&world, PATH).await.is_empty());

    let create = RepoCredsCreateRequest {
        creds: Some(RepoCreds {
            url: URL.into(),
            password: "p".into(),
            ..Default::default()
        }),
        upsert: false,
    };
    let rpc = "/repocreds.RepoCredsService/CreateRepositoryCredentials";
    let created: RepoCreds = world.grpc(rpc, create).await.expect("created");
    assert_eq!((created.url.as_str(), created.password.as_str()), (URL, ""));
    assert!(delete(URL).await.is_ok());
    assert!(!world.store.everything().contains("creds-"));
}

#[tokio::test]
async fn a_secret_that_is_no_template_is_not_overwritten() {
    let world = World::start().await;
    // The name that the template's Secret would get.
    world
        .store_secret("creds-4244170087", "", &[("key", "value")])
        .await;
    let (status, refused) = post(&world, PATH, json!({"url": "https://new.example.com"})).await;
    assert_eq!(status, 409);
    assert_eq!(
        refused["message"],
        r#"repository credentials "https://new.example.com" already exists"#
    );
    assert_eq!(
        stored(&world, "creds-4244170087", &["key", "url"]).await,
        (String::new(), vec!["value".to_owned(), String::new()])
    );
}

#[tokio::test]
async fn empty_messages_are_refused() {
    let world = World::start().await;
    for rpc in [
        "/repocreds.RepoCredsService/CreateRepositoryCredentials",
        "/repocreds.RepoCredsService/CreateWriteRepositoryCredentials",
        "/repocreds.RepoCredsService/UpdateRepositoryCredentials",
    ] {
        let answer = world
            .grpc::<_, RepoCreds>(rpc, RepoCredsCreateRequest::default())
            .await;
        let refused = answer.expect_err("nothing is asked for");
        assert_eq!(refused.message(), "missing payload in request");
    }
}

/// R126: it can be seen, mended and deleted.
#[tokio::test]
async fn a_template_that_no_url_names_is_left_out_of_the_list() {
    let world = World::start().await;
    for (name, values) in [
        ("creds-1", &[("username", "u")][..]),
        ("creds-2", &[("url", ""), ("enableOCI", "maybe")][..]),
        ("creds-3", &[("url", URL)][..]),
    ] {
        world.store_secret(name, "repo-creds", values).await;
    }
    assert_eq!(urls(&world, PATH).await, [URL]);
}

#[tokio::test]
async fn a_template_with_a_fault_is_listed_and_can_be_mended() {
    let world = World::start().await;
    let other = [("url", "https://other.example.com"), ("githubAppID", "x")];
    world.store_secret("creds-2", "repo-creds", &other).await;
    let broken = [("url", URL), ("username", "u"), ("enableOCI", "maybe")];
    world.store_secret("creds-1", "repo-creds", &broken).await;
    assert_eq!(urls(&world, PATH).await, [URL, other[0].1]);

    // The same as what can be read of it, and nevertheless not the same.
    let creds = json!({"url": URL, "username": "u"});
    let (status, refused) = post(&world, PATH, creds.clone()).await;
    assert_eq!(status, 400, "{refused}");
    let (status, mended) = post(&world, &format!("{PATH}?upsert=true"), creds).await;
    assert_eq!(status, 200, "{mended}");
    let (_, values) = stored(&world, "creds-1", &["username", "enableOCI"]).await;
    assert_eq!(values, ["u", ""]);

    let path = format!("{PATH}/https%3A%2F%2Fother.example.com");
    let (status, deleted) = world.rest(Method::DELETE, &path, None).await;
    assert_eq!(status, 200, "{deleted}");
    assert_eq!(urls(&world, PATH).await, [URL]);
}
