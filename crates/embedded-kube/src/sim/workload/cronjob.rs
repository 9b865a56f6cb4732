//! CronJob: starts a Job at each scheduled time, in its time zone or UTC.

use super::super::{
    fields::{
        after, owned_object, parse_time, rfc3339, set_metadata_map, spec_bool, spec_i64, text,
    },
    kind::Kind,
    plan::{Note, Plan},
    store::Propagation,
};
use super::job;
use jiff::{Timestamp, tz::TimeZone};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use tiphys_apimachinery::Object;
use tiphys_gocompat::cron::{self, Schedule};

/// The next step of a CronJob. `jobs` are the Jobs it owns.
pub fn reconcile(cron: &Object, jobs: &[Arc<Object>], now: Timestamp) -> Plan {
    let mut plan = Plan::default();
    let active: Vec<&Arc<Object>> = jobs
        .iter()
        .filter(|j| !job::is_finished(j) && j.deletion_timestamp().is_none())
        .collect();
    let done = jobs
        .iter()
        .filter(|j| job::is_finished(j))
        .filter_map(|j| parse_time(j.str_at("/status/completionTime")))
        .max();
    let noted = parse_time(cron.str_at("/status/lastSuccessfulTime"));
    let mut scheduled = parse_time(cron.str_at("/status/lastScheduleTime"));
    let mut created = None;
    if cron.deletion_timestamp().is_none() {
        trim_history(&mut plan, cron, jobs);
        if !spec_bool(cron, "suspend")
            && let Some((schedule, zone)) = schedule_of(&mut plan, cron)
        {
            let base = scheduled
                .or_else(|| parse_time(cron.creation_timestamp()))
                .unwrap_or(now);
            if let Some(due) = latest_due((&schedule, &zone), base, now) {
                created = start(&mut plan, cron, &active, due, now);
                scheduled = created.as_ref().map(|_| due).or(scheduled);
            }
            if let Some(next) = schedule.next(now, &zone) {
                plan.wake_at(next);
            }
        }
    }
    let mut status = Map::new();
    let replaced = created.is_some() && cron.str_at("/spec/concurrencyPolicy") == "Replace";
    let list: Vec<Value> = active
        .iter()
        .filter(|_| !replaced)
        .map(|j| reference(j))
        .collect();
    if !list.is_empty() {
        status.insert("active".into(), Value::Array(list));
    }
    for (field, time) in [
        ("lastScheduleTime", scheduled),
        ("lastSuccessfulTime", done.max(noted)),
    ] {
        if let Some(time) = time {
            status.insert(field.into(), rfc3339(time).into());
        }
    }
    let notes = ended(cron, jobs);
    plan.status(cron, Value::Object(status), notes);
    if let Some(object) = created {
        plan.create(
            object,
            Some(Note::normal("SuccessfulCreate", "Created job {name}")),
        );
    }
    plan
}

/// The schedule and its time zone, or an event about the error in them.
fn schedule_of(plan: &mut Plan, cron: &Object) -> Option<(Schedule, TimeZone)> {
    let (text, zone) = (cron.str_at("/spec/schedule"), cron.str_at("/spec/timeZone"));
    let Ok(schedule) = Schedule::parse(text) else {
        plan.remark(Note::warning(
            "UnparseableSchedule",
            format!("unparseable schedule: {text:?}"),
        ));
        return None;
    };
    match cron::time_zone(zone) {
        Some(zone) => Some((schedule, zone)),
        None => {
            plan.remark(Note::warning(
                "UnknownTimeZone",
                format!("invalid timeZone: {zone:?}: unknown time zone {zone}"),
            ));
            None
        }
    }
}

/// The events about Jobs that are no longer active.
fn ended(cron: &Object, jobs: &[Arc<Object>]) -> Vec<Note> {
    let noted = cron
        .pointer("/status/active")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let of_one = |reference: &Value| {
        let (name, uid) = (text(reference, "name"), text(reference, "uid"));
        match jobs.iter().find(|j| j.uid() == uid) {
            None => Some(Note::normal(
                "MissingJob",
                format!("Active job went missing: {name}"),
            )),
            Some(job) if job::is_finished(job) => {
                let condition = if super::super::fields::condition_is_true(job, "Complete") {
                    "Complete"
                } else {
                    "Failed"
                };
                Some(Note::normal(
                    "SawCompletedJob",
                    format!("Saw completed job: {name}, condition: {condition}"),
                ))
            }
            Some(_) => None,
        }
    };
    noted.filter_map(of_one).collect()
}

