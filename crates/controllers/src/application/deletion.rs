//! The common parts of the stages of a deletion: their results, which objects belong to the
//! Application, and how one is deleted.
//!
//! Main types: [`Progress`] and [`Stop`].

use super::{context::ReconcileContext, error::CompareError, finalizers::When};
use std::sync::Arc;
use tiphys_apimachinery::Object;
use tiphys_cluster::{Executor, Known, Unreadable, clusters::LiveCluster};
use tiphys_engine::{permit, track, types::CompareRules};

/// Why a deletion is blocked, as reported in the condition.
#[derive(Debug, thiserror::Error)]
pub enum Stop {
    #[error(
        "{0}; the deletion waits until this can be read (listed and watched), and then goes on by itself"
    )]
    Unreadable(#[from] Unreadable),
    #[error("{}{} hook(s) failed: {}", .when.executing(), .when.name(), .names.join(", "))]
    HooksFailed { when: When, names: Vec<String> },
    #[error("{0}")]
    Refused(String),
}

impl From<String> for Stop {
    fn from(text: String) -> Self {
        Self::Refused(text)
    }
}

impl From<CompareError> for Stop {
    fn from(e: CompareError) -> Self {
        Self::Refused(e.to_string())
    }
}

/// The state of a stage of a deletion.
#[derive(Debug, PartialEq, Eq)]
pub enum Progress {
    Done,
    Waits,
    /// It waits for a failed hook that is run again: the existing condition stays.
    Retries,
    /// It waits for the given reason, possibly for long.
    Held(String),
}

/// Whether a condition already reports this reason, of which an Event would say nothing new.
pub fn is_told(ctx: &ReconcileContext<'_>, text: &str) -> bool {
    ctx.app
        .status
        .conditions
        .iter()
        .any(|c| c.type_ == "DeletionError" && c.message == text)
}

pub async fn remove(executor: &Executor, object: &Object, propagation: &str) -> Result<(), String> {
    executor
        .remove(&object.gvk(), &object.key(), object.uid(), propagation)
        .await
        .map_err(|e| format!("{}: {e}", object.key()))
}

/// The live objects that the Application manages and its project permits.
pub async fn owned(
    cluster: &LiveCluster,
    rules: &CompareRules,
    known: &Known,
) -> Result<Vec<Arc<Object>>, Unreadable> {
    let live = cluster
        .cache
        .managed(&rules.tracking.app_name, &[], known)
        .await?;
    Ok(live
        .into_values()
        .map(|o| o.object())
        .filter(|o| is_owned(o, rules))
        .collect())
}

/// Whether the tracking metadata shows that the Application applied the object, and its project
/// permits it.
pub fn is_owned(object: &Object, rules: &CompareRules) -> bool {
    permit::resource(
        rules,
        object.group(),
        object.kind(),
        object.namespace(),
        object.name(),
    ) && track::owner(object, &rules.tracking).is_some_and(|owner| owner == rules.tracking.app_name)
        && track::names(object, &rules.tracking)
}
