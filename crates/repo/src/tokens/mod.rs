//! Tokens for repositories whose settings name an identity instead of a password: a GitHub App, a
//! Google service account, an Azure principal or workload. Main type: [`Tokens`].
//!
//! The identity's own server gives a token for about an hour. It is kept in memory, and shared by
//! all repositories that it is good for.

mod ask;
mod azure;
mod github;
mod google;
mod jwt;
#[cfg(test)]
mod tests;

use crate::{RepoAccess, RepoError, common::Common, http::Clients, secret::Secret};
use sha2::{Digest, Sha256};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use tiphys_api::{access::shown_url, repository::Repository};

pub use azure::Workload;

/// Tokens that are kept.
const MOST: u64 = 1024;
/// A token that expires within this time is replaced: what it is used for takes a while.
const MARGIN: Duration = Duration::from_secs(120);
/// A token whose lifetime is not told.
const LIFETIME: Duration = Duration::from_secs(600);

/// What a repository's settings have instead of a password. Printing it shows no secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identity {
    GitHubApp {
        id: i64,
        /// 0: the installation for the owner of the repository.
        installation: i64,
        /// PEM text.
        key: Secret,
        /// The address of the API; empty means that of github.com.
        api: String,
    },
    /// The JSON text of a service account's key.
    Google(Secret),
    /// The identity of the Pod that the program runs in, see [`Workload`].
    AzureWorkload,
    AzurePrincipal {
        tenant: String,
        client: String,
        secret: Secret,
        /// The address of the directory; empty means that of the public cloud.
        authority: String,
    },
}

impl Identity {
    /// The identity that a repository's settings name. A password, bearer token or ssh key takes
    /// precedence.
    pub fn of(repo: &Repository) -> Option<Self> {
        let own = [&repo.password, &repo.bearer_token, &repo.ssh_private_key];
        if own.iter().any(|secret| !secret.is_empty()) {
            return None;
        }
        if !repo.github_app_private_key.is_empty() && repo.github_app_id != 0 {
            return Some(Self::GitHubApp {
                id: repo.github_app_id,
                installation: repo.github_app_installation_id,
                key: Secret::new(&repo.github_app_private_key),
                api: repo.github_app_enterprise_base_url.clone(),
            });
        }
        if !repo.gcp_service_account_key.is_empty() {
            return Some(Self::Google(Secret::new(&repo.gcp_service_account_key)));
        }
        if repo.use_azure_workload_identity {
            return Some(Self::AzureWorkload);
        }
        let principal = [
            &repo.azure_service_principal_client_id,
            &repo.azure_service_principal_client_secret,
            &repo.azure_service_principal_tenant_id,
        ];
        principal.iter().all(|text| !text.is_empty()).then(|| {
            let [client, secret, tenant] = principal;
            Self::AzurePrincipal {
                tenant: tenant.clone(),
                client: client.clone(),
                secret: Secret::new(secret),
                authority: repo.azure_active_directory_endpoint.clone(),
            }
        })
    }

    /// Adds to a hash what differs between identities.
    pub(crate) fn hash(&self, hash: &mut Sha256) {
        let (id, installation);
        let parts = match self {
            Self::GitHubApp {
                id: app,
                installation: of,
                key,
                api,
            } => {
                (id, installation) = (app.to_string(), of.to_string());
                ["github", &id, &installation, key.expose(), api]
            }
            Self::Google(key) => ["google", key.expose(), "", "", ""],
            Self::AzureWorkload => ["workload", "", "", "", ""],
            Self::AzurePrincipal {
                tenant,
                client,
                secret,
                authority,
            } => ["principal", tenant, client, secret.expose(), authority],
        };
        for part in parts {
            hash.update(part.len().to_le_bytes());
            hash.update(part);
        }
    }
}

/// What a repository is asked with.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Login {
    Password { username: String, password: Secret },
    Bearer(Secret),
}

struct Token {
    login: Login,
    until: Instant,
}

impl Token {
    /// `seconds`: how long it is good from now on, if that was told.
    fn new(login: Login, seconds: Option<u64>) -> Self {
        let lifetime = seconds.map_or(LIFETIME, Duration::from_secs);
        Self {
            login,
            until: Instant::now() + lifetime.saturating_sub(MARGIN),
        }
    }
}

type Slot = Arc<tokio::sync::Mutex<Option<Token>>>;

/// The tokens of all repositories.
pub(crate) struct Tokens {
    clients: Clients,
    workload: Option<Workload>,
    slots: moka::sync::Cache<[u8; 32], Slot>,
}

impl Tokens {
    pub fn new(timeout: Duration, common: Arc<Common>, workload: Option<Workload>) -> Self {
        Self {
            // A key or an assertion that was sent to one server is not sent to another.
            clients: Clients::new(timeout, common, 0),
            workload,
            slots: moka::sync::Cache::new(MOST),
        }
    }

    /// The access with the token of its identity; the access itself if it has none.
    ///
    /// # Errors
    /// [`RepoError::NoToken`] when the identity's server refuses it.
    pub async fn signed_in(&self, access: &RepoAccess) -> Result<RepoAccess, RepoError> {
        let Some(identity) = &access.identity else {
            return Ok(access.clone());
        };
        // Before a token that is kept: it is the same for all hosts.
        if *identity == Identity::AzureWorkload {
            self.workload_for(access)?;
        }
        let slot = self.slots.get_with(key(identity, access), Slot::default);
        // Whoever comes meanwhile waits for the same token.
        let mut slot = slot.lock().await;
        let login = match slot.as_ref().filter(|token| token.until > Instant::now()) {
            Some(token) => token.login.clone(),
            None => {
                *slot = None;
                let token = self.fetch(identity, access).await?;
                let login = token.login.clone();
                *slot = Some(token);
                login
            }
        };
        let mut access = access.clone();
        match login {
            Login::Password { username, password } => {
                (access.username, access.password) = (username, password);
            }
            Login::Bearer(token) => access.bearer_token = token,
        }
        Ok(access)
    }

    /// Forgets the token of an access, because a repository refused it: it may have been revoked.
    pub fn refused(&self, access: &RepoAccess) {
        if let Some(identity) = &access.identity {
            self.slots.invalidate(&key(identity, access));
        }
    }

    async fn fetch(&self, identity: &Identity, access: &RepoAccess) -> Result<Token, RepoError> {
        match identity {
            Identity::GitHubApp {
                id,
                installation,
                key,
                api,
            } => {
                let app = github::App {
                    id: *id,
                    installation: *installation,
                    key,
                    api,
                };
                self.github(access, &app).await
            }
            Identity::Google(key) => self.google(access, key).await,
            Identity::AzureWorkload => self.azure_workload(access).await,
            Identity::AzurePrincipal {
                tenant,
                client,
                secret,
                authority,
            } => {
                let directory = azure::Directory { authority, tenant };
                self.azure_principal(access, &directory, client, secret)
                    .await
            }
        }
    }
}

/// Whose token: repositories of one owner share that of an App, and all others that of an identity.
fn key(identity: &Identity, access: &RepoAccess) -> [u8; 32] {
    let mut hash = Sha256::new();
    identity.hash(&mut hash);
    hash.update(&access.proxy);
    if let Identity::GitHubApp {
        installation: 0, ..
    } = identity
    {
        hash.update(github::owner(&access.url).unwrap_or_default());
    }
    hash.finalize().into()
}

fn refused(access: &RepoAccess, reason: impl Into<String>) -> RepoError {
    RepoError::NoToken {
        url: shown_url(&access.url),
        reason: reason.into(),
        retryable: false,
    }
}
