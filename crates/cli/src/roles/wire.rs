//! Connects the parts of the control plane, in the same way for every role.

use super::{catalog::Charts, page, source_limits::SourceLimitArgs};
use std::{
    path::PathBuf,
    sync::{Arc, OnceLock},
};
use tiphys_api::{Application, ApplicationSet, cluster::ClusterInfo};
use tiphys_cluster::{
    AppKey, AppStates, Cluster, Records, RecordsOptions,
    clusters::{Clusters, LiveCluster},
    leases::Leases,
    records::{Record, Store},
};
use tiphys_controllers::{
    application::{self, Sharding},
    applicationset::{self, SetMetrics, SetReport},
    hydrator,
    metrics::{
        Metrics,
        report::{Choice, Report},
    },
    notifications::{self, Link, NotificationMetrics, SelfService},
    redis,
};
use tiphys_engine::spec::Destination;
use tiphys_repo::{CommitServer, RepoOptions, RepoServer, Repos};
use tiphys_server::{
    Deps, Options, Server, VersionInfo,
    adapters::{ClusterLive, Published, RecordSets, RecordStore, RepoSources},
    ports::SharedSessions,
};
use tiphys_sources::{Answers, HostSettings, Sources};

/// Concurrent reconciles of ApplicationSets.
const SET_WORKERS: usize = 10;

/// Groups of Applications that are hydrated at once, as in Argo CD.
pub const HYDRATION_WORKERS: usize = 5;

/// Applications whose notifications are evaluated at once.
const NOTIFICATION_WORKERS: usize = 10;

/// What a server reads that is not in the controller's process.
#[derive(Clone)]
pub struct Elsewhere {
    pub published: Arc<dyn Published>,
    pub sessions: Option<Arc<dyn SharedSessions>>,
}

/// What controller and API share within a process.
pub struct ControlPlane {
    pub records: Records,
    /// ApplicationSets, watched once something needs them.
    sets: Arc<OnceLock<SetReport>>,
    clusters: Clusters,
    pub states: AppStates,
    /// The chart catalogue of the API.
    pub charts: Charts,
    repos: Repos,
    /// Where a controller in another process publishes; `None`: it is in this one.
    elsewhere: Option<Elsewhere>,
    /// The repo-server, if manifests are not rendered in this process.
    pub repo_server: Option<RepoServer>,
    metrics: Metrics,
}

impl ControlPlane {
    /// Starts watching the records of a cluster and waits until they are read.
    ///
    /// `options` are the limits on repositories, and whether Applications may use local folders, as
    /// in `tiphys up`; `limits` are flags that the records' keys do not override.
    pub async fn start(
        cluster: Cluster,
        place: RecordsOptions,
        repositories: PathBuf,
        options: RepoOptions,
        limits: &SourceLimitArgs,
    ) -> anyhow::Result<Self> {
        let records = Records::start(cluster.clone(), place);
        records.wait_ready().await?;
        let options = limits.with_params(options, &records.settings());
        let charts = Charts::new(cluster.clone());
        let clusters = Clusters::new(cluster, records.clone());
        Ok(Self {
            charts,
            records,
            sets: Arc::default(),
            clusters,
            states: AppStates::new(),
            repos: Repos::with_options(repositories, options),
            elsewhere: None,
            repo_server: None,
            metrics: Metrics::default(),
        })
    }

    /// For a process without a controller: nothing in clusters is watched.
    pub fn without_controller(&mut self, elsewhere: Elsewhere) {
        self.clusters = Clusters::unwatched(self.records.cluster.clone(), self.records.clone());
        self.elsewhere = Some(elsewhere);
    }

    fn live(&self) -> ClusterLive {
        let (records, clusters) = (self.records.clone(), self.clusters.clone());
        match &self.elsewhere {
            None => ClusterLive::new(records, clusters, self.states.clone()),
            Some(elsewhere) => ClusterLive::reading(records, clusters, elsewhere.published.clone()),
        }
    }

    /// The API.
    ///
    /// # Errors
    /// The audit log cannot be opened.
    pub fn server(
        &self,
        secure_cookie: bool,
        root_path: &str,
        options: Options,
    ) -> anyhow::Result<Server> {
        let namespace = self.records.namespace.clone();
        let elsewhere = self.elsewhere.clone();
        Ok(Server::new(Deps {
            store: Arc::new(RecordStore::new(self.records.clone())),
            live: Arc::new(self.live()),
            sources: Arc::new(RepoSources::new(self.sources())),
            sets: Arc::new(RecordSets::new(self.sets(), self.answers())),
            catalog: Arc::new(self.charts.clone()),
            sessions: elsewhere.and_then(|elsewhere| elsewhere.sessions),
            assets: page::assets(),
            options: Options {
                namespace,
                version: version(),
                secure_cookie,
                root_path: root_path.to_owned(),
                ..options
            },
        })?)
    }

    /// Git, or a repo-server that renders.
    fn sources(&self) -> Sources {
        Sources::new(&self.records, self.repos.clone(), self.repo_server.clone())
    }

