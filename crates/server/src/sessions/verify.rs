//! Whether a token is valid: its signature, the account, project or provider that it is of, and
//! whether its session has ended. Also follows the streams of a session until that ends.

use super::{Auth, RECHECK};
use crate::{
    ApiError, Code,
    auth::{Claims, token},
    settings::Settings,
    sso::ProviderError,
};
use futures::{StreamExt as _, stream::BoxStream};
use jiff::Timestamp;
use std::{sync::Arc, time::Duration};
use tiphys_api::project::JWTToken;

impl Auth {
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
        let known = self.known.get(text, &settings.signing_key);
        if known.is_none() && !token::is_local(text) {
            let config = settings.sso.as_ref().ok().and_then(Option::as_ref);
            let issuer = token::issuer(text).unwrap_or_default();
            if !config.is_some_and(|config| config.is_issuer(&issuer)) {
                settings = self.settings.recent().await?;
            }
            let verified = self.verify_with_provider(text, &settings, now, with_groups);
            return verified.await;
        }
        let claims = match known {
            Some(claims) => claims,
            None => {
                let key = &settings.signing_key;
                let claims = token::parse(text, key, now).map_err(|why| invalid(&why))?;
                self.known.add(text, key, &claims);
                claims
            }
        };
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

    pub(super) fn is_revoked(&self, id: &str, settings: &Settings) -> bool {
        let shared = self.shared.as_ref();
        self.revoked.contains(id)
            || settings.is_revoked(id)
            || shared.is_some_and(|shared| shared.is_revoked(id))
    }

    /// Whether a token that came of the same sign-in was revoked.
    pub(super) fn has_revoked_sibling(&self, claims: &Claims, settings: &Settings) -> bool {
        let theirs = claims.provider.as_ref();
        let others = theirs.map(|theirs| self.sso.of_same_sign_in(theirs));
        let mut others = others.into_iter().flatten();
        others.any(|id| self.is_revoked(&id, settings))
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
