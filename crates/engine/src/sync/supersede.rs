//! Replaces a running sync by one to a newer revision: between two waves, or while a wave waits
//! only for health or deletions; never while a hook runs.

use super::{
    next::{Decision, Run},
    progress::{Ending, OperationOutcome, OperationPhase},
    step::Step,
    waiting::{For, waiting_for},
};

impl<'a> Run<'a> {
    /// Ends the sync if a newer revision is available and it can be interrupted now. A sync that
    /// has failed or is complete ends normally.
    pub fn give_way(&mut self) -> Option<Decision> {
        let newer = self.request.superseded_by.clone()?;
        let failed = self.regular().any(|s| self.ledger.unsuccessful(s));
        if failed || self.hooks().any(|s| self.ledger.running(s)) {
            return None;
        }
        let waited_for: Vec<&Step> = self
            .steps
            .iter()
            .copied()
            .filter(|s| self.is_waited_for(s))
            .collect();
        let when = match (waited_for.is_empty(), self.next_group()) {
            (false, _) => format!("while {}", waiting_for(&waited_for, For::Completion)),
            (true, Some(group)) => group
                .first()
                .map(|s| format!("before wave {} of {}", s.wave, s.phase))?,
            (true, None) => return None,
        };
        if let Some(decision) = self.release_finished() {
            return Some(decision);
        }
        let message = format!(
            "superseded: the sync of {} was ended {when}, because {newer} is newer",
            self.request.revision
        );
        self.ledger.progress.notes.ending = Some(Ending::Superseded);
        Some(self.conclude(OperationOutcome {
            phase: OperationPhase::Failed,
            message,
        }))
    }
}
