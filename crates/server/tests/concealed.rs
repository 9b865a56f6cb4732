//! What an answer shows as `******` is sent back: the stored password stays, and where there is
//! none, the field is refused.

use crate::common::{World, app};
use http::Method;
use serde_json::{Value, json};
use tiphys_api::ApplicationSet;
use tiphys_server::ports::{Sets as _, Store as _};

const APPS: &str = "/api/v1/applications";
const SETS: &str = "/api/v1/applicationsets";
const URL: &str = "https://u:CANARY@git.example/r.git";
const SHOWN: &str = "https://u:******@git.example/r.git";
const CHANGED: &str = "https://u:other@git.example/r.git";
const FOREIGN: &str = "https://u:******@other.example/r.git";

/// Every call that writes an Application, with this URL and another path.
async fn write(world: &World, rpc: &str, url: &str) -> (u16, Value) {
    let mut whole = app("a");
    whole["spec"]["source"] = json!({"repoURL": url, "path": "new"});
    let patch = |kind: &str, patch: &Value| {
        let patch = patch.to_string();
        json!({"name": "a", "patchType": kind, "patch": patch})
    };
    let one = format!("{APPS}/a");
    let (method, path, body) = match rpc {
        "Create" => (
            Method::POST,
            format!("{APPS}?upsert=true&validate=false"),
            whole,
        ),
        "Update" => (Method::PUT, format!("{one}?validate=false"), whole),
        "UpdateSpec" => (
            Method::PUT,
            format!("{one}/spec?validate=false"),
            whole["spec"].clone(),
        ),
        "Patch of JSON" => {
            let source = whole["spec"]["source"].clone();
            let operation = json!({"op": "replace", "path": "/spec/source", "value": source});
            (Method::PATCH, one, patch("json", &json!([operation])))
        }
        _ => (
            Method::PATCH,
            one,
            patch("merge", &json!({"spec": whole["spec"]})),
        ),
    };
    world.rest(method, &path, Some(body)).await
}

async fn stored(world: &World) -> (String, String) {
    let app = world.store.get_app("argocd", "a").await;
    let app = app.expect("it is there").spec.into_inner();
    let source = app.source.expect("a source");
    (source.repo_url, source.path)
}

#[tokio::test]
async fn every_write_of_an_application_keeps_what_was_shown() {
    let calls = ["Create", "Update", "UpdateSpec", "Patch of JSON", "Patch"];
    for rpc in calls {
        let world = World::start().await;
        let mut first = app("a");
        first["spec"]["source"]["repoURL"] = URL.into();
        let path = format!("{APPS}?validate=false");
        let (status, created) = world.rest(Method::POST, &path, Some(first)).await;
        assert_eq!(status, 200, "{created}");

        let (status, answer) = write(&world, rpc, FOREIGN).await;
        assert_eq!(status, 400, "{rpc}: {answer}");
        let message = answer["message"].as_str().expect("a message");
        assert!(
            message.contains("spec.source.repoURL: ******"),
            "{rpc}: {message}"
        );
        assert_eq!(stored(&world).await, (URL.to_owned(), "p".to_owned()));
        for (sent, kept) in [(SHOWN, URL), (CHANGED, CHANGED)] {
            let (status, answer) = write(&world, rpc, sent).await;
            assert_eq!(status, 200, "{rpc}: {answer}");
            let wanted = (kept.to_owned(), "new".to_owned());
            assert_eq!(stored(&world).await, wanted, "{rpc}");
        }
    }
}

/// A JSON patch can copy and test any field, so it must not see what its sender may not see.
#[tokio::test]
async fn a_patch_tells_nothing_of_a_password() {
    let world = World::start().await;
    let mut first = app("a");
    first["spec"]["source"]["repoURL"] = URL.into();
    let path = format!("{APPS}?validate=false");
    let (status, created) = world.rest(Method::POST, &path, Some(first)).await;
    assert_eq!(status, 200, "{created}");
    let patch = async |operations: Value| {
        let patch = json!({"name": "a", "patchType": "json", "patch": operations.to_string()});
        let path = format!("{APPS}/a");
        world.rest(Method::PATCH, &path, Some(patch)).await
    };
    let from = "/spec/source/repoURL";
    let info = json!([{"name": "n", "value": "v"}]);
    let (status, answer) = patch(json!([
        {"op": "add", "path": "/spec/info", "value": info},
        {"op": "copy", "from": from, "path": "/spec/info/0/value"},
    ]))
    .await;
    assert_eq!(status, 200, "{answer}");
    let app = world.store.get_app("argocd", "a").await;
    let app = app.expect("it is there");
    assert_eq!(app.spec.info[0].value, SHOWN);
    assert_eq!(stored(&world).await.0, URL);
    for (guess, is_right) in [(URL, false), (SHOWN, true)] {
        let (status, answer) = patch(json!([{"op": "test", "path": from, "value": guess}])).await;
        assert_eq!(status == 200, is_right, "{answer}");
    }
}

