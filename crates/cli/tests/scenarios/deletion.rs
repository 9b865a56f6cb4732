//! Deletion of an Application with hooks.

use crate::scenarios::world::{World, app_path, config_map, summary, text};
use serde_json::{Value, json};
use tiphys_testkit::{PATIENCE, Repo, eventually};

/// A Job that is a hook; it must not be retried.
pub fn hook(name: &str, kind: &str, command: &str) -> String {
    format!(
        "apiVersion: batch/v1
kind: Job
metadata:
  name: {name}
  annotations:
    argocd.argoproj.io/hook: {kind}
spec:
  backoffLimit: 0
  template:
    spec:
      restartPolicy: Never
      containers:
      - {{name: c, image: registry.example.org/hook:v1, command: {command}}}
"
    )
}

fn is_complete(job: &Value) -> bool {
    job.pointer("/status/succeeded").and_then(Value::as_u64) == Some(1)
}

pub fn an_application_goes_while_its_hook_runs(world: &mut World) {
    let endless = hook("endless", "PreSync", "[sleep, \"600\"]");
    let repo = Repo::with(&[
        ("app/endless.yaml", endless.as_str()),
        ("app/cm.yaml", config_map("late", "1").as_str()),
    ]);
    world.deploy("stopped", &repo.url(), "app", &json!({}));
    let waits = |app: &Value| {
        text(app, "/status/operationState/message")
            == "waiting for completion of hook batch/Job/endless"
    };
    world.until("stopped", "waiting for its hook", waits);
    world.kube.delete(&app_path("stopped"));
    eventually(PATIENCE, "the Application is gone", || {
        world
            .get_app("stopped")
            .map_or(Ok(()), |app| Err(summary(&app)))
    });
    eventually(PATIENCE, "the hook is gone", || {
        world
            .find("jobs", "endless")
            .map_or(Ok(()), |job| Err(job.to_string()))
    });
}

pub fn hooks_run_before_and_after_a_deletion(world: &mut World) {
    let failing = hook("before", "PreDelete", "[\"false\"]");
    let repo = Repo::with(&[
        ("app/cm.yaml", config_map("kept", "1").as_str()),
        ("app/before.yaml", failing.as_str()),
        (
            "app/after.yaml",
            hook("after", "PostDelete", "[\"true\"]").as_str(),
        ),
    ]);
    world.deploy("hooked", &repo.url(), "app", &json!({}));
    let app = world.until_well("hooked", &repo.head());
    let finalizers = app
        .pointer("/metadata/finalizers")
        .and_then(Value::as_array)
        .map_or(0, Vec::len);
    assert_eq!(
        (finalizers, world.list("jobs").len()),
        (5, 0),
        "each hook has its two finalizers, and none ran"
    );
    world.kube.delete(&app_path("hooked"));
    // A failed hook blocks the deletion, and is reported.
    let told = |app: &Value| {
        let conditions = app
            .pointer("/status/conditions")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        conditions.iter().any(|c| {
            c["type"] == "DeletionError" && text(c, "/message").contains("PreDelete hook(s) failed")
        })
    };
    world.until("hooked", "held back", told);
    assert!(
        world.find("configmaps", "kept").is_some(),
        "nothing is deleted before its hook has succeeded"
    );
    repo.commit(
        &[(
            "app/before.yaml",
            hook("before", "PreDelete", "[\"true\"]").as_str(),
        )],
        &[],
    );
    eventually(PATIENCE, "the Application is gone", || {
        world
            .get_app("hooked")
            .map_or(Ok(()), |app| Err(summary(&app)))
    });
    assert_eq!(world.find("configmaps", "kept"), None);
    assert!(
        world
            .find("jobs", "after")
            .is_some_and(|job| is_complete(&job)),
        "the last hook ran, and its policy keeps it"
    );
}
