//! Accounts, their tokens, and what argocd-rbac-cm and projects permit them.

use crate::common;

use common::{World, app};
use futures::StreamExt as _;
use http::{Method, Request, Response};
use http_body_util::Full;
use serde_json::{Value, json};
use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};
use tiphys_api::{
    resource::ApplicationTree,
    rpc::application::{ApplicationPodLogsQuery, LogEntry, ResourcesQuery},
};
use tiphys_server::ports::Store as _;
use tonic::Streaming;

const PASSWORD: &str = "another password";
const POLICY: &str = "p, role:dev, applications, get, default/*, allow\n\
                      p, role:dev, applications, sync, default/web, allow\n\
                      p, role:dev, projects, get, default, allow\n\
                      g, dev, role:dev\n";

/// `dev` signs in and may see Applications; `ci` has tokens only; `off` is disabled.
async fn world() -> World {
    let hash = bcrypt::hash(PASSWORD, 4).expect("it hashes");
    let config = [
        ("accounts.dev", "login, apiKey"),
        ("accounts.ci", "apiKey"),
        ("accounts.off", "login"),
        ("accounts.off.enabled", "false"),
        ("policy.csv", POLICY),
    ];
    let secrets = [
        ("accounts.dev.password", hash.as_str()),
        ("accounts.ci.password", hash.as_str()),
        ("accounts.off.password", hash.as_str()),
    ];
    let world = World::start_by_policy(&config, &secrets).await;
    for name in ["web", "db"] {
        let created = world
            .rest(Method::POST, "/api/v1/applications", Some(app(name)))
            .await;
        assert_eq!(created.0, 200, "{}", created.1);
    }
    world
}

impl World {
    async fn login(&self, name: &str) -> (u16, Value) {
        let body = json!({"username": name, "password": PASSWORD});
        self.rest_as("", Method::POST, "/api/v1/session", Some(body))
            .await
    }

    /// As a browser: with the session in a cookie.
    async fn sign_out(&self, method: Method, session: &str) -> Response<hyper::body::Incoming> {
        let mut request = Request::builder().method(method).uri("/auth/logout");
        if !session.is_empty() {
            request = request.header("cookie", format!("argocd.token={session}"));
        }
        let request = request.body(Full::default()).expect("a request");
        self.send(request).await
    }

    fn set(&self, key: &str, value: &str) {
        let mut config = self.store.config.lock().expect("not poisoned");
        config.insert(key.to_owned(), value.to_owned());
    }
}

fn token(answer: &Value) -> String {
    answer["token"].as_str().expect("a token").to_owned()
}

fn names(list: &Value) -> Vec<String> {
    let items = list["items"].as_array().map(Vec::as_slice);
    items
        .unwrap_or_default()
        .iter()
        .map(|item| {
            item["metadata"]["name"]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        })
        .collect()
}

#[tokio::test]
async fn an_account_may_do_what_the_policy_says() {
    let world = world().await;
    let dev = token(&world.login("dev").await.1);
    let apps = world
        .rest_as(&dev, Method::GET, "/api/v1/applications", None)
        .await
        .1;
    assert_eq!(names(&apps), ["db", "web"]);
    for (method, path, want) in [
        (Method::GET, "/api/v1/applications/web", 200),
        (Method::DELETE, "/api/v1/applications/web", 403),
        (Method::GET, "/api/v1/clusters", 200),
        (Method::GET, "/api/v1/projects/default", 200),
        (Method::DELETE, "/api/v1/projects/other", 403),
        (Method::POST, "/api/v1/applications/db/sync", 403),
    ] {
        let body = (method == Method::POST).then(|| json!({}));
        let (status, answer) = world.rest_as(&dev, method.clone(), path, body).await;
        assert_eq!(status, want, "{method} {path}: {answer}");
        if want == 403 {
            let message = answer["message"].as_str().unwrap_or_default();
            assert!(message.starts_with("permission denied"), "{message}");
        }
    }
    let clusters = world
        .rest_as(&dev, Method::GET, "/api/v1/clusters", None)
        .await
        .1;
    assert!(names(&clusters).is_empty(), "{clusters}");
    let (_, answer) = world
        .rest_as(
            &dev,
            Method::POST,
            "/api/v1/applications/db/sync",
            Some(json!({})),
        )
        .await;
    let message = answer["message"].as_str().unwrap_or_default();
    assert!(
        message.starts_with("permission denied: applications, sync, default/db, sub: dev, iat: "),
        "{message}"
    );

    // A new policy counts at once; one that is broken changes nothing.
    world.set("policy.csv", "p, dev, applications, *, default/db, allow");
    let apps = world
        .rest_as(&dev, Method::GET, "/api/v1/applications", None)
        .await
        .1;
    assert_eq!(names(&apps), ["db"]);
    world.set(
        "policy.csv",
        "p, dev, applications, get, */*, allow\nnot, a, policy",
    );
    let apps = world
        .rest_as(&dev, Method::GET, "/api/v1/applications", None)
        .await
        .1;
    assert_eq!(names(&apps), ["db"]);
    world.set(
        "policy.csv",
        "p, dev, applications, get, */*, allow\np, dev, applications, get, default/db, deny",
    );
    let apps = world
        .rest_as(&dev, Method::GET, "/api/v1/applications", None)
        .await
        .1;
    assert_eq!(names(&apps), ["web"]);
    world.set("policy.csv", "");
    world.set("policy.default", "role:readonly");
    let apps = world
        .rest_as(&dev, Method::GET, "/api/v1/applications", None)
        .await
        .1;
    assert_eq!(names(&apps), ["db", "web"]);
}

