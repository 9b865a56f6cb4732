//! Finds the AWS credentials for signing: environment, web identity, profiles, container, instance.
//! The order is AWS's own.

use super::{Sts, profile::Profiles};
use crate::{
    CloudError, Env, read,
    sigv4::{Keys, Request, Scope},
    web,
};
use http::Uri;
use jiff::Timestamp;
use serde::Deserialize;

/// Longest chain of profiles that use each other as their source.
const DEPTH: usize = 8;
/// Addresses besides localhost from which credentials may be requested without TLS.
const NEIGHBOURS: [&str; 3] = ["169.254.170.2", "169.254.170.23", "[fd00:ec2::23]"];
const MACHINE: &str = "http://169.254.169.254";
/// The default session name.
const SESSION: &str = "tiphys";

/// `chosen`: a setting names the profile, which then takes precedence over the
/// environment.
pub async fn keys(
    env: &Env,
    profiles: &Profiles,
    profile: &str,
    chosen: bool,
    sts: &Sts,
) -> Result<Keys, CloudError> {
    if !chosen {
        if let Some(keys) = of_environment(env) {
            return Ok(keys);
        }
        if let Some(file) = env.get("AWS_WEB_IDENTITY_TOKEN_FILE") {
            let session = env.get("AWS_ROLE_SESSION_NAME").unwrap_or_default();
            return web_identity(sts, &file, &env.need("AWS_ROLE_ARN")?, &session).await;
        }
    } else if !profiles.has(profile) {
        return Err(CloudError::settings(format!(
            "there is no profile {profile:?} in AWS' configuration"
        )));
    }
    of_profile(env, profiles, profile, sts).await
}

fn of_environment(env: &Env) -> Option<Keys> {
    let (id, secret) = (
        env.get("AWS_ACCESS_KEY_ID")?,
        env.get("AWS_SECRET_ACCESS_KEY")?,
    );
    Some(Keys {
        id,
        secret,
        session: env.get("AWS_SESSION_TOKEN"),
        until: None,
    })
}

async fn of_profile(
    env: &Env,
    profiles: &Profiles,
    profile: &str,
    sts: &Sts,
) -> Result<Keys, CloudError> {
    let mut chain = vec![profile.to_owned()];
    while let Some(source) = profiles
        .value(&chain[chain.len() - 1], "source_profile")
        .filter(|s| !chain.contains(s))
    {
        if !profiles.has(&source) || chain.len() == DEPTH {
            return Err(CloudError::settings(format!(
                "profile {profile:?}: the source profile {source:?} does not exist, or is one too many"
            )));
        }
        chain.push(source);
    }
    let last = &chain[chain.len() - 1];
    let value = |key| profiles.value(last, key);
    let mut roles: Vec<&String> = chain.iter().rev().collect();
    let mut keys = if let (Some(id), Some(secret)) =
        (value("aws_access_key_id"), value("aws_secret_access_key"))
    {
        Keys {
            id,
            secret,
            session: value("aws_session_token"),
            until: None,
        }
    } else if let Some(source) = value("credential_source") {
        match source.as_str() {
            "Environment" => of_environment(env).ok_or_else(|| {
                CloudError::settings(
                    "credential_source = Environment: there are no keys in the environment",
                )
            })?,
            "EcsContainer" => of_container(env).await?.ok_or_else(|| {
                CloudError::settings(
                    "credential_source = EcsContainer: there is no container's address",
                )
            })?,
            "Ec2InstanceMetadata" => of_machine(env).await?,
            other => {
                return Err(CloudError::settings(format!(
                    "profile {last:?}: there is no credential_source {other:?}"
                )));
            }
        }
    } else if let Some(file) = value("web_identity_token_file") {
        let role = value("role_arn").ok_or_else(|| {
            CloudError::settings(format!(
                "profile {last:?} has a web_identity_token_file and no role_arn"
            ))
        })?;
        roles.remove(0);
        web_identity(
            sts,
            &file,
            &role,
            &value("role_session_name").unwrap_or_default(),
        )
        .await?
    } else if let Some(key) = [
        "sso_session",
        "sso_start_url",
        "login_session",
        "credential_process",
    ]
    .into_iter()
    .find(|k| value(k).is_some())
    {
        return Err(CloudError::settings(format!(
            "profile {last:?}: {key} is not supported; use keys, a role or a web identity"
        )));
    } else if let Some(keys) = of_container(env).await? {
        keys
    } else {
        of_machine(env).await?
    };
    for profile in roles {
        if let Some(role) = profiles.value(profile, "role_arn") {
            let session = profiles
                .value(profile, "role_session_name")
                .unwrap_or_default();
            keys = assume(sts, &keys, &role, &session).await?;
        }
    }
    Ok(keys)
}

