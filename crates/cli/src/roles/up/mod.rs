//! `tiphys up`: everything in one process, then a live table until all is Synced and Healthy.

mod args;
pub mod bootstrap;
mod data;
mod examples;
mod table;
mod workload;

pub use args::UpArgs;

use super::wire::ControlPlane;
use anyhow::{Context, bail};
use data::DataFolder;
use std::{collections::BTreeSet, io::Write, net::Ipv4Addr, time::Duration};
use table::{Row, Table};
use tiphys_cluster::{Cluster, ConnectOptions, Records, RecordsOptions};
use tiphys_controllers::application;
use tiphys_embedded_kube::{Data, EmbeddedKube, Options as KubeOptions};
use tiphys_server::Tls;
use tokio::{net::TcpListener, task::JoinSet, time::Instant};
use tokio_util::sync::CancellationToken;

const NAMESPACE: &str = "argocd";
const WORKERS: usize = 16;
/// How often the table looks, besides at every change.
const TICK: Duration = Duration::from_millis(250);

/// What runs, and what a user needs to know of it.
struct Running {
    records: Records,
    shutdown: CancellationToken,
    tasks: JoinSet<anyhow::Result<()>>,
    kube: Option<EmbeddedKube>,
    url: String,
    kubeconfig: Option<std::path::PathBuf>,
    password: Option<String>,
    data: DataFolder,
}

/// Runs until Ctrl-C, or with `--once` until all is well.
pub async fn run(args: UpArgs) -> anyhow::Result<()> {
    let started = Instant::now();
    let mut running = start(&args).await?;
    let wanted = workload::create(&args, &running.records.cluster, &running.data, NAMESPACE).await?;
    let verdict = tokio::select! {
        verdict = until_well(&args, &running.records, &wanted) => verdict,
        () = interrupted() => Ok(()),
        Some(ended) = running.tasks.join_next() => match ended? {
            Ok(()) => Err(anyhow::anyhow!("a part of the control plane ended by itself")),
            Err(e) => Err(e),
        },
    };
    if verdict.is_ok() && !args.once {
        running.introduce(started.elapsed());
        interrupted().await;
    } else if verdict.is_ok() {
        println!("all Synced and Healthy after {:.2} s", started.elapsed().as_secs_f64());
    }
    running.stop().await;
    verdict
}

/// Starts the API server (or connects to one), the controller and the API.
async fn start(args: &UpArgs) -> anyhow::Result<Running> {
    let data = DataFolder::open(args)?;
    let address = (Ipv4Addr::LOCALHOST, args.port);
    let listener = TcpListener::bind(address)
        .await
        .with_context(|| format!("port {} cannot be opened; choose another with --port, or 0 for any free one", args.port))?;
    let shutdown = CancellationToken::new();
    let (cluster, kube, kubeconfig) = connect(args, &data).await?;
    let password = bootstrap::run(&cluster, NAMESPACE).await?;
    let plane = ControlPlane::start(cluster, RecordsOptions::new(NAMESPACE), data.folder("repositories")?, true).await?;
    let tls = if args.tls { Tls::SelfSigned(vec!["localhost".to_owned(), "127.0.0.1".to_owned()]) } else { Tls::Off };
    let scheme = if args.tls { "https" } else { "http" };
    let url = format!("{scheme}://{}", listener.local_addr()?);
    let (server, controller) = (plane.server(args.tls, ""), plane.controller(WORKERS, None));
    let mut tasks = JoinSet::new();
    let stop = shutdown.clone();
    tasks.spawn(async move { server.serve(listener, tls, stop).await.context("the API server ended") });
    let stop = shutdown.clone();
    tasks.spawn(async move {
        application::run(controller, stop).await;
        Ok(())
    });
    Ok(Running { records: plane.records, shutdown, tasks, kube, url, kubeconfig, password, data })
}

/// The cluster: the embedded one, or that of the kubeconfig.
async fn connect(args: &UpArgs, data: &DataFolder) -> anyhow::Result<(Cluster, Option<EmbeddedKube>, Option<std::path::PathBuf>)> {
    if let Some(path) = &args.kubeconfig {
        let cluster = Cluster::connect(ConnectOptions::kubeconfig(Some(path.clone()), args.context.clone())).await?;
        return Ok((cluster, None, Some(path.clone())));
    }
    let store = if args.ephemeral { Data::Memory } else { Data::Dir(data.folder("kube")?) };
    let kube = EmbeddedKube::start(KubeOptions { data: store, ..KubeOptions::default() }).await?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, args.kube_port))
        .await
        .with_context(|| format!("port {} cannot be opened; choose another with --kube-port", args.kube_port))?;
    let path = data.write_private("kubeconfig", &kube.kubeconfig(listener.local_addr()?))?;
    kube.serve(listener);
    let cluster = Cluster::connect_in_process(kube.router(), tiphys_api::constants::IN_CLUSTER).await?;
    Ok((cluster, Some(kube), Some(path)))
}

/// Shows the table until every Application is well; with `--once` not longer than its timeout.
async fn until_well(args: &UpArgs, records: &Records, wanted: &BTreeSet<String>) -> anyhow::Result<()> {
    let deadline = Instant::now() + Duration::from_secs(args.timeout);
    let mut changes = records.applications.changes();
    let mut table = Table::default();
    loop {
        let rows: Vec<Row> = records.applications.list().iter().filter_map(|r| r.value().ok()).map(|a| Row::of(&a)).collect();
        table.show(&rows)?;
        let known = wanted.iter().all(|name| rows.iter().any(|r| r.name == *name));
        if known && rows.iter().all(Row::is_well) {
            return Ok(());
        }
        if args.once && Instant::now() >= deadline {
            let reasons: Vec<_> =
                rows.iter().filter(|r| !r.is_well()).map(|r| format!("  {}: {} {} {}", r.name, r.sync, r.health, r.message)).collect();
            bail!("not everything is Synced and Healthy after {} s:\n{}", args.timeout, reasons.join("\n"));
        }
        tokio::select! {
            _ = changes.recv() => {}
            () = tokio::time::sleep(TICK) => {}
        }
    }
}

async fn interrupted() {
    // Without a signal handler the process ends at once, which is what was asked for.
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}

impl Running {
    /// What to do next, once all is well.
    fn introduce(&self, took: Duration) {
        let login = match &self.password {
            Some(password) => format!("admin / {password}"),
            None => "admin; its first password: tiphys admin initial-password -n argocd".to_owned(),
        };
        let cluster = self.kubeconfig.as_ref().map(|p| format!("  cluster     export KUBECONFIG={}\n", p.display())).unwrap_or_default();
        let address = self.url.split_once("://").map_or(self.url.as_str(), |(_, a)| a);
        let text = format!(
            "\nAll Synced and Healthy after {:.2} s.\n\n  page        {}\n  login       {login}\n{cluster}\nTry:\n  tiphys login {address} --plaintext \
             --username admin\n  tiphys app list\n  kubectl get pods -A\n\nCtrl-C stops.\n",
            took.as_secs_f64(),
            self.url
        );
        // Whoever reads it may be gone; that is no reason to end.
        let _ = std::io::stdout().write_all(text.as_bytes());
    }

    async fn stop(mut self) {
        self.shutdown.cancel();
        let drained = async { while self.tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(Duration::from_secs(10), drained).await.is_err() {
            tracing::warn!("some work did not end within 10 s; it will be taken up at the next start");
        }
        drop(self.records);
        if let Some(kube) = self.kube {
            kube.shutdown().await;
        }
        self.data.close();
    }
}
