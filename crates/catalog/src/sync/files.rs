//! Reading the files of versions from their archives.

use super::{CONCURRENCY, CatalogSync};
use crate::{
    CatalogError, Repository, Store, blocking,
    files::extract,
    index::plain_digest,
    model::{ChartFiles, ChartVersion, RepoRef},
    repository::sha256,
    store::{FilesOutcome, FilesRow},
};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use jiff::Timestamp;
use std::{future::Future, time::Duration};
use tiphys_repo::{Known, RepoError};
use tokio::sync::mpsc;

/// Files that are stored in one transaction, and how long they wait for others.
const BATCH: usize = 64;
const GATHERING: Duration = Duration::from_millis(100);
/// Charts whose versions are looked up at once.
const GROUP: usize = 16;
/// How long to wait before an archive is asked for again.
const PAUSES: [Duration; 2] = [Duration::from_millis(300), Duration::from_millis(1_500)];

/// Which versions of a chart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Newest,
    Others,
}

/// A version whose archive is to be read.
struct Job {
    chart_id: String,
    version: ChartVersion,
}

impl CatalogSync {
    /// Reads the files of charts that are not there yet. Returns how many were read, and how many
    /// could not be.
    pub(super) async fn read_files(
        &self,
        charts: &[String],
        part: Part,
    ) -> Result<(usize, usize), CatalogError> {
        let groups: Vec<Vec<String>> = charts.chunks(GROUP).map(<[String]>::to_vec).collect();
        let jobs = stream::iter(groups).then(|charts| {
            self.with_store(move |store, repository| jobs_of(store, repository, &charts, part))
        });
        self.work(jobs.map_ok(stream_of).try_flatten().boxed())
            .await
    }

    /// The same for single versions of charts.
    pub(super) async fn read_versions(
        &self,
        versions: Vec<(String, String)>,
    ) -> Result<(usize, usize), CatalogError> {
        let jobs = stream::iter(versions).then(|(chart_id, version)| {
            self.with_store(move |store, repository| {
                let chart = store.chart(&repository.id, &chart_id)?;
                let versions = chart.into_iter().flat_map(|chart| chart.versions);
                let wanted = versions.filter(|known| known.version == version);
                Ok(wanted.map(|version| job(&chart_id, version)).collect())
            })
        });
        self.work(jobs.map_ok(stream_of).try_flatten().boxed())
            .await
    }

    async fn work(
        &self,
        jobs: stream::BoxStream<'_, Result<Job, CatalogError>>,
    ) -> Result<(usize, usize), CatalogError> {
        let (send, rows) = mpsc::channel(BATCH);
        let reading = async move {
            let read = jobs.map_ok(|job| async move { Ok(self.read(job).await) });
            let mut read = std::pin::pin!(read.try_buffer_unordered(CONCURRENCY));
            while let Some(row) = read.try_next().await? {
                // Nobody receives any more when a write failed, which is what is told.
                if send.send(row).await.is_err() {
                    break;
                }
            }
            Ok(())
        };
        let ((), counted) = futures::try_join!(reading, self.write(rows))?;
        Ok(counted)
    }

    /// Stores what is read, many at once.
    async fn write(
        &self,
        mut rows: mpsc::Receiver<FilesRow>,
    ) -> Result<(usize, usize), CatalogError> {
        let (mut good, mut bad) = (0, 0);
        loop {
            let batch = gathered(&mut rows).await;
            if batch.is_empty() {
                return Ok((good, bad));
            }
            let failed = batch
                .iter()
                .filter(|row| matches!(row.outcome, FilesOutcome::Failed { .. }));
            let failed = failed.count();
            good += batch.len() - failed;
            bad += failed;
            let now = Timestamp::now().as_second();
            self.with_store(move |store, repository| store.put_files(&repository.id, &batch, now))
                .await?;
        }
    }

    async fn read(&self, job: Job) -> FilesRow {
        let Job { chart_id, version } = job;
        let name = version.version.clone();
        let outcome = match self.fetch(&chart_id, version).await {
            Ok(outcome) => outcome,
            Err(e) => FilesOutcome::Failed {
                reason: e.to_string(),
                is_other: false,
            },
        };
        if let FilesOutcome::Failed { reason, .. } = &outcome {
            tracing::warn!(chart = chart_id, version = name, "no files: {reason}");
        }
        FilesRow {
            chart_id,
            version: name,
            outcome,
        }
    }