/// Assumes a role and returns its credentials.
pub async fn assume(sts: &Sts, keys: &Keys, role: &str, session: &str) -> Result<Keys, CloudError> {
    let fields = [
        ("Action", "AssumeRole"),
        ("Version", "2011-06-15"),
        ("RoleArn", role),
        (
            "RoleSessionName",
            if session.is_empty() { SESSION } else { session },
        ),
        ("DurationSeconds", "900"),
    ];
    let scope = Scope {
        keys,
        region: &sts.region,
        service: "sts",
        now: Timestamp::now(),
    };
    let signed = scope.headers(Request {
        method: "POST",
        host: &sts.host,
        path: "/",
        headers: &[("content-type", web::FORM)],
        body: web::form(&fields).as_bytes(),
    });
    let headers: Vec<(&str, &str)> = signed
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    of_xml(&web::send(web::post(&format!("{}/", sts.url), &headers, &fields)?).await?)
}

async fn web_identity(
    sts: &Sts,
    file: &str,
    role: &str,
    session: &str,
) -> Result<Keys, CloudError> {
    let token = read(file).await?;
    let fields = [
        ("Action", "AssumeRoleWithWebIdentity"),
        ("Version", "2011-06-15"),
        ("RoleArn", role),
        (
            "RoleSessionName",
            if session.is_empty() { SESSION } else { session },
        ),
        ("WebIdentityToken", &token),
    ];
    of_xml(&web::send(web::post(&format!("{}/", sts.url), &[], &fields)?).await?)
}

/// The credentials in an STS response.
fn of_xml(xml: &str) -> Result<Keys, CloudError> {
    let value = |name: &str| {
        let after = xml.split_once(&format!("<{name}>"))?.1;
        Some(after.split_once(&format!("</{name}>"))?.0.trim().to_owned())
    };
    let missing = |name: &str| CloudError::answer(format!("the answer of STS has no {name}"));
    let need = |name| value(name).ok_or_else(|| missing(name));
    Ok(Keys {
        id: need("AccessKeyId")?,
        secret: need("SecretAccessKey")?,
        session: Some(need("SessionToken")?),
        until: value("Expiration").and_then(|t| t.parse().ok()),
    })
}

/// The response of container and instance metadata services.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Answer {
    access_key_id: String,
    secret_access_key: String,
    #[serde(default)]
    token: Option<String>,
    #[serde(default)]
    expiration: Option<String>,
}

impl From<Answer> for Keys {
    fn from(answer: Answer) -> Self {
        let until = answer.expiration.and_then(|t| t.parse().ok());
        Self {
            id: answer.access_key_id,
            secret: answer.secret_access_key,
            session: answer.token,
            until,
        }
    }
}

/// Credentials of EKS Pod Identity or of an ECS task; `None` if not available.
async fn of_container(env: &Env) -> Result<Option<Keys>, CloudError> {
    let url = match (
        env.get("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"),
        env.get("AWS_CONTAINER_CREDENTIALS_FULL_URI"),
    ) {
        (Some(path), _) => format!("http://{}{path}", NEIGHBOURS[0]),
        (None, Some(url)) => url,
        (None, None) => return Ok(None),
    };
    let uri: Uri = url
        .parse()
        .map_err(|e| CloudError::settings(format!("{url}: {e}")))?;
    let host = uri.host().unwrap_or_default();
    let here = host == "localhost"
        || host == "[::1]"
        || host.starts_with("127.")
        || NEIGHBOURS.contains(&host);
    if uri.scheme_str() != Some("https") && !here {
        return Err(CloudError::settings(format!(
            "{url}: credentials are asked for without TLS of this machine and its neighbours only"
        )));
    }
    let token = match env.get("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE") {
        Some(file) => Some(read(&file).await?),
        None => env.get("AWS_CONTAINER_AUTHORIZATION_TOKEN"),
    };
    let headers: Vec<(&str, &str)> = token
        .iter()
        .map(|t| ("authorization", t.as_str()))
        .collect();
    let answer: Answer = web::json(&web::send_here(web::get(&url, &headers)?).await?)?;
    Ok(Some(answer.into()))
}

/// Credentials of the instance's role.
async fn of_machine(env: &Env) -> Result<Keys, CloudError> {
    const WITHOUT: &str = "there are no credentials: none in the environment, in a profile or of a \
                           container";
    if env
        .get("AWS_EC2_METADATA_DISABLED")
        .is_some_and(|v| v == "true")
    {
        let why = format!("{WITHOUT}, and the machine's are disabled");
        return Err(CloudError::Settings(why));
    }
    let machine = env
        .get("AWS_EC2_METADATA_SERVICE_ENDPOINT")
        .unwrap_or_else(|| MACHINE.to_owned());
    let machine = machine.trim_end_matches('/');
    let none = |why| CloudError::Machine {
        without: WITHOUT,
        why: Box::new(why),
    };
    let lifetime = [("x-aws-ec2-metadata-token-ttl-seconds", "300")];
    let token = web::request(
        "PUT",
        &format!("{machine}/latest/api/token"),
        &lifetime,
        String::new(),
    )?;
    let token = web::send_here(token).await.map_err(none)?;
    let headers = [("x-aws-ec2-metadata-token", token.as_str())];
    let roles = format!("{machine}/latest/meta-data/iam/security-credentials/");
    let listed = web::send_here(web::get(&roles, &headers)?)
        .await
        .map_err(none)?;
    let role = listed.lines().next().unwrap_or_default().trim();
    let answer: Answer =
        web::json(&web::send_here(web::get(&format!("{roles}{role}"), &headers)?).await?)?;
    Ok(answer.into())
}
