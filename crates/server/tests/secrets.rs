//! Values that no API call may ever return.

use crate::common;

use common::{World, app};
use http::Method;
use serde_json::{Value, json};
use std::sync::Arc;
use tiphys_api::{
    Application,
    application::ApplicationList,
    repository::RepositoryList,
    rpc::{application::ApplicationQuery, repository::RepoQuery},
};
use tiphys_server::ports::{SecretRecord, Store as _};

const APPS: &str = "/api/v1/applications";
const URL: &str = "https://u:CANARY@git.example/r.git";

async fn get(world: &World, path: &str) -> Value {
    world.rest(Method::GET, path, None).await.1
}

/// A repository with passwords in its URLs.
async fn put_repository(world: &World) {
    let mut secret = SecretRecord {
        name: "repo-1".into(),
        ..Default::default()
    };
    secret
        .labels
        .insert("argocd.argoproj.io/secret-type".into(), "repository".into());
    for (key, value) in [
        ("url", URL),
        ("proxy", "http://p:CANARY@proxy:3128"),
        ("project", "default"),
        ("password", "CANARY"),
    ] {
        secret.data.insert(key.into(), value.as_bytes().to_vec());
    }
    world.store.put_secret(&secret).await.expect("stored");
}

#[tokio::test]
async fn no_answer_has_a_password_of_a_url() {
    let world = World::start().await;
    let mut with_password = app("a");
    with_password["spec"]["source"]["repoURL"] = URL.into();
    let last = with_password.to_string();
    let applied = "kubectl.kubernetes.io/last-applied-configuration";
    with_password["metadata"]["annotations"] = json!({applied: last});
    with_password["spec"]["source"]["helm"] = json!({"valueFiles": [URL]});
    let (status, created) = world
        .rest(
            Method::POST,
            &format!("{APPS}?validate=false"),
            Some(with_password),
        )
        .await;
    assert_eq!(status, 200, "{created}");
    let source = json!({"repoURL": URL, "path": "p"});
    let hydrator = json!({"drySource": source, "syncSource": {"targetBranch": "b", "path": "p"}});
    let told = format!("cannot fetch {URL} or u:CANARY@git.example:r.git");
    world.store.control(
        "a",
        &json!({"status": {
            "sourceHydrator": {
                "currentOperation": {"phase": "Failed", "message": told, "sourceHydrator": hydrator},
                "lastSuccessfulOperation": {"drySHA": "x", "sourceHydrator": hydrator},
            },
            "conditions": [{"type": "ComparisonError", "message": told}],
            "history": [{"id": 1, "revision": "x", "source": source}],
            "sync": {"status": "Unknown", "comparedTo": {"source": source, "destination": {}}},
            "operationState": {"phase": "Error", "message": told, "operation": {"sync": {"source": source}}, "syncResult": {"revision": "x", "source": source}}
        }}),
    );
    put_repository(&world).await;

    let escaped = "https%3A%2F%2Fu:x@git.example%2Fr.git";
    for path in [
        format!("{APPS}/a"),
        APPS.to_owned(),
        format!("{APPS}/a/managed-resources"),
        format!("{APPS}/a/manifests"),
        format!("{APPS}/a/syncwindows"),
        "/api/v1/repositories".into(),
        format!("/api/v1/repositories/{escaped}"),
        "/api/v1/projects/default/detailed".into(),
        "/api/v1/projects".into(),
        "/api/v1/clusters".into(),
        "/api/v1/settings".into(),
    ] {
        let answer = get(&world, &path).await.to_string();
        assert!(!answer.contains("CANARY"), "{path}: {answer}");
    }
    let apps: ApplicationList = world
        .grpc(
            "/application.ApplicationService/List",
            ApplicationQuery::default(),
        )
        .await
        .expect("a list");
    let repositories: RepositoryList = world
        .grpc(
            "/repository.RepositoryService/ListRepositories",
            RepoQuery::default(),
        )
        .await
        .expect("a list");
    assert!(!format!("{apps:?}{repositories:?}").contains("CANARY"));

    // Sending back the masked reply keeps the password.
    let mut shown = get(&world, &format!("{APPS}/a")).await;
    assert_eq!(
        shown["spec"]["source"]["repoURL"],
        "https://u:******@git.example/r.git"
    );
    shown["spec"]["source"]["path"] = "other".into();
    let (status, updated) = world
        .rest(
            Method::PUT,
            &format!("{APPS}/a?validate=false"),
            Some(shown),
        )
        .await;
    assert_eq!(status, 200, "{updated}");
    let stored: Application = world
        .store
        .get_app("argocd", "a")
        .await
        .expect("it is there");
    let source = stored.spec.source.as_ref().expect("a source");
    assert_eq!(
        (source.repo_url.as_str(), source.path.as_str()),
        (URL, "other")
    );
    let files = source.helm.iter().flat_map(|helm| &helm.value_files);
    assert_eq!(files.collect::<Vec<_>>(), [URL]);
    assert_eq!(stored.metadata.annotations[applied], last);
}

