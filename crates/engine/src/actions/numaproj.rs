//! Numaflow and Numaplane: pipelines and vertices that can be paused, resumed and promoted, and the
//! rollouts that own them.

use super::{
    Call, Described, Kind, Ran, action,
    edit::{annotation, at, label},
};
use serde_json::Value;
use tiphys_api::resource::ResourceAction;

const UPGRADE: &str = "numaplane.numaproj.io/upgrade-state";
const PROMOTE: &str = "numaplane.numaproj.io/force-promote";
const DATA_LOSS: &str = "numaplane.numaproj.io/allow-data-loss";
const STRATEGIES: &str = "numaflow.numaproj.io/allowed-resume-strategies";
const RESUME: &str = "numaflow.numaproj.io/resume-strategy";
const PHASE: [&str; 3] = ["spec", "lifecycle", "desiredPhase"];

pub fn kind(group: &str, kind: &str) -> Option<Kind> {
    Some(match (group, kind) {
        ("numaflow.numaproj.io", "InterStepBufferService") => Kind {
            discover: |live| {
                vec![
                    action("force-promote")
                        .icon("fa-solid fa-fw fa-forward")
                        .disabled(!is_promotable(live)),
                ]
            },
            run: |call| {
                (call.action == "force-promote")
                    .then(|| promote(call))
                    .flatten()
            },
        },
        ("numaflow.numaproj.io", "MonoVertex") => Kind {
            discover: mono_vertex,
            run: run_mono_vertex,
        },
        ("numaflow.numaproj.io", "Pipeline") => Kind {
            discover: pipeline,
            run: run_pipeline,
        },
        ("numaplane.numaproj.io", "MonoVertexRollout") => Kind {
            discover: |live| pausing(at(live, &["spec", "monoVertex"]), true),
            run: |call| run_rollout(call, "monoVertex"),
        },
        ("numaplane.numaproj.io", "PipelineRollout") => Kind {
            discover: pipeline_rollout,
            run: run_pipeline_rollout,
        },
        _ => return None,
    })
}

/// The pause action and the two resume actions. `of` holds the `spec` with the lifecycle and the
/// `metadata` whose annotation lists the permitted ways to resume.
fn pausing(of: &Value, allowed: bool) -> Vec<ResourceAction> {
    let paused = at(of, &PHASE) == "Paused";
    let (gradually, fast) = match at(of, &["metadata", "annotations", STRATEGIES]).as_str() {
        Some("fast") => (false, true),
        Some("slow, fast") => (true, true),
        _ => (true, false),
    };
    let icon = "fa-solid fa-fw fa-play";
    vec![
        action("pause")
            .icon("fa-solid fa-fw fa-pause")
            .disabled(!allowed || paused),
        action("unpause-gradual")
            .icon(icon)
            .called("Unpause (gradual)")
            .disabled(!(allowed && paused && gradually)),
        action("unpause-fast")
            .icon(icon)
            .called("Unpause (fast)")
            .disabled(!(allowed && paused && fast)),
    ]
}

/// A vertex or pipeline lists the permitted ways to resume in `spec.metadata`.
fn own_pausing(live: &Value, allowed: bool) -> Vec<ResourceAction> {
    pausing(
        &serde_json::json!({"spec": live["spec"], "metadata": at(live, &["spec", "metadata"])}),
        allowed,
    )
}

fn is_owned_by(live: &Value, kind: &str) -> bool {
    at(live, &["metadata", "ownerReferences"])
        .as_array()
        .into_iter()
        .flatten()
        .any(|owner| owner["kind"] == kind)
}

fn is_promotable(live: &Value) -> bool {
    matches!(label(live, UPGRADE), Some("in-progress" | "trial"))
        && label(live, PROMOTE) != Some("true")
}

fn promote_action(live: &Value) -> ResourceAction {
    action("force-promote")
        .icon("fa-solid fa-fw fa-forward")
        .called("Force Promote")
        .disabled(!is_promotable(live))
}

fn promote(call: &Call<'_>) -> Ran {
    call.patch(|edit| edit.label(PROMOTE, "true"))
}

fn mono_vertex(live: &Value) -> Vec<ResourceAction> {
    let mut actions = own_pausing(live, !is_owned_by(live, "MonoVertexRollout"));
    actions.push(promote_action(live));
    actions
}

fn run_mono_vertex(call: &Call<'_>) -> Ran {
    match call.action {
        "pause" => call.patch(|edit| edit.set(&PHASE, "Paused")),
        "unpause-fast" => call.patch(|edit| edit.set(&PHASE, "Running")),
        "unpause-gradual" => call.patch(|edit| {
            edit.set(&PHASE, "Running");
            edit.remove(&["spec", "replicas"]);
        }),
        "force-promote" => promote(call),
        _ => None,
    }
}

fn pipeline(live: &Value) -> Vec<ResourceAction> {
    let state = label(live, UPGRADE);
    let allowed = !is_owned_by(live, "PipelineRollout") || state == Some("recyclable-expired");
    let recyclable = matches!(state, Some("recyclable" | "recyclable-expired"));
    let mut actions = own_pausing(live, allowed);
    actions.push(promote_action(live));
    actions.push(
        action("delete")
            .icon("fa-solid fa-fw fa-trash")
            .called("Delete")
            .disabled(!recyclable),
    );
    actions
}

fn run_pipeline(call: &Call<'_>) -> Ran {
    let resume = |how: &str| {
        call.patch(|edit| {
            edit.set(&PHASE, "Running");
            edit.annotate(RESUME, how);
        })
    };
    match call.action {
        "pause" => call.patch(|edit| edit.set(&PHASE, "Paused")),
        "unpause-gradual" => resume("slow"),
        "unpause-fast" => resume("fast"),
        "force-promote" => promote(call),
        "delete" => {
            call.patch(|edit| edit.annotate("numaplane.numaproj.io/marked-for-deletion", "true"))
        }
        _ => None,
    }
}

fn pipeline_rollout(live: &Value) -> Vec<ResourceAction> {
    let draining = at(live, &["status", "upgradeInProgress"]) == "PipelinePauseAndDrain";
    let allowed = annotation(live, DATA_LOSS) == Some("true");
    let mut actions = pausing(at(live, &["spec", "pipeline"]), true);
    actions.push(
        action("allow-data-loss")
            .icon("fa-solid fa-fw fa-unlock")
            .called("Allow (Possible) Data Loss")
            .disabled(!draining),
    );
    actions.push(
        action("disallow-data-loss")
            .icon("fa-solid fa-fw fa-lock")
            .called("Disallow Data Loss")
            .disabled(!allowed),
    );
    actions
}

fn run_pipeline_rollout(call: &Call<'_>) -> Ran {
    match call.action {
        "allow-data-loss" => call.patch(|edit| edit.annotate(DATA_LOSS, "true")),
        "disallow-data-loss" => call.patch(|edit| edit.annotate(DATA_LOSS, "false")),
        _ => run_rollout(call, "pipeline"),
    }
}

/// A rollout pauses and resumes the object that it owns.
fn run_rollout(call: &Call<'_>, owned: &str) -> Ran {
    let phase = ["spec", owned, "spec", "lifecycle", "desiredPhase"];
    let resume = |fast: bool| {
        call.patch(|edit| {
            edit.set(&phase, "Running");
            edit.set(&["spec", "strategy", "pauseResume", "fastResume"], fast);
        })
    };
    match call.action {
        "pause" => call.patch(|edit| edit.set(&phase, "Paused")),
        "unpause-gradual" => resume(false),
        "unpause-fast" => resume(true),
        _ => None,
    }
}
