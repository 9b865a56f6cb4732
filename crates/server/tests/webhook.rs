//! `/api/webhook`: which senders are accepted, and which Applications are refreshed.

use crate::common;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use common::World;
use hmac::{Hmac, Mac};
use http::{Method, Request};
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};
use sha2::Sha256;
use std::time::Duration;
use tiphys_api::constants::REFRESH;
use tiphys_server::ports::Store as _;

type Headers = Vec<(&'static str, &'static str)>;

const FAILED: &str = "Webhook processing failed\n";
const SECRET: &str = "sesame";

fn github() -> Value {
    json!({"ref": "refs/heads/main", "before": "1".repeat(40), "after": "2".repeat(40), "base_ref": null,
        "repository": {"id": 1, "html_url": "https://git.example/org/repo", "default_branch": "main"},
        "commits": [{"id": "2", "added": ["apps/a/new.yaml"], "modified": ["README.md"], "removed": []}]})
}

fn gitlab() -> Value {
    json!({"object_kind": "push", "event_name": "push", "ref": "refs/heads/main", "checkout_sha": null,
        "project": {"web_url": "https://git.example/org/repo", "default_branch": "main"},
        "repository": {"homepage": "https://git.example/org/repo"},
        "commits": [{"added": [], "modified": ["apps/a/x.yaml"], "removed": null}], "total_commits_count": 1})
}

fn bitbucket() -> Value {
    json!({"actor": {"type": "user"},
        "repository": {"full_name": "org/repo", "links": {"html": {"href": "https://git.example/org/repo"}, "self": {"href": "https://api/org/repo"}}},
        "push": {"changes": [{"new": null, "old": {"name": "gone"}}, {"new": {"type": "branch", "name": "main"}, "old": null}]}})
}

fn bitbucket_server() -> Value {
    json!({"eventKey": "repo:refs_changed", "date": "2026-01-01T00:00:00+0000",
        "repository": {"slug": "repo", "links": {"clone": [{"name": "ssh", "href": "ssh://git@git.example:7999/org/repo.git"},
            {"name": "http", "href": "https://git.example/org/repo.git"}], "self": null}},
        "changes": [{"ref": {"id": "refs/heads/main", "displayId": "main", "type": "BRANCH"}, "type": "UPDATE"}]})
}

fn azure() -> Value {
    json!({"eventType": "git.push", "publisherId": "tfs", "resource": {
        "refUpdates": [{"name": "refs/heads/main", "oldObjectId": "1", "newObjectId": "2"}],
        "repository": {"remoteUrl": "https://git.example/org/repo", "defaultBranch": "refs/heads/main"}}})
}

/// Name, headers and content of a push from each provider.
fn pushes() -> Vec<(&'static str, Headers, Value)> {
    vec![
        ("github", vec![("X-GitHub-Event", "push")], github()),
        (
            "gogs",
            vec![("X-Gogs-Event", "push"), ("X-GitHub-Event", "push")],
            github(),
        ),
        ("gitlab", vec![("X-Gitlab-Event", "Push Hook")], gitlab()),
        (
            "gitlab system",
            vec![("X-Gitlab-Event", "System Hook")],
            gitlab(),
        ),
        (
            "bitbucket",
            vec![("X-Hook-UUID", "u"), ("X-Event-Key", "repo:push")],
            bitbucket(),
        ),
        (
            "bitbucket server",
            vec![("X-Event-Key", "repo:refs_changed")],
            bitbucket_server(),
        ),
        ("azure", vec![("X-Vss-Activityid", "a")], azure()),
    ]
}

async fn application(world: &World, name: &str, source: Value, paths: &str) {
    let mut app = common::app(name);
    app["metadata"]["annotations"] = json!({"argocd.argoproj.io/manifest-generate-paths": paths});
    app["spec"]["source"] = source;
    let app = serde_json::from_value(app).expect("an Application");
    world.store.create_app(&app).await.expect("created");
}

fn source(url: &str, revision: &str) -> Value {
    json!({"repoURL": url, "path": "apps/a", "targetRevision": revision})
}

/// Sends a webhook and returns status and reply.
async fn send(
    world: &World,
    method: Method,
    headers: &[(&str, &str)],
    body: impl Into<Bytes>,
) -> (u16, String) {
    let mut request = Request::builder().method(method).uri("/api/webhook");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let response = world
        .send(request.body(Full::new(body.into())).expect("a request"))
        .await;
    let status = response.status().as_u16();
    let body = response
        .into_body()
        .collect()
        .await
        .expect("a body")
        .to_bytes();
    (status, String::from_utf8_lossy(&body).into_owned())
}

