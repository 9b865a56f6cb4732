//! One reconcile of one Application: reads it, decides what is due, does it, and stores the
//! changes.
//!
//! Main type: [`ReconcileContext`]. It holds the stored and the new state of the Application.
//! [`ReconcileContext::store`] writes the difference in one patch, so that a comparison, an
//! operation's progress and the next operation need only one request.

use super::{
    Controller, Memo,
    auto_sync::{self, AutoSyncDecision},
    error::CompareError,
    error::Error,
    next::{Driven, Next},
    refresh::{self, Cause, Expiry, Level, Reason, Refresh},
    repeats::Repeats,
    rollback, status, touched,
};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::{
    ops::ControlFlow,
    sync::Arc,
    time::{Duration, Instant},
};
use tiphys_api::{Application, access::without_passwords, constants, resource::ApplicationTree};
use tiphys_cluster::{
    Known,
    app_state::AppKey,
    clusters::{LiveCluster, PAUSE_AFTER_FAILURE},
    records::{Event, EventTarget, Record},
};
use tiphys_engine::{
    spec,
    sync::{
        OnTimeout, PROGRESS_ANNOTATION,
        large_prune::{DEFAULT_LIMIT, LargePrune},
        window::Windows,
    },
    tree,
    types::{Comparison, Condition, ConditionType},
};

use tracing::Instrument as _;

/// How long to wait for a cluster that is being opened, if its opening is not reported.
const WHILE_OPENING: Duration = Duration::from_secs(5);

/// One reconcile of one Application.
pub struct ReconcileContext<'a> {
    pub controller: &'a Controller,
    pub key: &'a AppKey,
    /// What is remembered about it between reconciles.
    pub memo: &'a mut Memo,
    /// As stored.
    pub record: Arc<Record<Application>>,
    pub before: Arc<Application>,
    /// The new state.
    pub app: Application,
    /// Annotations to write (`None`: to remove) with the next patch.
    pub annotations: Vec<(&'static str, Option<String>)>,
    pub now: Timestamp,
}

impl<'a> ReconcileContext<'a> {
    pub fn new(
        controller: &'a Controller,
        key: &'a AppKey,
        memo: &'a mut Memo,
        record: Arc<Record<Application>>,
    ) -> Result<Self, Error> {
        let before = record.value().map_err(Error::Unreadable)?;
        let app = Application::clone(&before);
        Ok(Self {
            controller,
            key,
            memo,
            record,
            before,
            app,
            annotations: Vec::new(),
            now: controller.now(),
        })
    }

