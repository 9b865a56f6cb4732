//! Records the outcomes of effects.
//!
//! Main function: [`record`]. It only records; `next` decides what follows.

use super::{
    effect::{ApplyMode, Effect, EffectErr, EffectOk, Outcome, Write},
    hook,
    ledger::Ledger,
    next::{HealthOf, Observed},
    plan::SyncPlan,
    progress::{DryRun, OperationPhase, Progress, ResultCode},
    step::{Action, Step},
    terminate::TERMINATED,
    waiting::observe,
};
use jiff::Timestamp;
use tiphys_apimachinery::Object;

/// Adds outcomes to the progress. Effects without an outcome count as not executed and will be
/// decided again.
pub fn record(
    plan: &SyncPlan,
    progress: Progress,
    effects: &[Effect],
    outcomes: &[Outcome],
    health: HealthOf,
    now: Timestamp,
) -> Progress {
    let operation_id = progress.notes.op.clone();
    let mut recorder = Recorder {
        ledger: Ledger::open(progress, &operation_id),
        dry_run: plan.dry_run,
        health,
        now,
    };
    for outcome in outcomes {
        if let Some(effect) = effects.get(outcome.effect) {
            recorder.take(effect, &outcome.result);
        }
    }
    recorder.close_dry_run(effects, outcomes);
    recorder.ledger.progress
}

struct Recorder<'a> {
    ledger: Ledger,
    /// The whole operation is a dry run.
    dry_run: bool,
    health: HealthOf<'a>,
    now: Timestamp,
}

type Taken<'r> = &'r Result<EffectOk, EffectErr>;

