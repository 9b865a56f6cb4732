//! The Application controller, alone or with the API. Main type: [`ControllerArgs`].

use super::{
    git::GitArgs,
    logs::Logs,
    metrics::MetricsArgs,
    redis::{self, RedisArgs},
    replicas::ReplicaArgs,
    repo_server::RepoServerArgs,
    repositories::{Repositories, RepositoryArgs},
    traces::{TraceArgs, TraceContext},
    wire::{self, ControlPlane},
};
use clap::Args;
use std::{net::IpAddr, time::Duration};
use tiphys_cluster::{Cluster, RecordsOptions, records::SettingsOverrides};
use tiphys_controllers::{
    application::{self, Dependencies},
    hydrator,
};
use tiphys_repo::{CommitServer, RepoOptions};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// How long a commit server may take for one commit.
const COMMIT_TIMEOUT: Duration = Duration::from_secs(300);

#[derive(Args, Debug)]
pub struct ControllerArgs {
    /// Namespaces with Applications beside it: names, globs, /expressions/ [default:
    /// application.namespaces of argocd-cmd-params-cm, followed]
    #[arg(
        long,
        value_name = "NAME",
        value_delimiter = ',',
        env = "ARGOCD_APPLICATION_NAMESPACES"
    )]
    application_namespaces: Vec<String>,
    /// Applications looked at at once
    #[arg(
        long,
        default_value_t = 20,
        env = "ARGOCD_APPLICATION_CONTROLLER_STATUS_PROCESSORS"
    )]
    status_processors: usize,
    /// Seconds between the waves of a sync [default: controller.sync.wave.delay.seconds of
    /// argocd-cmd-params-cm, or none]
    #[arg(long, value_name = "SECONDS", env = "ARGOCD_SYNC_WAVE_DELAY")]
    sync_wave_delay: Option<u32>,
    #[command(flatten)]
    hydrator: HydratorArgs,
    #[command(flatten)]
    metrics: MetricsArgs,
    #[command(flatten)]
    redis: RedisArgs,
    /// How long what is written to Redis of an Application counts
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "1h",
        env = "ARGOCD_APP_STATE_CACHE_EXPIRATION"
    )]
    app_state_cache_expiration: String,
    #[command(flatten)]
    pub replicas: ReplicaArgs,
    #[command(flatten)]
    repo_server: RepoServerArgs,
    #[command(flatten)]
    traces: TraceArgs,
    #[command(flatten)]
    repositories: RepositoryArgs,
    #[command(flatten, next_help_heading = "Limits of repositories")]
    git: GitArgs,
}

/// The hydrator beside the controller.
#[derive(Args, Debug)]
struct HydratorArgs {
    /// Render Applications with a sourceHydrator into branches [default: hydrator.enabled of
    /// argocd-cmd-params-cm]
    #[arg(long, env = "ARGOCD_HYDRATOR_ENABLED")]
    hydrator_enabled: bool,
    /// Branches that are written at once
    #[arg(
        long,
        default_value_t = wire::HYDRATION_WORKERS,
        env = "ARGOCD_APPLICATION_CONTROLLER_HYDRATION_PROCESSORS"
    )]
    hydration_processors: usize,
    /// The commit server that pushes [default: this process does]
    #[arg(
        long,
        value_name = "ADDRESS",
        env = "ARGOCD_APPLICATION_CONTROLLER_COMMIT_SERVER"
    )]
    commit_server: Option<String>,
}

impl HydratorArgs {
    /// `None`: it is off.
    async fn ready(
        &self,
        plane: &ControlPlane,
        replicas: &ReplicaArgs,
    ) -> anyhow::Result<Option<hydrator::Dependencies>> {
        let by_settings = plane.records.settings().param("hydrator.enabled") == "true";
        if !self.hydrator_enabled && !by_settings {
            return Ok(None);
        }
        let address = self.commit_server.as_deref().filter(|a| !a.is_empty());
        let server = address.map(|address| CommitServer::new(address, COMMIT_TIMEOUT));
        let (cluster, namespace) = (&plane.records.cluster, &plane.records.namespace);
        let leases = replicas.start_for_hydrator(cluster, namespace).await;
        let workers = self.hydration_processors;
        Ok(Some(plane.hydrator(workers, leases, server.transpose()?)))
    }
}

