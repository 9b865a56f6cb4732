//! The kinds of the Argo projects: AnalysisRun, Application, CronWorkflow, Rollout and
//! WorkflowTemplate, and PullRequest of GitOps Promoter.

use super::{
    Call, Described, Kind, Ran, action,
    edit::{Edit, at, is_true, length},
};
use serde_json::{Map, Value, json};
use tiphys_api::resource::ResourceAction;

pub fn kind(group: &str, kind: &str) -> Option<Kind> {
    Some(match (group, kind) {
        ("argoproj.io", "AnalysisRun") => Kind {
            discover: |live| {
                let phase = at(live, &["status", "phase"]).as_str().unwrap_or_default();
                let ended = matches!(phase, "Successful" | "Failed" | "Error" | "Inconclusive");
                vec![
                    action("terminate")
                        .disabled(ended || is_true(at(live, &["spec", "terminate"]))),
                ]
            },
            run: |call| {
                (call.action == "terminate")
                    .then(|| call.patch(|edit| edit.set(&["spec", "terminate"], true)))
                    .flatten()
            },
        },
        ("argoproj.io", "Application") => Kind {
            discover: application,
            run: toggle_auto_sync,
        },
        ("argoproj.io", "CronWorkflow") => Kind {
            discover: create_workflow,
            run: workflow_of_cron,
        },
        ("argoproj.io", "WorkflowTemplate") => Kind {
            discover: create_workflow,
            run: workflow_of_template,
        },
        ("argoproj.io", "Rollout") => Kind {
            discover: rollout,
            run: run_rollout,
        },
        ("promoter.argoproj.io", "PullRequest") => Kind {
            discover: |live| {
                let open = at(live, &["spec", "state"]) == "open";
                vec![
                    action("merge")
                        .icon("fa fa-fw fa-code-merge")
                        .called("Merge PR")
                        .disabled(!open),
                ]
            },
            run: |call| {
                (call.action == "merge")
                    .then(|| call.patch(|edit| edit.set(&["spec", "state"], "merged")))
                    .flatten()
            },
        },
        _ => return None,
    })
}

const AUTOMATED: [&str; 3] = ["spec", "syncPolicy", "automated"];

/// Whether automated sync is enabled; a missing `enabled` means yes.
fn syncs_itself(automated: &Value) -> bool {
    !automated.is_null()
        && automated
            .get("enabled")
            .is_none_or(|e| e.is_null() || is_true(e))
}

fn application(live: &Value) -> Vec<ResourceAction> {
    let name = if syncs_itself(at(live, &AUTOMATED)) {
        "Disable Auto-Sync"
    } else {
        "Enable Auto-Sync"
    };
    vec![action("toggle-auto-sync").called(name)]
}

fn toggle_auto_sync(call: &Call<'_>) -> Ran {
    let toggle = |edit: &mut Edit| {
        let enabled = !syncs_itself(edit.get(&AUTOMATED));
        edit.set(&["spec", "syncPolicy", "automated", "enabled"], enabled);
    };
    (call.action == "toggle-auto-sync")
        .then(|| call.patch(toggle))
        .flatten()
}

fn create_workflow(_: &Value) -> Vec<ResourceAction> {
    vec![
        action("create-workflow")
            .icon("fa fa-fw fa-plus")
            .called("Create Workflow"),
    ]
}

fn workflow(call: &Call<'_>, metadata: Map<String, Value>, spec: Value, finalizers: Value) -> Ran {
    let name = format!("{}-{}", call.live.name(), call.time("%Y%m%d%H%M"));
    let metadata = call.owned(name, metadata, false);
    let mut workflow = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": metadata, "spec": spec});
    if length(&finalizers) > 0 {
        workflow["finalizers"] = finalizers;
    }
    call.create(workflow)
}

fn workflow_of_template(call: &Call<'_>) -> Ran {
    if call.action != "create-workflow" {
        return None;
    }
    let name = call.live.name();
    let metadata = fields(json!({"labels": {"workflows.argoproj.io/workflow-template": name}}));
    workflow(
        call,
        metadata,
        json!({"workflowTemplateRef": {"name": name}}),
        Value::Null,
    )
}

