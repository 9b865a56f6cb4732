//! Pods and the kinds that create them: the validation of new and changed objects, and the
//! immutable fields.
//!
//! Main function: [`check`]. Updates check some things twice, as the API server does, and so report
//! those causes twice.

mod apps;
mod cron;
mod job;
mod job_policy;
mod job_status;
mod stateful;
mod status;

use super::rules::{At, Check, Rule, label_selector};
use super::{meta, pod};
use crate::base::Part;
use crate::catalog::Resource;
use crate::status::Cause;
use serde_json::Value;
use tiphys_apimachinery::Object;
use tiphys_apimachinery::selector::LabelSelector;
use tiphys_kube_schema::formats::percentage;

const AT_LEAST_0: &[Check] = &[Check::AtLeast(0)];

/// All errors in an object of these kinds; `None` for other kinds.
pub fn check(
    resource: &Resource,
    object: &Object,
    old: Option<&Object>,
    part: Part,
) -> Option<Vec<Cause>> {
    let is_core = resource.group.is_empty();
    if is_core
        && !matches!(
            resource.resource.as_str(),
            "pods" | "podtemplates" | "replicationcontrollers"
        )
    {
        return None;
    }
    let own = object.without_managers().into_value();
    let before = old.map(|old| old.without_managers().into_value());
    let at = At::root(&own, before.as_ref());
    let mut causes = Vec::new();
    let out = &mut causes;
    let metadata = |out: &mut Vec<Cause>| match old {
        None => out.extend(meta::check(resource, object)),
        Some(old) => meta::update(object, old, true, out),
    };
    let template = at.get("spec.template");
    if part == Part::Status && resource.table == "/pods" {
        metadata(out);
        pod::status::check(&at, out);
        return Some(causes);
    }
    if part == Part::Status {
        return status::check(resource, &at, metadata);
    }
    match (resource.table.as_str(), old) {
        ("/pods", None) => {
            metadata(out);
            pod::create(&at, out);
        }
        ("/pods", Some(old)) => {
            metadata(out);
            out.extend(meta::check(resource, object));
            match part {
                Part::Ephemeral => pod::update::debugged(&at, old, out),
                Part::Resize => pod::resize::check(&at, object, old, out),
                _ => pod::update::check(&at, old, out),
            }
        }
        ("/podtemplates", _) => {
            metadata(out);
            pod::template(&at.get("template"), out);
        }
        ("/replicationcontrollers", _) => {
            metadata(out);
            apps::replication_controller(&at, out);
        }
        ("apps/deployments", _) => {
            metadata(out);
            apps::deployment(&at, out);
        }
        ("apps/replicasets", _) => {
            metadata(out);
            apps::replica_set(&at, out);
        }
        ("apps/daemonsets", _) => {
            metadata(out);
            apps::daemon_set(&at, out);
        }
        ("apps/statefulsets", _) => {
            metadata(out);
            stateful::check(&at, out);
        }
        ("batch/jobs", None) => {
            metadata(out);
            job::create(&at, &template, out);
        }
        ("batch/jobs", Some(_)) => {
            out.extend(meta::check(resource, object));
            job::create(&at, &template, out);
            metadata(out);
            job::update(&at, out);
        }
        ("batch/cronjobs", _) => {
            metadata(out);
            cron::check(&at, out);
        }
        _ => return None,
    }
    Some(causes)
}

/// A selector as a table of requirements, if it is one.
fn selector(at: &At<'_>) -> Option<LabelSelector> {
    LabelSelector::from_json(at.value).ok()
}

fn selects(selector: &LabelSelector, template: &At<'_>) -> bool {
    let labels = template.get("metadata.labels");
    selector.matches(
        &labels
            .entries()
            .iter()
            .map(|(key, value)| ((*key).to_owned(), value.text().to_owned()))
            .collect(),
    )
}

/// The cause for a template that the selector does not match.
fn mismatch(template: &At<'_>) -> Cause {
    let labels = template.get("metadata.labels");
    let shown = if labels.is_null() {
        Value::Null
    } else {
        labels.value.clone()
    };
    labels.invalid_as(shown, "`selector` does not match template `labels`")
}

/// A required selector, which must not be empty.
fn needed_selector(at: &At<'_>, empty: &str, causes: &mut Vec<Cause>) {
    if at.is_null() {
        causes.push(at.required(""));
        return;
    }
    label_selector(at, causes);
    if at.get("matchLabels").is_empty() && at.get("matchExpressions").is_empty() {
        causes.push(at.invalid_struct("meta/v1.LabelSelector", empty));
    }
}

/// An immutable field, shown in Go's form of its type.
fn immutable(at: &At<'_>, of: &str, causes: &mut Vec<Cause>) {
    if at.is_changed() {
        causes.push(at.invalid_struct(of, "field is immutable"));
    }
}

/// The template checks of controllers that keep pods running.
fn runs_for_ever(template: &At<'_>, kind: &str, causes: &mut Vec<Cause>) {
    let (policy, deadline) = (
        template.get("spec.restartPolicy"),
        template.get("spec.activeDeadlineSeconds"),
    );
    if policy.text() != "Always" {
        causes.push(policy.not_supported(&["Always"]));
    }
    if !deadline.is_null() {
        causes
            .push(deadline.forbidden(&format!("activeDeadlineSeconds in {kind} is not Supported")));
    }
}

/// A number or a percentage.
fn int_or_percent(at: &At<'_>, causes: &mut Vec<Cause>) {
    match at.value {
        Value::String(_) => at.form(tiphys_kube_schema::formats::percent, causes),
        _ => at.check(AT_LEAST_0, causes),
    }
}

/// The number in front of the percent sign, or the number.
fn amount(at: &At<'_>) -> i64 {
    percentage(at.text())
        .or(at.int())
        .unwrap_or_else(|| at.text().parse().unwrap_or(0))
}

fn at_most_100_percent(at: &At<'_>, causes: &mut Vec<Cause>) {
    if percentage(at.text()).is_some_and(|n| n > 100) {
        causes.push(at.invalid("must not be greater than 100%"));
    }
}
