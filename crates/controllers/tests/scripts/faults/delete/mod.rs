//! Deletion safety: whatever fails, an Application's resources are deleted with it, and nothing
//! else is.
//!
//! Each case is an Application that was synced and is then deleted. A deletion that must wait
//! reports why, and continues when the cause is gone. At the end the Application's resources are
//! gone, and others exist with the same uid as before. The same with the controller killed before
//! and after each of its writes.

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

/// Plays a case; returns which writes of the controller belong to the deletion.
async fn goes(
    stage: &mut Stage<'_>,
    case: &Case,
    killed: bool,
) -> Result<std::ops::Range<usize>, String> {
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
    let unreadable = killed && !case.refused.is_empty() && !stage.first().await.is_null();
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
    Ok(began..stage.wire.writes().len())
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

fn play(case: &Case, deaths: Vec<(usize, Moment)>) -> Result<std::ops::Range<usize>, String> {
    let plan = Plan {
        deaths: deaths.clone(),
        ..Plan::default()
    };
    let result = stage(plan, async |s| {
        let result = goes(s, case, !deaths.is_empty()).await;
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
    result.map_err(|problem| format!("== TIPHYS_CASE='{}' {deaths:?}: {problem}", case.name))
}

#[test]
fn what_goes_with_an_application_and_nothing_else() {
    let cases = cases(CASES, |case| case.name);
    let wrong = side_by_side(&cases, |case| {
        play(case, Vec::new()).err().into_iter().collect()
    });
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
    let run = std::process::id() % 10_000;
    let next = AtomicUsize::new(0);
    let lanes = (0..LANES).map(|lane| {
        let (next, played) = (&next, &played);
        async move {
            let wire = Wire::new(Plan::default());
            let ground = Ground::real_behind(&wire, &format!("tiphys-deletions-{lane}")).await;
            let mut wrong = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(case) = played.get(number) else {
                    ground.close().await;
                    return wrong;
                };
                let id = format!("d{run}x{number}z");
                let act = async |s: &mut Stage<'_>| {
                    as_before(s.play.ground).await;
                    let result = goes(s, case, false).await;
                    recovers(s);
                    as_before(s.play.ground).await;
                    result
                };
                let result = real_stage(&ground, &wire, &id, act).await;
                let problem = result.err();
                wrong.extend(problem.map(|p| format!("== TIPHYS_CASE='{}': {p}", case.name)));
            }
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

#[test]
fn the_same_with_a_death_at_each_write() {
    let cases = some(cases(CASES, |case| case.name), 3);
    let seed = first_seed();
    let played = AtomicUsize::new(0);
    let wrong = side_by_side(&cases, |case| {
        let writes = match play(case, Vec::new()) {
            Ok(writes) => writes,
            Err(problem) => return vec![problem],
        };
        let mut deaths: Vec<(usize, Moment)> = writes
            .flat_map(|at| [(at, Moment::Before), (at, Moment::After)])
            .collect();
        if asked().is_some_and(|asked| asked == FEW) && !deaths.is_empty() {
            let at = Rng::new(seed).below(deaths.len() as u64);
            deaths = vec![deaths[usize::try_from(at).expect("small")]];
        }
        let moments = deaths.len();
        let wrong: Vec<String> = deaths
            .into_iter()
            .filter_map(|death| play(case, vec![death]).err())
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
