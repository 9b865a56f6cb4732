//! How to log in to a repository, as `repo add` and `repocreds add` say it. Main type:
//! [`CredentialOptions`].

use crate::{
    client::{Failure, exit},
    commands::prompt,
};
use std::{fs, path::PathBuf};
use tiphys_api::repository::RepoCreds;

#[derive(clap::Args)]
pub struct CredentialOptions {
    /// Type of the repository, "git", "oci" or "helm"
    #[arg(long = "type", default_value = "git")]
    pub kind: String,
    /// Username to the repository
    #[arg(long)]
    username: Option<String>,
    /// Password to the repository
    #[arg(long)]
    password: Option<String>,
    /// Bearer token to the Git repository
    #[arg(long)]
    bearer_token: Option<String>,
    /// Path to the private ssh key (e.g. ~/.ssh/id_rsa)
    #[arg(long, value_name = "FILE")]
    ssh_private_key_path: Option<PathBuf>,
    /// Path to the TLS client certificate (PEM)
    #[arg(long, value_name = "FILE")]
    tls_client_cert_path: Option<PathBuf>,
    /// Path to the TLS client certificate's key (PEM)
    #[arg(long, value_name = "FILE")]
    tls_client_cert_key_path: Option<PathBuf>,
    /// Enable helm-oci (only valid for helm type repositories)
    #[arg(long)]
    pub enable_oci: bool,
    /// Use http when accessing an OCI repository
    #[arg(long)]
    insecure_oci_force_http: bool,
    /// Id of the GitHub Application
    #[arg(long, default_value_t = 0, hide_default_value = true)]
    github_app_id: i64,
    /// Installation id of the GitHub Application
    #[arg(long, default_value_t = 0, hide_default_value = true)]
    github_app_installation_id: i64,
    /// Private key of the GitHub Application
    #[arg(long, value_name = "FILE")]
    github_app_private_key_path: Option<PathBuf>,
    /// Base url to use when using GitHub Enterprise
    #[arg(long, value_name = "URL")]
    github_app_enterprise_base_url: Option<String>,
    /// Service account key for the Google Cloud Platform
    #[arg(long, value_name = "FILE")]
    gcp_service_account_key_path: Option<PathBuf>,
    /// Force use of basic auth when connecting repository via HTTP
    #[arg(long)]
    force_http_basic_auth: bool,
    /// Whether to use azure workload identity for authentication
    #[arg(long)]
    use_azure_workload_identity: bool,
    /// Tenant id of the Azure Service Principal
    #[arg(long, value_name = "ID")]
    azure_service_principal_tenant_id: Option<String>,
    /// Client id of the Azure Service Principal
    #[arg(long, value_name = "ID")]
    azure_service_principal_client_id: Option<String>,
    /// Client secret of the Azure Service Principal
    #[arg(long, value_name = "TEXT")]
    azure_service_principal_client_secret: Option<String>,
    /// Active Directory endpoint when not using default Azure public cloud
    #[arg(long, value_name = "URL")]
    azure_active_directory_endpoint: Option<String>,
}

impl CredentialOptions {
    /// Flags that the URL excludes, and files that need each other; before any file is read.
    pub fn check_files(&self, url: &str) -> Result<(), Failure> {
        let only_https = [
            (&self.tls_client_cert_path, "--tls-client-cert-path"),
            (
                &self.github_app_private_key_path,
                "--github-app-private-key-path",
            ),
            (
                &self.gcp_service_account_key_path,
                "--gcp-service-account-key-path",
            ),
        ];
        if self.ssh_private_key_path.is_some() && !is_ssh(url) {
            return Err(Failure::error(
                "--ssh-private-key-path is only supported for SSH repositories.",
            ));
        }
        if self.tls_client_cert_path.is_some() != self.tls_client_cert_key_path.is_some() {
            return Err(Failure::error(
                "--tls-client-cert-path and --tls-client-cert-key-path must be specified together",
            ));
        }
        let wrong = |(path, _): &&(&Option<PathBuf>, _)| path.is_some() && !is_https(url);
        only_https.iter().find(wrong).map_or(Ok(()), |(_, flag)| {
            Err(Failure::error(format!(
                "{flag} is only supported for HTTPS repositories"
            )))
        })
    }

