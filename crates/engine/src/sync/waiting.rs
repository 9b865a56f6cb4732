//! Waiting: for hooks to complete, resources to become healthy and deletions to finish; and the
//! messages for it.

use super::{
    effect::Effect,
    next::{Decision, Observed, Run},
    progress::{OperationPhase, ResultCode},
    step::{Action, PruneRule, Step},
};
use crate::{
    error::EngineError,
    health::Assessed,
    types::{Health, HealthStatus},
};
use std::time::Duration;
use tiphys_apimachinery::Object;

/// How long the cache may not show our write; after that the object is read from the API server.
const CACHE_GRACE_MS: i64 = 3_000;
/// A deleted object that shows no deletionTimestamp for this long is no longer waited for.
const DELETION_GRACE_MS: i64 = 10_000;
/// Watch events wake a waiting sync; this is for missed ones.
pub(super) const SAFETY_NET: Duration = Duration::from_secs(10);

/// What the sync waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum For {
    Completion,
    Deletion,
    Confirmation,
}

/// Why a running step's object is not visible.
pub(super) enum Unseen {
    /// The API server returned "not found".
    Gone,
    /// The cache may still catch up.
    Wait(Duration),
    /// Read it from the API server.
    Ask,
}

impl<'a> Run<'a> {
    /// Updates the results of running steps from their live objects.
    pub fn refresh(&mut self) {
        let running: Vec<&Step> = self
            .steps
            .iter()
            .copied()
            .filter(|s| !s.is_prune() && self.ledger.running(s))
            .collect();
        for step in running {
            let Some(live) = self.own_live(step) else {
                continue;
            };
            if let Some((phase, message)) = observe(step, &live, self.observed) {
                self.ledger.set_phase(step, phase, &message);
            }
        }
    }

    pub fn wait_for_running(&mut self) -> Option<Decision> {
        let mut wake = SAFETY_NET;
        let mut reads = Vec::new();
        for step in self.steps.clone() {
            if !self.is_waited_for(step) || self.own_live(step).is_some() {
                continue;
            }
            match self.unseen(step) {
                Unseen::Gone => {
                    let message = format!(
                        "Resource {} is missing, it might have been deleted",
                        step.short_name()
                    );
                    self.ledger.set(
                        step,
                        Some(ResultCode::SyncFailed),
                        OperationPhase::Error,
                        &message,
                    );
                }
                Unseen::Wait(left) => wake = wake.min(left),
                Unseen::Ask => reads.push(Effect::Read { step: step.clone() }),
            }
        }
        let mut running: Vec<&Step> = self
            .steps
            .iter()
            .copied()
            .filter(|s| self.is_waited_for(s))
            .collect();
        if running.is_empty() {
            return None;
        }
        if let Some(decision) = self.start_sync_fail_early() {
            return Some(decision);
        }
        running.sort_by_key(|s| s.phase);
        let message = waiting_for(&running, For::Completion);
        if self.overdue(&running, &message) {
            return None;
        }
        if reads.is_empty() {
            Some(self.wait(message, wake))
        } else {
            Some(self.act(reads, &message))
        }
    }

    /// Whether the sync waits until this step's object is healthy or completed.
    pub fn is_waited_for(&self, step: &Step) -> bool {
        !step.is_prune() && (self.multi_step() || step.is_hook()) && self.ledger.running(step)
    }

    /// After a failed apply, SyncFail hooks do not wait for steps that are still running.
    fn start_sync_fail_early(&mut self) -> Option<Decision> {
        let refused = |s: &Step| {
            self.ledger.status(s) == Some(ResultCode::SyncFailed)
                && self.ledger.phase(s) == Some(OperationPhase::Failed)
        };
        let sync_fail = self.sync_fail();
        let wanted = self.regular().any(refused) && sync_fail.iter().any(|s| self.pending(s));
        if wanted {
            self.run_steps(&sync_fail)
        } else {
            None
        }
    }

    pub fn unseen(&self, step: &Step) -> Unseen {
        match self.ledger.mark(step) {
            Some(mark) if mark.gone => Unseen::Gone,
            Some(mark) => {
                let left = mark.at + CACHE_GRACE_MS - self.now.as_millisecond();
                u64::try_from(left)
                    .ok()
                    .filter(|ms| *ms > 0)
                    .map_or(Unseen::Ask, |ms| Unseen::Wait(Duration::from_millis(ms)))
            }
            None => Unseen::Ask,
        }
    }