/// `users.anonymous.enabled`: who has no session, or a bad one, has what the default role has.
#[tokio::test]
async fn anonymous_callers_have_the_default_role() {
    let world = world().await;
    let apps = "/api/v1/applications";
    let get = async |token: &str, path: &str| world.rest_as(token, Method::GET, path, None).await;
    for (enabled, role, listed) in [
        ("", "role:readonly", None),
        ("false", "role:readonly", None),
        ("True", "role:readonly", None),
        ("true", "", Some(&[][..])),
        ("true", "role:nobody", Some(&[])),
        ("true", "role:readonly", Some(&["db", "web"])),
        ("true", "role:dev", Some(&["db", "web"])),
        ("false", "role:dev", None),
    ] {
        world.set("users.anonymous.enabled", enabled);
        world.set("policy.default", role);
        for token in ["", "no.to.ken"] {
            let (status, answer) = get(token, apps).await;
            let found = (status == 200).then(|| names(&answer));
            let expected = listed.map(|l| l.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>());
            assert_eq!(found, expected, "{enabled} {role} {token:?}: {answer}");
            assert_eq!(status, if listed.is_some() { 200 } else { 401 });
        }
    }
    world.set("users.anonymous.enabled", "true");
    world.set("policy.default", "role:readonly");
    let user = get("", "/api/v1/session/userinfo").await.1;
    assert_ne!(user["loggedIn"], true, "{user}");
    for (method, path, body) in [
        (Method::POST, "/api/v1/applications/web/sync", json!({})),
        (Method::DELETE, "/api/v1/applications/web", Value::Null),
        (Method::POST, "/api/v1/applications", app("more")),
        (
            Method::PUT,
            "/api/v1/account/password",
            json!({"currentPassword": PASSWORD, "newPassword": "yet another", "name": "dev"}),
        ),
        (Method::POST, "/api/v1/account/ci/token", json!({})),
    ] {
        let (status, answer) = world.rest_as("", method.clone(), path, Some(body)).await;
        assert_eq!(status, 403, "{method} {path}: {answer}");
    }
    // An account that signed in has what it has.
    let dev = token(&world.login("dev").await.1);
    world.set("policy.default", "");
    assert_eq!(names(&get(&dev, apps).await.1), ["db", "web"]);
    assert!(names(&get("", apps).await.1).is_empty());
}

/// `server.rbac.rollback.enforce.enable`: a permission of its own, in place of that to sync.
#[tokio::test]
async fn a_rollback_is_permitted_as_a_sync_unless_it_is_enforced() {
    let world = world().await;
    let dev = token(&world.login("dev").await.1);
    let history = json!([{"id": 1, "revision": "a", "source": {"repoURL": "https://h/r", "path": "p"}, "deployedAt": "2026-01-01T00:00:00Z"}]);
    world
        .store
        .control("web", &json!({"status": {"history": history}}));
    let roll_back = async || {
        let body = Some(json!({"id": 1}));
        let path = "/api/v1/applications/web/rollback";
        world.rest_as(&dev, Method::POST, path, body).await
    };
    for (enforced, permitted, status, can_i) in [
        ("", "sync", 200, "yes"),
        ("", "rollback", 403, "no"),
        ("false", "sync", 200, "yes"),
        ("true", "sync", 403, "no"),
        ("true", "rollback", 200, "yes"),
        // What is unclear permits nothing.
        ("maybe", "rollback", 500, ""),
        ("maybe", "sync", 500, ""),
    ] {
        world.store.control(
            "web",
            &json!({"operation": null, "status": {"operationState": null}}),
        );
        world.set("server.rbac.rollback.enforce.enable", enforced);
        world.set(
            "policy.csv",
            &format!("p, dev, applications, get, */*, allow\np, dev, applications, {permitted}, default/web, allow"),
        );
        let can = "/api/v1/account/can-i/applications/rollback/default/web";
        let answer = world.rest_as(&dev, Method::GET, can, None).await.1;
        let value = answer["value"].as_str().unwrap_or_default();
        assert_eq!(value, can_i, "{enforced} {permitted}: {answer}");
        let (found, answer) = roll_back().await;
        assert_eq!(found, status, "{enforced} {permitted}: {answer}");
    }
}

