//! The configuration of notifications, of which everybody may know the names.

use super::Reach;
use crate::ApiError;

const CONFIG_MAP: &str = "argocd-notifications-cm";

impl Reach {
    /// The keys of the configuration. Whoever has an account may know them.
    pub(crate) async fn notification_keys(&self) -> Result<Vec<String>, ApiError> {
        let data = self.store.read_config_map(CONFIG_MAP).await?.data;
        Ok(data.into_keys().collect())
    }
}
