//! Access to a repository: its URL and credentials.

use crate::{secret::Secret, tokens::Identity};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use tiphys_api::{
    repo_url::{Form, RepoUrl},
    repository::Repository,
};

/// A repository and the credentials for it. Printing it shows no secret.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RepoAccess {
    /// https://, http://, ssh://, user@host:path, file:// or an absolute path; for OCI, oci:// or
    /// a registry without a scheme. User info in it counts as credentials.
    pub url: String,
    pub username: String,
    pub password: Secret,
    pub bearer_token: Secret,
    /// The whole value of the Authorization header for http and https, in place of the above.
    pub authorization: Secret,
    /// PEM text of the ssh key.
    pub ssh_private_key: Secret,
    /// Where a token for Git over https comes from, in place of the above.
    pub identity: Option<Identity>,
    /// The known_hosts text that ssh host keys are checked against; empty means the system's files.
    pub known_hosts: String,
    /// PEM text of a client certificate and its key for https.
    pub tls_client_cert: String,
    pub tls_client_key: Secret,
    /// PEM text of certificate authorities to trust in addition to the system's.
    pub ca_data: String,
    /// Skip the verification of TLS certificates and of ssh host keys.
    pub insecure: bool,
    /// Skip only the verification of ssh host keys.
    pub insecure_ignore_host_key: bool,
    /// Talk to an OCI registry over http.
    pub plain_http: bool,
    /// Download the files that commits point to from the repository's Git LFS server.
    pub lfs: bool,
    /// Proxy URL for https and http; empty means none.
    pub proxy: String,
    /// Hosts, domains and address ranges that are reached without the proxy, separated by commas.
    pub no_proxy: String,
    /// The project that the access is for: connections are shared fairly between projects. It
    /// grants no access.
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

    /// A repository from the settings, for a project.
    pub fn new(repository: &Repository, project: &str, trust: Trust<'_>) -> Self {
        Self {
            known_hosts: trust.known_hosts.to_owned(),
            ca_data: trust.authorities(&repository.repo).to_owned(),
            project: project.to_owned(),
            ..Self::from(repository)
        }
    }

    /// Whether it differs from public access.
    pub fn has_credentials(&self) -> bool {
        !(self.username.is_empty()
            && self.password.is_empty()
            && self.bearer_token.is_empty()
            && self.authorization.is_empty()
            && self.ssh_private_key.is_empty()
            && self.tls_client_cert.is_empty()
            && self.identity.is_none())
    }

    /// A hash that differs for different credentials. Never shown.
    pub(crate) fn fingerprint(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        for part in [
            self.url.as_str(),
            &self.username,
            self.password.expose(),
            self.bearer_token.expose(),
            self.authorization.expose(),
            self.ssh_private_key.expose(),
            &self.known_hosts,
            &self.tls_client_cert,
            self.tls_client_key.expose(),
            &self.ca_data,
            &self.proxy,
            &self.no_proxy,
        ] {
            hash.update(part.len().to_le_bytes());
            hash.update(part);
        }
        if let Some(identity) = &self.identity {
            identity.hash(&mut hash);
        }
        hash.update([
            u8::from(self.insecure),
            u8::from(self.insecure_ignore_host_key),
            u8::from(self.plain_http),
            u8::from(self.lfs),
        ]);
        hash.finalize().into()
    }
}

/// The servers that an installation trusts (`argocd-ssh-known-hosts-cm` and `argocd-tls-certs-cm`).
#[derive(Clone, Copy, Debug)]
pub struct Trust<'a> {
    /// As in a known_hosts file.
    pub known_hosts: &'a str,
    /// PEM text of certificate authorities, by host name.
    pub certificates: &'a BTreeMap<String, String>,
}

impl<'a> Trust<'a> {
    /// The authorities for the host of a URL; an entry for host and port takes precedence. Empty:
    /// the system's.
    fn authorities(&self, url: &str) -> &'a str {
        let is_registry = |url: &RepoUrl| match url.form {
            Form::Bare => true,
            // `host:5000`, which could be the path `5000` on a host as well.
            Form::Scp => url.user.is_empty() && url.path.bytes().all(|b| b.is_ascii_digit()),
            _ => false,
        };
        let parsed = RepoUrl::parse(url).and_then(|parsed| {
            if is_registry(&parsed) {
                RepoUrl::parse(&format!("oci://{url}"))
            } else {
                Ok(parsed)
            }
        });
        let Ok(url) = parsed else {
            return "";
        };
        let with_port = url
            .port
            .and_then(|port| self.certificates.get(&format!("{}:{port}", url.host)));
        with_port
            .or_else(|| self.certificates.get(&url.host))
            .map_or("", String::as_str)
    }
}

impl From<&Repository> for RepoAccess {
    fn from(repo: &Repository) -> Self {
        Self {
            url: repo.repo.clone(),
            username: repo.username.clone(),
            password: Secret::new(&repo.password),
            bearer_token: Secret::new(&repo.bearer_token),
            authorization: Secret::default(),
            ssh_private_key: Secret::new(&repo.ssh_private_key),
            identity: Identity::of(repo),
            known_hosts: String::new(),
            tls_client_cert: repo.tls_client_cert_data.clone(),
            tls_client_key: Secret::new(&repo.tls_client_cert_key),
            ca_data: String::new(),
            insecure: repo.insecure,
            insecure_ignore_host_key: repo.insecure_ignore_host_key,
            plain_http: repo.insecure_oci_force_http,
            lfs: repo.enable_lfs,
            proxy: repo.proxy.clone(),
            no_proxy: repo.no_proxy.clone(),
            project: String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_trusted_whatever_else_its_address_names() {
        let certificates = BTreeMap::from([
            ("git.example.com".to_owned(), "by host".to_owned()),
            ("git.example.com:8443".to_owned(), "by port".to_owned()),
        ]);
        let trust = Trust {
            known_hosts: "keys",
            certificates: &certificates,
        };
        for (url, authorities) in [
            ("https://git.example.com/a.git", "by host"),
            ("https://GIT.example.com/a.git", "by host"),
            ("https://git.example.com:443/a.git", "by host"),
            ("https://git.example.com:8443/a.git", "by port"),
            ("https://user:pass@git.example.com:8443/a.git", "by port"),
            ("https://user:p%40ss@git.example.com/a.git", "by host"),
            ("https://git.example.com.evil.org/a.git", ""),
            ("https://git.example.com@evil.org/a.git", ""),
            ("https://evil.org/git.example.com", ""),
            ("/srv/a.git", ""),
            ("oci://git.example.com/charts", "by host"),
            ("git.example.com/charts", "by host"),
            ("git.example.com:8443/charts", "by port"),
            ("git.example.com:8443", "by port"),
            ("git.example.com.evil.org/charts", ""),
        ] {
            let repository = Repository {
                repo: url.to_owned(),
                ..Repository::default()
            };
            let access = RepoAccess::new(&repository, "p", trust);
            assert_eq!(access.ca_data, authorities, "{url}");
            assert_eq!(
                (access.known_hosts.as_str(), access.project.as_str()),
                ("keys", "p")
            );
        }
    }
}