fn workflow_of_cron(call: &Call<'_>) -> Ran {
    const INSTANCE: &str = "workflows.argoproj.io/controller-instanceid";
    if call.action != "create-workflow" {
        return None;
    }
    let live = Value::Object(call.live.0.clone());
    let template = |field: &str| fields(at(&live, &["spec", "workflowMetadata", field]).clone());
    let (mut labels, mut annotations) = (template("labels"), template("annotations"));
    labels.insert(
        "workflows.argoproj.io/cron-workflow".into(),
        call.live.name().into(),
    );
    if let Some(instance) = call.live.label(INSTANCE) {
        labels.insert(INSTANCE.into(), instance.into());
    }
    annotations.insert(
        "workflows.argoproj.io/scheduled-time".into(),
        call.timestamp().into(),
    );
    let metadata = fields(json!({"labels": labels, "annotations": annotations}));
    // Argo CD writes the finalizers outside of `metadata`, where they have no effect. We keep that:
    // a Workflow with finalizers that no controller removes could never be deleted.
    let finalizers = at(&live, &["spec", "workflowMetadata", "finalizers"]).clone();
    workflow(
        call,
        metadata,
        at(&live, &["spec", "workflowSpec"]).clone(),
        finalizers,
    )
}

fn fields(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

const STEPS: [&str; 4] = ["spec", "strategy", "canary", "steps"];

fn rollout(live: &Value) -> Vec<ResourceAction> {
    let status = &live["status"];
    let spec_paused = is_true(at(live, &["spec", "paused"]));
    let paused = if status["pauseConditions"].is_null() {
        spec_paused
    } else {
        length(&status["pauseConditions"]) > 0
    };
    let (promoted, aborted) = (
        status["currentPodHash"] == status["stableRS"],
        is_true(&status["abort"]),
    );
    let steps = at(live, &STEPS);
    let promotable = !status.is_null()
        && !promoted
        && (has_settled(live) || at(live, &["spec", "strategy", "blueGreen"]).is_null());
    let at_end = status["currentStepIndex"].as_u64() == Some(length(steps));
    vec![
        action("restart").called("Restart Pods"),
        action("resume").disabled(!paused),
        action("abort").disabled(promoted || aborted),
        action("retry").disabled(promoted || !aborted),
        action("pause").disabled(promoted || aborted || spec_paused),
        action("promote-full").disabled(!promotable),
        action("skip-current-step").disabled(steps.is_null() || at_end),
    ]
}

/// Rollouts report the generation that they observed; versions before 0.6 reported a hash.
fn has_settled(live: &Value) -> bool {
    let seen = at(live, &["status", "observedGeneration"]);
    let seen = seen.as_f64().or_else(|| seen.as_str()?.parse().ok());
    let generation = at(live, &["metadata", "generation"])
        .as_f64()
        .unwrap_or_default();
    seen.is_some_and(|seen| seen <= generation)
}

fn run_rollout(call: &Call<'_>) -> Ran {
    let paused = ["status", "pauseConditions"];
    let step = ["status", "currentStepIndex"];
    let go_on = |edit: &mut Edit| {
        if length(edit.get(&paused)) > 0 {
            edit.remove(&paused);
        }
    };
    match call.action {
        "abort" => call.patch(|edit| edit.set(&["status", "abort"], true)),
        "pause" => call.patch(|edit| edit.set(&["spec", "paused"], true)),
        "restart" => call.patch(|edit| edit.set(&["spec", "restartAt"], call.timestamp())),
        "retry" => call.patch(|edit| edit.remove(&["status", "abort"])),
        "resume" => call.patch(|edit| {
            go_on(edit);
            edit.resume(&["spec", "paused"]);
        }),
        "promote-full" => call.patch(|edit| {
            let steps = edit.get(&STEPS).clone();
            if edit.get(&["status"]).is_null() {
            } else if has_settled(&Value::Object(call.live.0.clone())) {
                edit.set(&["status", "promoteFull"], true);
            } else {
                edit.remove(&["status", "abort"]);
                if !steps.is_null() {
                    edit.set(&step, length(&steps));
                }
            }
        }),
        "skip-current-step" => call.patch(|edit| {
            let (now, steps) = (edit.get(&step).as_u64(), length(edit.get(&STEPS)));
            if let Some(now) = now.filter(|now| *now < steps) {
                go_on(edit);
                edit.set(&step, now + 1);
            }
        }),
        _ => None,
    }
}
