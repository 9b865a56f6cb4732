//! Authentication: passwords, session tokens, and rate limits on failed logins. [`Auth`] is the
//! main type. It knows nothing about routes.

mod accounts;
mod limits;
pub mod password;
mod revoked;
mod token;

pub use accounts::{ApiToken, Capability, LocalAccount};
pub(crate) use accounts::{read as read_accounts, secret_key};
pub use limits::{AttemptDecision, FailureLimits, Limits};
pub use password::{hash_password, new_password};
pub(crate) use revoked::Revoked;
pub use token::{Claims, new_signing_key};

use crate::{
    ApiError, Code,
    ports::{SharedSessions, Store},
    settings::{Settings, SettingsCache},
    sso::Sso,
};
use futures::{StreamExt as _, stream::BoxStream};
use jiff::Timestamp;
use std::{collections::BTreeMap, net::IpAddr, sync::Arc, time::Duration};
use tiphys_api::project::JWTToken;
use tokio::sync::{Notify, Semaphore};

/// The account that every installation has.
pub const ADMIN: &str = "admin";
const MAX_USERNAME: usize = 32;
/// The pattern a password must match unless argocd-cm sets another.
pub const PASSWORD_PATTERN: &str = "^.{8,32}$";
/// Password checks use a lot of CPU by design; running more at once would starve everything else.
const CONCURRENT_CHECKS: usize = 4;
/// Why there is no caller where there is no token.
pub const NO_SESSION: &str = "no session information";
/// How long streams of a session can stay open after another replica ended it.
const RECHECK: Duration = Duration::from_secs(5);
/// How old a provider's token may be to set a password without another one.
const SSO_PASSWORD_SECONDS: i64 = 300;
/// A browser session is renewed when less than this is left.
const RENEW_BELOW_SECONDS: i64 = 300;

/// The caller of a request; logged in if there are claims.
#[derive(Clone, Debug)]
pub struct Caller {
    pub claims: Option<Claims>,
    pub source: IpAddr,
}

impl Caller {
    /// Empty when not logged in.
    pub fn username(&self) -> &str {
        self.claims.as_ref().map_or("", |c| c.account())
    }

    pub fn logged_in(&self) -> bool {
        self.claims.is_some()
    }
}

