//! Executes the sync: the dry run, the steps of a wave in order, and the cleanup of hooks.

use super::{
    effect::{ApplyMode, Effect, Write},
    hook::{self, DeletePolicy},
    next::{Decision, RUNNING, Run, UNSUCCESSFUL},
    options,
    progress::{DryRun, Ending, OperationOutcome, OperationPhase, ResultCode},
    step::{Action, PruneRule, Step, SyncPhase},
    waiting::{For, SAFETY_NET, waiting_for},
};
use serde_json::Value;
use std::time::Duration;
use tiphys_apimachinery::Object;

/// How long to wait for a new CRD to be established before the sync continues anyway.
const CRD_TIMEOUT_MS: i64 = 3_000;
const CRD_POLL: Duration = Duration::from_millis(100);
/// A deletion without visible effect is requested again after this long.
const DELETE_AGAIN_MS: i64 = 5_000;

impl<'a> Run<'a> {
    /// The steps before the first wave: the destination namespace, and a dry run of everything.
    pub fn prepare(&mut self) -> Option<Decision> {
        match self.ledger.progress.notes.dry_run {
            DryRun::Done => return None,
            DryRun::Failed => {
                return Some(self.end(
                    OperationPhase::Failed,
                    "one or more objects failed to apply (dry run)".into(),
                ));
            }
            DryRun::Pending => {}
        }
        if self.started() {
            self.ledger.progress.notes.dry_run = DryRun::Done;
            return None;
        }
        if let Some(decision) = self.create_namespace() {
            return Some(decision);
        }
        let skip = self.request.skip_dry_run && !self.request.dry_run;
        let checked = |s: &&Step| {
            !s.is_prune() && !s.unchanged && !s.skip_dry_run && self.ledger.phase(s).is_none()
        };
        let steps: Vec<&Step> = self
            .steps
            .iter()
            .copied()
            .filter(|s| !skip && checked(s))
            .collect();
        let effects: Vec<Effect> = steps
            .into_iter()
            .map(|s| Effect::DryRun(self.write(s, true)))
            .collect();
        if self.request.dry_run {
            self.report_prunes();
        }
        if effects.is_empty() {
            self.ledger.progress.notes.dry_run = DryRun::Done;
            return None;
        }
        Some(self.act(effects, RUNNING))
    }

    /// Whether the operation is past its dry run, although the notes do not say so.
    fn started(&self) -> bool {
        let namespace = self.request.dest_namespace.as_str();
        let results = &self.ledger.progress.results;
        !self.request.dry_run
            && results
                .iter()
                .any(|r| !(r.group.is_empty() && r.kind == "Namespace" && r.name == namespace))
    }

    /// A missing destination namespace among the targets is created before the dry run, which would
    /// fail without it.
    fn create_namespace(&mut self) -> Option<Decision> {
        let name = self.request.dest_namespace.clone();
        let step = self
            .steps
            .iter()
            .copied()
            .find(|s| s.is_namespace(&name) && !s.is_hook())?;
        let if_missing = step.action == Action::CreateNamespace { always: false };
        match self.ledger.status(step) {
            Some(ResultCode::SyncFailed) => {
                let refused = self.ledger.phase(step) == Some(OperationPhase::Failed);
                let what = if refused {
                    "the namespace failed to apply"
                } else {
                    UNSUCCESSFUL
                };
                let message = self.with_reasons(what, std::iter::once(step));
                Some(self.end(OperationPhase::Failed, message))
            }
            // A cache need not contain a namespace that no Application manages.
            None if if_missing && self.ledger.mark(step).is_none() => {
                Some(self.act(vec![Effect::Read { step: step.clone() }], RUNNING))
            }
            // It may also be there without a result: a process that died before it recorded what it
            // created, which `gone` shows. Where the dry run fails, no later step would record it.
            None if !self.request.dry_run
                && (self.live(step).is_none()
                    || self.ledger.mark(step).is_some_and(|m| m.gone)) =>
            {
                let write = self.write(step, false);
                // Once it exists, only the note that it was missing shows that this operation
                // created it.
                Some(Decision {
                    must_store: if_missing,
                    ..self.act(vec![Effect::Apply(write)], RUNNING)
                })
            }
            _ => None,
        }
    }

