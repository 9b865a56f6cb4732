//! Errors: a fifth or a half of all requests fails while Git changes; afterwards everything is as
//! in Git.

use super::{
    asked, side_by_side,
    stage::{Stage, conditions, stage},
};
use crate::scripts::{
    ground::NAMESPACE,
    wire::{Errors, Plan},
};
use serde_json::Value;
use std::{collections::BTreeSet, time::Duration};
use tiphys_testkit::{Rng, first_seed};
use tokio::time::{Instant, sleep};

/// Seeds in `make test`.
const FEW: usize = 3;
/// Seeds that once did not recover: what discovery had not learned at first was not requested again
/// for minutes.
const FOUND: [u64; 2] = [50, 187];
/// Seeds with `TIPHYS_FAULTS=all`.
const MANY: usize = 1000;
const COMMITS: u64 = 4;
/// How long recovery may take after the errors end: longer than the longest delay between two
/// attempts.
const PATIENCE: Duration = Duration::from_secs(300);
/// Objects in every commit.
const STABLE: &str =
    "  configmap stable-one\n  secret stable-two wave=-1\n  deployment stable-three\n";

/// Further objects that a commit may contain.
const OBJECTS: [&str; 8] = [
    "configmap a k=v1",
    "configmap b wave=1",
    "secret c wave=-1",
    "service d",
    "deployment e wave=1",
    "role f",
    "job before-* hook=PreSync delete=HookSucceeded",
    "job after hook=PostSync delete=BeforeHookCreation",
];

fn commit(rng: &mut Rng, at: u64) -> String {
    let chosen: Vec<&str> = OBJECTS
        .iter()
        .copied()
        .filter(|_| rng.below(2) == 0)
        .collect();
    format!(
        "commit\n{STABLE}  configmap round at={at}\n{}",
        chosen
            .iter()
            .map(|o| format!("  {o}\n"))
            .collect::<String>()
    )
}

/// What is not as it should be, if anything.
async fn trouble(stage: &Stage<'_>, names: &BTreeSet<String>) -> Option<String> {
    let app = stage.first().await;
    let at = |pointer: &str| {
        app.pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or("-")
            .to_owned()
    };
    let states = [
        "/status/sync/status",
        "/status/health/status",
        "/status/operationState/phase",
    ]
    .map(at);
    let newest = stage
        .play
        .commits
        .last()
        .is_some_and(|sha| *sha == at("/status/sync/revision"));
    let resources = app["status"]["resources"].as_array().into_iter().flatten();
    let listed: BTreeSet<String> = resources
        .filter(|r| r["hook"] != true)
        .filter_map(|r| r["name"].as_str())
        .map(str::to_owned)
        .collect();
    let well = states == ["Synced", "Healthy", "Succeeded"]
        && newest
        && app.get("operation").is_none()
        && listed == *names;
    (!well).then(|| {
        format!(
            "newest {newest}, {listed:?} instead of {names:?}: {}",
            app["status"]
        )
    })
}

async fn recovers(stage: &mut Stage<'_>, rng: &mut Rng) -> Result<(), String> {
    let mut last = commit(rng, 0);
    let policy = "syncPolicy: {automated: {prune: true, selfHeal: true}, retry: {limit: -1, backoff: {duration: 2s, maxDuration: 20s}}}";
    stage.act(&last).await;
    stage.act(&format!("app\n  {policy}")).await;
    for at in 1..COMMITS {
        sleep(Duration::from_millis(rng.below(15_000))).await;
        last = commit(rng, at);
        stage.act(&last).await;
    }
    sleep(Duration::from_millis(rng.below(15_000))).await;
    stage.wire.plan(|plan| plan.errors = None);
    let named = last
        .lines()
        .skip(1)
        .filter(|line| !line.contains("hook="))
        .filter_map(|line| line.split_whitespace().nth(1));
    let names: BTreeSet<String> = named.map(str::to_owned).collect();
    let began = Instant::now();
    while let Some(trouble) = trouble(stage, &names).await {
        if began.elapsed() > PATIENCE {
            return Err(format!("{PATIENCE:?} after the errors: {trouble}"));
        }
        sleep(Duration::from_secs(1)).await;
    }
    let deleted = stage
        .written("DELETE ")
        .into_iter()
        .filter(|w| w.contains("/stable-"))
        .collect::<Vec<_>>();
    let twice = stage.wire.repeated_hooks();
    match (deleted.as_slice(), twice.as_slice()) {
        ([], []) => Ok(()),
        _ => Err(format!(
            "deleted: {deleted:?}; hooks that ran twice: {twice:?}"
        )),
    }
}

