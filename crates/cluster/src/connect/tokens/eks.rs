//! Tokens for EKS: a signed but unsent request to STS, which the cluster sends itself to learn who
//! signed it.
//!
//! Main type: [`Login`], the content of `awsAuthConfig`.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use tiphys_cloud::{
    CloudError, Env, Token, aws,
    sigv4::{Request, Scope},
};

const PREFIX: &str = "k8s-aws-v1.";
/// The header with the cluster that a token is for.
const CLUSTER: &str = "x-k8s-aws-id";
/// EKS requires it, but nothing enforces it.
const EXPIRES: u32 = 60;
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

    pub async fn token(&self, env: &Env) -> Result<Token, CloudError> {
        let login = aws::Login {
            profile: &self.profile,
            role: &self.role_arn,
            region: "",
        };
        let identity = aws::sign_in(env, login).await?;
        let (sts, now) = (&identity.sts, Timestamp::now());
        let scope = Scope {
            keys: &identity.keys,
            region: &sts.region,
            service: "sts",
            now,
        };
        // Whoever sends it learns who signed it, and for which cluster.
        let request = Request {
            method: "GET",
            host: &sts.host,
            path: "/",
            headers: &[(CLUSTER, self.cluster_name.trim())],
            body: b"",
        };
        let fields = [("Action", "GetCallerIdentity"), ("Version", "2011-06-15")];
        let query = scope.presigned(request, &fields, EXPIRES);
        let value = format!(
            "{PREFIX}{}",
            URL_SAFE_NO_PAD.encode(format!("{}/?{query}", sts.url))
        );
        let until = now + GOOD_FOR;
        Ok(Token {
            value,
            until: identity.keys.until.map_or(until, |end| end.min(until)),
        })
    }
}
