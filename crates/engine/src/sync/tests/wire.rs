//! The stored form: Argo CD's results and the annotation.

use super::sim::{Sim, hook_job, make, wave};
use crate::{
    sync::{
        Progress, ResourceResult,
        progress::{DryRun, LastWrite},
    },
    types::HealthStatus::Progressing,
};
use serde_json::json;

#[test]
fn results_of_argo_cd_are_understood() {
    let results: Vec<ResourceResult> = serde_json::from_value(json!([
        {"group": "batch", "version": "v1", "kind": "Job", "namespace": "n", "name": "j", "status": "Synced", "message": "job.batch/j created",
         "hookType": "PreSync", "hookPhase": "Running", "syncPhase": "PreSync"},
        {"group": "", "version": "v1", "kind": "ConfigMap", "namespace": "n", "name": "c", "status": "Whatever", "hookType": "", "syncPhase": ""},
    ]))
    .expect("unknown words are not an error");
    assert_eq!(results[0].step_key().to_string(), "batch/Job/n/j:PreSync");
    assert_eq!(
        (
            results[1].status,
            results[1].hook_type,
            results[1].step_key().to_string().as_str()
        ),
        (None, None, "/ConfigMap/n/c:Sync")
    );
    let back = serde_json::to_value(&results[1]).expect("JSON");
    assert_eq!(
        back,
        json!({"group": "", "version": "v1", "kind": "ConfigMap", "namespace": "n", "name": "c"})
    );
}

#[test]
fn the_annotation_round_trips() {
    let mut sim = Sim::new(vec![
        hook_job("j", "PreSync", ""),
        wave(make("ConfigMap", "c"), 1),
    ])
    .healthy("j", &[Progressing]);
    sim.run_to_wait();
    let text = sim.progress.to_annotation();
    let back = Progress::from_annotation(sim.progress.to_results(), Some(&text), "op-1");
    assert_eq!(back, sim.progress);
    assert_eq!(
        back.notes.marks.keys().collect::<Vec<_>>(),
        ["batch/Job/app-ns/j:PreSync"]
    );
    assert!(text.len() < 300, "{text}");
}

/// Every field of the recorded writes, for all steps that may still need it.
#[test]
fn marks_that_may_still_matter_are_stored_whole() {
    let result = |name: &str, status: &str, phase: &str, hook: &str| {
        let (status, phase, hook) = (json!(status), json!(phase), json!(hook));
        json!({"version": "v1", "kind": "Pod", "namespace": "n", "name": name, "status": status, "hookPhase": phase, "hookType": hook})
    };
    let results: Vec<ResourceResult> = serde_json::from_value(json!([
        result("hook", "Synced", "Succeeded", "Sync"),
        result("pruned", "Pruned", "Succeeded", ""),
        result("running", "Synced", "Running", ""),
        result("done", "Synced", "Succeeded", ""),
    ]))
    .expect("results");
    let mut progress = Progress::from_results(results, "op-1");
    let mark = LastWrite {
        uid: "u".into(),
        version: 3,
        at: 9,
        released: true,
        deleted: true,
        gone: true,
        migrated: true,
        refused: true,
    };
    for name in ["hook", "pruned", "running", "done", "unrecorded"] {
        progress
            .notes
            .marks
            .insert(format!("/Pod/n/{name}:Sync"), mark.clone());
    }
    let back = Progress::from_annotation(
        progress.to_results(),
        Some(&progress.to_annotation()),
        "op-1",
    );
    progress.notes.marks.remove("/Pod/n/done:Sync");
    assert_eq!(back, progress);
    progress.notes.marks.values_mut().for_each(|m| {
        *m = LastWrite {
            at: 9,
            ..LastWrite::default()
        }
    });
    assert_eq!(
        Progress::from_annotation(
            progress.to_results(),
            Some(&progress.to_annotation()),
            "op-1"
        ),
        progress
    );
    assert!(
        progress
            .to_annotation()
            .contains(r#""/Pod/n/hook:Sync":{"t":9}"#),
        "{}",
        progress.to_annotation()
    );
}

#[test]
fn an_annotation_that_cannot_be_used_counts_as_lost() {
    let mut sim = Sim::new(vec![make("ConfigMap", "c")]);
    sim.turn();
    let text = sim.progress.to_annotation();
    let read = |text: &str, op: &str| {
        Progress::from_annotation(Vec::new(), Some(text), op)
            .notes
            .dry_run
    };
    assert_eq!(read(&text, "op-1"), DryRun::Done);
    assert_eq!(read(&text, "op-2"), DryRun::Pending);
    assert_eq!(
        read(&text.replace("\"v\":1", "\"v\":2"), "op-1"),
        DryRun::Pending
    );
    assert_eq!(read("{", "op-1"), DryRun::Pending);
}

#[test]
fn the_annotation_stays_small() {
    let mut sim = Sim::new(
        (0..500)
            .map(|i| make("ConfigMap", &format!("c{i}")))
            .chain([wave(make("ConfigMap", "z"), 1)])
            .collect(),
    );
    while sim.wet_log().is_empty() {
        sim.turn();
    }
    assert!(sim.progress.to_annotation().len() < 20_000);
    sim.run();
    assert!(sim.progress.to_annotation().len() < 1000);
}
