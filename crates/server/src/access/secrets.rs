//! Repositories as Secrets, in Argo CD's format: one Secret per repository, and Secrets with
//! credentials for URL prefixes.

use super::CredentialUse;
use crate::{
    ApiError,
    ports::{SecretRecord, Store},
};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use tiphys_api::{
    access::{best_template, same_repository, shown_url},
    constants::{MANAGED_BY, MANAGED_BY_VALUE, SECRET_TYPE_LABEL},
    repository::{RepoCreds, Repository},
};
use tiphys_gocompat::fnv::hash32a;
use tiphys_rpc::table::from_value;

/// What is shown of a repository whose Secret cannot be read.
const FAULT: &str = "Configuration error - please check the server logs";

const REPOSITORY: &str = "repository";
const WRITE_REPOSITORY: &str = "repository-write";
const CREDENTIALS: &str = "repo-creds";
const WRITE_CREDENTIALS: &str = "repo-write-creds";

/// A Secret's key, and the JSON field of [`Repository`] that it holds.
const FIELDS: [(&str, &str); 30] = [
    ("url", "repo"),
    ("name", "name"),
    ("project", "project"),
    ("type", "type"),
    ("username", "username"),
    ("password", "password"),
    ("bearerToken", "bearerToken"),
    ("sshPrivateKey", "sshPrivateKey"),
    ("tlsClientCertData", "tlsClientCertData"),
    ("tlsClientCertKey", "tlsClientCertKey"),
    ("insecure", "insecure"),
    ("insecureIgnoreHostKey", "insecureIgnoreHostKey"),
    ("enableLfs", "enableLfs"),
    ("enableOCI", "enableOCI"),
    ("insecureOCIForceHttp", "insecureOCIForceHttp"),
    ("proxy", "proxy"),
    ("noProxy", "noProxy"),
    ("forceHttpBasicAuth", "forceHttpBasicAuth"),
    ("depth", "depth"),
    (
        "webhookManifestCacheWarmDisabled",
        "webhookManifestCacheWarmDisabled",
    ),
    ("githubAppPrivateKey", "githubAppPrivateKey"),
    ("githubAppID", "githubAppID"),
    ("githubAppInstallationID", "githubAppInstallationID"),
    ("githubAppEnterpriseBaseUrl", "githubAppEnterpriseBaseUrl"),
    ("gcpServiceAccountKey", "gcpServiceAccountKey"),
    ("useAzureWorkloadIdentity", "useAzureWorkloadIdentity"),
    (
        "azureServicePrincipalClientId",
        "azureServicePrincipalClientId",
    ),
    (
        "azureServicePrincipalClientSecret",
        "azureServicePrincipalClientSecret",
    ),
    (
        "azureServicePrincipalTenantId",
        "azureServicePrincipalTenantId",
    ),
    (
        "azureActiveDirectoryEndpoint",
        "azureActiveDirectoryEndpoint",
    ),
];

/// Keys that a template does not have.
const ONLY_OF_REPOSITORIES: [&str; 7] = [
    "name",
    "project",
    "insecure",
    "insecureIgnoreHostKey",
    "enableLfs",
    "depth",
    "webhookManifestCacheWarmDisabled",
];

/// Keys that Argo CD spells differently in the Secrets of templates.
const TEMPLATE_FIELDS: [(&str, &str); 2] = [
    (
        "azureServicePrincipalClientID",
        "azureServicePrincipalClientId",
    ),
    (
        "azureServicePrincipalTenantID",
        "azureServicePrincipalTenantId",
    ),
];

fn parse(secret: &SecretRecord) -> Result<Repository, ApiError> {
    read(secret, fields(secret))
}

/// What can be read of a Secret with a fault, which its owner is to find in the log.
fn parse_faulty(secret: &SecretRecord) -> Result<Repository, ApiError> {
    let is_good = |(field, value): &(String, Value)| {
        let alone = Map::from_iter([(field.clone(), value.clone())]);
        from_value::<Repository>(Value::Object(alone)).is_ok()
    };
    let good = fields(secret).into_iter().filter(is_good);
    let repository: Repository = read(secret, good.collect())?;
    Ok(repository.with_fault(FAULT.to_owned()))
}

fn parse_template(secret: &SecretRecord) -> Result<RepoCreds, ApiError> {
    read(secret, template_fields(secret))
}

/// What can be read of a template's Secret with a fault.
fn parse_faulty_template(secret: &SecretRecord) -> Result<RepoCreds, ApiError> {
    let is_good = |(field, value): &(String, Value)| {
        let alone = Map::from_iter([(field.clone(), value.clone())]);
        from_value::<RepoCreds>(Value::Object(alone)).is_ok()
    };
    let good = template_fields(secret).into_iter().filter(is_good);
    read(secret, good.collect())
}

fn template_fields(secret: &SecretRecord) -> Map<String, Value> {
    let mut fields = fields(secret);
    for (key, field) in TEMPLATE_FIELDS {
        let text = secret.text(key);
        if !text.is_empty() {
            fields.insert(field.to_owned(), text.into());
        }
    }
    let url = fields.remove("repo").unwrap_or_default();
    fields.insert("url".to_owned(), url);
    fields
}

