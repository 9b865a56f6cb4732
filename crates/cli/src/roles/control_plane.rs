//! `tiphys control-plane`: controller, API and page in one process, for a cluster; what `tiphys up` does without its demonstration.

use super::{
    logs::Logs, metrics::MetricsArgs, redis::RedisArgs, replicas::ReplicaArgs, repo_server::RepoServerArgs, traces::TraceArgs,
    up::bootstrap, wire::ControlPlane,
};
use anyhow::Context;
use clap::Args;
use std::{net::IpAddr, os::unix::fs::DirBuilderExt, path::PathBuf};
use tiphys_cluster::{Cluster, ConnectOptions, RecordsOptions, Source};
use tiphys_controllers::application;
use tiphys_server::Tls;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// Run the Application controller, the API and the page for a cluster
#[derive(Args, Debug)]
pub struct ControlPlaneArgs {
    /// Kubeconfig of the cluster [default: the service account of the pod]
    #[arg(long, value_name = "FILE", env = "KUBECONFIG")]
    kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig
    #[arg(long, value_name = "C")]
    context: Option<String>,
    /// Namespace of Applications, projects and settings
    #[arg(long, default_value = "argocd", env = "ARGOCD_NAMESPACE")]
    namespace: String,
    /// Namespaces with Applications beside it: names, globs, /expressions/ [default: application.namespaces of argocd-cmd-params-cm, followed]
    #[arg(long, value_name = "NAME", value_delimiter = ',', env = "ARGOCD_APPLICATION_NAMESPACES")]
    application_namespaces: Vec<String>,
    /// Address to listen on
    #[arg(long, default_value = "0.0.0.0", env = "ARGOCD_SERVER_LISTEN_ADDRESS")]
    address: IpAddr,
    /// Port of API and page
    #[arg(long, default_value_t = 8080)]
    port: u16,
    /// Serve without TLS, as behind a proxy that ends it
    #[arg(long, env = "ARGOCD_SERVER_INSECURE")]
    insecure: bool,
    /// Path prefix that a proxy keeps
    #[arg(long, default_value = "", env = "ARGOCD_SERVER_ROOTPATH")]
    rootpath: String,
    /// Applications looked at at once
    #[arg(long, default_value_t = 20, env = "ARGOCD_APPLICATION_CONTROLLER_STATUS_PROCESSORS")]
    status_processors: usize,
    /// Seconds between the waves of a sync [default: controller.sync.wave.delay.seconds of argocd-cmd-params-cm, or none]
    #[arg(long, value_name = "SECONDS", env = "ARGOCD_SYNC_WAVE_DELAY")]
    sync_wave_delay: Option<u32>,
    #[command(flatten)]
    metrics: MetricsArgs,
    #[command(flatten)]
    redis: RedisArgs,
    #[command(flatten)]
    replicas: ReplicaArgs,
    #[command(flatten)]
    repo_server: RepoServerArgs,
    #[command(flatten)]
    traces: TraceArgs,
    /// Folder for copies of repositories [default: a new one in the temporary folder]
    #[arg(long, value_name = "DIR")]
    repositories: Option<PathBuf>,
    /// Create CRDs, settings and the admin password if they are missing; `tiphys admin initial-password` prints it
    #[arg(long)]
    bootstrap: bool,
}

/// Runs until it is told to stop.
pub async fn run(args: ControlPlaneArgs, logs: Logs) -> anyhow::Result<()> {
    let redis = args.redis.place()?;
    let options = match &args.kubeconfig {
        Some(path) => ConnectOptions::kubeconfig(Some(path.clone()), args.context.clone()),
        None => ConnectOptions::new(Source::InCluster),
    };
    let cluster = Cluster::connect(options).await?;
    if args.bootstrap && bootstrap::run(&cluster, &args.namespace).await?.is_some() {
        // Not the password itself: this may be a log that others read.
        println!("The password of admin is in Secret {}: tiphys admin initial-password -n {}", bootstrap::INITIAL_PASSWORD, args.namespace);
    }
    let mut plane = ControlPlane::start(cluster, place(&args), repositories(&args)?, false).await?;
    plane.repo_server = args.repo_server.client()?;
    args.traces.start(&plane.records.settings(), &logs.traces)?;
    logs.follow(&plane.records);
    let sharding = args.replicas.start(&plane.records.cluster, &args.namespace).await?;
    let listener = TcpListener::bind((args.address, args.port))
        .await
        .with_context(|| format!("port {} cannot be opened; choose another with --port", args.port))?;
    let tls = if args.insecure { Tls::Off } else { tls_of(&plane) };
    let shutdown = CancellationToken::new();
    args.metrics.start(args.address, plane.report(args.metrics.choice()), shutdown.clone()).await?;
    if let Some(redis) = redis {
        plane.share(redis);
    }
    let server = plane.server(!args.insecure, &args.rootpath);
    let controller = plane.controller(args.status_processors, Some(sharding));
    let controller = application::Dependencies { wave_delay: args.sync_wave_delay, ..controller };
    let stop = shutdown.clone();
    let controller = tokio::spawn(application::run(controller, stop));
    let stop = shutdown.clone();
    let api = tokio::spawn(async move { server.serve(listener, tls, stop).await });
    tracing::info!(port = args.port, "serving");
    terminated().await?;
    shutdown.cancel();
    controller.await?;
    api.await??;
    Ok(())
}

/// Where the Applications and settings are. A variable that is set and empty, as Argo CD's manifests have them, says nothing.
fn place(args: &ControlPlaneArgs) -> RecordsOptions {
    let given: Vec<String> = args.application_namespaces.iter().map(|n| n.trim().to_owned()).filter(|n| !n.is_empty()).collect();
    RecordsOptions { application_namespaces: (!given.is_empty()).then_some(given), ..RecordsOptions::new(&args.namespace) }
}

/// The folder that was given, else a new one that nobody else can have made before.
fn repositories(args: &ControlPlaneArgs) -> anyhow::Result<PathBuf> {
    let path = args
        .repositories
        .clone()
        .unwrap_or_else(|| std::env::temp_dir().join(format!("tiphys-repositories-{:016x}", rand::random::<u64>())));
    let made = std::fs::DirBuilder::new().recursive(args.repositories.is_some()).mode(0o700).create(&path);
    made.with_context(|| format!("folder {} cannot be made; choose another with --repositories", path.display()))?;
    Ok(path)
}

/// The certificate of argocd-secret, else one of our own.
fn tls_of(plane: &ControlPlane) -> Tls {
    let settings = plane.records.settings();
    let text = |key: &str| settings.secret.get(key).and_then(|s| s.text()).map(str::to_owned);
    match (text("tls.crt"), text("tls.key")) {
        (Some(chain), Some(key)) => Tls::Pem { chain, key },
        _ => Tls::SelfSigned(["localhost", "argocd-server", "127.0.0.1"].map(str::to_owned).into()),
    }
}

async fn terminated() -> anyhow::Result<()> {
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    tokio::select! {
        _ = terminate.recv() => Ok(()),
        result = tokio::signal::ctrl_c() => Ok(result?),
    }
}
