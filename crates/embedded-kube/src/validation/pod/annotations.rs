//! Annotations with a meaning for pods, most of which have become fields.

use super::super::rules::At;
use super::{Pod, affinity, volume};
use crate::status::Cause;
use serde_json::Value;

pub const MIRROR: &str = "kubernetes.io/config.mirror";
pub const SECCOMP_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
pub const SECCOMP_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";
pub const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";
const TOLERATIONS: &str = "scheduler.alpha.kubernetes.io/tolerations";
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

fn annotation<'v>(annotations: &At<'v>, key: &str) -> Option<&'v str> {
    annotations.value.get(key).and_then(Value::as_str)
}

/// `annotations` of a pod or template. `spec` is that of the pod.
pub fn check(annotations: &At<'_>, spec: &At<'_>, causes: &mut Vec<Cause>) {
    if annotation(annotations, MIRROR).is_some() && spec.get("nodeName").is_empty() {
        causes.push(
            annotations
                .key(MIRROR)
                .invalid("must set spec.nodeName if mirror pod annotation is set"),
        );
    }
    if let Some(text) = annotation(annotations, TOLERATIONS).filter(|t| !t.is_empty()) {
        match serde_json::from_str::<Value>(text) {
            Ok(list) => affinity::tolerations(
                &At::new(&list, format!("{}.{TOLERATIONS}", annotations.path)),
                causes,
            ),
            Err(error) => causes.push(annotations.invalid_as(TOLERATIONS, &error.to_string())),
        }
    }
    if let Some(cost) = annotation(annotations, DELETION_COST)
        && !is_cost(cost)
    {
        causes.push(
            annotations
                .key(DELETION_COST)
                .invalid("must be a 32bit integer"),
        );
    }
    let at = |key: &str| {
        At::new(
            annotations.value.get(key).unwrap_or(&Value::Null),
            format!("{}.{key}", annotations.path),
        )
    };
    if annotation(annotations, SECCOMP_POD).is_some() {
        seccomp(&at(SECCOMP_POD), causes);
    }
    for (key, _) in annotations
        .entries()
        .iter()
        .filter(|(key, _)| key.starts_with(SECCOMP_CONTAINER))
    {
        seccomp(&at(key), causes);
    }
    for (key, value) in annotations.entries() {
        let Some(container) = key.strip_prefix(APP_ARMOR) else {
            continue;
        };
        if !super::visited(spec)
            .iter()
            .any(|c| c.get("name").text() == container)
        {
            causes.push(value.invalid_as(container, "container not found"));
        }
        let profile = value.text();
        if !matches!(profile, "" | "runtime/default" | "unconfined")
            && !profile.starts_with("localhost/")
        {
            causes.push(value.invalid(&format!("invalid AppArmor profile name: \"{profile}\"")));
        }
    }
}

fn is_cost(text: &str) -> bool {
    let first =
        text == "0" || text.starts_with('-') || text.starts_with(|c| ('1'..='9').contains(&c));
    first && text.parse::<i32>().is_ok()
}

fn seccomp(at: &At<'_>, causes: &mut Vec<Cause>) {
    match at.text() {
        "runtime/default" | "docker/default" | "unconfined" => {}
        profile => match profile.strip_prefix("localhost/") {
            Some(path) => volume::relative(&At::new(&path.into(), at.path.clone()), causes),
            None => causes.push(at.invalid("must be a valid seccomp profile")),
        },
    }
}

/// What an annotation and a field say about the same thing must be the same.
pub fn agree(annotations: &At<'_>, pod: &Pod<'_>, causes: &mut Vec<Cause>) {
    let own = pod.spec.get("securityContext.seccompProfile");
    if let Some(says) = annotation(annotations, SECCOMP_POD) {
        matches("seccomp", says, &own, &own, causes);
    }
    for container in pod.visited() {
        let key = format!("{SECCOMP_CONTAINER}{}", container.get("name").text());
        let profile = container.get("securityContext.seccompProfile");
        if let Some(says) = annotation(annotations, &key) {
            matches("seccomp", says, &profile, &profile, causes);
        }
    }
    if pod.spec.get("os.name").text() == "windows" {
        return;
    }
    for container in pod.visited() {
        let key = format!("{APP_ARMOR}{}", container.get("name").text());
        let place = container.get("securityContext.appArmorProfile");
        let profile = if place.is_null() {
            pod.spec.get("securityContext.appArmorProfile")
        } else {
            place.clone()
        };
        if let Some(says) = annotation(annotations, &key) {
            matches("apparmor", says, &profile, &place, causes);
        }
    }
}

fn matches(what: &str, says: &str, profile: &At<'_>, place: &At<'_>, causes: &mut Vec<Cause>) {
    let differs = |part: &str, word: &str| {
        place
            .get(part)
            .forbidden(&format!("{what} {word} in annotation and field must match"))
    };
    let default = says == "runtime/default" || (what == "seccomp" && says == "docker/default");
    match (profile.get("type").text(), says.strip_prefix("localhost/")) {
        ("Unconfined", _) if says != "unconfined" => causes.push(differs("type", "type")),
        ("RuntimeDefault", _) if !default => causes.push(differs("type", "type")),
        ("Localhost", None) => causes.push(differs("type", "type")),
        ("Localhost", Some(path)) if profile.get("localhostProfile").value != path => {
            causes.push(differs("localhostProfile", "profile"));
        }
        _ => {}
    }
}
