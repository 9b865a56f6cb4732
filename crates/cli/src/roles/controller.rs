//! The Application controller, alone or with the API. Main type: [`ControllerArgs`].

use super::{
    git::GitArgs,
    logs::Logs,
    metrics::MetricsArgs,
    redis::RedisArgs,
    replicas::ReplicaArgs,
    repo_server::RepoServerArgs,
    repositories::{Repositories, RepositoryArgs},
    traces::{TraceArgs, TraceContext},
    wire::ControlPlane,
};
use clap::Args;
use std::net::IpAddr;
use tiphys_cluster::{Cluster, RecordsOptions, records::SettingsOverrides};
use tiphys_controllers::application::{self, Dependencies};
use tiphys_repo::RepoOptions;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

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
    metrics: MetricsArgs,
    #[command(flatten)]
    redis: RedisArgs,
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

/// A controller that is ready to start.
pub struct Ready {
    pub plane: ControlPlane,
    repositories: Repositories,
    controller: Dependencies,
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
        let (redis, stop) = (self.redis.place()?, CancellationToken::new());
        let (cluster, namespace) = place;
        let records = RecordsOptions {
            application_namespaces: self.namespaces(),
            overrides,
            ..RecordsOptions::new(namespace)
        };
        let options = RepoOptions {
            allow_local: self.repositories.are_local_allowed(),
            ..self.git.options()
        };
        let repositories = self.repositories.folder()?;
        let mut plane =
            ControlPlane::start(cluster, records, repositories.path.clone(), options).await?;
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
        Ok(Ready {
            plane,
            repositories,
            controller: Dependencies {
                wave_delay: self.sync_wave_delay,
                ..controller
            },
            stop,
        })
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
    /// Starts reconciling Applications; the token stops it.
    pub fn begin(self) -> (JoinHandle<()>, CancellationToken) {
        let (controller, repositories, stop) =
            (self.controller, self.repositories, self.stop.clone());
        let run = async move {
            application::run(controller, stop).await;
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