    /// Does everything that is due.
    pub async fn run(mut self, reason: Reason) -> Result<Next, Error> {
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
            Box::pin(self.refresh(&refresh)).instrument(span).await?;
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
        self.store().await?;
        if self.app.operation.is_some() && next == Next::Event {
            next = Next::after(Duration::from_millis(1));
        }
        Ok(next.or_sooner(self.expires(expiry)))
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

    /// Validates the spec, compares, and stores the result in the status. An error of Git or the
    /// cluster becomes a condition, not an `Err`.
    pub async fn refresh(&mut self, refresh: &Refresh) -> Result<(), Error> {
        tracing::info!(
            hard = refresh.hard,
            "Refreshing app status ({}), level ({})",
            refresh.cause,
            refresh.level as u8
        );
        if self
            .app
            .metadata
            .annotations
            .contains_key(constants::REFRESH)
        {
            // If a new request arrives meanwhile, the write fails, so that it is not removed
            // together with this one.
            for name in [constants::REFRESH, constants::REFRESH_TIMESTAMP] {
                self.app.metadata.annotations.remove(name);
                self.annotate(name, None);
            }
        }
        let problems = self.spec_problems();
        status::set_conditions(&mut self.app.status, &problems, &status::BY_SPEC, self.now);
        if !problems.is_empty() {
            self.memo.forget();
            status::apply_unknown(&mut self.app, self.now);
            self.controller.publish_unknown(self.key);
            return Ok(());
        }
        if !spec::is_normal(&self.app.spec) {
            // Before comparing, so that the status refers to the normal form.
            spec::normalize(&mut self.app.spec);
        }
        match super::compare::run(self, refresh).await {
            Ok(compared) => {
                self.memo.lost_sight = 0;
                if self.app.metadata.deletion_timestamp.is_none() {
                    let comparison = &compared.comparison;
                    super::delete_hooks::align(
                        &mut self.app.metadata.finalizers,
                        &comparison.delete_hooks,
                        &comparison.conditions,
                    );
                }
                if !compared.untold {
                    status::apply_comparison(
                        &mut self.app,
                        &compared.comparison,
                        &compared.facts,
                        self.now,
                    );
                }
                let tree = self.take_tree(&compared.comparison, &compared.cluster);
                let published = self.memo.published.replace(compared.comparison.clone());
                self.controller
                    .publish(self.key, &compared.comparison, published.as_deref(), tree);
                self.remember_healthy();
            }
            Err(e) => {
                self.memo.lost_sight = match &e {
                    CompareError::NoLiveState(_) => self.memo.lost_sight + 1,
                    CompareError::Other(_) => 0,
                };
                let condition = Condition::new(ConditionType::ComparisonError, e.to_string());
                status::set_conditions(
                    &mut self.app.status,
                    &[condition],
                    &status::BY_COMPARISON,
                    self.now,
                );
                status::apply_uncompared(&mut self.app, self.now);
            }
        }
        Ok(())
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

    /// The URL of its cluster; empty if there is no such cluster.
    pub fn server(&self) -> String {
        spec::destination(&self.app.spec.destination, &self.controller.destinations())
            .map(|d| d.server)
            .unwrap_or_default()
    }

    /// Sets an annotation (`None`: removes it) with the next patch.
    pub fn annotate(&mut self, name: &'static str, value: Option<String>) {
        self.annotations.retain(|(other, _)| *other != name);
        self.annotations.push((name, value));
    }

    /// Discards the recorded progress of the operation.
    pub fn forget_progress(&mut self) {
        self.annotate(PROGRESS_ANNOTATION, None);
    }

    /// Remembers the last healthy entry of the history, which a rollback may sync.
    fn remember_healthy(&mut self) {
        let options = self
            .app
            .spec
            .sync_policy
            .as_ref()
            .map(|p| p.sync_options.as_slice())
            .unwrap_or_default();
        let limits = super::timeouts::limits(&self.controller.records.settings(), options);
        if limits.is_ok_and(|l| l.then == OnTimeout::Rollback)
            && let Some(id) = rollback::healthy_entry(&self.app)
        {
            self.annotate(rollback::LAST_HEALTHY, Some(id));
        }
    }

    /// Updates the tree with owned objects and orphans, without comparing.
    async fn refresh_tree(&mut self, changed: bool) -> Result<(), Error> {
        if let (true, Some(comparison)) = (changed, self.memo.comparison.clone())
            && let Ok(cluster) = super::compare::cluster(self).await
        {
            let tree = self.take_tree(&comparison, &cluster);
            self.controller.publish_tree(self.key, tree);
            self.store().await?;
        }
        Ok(())
    }

    /// Builds the current tree, and updates the status from it.
    fn take_tree(&mut self, comparison: &Comparison, cluster: &LiveCluster) -> ApplicationTree {
        let (tree, complete) = self.controller.tree(comparison, &cluster.cache);
        let status = &mut *self.app.status;
        (status.summary.images, status.summary.external_urls) = tree::summary(&tree);
        if !complete {
            // The number of orphans is unknown.
            return tree;
        }
        let orphans = tree::orphans::condition(tree.orphaned_nodes.len(), &comparison.rules);
        status::set_conditions(
            status,
            orphans.as_slice(),
            &[ConditionType::OrphanedResourceWarning],
            self.now,
        );
        tree
    }

    /// The errors in the spec or its project.
    pub fn spec_problems(&self) -> Vec<Condition> {
        let project = self.controller.project(spec::project_name(&self.app));
        let missing = spec::project_condition(
            &self.app,
            project.as_deref(),
            &self.controller.records.namespace,
        );
        match (missing, project) {
            (None, Some(project)) => {
                spec::validate(&self.app.spec, &project, &self.controller.destinations())
            }
            (missing, _) => missing.into_iter().collect(),
        }
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
        if let AutoSyncDecision::Start(operation) = &decision
            && let Some((wait, told)) =
                Repeats::pause(self.memo.automated.as_ref(), operation, backoff, self.now)
        {
            decision = AutoSyncDecision::Later(wait, Some(told));
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
            AutoSyncDecision::Start(operation) => {
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

    /// Stores the changes since the last write, if there are any.
    pub async fn store(&mut self) -> Result<(), Error> {
        status::hide_passwords(&mut self.app.status);
        status::keep_times(&self.before.status, &mut self.app.status);
        let (mut from, mut to) = status::difference(&self.before, &self.app);
        let stored = &self.before.metadata.annotations;
        for (name, value) in self.annotations.drain(..) {
            if stored.get(name) != value.as_ref() {
                set_annotation(&mut from, name, stored.get(name).cloned());
                set_annotation(&mut to, name, value);
            }
        }
        // In one patch with the status: an Application that shows its hooks' revision must always
        // have the finalizers for them.
        if self.app.metadata.finalizers != self.before.metadata.finalizers {
            from["metadata"]["finalizers"] = json!(self.before.metadata.finalizers);
            to["metadata"]["finalizers"] = json!(self.app.metadata.finalizers);
        }
        if self.app.spec != self.before.spec {
            // Based on the stored spec, which may contain unknown fields.
            let stored = self.record.object()?.into_value();
            (from["spec"], to["spec"]) = (stored["spec"].clone(), stored["spec"].clone());
            spec::normalize_document(&mut to["spec"]);
            tracing::info!("Normalized app spec");
        }
        if from == to {
            return Ok(());
        }
        for text in status::events(&self.before.status, &self.app.status) {
            self.event(false, "ResourceUpdated", text);
        }
        match self
            .controller
            .records
            .applications
            .write(&self.record, &from, &to)
            .await
        {
            Err(e) if e.is_too_large() => self.store_too_large(e).await,
            written => {
                self.memo.proved = true;
                written?.map_or(Ok(()), |record| self.take(record))
            }
        }
    }

    /// Reports that the status is too large to store, and nothing else; an operation that cannot be
    /// recorded ends. Returns the API server's error, so that the next reconcile is delayed with
    /// back-off.
    async fn store_too_large(&mut self, refusal: tiphys_cluster::Error) -> Result<(), Error> {
        let mut app = Application::clone(&self.before);
        let condition = Condition::new(ConditionType::UnknownError, status::TOO_LARGE);
        status::set_conditions(
            &mut app.status,
            &[condition],
            &[ConditionType::UnknownError],
            self.now,
        );
        if app.operation.take().is_some() {
            let state = self.app.status.operation_state.take().unwrap_or_default();
            app.status.operation_state =
                Some(status::without_results(state.into_inner(), self.now).into());
        }
        let (mut from, mut to) = status::difference(&self.before, &app);
        for name in [constants::REFRESH, constants::REFRESH_TIMESTAMP] {
            set_annotation(
                &mut from,
                name,
                self.before.metadata.annotations.get(name).cloned(),
            );
            set_annotation(&mut to, name, None);
        }
        self.controller
            .records
            .applications
            .write(&self.record, &from, &to)
            .await?;
        self.memo.running = None;
        Err(refusal.into())
    }

    /// Continues with the server's current state.
    pub fn take(&mut self, record: Arc<Record<Application>>) -> Result<(), Error> {
        self.before = record.value().map_err(Error::Unreadable)?;
        self.app = Application::clone(&self.before);
        self.record = record;
        Ok(())
    }

    /// Records a Kubernetes Event about the Application.
    pub fn event(&self, warning: bool, reason: &'static str, message: String) {
        let message = without_passwords(&message);
        let destination = &self.app.spec.destination;
        let (server, namespace) = (&destination.server, &destination.namespace);
        let type_ = if warning { "Warning" } else { "Normal" };
        tracing::info!(
            reason,
            "type" = type_,
            "dest-server" = server,
            "dest-namespace" = namespace,
            "{message}"
        );
        let target = EventTarget::application(&self.record.meta);
        let event = Event::new(target, reason, message)
            .warning(warning)
            .annotation("dest-server", &destination.server)
            .annotation("dest-namespace", &destination.namespace);
        self.controller.events.record(event);
    }
}

/// Sets an annotation in a part of an object; `None`: makes sure the annotations exist without this
/// one.
fn set_annotation(part: &mut Value, name: &str, value: Option<String>) {
    let annotations = &mut part["metadata"]["annotations"];
    match value {
        Some(value) => annotations[name] = value.into(),
        None if annotations.is_null() => *annotations = json!({}),
        None => {}
    }
}
