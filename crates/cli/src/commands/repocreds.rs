//! `repocreds`: credentials for all repositories below a URL.

use super::{
    connect, list_document, prompt,
    repo::{file, is_https, is_ssh},
};
use crate::{
    client::{ConnectArgs, Failure},
    output::{self, table},
};
use std::path::PathBuf;
use tiphys_api::{
    repository::{RepoCreds, RepoCredsList},
    rpc::repocreds::{
        RepoCredsCreateRequest, RepoCredsDeleteRequest, RepoCredsQuery, RepoCredsResponse,
    },
};

#[derive(clap::Subcommand)]
pub enum RepoCredsCommand {
    /// Add git repository connection parameters
    Add(Box<Add>),
    /// List configured repository credentials
    List {
        /// Output format. One of: json|yaml|wide|url
        #[arg(long, short, default_value = "wide", value_name = "FORMAT")]
        output: String,
    },
    /// Remove repository credentials
    Rm {
        /// URLs of the credentials
        #[arg(required = true, value_name = "CREDSURL")]
        urls: Vec<String>,
    },
}

#[derive(clap::Args)]
pub struct Add {
    /// URL that the repositories begin with
    #[arg(value_name = "REPOURL")]
    url: String,
    /// Type of the repository, "git" or "helm"
    #[arg(long = "type", default_value = "git")]
    kind: String,
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
    /// Path to the TLS client cert (must be PEM format)
    #[arg(long, value_name = "FILE")]
    tls_client_cert_path: Option<PathBuf>,
    /// Path to the TLS client cert's key (must be PEM format)
    #[arg(long, value_name = "FILE")]
    tls_client_cert_key_path: Option<PathBuf>,
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
    /// Override an existing repository with the same name even if the spec differs
    #[arg(long)]
    upsert: bool,
    /// Specifies whether helm-oci support should be enabled for this repo
    #[arg(long)]
    enable_oci: bool,
    /// Use http when accessing an OCI repository
    #[arg(long)]
    insecure_oci_force_http: bool,
    /// Service account key for the Google Cloud Platform
    #[arg(long, value_name = "FILE")]
    gcp_service_account_key_path: Option<PathBuf>,
    /// Whether to force basic auth when connecting via HTTP
    #[arg(long)]
    force_http_basic_auth: bool,
    /// Whether to use azure workload identity for authentication
    #[arg(long)]
    use_azure_workload_identity: bool,
    /// If provided, this URL will be used to connect via proxy
    #[arg(long, value_name = "URL")]
    proxy_url: Option<String>,
    /// Client id of the Azure Service Principal
    #[arg(long, value_name = "ID")]
    azure_service_principal_client_id: Option<String>,
    /// Client secret of the Azure Service Principal
    #[arg(long, value_name = "SECRET")]
    azure_service_principal_client_secret: Option<String>,
    /// Tenant id of the Azure Service Principal
    #[arg(long, value_name = "ID")]
    azure_service_principal_tenant_id: Option<String>,
    /// Active Directory endpoint when not using default Azure public cloud
    #[arg(long, value_name = "URL")]
    azure_active_directory_endpoint: Option<String>,
}

impl RepoCredsCommand {
    pub async fn run(self, args: &ConnectArgs) -> Result<(), Failure> {
        match self {
            Self::Add(add) => add.run(args).await,
            Self::List { output } => {
                let client = connect(args).await?;
                let list: RepoCredsList = client
                    .unary(
                        "/repocreds.RepoCredsService/ListRepositoryCredentials",
                        RepoCredsQuery::default(),
                    )
                    .await?;
                let items = list.items;
                output::print(&match output.as_str() {
                    "url" => items.iter().map(|c| c.url.clone() + "\n").collect(),
                    "wide" | "" => rows(items),
                    other => list_document(&items, other)?,
                });
                Ok(())
            }
            Self::Rm { urls } => {
                let client = connect(args).await?;
                let ask = args.prompts()?;
                for url in urls {
                    let question = format!("Are you sure you want to remove '{url}'? [y/n] ");
                    if ask && !prompt::proceed(&question)? {
                        output::print(&format!("The command to remove '{url}' was cancelled.\n"));
                        continue;
                    }
                    let request = RepoCredsDeleteRequest { url: url.clone() };
                    let _: RepoCredsResponse = client
                        .unary(
                            "/repocreds.RepoCredsService/DeleteRepositoryCredentials",
                            request,
                        )
                        .await?;
                    output::print(&format!("Repository credentials for '{url}' removed\n"));
                }
                Ok(())
            }
        }
    }
}

