//! Credentials at AWS.
//!
//! Main function: [`sign_in`]; main types: [`Identity`] and [`Identities`].

mod chain;
mod profile;

use crate::{CloudError, Env, kept::Kept, sigv4::Keys};
use http::Uri;
use jiff::{SignedDuration, Timestamp};
use profile::Profiles;
use std::sync::Arc;

/// How long keys are kept that have no end of their own.
const KEPT: SignedDuration = SignedDuration::from_mins(6);

/// How one signs in. What is empty is found as AWS' own libraries find it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Login<'a> {
    /// A profile takes precedence over the environment's keys.
    pub profile: &'a str,
    /// The ARN of a role that is assumed.
    pub role: &'a str,
    pub region: &'a str,
}

/// Keys, and where they are used.
pub struct Identity {
    pub keys: Keys,
    /// `None`: nothing names one.
    pub region: Option<String>,
    pub sts: Sts,
}

/// The address of STS.
pub struct Sts {
    pub region: String,
    pub url: String,
    /// The host name that is signed.
    pub host: String,
}

/// # Errors
/// If there are no keys, or the role cannot be assumed. The text has no secrets.
pub async fn sign_in(env: &Env, login: Login<'_>) -> Result<Identity, CloudError> {
    let profiles = Profiles::read(env).await?;
    let chosen = !login.profile.is_empty();
    let profile = if chosen {
        login.profile.to_owned()
    } else {
        let named = env.get("AWS_PROFILE");
        named.unwrap_or_else(|| "default".to_owned())
    };
    let region = Some(login.region.to_owned())
        .filter(|region| !region.is_empty())
        .or_else(|| env.get("AWS_REGION"))
        .or_else(|| env.get("AWS_DEFAULT_REGION"))
        .or_else(|| profiles.value(&profile, "region"));
    let sts = Sts::of(env, region.clone())?;
    let mut keys = chain::keys(env, &profiles, &profile, chosen, &sts).await?;
    if !login.role.is_empty() {
        keys = chain::assume(&sts, &keys, login.role, "").await?;
    }
    Ok(Identity { keys, region, sts })
}

/// Who this process is at AWS, asked for again shortly before keys end.
#[derive(Default)]
pub struct Identities {
    env: Env,
    kept: Kept<Identity>,
}

impl Identities {
    pub fn new(env: Env) -> Self {
        Self {
            env,
            kept: Kept::default(),
        }
    }

    pub fn env(&self) -> &Env {
        &self.env
    }

    /// # Errors
    /// As [`sign_in`].
    pub async fn of(&self, login: Login<'_>) -> Result<Arc<Identity>, CloudError> {
        let key = [login.profile, login.role, login.region];
        if let Some(kept) = self.kept.get(&key, Timestamp::now()) {
            return kept;
        }
        let asked = sign_in(&self.env, login).await;
        let now = Timestamp::now();
        let asked = asked.map(|identity| {
            let own = now + KEPT;
            let end = identity.keys.until.map_or(own, |end| end.min(own));
            (identity, end)
        });
        self.kept.put(&key, now, asked)
    }
}

/// The address of a service's API, without a slash at its end. `variable`: the end of the variable
/// that names another one, such as `STS` in `AWS_ENDPOINT_URL_STS`.
///
/// # Errors
/// If the region cannot be a part of a host name.
pub fn endpoint(
    env: &Env,
    variable: &str,
    service: &str,
    region: &str,
) -> Result<String, CloudError> {
    let named = env
        .get(&format!("AWS_ENDPOINT_URL_{variable}"))
        .or_else(|| env.get("AWS_ENDPOINT_URL"));
    if let Some(url) = named {
        return Ok(url.trim_end_matches('/').to_owned());
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
    if region.is_empty() || !region.chars().all(plain) {
        let why = format!("there is no region {region:?}");
        return Err(CloudError::Settings(why));
    }
    let china = if region.starts_with("cn-") { ".cn" } else { "" };
    Ok(format!("https://{service}.{region}.amazonaws.com{china}"))
}

impl Sts {
    fn of(env: &Env, region: Option<String>) -> Result<Self, CloudError> {
        let signed = region.as_deref().unwrap_or("us-east-1");
        let mut url = endpoint(env, "STS", "sts", signed)?;
        if region.is_none() && url == "https://sts.us-east-1.amazonaws.com" {
            // The one address of all regions.
            "https://sts.amazonaws.com".clone_into(&mut url);
        }
        let wrong = |why: &dyn std::fmt::Display| CloudError::settings(format!("{url}: {why}"));
        let uri = url.parse::<Uri>().map_err(|e| wrong(&e))?;
        let host = uri
            .authority()
            .ok_or_else(|| wrong(&"it is not a URL"))?
            .as_str()
            .to_owned();
        Ok(Self {
            region: signed.to_owned(),
            url,
            host,
        })
    }
}
