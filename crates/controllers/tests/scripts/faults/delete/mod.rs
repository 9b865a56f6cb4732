//! Deletion safety: whatever fails, an Application's resources are deleted with it, and nothing
//! else is.
//!
//! Each case is an Application that was synced and is then deleted. A deletion that must wait
//! reports why, and continues when the cause is gone. At the end the Application's resources are
//! gone, and others exist with the same uid as before. The same with the controller killed before
//! and after each of its writes, on both kinds of cluster.

mod cases;

use super::{
    FEW, asked, cases, side_by_side, some,
    stage::{Stage, conditions, real_stage, stage},
};
use crate::scripts::{
    ground::Ground,
    wire::{Moment, Plan, Wire},
};
use cases::{CASES, Case};
use http::Method;
use serde_json::{Value, json};
use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};
use tiphys_testkit::{Rng, first_seed};
use tokio::time::sleep;

/// Until the controller has seen what happened.
const NOTICED: Duration = Duration::from_secs(4);
const SOON: Duration = Duration::from_secs(60);
const LONG: Duration = Duration::from_secs(100);
const LONGER: Duration = Duration::from_secs(180);
/// Control planes that are used side by side.
const LANES: usize = 8;
/// Cases that are killed on a real API server by default, each at one write.
const REALLY_KILLED: usize = 8;

/// A write of the deletion, counted from its first, at which the controller dies.
type Death = (usize, Moment);

/// The object; `None`: it does not exist, or its kind does not.
async fn find(stage: &Stage<'_>, target: &str) -> Option<Value> {
    let path = stage.play.target(target).await?;
    stage.play.ground.find(&path).await
}

async fn uids(stage: &Stage<'_>, targets: &[&'static str]) -> Vec<(&'static str, Value)> {
    let mut uids = Vec::new();
    for target in targets {
        uids.extend(
            find(stage, target)
                .await
                .map(|o| (*target, o["metadata"]["uid"].clone())),
        );
    }
    uids
}

/// Nothing is refused any more.
fn recovers(stage: &Stage) {
    stage.wire.plan(|plan| {
        plan.refusals.clear();
        plan.stale = None;
    });
}

/// Plays a case; returns how many writes of the controller belong to the deletion.
async fn goes(stage: &mut Stage<'_>, case: &Case, death: Option<Death>) -> Result<usize, String> {
    stage.play(case.begin).await;
    let begun = async |s: &Stage<'_>| {
        let app = s.first().await;
        let phase = &app["status"]["operationState"]["phase"];
        app["status"]["sync"]["status"] == "Synced"
            && app["operation"].is_null()
            && phase != "Running"
    };
    if stage.play.ground.is_real() {
        stage.within(SOON, begun).await;
    }
    let status = stage.first().await["status"].clone();
    if status["operationState"]["phase"] != "Succeeded" && status["sync"]["status"] != "Synced" {
        return Err(format!("it does not even begin: {status}"));
    }
    stage.play(case.happens).await;
    if stage.play.ground.is_real() && !case.happens.is_empty() {
        sleep(NOTICED).await;
    }
    let before = uids(stage, case.kept).await;
    let began = stage.wire.writes().len();
    let refused = case
        .refused
        .iter()
        .map(|(what, code, text)| ((*what).to_owned(), *code, (*text).to_owned()))
        .collect();
    stage.wire.plan(|plan| {
        plan.refusals = refused;
        plan.stale = case.stale;
        plan.deaths = death
            .map(|(at, moment)| (began + at, moment))
            .into_iter()
            .collect();
    });
    if case.restarted && stage.play.ground.is_real() {
        stage.play.ground.restart();
    } else if case.restarted {
        stage
            .wire
            .plan(|plan| plan.deaths.push((began, Moment::Before)));
        stage.play("refresh").await;
    }
    stage.play("delete app").await;
    let expected = case.waits.map(|text| stage.play.filled(text));
    let waits_aloud = expected.as_deref().filter(|text| !text.is_empty());
    let silent = case.waits == Some("") && stage.play.ground.is_real();
    let settled = async |s: &Stage<'_>| {
        let app = s.first().await;
        let said = conditions(&app, "DeletionError");
        app.is_null() || waits_aloud.is_some_and(|text| said.iter().any(|s| s.contains(text)))
    };
    let limit = if silent { NOTICED } else { LONG };
    stage.within(limit, settled).await;
    // What one process knew, another cannot read, so it waits where the first did not.
    let unreadable = death.is_some() && !case.refused.is_empty() && !stage.first().await.is_null();
    if let Some(text) = expected
        .as_deref()
        .or(unreadable.then_some("failed to load state of resource"))
    {
        waits(stage, case, text).await?;
        recovers(stage);
        stage.play(case.then).await;
        let gone = async |s: &Stage<'_>| s.first().await.is_null();
        stage.within(LONGER, gone).await;
    }
    let app = stage.first().await;
    if !app.is_null() {
        return Err(format!(
            "it is still there: {} {}",
            app["metadata"]["finalizers"], app["status"]["conditions"]
        ));
    }
    for target in case.gone {
        if stage.play.ground.is_real() {
            // In the background a garbage collector may have to act first.
            stage
                .within(SOON, async |s: &Stage<'_>| find(s, target).await.is_none())
                .await;
        }
        if find(stage, target).await.is_some() {
            return Err(format!("{target} is still there"));
        }
    }
    for target in case.kept {
        let Some(object) = find(stage, target).await else {
            return Err(format!("{target} is gone"));
        };
        let other = before
            .iter()
            .any(|(known, uid)| known == target && *uid != object["metadata"]["uid"]);
        if other || !object["metadata"]["deletionTimestamp"].is_null() {
            return Err(format!(
                "{target} is not what it was: {}",
                object["metadata"]
            ));
        }
    }
    Ok(stage.wire.writes().len() - began)
}

