//! Reading the files of versions from their archives.

use super::{
    CONCURRENCY, CatalogSync,
    storing::{Answer, BATCH, Content, ROOM, SMALL, read_archive},
};
use crate::{
    CatalogError, Repository, Store, blocking,
    gunzip::Inflater,
    model::ChartVersion,
    repository::{Form, sha256},
    store::{FilesOutcome, SeenArchive},
};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use std::{
    collections::{HashMap, HashSet},
    future::Future,
    sync::Arc,
    time::Duration,
};
use tiphys_repo::{Known, RepoError};
use tokio::sync::{Semaphore, mpsc};

/// Charts whose versions are looked up at once.
const GROUP: usize = 16;
/// Look-ups at the same time. A look-up waits while others use the database, and nothing would be
/// downloaded meanwhile.
const AHEAD: usize = 2;
/// How long to wait before an archive is asked for again.
const PAUSES: [Duration; 2] = [Duration::from_millis(300), Duration::from_millis(1_500)];

/// Which versions of a chart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Newest,
    Others,
    /// Those that could not be read before: a host that does not answer must not keep the rest away.
    Failed,
}

/// Versions that could not be read before, by chart.
pub(super) type Failures = HashMap<String, HashSet<String>>;

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
        (part, failed): (Part, &Arc<Failures>),
    ) -> Result<(usize, usize), CatalogError> {
        let groups: Vec<Vec<String>> = charts.chunks(GROUP).map(<[String]>::to_vec).collect();
        let jobs = stream::iter(groups).map(|charts| {
            let failed = Arc::clone(failed);
            self.with_store(move |store, repository| {
                jobs_of(store, repository, &charts, (part, &failed))
            })
        });
        let jobs = jobs.buffered(AHEAD);
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
        let (send, answers) = mpsc::channel(BATCH);
        let room = Arc::new(Semaphore::new(ROOM as usize));
        let reading = async move {
            let read = jobs.map_ok(|job| {
                let room = Arc::clone(&room);
                async move { Ok(self.read(job, room).await) }
            });
            let mut read = std::pin::pin!(read.try_buffer_unordered(CONCURRENCY));
            while let Some(answer) = read.try_next().await? {
                // Nobody receives any more when a write failed, which is what is told.
                if send.send(answer).await.is_err() {
                    break;
                }
            }
            Ok(())
        };
        let ((), counted) = futures::try_join!(reading, self.write(answers))?;
        Ok(counted)
    }

    async fn read(&self, job: Job, room: Arc<Semaphore>) -> Answer {
        let Job { chart_id, version } = job;
        let digest = version.digest.clone();
        let name = version.version.clone();
        let fetched = self.fetch(&chart_id, version).await;
        let (content, seen) = fetched.unwrap_or_else(|e| {
            let failed = FilesOutcome::Failed {
                reason: e.to_string(),
                is_other: false,
            };
            (Content::Read(failed), None)
        });
        let wanted = u32::try_from(content.bytes() >> 10).unwrap_or(ROOM);
        let wanted = wanted.clamp(1, ROOM);
        Answer {
            chart_id,
            version: name,
            digest,
            seen,
            content,
            // Waits until what came before is stored.
            room: room.acquire_many_owned(wanted).await.ok(),
        }
    }

    async fn fetch(
        &self,
        chart_id: &str,
        version: ChartVersion,
    ) -> Result<(Content, Option<SeenArchive>), CatalogError> {
        let urls = version.urls.unwrap_or_default();
        let Some(url) = urls.into_iter().next() else {
            let why = format!("chart {chart_id:?} has no downloadable URLs");
            return Err(CatalogError::Invalid(why));
        };
        let nothing = Known::default();
        let fetched = patiently(|| self.remote.archive(&url, &nothing)).await?;
        let fetched = fetched.unwrap_or_default();
        let (archive, state) = (fetched.content, fetched.version);
        let has_name = !state.etag.is_empty() || !state.modified.is_empty();
        let is_looked_at = version.digest.is_empty() && has_name;
        let seen = (is_looked_at && self.repository.form == Form::Helm).then(|| SeenArchive {
            chart_id: chart_id.to_owned(),
            version: version.version,
            etag: state.etag,
            modified: state.modified,
            ..SeenArchive::default()
        });
        let hashed = |archive: &[u8]| {
            let sha = |seen| SeenArchive {
                sha: sha256(archive),
                ..seen
            };
            seen.map(sha)
        };
        if archive.len() <= SMALL {
            let seen = hashed(&archive);
            return Ok((Content::Packed(archive), seen));
        }
        let repository = Arc::clone(&self.repository);
        blocking(move || {
            let seen = hashed(&archive);
            let with = (&*repository, &mut Inflater::default());
            let outcome = read_archive(&archive, version.digest, with);
            Ok((Content::Read(outcome), seen))
        })
        .await
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

/// The versions of charts whose files are not there, or are of another archive.
fn jobs_of(
    store: &Store,
    repository: &Repository,
    charts: &[String],
    (part, failed): (Part, &Failures),
) -> Result<Vec<Job>, CatalogError> {
    let mut jobs = Vec::new();
    for (chart, known) in store.with_digests(&repository.id, charts)? {
        let failed = failed.get(&chart.id);
        let versions = chart.versions.into_iter().enumerate();
        let wanted = versions.filter(|(place, version)| {
            let its_part = match failed.is_some_and(|of| of.contains(&version.version)) {
                true => Part::Failed,
                false if *place == 0 => Part::Newest,
                false => Part::Others,
            };
            its_part == part && known.get(&version.version) != Some(&version.digest)
        });
        jobs.extend(wanted.map(|(_, version)| job(&chart.id, version)));
    }
    Ok(jobs)
}