#[tokio::test]
async fn no_form_of_a_secret_is_shown() {
    let world = World::start_with(
        &[("resource.sensitive.mask.annotations", "token, other")],
        &[],
    )
    .await;
    let (status, created) = world.rest(Method::POST, APPS, Some(app("a"))).await;
    assert_eq!(status, 200, "{created}");
    let tree = json!({"nodes": [{"kind": "Secret", "version": "v1", "name": "s", "namespace": "n", "uid": "1"}]});
    *world.live.tree.lock().expect("not poisoned") =
        Some(Arc::new(serde_json::from_value(tree).expect("a tree")));
    for values in [
        json!({"data": {"p": "Q0FOQVJZ"}}),
        json!({"data": ["CANARY"]}),
        json!({"data": "CANARY"}),
        json!({"data": [], "stringData": {"p": "CANARY"}}),
        json!({"stringData": ["CANARY"]}),
        json!({"stringData": "CANARY"}),
    ] {
        let mut secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "annotations": {"token": "CANARY", "kept": "yes"}}});
        secret
            .as_object_mut()
            .expect("a map")
            .extend(values.as_object().expect("a map").clone());
        let last = secret.to_string();
        secret["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"] =
            last.into();
        world
            .live
            .objects
            .lock()
            .expect("not poisoned")
            .insert("s".into(), secret);
        let found = get(
            &world,
            &format!("{APPS}/a/resource?resourceName=s&namespace=n&kind=Secret&version=v1"),
        )
        .await;
        let text = found["manifest"].as_str().expect("a manifest");
        assert!(
            !text.contains("CANARY") && !text.contains("Q0FOQVJZ"),
            "{values}: {text}"
        );
        let shown: Value = serde_json::from_str(text).expect("JSON");
        let annotations = &shown["metadata"]["annotations"];
        assert_eq!(
            (annotations["kept"].as_str(), annotations["token"].as_str()),
            (Some("yes"), Some("++++++++"))
        );
        let last = annotations["kubectl.kubernetes.io/last-applied-configuration"]
            .as_str()
            .expect("text");
        assert_eq!(
            serde_json::from_str::<Value>(last).expect("last-applied stays JSON")["kind"],
            "Secret"
        );
        let patch = "patchType=application%2Fmerge-patch%2Bjson";
        let path =
            format!("{APPS}/a/resource?resourceName=s&namespace=n&kind=Secret&version=v1&{patch}");
        let (status, patched) = world.rest(Method::POST, &path, Some(json!("{}"))).await;
        assert_eq!(status, 200, "{patched}");
        let text = patched.to_string();
        assert!(
            !text.contains("CANARY") && !text.contains("Q0FOQVJZ"),
            "{values}: {text}"
        );
    }
    let rendered = get(&world, &format!("{APPS}/a/manifests")).await;
    let manifest = rendered["manifests"][0].as_str().expect("a manifest");
    let manifest: Value = serde_json::from_str(manifest).expect("JSON");
    assert_eq!(manifest["metadata"]["annotations"]["token"], "++++++++");
    assert_eq!(manifest["data"]["a"], "++++++++");
}

