//! Deployments, ReplicaSets, DaemonSets and ReplicationControllers.

use super::*;
use crate::convert::annotated::ROLLBACK_TO;

/// The template of ReplicaSets and of the kinds that create them.
fn selected_template(spec: &At<'_>, causes: &mut Vec<Cause>) {
    let (at, template) = (spec.get("selector"), spec.get("template"));
    let Some(selector) = selector(&at) else {
        causes.push(at.invalid_struct("meta/v1.LabelSelector", "invalid label selector"));
        return;
    };
    if !selector.is_everything() && !selects(&selector, &template) {
        causes.push(mismatch(&template));
    }
    pod::template(&template, causes);
    runs_for_ever(&template, "ReplicaSet", causes);
}

/// A Deployment's spec.
pub fn deployment(at: &At<'_>, causes: &mut Vec<Cause>) {
    let spec = at.get("spec");
    spec.get("replicas").check(AT_LEAST_0, causes);
    needed_selector(
        &spec.get("selector"),
        "empty selector is invalid for deployment",
        causes,
    );
    selected_template(&spec, causes);
    strategy(&spec.get("strategy"), causes);
    let [ready, history, deadline] = [
        "minReadySeconds",
        "revisionHistoryLimit",
        "progressDeadlineSeconds",
    ]
    .map(|f| spec.get(f));
    ready.check(AT_LEAST_0, causes);
    history.check(AT_LEAST_0, causes);
    rollback(at, causes);
    deadline.check(AT_LEAST_0, causes);
    if deadline
        .int()
        .is_some_and(|n| n <= ready.int().unwrap_or(0))
    {
        causes.push(deadline.invalid("must be greater than minReadySeconds"));
    }
    immutable(&spec.get("selector"), "meta/v1.LabelSelector", causes);
}

/// Internally, the rollback revision is a field.
fn rollback(at: &At<'_>, causes: &mut Vec<Cause>) {
    let revision = at
        .get("metadata.annotations")
        .value
        .get(ROLLBACK_TO)
        .and_then(Value::as_str);
    if let Some(revision) = revision
        .and_then(|text| text.parse::<i64>().ok())
        .filter(|n| *n < 0)
    {
        causes.push(Cause::invalid(
            "spec.rollback.version",
            &revision.into(),
            "must be greater than or equal to 0",
        ));
    }
}

fn strategy(at: &At<'_>, causes: &mut Vec<Cause>) {
    let rolling = at.get("rollingUpdate");
    let [unavailable, surge] = ["maxUnavailable", "maxSurge"].map(|field| rolling.get(field));
    match at.get("type").text() {
        "Recreate" if !rolling.is_null() => {
            causes
                .push(rolling.forbidden("may not be specified when strategy `type` is 'Recreate'"));
        }
        "Recreate" => {}
        "RollingUpdate" => {
            int_or_percent(&unavailable, causes);
            int_or_percent(&surge, causes);
            if amount(&unavailable) == 0 && amount(&surge) == 0 {
                causes.push(unavailable.invalid("may not be 0 when `maxSurge` is 0"));
            }
            at_most_100_percent(&unavailable, causes);
        }
        _ => causes.push(not_supported_struct(
            at,
            "apps/v1.DeploymentStrategy",
            &["Recreate", "RollingUpdate"],
        )),
    }
}

/// The API server shows the whole strategy, not its type.
fn not_supported_struct(at: &At<'_>, of: &str, allowed: &[&str]) -> Cause {
    let mut cause = at.not_supported(allowed);
    let (_, tail) = cause
        .message
        .split_once(": supported values")
        .unwrap_or(("", ""));
    cause.message = format!(
        "Unsupported value: {}: supported values{tail}",
        tiphys_kube_schema::gotypes::internal(at.value, of)
    );
    cause
}

/// A ReplicaSet's spec.
pub fn replica_set(at: &At<'_>, causes: &mut Vec<Cause>) {
    let spec = at.get("spec");
    spec.get("replicas").check(AT_LEAST_0, causes);
    spec.get("minReadySeconds").check(AT_LEAST_0, causes);
    needed_selector(
        &spec.get("selector"),
        "empty selector is invalid for deployment",
        causes,
    );
    selected_template(&spec, causes);
    immutable(&spec.get("selector"), "meta/v1.LabelSelector", causes);
}

/// A DaemonSet's spec.
pub fn daemon_set(at: &At<'_>, causes: &mut Vec<Cause>) {
    let spec = at.get("spec");
    let (wanted, template) = (spec.get("selector"), spec.get("template"));
    immutable(&wanted, "meta/v1.LabelSelector", causes);
    label_selector(&wanted, causes);
    if selector(&wanted).is_some_and(|s| !selects(&s, &template)) {
        causes.push(mismatch(&template));
    }
    if !wanted.is_null()
        && wanted.get("matchLabels").is_empty()
        && wanted.get("matchExpressions").is_empty()
    {
        causes.push(wanted.invalid_struct(
            "meta/v1.LabelSelector",
            "empty selector is invalid for daemonset",
        ));
    }
    pod::template(&template, causes);
    runs_for_ever(&template, "DaemonSet", causes);
    spec.get("minReadySeconds").check(AT_LEAST_0, causes);
    daemon_strategy(&spec.get("updateStrategy"), causes);
    spec.get("revisionHistoryLimit").check(AT_LEAST_0, causes);
}

fn daemon_strategy(at: &At<'_>, causes: &mut Vec<Cause>) {
    match at.get("type").text() {
        "OnDelete" => {}
        "RollingUpdate" => {
            let [unavailable, surge] =
                ["maxUnavailable", "maxSurge"].map(|field| at.get("rollingUpdate").get(field));
            int_or_percent(&unavailable, causes);
            int_or_percent(&surge, causes);
            at_most_100_percent(&unavailable, causes);
            at_most_100_percent(&surge, causes);
            match (amount(&unavailable) != 0, amount(&surge) != 0) {
                (true, true) => {
                    causes.push(surge.invalid("may not be set when maxUnavailable is non-zero"))
                }
                (false, false) => {
                    causes.push(unavailable.required("cannot be 0 when maxSurge is 0"))
                }
                _ => {}
            }
        }
        _ => causes.push(not_supported_struct(
            at,
            "apps/v1.DaemonSetUpdateStrategy",
            &["RollingUpdate", "OnDelete"],
        )),
    }
}

/// A ReplicationController's spec: its selector is a plain map.
pub fn replication_controller(at: &At<'_>, causes: &mut Vec<Cause>) {
    let spec = at.get("spec");
    spec.get("minReadySeconds").check(AT_LEAST_0, causes);
    let (wanted, template) = (spec.get("selector"), spec.get("template"));
    wanted.check(&[Check::Required("")], causes);
    spec.get("replicas")
        .check(&[Check::Required(""), Check::AtLeast(0)], causes);
    if template.is_null() {
        causes.push(template.required(""));
        return;
    }
    let labels = template.get("metadata.labels");
    if wanted
        .entries()
        .iter()
        .any(|(key, value)| labels.value.get(*key) != Some(value.value))
    {
        causes.push(mismatch(&template));
    }
    pod::template(&template, causes);
    runs_for_ever(&template, "ReplicationController", causes);
}
