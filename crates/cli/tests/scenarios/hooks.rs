//! Hooks that are changed or deleted from outside.

use crate::scenarios::{
    deletion::hook,
    world::{World, config_map, text},
};
use serde_json::{Value, json};
use tiphys_testkit::{PATIENCE, Repo, eventually, namespaced};

fn message(app: &Value) -> String {
    text(app, "/status/operationState/message")
}

fn waits_for_hook(app: &Value) -> bool {
    message(app).starts_with("waiting for completion of hook")
}

pub fn a_hook_that_its_ttl_deletes_is_done(world: &mut World) {
    let short = hook("short", "PreSync", "[\"true\"]").replace(
        "spec:\n  backoffLimit",
        "spec:\n  ttlSecondsAfterFinished: 0\n  backoffLimit",
    );
    let repo = Repo::with(&[
        ("app/short.yaml", short.as_str()),
        ("app/cm.yaml", config_map("after", "1").as_str()),
    ]);
    world.deploy("ttl", &repo.url(), "app", &json!({}));
    let app = world.until_well("ttl", &repo.head());
    let results = app
        .pointer("/status/operationState/syncResult/resources")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    let hook = results
        .iter()
        .find(|r| r["name"] == "short")
        .expect("the hook's result");
    assert_eq!(text(hook, "/hookPhase"), "Succeeded", "{hook}");
    eventually(PATIENCE, "the Job is gone", || {
        world
            .find("jobs", "short")
            .map_or(Ok(()), |job| Err(job.to_string()))
    });
}

pub fn a_hook_that_somebody_made_anew_is_not_waited_for(world: &mut World) {
    let endless = hook("endless", "PreSync", "[sleep, \"600\"]");
    let repo = Repo::with(&[
        ("app/endless.yaml", endless.as_str()),
        ("app/cm.yaml", config_map("late", "1").as_str()),
    ]);
    world.deploy("anew", &repo.url(), "app", &json!({}));
    world.until("anew", "waiting for its hook", waits_for_hook);
    let ours = world.find("jobs", "endless").expect("the hook");
    world.patch(
        "jobs",
        "endless",
        &json!({"metadata": {"finalizers": null}}),
    );
    world.delete("jobs", "endless");
    eventually(PATIENCE, "ours is gone", || {
        world
            .find("jobs", "endless")
            .map_or(Ok(()), |job| Err(job.to_string()))
    });
    let template = json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "registry.example.org/hook:v1", "command": ["true"]}]}});
    let mut metadata = json!({"name": "endless", "namespace": world.namespace, "annotations": ours["metadata"]["annotations"]});
    metadata["labels"] = json!({"somebody": "else"});
    let job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"backoffLimit": 0, "template": template}});
    world
        .kube
        .create(&namespaced("batch/v1", &world.namespace, "jobs"), &job);
    let ended = |app: &Value| {
        app.get("operation").is_none() && text(app, "/status/operationState/phase") == "Failed"
    };
    let app = world.until("anew", "ended", ended);
    let results = app
        .pointer("/status/operationState/syncResult/resources")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    let told = results
        .iter()
        .find(|r| r["name"] == "endless")
        .map(|r| text(r, "/message"))
        .unwrap_or_default();
    let known = [
        "Resource batch/Job/endless is missing, it might have been deleted",
        "the hook was deleted before it completed",
    ];
    assert!(known.contains(&told.as_str()), "{told}");
    assert!(
        world.find("jobs", "endless").is_some(),
        "it is not ours to delete"
    );
    assert_eq!(
        world.value("late", "value"),
        None,
        "what comes after the hook was not applied"
    );
}

pub fn a_resource_that_becomes_a_hook_is_replaced(world: &mut World) {
    let plain = hook("turns", "PreSync", "[\"true\"]")
        .replace("  annotations:\n    argocd.argoproj.io/hook: PreSync\n", "");
    let repo = Repo::with(&[
        ("app/turns.yaml", plain.as_str()),
        ("app/cm.yaml", config_map("beside", "1").as_str()),
    ]);
    world.deploy("turns", &repo.url(), "app", &json!({"prune": true}));
    world.until_well("turns", &repo.head());
    let before = text(
        &world.find("jobs", "turns").expect("the resource"),
        "/metadata/uid",
    );
    let sha = repo.commit(
        &[
            (
                "app/turns.yaml",
                hook("turns", "PreSync", "[\"true\"]").as_str(),
            ),
            ("app/cm.yaml", config_map("beside", "2").as_str()),
        ],
        &[],
    );
    world.refresh("turns");
    let app = world.until_well("turns", &sha);
    let job = world.find("jobs", "turns").expect("the hook");
    assert_ne!(text(&job, "/metadata/uid"), before, "it ran");
    assert_eq!(
        job.pointer("/status/succeeded").and_then(Value::as_u64),
        Some(1)
    );
    let results = app
        .pointer("/status/operationState/syncResult/resources")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    assert!(
        results.iter().all(|r| r["status"] == "Synced"),
        "{results:?}"
    );
    // And back.
    let sha = repo.commit(&[("app/turns.yaml", plain.as_str())], &[]);
    world.refresh("turns");
    world.until_well("turns", &sha);
    assert_eq!(
        text(
            &world.find("jobs", "turns").expect("the resource"),
            "/metadata/annotations/argocd.argoproj.io~1hook"
        ),
        ""
    );
}