async fn waits(stage: &Stage<'_>, case: &Case, text: &str) -> Result<(), String> {
    let app = stage.first().await;
    let said = conditions(&app, "DeletionError");
    let right = if text.is_empty() {
        said.is_empty()
    } else {
        said.len() == 1 && said[0].contains(text)
    };
    if app.is_null() || !right {
        return Err(format!(
            "instead of waiting it says {said:?}: {}",
            app["metadata"]["finalizers"]
        ));
    }
    let states = [
        &app["status"]["sync"]["status"],
        &app["status"]["health"]["status"],
    ];
    if text.contains("failed to load state of resource")
        && states.iter().any(|s| *s == "Synced" || *s == "Healthy")
    {
        return Err(format!("it is {states:?} although a kind cannot be read"));
    }
    for target in case.meanwhile {
        let object = find(stage, target).await.unwrap_or_default();
        if object.is_null() || !object["metadata"]["deletionTimestamp"].is_null() {
            return Err(format!("{target} goes while it should wait"));
        }
    }
    Ok(())
}

fn conclude(wrong: &[String]) {
    let (number, all) = (wrong.len(), wrong.join("\n"));
    assert!(wrong.is_empty(), "{number} are otherwise:\n{all}");
}

fn play(case: &Case, death: Option<Death>) -> Result<usize, String> {
    let result = stage(Plan::default(), async |s| {
        let result = goes(s, case, death).await;
        result.map_err(|problem| {
            let writes: Vec<String> = s
                .wire
                .writes()
                .into_iter()
                .map(|w| format!("{} {}", w.what, w.code))
                .collect();
            format!("{problem}\n  {}", writes.join("\n  "))
        })
    });
    result.map_err(|problem| format!("== TIPHYS_CASE='{}' {death:?}: {problem}", case.name))
}

/// The deaths of a case whose deletion has this many writes: one by the seed, or all if asked for.
fn deaths(writes: usize) -> Vec<Death> {
    let all: Vec<Death> = (0..writes)
        .flat_map(|at| [(at, Moment::Before), (at, Moment::After)])
        .collect();
    if asked() != Some(FEW) || all.is_empty() {
        return all;
    }
    let one = Rng::new(first_seed()).below(all.len() as u64);
    vec![all[usize::try_from(one).expect("small")]]
}

