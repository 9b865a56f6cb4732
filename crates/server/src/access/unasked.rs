//! Operations that the server runs without a caller, and therefore without permission checks. No
//! call of the table may reach them.
//!
//! A push notification has no caller: the sender is authenticated by the host's secret, if one is
//! configured. It learns nothing, and can only set the refresh annotation of Applications.

use super::Reach;
use crate::ports::StoreResult;
use serde_json::Value;
use std::sync::Arc;
use tiphys_api::Application;

impl Reach {
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
}
