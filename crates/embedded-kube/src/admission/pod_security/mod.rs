//! Pod Security: enforces the levels set in the labels of a namespace. Main function: [`check`].

mod checks;

use super::Answers;
use super::request::{Objects, Operation, Request};
use crate::status::{Cause, Status};
use checks::{Violation, violations};
use serde_json::Value;
use std::collections::{BTreeMap, HashSet};
use std::fmt;
use tiphys_apimachinery::Object;

const PREFIX: &str = "pod-security.kubernetes.io/";
/// The maximum number of pods of a namespace that are checked when its level changes.
const MAX_PODS: usize = 3_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Privileged,
    Baseline,
    Restricted,
}

/// A level at a version; no version for the latest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Standard {
    level: Level,
    version: Option<u32>,
}

impl fmt::Display for Standard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let level = match self.level {
            Level::Privileged => "privileged",
            Level::Baseline => "baseline",
            Level::Restricted => "restricted",
        };
        match self.version {
            Some(minor) => write!(f, "{level}:v1.{minor}"),
            None => write!(f, "{level}:latest"),
        }
    }
}

impl Standard {
    fn violated(self, spec: &Value, annotations: &Value) -> Vec<Violation> {
        match self.level {
            Level::Privileged => Vec::new(),
            level => violations(level == Level::Restricted, self.version, spec, annotations),
        }
    }
}

/// The levels of a namespace. Audit does not affect the response.
struct Labels {
    enforce: Standard,
    warn: Standard,
    errors: Vec<Cause>,
}

fn level(text: &str) -> Result<Level, &'static str> {
    match text {
        "privileged" => Ok(Level::Privileged),
        "baseline" => Ok(Level::Baseline),
        "restricted" => Ok(Level::Restricted),
        _ => Err("must be one of privileged, baseline, restricted"),
    }
}

fn version(text: &str) -> Result<Option<u32>, &'static str> {
    if text == "latest" {
        return Ok(None);
    }
    let minor = text
        .strip_prefix("v1.")
        .filter(|m| m.bytes().all(|b| b.is_ascii_digit()) && (*m == "0" || !m.starts_with('0')));
    minor
        .and_then(|m| m.parse().ok())
        .map(Some)
        .ok_or("must be \"latest\" or \"v1.x\"")
}

impl Labels {
    fn of(namespace: &Object) -> Self {
        let mut errors = Vec::new();
        let mut read = |mode: &str, otherwise: Level| -> (Option<bool>, bool, Standard) {
            let mut standard = Standard {
                level: Level::Privileged,
                version: None,
            };
            let mut note = |key: String, value: &str, why: &str| {
                errors.push(Cause::invalid(
                    &format!("metadata.labels[{key}]"),
                    &value.into(),
                    why,
                ));
            };
            let key = format!("{PREFIX}{mode}");
            let mut has_level = None;
            if let Some(value) = namespace.label(&key) {
                let found = level(value);
                has_level = Some(found.is_ok());
                standard.level = found.unwrap_or_else(|why| {
                    note(key, value, why);
                    otherwise
                });
            }
            let key = format!("{PREFIX}{mode}-version");
            let given = namespace.label(&key);
            if let Some(value) = given {
                standard.version = version(value).unwrap_or_else(|why| {
                    note(key, value, why);
                    None
                });
            }
            (has_level, given.is_some(), standard)
        };
        let (enforced, _, enforce) = read("enforce", Level::Restricted);
        read("audit", Level::Privileged);
        let (warned, versioned, mut warn) = read("warn", Level::Privileged);
        // The enforced level also applies to warnings.
        if warned.is_none() && enforced == Some(true) && enforce.level > warn.level {
            warn.level = enforce.level;
            if !versioned {
                warn.version = enforce.version;
            }
        }
        Self {
            enforce,
            warn,
            errors,
        }
    }
}

fn detail(found: &[Violation]) -> String {
    let shown = |v: &Violation| {
        if v.detail.is_empty() {
            v.reason.clone()
        } else {
            format!("{} ({})", v.reason, v.detail)
        }
    };
    found.iter().map(shown).collect::<Vec<_>>().join(", ")
}

/// Checks pods, pod templates, and the labels themselves.
pub fn check(
    request: &Request<'_>,
    objects: Objects<'_>,
    answers: &mut Answers,
) -> Result<(), Status> {
    let Some(new) = objects.new else {
        return Ok(());
    };
    match request.resource.table.as_str() {
        "/namespaces" if request.subresource.is_empty() => {
            namespace(request, new, objects.old, answers)
        }
        "/pods" if matches!(request.subresource, "" | "ephemeralcontainers" | "resize") => {
            pod(request, new, objects.old, answers)
        }
        _ if !request.subresource.is_empty() => Ok(()),
        table => {
            let pointer = match table {
                "/podtemplates" => "/template",
                "batch/cronjobs" => "/spec/jobTemplate/spec/template",
                "/replicationcontrollers"
                | "apps/replicasets"
                | "apps/deployments"
                | "apps/statefulsets"
                | "apps/daemonsets"
                | "batch/jobs" => "/spec/template",
                _ => return Ok(()),
            };
            if let (Some(template), Some(labels)) = (new.pointer(pointer), labels(request)) {
                warn(
                    &labels,
                    &template["spec"],
                    &template["metadata"]["annotations"],
                    answers,
                );
            }
            Ok(())
        }
    }
}

