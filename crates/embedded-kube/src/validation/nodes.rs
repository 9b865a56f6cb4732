//! Disruption budgets, priority and runtime classes, namespaces and nodes.

use super::node_annotations;
use super::pod::{affinity, resources};
use super::rules::{self, At, Check};
use crate::catalog::Resource;
use crate::status::Cause;
use regex::Regex;
use serde_json::Value;
use std::sync::LazyLock;
use tiphys_apimachinery::Object;
use tiphys_kube_schema::formats;

const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
const HIGHEST_PRIORITY: i64 = 1_000_000_000;
const SYSTEM_CLASSES: [(&str, i64); 2] = [
    ("system-node-critical", 2_000_001_000),
    ("system-cluster-critical", 2_000_000_000),
];

pub fn disruption_budget(object: &Object, old: Option<&Object>, causes: &mut Vec<Cause>) {
    let spec = At::of(object, old, "spec");
    let (min, max, policy) = (
        spec.get("minAvailable"),
        spec.get("maxUnavailable"),
        spec.get("unhealthyPodEvictionPolicy"),
    );
    if !min.is_null() && !max.is_null() {
        let detail = "minAvailable and maxUnavailable cannot be both set";
        causes.push(spec.invalid_struct("policy/v1.PodDisruptionBudgetSpec", detail));
    }
    for amount in [&min, &max].into_iter().filter(|a| !a.is_null()) {
        int_or_percent(amount, causes);
    }
    rules::label_selector(&spec.get("selector"), causes);
    if !policy.is_null() && !matches!(policy.text(), "AlwaysAllow" | "IfHealthyBudget") {
        causes.push(policy.not_supported(&["AlwaysAllow", "IfHealthyBudget"]));
    }
}

/// A non-negative number or percentage up to 100%.
fn int_or_percent(at: &At<'_>, causes: &mut Vec<Cause>) {
    match at.value {
        Value::String(text) => {
            at.form(formats::percent, causes);
            if formats::percentage(text).is_some_and(|n| n > 100) {
                causes.push(at.invalid("must not be greater than 100%"));
            }
        }
        _ => at.check(&[Check::AtLeast(0)], causes),
    }
}

pub fn disruption_status(object: &Object, old: Option<&Object>, causes: &mut Vec<Cause>) {
    let status = At::of(object, old, "status");
    conditions(&status.get("conditions"), causes);
    for field in [
        "disruptionsAllowed",
        "currentHealthy",
        "desiredHealthy",
        "expectedPods",
    ] {
        status.get(field).check(&[Check::AtLeast(0)], causes);
    }
}

/// Conditions as newer kinds have them.
pub fn conditions(all: &At<'_>, causes: &mut Vec<Cause>) {
    let items = all.items();
    for (i, condition) in items.iter().enumerate() {
        let [kind, status, generation, time, reason] = [
            "type",
            "status",
            "observedGeneration",
            "lastTransitionTime",
            "reason",
        ]
        .map(|f| condition.get(f));
        if items[..i]
            .iter()
            .any(|before| before.get("type").value == kind.value)
        {
            causes.push(kind.duplicate());
        }
        kind.form(formats::qualified_name, causes);
        if !matches!(status.text(), "True" | "False" | "Unknown") {
            causes.push(status.not_supported(&["False", "True", "Unknown"]));
        }
        if generation.int().is_some_and(|n| n < 0) {
            causes.push(generation.invalid("must be greater than or equal to zero"));
        }
        time.check(&[Check::Required("")], causes);
        reason.check(
            &[Check::Required(""), Check::Form(formats::condition_reason)],
            causes,
        );
        if reason.len() > 1024 {
            causes.push(reason.too_long(1024));
        }
        let message = condition.get("message");
        if message.len() > 32 * 1024 {
            causes.push(message.too_long(32 * 1024));
        }
    }
}

/// Whether it is a priority class that the system requires.
pub fn is_system_class(resource: &Resource, name: &str) -> bool {
    resource.table == "scheduling.k8s.io/priorityclasses"
        && SYSTEM_CLASSES.iter().any(|(known, _)| *known == name)
}

pub fn priority_class(object: &Object, old: Option<&Object>, causes: &mut Vec<Cause>) {
    let at = |field: &str| At::of(object, old, field);
    let (value, policy) = (at("value"), at("preemptionPolicy"));
    let number = value.int().unwrap_or(0);
    if old.is_some() {
        if value.is_changed() {
            causes.push(value.forbidden("may not be changed in an update."));
        }
        if policy.is_changed() {
            causes.push(policy.invalid_as(policy.value.clone(), "field is immutable"));
        }
        return;
    }
    if object.name().starts_with("system-") {
        let problem = match SYSTEM_CLASSES
            .iter()
            .find(|(name, _)| *name == object.name())
        {
            None => Some(format!(
                "{} is not a known system priority class",
                object.name()
            )),
            Some((name, known)) if *known != number => {
                Some(format!("value of {name} PriorityClass must be {known}"))
            }
            Some((name, _)) => at("globalDefault")
                .is_true()
                .then(|| format!("globalDefault of {name} PriorityClass must be false")),
        };
        let refuse = |why| {
            format!(
                "priority class names with 'system-' prefix are reserved for system use only. error: {why}"
            )
        };
        causes.extend(problem.map(|why| Cause::forbidden("metadata.name", &refuse(why))));
    } else if number > HIGHEST_PRIORITY {
        causes.push(value.forbidden(&format!(
            "maximum allowed value of a user defined priority is {HIGHEST_PRIORITY}"
        )));
    }
    match policy.text() {
        "PreemptLowerPriority" | "Never" => {}
        "" => causes.extend((!policy.is_null()).then(|| policy.required(""))),
        _ => causes.push(policy.not_supported(&["PreemptLowerPriority", "Never"])),
    }
}

