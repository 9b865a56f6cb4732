//! Sessions: logins, and what tokens are worth by the settings. Main type: [`Auth`]. It knows nothing
//! about routes.

use crate::{
    ApiError, Code,
    auth::{
        Attempt, Caller, Claims, Limits, PASSWORD_PATTERN, PasswordChecks, Revoked, hash_password,
        secret_key, token,
    },
    ports::{SharedSessions, Store},
    settings::{Settings, SettingsCache},
    sso::{ProviderError, Sso},
};
use futures::{StreamExt as _, stream::BoxStream};
use jiff::Timestamp;
use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tiphys_api::project::JWTToken;
use tiphys_gocompat::regex::Regex;
use tokio::sync::Notify;

const MAX_USERNAME: usize = 32;
/// How long streams of a session can stay open after another replica ended it.
const RECHECK: Duration = Duration::from_secs(5);
/// How old a provider's token may be to set a password without another one.
const SSO_PASSWORD_SECONDS: i64 = 300;
/// A browser session is renewed when less than this is left.
const RENEW_BELOW_SECONDS: i64 = 300;
/// What the log says where the others cannot be told.
const UNTOLD: &str = "The end of a session was not recorded yet; it will be tried again";
/// How long after each failure to record the end of a session it is tried again.
const RETRY_AFTER: [Duration; 2] = [Duration::from_millis(250), Duration::from_secs(1)];

/// Issues and checks sessions.
pub struct Auth {
    settings: Arc<SettingsCache>,
    store: Arc<dyn Store>,
    checks: PasswordChecks,
    revoked: Revoked,
    /// `None`: only the record in the namespace tells other servers what has ended.
    shared: Option<Arc<dyn SharedSessions>>,
    sso: Arc<Sso>,
    /// Notified when a session may have ended.
    ended: Notify,
    untold: Arc<Untold>,
}

/// Tokens that have ended in this replica and of which the others still have to be told: when each
/// one expires, in seconds, by its id.
#[derive(Default)]
struct Untold {
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
    /// `store`: for the tokens of projects.
    pub fn new(
        settings: Arc<SettingsCache>,
        store: Arc<dyn Store>,
        shared: Option<Arc<dyn SharedSessions>>,
        limits: Limits,
        sso: Arc<Sso>,
    ) -> Self {
        Self {
            settings,
            store,
            checks: PasswordChecks::new(limits),
            revoked: Revoked::default(),
            shared,
            sso,
            ended: Notify::new(),
            untold: Arc::default(),
        }
    }

    /// Checks the password and returns a session token.
    pub async fn login(
        &self,
        username: &str,
        password: &str,
        source: IpAddr,
        now: Timestamp,
    ) -> Result<String, ApiError> {
        if username.is_empty() || password.is_empty() {
            return Err(ApiError::unauthenticated("no credentials supplied"));
        }
        if username.len() > MAX_USERNAME {
            return Err(ApiError::invalid(format!(
                "Username is too long ({MAX_USERNAME} bytes max)"
            )));
        }
        let settings = self.settings.fresh().await?;
        let account = settings.accounts.get(username);
        let attempt = Attempt {
            account: username.to_owned(),
            exists: account.is_some(),
            source,
            now,
        };
        // Unknown accounts take as long as known ones.
        let hash = account.map(|account| account.password_hash.clone());
        let hash = hash.unwrap_or_default();
        if !self.checks.is_right(&attempt, password, hash).await {
            return Err(ApiError::unauthenticated("Invalid username or password"));
        }
        let Some(account) = account.filter(|account| account.enabled) else {
            return Err(ApiError::unauthenticated(format!(
                "Account {username} is disabled"
            )));
        };
        if !account.can("login") {
            return Err(ApiError::unauthenticated(format!(
                "account {username} does not have 'login' capability"
            )));
        }
        self.checks.succeeded(&attempt);
        self.issue(&settings, username, settings.session_seconds, now)
    }