/// A controller that is ready to start.
pub struct Ready {
    pub plane: ControlPlane,
    repositories: Repositories,
    controller: Dependencies,
    hydrator: Option<hydrator::Dependencies>,
    stop: CancellationToken,
}

impl ControllerArgs {
    /// Reads the records, and does everything that may fail before anything is written.
    ///
    /// `overrides` override the settings; `address` is where metrics are served.
    pub async fn ready(
        &self,
        place: (Cluster, &str),
        overrides: SettingsOverrides,
        address: IpAddr,
        logs: Logs,
    ) -> anyhow::Result<Ready> {
        let keep = &self.app_state_cache_expiration;
        let keep = redis::lifetime("app-state-cache-expiration", keep)?;
        let (redis, stop) = (self.redis.place(keep)?, CancellationToken::new());
        let (cluster, namespace) = place;
        let records = RecordsOptions {
            application_namespaces: self.namespaces(),
            overrides,
            ..RecordsOptions::new(namespace)
        };
        let repositories = self.repositories.folder()?;
        let options = RepoOptions {
            disk_cache: repositories.disk_cache(&self.git)?,
            ..self.repo_options()
        };
        let (folder, limits) = (repositories.path.clone(), &self.git.limits);
        let mut plane = ControlPlane::start(cluster, records, folder, options, limits).await?;
        let context = || TraceContext::here().map(|context| context.to_string());
        plane.repo_server = self
            .repo_server
            .client()?
            .map(|server| server.with_context(context));
        self.traces.start(&plane.records.settings(), &logs.traces)?;
        logs.follow(&plane.records);
        let sharding = self
            .replicas
            .start(&plane.records.cluster, namespace)
            .await?;
        self.metrics
            .start(address, plane.report(self.metrics.choice()), stop.clone())
            .await?;
        if let Some(redis) = redis {
            plane.share(redis);
        }
        let controller = plane.controller(self.status_processors, Some(sharding));
        let hydrator = self.hydrator.ready(&plane, &self.replicas).await?;
        Ok(Ready {
            plane,
            repositories,
            controller: Dependencies {
                wave_delay: self.sync_wave_delay,
                ..controller
            },
            hydrator,
            stop,
        })
    }

    pub fn repo_options(&self) -> RepoOptions {
        self.repositories.options(&self.git)
    }

    /// An empty variable, as in Argo CD's manifests, counts as unset.
    fn namespaces(&self) -> Option<Vec<String>> {
        let given = self
            .application_namespaces
            .iter()
            .map(|n| n.trim().to_owned())
            .filter(|n| !n.is_empty());
        Some(given.collect()).filter(|given: &Vec<String>| !given.is_empty())
    }
}

impl Ready {
    /// Whether Applications with a hydrator are hydrated.
    pub fn hydrates(&self) -> bool {
        self.hydrator.is_some()
    }

    /// Starts reconciling Applications; the token stops it.
    pub fn begin(self) -> (JoinHandle<()>, CancellationToken) {
        let (controller, repositories, stop) =
            (self.controller, self.repositories, self.stop.clone());
        let hydrator = self.hydrator;
        let run = async move {
            let hydrate = async {
                if let Some(hydrator) = hydrator {
                    hydrator::run(hydrator, stop.clone()).await;
                }
            };
            tokio::join!(application::run(controller, stop.clone()), hydrate);
            drop(repositories);
        };
        (tokio::spawn(run), self.stop)
    }
}

/// Waits for a signal to terminate.
pub async fn terminated() -> anyhow::Result<()> {
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    tokio::select! {
        _ = terminate.recv() => Ok(()),
        result = tokio::signal::ctrl_c() => Ok(result?),
    }
}