/// The annotation that names failed hooks goes with the condition that it belongs to.
#[test]
fn hooks_that_have_succeeded_are_not_named_as_failed() {
    stage(Plan::default(), async |stage| {
        let held = "configmap one finalizer=example.org/hold";
        let failing = format!("commit\n  job before hook=PreDelete fails\n  {held}\napp finalizer");
        stage.play(&format!("{failing}\nsync\ndelete app")).await;
        stage.play("pass 100s").await;
        let named = |app: &Value| {
            let annotations = &app["metadata"]["annotations"];
            annotations["tiphys.dev/failed-hooks"].is_string()
        };
        let app = stage.first().await;
        assert!(named(&app), "{app}");
        let better = format!("commit\n  job before hook=PreDelete\n  {held}");
        stage.play(&better).await;
        let waits = |app: &Value| {
            let finalizers = app["metadata"]["finalizers"].as_array();
            let mut finalizers = finalizers.into_iter().flatten();
            finalizers.any(|f| f == "pre-delete-finalizer.argocd.argoproj.io")
        };
        let mut app = stage.first().await;
        for _ in 0..20 {
            if !waits(&app) {
                break;
            }
            stage.play("pass 10s").await;
            app = stage.first().await;
        }
        // Its resources hold it now, for less than the time after which that is an error itself.
        assert!(app.is_object() && !waits(&app), "{app}");
        assert_eq!(conditions(&app, "DeletionError"), Vec::<String>::new());
        assert!(!named(&app), "{app}");
    });
}

#[test]
fn what_goes_with_an_application_and_nothing_else() {
    let cases = cases(CASES, |case| case.name);
    let wrong = side_by_side(&cases, |case| play(case, None).err().into_iter().collect());
    println!("deletion safety: {} cases of {}", cases.len(), CASES.len());
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        cases.len(),
        wrong.join("\n")
    );
}

/// Undoes what a case changed for those that follow it: settings, and a cluster.
async fn as_before(ground: &Ground) {
    let core = format!("/api/v1/namespaces/{}", ground.namespace);
    let empty = json!({"data": null});
    let mut changed = false;
    for name in ["argocd-cm", "argocd-cmd-params-cm"] {
        let path = format!("{core}/configmaps/{name}");
        let settings = ground.find(&path).await.unwrap_or_default();
        if settings["data"].is_object() {
            let cleared = ground.send(Method::PATCH, &path, Some(&empty)).await;
            cleared.expect("settings are cleared");
            changed = true;
        }
    }
    let far = format!("{core}/secrets/far");
    if ground.find(&far).await.is_some() {
        let deleted = ground.send(Method::DELETE, &far, None).await;
        deleted.expect("the cluster is removed");
        changed = true;
    }
    if changed {
        sleep(NOTICED).await;
    }
}

/// The same on a real API server, with real garbage collection.
#[tokio::test(flavor = "multi_thread")]
async fn real() {
    if std::env::var("TIPHYS_TEST_REAL").as_deref() != Ok("1") {
        return tiphys_testkit::skip("real", "it needs a real control plane: make test-real");
    }
    let played = cases(CASES, |case| case.name);
    let next = AtomicUsize::new(0);
    let lanes = (0..LANES).map(|lane| {
        let (next, played) = (&next, &played);
        async move {
            let mut lane = Lane::new("deletions", lane).await;
            let mut wrong = Vec::new();
            while let Some(case) = played.get(next.fetch_add(1, Ordering::Relaxed)) {
                wrong.extend(lane.play(case, None).await.err());
            }
            lane.ground.close().await;
            wrong
        }
    });
    let wrong = futures::future::join_all(lanes).await.concat();
    println!(
        "deletion safety, real: {} cases of {}",
        played.len(),
        CASES.len()
    );
    conclude(&wrong);
}

/// A control plane of its own on a real API server.
struct Lane {
    /// Part of every name.
    id: String,
    wire: Wire,
    ground: Ground,
    /// How many cases it has played.
    played: usize,
    /// How many deaths came to pass.
    died: usize,
}

impl Lane {
    async fn new(what: &str, number: usize) -> Self {
        let wire = Wire::new(Plan::default());
        let ground = Ground::real_behind(&wire, &format!("tiphys-{what}-{number}")).await;
        let run = std::process::id() % 10_000;
        Self {
            id: format!("{}{run}x{number}", &what[..1]),
            wire,
            ground,
            played: 0,
            died: 0,
        }
    }

