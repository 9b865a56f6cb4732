//! What `repo add` and `admin repo generate-spec` say of a repository. Main type: [`RepoOptions`].

use crate::{client::Failure, commands::prompt};
use std::{fs, path::PathBuf};
use tiphys_api::repository::Repository;

#[derive(clap::Args)]
pub struct RepoOptions {
    /// URL of the repository
    repo: String,
    /// Type of the repository, "git", "oci" or "helm"
    #[arg(long = "type", default_value = "git")]
    kind: String,
    /// Name of the repository, mandatory for repositories of type helm
    #[arg(long)]
    name: Option<String>,
    /// Project of the repository
    #[arg(long)]
    project: Option<String>,
    /// Username to the repository
    #[arg(long)]
    username: Option<String>,
    /// Password to the repository
    #[arg(long)]
    password: Option<String>,
    /// Bearer token to the repository
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
    /// Disables SSH strict host key checking (deprecated, use --insecure-skip-server-verification
    /// instead)
    #[arg(long)]
    insecure_ignore_host_key: bool,
    /// Disables server certificate and host key checks
    #[arg(long)]
    insecure_skip_server_verification: bool,
    /// Enable git-lfs on this repository
    #[arg(long)]
    enable_lfs: bool,
    /// Enable helm-oci (only valid for helm type repositories)
    #[arg(long)]
    enable_oci: bool,
    /// Use proxy to access repository
    #[arg(long)]
    proxy: Option<String>,
    /// Don't access these targets via proxy
    #[arg(long)]
    no_proxy: Option<String>,
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
    /// Whether events of the repository do not prepare manifests
    #[arg(long)]
    webhook_manifest_cache_warm_disabled: bool,
    /// How many commits to fetch; 0 for all
    #[arg(long, default_value_t = 0)]
    depth: i64,
    /// Use http when accessing an OCI repository
    #[arg(long)]
    insecure_oci_force_http: bool,
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

pub(in crate::commands) fn is_https(url: &str) -> bool {
    url.get(..8)
        .is_some_and(|scheme| scheme.eq_ignore_ascii_case("https://"))
}

/// `ssh://…` or `user@host:path`.
pub(in crate::commands) fn is_ssh(url: &str) -> bool {
    url.starts_with("ssh://")
        || (!url.contains("://")
            && url
                .split_once('@')
                .is_some_and(|(_, rest)| rest.contains(':')))
}

pub(in crate::commands) fn file(path: Option<&PathBuf>) -> Result<String, Failure> {
    let Some(path) = path else {
        return Ok(String::new());
    };
    fs::read_to_string(path).map_err(|e| Failure::file(path, &e))
}

impl RepoOptions {
    /// Flags that exclude each other; checked before any request.
    pub(in crate::commands) fn check(&self) -> Result<(), Failure> {
        let is_https = is_https(&self.repo);
        let only_https = [
            (
                self.tls_client_cert_path.is_some(),
                "--tls-client-cert-path",
            ),
            (
                self.github_app_private_key_path.is_some(),
                "--github-app-private-key-path",
            ),
            (
                self.gcp_service_account_key_path.is_some(),
                "--gcp-service-account-key-path",
            ),
            (self.bearer_token.is_some(), "--bearer-token"),
        ];
        let refusal = if self.ssh_private_key_path.is_some() && !is_ssh(&self.repo) {
            Some("--ssh-private-key-path is only supported for SSH repositories.".to_owned())
        } else if self.tls_client_cert_path.is_some() != self.tls_client_cert_key_path.is_some() {
            Some(
                "--tls-client-cert-path and --tls-client-cert-key-path must be specified together"
                    .to_owned(),
            )
        } else if self.kind == "helm" && self.name.is_none() {
            Some("Must specify --name for repos of type 'helm'".to_owned())
        } else if self.bearer_token.is_some() && self.password.is_some() {
            Some("only --bearer-token or --password is allowed, not both".to_owned())
        } else if self.bearer_token.is_some() && self.kind != "git" {
            Some("--bearer-token is only supported for Git repositories".to_owned())
        } else {
            let flag = only_https.iter().find(|(given, _)| *given && !is_https);
            flag.map(|(_, flag)| format!("{flag} is only supported for HTTPS repositories"))
        };
        refusal.map_or(Ok(()), |message| Err(Failure::error(message)))
    }

    /// The repository; asks for a password that is missing.
    pub(in crate::commands) fn repository(self) -> Result<Repository, Failure> {
        let username = self.username.unwrap_or_default();
        let mut password = self.password.unwrap_or_default();
        if !username.is_empty() && password.is_empty() {
            password = prompt::password()?;
        }
        Ok(Repository {
            ssh_private_key: file(self.ssh_private_key_path.as_ref())?,
            tls_client_cert_data: file(self.tls_client_cert_path.as_ref())?,
            tls_client_cert_key: file(self.tls_client_cert_key_path.as_ref())?,
            github_app_private_key: file(self.github_app_private_key_path.as_ref())?,
            gcp_service_account_key: file(self.gcp_service_account_key_path.as_ref())?,
            repo: self.repo,
            username,
            password,
            bearer_token: self.bearer_token.unwrap_or_default(),
            type_: self.kind,
            name: self.name.unwrap_or_default(),
            project: self.project.unwrap_or_default(),
            insecure_ignore_host_key: self.insecure_ignore_host_key,
            insecure: self.insecure_skip_server_verification,
            enable_lfs: self.enable_lfs,
            enable_oci: self.enable_oci,
            proxy: self.proxy.unwrap_or_default(),
            no_proxy: self.no_proxy.unwrap_or_default(),
            github_app_id: self.github_app_id,
            github_app_installation_id: self.github_app_installation_id,
            github_app_enterprise_base_url: self.github_app_enterprise_base_url.unwrap_or_default(),
            force_http_basic_auth: self.force_http_basic_auth,
            webhook_manifest_cache_warm_disabled: self.webhook_manifest_cache_warm_disabled,
            depth: self.depth,
            insecure_oci_force_http: self.insecure_oci_force_http,
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
