//! Holds writes and stored objects against recorded ones.

use super::{super::super::first_difference, wire::Write};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Whether we wrote the CronJobs, Jobs and Events of a step, in any order: kubeapps keeps an
/// AppRepository with its finalizer last, we first.
pub fn same_writes(case: &Value, step: &Value, writes: &[Write]) -> Result<(), String> {
    let custom = ["--custom-labels", "--custom-annotations"];
    let is_custom = case["flags"].as_array().into_iter().flatten().any(|flag| {
        let flag = flag.as_str().unwrap_or_default();
        custom.iter().any(|custom| flag.starts_with(custom))
    });
    let recorded = step["writes"].as_array().into_iter().flatten();
    let recorded = recorded.map(|write| {
        let mut body = write["body"].clone();
        // kubeapps gives Jobs the labels as annotations, and the other way round.
        if is_custom && body["kind"] == "Job" {
            swap(&mut body["metadata"]);
        }
        let text = |field: &str| write[field].as_str().unwrap_or_default();
        shown(text("verb"), text("path"), write["status"].as_u64(), &body)
    });
    let ours = writes.iter().map(|write| {
        let status = Some(u64::from(write.status));
        shown(&write.verb, &write.path, status, &write.body)
    });
    let sorted = |shown: &mut Vec<Value>| shown.sort_by_key(ToString::to_string);
    let (mut recorded, mut ours): (Vec<Value>, Vec<Value>) =
        (recorded.flatten().collect(), ours.flatten().collect());
    sorted(&mut recorded);
    sorted(&mut ours);
    if recorded == ours {
        return Ok(());
    }
    if recorded.len() != ours.len() {
        let brief = |list: &[Value]| {
            let list = list
                .iter()
                .map(|write| write["call"].as_str().unwrap_or_default());
            list.collect::<Vec<_>>().join(", ")
        };
        return Err(format!(
            "wrote {}; recorded {}",
            brief(&ours),
            brief(&recorded)
        ));
    }
    Err(first_difference(&recorded.into(), &ours.into(), "writes"))
}

fn swap(metadata: &mut Value) {
    if let Some(metadata) = metadata.as_object_mut() {
        let (labels, annotations) = (metadata.remove("labels"), metadata.remove("annotations"));
        for (name, value) in [("labels", annotations), ("annotations", labels)] {
            if let Some(value) = value {
                metadata.insert(name.to_owned(), value);
            }
        }
    }
}

/// A write as it is compared; `None` is not compared.
fn shown(verb: &str, path: &str, status: Option<u64>, body: &Value) -> Option<Value> {
    let (collection, name) = path.rsplit_once('/').unwrap_or_default();
    let is = |plural: &str| path.ends_with(plural) || collection.ends_with(plural);
    if is("/events") {
        // Warnings are ours; kubeapps has none that can happen.
        if body["type"] == "Warning" {
            return None;
        }
        let name = name.split('.').next().unwrap_or_default();
        let what = if verb == "PATCH" { name } else { "" };
        return Some(json!({
            "call": format!("{verb} {} {what}", collection_of(path)),
            "reason": body["reason"],
            "count": body["count"],
        }));
    }
    if !is("/cronjobs") && !is("/jobs") {
        return None;
    }
    let mut body = body.clone();
    if verb == "DELETE" {
        body = Value::Null;
    }
    // kubeapps writes none, so that its CronJobs end after a hundred missed ticks.
    if let Some(spec) = body.get_mut("spec").and_then(Value::as_object_mut) {
        spec.remove("startingDeadlineSeconds");
    }
    if let Some(owners) = body.pointer_mut("/metadata/ownerReferences") {
        for owner in owners.as_array_mut().into_iter().flatten() {
            owner["uid"] = "<uid>".into();
        }
    }
    Some(json!({"call": format!("{verb} {path}"), "status": status, "body": body}))
}

