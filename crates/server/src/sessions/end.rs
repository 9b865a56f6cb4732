//! Ends sessions: at once in this replica, and in the others once it is recorded. Main type:
//! [`EndedTokens`].

use super::{Auth, RECHECK};
use crate::{
    ApiError,
    auth::Claims,
    ports::SharedSessions,
    settings::{Settings, SettingsCache},
};
use jiff::Timestamp;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::sync::Notify;

/// What the log says where the others cannot be told.
const UNTOLD: &str = "The end of a session was not recorded yet; it will be tried again";
/// How long after each failure to record the end of a session it is tried again.
const RETRY_AFTER: [Duration; 2] = [Duration::from_millis(250), Duration::from_secs(1)];

/// Tokens that have ended in this replica and of which the others still have to be told: when each
/// one expires, in seconds, by its id.
#[derive(Default)]
pub(super) struct Untold {
    tokens: Mutex<BTreeMap<String, i64>>,
    /// Notified where they should be told at once.
    is_new: Notify,
}

impl Untold {
    fn keep(&self, more: BTreeMap<String, i64>) {
        let mut tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        for (id, end) in more {
            let known = tokens.entry(id).or_insert(end);
            *known = end.max(*known);
        }
    }

    fn take(&self) -> BTreeMap<String, i64> {
        let mut tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *tokens)
    }

    fn is_empty(&self) -> bool {
        let tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        tokens.is_empty()
    }
}

impl Auth {
    /// Ends a session with all its tokens: immediately in this replica; in other replicas and after
    /// a restart, once it is recorded.
    pub async fn revoke(&self, claims: &Claims, now: Timestamp) -> Result<(), ApiError> {
        self.end(claims, now).record().await
    }

    /// The same in this replica alone: the rest is left to [`EndedTokens::record`].
    pub fn end(&self, claims: &Claims, now: Timestamp) -> EndedTokens {
        // More than one where the provider gave another token before this one expired.
        let theirs = claims.provider.as_ref();
        let others = theirs.map(|theirs| self.sso.forget(theirs));
        // Such a token is shared by whoever uses the role or the account, and taken away there.
        let is_shared =
            claims.project_role().is_some() || claims.exp == 0 && claims.capability() == "apiKey";
        let end = if claims.exp == 0 {
            i64::MAX
        } else {
            claims.exp
        };
        let own = (!is_shared).then(|| (claims.jti.clone(), end));
        self.end_tokens(others.into_iter().flatten().chain(own), now)
    }

    /// By their ids, with the seconds in which they expire.
    fn end_tokens(
        &self,
        tokens: impl Iterator<Item = (String, i64)>,
        now: Timestamp,
    ) -> EndedTokens {
        let mut left = BTreeMap::new();
        // Without an id it cannot be found again.
        for (id, end) in tokens.filter(|(id, _)| !id.is_empty()) {
            let known = left.entry(id).or_insert(end);
            *known = end.max(*known);
        }
        for (id, end) in &left {
            self.revoked.insert(id, *end, now);
        }
        self.ended.notify_waiters();
        EndedTokens {
            settings: self.settings.clone(),
            shared: self.shared.clone(),
            untold: self.untold.clone(),
            left,
            now,
        }
    }

    /// Returns when [`Self::tell_ends`] should run, perhaps again.
    pub async fn until_ends(&self) {
        loop {
            tokio::select! {
                () = tokio::time::sleep(RECHECK) => {}
                () = self.untold.is_new.notified() => {}
            }
            if self.has_ends() {
                return;
            }
        }
    }

    /// Whether [`Self::tell_ends`] may have something to do.
    pub fn has_ends(&self) -> bool {
        self.sso.has_sign_ins() || !self.untold.is_empty()
    }

    /// Ends the other tokens of sessions that ended at other servers, also where nobody uses them
    /// here, and records what could not be recorded before. Stopped half-way, it would lose some:
    /// each sign-in is found only once.
    pub async fn tell_ends(&self) {
        let settings = match self.sso.has_sign_ins() {
            // A failure to read the settings does not end sessions.
            true => self.settings.get().await.ok(),
            false => None,
        };
        let now = Timestamp::now();
        // From here on nothing waits before the tokens are in `EndedTokens`, which keeps them.
        let elsewhere = settings.map(|settings| {
            let is_revoked = |id: &str| self.is_revoked(id, &settings);
            self.sso.ended_elsewhere(is_revoked, now)
        });
        let untold = self.untold.take().into_iter();
        let mut tokens: Vec<_> = untold.chain(elsewhere.into_iter().flatten()).collect();
        tokens.retain(|(_, end)| *end > now.as_second());
        if tokens.is_empty() {
            return;
        }
        // Once: what fails is tried again in the next round.
        let mut ended = self.end_tokens(tokens.into_iter(), now);
        if let Err(error) = ended.attempt().await {
            tracing::warn!(%error, "{UNTOLD}");
        }
    }

    /// Another server at which the user signed out knew only one token of the session; this one
    /// knows them all, and tells. That is left to [`Self::tell_ends`]: nobody waits for it, and it
    /// is done only once, so no client stops it by going away.
    pub(super) fn end_with_sibling(&self, claims: &Claims, settings: &Settings, now: Timestamp) {
        if self.has_revoked_sibling(claims, settings) {
            drop(self.end(claims, now));
            self.untold.is_new.notify_one();
        }
    }
}

/// Tokens that have ended in this replica, and of which the others do not know yet. What is not
/// recorded before it is dropped is left to [`Auth::tell_ends`].
#[must_use = "they are valid in other replicas, and here after a restart"]
pub struct EndedTokens {
    settings: Arc<SettingsCache>,
    shared: Option<Arc<dyn SharedSessions>>,
    untold: Arc<Untold>,
    /// When each one expires, in seconds, by its id.
    left: BTreeMap<String, i64>,
    now: Timestamp,
}

impl Drop for EndedTokens {
    fn drop(&mut self) {
        self.untold.keep(std::mem::take(&mut self.left));
    }
}

impl EndedTokens {
    /// Tells the others.
    ///
    /// # Errors
    /// Several attempts have failed.
    pub async fn record(mut self) -> Result<(), ApiError> {
        for pause in RETRY_AFTER {
            if self.attempt().await.is_ok() && self.left.is_empty() {
                return Ok(());
            }
            tokio::time::sleep(pause).await;
        }
        let recorded = self.attempt().await;
        recorded.map_err(|e| e.context("the session has ended, but this could not be recorded, and it may be valid again after a restart"))
    }

    /// Those of which not everybody could be told are left.
    async fn attempt(&mut self) -> Result<(), ApiError> {
        let mut recorded = Ok(());
        let mut unrecorded = BTreeSet::new();
        // All of them first: this record lasts, and a Redis that does not answer must not use up
        // the time for it when the server ends.
        for (id, end) in self.left.clone() {
            let one = self.settings.record_revoked(&id, end, self.now).await;
            if one.is_err() {
                unrecorded.insert(id);
            }
            // Those after one that cannot be recorded are tried all the same.
            recorded = recorded.and(one);
        }
        for (id, end) in self.left.clone() {
            if let Some(shared) = &self.shared {
                let seconds = end.saturating_sub(self.now.as_second()).max(1);
                if let Err(error) = shared.revoke(&id, seconds).await {
                    tracing::warn!(%error, "Other servers of Argo CD cannot be told that a session has ended");
                    // The next ones would only wait as long for the same failure.
                    break;
                }
            }
            if !unrecorded.contains(&id) {
                self.left.remove(&id);
            }
        }
        recorded
    }
}