/// Policies name objects of the control plane's namespace without it.
#[tokio::test]
async fn who_asks_may_name_the_control_planes_namespace() {
    let world = world().await;
    let dev = token(&world.login("dev").await.1);
    for (object, value) in [
        ("default/web", "yes"),
        ("default/argocd/web", "yes"),
        ("other/argocd/web", "no"),
    ] {
        let can = format!("/api/v1/account/can-i/applications/get/{object}");
        let answer = world.rest_as(&dev, Method::GET, &can, None).await.1;
        assert_eq!(answer["value"], value, "{object}: {answer}");
    }
}

/// Where browsers are sent to, and what `argocd logout` asks.
#[tokio::test]
async fn the_page_for_signing_out_ends_the_session() {
    let world = world().await;
    for method in [Method::POST, Method::GET] {
        let session = token(&world.login("dev").await.1);
        let other = token(&world.login("dev").await.1);
        let apps = async |token: &str| {
            let path = "/api/v1/applications";
            world.rest_as(token, Method::GET, path, None).await
        };
        let answer = world.sign_out(method.clone(), &session).await;
        assert_eq!(answer.status(), 303);
        let header = |name: &str| {
            let value = answer.headers().get(name);
            value.and_then(|v| v.to_str().ok()).unwrap_or_default()
        };
        assert_eq!(header("location"), "/");
        assert!(
            header("set-cookie").starts_with("argocd.token=; Path=/"),
            "{}",
            header("set-cookie")
        );
        let (status, said) = apps(&session).await;
        assert_eq!(status, 401);
        assert_eq!(
            said["message"],
            "invalid session: token is revoked, please re-login"
        );
        assert_eq!(apps(&other).await.0, 200);
        // Again, or with no session at all, it leads to the page as well.
        assert_eq!(world.sign_out(method.clone(), &session).await.status(), 303);
        assert_eq!(
            world.sign_out(method.clone(), "non.sen.se").await.status(),
            303
        );
        assert_eq!(world.sign_out(method, "").await.status(), 400);
    }
}

#[tokio::test]
async fn accounts_sign_in_and_out() {
    let world = world().await;
    for (name, want) in [
        ("dev", ""),
        ("ci", "account ci does not have 'login' capability"),
        ("off", "Account off is disabled"),
        ("nobody", "Invalid username or password"),
    ] {
        let (status, answer) = world.login(name).await;
        let message = answer["message"].as_str().unwrap_or_default();
        assert_eq!((status == 200, message), (want.is_empty(), want), "{name}");
    }
    // The account loses its capability, and then itself: its sessions end.
    let dev = token(&world.login("dev").await.1);
    let path = "/api/v1/account/dev";
    let (status, account) = world.rest_as(&dev, Method::GET, path, None).await;
    assert_eq!(status, 200, "{account}");
    assert_eq!(account["capabilities"], json!(["login", "apiKey"]));
    assert_eq!(
        world
            .rest_as(&dev, Method::GET, "/api/v1/account/ci", None)
            .await
            .0,
        403
    );
    let seen = world
        .rest_as(&dev, Method::GET, "/api/v1/account", None)
        .await
        .1;
    assert_eq!(seen["items"].as_array().map(Vec::len), Some(1), "{seen}");
    world.set("accounts.dev", "apiKey");
    let (status, answer) = world.rest_as(&dev, Method::GET, path, None).await;
    assert_eq!(status, 401);
    assert_eq!(
        answer["message"],
        "invalid session: account dev does not have 'login' capability"
    );
    world.set("accounts.dev", "login");
    world.set("accounts.dev.enabled", "false");
    let (status, answer) = world.rest_as(&dev, Method::GET, path, None).await;
    assert_eq!(
        (status, answer["message"].as_str()),
        (401, Some("invalid session: account dev is disabled"))
    );
}

