//! Decides what a sync does now.
//!
//! Main function: [`next`]. It is level-triggered: it uses the plan, the live state and the
//! recorded progress, never its own earlier decisions. The order of its checks is the order of a
//! sync; the actions are in `work`, `waiting` and `terminate`.

use super::{
    effect::Effect,
    hook,
    ledger::{Ledger, version},
    plan::SyncPlan,
    progress::{OperationOutcome, OperationPhase, Progress, ResourceResult, ResultCode},
    request::SyncRequest,
    step::{Action, Step, SyncPhase},
};
use crate::{error::EngineError, health::Assessed};
use jiff::Timestamp;
use std::{
    cell::RefCell,
    collections::{BTreeSet, HashMap},
    sync::Arc,
    time::Duration,
};
use tiphys_apimachinery::{Object, ResourceKey};

/// The health of a live object, as returned by [`crate::health::assess_for_sync`].
pub type HealthOf<'a> = &'a dyn Fn(&Object) -> Result<Assessed, EngineError>;

/// The cluster as currently observed.
#[derive(Clone, Copy)]
pub struct Observed<'a> {
    /// The live object, whether or not the Application tracks it. It may be slightly stale: a state
    /// older than our own last write is detected.
    pub live: &'a dyn Fn(&ResourceKey) -> Option<Arc<Object>>,
    pub health: HealthOf<'a>,
}

/// What to do now, and the message to show.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    pub effects: Vec<Effect>,
    /// Where each group of effects ends (exclusive). Groups are executed one after another, even if
    /// an earlier one failed; effects of one group may be executed concurrently.
    pub groups: Vec<usize>,
    /// The progress must be stored before the effects are executed; otherwise storing it
    /// afterwards, with their outcomes, is enough.
    pub must_store: bool,
    pub progress: Progress,
    pub phase: OperationPhase,
    pub message: String,
    /// When to call `next` again even if nothing changes. With effects: immediately, after
    /// recording their outcomes.
    pub wake_after: Option<Duration>,
}

impl Decision {
    /// The effects group by group, each with the index of its first effect.
    pub fn batches(&self) -> impl Iterator<Item = (usize, &[Effect])> {
        let starts = std::iter::once(0).chain(self.groups.iter().copied());
        starts
            .zip(&self.groups)
            .map(|(start, end)| (start, &self.effects[start..*end]))
    }
}

pub(super) const RUNNING: &str = "one or more tasks are running";
pub(super) const ALL_RUN: &str = "successfully synced (all tasks run)";
pub(super) const NO_MORE: &str = "successfully synced (no more tasks)";
const FAILED_APPLY: &str = "one or more objects failed to apply";
pub(super) const UNSUCCESSFUL: &str = "one or more synchronization tasks completed unsuccessfully";

/// Decides what a sync does now.
///
/// `progress` is what was recorded so far for this `request.operation_id`. The decision is terminal
/// if its phase is Succeeded, Failed or Error; it then has no effects.
pub fn next(
    plan: &SyncPlan,
    observed: Observed,
    progress: &Progress,
    request: &SyncRequest,
    now: Timestamp,
) -> Decision {
    Run::new(plan, observed, progress, request, now).decide()
}

/// One call of [`next`].
pub(super) struct Run<'a> {
    pub steps: Vec<&'a Step>,
    pub observed: Observed<'a>,
    /// Results of `observed.live` by step, because a call may parse a stored object.
    looked_up: RefCell<HashMap<String, Option<Arc<Object>>>>,
    pub ledger: Ledger,
    pub request: &'a SyncRequest,
    pub now: Timestamp,
}

impl<'a> Run<'a> {
    fn new(
        plan: &'a SyncPlan,
        observed: Observed<'a>,
        progress: &Progress,
        request: &'a SyncRequest,
        now: Timestamp,
    ) -> Self {
        let ledger = Ledger::open(progress.clone(), &request.operation_id);
        let mut run = Self {
            steps: Vec::new(),
            observed,
            looked_up: RefCell::default(),
            ledger,
            request,
            now,
        };
        run.steps = plan.steps().filter(|s| run.applies(s)).collect();
        run.close_prunes();
        run
    }

