//! `tiphys up`: everything in one process, and a live table of the Applications until it is stopped
//! or, with `--once`, all are Synced and Healthy.

mod args;
pub mod bootstrap;
mod data;
mod examples;
mod introduction;
mod local;
mod look;
mod placeholders;
mod signal;
mod table;
mod workload;

pub use args::UpArgs;
pub use data::{default_folder, kubeconfig_of_default};
pub use introduction::quoted;
pub use signal::Interrupted;

use super::{
    catalog,
    wire::{ControlPlane, HYDRATION_WORKERS},
};
use anyhow::{Context, bail};
use data::DataFolder;
use introduction::Introduction;
use look::View;
use signal::Signals;
use std::{io::Write, net::Ipv4Addr, time::Duration};
use table::Table;
use tiphys_cluster::{AppStates, Cluster, ConnectOptions, Records, RecordsOptions};
use tiphys_controllers::{application, applicationset, hydrator, notifications};
use tiphys_embedded_kube::{Data, EmbeddedKube, Options as KubeOptions, sim::SimOptions};
use tiphys_repo::RepoOptions;
use tiphys_server::{Options, Tls};
use tokio::{net::TcpListener, sync::mpsc, task::JoinSet, time::Instant};
use tokio_util::sync::CancellationToken;

const NAMESPACE: &str = "argocd";
const WORKERS: usize = 16;
/// The refresh interval of the table, in addition to every change.
const TICK: Duration = Duration::from_millis(250);
/// `--once` ends if an error that waiting cannot resolve is seen for this long: a project may be
/// created a moment after its Applications.
const CERTAIN: Duration = Duration::from_secs(2);

/// The running parts, and what a user needs to know.
struct Running {
    records: Records,
    states: AppStates,
    shutdown: CancellationToken,
    tasks: JoinSet<anyhow::Result<()>>,
    kube: Option<EmbeddedKube>,
    url: String,
    kubeconfig: Option<std::path::PathBuf>,
    password: Option<String>,
    /// Lines for the terminal.
    news: mpsc::UnboundedReceiver<String>,
}

/// Runs until Ctrl-C or SIGTERM, or with `--once` until all Applications are Synced and Healthy.
pub async fn run(mut args: UpArgs) -> anyhow::Result<()> {
    let mut signals = Signals::listen()?;
    workload::confirm(&args)?;
    local::settle(&mut args)?;
    let data = DataFolder::open(&args)?;
    let started = tokio::select! {
        started = start(&args, &data) => started.map(Some),
        // Nothing has been started yet that needs an orderly shutdown.
        came = signals.came() => if args.once { Err(came.before("").into()) } else { Ok(None) },
    };
    let result = match started {
        Ok(Some(running)) => work(&args, running, &data, &mut signals).await,
        Ok(None) => Ok(()),
        Err(e) => Err(e),
    };
    data.close();
    result
}

/// Deploys and shows the state; then shuts down in order.
async fn work(
    args: &UpArgs,
    mut running: Running,
    data: &DataFolder,
    signals: &mut Signals,
) -> anyhow::Result<()> {
    let started = Instant::now();
    running.introduce(args);
    let mut progress = Progress::default();
    let result = tokio::select! {
        result = deploy_and_follow(args, &mut running.news, (&running.records, &running.states), data, &mut progress, started) => result,
        came = signals.came() => if args.once { Err(came.before(&progress.view.left()).into()) } else { Ok(()) },
        Some(ended) = running.tasks.join_next() => match ended {
            Ok(Ok(())) => Err(anyhow::anyhow!("a part of the control plane ended by itself")),
            Ok(Err(e)) => Err(e),
            Err(e) => Err(e.into()),
        },
    };
    // A second signal exits immediately.
    tokio::select! { () = running.stop() => {}, _ = signals.came() => {} }
    result
}

