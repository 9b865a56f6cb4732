//! Hosts of Git: which repositories, branches and pull requests they have, and what the plugins of
//! generators answer.
//!
//! Main type: [`Scm`]. An answer is complete or an error: a missing page, a web page in place of JSON
//! or a list that is too long is never a shorter list. It must not know what answers are used for.

mod azure_devops;
mod bitbucket;
mod bitbucket_server;
mod codecommit;
mod error;
mod gitea;
mod github;
mod gitlab;
mod http;
mod pages;
mod plugin;

pub use error::ScmError;

use crate::{common::Common, http::Clients, secret::Secret, tokens::Tokens};
use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};
use tiphys_api::application_set::hosts::{PullRequestGenerator, SCMProviderGenerator};
use tiphys_cloud::{Env, aws::Identities};

/// One request.
const REQUEST: Duration = Duration::from_secs(30);
/// All requests of one question.
const QUESTION: Duration = Duration::from_secs(300);
/// Accounts whose rate limits are remembered.
const ACCOUNTS: u64 = 10_000;
/// Questions to one host at a time, where each element of a list needs one.
const CONCURRENT: usize = 8;

/// Who asks, and how the host is reached. Printing it shows no secret.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    pub login: Login,
    /// The address of the API where settings name none; empty: that of the public host.
    pub api: String,
    /// PEM text of certificate authorities to trust in addition to the system's.
    pub ca_data: String,
    /// Skip the verification of certificates.
    pub insecure: bool,
    /// Proxy URL; empty means none.
    pub proxy: String,
    /// Hosts that are reached without the proxy, separated by commas.
    pub no_proxy: String,
}

/// What an account is known by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Login {
    #[default]
    Anonymous,
    Token(Secret),
    Password {
        username: String,
        secret: Secret,
    },
    GitHubApp {
        id: i64,
        /// 0: the installation for the owner that is asked about.
        installation: i64,
        /// PEM text.
        key: Secret,
        /// The address of the API where settings name none; empty means that of github.com.
        api: String,
    },
}

/// A repository, or one of its branches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repository {
    /// The organization, group, workspace or project that it belongs to.
    pub organization: String,
    pub name: String,
    pub id: RepositoryId,
    /// Where it is cloned from.
    pub url: String,
    pub branch: String,
    /// The commit; empty where it is not known yet.
    pub sha: String,
    pub labels: Vec<String>,
}

/// What a host numbers or names its repositories with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RepositoryId {
    #[default]
    None,
    Number(i64),
    Text(String),
}

/// An open pull request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PullRequest {
    pub number: i64,
    pub title: String,
    pub branch: String,
    pub target_branch: String,
    pub head_sha: String,
    pub author: String,
    /// `None` if the host has no labels, or gives none with its list.
    pub labels: Option<Vec<String>>,
}

/// Asks hosts of Git.
pub struct Scm {
    clients: Clients,
    tokens: Arc<Tokens>,
    aws: Identities,
    /// Until when an account is not used, by host and credentials.
    limited: moka::sync::Cache<[u8; 32], (Instant, jiff::Timestamp)>,
    /// Which version of its API a server of Azure DevOps knows, by its origin.
    versions: moka::sync::Cache<String, usize>,
}

/// Calls a function of the module of the host that a generator names.
macro_rules! of_host {
    ($settings:expr, |$host:ident, $its:ident| $call:expr) => {{
        let settings: &SCMProviderGenerator = $settings;
        if let Some($its) = &settings.github {
            use github as $host;
            $call
        } else if let Some($its) = &settings.gitlab {
            use gitlab as $host;
            $call
        } else if let Some($its) = &settings.gitea {
            use gitea as $host;
            $call
        } else if let Some($its) = &settings.bitbucket_server {
            use bitbucket_server as $host;
            $call
        } else if let Some($its) = &settings.azure_dev_ops {
            use azure_devops as $host;
            $call
        } else if let Some($its) = &settings.bitbucket {
            use bitbucket as $host;
            $call
        } else if let Some($its) = &settings.aws_code_commit {
            use codecommit as $host;
            $call
        } else {
            Err(ScmError::settings(
                "no SCM provider implementation configured",
            ))
        }
    }};
}

impl Scm {
    /// `cloud`: values that take precedence over the environment where it says who this process is
    /// at AWS.
    pub(crate) fn new(
        common: Arc<Common>,
        tokens: Arc<Tokens>,
        cloud: BTreeMap<String, String>,
    ) -> Self {
        let limited = moka::sync::Cache::builder()
            .max_capacity(ACCOUNTS)
            .time_to_live(http::LONGEST_PAUSE)
            .build();
        let versions = moka::sync::Cache::builder()
            .max_capacity(ACCOUNTS)
            .time_to_live(http::LONGEST_PAUSE)
            .build();
        Self {
            clients: Clients::new(REQUEST, common, 0).named("argocd-applicationset".to_owned()),
            tokens,
            aws: Identities::new(Env::with(cloud)),
            limited,
            versions,
        }
    }

