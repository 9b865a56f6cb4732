//! What a sync does now.
//!
//! Main function: [`next`]. It is level-triggered: it looks at the plan, the live state and what is
//! recorded, never at what it decided before. The order of its questions is the order of a sync;
//! the answers are in `work` (doing), `waiting` and `terminate`.

use super::{
    effect::Effect,
    hook,
    ledger::{Ledger, version},
    plan::SyncPlan,
    progress::{OperationOutcome, OperationPhase, Progress, ResourceResult, ResultCode},
    request::SyncRequest,
    step::{Action, Step, SyncPhase},
};
use crate::{error::EngineError, types::Health};
use jiff::Timestamp;
use std::{
    cell::RefCell,
    collections::{BTreeSet, HashMap},
    sync::Arc,
    time::Duration,
};
use tiphys_apimachinery::{Object, ResourceKey};

/// The health of a live object, as [`crate::health::assess`] gives it.
pub type HealthOf<'a> = &'a dyn Fn(&Object) -> Result<Option<Health>, EngineError>;

/// The cluster as it is seen now.
#[derive(Clone, Copy)]
pub struct Observed<'a> {
    /// The live object, whoever it belongs to. It may be a little old: what is older than our own
    /// last write is recognised.
    pub live: &'a dyn Fn(&ResourceKey) -> Option<Arc<Object>>,
    pub health: HealthOf<'a>,
}

/// What is to be done now, and what to show.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    pub effects: Vec<Effect>,
    /// Where each group of effects ends (exclusive). Groups are carried out one after another,
    /// whatever became of the one before; effects of one group may be carried out together.
    pub groups: Vec<usize>,
    /// The progress must be stored before the effects are carried out; otherwise storing it
    /// afterwards, with their outcomes, is enough.
    pub must_store: bool,
    pub progress: Progress,
    pub phase: OperationPhase,
    pub message: String,
    /// When to ask again even if nothing changes. With effects: at once, after recording their
    /// outcomes.
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
/// `progress` is what was recorded so far, for this `request.operation_id`. The decision is
/// terminal when its phase is Succeeded, Failed or Error; then it has no effects.
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
    /// What `observed.live` said, by step: it may cost the parsing of a stored object.
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

    /// A prune that was begun and whose object has left the plan is done, even if that was never
    /// recorded.
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

    /// A namespace that is only made when it is missing is no step when it is there, unless this
    /// operation made it.
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
        // Every round records at least one result, so there are at most as many as steps.
        for _ in 0..=self.steps.len() {
            if let Some(decision) = self.round() {
                return decision;
            }
        }
        self.end(OperationPhase::Error, "the sync makes no progress".into())
    }

    /// `None`: results were recorded without any effect; ask again.
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

    /// All steps but those that only run after a failure.
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

    /// The live object, unless it is known to be an older view than our own last write.
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

    /// The live object that this operation's work on the step led to.
    pub fn own_live(&self, step: &Step) -> Option<Arc<Object>> {
        self.live(step)
            .filter(|live| !step.is_hook() || self.is_own_hook(step, live))
    }

    /// A hook that was recorded as run is followed by its UID: one of the same name that somebody
    /// made afterwards is another.
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

    /// The UID of the object that the step came to, unless that was deleted to make room for
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

    /// Steps that cannot be carried out stop the sync before it begins.
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

    /// The first wave with something left to do.
    pub fn next_group(&self) -> Option<Vec<&'a Step>> {
        let group = self.regular().find(|s| self.pending(s))?.group();
        Some(self.regular().filter(|s| s.group() == group).collect())
    }

    /// A wave of which some steps were carried out already goes on, unless a failure stops it.
    fn group_in_progress(&self) -> Option<Vec<&'a Step>> {
        let group = self.next_group()?;
        let begun = group.iter().any(|s| self.ledger.status(s).is_some());
        let halted = group.iter().any(|s| {
            self.ledger.unsuccessful(s) && (s.is_prune() || self.ledger.status(s).is_none())
        });
        (begun && !halted).then_some(group)
    }

    /// The last wave is not waited for when it has no hooks.
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

    /// The sync failed: SyncFail hooks run, then it is over.
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

    /// Whether the wave in which the sync failed left nothing running that had to be waited for.
    fn failed_while_applying(&self) -> bool {
        let Some(last) = self
            .regular()
            .filter(|s| self.ledger.result(s).is_some())
            .last()
            .map(|s| s.group())
        else {
            return false;
        };
        let preparation = |s: &Step| {
            ["failed to remove", "failed to delete"]
                .iter()
                .any(|p| self.ledger.message(s).starts_with(p))
        };
        let refused = |s: &Step| match self.ledger.phase(s) {
            Some(OperationPhase::Failed) => self.ledger.status(s) == Some(ResultCode::SyncFailed),
            Some(OperationPhase::Error) => preparation(s),
            _ => false,
        };
        let was_running = |s: &Step| self.ledger.status(s) == Some(ResultCode::Synced);
        let in_last = || self.regular().filter(|s| s.group() == last);
        in_last().any(refused) && !in_last().any(was_running)
    }

    /// `<text>, reason: <distinct messages of what failed to be applied>`
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

    /// A decision whose effects may all be carried out together.
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
