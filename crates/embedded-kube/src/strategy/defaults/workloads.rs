//! Defaults of the kinds that make pods.

use super::{each, is, map_at, pod, set, set_text};
use serde_json::{Map, Value, json};
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
        fields.iter().for_each(|(name, value)| set(rolling, name, value.clone()));
    }
}

pub fn deployment(spec: &mut Fields) {
    set(spec, "replicas", 1);
    rolling(spec, "strategy", &[("maxUnavailable", "25%".into()), ("maxSurge", "25%".into())]);
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
    if let Some(labels) = labels {
        set(map_entry(&mut object.0, "spec"), "selector", labels.clone());
        set(object.metadata_mut(), "labels", labels);
    }
    replica_set(map_entry(&mut object.0, "spec"));
}

pub fn stateful_set(spec: &mut Fields) {
    set_text(spec, "podManagementPolicy", "OrderedReady");
    rolling(spec, "updateStrategy", &[("partition", 0.into())]);
    set(spec, "replicas", 1);
    set(spec, "revisionHistoryLimit", 10);
    let retention = map_entry(spec, "persistentVolumeClaimRetentionPolicy");
    set_text(retention, "whenDeleted", "Retain");
    set_text(retention, "whenScaled", "Retain");
    for claim in each(spec, "volumeClaimTemplates") {
        set_text(claim, "apiVersion", "v1");
        set_text(claim, "kind", "PersistentVolumeClaim");
        set_text(map_entry(claim, "spec"), "volumeMode", "Filesystem");
        claim.insert("status".into(), json!({"phase": "Pending"}));
    }
    template(spec);
}

pub fn daemon_set(object: &mut Object) {
    const GENERATION: &str = "deprecated.daemonset.template.generation";
    if object.annotation(GENERATION).is_none() {
        object.set_annotation(GENERATION, "1");
    }
    let spec = map_entry(&mut object.0, "spec");
    rolling(spec, "updateStrategy", &[("maxUnavailable", 1.into()), ("maxSurge", 0.into())]);
    set(spec, "revisionHistoryLimit", 10);
    template(spec);
}

/// Beside plain defaults: labels from the template, and the selector that keeps the pods of two jobs apart.
pub fn job(object: &mut Object) {
    let (uid, name) = (object.uid().to_owned(), object.name().to_owned());
    let spec = map_entry(&mut object.0, "spec");
    if !spec.contains_key("completions") && !spec.contains_key("parallelism") {
        set(spec, "completions", 1);
    }
    set(spec, "parallelism", 1);
    set(spec, "backoffLimit", if spec.contains_key("backoffLimitPerIndex") { i64::from(i32::MAX) } else { 6 });
    set_text(spec, "completionMode", "NonIndexed");
    set(spec, "suspend", false);
    set(spec, "manualSelector", false);
    let replacement = if spec.contains_key("podFailurePolicy") { "Failed" } else { "TerminatingOrFailed" };
    set_text(spec, "podReplacementPolicy", replacement);
    if spec["manualSelector"] == false && !spec.contains_key("selector") && !uid.is_empty() {
        spec.insert("selector".into(), json!({"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}));
        let labels = map_entry(map_entry(map_entry(spec, "template"), "metadata"), "labels");
        for (key, value) in [("controller-uid", &uid), ("job-name", &name)] {
            labels.insert(format!("batch.kubernetes.io/{key}"), value.clone().into());
            labels.insert(key.into(), value.clone().into());
        }
    }
    template(spec);
    let labels = object.pointer("/spec/template/metadata/labels").cloned();
    if let Some(labels) = labels.filter(|l| l.as_object().is_some_and(|m| !m.is_empty())) {
        set(object.metadata_mut(), "labels", labels);
    }
}

pub fn cron_job(spec: &mut Fields) {
    set_text(spec, "concurrencyPolicy", "Allow");
    set(spec, "suspend", false);
    set(spec, "successfulJobsHistoryLimit", 3);
    set(spec, "failedJobsHistoryLimit", 1);
    if let Some(job) = map_at(spec, "jobTemplate").and_then(|t| map_at(t, "spec")) {
        template(job);
    }
}
