//! Sessions: logins and passwords, and what tokens are worth by the settings. Main type: [`Auth`].
//! It knows nothing about routes. `verify` says whether a token is valid; `end` ends sessions, in
//! other replicas too.

mod end;
mod verify;

pub use end::EndedTokens;
pub use verify::Unverified;

use crate::{
    ApiError,
    auth::{
        Attempt, Caller, Claims, KnownTokens, Limits, PASSWORD_PATTERN, PasswordChecks, Revoked,
        hash_password, secret_key, token,
    },
    ports::{SharedSessions, Store},
    settings::{Settings, SettingsCache},
    sso::Sso,
};
use end::Untold;
use jiff::Timestamp;
use std::{collections::BTreeMap, net::IpAddr, sync::Arc, time::Duration};
use tiphys_gocompat::regex::Regex;
use tokio::sync::Notify;

const MAX_USERNAME: usize = 32;
/// How long streams of a session can stay open after another replica ended it.
const RECHECK: Duration = Duration::from_secs(5);
/// How old a provider's token may be to set a password without another one.
const SSO_PASSWORD_SECONDS: i64 = 300;
/// A browser session is renewed when less than this is left.
const RENEW_BELOW_SECONDS: i64 = 300;

/// Issues and checks sessions.
pub struct Auth {
    settings: Arc<SettingsCache>,
    store: Arc<dyn Store>,
    checks: PasswordChecks,
    known: KnownTokens,
    revoked: Revoked,
    /// `None`: only the record in the namespace tells other servers what has ended.
    shared: Option<Arc<dyn SharedSessions>>,
    sso: Arc<Sso>,
    /// Notified when a session may have ended.
    ended: Notify,
    untold: Arc<Untold>,
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
            known: KnownTokens::default(),
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

    /// Signs the claims of a token that is stored elsewhere.
    pub async fn sign_token(&self, claims: &Claims) -> Result<String, ApiError> {
        token::sign(claims, &self.settings.fresh().await?.signing_key)
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
}
