//! Counts the finished pods of a Job.
//!
//! Main function: [`tally`].

use super::super::super::fields::status_i64;
use super::{FAILURES, INDEX, Spec, indexes, policy, policy::FailureAction, tracked};
use serde_json::Value;
use std::{collections::BTreeSet, sync::Arc};
use tiphys_apimachinery::Object;

/// The state of a Job, after counting the pods that have newly ended.
pub(super) struct Tally {
    pub(super) succeeded: i64,
    pub(super) failed: i64,
    /// The uids of pods that are counted but still have the finalizer.
    pub(super) counted: BTreeSet<String>,
    /// Failed pods that the failure policy ignores.
    pub(super) ignored: BTreeSet<String>,
    pub(super) indexes: BTreeSet<i64>,
    pub(super) failed_indexes: BTreeSet<i64>,
    /// The message with which the failure policy has failed the Job.
    pub(super) failed_by_policy: Option<String>,
}

pub(super) fn uncounted(job: &Object) -> impl Iterator<Item = &str> {
    let lists = ["succeeded", "failed"].into_iter();
    let list = move |field| {
        job.pointer("/status/uncountedTerminatedPods")
            .and_then(|u| u.get(field))
            .and_then(Value::as_array)
    };
    lists.filter_map(list).flatten().filter_map(Value::as_str)
}

pub(super) fn was_counted(job: &Object, uid: &str) -> bool {
    uncounted(job).any(|u| u == uid)
}

pub(super) fn index_of(pod: &Object) -> Option<i64> {
    pod.annotation(INDEX)?.parse().ok()
}

pub(super) fn noted(pod: &Object, annotation: &str) -> i64 {
    pod.annotation(annotation)
        .and_then(|n| n.parse().ok())
        .unwrap_or(0)
}

pub(super) fn has_failed(spec: &Spec<'_>, pod: &Object) -> bool {
    match pod.str_at("/status/phase") {
        "Failed" => true,
        "Succeeded" => false,
        _ => pod.deletion_timestamp().is_some() && !spec.waits_for_stopped,
    }
}

/// A pod that ended, or is being deleted without having succeeded, counts once: as long as it has
/// the finalizer and is not listed yet.
pub(super) fn tally(spec: &Spec<'_>, members: &[Arc<Object>]) -> Tally {
    let job = spec.job;
    let listed: BTreeSet<&str> = uncounted(job).collect();
    let mut tally = Tally {
        succeeded: status_i64(job, "succeeded"),
        failed: status_i64(job, "failed"),
        counted: BTreeSet::new(),
        ignored: BTreeSet::new(),
        indexes: indexes::parse(job.str_at("/status/completedIndexes")),
        failed_indexes: indexes::parse(job.str_at("/status/failedIndexes")),
        failed_by_policy: None,
    };
    for pod in members {
        let failed = has_failed(spec, pod);
        let verdict = if failed {
            policy::judge(job, pod)
        } else {
            FailureAction::Count
        };
        if let FailureAction::FailJob(message) = &verdict {
            tally
                .failed_by_policy
                .get_or_insert_with(|| message.clone());
        }
        if !tracked(pod) || !(failed || pod.str_at("/status/phase") == "Succeeded") {
            continue;
        }
        if failed
            && spec.limit_per_index.is_some_and(|limit| {
                verdict == FailureAction::FailIndex || noted(pod, FAILURES) >= limit
            })
            && verdict != FailureAction::Ignore
        {
            tally.failed_indexes.extend(index_of(pod));
        }
        if verdict == FailureAction::Ignore {
            tally.ignored.insert(pod.uid().to_owned());
            continue;
        }
        match (listed.contains(pod.uid()), failed) {
            (true, _) => {}
            (false, true) => tally.failed += 1,
            (false, false) => {
                tally.succeeded += 1;
                tally.indexes.extend(index_of(pod));
            }
        }
        tally.counted.insert(pod.uid().to_owned());
    }
    tally
}
