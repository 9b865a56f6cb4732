//! `tiphys commit-server`, or the program under the name `argocd-commit-server`: pushes hydrated
//! manifests for controllers, over gRPC. Main type: [`CommitServerArgs`], with Argo CD's flags.

use super::{
    controller::terminated, git::GitArgs, logs::Logs, metrics, repositories::RepositoryArgs, wire,
};
use anyhow::Context as _;
use clap::Args;
use std::{net::IpAddr, path::PathBuf, sync::Arc};
use tiphys_listen::{Connections, Limits};
use tiphys_repo::{ContactWatch, RepoOptions, Repos};
use tiphys_repo_server::{GitMetrics, Server, ServerOptions, StreamLimits, TrustPaths};
use tiphys_rpc::Tls;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// Push hydrated manifests for controllers, Argo CD's or ours (CommitService)
#[derive(Args, Debug)]
pub struct CommitServerArgs {
    /// Address to listen on
    #[arg(
        long,
        default_value = "0.0.0.0",
        env = "ARGOCD_COMMIT_SERVER_LISTEN_ADDRESS"
    )]
    address: IpAddr,
    /// Port of the service, without TLS
    #[arg(long, default_value_t = 8086)]
    port: u16,
    /// Address of the port of metrics
    #[arg(
        long,
        value_name = "ADDRESS",
        default_value = "0.0.0.0",
        env = "ARGOCD_COMMIT_SERVER_METRICS_LISTEN_ADDRESS"
    )]
    metrics_address: IpAddr,
    /// Port of /metrics and /healthz, without TLS; 0 for none
    #[arg(long, value_name = "PORT", default_value_t = 8087)]
    metrics_port: u16,
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
    repositories: RepositoryArgs,
    #[command(flatten, next_help_heading = "Limits of repositories")]
    git: GitArgs,
}

/// Runs until stopped.
pub async fn run(args: CommitServerArgs, _logs: Logs) -> anyhow::Result<()> {
    let repositories = args.repositories.folder()?;
    let git = GitMetrics::default();
    let counted = git.clone();
    let options = RepoOptions {
        allow_local: args.repositories.are_local_allowed(),
        contacts: ContactWatch::new(move |contact| counted.add(contact)),
        ..args.git.options()
    };
    let repos = Repos::with_options(&repositories.path, options);
    let server = Arc::new(Server::of_commits(repos, args.options()?));
    let listener = TcpListener::bind((args.address, args.port))
        .await
        .with_context(|| {
            let port = args.port;
            format!("port {port} cannot be opened; choose another with --port")
        })?;
    let stop = CancellationToken::new();
    let place = (args.metrics_address, args.metrics_port);
    let text = {
        let server = Arc::clone(&server);
        move || server.metrics_of_commits() + &git.text_of_commits()
    };
    metrics::of_repo_server(place, (args.address, args.port), text, stop.clone()).await?;
    let serving = {
        let (stop, connections) = (stop.clone(), Connections::new(Limits::default()));
        tokio::spawn(async move { server.serve(listener, Tls::Off, connections, stop).await })
    };
    tracing::info!(port = args.port, "the commit server begins");
    terminated().await?;
    stop.cancel();
    serving.await??;
    drop(repositories);
    Ok(())
}

impl CommitServerArgs {
    fn options(&self) -> anyhow::Result<ServerOptions> {
        let megabytes = usize::try_from(self.max_message_mb)?;
        let trust = TrustPaths {
            known_hosts: self.ssh.join("ssh_known_hosts"),
            certificates: self.authorities.clone(),
            ..TrustPaths::default()
        };
        Ok(ServerOptions {
            max_message: megabytes.saturating_mul(1 << 20),
            trust,
            version: wire::version().version,
            // Nobody sends an archive.
            streamed: StreamLimits {
                archive: 0,
                bytes: 0,
            },
            hidden_folders: false,
        })
    }
}