/// Issues and checks sessions.
pub struct Auth {
    settings: Arc<SettingsCache>,
    store: Arc<dyn Store>,
    limits: FailureLimits,
    checks: Semaphore,
    revoked: Revoked,
    /// `None`: only the record in the namespace tells other servers what has ended.
    shared: Option<Arc<dyn SharedSessions>>,
    sso: Arc<Sso>,
    /// Notified when a session may have ended.
    ended: Notify,
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
        let (limits, checks) = (
            FailureLimits::new(limits),
            Semaphore::new(CONCURRENT_CHECKS),
        );
        Self {
            settings,
            store,
            limits,
            checks,
            revoked: Revoked::default(),
            shared,
            sso,
            ended: Notify::new(),
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
        let refused = || ApiError::unauthenticated("Invalid username or password");
        let settings = self.settings.fresh().await?;
        let account = settings.accounts.get(username);
        let exists = account.is_some();
        self.turn(username, exists, source, now)
            .await
            .map_err(|()| refused())?;
        let _permit = self
            .checks
            .acquire()
            .await
            .map_err(|_| ApiError::internal("the server is shutting down"))?;
        // Unknown accounts take as long as known ones.
        let hash = account.map(|account| account.password_hash.clone());
        let hash = hash.unwrap_or_default();
        let valid = password::verify(password.to_owned(), hash).await;
        if !valid {
            self.limits.failed(username, exists, source, now);
            return Err(refused());
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
        self.limits.succeeded(username, source, now);
        self.issue(&settings, username, settings.session_seconds, now)
    }

    /// Waits until a login attempt is allowed, or refuses it.
    async fn turn(
        &self,
        username: &str,
        exists: bool,
        source: IpAddr,
        now: Timestamp,
    ) -> Result<(), ()> {
        match self.limits.verdict(username, exists, source, now) {
            AttemptDecision::Now => Ok(()),
            AttemptDecision::After(time) => {
                tokio::time::sleep(time).await;
                Ok(())
            }
            AttemptDecision::Refused => {
                tracing::warn!(username, %source, "too many failed logins");
                Err(())
            }
        }
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
        let allowed = regex::Regex::new(pattern)
            .map_err(|e| {
                let why = format!("failed to compile password regex: argocd-cm: {e}");
                ApiError::plain(why)
            })?
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
        let (username, source) = (caller.username(), caller.source);
        // Too many failures are one, too: whoever guesses learns nothing of the limit.
        let refused = |()| ApiError::invalid("current password does not match");
        self.turn(username, true, source, now)
            .await
            .map_err(refused)?;
        let own = settings.accounts.get(username);
        let hash = own.map(|own| own.password_hash.clone()).unwrap_or_default();
        if !password::verify(current.to_owned(), hash).await {
            self.limits.failed(username, true, source, now);
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
        let mut settings = self.settings.get().await?;
        if !token::is_local(text) {
            let config = settings.sso.as_ref().ok().and_then(Option::as_ref);
            let issuer = token::issuer(text).unwrap_or_default();
            if !config.is_some_and(|config| config.is_issuer(&issuer)) {
                settings = self.settings.recent().await?;
            }
            return self.verify_with_provider(text, &settings, now).await;
        }
        let claims = token::parse(text, &settings.signing_key, now).map_err(|why| invalid(&why))?;
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
    ) -> Result<Claims, ApiError> {
        let config = match &settings.sso {
            Ok(Some(config)) => config,
            Ok(None) => return Err(invalid("SSO is not configured")),
            Err(fault) => return Err(invalid(&fault.to_string())),
        };
        let verified = self.sso.verify(config, text, now).await;
        let mut claims = verified.map_err(|e| {
            tracing::warn!(error = %e, "Failed to verify session token");
            invalid("failed to verify the token")
        })?;
        let added = self.sso.add_groups(config, &mut claims).await;
        added.map_err(|e| invalid(&e.to_string()))?;
        let claims = Claims::of_provider(claims);
        let settings = self.settings.fresh().await?;
        self.check(&claims, &settings, now)?;
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
        let is_revoked = |id: &str| {
            let shared = self.shared.as_ref();
            self.revoked.contains(id)
                || settings.revoked.contains(id)
                || shared.is_some_and(|shared| shared.is_revoked(id))
        };
        if !claims.jti.is_empty() && is_revoked(&claims.jti) {
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
            if let Ok(settings) = self.settings.get().await
                && let Err(e) = self.check(claims, &settings, now)
                && e.code == Code::Unauthenticated
            {
                return e;
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

    /// Ends a session: immediately in this replica; in other replicas and after a restart, once it
    /// is recorded.
    pub async fn revoke(&self, claims: &Claims, now: Timestamp) -> Result<(), ApiError> {
        if let Some(theirs) = &claims.provider {
            self.sso.forget(theirs);
        }
        if claims.project_role().is_some() || claims.exp == 0 && claims.capability() == "apiKey" {
            // It is shared by whoever uses the role or the account, and taken away there.
            return Ok(());
        }
        if claims.jti.is_empty() {
            // A provider that gives its tokens no id: they last until they expire.
            tracing::warn!(iss = claims.iss, "A token without an id cannot be revoked");
            return Ok(());
        }
        let end = if claims.exp == 0 {
            i64::MAX
        } else {
            claims.exp
        };
        self.revoked.insert(&claims.jti, end, now);
        self.ended.notify_waiters();
        if let Some(shared) = &self.shared {
            let seconds = end.saturating_sub(now.as_second()).max(1);
            if let Err(error) = shared.revoke(&claims.jti, seconds).await {
                tracing::warn!(%error, "Other servers of Argo CD cannot be told that a session has ended");
            }
        }
        let recorded = self.settings.record_revoked(&claims.jti, end, now).await;
        recorded.map_err(|e| e.context("the session has ended, but this could not be recorded, and it may be valid again after a restart"))
    }
}

fn invalid(why: &str) -> ApiError {
    ApiError::unauthenticated(format!("invalid session: {why}"))
}
