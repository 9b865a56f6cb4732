//! Flags for a controller whose manifests are rendered by a repo-server, with Argo CD's names and
//! variables.

use anyhow::Context;
use clap::Args;
use std::{env, path::PathBuf, time::Duration};
use tiphys_repo::{RepoServer, RepoServerOptions};

/// The folder in upstream Argo CD's Pods with the certificates for `--repo-server-strict-tls`, in
/// one of these subfolders.
const CONFIG: &str = "/app/config";
const FOLDERS: [&str; 2] = ["controller/tls", "reposerver/tls"];

#[derive(Args, Debug)]
pub struct RepoServerArgs {
    /// Repo-server (host:port) that renders manifests for the controller, Argo CD's or one like it
    /// [default: render in this process]
    #[arg(
        long,
        value_name = "ADDRESS",
        env = "ARGOCD_APPLICATION_CONTROLLER_REPO_SERVER"
    )]
    repo_server: Option<String>,
    /// Longest time for one call to the repo-server, in seconds; 0 means no limit
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 60,
        env = "ARGOCD_APPLICATION_CONTROLLER_REPO_SERVER_TIMEOUT_SECONDS"
    )]
    repo_server_timeout_seconds: u64,
    /// Speak to the repo-server without TLS
    #[arg(long, env = "ARGOCD_APPLICATION_CONTROLLER_REPO_SERVER_PLAINTEXT")]
    repo_server_plaintext: bool,
    /// Check the repo-server's certificate against tls.crt and ca.crt in /app/config/controller/tls
    /// or /app/config/reposerver/tls
    #[arg(long, env = "ARGOCD_APPLICATION_CONTROLLER_REPO_SERVER_STRICT_TLS")]
    repo_server_strict_tls: bool,
    /// Check the repo-server's certificate against those of a file
    #[arg(
        long,
        value_name = "FILE",
        env = "ARGOCD_APPLICATION_CONTROLLER_REPO_SERVER_CA_CERT_PATH"
    )]
    repo_server_ca_cert_path: Option<PathBuf>,
    /// Certificate to show to the repo-server; left out when the file is not there
    #[arg(
        long,
        value_name = "FILE",
        default_value = "/app/config/reposerver/mtls/client.crt",
        env = "ARGOCD_APPLICATION_CONTROLLER_REPO_SERVER_CLIENT_CERT_PATH"
    )]
    repo_server_client_cert_path: PathBuf,
    /// Key of that certificate
    #[arg(
        long,
        value_name = "FILE",
        default_value = "/app/config/reposerver/mtls/client.key",
        env = "ARGOCD_APPLICATION_CONTROLLER_REPO_SERVER_CLIENT_CERT_KEY_PATH"
    )]
    repo_server_client_cert_key_path: PathBuf,
}

impl RepoServerArgs {
    /// Does not connect yet.
    pub fn client(&self) -> anyhow::Result<Option<RepoServer>> {
        let Some(address) = self.repo_server.clone().filter(|a| !a.is_empty()) else {
            return Ok(None);
        };
        let options = RepoServerOptions {
            address,
            timeout: Duration::from_secs(self.repo_server_timeout_seconds),
            plaintext: self.repo_server_plaintext,
            trusted: self.trusted()?,
            identity: Some((
                self.repo_server_client_cert_path.clone(),
                self.repo_server_client_cert_key_path.clone(),
            )),
        };
        Ok(Some(RepoServer::new(options)?))
    }

    fn trusted(&self) -> anyhow::Result<Vec<PathBuf>> {
        if let Some(path) = &self.repo_server_ca_cert_path {
            return Ok(vec![path.clone()]);
        }
        if !self.repo_server_strict_tls {
            return Ok(Vec::new());
        }
        let config =
            PathBuf::from(env::var("ARGOCD_APP_CONF_PATH").unwrap_or_else(|_| CONFIG.to_owned()));
        let there = |folder: &str| {
            ["tls.crt", "ca.crt"]
                .map(|name| config.join(folder).join(name))
                .into_iter()
                .filter(|path| path.exists())
                .collect()
        };
        let found = FOLDERS
            .map(there)
            .into_iter()
            .find(|files: &Vec<PathBuf>| !files.is_empty());
        found.with_context(|| {
            let folders = FOLDERS.map(|folder| config.join(folder).display().to_string()).join(" or ");
            format!(
                "--repo-server-strict-tls: there is neither tls.crt nor ca.crt in {folders}; name a file with --repo-server-ca-cert-path"
            )
        })
    }
}