    async fn play(&mut self, case: &Case, death: Option<Death>) -> Result<usize, String> {
        // Ends with a letter, so that no name is part of another one.
        let id = format!("{}y{}z", self.id, self.played);
        self.played += 1;
        let died = &mut self.died;
        let act = async |s: &mut Stage<'_>| {
            as_before(s.play.ground).await;
            let result = goes(s, case, death).await;
            // Events and retries differ from run to run, so there may be a write less this time.
            let is_past = s
                .wire
                .plan(|plan| std::mem::take(&mut plan.deaths).is_empty());
            *died += usize::from(death.is_some() && is_past);
            recovers(s);
            as_before(s.play.ground).await;
            result
        };
        let result = real_stage(&self.ground, &self.wire, &id, act).await;
        result.map_err(|p| format!("== TIPHYS_CASE='{}' {death:?}: {p}", case.name))
    }

    /// Plays a case without a death, and then with each of them; returns what was wrong.
    async fn kill(&mut self, case: &Case) -> Vec<String> {
        let writes = match self.play(case, None).await {
            Ok(writes) => writes,
            Err(problem) => return vec![problem],
        };
        let mut wrong = Vec::new();
        for death in deaths(writes) {
            wrong.extend(self.play(case, Some(death)).await.err());
        }
        wrong
    }
}

/// `make test-real` kills some cases, others for each commit, `scripts/test-real --kills` each case
/// at each write.
#[tokio::test(flavor = "multi_thread")]
async fn killed_on_a_real_cluster() {
    if std::env::var("TIPHYS_TEST_REAL").as_deref() != Ok("1") {
        return tiphys_testkit::skip("real", "it needs a real control plane: make test-real");
    }
    let killed = some(cases(CASES, |case| case.name), REALLY_KILLED);
    let next = AtomicUsize::new(0);
    let lanes = (0..LANES.min(killed.len())).map(|lane| {
        let (next, killed) = (&next, &killed);
        async move {
            let mut lane = Lane::new("killed", lane).await;
            let mut wrong = Vec::new();
            while let Some(case) = killed.get(next.fetch_add(1, Ordering::Relaxed)) {
                let (before, problems) = (lane.died, lane.kill(case).await);
                let (name, died) = (case.name, lane.died - before);
                println!("{name}, killed at {died} moments: {} wrong", problems.len());
                wrong.extend(problems);
            }
            lane.ground.close().await;
            (lane.died, wrong)
        }
    });
    let (died, wrong): (Vec<usize>, Vec<Vec<String>>) =
        futures::future::join_all(lanes).await.into_iter().unzip();
    let died: usize = died.iter().sum();
    println!(
        "deletion safety, killed on a real cluster: {} cases of {} at {died} moments",
        killed.len(),
        CASES.len()
    );
    conclude(&wrong.concat());
    assert!(died > 0, "no controller died: nothing is proved");
}

#[test]
fn the_same_with_a_death_at_each_write() {
    let cases = some(cases(CASES, |case| case.name), 3);
    let played = AtomicUsize::new(0);
    let wrong = side_by_side(&cases, |case| {
        let deaths = match play(case, None) {
            Ok(writes) => deaths(writes),
            Err(problem) => return vec![problem],
        };
        let moments = deaths.len();
        let wrong: Vec<String> = deaths
            .into_iter()
            .filter_map(|death| play(case, Some(death)).err())
            .collect();
        // All of them take an hour.
        println!(
            "{} of {}: {}, killed at {moments} moments: {}",
            played.fetch_add(1, Ordering::Relaxed) + 1,
            cases.len(),
            case.name,
            if wrong.is_empty() { "ok" } else { "FAILED" }
        );
        wrong
    });
    println!(
        "deletion safety, killed: {} cases of {}",
        cases.len(),
        CASES.len()
    );
    conclude(&wrong);
}

