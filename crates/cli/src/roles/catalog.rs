//! The chart catalogue as a part of other roles: who reads AppRepositories, and into which database.
//!
//! Main types: [`Mode`] and [`CatalogArgs`].

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
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
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;

/// The database within the data folder.
pub const FILE: &str = "catalog.db";

/// The longest pause before a database that cannot be used is tried again, in seconds.
const LONGEST: u64 = 60;

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

/// Why there is no database yet, where there will be one.
type Waiting = Mutex<Option<String>>;

fn lock(waiting: &Waiting) -> MutexGuard<'_, Option<String>> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The catalogue for the API. Its database is there once the role has opened it.
#[derive(Clone)]
pub struct Charts {
    cluster: Cluster,
    store: Arc<OnceLock<Arc<Store>>>,
    waiting: Arc<Waiting>,
    /// Of the repositories that this process reads.
    pub metrics: ChartMetrics,
}

impl Charts {
    pub fn new(cluster: Cluster) -> Self {
        Self {
            cluster,
            store: Arc::default(),
            waiting: Arc::default(),
            metrics: ChartMetrics::default(),
        }
    }

    fn known(&self) -> Result<Arc<Store>, CatalogError> {
        let absent = || match lock(&self.waiting).clone() {
            Some(why) => CatalogError::Database(why),
            None => CatalogError::NotFound("the catalogue".to_owned()),
        };
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

    /// Why nothing was done with a repository that the cluster does not have. `command` is what
    /// does it with one of the command line, and `does` what that is.
    async fn why(
        &self,
        repository: &RepoId,
        e: CatalogError,
        (command, does): (&str, &str),
    ) -> CatalogError {
        if !matches!(e, CatalogError::NotFound(_)) {
            return e;
        }
        let known = self.status(repository).await;
        if known.is_ok_and(|known| !known.spec.is_empty()) {
            let name = &repository.name;
            return CatalogError::Invalid(format!(
                "repository {name:?} was added with the command line: `tiphys catalog {command} \
                 {name} --local` {does} it"
            ));
        }
        e
    }
}

#[async_trait::async_trait]
impl tiphys_server::ports::Catalog for Charts {
    fn store(&self) -> Option<Arc<Store>> {
        self.store.get().cloned()
    }

    fn waits(&self) -> Option<String> {
        lock(&self.waiting).clone()
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
        match deleted.map_err(unread) {
            Ok(()) => Ok(()),
            Err(e) => Err(self.why(repository, e, ("repos rm", "removes")).await),
        }
    }

    async fn resync(&self, repository: &RepoId) -> Result<(), CatalogError> {
        let asked = in_process::resync(&self.cluster, repository).await;
        match asked.map_err(unread) {
            Ok(()) => Ok(()),
            Err(e) => Err(self.why(repository, e, ("sync", "reads")).await),
        }
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
            let run = reading(charts, (store, holder), stop.clone());
            tasks.spawn(ending(run));
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

/// Reads AppRepositories in this process until `stop`.
fn reading(
    charts: &Charts,
    (store, holder): (Arc<Store>, String),
    stop: CancellationToken,
) -> impl Future<Output = ()> + Send + use<> {
    let options = InProcessOptions {
        metrics: charts.metrics.clone(),
        ..InProcessOptions::new(store, holder)
    };
    in_process::run(charts.cluster.clone(), options, stop)
}

/// Opens a database as soon as that is possible. `open` blocks. `None`: `stop` came first.
async fn patiently<F>(open: F, waiting: &Waiting, stop: &CancellationToken) -> Option<Arc<Store>>
where
    F: Fn() -> Result<Store, CatalogError> + Clone + Send + 'static,
{
    let mut seconds = 1;
    loop {
        let opened = tokio::select! {
            opened = tokio::task::spawn_blocking(open.clone()) => opened,
            () = stop.cancelled() => return None,
        };
        let why = match opened {
            Ok(Ok(store)) => return Some(Arc::new(store)),
            Ok(Err(CatalogError::Database(why))) => why,
            Ok(Err(e)) => e.to_string(),
            Err(e) => e.to_string(),
        };
        tracing::warn!(
            "the catalogue's database cannot be used: {why}; it is tried again in {seconds} s"
        );
        *lock(waiting) = Some(why);
        tokio::select! {
            () = tokio::time::sleep(Duration::from_secs(seconds)) => {}
            () = stop.cancelled() => return None,
        }
        seconds = (2 * seconds).min(LONGEST);
    }
}

/// Says when what reads repositories ends before it should.
async fn watched(reading: JoinHandle<()>, stop: CancellationToken) {
    match reading.await {
        Err(e) => tracing::error!("chart repositories are not read any more: {e}"),
        Ok(()) if !stop.is_cancelled() => {
            tracing::error!("chart repositories are not read any more");
        }
        Ok(()) => {}
    }
}

async fn ending(run: impl Future<Output = ()>) -> anyhow::Result<()> {
    run.await;
    Ok(())
}

/// The catalogue of a control plane, or of a server beside one.
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
    /// Read the chart repositories of AppRepositories into this file instead; it is for one process,
    /// so not for replicas
    #[arg(
        long,
        value_name = "FILE",
        env = "TIPHYS_CATALOG_FILE",
        conflicts_with = "catalog_database_url"
    )]
    catalog_file: Option<PathBuf>,
}