    /// A prune that was started and whose object is no longer in the plan is done, even if that was
    /// never recorded.
    fn close_prunes(&mut self) {
        let begun = |r: &ResourceResult| {
            r.status == Some(ResultCode::Pruned) && r.hook_phase == Some(OperationPhase::Running)
        };
        if !self.ledger.progress.results.iter().any(begun) {
            return;
        }
        let planned: BTreeSet<&str> = self.steps.iter().map(|s| s.id.as_str()).collect();
        let gone = |r: &ResourceResult| !planned.contains(r.step_key().to_string().as_str());
        for result in self
            .ledger
            .progress
            .results
            .iter_mut()
            .filter(|r| begun(r) && gone(r))
        {
            result.hook_phase = Some(OperationPhase::Succeeded);
        }
    }

    /// A namespace that is only created if missing is not a step if it exists, unless this
    /// operation created it.
    fn applies(&self, step: &Step) -> bool {
        let mark = self.ledger.mark(step);
        let (was_read, was_missing) = (
            || mark.is_some_and(|m| !m.uid.is_empty()),
            mark.is_some_and(|m| m.gone),
        );
        step.action != Action::CreateNamespace { always: false }
            || self.ledger.result(step).is_some()
            || was_missing
            || (!was_read() && (self.observed.live)(&step.key).is_none())
    }

    fn decide(mut self) -> Decision {
        if let Some(verdict) = self.ledger.progress.notes.verdict.clone() {
            return self.conclude(verdict);
        }
        if self.request.terminate {
            return self.terminate();
        }
        if let Some(message) = self.refuse() {
            return self.end(OperationPhase::Failed, message);
        }
        self.adopt();
        if let Some(decision) = self.prepare() {
            return decision;
        }
        if self.request.dry_run {
            return self.end(OperationPhase::Succeeded, NO_MORE.into());
        }
        // Every round records at least one result, so there are at most as many rounds as steps.
        for _ in 0..=self.steps.len() {
            if let Some(decision) = self.round() {
                return decision;
            }
        }
        self.end(OperationPhase::Error, "the sync makes no progress".into())
    }

    /// `None`: results were recorded without any effect; call again.
    fn round(&mut self) -> Option<Decision> {
        if let Some(group) = self.group_in_progress() {
            return self.run_steps(&group);
        }
        if self.finished_without_waiting() {
            return Some(self.succeed(ALL_RUN));
        }
        self.refresh();
        if let Some(decision) = self.give_way() {
            return Some(decision);
        }
        if let Some(decision) = self
            .wait_for_running()
            .or_else(|| self.wait_for_pruned())
            .or_else(|| self.release_finished())
        {
            return Some(decision);
        }
        if self.regular().any(|s| self.ledger.unsuccessful(s)) {
            return self.fail();
        }
        let Some(group) = self.next_group() else {
            return Some(self.succeed(NO_MORE));
        };
        self.pause_between_waves()
            .or_else(|| self.run_steps(&group))
    }

    /// All steps except those that only run after a failure.
    pub fn regular(&self) -> impl Iterator<Item = &'a Step> + '_ {
        self.steps
            .iter()
            .copied()
            .filter(|s| s.phase != SyncPhase::SyncFail)
    }

    pub fn hooks(&self) -> impl Iterator<Item = &'a Step> + '_ {
        self.steps.iter().copied().filter(|s| s.is_hook())
    }

