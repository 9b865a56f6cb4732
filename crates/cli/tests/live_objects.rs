//! Live objects that users change through the API.

use crate::{
    idle_streams::{Proxy, Session},
    scenarios::world::{World, config_map},
};
use serde_json::{Value, json};
use tiphys_testkit::{PATIENCE, Repo, eventually};

#[test]
fn fields_that_users_change_are_those_of_the_server() {
    let Some(world) = World::embedded("live-objects") else {
        return;
    };
    let repo = Repo::with(&[("web/settings.yaml", config_map("settings", "one").as_str())]);
    world.deploy("web", &repo.url(), "web", &json!({}));
    world.until_well("web", &repo.head());
    let proxy = Proxy::start(world.tiphys.url.trim_start_matches("http://"));
    let session = Session::new(&world, &proxy, "session");
    let object = ["--kind", "ConfigMap", "--resource-name", "settings"];
    let patch = [
        "--patch",
        r#"{"data": {"more": "1"}}"#,
        "--patch-type",
        "application/merge-patch+json",
    ];
    let words = [&["app", "patch-resource", "web"][..], &object, &patch].concat();
    // The server may see the object a moment after the sync has ended.
    eventually(PATIENCE, "the object is patched", || {
        let ended = session.start(&words).wait_with_output().expect("it ends");
        if ended.status.success() {
            Ok(())
        } else {
            Err(format!("{ended:?}"))
        }
    });
    let live = world.find("configmaps", "settings").expect("it is there");
    assert_eq!(live["data"]["more"], "1", "{live}");
    let entries = live["metadata"]["managedFields"].as_array();
    let entries = entries.expect("every object has managers");
    let of_patch = |entry: &&Value| entry["fieldsV1"]["f:data"]["f:more"].is_object();
    let entry = entries.iter().find(of_patch).expect("somebody owns it");
    assert_eq!(entry["manager"], "argocd-server", "{live}");
}