    /// What does not go with a bearer token.
    pub fn check_token(&self, url: &str) -> Result<(), Failure> {
        if self.bearer_token.as_deref().is_none_or(str::is_empty) {
            return Ok(());
        }
        let refusal = if self.password.as_deref().is_some_and(|p| !p.is_empty()) {
            "only --bearer-token or --password is allowed, not both"
        } else if self.kind != "git" {
            "--bearer-token is only supported for Git repositories"
        } else if !is_https(url) {
            "--bearer-token is only supported for HTTPS repositories"
        } else {
            return Ok(());
        };
        Err(Failure::error(refusal))
    }

    pub fn forces_http_without_oci(&self) -> bool {
        let is_oci = self.kind == "oci" || (self.kind == "helm" && self.enable_oci);
        self.insecure_oci_force_http && !is_oci
    }

    /// The credentials for a URL; asks for a password that is missing.
    pub fn creds(self, url: String) -> Result<RepoCreds, Failure> {
        let username = self.username.unwrap_or_default();
        let mut password = self.password.unwrap_or_default();
        if !username.is_empty() && password.is_empty() {
            password = prompt::password()?;
        }
        // With `argocd`, this file has another exit code than the others.
        let ssh_private_key = file(self.ssh_private_key_path.as_ref());
        Ok(RepoCreds {
            ssh_private_key: ssh_private_key.map_err(|e| e.with_code(exit::FAILED))?,
            tls_client_cert_data: file(self.tls_client_cert_path.as_ref())?,
            tls_client_cert_key: file(self.tls_client_cert_key_path.as_ref())?,
            github_app_private_key: file(self.github_app_private_key_path.as_ref())?,
            gcp_service_account_key: file(self.gcp_service_account_key_path.as_ref())?,
            url,
            username,
            password,
            bearer_token: self.bearer_token.unwrap_or_default(),
            type_: self.kind,
            enable_oci: self.enable_oci,
            insecure_oci_force_http: self.insecure_oci_force_http,
            github_app_id: self.github_app_id,
            github_app_installation_id: self.github_app_installation_id,
            github_app_enterprise_base_url: self.github_app_enterprise_base_url.unwrap_or_default(),
            force_http_basic_auth: self.force_http_basic_auth,
            use_azure_workload_identity: self.use_azure_workload_identity,
            azure_service_principal_tenant_id: self
                .azure_service_principal_tenant_id
                .unwrap_or_default(),
            azure_service_principal_client_id: self
                .azure_service_principal_client_id
                .unwrap_or_default(),
            azure_service_principal_client_secret: self
                .azure_service_principal_client_secret
                .unwrap_or_default(),
            azure_active_directory_endpoint: self
                .azure_active_directory_endpoint
                .unwrap_or_default(),
            ..Default::default()
        })
    }
}

fn is_https(url: &str) -> bool {
    url.get(..8)
        .is_some_and(|scheme| scheme.eq_ignore_ascii_case("https://"))
}

/// `ssh://…` or `user@host:path`.
pub(super) fn is_ssh(url: &str) -> bool {
    url.starts_with("ssh://")
        || (!url.contains("://")
            && url
                .split_once('@')
                .is_some_and(|(_, rest)| rest.contains(':')))
}

fn file(path: Option<&PathBuf>) -> Result<String, Failure> {
    let Some(path) = path else {
        return Ok(String::new());
    };
    fs::read_to_string(path).map_err(|e| Failure::file(path, &e))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        options: CredentialOptions,
    }

    #[test]
    fn a_key_that_cannot_be_read_ends_with_argo_cds_code() {
        for (flag, code) in [
            ("--ssh-private-key-path", exit::FAILED),
            ("--github-app-private-key-path", exit::ERROR),
        ] {
            let program = Program::try_parse_from(["repo", flag, "/none"]).expect("a flag");
            let e = program.options.creds("https://a.example".into());
            let e = e.expect_err("there is no such file");
            let said = (e.code, e.message.as_str());
            assert_eq!(said, (code, "open /none: no such file or directory"));
        }
    }
}
