//! Authentication and authorization: tokens, service accounts, impersonation, roles.
//!
//! Main type: [`Auth`]. Requests over the socket are authorized here before any of their body is
//! read; requests of the in-process router are not authorized at all. This module sees URLs and
//! headers; it does not know what the handlers do.

mod authenticate;
mod bootstrap;
mod controller;
mod escalation;
mod impersonate;
pub mod jwt;

pub use crate::base::{TokenUser, UserInfo};
pub use bootstrap::make_defaults;
pub use controller::run;

use crate::base::Guard;
use crate::catalog::Resource;
use crate::rbac::{Attributes, GROUP as RBAC_GROUP, Policy};
use crate::registry::Registry;
use crate::status::Status;
use authenticate::StaticTokens;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use http::request::Parts;
use jwt::Signer;
use std::sync::{Arc, RwLock};
use tiphys_apimachinery::Object;

/// The type of Secrets that carry a token.
pub const TOKEN_SECRET: &str = "kubernetes.io/service-account-token";

/// The user of a request, put into its extensions. Without it, the caller is in the same process
/// and has full access.
#[derive(Clone, Debug)]
pub struct Caller(pub Arc<UserInfo>);

/// Authentication and authorization of one server.
pub struct Auth {
    pub(crate) registry: Registry,
    pub(crate) signer: Signer,
    tokens: StaticTokens,
    /// With the number of role changes that it includes.
    policy: RwLock<(u64, Arc<Policy>)>,
}

impl Auth {
    pub fn new(
        registry: Registry,
        signer: Signer,
        users: impl IntoIterator<Item = TokenUser>,
    ) -> Self {
        Self {
            registry,
            signer,
            tokens: StaticTokens::new(users),
            policy: RwLock::new((u64::MAX, Arc::default())),
        }
    }

    /// The current roles and bindings.
    pub fn policy(&self) -> Arc<Policy> {
        let now = self.registry.role_changes();
        {
            let kept = self
                .policy
                .read()
                .unwrap_or_else(|poisoned| poisoned.into_inner());
            if kept.0 == now {
                return kept.1.clone();
            }
        }
        let mut kept = self
            .policy
            .write()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        // Read again: a change made while the policy is read belongs to the next policy.
        let now = self.registry.role_changes();
        if kept.0 != now {
            *kept = (now, Arc::new(Policy::read(&self.registry, &kept.1)));
        }
        kept.1.clone()
    }

    pub fn authorize(&self, user: &UserInfo, asked: &Attributes) -> (bool, String) {
        if user.is_master() {
            (true, String::new())
        } else {
            self.policy().authorize(user, asked)
        }
    }

    /// Authenticates the request and checks that its user may perform it.
    pub fn admit(&self, parts: &Parts) -> Result<Caller, Status> {
        let user = match bearer(&parts.headers) {
            None => Arc::new(UserInfo::anonymous()),
            Some(token) => {
                self.authenticate(token, &Self::own_audience())
                    .map_err(|_| Status::unauthorized())?
                    .0
            }
        };
        self.admit_as(user, parts)
    }

    /// The same for a user who is already authenticated.
    pub fn admit_as(&self, user: Arc<UserInfo>, parts: &Parts) -> Result<Caller, Status> {
        let asked = Attributes::of(parts);
        let user = match impersonate::impersonate(&self.policy(), &user, &parts.headers, &asked)? {
            Some(other) => Arc::new(other),
            None => user,
        };
        let (allowed, reason) = self.authorize(&user, &asked);
        if allowed {
            Ok(Caller(user))
        } else {
            Err(asked.forbidden(&user.name, &reason))
        }
    }

    /// The escalation check for a write of roles and bindings; nothing for other resources and for
    /// callers with full access.
    pub fn guard(
        self: &Arc<Self>,
        user: &Arc<UserInfo>,
        resource: &Resource,
        namespace: &str,
        name: &str,
    ) -> Guard {
        if resource.group != RBAC_GROUP || user.is_master() {
            return Guard::default();
        }
        let write = escalation::Write {
            user: (**user).clone(),
            resource: resource.resource.clone(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        };
        let auth = self.clone();
        Guard::new(move |new: &Object, old: Option<&Object>| {
            escalation::check(&auth.policy(), &write, new, old)
        })
    }
}

/// The token of `Authorization: Bearer …`. Another scheme counts as no token.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    // Bytes that are not valid text cannot match any token.
    let Ok(value) = headers.get(AUTHORIZATION)?.to_str() else {
        return Some("");
    };
    let (scheme, token) = value.trim().split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// A value of a Secret.
fn decode_data(secret: &Object, key: &str) -> Option<Vec<u8>> {
    let text = secret.0.get("data")?.get(key)?.as_str()?;
    STANDARD.decode(text).ok()
}
