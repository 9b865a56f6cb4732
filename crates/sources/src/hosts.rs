//! Hosts of Git and plugins, asked for the generators of ApplicationSets: which may be asked, with
//! whose credentials, and what they answer.
//!
//! Main type: [`HostSettings`]; main functions: [`Answers::account`] and [`ask`]. Only a complete
//! answer of a host is an answer.

use crate::{
    Answers,
    answered::{Answered, current},
};
use std::{io::Read as _, path::PathBuf, time::Duration};
use tiphys_api::{
    application_set::hosts::{
        BasicAuthBitbucketServer, ConfigMapKeyRef, PullRequestGenerator, SCMProviderGenerator,
        SecretRef,
    },
    constants,
};
use tiphys_apimachinery::Object;
use tiphys_appset::{
    Answer, Endpoint, Need, NeedError, PLUGIN_PATH, PullRequest, Repository, RepositoryId,
    permitted,
};
use tiphys_cluster::{records::secret_data, request::Call};
use tiphys_repo::{
    Repos, Secret,
    scm::{self, Account, Login, ScmError},
};

/// What a Secret must be labelled with where token references are strict.
const CREDENTIALS: &str = "scm-creds";
const OWN_IDENTITY: &str = "scm provider not allowed: AWS CodeCommit is asked as who the controller \
                            is at AWS, which is for sets of the control plane's namespace only";
const PREFIX: &str = "applicationsetcontroller.";
/// Longest file of certificate authorities.
const MOST_AUTHORITIES: u64 = 4 << 20;

/// Which hosts of Git may be asked. `None`: as in argocd-cmd-params-cm.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostSettings {
    /// Whether hosts are asked at all; they are unless it is turned off.
    pub is_enabled: Option<bool>,
    /// The addresses that generators may name; empty: all.
    pub allowed: Option<Vec<String>>,
    /// Whether only Secrets may be read that are labelled as credentials of hosts.
    pub is_strict: Option<bool>,
    /// A file with certificate authorities in PEM.
    pub root_ca: Option<PathBuf>,
    pub proxy: String,
    /// Hosts that are reached without the proxy, separated by commas.
    pub no_proxy: String,
}

/// What a generator refers to.
#[derive(Default)]
struct References<'g> {
    token: Option<&'g SecretRef>,
    /// The user whose password the token is.
    username: Option<&'g str>,
    /// The Secret of a GitHub App.
    app: &'g str,
    authorities: Option<&'g ConfigMapKeyRef>,
    insecure: bool,
}

impl<'g> References<'g> {
    fn token(token: &'g Option<SecretRef>) -> Self {
        Self {
            token: token.as_ref(),
            ..Self::default()
        }
    }

    fn with(mut self, authorities: &'g Option<ConfigMapKeyRef>, insecure: bool) -> Self {
        (self.authorities, self.insecure) = (authorities.as_ref(), insecure);
        self
    }

    /// A bearer token precedes a user and a password.
    fn bitbucket(
        bearer: Option<&'g Option<SecretRef>>,
        basic: &'g Option<BasicAuthBitbucketServer>,
    ) -> Self {
        match (bearer, basic) {
            (Some(token), _) => Self::token(token),
            (None, Some(basic)) => Self {
                username: Some(&basic.username),
                ..Self::token(&basic.password_ref)
            },
            (None, None) => Self::default(),
        }
    }

    fn of_repositories(settings: &'g SCMProviderGenerator) -> Self {
        if let Some(its) = &settings.github {
            return Self {
                app: &its.app_secret_name,
                ..Self::token(&its.token_ref)
            };
        }
        if let Some(its) = &settings.gitlab {
            return Self::token(&its.token_ref).with(&its.ca_ref, its.insecure);
        }
        if let Some(its) = &settings.gitea {
            return Self::token(&its.token_ref).with(&None, its.insecure);
        }
        if let Some(its) = &settings.bitbucket_server {
            let bearer = its.bearer_token.as_ref().map(|bearer| &bearer.token_ref);
            let references = Self::bitbucket(bearer, &its.basic_auth);
            return references.with(&its.ca_ref, its.insecure);
        }
        if let Some(its) = &settings.azure_dev_ops {
            return Self::token(&its.access_token_ref);
        }
        if let Some(its) = &settings.bitbucket {
            return Self {
                username: Some(&its.user),
                ..Self::token(&its.app_password_ref)
            };
        }
        Self::default()
    }

