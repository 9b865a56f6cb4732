//! Defaults of the kinds that create pods.

use super::{each, is, map_at, pod, set, set_content, set_text};
use crate::convert::annotated::TEMPLATE_GENERATION;
use serde_json::{Map, Value};
use tiphys_apimachinery::Object;
use tiphys_apimachinery::object::map_entry;

type Fields = Map<String, Value>;

fn template(spec: &mut Fields) {
    if let Some(template) = map_at(spec, "template") {
        pod::template(template);
    }
}

/// `{type: RollingUpdate, rollingUpdate: ...}` under `key`.
fn rolling(spec: &mut Fields, key: &str, fields: &[(&str, Value)]) {
    let strategy = map_entry(spec, key);
    set_text(strategy, "type", "RollingUpdate");
    if is(strategy, "type", "RollingUpdate") {
        let rolling = map_entry(strategy, "rollingUpdate");
        fields
            .iter()
            .for_each(|(name, value)| set(rolling, name, value.clone()));
    }
}

pub fn deployment(spec: &mut Fields) {
    set(spec, "replicas", 1);
    rolling(
        spec,
        "strategy",
        &[("maxUnavailable", "25%".into()), ("maxSurge", "25%".into())],
    );
    set(spec, "revisionHistoryLimit", 10);
    set(spec, "progressDeadlineSeconds", 600);
    template(spec);
}

pub fn replica_set(spec: &mut Fields) {
    set(spec, "replicas", 1);
    template(spec);
}

pub fn replication_controller(object: &mut Object) {
    let labels = object.pointer("/spec/template/metadata/labels").cloned();
    if let Some(labels) = labels.filter(has_content) {
        set_content(map_entry(&mut object.0, "spec"), "selector", labels.clone());
        set_content(object.metadata_mut(), "labels", labels);
    }
    replica_set(map_entry(&mut object.0, "spec"));
}

fn has_content(labels: &Value) -> bool {
    labels.as_object().is_some_and(|labels| !labels.is_empty())
}

pub fn stateful_set(spec: &mut Fields) {
    set_text(spec, "podManagementPolicy", "OrderedReady");
    let strategy = map_entry(spec, "updateStrategy");
    if strategy
        .get("type")
        .and_then(Value::as_str)
        .unwrap_or("")
        .is_empty()
    {
        strategy.insert("type".into(), "RollingUpdate".into());
        map_entry(strategy, "rollingUpdate");
    }
    if let (true, Some(rolling)) = (
        is(strategy, "type", "RollingUpdate"),
        map_at(strategy, "rollingUpdate"),
    ) {
        set(rolling, "partition", 0);
    }
    set(spec, "replicas", 1);
    set(spec, "revisionHistoryLimit", 10);
    let retention = map_entry(spec, "persistentVolumeClaimRetentionPolicy");
    set_text(retention, "whenDeleted", "Retain");
    set_text(retention, "whenScaled", "Retain");
    for claim in each(spec, "volumeClaimTemplates") {
        claim.insert("apiVersion".into(), "v1".into());
        claim.insert("kind".into(), "PersistentVolumeClaim".into());
        set(map_entry(claim, "spec"), "volumeMode", "Filesystem");
        set_text(map_entry(claim, "status"), "phase", "Pending");
    }
    template(spec);
}

pub fn daemon_set(object: &mut Object) {
    // Internally the count is a number, and so always present.
    if object.annotation(TEMPLATE_GENERATION).is_none() {
        object.set_annotation(TEMPLATE_GENERATION, "0");
    }
    let spec = map_entry(&mut object.0, "spec");
    rolling(
        spec,
        "updateStrategy",
        &[("maxUnavailable", 1.into()), ("maxSurge", 0.into())],
    );
    set(spec, "revisionHistoryLimit", 10);
    template(spec);
}

/// Gives a new Job, whose uid is already set, the labels and the selector that separate its pods
/// from others.
pub fn job_selector(object: &mut Object) {
    let (uid, name) = (object.uid().to_owned(), object.name().to_owned());
    let spec = map_entry(&mut object.0, "spec");
    if spec.get("manualSelector") == Some(&Value::Bool(true)) {
        return;
    }
    let labels = map_entry(map_entry(map_entry(spec, "template"), "metadata"), "labels");
    for (key, value) in [("controller-uid", &uid), ("job-name", &name)] {
        labels
            .entry(format!("batch.kubernetes.io/{key}"))
            .or_insert_with(|| value.clone().into());
        labels.entry(key).or_insert_with(|| value.clone().into());
    }
    let selected = map_entry(map_entry(spec, "selector"), "matchLabels");
    selected
        .entry("batch.kubernetes.io/controller-uid")
        .or_insert_with(|| uid.into());
}

/// Besides plain defaults, labels from the template.
pub fn job(object: &mut Object) {
    let spec = map_entry(&mut object.0, "spec");
    if !spec.contains_key("completions") && !spec.contains_key("parallelism") {
        set(spec, "completions", 1);
    }
    set(spec, "parallelism", 1);
    set(
        spec,
        "backoffLimit",
        if spec.contains_key("backoffLimitPerIndex") {
            i64::from(i32::MAX)
        } else {
            6
        },
    );
    set(spec, "completionMode", "NonIndexed");
    set(spec, "suspend", false);
    set(spec, "manualSelector", false);
    let replacement = if spec.contains_key("podFailurePolicy") {
        "Failed"
    } else {
        "TerminatingOrFailed"
    };
    set(spec, "podReplacementPolicy", replacement);
    failure_conditions(spec);
    template(spec);
    let labels = object.pointer("/spec/template/metadata/labels").cloned();
    if let Some(labels) = labels.filter(has_content) {
        set_content(object.metadata_mut(), "labels", labels);
    }
}

/// A condition without a status means `True`.
fn failure_conditions(spec: &mut Fields) {
    if let Some(policy) = map_at(spec, "podFailurePolicy") {
        for rule in each(policy, "rules") {
            each(rule, "onPodConditions").for_each(|pattern| set_text(pattern, "status", "True"));
        }
    }
}

pub fn cron_job(spec: &mut Fields) {
    set_text(spec, "concurrencyPolicy", "Allow");
    set(spec, "suspend", false);
    set(spec, "successfulJobsHistoryLimit", 3);
    set(spec, "failedJobsHistoryLimit", 1);
    if let Some(job) = map_at(spec, "jobTemplate").and_then(|t| map_at(t, "spec")) {
        failure_conditions(job);
        template(job);
    }
}
