//! StatefulSets.

use super::*;
use serde_json::json;
use tiphys_kube_schema::formats::dns_label;

const RETENTION: &[&str] = &["Retain", "Delete"];
const FROZEN: &str = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', \
                      'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";
/// The mutable fields.
const FREE: [&str; 7] = [
    "replicas",
    "template",
    "updateStrategy",
    "minReadySeconds",
    "ordinals",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
];

/// A StatefulSet's spec.
pub fn check(at: &At<'_>, causes: &mut Vec<Cause>) {
    let spec = at.get("spec");
    let is_update = at.old.is_some();
    // A template that was already invalid when stored is not checked again.
    let skip = at.old.is_some_and(|old| {
        let mut found = Vec::new();
        whole(&At::new(old, "").get("spec"), true, false, &mut found);
        !found.is_empty()
    });
    whole(&spec, is_update, skip, causes);
    if let Some(old) = spec.old {
        let frozen = |spec: &Value| {
            let fields = spec.as_object().into_iter().flatten();
            fields
                .filter(|(k, _)| !FREE.contains(&k.as_str()))
                .map(|(k, v)| (k.clone(), v.clone()))
                .collect::<Vec<_>>()
        };
        if frozen(old) != frozen(spec.value) {
            causes.push(spec.forbidden(FROZEN));
        }
    }
}

fn whole(spec: &At<'_>, is_update: bool, skip_template: bool, causes: &mut Vec<Cause>) {
    let management = spec.get("podManagementPolicy");
    match management.text() {
        "OrderedReady" | "Parallel" => {}
        "" => causes.push(management.required("")),
        _ => causes.push(management.invalid("must be 'OrderedReady' or 'Parallel'")),
    }
    strategy(&spec.get("updateStrategy"), causes);
    let retention = spec.get("persistentVolumeClaimRetentionPolicy");
    if !retention.is_null() {
        for field in ["whenDeleted", "whenScaled"] {
            let policy = retention.get(field);
            causes.extend(
                (!RETENTION.contains(&policy.text())).then(|| policy.not_supported(RETENTION)),
            );
        }
    }
    if !is_update {
        spec.get("volumeClaimTemplates")
            .items()
            .iter()
            .for_each(|claim| pod::claim::spec(&claim.get("spec"), causes));
    }
    spec.get("replicas").check(AT_LEAST_0, causes);
    spec.get("minReadySeconds").check(AT_LEAST_0, causes);
    spec.get("ordinals.start").check(AT_LEAST_0, causes);
    if !is_update {
        spec.get("serviceName")
            .check(&[Check::Form(dns_label)], causes);
    }
    let wanted = spec.get("selector");
    needed_selector(&wanted, "empty selector is invalid for statefulset", causes);
    match selector(&wanted) {
        None => {
            let mut cause = wanted.invalid_struct("meta/v1.LabelSelector", "");
            cause.message.truncate(cause.message.len() - ": ".len());
            causes.push(cause);
        }
        Some(selector) => template(spec, &selector, skip_template, causes),
    }
    let (policy, deadline) = (
        spec.get("template.spec.restartPolicy"),
        spec.get("template.spec.activeDeadlineSeconds"),
    );
    if policy.text() != "Always" {
        causes.push(policy.not_supported(&["Always"]));
    }
    if !deadline.is_null() {
        causes.push(deadline.forbidden("activeDeadlineSeconds in StatefulSet is not Supported"));
    }
}

fn strategy(at: &At<'_>, causes: &mut Vec<Cause>) {
    let rolling = at.get("rollingUpdate");
    match at.get("type").text() {
        "" => causes.push(at.required("")),
        "OnDelete" if !rolling.is_null() => {
            let of = "apps/v1.RollingUpdateStatefulSetStrategy";
            causes.push(
                rolling.invalid_struct(of, "only allowed for updateStrategy 'RollingUpdate'"),
            );
        }
        "OnDelete" => {}
        "RollingUpdate" => {
            rolling.get("partition").check(AT_LEAST_0, causes);
            let unavailable = rolling.get("maxUnavailable");
            if !unavailable.is_null() {
                int_or_percent(&unavailable, causes);
                causes.extend(
                    (amount(&unavailable) == 0).then(|| unavailable.invalid("cannot be 0")),
                );
                at_most_100_percent(&unavailable, causes);
            }
        }
        _ => {
            let of = "apps/v1.StatefulSetUpdateStrategy";
            causes.push(at.invalid_struct(of, "must be 'RollingUpdate' or 'OnDelete'"));
        }
    }
}

/// The template as its pods will be: with a volume for each claim, and a name.
fn template(spec: &At<'_>, selector: &LabelSelector, skip: bool, causes: &mut Vec<Cause>) {
    let template = spec.get("template");
    let mut value = template.value.clone();
    if let Some(pod) = value.get_mut("spec").and_then(Value::as_object_mut) {
        pod.remove("hostname");
        pod.remove("subdomain");
        let claims = spec.get("volumeClaimTemplates").items();
        if !claims.is_empty() {
            let names: std::collections::BTreeSet<&str> = claims
                .iter()
                .map(|c| c.get("metadata.name").text())
                .collect();
            let made = names
                .iter()
                .map(|name| json!({"name": name, "persistentVolumeClaim": {"claimName": name}}));
            let own = pod
                .get("volumes")
                .and_then(Value::as_array)
                .cloned()
                .unwrap_or_default();
            let kept = own
                .into_iter()
                .filter(|v| !names.contains(v["name"].as_str().unwrap_or("")));
            let volumes: Vec<Value> = made.chain(kept).collect();
            pod.insert("volumes".into(), volumes.into());
        }
    }
    let template = At::new(&value, template.path);
    if !selector.is_everything() && !selects(selector, &template) {
        causes.push(mismatch(&template));
    }
    if !skip {
        pod::template(&template, causes);
    }
    pod::template_metadata(&template, causes);
}