#[tokio::test]
async fn passwords_belong_to_their_account() {
    let world = world().await;
    let dev = token(&world.login("dev").await.1);
    let change = |name: &str, current: &str| json!({"name": name, "currentPassword": current, "newPassword": "a newer password"});
    let path = "/api/v1/account/password";
    let (status, answer) = world
        .rest_as(&dev, Method::PUT, path, Some(change("admin", PASSWORD)))
        .await;
    assert_eq!(status, 403, "{answer}");
    let (status, answer) = world
        .rest_as(&dev, Method::PUT, path, Some(change("dev", "wrong")))
        .await;
    assert_eq!(status, 400, "{answer}");
    // The administrator's own password is asked for.
    let admin = world.token.clone();
    let (status, answer) = world
        .rest_as(
            &admin,
            Method::PUT,
            path,
            Some(change("dev", common::PASSWORD)),
        )
        .await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(
        world
            .rest_as(&dev, Method::GET, "/api/v1/account/dev", None)
            .await
            .0,
        401
    );
    assert_eq!(world.login("dev").await.0, 401);
    assert_eq!(
        world
            .rest_as(&admin, Method::GET, "/api/v1/account", None)
            .await
            .0,
        200
    );
}

#[tokio::test]
async fn tokens_of_accounts_are_valid_until_they_are_deleted() {
    let world = world().await;
    let (admin, dev) = (world.token.clone(), token(&world.login("dev").await.1));
    let path = "/api/v1/account/ci/token";
    let body = || Some(json!({"id": "build", "expiresIn": 0}));
    assert_eq!(world.rest_as(&dev, Method::POST, path, body()).await.0, 403);
    let (status, answer) = world.rest_as(&admin, Method::POST, path, body()).await;
    assert_eq!(status, 200, "{answer}");
    let ci = token(&answer);
    let (_, twice) = world.rest_as(&admin, Method::POST, path, body()).await;
    assert!(
        twice["message"]
            .as_str()
            .is_some_and(|m| m.ends_with("account already has token with id 'build'")),
        "{twice}"
    );
    let (status, user) = world
        .rest_as(&ci, Method::GET, "/api/v1/session/userinfo", None)
        .await;
    assert_eq!((status, user["username"].as_str()), (200, Some("ci")));
    assert_eq!(
        world
            .rest_as(&ci, Method::GET, "/api/v1/applications/web", None)
            .await
            .0,
        403
    );
    world.set("policy.csv", "p, ci, applications, get, default/web, allow");
    assert_eq!(
        world
            .rest_as(&ci, Method::GET, "/api/v1/applications/web", None)
            .await
            .0,
        200
    );
    // An account without the capability gets none.
    world.set("accounts.dev", "login");
    let (status, answer) = world
        .rest_as(
            &admin,
            Method::POST,
            "/api/v1/account/dev/token",
            Some(json!({})),
        )
        .await;
    assert_ne!(status, 200, "{answer}");
    let path = "/api/v1/account/ci/token/build";
    assert_eq!(
        world.rest_as(&admin, Method::DELETE, path, None).await.0,
        200
    );
    assert_eq!(
        world.rest_as(&admin, Method::DELETE, path, None).await.0,
        404
    );
    let (status, answer) = world
        .rest_as(&ci, Method::GET, "/api/v1/applications/web", None)
        .await;
    assert_eq!(status, 401);
    assert_eq!(
        answer["message"],
        "invalid session: account ci does not have token with id build"
    );
}

#[tokio::test]
async fn tokens_of_projects_have_what_their_role_has() {
    let world = world().await;
    let admin = world.token.clone();
    let mut project = world
        .store
        .get_project("default")
        .await
        .expect("it is there");
    project.spec.roles = serde_json::from_value(json!([
        {"name": "deploy", "policies": ["p, proj:default:deploy, applications, get, default/web, allow"]},
    ]))
    .expect("roles");
    world.store.update_project(&project).await.expect("stored");
    let path = "/api/v1/projects/default/roles/deploy/token";
    let dev = token(&world.login("dev").await.1);
    assert_eq!(
        world
            .rest_as(&dev, Method::POST, path, Some(json!({})))
            .await
            .0,
        403
    );
    let missing = "/api/v1/projects/default/roles/none/token";
    assert_eq!(
        world
            .rest_as(&admin, Method::POST, missing, Some(json!({})))
            .await
            .0,
        404
    );
    let (status, answer) = world
        .rest_as(&admin, Method::POST, path, Some(json!({"id": "job"})))
        .await;
    assert_eq!(status, 200, "{answer}");
    let job = token(&answer);
    assert_eq!(
        world
            .rest_as(&admin, Method::POST, path, Some(json!({"id": "job"})))
            .await
            .0,
        400
    );
    let apps = world
        .rest_as(&job, Method::GET, "/api/v1/applications", None)
        .await
        .1;
    assert_eq!(names(&apps), ["web"]);
    assert_eq!(
        world
            .rest_as(&job, Method::GET, "/api/v1/projects/default", None)
            .await
            .0,
        200
    );
    assert_eq!(
        world
            .rest_as(&job, Method::DELETE, "/api/v1/applications/web", None)
            .await
            .0,
        403
    );
    let delete = "/api/v1/projects/default/roles/deploy/token/0?id=job";
    assert_eq!(
        world.rest_as(&admin, Method::DELETE, delete, None).await.0,
        200
    );
    assert_eq!(
        world.rest_as(&admin, Method::DELETE, delete, None).await.0,
        200,
        "it is gone already"
    );
    assert_eq!(
        world
            .rest_as(&job, Method::GET, "/api/v1/applications", None)
            .await
            .0,
        401
    );
}