    pub fn sync_fail(&self) -> Vec<&'a Step> {
        self.steps
            .iter()
            .copied()
            .filter(|s| s.phase == SyncPhase::SyncFail)
            .collect()
    }

    pub fn pending(&self, step: &Step) -> bool {
        !step.unchanged
            && self
                .ledger
                .phase(step)
                .is_none_or(|p| step.is_prune() && p == OperationPhase::Running)
    }

    /// More than one wave or phase: then each must be healthy before the next begins.
    pub fn multi_step(&self) -> bool {
        self.steps.first().map(|s| s.group()) != self.steps.last().map(|s| s.group())
    }

    /// The live object, unless it is known to be older than our own last write.
    pub fn live(&self, step: &Step) -> Option<Arc<Object>> {
        let known = self.looked_up.borrow().get(&step.id).cloned();
        let live = known.unwrap_or_else(|| {
            let live = (self.observed.live)(&step.key);
            self.looked_up
                .borrow_mut()
                .insert(step.id.clone(), live.clone());
            live
        })?;
        match self.ledger.mark(step) {
            Some(mark) if mark.gone && mark.uid == live.uid() => None,
            Some(mark) if version(&live) < mark.version => None,
            _ => Some(live),
        }
    }

    /// The live object that resulted from this operation's work on the step.
    pub fn own_live(&self, step: &Step) -> Option<Arc<Object>> {
        self.live(step)
            .filter(|live| !step.is_hook() || self.is_own_hook(step, live))
    }

    /// A hook that was recorded as running is followed by its UID: a hook of the same name that was
    /// created later is a different one.
    fn is_own_hook(&self, step: &Step, live: &Object) -> bool {
        if let Some(uid) = self.known_uid(step) {
            return uid == live.uid();
        }
        let deleted = self.ledger.mark(step).is_some_and(|m| m.uid == live.uid());
        let unmarked = self.ledger.mark(step).is_none_or(|m| m.uid.is_empty());
        deleted
            || self.carries_id(step, live)
            || (unmarked && live.annotation(hook::OPERATION_ID).is_none())
    }

    /// The UID of the object that the step created or found, unless it was deleted to make room for
    /// another.
    pub fn known_uid(&self, step: &Step) -> Option<&str> {
        let recorded = self.ledger.status(step) == Some(ResultCode::Synced);
        self.ledger
            .mark(step)
            .filter(|m| !m.uid.is_empty() && (recorded || !m.deleted))
            .map(|m| m.uid.as_str())
    }

    fn carries_id(&self, step: &Step, live: &Object) -> bool {
        let id = live.annotation(hook::OPERATION_ID);
        id == Some(&self.request.operation_id)
            && live.annotation(hook::OPERATION_PHASE) == Some(step.phase.as_str())
    }

    /// Steps that cannot be executed stop the sync before it begins.
    fn refuse(&mut self) -> Option<String> {
        let invalid: Vec<_> = self
            .steps
            .iter()
            .filter_map(|s| s.invalid.as_ref().map(|i| (*s, i)))
            .collect();
        if invalid.is_empty() {
            return None;
        }
        let mut reasons = BTreeSet::new();
        for (step, invalid) in invalid {
            reasons.insert(invalid.reason.as_str());
            self.ledger.set_invalid(step, &invalid.message);
        }
        let reasons: Vec<&str> = reasons.into_iter().collect();
        Some(format!(
            "one or more synchronization tasks are not valid: {}",
            reasons.join("; ")
        ))
    }

    /// A hook that carries this operation's id was started by it, even if that was never recorded.
    pub fn adopt(&mut self) {
        if self.request.operation_id.is_empty() || self.request.dry_run {
            return;
        }
        let unrecorded: Vec<&Step> = self.hooks().filter(|s| self.pending(s)).collect();
        for step in unrecorded {
            if let Some(live) = self.live(step).filter(|l| self.carries_id(step, l)) {
                let message = format!("{} created", step.key.name);
                self.ledger.set(
                    step,
                    Some(ResultCode::Synced),
                    OperationPhase::Running,
                    &message,
                );
                self.ledger.saw(step, Some(&live), self.now);
            }
        }
    }

    /// The first wave with unfinished steps.
    pub fn next_group(&self) -> Option<Vec<&'a Step>> {
        let group = self.regular().find(|s| self.pending(s))?.group();
        Some(self.regular().filter(|s| s.group() == group).collect())
    }

    /// A wave that was partly executed continues, unless a failure stops it.
    fn group_in_progress(&self) -> Option<Vec<&'a Step>> {
        let group = self.next_group()?;
        let begun = group.iter().any(|s| self.ledger.status(s).is_some());
        let halted = group.iter().any(|s| {
            self.ledger.unsuccessful(s) && (s.is_prune() || self.ledger.status(s).is_none())
        });
        (begun && !halted).then_some(group)
    }

    /// The sync does not wait for the last wave if it has no hooks.
    fn finished_without_waiting(&self) -> bool {
        let mut last = None;
        for step in self.regular() {
            if self.pending(step) || self.ledger.unsuccessful(step) {
                return false;
            }
            if self.ledger.result(step).is_some() {
                last = Some(step.group());
            }
        }
        // A pruned object leaves the comparison, and with it the plan; its result stays.
        let pruned = || {
            self.ledger
                .progress
                .results
                .iter()
                .any(|r| r.status == Some(ResultCode::Pruned))
        };
        let settled = |s: &Step| {
            if Some(s.group()) == last {
                !s.is_hook()
            } else {
                !self.ledger.running(s)
            }
        };
        (last.is_some() || pruned())
            && self
                .regular()
                .filter(|s| self.ledger.result(s).is_some())
                .all(settled)
    }

    fn pause_between_waves(&mut self) -> Option<Decision> {
        let until =
            self.ledger.progress.notes.wave_at? + i64::from(self.request.wave_delay_secs) * 1000;
        let left = u64::try_from(until - self.now.as_millisecond())
            .ok()
            .filter(|ms| *ms > 0)?;
        Some(self.wait(RUNNING.into(), Duration::from_millis(left)))
    }

    fn succeed(&mut self, message: &str) -> Decision {
        self.conclude(OperationOutcome {
            phase: OperationPhase::Succeeded,
            message: message.into(),
        })
    }

    /// The sync failed: run the SyncFail hooks, then finish.
    fn fail(&mut self) -> Option<Decision> {
        if let Some(decision) = self.delete_failed_hooks() {
            return Some(decision);
        }
        let sync_fail = self.sync_fail();
        if sync_fail.iter().any(|s| self.pending(s)) {
            return self.run_steps(&sync_fail);
        }
        let reason = if sync_fail.is_empty() && self.failed_while_applying() {
            FAILED_APPLY
        } else {
            UNSUCCESSFUL
        };
        let mut message = match self.timed_out() {
            Some(why) => format!("{UNSUCCESSFUL}, reason: {why}"),
            None => self.with_reasons(reason, self.regular()),
        };
        if sync_fail
            .iter()
            .any(|s| self.ledger.status(s) == Some(ResultCode::SyncFailed))
        {
            message = format!(
                "{message}\n{}",
                self.with_reasons("one or more SyncFail hooks failed", sync_fail.into_iter())
            );
        }
        Some(self.conclude(OperationOutcome {
            phase: OperationPhase::Failed,
            message,
        }))
    }

    /// Whether nothing that must be waited for is still running in the wave that failed.
    fn failed_while_applying(&self) -> bool {
        let Some(last) = self
            .regular()
            .filter(|s| self.ledger.result(s).is_some())
            .last()
            .map(|s| s.group())
        else {
            return false;
        };
        let refused = |s: &Step| match self.ledger.phase(s) {
            Some(OperationPhase::Failed) => self.ledger.status(s) == Some(ResultCode::SyncFailed),
            // What had to go before it could not be removed.
            Some(OperationPhase::Error) => self.ledger.is_refused(s),
            _ => false,
        };
        let was_running = |s: &Step| self.ledger.status(s) == Some(ResultCode::Synced);
        let in_last = || self.regular().filter(|s| s.group() == last);
        in_last().any(refused) && !in_last().any(was_running)
    }

    /// `<text>, reason: <distinct messages of failed applies>`
    pub fn with_reasons(&self, text: &str, steps: impl Iterator<Item = &'a Step>) -> String {
        let mut reasons: Vec<&str> = Vec::new();
        for step in steps.filter(|s| self.ledger.status(s) == Some(ResultCode::SyncFailed)) {
            let message = self.ledger.message(step);
            if !reasons.contains(&message) {
                reasons.push(message);
            }
        }
        if reasons.is_empty() {
            text.to_owned()
        } else {
            format!("{text}, reason: {}", reasons.join(","))
        }
    }

    /// A decision without effects that ends the operation.
    pub fn end(&mut self, phase: OperationPhase, message: String) -> Decision {
        self.decision(Vec::new(), phase, message)
    }

    /// A decision without effects: nothing to do until something changes.
    pub fn wait(&mut self, message: String, at_most: Duration) -> Decision {
        let at_most = self.time_left().map_or(at_most, |left| left.min(at_most));
        Decision {
            wake_after: Some(at_most),
            ..self.decision(Vec::new(), OperationPhase::Running, message)
        }
    }

    /// A decision whose effects may all be executed concurrently.
    pub fn act(&mut self, effects: Vec<Effect>, message: &str) -> Decision {
        self.decision(effects, OperationPhase::Running, message.to_owned())
    }

    fn decision(
        &mut self,
        effects: Vec<Effect>,
        phase: OperationPhase,
        message: String,
    ) -> Decision {
        let groups = if effects.is_empty() {
            Vec::new()
        } else {
            vec![effects.len()]
        };
        let progress = std::mem::take(&mut self.ledger.progress);
        Decision {
            effects,
            groups,
            must_store: false,
            progress,
            phase,
            message,
            wake_after: None,
        }
    }
}
