//! Syncs that end early: waves that time out, and newer revisions.

use crate::scenarios::{
    deletion::hook,
    world::{World, config_map, text},
};
use serde_json::{Value, json};
use tiphys_testkit::{PATIENCE, Repo, apps_path, eventually, namespaced};

/// An Application with automated sync and these sync options.
fn deploy(world: &World, name: &str, repo: &Repo, options: &[&str]) {
    let mut app = world.application(name, &repo.url(), "app", &json!({"prune": true}));
    let options: Vec<&str> = options
        .iter()
        .chain(&["CreateNamespace=true"])
        .copied()
        .collect();
    app["spec"]["syncPolicy"]["syncOptions"] = json!(options);
    world.kube.create(&apps_path(), &app);
}

fn message(app: &Value) -> String {
    text(app, "/status/operationState/message")
}

fn ended(app: &Value, phase: &str) -> bool {
    app.get("operation").is_none() && text(app, "/status/operationState/phase") == phase
}

/// The message of an Event about an Application, if one contains all of these words.
fn told(world: &World, app: &str, words: &[&str]) -> Result<String, String> {
    let events = world.kube.list(&namespaced("v1", "argocd", "events"));
    let of_app = events
        .iter()
        .filter(|e| text(e, "/involvedObject/name") == app);
    let texts: Vec<String> = of_app.map(|e| text(e, "/message")).collect();
    texts
        .iter()
        .find(|t| words.iter().all(|w| t.contains(w)))
        .cloned()
        .ok_or(format!("{texts:?}"))
}

pub fn a_wave_that_takes_too_long_is_rolled_back(world: &mut World) {
    let repo = Repo::with(&[("app/cm.yaml", config_map("back", "1").as_str())]);
    deploy(
        world,
        "back",
        &repo,
        &["WaveTimeout=2s", "OnTimeout=rollback"],
    );
    let good = repo.head();
    world.until_well("back", &good);
    let remembered =
        |app: &Value| text(app, "/metadata/annotations/tiphys.dev~1last-healthy") == "0";
    world.until("back", "known to be healthy", remembered);
    let endless = hook("endless", "PostSync", "[sleep, \"600\"]");
    let bad = repo.commit(
        &[
            ("app/cm.yaml", config_map("back", "2").as_str()),
            ("app/endless.yaml", endless.as_str()),
        ],
        &[],
    );
    world.refresh("back");
    let app = world.until("back", "rolled back", |app| {
        ended(app, "Succeeded") && message(app).contains("rolled back")
    });
    assert_eq!(
        message(&app),
        format!("successfully synced (all tasks run); rolled back from {bad}")
    );
    assert_eq!(
        world.value("back", "value").as_deref(),
        Some("1"),
        "what was healthy is back"
    );
    assert_eq!(text(&app, "/status/history/1/revision"), good);
    let why =
        "wave 0 of PostSync took longer than 2s, waiting for completion of hook batch/Job/endless";
    eventually(PATIENCE, "an Event says why", || {
        told(
            world,
            "back",
            &[&bad, why, &format!("rolling back to {good}")],
        )
    });
    eventually(PATIENCE, "the hook is gone", || {
        world
            .find("jobs", "endless")
            .map_or(Ok(()), |job| Err(job.to_string()))
    });
    // It does not loop: the abandoned revision is not tried again until there is a new one.
    let refused = |app: &Value| {
        let conditions = app
            .pointer("/status/conditions")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        let begin = format!("Failed last sync attempt to [{bad}]: ");
        conditions
            .iter()
            .any(|c| c["type"] == "SyncError" && text(c, "/message").starts_with(&begin))
    };
    world.refresh("back");
    let app = world.until("back", "OutOfSync and left so", |app| {
        refused(app) && text(app, "/status/sync/status") == "OutOfSync"
    });
    assert_eq!(
        app.pointer("/status/history")
            .and_then(Value::as_array)
            .map(Vec::len),
        Some(2)
    );
    let mended = repo.commit(
        &[("app/cm.yaml", config_map("back", "3").as_str())],
        &["app/endless.yaml"],
    );
    world.refresh("back");
    world.until_well("back", &mended);
}

/// The text after the reason of a wave that timed out. Whether the second already runs a hook or
/// still waits for the first one's deletions depends on the cluster.
fn too_long(app: &Value) -> String {
    let begin = "one or more synchronization tasks completed unsuccessfully, reason: wave 0 of PreSync took longer than 1s, waiting for ";
    let said = message(app);
    let waited = said.strip_prefix(begin).unwrap_or_else(|| panic!("{said}"));
    let hook = ["completion", "deletion"]
        .iter()
        .find_map(|what| waited.strip_prefix(what));
    hook.and_then(|h| h.strip_prefix(" of hook batch/Job/endless"))
        .unwrap_or_else(|| panic!("{said}"))
        .to_owned()
}

