//! Jobs.

use super::job_policy;
use super::*;
use regex::Regex;
use serde_json::json;
use std::sync::LazyLock;
use tiphys_kube_schema::formats::{dns_label, dns_subdomain};

const SOFT_LIMIT: i64 = 100_000;
const HIGH_LIMIT: i64 = 10_000;
const COUNTS: &[Rule] = &[
    Rule::Field("parallelism", AT_LEAST_0),
    Rule::Field("completions", AT_LEAST_0),
    Rule::Field("activeDeadlineSeconds", AT_LEAST_0),
    Rule::Field("backoffLimit", AT_LEAST_0),
    Rule::Field("ttlSecondsAfterFinished", AT_LEAST_0),
    Rule::Field("backoffLimitPerIndex", AT_LEAST_0),
    Rule::Field("maxFailedIndexes", AT_LEAST_0),
];

/// The checks of every write of a Job.
pub fn create(at: &At<'_>, template: &At<'_>, causes: &mut Vec<Cause>) {
    generated_selector(at, template, causes);
    selected_spec(&at.get("spec"), causes);
    let (mode, completions) = (
        at.get("spec.completionMode"),
        at.get("spec.completions").int().unwrap_or(0),
    );
    if mode.text() == "Indexed" && completions > 0 {
        let name = at.get("metadata.name");
        let last = format!("{}-{}", name.text(), completions - 1);
        if !dns_label(&last).is_empty() {
            causes.push(name.invalid(&format!(
                "will not able to create pod with invalid DNS label: {last}"
            )));
        }
    }
}

/// The generated selector that separates the pods of two Jobs, and the labels that it requires.
fn generated_selector(at: &At<'_>, template: &At<'_>, causes: &mut Vec<Cause>) {
    let wanted = at.get("spec.selector");
    if at.get("spec.manualSelector").is_true() || wanted.is_null() {
        return;
    }
    let (uid, name) = (at.get("metadata.uid"), at.get("metadata.name"));
    let labels = template.get("metadata.labels");
    let batch = |word: &str| format!("batch.kubernetes.io/{word}");
    let expected = [
        ("controller-uid".to_owned(), uid.text()),
        ("job-name".to_owned(), name.text()),
        (batch("controller-uid"), uid.text()),
        (batch("job-name"), name.text()),
    ];
    let was = at.old.map(|old| {
        At::new(old, "")
            .get("spec.template.metadata.labels")
            .value
            .clone()
    });
    let prefixed = was
        .is_none_or(|was| was.get(&expected[2].0).is_some() && was.get(&expected[3].0).is_some());
    let expected = &expected[..if prefixed { 4 } else { 2 }];
    for (key, value) in expected {
        let label = labels.key(key);
        if label.is_null() {
            causes.push(label.required(&format!("must be '{value}'")));
        } else if label.text() != *value {
            causes.push(label.invalid_as(labels.value.clone(), &format!("must be '{value}'")));
        }
    }
    let made = json!({"metadata": {"labels": expected.iter().cloned().map(|(k, v)| (k, v.into())).collect::<serde_json::Map<_, Value>>()}});
    if selector(&wanted).is_some_and(|s| !selects(&s, &At::new(&made, ""))) {
        causes
            .push(wanted.invalid_struct("meta/v1.LabelSelector", "`selector` not auto-generated"));
    }
}

fn selected_spec(spec: &At<'_>, causes: &mut Vec<Cause>) {
    self::spec(spec, causes);
    let (wanted, template) = (spec.get("selector"), spec.get("template"));
    if wanted.is_null() {
        causes.push(wanted.required(""));
    }
    label_selector(&wanted, causes);
    if selector(&wanted).is_some_and(|s| !selects(&s, &template)) {
        causes.push(mismatch(&template));
    }
}