pub fn runtime_class(object: &Object, old: Option<&Object>, causes: &mut Vec<Cause>) {
    let at = |field: &str| At::of(object, old, field);
    let (handler, overhead, scheduling) = (at("handler"), at("overhead"), at("scheduling"));
    handler.check(
        &[Check::Required(""), Check::Form(formats::dns_label)],
        causes,
    );
    if !overhead.is_null() {
        let limits = At {
            path: "overhead".into(),
            ..overhead.get("podFixed")
        };
        resources::overhead(&limits, causes);
    }
    if !scheduling.is_null() {
        rules::labels(&scheduling.get("nodeSelector"), causes);
        let tolerations = scheduling.get("tolerations");
        affinity::tolerations(&tolerations, causes);
        let items = tolerations.items();
        let same = |a: &At<'_>, b: &At<'_>| {
            ["key", "operator", "value", "effect"]
                .iter()
                .all(|f| a.get(f).value == b.get(f).value)
        };
        for (i, toleration) in items.iter().enumerate() {
            if items[..i].iter().any(|before| same(before, toleration)) {
                causes.push(duplicate_struct(toleration, "core/v1.Toleration", ""));
            }
        }
    }
    causes.extend(
        handler
            .is_changed()
            .then(|| handler.invalid("field is immutable")),
    );
}

fn duplicate_struct(at: &At<'_>, of: &str, detail: &str) -> Cause {
    let tail = if detail.is_empty() {
        String::new()
    } else {
        format!(": {detail}")
    };
    let message = format!(
        "Duplicate value: {}{tail}",
        tiphys_kube_schema::gotypes::internal(at.value, of)
    );
    Cause {
        reason: "FieldValueDuplicate",
        message,
        field: at.path.clone(),
    }
}

pub fn namespace(object: &Object, causes: &mut Vec<Cause>) {
    let finalizers = At::of(object, None, "spec").get("finalizers");
    for finalizer in finalizers.items() {
        finalizer_name(&finalizers.path, finalizer.text(), causes);
    }
}

/// A finalizer of the namespace's spec.
pub fn finalizer_name(path: &str, name: &str, causes: &mut Vec<Cause>) {
    causes.extend(
        formats::qualified_name(name)
            .iter()
            .map(|p| Cause::invalid(path, &name.into(), p)),
    );
    if !name.contains('/') && !matches!(name, "kubernetes" | "orphan" | "foregroundDeletion") {
        causes.push(Cause::invalid(
            path,
            &name.into(),
            "name is neither a standard finalizer name nor is it fully qualified",
        ));
    }
}

pub fn finalize(object: &Object, causes: &mut Vec<Cause>) {
    for finalizer in At::of(object, None, "spec").get("finalizers").items() {
        finalizer_name(&finalizer.path, finalizer.text(), causes);
    }
}

pub fn namespace_status(object: &Object, causes: &mut Vec<Cause>) {
    let phase = At {
        path: "status.Phase".into(),
        ..At::of(object, None, "status").get("phase")
    };
    match object.deletion_timestamp() {
        None if phase.text() != "Active" => {
            causes.push(phase.invalid("may only be 'Active' if `deletionTimestamp` is empty"))
        }
        Some(_) if phase.text() != "Terminating" => {
            causes.push(
                phase.invalid("may only be 'Terminating' if `deletionTimestamp` is not empty"),
            );
        }
        _ => {}
    }
}

pub fn node(object: &Object, old: Option<&Object>, causes: &mut Vec<Cause>) {
    let (spec, status) = (At::of(object, old, "spec"), At::of(object, old, "status"));
    let taints = At {
        path: "metadata.taints".into(),
        ..spec.get("taints")
    };
    node_annotations::check(object, causes);
    node_taints(&taints, causes);
    node_amounts(&status, causes);
    let swap = status.get("nodeInfo.swap.capacity");
    if swap.int().is_some_and(|n| n <= 0) {
        let at = At::new(swap.value, "metadata.nodeSwapStatus.capacity");
        causes.push(at.invalid("must be greater than zero"));
    }
    declared_features(&status.get("declaredFeatures"), causes);
    let networks = spec.get("podCIDRs");
    for network in networks.items() {
        network.form(formats::cidr, causes);
    }
    let is_v6 = |at: &At<'_>| at.text().contains(':');
    let items = networks.items();
    let unreadable = items
        .iter()
        .position(|network| formats::parse_cidr(network.text()).is_none());
    let dual = unreadable.is_none() && items.iter().any(is_v6) && items.iter().any(|n| !is_v6(n));
    if let Some(i) = unreadable.filter(|_| items.len() > 1) {
        causes.push(no_pair(&networks, i, items[i].text()));
    }
    if items.len() > 1 && (!dual || items.len() > 2) {
        causes.push(networks.invalid("may specify no more than one CIDR for each IP family"));
    }
    if old.is_some() {
        node_update(object, old, causes);
    }
}

