//! Writes of a Job's status: which conditions, times and counts go together, and which must not be
//! reverted.
//!
//! Main function: [`check`]. Most rules check only what the write changes, so that a status that
//! already breaks a rule can still be updated elsewhere.

use super::job_policy::{count_indexes, interval, invalid_without_value};
use super::*;
use std::collections::HashSet;

/// A Job before or after the write.
struct Job<'v> {
    spec: At<'v>,
    status: At<'v>,
}

impl<'v> Job<'v> {
    fn of(value: &'v Value) -> Self {
        let at = At::new(value, "");
        Self {
            spec: at.get("spec"),
            status: at.get("status"),
        }
    }

    fn says(&self, kind: &str, status: &str) -> bool {
        self.status
            .get("conditions")
            .items()
            .iter()
            .any(|c| c.get("type").text() == kind && c.get("status").text() == status)
    }

    fn is(&self, kind: &str) -> bool {
        self.says(kind, "True")
    }

    fn is_finished(&self) -> bool {
        self.is("Complete") || self.is("Failed")
    }

    fn is_indexed(&self) -> bool {
        self.spec.get("completionMode").text() == "Indexed"
    }

    fn number(&self, field: &str) -> i64 {
        self.status.get(field).int().unwrap_or(0)
    }

    fn has(&self, field: &str) -> bool {
        !self.status.get(field).is_null()
    }
}

/// Both sides of a write.
struct Write<'v> {
    new: Job<'v>,
    old: Job<'v>,
}

impl Write<'_> {
    fn changes(&self, field: &str) -> bool {
        let (new, old) = (self.new.status.get(field), self.old.status.get(field));
        new.value != old.value
    }

    fn turns(&self, kind: &str) -> bool {
        self.new.is(kind) != self.old.is(kind)
    }

    fn finishes(&self) -> bool {
        self.new.is_finished() != self.old.is_finished()
    }
}

pub fn check(at: &At<'_>, causes: &mut Vec<Cause>) {
    let Some(old) = at.old else { return };
    let write = Write {
        new: Job::of(at.value),
        old: Job::of(old),
    };
    for field in ["active", "succeeded", "failed", "ready", "terminating"] {
        write.new.status.get(field).check(AT_LEAST_0, causes);
    }
    uncounted(&write.new.status.get("uncountedTerminatedPods"), causes);
    ends(&write, causes);
    finished(&write, causes);
    indexes(&write, causes);
    left_over(&write, causes);
    criteria(&write.new, causes);
    going_back(&write, causes);
}

/// Each pod is listed once, as succeeded or as failed.
fn uncounted(pods: &At<'_>, causes: &mut Vec<Cause>) {
    let mut seen = HashSet::new();
    for pod in ["succeeded", "failed"]
        .iter()
        .flat_map(|list| pods.get(list).items())
    {
        if pod.is_empty() {
            causes.push(pod.invalid("must not be empty"));
        } else if !seen.insert(pod.text()) {
            causes.push(pod.duplicate());
        }
    }
}

fn condition(job: &Job<'_>, broken: bool, says: &str, causes: &mut Vec<Cause>) {
    if broken {
        causes.push(invalid_without_value(&job.status.get("conditions"), says));
    }
}

/// The end of a Job and its time.
fn ends(write: &Write<'_>, causes: &mut Vec<Cause>) {
    let new = &write.new;
    let (completed, failed, completion) = (
        write.turns("Complete"),
        write.turns("Failed"),
        write.changes("completionTime"),
    );
    let both = (completed || failed) && new.is("Complete") && new.is("Failed");
    condition(
        new,
        both,
        "cannot set Complete=True and Failed=true conditions",
        causes,
    );
    let both = (completed || write.turns("FailureTarget"))
        && new.is("Complete")
        && new.is("FailureTarget");
    condition(
        new,
        both,
        "cannot set Complete=True and FailureTarget=true conditions",
        causes,
    );
    let (start, end) = (
        new.status.get("startTime"),
        new.status.get("completionTime"),
    );
    if completed || completion {
        match (new.is("Complete"), end.is_null()) {
            (false, false) => causes.push(
                end.invalid("cannot set completionTime when there is no Complete=True condition"),
            ),
            (true, true) => {
                causes.push(end.required("completionTime is required for Complete jobs"))
            }
            _ => {}
        }
    }
    // Times are normalized by now, so they compare as text.
    let reversed = !start.is_null() && !end.is_null() && end.text() < start.text();
    if (completion || write.changes("startTime")) && reversed {
        causes.push(end.invalid("must be equal to or after `startTime`"));
    }
    let lacks =
        (failed || write.changes("failedIndexes")) && new.is("Failed") && !new.is("FailureTarget");
    condition(
        new,
        lacks,
        "cannot set Failed=True condition without the FailureTarget=true condition",
        causes,
    );
    let lacks = (completed || write.turns("SuccessCriteriaMet"))
        && new.is("Complete")
        && !new.is("SuccessCriteriaMet");
    condition(
        new,
        lacks,
        "cannot set Complete=True condition without the SuccessCriteriaMet=true condition",
        causes,
    );
}

/// The fields that a finished Job must have, and those it must not have.
fn finished(write: &Write<'_>, causes: &mut Vec<Cause>) {
    let new = &write.new;
    if !new.is_finished() {
        return;
    }
    let (active, start, pods) = (
        new.status.get("active"),
        new.status.get("startTime"),
        new.status.get("uncountedTerminatedPods"),
    );
    if (write.finishes() || write.changes("active")) && new.number("active") > 0 {
        causes.push(active.invalid("active>0 is invalid for finished job"));
    }
    let never_ran =
        new.spec.get("suspend").is_true() && new.spec.get("completions").int() == Some(0);
    if (write.finishes() || write.changes("startTime")) && !never_ran && start.is_null() {
        causes.push(start.required("startTime is required for finished job"));
    }
    let left = !pods.get("succeeded").is_empty() || !pods.get("failed").is_empty();
    if (write.finishes() || write.changes("uncountedTerminatedPods")) && left {
        causes.push(pods.invalid_struct(
            "batch/v1.UncountedTerminatedPods",
            "must be empty for finished job",
        ));
    }
}