fn collection_of(path: &str) -> &str {
    path.find("/events")
        .map_or(path, |at| &path[..at + "/events".len()])
}

/// Whether the same is stored, but for what kubeapps adds to specifications.
pub fn same_state(recorded: &Value, stored: &Value) -> Result<(), String> {
    let ours = json!({
        "cronjobs": identities(&stored["cronjobs"]),
        "jobs": counts(&stored["jobs"]),
        "apprepositories": repositories(&stored["apprepositories"]),
    });
    let mut recorded = recorded.clone();
    for repository in recorded["apprepositories"]
        .as_array_mut()
        .into_iter()
        .flatten()
    {
        strip(repository);
    }
    if recorded == ours {
        return Ok(());
    }
    Err(first_difference(&recorded, &ours, "state"))
}

fn identities(cron_jobs: &Value) -> Vec<Value> {
    let one = |cron_job: &Value| {
        let metadata = &cron_job["metadata"];
        let mut one = json!({
            "namespace": metadata["namespace"],
            "name": metadata["name"],
            "schedule": cron_job["spec"]["schedule"],
        });
        if cron_job["spec"]["suspend"] == true {
            one["suspend"] = true.into();
        }
        if let Some(labels) = metadata.get("labels") {
            one["labels"] = labels.clone();
        }
        if let Some(annotations) = metadata.get("annotations") {
            one["annotations"] = annotations.clone();
        }
        let owners = metadata["ownerReferences"].as_array().into_iter().flatten();
        let owners: Vec<Value> = owners
            .map(|owner| {
                let text = |field: &str| owner[field].as_str().unwrap_or_default();
                let is_controller = owner["controller"] == true;
                let word = if is_controller { "True" } else { "False" };
                format!("{}/{} controller={word}", text("kind"), text("name")).into()
            })
            .collect();
        if !owners.is_empty() {
            one["owner"] = owners.into();
        }
        one
    };
    let mut all: Vec<Value> = cron_jobs
        .as_array()
        .into_iter()
        .flatten()
        .map(one)
        .collect();
    all.sort_by_key(|one| (one["namespace"].to_string(), one["name"].to_string()));
    all
}

/// Jobs by name, whose generated end is not compared.
pub fn counts(jobs: &Value) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for job in jobs.as_array().into_iter().flatten() {
        let text = |field: &str| job["metadata"][field].as_str().unwrap_or_default();
        let name = format!("{}/{}<rand>", text("namespace"), text("generateName"));
        *counts.entry(name).or_default() += 1;
    }
    counts
}

fn repositories(list: &Value) -> Vec<Value> {
    let one = |repository: &Value| {
        let metadata = &repository["metadata"];
        let mut one = json!({
            "namespace": metadata["namespace"],
            "name": metadata["name"],
            "spec": repository["spec"],
        });
        if let Some(finalizers) = metadata.get("finalizers") {
            one["finalizers"] = finalizers.clone();
        }
        if metadata.get("deletionTimestamp").is_some() {
            one["terminating"] = true.into();
        }
        strip(&mut one);
        one
    };
    let mut all: Vec<Value> = list.as_array().into_iter().flatten().map(one).collect();
    all.sort_by_key(|one| (one["namespace"].to_string(), one["name"].to_string()));
    all
}

/// Removes what says nothing: a field with the value that it has when it is absent.
pub fn strip(value: &mut Value) {
    let says = |value: &Value| match value {
        Value::Null | Value::Bool(false) => false,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(list) => !list.is_empty(),
        Value::Object(map) => !map.is_empty(),
        Value::Bool(true) => true,
    };
    match value {
        Value::Object(map) => {
            map.values_mut().for_each(strip);
            let kept: Map<String, Value> = std::mem::take(map)
                .into_iter()
                .filter(|(_, value)| says(value))
                .collect();
            *map = kept;
        }
        Value::Array(list) => list.iter_mut().for_each(strip),
        _ => {}
    }
}
