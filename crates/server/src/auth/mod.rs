//! Who calls: passwords, session tokens, and the limits on failed logins. [`Auth`] is the main type. It knows no routes.

mod limits;
pub mod password;
mod token;

pub use limits::{FailureLimits, Limits};
pub use password::{hash_password, new_password};
pub use token::{Claims, new_signing_key};

use crate::{error::ApiError, settings::SettingsCache};
use jiff::Timestamp;
use std::{collections::BTreeMap, net::IpAddr, sync::Arc, sync::Mutex};
use tokio::sync::Semaphore;

/// The only account so far.
pub const ADMIN: &str = "admin";
const MAX_USERNAME: usize = 32;
/// What a password must match unless argocd-cm says otherwise.
pub const PASSWORD_PATTERN: &str = "^.{8,32}$";
/// Password checks cost CPU by design; more at once would starve everything else.
const CONCURRENT_CHECKS: usize = 4;
/// A browser's session is renewed when less than this is left.
const RENEW_BELOW_SECONDS: i64 = 300;

/// A caller, as far as known.
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
    limits: FailureLimits,
    checks: Semaphore,
    /// Logged-out tokens by id, until they expire.
    revoked: Mutex<BTreeMap<String, i64>>,
}

impl Auth {
    pub fn new(settings: Arc<SettingsCache>, limits: Limits) -> Self {
        Self { settings, limits: FailureLimits::new(limits), checks: Semaphore::new(CONCURRENT_CHECKS), revoked: Mutex::default() }
    }

    /// Checks the password and returns a session token.
    pub async fn login(&self, username: &str, password: &str, source: IpAddr, now: Timestamp) -> Result<String, ApiError> {
        if username.is_empty() || password.is_empty() {
            return Err(ApiError::unauthenticated("no credentials supplied"));
        }
        if username.len() > MAX_USERNAME {
            return Err(ApiError::invalid(format!("Username is too long ({MAX_USERNAME} bytes max)")));
        }
        let refused = || ApiError::unauthenticated("Invalid username or password");
        let _permit = self.checks.acquire().await.map_err(|_| ApiError::internal("the server is shutting down"))?;
        if !self.limits.allowed(username, source, now) {
            tracing::warn!(username, %source, "too many failed logins");
            return Err(refused());
        }
        let settings = self.settings.fresh().await?;
        // An unknown account costs as much time as a known one.
        let hash = if username == ADMIN { settings.admin_password_hash.clone() } else { String::new() };
        let valid = password::verify(password.to_owned(), hash).await;
        if !valid {
            self.limits.failed(username, source, now);
            return Err(refused());
        }
        if !settings.admin_enabled {
            return Err(ApiError::unauthenticated(format!("Account {username} is disabled")));
        }
        self.limits.succeeded(username, source);
        self.issue(&settings.signing_key, username, settings.session_seconds, now)
    }

    /// The values of argocd-secret that make this the password; sessions from before then end. `current` must be the caller's own password.
    pub async fn change_password(
        &self,
        caller: &Caller,
        current: &str,
        new: &str,
        now: Timestamp,
    ) -> Result<BTreeMap<String, Vec<u8>>, ApiError> {
        let (username, source) = (caller.username(), caller.source);
        if !self.limits.allowed(username, source, now) {
            return Err(ApiError::unauthenticated("Invalid username or password"));
        }
        let settings = self.settings.fresh().await?;
        if !password::verify(current.to_owned(), settings.admin_password_hash.clone()).await {
            self.limits.failed(username, source, now);
            return Err(ApiError::invalid("current password does not match"));
        }
        let pattern = match settings.value("passwordPattern") {
            "" => PASSWORD_PATTERN,
            own => own,
        };
        let allowed = regex::Regex::new(pattern)
            .map_err(|e| ApiError::internal(format!("argocd-cm: passwordPattern is no regular expression: {e}")))?
            .is_match(new);
        if !allowed {
            return Err(ApiError::invalid(format!("New password does not match the following expression: {pattern}.")));
        }
        let text = new.to_owned();
        let hashed = tokio::task::spawn_blocking(move || hash_password(&text)).await;
        let hash = hashed.map_err(|_| ApiError::internal("the password could not be hashed"))??;
        let changed = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let values = [("admin.password", hash), ("admin.passwordMtime", changed)];
        Ok(values.into_iter().map(|(key, value)| (key.to_owned(), value.into_bytes())).collect())
    }

    fn issue(&self, key: &[u8], account: &str, seconds: i64, now: Timestamp) -> Result<String, ApiError> {
        token::sign(&Claims::session(account, seconds, now), key)
    }

    /// What the token says, if it is valid now.
    pub async fn verify(&self, text: &str, now: Timestamp) -> Result<Claims, ApiError> {
        let settings = self.settings.get().await?;
        let invalid = |why: &str| ApiError::unauthenticated(format!("invalid session: {why}"));
        let claims = token::parse(text, &settings.signing_key, now).map_err(|why| invalid(&why))?;
        let account = claims.account();
        if account != ADMIN || !settings.admin_enabled {
            return Err(invalid(&format!("account {account} is disabled")));
        }
        if claims.capability() != "login" {
            return Err(invalid(&format!("account {account} does not have '{}' capability", claims.capability())));
        }
        if self.revoked.lock().is_ok_and(|r| r.contains_key(&claims.jti)) {
            return Err(invalid("token is revoked, please re-login"));
        }
        if settings.admin_password_mtime.is_some_and(|changed| claims.iat < changed.as_second()) {
            return Err(invalid("account password has changed since token issued"));
        }
        Ok(claims)
    }

    /// A new token when this one is about to end.
    pub async fn renewed(&self, claims: &Claims, now: Timestamp) -> Option<String> {
        if claims.exp - now.as_second() >= RENEW_BELOW_SECONDS {
            return None;
        }
        let settings = self.settings.get().await.ok()?;
        self.issue(&settings.signing_key, claims.account(), claims.exp - claims.iat, now).ok()
    }

    /// Ends a session.
    pub fn revoke(&self, claims: &Claims, now: Timestamp) {
        if let Ok(mut revoked) = self.revoked.lock() {
            revoked.retain(|_, exp| *exp > now.as_second());
            revoked.insert(claims.jti.clone(), claims.exp);
        }
    }
}
