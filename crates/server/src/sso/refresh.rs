//! Sessions of browsers that go on: the refresh tokens that came with their ID tokens. Each server
//! has those of the sign-ins that it finished, in memory alone.
//!
//! Main functions: [`Sso::can_refresh`], [`Sso::refreshed`] and [`Sso::forget`].

use super::{
    REMEMBERED, Sso,
    config::SsoConfig,
    identity::{identity, token_id},
    provider::{ProviderError, whole_seconds},
};
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
pub(crate) const PAUSE: Duration = Duration::from_secs(10);

/// What is known of ID tokens, by [`identity`].
#[derive(Default)]
pub(super) struct Refreshes(Mutex<HashMap<String, Entry>>);

#[derive(Clone)]
struct Entry {
    /// When the ID token expires, in seconds.
    ends: f64,
    sign_in: Arc<SignIn>,
    refresh: Arc<tokio::sync::Mutex<Refresh>>,
}

/// What all ID tokens that came of one sign-in share.
#[derive(Default)]
pub(super) struct SignIn {
    /// Whether the user has signed out.
    is_over: AtomicBool,
    /// Their ids and when they expire, in seconds, as long as they may be valid.
    tokens: Mutex<Vec<(String, i64)>>,
}

impl SignIn {
    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::SeqCst)
    }

    fn add(&self, claims: &Map<String, Value>, now: Timestamp) {
        let ends = claims.get("exp").and_then(whole_seconds);
        let mut tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        tokens.retain(|(_, ends)| *ends > now.as_second());
        let (id, ends) = (token_id(claims), ends.unwrap_or(i64::MAX));
        match tokens.iter_mut().find(|(known, _)| *known == id) {
            Some((_, known)) => *known = ends.max(*known),
            None => tokens.push((id, ends)),
        }
    }

    fn has(&self, is_it: impl Fn(&str) -> bool) -> bool {
        let tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        tokens.iter().any(|(id, _)| is_it(id))
    }

    /// Whether one of them may still be valid.
    fn lasts(&self, now: Timestamp) -> bool {
        let tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        tokens.iter().any(|(_, ends)| *ends > now.as_second())
    }

    fn tokens(&self) -> Vec<(String, i64)> {
        let tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        tokens.clone()
    }
}

struct Refresh {
    token: String,
    /// The ID token that has taken the place of this one: requests with this one may still come.
    next: Option<String>,
    failed: Option<Instant>,
}

impl Refreshes {
    /// `false`: the session is over, and nothing is remembered.
    fn insert(
        &self,
        claims: &Map<String, Value>,
        token: String,
        sign_in: &Arc<SignIn>,
        now: Timestamp,
    ) -> bool {
        let ends = claims.get("exp").and_then(Value::as_f64);
        let entry = Entry {
            ends: ends.unwrap_or_default(),
            sign_in: sign_in.clone(),
            refresh: Arc::new(tokio::sync::Mutex::new(Refresh {
                token,
                next: None,
                failed: None,
            })),
        };
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Under the lock: `forget` removes what was put in before the session ended.
        if sign_in.is_over() {
            return false;
        }
        sign_in.add(claims, now);
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

    fn is_empty(&self) -> bool {
        let entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        entries.is_empty()
    }

    /// Forgets a sign-in: the tokens that came of it.
    fn forget(&self, claims: &Map<String, Value>) -> Vec<(String, i64)> {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(entry) = entries.get(&identity(claims)).cloned() else {
            return Vec::new();
        };
        entry.sign_in.is_over.store(true, Ordering::SeqCst);
        entries.retain(|_, entry| !entry.sign_in.is_over());
        entry.sign_in.tokens()
    }

    /// Forgets each sign-in one of whose tokens was revoked: the tokens that came of them. Those
    /// all of whose tokens have expired are forgotten, too.
    fn sweep(&self, is_revoked: impl Fn(&str) -> bool, now: Timestamp) -> Vec<(String, i64)> {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut ended = Vec::new();
        for sign_in in entries.values().map(|entry| &entry.sign_in) {
            // Several entries share one.
            if sign_in.has(&is_revoked) && !sign_in.is_over.swap(true, Ordering::SeqCst) {
                ended.extend(sign_in.tokens());
            }
        }
        // Who signs out may show one that has expired, and ends those that took its place.
        entries.retain(|_, Entry { sign_in, .. }| !sign_in.is_over() && sign_in.lasts(now));
        ended
    }
}

impl Sso {
    /// Remembers the refresh token that came with an ID token.
    pub(crate) fn can_refresh(&self, claims: &Map<String, Value>, token: String, now: Timestamp) {
        self.refreshes.insert(claims, token, &Arc::default(), now);
    }

    /// The session of an ID token has ended: neither this token nor those that took its place are
    /// refreshed any more, not even by a request that is under way. Returns the ids of all of them
    /// that may still be valid, and when they expire, in seconds.
    pub(crate) fn forget(&self, claims: &Map<String, Value>) -> Vec<(String, i64)> {
        self.refreshes.forget(claims)
    }

