//! Tokens for EKS: a signed but unsent request to STS, which the cluster sends itself to learn who
//! signed it.
//!
//! Main type: [`Login`], the content of `awsAuthConfig`.

mod chain;
mod profile;
mod sigv4;

use super::{Env, Token};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use http::Uri;
use jiff::{SignedDuration, Timestamp};
use profile::Profiles;
use serde::Deserialize;
use sigv4::{Keys, Scope};

const PREFIX: &str = "k8s-aws-v1.";
/// A presigned URL is valid for 15 minutes.
const GOOD_FOR: SignedDuration = SignedDuration::from_mins(15);

/// The settings in a cluster's Secret.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Login {
    cluster_name: String,
    #[serde(rename = "roleARN")]
    role_arn: String,
    profile: String,
}

/// The address of STS.
struct Sts {
    region: String,
    url: String,
    /// The host name that is signed.
    host: String,
}

impl Login {
    /// `--cluster-name`, `--role-arn` and `--profile` of `argocd-k8s-auth aws`.
    pub fn of_args(args: &[&str]) -> Result<Self, String> {
        let mut login = Self::default();
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let (name, value) = match arg.split_once('=') {
                Some((name, value)) => (name, value.to_owned()),
                None => (
                    *arg,
                    args.next()
                        .ok_or_else(|| {
                            "argocd-k8s-auth aws: the last argument has no value".to_owned()
                        })?
                        .to_string(),
                ),
            };
            match name {
                "--cluster-name" => login.cluster_name = value,
                "--role-arn" => login.role_arn = value,
                "--profile" => login.profile = value,
                _ => return Err(
                    "argocd-k8s-auth aws: the flags are --cluster-name, --role-arn and --profile"
                        .to_owned(),
                ),
            }
        }
        Ok(login)
    }

    pub async fn token(&self, env: &Env) -> Result<Token, String> {
        let chosen = Some(&self.profile).filter(|p| !p.is_empty());
        let profiles = Profiles::read(env).await?;
        let name = chosen
            .cloned()
            .or_else(|| env.get("AWS_PROFILE"))
            .unwrap_or_else(|| "default".to_owned());
        let sts = Sts::of(env, &profiles, &name)?;
        let mut keys = chain::keys(env, &profiles, &name, chosen.is_some(), &sts).await?;
        if !self.role_arn.is_empty() {
            keys = chain::assume(&sts, &keys, &self.role_arn, "").await?;
        }
        let now = Timestamp::now();
        let query = Scope {
            keys: &keys,
            region: &sts.region,
            host: &sts.host,
            now,
        }
        .presigned(&self.cluster_name);
        let value = format!(
            "{PREFIX}{}",
            URL_SAFE_NO_PAD.encode(format!("{}/?{query}", sts.url))
        );
        let until = now + GOOD_FOR;
        Ok(Token {
            value,
            until: keys.until.map_or(until, |end| end.min(until)),
        })
    }
}

impl Sts {
    fn of(env: &Env, profiles: &Profiles, profile: &str) -> Result<Self, String> {
        let region = env
            .get("AWS_REGION")
            .or_else(|| env.get("AWS_DEFAULT_REGION"))
            .or_else(|| profiles.value(profile, "region"));
        let named = env
            .get("AWS_ENDPOINT_URL_STS")
            .or_else(|| env.get("AWS_ENDPOINT_URL"));
        let url = match (named, &region) {
            (Some(url), _) => url.trim_end_matches('/').to_owned(),
            (None, Some(region))
                if !region
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || c == '-') =>
            {
                return Err(format!("there is no region {region:?}"));
            }
            (None, Some(region)) if region.starts_with("cn-") => {
                format!("https://sts.{region}.amazonaws.com.cn")
            }
            (None, Some(region)) => format!("https://sts.{region}.amazonaws.com"),
            (None, None) => "https://sts.amazonaws.com".to_owned(),
        };
        let uri: Uri = url.parse().map_err(|e| format!("{url}: {e}"))?;
        let host = uri
            .authority()
            .ok_or_else(|| format!("{url}: it is not a URL"))?
            .as_str()
            .to_owned();
        Ok(Self {
            region: region.unwrap_or_else(|| "us-east-1".to_owned()),
            url,
            host,
        })
    }
}