/// A Job's spec, also in a CronJob.
pub fn spec(spec: &At<'_>, causes: &mut Vec<Cause>) {
    spec.walk(COUNTS, causes);
    let per_index = spec.get("backoffLimitPerIndex");
    if !spec.get("maxFailedIndexes").is_null() && per_index.is_null() {
        causes.push(per_index.required("when maxFailedIndexes is specified"));
    }
    managed_by(&spec.get("managedBy"), causes);
    completion_mode(spec, causes);
    let failure = spec.get("podFailurePolicy");
    if !failure.is_null() {
        job_policy::failure(spec, &failure, causes);
    }
    let success = spec.get("successPolicy");
    if !success.is_null() {
        if spec.get("completionMode").text() == "Indexed" {
            job_policy::success(spec, &success, causes);
        } else {
            causes.push(
                success
                    .invalid_struct("batch/v1.SuccessPolicy", "requires indexed completion mode"),
            );
        }
    }
    let replacement = spec.get("podReplacementPolicy");
    let allowed: &[&str] = if failure.is_null() {
        &["Failed", "TerminatingOrFailed"]
    } else {
        &["Failed"]
    };
    if !replacement.is_null() && !allowed.contains(&replacement.text()) {
        causes.push(replacement.not_supported(allowed));
    }
    pod::template(&spec.get("template"), causes);
    let policy = spec.get("template.spec.restartPolicy");
    match policy.text() {
        "Always" | "" => causes.push(policy.required("valid values: \"OnFailure\", \"Never\"")),
        "Never" => {}
        "OnFailure" if failure.is_null() => {}
        "OnFailure" => causes
            .push(policy.invalid("only \"Never\" is supported when podFailurePolicy is specified")),
        _ => causes.push(policy.not_supported(&["OnFailure", "Never"])),
    }
}

fn managed_by(at: &At<'_>, causes: &mut Vec<Cause>) {
    const PATH: &str = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+";
    static FORM: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(&format!(r"\A{PATH}\z")).expect("the form is a regular expression")
    });
    if at.is_null() {
        return;
    }
    match at.text().split_once('/') {
        _ if at.is_empty() => causes.push(at.required("")),
        Some((host, path)) if !host.is_empty() && !path.is_empty() => {
            causes.extend(dns_subdomain(host).iter().map(|p| at.invalid_as(host, p)));
            if !FORM.is_match(path) {
                causes.push(at.invalid_as(
                    path,
                    &format!("Invalid path (regex used for validation is '{PATH}')"),
                ));
            }
        }
        _ => causes.push(at.invalid("must be a domain-prefixed path (such as \"acme.io/foo\")")),
    }
    at.check(&[Check::MaxBytes(63)], causes);
}

fn completion_mode(spec: &At<'_>, causes: &mut Vec<Cause>) {
    const HIGH: &str = "when completions are above 100000 and used with backoff limit per index";
    let [mode, completions, parallelism, failed, per_index] = [
        "completionMode",
        "completions",
        "parallelism",
        "maxFailedIndexes",
        "backoffLimitPerIndex",
    ]
    .map(|field| spec.get(field));
    if !mode.is_null() && !["NonIndexed", "Indexed"].contains(&mode.text()) {
        causes.push(mode.not_supported(&["NonIndexed", "Indexed"]));
    }
    if mode.is_null() || mode.text() == "NonIndexed" {
        for at in [per_index, failed] {
            causes.extend((!at.is_null()).then(|| at.invalid("requires indexed completion mode")));
        }
        return;
    }
    if mode.text() != "Indexed" {
        return;
    }
    let at_most = |at: &At<'_>, limit: i64, rest: &str| {
        let over = at.int().is_some_and(|n| n > limit);
        over.then(|| at.invalid(&format!("must be less than or equal to {limit}{rest}")))
    };
    if completions.is_null() {
        causes.push(completions.required("when completion mode is Indexed"));
    }
    causes.extend(at_most(
        &parallelism,
        SOFT_LIMIT,
        " when completion mode is Indexed",
    ));
    if let (Some(failed_limit), Some(total)) = (failed.int(), completions.int())
        && failed_limit > total
    {
        causes.push(failed.invalid("must be less than or equal to completions"));
    }
    causes.extend(at_most(&failed, SOFT_LIMIT, ""));
    if completions.int().is_some_and(|n| n > SOFT_LIMIT) && !per_index.is_null() {
        if failed.is_null() {
            causes.push(failed.required("must be specified when completions is above 100000"));
        }
        causes.extend(at_most(&parallelism, HIGH_LIMIT, &format!(" {HIGH}")));
        causes.extend(at_most(&failed, HIGH_LIMIT, &format!(" {HIGH}")));
    }
}

