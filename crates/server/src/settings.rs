//! What the server reads from argocd-cm and argocd-secret. [`SettingsCache`] remembers it for a moment, so that not every
//! request asks Kubernetes.

use crate::{
    error::ApiError,
    ports::{SecretRecord, Store},
};
use jiff::Timestamp;
use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::sync::Mutex;

const CONFIG_MAP: &str = "argocd-cm";
pub(crate) const SECRET: &str = "argocd-secret";
const REMEMBER: Duration = Duration::from_secs(3);
const DAY_SECONDS: i64 = 24 * 60 * 60;

/// The settings, parsed. Has no Debug: it holds the signing key.
pub struct Settings {
    pub config: BTreeMap<String, String>,
    pub admin_password_hash: String,
    pub admin_password_mtime: Option<Timestamp>,
    pub admin_enabled: bool,
    pub signing_key: Vec<u8>,
    pub session_seconds: i64,
    /// What those who send webhooks know: `webhook.*` of argocd-secret that is not empty.
    pub webhook_secrets: BTreeMap<String, Vec<u8>>,
}

impl Settings {
    /// A value of argocd-cm; empty when absent.
    pub fn value(&self, key: &str) -> &str {
        self.config.get(key).map_or("", String::as_str)
    }

    pub fn flag(&self, key: &str) -> bool {
        self.value(key) == "true"
    }
}

/// The settings as of a moment ago.
pub struct SettingsCache {
    store: Arc<dyn Store>,
    cached: Mutex<Option<(Instant, Arc<Settings>)>>,
}

impl SettingsCache {
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store, cached: Mutex::new(None) }
    }

    /// At most some seconds old.
    pub async fn get(&self) -> Result<Arc<Settings>, ApiError> {
        self.load(REMEMBER).await
    }

    /// As they are now.
    pub async fn fresh(&self) -> Result<Arc<Settings>, ApiError> {
        self.load(Duration::ZERO).await
    }

    async fn load(&self, age: Duration) -> Result<Arc<Settings>, ApiError> {
        let mut cached = self.cached.lock().await;
        if let Some((at, settings)) = cached.as_ref()
            && at.elapsed() < age
        {
            return Ok(settings.clone());
        }
        let config = self.store.config_map(CONFIG_MAP).await.map_err(|e| ApiError::from(e).context("cannot read argocd-cm"))?;
        let secret = self.store.secret(SECRET).await.map_err(|e| ApiError::from(e).context("cannot read argocd-secret"))?;
        let duration = config.get("users.session.duration").and_then(|text| session_seconds(text));
        let settings = Arc::new(Settings {
            admin_enabled: config.get("admin.enabled").is_none_or(|v| v != "false"),
            admin_password_hash: secret.text("admin.password"),
            admin_password_mtime: secret.text("admin.passwordMtime").parse().ok(),
            signing_key: secret.data.get("server.secretkey").cloned().unwrap_or_default(),
            session_seconds: duration.unwrap_or(DAY_SECONDS),
            webhook_secrets: webhook_secrets(&secret),
            config,
        });
        *cached = Some((Instant::now(), settings.clone()));
        Ok(settings)
    }
}

/// A value that is `$key` is another one of the same Secret.
fn webhook_secrets(secret: &SecretRecord) -> BTreeMap<String, Vec<u8>> {
    let value = |value: &Vec<u8>| {
        let other = value.strip_prefix(b"$").and_then(|key| secret.data.get(std::str::from_utf8(key).ok()?));
        other.map_or_else(|| value.clone(), |other| other.trim_ascii().to_vec())
    };
    let webhooks = secret.data.iter().filter(|(key, _)| key.starts_with("webhook."));
    webhooks.map(|(key, v)| (key.clone(), value(v))).filter(|(_, v)| !v.is_empty()).collect()
}

/// A duration such as `24h` or `1h30m`; None when it is none.
fn session_seconds(text: &str) -> Option<i64> {
    let span: jiff::SignedDuration = text.parse().ok()?;
    (span.as_secs() > 0).then(|| span.as_secs())
}

#[cfg(test)]
mod tests {
    #[test]
    fn session_durations() {
        for (text, seconds) in [("24h", Some(86_400)), ("1h30m", Some(5_400)), ("90s", Some(90)), ("", None), ("soon", None), ("0s", None)]
        {
            assert_eq!(super::session_seconds(text), seconds, "{text:?}");
        }
    }
}
