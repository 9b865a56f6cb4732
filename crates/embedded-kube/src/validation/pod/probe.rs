//! Probes and lifecycle hooks.

use super::super::rules::{At, Check, Rule};
use super::Pod;
use crate::status::Cause;
use serde_json::Value;
use tiphys_kube_schema::formats::{http_header_name, port_name, port_number};

/// The types of handlers, in the order in which they are checked.
const KINDS: [&str; 5] = ["exec", "httpGet", "tcpSocket", "grpc", "sleep"];
const AT_LEAST_0: &[Check] = &[Check::AtLeast(0)];
const PROBE: &[Rule] = &[
    Rule::Field("initialDelaySeconds", AT_LEAST_0),
    Rule::Field("timeoutSeconds", AT_LEAST_0),
    Rule::Field("periodSeconds", AT_LEAST_0),
    Rule::Field("successThreshold", AT_LEAST_0),
    Rule::Field("failureThreshold", AT_LEAST_0),
    Rule::By(|probe, causes| {
        let grace = probe.get("terminationGracePeriodSeconds");
        causes.extend(
            grace
                .int()
                .is_some_and(|n| n <= 0)
                .then(|| grace.invalid("must be greater than 0")),
        );
    }),
];

/// A number or the name of a port.
fn port(at: &At<'_>, causes: &mut Vec<Cause>) {
    match at.value {
        Value::String(_) => at.form(port_name, causes),
        _ => causes.extend(
            port_number(at.int().unwrap_or(0)).map(|p| at.invalid_as(at.int().unwrap_or(0), &p)),
        ),
    }
}

fn handler(at: &At<'_>, grace: Option<i64>, kinds: &[&str], causes: &mut Vec<Cause>) {
    let mut found = false;
    for kind in KINDS.iter().filter(|k| kinds.contains(k)) {
        let part = at.get(kind);
        if part.is_null() {
            continue;
        }
        if found {
            causes.push(part.forbidden("may not specify more than 1 handler type"));
            continue;
        }
        found = true;
        match *kind {
            "exec" => part.get("command").check(&[Check::Required("")], causes),
            "httpGet" => http_get(&part, causes),
            "sleep" => sleep(&part, grace, causes),
            _ => port(&part.get("port"), causes),
        }
    }
    if !found {
        causes.push(at.required("must specify a handler type"));
    }
}

fn http_get(at: &At<'_>, causes: &mut Vec<Cause>) {
    at.get("path").check(&[Check::Required("")], causes);
    port(&at.get("port"), causes);
    at.get("scheme")
        .check(&[Check::OneOf(&["HTTP", "HTTPS"])], causes);
    let headers = at.get("httpHeaders");
    for header in headers.items() {
        let name = header.get("name").text();
        causes.extend(
            http_header_name(name)
                .iter()
                .map(|p| headers.invalid_as(name, p)),
        );
    }
}

fn sleep(at: &At<'_>, grace: Option<i64>, causes: &mut Vec<Cause>) {
    let seconds = at.get("seconds").int().unwrap_or(0);
    let Some(grace) = grace else { return };
    if seconds < 0 || seconds > grace {
        let detail =
            format!("must be non-negative and less than terminationGracePeriodSeconds ({grace})");
        causes.push(at.invalid_as(seconds, &detail));
    }
}

/// The three probes of a container.
pub fn probes(container: &At<'_>, pod: &Pod<'_>, causes: &mut Vec<Cause>) {
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let probe = container.get(name);
        if probe.is_null() {
            continue;
        }
        handler(&probe, pod.grace, &KINDS[..4], causes);
        probe.walk(PROBE, causes);
        if name == "readinessProbe" {
            let grace = probe.get("terminationGracePeriodSeconds");
            causes.extend(
                (!grace.is_null()).then(|| grace.invalid("must not be set for readinessProbes")),
            );
        } else {
            let threshold = probe.get("successThreshold");
            causes.extend((threshold.int() != Some(1)).then(|| threshold.invalid("must be 1")));
        }
    }
}

/// The hooks of a container.
pub fn lifecycle(container: &At<'_>, pod: &Pod<'_>, causes: &mut Vec<Cause>) {
    let lifecycle = container.get("lifecycle");
    for name in ["postStart", "preStop"] {
        let hook = lifecycle.get(name);
        if !hook.is_null() {
            handler(
                &hook,
                pod.grace,
                &["exec", "httpGet", "tcpSocket", "sleep"],
                causes,
            );
        }
    }
}