    /// Returns the values to store in argocd-secret to set the password of `account`; its sessions
    /// created before then end. `current` must be the caller's own password.
    pub async fn change_password(
        &self,
        caller: &Caller,
        account: &str,
        current: &str,
        new: &str,
        now: Timestamp,
    ) -> Result<BTreeMap<String, Vec<u8>>, ApiError> {
        let settings = self.settings.fresh().await?;
        match caller.claims.as_ref().filter(|claims| !claims.is_local()) {
            Some(claims) if now.as_second() - claims.iat > SSO_PASSWORD_SECONDS => {
                return Err(ApiError::plain(
                    "SSO token is too old. Please use 'argocd relogin' to get a new token",
                ));
            }
            Some(_) => {}
            None => self.check_password(caller, &settings, current, now).await?,
        }
        let pattern = match settings.value("passwordPattern") {
            "" => PASSWORD_PATTERN,
            own => own,
        };
        let allowed = Regex::new(pattern)
            .map_err(|e| ApiError::plain(format!("failed to compile password regex: {e}")))?
            .is_match(new);
        if !allowed {
            return Err(ApiError::plain(format!(
                "new password does not match the following expression: {pattern}"
            )));
        }
        let text = new.to_owned();
        let hashed = tokio::task::spawn_blocking(move || hash_password(&text)).await;
        let hash = hashed.map_err(|_| ApiError::internal("the password could not be hashed"))??;
        // Token times have a resolution of one second: tokens issued in the second of the change
        // count as older than it.
        let changed = Timestamp::from_second(now.as_second() + 1).unwrap_or(now);
        let changed = changed.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let values = [("password", hash), ("passwordMtime", changed)];
        Ok(values
            .into_iter()
            .map(|(key, value)| (secret_key(account, key), value.into_bytes()))
            .collect())
    }

    /// Whether this is the caller's own password.
    async fn check_password(
        &self,
        caller: &Caller,
        settings: &Settings,
        current: &str,
        now: Timestamp,
    ) -> Result<(), ApiError> {
        let attempt = Attempt {
            account: caller.username().to_owned(),
            exists: true,
            source: caller.source,
            now,
        };
        let own = settings.accounts.get(&attempt.account);
        let hash = own.map(|own| own.password_hash.clone()).unwrap_or_default();
        if !self.checks.is_right(&attempt, current, hash).await {
            return Err(ApiError::invalid("current password does not match"));
        }
        Ok(())
    }

    fn issue(
        &self,
        settings: &Settings,
        account: &str,
        seconds: i64,
        now: Timestamp,
    ) -> Result<String, ApiError> {
        let mut claims = Claims::session(account, seconds, now);
        // A login with the new password in the second of the change must count as newer.
        let changed = settings
            .accounts
            .get(account)
            .and_then(|account| account.password_mtime);
        claims.iat = changed.map_or(claims.iat, |changed| {
            claims.iat.max(changed.as_second().min(claims.iat + 1))
        });
        claims.exp += claims.iat - claims.nbf;
        token::sign(&claims, &settings.signing_key)
    }

    /// Returns the claims of the token if it is valid now.
    pub async fn verify(&self, text: &str, now: Timestamp) -> Result<Claims, ApiError> {
        let verified = self.verified(text, now, true).await;
        verified.map_err(|unverified| unverified.error)
    }

    /// The same for a session that is to end: also where the caller's groups cannot be known.
    pub async fn verified_to_end(&self, text: &str, now: Timestamp) -> Result<Claims, Unverified> {
        self.verified(text, now, false).await
    }

    async fn verified(
        &self,
        text: &str,
        now: Timestamp,
        with_groups: bool,
    ) -> Result<Claims, Unverified> {
        let mut settings = self.settings.get().await?;
        if !token::is_local(text) {
            let config = settings.sso.as_ref().ok().and_then(Option::as_ref);
            let issuer = token::issuer(text).unwrap_or_default();
            if !config.is_some_and(|config| config.is_issuer(&issuer)) {
                settings = self.settings.recent().await?;
            }
            let verified = self.verify_with_provider(text, &settings, now, with_groups);
            return verified.await;
        }
        let parsed = token::parse(text, &settings.signing_key, now);
        let claims = parsed.map_err(|why| invalid(&why))?;
        // Only now: strangers cannot make the settings be read.
        let settings = self.settings.fresh().await?;
        self.check(&claims, &settings, now)?;
        Ok(claims)
    }

