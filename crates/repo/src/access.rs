//! How to reach a repository: its URL and what proves who we are.

use crate::secret::Secret;
use sha2::{Digest, Sha256};
use tiphys_api::repository::Repository;

/// A repository and the credentials for it. Printing it shows no secret.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RepoAccess {
    /// https://, http://, ssh://, user@host:path, file:// or an absolute path. Userinfo in it
    /// counts as credentials.
    pub url: String,
    pub username: String,
    pub password: Secret,
    pub bearer_token: Secret,
    /// PEM text of the key for ssh.
    pub ssh_private_key: Secret,
    /// The known_hosts text that ssh host keys are checked against; empty means the files of the
    /// system.
    pub known_hosts: String,
    /// PEM text of a client certificate and its key for https.
    pub tls_client_cert: String,
    pub tls_client_key: Secret,
    /// PEM text of certificate authorities to trust besides those of the system.
    pub ca_data: String,
    /// Skip the check of TLS certificates and of ssh host keys.
    pub insecure: bool,
    /// Skip the check of ssh host keys only.
    pub insecure_ignore_host_key: bool,
    /// Proxy URL for https and http; empty means none.
    pub proxy: String,
    /// On whose behalf: contacts are shared fairly between projects. It proves nothing.
    pub project: String,
}

impl RepoAccess {
    /// A repository that needs no credentials.
    pub fn public(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            ..Self::default()
        }
    }

    /// Separates what two different credentials may see. Never shown.
    pub(crate) fn fingerprint(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        for part in [
            self.url.as_str(),
            &self.username,
            self.password.expose(),
            self.bearer_token.expose(),
            self.ssh_private_key.expose(),
            &self.known_hosts,
            &self.tls_client_cert,
            self.tls_client_key.expose(),
            &self.ca_data,
            &self.proxy,
        ] {
            hash.update(part.len().to_le_bytes());
            hash.update(part);
        }
        hash.update([
            u8::from(self.insecure),
            u8::from(self.insecure_ignore_host_key),
        ]);
        hash.finalize().into()
    }
}

impl From<&Repository> for RepoAccess {
    fn from(repo: &Repository) -> Self {
        Self {
            url: repo.repo.clone(),
            username: repo.username.clone(),
            password: Secret::new(&repo.password),
            bearer_token: Secret::new(&repo.bearer_token),
            ssh_private_key: Secret::new(&repo.ssh_private_key),
            known_hosts: String::new(),
            tls_client_cert: repo.tls_client_cert_data.clone(),
            tls_client_key: Secret::new(&repo.tls_client_cert_key),
            ca_data: String::new(),
            insecure: repo.insecure,
            insecure_ignore_host_key: repo.insecure_ignore_host_key,
            proxy: repo.proxy.clone(),
            project: String::new(),
        }
    }
}
