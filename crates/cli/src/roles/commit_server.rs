//! `tiphys commit-server`, or the program under the name `argocd-commit-server`: pushes hydrated
//! manifests for controllers, over gRPC. Main type: [`CommitServerArgs`], with Argo CD's flags.

use super::{
    git_service::{GitServiceArgs, Service},
    logs::Logs,
    wire,
};
use clap::Args;
use std::net::IpAddr;
use tiphys_listen::Limits;
use tiphys_repo_server::{Server, ServerOptions, StreamLimits};
use tiphys_rpc::Tls;

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
    #[command(flatten)]
    service: GitServiceArgs,
}

/// Runs until stopped.
pub async fn run(args: CommitServerArgs, _logs: Logs) -> anyhow::Result<()> {
    let place = Service {
        name: "the commit server",
        place: (args.address, args.port),
        tls: Tls::Off,
        limits: Limits::default(),
        metrics: (args.metrics_address, args.metrics_port),
        text: |server, git| server.metrics_of_commits() + &git.text_of_commits(),
    };
    let service = &args.service;
    let options = ServerOptions {
        max_message: service.max_message()?,
        trust: service.trust(),
        version: wire::version().version,
        // Nobody sends an archive.
        streamed: StreamLimits {
            archive: 0,
            bytes: 0,
        },
        hidden_folders: false,
    };
    let make = |repos| Ok(Server::of_commits(repos, options));
    let repositories = service.repo_options();
    service.serve(place, repositories, make).await
}
