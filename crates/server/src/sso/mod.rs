//! Signing in with an identity provider: OpenID Connect, directly or through Dex.
//!
//! Main type: [`Sso`]. What the provider says of a caller becomes [`Claims`](crate::auth::Claims);
//! what these permit is not decided here.

mod config;
mod flow;
pub mod oidc;
mod provider;
mod state;

pub use config::{DEX_PATH, SsoConfig, SsoFault, dex_secret, references};
pub use flow::{CALLBACK, LOGIN, callback, dex, login, logout_target};
pub use provider::{ProviderError, whole_seconds};

use crate::server::DexTls;
use jiff::Timestamp;
use provider::Provider;
use serde_json::{Map, Value};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

/// How many callers' access tokens and groups are remembered.
const REMEMBERED: usize = 10_000;

/// What is known of the provider that the settings name.
pub struct Sso {
    /// The address of the Dex server.
    dex: String,
    dex_tls: DexTls,
    current: Mutex<Option<Arc<Provider>>>,
    sessions: Mutex<HashMap<String, Session>>,
}

/// For the user info endpoint; by subject.
struct Session {
    access_token: String,
    ends: Instant,
    groups: Option<(Instant, Value)>,
}

impl Sso {
    pub fn new(dex: String, dex_tls: DexTls) -> Self {
        Self {
            dex,
            dex_tls,
            current: Mutex::default(),
            sessions: Mutex::default(),
        }
    }

    /// The provider of these settings.
    fn provider(&self, config: &Arc<SsoConfig>) -> Result<Arc<Provider>, ProviderError> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(provider) = &*current
            && provider.config == *config
        {
            return Ok(provider.clone());
        }
        let provider = Arc::new(Provider::new(config.clone(), (&self.dex, &self.dex_tls))?);
        *current = Some(provider.clone());
        Ok(provider)
    }

    /// The claims of a token that the provider issued.
    pub async fn verify(
        &self,
        config: &Arc<SsoConfig>,
        token: &str,
        now: Timestamp,
    ) -> Result<Map<String, Value>, ProviderError> {
        self.provider(config)?.verify(token, now).await
    }

    /// Remembers the access token that came with an ID token.
    fn signed_in(&self, subject: &str, access_token: String, seconds: Option<u64>) {
        let lifetime = Duration::from_secs(seconds.unwrap_or(300).min(24 * 3600));
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        if sessions.len() >= REMEMBERED {
            let now = Instant::now();
            sessions.retain(|_, session| session.ends > now);
        }
        if sessions.len() < REMEMBERED {
            let session = Session {
                access_token,
                ends: Instant::now() + lifetime,
                groups: None,
            };
            sessions.insert(subject.to_owned(), session);
        }
    }

    /// Puts the groups of the user info endpoint into the claims, if the settings want that.
    ///
    /// # Errors
    /// Also if this server has no access token of the caller: then groups would be missing without
    /// a word.
    pub async fn add_groups(
        &self,
        config: &Arc<SsoConfig>,
        claims: &mut Map<String, Value>,
    ) -> Result<(), ProviderError> {
        let Some(user_info) = &config.user_info else {
            return Ok(());
        };
        let subject = claims
            .get("sub")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let subject = subject.to_owned();
        let access_token = {
            let sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
            let known = sessions.get(&subject).filter(|s| s.ends > Instant::now());
            let known = known.ok_or_else(|| {
                ProviderError::Token(format!(
                    "error while querying userinfo endpoint: no accessToken for {subject}"
                ))
            })?;
            if let Some((at, groups)) = &known.groups
                && at.elapsed() < user_info.lifetime
            {
                claims.insert("groups".to_owned(), groups.clone());
                return Ok(());
            }
            known.access_token.clone()
        };
        let provider = self.provider(config)?;
        let info = provider.user_info(&user_info.path, &access_token).await?;
        if info.get("sub").and_then(Value::as_str) != Some(&*subject) {
            return Err(ProviderError::Token(
                "the userinfo endpoint answered about another subject".to_owned(),
            ));
        }
        let groups = info.get("groups").cloned().unwrap_or_else(|| {
            let has: Vec<&str> = info.keys().map(String::as_str).collect();
            tracing::warn!(
                subject,
                "The userinfo endpoint names no groups, only {}",
                has.join(", ")
            );
            Value::Null
        });
        claims.insert("groups".to_owned(), groups.clone());
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(session) = sessions.get_mut(&subject) {
            session.groups = Some((Instant::now(), groups));
        }
        Ok(())
    }
}