    async fn fetch(
        &self,
        chart_id: &str,
        version: ChartVersion,
    ) -> Result<FilesOutcome, CatalogError> {
        let urls = version.urls.unwrap_or_default();
        let Some(url) = urls.into_iter().next() else {
            let why = format!("chart {chart_id:?} has no downloadable URLs");
            return Err(CatalogError::Invalid(why));
        };
        let nothing = Known::default();
        let fetched = patiently(|| self.remote.archive(&url, &nothing)).await?;
        let archive = fetched.unwrap_or_default().content;
        let id = &self.repository.id;
        let repo = RepoRef {
            namespace: id.namespace.clone(),
            name: id.name.clone(),
            url: self.repository.url.clone(),
            form: String::new(),
        };
        blocking(move || Ok(read_archive(&archive, version.digest, repo))).await
    }
}

/// Whether an archive has the digest that the index says, if it says one; else what differs.
pub(super) fn checked(archive: &[u8], digest: &str) -> Result<(), String> {
    let (wanted, found) = (plain_digest(digest), sha256(archive));
    if wanted.is_empty() || wanted == found {
        return Ok(());
    }
    Err(format!(
        "digest differs: the index says {wanted}, the file has {found}"
    ))
}

fn read_archive(archive: &[u8], digest: String, repo: RepoRef) -> FilesOutcome {
    if let Err(reason) = checked(archive, &digest) {
        return FilesOutcome::Failed {
            reason,
            is_other: true,
        };
    }
    match extract(archive) {
        Err(e) => FilesOutcome::Failed {
            reason: e.to_string(),
            is_other: false,
        },
        Ok(files) => FilesOutcome::Read(Box::new(ChartFiles {
            id: String::new(),
            readme: files.readme,
            values: files.values,
            additional_values: files.additional_values,
            schema: files.schema,
            repo,
            digest,
        })),
    }
}

/// Asks again when another answer may come.
pub(super) async fn patiently<T, F: Future<Output = Result<T, RepoError>>>(
    ask: impl Fn() -> F,
) -> Result<T, RepoError> {
    for pause in PAUSES {
        match ask().await {
            Err(e) if e.retryable() => tokio::time::sleep(pause).await,
            answer => return answer,
        }
    }
    ask().await
}

fn job(chart_id: &str, version: ChartVersion) -> Job {
    Job {
        chart_id: chart_id.to_owned(),
        version,
    }
}

fn stream_of(jobs: Vec<Job>) -> impl stream::Stream<Item = Result<Job, CatalogError>> {
    stream::iter(jobs.into_iter().map(Ok))
}

/// What comes within a while; empty: nothing comes any more.
async fn gathered(rows: &mut mpsc::Receiver<FilesRow>) -> Vec<FilesRow> {
    let mut batch = Vec::with_capacity(BATCH);
    if rows.recv_many(&mut batch, BATCH).await == 0 {
        return batch;
    }
    let until = tokio::time::Instant::now() + GATHERING;
    while batch.len() < BATCH {
        let left = BATCH - batch.len();
        let more = tokio::time::timeout_at(until, rows.recv_many(&mut batch, left));
        if matches!(more.await, Ok(0) | Err(_)) {
            break;
        }
    }
    batch
}

/// The versions of charts whose files are not there, or are of another archive.
fn jobs_of(
    store: &Store,
    repository: &Repository,
    charts: &[String],
    part: Part,
) -> Result<Vec<Job>, CatalogError> {
    let mut jobs = Vec::new();
    for (chart, known) in store.with_digests(&repository.id, charts)? {
        let versions = chart.versions.into_iter().enumerate();
        let wanted = versions.filter(|(place, version)| {
            (*place == 0) == (part == Part::Newest)
                && known.get(&version.version) != Some(&version.digest)
        });
        jobs.extend(wanted.map(|(_, version)| job(&chart.id, version)));
    }
    Ok(jobs)
}