    /// In a dry run, the prunes are known without asking the cluster.
    fn report_prunes(&mut self) {
        let prunes: Vec<&Step> = self
            .steps
            .iter()
            .copied()
            .filter(|s| s.is_prune() && self.pending(s))
            .collect();
        for step in prunes {
            if !self.skip_prune(step) {
                self.ledger.set(
                    step,
                    Some(ResultCode::Pruned),
                    OperationPhase::Succeeded,
                    "pruned (dry run)",
                );
            }
        }
    }

    /// Records why a resource that is not in Git stays; false if it does not stay.
    fn skip_prune(&mut self, step: &Step) -> bool {
        let reason = match step.action {
            Action::Prune(PruneRule::NotRequested) => "ignored (requires pruning)",
            Action::Prune(PruneRule::Disabled) => "ignored (no prune)",
            _ => return false,
        };
        self.ledger.set(
            step,
            Some(ResultCode::PruneSkipped),
            OperationPhase::Succeeded,
            reason,
        );
        true
    }

    /// Executes the rest of one wave (or of the SyncFail hooks): releases old hooks, prunes,
    /// deletes old hooks, then writes. `None`: results were recorded and nothing is left.
    pub fn run_steps(&mut self, group: &[&'a Step]) -> Option<Decision> {
        let pending: Vec<&Step> = group.iter().copied().filter(|s| self.pending(s)).collect();
        let (prunes, writes): (Vec<&Step>, Vec<&Step>) =
            pending.into_iter().partition(|s| s.is_prune());
        let released = self.release_effects(&writes);
        if !released.is_empty() {
            return Some(self.act(released, RUNNING));
        }
        if let Some(decision) = self
            .prune(&prunes)
            .or_else(|| self.delete_old_hooks(&writes))
        {
            return Some(decision);
        }
        // An old hook that cannot be removed has failed the wave.
        if writes.iter().any(|s| self.ledger.unsuccessful(s)) {
            None
        } else {
            self.write_all(&writes)
        }
    }

    fn prune(&mut self, prunes: &[&Step]) -> Option<Decision> {
        let unconfirmed = |s: &&Step| s.action == Action::Prune(PruneRule::Unconfirmed);
        if !self.request.prune_confirmed && prunes.iter().any(unconfirmed) {
            return Some(self.wait(waiting_for(prunes, For::Confirmation), SAFETY_NET));
        }
        let mut effects = Vec::new();
        for step in prunes {
            if self.skip_prune(step) {
                continue;
            }
            match self.live(step).filter(|l| l.uid() == step.uid) {
                Some(live) if live.deletion_timestamp().is_none() => {
                    // Recorded as started, because once the object is gone nothing else identifies
                    // it.
                    self.ledger.set(
                        step,
                        Some(ResultCode::Pruned),
                        OperationPhase::Running,
                        "pruned",
                    );
                    let propagation = self.request.options.propagation;
                    effects.push(Effect::Prune {
                        step: (*step).clone(),
                        uid: step.uid.clone(),
                        propagation,
                    });
                }
                _ => self.ledger.set(
                    step,
                    Some(ResultCode::Pruned),
                    OperationPhase::Succeeded,
                    "pruned",
                ),
            }
        }
        if effects.is_empty() {
            return None;
        }
        Some(Decision {
            must_store: true,
            ..self.act(effects, RUNNING)
        })
    }

    /// Deletes hooks left over from earlier syncs before the new ones are created.
    fn delete_old_hooks(&mut self, writes: &[&Step]) -> Option<Decision> {
        let old: Vec<&Step> = writes
            .iter()
            .copied()
            .filter(|s| s.has_policy(DeletePolicy::BeforeHookCreation) && self.live(s).is_some())
            .collect();
        if old.is_empty() {
            return None;
        }
        let effects: Vec<Effect> = old
            .iter()
            .filter_map(|s| self.delete_hook(s, Some(DELETE_AGAIN_MS)))
            .collect();
        let message = waiting_for(&old, For::Deletion);
        if effects.is_empty() {
            (!self.overdue(&old, &message))
                .then(|| self.wait(message, Duration::from_millis(DELETE_AGAIN_MS as u64)))
        } else {
            Some(self.act(effects, &message))
        }
    }

    /// The deletion of a hook's live object, unless it was already requested (and, if given, less
    /// than `again_ms` ago).
    pub fn delete_hook(&self, step: &Step, again_ms: Option<i64>) -> Option<Effect> {
        let live = self
            .live(step)
            .filter(|l| l.deletion_timestamp().is_none())?;
        let asked = self.ledger.mark(step).is_some_and(|m| {
            m.deleted
                && m.uid == live.uid()
                && again_ms.is_none_or(|ms| self.now.as_millisecond() < m.at + ms)
        });
        let propagation = self.request.options.propagation;
        (!asked).then(|| Effect::DeleteHook {
            step: step.clone(),
            uid: live.uid().to_owned(),
            propagation,
        })
    }

    /// Removes our finalizer from the live objects of these hooks.
    pub fn release_effects(&self, steps: &[&Step]) -> Vec<Effect> {
        let release = |step: &&Step| {
            let live = self
                .live(step)
                .filter(|l| step.is_hook() && hook::has_finalizer(l))?;
            let tried = self
                .ledger
                .mark(step)
                .is_some_and(|m| m.released && m.uid == live.uid());
            let uid = live.uid().to_owned();
            (!tried).then(|| Effect::RemoveFinalizer {
                step: (*step).clone(),
                uid,
                finalizer: hook::HOOK_FINALIZER.to_owned(),
            })
        };
        steps.iter().filter_map(release).collect()
    }

    /// Releases hooks whose result is recorded.
    pub fn release_finished(&mut self) -> Option<Decision> {
        let finished: Vec<&Step> = self
            .hooks()
            .filter(|s| self.ledger.completed(s) && self.own_live(s).is_some())
            .collect();
        let effects = self.release_effects(&finished);
        if effects.is_empty() {
            return None;
        }
        // Once released, a hook may disappear together with its result.
        Some(Decision {
            must_store: true,
            ..self.act(effects, RUNNING)
        })
    }

    /// Writes kind after kind; new CRDs must be established before anything else is written.
    fn write_all(&mut self, writes: &[&Step]) -> Option<Decision> {
        if writes.is_empty() {
            return None;
        }
        if self.waits_for_crd() {
            return Some(self.wait(RUNNING.into(), CRD_POLL));
        }
        let migrations: Vec<Effect> = writes.iter().filter_map(|s| self.migration(s)).collect();
        if !migrations.is_empty() {
            return Some(self.act(migrations, RUNNING));
        }
        let (mut effects, mut groups) = (Vec::new(), Vec::new());
        for kind in writes.chunk_by(|a, b| a.gvk.kind == b.gvk.kind) {
            for step in kind {
                let write = self.write(step, false);
                effects.push(if step.is_hook() {
                    Effect::RunHook(write)
                } else {
                    Effect::Apply(write)
                });
            }
            groups.push(effects.len());
            if kind.iter().any(|s| s.is_crd() && !self.established(s)) {
                break;
            }
        }
        Some(Decision {
            groups,
            ..self.act(effects, RUNNING)
        })
    }

    fn waits_for_crd(&self) -> bool {
        let fresh = |s: &Step| {
            self.ledger
                .mark(s)
                .is_some_and(|m| self.now.as_millisecond() < m.at + CRD_TIMEOUT_MS)
        };
        let applied =
            |s: &Step| s.is_crd() && self.ledger.status(s) == Some(ResultCode::Synced) && fresh(s);
        self.steps
            .iter()
            .any(|s| applied(s) && !self.established(s))
    }

    fn established(&self, step: &Step) -> bool {
        let is_true = |c: &Value| c["type"] == "Established" && c["status"] == "True";
        let live = self.live(step);
        live.is_some_and(|l| {
            l.pointer("/status/conditions")
                .and_then(Value::as_array)
                .is_some_and(|list| list.iter().any(is_true))
        })
    }

    fn migration(&self, step: &Step) -> Option<Effect> {
        let options = &self.request.options;
        if !step.server_side
            || !options.client_side_apply_migration
            || options.migration_manager.is_empty()
        {
            return None;
        }
        let live = self.live(step)?;
        let manager = options.migration_manager.as_str();
        let done = self
            .ledger
            .mark(step)
            .is_some_and(|m| m.migrated && m.uid == live.uid());
        let owns = |entry: &Value| entry["manager"] == manager && entry["operation"] == "Update";
        let needed = live
            .metadata("managedFields")
            .and_then(Value::as_array)
            .is_some_and(|list| list.iter().any(owns));
        let effect = || Effect::MigrateManagers {
            step: step.clone(),
            uid: live.uid().to_owned(),
            manager: manager.to_owned(),
        };
        (needed && !done).then(effect)
    }

    /// How to write the step's target, given the live object.
    fn write(&self, step: &Step, dry_run: bool) -> Write {
        let live = self.live(step);
        let asks = |option| {
            live.as_ref()
                .is_some_and(|l: &std::sync::Arc<Object>| options::has(l, option))
        };
        let mode = match &live {
            _ if !(step.replace || asks("Replace=true")) => {
                if step.server_side && !dry_run {
                    ApplyMode::ServerSide
                } else {
                    ApplyMode::ClientSide
                }
            }
            None => ApplyMode::Create,
            Some(_) if step.is_crd() || step.gvk.kind == "Namespace" => ApplyMode::Update,
            Some(_) => ApplyMode::Replace,
        };
        Write {
            step: step.clone(),
            mode,
            force: step.force || asks("Force=true"),
            validate: step.validate,
        }
    }

    /// Deletes hooks whose policy is HookFailed, before SyncFail hooks run.
    pub fn delete_failed_hooks(&mut self) -> Option<Decision> {
        let wanted: Vec<&Step> = self
            .hooks()
            .filter(|s| s.phase != SyncPhase::SyncFail)
            .collect();
        let effects = self.deletions(&wanted, |s| s.has_policy(DeletePolicy::HookFailed));
        if effects.is_empty() {
            None
        } else {
            Some(Decision {
                must_store: true,
                ..self.act(effects, RUNNING)
            })
        }
    }

    /// Deletes the hooks that their policy selects, or that timed out.
    fn deletions(&self, hooks: &[&Step], doomed: impl Fn(&Step) -> bool) -> Vec<Effect> {
        // An object that took the name of a hook that is gone is not ours to delete.
        let replaced = |s: &Step| {
            self.known_uid(s)
                .is_some_and(|uid| self.live(s).is_some_and(|live| live.uid() != uid))
        };
        let wanted = hooks.iter().filter(|s| {
            (doomed(s) || self.is_overdue_hook(s)) && !self.ledger.running(s) && !replaced(s)
        });
        wanted.filter_map(|s| self.delete_hook(s, None)).collect()
    }

    /// The outcome is known: delete the hooks that their policy selects, then finish the operation.
    pub fn conclude(&mut self, verdict: OperationOutcome) -> Decision {
        let hooks: Vec<&Step> = self.hooks().collect();
        let effects = if self.request.dry_run {
            Vec::new()
        } else {
            self.deletions(&hooks, |s| self.goes_at_the_end(s, verdict.phase))
        };
        if effects.is_empty() {
            return self.end(verdict.phase, verdict.message);
        }
        self.ledger.progress.notes.verdict = Some(verdict);
        Decision {
            must_store: true,
            ..self.act(effects, RUNNING)
        }
    }

    /// Whether a hook's policy deletes it at the end of the operation; in a terminated operation,
    /// each hook's own result counts.
    fn goes_at_the_end(&self, hook: &Step, phase: OperationPhase) -> bool {
        let policy = |phase| {
            if phase == OperationPhase::Succeeded {
                DeletePolicy::HookSucceeded
            } else {
                DeletePolicy::HookFailed
            }
        };
        match self.ledger.progress.notes.ending {
            Some(Ending::Superseded) => self
                .ledger
                .phase(hook)
                .is_some_and(|own| hook.has_policy(policy(own))),
            _ => hook.has_policy(policy(phase)),
        }
    }
}
