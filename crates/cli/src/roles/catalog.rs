//! The chart catalogue as a part of other roles: who reads AppRepositories, and into which database.
//!
//! Main types: [`Mode`] and [`CatalogArgs`].

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use std::{
    path::Path,
    sync::{Arc, OnceLock},
};
use tiphys_catalog::{
    CatalogError, RepoId, RepoSpec, Store,
    apprepository::{NewRepository, Options},
    model::RepoRef,
    store::{PostgresOptions, RepoStatus, Ssl},
    sync::CatalogSync,
};
use tiphys_cluster::Cluster;
use tiphys_controllers::{
    apprepository::{
        in_process::{self, InProcessError, InProcessOptions},
        jobs::{self, JobsOptions},
        programs,
    },
    metrics::charts::ChartMetrics,
};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// The database within the data folder.
pub const FILE: &str = "catalog.db";

/// Who reads AppRepositories in `up`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    /// This process
    InProcess,
    /// CronJobs and Jobs, as with kubeapps, run by the simulated cluster
    Jobs,
    /// Nobody
    Off,
}

/// The commands that the simulated cluster leaves to [`start`].
pub fn programs() -> Vec<String> {
    programs::PROGRAMS.map(str::to_owned).to_vec()
}

type Tasks = JoinSet<anyhow::Result<()>>;

/// The catalogue for the API. Its database is there once the role has opened it.
#[derive(Clone)]
pub struct Charts {
    cluster: Cluster,
    store: Arc<OnceLock<Arc<Store>>>,
    /// Of the repositories that this process reads.
    pub metrics: ChartMetrics,
}

impl Charts {
    pub fn new(cluster: Cluster) -> Self {
        Self {
            cluster,
            store: Arc::default(),
            metrics: ChartMetrics::default(),
        }
    }

    fn known(&self) -> Result<Arc<Store>, CatalogError> {
        let absent = || CatalogError::NotFound("the catalogue".to_owned());
        self.store.get().cloned().ok_or_else(absent)
    }

    /// Empty for what is not there.
    async fn status(&self, repository: &RepoId) -> Result<RepoStatus, CatalogError> {
        let (store, id) = (self.known()?, repository.clone());
        let status = tokio::task::spawn_blocking(move || store.repo(&id)).await;
        let status = status.map_err(|e| CatalogError::Internal(e.to_string()))??;
        Ok(status.unwrap_or_default())
    }

    fn opened(&self, store: &Arc<Store>) {
        // A role opens one database.
        let _ = self.store.set(Arc::clone(store));
    }
}

#[async_trait::async_trait]
impl tiphys_server::ports::Catalog for Charts {
    fn store(&self) -> Option<Arc<Store>> {
        self.store.get().cloned()
    }

    async fn visitor(
        &self,
        repository: &RepoId,
        of: &RepoRef,
    ) -> Result<CatalogSync, CatalogError> {
        let store = self.known()?;
        let status = self.status(repository).await?;
        if status.spec.is_empty() {
            let found = in_process::visitor(&self.cluster, Arc::clone(&store), repository);
            if let Some(found) = found.await.map_err(unread)? {
                return Ok(found);
            }
        }
        RepoSpec::visitor(store, &status, of)
    }

    async fn create(&self, wanted: &NewRepository) -> Result<(), CatalogError> {
        let made = in_process::create(&self.cluster, wanted).await;
        made.map_err(unread)
    }

    async fn delete(&self, repository: &RepoId) -> Result<(), CatalogError> {
        let deleted = in_process::delete(&self.cluster, repository).await;
        let Err(e) = deleted.map_err(unread) else {
            return Ok(());
        };
        let known = self.status(repository).await?;
        if matches!(e, CatalogError::NotFound(_)) && !known.spec.is_empty() {
            let why = format!(
                "repository {0:?} was added with the command line: `tiphys catalog repos rm {0}` \
                 removes it",
                repository.name
            );
            return Err(CatalogError::Invalid(why));
        }
        Err(e)
    }

    async fn resync(&self, repository: &RepoId) -> Result<(), CatalogError> {
        in_process::resync(&self.cluster, repository)
            .await
            .map_err(unread)
    }
}

fn unread(e: InProcessError) -> CatalogError {
    match e {
        InProcessError::Catalog(e) => e,
        other => CatalogError::Internal(other.to_string()),
    }
}

