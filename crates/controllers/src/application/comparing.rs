//! Renews an Application's comparison and tree, and updates its status from them.
//!
//! Main function: [`ReconcileContext::refresh`].

use super::{
    context::ReconcileContext,
    error::CompareError,
    error::Error,
    finalizers,
    refresh::{Cause, Refresh},
    rollback, status,
};
use tiphys_api::{Application, Shared, constants, resource::ApplicationTree};
use tiphys_cluster::clusters::LiveCluster;
use tiphys_engine::{
    spec,
    sync::OnTimeout,
    tree,
    types::{Comparison, Condition, ConditionType},
};

impl ReconcileContext<'_> {
    /// Validates the spec, compares, and stores the result in the status. An error of Git or the
    /// cluster becomes a condition.
    pub async fn refresh(&mut self, refresh: &Refresh) {
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
            for &name in answered(&self.app) {
                self.app.metadata.annotations.remove(name);
                self.annotate(name, None);
            }
        }
        let before =
            (refresh.cause == Cause::NothingKnown).then(|| Shared::clone(&self.app.status));
        self.compare(refresh).await;
        if let Some(before) = before.filter(|_| self.memo.comparison.is_none()) {
            // Still nothing is known. The time alone would be news, and call for the next attempt.
            status::without_news(&mut self.app.status, &before);
        }
    }

    /// Validates the spec, compares, and puts the result into the status.
    async fn compare(&mut self, refresh: &Refresh) {
        let problems = self.spec_problems();
        status::set_conditions(&mut self.app.status, &problems, &status::BY_SPEC, self.now);
        if !problems.is_empty() {
            self.memo.forget();
            status::apply_unknown(&mut self.app, self.now);
            self.controller.publish_unknown(self.key);
            return;
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
                    finalizers::align(
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
                if matches!(e, CompareError::NoLiveState(_)) {
                    self.publish_last_tree().await;
                }
            }
        }
    }

    /// Lets readers see which kinds cannot be read now: in the tree of the last comparison, or of
    /// the resources in the status if this process has made none.
    async fn publish_last_tree(&self) {
        let Ok(cluster) = super::compare::cluster(self).await else {
            return;
        };
        let (controller, cache) = (self.controller, &cluster.cache);
        let tree = match self.memo.comparison.clone() {
            Some(_) if self.memo.compared_on != cluster.destination.server => return,
            Some(comparison) => controller.tree(&comparison, cache).0,
            None => match super::compare::rules(self, &cluster) {
                Ok(rules) => controller.known_tree(&self.app, &rules, cache),
                Err(_) => return,
            },
        };
        controller.publish_tree(self.key, tree);
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
            self.annotate(constants::LAST_HEALTHY, Some(id));
        }
    }

    /// Updates the tree with owned objects and orphans, without comparing.
    pub async fn refresh_tree(&mut self, changed: bool) -> Result<(), Error> {
        if let (true, Some(comparison)) = (changed, self.memo.comparison.clone())
            && let Ok(cluster) = super::compare::cluster(self).await
            && self.memo.compared_on == cluster.destination.server
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
        let summary = tree::summary_of(&tree, &self.app.metadata.annotations);
        let status = &mut *self.app.status;
        status.summary = summary;
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
}

/// The annotations that a comparison answers, and so removes. A request to hydrate is the
/// hydrator's, where there is something for it to do.
pub(super) fn answered(app: &Application) -> &'static [&'static str] {
    const ALL: &[&str] = &[
        constants::REFRESH,
        constants::REFRESH_TIMESTAMP,
        constants::HYDRATE,
        constants::HYDRATE_TIMESTAMP,
    ];
    match app.spec.source_hydrator {
        Some(_) => &ALL[..2],
        None => ALL,
    }
}