    async fn verify_with_provider(
        &self,
        text: &str,
        settings: &Settings,
        now: Timestamp,
        with_groups: bool,
    ) -> Result<Claims, Unverified> {
        let config = match &settings.sso {
            Ok(Some(config)) => config,
            Ok(None) => return Err(invalid("SSO is not configured").into()),
            Err(fault) => return Err(Unverified::elsewhere(&fault.to_string())),
        };
        let verified = self.sso.verify(config, text, now).await;
        let mut claims = verified.map_err(|e| {
            tracing::warn!(error = %e, "Failed to verify session token");
            let why = "failed to verify the token";
            match e {
                ProviderError::Oidc(_) => Unverified::elsewhere(why),
                ProviderError::Token(_) | ProviderError::Expired => invalid(why).into(),
            }
        })?;
        if with_groups {
            let added = self.sso.add_groups(config, &mut claims).await;
            added.map_err(|e| Unverified::elsewhere(&e.to_string()))?;
        }
        let claims = Claims::of_provider(claims);
        let settings = self.settings.fresh().await?;
        let checked = self.check(&claims, &settings, now);
        self.end_with_sibling(&claims, &settings, now);
        checked?;
        Ok(claims)
    }

    /// Whether a caller whose session is refused for this reason is served as anonymous
    /// (`users.anonymous.enabled`): then the default role of the policy decides. Logged only if
    /// `had_token`: callers without one know that they are anonymous.
    pub async fn admits_anonymous(&self, refused: &ApiError, had_token: bool) -> bool {
        if refused.code != Code::Unauthenticated {
            return false;
        }
        // Settings that cannot be read allow nothing.
        let settings = self.settings.fresh().await;
        let admits = settings.is_ok_and(|s| s.value("users.anonymous.enabled") == "true");
        if admits && had_token {
            tracing::info!(reason = refused.message, "A caller is served as anonymous");
        }
        admits
    }

    /// Checks that the claims are still valid.
    fn check(&self, claims: &Claims, settings: &Settings, now: Timestamp) -> Result<(), ApiError> {
        if claims.is_over(now) {
            return Err(invalid(token::EXPIRED));
        }
        if let Some((project, role)) = claims.project_role() {
            // These end with their entry in the project.
            return self.check_project(claims, project, role);
        }
        let own = Some(&claims.jti).filter(|id| !id.is_empty());
        if own.is_some_and(|id| self.is_revoked(id, settings))
            || self.has_revoked_sibling(claims, settings)
        {
            return Err(invalid("token is revoked, please re-login"));
        }
        if !claims.is_local() {
            return match &settings.sso {
                Ok(Some(config)) if config.is_issuer(&claims.iss) => Ok(()),
                _ => Err(invalid("SSO is not configured")),
            };
        }
        let (name, capability) = (claims.account(), claims.capability());
        let Some(account) = settings.accounts.get(name) else {
            let missing = format!("account '{name}' does not exist");
            return Err(invalid(&format!(
                "rpc error: code = NotFound desc = {missing}"
            )));
        };
        if !account.enabled {
            return Err(invalid(&format!("account {name} is disabled")));
        }
        if !account.can(capability) {
            return Err(invalid(&format!(
                "account {name} does not have '{capability}' capability"
            )));
        }
        if capability == "apiKey" && !account.tokens.iter().any(|token| token.id == claims.jti) {
            return Err(invalid(&format!(
                "account {name} does not have token with id {}",
                claims.jti
            )));
        }
        if account
            .password_mtime
            .is_some_and(|changed| claims.iat < changed.as_second())
        {
            return Err(invalid("account password has changed since token issued"));
        }
        Ok(())
    }

    fn is_revoked(&self, id: &str, settings: &Settings) -> bool {
        let shared = self.shared.as_ref();
        self.revoked.contains(id)
            || settings.is_revoked(id)
            || shared.is_some_and(|shared| shared.is_revoked(id))
    }

    /// Whether a token that came of the same sign-in was revoked.
    fn has_revoked_sibling(&self, claims: &Claims, settings: &Settings) -> bool {
        let theirs = claims.provider.as_ref();
        let others = theirs.map(|theirs| self.sso.of_same_sign_in(theirs));
        let mut others = others.into_iter().flatten();
        others.any(|id| self.is_revoked(&id, settings))
    }

    /// Another server at which the user signed out knew only one token of the session; this one
    /// knows them all, and tells. That is left to [`Self::tell_ends`]: nobody waits for it, and it
    /// is done only once, so no client stops it by going away.
    fn end_with_sibling(&self, claims: &Claims, settings: &Settings, now: Timestamp) {
        if self.has_revoked_sibling(claims, settings) {
            drop(self.end(claims, now));
            self.untold.is_new.notify_one();
        }
    }

