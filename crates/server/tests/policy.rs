//! Accounts, their tokens, and what argocd-rbac-cm and projects permit them.

use crate::common;

use common::{World, app};
use http::Method;
use serde_json::{Value, json};
use tiphys_server::ports::Store as _;

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
