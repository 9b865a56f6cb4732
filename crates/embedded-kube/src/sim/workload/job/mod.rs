//! Job: runs pods until enough have succeeded, or too many have failed.

mod indexes;
mod policy;
mod tally;

use super::super::{
    engine::Failure,
    fields::{
        Cond, after, conditions, find_condition, parse_time, put_counts, rfc3339, set_condition,
        spec_bool, spec_i64, text,
    },
    plan::{Change, Note, Plan},
    store::Propagation,
};
use super::pods;
use jiff::{SignedDuration, Timestamp};
use policy::FailureAction;
use serde_json::{Map, Value, json};
use std::{collections::BTreeSet, sync::Arc};
use tally::{Tally, has_failed, index_of, noted, tally, was_counted};
use tiphys_apimachinery::{Object, object::map_entry};

/// The finalizer that keeps a pod until the Job has counted it.
const TRACKING: &str = "batch.kubernetes.io/job-tracking";
const INDEX: &str = "batch.kubernetes.io/job-completion-index";
/// How often earlier pods of the index have failed, and how many of those failures were ignored.
const FAILURES: &str = "batch.kubernetes.io/job-index-failure-count";
const IGNORED: &str = "batch.kubernetes.io/job-index-ignored-failure-count";

struct Spec<'a> {
    job: &'a Object,
    /// `None`: done when one pod has succeeded and none is left.
    completions: Option<i64>,
    parallelism: i64,
    backoff_limit: i64,
    deadline: Option<i64>,
    ttl: Option<i64>,
    suspended: bool,
    indexed: bool,
    /// How often a pod of one index may fail.
    limit_per_index: Option<i64>,
    max_failed_indexes: Option<i64>,
    /// A terminating pod is not replaced until it has failed.
    waits_for_stopped: bool,
}

impl<'a> Spec<'a> {
    fn read(job: &'a Object) -> Self {
        let number = |field: &str| {
            job.pointer("/spec")
                .and_then(|s| s.get(field))
                .and_then(Value::as_i64)
        };
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
            limit_per_index: number("backoffLimitPerIndex"),
            max_failed_indexes: number("maxFailedIndexes"),
            waits_for_stopped: job.str_at("/spec/podReplacementPolicy") == "Failed"
                || job.pointer("/spec/podFailurePolicy").is_some(),
        }
    }
}

/// Whether a Job has a condition Complete or Failed.
pub fn is_finished(job: &Object) -> bool {
    let list = conditions(job);
    ["Complete", "Failed"]
        .iter()
        .any(|kind| find_condition(&list, kind).is_some_and(|c| text(c, "status") == "True"))
}

/// The next step of a Job.
pub fn reconcile(
    job: &Object,
    members: &[Arc<Object>],
    failure: Option<&Failure>,
    now: Timestamp,
) -> Plan {
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
    let tally = tally(&spec, members);
    let done = |uid: &str| {
        tally.ignored.contains(uid) || (tally.counted.contains(uid) && was_counted(job, uid))
    };
    for pod in members.iter().filter(|p| tracked(p) && done(p.uid())) {
        untrack(&mut plan, pod);
    }
    let mut step = Step {
        spec,
        members,
        tally,
        list: conditions(job),
        notes: Vec::new(),
        now,
    };
    step.run(&mut plan, failure);
    plan
}

fn tracked(pod: &Object) -> bool {
    pod.finalizers().iter().any(|f| f == TRACKING)
}

fn untrack(plan: &mut Plan, pod: &Object) {
    let mut freed = pod.clone();
    freed.set_finalizers(
        pod.finalizers()
            .into_iter()
            .filter(|f| f != TRACKING)
            .collect(),
    );
    plan.push(Change::Update(freed));
}

