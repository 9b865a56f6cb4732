//! Defaults of the kinds that create Pods.

use super::{
    Fields, Rule,
    fields::{existing, is_unset, map, set, set_text, text},
};
use serde_json::{Value, json};

pub(super) fn rule_for(name: &str) -> Option<Rule> {
    Some(match name {
        "apps.v1.Deployment" => deployment,
        "apps.v1.StatefulSet" => stateful_set,
        "apps.v1.DaemonSet" => daemon_set,
        "apps.v1.ReplicaSet" => |m| with_spec(m, |spec| set(spec, "replicas", 1)),
        "batch.v1.Job" => job,
        "batch.v1.CronJob" => cron_job,
        "batch.v1.PodFailurePolicyOnPodConditionsPattern" => |m| set_text(m, "status", "True"),
        _ => return None,
    })
}

fn with_spec(object: &mut Fields, fill: impl FnOnce(&mut Fields)) {
    if let Some(spec) = map(object, "spec") {
        fill(spec);
    }
}

fn deployment(deployment: &mut Fields) {
    // API versions that no cluster serves any more have different defaults here; objects of that
    // age are still compared as recorded.
    let beta = text(deployment, "apiVersion") == "apps/v1beta1";
    if beta {
        labels_from_template(deployment);
    }
    with_spec(deployment, |spec| {
        set(spec, "replicas", 1);
        if let Some(strategy) = map(spec, "strategy") {
            set_text(strategy, "type", "RollingUpdate");
            if text(strategy, "type") == "RollingUpdate"
                && let Some(rolling) = map(strategy, "rollingUpdate")
            {
                set(rolling, "maxUnavailable", "25%");
                set(rolling, "maxSurge", "25%");
            }
        }
        set(spec, "revisionHistoryLimit", if beta { 2 } else { 10 });
        set(spec, "progressDeadlineSeconds", 600);
    });
}

fn stateful_set(set_: &mut Fields) {
    let beta = text(set_, "apiVersion") == "apps/v1beta1";
    if beta {
        labels_from_template(set_);
    }
    with_spec(set_, |spec| {
        set_text(spec, "podManagementPolicy", "OrderedReady");
        if let Some(strategy) = map(spec, "updateStrategy") {
            if text(strategy, "type").is_empty() {
                set_text(
                    strategy,
                    "type",
                    if beta { "OnDelete" } else { "RollingUpdate" },
                );
                if !beta {
                    set(strategy, "rollingUpdate", json!({}));
                }
            }
            if text(strategy, "type") == "RollingUpdate"
                && let Some(rolling) = existing(strategy, "rollingUpdate")
            {
                set(rolling, "partition", 0);
            }
        }
        if let Some(policy) = map(spec, "persistentVolumeClaimRetentionPolicy") {
            set_text(policy, "whenDeleted", "Retain");
            set_text(policy, "whenScaled", "Retain");
        }
        set(spec, "replicas", 1);
        set(spec, "revisionHistoryLimit", 10);
    });
}

fn daemon_set(set_: &mut Fields) {
    with_spec(set_, |spec| {
        if let Some(strategy) = map(spec, "updateStrategy") {
            set_text(strategy, "type", "RollingUpdate");
            if text(strategy, "type") == "RollingUpdate"
                && let Some(rolling) = map(strategy, "rollingUpdate")
            {
                set(rolling, "maxUnavailable", 1);
                set(rolling, "maxSurge", 0);
            }
        }
        set(spec, "revisionHistoryLimit", 10);
    });
}

fn job(job: &mut Fields) {
    let labels = template_labels(job);
    with_spec(job, |spec| {
        if is_unset(spec, "completions") && is_unset(spec, "parallelism") {
            set(spec, "completions", 1);
        }
        set(spec, "parallelism", 1);
        set(
            spec,
            "backoffLimit",
            if is_unset(spec, "backoffLimitPerIndex") {
                6
            } else {
                i32::MAX
            },
        );
        set(spec, "completionMode", "NonIndexed");
        set(spec, "suspend", false);
        set(
            spec,
            "podReplacementPolicy",
            if is_unset(spec, "podFailurePolicy") {
                "TerminatingOrFailed"
            } else {
                "Failed"
            },
        );
        set(spec, "manualSelector", false);
    });
    if let Some(labels) = labels {
        set_labels(job, labels);
    }
}

fn cron_job(job: &mut Fields) {
    with_spec(job, |spec| {
        set_text(spec, "concurrencyPolicy", "Allow");
        set(spec, "suspend", false);
        set(spec, "successfulJobsHistoryLimit", 3);
        set(spec, "failedJobsHistoryLimit", 1);
    });
}

fn template_labels(object: &Fields) -> Option<Value> {
    object
        .get("spec")?
        .pointer("/template/metadata/labels")
        .filter(|labels| labels.is_object())
        .cloned()
}

fn set_labels(object: &mut Fields, labels: Value) {
    if let Some(metadata) = map(object, "metadata") {
        let empty = metadata
            .get("labels")
            .and_then(Value::as_object)
            .is_some_and(serde_json::Map::is_empty);
        if empty {
            metadata.remove("labels");
        }
        set(metadata, "labels", labels);
    }
}

/// Before `apps/v1`, selector and labels defaulted to the template's labels.
fn labels_from_template(object: &mut Fields) {
    let Some(labels) = template_labels(object) else {
        return;
    };
    with_spec(object, |spec| {
        set(spec, "selector", json!({"matchLabels": labels.clone()}))
    });
    set_labels(object, labels);
}