impl CatalogArgs {
    /// Starts reading, if a database is named; what is returned ends after `stop`. A server that is
    /// not there yet is waited for meanwhile.
    ///
    /// # Errors
    /// The file cannot be used, or the address is none.
    pub async fn start(
        &self,
        charts: &Charts,
        stop: &CancellationToken,
    ) -> anyhow::Result<JoinHandle<()>> {
        let (charts, until) = (charts.clone(), stop.clone());
        let holder = unique_holder();
        let task = if let Some(store) = self.file().await? {
            let store = Arc::new(store);
            charts.opened(&store);
            tokio::spawn(reading(&charts, (store, holder), until))
        } else if let Some(options) = self.server()? {
            *lock(&charts.waiting) = Some("it is not open yet".to_owned());
            tokio::spawn(async move {
                let open = move || Store::postgres(options.clone());
                if let Some(store) = patiently(open, &charts.waiting, &until).await {
                    charts.opened(&store);
                    reading(&charts, (store, holder), until).await;
                }
            })
        } else {
            return Ok(tokio::spawn(async {}));
        };
        Ok(tokio::spawn(watched(task, stop.clone())))
    }

    /// The file that is named.
    async fn file(&self) -> anyhow::Result<Option<Store>> {
        let Some(path) = self.catalog_file.clone() else {
            return Ok(None);
        };
        let store = tokio::task::spawn_blocking(move || Store::sqlite(&path)).await?;
        Ok(Some(store.context("--catalog-file cannot be used")?))
    }

    /// The server that is named.
    fn server(&self) -> anyhow::Result<Option<PostgresOptions>> {
        let Some(address) = &self.catalog_database_url else {
            return Ok(None);
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
        Ok(Some(options))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: CatalogArgs,
    }

    fn of(words: &[&str]) -> Result<CatalogArgs, clap::Error> {
        Line::try_parse_from([&["x"], words].concat()).map(|line| line.args)
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_file_a_server_or_none() {
        let none = of(&[]).expect("nothing is needed");
        assert!(none.file().await.expect("no file").is_none());
        assert!(none.server().expect("no server").is_none());
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("charts.db");
        let name = file.to_str().expect("a plain name");
        let args = of(&["--catalog-file", name]).expect("a file");
        assert!(args.file().await.expect("it is made").is_some());
        assert!(file.exists());
        let both = of(&["--catalog-file", name, "--catalog-database-url", "db"]);
        assert!(both.is_err());
        let nowhere = of(&["--catalog-database-url", "db:none"]).expect("an address");
        let Err(refused) = nowhere.server() else {
            panic!("it is no port")
        };
        assert!(format!("{refused:#}").contains("is not HOST:PORT"));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_server_that_is_not_there_yet_is_waited_for() {
        let (tries, waiting) = (Arc::new(AtomicUsize::new(0)), Waiting::default());
        let (count, stop) = (Arc::clone(&tries), CancellationToken::new());
        let open = move || match count.fetch_add(1, SeqCst) {
            0 => Err(CatalogError::Database("refused".to_owned())),
            _ => Store::in_memory(),
        };
        assert!(patiently(open, &waiting, &stop).await.is_some());
        assert_eq!(tries.load(SeqCst), 2);
        assert_eq!(lock(&waiting).as_deref(), Some("refused"));
        stop.cancel();
        let never = || Err(CatalogError::Database("refused".to_owned()));
        assert!(patiently(never, &waiting, &stop).await.is_none());
    }
}
