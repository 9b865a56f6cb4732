//! What authentication is made of: accounts, passwords, session tokens, and rate limits on failed
//! logins. Main types: [`Caller`] and [`Claims`]. It knows neither settings nor routes.

mod accounts;
mod checks;
mod known;
mod limits;
pub mod password;
mod revoked;
pub(crate) mod token;

pub use accounts::{ApiToken, Capability, LocalAccount};
pub(crate) use accounts::{read as read_accounts, secret_key};
pub(crate) use checks::{Attempt, PasswordChecks};
pub(crate) use known::KnownTokens;
pub use limits::{AttemptDecision, FailureLimits, Limits};
pub use password::{hash_password, new_password};
pub(crate) use revoked::{Revoked, revoked_until};
pub use token::{Claims, new_signing_key};

use std::net::IpAddr;

/// The account that every installation has.
pub const ADMIN: &str = "admin";
/// The pattern a password must match unless argocd-cm sets another.
pub const PASSWORD_PATTERN: &str = "^.{8,32}$";
/// Why there is no caller where there is no token.
pub const NO_SESSION: &str = "no session information";

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