    /// Writes the controller's state to a Redis, as long as the process runs.
    pub fn share(&self, redis: redis::Place) {
        let (records, clusters) = (self.records.clone(), self.clusters.clone());
        let (namespace, applications) = (records.namespace.clone(), records.applications.clone());
        let is_there =
            Box::new(move |app: &AppKey| applications.get(&app.namespace, &app.name).is_some());
        let clusters = move || {
            let (apps, now) = (records.applications.list(), jiff::Timestamp::now());
            let names = |app: &Record<Application>, d: &Destination| {
                let is = |named: &str, name: &str| !name.is_empty() && named == name;
                app.value().is_ok_and(|app| {
                    is(&app.spec.destination.server, &d.server)
                        || is(&app.spec.destination.name, &d.name)
                })
            };
            let info = |c: &LiveCluster| {
                let count = apps.iter().filter(|app| names(app, &c.destination)).count();
                ClusterInfo {
                    applications_count: i64::try_from(count).unwrap_or(i64::MAX),
                    ..c.info(now)
                }
            };
            clusters
                .list()
                .iter()
                .map(|c| (c.destination.server.clone(), info(c)))
                .collect()
        };
        tokio::spawn(redis::follow(
            redis,
            redis::Known {
                states: self.states.clone(),
                namespace,
                is_there,
                clusters: Box::new(clusters),
            },
            self.metrics.redis.clone(),
        ));
    }

    /// The dependencies of the loop of notifications; `lease` is set if there may be replicas.
    pub fn notifications(
        &self,
        lease: Option<Arc<Leases>>,
    ) -> anyhow::Result<notifications::Dependencies> {
        let settings = self.records.settings();
        let is_on = settings.param("notificationscontroller.selfservice.enabled") == "true";
        Ok(notifications::Dependencies {
            self_service: is_on
                .then(|| self.self_service(notifications::CONFIG_MAP, notifications::SECRET)),
            records: self.records.clone(),
            sources: self.sources(),
            lease,
            workers: NOTIFICATION_WORKERS,
            config_map: notifications::CONFIG_MAP.to_owned(),
            secret: notifications::SECRET.to_owned(),
            link: Link::new()?,
            metrics: NotificationMetrics::default(),
            clock: Arc::new(jiff::Timestamp::now),
        })
    }

    /// What namespaces configure of notifications.
    pub fn self_service(&self, config_map: &str, secret: &str) -> SelfService {
        SelfService::start(&self.records, config_map, secret)
    }

    /// The controller's metrics, with current values.
    pub fn report(&self, choice: Choice) -> Report {
        let (records, clusters, states) = (
            self.records.clone(),
            self.clusters.clone(),
            self.states.clone(),
        );
        Report {
            metrics: self.metrics.clone(),
            records,
            clusters,
            states,
            choice,
            sets: Arc::clone(&self.sets),
            charts: self.charts.metrics.clone(),
        }
    }

    /// The namespaces besides the control plane's that may contain ApplicationSets, as patterns.
    fn set_namespaces(&self) -> Vec<String> {
        let settings = self.records.settings();
        let named = settings.param("applicationsetcontroller.namespaces");
        let names = named.split(',').map(str::trim);
        let names = names.filter(|name| !name.is_empty());
        names.map(str::to_owned).collect()
    }

    /// The ApplicationSets of the control plane's namespace, and of those that are named for them.
    fn sets(&self) -> Store<ApplicationSet> {
        let start = || SetReport {
            metrics: SetMetrics::default(),
            sets: self.records.application_sets(&self.set_namespaces()),
            labels: Vec::new(),
        };
        self.sets.get_or_init(start).sets.clone()
    }

    /// The metrics of ApplicationSets.
    pub fn set_report(&self, labels: Vec<String>) -> SetReport {
        let (sets, metrics) = (self.sets(), self.set_metrics());
        SetReport {
            metrics,
            sets,
            labels,
        }
    }

    fn set_metrics(&self) -> SetMetrics {
        let report = self.sets.get();
        report
            .map(|report| report.metrics.clone())
            .unwrap_or_default()
    }

    /// For generating Applications on request.
    fn answers(&self) -> Answers {
        Answers {
            records: self.records.clone(),
            sources: self.sources(),
            new_git_file_globbing: None,
            hosts: HostSettings::default(),
            clock: Arc::new(jiff::Timestamp::now),
        }
    }

    /// The dependencies of the ApplicationSet controller; `leases` of one shard are set if there
    /// may be replicas.
    pub fn application_sets(&self, leases: Option<Leases>) -> applicationset::Dependencies {
        applicationset::Dependencies {
            records: self.records.clone(),
            sets: self.sets(),
            namespaces: self.set_namespaces(),
            metrics: self.set_metrics(),
            sources: self.sources(),
            workers: SET_WORKERS,
            settings: applicationset::ControllerSettings::default(),
            leases: leases.map(Arc::new),
            clock: Arc::new(jiff::Timestamp::now),
        }
    }

    /// The dependencies of the hydrator; `leases` of one shard are set if there may be replicas.
    /// Without a commit server this process pushes.
    pub fn hydrator(
        &self,
        workers: usize,
        leases: Option<Leases>,
        commit_server: Option<CommitServer>,
    ) -> hydrator::Dependencies {
        hydrator::Dependencies {
            records: self.records.clone(),
            sources: self.sources().pushing_through(commit_server),
            workers,
            leases: leases.map(Arc::new),
            clock: Arc::new(jiff::Timestamp::now),
        }
    }

    /// The dependencies of the Application controller; `sharding` is set if there are replicas.
    pub fn controller(
        &self,
        workers: usize,
        sharding: Option<Sharding>,
    ) -> application::Dependencies {
        application::Dependencies {
            records: self.records.clone(),
            clusters: self.clusters.clone(),
            sources: self.sources(),
            states: self.states.clone(),
            metrics: self.metrics.clone(),
            workers,
            sharding,
            wave_delay: None,
            clock: Arc::new(jiff::Timestamp::now),
        }
    }
}

/// The output of `version`.
pub fn version() -> VersionInfo {
    VersionInfo {
        version: format!("v{}", env!("CARGO_PKG_VERSION")),
        git_commit: env!("TIPHYS_COMMIT").to_owned(),
        platform: env!("TIPHYS_TARGET").to_owned(),
        ..VersionInfo::default()
    }
}