/// Deletes a pod that is no longer needed without counting it as a failure.
fn discard(plan: &mut Plan, pod: &Object) {
    if tracked(pod) {
        untrack(plan, pod);
    }
    plan.delete(
        pod,
        Some(Note::normal(
            "SuccessfulDelete",
            format!("Deleted pod: {}", pod.name()),
        )),
    );
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
        set_condition(
            &mut self.list,
            Cond {
                kind,
                status,
                reason,
                message,
            },
            self.now,
        );
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
                plan.delete(
                    pod,
                    Some(Note::normal(
                        "SuccessfulDelete",
                        format!("Deleted pod: {}", pod.name()),
                    )),
                );
            }
        } else {
            if self.suspend() {
                start = if self.spec.suspended {
                    String::new()
                } else {
                    rfc3339(self.now)
                };
            }
            self.manage(plan, failure);
        }
        // Finished only when no pod is running, terminating or waiting to be counted.
        let left = self
            .members
            .iter()
            .any(|p| !pods::is_ended(p) || tracked(p));
        if ending && !left && self.tally.counted.is_empty() {
            self.finish();
        }
        self.status(plan, &start);
    }

    /// Decides whether the Job has succeeded or failed.
    fn judge(&mut self, plan: &mut Plan, start: &str) {
        let running = !self.active().is_empty();
        let age = |s: &str| parse_time(s).map(|s| self.now.duration_since(s));
        if let Some(message) = self.tally.failed_by_policy.clone() {
            return self.set("FailureTarget", true, "PodFailurePolicy", &message);
        }
        if self.tally.failed > self.spec.backoff_limit || self.restarted_too_often() {
            return self.set(
                "FailureTarget",
                true,
                "BackoffLimitExceeded",
                "Job has reached the specified backoff limit",
            );
        }
        if let (Some(deadline), Some(age), false) =
            (self.spec.deadline, age(start), self.spec.suspended)
        {
            if age >= SignedDuration::from_secs(deadline) {
                return self.set(
                    "FailureTarget",
                    true,
                    "DeadlineExceeded",
                    "Job was active longer than specified deadline",
                );
            }
            plan.wake_at(after(parse_time(start).unwrap_or(self.now), deadline));
        }
        if self.spec.limit_per_index.is_some() {
            let failed = count(&self.tally.failed_indexes);
            if self
                .spec
                .max_failed_indexes
                .is_some_and(|most| failed > most)
            {
                let message = "Job has exceeded the specified maximal number of failed indexes";
                return self.set("FailureTarget", true, "MaxFailedIndexesExceeded", message);
            }
            if failed > 0
                && failed + count(&self.tally.indexes) >= self.spec.completions.unwrap_or(0)
            {
                return self.set(
                    "FailureTarget",
                    true,
                    "FailedIndexes",
                    "Job has failed indexes",
                );
            }
        }
        if let Some(message) = policy::success(self.spec.job, &self.tally.indexes) {
            return self.set("SuccessCriteriaMet", true, "SuccessPolicy", &message);
        }
        let done = if self.spec.indexed {
            count(&self.tally.indexes)
        } else {
            self.tally.succeeded
        };
        let complete = match self.spec.completions {
            Some(wanted) => done >= wanted,
            None => self.tally.succeeded > 0,
        };
        if complete && !running {
            self.set(
                "SuccessCriteriaMet",
                true,
                "CompletionsReached",
                "Reached expected number of succeeded pods",
            );
        }
    }

    /// Whether container restarts within pods exceed the limit: they count, too.
    fn restarted_too_often(&self) -> bool {
        if self.spec.job.str_at("/spec/template/spec/restartPolicy") != "OnFailure" {
            return false;
        }
        let statuses = |p: &Object| {
            let lists = ["/status/containerStatuses", "/status/initContainerStatuses"]
                .into_iter()
                .filter_map(|l| p.pointer(l)?.as_array());
            lists
                .flatten()
                .filter_map(|s| s.get("restartCount")?.as_i64())
                .sum::<i64>()
        };
        let restarts: i64 = self
            .members
            .iter()
            .filter(|p| !pods::is_ended(p))
            .map(|p| statuses(p))
            .sum();
        restarts > 0 && restarts >= self.spec.backoff_limit
    }

    /// Records a suspension or resumption; returns whether it is new.
    fn suspend(&mut self) -> bool {
        let noted = find_condition(&self.list, "Suspended").map(|c| text(c, "status") == "True");
        let (reason, message) = if self.spec.suspended {
            ("JobSuspended", "Job suspended")
        } else {
            ("JobResumed", "Job resumed")
        };
        if noted.unwrap_or(false) == self.spec.suspended {
            return false;
        }
        self.set("Suspended", self.spec.suspended, reason, message);
        self.notes.push(Note::normal(
            if self.spec.suspended {
                "Suspended"
            } else {
                "Resumed"
            },
            message,
        ));
        true
    }

    fn manage(&self, plan: &mut Plan, failure: Option<&Failure>) {
        let active = self.active();
        let stopping = |p: &&Arc<Object>| {
            self.spec.waits_for_stopped && p.deletion_timestamp().is_some() && !pods::is_ended(p)
        };
        let number = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
        let stopping = number(self.members.iter().filter(stopping).count());
        let running = number(active.len());
        if self.spec.suspended {
            active.into_iter().for_each(|pod| discard(plan, pod));
            return;
        }
        let done = if self.spec.indexed {
            count(&self.tally.indexes) + count(&self.tally.failed_indexes)
        } else {
            self.tally.succeeded
        };
        let wanted = match self.spec.completions {
            Some(completions) => (completions - done).clamp(0, self.spec.parallelism),
            None if self.tally.succeeded > 0 => running,
            None => self.spec.parallelism,
        };
        if running > wanted {
            let mut surplus: Vec<Arc<Object>> = active.into_iter().cloned().collect();
            pods::sort_for_deletion(&mut surplus);
            for pod in surplus
                .iter()
                .take(usize::try_from(running - wanted).unwrap_or(0))
            {
                discard(plan, pod);
            }
            return;
        }
        let retry = if self.spec.limit_per_index.is_some() {
            None
        } else {
            self.retry_at(None)
        };
        let until = [retry, failure.map(|f| f.until)]
            .into_iter()
            .flatten()
            .max();
        if let Some(until) = until.filter(|u| *u > self.now && running < wanted) {
            return plan.wake_at(until);
        }
        let ends =
            |i: &i64| self.tally.indexes.contains(i) || self.tally.failed_indexes.contains(i);
        let mut free = Vec::new();
        for index in
            (0..self.spec.completions.unwrap_or(0)).filter(|i| self.spec.indexed && !ends(i))
        {
            let waits = if self.spec.limit_per_index.is_some() {
                self.retry_at(Some(index))
            } else {
                None
            };
            match waits.filter(|at| *at > self.now) {
                Some(at) => plan.wake_at(at),
                None if active.iter().any(|p| index_of(p) == Some(index)) => {}
                None => free.push(index),
            }
        }
        let mut free = free.into_iter();
        for _ in running + stopping..wanted.min(running + 500) {
            let index = if self.spec.indexed { free.next() } else { None };
            if self.spec.indexed && index.is_none() {
                return;
            }
            plan.create(
                self.pod(index),
                Some(Note::normal("SuccessfulCreate", "Created pod: {name}")),
            );
        }
    }

    /// The delay after failures (of one index): 10 s, doubled with each failure, at most 10
    /// minutes.
    fn retry_at(&self, index: Option<i64>) -> Option<Timestamp> {
        let failed = self.members.iter().filter(|p| {
            p.str_at("/status/phase") == "Failed" && (index.is_none() || index_of(p) == index)
        });
        let ended = |p: &Object| {
            parse_time(p.str_at("/status/containerStatuses/0/state/terminated/finishedAt"))
        };
        let (last, pod) = failed
            .filter_map(|p| Some((ended(p)?, p)))
            .max_by_key(|(at, _)| *at)?;
        let before = if index.is_some() {
            noted(pod, FAILURES)
        } else {
            self.tally.failed - 1
        };
        let doublings = u32::try_from(before.clamp(0, 6)).unwrap_or(0);
        Some(after(last, (10 << doublings).min(600)))
    }

    /// How often pods of an index have failed, and how many of those failures were ignored.
    fn failures_of(&self, index: i64) -> (i64, i64) {
        let failed = self
            .members
            .iter()
            .filter(|p| index_of(p) == Some(index) && has_failed(&self.spec, p));
        let counts = failed.map(|p| {
            let ignored = policy::judge(self.spec.job, p) == FailureAction::Ignore;
            (
                noted(p, FAILURES) + i64::from(!ignored),
                noted(p, IGNORED) + i64::from(ignored),
            )
        });
        counts.max().unwrap_or((0, 0))
    }

    fn pod(&self, index: Option<i64>) -> Object {
        let job = self.spec.job;
        let template = job
            .pointer("/spec/template")
            .cloned()
            .unwrap_or(Value::Null);
        let infix = index.map(|i| format!("-{i}")).unwrap_or_default();
        let mut pod = pods::from_template(
            job,
            &template,
            &pods::name_prefix(&format!("{}{infix}", job.name())),
        );
        for (key, value) in [("controller-uid", job.uid()), ("job-name", job.name())] {
            pod.set_label(key, value);
            pod.set_label(&format!("batch.kubernetes.io/{key}"), value);
        }
        if let Some(index) = index {
            pod.set_annotation(INDEX, &index.to_string());
            pod.set_label(INDEX, &index.to_string());
            if self.spec.limit_per_index.is_some() {
                let (counted, ignored) = self.failures_of(index);
                pod.set_annotation(FAILURES, &counted.to_string());
                if ignored > 0 {
                    pod.set_annotation(IGNORED, &ignored.to_string());
                }
            }
            name_index(&mut pod, &format!("{}-{index}", job.name()));
        }
        let mut finalizers = pod.finalizers();
        finalizers.push(TRACKING.into());
        pod.set_finalizers(finalizers);
        pod
    }

    fn finish(&mut self) {
        let (from, to) = if self.has("SuccessCriteriaMet") {
            ("SuccessCriteriaMet", "Complete")
        } else {
            ("FailureTarget", "Failed")
        };
        let Some(target) = find_condition(&self.list, from).cloned() else {
            return;
        };
        let (reason, message) = (text(&target, "reason"), text(&target, "message"));
        self.set(to, true, reason, message);
        const REASONS: [&str; 5] = [
            "DeadlineExceeded",
            "BackoffLimitExceeded",
            "PodFailurePolicy",
            "FailedIndexes",
            "MaxFailedIndexesExceeded",
        ];
        self.notes
            .push(match REASONS.iter().find(|r| **r == reason) {
                Some(reason) => Note::warning(reason, message),
                None => Note::normal("Completed", "Job completed"),
            });
    }

    fn status(&mut self, plan: &mut Plan, start: &str) {
        let active = self.active();
        let number = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
        let ready = active.iter().filter(|p| pods::is_ready(p)).count();
        let terminating = self
            .members
            .iter()
            .filter(|p| p.deletion_timestamp().is_some() && !pods::is_ended(p))
            .count();
        let mut status = Map::new();
        put_counts(
            &mut status,
            &[
                ("active", number(active.len())),
                ("succeeded", self.tally.succeeded),
                ("failed", self.tally.failed),
            ],
        );
        status.insert("ready".into(), ready.into());
        status.insert("terminating".into(), terminating.into());
        if !start.is_empty() {
            status.insert("startTime".into(), start.into());
        }
        if self.spec.indexed && !self.tally.indexes.is_empty() {
            status.insert(
                "completedIndexes".into(),
                indexes::print(&self.tally.indexes).into(),
            );
        }
        if self.spec.limit_per_index.is_some() {
            status.insert(
                "failedIndexes".into(),
                indexes::print(&self.tally.failed_indexes).into(),
            );
        }
        let done = find_condition(&self.list, "Complete")
            .map(|c| text(c, "lastTransitionTime").to_owned());
        if let Some(at) = done {
            status.insert("completionTime".into(), at.into());
        }
        status.insert("uncountedTerminatedPods".into(), self.uncounted());
        if !self.list.is_empty() {
            status.insert(
                "conditions".into(),
                Value::Array(std::mem::take(&mut self.list)),
            );
        }
        plan.status(
            self.spec.job,
            Value::Object(status),
            std::mem::take(&mut self.notes),
        );
    }

    fn uncounted(&self) -> Value {
        let mut lists = Map::new();
        for pod in self
            .members
            .iter()
            .filter(|p| self.tally.counted.contains(p.uid()))
        {
            let field = if pod.str_at("/status/phase") == "Succeeded" {
                "succeeded"
            } else {
                "failed"
            };
            if let Some(list) = lists
                .entry(field)
                .or_insert_with(|| json!([]))
                .as_array_mut()
            {
                list.push(pod.uid().into());
            }
        }
        Value::Object(lists)
    }
}