#[tokio::test]
async fn an_application_of_nothing_stored_needs_its_passwords() {
    let world = World::start().await;
    let server = "https://u:******@cluster.example";
    for (field, part) in [
        (
            "spec.sources[1].helm.valueFiles[0]",
            json!({"spec": {"source": null, "sources": [
                {"repoURL": CHANGED, "path": "p"},
                {"repoURL": CHANGED, "path": "p", "helm": {"valueFiles": [SHOWN]}},
            ]}}),
        ),
        (
            "spec.destination.server",
            json!({"spec": {"destination": {"server": server}}}),
        ),
        (
            "metadata.annotations[last]",
            json!({"metadata": {"annotations": {"last": format!("{{\"url\":\"{SHOWN}\"}}")}}}),
        ),
    ] {
        let whole = tiphys_apimachinery::patch::json_merge::apply(&app("a"), &part);
        let path = format!("{APPS}?validate=false");
        let whole = whole.expect("a patch");
        let (status, answer) = world.rest(Method::POST, &path, Some(whole)).await;
        assert_eq!(status, 400, "{answer}");
        assert!(answer["message"].to_string().contains(field), "{answer}");
        assert!(!world.store.exists("a"), "{field}");
    }
}

#[tokio::test]
async fn of_two_passwords_that_look_the_same_each_stays_where_it_is() {
    let world = World::start().await;
    let mut two = app("a");
    let source = |url: &str, path: &str| json!({"repoURL": url, "path": path});
    let sources = |first: &str, second: &str| json!([source(first, "p"), source(second, "q")]);
    two["spec"]["source"] = Value::Null;
    two["spec"]["sources"] = sources(URL, CHANGED);
    let path = format!("{APPS}?validate=false");
    let (status, created) = world.rest(Method::POST, &path, Some(two.clone())).await;
    assert_eq!(status, 200, "{created}");
    let put = format!("{APPS}/a?validate=false");
    two["spec"]["sources"] = sources(SHOWN, SHOWN);
    two["spec"]["destination"]["namespace"] = "other".into();
    let (status, updated) = world.rest(Method::PUT, &put, Some(two.clone())).await;
    assert_eq!(status, 200, "{updated}");
    let app = world.store.get_app("argocd", "a").await;
    let app = app.expect("it is there");
    let urls: Vec<&str> = app.spec.sources.iter().map(|s| &*s.repo_url).collect();
    assert_eq!(urls, [URL, CHANGED]);
    // Nobody can tell which one was taken away or moved.
    for sources in [
        json!([source(SHOWN, "q")]),
        json!([source(SHOWN, "q"), source(SHOWN, "p")]),
    ] {
        two["spec"]["sources"] = sources;
        let (status, refused) = world.rest(Method::PUT, &put, Some(two.clone())).await;
        assert_eq!(status, 400, "{refused}");
        let message = refused["message"].to_string();
        assert!(message.contains("spec.sources[0].repoURL"), "{message}");
    }
}

fn set(url: &str, element: &str) -> Value {
    json!({
        "metadata": {"name": "one", "annotations": {"last": format!("{{\"url\":\"{url}\"}}")}},
        "spec": {
            "generators": [{"list": {"elements": [{"name": "a", "url": element}]}}],
            "template": {
                "metadata": {"name": "{{name}}"},
                "spec": {
                    "project": "default",
                    "source": {"repoURL": url, "path": "."},
                    "destination": {"server": "https://kubernetes.default.svc"},
                },
            },
        },
    })
}

async fn stored_set(world: &World) -> ApplicationSet {
    world.sets.get("argocd", "one").await.expect("it is there")
}