/// Checks the changes of an update.
pub fn update(at: &At<'_>, causes: &mut Vec<Cause>) {
    let spec = at.get("spec");
    selected_spec(&spec, causes);
    let completions = spec.get("completions");
    if spec.get("completionMode").text() != "Indexed" {
        immutable(&completions, "", causes);
    } else if completions.is_changed()
        && !completions.is_null()
        && completions.value != spec.get("parallelism").value
    {
        causes.push(completions.invalid("can only be modified in tandem with spec.parallelism"));
    }
    immutable(&spec.get("selector"), "meta/v1.LabelSelector", causes);
    template_update(at, &spec, causes);
    let fixed = [
        ("completionMode", ""),
        ("podFailurePolicy", "batch/v1.PodFailurePolicy"),
        ("backoffLimitPerIndex", ""),
        ("managedBy", ""),
        ("successPolicy", "batch/v1.SuccessPolicy"),
    ];
    fixed
        .iter()
        .for_each(|(field, of)| immutable(&spec.get(field), of, causes));
}

/// While a Job is suspended and has no pods, their scheduling and resources can be changed.
fn template_update(at: &At<'_>, spec: &At<'_>, causes: &mut Vec<Cause>) {
    let Some(old) = at.old else { return };
    let old_at = At::new(old, "");
    let suspended = old_at.get("spec.suspend").is_true();
    let marked = old_at
        .get("status.conditions")
        .items()
        .iter()
        .any(|c| c.get("type").text() == "Suspended" && c.get("status").text() == "True");
    let idle = old_at.get("status.active").int().unwrap_or(0) == 0;
    let free = suspended && idle && (old_at.get("status.startTime").is_null() || marked);
    let template = spec.get("template");
    let mut before = old_at.get("spec.template").value.clone();
    if free {
        take_over(&mut before, template.value);
    }
    if !free {
        if before != *template.value {
            causes.push(template.invalid_struct("core/v1.PodTemplateSpec", "field is immutable"));
        }
        return;
    }
    let before = before.get("spec").unwrap_or(&Value::Null);
    let now = template.get("spec");
    if before != now.value {
        let place = At::new(now.value, format!("{}.spec", template.path));
        causes.push(place.invalid_struct("core/v1.PodSpec", "field is immutable"));
    }
}

/// Copies the mutable fields, so that only the others can differ.
fn take_over(before: &mut Value, now: &Value) {
    let (Some(old), Some(new)) = (
        before.get_mut("spec").and_then(Value::as_object_mut),
        now.get("spec").and_then(Value::as_object),
    ) else {
        return;
    };
    for field in ["nodeSelector", "tolerations", "schedulingGates"] {
        match new.get(field) {
            Some(value) => old.insert(field.into(), value.clone()),
            None => old.remove(field),
        };
    }
    let affinity = new
        .get("affinity")
        .and_then(|a| a.get("nodeAffinity"))
        .cloned();
    let mut kept = old
        .get("affinity")
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default();
    kept.remove("nodeAffinity");
    kept.extend(affinity.map(|a| ("nodeAffinity".to_owned(), a)));
    if kept.is_empty() && !new.contains_key("affinity") {
        old.remove("affinity");
    } else {
        old.insert("affinity".into(), kept.into());
    }
    for list in ["containers", "initContainers"] {
        let (Some(old), Some(new)) = (
            old.get_mut(list).and_then(Value::as_array_mut),
            new.get(list).and_then(Value::as_array),
        ) else {
            continue;
        };
        if old.len() != new.len() {
            continue;
        }
        for (old, new) in old
            .iter_mut()
            .zip(new)
            .filter(|(old, new)| old.get("name") == new.get("name"))
        {
            old["resources"] = new.get("resources").cloned().unwrap_or_else(|| json!({}));
        }
    }
}
