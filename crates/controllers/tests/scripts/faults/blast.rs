//! Blast radius: a broken kind, webhook, cluster or Application never stops the others.

use super::stage::{Stage, stage};
use crate::scripts::wire::{Moment, Plan};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How soon unrelated Applications are synced.
const ON_TIME: Duration = Duration::from_secs(5);
/// More than there are workers.
const MANY: usize = 20;
const GOOD: usize = 5;

/// A commit with a folder for each of the good ones, and one `app`.
async fn commit(stage: &mut Stage<'_>) {
    let folders: String = (0..GOOD)
        .map(|n| format!("  /good-{n}\n  configmap good-{n}\n"))
        .collect();
    stage
        .act(&format!("commit\n  configmap first\n{folders}"))
        .await;
}

/// Creates Applications `good-0`, …, each with a ConfigMap of its own.
async fn good_ones(stage: &mut Stage<'_>) {
    for n in 0..GOOD {
        stage
            .act(&format!(
                "good-{n}: app\n  source: {{path: good-{n}}}\n  syncPolicy: {{automated: {{}}}}"
            ))
            .await;
    }
}

/// Waits until those are synced; an error lists those that are not, in time.
async fn all_well(stage: &Stage<'_>) {
    let began = Instant::now();
    loop {
        let mut late = Vec::new();
        for n in 0..GOOD {
            let app = stage.app(&format!("{}-good-{n}", stage.play.apps[0])).await;
            if app["status"]["operationState"]["phase"] != "Succeeded"
                || app["status"]["sync"]["status"] != "Synced"
            {
                late.push(format!("good-{n}: {}", app["status"]));
            }
        }
        if late.is_empty() {
            return;
        }
        assert!(
            began.elapsed() < ON_TIME,
            "{} of {GOOD} are not on time: {}",
            late.len(),
            late[0]
        );
        sleep(Duration::from_millis(100)).await;
    }
}

fn refused(what: &str, code: u16) -> Plan {
    Plan {
        refusals: vec![(
            what.to_owned(),
            code,
            "conversion webhook failed: connection refused".to_owned(),
        )],
        ..Plan::default()
    }
}

#[test]
fn a_kind_that_cannot_be_listed() {
    for code in [500, 403, 404, 503] {
        stage(refused("GET /api/v1/secrets", code), async |stage| {
            commit(stage).await;
            good_ones(stage).await;
            all_well(stage).await;
        });
    }
}

#[test]
fn a_kind_that_nobody_can_write() {
    stage(
        refused("POST /api/v1/namespaces/ns-x0y0/services", 500),
        async |stage| {
            stage.act("commit\n  service web\n  configmap beside").await;
            stage.act("app\n  syncPolicy: {automated: {}, retry: {limit: -1, backoff: {duration: 1s}}}").await;
            sleep(ON_TIME).await;
            let path = stage.play.target("configmap/beside").await.expect("a kind");
            assert!(
                stage.play.ground.find(&path).await.is_some(),
                "what is beside it is applied"
            );
        },
    );
}

#[test]
fn a_group_that_is_not_served() {
    stage(refused("GET /apis/batch", 503), async |stage| {
        commit(stage).await;
        good_ones(stage).await;
        all_well(stage).await;
    });
}