pub async fn post(world: &World, headers: &[(&str, &str)], body: &Value) -> (u16, String) {
    send(world, Method::POST, headers, body.to_string()).await
}

async fn is_asked(world: &World, name: &str) -> bool {
    let app = world
        .store
        .get_app("argocd", name)
        .await
        .expect("it is there");
    app.metadata
        .annotations
        .get(REFRESH)
        .is_some_and(|kind| kind == "normal")
}

/// Waits for refresh requests and returns the Applications that got one; removes each request, as
/// the controller does.
async fn refreshed(world: &World, names: &[&str]) -> Vec<String> {
    for _ in 0..500 {
        let mut asked = Vec::new();
        for name in names {
            if is_asked(world, name).await {
                asked.push((*name).to_owned());
            }
        }
        // `z-last` is affected by every push and is refreshed after the others.
        if asked.last().is_some_and(|name| name == "z-last") {
            for name in &asked {
                world
                    .store
                    .control(name, &json!({"metadata": {"annotations": {REFRESH: null}}}));
            }
            asked.pop();
            return asked;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("not refreshed: {names:?}");
}

#[tokio::test]
async fn a_push_refreshes_what_it_concerns() {
    let world = World::start().await;
    let names = [
        "by-branch",
        "by-head",
        "elsewhere",
        "in-paths",
        "other-branch",
        "out-of-paths",
        "several",
        "z-last",
    ];
    application(
        &world,
        "by-branch",
        source("git@git.example:org/repo.git", "main"),
        "",
    )
    .await;
    application(
        &world,
        "by-head",
        source("https://git.example/org/repo.git", ""),
        "",
    )
    .await;
    application(
        &world,
        "elsewhere",
        source("https://git.example/org/repo2", "main"),
        "",
    )
    .await;
    application(
        &world,
        "in-paths",
        source("https://git.example/org/repo", "main"),
        ".",
    )
    .await;
    application(
        &world,
        "other-branch",
        source("https://git.example/org/repo", "dev"),
        "",
    )
    .await;
    application(
        &world,
        "out-of-paths",
        source("https://git.example/org/repo", "main"),
        "/apps/b",
    )
    .await;
    application(
        &world,
        "z-last",
        source("https://git.example/org/repo", "main"),
        "",
    )
    .await;
    let mut several = common::app("several");
    several["spec"]["sources"] = json!([
        source("https://git.example/x", "main"),
        source("https://git.example/org/repo", "HEAD")
    ]);
    world
        .store
        .create_app(&serde_json::from_value(several).expect("an Application"))
        .await
        .expect("created");
    for (name, headers, push) in pushes() {
        assert_eq!(
            post(&world, &headers, &push).await,
            (200, String::new()),
            "{name}"
        );
        let mut expected = vec!["by-branch", "by-head", "in-paths", "several"];
        if !push.to_string().contains("commits") {
            // This provider does not report changed files.
            expected.insert(3, "out-of-paths");
        }
        assert_eq!(refreshed(&world, &names).await, expected, "{name}");
    }
    let mut many = gitlab();
    many["total_commits_count"] = json!(30);
    assert_eq!(
        post(&world, &[("X-Gitlab-Event", "Push Hook")], &many)
            .await
            .0,
        200
    );
    assert!(
        refreshed(&world, &names)
            .await
            .contains(&"out-of-paths".to_owned()),
        "only 1 of 30 commits is listed"
    );
}

#[tokio::test]
async fn other_namespaces_count_where_they_are_permitted() {
    let world = World::start().await;
    for (namespace, name) in [("team-a", "yes"), ("team-b", "no"), ("argocd", "z-last")] {
        let mut app = common::app(name);
        app["metadata"]["namespace"] = namespace.into();
        app["spec"]["source"] = source("https://git.example/org/repo", "main");
        world
            .store
            .create_app(&serde_json::from_value(app).expect("an Application"))
            .await
            .expect("created");
    }
    world
        .store
        .permitted
        .lock()
        .expect("not poisoned")
        .push("team-a".into());
    assert_eq!(
        post(&world, &[("X-GitHub-Event", "push")], &github())
            .await
            .0,
        200
    );
    for _ in 0..500 {
        if world
            .store
            .get_app("team-a", "yes")
            .await
            .expect("it is there")
            .metadata
            .annotations
            .contains_key(REFRESH)
        {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(
        world
            .store
            .get_app("team-a", "yes")
            .await
            .expect("it is there")
            .metadata
            .annotations
            .contains_key(REFRESH)
    );
    assert!(
        !world
            .store
            .get_app("team-b", "no")
            .await
            .expect("it is there")
            .metadata
            .annotations
            .contains_key(REFRESH)
    );
}

fn signature(content: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).expect("a key");
    mac.update(content.as_bytes());
    mac.finalize()
        .into_bytes()
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect()
}

#[tokio::test]
async fn who_does_not_know_the_secret_is_refused() {
    let secrets = [
        ("webhook.github.secret", "$shared"),
        ("shared", " sesame\n"),
        ("webhook.gogs.secret", SECRET),
        ("webhook.gitlab.secret", SECRET),
        ("webhook.bitbucket.uuid", SECRET),
        ("webhook.bitbucketserver.secret", SECRET),
        ("webhook.azuredevops.username", "me"),
        ("webhook.azuredevops.password", SECRET),
    ];
    let world = World::start_with(&[], &secrets).await;
    application(
        &world,
        "z-last",
        source("https://git.example/org/repo", "main"),
        "",
    )
    .await;
    for (name, headers, push) in pushes() {
        let content = push.to_string();
        let good = signature(&content);
        let prefixed = format!("sha256={good}");
        let basic = format!("Basic {}", STANDARD.encode(format!("me:{SECRET}")));
        let (header, right) = match name {
            "github" => ("X-Hub-Signature-256", &prefixed),
            "gogs" => ("X-Gogs-Signature", &good),
            "bitbucket" => ("X-Hook-UUID", &SECRET.to_owned()),
            "bitbucket server" => ("X-Hub-Signature", &prefixed),
            "azure" => ("Authorization", &basic),
            _ => ("X-Gitlab-Token", &SECRET.to_owned()),
        };
        let with = |value: &str| {
            let mut headers: Vec<(&str, String)> = headers
                .iter()
                .map(|(n, v)| (*n, (*v).to_owned()))
                .filter(|(n, _)| *n != header)
                .collect();
            headers.push((header, value.to_owned()));
            headers
        };
        let wrong = format!("{}0", &right[..right.len() - 1]);
        for value in [wrong.as_str(), "sha256=", "é", "x", "Basic !", "Basic bWU="] {
            let given = with(value);
            let given: Vec<(&str, &str)> = given.iter().map(|(n, v)| (*n, v.as_str())).collect();
            assert_eq!(
                send(&world, Method::POST, &given, content.clone()).await,
                (400, FAILED.into()),
                "{name} {value}"
            );
        }
        // Bitbucket is recognised by this header.
        if name != "bitbucket" {
            assert_eq!(
                send(&world, Method::POST, &headers, content.clone()).await,
                (400, FAILED.into()),
                "{name}"
            );
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert!(!is_asked(&world, "z-last").await, "{name}");
        let given = with(right);
        let given: Vec<(&str, &str)> = given.iter().map(|(n, v)| (*n, v.as_str())).collect();
        assert_eq!(
            send(&world, Method::POST, &given, content.clone()).await,
            (200, String::new()),
            "{name}"
        );
        refreshed(&world, &["z-last"]).await;
    }
    assert_eq!(
        post(&world, &[("X-Event-Key", "diagnostics:ping")], &json!({}))
            .await
            .0,
        200,
        "a ping is not signed"
    );
}

fn ghcr() -> Value {
    json!({"action": "published", "package": {"name": "app", "package_type": "CONTAINER", "owner": {"login": "Org"},
        "package_version": {"container_metadata": {"tag": {"name": "1.2.3", "digest": "sha256:0"}}}}})
}

fn harbor() -> Value {
    json!({"type": "PUSH_ARTIFACT", "occur_at": 1, "operator": "admin", "event_data": {
        "resources": [{"digest": "sha256:0", "tag": "1.2.3", "resource_url": "ghcr.io/org/app:1.2.3"}],
        "repository": {"name": "app", "namespace": "org", "repo_full_name": "org/app", "repo_type": "private"}}})
}

const PACKAGE: (&str, &str) = ("X-GitHub-Event", "package");

#[tokio::test]
async fn a_pushed_tag_refreshes_who_follows_it() {
    let world = World::start_with(&[], &[("webhook.harbor.secret", SECRET)]).await;
    let names = ["chart", "image", "other-tag", "z-last"];
    let chart = json!({"repoURL": "ghcr.io/org", "chart": "app", "targetRevision": "1.*"});
    application(&world, "chart", chart, "/elsewhere").await;
    application(
        &world,
        "image",
        source("oci://ghcr.io/org/app", "1.2.3"),
        "/elsewhere",
    )
    .await;
    application(
        &world,
        "other-tag",
        source("oci://ghcr.io/org/app", "2.0.0"),
        "",
    )
    .await;
    application(
        &world,
        "z-last",
        source("oci://GHCR.io/org/app/", ">=1.0.0"),
        "",
    )
    .await;
    for (headers, push) in [([PACKAGE], ghcr()), ([("Authorization", SECRET)], harbor())] {
        assert_eq!(
            post(&world, &headers, &push).await,
            (200, String::new()),
            "{headers:?}"
        );
        assert_eq!(
            refreshed(&world, &names).await,
            ["chart", "image"],
            "{headers:?}"
        );
    }
    // Events other than a pushed tag are accepted and ignored.
    let changed = |mut value: Value, pointer: &str, to: &str| {
        *value.pointer_mut(pointer).expect("it is there") = to.into();
        value
    };
    for (header, value) in [
        (PACKAGE, changed(ghcr(), "/action", "updated")),
        (PACKAGE, changed(ghcr(), "/package/package_type", "npm")),
        (
            PACKAGE,
            changed(
                ghcr(),
                "/package/package_version/container_metadata/tag/name",
                "",
            ),
        ),
        (
            ("Authorization", SECRET),
            changed(harbor(), "/type", "PULL_ARTIFACT"),
        ),
        (
            ("Authorization", SECRET),
            changed(harbor(), "/event_data/resources/0/tag", ""),
        ),
    ] {
        assert_eq!(
            post(&world, &[header], &value).await,
            (200, String::new()),
            "{value}"
        );
    }
    for header in [PACKAGE, ("Authorization", SECRET)] {
        assert_eq!(
            send(&world, Method::POST, &[header], "{").await,
            (400, FAILED.to_owned()),
            "{header:?}"
        );
    }
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(!is_asked(&world, "image").await);
}

#[tokio::test]
async fn registries_must_know_the_secret() {
    let world = World::start_with(
        &[],
        &[
            ("webhook.github.secret", SECRET),
            ("webhook.harbor.secret", SECRET),
        ],
    )
    .await;
    application(
        &world,
        "z-last",
        source("oci://ghcr.io/org/app", "1.2.3"),
        "",
    )
    .await;
    let content = ghcr().to_string();
    let right = format!("sha256={}", signature(&content));
    let unauthorized = (401, "Unauthorized\n".to_owned());
    for headers in [
        vec![PACKAGE],
        vec![PACKAGE, ("X-Hub-Signature-256", "sha256=00")],
        vec![PACKAGE, ("X-Hub-Signature-256", "x")],
    ] {
        assert_eq!(
            send(&world, Method::POST, &headers, content.clone()).await,
            unauthorized,
            "{headers:?}"
        );
    }
    let unknown = (400, "Unknown webhook event\n".to_owned());
    assert_eq!(
        post(&world, &[("Authorization", "Bearer sesame")], &harbor()).await,
        unknown
    );
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert!(!is_asked(&world, "z-last").await);
    assert_eq!(
        send(
            &world,
            Method::POST,
            &[PACKAGE, ("X-Hub-Signature-256", &right)],
            content
        )
        .await
        .0,
        200
    );
    refreshed(&world, &["z-last"]).await;
    let without = World::start().await;
    assert_eq!(
        post(&without, &[("Authorization", SECRET)], &harbor()).await,
        unknown,
        "without a secret Harbor is nobody"
    );
}

#[tokio::test]
async fn what_is_no_push_is_answered_as_argo_cd_does() {
    let world = World::start_with(&[("webhook.maxPayloadSizeMB", "1")], &[]).await;
    let payload = "Webhook processing failed: payload must be valid JSON under 1 MB\n";
    let unknown = "Unknown webhook event\n";
    let github = ("X-GitHub-Event", "push");
    let cases: [(Method, Headers, String, u16, &str); 19] = [
        (Method::POST, vec![], "{}".into(), 400, unknown),
        (Method::GET, vec![], String::new(), 400, unknown),
        (Method::GET, vec![github], String::new(), 405, FAILED),
        (Method::PUT, vec![github], "{}".into(), 405, FAILED),
        (Method::POST, vec![github], String::new(), 400, payload),
        (
            Method::POST,
            vec![github],
            " ".repeat(2 << 20),
            400,
            payload,
        ),
        (Method::POST, vec![github], "{".into(), 400, FAILED),
        (Method::POST, vec![github], "[".repeat(100_000), 400, FAILED),
        (
            Method::POST,
            vec![github],
            "payload=%7B%7D".into(),
            400,
            FAILED,
        ),
        (Method::POST, vec![github], "{}".into(), 200, ""),
        (
            Method::POST,
            vec![("X-GitHub-Event", "ping")],
            "{}".into(),
            200,
            "",
        ),
        (
            Method::POST,
            vec![("X-GitHub-Event", "issues")],
            "{}".into(),
            400,
            FAILED,
        ),
        (
            Method::POST,
            vec![("X-Vss-Activityid", "a")],
            "{".into(),
            400,
            payload,
        ),
        (
            Method::POST,
            vec![("X-Vss-Activityid", "a")],
            json!({"eventType": "build.complete"}).to_string(),
            200,
            "",
        ),
        (
            Method::POST,
            vec![("X-Vss-Activityid", "a")],
            json!({"eventType": "other"}).to_string(),
            400,
            FAILED,
        ),
        (
            Method::POST,
            vec![("X-Gitlab-Event", "System Hook")],
            json!({"event_name": "user_create"}).to_string(),
            200,
            "",
        ),
        (
            Method::POST,
            vec![("X-Gitlab-Event", "System Hook")],
            json!({"event_name": "other"}).to_string(),
            400,
            FAILED,
        ),
        (
            Method::POST,
            vec![("X-Hook-UUID", "u"), ("X-Event-Key", "repo:fork")],
            "{}".into(),
            400,
            FAILED,
        ),
        (
            Method::POST,
            vec![("X-Hook-UUID", "u")],
            "{}".into(),
            400,
            FAILED,
        ),
    ];
    for (method, headers, body, status, answer) in cases {
        let what = format!("{method} {headers:?} {}", &body[..body.len().min(40)]);
        assert_eq!(
            send(&world, method, &headers, body).await,
            (status, answer.to_owned()),
            "{what}"
        );
    }
}

/// Copies of the value, each with one part replaced by one of these.
fn mutations(value: &Value) -> Vec<Value> {
    let strange = [
        json!(null),
        json!(-1),
        json!(1e300),
        json!(""),
        json!("\u{0}//://@["),
        json!([]),
        json!({}),
        json!([null, 1, {}]),
    ];
    let mut all: Vec<Value> = strange.to_vec();
    let mut inside = |parts: Vec<Value>, whole: &dyn Fn(Option<Value>) -> Value| {
        all.extend(parts.into_iter().map(|part| whole(Some(part))));
        all.push(whole(None));
    };
    match value {
        Value::Object(map) => {
            for (key, part) in map {
                inside(mutations(part), &|new| {
                    let mut map = map.clone();
                    match new {
                        Some(new) => map.insert(key.clone(), new),
                        None => map.remove(key),
                    };
                    map.into()
                });
            }
        }
        Value::Array(list) => {
            for (i, part) in list.iter().enumerate() {
                inside(mutations(part), &|new| {
                    let mut list = list.clone();
                    match new {
                        Some(new) => list[i] = new,
                        None => drop(list.remove(i)),
                    }
                    list.into()
                });
            }
        }
        _ => {}
    }
    all
}

#[tokio::test]
async fn hostile_payloads_are_refused_or_taken() {
    let world = World::start().await;
    application(
        &world,
        "z-last",
        source("https://git.example/org/repo", "main"),
        ".",
    )
    .await;
    let mut sent = 0;
    let registry = ("ghcr", vec![PACKAGE], ghcr());
    for (name, headers, push) in pushes().into_iter().chain([registry]) {
        let whole = push.to_string();
        let cut = (0..whole.len())
            .step_by(7)
            .map(|end| whole.as_bytes()[..end].to_vec());
        let changed = mutations(&push)
            .into_iter()
            .map(|value| value.to_string().into_bytes());
        for content in cut.chain(changed) {
            let shown = String::from_utf8_lossy(&content).into_owned();
            let (status, answer) = send(&world, Method::POST, &headers, content).await;
            assert!(
                (status == 200 && answer.is_empty())
                    || (status == 400 && answer.starts_with(FAILED.trim_end())),
                "{name} {shown}: {status} {answer}"
            );
            sent += 1;
        }
    }
    assert!(sent > 1000, "{sent}");
    // The server still works afterwards.
    world.store.control(
        "z-last",
        &json!({"metadata": {"annotations": {REFRESH: null}}}),
    );
    assert_eq!(
        post(&world, &[("X-GitHub-Event", "push")], &github())
            .await
            .0,
        200
    );
    refreshed(&world, &["z-last"]).await;
}
