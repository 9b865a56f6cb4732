//! CronJob: starts a Job at each time its schedule names, in its time zone or UTC.

use super::super::{
    fields::{after, owned_object, parse_time, rfc3339, set_metadata_map, spec_bool, spec_i64, text},
    kind::Kind,
    plan::{Note, Plan},
    store::Propagation,
};
use super::job;
use jiff::{Timestamp, ToSpan, civil, tz::TimeZone};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use tiphys_apimachinery::Object;

/// A five-field schedule: the minutes, hours, days, months and weekdays that count, as bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    weekdays: u64,
    any_day: bool,
    any_weekday: bool,
}

impl Schedule {
    /// Reads `minute hour day month weekday` or a macro such as `@hourly`; `None` when it is neither.
    pub fn parse(text: &str) -> Option<Self> {
        let text = match text.trim() {
            "@yearly" | "@annually" => "0 0 1 1 *",
            "@monthly" => "0 0 1 * *",
            "@weekly" => "0 0 * * 0",
            "@daily" | "@midnight" => "0 0 * * *",
            "@hourly" => "0 * * * *",
            other => other,
        };
        let parts: Vec<&str> = text.split_whitespace().collect();
        let [minute, hour, day, month, weekday] = parts.as_slice() else { return None };
        const MONTHS: &[&str] = &["", "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
        const DAYS: &[&str] = &["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
        let weekdays = field(weekday, 0, 7, DAYS)?;
        let star = |s: &str| s.starts_with(['*', '?']);
        Some(Self {
            minutes: field(minute, 0, 59, &[])?,
            hours: field(hour, 0, 23, &[])?,
            days: field(day, 1, 31, &[])?,
            months: field(month, 1, 12, MONTHS)?,
            // 7 is Sunday too.
            weekdays: (weekdays | (weekdays >> 7)) & 0x7f,
            any_day: star(day),
            any_weekday: star(weekday),
        })
    }

    fn has_day(&self, date: civil::Date) -> bool {
        let day = self.days >> date.day() & 1 == 1;
        let weekday = self.weekdays >> date.weekday().to_sunday_zero_offset() & 1 == 1;
        let fits = if self.any_day || self.any_weekday { day && weekday } else { day || weekday };
        fits && self.months >> date.month() & 1 == 1
    }

    /// The first time after `time`; `None` when there is none within five years.
    pub fn next(&self, time: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let start = zone.to_datetime(time.checked_add(1.minute()).ok()?);
        let mut date = start.date();
        let mut from = (start.hour(), start.minute());
        for _ in 0..5 * 366 {
            if self.has_day(date) {
                for hour in from.0..24 {
                    let first = if hour == from.0 { from.1 } else { 0 };
                    let minute = (first..60).find(|m| self.minutes >> m & 1 == 1);
                    if let (1, Some(minute)) = (self.hours >> hour & 1, minute) {
                        return zone.to_timestamp(date.at(hour, minute, 0, 0)).ok();
                    }
                }
            }
            date = date.tomorrow().ok()?;
            from = (0, 0);
        }
        None
    }
}

/// A list of `*`, numbers, names, ranges and steps, as bits.
fn field(text: &str, min: u32, max: u32, names: &[&str]) -> Option<u64> {
    let number = |word: &str| {
        let named = names.iter().position(|n| !n.is_empty() && n.eq_ignore_ascii_case(word)).and_then(|p| u32::try_from(p).ok());
        named.or_else(|| word.parse().ok()).filter(|n| (min..=max).contains(n))
    };
    let mut bits = 0;
    for part in text.split(',') {
        let (range, step) = part.split_once('/').map_or((part, None), |(r, s)| (r, Some(s)));
        let step: u32 = step.map_or(Some(1), |s| s.parse().ok()).filter(|s| *s > 0)?;
        let (from, to) = match range.split_once('-') {
            Some((from, to)) => (number(from)?, number(to)?),
            None if matches!(range, "*" | "?") => (min, max),
            None if part.contains('/') => (number(range)?, max),
            None => (number(range)?, number(range)?),
        };
        (from..=to).step_by(usize::try_from(step).ok()?).for_each(|n| bits |= 1 << n);
    }
    Some(bits)
}

/// The next step of a CronJob. `jobs` are those it owns.
pub fn reconcile(cron: &Object, jobs: &[Arc<Object>], now: Timestamp) -> Plan {
    let mut plan = Plan::default();
    let active: Vec<&Arc<Object>> = jobs.iter().filter(|j| !job::is_finished(j) && j.deletion_timestamp().is_none()).collect();
    let done = jobs.iter().filter(|j| job::is_finished(j)).filter_map(|j| parse_time(j.str_at("/status/completionTime"))).max();
    let noted = parse_time(cron.str_at("/status/lastSuccessfulTime"));
    let mut scheduled = parse_time(cron.str_at("/status/lastScheduleTime"));
    let mut created = None;
    if cron.deletion_timestamp().is_none() {
        trim_history(&mut plan, cron, jobs);
        if !spec_bool(cron, "suspend")
            && let Some((schedule, zone)) = schedule_of(&mut plan, cron)
        {
            let base = scheduled.or_else(|| parse_time(cron.creation_timestamp())).unwrap_or(now);
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
    let list: Vec<Value> = active.iter().filter(|_| !replaced).map(|j| reference(j)).collect();
    if !list.is_empty() {
        status.insert("active".into(), Value::Array(list));
    }
    for (field, time) in [("lastScheduleTime", scheduled), ("lastSuccessfulTime", done.max(noted))] {
        if let Some(time) = time {
            status.insert(field.into(), rfc3339(time).into());
        }
    }
    let notes = ended(cron, jobs);
    plan.status(cron, Value::Object(status), notes);
    if let Some(object) = created {
        plan.create(object, Some(Note::normal("SuccessfulCreate", "Created job {name}")));
    }
    plan
}

/// The schedule and its time zone, or a remark on what is wrong with them.
fn schedule_of(plan: &mut Plan, cron: &Object) -> Option<(Schedule, TimeZone)> {
    let (text, zone) = (cron.str_at("/spec/schedule"), cron.str_at("/spec/timeZone"));
    let Some(schedule) = Schedule::parse(text) else {
        plan.remark(Note::warning("UnparseableSchedule", format!("unparseable schedule: {text:?}")));
        return None;
    };
    if zone.is_empty() {
        return Some((schedule, TimeZone::UTC));
    }
    match TimeZone::get(zone) {
        Ok(zone) => Some((schedule, zone)),
        Err(_) => {
            plan.remark(Note::warning("UnknownTimeZone", format!("invalid timeZone: {zone:?}: unknown time zone {zone}")));
            None
        }
    }
}

/// What is said of the Jobs that were active and are not any more.
fn ended(cron: &Object, jobs: &[Arc<Object>]) -> Vec<Note> {
    let noted = cron.pointer("/status/active").and_then(Value::as_array).into_iter().flatten();
    let of_one = |reference: &Value| {
        let (name, uid) = (text(reference, "name"), text(reference, "uid"));
        match jobs.iter().find(|j| j.uid() == uid) {
            None => Some(Note::normal("MissingJob", format!("Active job went missing: {name}"))),
            Some(job) if job::is_finished(job) => {
                let condition = if super::super::fields::condition_is_true(job, "Complete") { "Complete" } else { "Failed" };
                Some(Note::normal("SawCompletedJob", format!("Saw completed job: {name}, condition: {condition}")))
            }
            Some(_) => None,
        }
    };
    noted.filter_map(of_one).collect()
}

/// The last scheduled time after `base` that has come; times missed in between are skipped.
fn latest_due((schedule, zone): (&Schedule, &TimeZone), base: Timestamp, now: Timestamp) -> Option<Timestamp> {
    // After a long pause only the last hours matter; looking at each missed minute of a year would be work for nothing.
    let base = base.max(after(now, -86_400));
    let mut due = None;
    let mut time = base;
    while let Some(next) = schedule.next(time, zone).filter(|n| *n <= now) {
        due = Some(next);
        time = next;
    }
    due
}

fn start(plan: &mut Plan, cron: &Object, active: &[&Arc<Object>], due: Timestamp, now: Timestamp) -> Option<Object> {
    if let Some(deadline) = cron.i64_at("/spec/startingDeadlineSeconds")
        && after(due, deadline) < now
    {
        let time = due.to_zoned(TimeZone::UTC).strftime("%a, %d %b %Y %H:%M:%S +0000").to_string();
        plan.remark(Note::warning("MissSchedule", format!("Missed scheduled time to start a job: {time}")));
        return None;
    }
    match cron.str_at("/spec/concurrencyPolicy") {
        "Forbid" if !active.is_empty() => {
            let message = "Not starting job because prior execution is running and concurrency policy is Forbid";
            plan.remark(Note::normal("JobAlreadyActive", message));
            return None;
        }
        "Replace" => {
            active.iter().for_each(|j| plan.delete(j, Some(Note::normal("SuccessfulDelete", format!("Deleted job {}", j.name())))))
        }
        _ => {}
    }
    let template = cron.pointer("/spec/jobTemplate").unwrap_or(&Value::Null);
    let name = format!("{}-{}", &cron.name()[..cron.name().len().min(52)], due.as_second() / 60);
    let mut job = owned_object(Kind::Job, cron, &name);
    set_metadata_map(&mut job, "labels", template.pointer("/metadata/labels"));
    set_metadata_map(&mut job, "annotations", template.pointer("/metadata/annotations"));
    job.set_annotation("batch.kubernetes.io/cronjob-scheduled-timestamp", &rfc3339(due));
    job.0.insert("spec".into(), template.get("spec").cloned().unwrap_or_else(|| json!({})));
    Some(job)
}

fn reference(job: &Object) -> Value {
    json!({
        "apiVersion": job.api_version(), "kind": job.kind(), "namespace": job.namespace(), "name": job.name(), "uid": job.uid(),
        "resourceVersion": job.resource_version(),
    })
}

fn trim_history(plan: &mut Plan, cron: &Object, jobs: &[Arc<Object>]) {
    for (kind, field, default) in [("Complete", "successfulJobsHistoryLimit", 3), ("Failed", "failedJobsHistoryLimit", 1)] {
        let limit = usize::try_from(spec_i64(cron, field, default)).unwrap_or(0);
        let mut finished: Vec<&Arc<Object>> =
            jobs.iter().filter(|j| j.deletion_timestamp().is_none() && super::super::fields::condition_is_true(j, kind)).collect();
        finished.sort_by(|a, b| a.creation_timestamp().cmp(b.creation_timestamp()));
        for job in finished.iter().take(finished.len().saturating_sub(limit)) {
            plan.delete_with(
                job,
                None,
                Propagation::Background,
                Some(Note::normal("SuccessfulDelete", format!("Deleted job {}", job.name()))),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_time_of_a_schedule() {
        for (schedule, from, want) in [
            ("* * * * *", "2026-03-01T10:00:30Z", Some("2026-03-01T10:01:00Z")),
            ("*/15 * * * *", "2026-03-01T10:46:00Z", Some("2026-03-01T11:00:00Z")),
            ("30 2 * * mon-fri", "2026-03-06T03:00:00Z", Some("2026-03-09T02:30:00Z")),
            ("0 0 29 2 *", "2026-03-01T00:00:00Z", Some("2028-02-29T00:00:00Z")),
            ("0 0 13 * 5", "2026-03-01T00:00:00Z", Some("2026-03-06T00:00:00Z")),
            ("0 0 * * 7", "2026-03-02T00:00:00Z", Some("2026-03-08T00:00:00Z")),
            ("@hourly", "2026-12-31T23:00:00Z", Some("2027-01-01T00:00:00Z")),
            ("0 0 31 2 *", "2026-03-01T00:00:00Z", None),
        ] {
            let next = Schedule::parse(schedule).expect(schedule).next(parse_time(from).expect(from), &TimeZone::UTC);
            assert_eq!(next.map(rfc3339).as_deref(), want, "{schedule}");
        }
        let tokyo = TimeZone::get("Asia/Tokyo").expect("a known zone");
        let noon = Schedule::parse("0 12 * * *").expect("a schedule").next(parse_time("2026-03-01T00:00:00Z").expect("a time"), &tokyo);
        assert_eq!(noon.map(rfc3339).as_deref(), Some("2026-03-01T03:00:00Z"));
        for bad in ["", "* * * *", "60 * * * *", "* * * * mo", "*/0 * * * *", "5-x * * * *"] {
            assert_eq!(Schedule::parse(bad), None, "{bad}");
        }
    }
}