    fn of_pull_requests(settings: &'g PullRequestGenerator) -> Self {
        if let Some(its) = &settings.github {
            return Self {
                app: &its.app_secret_name,
                ..Self::token(&its.token_ref)
            };
        }
        if let Some(its) = &settings.gitlab {
            return Self::token(&its.token_ref).with(&its.ca_ref, its.insecure);
        }
        if let Some(its) = &settings.gitea {
            return Self::token(&its.token_ref).with(&None, its.insecure);
        }
        if let Some(its) = &settings.bitbucket_server {
            let bearer = its.bearer_token.as_ref().map(|bearer| &bearer.token_ref);
            let references = Self::bitbucket(bearer, &its.basic_auth);
            return references.with(&its.ca_ref, its.insecure);
        }
        if let Some(its) = &settings.bitbucket {
            let bearer = its.bearer_token.as_ref().map(|bearer| &bearer.token_ref);
            return Self::bitbucket(bearer, &its.basic_auth);
        }
        if let Some(its) = &settings.azuredevops {
            return Self::token(&its.token_ref);
        }
        Self::default()
    }
}

impl Answers {
    /// Whom a host is asked as, for a set of a namespace. `None` if the need is not about a host.
    pub(crate) async fn account(
        &self,
        need: &Need,
        namespace: &str,
    ) -> Option<Result<Account, NeedError>> {
        let provider = need.provider()?;
        match need {
            Need::PullRequests(_) => {
                let settings = provider.pull_requests();
                let references = References::of_pull_requests(&settings);
                Some(self.checked(need, references, namespace).await)
            }
            _ => {
                let settings = provider.scm();
                // It has no address that a list could permit, and asks with the process's identity.
                if settings.aws_code_commit.is_some() && namespace != self.records.namespace {
                    return Some(Err(failed(OWN_IDENTITY)));
                }
                let references = References::of_repositories(&settings);
                Some(self.checked(need, references, namespace).await)
            }
        }
    }

    async fn checked(
        &self,
        need: &Need,
        references: References<'_>,
        namespace: &str,
    ) -> Result<Account, NeedError> {
        let settings = self.records.settings();
        let param = |name: &str| settings.param(&format!("{PREFIX}{name}")).to_owned();
        let hosts = &self.hosts;
        let is_enabled = hosts.is_enabled;
        if !is_enabled.unwrap_or_else(|| param("enable.scm.providers") != "false") {
            return Err(failed("scm providers are disabled"));
        }
        let allowed = hosts.allowed.clone();
        let allowed = allowed.unwrap_or_else(|| list(&param("allowed.scm.providers")));
        if namespace != self.records.namespace && allowed.is_empty() {
            return Err(failed(
                "scm provider not allowed: sets outside the control plane's namespace may ask \
                 hosts of Git only where applicationsetcontroller.allowed.scm.providers lists them",
            ));
        }
        permitted(need, &allowed)?;
        let is_strict = hosts.is_strict;
        let is_strict = is_strict.unwrap_or_else(|| param("enable.tokenref.strict.mode") == "true");
        let path = hosts.root_ca.clone().or_else(|| {
            let path = param("scm.root.ca.path");
            (!path.is_empty()).then(|| path.into())
        });
        let mut ca_data = match path {
            Some(path) => authorities(path).await?,
            None => String::new(),
        };
        if let Some(reference) = references.authorities {
            ca_data.push('\n');
            ca_data.push_str(&self.config_map_key(reference, namespace).await?);
        }
        Ok(Account {
            login: self.login(&references, namespace, is_strict).await?,
            api: String::new(),
            ca_data,
            insecure: references.insecure,
            proxy: hosts.proxy.clone(),
            no_proxy: hosts.no_proxy.clone(),
        })
    }

    async fn login(
        &self,
        references: &References<'_>,
        namespace: &str,
        is_strict: bool,
    ) -> Result<Login, NeedError> {
        if !references.app.is_empty() {
            return self.app(references.app);
        }
        let Some(reference) = references.token else {
            return Ok(match references.username {
                Some(username) => Login::Password {
                    username: username.to_owned(),
                    secret: Secret::default(),
                },
                None => Login::Anonymous,
            });
        };
        let secret = self.secret_key(reference, namespace, is_strict).await?;
        Ok(match references.username {
            Some(username) => Login::Password {
                username: username.to_owned(),
                secret,
            },
            None => Login::Token(secret),
        })
    }