    /// The repositories that a generator's settings name, each with its default branch. Those
    /// that are known to be empty are left out.
    ///
    /// # Errors
    /// Whenever the list would not be complete.
    pub async fn repositories(
        &self,
        settings: &SCMProviderGenerator,
        account: &Account,
    ) -> Result<Vec<Repository>, ScmError> {
        let protocol = settings.clone_protocol.as_str();
        in_time(async {
            of_host!(settings, |host, its| {
                let session = host::session(self, account, its).await?;
                host::repositories(&session, its, protocol).await
            })
        })
        .await
    }

    /// The default branch of a repository, or all branches if the settings say so, each with its
    /// commit. None: the repository is empty.
    pub async fn branches(
        &self,
        settings: &SCMProviderGenerator,
        account: &Account,
        of: &Repository,
    ) -> Result<Vec<Repository>, ScmError> {
        in_time(async {
            of_host!(settings, |host, its| {
                let session = host::session(self, account, its).await?;
                host::branches(&session, its, of).await
            })
        })
        .await
    }

    /// Whether a branch has a file or folder. It has its root, however that is written.
    pub async fn has_path(
        &self,
        settings: &SCMProviderGenerator,
        account: &Account,
        of: &Repository,
        path: &str,
    ) -> Result<bool, ScmError> {
        let parts = path.split('/').filter(|part| !matches!(*part, "" | "."));
        let path = parts.collect::<Vec<_>>().join("/");
        if path.is_empty() {
            return Ok(true);
        }
        in_time(async {
            of_host!(settings, |host, its| {
                let session = host::session(self, account, its).await?;
                host::has_path(&session, its, of, &path).await
            })
        })
        .await
    }

    /// The pull requests of a repository.
    ///
    /// # Errors
    /// [`ScmError::is_not_found`] if the host says that there is no such repository.
    pub async fn pull_requests(
        &self,
        settings: &PullRequestGenerator,
        account: &Account,
    ) -> Result<Vec<PullRequest>, ScmError> {
        in_time(async {
            if let Some(its) = &settings.github {
                github::pull_requests(self, account, its).await
            } else if let Some(its) = &settings.gitlab {
                gitlab::pull_requests(self, account, its).await
            } else if let Some(its) = &settings.gitea {
                gitea::pull_requests(self, account, its).await
            } else if let Some(its) = &settings.bitbucket_server {
                bitbucket_server::pull_requests(self, account, its).await
            } else if let Some(its) = &settings.bitbucket {
                bitbucket::pull_requests(self, account, its).await
            } else if let Some(its) = &settings.azuredevops {
                azure_devops::pull_requests(self, account, its).await
            } else {
                Err(ScmError::settings(
                    "no Pull Request provider implementation configured",
                ))
            }
        })
        .await
    }

    /// What the plugin of a generator answers to a body of JSON, as it is.
    ///
    /// # Errors
    /// Also for an answer whose status is not 2xx.
    pub async fn parameters(
        &self,
        url: &str,
        token: &Secret,
        body: String,
        timeout: Duration,
    ) -> Result<Vec<u8>, ScmError> {
        plugin::ask(self, url, token, body, timeout).await
    }
}

async fn in_time<T>(question: impl Future<Output = Result<T, ScmError>>) -> Result<T, ScmError> {
    let answered = tokio::time::timeout(QUESTION, Box::pin(question)).await;
    answered.unwrap_or_else(|_| {
        Err(ScmError::settings(format!(
            "the host did not answer all requests of a list within {} s",
            QUESTION.as_secs()
        )))
    })
}

/// The address to clone from: ssh unless https is asked for.
fn clone_url<'u>(
    protocol: &str,
    host: &str,
    (ssh, https): (&'u str, &'u str),
) -> Result<&'u str, ScmError> {
    match protocol {
        "" | "ssh" => Ok(ssh),
        "https" => Ok(https),
        other => Err(ScmError::settings(format!(
            "unknown clone protocol for {host} {other}"
        ))),
    }
}

impl Repository {
    /// One of its branches.
    fn at(&self, branch: String, sha: String) -> Self {
        Self {
            branch,
            sha,
            ..self.clone()
        }
    }
}

/// Whether a pull request has all labels that are asked for.
fn has_all(labels: &[String], wanted: &[String]) -> bool {
    wanted.iter().all(|label| labels.contains(label))
}

/// A text that a host may leave out or set to null.
fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: serde::Deserialize<'de> + Default,
{
    use serde::Deserialize as _;
    Option::<T>::deserialize(deserializer).map(Option::unwrap_or_default)
}