/// The pair is checked even if one of the networks is invalid.
fn no_pair(networks: &At<'_>, i: usize, text: &str) -> Cause {
    let why = format!("invalid CIDR[{i}]: <nil> (invalid CIDR address: {text})");
    let message = format!(
        "Internal error: invalid PodCIDRs. failed to check with dual stack with error:{why}"
    );
    Cause {
        reason: "InternalError",
        message,
        field: networks.path.clone(),
    }
}

fn node_amounts(status: &At<'_>, causes: &mut Vec<Cause>) {
    for field in ["capacity", "allocatable"] {
        for (name, at) in status.get(field).entries() {
            let at = At {
                path: format!("status.{field}.{name}"),
                ..at
            };
            resources::amount(&at, name, causes);
        }
    }
}

/// The declared features of a node: sorted and unique.
fn declared_features(all: &At<'_>, causes: &mut Vec<Cause>) {
    const FORM: &str = r"^[A-Z][a-zA-Z0-9]*(\/[a-zA-Z][a-zA-Z0-9]*)*$";
    const RULES: &str = "must start with an UpperCamelCase segment, with subsequent segments separated by '/' (e.g., MyFeature or \
                         MyFeature/mySubFeature), and contain only alphanumeric characters and slashes";
    static NAME: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(FORM).expect("the form is a regular expression"));
    let items = all.items();
    for (i, feature) in items.iter().enumerate() {
        let name = feature.text();
        let problem = match name.len() {
            254.. => Some("must be no more than 253 characters"),
            _ => (!NAME.is_match(name)).then_some(RULES),
        };
        causes.extend(
            problem.map(|why| feature.invalid(&format!("invalid feature name {name:?}: {why}"))),
        );
        match items.get(i + 1) {
            Some(next) if next.text() == name => causes.push(next.duplicate()),
            Some(next) if next.text() < name => {
                causes.push(next.invalid("list must be sorted alphabetically"))
            }
            _ => {}
        }
    }
}

pub fn node_taints(taints: &At<'_>, causes: &mut Vec<Cause>) {
    let items = taints.items();
    for (i, taint) in items.iter().enumerate() {
        let (key, value, effect) = (taint.get("key"), taint.get("value"), taint.get("effect"));
        key.form(formats::qualified_name, causes);
        let problems = formats::label_value(value.text());
        causes.extend((!problems.is_empty()).then(|| value.invalid(&problems.join(";"))));
        effect.check(&[Check::Required(""), Check::OneOf(&EFFECTS)], causes);
        let same = |other: &At<'_>| {
            other.get("key").value == key.value && other.get("effect").value == effect.value
        };
        if items[..i].iter().any(same) {
            causes.push(duplicate_struct(
                taint,
                "core/v1.Taint",
                "taints must be unique by key and effect pair",
            ));
        }
    }
}

/// The second part of the update checks, shared with status updates.
pub fn node_update(object: &Object, old: Option<&Object>, causes: &mut Vec<Cause>) {
    let (spec, status) = (At::of(object, old, "spec"), At::of(object, old, "status"));
    node_annotations::check(object, causes);
    node_amounts(&status, causes);
    declared_features(&status.get("declaredFeatures"), causes);
    let addresses = status.get("addresses").items();
    for (i, address) in addresses.iter().enumerate() {
        if addresses[..i]
            .iter()
            .any(|before| before.value == address.value)
        {
            causes.push(duplicate_struct(address, "core/v1.NodeAddress", ""));
        }
    }
    let (networks, provider) = (spec.get("podCIDRs"), spec.get("providerID"));
    let before = networks
        .old
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    let changed = match before.len() {
        0 => 0,
        n if n != networks.len() => 1,
        _ => networks
            .items()
            .iter()
            .zip(&before)
            .filter(|(now, was)| now.value != *was)
            .count(),
    };
    causes.extend((0..changed).map(|_| {
        networks.forbidden("node updates may not change podCIDR except from \"\" to valid")
    }));
    if provider.is_changed()
        && provider
            .old
            .and_then(Value::as_str)
            .is_some_and(|p| !p.is_empty())
    {
        causes.push(
            provider.forbidden("node updates may not change providerID except from \"\" to valid"),
        );
    }
    node_taints(
        &At {
            path: "metadata.taints".into(),
            ..spec.get("taints")
        },
        causes,
    );
    let external = spec.get("externalID");
    if external.is_changed() {
        causes.push(external.forbidden("may not be updated"));
    }
}
