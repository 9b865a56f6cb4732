//! Pod placement: affinities, topology spread and tolerations.

use super::super::rules::{At, Check, Rule, label_selector};
use crate::status::Cause;
use std::collections::HashSet;
use tiphys_kube_schema::formats::{dns_label, dns_subdomain, label_value, qualified_name};

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

/// `affinity` of a pod.
pub fn affinity(at: &At<'_>, causes: &mut Vec<Cause>) {
    let node = at.get("nodeAffinity");
    let required = node.get(REQUIRED);
    if !required.is_null() {
        let terms = required.get("nodeSelectorTerms");
        terms.check(
            &[Check::Required("must have at least one node selector term")],
            causes,
        );
        terms
            .items()
            .iter()
            .for_each(|term| node_term(term, true, causes));
    }
    for term in node.get(PREFERRED).items() {
        weight(&term, causes);
        node_term(&term.get("preference"), false, causes);
    }
    for kind in ["podAffinity", "podAntiAffinity"] {
        let pods = at.get(kind);
        pods.get(REQUIRED)
            .items()
            .iter()
            .for_each(|term| pod_term(term, causes));
        for term in pods.get(PREFERRED).items() {
            weight(&term, causes);
            pod_term(&term.get("podAffinityTerm"), causes);
        }
    }
}

fn weight(term: &At<'_>, causes: &mut Vec<Cause>) {
    let weight = term.get("weight");
    if !(1..=100).contains(&weight.int().unwrap_or(0)) {
        causes.push(weight.invalid_as(weight.int().unwrap_or(0), "must be in the range 1-100"));
    }
}

fn node_term(term: &At<'_>, check_values: bool, causes: &mut Vec<Cause>) {
    for requirement in term.get("matchExpressions").items() {
        node_expression(&requirement, check_values, causes);
    }
    for requirement in term.get("matchFields").items() {
        node_field(&requirement, causes);
    }
}

fn node_expression(at: &At<'_>, check_values: bool, causes: &mut Vec<Cause>) {
    let (operator, values) = (at.get("operator"), at.get("values"));
    match operator.text() {
        "In" | "NotIn" => values.check(
            &[Check::Required(
                "must be specified when `operator` is 'In' or 'NotIn'",
            )],
            causes,
        ),
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            causes.push(
                values.forbidden(
                    "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
                ),
            );
        }
        "Exists" | "DoesNotExist" => {}
        "Gt" | "Lt" if values.len() != 1 => {
            causes.push(
                values.required("must be specified single value when `operator` is 'Lt' or 'Gt'"),
            );
        }
        "Gt" | "Lt" => {}
        _ => causes.push(operator.invalid("not a valid selector operator")),
    }
    at.get("key").form(qualified_name, causes);
    if check_values {
        values
            .items()
            .iter()
            .for_each(|value| value.form(label_value, causes));
    }
}

fn node_field(at: &At<'_>, causes: &mut Vec<Cause>) {
    let (key, operator, values) = (at.get("key"), at.get("operator"), at.get("values"));
    match operator.text() {
        "In" | "NotIn" if values.len() != 1 => {
            causes.push(values.required(
                "must be only one value when `operator` is 'In' or 'NotIn' for node field selector",
            ));
        }
        "In" | "NotIn" => {}
        _ => causes.push(operator.invalid("not a valid selector operator")),
    }
    if key.text() == "metadata.name" {
        values
            .items()
            .iter()
            .for_each(|value| value.form(dns_subdomain, causes));
    } else {
        causes.push(key.invalid("not a valid field selector key"));
    }
}

fn pod_term(term: &At<'_>, causes: &mut Vec<Cause>) {
    label_selector(&term.get("labelSelector"), causes);
    label_selector(&term.get("namespaceSelector"), causes);
    let namespace = term.get("namespace");
    for name in term.get("namespaces").items() {
        causes.extend(
            dns_label(name.text())
                .iter()
                .map(|p| namespace.invalid_as(name.text(), p)),
        );
    }
    label_keys(term, causes);
    let topology = term.get("topologyKey");
    if topology.is_empty() {
        causes.push(topology.required("can not be empty"));
    }
    topology.form(qualified_name, causes);
}