/// An object is deleted in the state in which it was judged: one that is kept at the last moment
/// stays, and other changes do not matter.
#[test]
fn what_changes_while_it_is_deleted_is_judged_again() {
    for (change, stays) in [
        ("key=other", false),
        ("options=Delete=false", true),
        ("options=Delete=confirm", true),
        (
            "annotation:argocd.argoproj.io/tracking-id=another:/ConfigMap:$NS/one",
            true,
        ),
    ] {
        let slow = vec![(
            "DELETE /api/v1/namespaces/".to_owned(),
            Duration::from_secs(2),
        )];
        stage(
            Plan {
                slow,
                ..Plan::default()
            },
            async |stage| {
                stage
                    .play("commit\n  configmap one\n  configmap two\napp finalizer\nsync")
                    .await;
                stage.act("delete app").await;
                sleep(Duration::from_secs(1)).await;
                stage.act(&format!("edit configmap/one {change}")).await;
                stage.play("pass 30s").await;
                let refused = stage
                    .written("/configmaps/one")
                    .iter()
                    .any(|write| write.starts_with("DELETE") && write.ends_with(" 409"));
                assert!(
                    refused,
                    "{change}: it was not on its way: {:?}",
                    stage.written("/configmaps/")
                );
                let one = find(stage, "configmap/one").await;
                let is_kept = one
                    .as_ref()
                    .is_some_and(|one| one["metadata"]["deletionTimestamp"].is_null());
                assert_eq!((is_kept, one.is_some()), (stays, stays), "{change}");
                assert!(find(stage, "configmap/two").await.is_none(), "{change}");
            },
        );
    }
}

/// An object that never rests is deleted all the same: after some attempts only its uid counts.
#[test]
fn what_keeps_changing_is_deleted_too() {
    let slow = vec![(
        "DELETE /api/v1/namespaces/".to_owned(),
        Duration::from_secs(2),
    )];
    let plan = Plan {
        slow,
        ..Plan::default()
    };
    stage(plan, async |stage| {
        stage
            .play("commit\n  configmap one\napp finalizer\nsync")
            .await;
        let path = stage.play.target("configmap/one").await;
        let path = path.expect("the kind exists");
        stage.act("delete app").await;
        let mut gone = false;
        // Shorter than two rounds of attempts.
        for second in 0..18 {
            sleep(Duration::from_secs(1)).await;
            let change = json!({"data": {"key": format!("v{second}")}});
            let changed = stage.play.ground.send(Method::PATCH, &path, Some(&change));
            gone |= changed.await.is_err_and(|e| e.is_not_found());
        }
        let writes = stage.written("/configmaps/one");
        let conflicts = writes
            .iter()
            .filter(|write| write.starts_with("DELETE") && write.ends_with(" 409"));
        assert!(conflicts.count() > 1, "it did not change: {writes:?}");
        assert!(gone, "{writes:?}");
    });
}

/// What is on its way is not deleted again at each look.
#[test]
fn what_is_being_deleted_is_not_deleted_again() {
    stage(Plan::default(), async |stage| {
        stage
            .play("commit\n  configmap held finalizer=example.org/hold\napp finalizer\nsync\ndelete app\npass 2m")
            .await;
        let deletions = stage.written("/configmaps/held").into_iter();
        let done: Vec<String> = deletions
            .filter(|write| write.starts_with("DELETE") && !write.ends_with(" 409"))
            .collect();
        assert_eq!(done.len(), 1, "{done:?}");
        stage.play("edit configmap/held finalizer=\npass 30s").await;
        assert!(stage.first().await.is_null());
    });
}

/// A hook that is removed does not leave what it made behind.
#[test]
fn c93_a_hook_takes_its_pods_along() {
    stage(Plan::default(), async |stage| {
        stage
            .play("commit\n  job after sleep=40 hook=PostDelete delete=HookSucceeded\n  configmap one\napp finalizer\nsync\ndelete app")
            .await;
        let pods = format!("/api/v1/namespaces/{}/pods", stage.play.namespace());
        let number = async |s: &Stage<'_>| {
            let list = s.play.ground.find(&pods).await.unwrap_or_default();
            list["items"].as_array().map_or(0, Vec::len)
        };
        assert_eq!(number(stage).await, 1, "the hook runs");
        stage.play("pass 2m").await;
        assert!(stage.first().await.is_null());
        assert!(find(stage, "job/after").await.is_none());
        assert_eq!(number(stage).await, 0);
    });
}