fn rows(items: Vec<RepoCreds>) -> String {
    let rows = items.into_iter().map(|c| {
        let username = if c.username.is_empty() {
            "-".to_owned()
        } else {
            c.username
        };
        // The API returns neither keys nor certificates, so both are always false.
        let [ssh, tls] = [&c.ssh_private_key, &c.tls_client_cert_data].map(|t| !t.is_empty());
        vec![c.url, username, ssh.to_string(), tls.to_string()]
    });
    table::table(&["URL PATTERN", "USERNAME", "SSH_CREDS", "TLS_CREDS"], rows)
}

impl Add {
    /// Flags that the URL excludes, and files that need each other; before any file is read.
    fn check_files(&self) -> Result<(), Failure> {
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
        if self.ssh_private_key_path.is_some() && !is_ssh(&self.url) {
            return Err(Failure::error(
                "--ssh-private-key-path is only supported for SSH repositories.",
            ));
        }
        if self.tls_client_cert_path.is_some() != self.tls_client_cert_key_path.is_some() {
            return Err(Failure::error(
                "--tls-client-cert-path and --tls-client-cert-key-path must be specified together",
            ));
        }
        for (path, flag) in only_https {
            if path.is_some() && !is_https(&self.url) {
                return Err(Failure::error(format!(
                    "{flag} is only supported for HTTPS repositories"
                )));
            }
        }
        Ok(())
    }

    async fn run(self, args: &ConnectArgs) -> Result<(), Failure> {
        self.check_files()?;
        let upsert = self.upsert;
        let creds = self.creds()?;
        check(&creds)?;
        let client = connect(args).await?;
        let request = RepoCredsCreateRequest {
            creds: Some(creds),
            upsert,
        };
        let created: RepoCreds = client
            .unary(
                "/repocreds.RepoCredsService/CreateRepositoryCredentials",
                request,
            )
            .await?;
        output::print(&format!(
            "Repository credentials for '{}' added\n",
            created.url
        ));
        Ok(())
    }

    fn creds(self) -> Result<RepoCreds, Failure> {
        let username = self.username.unwrap_or_default();
        let mut password = self.password.unwrap_or_default();
        if !username.is_empty() && password.is_empty() {
            password = prompt::password()?;
        }
        Ok(RepoCreds {
            ssh_private_key: file(self.ssh_private_key_path.as_ref())?,
            tls_client_cert_data: file(self.tls_client_cert_path.as_ref())?,
            tls_client_cert_key: file(self.tls_client_cert_key_path.as_ref())?,
            github_app_private_key: file(self.github_app_private_key_path.as_ref())?,
            gcp_service_account_key: file(self.gcp_service_account_key_path.as_ref())?,
            url: self.url,
            username,
            password,
            bearer_token: self.bearer_token.unwrap_or_default(),
            type_: self.kind,
            enable_oci: self.enable_oci,
            insecure_oci_force_http: self.insecure_oci_force_http,
            proxy: self.proxy_url.unwrap_or_default(),
            github_app_id: self.github_app_id,
            github_app_installation_id: self.github_app_installation_id,
            github_app_enterprise_base_url: self.github_app_enterprise_base_url.unwrap_or_default(),
            force_http_basic_auth: self.force_http_basic_auth,
            use_azure_workload_identity: self.use_azure_workload_identity,
            azure_service_principal_client_id: self
                .azure_service_principal_client_id
                .unwrap_or_default(),
            azure_service_principal_client_secret: self
                .azure_service_principal_client_secret
                .unwrap_or_default(),
            azure_service_principal_tenant_id: self
                .azure_service_principal_tenant_id
                .unwrap_or_default(),
            azure_active_directory_endpoint: self
                .azure_active_directory_endpoint
                .unwrap_or_default(),
            ..Default::default()
        })
    }
}

/// What does not go together.
fn check(creds: &RepoCreds) -> Result<(), Failure> {
    let token = !creds.bearer_token.is_empty();
    let is_oci = creds.type_ == "oci" || (creds.type_ == "helm" && creds.enable_oci);
    let refusal = if token && !creds.password.is_empty() {
        "only --bearer-token or --password is allowed, not both"
    } else if token && creds.type_ != "git" {
        "--bearer-token is only supported for Git repositories"
    } else if token && !is_https(&creds.url) {
        "--bearer-token is only supported for HTTPS repositories"
    } else if creds.insecure_oci_force_http && !is_oci {
        "--insecure-oci-force-http requires --type oci or --enable-oci"
    } else {
        return Ok(());
    };
    Err(Failure::error(refusal))
}
