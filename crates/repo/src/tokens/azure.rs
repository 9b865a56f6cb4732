//! Tokens of Microsoft Entra for Azure DevOps: of a principal with a secret, or of the Pod that the
//! program runs in.

use super::{
    Login, Token, Tokens,
    ask::{Content, Issued},
    refused,
};
use crate::{RepoAccess, RepoError, ground::blocking, secret::Secret};
use reqwest::Method;
use std::{
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
};
use tiphys_api::repo_url::{Form, RepoUrl};

const PUBLIC: &str = "https://login.microsoftonline.com";
/// Azure DevOps.
const SCOPE: &str = "499b84ac-1321-427f-aa17-267ca6975798/.default";
const ASSERTION: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
/// Where the tokens of a workload are for. Its identity is that of the installation, so it must not
/// be whoever writes the URL of a repository who decides which server gets one.
const HOSTS: [&str; 2] = ["dev.azure.com", ".visualstudio.com"];
/// Longest token that Kubernetes writes for a Pod.
const MAX_TOKEN: u64 = 64 * 1024;

/// The identity that Azure's webhook gives a Pod by variables and a mounted token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workload {
    pub tenant: String,
    pub client: String,
    pub token_file: PathBuf,
    /// Empty: that of the public cloud.
    pub authority: String,
    /// Further hosts that may get its tokens; with a dot at the start: those below a domain.
    pub hosts: Vec<String>,
}

impl Workload {
    /// From `AZURE_TENANT_ID`, `AZURE_CLIENT_ID`, `AZURE_FEDERATED_TOKEN_FILE` and, where it is
    /// set, `AZURE_AUTHORITY_HOST`. `TIPHYS_AZURE_HOSTS` has further hosts, separated by commas.
    pub fn from_environment() -> Option<Self> {
        let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        Some(Self {
            tenant: variable("AZURE_TENANT_ID")?,
            client: variable("AZURE_CLIENT_ID")?,
            token_file: variable("AZURE_FEDERATED_TOKEN_FILE")?.into(),
            authority: variable("AZURE_AUTHORITY_HOST").unwrap_or_default(),
            hosts: variable("TIPHYS_AZURE_HOSTS")
                .unwrap_or_default()
                .split(',')
                .map(|host| host.trim().to_ascii_lowercase())
                .filter(|host| !host.is_empty())
                .collect(),
        })
    }
}

impl Workload {
    fn serves(&self, url: &str) -> bool {
        let Ok(url) = RepoUrl::parse(url) else {
            return false;
        };
        let mut hosts = HOSTS
            .into_iter()
            .chain(self.hosts.iter().map(String::as_str));
        url.form == Form::Https && hosts.any(|host| is_of(&url.host, host))
            || url.form == Form::Http && self.hosts.contains(&url.host)
    }
}

fn is_of(host: &str, named: &str) -> bool {
    host == named || (named.starts_with('.') && host.ends_with(named))
}

pub(super) struct Directory<'a> {
    pub authority: &'a str,
    pub tenant: &'a str,
}

impl Directory<'_> {
    fn url(&self) -> String {
        let authority = if self.authority.is_empty() {
            PUBLIC
        } else {
            self.authority
        };
        let authority = authority.trim_end_matches('/');
        format!("{authority}/{}/oauth2/v2.0/token", self.tenant)
    }
}

impl Tokens {
    pub(super) async fn azure_principal(
        &self,
        access: &RepoAccess,
        directory: &Directory<'_>,
        client: &str,
        secret: &Secret,
    ) -> Result<Token, RepoError> {
        let proof = [("client_secret", secret.expose())];
        self.azure(access, directory, client, &proof).await
    }

    /// The workload, if a repository may have its token.
    pub(super) fn workload_for(&self, access: &RepoAccess) -> Result<&Workload, RepoError> {
        let workload = self.workload.as_ref().ok_or_else(|| {
            refused(
                access,
                "useAzureWorkloadIdentity needs AZURE_TENANT_ID, AZURE_CLIENT_ID and \
                 AZURE_FEDERATED_TOKEN_FILE in the environment, which Azure's webhook sets in Pods \
                 that are labelled azure.workload.identity/use: \"true\"",
            )
        })?;
        if workload.serves(&access.url) {
            return Ok(workload);
        }
        Err(refused(
            access,
            "the token of a workload is only sent to Azure DevOps, and to the hosts in \
             TIPHYS_AZURE_HOSTS",
        ))
    }

    pub(super) async fn azure_workload(&self, access: &RepoAccess) -> Result<Token, RepoError> {
        let workload = self.workload_for(access)?;
        // Read each time: Kubernetes replaces it.
        let file = workload.token_file.display();
        let path = workload.token_file.clone();
        let assertion = blocking(move || Ok(content(&path)))
            .await?
            .map_err(|e| refused(access, format!("{file}: {e}")))?;
        let directory = Directory {
            authority: &workload.authority,
            tenant: &workload.tenant,
        };
        let proof = [
            ("client_assertion_type", ASSERTION),
            ("client_assertion", assertion.trim()),
        ];
        self.azure(access, &directory, &workload.client, &proof)
            .await
    }

    async fn azure(
        &self,
        access: &RepoAccess,
        directory: &Directory<'_>,
        client: &str,
        proof: &[(&str, &str)],
    ) -> Result<Token, RepoError> {
        let mut form = vec![
            ("grant_type", "client_credentials"),
            ("client_id", client),
            ("scope", SCOPE),
        ];
        form.extend(proof);
        let (issued, _): (Issued, _) = self
            .ask(
                access,
                Method::POST,
                &directory.url(),
                &[],
                Content::Form(&form),
            )
            .await?;
        let lifetime = issued.lifetime();
        let token = Secret::from(issued.access_token);
        Ok(Token::new(Login::Bearer(token), lifetime))
    }
}

fn content(file: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(file)?
        .take(MAX_TOKEN)
        .read_to_string(&mut text)?;
    Ok(text)
}