#[test]
fn c11_a_cluster_that_never_answers() {
    // Connections are accepted, but nothing is ever sent.
    let silence = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let server = format!("https://{}", silence.local_addr().expect("bound"));
    stage(Plan::default(), async |stage| {
        let data = json!({"name": "silent", "server": server, "config": json!({"tlsClientConfig": {"insecure": true}}).to_string()});
        let metadata =
            json!({"name": "silent", "labels": {"argocd.argoproj.io/secret-type": "cluster"}});
        let secret =
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": data});
        let secrets = format!(
            "/api/v1/namespaces/{}/secrets",
            crate::scripts::ground::NAMESPACE
        );
        stage
            .play
            .ground
            .send(http::Method::POST, &secrets, Some(&secret))
            .await
            .expect("it is created");
        commit(stage).await;
        stage.act("moved: app\n  syncPolicy: {automated: {}}").await;
        // Known by now, and synced.
        sleep(Duration::from_secs(1)).await;
        for n in 0..MANY {
            stage.act(&format!("far-{n}: app\n  destination: {{server: \"{server}\"}}\n  syncPolicy: {{automated: {{}}}}")).await;
        }
        stage
            .act(&format!(
                "moved: app\n  destination: {{server: \"{server}\"}}"
            ))
            .await;
        // And in hand by now.
        sleep(Duration::from_millis(500)).await;
        good_ones(stage).await;
        all_well(stage).await;
        sleep(Duration::from_secs(200)).await;
        stage.act("good-0: refresh").await;
        all_well(stage).await;
        let far = stage.app(&format!("{}-far-0", stage.play.apps[0])).await;
        let told = super::stage::conditions(&far, "ComparisonError");
        assert!(
            told.first()
                .is_some_and(|text| text.starts_with("Failed to load live state: ")
                    && text.contains("no answer within 10s")),
            "{}",
            far["status"]
        );
        // Nothing is known any more of what was synced before.
        let moved = stage.app(&format!("{}-moved", stage.play.apps[0])).await;
        let resources = moved["status"]["resources"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        assert_eq!(
            resources.iter().map(|r| &r["status"]).collect::<Vec<_>>(),
            [&json!("Unknown")],
            "{}",
            moved["status"]
        );
        assert_eq!(moved["status"]["sync"]["status"], "Unknown");
        stage.act("moved: sync").await;
        sleep(ON_TIME).await;
        let state =
            stage.app(&format!("{}-moved", stage.play.apps[0])).await["status"]["operationState"]
                .clone();
        let told = state["message"].as_str().unwrap_or_default();
        assert!(
            told.starts_with("Failed to get destination cluster: Failed to load live state: "),
            "{state}"
        );
        assert_eq!(state["phase"], "Error");
    });
}

#[test]
fn an_application_that_is_poison() {
    stage(Plan::default(), async |stage| {
        commit(stage).await;
        stage.act("app\n  syncPolicy: {automated: {}}").await;
        good_ones(stage).await;
        all_well(stage).await;
        // The next reconcile panics: not one of Applications that are idle.
        sleep(Duration::from_secs(1)).await;
        stage
            .play
            .ground
            .fault
            .store(true, std::sync::atomic::Ordering::Relaxed);
        stage.act("refresh").await;
        for n in 0..GOOD {
            stage.act(&format!("good-{n}: sync")).await;
        }
        all_well(stage).await;
        // Data that cannot be parsed at all.
        let odd = json!({"status": {"history": "none"}});
        let path = stage.play.app_path(&stage.play.apps[0]);
        let _: Result<Value, _> = stage
            .play
            .ground
            .send(http::Method::PATCH, &path, Some(&odd))
            .await;
        stage.act("good-0: refresh").await;
        all_well(stage).await;
    });
}

#[test]
fn c11_a_kind_that_cannot_be_read_makes_those_who_have_it_unknown() {
    stage(Plan::default(), async |stage| {
        stage
            .play("commit\n  configmap one\n  secret two\n  /other\n  service three\napp\nsync")
            .await;
        stage
            .play("other: app\n  source: {path: other}\nother: sync")
            .await;
        let writes = stage.wire.writes().len();
        let refusal = (
            "GET /api/v1/configmaps".to_owned(),
            403,
            "configmaps is forbidden".to_owned(),
        );
        // What one process already knows, the next one cannot read.
        stage.wire.plan(|plan| {
            (plan.refusals, plan.deaths) = (vec![refusal], vec![(writes, Moment::Before)])
        });
        stage.play("refresh\nother: refresh\npass 30s").await;
        let app = stage.first().await;
        let told = super::stage::conditions(&app, "ComparisonError");
        let begin = "Failed to load live state: failed to load state of resource ConfigMap: configmaps is forbidden";
        assert!(told.len() == 1 && told[0].starts_with(begin), "{told:?}");
        let status = &app["status"];
        assert_eq!(
            [&status["sync"]["status"], &status["health"]["status"]],
            [&json!("Unknown"); 2]
        );
        let resources = status["resources"].as_array().cloned().unwrap_or_default();
        assert_eq!(
            resources.iter().map(|r| &r["status"]).collect::<Vec<_>>(),
            [&json!("Unknown"); 2],
            "of both kinds"
        );
        let other = stage.app(&format!("{}-other", stage.play.apps[0])).await;
        assert_eq!(
            other["status"]["sync"]["status"], "Synced",
            "it has none of that kind: {}",
            other["status"]
        );
        // A sync does not take what it cannot read for missing.
        let before = stage.wire.writes().len();
        stage.play("sync\npass 30s").await;
        let state = stage.first().await["status"]["operationState"].clone();
        let told = state["message"].as_str().unwrap_or_default();
        assert!(
            state["phase"] == "Error" && told.contains("configmaps is forbidden"),
            "{state}"
        );
        let made = stage.wire.writes().split_off(before);
        let made: Vec<_> = made.iter().filter(|w| w.what.contains("/ns-")).collect();
        assert!(made.is_empty(), "{} writes", made.len());
    });
}

/// What one process already knows, the next one cannot read.
async fn restarted_without(stage: &mut Stage<'_>, path: &str, then: &str) {
    let writes = stage.wire.writes().len();
    let refusal = (format!("GET {path}"), 403, "it is forbidden".to_owned());
    stage.wire.plan(|plan| {
        (plan.refusals, plan.deaths) = (vec![refusal], vec![(writes, Moment::Before)]);
    });
    stage.play(then).await;
}

#[test]
fn orphans_that_cannot_be_read_are_still_told() {
    stage(Plan::default(), async |stage| {
        stage
            .play("project\n  orphanedResources: {warn: true}\ncommit\n  service one\napp\n  project: $APP\nsync")
            .await;
        stage
            .play("create configmap stranger\nrefresh\npass 10s")
            .await;
        let told = async |stage: &Stage<'_>| {
            super::stage::conditions(&stage.first().await, "OrphanedResourceWarning")
        };
        let known = told(stage).await;
        assert_eq!(known, ["Application has 1 orphaned resources"], "at first");
        restarted_without(stage, "/api/v1/configmaps", "refresh\npass 30s").await;
        assert_eq!(told(stage).await, known, "nobody knows better");
        let app = stage.first().await;
        assert_eq!(app["status"]["sync"]["status"], "Synced", "{app}");

        stage.wire.plan(|plan| plan.refusals.clear());
        stage
            .play("delete configmap/stranger\nrefresh\npass 60s")
            .await;
        assert!(told(stage).await.is_empty());
    });
}

#[test]
fn a_hook_that_cannot_be_read_is_not_taken_for_one_that_is_to_be_made() {
    stage(Plan::default(), async |stage| {
        stage
            .play("commit\n  configmap one\n  job before hook=PreSync delete=HookSucceeded sleep=20\napp")
            .await;
        stage.act("sync").await;
        stage.play("pass 2s").await;
        let hooks = stage.written("POST /apis/batch/v1/").len();
        assert_eq!(hooks, 1, "it runs");
        restarted_without(stage, "/apis/batch/v1/jobs", "refresh\npass 60s").await;
        let state = stage.first().await["status"]["operationState"].clone();
        let told = state["message"].as_str().unwrap_or_default();
        assert!(told.contains("it is forbidden"), "{state}");
        assert_eq!(stage.written("POST /apis/batch/v1/").len(), 1);
        assert!(
            stage.written("POST /api/v1/namespaces/ns-").is_empty(),
            "its phase is not over"
        );
    });
}