fn fields(secret: &SecretRecord) -> Map<String, Value> {
    let entry = |(key, field): &(&str, &str)| {
        secret
            .data
            .get(*key)
            .map(|_| ((*field).to_owned(), Value::String(secret.text(key))))
    };
    FIELDS
        .iter()
        .filter_map(entry)
        .filter(|(_, v)| v != "")
        .collect()
}

fn read<T: DeserializeOwned>(
    secret: &SecretRecord,
    fields: Map<String, Value>,
) -> Result<T, ApiError> {
    from_value(Value::Object(fields)).map_err(|e| {
        ApiError::invalid(format!(
            "Secret {} is not a valid repository: {e}",
            secret.name
        ))
    })
}

/// The Secret that stores the repository. Other values of an existing Secret are kept.
pub fn secret_of(
    repository: &Repository,
    use_: CredentialUse,
    existing: Option<SecretRecord>,
) -> SecretRecord {
    let fields = serde_json::to_value(repository).unwrap_or_default();
    let name = || secret_name(use_, &repository.repo, &repository.project);
    let mut secret = existing.unwrap_or_else(|| new_secret(name(), repository_type(use_)));
    put(&mut secret, &fields, FIELDS);
    secret
}

/// The Secret that stores the template. Other values of an existing Secret are kept.
pub fn secret_of_template(
    creds: &RepoCreds,
    use_: CredentialUse,
    existing: Option<SecretRecord>,
) -> SecretRecord {
    let mut fields = serde_json::to_value(creds).unwrap_or_default();
    fields["repo"] = creds.url.as_str().into();
    let (prefix, secret_type) = match use_ {
        CredentialUse::Read => ("creds", CREDENTIALS),
        CredentialUse::Write => ("creds-write", WRITE_CREDENTIALS),
    };
    let name = || hashed_name(prefix, &creds.url, "");
    let mut secret = existing.unwrap_or_else(|| new_secret(name(), secret_type));
    let of_templates = |field: &str| TEMPLATE_FIELDS.iter().any(|(_, f)| *f == field);
    let known = FIELDS
        .into_iter()
        .filter(|(key, _)| !ONLY_OF_REPOSITORIES.contains(key))
        .filter(|(_, field)| !of_templates(field));
    put(&mut secret, &fields, known.chain(TEMPLATE_FIELDS));
    secret
}

fn new_secret(name: String, secret_type: &str) -> SecretRecord {
    SecretRecord {
        name,
        labels: BTreeMap::from([(SECRET_TYPE_LABEL.to_owned(), secret_type.to_owned())]),
        annotations: BTreeMap::from([(MANAGED_BY.to_owned(), MANAGED_BY_VALUE.to_owned())]),
        data: BTreeMap::new(),
    }
}

/// Sets the values of these fields; empty ones are removed.
fn put(
    secret: &mut SecretRecord,
    fields: &Value,
    known: impl IntoIterator<Item = (&'static str, &'static str)>,
) {
    for (key, field) in known {
        let text = match &fields[field] {
            Value::String(text) if !text.is_empty() => text.clone(),
            Value::Bool(true) => "true".to_owned(),
            Value::Number(n) if n.as_i64() != Some(0) => n.to_string(),
            _ => {
                secret.data.remove(key);
                continue;
            }
        };
        secret.data.insert(key.to_owned(), text.into_bytes());
    }
}

/// The value of the label of Secrets with repositories.
fn repository_type(use_: CredentialUse) -> &'static str {
    match use_ {
        CredentialUse::Read => REPOSITORY,
        CredentialUse::Write => WRITE_REPOSITORY,
    }
}

/// A prefix and FNV-1a of the URL and project: the name that Argo CD gives.
pub fn secret_name(use_: CredentialUse, url: &str, project: &str) -> String {
    match use_ {
        CredentialUse::Read => hashed_name("repo", url, project),
        CredentialUse::Write => hashed_name("repo-write", url, project),
    }
}

fn hashed_name(prefix: &str, url: &str, project: &str) -> String {
    let hash = hash32a(url.bytes().chain(project.bytes()));
    format!("{prefix}-{hash}")
}

/// All stored repositories. A Secret that cannot be read does not hide the others.
pub async fn stored(store: &dyn Store) -> Result<Vec<Repository>, ApiError> {
    Ok(records(store, CredentialUse::Read)
        .await?
        .into_iter()
        .map(|(_, repository)| repository)
        .collect())
}

/// All stored repositories with their Secrets, sorted by project and URL.
pub async fn records(
    store: &dyn Store,
    use_: CredentialUse,
) -> Result<Vec<(SecretRecord, Repository)>, ApiError> {
    let secrets = store.secrets_of_type(repository_type(use_)).await?;
    let read = |secret: SecretRecord| match parse(&secret) {
        Ok(repository) => Some((secret, repository)),
        Err(e) => {
            tracing::warn!(error = %e, "a repository is not used");
            let faulty = parse_faulty(&secret).ok();
            faulty.map(|repository| (secret, repository))
        }
    };
    let mut all: Vec<_> = secrets.into_iter().filter_map(read).collect();
    all.sort_by(|(_, a), (_, b)| (&a.project, &a.repo).cmp(&(&b.project, &b.repo)));
    Ok(all)
}