fn labels(request: &Request<'_>) -> Option<Labels> {
    request
        .namespace_object()
        .map(|namespace| Labels::of(&namespace))
}

fn warn(labels: &Labels, spec: &Value, annotations: &Value, answers: &mut Answers) {
    let found = labels.warn.violated(spec, annotations);
    if !found.is_empty() {
        answers.warn(format!(
            "would violate PodSecurity \"{}\": {}",
            labels.warn,
            detail(&found)
        ));
    }
}

fn parts(pod: &Object) -> (&Value, &Value) {
    (
        pod.0.get("spec").unwrap_or(&Value::Null),
        pod.metadata("annotations").unwrap_or(&Value::Null),
    )
}

fn pod(
    request: &Request<'_>,
    pod: &Object,
    old: Option<&Object>,
    answers: &mut Answers,
) -> Result<(), Status> {
    if old.is_some_and(|old| !is_significant(pod, old)) {
        return Ok(());
    }
    let Some(labels) = labels(request) else {
        return Ok(());
    };
    let (spec, annotations) = parts(pod);
    let found = labels.enforce.violated(spec, annotations);
    if !found.is_empty() {
        let why = format!(
            "violates PodSecurity \"{}\": {}",
            labels.enforce,
            detail(&found)
        );
        return Err(Status::forbidden("", "pods", request.name, &why));
    }
    warn(&labels, spec, annotations, answers);
    Ok(())
}

/// Whether an update changes anything that has to be checked.
fn is_significant(new: &Object, old: &Object) -> bool {
    let images = |pod: &Object, list: &str| -> Vec<(Value, Value)> {
        let all = pod
            .pointer(&format!("/spec/{list}"))
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        all.map(|c| (c["name"].clone(), c["image"].clone()))
            .collect()
    };
    let plain = |pod: &Object, list: &str| -> Vec<Value> {
        images(pod, list)
            .into_iter()
            .map(|(_, image)| image)
            .collect()
    };
    let before = images(old, "ephemeralContainers");
    ["containers", "initContainers"]
        .iter()
        .any(|list| plain(new, list) != plain(old, list))
        || images(new, "ephemeralContainers")
            .iter()
            .any(|c| !before.contains(c))
}

fn namespace(
    request: &Request<'_>,
    new: &Object,
    old: Option<&Object>,
    answers: &mut Answers,
) -> Result<(), Status> {
    let now = Labels::of(new);
    let before = old.map(Labels::of);
    if !now.errors.is_empty()
        && before
            .as_ref()
            .is_none_or(|before| before.errors != now.errors)
    {
        return Err(Status::invalid("", "Namespace", request.name, now.errors));
    }
    let Some(before) = before.filter(|_| request.operation == Operation::Update) else {
        return Ok(());
    };
    let looser =
        now.enforce.version == before.enforce.version && now.enforce.level <= before.enforce.level;
    if now.enforce != before.enforce && now.enforce.level != Level::Privileged && !looser {
        existing(request, new.name(), now.enforce, answers);
    }
    Ok(())
}

/// Warns about existing pods that violate the new level.
fn existing(request: &Request<'_>, namespace: &str, standard: Standard, answers: &mut Answers) {
    let pods: Vec<_> = request
        .cluster
        .all_stored("/pods", Some(namespace))
        .iter()
        .map(|stored| stored.object())
        .collect();
    // One pod of each controller first.
    let mut seen = HashSet::new();
    let (first, rest): (Vec<_>, Vec<_>) = pods.iter().partition(|pod| {
        pod.controller_of()
            .is_none_or(|owner| seen.insert(owner.uid))
    });
    let (total, mut found): (usize, BTreeMap<String, Vec<String>>) = (pods.len(), BTreeMap::new());
    for pod in first.into_iter().chain(rest).take(MAX_PODS) {
        let (spec, annotations) = parts(pod);
        let reasons: Vec<String> = standard
            .violated(spec, annotations)
            .into_iter()
            .map(|v| v.reason)
            .collect();
        if !reasons.is_empty() {
            found
                .entry(reasons.join(", "))
                .or_default()
                .push(pod.name().to_owned());
        }
    }
    if total > MAX_PODS {
        answers.warn(format!("new PodSecurity enforce level only checked against the first {MAX_PODS} of {total} existing pods"));
    }
    if found.is_empty() {
        return;
    }
    answers.warn(format!("existing pods in namespace \"{namespace}\" violate the new PodSecurity enforce level \"{standard}\""));
    let mut lines: Vec<String> = found
        .into_iter()
        .map(|(reasons, names)| {
            let first = names.iter().min().cloned().unwrap_or_default();
            match names.len() {
                1 => format!("{first}: {reasons}"),
                2 => format!("{first} (and 1 other pod): {reasons}"),
                n => format!("{first} (and {} other pods): {reasons}", n - 1),
            }
        })
        .collect();
    lines.sort();
    lines.into_iter().for_each(|line| answers.warn(line));
}
