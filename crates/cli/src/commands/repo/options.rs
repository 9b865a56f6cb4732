//! What `repo add` and `admin repo generate-spec` say of a repository. Main type: [`RepoOptions`].

use super::CredentialOptions;
use crate::client::Failure;
use tiphys_api::repository::Repository;

#[derive(clap::Args)]
pub struct RepoOptions {
    /// URL of the repository
    repo: String,
    /// Name of the repository, mandatory for repositories of type helm
    #[arg(long)]
    name: Option<String>,
    /// Project of the repository
    #[arg(long)]
    project: Option<String>,
    #[command(flatten)]
    credentials: CredentialOptions,
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
    /// Use proxy to access repository
    #[arg(long)]
    proxy: Option<String>,
    /// Don't access these targets via proxy
    #[arg(long)]
    no_proxy: Option<String>,
    /// Whether events of the repository do not prepare manifests
    #[arg(long)]
    webhook_manifest_cache_warm_disabled: bool,
    /// How many commits to fetch; 0 for all
    #[arg(long, default_value_t = 0)]
    depth: i64,
}

impl RepoOptions {
    /// Flags that exclude each other; checked before any request.
    pub(in crate::commands) fn check(&self) -> Result<(), Failure> {
        self.credentials.check_files(&self.repo)?;
        if self.credentials.kind == "helm" && self.name.is_none() {
            return Err(Failure::error(
                "Must specify --name for repos of type 'helm'",
            ));
        }
        self.credentials.check_token(&self.repo)
    }

    /// The repository; asks for a password that is missing.
    pub(in crate::commands) fn repository(self) -> Result<Repository, Failure> {
        let creds = self.credentials.creds(self.repo.clone())?;
        let mut repository = Repository {
            repo: self.repo,
            name: self.name.unwrap_or_default(),
            project: self.project.unwrap_or_default(),
            insecure_ignore_host_key: self.insecure_ignore_host_key,
            insecure: self.insecure_skip_server_verification,
            enable_lfs: self.enable_lfs,
            proxy: self.proxy.unwrap_or_default(),
            no_proxy: self.no_proxy.unwrap_or_default(),
            webhook_manifest_cache_warm_disabled: self.webhook_manifest_cache_warm_disabled,
            depth: self.depth,
            ..Default::default()
        };
        repository.inherit(&creds);
        // They are its own.
        repository.inherited_creds = false;
        Ok(repository)
    }
}
