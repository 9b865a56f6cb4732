//! `tiphys control-plane`: controller, API and web UI in one process, for a cluster; like `tiphys
//! up` without its demonstration.

use super::{
    argocd,
    audit::AuditArgs,
    catalog::CatalogArgs,
    connections::ConnectionArgs,
    controller::{ControllerArgs, terminated},
    logs::Logs,
    metrics,
    up::bootstrap,
    wire::ControlPlane,
};
use anyhow::Context;
use clap::Args;
use std::{net::IpAddr, path::PathBuf, sync::Arc};
use tiphys_cluster::{Cluster, ConnectOptions, Source};
use tiphys_controllers::{applicationset, metrics::report::Choice, notifications};
use tiphys_server::{Options, Tls};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// Run the controllers of Applications and ApplicationSets, the API and the page for a cluster
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
    /// Address to listen on
    #[arg(long, default_value = "0.0.0.0", env = "ARGOCD_SERVER_LISTEN_ADDRESS")]
    address: IpAddr,
    /// Port of API and page
    #[arg(long, default_value_t = 8080)]
    port: u16,
    /// Port of the API's own metrics, without TLS; 0 for none
    #[arg(
        long,
        value_name = "PORT",
        default_value_t = 8083,
        env = "ARGOCD_SERVER_METRICS_PORT"
    )]
    api_metrics_port: u16,
    /// Port of the metrics of notifications, without TLS; 0 for none
    #[arg(long, value_name = "PORT", default_value_t = 9001)]
    notifications_metrics_port: u16,
    /// Serve without TLS, as behind a proxy that ends it
    #[arg(long, env = "ARGOCD_SERVER_INSECURE")]
    insecure: bool,
    /// Path prefix that a proxy keeps
    #[arg(long, default_value = "", env = "ARGOCD_SERVER_ROOTPATH")]
    rootpath: String,
    /// Address of the Dex server, for `dex.config`
    #[arg(
        long,
        value_name = "URL",
        default_value = "http://argocd-dex-server:5556",
        env = "ARGOCD_SERVER_DEX_SERVER"
    )]
    dex_server: String,
    /// Leave ApplicationSets to another controller, such as Argo CD's
    #[arg(long)]
    without_application_sets: bool,
    /// Leave notifications to another controller, such as Argo CD's
    #[arg(long)]
    without_notifications: bool,
    #[command(flatten)]
    connections: ConnectionArgs,
    #[command(flatten)]
    audit: AuditArgs,
    #[command(flatten)]
    controller: ControllerArgs,
    #[command(flatten, next_help_heading = "Chart catalogue")]
    catalog: CatalogArgs,
    /// Create CRDs, settings and the admin password if they are missing; `tiphys admin
    /// initial-password` prints it
    #[arg(long)]
    bootstrap: bool,
}

/// Opens the API's port.
async fn listening(address: IpAddr, port: u16) -> anyhow::Result<TcpListener> {
    let bound = TcpListener::bind((address, port)).await;
    bound.with_context(|| format!("port {port} cannot be opened; choose another with --port"))
}

/// Runs until stopped.
pub async fn run(args: ControlPlaneArgs, logs: Logs) -> anyhow::Result<()> {
    let options = match &args.kubeconfig {
        Some(path) => ConnectOptions::kubeconfig(Some(path.clone()), args.context.clone()),
        None => ConnectOptions::new(Source::InCluster),
    };
    let cluster = Cluster::connect(options).await?;
    if args.bootstrap {
        let made = bootstrap::run(&cluster, &args.namespace).await?;
        bootstrap::known_hosts(&cluster, &args.namespace).await?;
        if made.is_some() {
            // Not the password itself, because others may read this log.
            println!(
                "The password of admin is in Secret {}: tiphys admin initial-password -n {}",
                bootstrap::INITIAL_PASSWORD,
                args.namespace
            );
        }
    }
    let ready = args
        .controller
        .ready(
            (cluster, &args.namespace),
            argocd::variables_of_sets(),
            args.address,
            logs,
        )
        .await?;
    let listener = listening(args.address, args.port).await?;
    let tls = if args.insecure {
        Tls::Off
    } else {
        tls_of(&ready.plane)
    };
    let options = Options {
        dex_server: args.dex_server,
        hydrator_enabled: ready.hydrates(),
        audit: args.audit.options(),
        ..args.connections.options_of_role()
    };
    let server = ready
        .plane
        .server(!args.insecure, &args.rootpath, options)?;
    let report = ready.plane.report(Choice::default());
    let cluster = ready.plane.records.cluster.clone();
    let charts = ready.plane.charts.clone();
    let replicas = &args.controller.replicas;
    let notifications = match args.without_notifications {
        true => None,
        false => {
            let lease = replicas.notifications(&cluster, &args.namespace);
            Some(ready.plane.notifications(Some(Arc::new(lease)))?)
        }
    };
    let sets = match args.without_application_sets {
        true => None,
        false => {
            let leases = replicas.start_for_sets(&cluster, &args.namespace).await;
            Some(ready.plane.application_sets(leases))
        }
    };
    let told = ready.plane.report(Choice::default());
    let (controller, shutdown) = ready.begin();
    if let Some(notifications) = &notifications {
        let flag = "--notifications-metrics-port, or 0 for none";
        metrics::of_notifications(
            (args.address, args.notifications_metrics_port, flag),
            notifications.metrics.clone(),
            told,
            shutdown.clone(),
        )
        .await?;
    }
    let notifications =
        notifications.map(|n| tokio::spawn(notifications::run(n, shutdown.clone())));
    let sets = sets.map(|sets| tokio::spawn(applicationset::run(sets, shutdown.clone())));
    let catalog = args.catalog.start(&charts, &shutdown).await?;
    // Its health is told until the last call has ended.
    let ended = CancellationToken::new();
    let (address, port) = (args.address, args.api_metrics_port);
    metrics::of_api(address, port, server.clone(), report, ended.clone()).await?;
    let stop = shutdown.clone();
    let api = tokio::spawn(async move { server.serve(listener, tls, stop).await });
    tracing::info!(port = args.port, "serving");
    terminated().await?;
    shutdown.cancel();
    controller.await?;
    catalog.await?;
    if let Some(notifications) = notifications {
        notifications.await?;
    }
    if let Some(sets) = sets {
        sets.await?;
    }
    api.await??;
    ended.cancel();
    Ok(())
}

/// The certificate in argocd-secret, else a generated one.
pub fn tls_of(plane: &ControlPlane) -> Tls {
    let settings = plane.records.settings();
    let text = |key: &str| {
        settings
            .secret
            .get(key)
            .and_then(|s| s.text())
            .map(str::to_owned)
    };
    match (text("tls.crt"), text("tls.key")) {
        (Some(chain), Some(key)) => Tls::Pem { chain, key },
        _ => Tls::SelfSigned(
            ["localhost", "argocd-server", "127.0.0.1"]
                .map(str::to_owned)
                .into(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::roles::repositories::check_local;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: ControlPlaneArgs,
    }

    fn of(words: &[&str]) -> ControlPlaneArgs {
        Line::parse_from([&["x"], words].concat()).args
    }

    #[test]
    fn the_ports_are_argo_cds() {
        let args = of(&[]);
        assert_eq!(args.port, 8080);
        assert_eq!(args.api_metrics_port, 8083);
        assert_eq!(args.notifications_metrics_port, 9001);
        assert_eq!(of(&["--api-metrics-port", "0"]).api_metrics_port, 0);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn repositories_of_this_machine_are_refused() {
        check_local(|words| of(words).controller.repo_options()).await;
    }
}
