//! The kinds that make pods: selectors, templates and what may not change.

use super::{at, meta, not_negative, pod};
use crate::status::Cause;
use serde_json::{Value, json};
use tiphys_apimachinery::Object;
use tiphys_apimachinery::selector::LabelSelector;

const FROZEN_SET: &str = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', \
                          'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";

/// Deployments, ReplicaSets, DaemonSets and StatefulSets.
pub fn apps(resource: &str, object: &Object, old: Option<&Object>, causes: &mut Vec<Cause>) {
    for field in ["replicas", "revisionHistoryLimit", "minReadySeconds", "progressDeadlineSeconds"] {
        not_negative(object, &format!("/spec/{field}"), causes);
    }
    selector(object, causes);
    if let Some(old) = old {
        let (before, after) = (old.pointer("/spec/selector"), object.pointer("/spec/selector"));
        if before != after && resource != "statefulsets" {
            causes.push(Cause::invalid("spec.selector", after.unwrap_or(&Value::Null), "field is immutable"));
        }
        if resource == "statefulsets" && frozen(old) != frozen(object) {
            causes.push(Cause::forbidden("spec", FROZEN_SET));
        }
    }
    template(object, &["Always"], causes);
}

fn frozen(set: &Object) -> Value {
    let mut spec = at(set, "/spec");
    if let Some(map) = spec.as_object_mut() {
        let free = [
            "replicas",
            "ordinals",
            "template",
            "updateStrategy",
            "revisionHistoryLimit",
            "persistentVolumeClaimRetentionPolicy",
            "minReadySeconds",
        ];
        free.iter().for_each(|field| drop(map.remove(*field)));
    }
    spec
}

fn selector(object: &Object, causes: &mut Vec<Cause>) {
    let labels = object.pointer("/spec/template/metadata/labels").cloned().unwrap_or(Value::Null);
    let mismatch = || Cause::invalid("spec.template.metadata.labels", &labels, "`selector` does not match template `labels`");
    let Some(value) = object.pointer("/spec/selector").filter(|v| v.is_object()) else {
        causes.push(Cause::required("spec.selector", ""));
        causes.push(mismatch());
        return;
    };
    let is_empty = ["matchLabels", "matchExpressions"].iter().all(|k| match value.get(*k) {
        Some(Value::Object(m)) => m.is_empty(),
        Some(Value::Array(l)) => l.is_empty(),
        _ => true,
    });
    if is_empty {
        causes.push(Cause::invalid("spec.selector", value, "empty selector is invalid for deployment"));
        return;
    }
    match LabelSelector::from_json(value) {
        Ok(selector) => {
            let map = labels.as_object().map(|m| m.iter().filter_map(|(k, v)| Some((k.clone(), v.as_str()?.to_owned()))).collect());
            if !selector.matches(&map.unwrap_or_default()) {
                causes.push(mismatch());
            }
        }
        Err(error) => causes.push(Cause::invalid("spec.selector", value, &error.to_string())),
    }
}

fn template(object: &Object, policies: &[&str], causes: &mut Vec<Cause>) {
    template_at(object, "spec.template", policies, causes);
}

fn template_at(object: &Object, path: &str, policies: &[&str], causes: &mut Vec<Cause>) {
    let template = at(object, &format!("/{}", path.replace('.', "/")));
    meta::labels(template.pointer("/metadata/labels"), &format!("{path}.labels"), causes);
    let spec = template.get("spec").cloned().unwrap_or_else(|| json!({}));
    pod::spec(&spec, &format!("{path}.spec"), causes);
    let policy = spec["restartPolicy"].as_str().unwrap_or("Always");
    if policy == "Always" && policies.contains(&"OnFailure") {
        causes.push(Cause::required(&format!("{path}.spec.restartPolicy"), "valid values: \"OnFailure\", \"Never\""));
    } else if !policies.contains(&policy) {
        causes.push(Cause::not_supported(&format!("{path}.spec.restartPolicy"), &policy.into(), policies));
    }
}

pub fn job(object: &Object, old: Option<&Object>, causes: &mut Vec<Cause>) {
    for field in ["parallelism", "completions", "backoffLimit", "activeDeadlineSeconds", "ttlSecondsAfterFinished"] {
        not_negative(object, &format!("/spec/{field}"), causes);
    }
    template(object, &["OnFailure", "Never"], causes);
    let Some(old) = old else { return };
    for field in ["completions", "selector"] {
        let (before, after) = (at(old, &format!("/spec/{field}")), at(object, &format!("/spec/{field}")));
        let elastic = field == "completions" && after == at(object, "/spec/parallelism");
        if before != after && !elastic {
            causes.push(Cause::invalid(&format!("spec.{field}"), &after, "field is immutable"));
        }
    }
    // While a Job is suspended, where its pods may run can still be changed.
    let suspended = old.pointer("/spec/suspend") == Some(&Value::Bool(true));
    let template = |of: &Object| {
        let mut spec = at(of, "/spec/template/spec");
        if let (true, Some(map)) = (suspended, spec.as_object_mut()) {
            ["nodeSelector", "affinity", "tolerations", "schedulingGates"].iter().for_each(|field| drop(map.remove(*field)));
        }
        spec
    };
    let after = template(object);
    if template(old) != after {
        causes.push(Cause::invalid("spec.template.spec", &after, "field is immutable"));
    }
}

pub fn cron_job(object: &Object, causes: &mut Vec<Cause>) {
    if object.str_at("/spec/schedule").is_empty() {
        causes.push(Cause::required("spec.schedule", ""));
    } else if !is_schedule(object.str_at("/spec/schedule")) {
        let schedule = object.str_at("/spec/schedule");
        let words = schedule.split_whitespace().count();
        let detail = format!("expected exactly 5 fields, found {words}: [{}]", schedule.split_whitespace().collect::<Vec<_>>().join(" "));
        causes.push(Cause::invalid("spec.schedule", &schedule.into(), &detail));
    }
    template_at(object, "spec.jobTemplate.spec.template", &["OnFailure", "Never"], causes);
}

fn is_schedule(text: &str) -> bool {
    text.starts_with('@') || text.split_whitespace().count() == 5
}