impl Recorder<'_> {
    fn take(&mut self, effect: &Effect, result: Taken) {
        match effect {
            Effect::DryRun(write) => self.dry_run(&write.step, result),
            Effect::Apply(write) | Effect::RunHook(write) => self.written(write, result),
            Effect::Prune { step, uid, .. } => self.pruned(step, uid, result),
            Effect::DeleteHook { step, uid, .. } => self.hook_deleted(step, uid, result),
            Effect::RemoveFinalizer { step, uid, .. } => self.released(step, uid, result),
            Effect::MigrateManagers { step, uid, .. } => self.migrated(step, uid, result),
            Effect::Read { step } => self.read(step, result),
        }
    }

    fn dry_run(&mut self, step: &Step, result: Taken) {
        match result {
            Ok(ok) if self.dry_run => self.ledger.set(
                step,
                Some(ResultCode::Synced),
                OperationPhase::Succeeded,
                &ok.message,
            ),
            Ok(_) => {}
            Err(error) => self.failed(step, &error.message),
        }
    }

    /// The dry run is finished when every object was checked.
    fn close_dry_run(&mut self, effects: &[Effect], outcomes: &[Outcome]) {
        let is_dry_run = |i: usize| matches!(effects.get(i), Some(Effect::DryRun(_)));
        let wanted = (0..effects.len()).filter(|i| is_dry_run(*i)).count();
        let got: Vec<&Outcome> = outcomes.iter().filter(|o| is_dry_run(o.effect)).collect();
        if wanted > 0 && got.len() >= wanted {
            let failed = got.iter().any(|o| o.result.is_err());
            self.ledger.progress.notes.dry_run = if failed { DryRun::Failed } else { DryRun::Done };
        }
    }

    fn written(&mut self, write: &Write, result: Taken) {
        let step = &write.step;
        self.ledger.progress.notes.wave_at = Some(self.now.as_millisecond());
        match result {
            Ok(ok) => {
                let updated = format!("{}/{} updated", step.gvk.kind, step.key.name);
                let message = if write.mode == ApplyMode::Update {
                    &updated
                } else {
                    &ok.message
                };
                self.ledger.set(
                    step,
                    Some(ResultCode::Synced),
                    OperationPhase::Running,
                    message,
                );
                self.ledger.saw(step, ok.live.as_ref(), self.now);
            }
            Err(error) => self.failed(step, &error.message),
        }
    }

    fn pruned(&mut self, step: &Step, uid: &str, result: Taken) {
        self.ledger.progress.notes.wave_at = Some(self.now.as_millisecond());
        match result {
            Err(error) if !error.not_found => self.failed(step, &error.message),
            _ => {
                self.ledger.set(
                    step,
                    Some(ResultCode::Pruned),
                    OperationPhase::Succeeded,
                    "pruned",
                );
                let mark = self.ledger.mark_of(step, uid, self.now);
                mark.deleted = true;
                mark.gone = result.is_err();
            }
        }
    }

    fn hook_deleted(&mut self, step: &Step, uid: &str, result: Taken) {
        let mark = self.ledger.mark_of(step, uid, self.now);
        mark.deleted = true;
        let error = match result {
            Ok(_) => return,
            Err(error) if error.not_found => {
                mark.gone = true;
                return;
            }
            Err(error) => error,
        };
        mark.refused = true;
        let is_ending = self.ledger.running(step) || self.ledger.message(step) == TERMINATED;
        let (phase, what) = match is_ending {
            true => (OperationPhase::Failed, "Failed to delete"),
            false => (OperationPhase::Error, "failed to delete resource"),
        };
        let message = format!("{what}: {}", error.message);
        self.ledger.set_phase(step, phase, &message);
    }

    fn released(&mut self, step: &Step, uid: &str, result: Taken) {
        let mark = self.ledger.mark_of(step, uid, self.now);
        // Also after a failure, which is final: retrying forever would hide it.
        mark.released = true;
        match result {
            Ok(_) => {}
            Err(error) if error.not_found => mark.gone = true,
            Err(error) => {
                mark.refused = true;
                let begun = self.ledger.result(step).is_some();
                let verb = if begun { "Failed" } else { "failed" };
                self.ledger.set_phase(
                    step,
                    OperationPhase::Error,
                    &format!("{verb} to remove hook finalizer: {}", error.message),
                );
            }
        }
    }

    fn migrated(&mut self, step: &Step, uid: &str, result: Taken) {
        match result {
            Ok(_) => self.ledger.mark_of(step, uid, self.now).migrated = true,
            Err(error) => {
                let message = format!(
                    "Failed to perform client-side apply migration for {}: {}",
                    step.key, error.message
                );
                self.failed(step, &message);
            }
        }
    }

    fn read(&mut self, step: &Step, result: Taken) {
        match result {
            // An object of the same name that is not ours: ours is gone.
            Ok(EffectOk {
                live: Some(live), ..
            }) if self.is_anothers(step, live) => self.ledger.mark_mut(step).gone = true,
            Ok(EffectOk {
                live: Some(live), ..
            }) => {
                // If we deleted the object ourselves while it was running, it is being terminated,
                // whatever its health.
                let ending = self
                    .ledger
                    .mark(step)
                    .is_some_and(|m| m.deleted && m.uid == live.uid());
                self.ledger.saw(step, Some(live), self.now);
                let observed = Observed {
                    live: &|_| None,
                    health: self.health,
                };
                if let Some((phase, message)) =
                    observe(step, live, observed).filter(|_| self.ledger.running(step) && !ending)
                {
                    self.ledger.set_phase(step, phase, &message);
                }
            }
            Err(error) if error.not_found => self.ledger.mark_mut(step).gone = true,
            Err(error) if matches!(step.action, Action::CreateNamespace { .. }) => {
                let message = format!("namespace auto creation failed: {}", error.message);
                self.ledger.set(
                    step,
                    Some(ResultCode::SyncFailed),
                    OperationPhase::Error,
                    &message,
                );
            }
            // No answer: the object is read again later.
            _ => self.ledger.mark_mut(step).at = self.now.as_millisecond(),
        }
    }

    /// Whether this is not the hook that the operation ran: by its UID or, if that is lost, by the
    /// operation id that it carries.
    fn is_anothers(&self, step: &Step, live: &Object) -> bool {
        let known = self
            .ledger
            .mark(step)
            .map(|m| m.uid.as_str())
            .filter(|uid| !uid.is_empty());
        let named = || {
            live.annotation(hook::OPERATION_ID)
                .is_some_and(|id| id != self.ledger.progress.notes.op)
        };
        step.is_hook() && known.map_or_else(named, |uid| uid != live.uid())
    }

    fn failed(&mut self, step: &Step, message: &str) {
        self.ledger.set(
            step,
            Some(ResultCode::SyncFailed),
            OperationPhase::Failed,
            &augment(message),
        );
    }
}

/// Adds advice to an error message of Kubernetes that is hard to understand.
fn augment(message: &str) -> String {
    if message.contains("metadata.annotations: Too long: must have at most 262144 bytes") {
        return format!(
            "{message} \n -Additional Info: This error usually means that you are trying to add a large resource on client side. \
             Consider using Server-side apply or syncing with replace enabled. Note: Syncing with Replace enabled is potentially \
             destructive as it may cause resource deletion and re-creation."
        );
    }
    message.to_owned()
}