/// Starts the API server (or connects to one), the controller and the API.
async fn start(args: &UpArgs, data: &DataFolder) -> anyhow::Result<Running> {
    let address = (Ipv4Addr::LOCALHOST, args.port);
    let listener = TcpListener::bind(address).await.with_context(|| {
        format!(
            "port {} cannot be opened; choose another with --port, or 0 for any free one",
            args.port
        )
    })?;
    let shutdown = CancellationToken::new();
    let (cluster, kube, kubeconfig) = connect(args, data).await?;
    let made = bootstrap::run(&cluster, NAMESPACE).await?;
    // On a real cluster the password is shown only if it was just generated; the embedded cluster
    // belongs to the user.
    let password = match (made, &kube) {
        (None, Some(_)) => bootstrap::known_password(&cluster, NAMESPACE).await?,
        (made, _) => made,
    };
    let repositories = data.folder("repositories")?;
    let options = RepoOptions {
        allow_local: true,
        disk_cache: args.git.disk_cache(&repositories)?,
        // Its user renders their own sources, on their own machine.
        isolation: None,
        ..args.git.options()
    };
    let plane = ControlPlane::start(
        cluster,
        RecordsOptions::new(NAMESPACE),
        repositories,
        options,
        &args.git.limits,
    )
    .await?;
    let tls = if args.tls {
        Tls::SelfSigned(vec!["localhost".to_owned(), "127.0.0.1".to_owned()])
    } else {
        Tls::Off
    };
    let scheme = if args.tls { "https" } else { "http" };
    let url = format!("{scheme}://{}", listener.local_addr()?);
    let options = Options {
        hydrator_enabled: true,
        audit: args.audit.options(),
        ..args.connections.options()
    };
    let (server, controller) = (
        plane.server(args.tls, "", options)?,
        plane.controller(WORKERS, None),
    );
    let mut tasks = JoinSet::new();
    let stop = shutdown.clone();
    tasks.spawn(async move {
        server
            .serve(listener, tls, stop)
            .await
            .context("the API server ended")
    });
    let stop = shutdown.clone();
    tasks.spawn(async move {
        application::run(controller, stop).await;
        Ok(())
    });
    let mode = args.catalog.unwrap_or(match kube {
        Some(_) => catalog::Mode::InProcess,
        None => catalog::Mode::Off,
    });
    catalog::start(
        mode,
        (&plane.charts, kube.is_some()),
        data.path(),
        NAMESPACE,
        (&mut tasks, &shutdown),
    )
    .await?;
    more_loops(&plane, &mut tasks, &shutdown)?;
    let (tell, news) = mpsc::unbounded_channel();
    if kube.is_some() && !args.strict_kinds {
        let (records, states, stop) = (
            plane.records.clone(),
            plane.states.clone(),
            shutdown.clone(),
        );
        tasks.spawn(async move { placeholders::run(records, states, tell, stop).await });
    }
    Ok(Running {
        records: plane.records,
        states: plane.states,
        shutdown,
        tasks,
        kube,
        url,
        kubeconfig,
        password,
        news,
    })
}

/// Notifications, ApplicationSets and the hydrator.
fn more_loops(
    plane: &ControlPlane,
    tasks: &mut JoinSet<anyhow::Result<()>>,
    shutdown: &CancellationToken,
) -> anyhow::Result<()> {
    let (notifications, stop) = (plane.notifications(None)?, shutdown.clone());
    tasks.spawn(async move {
        notifications::run(notifications, stop).await;
        Ok(())
    });
    let (sets, stop) = (plane.application_sets(None), shutdown.clone());
    tasks.spawn(async move {
        applicationset::run(sets, stop).await;
        Ok(())
    });
    let hydrator = plane.hydrator(HYDRATION_WORKERS, None, None);
    let stop = shutdown.clone();
    tasks.spawn(async move {
        hydrator::run(hydrator, stop).await;
        Ok(())
    });
    Ok(())
}

