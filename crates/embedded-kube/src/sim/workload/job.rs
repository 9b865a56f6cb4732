//! Job: runs pods until enough have succeeded, or too many have failed.

use super::super::{
    engine::Failure,
    fields::{
        Cond, after, conditions, find_condition, parse_time, put_counts, rfc3339, set_condition, spec_bool, spec_i64, status_i64, text,
    },
    plan::{Change, Note, Plan},
    store::Propagation,
};
use super::pods;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};
use std::{collections::BTreeSet, sync::Arc};
use tiphys_apimachinery::Object;

/// Keeps a pod until the Job has counted it.
const TRACKING: &str = "batch.kubernetes.io/job-tracking";
const INDEX: &str = "batch.kubernetes.io/job-completion-index";

struct Spec<'a> {
    job: &'a Object,
    /// `None`: done when one pod succeeded and none is left.
    completions: Option<i64>,
    parallelism: i64,
    backoff_limit: i64,
    deadline: Option<i64>,
    ttl: Option<i64>,
    suspended: bool,
    indexed: bool,
}

impl<'a> Spec<'a> {
    fn read(job: &'a Object) -> Self {
        let number = |field: &str| job.pointer("/spec").and_then(|s| s.get(field)).and_then(Value::as_i64);
        let (completions, parallelism) = (number("completions"), number("parallelism"));
        Self {
            job,
            // Neither given means one pod.
            completions: completions.or(if parallelism.is_none() { Some(1) } else { None }),
            parallelism: parallelism.unwrap_or(1),
            backoff_limit: spec_i64(job, "backoffLimit", 6),
            deadline: number("activeDeadlineSeconds"),
            ttl: number("ttlSecondsAfterFinished"),
            suspended: spec_bool(job, "suspend"),
            indexed: job.str_at("/spec/completionMode") == "Indexed",
        }
    }
}

/// Where a Job stands, after counting what has newly ended.
struct Tally {
    succeeded: i64,
    failed: i64,
    /// The uids that are counted but still have the finalizer.
    counted: BTreeSet<String>,
    indexes: BTreeSet<i64>,
}

/// Whether a Job has a condition Complete or Failed.
pub fn is_finished(job: &Object) -> bool {
    let list = conditions(job);
    ["Complete", "Failed"].iter().any(|kind| find_condition(&list, kind).is_some_and(|c| text(c, "status") == "True"))
}

/// The next step of a Job.
pub fn reconcile(job: &Object, members: &[Arc<Object>], failure: Option<&Failure>, now: Timestamp) -> Plan {
    let mut plan = Plan::default();
    let spec = Spec::read(job);
    if job.deletion_timestamp().is_some() || is_finished(job) {
        for pod in members.iter().filter(|p| tracked(p)) {
            untrack(&mut plan, pod);
        }
        expire(&mut plan, &spec, now);
        return plan;
    }
    if !text(job.pointer("/spec").unwrap_or(&Value::Null), "managedBy").is_empty()
        && job.str_at("/spec/managedBy") != "kubernetes.io/job-controller"
    {
        return plan;
    }
    let tally = tally(job, members);
    for pod in members.iter().filter(|p| tracked(p) && tally.counted.contains(p.uid()) && was_counted(job, p.uid())) {
        untrack(&mut plan, pod);
    }
    let mut step = Step { spec, members, tally, list: conditions(job), notes: Vec::new(), now };
    step.run(&mut plan, failure);
    plan
}

fn tracked(pod: &Object) -> bool {
    pod.finalizers().iter().any(|f| f == TRACKING)
}

fn untrack(plan: &mut Plan, pod: &Object) {
    let mut freed = pod.clone();
    freed.set_finalizers(pod.finalizers().into_iter().filter(|f| f != TRACKING).collect());
    plan.push(Change::Update(freed));
}

/// Deletes a pod that is not wanted any more without counting it as a failure.
fn discard(plan: &mut Plan, pod: &Object) {
    if tracked(pod) {
        untrack(plan, pod);
    }
    plan.delete(pod, Some(Note::normal("SuccessfulDelete", format!("Deleted pod: {}", pod.name()))));
}