    /// The App of a Secret of the control plane's namespace, which is a template of credentials.
    fn app(&self, name: &str) -> Result<Login, NeedError> {
        current(&self.records.secrets, "credentials")?;
        let settings = self.records.settings();
        let mut templates = settings.repo_creds.iter();
        let template = templates
            .find(|template| template.secret_name == name)
            .map(|template| &template.value)
            .filter(|template| !template.github_app_private_key.is_empty())
            .ok_or_else(|| failed(format!("no github app found for {name}")))?;
        Ok(Login::GitHubApp {
            id: template.github_app_id,
            installation: template.github_app_installation_id,
            key: Secret::new(&template.github_app_private_key),
            api: template.github_app_enterprise_base_url.clone(),
        })
    }

    async fn secret_key(
        &self,
        reference: &SecretRef,
        namespace: &str,
        is_strict: bool,
    ) -> Result<Secret, NeedError> {
        let (name, key) = (&reference.secret_name, &reference.key);
        let secret = self.object("secrets", name, namespace).await;
        let secret =
            secret.map_err(|e| failed(format!("error fetching secret {namespace}/{name}: {e}")))?;
        if is_strict && secret.label(constants::SECRET_TYPE_LABEL) != Some(CREDENTIALS) {
            return Err(failed(format!(
                "secret {namespace}/{name} is not a valid SCM creds secret: secret must have label \
                 {:?}={CREDENTIALS:?}",
                constants::SECRET_TYPE_LABEL
            )));
        }
        let text = secret_data(&secret).remove(key.as_str());
        let text = text.ok_or_else(|| {
            failed(format!(
                "key {key:?} in secret {namespace}/{name} not found"
            ))
        })?;
        String::from_utf8(text)
            .map(|text| Secret::new(text.trim_end_matches(['\r', '\n'])))
            .map_err(|_| {
                failed(format!(
                    "key {key:?} in secret {namespace}/{name} is not UTF-8"
                ))
            })
    }

    async fn config_map_key(
        &self,
        reference: &ConfigMapKeyRef,
        namespace: &str,
    ) -> Result<String, NeedError> {
        let (name, key) = (&reference.config_map_name, &reference.key);
        let place = "error fetching CA certificates from ConfigMap";
        let map = self.object("configmaps", name, namespace).await;
        let map = map.map_err(|e| failed(format!("{place}: {e}")))?;
        let data = map.0.get("data").and_then(|data| data.get(key));
        let text = data.and_then(|text| text.as_str());
        let missing = || failed(format!("{place}: key {key} not found in ConfigMap {name}"));
        text.map(str::to_owned).ok_or_else(missing)
    }

    /// A Secret or ConfigMap, as it is now: it may be in a namespace that is not watched.
    async fn object(&self, plural: &str, name: &str, namespace: &str) -> Result<Object, NeedError> {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
        if name.is_empty() || name.starts_with('.') || !name.chars().all(plain) {
            return Err(failed(format!("{name:?} is no name of an object")));
        }
        let call = Call::get(format!("/api/v1/namespaces/{namespace}/{plural}/{name}"));
        let object = self.records.cluster.http().json(&call).await;
        object.map(Object).map_err(|e| failed(e.to_string()))
    }

    /// What a plugin answers to a body.
    pub(crate) async fn plugin(&self, config_map: &str, body: &str) -> Answered {
        let Answer::ConfigMap(data) = self.config_map(config_map)? else {
            return Err(failed("the answer is not of the asked kind"));
        };
        let endpoint = Endpoint::of(&data).map_err(|e| failed(e.to_string()))?;
        let (name, key) = (&endpoint.secret, &endpoint.key);
        let place = "error fetching Secret token";
        let secret = self.object("secrets", name, &self.records.namespace).await;
        let secret = secret.map_err(|e| failed(format!("{place}: {e}")))?;
        let token = secret_data(&secret).remove(key.as_str());
        let token = token
            .and_then(|token| String::from_utf8(token).ok())
            .ok_or_else(|| failed(format!("{place}: key {key:?} in secret {name} not found")))?;
        let url = format!("{}/{PLUGIN_PATH}", endpoint.base_url.trim_end_matches('/'));
        let (token, timeout) = (
            Secret::new(token.trim()),
            Duration::from_secs(endpoint.timeout),
        );
        let asked = self.sources.repos.scm();
        let answer = asked.parameters(&url, &token, body.to_owned(), timeout);
        answer.await.map(Answer::Plugin).map_err(of_host)
    }
}

