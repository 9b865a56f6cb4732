//! One reconcile of one Application: read it, decide what is due, do it, write what changed.
//!
//! Main type: [`ReconcileContext`]. It holds the Application as stored and as it shall be;
//! [`ReconcileContext::store`] writes the difference in one patch, so that a comparison, an
//! operation's progress and the next operation cost one request together.

use super::{
    Controller, Memo,
    auto_sync::{self, AutoSyncDecision},
    compare::NO_LIVE_STATE,
    error::Error,
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

/// How long to wait for a cluster that is being opened, when nobody says that it is open.
const WHILE_OPENING: Duration = Duration::from_secs(5);

/// When to look again although nothing happened meanwhile.
pub type Again = Option<(Reason, Duration)>;

/// One reconcile of one Application.
pub struct ReconcileContext<'a> {
    pub controller: &'a Controller,
    pub key: &'a AppKey,
    /// What is remembered of it between reconciles.
    pub memo: &'a mut Memo,
    /// As stored.
    pub record: Arc<Record<Application>>,
    pub before: Arc<Application>,
    /// As it shall be.
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

    /// Does what is due.
    pub async fn run(mut self, reason: Reason) -> Result<Again, Error> {
        if spec::destination(&self.app.spec.destination, &self.controller.destinations())
            .is_ok_and(|d| self.controller.clusters.is_opening(&d))
        {
            return Ok(Some((reason, WHILE_OPENING)));
        }
        if self.app.metadata.deletion_timestamp.is_some() {
            return Box::pin(super::delete::run(&mut self)).await;
        }
        let settings = self.controller.records.settings();
        let expiry = Expiry {
            soft: super::timeouts::soft(&settings, self.memo.share),
            hard: super::timeouts::hard(&settings),
        };
        let mut again: Again = None;
        let called_for = refresh::needed(&self.app, reason, expiry, self.now);
        if called_for.is_none() && self.app.operation.is_none() && self.is_out_of_sight().await {
            return Ok(self.look_for_cluster());
        }
        // After a start readers have no tree and no differences yet, however recent the status is.
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
                again = self.auto_sync().await;
            }
            again = soonest(again, self.look_for_cluster());
        }
        if self.app.operation.is_some() {
            let next = Box::pin(super::operation::run(&mut self))
                .instrument(tracing::trace_span!("sync"))
                .await?;
            again = soonest(again, next);
            if self.app.operation.is_none() {
                // It ended, and was compared again: what is still out of sync may call for the next
                // one.
                again = soonest(again, self.auto_sync().await);
            }
        }
        self.store().await?;
        if self.app.operation.is_some() && again.is_none() {
            again = Some((Reason::RECONCILE, Duration::from_millis(1)));
        }
        Ok(soonest(again, self.expires(expiry)))
    }

    /// When to look again although nothing happens: the comparison is no longer good, or what kept
    /// it from being renewed may be over.
    fn expires(&self, expiry: Expiry) -> Again {
        if let Some(outage) = self.memo.untold_outage() {
            // Whether or not comparisons expire. It is over already when this look did not come to
            // asking.
            let pause = outage
                .next
                .duration_since(self.now)
                .try_into()
                .ok()
                .filter(|pause: &Duration| !pause.is_zero());
            return Some((
                Reason::at(Level::Latest),
                pause.unwrap_or(PAUSE_AFTER_FAILURE),
            ));
        }
        refresh::next_expiry(&self.app, expiry, self.now).map(|d| (Reason::RECONCILE, d))
    }

    /// Checks the specification, compares, and writes the verdict into the status. An error of Git
    /// or cluster is a condition, not an `Err`.
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
            // A request that comes meanwhile makes the write fail, so that it is not taken for this
            // one.
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
            // Before comparing, so that the status says that the normal form was compared.
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
            Err(message) => {
                self.memo.lost_sight = if message.starts_with(NO_LIVE_STATE) {
                    self.memo.lost_sight + 1
                } else {
                    0
                };
                let condition = Condition::new(ConditionType::ComparisonError, message);
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

    /// Whether what failed before for want of the live state would fail again. Asking so costs no
    /// write.
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

    /// A cluster that was away is looked for before the comparison expires, the longer it is away
    /// the more rarely.
    fn look_for_cluster(&self) -> Again {
        (self.memo.lost_sight > 0).then(|| {
            (
                Reason::RECONCILE,
                PAUSE_AFTER_FAILURE * self.memo.lost_sight.min(6),
            )
        })
    }

    /// The address of its cluster; empty when there is no such cluster.
    pub fn server(&self) -> String {
        spec::destination(&self.app.spec.destination, &self.controller.destinations())
            .map(|d| d.server)
            .unwrap_or_default()
    }

    /// Writes an annotation (`None`: removes it) with the next patch.
    pub fn annotate(&mut self, name: &'static str, value: Option<String>) {
        self.annotations.retain(|(other, _)| *other != name);
        self.annotations.push((name, value));
    }

    /// What was noted of the operation's progress holds no more.
    pub fn forget_progress(&mut self) {
        self.annotate(PROGRESS_ANNOTATION, None);
    }

    /// Remembers the last entry of the history that was healthy, where a sync may have to go back
    /// to it.
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

    /// Shows what became of the resources' own products and of orphans; nothing is compared.
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

    /// The tree as it is now, and in the status what it says.
    fn take_tree(&mut self, comparison: &Comparison, cluster: &LiveCluster) -> ApplicationTree {
        let (tree, complete) = self.controller.tree(comparison, &cluster.cache);
        let status = &mut *self.app.status;
        (status.summary.images, status.summary.external_urls) = tree::summary(&tree);
        if !complete {
            // How many orphans there are is not known.
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

    /// What is wrong with the specification or its project.
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

    /// Starts a sync if policy and status call for one.
    async fn auto_sync(&mut self) -> Again {
        if self.memo.untold_outage().is_some() && self.memo.desired.is_none() {
            // The status is of another process, and nobody knows what Git says.
            return None;
        }
        if let ControlFlow::Break(again) = self.heed_windows() {
            return again;
        }
        let settings = self.controller.records.settings();
        let options = self
            .app
            .spec
            .sync_policy
            .as_ref()
            .map(|p| p.sync_options.as_slice())
            .unwrap_or_default();
        // A limit that cannot be read is told by the sync.
        let limit = super::timeouts::prune_limit(&settings, options).unwrap_or(DEFAULT_LIMIT);
        // Only who may sync by himself needs to know.
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
        let mut verdict = auto_sync::decide(&self.app, &compared, backoff, self.now);
        if let AutoSyncDecision::Start(operation) = &verdict
            && let Some((wait, told)) =
                Repeats::pause(self.memo.automated.as_ref(), operation, backoff, self.now)
        {
            verdict = AutoSyncDecision::Later(wait, Some(told));
        }
        self.follow(verdict, backoff)
    }

    /// Does as was decided.
    fn follow(&mut self, decision: AutoSyncDecision, backoff: auto_sync::Backoff) -> Again {
        let mut conditions = Vec::new();
        let mut again = None;
        match decision {
            AutoSyncDecision::Nothing => {}
            AutoSyncDecision::Later(wait, told) => {
                again = Some((Reason::at(Level::Latest), wait));
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
                // Argo CD clears it when an operation is set, so that a reader never takes the last
                // one's result for this one's.
                self.app.status.operation_state = None;
            }
        }
        status::set_conditions(
            &mut self.app.status,
            &conditions,
            &[ConditionType::SyncError],
            self.now,
        );
        again
    }

    /// Whether sync windows keep an automatic sync from starting, and when to look again.
    fn heed_windows(&mut self) -> ControlFlow<Again> {
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
            // A change of the project wakes it.
            return ControlFlow::Break(None);
        }
        if windows.can_sync(false, None, self.now) == Ok(true) {
            return ControlFlow::Continue(());
        }
        let wait = windows.wait(self.now);
        ControlFlow::Break(wait.map(|wait| (Reason::at(Level::Recent), wait)))
    }

    /// Writes what changed since the last write, if anything did.
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
        // In one write with the status: an Application that shows its hooks' revision never lacks
        // what holds it back for them.
        if self.app.metadata.finalizers != self.before.metadata.finalizers {
            from["metadata"]["finalizers"] = json!(self.before.metadata.finalizers);
            to["metadata"]["finalizers"] = json!(self.app.metadata.finalizers);
        }
        if self.app.spec != self.before.spec {
            // Of the specification as it is stored: it may have fields that nobody here knows.
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

    /// Says that the status cannot be stored, and nothing else; an operation that cannot be told of
    /// ends. What is returned is the refusal, so that the next look comes later and later.
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

    /// Goes on from what the server has now.
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

/// Lets a part of an object have an annotation; `None`: have annotations, but not this one.
fn set_annotation(part: &mut Value, name: &str, value: Option<String>) {
    let annotations = &mut part["metadata"]["annotations"];
    match value {
        Some(value) => annotations[name] = value.into(),
        None if annotations.is_null() => *annotations = json!({}),
        None => {}
    }
}

/// The earlier of two.
pub fn soonest(a: Again, b: Again) -> Again {
    match (a, b) {
        (Some(a), Some(b)) => Some(if b.1 < a.1 { b } else { a }),
        (a, b) => a.or(b),
    }
}
