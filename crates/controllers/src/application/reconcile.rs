//! One reconcile of one Application: decides what is due, does it, and stores the changes.
//!
//! Main function: [`ReconcileContext::run`].

use super::{
    auto_sync::{self, AutoSyncDecision},
    context::ReconcileContext,
    error::Error,
    next::{Driven, Next},
    out_of_sync,
    refresh::{self, Cause, Expiry, Level, Reason, Refresh},
    repeats::Repeats,
    status, touched,
};
use std::{
    ops::ControlFlow,
    time::{Duration, Instant},
};
use tiphys_cluster::{Known, clusters::PAUSE_AFTER_FAILURE, scripts::heavy};
use tiphys_engine::{
    spec,
    sync::{
        large_prune::{DEFAULT_LIMIT, LargePrune},
        window::Windows,
    },
    types::{Condition, ConditionType, SyncStatus},
};

use tracing::Instrument as _;

/// How long to wait for a cluster that is being opened, if its opening is not reported.
const WHILE_OPENING: Duration = Duration::from_secs(5);

impl ReconcileContext<'_> {
    /// Does everything that is due.
    pub async fn run(mut self, reason: Reason) -> Result<Next, Error> {
        // Somebody took the operation away: if it is set again, what holds then counts.
        if self.app.operation.is_none() {
            self.memo.running = None;
        }
        if spec::destination(&self.app.spec.destination, &self.controller.destinations())
            .is_ok_and(|d| self.controller.clusters.is_opening(&d))
        {
            return Ok(Next::with(reason, WHILE_OPENING));
        }
        if self.app.metadata.deletion_timestamp.is_some() {
            return Box::pin(super::delete::run(&mut self)).await;
        }
        let settings = self.controller.records.settings();
        let expiry = Expiry {
            soft: super::timeouts::soft(&settings, self.memo.share),
            hard: super::timeouts::hard(&settings),
        };
        let mut next = Next::Event;
        let called_for = refresh::needed(&self.app, reason, expiry, self.now);
        if called_for.is_none() && self.app.operation.is_none() && self.is_out_of_sight().await {
            return Ok(self.look_for_cluster());
        }
        // After a start, readers have no tree and no differences yet, however recent the status is.
        let unknown = || {
            let unknown = self.memo.comparison.is_none() || self.memo.lost_sight > 0;
            unknown.then(|| Refresh {
                level: Level::Recent,
                cause: Cause::NothingKnown,
                ..Refresh::default()
            })
        };
        let due = called_for
            .filter(|r| r.level > Level::Tree || self.memo.comparison.is_some())
            .or_else(unknown);
        let operating = self.app.operation.is_some();
        if due.as_ref().is_none_or(|r| r.level == Level::Tree) && !operating {
            self.refresh_tree(due.is_some()).await?;
            return Ok(self.expires(expiry));
        }
        if let Some(refresh) =
            due.filter(|r| !operating || r.level > Level::Recent || r.cause.is_requested())
        {
            let began = Instant::now();
            let span = tracing::trace_span!(
                "compare",
                reason = %refresh.cause,
                level = refresh.level as u8,
                hard = refresh.hard
            );
            Box::pin(self.refresh(&refresh)).instrument(span).await;
            self.controller.metrics.reconciled(
                &self.key.namespace,
                &self.server(),
                began.elapsed(),
            );
            tracing::info!(
                time_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
                "Reconciliation completed"
            );
            if !operating {
                next = self.auto_sync().await;
            }
            next = next.or_sooner(self.look_for_cluster());
        }
        if self.app.operation.is_some() {
            let operation =
                Box::pin(super::operation::run(&mut self)).instrument(tracing::trace_span!("sync"));
            if let Driven::Waits(wait) = operation.await? {
                next = next.or_sooner(wait);
            }
            if self.app.operation.is_none() {
                // The operation ended and the Application was compared again: resources that are
                // still OutOfSync may require another one.
                next = next.or_sooner(self.auto_sync().await);
            }
        }
        self.explain_out_of_sync().await;
        self.store().await?;
        self.forget_ended();
        if self.app.operation.is_some() && next == Next::Event {
            next = Next::after(Duration::from_millis(1));
        }
        Ok(next.or_sooner(self.expires(expiry)))
    }

    /// Drops what is only needed while an operation runs, once the end of the operation, or of the
    /// attempt, is stored.
    fn forget_ended(&mut self) {
        let state = self.app.status.operation_state.as_deref();
        if state.is_none_or(|state| state.finished_at.is_some()) {
            self.memo.running = None;
        }
    }

    /// Keeps the condition that says why the Application is still OutOfSync after a successful
    /// sync. Called when it is decided what follows: an automatic sync may start at once.
    async fn explain_out_of_sync(&mut self) {
        let kind = ConditionType::OutOfSyncWarning;
        let mut explained = None;
        if out_of_sync::is_due(&self.app) {
            let comparison = self.memo.comparison.clone();
            let Some(comparison) = comparison.filter(|c| c.sync == SyncStatus::OutOfSync) else {
                // The status is that of an earlier comparison, and so is the condition.
                return;
            };
            let (app, project) = (&self.app, spec::project_name(&self.app));
            explained = heavy(project, || out_of_sync::explain(app, &comparison)).await;
        }
        let conditions = &self.app.status.conditions;
        // Writing would copy the shared status.
        if explained.is_some() || conditions.iter().any(|c| c.type_ == kind.as_str()) {
            status::set_conditions(
                &mut self.app.status,
                explained.as_slice(),
                &[kind],
                self.now,
            );
        }
    }

    /// When to reconcile again if nothing happens: the comparison expires, or the reason why it
    /// could not be renewed may be gone.
    fn expires(&self, expiry: Expiry) -> Next {
        if let Some(outage) = self.memo.untold_outage() {
            // Whether or not comparisons expire. It may already have expired if this reconcile did
            // not get that far.
            let pause = outage
                .next
                .duration_since(self.now)
                .try_into()
                .ok()
                .filter(|pause: &Duration| !pause.is_zero());
            return Next::with(
                Reason::at(Level::Latest),
                pause.unwrap_or(PAUSE_AFTER_FAILURE),
            );
        }
        refresh::next_expiry(&self.app, expiry, self.now).into()
    }

    /// Whether loading the live state would fail again as before. Checking this costs no write.
    async fn is_out_of_sight(&self) -> bool {
        if self.memo.lost_sight == 0 {
            return false;
        }
        match super::compare::cluster(self).await {
            Ok(cluster) => cluster
                .cache
                .readable(&Known::Resources(self.memo.unseen.clone()))
                .is_err(),
            Err(_) => true,
        }
    }

    /// An unreachable cluster is retried before the comparison expires, with increasing delay.
    fn look_for_cluster(&self) -> Next {
        let lost = self.memo.lost_sight;
        (lost > 0).then(|| PAUSE_AFTER_FAILURE * lost.min(6)).into()
    }

    /// Starts an automatic sync if policy and status require it.
    async fn auto_sync(&mut self) -> Next {
        if self.memo.untold_outage().is_some() && self.memo.desired.is_none() {
            // The status is from another process, and Git's current state is unknown.
            return Next::Event;
        }
        if let ControlFlow::Break(next) = self.check_windows() {
            return next;
        }
        let settings = self.controller.records.settings();
        let options = self
            .app
            .spec
            .sync_policy
            .as_ref()
            .map(|p| p.sync_options.as_slice())
            .unwrap_or_default();
        // An invalid limit is reported by the sync.
        let limit = super::timeouts::prune_limit(&settings, options).unwrap_or(DEFAULT_LIMIT);
        // Needed only if an automatic sync may start.
        let touched = self.app.status.sync.status != "OutOfSync"
            || !auto_sync::is_on(&self.app)
            || touched::since_last_sync(self).await;
        let sync = &self.app.status.sync;
        let comparison = self.memo.comparison.as_deref();
        let since = self
            .app
            .status
            .operation_state
            .as_ref()
            .and_then(|state| state.started_at)
            .map(|at| at.timestamp());
        let changed_by_others = |r: &tiphys_api::status::ResourceStatus| {
            comparison.is_some_and(|c| auto_sync::changed_by_others(c, r, since))
        };
        let leaving = comparison.map(auto_sync::leaving).unwrap_or_default();
        let compared = auto_sync::AutoSyncInput {
            changed_by_others: &changed_by_others,
            out_of_sync: sync.status == "OutOfSync",
            revision: &sync.revision,
            revisions: &sync.revisions,
            touched,
            resources: &self.app.status.resources,
            leaving: &leaving,
            large_prune: comparison.and_then(|c| LargePrune::of(c, limit)),
        };
        let backoff = super::timeouts::self_heal(&settings);
        let mut decision = auto_sync::decide(&self.app, &compared, backoff, self.now);
        if let AutoSyncDecision::Start(operation) = &decision {
            if self.memo.automated.is_none() {
                // Another process may have started it before.
                self.memo.automated = Repeats::recorded(&self.app);
            }
            if let Some((wait, told)) =
                Repeats::pause(self.memo.automated.as_ref(), operation, backoff, self.now)
            {
                decision = AutoSyncDecision::Later(wait, Some(told));
            }
        }
        self.follow(decision, backoff)
    }

    /// Executes the decision.
    fn follow(&mut self, decision: AutoSyncDecision, backoff: auto_sync::Backoff) -> Next {
        let mut conditions = Vec::new();
        let mut next = Next::Event;
        match decision {
            AutoSyncDecision::Nothing => {}
            AutoSyncDecision::Later(wait, told) => {
                next = Next::with(Reason::at(Level::Latest), wait);
                conditions.extend(told.map(|told| Condition::new(ConditionType::SyncError, told)));
            }
            AutoSyncDecision::Refused(message) => {
                conditions.push(Condition::new(ConditionType::SyncError, message))
            }
            AutoSyncDecision::Start(mut operation) => {
                self.event(
                    false,
                    "OperationStarted",
                    operation
                        .sync
                        .as_ref()
                        .map(auto_sync::started)
                        .unwrap_or_default(),
                );
                self.memo.automated =
                    Repeats::after(self.memo.automated.take(), &operation, backoff, self.now);
                if let Some(repeats) = &self.memo.automated {
                    repeats.record(&mut operation);
                }
                self.app.operation = Some(operation);
                // Argo CD clears it when an operation is set, so that the previous result is not
                // mistaken for this one's.
                self.app.status.operation_state = None;
            }
        }
        status::set_conditions(
            &mut self.app.status,
            &conditions,
            &[ConditionType::SyncError],
            self.now,
        );
        next
    }

    /// Whether sync windows block an automatic sync, and when to reconcile again.
    fn check_windows(&mut self) -> ControlFlow<Next> {
        let Some(project) = self.controller.project(spec::project_name(&self.app)) else {
            return ControlFlow::Continue(());
        };
        let windows = Windows::of(&project.spec.sync_windows, &self.app);
        if let Some(problem) = windows.problem() {
            let message = format!(
                "no sync can run: project '{}' has an {problem}",
                project.metadata.name
            );
            let condition = Condition::new(ConditionType::SyncError, message);
            status::set_conditions(
                &mut self.app.status,
                &[condition],
                &[ConditionType::SyncError],
                self.now,
            );
            // A change of the project triggers a reconcile.
            return ControlFlow::Break(Next::Event);
        }
        if windows.can_sync(false, None, self.now) == Ok(true) {
            return ControlFlow::Continue(());
        }
        let next = windows.wait(self.now).map_or(Next::Event, |wait| {
            Next::with(Reason::at(Level::Recent), wait)
        });
        ControlFlow::Break(next)
    }
}
