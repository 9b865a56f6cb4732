//! What the server does without a caller, and so without asking. Nothing here may be reached by a
//! call of the table.
//!
//! A push notification has no caller: the sender is known by the host's secret, if there is one. It
//! may learn nothing, and do one thing: set the refresh annotation of Applications.

use super::Reach;
use crate::ports::StoreResult;
use serde_json::Value;
use std::sync::Arc;
use tiphys_api::Application;

impl Reach {
    /// All Applications, to see which a push concerns.
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
}
