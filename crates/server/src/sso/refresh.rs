//! Sessions of browsers that go on: the refresh tokens that came with their ID tokens. Each server
//! has those of the sign-ins that it finished, in memory alone.
//!
//! Main functions: [`Sso::can_refresh`], [`Sso::refreshed`] and [`Sso::forget`].

use super::{REMEMBERED, Sso, config::SsoConfig, provider::ProviderError};
use jiff::Timestamp;
use serde_json::{Map, Value};
use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

/// How soon it is tried again for a token.
pub(super) const PAUSE: Duration = Duration::from_secs(10);
/// What tells ID tokens apart, as far as they have it.
const IDENTITY: [&str; 8] = ["iss", "sub", "iat", "exp", "jti", "sid", "nonce", "at_hash"];

/// What is known of ID tokens, by [`identity`].
#[derive(Default)]
pub(super) struct Refreshes(Mutex<HashMap<String, Entry>>);

#[derive(Clone)]
struct Entry {
    /// When the ID token expires, in seconds.
    ends: f64,
    /// Whether the user has signed out. All ID tokens that came of one sign-in share it.
    is_over: Arc<AtomicBool>,
    refresh: Arc<tokio::sync::Mutex<Refresh>>,
}

struct Refresh {
    token: String,
    /// The ID token that has taken the place of this one: requests with this one may still come.
    next: Option<String>,
    failed: Option<Instant>,
}

fn identity(claims: &Map<String, Value>) -> String {
    let parts = IDENTITY.map(|name| claims.get(name).cloned().unwrap_or_default());
    Value::from(parts.to_vec()).to_string()
}

impl Refreshes {
    /// `false`: the session is over, and nothing is remembered.
    fn insert(
        &self,
        claims: &Map<String, Value>,
        token: String,
        is_over: &Arc<AtomicBool>,
        now: Timestamp,
    ) -> bool {
        let ends = claims.get("exp").and_then(Value::as_f64);
        let entry = Entry {
            ends: ends.unwrap_or_default(),
            is_over: is_over.clone(),
            refresh: Arc::new(tokio::sync::Mutex::new(Refresh {
                token,
                next: None,
                failed: None,
            })),
        };
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Under the lock: `forget` removes what was put in before the session ended.
        if is_over.load(Ordering::SeqCst) {
            return false;
        }
        if entries.len() >= REMEMBERED {
            let now = now.as_duration().as_secs_f64();
            entries.retain(|_, entry| entry.ends > now);
        }
        if entries.len() < REMEMBERED {
            entries.insert(identity(claims), entry);
        }
        true
    }

    fn get(&self, claims: &Map<String, Value>) -> Option<Entry> {
        let entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        entries.get(&identity(claims)).cloned()
    }

    fn forget(&self, claims: &Map<String, Value>) {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(entry) = entries.get(&identity(claims)) else {
            return;
        };
        entry.is_over.store(true, Ordering::SeqCst);
        entries.retain(|_, entry| !entry.is_over.load(Ordering::SeqCst));
    }
}

impl Sso {
    /// Remembers the refresh token that came with an ID token.
    pub(super) fn can_refresh(&self, claims: &Map<String, Value>, token: String, now: Timestamp) {
        self.refreshes.insert(claims, token, &Arc::default(), now);
    }

    /// The session of an ID token has ended: neither this token nor those that took its place are
    /// refreshed any more, not even by a request that is under way.
    pub(crate) fn forget(&self, claims: &Map<String, Value>) {
        self.refreshes.forget(claims);
    }

    /// An ID token to use in place of one, if there is a refresh token for it and the provider
    /// takes that.
    pub(super) async fn refreshed(
        self: &Arc<Self>,
        config: &Arc<SsoConfig>,
        claims: &Map<String, Value>,
        now: Timestamp,
    ) -> Option<String> {
        let entry = self.refreshes.get(claims)?;
        // Else another request is at it, and the token that this one has still counts.
        let mut refresh = entry.refresh.try_lock_owned().ok()?;
        let is_over = entry.is_over;
        let known = refresh.next.clone();
        if known.is_some() {
            return known.filter(|_| !is_over.load(Ordering::SeqCst));
        }
        if refresh.failed.is_some_and(|at| at.elapsed() < PAUSE) {
            return None;
        }
        let (sso, config, claims) = (self.clone(), config.clone(), claims.clone());
        // A task of its own: the provider may take each refresh token only once, so a client that
        // goes away must not keep the new one from being remembered.
        let asked = tokio::spawn(async move {
            let token = refresh.token.clone();
            let answer = sso.refresh(&config, &token, (&claims, &is_over), now).await;
            match answer {
                Ok(token) => {
                    refresh.next.clone_from(&token);
                    token.filter(|_| !is_over.load(Ordering::SeqCst))
                }
                Err(error) => {
                    refresh.failed = Some(Instant::now());
                    let sub = claims.get("sub").and_then(Value::as_str);
                    tracing::warn!(sub, %error, "A session cannot be refreshed");
                    None
                }
            }
        });
        asked.await.ok().flatten()
    }

    /// `None`: the session ended meanwhile.
    async fn refresh(
        &self,
        config: &Arc<SsoConfig>,
        token: &str,
        (claims, is_over): (&Map<String, Value>, &Arc<AtomicBool>),
        now: Timestamp,
    ) -> Result<Option<String>, ProviderError> {
        let provider = self.provider(config)?;
        let tokens = provider.refresh(token).await?;
        if tokens.id_token.is_empty() {
            let why = "no id_token in token response";
            return Err(ProviderError::Token(why.to_owned()));
        }
        let new = provider.verify(&tokens.id_token, now).await?;
        let subject = new.get("sub").and_then(Value::as_str).unwrap_or_default();
        if claims.get("sub").and_then(Value::as_str) != Some(subject) {
            let why = "the token for a refresh token is of somebody else";
            return Err(ProviderError::Token(why.to_owned()));
        }
        let is_needed = config.user_info.is_some() || config.graph.is_some();
        if is_needed && !tokens.access_token.is_empty() {
            self.signed_in(subject, tokens.access_token, tokens.expires_in);
        }
        // A provider that gives no new one means the old one to be used again.
        let kept = match tokens.refresh_token.is_empty() {
            true => token.to_owned(),
            false => tokens.refresh_token,
        };
        let is_kept = self.refreshes.insert(&new, kept, is_over, now);
        Ok(is_kept.then_some(tokens.id_token))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_that_ended_gets_no_other_token() {
        let claims = |id: &str| Map::from_iter([("jti".to_owned(), Value::from(id))]);
        let (refreshes, is_over, now) = (Refreshes::default(), Arc::default(), Timestamp::now());
        for id in ["1", "2"] {
            assert!(refreshes.insert(&claims(id), "r".to_owned(), &is_over, now));
        }
        assert!(refreshes.insert(&claims("other"), "r".to_owned(), &Arc::default(), now));
        refreshes.forget(&claims("1"));
        assert!(refreshes.get(&claims("2")).is_none());
        // The provider answers a request that was under way.
        assert!(!refreshes.insert(&claims("3"), "r".to_owned(), &is_over, now));
        assert!(refreshes.get(&claims("3")).is_none());
        assert!(refreshes.get(&claims("other")).is_some());
    }
}