/// Starts what reads AppRepositories into the database of a data folder. `is_embedded`: the
/// cluster's pods are simulated, and those that read repositories run here.
pub async fn start(
    mode: Mode,
    (charts, is_embedded): (&Charts, bool),
    folder: &Path,
    namespace: &str,
    (tasks, stop): (&mut Tasks, &CancellationToken),
) -> anyhow::Result<()> {
    if mode == Mode::Off {
        return Ok(());
    }
    let path = folder.join(FILE);
    let store = tokio::task::spawn_blocking(move || Store::sqlite(&path)).await?;
    let store = Arc::new(store.context("the catalogue's database cannot be opened")?);
    charts.opened(&store);
    let cluster = &charts.cluster;
    if is_embedded {
        let run = programs::run(cluster.clone(), Arc::clone(&store), stop.clone());
        tasks.spawn(ending(run));
    }
    match mode {
        Mode::InProcess => {
            let holder = if is_embedded {
                // The cluster's folder is that of one process: the next one continues its work.
                "tiphys-up".to_owned()
            } else {
                unique_holder()
            };
            in_this_process(charts, (store, holder), tasks, stop);
        }
        Mode::Jobs if is_embedded => {
            let options = Options {
                namespace: namespace.to_owned(),
                global_namespace: namespace.to_owned(),
                image: "tiphys".to_owned(),
                command: "asset-syncer".to_owned(),
                // The pods run here and use our database.
                database_url: "localhost:5432".to_owned(),
                ..Options::default()
            };
            let run = jobs::run(
                cluster.clone(),
                JobsOptions::new(options),
                None,
                stop.clone(),
            );
            tasks.spawn(ending(run));
        }
        Mode::Jobs => bail!(
            "Jobs of a real cluster cannot write a database of this machine: run `tiphys apprepository-controller` with a PostgreSQL"
        ),
        Mode::Off => {}
    }
    Ok(())
}

fn unique_holder() -> String {
    let now = jiff::Timestamp::now().as_nanosecond();
    format!("tiphys-{}-{now:x}", std::process::id())
}

fn in_this_process(
    charts: &Charts,
    (store, holder): (Arc<Store>, String),
    tasks: &mut Tasks,
    stop: &CancellationToken,
) {
    let options = InProcessOptions {
        metrics: charts.metrics.clone(),
        ..InProcessOptions::new(store, holder)
    };
    let run = in_process::run(charts.cluster.clone(), options, stop.clone());
    tasks.spawn(ending(run));
}

async fn ending(run: impl Future<Output = ()>) -> anyhow::Result<()> {
    run.await;
    Ok(())
}

/// The catalogue of a control plane.
#[derive(Args, Debug)]
pub struct CatalogArgs {
    /// Read the chart repositories of AppRepositories into this PostgreSQL, HOST:PORT or a URL;
    /// kubeapps' own database can be taken over
    #[arg(long, value_name = "ADDRESS", env = "TIPHYS_CATALOG_DATABASE_URL")]
    catalog_database_url: Option<String>,
    /// User of the catalogue's database; TIPHYS_CATALOG_DATABASE_PASSWORD is the password, and
    /// PGSSLMODE, PGSSLROOTCERT, PGSSLCERT and PGSSLKEY say how certificates are used
    #[arg(long, value_name = "NAME", default_value = "postgres")]
    catalog_database_user: String,
    /// Name of the catalogue's database
    #[arg(long, value_name = "NAME", default_value = "charts")]
    catalog_database_name: String,
}

impl CatalogArgs {
    /// Starts reading, if a database is named.
    pub async fn start(
        &self,
        charts: &Charts,
        tasks: &mut Tasks,
        stop: &CancellationToken,
    ) -> anyhow::Result<()> {
        let Some(address) = &self.catalog_database_url else {
            return Ok(());
        };
        let from = |name: &str| std::env::var(name).unwrap_or_default();
        let options = PostgresOptions {
            user: self.catalog_database_user.clone(),
            password: from("TIPHYS_CATALOG_DATABASE_PASSWORD").into(),
            database: self.catalog_database_name.clone(),
            ssl: Ssl::from_environment(from)?,
            ..PostgresOptions::default()
        };
        let options = options.at(address).context("--catalog-database-url")?;
        let store = tokio::task::spawn_blocking(move || Store::postgres(options)).await?;
        let store = store.context("the catalogue's database cannot be used")?;
        let store = Arc::new(store);
        charts.opened(&store);
        in_this_process(charts, (store, unique_holder()), tasks, stop);
        Ok(())
    }
}