#[tokio::test]
async fn roles_of_projects_are_checked() {
    let world = world().await;
    let mut project = world
        .store
        .get_project("default")
        .await
        .expect("it is there");
    for (policy, want) in [
        (
            "p, proj:default:r, applications, get, default/*, allow",
            200,
        ),
        ("p, proj:default:r, applications, get, other/*, allow", 400),
        ("p, alice, applications, *, */*, allow", 400),
    ] {
        project.spec.roles =
            serde_json::from_value(json!([{"name": "r", "policies": [policy]}])).expect("roles");
        let stored = world
            .store
            .get_project("default")
            .await
            .expect("it is there");
        project.metadata.resource_version = stored.metadata.resource_version;
        let body = json!({"project": project});
        let (status, answer) = world
            .rest_as(
                &world.token,
                Method::PUT,
                "/api/v1/projects/default",
                Some(body),
            )
            .await;
        assert_eq!(status, want, "{policy}: {answer}");
    }
}

/// The tree and the log of `web`, as the caller of this token sees them.
async fn streams(world: &World, token: &str) -> (Streaming<ApplicationTree>, Streaming<LogEntry>) {
    let query = ResourcesQuery {
        application_name: "web".into(),
        ..Default::default()
    };
    let rpc = "/application.ApplicationService/WatchResourceTree";
    let trees = world.grpc_stream_as(token, rpc, query).await;
    let query = ApplicationPodLogsQuery {
        name: "web".into(),
        namespace: Some("n".into()),
        pod_name: Some("web-runs".into()),
        follow: Some(true),
        ..Default::default()
    };
    let rpc = "/application.ApplicationService/PodLogs";
    let logs = world.grpc_stream_as(token, rpc, query).await;
    (trees, logs)
}

/// What ends a stream, or an empty text if it ends by itself.
async fn end<T>(mut stream: Streaming<T>) -> String {
    let last = async {
        loop {
            match stream.next().await {
                Some(Ok(_)) => {}
                Some(Err(status)) => return format!("{:?}", status.code()),
                None => return String::new(),
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(30), last)
        .await
        .expect("it ends")
}

#[tokio::test]
async fn a_stream_ends_when_its_permission_is_withdrawn() {
    let world = world().await;
    let pod =
        json!({"kind": "Pod", "version": "v1", "name": "web-runs", "namespace": "n", "uid": "1"});
    let tree = serde_json::from_value(json!({"nodes": [pod]})).expect("a tree");
    *world.live.tree.lock().expect("not poisoned") = Some(Arc::new(tree));
    world.live.tree_changes.store(true, Ordering::Relaxed);
    let admin = world.token.clone();
    let path = "/api/v1/account/ci/token";
    let (status, made) = world
        .rest_as(&admin, Method::POST, path, Some(json!({})))
        .await;
    assert_eq!(status, 200, "{made}");
    let ci = token(&made);
    let both = "p, ci, applications, get, default/web, allow\np, ci, logs, get, default/web, allow";
    let trees_only = "p, ci, applications, get, default/web, allow";
    for (left, tree_goes_on) in [("", false), (trees_only, true)] {
        world.set("policy.csv", both);
        let (mut trees, mut logs) = streams(&world, &ci).await;
        trees.next().await.expect("a tree").expect("permitted");
        logs.next().await.expect("a line").expect("permitted");
        world.set("policy.csv", left);
        assert_eq!(end(logs).await, "PermissionDenied", "{left}");
        match tree_goes_on {
            true => drop(trees.next().await.expect("a tree").expect("permitted")),
            false => assert_eq!(end(trees).await, "PermissionDenied"),
        }
    }
}