fn under_errors(percent: u64, few: usize) {
    let first = first_seed();
    let count = asked().map_or(MANY, |asked| if asked == super::FEW { few } else { asked });
    let found = FOUND.into_iter().filter(|_| asked() == Some(super::FEW));
    let seeds: Vec<u64> = (first..).take(count).chain(found).collect();
    let (longest, faults) = (
        std::sync::Mutex::new(Duration::ZERO),
        std::sync::atomic::AtomicUsize::new(0),
    );
    let wrong = side_by_side(&seeds, |seed| {
        let mut rng = Rng::new(*seed);
        let errors = Errors {
            rng: Rng::new(rng.next_u64()),
            percent,
        };
        let result = stage(
            Plan {
                errors: Some(errors),
                ..Plan::default()
            },
            async |stage| {
                let began = Instant::now();
                let result = recovers(stage, &mut rng).await;
                let mut longest = longest.lock().expect("no panic");
                *longest = began.elapsed().max(*longest);
                faults.fetch_add(
                    stage.wire.faults().values().sum(),
                    std::sync::atomic::Ordering::Relaxed,
                );
                result
            },
        );
        result
            .err()
            .map(|problem| format!("== TIPHYS_SEED={seed} TIPHYS_FAULTS=1: {problem}"))
            .into_iter()
            .collect()
    });
    let longest = longest.into_inner().expect("no panic").as_secs();
    println!(
        "errors of {percent} %: {} seeds from {first}, {} errors, the longest took {longest} s",
        seeds.len(),
        faults.into_inner()
    );
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        seeds.len(),
        wrong.join("\n")
    );
}

#[test]
fn errors_of_a_fifth_of_all_requests() {
    under_errors(20, FEW);
}

#[test]
fn errors_of_half_of_all_requests() {
    under_errors(50, 1);
}

/// Runs with a conflict at each write of the Application, of which there are more than `few`.
/// `wrong` is what is wrong after a conflict at the write with this number.
fn nothing_is_wrong_after_conflicts(
    writes: &[String],
    few: usize,
    wrong: impl Fn(usize) -> Option<String> + Sync,
) {
    let of_app: Vec<usize> = (0..writes.len())
        .filter(|at| writes[*at].starts_with("PATCH") && writes[*at].contains("/applications/"))
        .collect();
    assert!(of_app.len() > few, "{writes:?}");
    let wrong = side_by_side(&of_app, |at| {
        wrong(*at)
            .map(|told| format!("conflict at write {at}: {told}"))
            .into_iter()
            .collect()
    });
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        of_app.len(),
        wrong.join("\n")
    );
}

/// An automatic sync with hooks, with one conflict on a write. Returns the writes, and what is
/// wrong with its records.
fn with_conflict(at: Option<usize>) -> (Vec<String>, Option<String>) {
    const SYNC: &str = "commit\n  job before hook=PreSync\n  configmap one\n  job after hook=PostSync\napp\n  syncPolicy: {automated: {}}\npass 60s";
    stage(
        Plan {
            conflict: at,
            ..Plan::default()
        },
        async |stage| {
            stage.play(SYNC).await;
            let (app, sha) = (stage.first().await, stage.play.commits[0].clone());
            let told = |pointer: &str| {
                app.pointer(pointer)
                    .and_then(Value::as_str)
                    .unwrap_or_default()
                    .to_owned()
            };
            let recorded = |at: &str| {
                told(&format!("{at}/revision")) == sha
                    && told(&format!("{at}/source/path")) == "app"
            };
            let history = app["status"]["history"].as_array().map_or(0, Vec::len);
            let well = history == 1
                && recorded("/status/history/0")
                && recorded("/status/operationState/syncResult");
            let ended = told("/status/operationState/phase") == "Succeeded"
                && stage.wire.repeated_hooks().is_empty();
            let writes = stage
                .wire
                .writes()
                .into_iter()
                .map(|write| write.what)
                .collect();
            (writes, (!well || !ended).then(|| app["status"].to_string()))
        },
    )
}

/// A reconcile that restarts because of a conflict has a record without what was not stored yet.
#[test]
fn a_conflict_at_any_write_loses_nothing_of_what_is_recorded() {
    let (writes, wrong) = with_conflict(None);
    assert_eq!(wrong, None, "without a conflict");
    nothing_is_wrong_after_conflicts(&writes, 3, |at| with_conflict(Some(at)).1);
}

/// What became of an automatic sync.
struct Ended {
    writes: Vec<String>,
    /// The messages of its results.
    results: Vec<String>,
    /// How many Events told its end.
    told: usize,
}

