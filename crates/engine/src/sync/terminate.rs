//! Terminates an operation: running hooks are deleted and their finalizers removed; for completed
//! ones only the finalizers are removed.

use super::{
    effect::Effect,
    hook::{self, DeletePolicy},
    next::{Decision, RUNNING, Run},
    progress::{OperationPhase, ResultCode},
    step::Step,
    waiting::{SAFETY_NET, Unseen, hook_phase},
};
use tiphys_apimachinery::Object;

/// Message of a hook that was terminated.
pub(super) const TERMINATED: &str = "Terminated";

impl<'a> Run<'a> {
    pub fn terminate(&mut self) -> Decision {
        self.adopt();
        if let Some(decision) = self.release_finished() {
            return decision;
        }
        let running: Vec<&Step> = self.hooks().filter(|s| self.ledger.running(s)).collect();
        if let Some(decision) = self.look_for(&running) {
            return decision;
        }
        let mut deletions = Vec::new();
        for step in running {
            let held = self
                .own_live(step)
                .is_some_and(|live| hook::has_finalizer(&live));
            let deletion = self.delete_hook(step, None).filter(|_| self.is_to_go(step));
            // Only hooks without a recorded completion were running when the sync was terminated,
            // even if another process resumes it. So its end is recorded after its deletion, as
            // long as our finalizer holds it.
            if !held || deletion.is_none() {
                self.end_hook(step);
            }
            deletions.extend(deletion);
        }
        if !deletions.is_empty() {
            return Decision {
                must_store: true,
                ..self.act(deletions, RUNNING)
            };
        }
        if let Some(decision) = self.release_finished() {
            return decision;
        }
        if self.hooks().any(|s| self.ledger.is_refused(s)) {
            self.end(
                OperationPhase::Error,
                "Operation termination had errors".into(),
            )
        } else {
            self.end(OperationPhase::Failed, "Operation terminated".into())
        }
    }

    /// Verifies with the API server that hooks that are not in the cache are really gone.
    fn look_for(&mut self, running: &[&Step]) -> Option<Decision> {
        let mut reads = Vec::new();
        let mut wait = None;
        for step in running {
            if self.own_live(step).is_some() {
                continue;
            }
            match self.unseen(step) {
                Unseen::Gone => self
                    .ledger
                    .set_phase(step, OperationPhase::Succeeded, TERMINATED),
                Unseen::Ask => reads.push(Effect::Read {
                    step: (*step).clone(),
                }),
                Unseen::Wait(left) => wait = Some(wait.unwrap_or(SAFETY_NET).min(left)),
            }
        }
        if reads.is_empty() {
            wait.map(|left| self.wait(RUNNING.into(), left))
        } else {
            Some(self.act(reads, RUNNING))
        }
    }

    /// The result of a hook that is being terminated: its own if it completed in the meantime.
    fn end_hook(&mut self, step: &Step) {
        let Some(live) = self.own_live(step) else {
            return;
        };
        let (phase, message) = match hook_phase(step, &live, self.observed) {
            Ok((phase, message)) if phase.completed() => (phase, message),
            Ok(_) => (OperationPhase::Failed, TERMINATED.to_owned()),
            Err(e) => (
                OperationPhase::Error,
                format!("Failed to get hook health: {e}"),
            ),
        };
        self.ledger.set_phase(step, phase, &message);
    }

    /// Whether a running hook is deleted: unless it completed in the meantime.
    fn is_to_go(&self, step: &Step) -> bool {
        let completed = |live: &Object| {
            hook_phase(step, live, self.observed).is_ok_and(|(phase, _)| phase.completed())
        };
        let live = self
            .own_live(step)
            .filter(|_| self.ledger.status(step) == Some(ResultCode::Synced));
        live.is_some_and(|live| step.has_policy(DeletePolicy::HookFailed) || !completed(&live))
    }
}