/// The last due time after `base`; missed times in between are skipped.
fn latest_due(
    (schedule, zone): (&Schedule, &TimeZone),
    base: Timestamp,
    now: Timestamp,
) -> Option<Timestamp> {
    // After a long pause only the last hours matter; checking every missed minute of a year would
    // be a waste.
    let base = base.max(after(now, -86_400));
    let mut due = None;
    let mut time = base;
    while let Some(next) = schedule.next(time, zone).filter(|n| *n <= now) {
        due = Some(next);
        time = next;
    }
    due
}

fn start(
    plan: &mut Plan,
    cron: &Object,
    active: &[&Arc<Object>],
    due: Timestamp,
    now: Timestamp,
) -> Option<Object> {
    if let Some(deadline) = cron.i64_at("/spec/startingDeadlineSeconds")
        && after(due, deadline) < now
    {
        let time = due
            .to_zoned(TimeZone::UTC)
            .strftime("%a, %d %b %Y %H:%M:%S +0000")
            .to_string();
        plan.remark(Note::warning(
            "MissSchedule",
            format!("Missed scheduled time to start a job: {time}"),
        ));
        return None;
    }
    match cron.str_at("/spec/concurrencyPolicy") {
        "Forbid" if !active.is_empty() => {
            let message = "Not starting job because prior execution is running and concurrency policy is Forbid";
            plan.remark(Note::normal("JobAlreadyActive", message));
            return None;
        }
        "Replace" => active.iter().for_each(|j| {
            plan.delete(
                j,
                Some(Note::normal(
                    "SuccessfulDelete",
                    format!("Deleted job {}", j.name()),
                )),
            )
        }),
        _ => {}
    }
    let template = cron.pointer("/spec/jobTemplate").unwrap_or(&Value::Null);
    let name = format!(
        "{}-{}",
        &cron.name()[..cron.name().len().min(52)],
        due.as_second() / 60
    );
    let mut job = owned_object(Kind::Job, cron, &name);
    set_metadata_map(&mut job, "labels", template.pointer("/metadata/labels"));
    set_metadata_map(
        &mut job,
        "annotations",
        template.pointer("/metadata/annotations"),
    );
    job.set_annotation(
        "batch.kubernetes.io/cronjob-scheduled-timestamp",
        &rfc3339(due),
    );
    job.0.insert(
        "spec".into(),
        template.get("spec").cloned().unwrap_or_else(|| json!({})),
    );
    Some(job)
}

fn reference(job: &Object) -> Value {
    json!({
        "apiVersion": job.api_version(), "kind": job.kind(), "namespace": job.namespace(), "name": job.name(), "uid": job.uid(),
        "resourceVersion": job.resource_version(),
    })
}

fn trim_history(plan: &mut Plan, cron: &Object, jobs: &[Arc<Object>]) {
    for (kind, field, default) in [
        ("Complete", "successfulJobsHistoryLimit", 3),
        ("Failed", "failedJobsHistoryLimit", 1),
    ] {
        let limit = usize::try_from(spec_i64(cron, field, default)).unwrap_or(0);
        let mut finished: Vec<&Arc<Object>> = jobs
            .iter()
            .filter(|j| {
                j.deletion_timestamp().is_none() && super::super::fields::condition_is_true(j, kind)
            })
            .collect();
        finished.sort_by(|a, b| a.creation_timestamp().cmp(b.creation_timestamp()));
        for job in finished.iter().take(finished.len().saturating_sub(limit)) {
            plan.delete_with(
                job,
                None,
                Propagation::Background,
                Some(Note::normal(
                    "SuccessfulDelete",
                    format!("Deleted job {}", job.name()),
                )),
            );
        }
    }
}