/// A credential template and its Secret.
pub struct Template {
    pub secret: SecretRecord,
    /// Of a Secret with a fault, what can be read.
    pub creds: RepoCreds,
    /// It is shown, so that it can be mended, and never used.
    pub is_faulty: bool,
}

/// All templates, sorted by URL. One that cannot be read does not hide the others.
pub async fn templates(store: &dyn Store, use_: CredentialUse) -> Result<Vec<Template>, ApiError> {
    let secrets = match use_ {
        CredentialUse::Read => store.secrets_of_type(CREDENTIALS).await?,
        CredentialUse::Write => store.secrets_of_type(WRITE_CREDENTIALS).await?,
    };
    let mut all = Vec::new();
    for secret in secrets {
        let (creds, is_faulty) = match parse_template(&secret) {
            Ok(creds) => (creds, false),
            Err(e) => {
                tracing::warn!(error = %e, "a credential template is not used");
                (parse_faulty_template(&secret)?, true)
            }
        };
        all.push(Template {
            secret,
            creds,
            is_faulty,
        });
    }
    all.sort_by(|a, b| a.creds.url.cmp(&b.creds.url));
    Ok(all)
}

/// The repository with this URL as the project may use it, with credentials. A repository without a
/// Secret is public.
pub async fn repository(
    store: &dyn Store,
    url: &str,
    project: &str,
) -> Result<Repository, ApiError> {
    let stored = stored(store).await?;
    let same = |r: &&Repository| same_repository(&r.repo, url);
    let own = stored.iter().filter(same).find(|r| r.project == project);
    let shared = || stored.iter().filter(same).find(|r| r.project.is_empty());
    let mut found = own.or_else(shared).cloned().unwrap_or_default();
    url.clone_into(&mut found.repo);
    with_inherited(store, CredentialUse::Read, found).await
}

/// # Errors
/// The Secret of the repository cannot be read. This is not for those who may not see it.
pub fn usable(repository: &Repository) -> Result<(), ApiError> {
    let Some(fault) = repository.fault() else {
        return Ok(());
    };
    Err(ApiError::invalid(format!(
        "unable to get repository {:?}: {fault}",
        shown_url(&repository.repo)
    )))
}

/// Adds credentials from the template with the longest matching path if the repository has none.
pub async fn with_inherited(
    store: &dyn Store,
    use_: CredentialUse,
    mut repository: Repository,
) -> Result<Repository, ApiError> {
    // One whose own Secret has a fault is not used with the credentials of others.
    if !repository.has_credentials() && repository.fault().is_none() {
        let templates = templates(store, use_).await?;
        // Of several for the same URL the last one counts: a good one goes on being used.
        let (faulty, good): (Vec<_>, Vec<_>) = templates.iter().partition(|t| t.is_faulty);
        let ordered = faulty.into_iter().chain(good);
        match best_template(&repository.repo, ordered, |t| t.creds.url.as_str()) {
            // Another template is not meant for it.
            Some(template) if template.is_faulty => {
                repository = repository.with_fault(FAULT.to_owned());
            }
            Some(template) => repository.inherit(&template.creds),
            None => {}
        }
    }
    Ok(repository)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repository_survives_its_secret() {
        let repository = Repository {
            repo: "https://example.org/r.git".into(),
            username: "u".into(),
            password: "p".into(),
            insecure: true,
            depth: 3,
            webhook_manifest_cache_warm_disabled: true,
            github_app_id: 7,
            ..Default::default()
        };
        let mut secret = secret_of(&repository, CredentialUse::Read, None);
        assert_eq!(secret.text("insecure"), "true");
        assert_eq!(secret.text("webhookManifestCacheWarmDisabled"), "true");
        secret.data.insert("other".into(), b"kept".to_vec());
        assert_eq!(parse(&secret).expect("it reads"), repository);
        let changed = secret_of(
            &Repository {
                password: String::new(),
                ..repository
            },
            CredentialUse::Read,
            Some(secret),
        );
        assert_eq!(
            (
                changed.text("other").as_str(),
                changed.data.contains_key("password")
            ),
            ("kept", false)
        );
    }

    #[test]
    fn names_are_argo_cds() {
        let examples = "https://github.com/argoproj/argocd-example-apps";
        for (use_, name) in [
            (CredentialUse::Read, "repo-1686952910"),
            (CredentialUse::Write, "repo-write-1686952910"),
        ] {
            assert_eq!(secret_name(use_, examples, ""), name);
        }
        let name = |use_, url: &str| {
            let creds = RepoCreds {
                url: url.to_owned(),
                ..Default::default()
            };
            secret_of_template(&creds, use_, None).name
        };
        assert_eq!(
            name(CredentialUse::Read, "https://new.example.com"),
            "creds-4244170087"
        );
        assert_eq!(
            name(CredentialUse::Write, "https://w.example.com"),
            "creds-write-1285190888"
        );
    }
}