/// `matchLabelKeys` and `mismatchLabelKeys`: labels of the pod that complete a selector.
fn label_keys(at: &At<'_>, causes: &mut Vec<Cause>) {
    let selector = at.get("labelSelector");
    let [same, other] = ["matchLabelKeys", "mismatchLabelKeys"].map(|field| at.get(field));
    for keys in [&same, &other] {
        if keys.is_empty() {
            continue;
        }
        if selector.is_null() {
            causes.push(keys.forbidden("must not be specified when labelSelector is not set"));
        } else {
            keys.items()
                .iter()
                .for_each(|key| key.form(qualified_name, causes));
        }
    }
    let mut known: HashSet<&str> = selector
        .get("matchLabels")
        .entries()
        .iter()
        .map(|(key, _)| *key)
        .collect();
    let wanted = same.items();
    for expression in selector.get("matchExpressions").items() {
        let key = expression.get("key").text();
        let position = wanted.iter().rposition(|w| w.text() == key);
        if let (Some(i), true) = (position, known.contains(key)) {
            let place = At::new(at.value, format!("{}[{i}]", at.path));
            causes.push(place.invalid_as(key, "exists in both matchLabelKeys and labelSelector"));
        }
        known.insert(key);
    }
    for key in wanted
        .iter()
        .filter(|w| other.items().iter().any(|o| o.value == w.value))
    {
        causes.push(key.invalid("exists in both matchLabelKeys and mismatchLabelKeys"));
    }
}

const SPREAD: &[Rule] = &[
    Rule::By(|at, causes| positive(&at.get("maxSkew"), causes)),
    Rule::Field("topologyKey", &[Check::Required("can not be empty")]),
    Rule::By(|at, causes| {
        let action = at.get("whenUnsatisfiable");
        let known = ["DoNotSchedule", "ScheduleAnyway"];
        causes.extend((!known.contains(&action.text())).then(|| action.not_supported(&known)));
    }),
];

/// `topologySpreadConstraints`.
pub fn spread(all: &At<'_>, causes: &mut Vec<Cause>) {
    let items = all.items();
    for (i, constraint) in items.iter().enumerate() {
        constraint.walk(SPREAD, causes);
        let identity = |c: &At<'_>| {
            format!(
                "{{{}, {}}}",
                c.get("topologyKey").text(),
                c.get("whenUnsatisfiable").text()
            )
        };
        let own = identity(constraint);
        if items[i + 1..].iter().any(|later| identity(later) == own) {
            causes.push(Cause::duplicate(
                &format!("{}.{{topologyKey, whenUnsatisfiable}}", constraint.path),
                &own.into(),
            ));
        }
        let (domains, action) = (
            constraint.get("minDomains"),
            constraint.get("whenUnsatisfiable").text(),
        );
        if !domains.is_null() {
            positive(&domains, causes);
            if action != "DoNotSchedule" {
                let detail = format!(
                    "can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
                );
                causes.push(domains.invalid(&detail));
            }
        }
        for field in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
            let policy = constraint.get(field);
            if !policy.is_null() && !["Honor", "Ignore"].contains(&policy.text()) {
                causes.push(policy.not_supported(&["Honor", "Ignore"]));
            }
        }
        label_keys(constraint, causes);
        label_selector(&constraint.get("labelSelector"), causes);
    }
}

fn positive(at: &At<'_>, causes: &mut Vec<Cause>) {
    let n = at.int().unwrap_or(0);
    causes.extend((n <= 0).then(|| at.invalid_as(n, "must be greater than zero")));
}

/// `tolerations`.
pub fn tolerations(all: &At<'_>, causes: &mut Vec<Cause>) {
    for toleration in all.items() {
        let [key, operator, value, effect] =
            ["key", "operator", "value", "effect"].map(|field| toleration.get(field));
        key.check(&[Check::Form(qualified_name)], causes);
        if key.is_empty() && operator.text() != "Exists" {
            let detail = "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
            causes.push(operator.invalid(detail));
        }
        if !toleration.get("tolerationSeconds").is_null() && effect.text() != "NoExecute" {
            causes
                .push(effect.invalid("effect must be 'NoExecute' when `tolerationSeconds` is set"));
        }
        match operator.text() {
            "Equal" | "" => {
                let problems = label_value(value.text());
                causes.extend(
                    (!problems.is_empty())
                        .then(|| operator.invalid_as(value.text(), &problems.join(";"))),
                );
            }
            "Exists" if !value.is_empty() => {
                causes.push(operator.invalid_as(
                    value.text(),
                    "value must be empty when `operator` is 'Exists'",
                ));
            }
            "Exists" => {}
            "Lt" | "Gt" => causes.push(operator.not_supported(&["Equal", "Exists", "Lt", "Gt"])),
            _ => causes.push(operator.not_supported(&["Equal", "Exists"])),
        }
        effect.check(&[Check::OneOf(&EFFECTS)], causes);
    }
}