/// An automatic sync with one conflict on a write.
fn ended_with_conflict(at: Option<usize>) -> Ended {
    const SYNC: &str =
        "commit\n  configmap one\napp\n  syncPolicy: {automated: {selfHeal: true}}\npass 60s";
    stage(
        Plan {
            conflict: at,
            ..Plan::default()
        },
        async |stage| {
            stage.play(SYNC).await;
            let app = stage.first().await;
            let results = app.pointer("/status/operationState/syncResult/resources");
            let results = results.and_then(Value::as_array).into_iter().flatten();
            let message = |r: &Value| r["message"].as_str().unwrap_or_default().to_owned();
            let events = format!("/api/v1/namespaces/{NAMESPACE}/events");
            let events = stage.play.ground.find(&events).await.unwrap_or_default();
            let events = events["items"].as_array().into_iter().flatten();
            Ended {
                results: results.map(message).collect(),
                writes: stage.wire.writes().into_iter().map(|w| w.what).collect(),
                told: events
                    .filter(|event| event["reason"] == "OperationCompleted")
                    .count(),
            }
        },
    )
}

/// A sync whose end could not be stored ends again; it is not repeated, which would find everything
/// unchanged, and its end is told and counted once.
#[test]
fn a_conflict_at_the_end_of_a_sync_does_not_change_its_results() {
    let wrong = |ended: &Ended| {
        (ended.results != ["configmap/one created"] || ended.told != 1)
            .then(|| format!("{:?}, told {} times", ended.results, ended.told))
    };
    let without = ended_with_conflict(None);
    assert_eq!(wrong(&without), None, "without a conflict");
    let writes = without.writes;
    nothing_is_wrong_after_conflicts(&writes, 1, |at| wrong(&ended_with_conflict(Some(at))));
}

/// A definition that is not served for a moment is not found either. No event follows that would
/// call for another reconcile.
#[test]
fn a_not_found_that_is_not_about_the_application_is_tried_again() {
    let told = "the server could not find the requested resource";
    let refusals = vec![("PATCH /apis/argoproj.io".to_owned(), 404, told.to_owned())];
    stage(
        Plan {
            refusals,
            ..Plan::default()
        },
        async |stage| {
            stage.play("commit\n  configmap one\napp").await;
            let written = stage.written("/applications/");
            assert!(written.iter().any(|w| w.ends_with(" 404")), "{written:?}");
            stage.wire.plan(|plan| plan.refusals.clear());
            sleep(PATIENCE).await;
            let app = stage.first().await;
            assert_eq!(app["status"]["sync"]["status"], "OutOfSync");
        },
    );
}

/// The finalizer of a project that nothing needs any more goes as soon as it can.
#[test]
fn a_not_found_that_is_not_about_the_project_is_tried_again() {
    stage(Plan::default(), async |stage| {
        stage.play("project").await;
        let held = "edit project metadata.finalizers=[\"resources-finalizer.argocd.argoproj.io\"]";
        stage.play(held).await;
        let told = "the server could not find the requested resource".to_owned();
        let refused = ("/appprojects/".to_owned(), 404, told);
        stage.wire.plan(|plan| plan.refusals = vec![refused]);
        stage.play("delete project\npass 30s").await;
        let path = stage.play.target("project").await.expect("a kind");
        let written = stage.written("/appprojects/");
        assert!(written.iter().any(|w| w.ends_with(" 404")), "{written:?}");
        assert!(stage.play.ground.find(&path).await.is_some());
        stage.wire.plan(|plan| plan.refusals.clear());
        sleep(PATIENCE).await;
        assert!(stage.play.ground.find(&path).await.is_none());
    });
}

/// Who deletes an Application of a cluster that does not exist leaves nothing behind. Whether it
/// exists is only known while the Secrets of clusters are watched.
#[test]
fn a_deletion_waits_while_it_is_unknown_whether_the_cluster_exists() {
    stage(Plan::default(), async |stage| {
        stage
            .play(
                "commit\n  configmap settings\napp finalizer\nsync\napp\n  \
                 destination: {server: \"https://nowhere.example.org\"}",
            )
            .await;
        let secrets = format!("GET /api/v1/namespaces/{NAMESPACE}/secrets$");
        let refusals = vec![(secrets, 403, "not permitted".to_owned())];
        stage.wire.plan(|plan| plan.refusals = refusals);
        // The present watch ends meanwhile, and another one is refused.
        stage.play("pass 30m\ndelete app\npass 5m").await;
        let told = conditions(&stage.first().await, "DeletionError");
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(
            told[0].ends_with(
                "; the deletion waits because the Secrets of clusters, or other records, cannot be \
                 watched at present"
            ),
            "{told:?}"
        );
        stage.wire.plan(|plan| plan.refusals.clear());
        stage.play("pass 5m").await;
        assert_eq!(stage.first().await, Value::Null);
    });
}