    pub fn wait_for_pruned(&mut self) -> Option<Decision> {
        let going: Vec<&Step> = self
            .regular()
            .filter(|s| s.is_prune() && self.being_deleted(s))
            .collect();
        if going.is_empty() {
            return None;
        }
        let message = waiting_for(&going, For::Deletion);
        if self.overdue(&going, &message) {
            return None;
        }
        Some(self.wait(message, SAFETY_NET))
    }

    fn being_deleted(&self, step: &Step) -> bool {
        if self.ledger.status(step) != Some(ResultCode::Pruned) || self.ledger.unsuccessful(step) {
            return false;
        }
        let Some(live) = self.live(step).filter(|l| l.uid() == step.uid) else {
            return false;
        };
        let just_asked = || {
            let mark = self.ledger.mark(step);
            mark.is_some_and(|m| {
                m.deleted
                    && m.uid == live.uid()
                    && self.now.as_millisecond() < m.at + DELETION_GRACE_MS
            })
        };
        live.deletion_timestamp().is_some() || just_asked()
    }
}

/// The phase that follows from a running step's live object; `None`: unchanged.
pub(super) fn observe(
    step: &Step,
    live: &Object,
    observed: Observed,
) -> Option<(OperationPhase, String)> {
    if !step.is_hook() {
        return match (observed.health)(live).ok()? {
            Assessed::Without => Some((OperationPhase::Succeeded, String::new())),
            Assessed::Known(Health {
                status: HealthStatus::Healthy,
                message,
            }) => Some((OperationPhase::Succeeded, message)),
            Assessed::Known(Health {
                status: HealthStatus::Degraded,
                message,
            }) => Some((OperationPhase::Failed, message)),
            Assessed::Silent | Assessed::Known(_) => None,
        };
    }
    let (phase, message) = match hook_phase(step, live, observed) {
        Ok(known) => known,
        Err(e) => {
            // Argo CD says it twice.
            let twice = "failed to get resource health: ".repeat(2);
            return Some((OperationPhase::Error, format!("{twice}{e}")));
        }
    };
    if phase == OperationPhase::Running && live.deletion_timestamp().is_some() {
        // Our finalizer holds it, but nothing will complete it any more.
        return Some((
            OperationPhase::Failed,
            "the hook was deleted before it completed".into(),
        ));
    }
    Some((phase, message))
}

/// The phase that follows from a hook's health.
pub(super) fn hook_phase(
    step: &Step,
    live: &Object,
    observed: Observed,
) -> Result<(OperationPhase, String), EngineError> {
    let health = (observed.health)(live)?.known();
    let status = health.as_ref().map(|h| h.status);
    let message = health.map(|h| h.message).unwrap_or_default();
    Ok(match status {
        Some(HealthStatus::Healthy) => (OperationPhase::Succeeded, message),
        Some(HealthStatus::Degraded | HealthStatus::Unknown) => (OperationPhase::Failed, message),
        Some(HealthStatus::Progressing | HealthStatus::Suspended) => {
            (OperationPhase::Running, message)
        }
        Some(HealthStatus::Missing) | None => (
            OperationPhase::Succeeded,
            format!("{} created", step.key.name),
        ),
    })
}

/// `waiting for <what> <group>/<kind>/<name>[ and N more resources|hooks]`
pub(super) fn waiting_for(steps: &[&Step], what: For) -> String {
    let unconfirmed = |s: &&&Step| matches!(s.action, Action::Prune(PruneRule::Unconfirmed));
    let hooks = steps.iter().filter(|s| s.is_hook()).count();
    let (reason, first, others) = match what {
        For::Confirmation => (
            "pruning confirmation of",
            steps.iter().find(unconfirmed),
            steps.iter().filter(unconfirmed).count().saturating_sub(1),
        ),
        _ => {
            let reason = match (what, hooks > 0) {
                (For::Deletion, false) => "deletion of",
                (For::Deletion, true) => "deletion of hook",
                (_, false) => "healthy state of",
                (_, true) => "completion of hook",
            };
            let first = steps.iter().find(|s| s.is_hook()).or(steps.first());
            (reason, first, steps.len().saturating_sub(1))
        }
    };
    let Some(first) = first else {
        return String::new();
    };
    let mut message = format!("waiting for {reason} {}", first.short_name());
    if others > 0 {
        let noun = if hooks == steps.len() {
            "hooks"
        } else {
            "resources"
        };
        message.push_str(&format!(" and {others} more {noun}"));
    }
    message
}