fn uncounted(job: &Object) -> impl Iterator<Item = &str> {
    let lists = ["succeeded", "failed"].into_iter();
    let list = move |field| job.pointer("/status/uncountedTerminatedPods").and_then(|u| u.get(field)).and_then(Value::as_array);
    lists.filter_map(list).flatten().filter_map(Value::as_str)
}

fn was_counted(job: &Object, uid: &str) -> bool {
    uncounted(job).any(|u| u == uid)
}

/// A pod that ended, or is being deleted without having succeeded, counts once: while it has the finalizer and is not listed yet.
fn tally(job: &Object, members: &[Arc<Object>]) -> Tally {
    let listed: BTreeSet<&str> = uncounted(job).collect();
    let mut tally = Tally {
        succeeded: status_i64(job, "succeeded"),
        failed: status_i64(job, "failed"),
        counted: BTreeSet::new(),
        indexes: parse_indexes(job.str_at("/status/completedIndexes")),
    };
    for pod in members.iter().filter(|p| tracked(p)) {
        let ended = pods::is_ended(pod);
        let new = !listed.contains(pod.uid());
        if ended || pod.deletion_timestamp().is_some() {
            let succeeded = pod.str_at("/status/phase") == "Succeeded";
            if new && succeeded {
                tally.succeeded += 1;
                tally.indexes.extend(pod.annotation(INDEX).and_then(|i| i.parse::<i64>().ok()));
            } else if new {
                tally.failed += 1;
            }
            tally.counted.insert(pod.uid().to_owned());
        }
    }
    tally
}

/// `0-2,5` as a set.
fn parse_indexes(text: &str) -> BTreeSet<i64> {
    let range = |part: &str| {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        Some(from.parse::<i64>().ok()?..=to.parse::<i64>().ok()?.min(100_000))
    };
    text.split(',').filter_map(range).flatten().collect()
}

fn print_indexes(set: &BTreeSet<i64>) -> String {
    let mut ranges: Vec<(i64, i64)> = Vec::new();
    for index in set {
        match ranges.last_mut() {
            Some((_, to)) if *to + 1 == *index => *to = *index,
            _ => ranges.push((*index, *index)),
        }
    }
    let print = |(from, to): (i64, i64)| match to - from {
        0 => from.to_string(),
        1 => format!("{from},{to}"),
        _ => format!("{from}-{to}"),
    };
    ranges.into_iter().map(print).collect::<Vec<_>>().join(",")
}

struct Step<'a> {
    spec: Spec<'a>,
    members: &'a [Arc<Object>],
    tally: Tally,
    list: Vec<Value>,
    notes: Vec<Note>,
    now: Timestamp,
}

