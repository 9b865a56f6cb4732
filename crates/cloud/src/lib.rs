//! Who this process is at a cloud provider: its keys at AWS, its tokens at Google Cloud and Azure,
//! and signatures of requests to AWS.
//!
//! Main functions: [`aws::sign_in`], [`gcp::token`] and [`azure::token`]; main types:
//! [`aws::Identities`] and [`gcp::Tokens`], which keep what they were given, [`sigv4::Scope`], and
//! [`CloudError`]. Each looks where the provider's own libraries look: the environment ([`Env`]),
//! files, and the machine's metadata service. Its requests go through the proxies that the
//! environment names ([`proxy`]). It must not know its callers.

pub mod aws;
pub mod azure;
mod error;
pub mod gcp;
mod kept;
pub mod proxy;
pub mod sigv4;
mod web;

pub use error::CloudError;

use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// Maximum size of a file with a token, a key or profiles.
const MAX_FILE: u64 = 1 << 20;

/// A bearer token; it has no Debug and no Display.
pub struct Token {
    pub value: String,
    pub until: Timestamp,
}

/// The environment of the process, and what takes precedence over it.
#[derive(Default)]
pub struct Env(BTreeMap<String, String>);

impl Env {
    /// With values that take precedence. An empty one counts as not set.
    pub fn with(values: BTreeMap<String, String>) -> Self {
        Self(values)
    }

    pub(crate) fn get(&self, name: &str) -> Option<String> {
        self.0
            .get(name)
            .cloned()
            .or_else(|| std::env::var(name).ok())
            .filter(|value| !value.is_empty())
    }

    pub(crate) fn need(&self, name: &str) -> Result<String, CloudError> {
        self.get(name)
            .ok_or_else(|| CloudError::settings(format!("{name} is not set")))
    }

    /// A file below the user's home folder.
    pub(crate) fn home(&self, path: &str) -> String {
        format!("{}/{path}", self.get("HOME").unwrap_or_default())
    }
}

/// The content of a file that a setting names.
async fn read(path: &str) -> Result<String, CloudError> {
    let wrong = |e: &dyn std::fmt::Display| CloudError::settings(format!("{path}: {e}"));
    let length = tokio::fs::metadata(path)
        .await
        .map_err(|e| wrong(&e))?
        .len();
    if length > MAX_FILE {
        return Err(wrong(&"it is too large"));
    }
    let text = tokio::fs::read_to_string(path).await;
    text.map(|text| text.trim().to_owned())
        .map_err(|e| wrong(&e))
}

/// The response of OAuth servers.
#[derive(Deserialize)]
struct Grant {
    access_token: String,
    /// Seconds; Azure's metadata service returns them as text.
    expires_in: Value,
}

impl Grant {
    fn token(self) -> Result<Token, CloudError> {
        let seconds = self
            .expires_in
            .as_i64()
            .or_else(|| self.expires_in.as_str()?.parse().ok());
        let unsaid = || CloudError::answer("the answer does not say how long the token is good");
        let seconds = seconds.ok_or_else(unsaid)?;
        let until = Timestamp::now()
            .checked_add(SignedDuration::from_secs(seconds))
            .map_err(|e| CloudError::answer(e.to_string()))?;
        Ok(Token {
            value: self.access_token,
            until,
        })
    }
}
