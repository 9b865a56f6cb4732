//! What the services that work with repositories for others have in common: the repo-server and the
//! commit server. Main type: [`GitServiceArgs`].

use super::{
    call_timing::CallTimingArgs, controller::terminated, git::GitArgs, metrics,
    repositories::RepositoryArgs,
};
use anyhow::Context as _;
use clap::Args;
use std::{net::IpAddr, path::PathBuf, sync::Arc};
use tiphys_listen::{Connections, Limits};
use tiphys_repo::{ContactWatch, RepoOptions, Repos};
use tiphys_repo_server::{GitMetrics, Server, TrustPaths};
use tiphys_rpc::Tls;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

#[derive(Args, Debug)]
pub struct GitServiceArgs {
    /// Most megabytes of a message
    #[arg(
        long,
        value_name = "MB",
        default_value_t = 100,
        env = "ARGOCD_GRPC_MAX_SIZE_MB"
    )]
    max_message_mb: u32,
    /// Folder with ssh_known_hosts
    #[arg(
        long = "ssh-dir",
        value_name = "DIR",
        default_value = "/app/config/ssh",
        env = "ARGOCD_SSH_DATA_PATH"
    )]
    ssh: PathBuf,
    /// Folder with certificate authorities, in files with the names of hosts
    #[arg(
        id = "trusted_tls",
        long = "tls-dir",
        value_name = "DIR",
        default_value = "/app/config/tls",
        env = "ARGOCD_TLS_DATA_PATH"
    )]
    authorities: PathBuf,
    #[command(flatten)]
    timing: CallTimingArgs,
    #[command(flatten)]
    repositories: RepositoryArgs,
    #[command(flatten, next_help_heading = "Limits of repositories")]
    git: GitArgs,
}

/// A service, and where it is.
pub struct Service {
    pub name: &'static str,
    pub place: (IpAddr, u16),
    pub tls: Tls,
    pub limits: Limits,
    /// Where its metrics are, and what they say.
    pub metrics: (IpAddr, u16),
    pub text: fn(&Server, &GitMetrics) -> String,
}

impl GitServiceArgs {
    pub fn max_message(&self) -> anyhow::Result<usize> {
        Ok(usize::try_from(self.max_message_mb)?.saturating_mul(1 << 20))
    }

    pub fn trust(&self) -> TrustPaths {
        TrustPaths {
            known_hosts: self.ssh.join("ssh_known_hosts"),
            certificates: self.authorities.clone(),
            ..TrustPaths::default()
        }
    }

    pub fn repo_options(&self) -> RepoOptions {
        self.repositories.options(&self.git)
    }

    /// Runs the server that `make` makes until stopped.
    pub async fn serve(
        &self,
        service: Service,
        options: RepoOptions,
        make: impl FnOnce(Repos) -> anyhow::Result<Server>,
    ) -> anyhow::Result<()> {
        let repositories = self.repositories.folder()?;
        let git = GitMetrics::default();
        let (counted, waited) = (git.clone(), git.clone());
        let contacts = ContactWatch::new(move |contact| counted.add(contact));
        let options = RepoOptions {
            contacts: contacts.with_waits(move |took| waited.waited(took)),
            disk_cache: repositories.disk_cache(&self.git)?,
            ..options
        };
        let repos = Repos::with_options(&repositories.path, options);
        let server = make(repos)?.timing_calls(self.timing.is_on());
        let server = Arc::new(server);
        let Service {
            name,
            place,
            tls,
            limits,
            metrics: metrics_place,
            text,
        } = service;
        let port = place.1;
        let listener = TcpListener::bind(place)
            .await
            .with_context(|| format!("port {port} cannot be opened; choose another with --port"))?;
        // Its health is told until the last call has ended.
        let (stop, ended) = (CancellationToken::new(), CancellationToken::new());
        let text = {
            let server = Arc::clone(&server);
            move || text(&server, &git)
        };
        let life = (stop.clone(), ended.clone());
        metrics::of_repo_server(metrics_place, place, text, life).await?;
        let serving = {
            let (stop, connections) = (stop.clone(), Connections::new(limits));
            tokio::spawn(async move { server.serve(listener, tls, connections, stop).await })
        };
        tracing::info!(port, "{name} begins");
        terminated().await?;
        stop.cancel();
        serving.await??;
        ended.cancel();
        drop(repositories);
        Ok(())
    }
}