/// Deletes a finished Job when its TTL has expired.
fn expire(plan: &mut Plan, spec: &Spec<'_>, now: Timestamp) {
    let Some(ttl) = spec.ttl.filter(|_| spec.job.deletion_timestamp().is_none()) else {
        return;
    };
    let list = conditions(spec.job);
    let finished = ["Complete", "Failed"]
        .iter()
        .find_map(|k| parse_time(text(find_condition(&list, k)?, "lastTransitionTime")));
    let Some(due) = finished.map(|f| after(f, ttl)) else {
        return;
    };
    if due > now {
        plan.wake_at(due);
    } else {
        plan.delete_with(spec.job, None, Propagation::Foreground, None);
    }
}

fn count(set: &BTreeSet<i64>) -> i64 {
    i64::try_from(set.len()).unwrap_or(i64::MAX)
}

/// Passes a pod its index: as its host name and in an environment variable of its containers.
fn name_index(pod: &mut Object, hostname: &str) {
    const VARIABLE: &str = "JOB_COMPLETION_INDEX";
    let spec = map_entry(&mut pod.0, "spec");
    spec.insert("hostname".into(), hostname.into());
    for list in ["initContainers", "containers"] {
        for container in spec
            .get_mut(list)
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
            .filter_map(Value::as_object_mut)
        {
            let env = container.entry("env").or_insert_with(|| json!([]));
            if let Some(env) = env
                .as_array_mut()
                .filter(|l| !l.iter().any(|v| text(v, "name") == VARIABLE))
            {
                env.push(json!({"name": VARIABLE, "valueFrom": {"fieldRef": {"fieldPath": format!("metadata.labels['{INDEX}']")}}}));
            }
        }
    }
}
