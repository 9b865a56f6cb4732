//! Stopping an operation: running hooks are let go and deleted, completed ones only let go.

use super::{
    effect::Effect,
    hook::DeletePolicy,
    next::{Decision, RUNNING, Run},
    progress::{OperationPhase, ResultCode},
    step::Step,
    waiting::{SAFETY_NET, Unseen, observe},
};

/// Message of a hook that was ended.
const TERMINATED: &str = "Terminated";
const ERRORS: [&str; 3] = ["Failed to remove hook finalizer: ", "Failed to delete: ", "Failed to get live resource: "];

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
        let releases = self.release_effects(&running);
        if !releases.is_empty() {
            return Decision { must_store: true, ..self.act(releases, RUNNING) };
        }
        for step in running {
            self.end_hook(step);
        }
        let deletions: Vec<Effect> = self.hooks().filter(|s| self.wants_deletion(s)).filter_map(|s| self.delete_hook(s, None)).collect();
        if !deletions.is_empty() {
            return Decision { must_store: true, ..self.act(deletions, RUNNING) };
        }
        let failed = self.hooks().any(|s| ERRORS.iter().any(|e| self.ledger.message(s).starts_with(e)));
        if failed {
            self.end(OperationPhase::Error, "Operation termination had errors".into())
        } else {
            self.end(OperationPhase::Failed, "Operation terminated".into())
        }
    }

    /// Makes sure that hooks which are not to be seen are really gone.
    fn look_for(&mut self, running: &[&Step]) -> Option<Decision> {
        let mut reads = Vec::new();
        let mut wait = None;
        for step in running {
            if self.own_live(step).is_some() {
                continue;
            }
            match self.unseen(step) {
                Unseen::Gone => self.ledger.set_phase(step, OperationPhase::Succeeded, TERMINATED),
                Unseen::Ask => reads.push(Effect::Read { step: (*step).clone() }),
                Unseen::Wait(left) => wait = Some(wait.unwrap_or(SAFETY_NET).min(left)),
            }
        }
        if reads.is_empty() { wait.map(|left| self.wait(RUNNING.into(), left)) } else { Some(self.act(reads, RUNNING)) }
    }

    /// The result of a hook that is being ended: its own if it completed meanwhile. Recorded before it is deleted.
    fn end_hook(&mut self, step: &Step) {
        let Some(live) = self.own_live(step) else { return };
        match observe(step, &live, self.observed) {
            Some((phase, message)) if phase.completed() => self.ledger.set_phase(step, phase, &message),
            _ => self.ledger.set_phase(step, OperationPhase::Failed, TERMINATED),
        }
    }

    fn wants_deletion(&self, step: &Step) -> bool {
        let ours = self.ledger.status(step) == Some(ResultCode::Synced) && self.own_live(step).is_some();
        let ended = self.ledger.phase(step) == Some(OperationPhase::Failed) && self.ledger.message(step) == TERMINATED;
        ours && (ended || (step.has_policy(DeletePolicy::HookFailed) && self.ledger.completed(step)))
    }
}