pub fn a_wave_that_takes_too_long_is_tried_again(world: &mut World) {
    let endless = hook("endless", "PreSync", "[sleep, \"600\"]");
    let repo = Repo::with(&[
        ("app/cm.yaml", config_map("again", "1").as_str()),
        ("app/endless.yaml", endless.as_str()),
    ]);
    deploy(world, "wrong", &repo, &["OnTimeout=maybe"]);
    let app = world.until("wrong", "refused", |app| ended(app, "Error"));
    assert_eq!(
        message(&app),
        "sync option \"OnTimeout=maybe\": the value must be fail, retry or rollback"
    );
    let mut app = world.application("again", &repo.url(), "app", &json!({}));
    app["spec"]["syncPolicy"]["syncOptions"] =
        json!(["CreateNamespace=true", "WaveTimeout=1s", "OnTimeout=retry"]);
    app["spec"]["syncPolicy"]["retry"] = json!({"limit": 1, "backoff": {"duration": "1s"}});
    world.kube.create(&apps_path(), &app);
    let app = world.until("again", "ended", |app| ended(app, "Failed"));
    assert!(
        too_long(&app).ends_with(" (retried 1 times)."),
        "{}",
        message(&app)
    );
    assert_eq!(
        world.value("again", "value"),
        None,
        "what comes after the hook was not applied"
    );
    // It is not retried without a request.
    world.change_app("again", &json!({"spec": {"syncPolicy": {"syncOptions": ["CreateNamespace=true", "WaveTimeout=1s"]}}}));
    world.sync("again", &json!({"syncOptions": ["WaveTimeout=1s"]}));
    let app = world.until("again", "ended at once", |app| {
        ended(app, "Failed") && !message(app).contains("retried")
    });
    assert_eq!(too_long(&app), "");
}

pub fn a_newer_revision_takes_the_place_of_a_sync(world: &mut World) {
    // Not a hook, but a Job in the first wave that does not end.
    let endless = hook("endless", "PreSync", "[sleep, \"600\"]").replace(
        "argocd.argoproj.io/hook: PreSync",
        "argocd.argoproj.io/sync-wave: \"-1\"",
    );
    let repo = Repo::with(&[
        ("app/cm.yaml", config_map("newer", "1").as_str()),
        ("app/endless.yaml", endless.as_str()),
    ]);
    deploy(world, "newer", &repo, &["Supersede=true"]);
    let old = repo.head();
    world.until("newer", "waiting", |app| {
        message(app) == "waiting for healthy state of batch/Job/endless"
    });
    let new = repo.commit(
        &[("app/cm.yaml", config_map("newer", "2").as_str())],
        &["app/endless.yaml"],
    );
    world.refresh("newer");
    world.until_well("newer", &new);
    assert_eq!(world.value("newer", "value").as_deref(), Some("2"));
    let when = "while waiting for healthy state of batch/Job/endless";
    let words = format!("superseded: the sync of {old} was ended {when}, because {new} is newer");
    eventually(PATIENCE, "an Event names both revisions", || {
        told(world, "newer", &[&words])
    });
    // Without the option a running sync is not interrupted.
    let repo = Repo::with(&[
        ("app/cm.yaml", config_map("left", "1").as_str()),
        ("app/endless.yaml", endless.as_str()),
    ]);
    deploy(world, "left", &repo, &[]);
    world.until("left", "waiting", |app| {
        message(app) == "waiting for healthy state of batch/Job/endless"
    });
    let new = repo.commit(
        &[("app/cm.yaml", config_map("left", "2").as_str())],
        &["app/endless.yaml"],
    );
    world.refresh("left");
    let app = world.until("left", "compared with the new revision", |app| {
        text(app, "/status/sync/revision") == new
    });
    assert_eq!(text(&app, "/status/operationState/phase"), "Running");
    world.change_app(
        "left",
        &json!({"status": {"operationState": {"phase": "Terminating"}}}),
    );
    world.until_well("left", &new);
}

pub fn a_dry_run_tells_its_plan(world: &mut World) {
    let hook = hook("before", "PreSync", "[\"true\"]");
    let repo = Repo::with(&[
        ("app/cm.yaml", config_map("planned", "1").as_str()),
        ("app/before.yaml", hook.as_str()),
    ]);
    let mut app = world.application("planned", &repo.url(), "app", &json!({}));
    app["spec"]["syncPolicy"]["automated"] = Value::Null;
    world.kube.create(&apps_path(), &app);
    world.until("planned", "compared", |app| {
        text(app, "/status/sync/status") == "OutOfSync"
    });
    let info = json!([{"name": "tiphys.dev/show-plan", "value": "true"}]);
    world.change_app(
        "planned",
        &json!({"operation": {"info": info, "sync": {"dryRun": true}}}),
    );
    let app = world.until("planned", "tried", |app| ended(app, "Succeeded"));
    let ns = &world.namespace;
    let expected = format!(
        "successfully synced (no more tasks)
dry run of {}: 2 steps
PreSync
  wave 0
    run hook   batch/Job {ns}/before (BeforeHookCreation)
Sync
  wave 0, after PreSync wave 0 to be healthy and complete
    apply      ConfigMap {ns}/planned
",
        repo.head()
    );
    assert_eq!(message(&app), expected);
    assert_eq!(
        (
            world.find("jobs", "before"),
            world.value("planned", "value")
        ),
        (None, None),
        "nothing was done"
    );
}