    /// A token of a project is valid while its role has it.
    fn check_project(&self, claims: &Claims, project: &str, role: &str) -> Result<(), ApiError> {
        let gone = || {
            invalid(&format!(
                "JWT token for role '{role}' issued at '{}' does not exist in project '{project}'",
                claims.iat
            ))
        };
        let record = self
            .store
            .project(project)
            .ok_or_else(|| invalid(&format!("appproject.argoproj.io {project:?} not found")))?;
        if !record.spec.roles.iter().any(|r| r.name == role) {
            return Err(gone());
        }
        let is_it = |token: &JWTToken| {
            if token.id.is_empty() {
                token.iat == claims.iat
            } else {
                token.id == claims.jti
            }
        };
        if tiphys_rbac::tokens(&record, role).any(is_it) {
            Ok(())
        } else {
            Err(gone())
        }
    }

    /// Signs the claims of a token that is stored elsewhere.
    pub async fn sign_token(&self, claims: &Claims) -> Result<String, ApiError> {
        token::sign(claims, &self.settings.fresh().await?.signing_key)
    }

    /// Waits until the session ends and returns the reason: logout, expiry or a new password.
    async fn ended(&self, claims: &Claims) -> ApiError {
        loop {
            let ended = self.ended.notified();
            let now = Timestamp::now();
            // A failure to read the settings does not end sessions.
            if let Ok(settings) = self.settings.get().await {
                let checked = self.check(claims, &settings, now);
                self.end_with_sibling(claims, &settings, now);
                if let Err(e) = checked
                    && e.code == Code::Unauthenticated
                {
                    return e;
                }
            }
            let left = match claims.exp {
                0 => RECHECK,
                exp => Duration::from_secs((exp - now.as_second()).max(1).unsigned_abs()),
            };
            tokio::select! {
                () = ended => {}
                () = tokio::time::sleep(left.min(RECHECK)) => {}
            }
        }
    }

    /// Forwards a stream until the session that opened it ends.
    pub fn while_valid<T: Send + 'static>(
        self: &Arc<Self>,
        claims: Option<Claims>,
        messages: BoxStream<'static, Result<T, ApiError>>,
    ) -> BoxStream<'static, Result<T, ApiError>> {
        let Some(claims) = claims else {
            return messages;
        };
        let auth = self.clone();
        let end = Box::pin(async move { auth.ended(&claims).await });
        futures::stream::unfold(Some((messages, end)), |state| async move {
            let (mut messages, mut end) = state?;
            tokio::select! {
                biased;
                why = &mut end => Some((Err(why), None)),
                message = messages.next() => Some((message?, Some((messages, end)))),
            }
        })
        .boxed()
    }

    /// To be called after the password was changed.
    pub async fn password_changed(&self) {
        if let Err(error) = self.settings.fresh().await {
            tracing::warn!(%error, "sessions from before the change of the password may have streams for a moment");
        }
        self.ended.notify_waiters();
    }

    /// Returns a new token if this one is about to expire.
    pub async fn renewed(&self, claims: &Claims, now: Timestamp) -> Option<String> {
        let is_session =
            claims.is_local() && claims.project_role().is_none() && claims.capability() == "login";
        let lasts = claims.exp == 0 || claims.exp - now.as_second() >= RENEW_BELOW_SECONDS;
        if !is_session || lasts {
            return None;
        }
        let settings = self.settings.get().await.ok()?;
        self.issue(&settings, claims.account(), claims.exp - claims.nbf, now)
            .ok()
    }

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

/// Why there are no claims.
#[derive(Debug)]
pub struct Unverified {
    pub error: ApiError,
    /// Whether the token is at fault; else it may be valid all the same.
    pub is_of_token: bool,
}

impl Unverified {
    /// What would tell of the token does not.
    fn elsewhere(why: &str) -> Self {
        Self {
            error: invalid(why),
            is_of_token: false,
        }
    }
}

impl From<ApiError> for Unverified {
    fn from(error: ApiError) -> Self {
        Self {
            is_of_token: error.code == Code::Unauthenticated,
            error,
        }
    }
}

fn invalid(why: &str) -> ApiError {
    ApiError::unauthenticated(format!("invalid session: {why}"))
}