/// The cluster: the embedded one, or that of the kubeconfig.
async fn connect(
    args: &UpArgs,
    data: &DataFolder,
) -> anyhow::Result<(Cluster, Option<EmbeddedKube>, Option<std::path::PathBuf>)> {
    if let Some(path) = &args.kubeconfig {
        let cluster = Cluster::connect(ConnectOptions::kubeconfig(
            Some(path.clone()),
            args.context.clone(),
        ))
        .await?;
        return Ok((cluster, None, Some(path.clone())));
    }
    let store = if args.ephemeral {
        Data::Memory
    } else {
        Data::Dir(data.folder("kube")?)
    };
    let sim = SimOptions {
        // Who runs them is started later, and runs what began before.
        programs: match args.catalog {
            Some(catalog::Mode::Off) => Vec::new(),
            _ => catalog::programs(),
        },
        any_storage_class: !args.strict_kinds,
        ..SimOptions::default()
    };
    let mut options = KubeOptions {
        data: store,
        sim,
        ..KubeOptions::default()
    };
    let (connections, chosen) = (&mut options.limits.connections, args.connections.limits());
    (connections.total, connections.per_peer) = (chosen.total, chosen.per_peer);
    let kube = EmbeddedKube::start(options).await?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, args.kube_port))
        .await
        .with_context(|| {
            format!(
                "port {} cannot be opened; choose another with --kube-port",
                args.kube_port
            )
        })?;
    let path = data.write_private("kubeconfig", &kube.kubeconfig(listener.local_addr()?))?;
    kube.serve(listener);
    let cluster =
        Cluster::connect_in_process(kube.router(), tiphys_api::constants::IN_CLUSTER).await?;
    Ok((cluster, Some(kube), Some(path)))
}

/// The last snapshot, for the message at the end.
#[derive(Default)]
struct Progress {
    view: View,
    table: Table,
}

/// Creates the Applications and shows the table until stopped; with `--once` until every
/// Application is Synced and Healthy or cannot become so, at most until the timeout.
async fn deploy_and_follow(
    args: &UpArgs,
    news: &mut mpsc::UnboundedReceiver<String>,
    (records, states): (&Records, &AppStates),
    data: &DataFolder,
    progress: &mut Progress,
    started: Instant,
) -> anyhow::Result<()> {
    let mut changes = records.applications.changes();
    let wanted = workload::create(args, records, data).await?;
    if wanted.is_empty() && args.once && records.applications.is_empty() {
        println!("the control plane works; there is no Application (--bare)");
        return Ok(());
    }
    let deadline = started + Duration::from_secs(args.timeout);
    let (mut hopeless_since, mut overrides) = (None, false);
    loop {
        progress.view = View::now(records, states, &wanted);
        let Progress { view, table } = progress;
        table.show(&view.rows)?;
        if view.is_well() && !overrides && !view.rows.is_empty() {
            overrides = true;
            table.say(&ready_message(&view.empty(), started.elapsed()))?;
            if args.once {
                return Ok(());
            }
        }
        if args.once {
            let hopeless = view.hopeless();
            let since = hopeless
                .as_ref()
                .map(|_| *hopeless_since.get_or_insert_with(Instant::now));
            hopeless_since = since;
            if let Some(reasons) =
                hopeless.filter(|_| since.is_some_and(|s| s.elapsed() >= CERTAIN))
            {
                bail!("this does not become Synced and Healthy by waiting:\n{reasons}");
            }
            if Instant::now() >= deadline {
                bail!(
                    "not everything is Synced and Healthy after {} s:\n{}",
                    args.timeout,
                    view.left()
                );
            }
        }
        tokio::select! {
            _ = changes.recv() => {}
            Some(line) = news.recv() => progress.table.say(&line)?,
            () = tokio::time::sleep(TICK) => {}
        }
    }
}

/// The message that everything is ready, and which Applications are empty.
fn ready_message(empty: &[&str], took: Duration) -> String {
    let text = format!("all Synced and Healthy after {:.2} s", took.as_secs_f64());
    match empty {
        [] => text,
        names => format!(
            "{text}, but nothing was rendered for {}: the source has no resources",
            names.join(", ")
        ),
    }
}

impl Running {
    /// Prints URLs and login.
    fn introduce(&self, args: &UpArgs) {
        let program = crate::program_name();
        let introduction = Introduction {
            program: &program,
            url: &self.url,
            password: self.password.as_deref(),
            kubeconfig: self.kubeconfig.as_deref(),
            namespace: NAMESPACE,
            once: args.once,
        };
        // The reader may be gone; that is no reason to exit.
        let _ = std::io::stdout().write_all(introduction.text().as_bytes());
    }

    async fn stop(mut self) {
        self.shutdown.cancel();
        let drained = async { while self.tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(Duration::from_secs(10), drained)
            .await
            .is_err()
        {
            tracing::warn!(
                "some work did not end within 10 s; it will be taken up at the next start"
            );
        }
        drop(self.records);
        if let Some(kube) = self.kube {
            kube.shutdown().await;
        }
    }
}