fn indexes(write: &Write<'_>, causes: &mut Vec<Cause>) {
    let new = &write.new;
    let [done, failed] = ["completedIndexes", "failedIndexes"].map(|field| new.status.get(field));
    let (done_changes, failed_changes) = (
        write.changes("completedIndexes"),
        write.changes("failedIndexes"),
    );
    let (completions, per_index) = (
        new.spec.get("completions").int(),
        new.spec.get("backoffLimitPerIndex"),
    );
    let mut unreadable = |at: &At<'_>, field: &str| {
        let why = completions.and_then(|total| count_indexes(at.text(), total).err());
        causes.extend(why.map(|why| at.invalid(&format!("error parsing {field}: {why}"))));
    };
    if done_changes {
        unreadable(&done, "completedIndexes");
    }
    if failed_changes && !per_index.is_null() && !failed.is_null() {
        unreadable(&failed, "failedIndexes");
    }
    if done_changes && !done.is_empty() && !new.is_indexed() {
        causes.push(
            done.invalid("cannot set non-empty completedIndexes when non-indexed completion mode"),
        );
    }
    if failed_changes && per_index.is_null() && !failed.is_null() {
        causes.push(
            failed.invalid("cannot set non-null failedIndexes when backoffLimitPerIndex is null"),
        );
    }
    let common = completions
        .filter(|_| done_changes || failed_changes)
        .and_then(|total| overlap(done.text(), failed.text(), total));
    if let Some(index) = common {
        causes.push(failed.invalid(&format!(
            "failedIndexes and completedIndexes overlap at index: {index}"
        )));
    }
}

/// The first common index. Invalid intervals are skipped.
fn overlap(done: &str, failed: &str, completions: i64) -> Option<i64> {
    let intervals = |text: &str| {
        text.split(',')
            .filter_map(|part| interval(part, completions).ok())
            .collect::<Vec<_>>()
    };
    let (done, failed) = (intervals(done), intervals(failed));
    let (mut left, mut right) = (done.iter().peekable(), failed.iter().peekable());
    while let (Some((from, to)), Some((other_from, other_to))) = (left.peek(), right.peek()) {
        if from <= other_to && other_from <= to {
            return Some(*from.max(other_from));
        }
        if from <= other_from {
            left.next()
        } else {
            right.next()
        };
    }
    None
}

/// Pods that still exist.
fn left_over(write: &Write<'_>, causes: &mut Vec<Cause>) {
    let new = &write.new;
    if (write.finishes() || write.changes("terminating"))
        && new.number("terminating") > 0
        && new.is_finished()
    {
        causes.push(
            new.status
                .get("terminating")
                .invalid("terminating>0 is invalid for finished job"),
        );
    }
    let counted = write.changes("ready") || write.changes("active");
    if counted && new.has("ready") && new.number("ready") > new.number("active") {
        causes.push(
            new.status
                .get("ready")
                .invalid("cannot set more ready pods than active"),
        );
    }
}

fn criteria(new: &Job<'_>, causes: &mut Vec<Cause>) {
    let met = new.is("SuccessCriteriaMet");
    condition(
        new,
        met && new.is("Failed"),
        "cannot set SuccessCriteriaMet=True and Failed=true conditions",
        causes,
    );
    condition(
        new,
        met && new.is("FailureTarget"),
        "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions",
        causes,
    );
    let unmet = !new.spec.get("successPolicy").is_null() && !met && new.is("Complete");
    condition(
        new,
        unmet,
        "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True",
        causes,
    );
}

/// Terminal conditions stay, and counts only increase.
fn going_back(write: &Write<'_>, causes: &mut Vec<Cause>) {
    let (new, old) = (&write.new, &write.old);
    for kind in ["Failed", "Complete", "FailureTarget"] {
        let gone = old.is(kind) && !new.is(kind);
        condition(
            new,
            gone,
            &format!("cannot disable the terminal {kind}=True condition"),
            causes,
        );
    }
    // An indexed Job with one pod per index can be scaled down.
    let shrinks =
        new.is_indexed() && new.spec.get("completions").value == new.spec.get("parallelism").value;
    for field in ["failed", "succeeded"]
        .into_iter()
        .filter(|field| *field == "failed" || !shrinks)
    {
        if new.number(field) < old.number(field) {
            let detail = format!("cannot decrease the {field} counter");
            causes.push(new.status.get(field).invalid_as(new.number(field), &detail));
        }
    }
    if new.has("completionTime") && old.has("completionTime") && write.changes("completionTime") {
        causes.push(
            new.status
                .get("completionTime")
                .invalid("field is immutable"),
        );
    }
    let resumes = old.is("Suspended") && new.says("Suspended", "False");
    if write.changes("startTime")
        && !resumes
        && old.has("startTime")
        && !new.spec.get("suspend").is_true()
    {
        let start = new.status.get("startTime");
        causes.push(start.invalid_as(
            start.value.clone(),
            "field is immutable for unsuspended job once set",
        ));
    }
    let (was_met, met) = (old.is("SuccessCriteriaMet"), new.is("SuccessCriteriaMet"));
    condition(
        new,
        was_met && !met,
        "cannot disable the SuccessCriteriaMet=True condition",
        causes,
    );
    let late = old.is("Complete") && !was_met && met;
    condition(
        new,
        late,
        "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions",
        causes,
    );
}