/// Whether the deletion waits for what a Deployment owns, and whether that is deleted.
#[test]
fn c86_the_finalizer_is_the_policy() {
    for (finalizer, waits) in [
        ("finalizer", true),
        ("finalizer=foreground", true),
        ("finalizer=background", false),
    ] {
        stage(Plan::default(), async |stage| {
            stage
                .play(&format!("commit\n  configmap one\napp {finalizer}\nsync"))
                .await;
            let one = find(stage, "configmap/one").await.expect("it was synced");
            let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "one", "uid": one["metadata"]["uid"], "blockOwnerDeletion": true});
            let metadata = json!({"name": "owned", "ownerReferences": [owner], "finalizers": ["example.org/hold"]});
            let owned = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
            let path = format!("/api/v1/namespaces/{}/configmaps", stage.play.namespace());
            stage
                .play
                .ground
                .send(Method::POST, &path, Some(&owned))
                .await
                .expect("it is new");
            stage.play("delete app\npass 10s").await;
            assert_eq!(
                find(stage, "configmap/one").await.is_some(),
                waits,
                "{finalizer}"
            );
            let owned = find(stage, "configmap/owned").await.expect("it is held");
            assert!(
                !owned["metadata"]["deletionTimestamp"].is_null(),
                "{finalizer}: it goes with its owner"
            );
            stage
                .play("edit configmap/owned finalizer=\npass 10s")
                .await;
            for target in ["configmap/one", "configmap/owned"] {
                assert!(find(stage, target).await.is_none(), "{finalizer}: {target}");
            }
            assert!(stage.first().await.is_null());
        });
    }
}

/// It has no manifests, and does not wait for Git.
#[test]
fn a_process_that_finds_a_deletion_shows_what_goes() {
    let shown = |app: &Value| -> Vec<String> {
        let rows = app["status"]["resources"].as_array().into_iter().flatten();
        let text = |row: &Value, field: &str| row[field].as_str().unwrap_or("-").to_owned();
        rows.map(|row| format!("{} {}", text(row, "name"), text(row, "status")))
            .collect()
    };
    stage(Plan::default(), async |stage| {
        let held = "finalizer=example.org/hold";
        let begin =
            format!("commit\n  configmap one {held}\n  configmap two {held}\napp finalizer");
        stage.play(&format!("{begin}\nsync\ndelete app")).await;
        stage.play("restart\npass 30s").await;
        assert_eq!(shown(&stage.first().await), ["one Synced", "two Synced"]);
        stage.play("edit configmap/two finalizer=\npass 30s").await;
        let app = stage.first().await;
        assert_eq!(shown(&app), ["one Synced", "two OutOfSync"]);
        assert_eq!(app["status"]["sync"]["status"], "OutOfSync");
        stage.play("edit configmap/one finalizer=\npass 1m").await;
        assert!(stage.first().await.is_null());
    });
}

/// What was read before the deletion began is not shown for what is there now.
#[test]
fn a_deletion_that_cannot_read_a_kind_any_more_says_unknown() {
    stage(Plan::default(), async |stage| {
        stage
            .play(
                "commit\n  configmap held finalizer=example.org/hold\napp finalizer\nsync\ndelete app",
            )
            .await;
        let before = stage.first().await["status"].clone();
        assert_eq!(before["sync"]["status"], "Synced", "{before}");
        let text = "configmaps is forbidden";
        let refused = ("GET /api/v1/configmaps".to_owned(), 403, text.to_owned());
        stage.wire.plan(|plan| plan.refusals.push(refused));
        stage.play("restart\npass 30s").await;
        let app = stage.first().await;
        let said = conditions(&app, "DeletionError");
        assert!(said.iter().any(|s| s.contains(text)), "{said:?}");
        let status = &app["status"];
        assert_eq!(status["sync"]["status"], "Unknown", "{status}");
        assert_eq!(status["health"]["status"], "Unknown", "{status}");
        stage.wire.plan(|plan| plan.refusals.clear());
        stage.play("edit configmap/held finalizer=\npass 1m").await;
        assert!(stage.first().await.is_null());
    });
}