impl Step<'_> {
    fn active(&self) -> Vec<&Arc<Object>> {
        self.members.iter().filter(|p| pods::is_active(p)).collect()
    }

    fn has(&self, kind: &str) -> bool {
        find_condition(&self.list, kind).is_some_and(|c| text(c, "status") == "True")
    }

    fn set(&mut self, kind: &str, status: bool, reason: &str, message: &str) {
        set_condition(&mut self.list, Cond { kind, status, reason, message }, self.now);
        if let Some(Value::Object(map)) = self.list.iter_mut().find(|c| text(c, "type") == kind) {
            map.insert("lastProbeTime".into(), rfc3339(self.now).into());
        }
    }

    fn run(&mut self, plan: &mut Plan, failure: Option<&Failure>) {
        let mut start = self.spec.job.str_at("/status/startTime").to_owned();
        if start.is_empty() && !self.spec.suspended {
            start = rfc3339(self.now);
        }
        if !self.has("SuccessCriteriaMet") && !self.has("FailureTarget") {
            self.judge(plan, &start);
        }
        let ending = self.has("SuccessCriteriaMet") || self.has("FailureTarget");
        if ending {
            for pod in self.active() {
                plan.delete(pod, Some(Note::normal("SuccessfulDelete", format!("Deleted pod: {}", pod.name()))));
            }
        } else {
            if self.suspend() {
                start = if self.spec.suspended { String::new() } else { rfc3339(self.now) };
            }
            self.manage(plan, failure);
        }
        // Finished only when no pod is left that runs, is stopping or waits to be counted.
        let left = self.members.iter().any(|p| !pods::is_ended(p) || tracked(p));
        if ending && !left && self.tally.counted.is_empty() {
            self.finish();
        }
        self.status(plan, &start);
    }

    /// Decides whether the Job has succeeded or failed.
    fn judge(&mut self, plan: &mut Plan, start: &str) {
        let running = !self.active().is_empty();
        let age = |s: &str| parse_time(s).map(|s| self.now.duration_since(s));
        if self.tally.failed > self.spec.backoff_limit {
            return self.set("FailureTarget", true, "BackoffLimitExceeded", "Job has reached the specified backoff limit");
        }
        if let (Some(deadline), Some(age), false) = (self.spec.deadline, age(start), self.spec.suspended) {
            if age >= SignedDuration::from_secs(deadline) {
                return self.set("FailureTarget", true, "DeadlineExceeded", "Job was active longer than specified deadline");
            }
            plan.wake_at(after(parse_time(start).unwrap_or(self.now), deadline));
        }
        let done = if self.spec.indexed { i64::try_from(self.tally.indexes.len()).unwrap_or(i64::MAX) } else { self.tally.succeeded };
        let complete = match self.spec.completions {
            Some(wanted) => done >= wanted,
            None => self.tally.succeeded > 0,
        };
        if complete && !running {
            self.set("SuccessCriteriaMet", true, "CompletionsReached", "Reached expected number of succeeded pods");
        }
    }

    /// Notes a suspension or a resumption; says whether it is new.
    fn suspend(&mut self) -> bool {
        let noted = find_condition(&self.list, "Suspended").map(|c| text(c, "status") == "True");
        let (reason, message) = if self.spec.suspended { ("JobSuspended", "Job suspended") } else { ("JobResumed", "Job resumed") };
        if noted.unwrap_or(false) == self.spec.suspended {
            return false;
        }
        self.set("Suspended", self.spec.suspended, reason, message);
        self.notes.push(Note::normal(if self.spec.suspended { "Suspended" } else { "Resumed" }, message));
        true
    }

    fn manage(&self, plan: &mut Plan, failure: Option<&Failure>) {
        let active = self.active();
        let running = i64::try_from(active.len()).unwrap_or(i64::MAX);
        if self.spec.suspended {
            active.into_iter().for_each(|pod| discard(plan, pod));
            return;
        }
        let done = if self.spec.indexed { i64::try_from(self.tally.indexes.len()).unwrap_or(i64::MAX) } else { self.tally.succeeded };
        let wanted = match self.spec.completions {
            Some(completions) => (completions - done).clamp(0, self.spec.parallelism),
            None if self.tally.succeeded > 0 => running,
            None => self.spec.parallelism,
        };
        if running > wanted {
            let mut surplus: Vec<Arc<Object>> = active.into_iter().cloned().collect();
            pods::sort_for_deletion(&mut surplus);
            for pod in surplus.iter().take(usize::try_from(running - wanted).unwrap_or(0)) {
                discard(plan, pod);
            }
            return;
        }
        let until = [self.retry_at(), failure.map(|f| f.until)].into_iter().flatten().max();
        if let Some(until) = until.filter(|u| *u > self.now && running < wanted) {
            return plan.wake_at(until);
        }
        let mut free = (0..self.spec.completions.unwrap_or(0))
            .filter(|i| !self.tally.indexes.contains(i) && !active.iter().any(|p| p.annotation(INDEX) == Some(&i.to_string())));
        for _ in running..wanted.min(running + 500) {
            let index = if self.spec.indexed { free.next() } else { None };
            plan.create(self.pod(index), Some(Note::normal("SuccessfulCreate", "Created pod: {name}")));
        }
    }

    /// After failures the next pod waits: 10 s, doubled with each one, at most 10 minutes.
    fn retry_at(&self) -> Option<Timestamp> {
        let failed = self.members.iter().filter(|p| p.str_at("/status/phase") == "Failed");
        let ended = |p: &Arc<Object>| parse_time(p.str_at("/status/containerStatuses/0/state/terminated/finishedAt"));
        let last = failed.filter_map(ended).max()?;
        let doublings = u32::try_from((self.tally.failed - 1).clamp(0, 6)).unwrap_or(0);
        Some(after(last, (10 << doublings).min(600)))
    }

    fn pod(&self, index: Option<i64>) -> Object {
        let job = self.spec.job;
        let template = job.pointer("/spec/template").cloned().unwrap_or(Value::Null);
        let infix = index.map(|i| format!("-{i}")).unwrap_or_default();
        let mut pod = pods::from_template(job, &template, &pods::name_prefix(&format!("{}{infix}", job.name())));
        for (key, value) in [("controller-uid", job.uid()), ("job-name", job.name())] {
            pod.set_label(key, value);
            pod.set_label(&format!("batch.kubernetes.io/{key}"), value);
        }
        if let Some(index) = index {
            pod.set_annotation(INDEX, &index.to_string());
            pod.set_label(INDEX, &index.to_string());
        }
        let mut finalizers = pod.finalizers();
        finalizers.push(TRACKING.into());
        pod.set_finalizers(finalizers);
        pod
    }

    fn finish(&mut self) {
        let (from, to) = if self.has("SuccessCriteriaMet") { ("SuccessCriteriaMet", "Complete") } else { ("FailureTarget", "Failed") };
        let Some(target) = find_condition(&self.list, from).cloned() else { return };
        let (reason, message) = (text(&target, "reason"), text(&target, "message"));
        self.set(to, true, reason, message);
        self.notes.push(match reason {
            "CompletionsReached" => Note::normal("Completed", "Job completed"),
            "DeadlineExceeded" => Note::warning("DeadlineExceeded", message),
            _ => Note::warning("BackoffLimitExceeded", message),
        });
    }

    fn status(&mut self, plan: &mut Plan, start: &str) {
        let active = self.active();
        let number = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
        let ready = active.iter().filter(|p| pods::is_ready(p)).count();
        let terminating = self.members.iter().filter(|p| p.deletion_timestamp().is_some() && !pods::is_ended(p)).count();
        let mut status = Map::new();
        put_counts(&mut status, &[("active", number(active.len())), ("succeeded", self.tally.succeeded), ("failed", self.tally.failed)]);
        status.insert("ready".into(), ready.into());
        status.insert("terminating".into(), terminating.into());
        if !start.is_empty() {
            status.insert("startTime".into(), start.into());
        }
        if self.spec.indexed && !self.tally.indexes.is_empty() {
            status.insert("completedIndexes".into(), print_indexes(&self.tally.indexes).into());
        }
        let done = find_condition(&self.list, "Complete").map(|c| text(c, "lastTransitionTime").to_owned());
        if let Some(at) = done {
            status.insert("completionTime".into(), at.into());
        }
        status.insert("uncountedTerminatedPods".into(), self.uncounted());
        if !self.list.is_empty() {
            status.insert("conditions".into(), Value::Array(std::mem::take(&mut self.list)));
        }
        plan.status(self.spec.job, Value::Object(status), std::mem::take(&mut self.notes));
    }

    fn uncounted(&self) -> Value {
        let mut lists = Map::new();
        for pod in self.members.iter().filter(|p| self.tally.counted.contains(p.uid())) {
            let field = if pod.str_at("/status/phase") == "Succeeded" { "succeeded" } else { "failed" };
            if let Some(list) = lists.entry(field).or_insert_with(|| json!([])).as_array_mut() {
                list.push(pod.uid().into());
            }
        }
        Value::Object(lists)
    }
}

/// Deletes a finished Job when its time to live is over.
fn expire(plan: &mut Plan, spec: &Spec<'_>, now: Timestamp) {
    let Some(ttl) = spec.ttl.filter(|_| spec.job.deletion_timestamp().is_none()) else { return };
    let list = conditions(spec.job);
    let finished = ["Complete", "Failed"].iter().find_map(|k| parse_time(text(find_condition(&list, k)?, "lastTransitionTime")));
    let Some(due) = finished.map(|f| after(f, ttl)) else { return };
    if due > now {
        plan.wake_at(due);
    } else {
        plan.delete_with(spec.job, None, Propagation::Foreground, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_are_read_and_printed_as_ranges() {
        for text in ["", "0", "0,1", "0-2,5", "1-3,7,8,10-12"] {
            assert_eq!(print_indexes(&parse_indexes(text)), text);
        }
    }
}
