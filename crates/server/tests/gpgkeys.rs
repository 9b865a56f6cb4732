//! The public keys that commits are verified with, through REST and gRPC; and what a project that
//! demands signatures refuses.

use crate::common::{World, app};
use http::Method;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tiphys_api::rpc::gpgkey::{GnuPGPublicKeyList, GnuPGPublicKeyQuery};
use tiphys_server::ports::Store as _;
use tiphys_testkit::signed::{KEY, KEY_ID};

const PATH: &str = "/api/v1/gpgkeys";
const CONFIG_MAP: &str = "argocd-gpg-keys-cm";

async fn add(world: &World, text: &str) -> (u16, Value) {
    let body = json!({"keyData": text});
    world.rest(Method::POST, PATH, Some(body)).await
}

async fn error(world: &World, method: Method, path: &str) -> String {
    let (status, answer) = world.rest(method, path, None).await;
    assert_ne!(status, 200, "{path}");
    answer["error"].as_str().expect("an error").to_owned()
}

async fn set(world: &World, name: &str, text: Option<&str>) {
    let read = world.store.read_config_map(CONFIG_MAP).await.expect("read");
    let values = BTreeMap::from([(name.to_owned(), text.map(str::to_owned))]);
    let set = world
        .store
        .set_in_config_map(CONFIG_MAP, &read.version, &values);
    set.await.expect("set");
}

#[tokio::test]
async fn keys_are_added_shown_and_removed() {
    let world = World::start().await;
    let (status, answer) = add(&world, KEY).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(answer["created"]["items"][0]["keyID"], KEY_ID);
    let (status, answer) = add(&world, KEY).await;
    assert_eq!((status, &answer["skipped"]), (200, &json!([KEY_ID])));
    assert_eq!(answer["created"]["items"], json!([]));

    let (status, list) = world.rest(Method::GET, PATH, None).await;
    let fingerprint = "A9BAFEC9EEFA3BCFB1CC";
    let mut item = list["items"][0].clone();
    let whole = item["fingerprint"].take();
    let whole = whole.as_str().expect("a fingerprint");
    assert!(
        whole.starts_with(fingerprint) && whole.ends_with(KEY_ID),
        "{whole}"
    );
    item.as_object_mut().expect("a key").remove("fingerprint");
    let expected = json!({"keyID": KEY_ID, "owner": "Example <example@example.org>", "trust": "unknown", "subType": "ed25519"});
    assert_eq!((status, item), (200, expected));
    let listed: GnuPGPublicKeyList = world
        .grpc("/gpgkey.GPGKeyService/List", GnuPGPublicKeyQuery::default())
        .await
        .expect("listed");
    assert_eq!(listed.items.len(), 1);

    // By its id and by its fingerprint.
    for name in [KEY_ID, whole] {
        let (status, key) = world
            .rest(Method::GET, &format!("{PATH}/{name}"), None)
            .await;
        let data = key["keyData"].as_str().expect("its text");
        assert!(
            status == 200 && data.contains("BEGIN PGP PUBLIC KEY BLOCK"),
            "{key}"
        );
    }
    let none = error(&world, Method::GET, &format!("{PATH}/0000000000000000")).await;
    assert_eq!(none, "no such key: 0000000000000000");
    let bad = error(&world, Method::GET, &format!("{PATH}/x")).await;
    assert_eq!(bad, "'x' is not a valid GnuPG key ID");

    let remove = format!("{PATH}?keyID={KEY_ID}");
    assert_eq!(world.rest(Method::DELETE, &remove, None).await.0, 200);
    let gone = error(&world, Method::DELETE, &remove).await;
    assert_eq!(gone, format!("no such key configured: {KEY_ID}"));
}

#[tokio::test]
async fn what_is_no_key_is_refused() {
    let world = World::start().await;
    for (text, expected) in [
        (" \n", "submitted key data is empty"),
        (
            "x",
            "error validating PGP keys from input: it has no public key",
        ),
    ] {
        let (status, answer) = add(&world, text).await;
        assert_eq!((status, answer["error"].as_str()), (500, Some(expected)));
    }
    for (name, text, expected) in [
        (
            "notes",
            KEY,
            "error validating key ID \"notes\" in GPG keys configmap: 'notes' is not a valid GnuPG key ID".to_owned(),
        ),
        (
            "0000000000000000",
            KEY,
            format!("key parsed for entry with key ID '0000000000000000' had different key ID '{KEY_ID}'"),
        ),
        (
            KEY_ID,
            "x",
            format!("error parsing GPG key for entry {KEY_ID:?}: error validating PGP key: it has no public key"),
        ),
    ] {
        set(&world, name, Some(text)).await;
        assert_eq!(error(&world, Method::GET, PATH).await, expected);
        set(&world, name, None).await;
    }
}

#[tokio::test]
async fn local_manifests_are_refused_where_signatures_are_demanded() {
    let world = World::start().await;
    const APPS: &str = "/api/v1/applications";
    let (status, created) = world.rest(Method::POST, APPS, Some(app("a"))).await;
    assert_eq!(status, 200, "{created}");
    let mut project = world
        .store
        .get_project("default")
        .await
        .expect("the project");
    project.spec.signature_keys = serde_json::from_value(json!([{"keyID": KEY_ID}])).expect("keys");
    world.store.update_project(&project).await.expect("updated");
    let manifest = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "local"}});
    for (body, expected) in [
        (
            json!({"manifests": [manifest.to_string()]}),
            Some("Cannot use local manifests when source integrity is enforced"),
        ),
        (json!({"dryRun": true}), None),
    ] {
        let path = format!("{APPS}/a/sync");
        let (status, answer) = world.rest(Method::POST, &path, Some(body)).await;
        let expected = (if expected.is_some() { 400 } else { 200 }, expected);
        assert_eq!((status, answer["error"].as_str()), expected);
    }
}
