//! Operations that the server runs without a caller, and therefore without permission checks. No
//! call of the table may reach them.
//!
//! A probe learns whether the records are read and followed, and nothing of them.
//!
//! A badge shows anybody the health and sync status of an Application, if the settings say so.
//!
//! A push notification has no caller: the sender is authenticated by the host's secret, if one is
//! configured. It learns nothing, and can only set the refresh annotations of Applications and
//! ApplicationSets.

use super::Reach;
use crate::ports::{IsFollowed, StoreResult};
use serde_json::Value;
use std::sync::Arc;
use tiphys_api::{Application, ApplicationSet};

impl Reach {
    /// Whether the Applications have been listed.
    pub(crate) fn is_ready(&self) -> bool {
        self.index.is_ready()
    }

    /// Why what is in memory may be out of date.
    pub(crate) fn problem(&self) -> Option<String> {
        self.store.problem()
    }

    /// An Application for its badge.
    pub(crate) fn app_for_badge(&self, namespace: &str, name: &str) -> Option<Arc<Application>> {
        self.index.get(namespace, name)
    }

    /// The Applications of a namespace, for a project's badge.
    pub(crate) fn apps_for_badge(&self, namespace: &str) -> Vec<Arc<Application>> {
        let mut apps = self.index.all().0;
        apps.retain(|app| app.metadata.namespace == namespace);
        apps
    }

    /// All Applications, to find those that a push affects.
    pub(crate) fn apps_for_webhook(&self) -> Vec<Arc<Application>> {
        self.index.all().0
    }

    pub(crate) async fn refresh_for_webhook(
        &self,
        app: &Application,
        request: &Value,
    ) -> StoreResult<()> {
        let m = &app.metadata;
        self.store
            .patch_app(&m.namespace, &m.name, request)
            .await
            .map(drop)
    }

    /// All sets that may be there.
    pub(crate) fn sets_for_webhook(&self) -> Vec<Arc<ApplicationSet>> {
        let mut sets = self.sets.list().0;
        sets.retain(|set| self.permits(&set.metadata.namespace));
        sets
    }

    /// Whether a set follows something.
    pub(crate) async fn follows_for_webhook(
        &self,
        set: &ApplicationSet,
        is_it: IsFollowed,
    ) -> bool {
        self.sets.follows(set, is_it).await
    }

    pub(crate) async fn refresh_set_for_webhook(&self, set: &ApplicationSet) -> StoreResult<()> {
        let m = &set.metadata;
        self.sets.refresh(&m.namespace, &m.name).await
    }
}