/// The live view shows masks, and whoever edits it may send them back.
#[tokio::test]
async fn a_mask_is_not_written_into_the_cluster() {
    const OURS: &str = "&group=argoproj.io&kind=Application&version=v1alpha1";
    const SECRET: &str = "&kind=Secret&version=v1";
    let world = World::start().await;
    let (status, created) = world.rest(Method::POST, APPS, Some(app("a"))).await;
    assert_eq!(status, 200, "{created}");
    let tree = json!({"nodes": [
        {"kind": "Secret", "version": "v1", "name": "s", "namespace": "n", "uid": "1"},
        {"group": "argoproj.io", "kind": "Application", "version": "v1alpha1", "name": "s", "namespace": "n", "uid": "2"},
    ]});
    *world.live.tree.lock().expect("not poisoned") =
        Some(Arc::new(serde_json::from_value(tree).expect("a tree")));
    let object = json!({"metadata": {"name": "s"}});
    world
        .live
        .objects
        .lock()
        .expect("not poisoned")
        .insert("s".into(), object);
    let sent = async |kind: &str, media: &str, patch: String| {
        let media = format!("patchType=application%2F{media}%2Bjson");
        let path = format!("{APPS}/a/resource?resourceName=s&namespace=n{kind}&{media}");
        world.rest(Method::POST, &path, Some(json!(patch))).await
    };
    let patch =
        async |kind: &str, media: &str, patch: &Value| sent(kind, media, patch.to_string()).await;
    let url = "https://u:******@h/r";
    let replace = json!([{"op": "replace", "path": "/data/p", "value": "++++++++"}]);
    let source = json!({"spec": {"sources": [{"repoURL": url}]}});
    let data = json!({"data": {"p": "++++++++"}});
    let text = json!({"stringData": {"p": "++++++++++++"}});
    for (kind, media, masked, field) in [
        (SECRET, "merge-patch", &data, "data.p:"),
        (SECRET, "strategic-merge-patch", &data, "data.p:"),
        (SECRET, "merge-patch", &text, "stringData.p:"),
        (SECRET, "json-patch", &replace, "/data/p:"),
        (OURS, "merge-patch", &source, "spec.sources[0].repoURL:"),
    ] {
        let (status, answer) = patch(kind, media, masked).await;
        let error = answer["error"].as_str().unwrap_or_default();
        assert_eq!(status, 400, "{masked}: {answer}");
        assert!(error.starts_with(field), "{masked}: {answer}");
    }
    let (status, answer) = sent(SECRET, "json-patch", r#"{"op": "add"}'"#.to_owned()).await;
    assert_eq!(status, 400, "{answer}");
    let said = "failed to patch Secret n/s: the patch is not valid JSON";
    assert_eq!(answer["error"], said);
    let written = || world.live.written.lock().expect("not poisoned").clone();
    assert_eq!(written(), Vec::<Value>::new());
    let labels = json!({"data": {"p": "bmV3"}, "metadata": {"labels": {"a": "b"}}});
    let source = json!({"spec": {"sources": [{"repoURL": "https://u:new@h/r"}]}});
    for (kind, whole) in [(SECRET, &labels), (OURS, &source)] {
        let (status, answer) = patch(kind, "merge-patch", whole).await;
        assert_eq!(status, 200, "{answer}");
        assert_eq!(written().last(), Some(whole));
    }
}

#[tokio::test]
async fn replacing_may_be_switched_off() {
    let world = World::start_with(&[("server.sync.replace.allowed", "false")], &[]).await;
    let (status, created) = world.rest(Method::POST, APPS, Some(app("a"))).await;
    assert_eq!(status, 200, "{created}");
    let body = json!({"syncOptions": {"items": ["Replace=true"]}});
    let (status, answer) = world
        .rest(Method::POST, &format!("{APPS}/a/sync"), Some(body))
        .await;
    let why = "sync with replace was disabled on the API Server level via the server configuration";
    assert_eq!((status, answer["error"].as_str()), (400, Some(why)));
    assert_eq!(
        get(&world, "/api/v1/settings").await["syncWithReplaceAllowed"],
        Value::Null
    );
    assert_eq!(
        world
            .rest(Method::POST, &format!("{APPS}/a/sync"), Some(json!({})))
            .await
            .0,
        200
    );
}

#[tokio::test]
async fn the_plugins_are_listed() {
    let world = World::start_with(&[], &[]).await;
    assert_eq!(
        get(&world, "/api/v1/settings/plugins").await,
        json!({"plugins": [{"name": "cmp-v1.0"}]})
    );
}

/// R126: it can be seen, mended and deleted, and what cannot be read does not hide the others.
#[tokio::test]
async fn a_repository_with_a_fault_is_listed_as_failed() {
    let world = World::start().await;
    for (name, url, insecure) in [
        ("repo-1", "https://git.invalid/broken.git", "perhaps"),
        ("repo-2", "https://git.invalid/other.git", "false"),
    ] {
        let values = [("url", url), ("insecure", insecure), ("username", "u")];
        world.store_secret(name, "repository", &values).await;
    }
    let of_template = [("url", "https://git.invalid/team/r")];
    world
        .store_secret("repo-3", "repository", &of_template)
        .await;
    let template = [("url", "https://git.invalid/team"), ("enableOCI", "maybe")];
    world.store_secret("creds-1", "repo-creds", &template).await;
    let listed = get(&world, "/api/v1/repositories").await;
    let items = listed["items"].as_array().expect("a list");
    assert_eq!(items.len(), 3, "{listed}");
    let broken = &items[0];
    assert_eq!(broken["repo"], "https://git.invalid/broken.git");
    assert_eq!(broken["connectionState"]["status"], "Failed");
    let told = "Configuration error - please check the server logs";
    assert_eq!(broken["connectionState"]["message"], told);
    // Its template is not passed over either.
    let message = items[2]["connectionState"]["message"].as_str();
    let expected = format!("Unable to connect to repository: {told}");
    assert_eq!(message, Some(expected.as_str()), "{listed}");
    // Nobody asks it, neither with its credentials nor without them.
    let url = "https%3A%2F%2Fgit.invalid%2Fbroken.git";
    let (status, said) = world
        .rest(
            Method::GET,
            &format!("/api/v1/repositories/{url}/refs"),
            None,
        )
        .await;
    assert_eq!(status, 400, "{said}");
    assert!(said.to_string().contains(told), "{said}");
    let (status, said) = world
        .rest(Method::DELETE, &format!("/api/v1/repositories/{url}"), None)
        .await;
    assert_eq!(status, 200, "{said}");
    let listed = get(&world, "/api/v1/repositories").await;
    assert_eq!(
        listed["items"].as_array().map(Vec::len),
        Some(2),
        "{listed}"
    );
}

#[tokio::test]
async fn a_good_template_is_used_beside_one_with_a_fault() {
    let url = "https://git.invalid/team";
    for (faulty, good) in [("creds-1", "creds-2"), ("creds-2", "creds-1")] {
        let world = World::start().await;
        let repository = [("url", "https://git.invalid/team/r")];
        world
            .store_secret("repo-1", "repository", &repository)
            .await;
        let broken = [("url", url), ("enableOCI", "maybe")];
        world.store_secret(faulty, "repo-creds", &broken).await;
        let template = [("url", url), ("username", "u"), ("password", "p")];
        world.store_secret(good, "repo-creds", &template).await;
        let listed = get(&world, "/api/v1/repositories").await;
        let items = listed["items"].as_array().expect("a list");
        assert_eq!(items.len(), 1, "{listed}");
        let told = "Configuration error";
        assert!(!items[0].to_string().contains(told), "{faulty}: {listed}");
    }
}