/// What a host answers.
pub async fn ask(repos: &Repos, need: &Need, account: &Account) -> Answered {
    let scm = repos.scm();
    match need {
        Need::Repositories(provider) => {
            let found = scm.repositories(&provider.scm(), account).await;
            shown(found.map_err(of_host)?)
        }
        Need::Branches {
            provider,
            repository,
        } => {
            let of = asked(repository);
            let found = scm.branches(&provider.scm(), account, &of).await;
            shown(found.map_err(of_host)?)
        }
        Need::HasPath {
            provider,
            repository,
            path,
        } => {
            let of = asked(repository);
            let has = scm.has_path(&provider.scm(), account, &of, path).await;
            has.map(Answer::HasPath).map_err(of_host)
        }
        Need::PullRequests(provider) => {
            let pulls = scm.pull_requests(&provider.pull_requests(), account).await;
            let pulls = pulls.map_err(|error| match error.is_not_found() {
                true => NeedError::not_found(error.to_string()),
                false => of_host(error),
            })?;
            let pulls = pulls.into_iter().map(pull_request);
            Ok(Answer::PullRequests(pulls.collect()))
        }
        _ => Err(failed("no host of Git answers this")),
    }
}

fn shown(repositories: Vec<scm::Repository>) -> Answered {
    let shown = repositories.into_iter().map(|repository| Repository {
        organization: repository.organization,
        repository: repository.name,
        repository_id: match repository.id {
            scm::RepositoryId::None => RepositoryId::None,
            scm::RepositoryId::Number(number) => RepositoryId::Number(number),
            scm::RepositoryId::Text(text) => RepositoryId::Text(text),
        },
        url: repository.url,
        branch: repository.branch,
        sha: repository.sha,
        labels: repository.labels,
    });
    Ok(Answer::Repositories(shown.collect()))
}

fn asked(repository: &Repository) -> scm::Repository {
    let repository = repository.clone();
    scm::Repository {
        organization: repository.organization,
        name: repository.repository,
        id: match repository.repository_id {
            RepositoryId::None => scm::RepositoryId::None,
            RepositoryId::Number(number) => scm::RepositoryId::Number(number),
            RepositoryId::Text(text) => scm::RepositoryId::Text(text),
        },
        url: repository.url,
        branch: repository.branch,
        sha: repository.sha,
        labels: repository.labels,
    }
}

fn pull_request(pull: scm::PullRequest) -> PullRequest {
    PullRequest {
        number: pull.number,
        title: pull.title,
        branch: pull.branch,
        target_branch: pull.target_branch,
        head_sha: pull.head_sha,
        author: pull.author,
        labels: pull.labels,
    }
}

/// A host's error is a failure, also where the host says that something does not exist.
fn of_host(error: ScmError) -> NeedError {
    NeedError::failed(error.to_string())
}

fn failed(message: impl Into<String>) -> NeedError {
    NeedError::failed(message)
}

fn list(text: &str) -> Vec<String> {
    let items = text.split(',').map(str::trim);
    let items = items.filter(|item| !item.is_empty());
    items.map(str::to_owned).collect()
}

async fn authorities(path: PathBuf) -> Result<String, NeedError> {
    let shown = path.display().to_string();
    let read = tokio::task::spawn_blocking(move || {
        let mut text = String::new();
        let file = std::fs::File::open(path)?;
        file.take(MOST_AUTHORITIES).read_to_string(&mut text)?;
        Ok::<_, std::io::Error>(text)
    });
    let problem = match read.await {
        Ok(Ok(text)) => return Ok(text),
        Ok(Err(e)) => e.to_string(),
        Err(e) => e.to_string(),
    };
    Err(failed(format!(
        "certificate authorities {shown}: {problem}"
    )))
}
