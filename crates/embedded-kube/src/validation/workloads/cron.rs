//! CronJobs.

use super::job;
use super::*;
use tiphys_gocompat::cron;

/// A CronJob's spec, and its name when it is new.
pub fn check(at: &At<'_>, causes: &mut Vec<Cause>) {
    let spec = at.get("spec");
    schedule(&spec, causes);
    spec.get("startingDeadlineSeconds")
        .check(AT_LEAST_0, causes);
    let zone = spec.get("timeZone");
    if zone.old.is_none() || zone.is_changed() {
        time_zone(&zone, causes);
    }
    spec.get("concurrencyPolicy").check(
        &[
            Check::Required(""),
            Check::OneOf(&["Allow", "Forbid", "Replace"]),
        ],
        causes,
    );
    let job = spec.get("jobTemplate.spec");
    job::spec(&job, causes);
    let selector = job.get("selector");
    if !selector.is_null() {
        causes.push(
            selector.invalid_struct("meta/v1.LabelSelector", "`selector` will be auto-generated"),
        );
    }
    if job.get("manualSelector").is_true() {
        causes.push(job.get("manualSelector").not_supported(&["nil", "false"]));
    }
    spec.get("successfulJobsHistoryLimit")
        .check(AT_LEAST_0, causes);
    spec.get("failedJobsHistoryLimit").check(AT_LEAST_0, causes);
    let name = at.get("metadata.name");
    if at.old.is_none() && name.len() > 52 {
        causes.push(name.invalid("must be no more than 52 characters"));
    }
}

fn schedule(spec: &At<'_>, causes: &mut Vec<Cause>) {
    let at = spec.get("schedule");
    if at.is_empty() {
        causes.push(at.required(""));
        return;
    }
    if let Err(why) = cron::Schedule::parse(at.text()) {
        causes.push(at.invalid(&why));
    }
    let had_zone = at
        .old
        .and_then(Value::as_str)
        .is_some_and(|old| old.contains("TZ"));
    if at.text().contains("TZ") {
        if !had_zone {
            causes.push(
                at.invalid("cannot use TZ or CRON_TZ in schedule, use timeZone field instead"),
            );
        } else if !spec.get("timeZone").is_null() {
            causes.push(at.invalid("cannot use both timeZone field and TZ or CRON_TZ in schedule"));
        }
    }
}

fn time_zone(at: &At<'_>, causes: &mut Vec<Cause>) {
    if at.is_null() {
        return;
    }
    if at.is_empty() {
        causes.push(at.invalid("timeZone must be nil or non-empty string"));
        return;
    }
    let unknown = format!("unknown time zone {}", at.text());
    let odd = |c: char| !(c.is_ascii_alphanumeric() && c.is_ascii() || ".-_+".contains(c));
    let bad = |part: &str| {
        matches!(part, "." | ".." | "")
            || part.len() > 14
            || part.starts_with('-')
            || part.contains(odd)
    };
    if at.text().split('/').any(bad) {
        causes.push(at.invalid(&unknown));
        return;
    }
    if at.text().eq_ignore_ascii_case("local") {
        causes.push(at.invalid(
            "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones",
        ));
    }
    if at.text() != "Local" && cron::time_zone(at.text()).is_none() {
        causes.push(at.invalid(&unknown));
    }
}