    /// The ids of the tokens that came of the same sign-in as this one, as far as this server
    /// refreshed it: if one of them was revoked, perhaps by another server, none is valid.
    pub(crate) fn of_same_sign_in(&self, claims: &Map<String, Value>) -> Vec<String> {
        if self.refreshes.is_empty() {
            return Vec::new();
        }
        let entry = self.refreshes.get(claims);
        let tokens = entry
            .map(|entry| entry.sign_in.tokens())
            .unwrap_or_default();
        tokens.into_iter().map(|(id, _)| id).collect()
    }

    /// Whether this server has given tokens in place of others, or may.
    pub(crate) fn has_sign_ins(&self) -> bool {
        !self.refreshes.is_empty()
    }

    /// Forgets the sign-ins that ended at another server, which knew only one of their tokens: the
    /// ids of them all, and when they expire, in seconds.
    pub(crate) fn ended_elsewhere(
        &self,
        is_revoked: impl Fn(&str) -> bool,
        now: Timestamp,
    ) -> Vec<(String, i64)> {
        self.refreshes.sweep(is_revoked, now)
    }

    /// An ID token to use in place of one, if there is a refresh token for it and the provider
    /// takes that.
    pub(crate) async fn refreshed(
        self: &Arc<Self>,
        config: &Arc<SsoConfig>,
        claims: &Map<String, Value>,
        now: Timestamp,
    ) -> Option<String> {
        let entry = self.refreshes.get(claims)?;
        // Else another request is at it, and the token that this one has still counts.
        let mut refresh = entry.refresh.try_lock_owned().ok()?;
        let sign_in = entry.sign_in;
        let known = refresh.next.clone();
        if known.is_some() {
            return known.filter(|_| !sign_in.is_over());
        }
        if refresh.failed.is_some_and(|at| at.elapsed() < PAUSE) {
            return None;
        }
        let (sso, config, claims) = (self.clone(), config.clone(), claims.clone());
        // A task of its own: the provider may take each refresh token only once, so a client that
        // goes away must not keep the new one from being remembered.
        let asked = tokio::spawn(async move {
            let token = refresh.token.clone();
            let answer = sso.refresh(&config, &token, (&claims, &sign_in), now).await;
            match answer {
                Ok(token) => {
                    refresh.next.clone_from(&token);
                    token.filter(|_| !sign_in.is_over())
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
        (claims, sign_in): (&Map<String, Value>, &Arc<SignIn>),
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
        let is_kept = self.refreshes.insert(&new, kept, sign_in, now);
        Ok(is_kept.then_some(tokens.id_token))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_that_ended_gets_no_other_token() {
        let at = |second| Timestamp::from_second(second).expect("a time");
        let claims = |id: &str, ends: i64| {
            let claims = [("jti", Value::from(id)), ("exp", Value::from(ends))];
            Map::from_iter(claims.map(|(name, value)| (name.to_owned(), value)))
        };
        let (refreshes, sign_in, now) = (Refreshes::default(), Arc::default(), at(1000));
        for (id, ends, now) in [("0", 900, at(800)), ("1", 1100, now), ("2", 1200, now)] {
            assert!(refreshes.insert(&claims(id, ends), "r".to_owned(), &sign_in, now));
        }
        let other = claims("other", 1100);
        assert!(refreshes.insert(&other, "r".to_owned(), &Arc::default(), now));
        // Its provider gives two tokens the same id.
        assert!(refreshes.insert(&claims("2", 1150), "r".to_owned(), &sign_in, now));
        let ended = refreshes.forget(&claims("1", 1100));
        assert_eq!(ended, [("1".to_owned(), 1100), ("2".to_owned(), 1200)]);
        assert!(refreshes.get(&claims("2", 1200)).is_none());
        assert!(refreshes.forget(&claims("1", 1100)).is_empty());
        // The provider answers a request that was under way.
        let third = claims("3", 1300);
        assert!(!refreshes.insert(&third, "r".to_owned(), &sign_in, now));
        assert!(refreshes.get(&third).is_none());
        assert!(refreshes.get(&other).is_some());
        // Another server ends one of which there are two tokens.
        let sign_in = Arc::default();
        for id in ["4", "5"] {
            assert!(refreshes.insert(&claims(id, 1300), "r".to_owned(), &sign_in, now));
        }
        let mut swept = refreshes.sweep(|id| id == "5", now);
        swept.sort();
        assert_eq!(swept, [("4".to_owned(), 1300), ("5".to_owned(), 1300)]);
        assert!(refreshes.get(&claims("4", 1300)).is_none());
        assert!(refreshes.sweep(|id| id == "5", now).is_empty());
        assert!(refreshes.get(&other).is_some());
        // One that has expired is known as long as one that took its place may be valid.
        let sign_in = Arc::default();
        for (id, ends) in [("6", 1100), ("7", 1300)] {
            assert!(refreshes.insert(&claims(id, ends), "r".to_owned(), &sign_in, now));
        }
        for (second, is_known) in [
            (1099, [true, true]),
            (1100, [false, true]),
            (1300, [false, false]),
        ] {
            assert!(refreshes.sweep(|_| false, at(second)).is_empty());
            let known = [&other, &claims("6", 1100)].map(|of| refreshes.get(of).is_some());
            assert_eq!(known, is_known, "{second}");
        }
        assert!(refreshes.is_empty());
    }
}