#[tokio::test]
async fn a_set_keeps_what_was_shown() {
    let world = World::start().await;
    let upsert = format!("{SETS}?upsert=true");
    let post = |body: Value| world.rest(Method::POST, &upsert, Some(body));
    for (body, field) in [
        (set(SHOWN, URL), "spec.template.spec.source.repoURL"),
        (set(URL, SHOWN), "spec.generators[0].list.elements[0].url"),
    ] {
        let (status, refused) = post(body).await;
        assert_eq!(status, 400, "{refused}");
        assert!(refused["message"].to_string().contains(field), "{refused}");
    }
    assert!(world.sets.get("argocd", "one").await.is_err());

    let (status, created) = post(set(URL, CHANGED)).await;
    assert_eq!(status, 200, "{created}");
    let before = stored_set(&world).await;
    let one = format!("{SETS}/one");
    let (_, mut shown) = world.rest(Method::GET, &one, None).await;
    assert_eq!(
        shown["spec"]["template"]["spec"]["source"]["repoURL"],
        SHOWN
    );
    // It is the same: nothing needs to be replaced.
    let (status, same) = world.rest(Method::POST, SETS, Some(shown.clone())).await;
    assert_eq!(status, 200, "{same}");
    // As `appset confirm-deletion` does.
    shown["metadata"]["annotations"] = json!({"approved": "now"});
    let (status, updated) = post(shown.clone()).await;
    assert_eq!(status, 200, "{updated}");
    let after = stored_set(&world).await;
    assert_eq!(after.spec, before.spec);
    assert_eq!(after.metadata.annotations["approved"], "now");
    let last = "last";
    assert_eq!(
        after.metadata.annotations[last],
        before.metadata.annotations[last]
    );

    let source = &mut shown["spec"]["template"]["spec"]["source"];
    source["repoURL"] = CHANGED.into();
    let (status, updated) = post(shown.clone()).await;
    assert_eq!(status, 200, "{updated}");
    let after = stored_set(&world).await;
    let source = after.spec.template.spec.source.as_ref();
    assert_eq!(source.map(|s| s.repo_url.as_str()), Some(CHANGED));
    assert_eq!(after.spec.generators, before.spec.generators);

    shown["spec"]["template"]["spec"]["source"]["repoURL"] = FOREIGN.into();
    let (status, refused) = post(shown).await;
    assert_eq!(status, 400, "{refused}");
    assert_eq!(stored_set(&world).await.spec, after.spec);
}

#[tokio::test]
async fn a_password_of_a_set_is_not_used_by_who_may_only_create() {
    let policy = "p, role:dev, applicationsets, create, default/*, allow\ng, dev, role:dev\n";
    let hash = bcrypt::hash("another password", 4).expect("it hashes");
    let config = [("accounts.dev", "login"), ("policy.csv", policy)];
    let secrets = [("accounts.dev.password", hash.as_str())];
    let world = World::start_by_policy(&config, &secrets).await;
    let (status, created) = world.rest(Method::POST, SETS, Some(set(URL, URL))).await;
    assert_eq!(status, 200, "{created}");
    let login = json!({"username": "dev", "password": "another password"});
    let (_, session) = world
        .rest_as("", Method::POST, "/api/v1/session", Some(login))
        .await;
    let token = session["token"].as_str().expect("a token");
    let dry_run = format!("{SETS}?dryRun=true");
    let body = Some(set(SHOWN, SHOWN));
    let (status, refused) = world.rest_as(token, Method::POST, &dry_run, body).await;
    assert_eq!(status, 403, "{refused}");
}

#[tokio::test]
async fn repositories_templates_and_clusters_need_their_passwords() {
    let world = World::start().await;
    let proxy = "http://p:******@proxy:3128";
    for (path, body, field) in [
        (
            "/api/v1/repositories",
            json!({"repo": "https://git.example/r.git", "proxy": proxy}),
            "repo.proxy",
        ),
        (
            "/api/v1/repocreds",
            json!({"url": "https://git.example", "proxy": proxy}),
            "creds.proxy",
        ),
        (
            "/api/v1/clusters",
            json!({"server": "https://far.example:6443", "config": {"proxyUrl": proxy}}),
            "cluster.config.proxyUrl",
        ),
        (
            "/api/v1/clusters",
            json!({"server": "https://u:******@far.example:6443", "name": "far"}),
            "cluster.server",
        ),
        (
            "/api/v1/clusters",
            json!({"server": "https://far.example:6443", "name": "https://u:******@h"}),
            "cluster.name",
        ),
    ] {
        let (status, refused) = world.rest(Method::POST, path, Some(body)).await;
        assert_eq!(status, 400, "{path}: {refused}");
        let message = refused["message"].to_string();
        assert!(message.contains(field), "{path}: {message}");
    }
    assert!(!world.store.everything().contains("******"));
}

#[tokio::test]
async fn a_repository_keeps_its_proxy_with_upsert() {
    let world = World::start().await;
    let path = "/api/v1/repositories";
    let url = "https://git.example/r.git";
    let of = |proxy: &str, user: &str| json!({"repo": url, "proxy": proxy, "username": user});
    let body = of("http://p:CANARY@proxy:3128", "first");
    let (status, created) = world.rest(Method::POST, path, Some(body)).await;
    assert_eq!(status, 200, "{created}");
    let upsert = format!("{path}?upsert=true");
    let body = of("http://p:******@proxy:3128", "second");
    let (status, updated) = world.rest(Method::POST, &upsert, Some(body)).await;
    assert_eq!(status, 200, "{updated}");
    let secrets = world.store.secrets_of_type("repository").await;
    let secrets = secrets.expect("they are there");
    let of_url = secrets.iter().find(|secret| secret.text("url") == url);
    let secret = of_url.expect("it is there");
    assert_eq!(secret.text("proxy"), "http://p:CANARY@proxy:3128");
    assert_eq!(secret.text("username"), "second");
}
