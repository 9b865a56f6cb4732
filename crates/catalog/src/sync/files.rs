//! Reading the files of versions from their archives.

use super::{CONCURRENCY, CatalogSync};
use crate::{
    CatalogError, Repository, Store, blocking,
    files::extract,
    index::plain_digest,
    model::{ChartFiles, ChartVersion, RepoRef},
    repository::{Form, sha256},
    store::{FilesOutcome, FilesRow, SeenArchive},
};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use jiff::Timestamp;
use std::{
    collections::{HashMap, HashSet, VecDeque},
    future::Future,
    sync::Arc,
    time::Duration,
};
use tiphys_repo::{Known, RepoError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

/// Files that are stored in one transaction, their bytes, and how long they wait for others.
const BATCH: usize = 256;
const BATCH_BYTES: usize = 8 << 20;
const GATHERING: Duration = Duration::from_millis(100);
/// KiB of all archives and files that wait.
const ROOM: u32 = 32 << 10;
/// The largest archive that waits to be unpacked with others; changing threads for each costs more.
const SMALL: usize = 64 << 10;
/// Charts whose versions are looked up at once.
const GROUP: usize = 16;
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

/// A version whose archive was asked for.
struct Answer {
    chart_id: String,
    version: String,
    /// As the index writes it.
    digest: String,
    /// Of an archive for which the index has no digest.
    seen: Option<SeenArchive>,
    content: Content,
    /// Its part of [`ROOM`].
    room: Option<OwnedSemaphorePermit>,
}

enum Content {
    Packed(Vec<u8>),
    Read(FilesOutcome),
}

impl Content {
    fn bytes(&self) -> usize {
        match self {
            Self::Packed(archive) => archive.len(),
            Self::Read(outcome) => outcome.bytes(),
        }
    }
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
        let jobs = stream::iter(groups).then(|charts| {
            let failed = Arc::clone(failed);
            self.with_store(move |store, repository| {
                jobs_of(store, repository, &charts, (part, &failed))
            })
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

    /// Stores what is read, many at once; meanwhile the next ones are unpacked.
    async fn write(
        &self,
        mut answers: mpsc::Receiver<Answer>,
    ) -> Result<(usize, usize), CatalogError> {
        let (mut good, mut bad) = (0, 0);
        let mut waiting = VecDeque::new();
        let mut unpacked = self.unpacked(&mut answers, &mut waiting).await?;
        while !unpacked.rows.is_empty() {
            good += unpacked.rows.len() - unpacked.failed;
            bad += unpacked.failed;
            let stored = self.with_store(move |store, repository| unpacked.put(store, repository));
            let next = self.unpacked(&mut answers, &mut waiting);
            ((), unpacked) = futures::try_join!(stored, next)?;
        }
        Ok((good, bad))
    }

    /// What comes next; without rows: nothing comes any more.
    async fn unpacked(
        &self,
        answers: &mut mpsc::Receiver<Answer>,
        waiting: &mut VecDeque<Answer>,
    ) -> Result<Unpacked, CatalogError> {
        if waiting.is_empty() {
            waiting.extend(gathered(answers).await);
        }
        let (repository, mut all) = (Arc::clone(&self.repository), std::mem::take(waiting));
        let work = move || Ok((Unpacked::of(&mut all, &repository), all));
        let (unpacked, rest) = blocking(work).await?;
        *waiting = rest;
        Ok(unpacked)
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
            // It fails if nobody writes any more.
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
            let outcome = read_archive(&archive, version.digest, &repository);
            Ok((Content::Read(outcome), seen))
        })
        .await
    }
}

/// What is stored in one transaction.
struct Unpacked {
    rows: Vec<FilesRow>,
    seen: Vec<SeenArchive>,
    /// Rows of versions that could not be read.
    failed: usize,
    /// Is free when they are stored.
    _room: Vec<OwnedSemaphorePermit>,
}

impl Unpacked {
    /// The first ones, as many as may be stored at once.
    fn of(waiting: &mut VecDeque<Answer>, repository: &Repository) -> Self {
        let (mut failed, mut bytes, mut rows) = (0, 0, Vec::with_capacity(waiting.len()));
        let (mut seen, mut room) = (Vec::new(), Vec::new());
        while bytes < BATCH_BYTES
            && let Some(answer) = waiting.pop_front()
        {
            room.extend(answer.room);
            let (chart_id, version) = (answer.chart_id, answer.version);
            let outcome = match answer.content {
                Content::Read(outcome) => outcome,
                Content::Packed(archive) => read_archive(&archive, answer.digest, repository),
            };
            if let FilesOutcome::Failed { reason, .. } = &outcome {
                tracing::warn!(chart = chart_id, version, "no files: {reason}");
                failed += 1;
            } else {
                seen.extend(answer.seen);
            }
            bytes += outcome.bytes();
            rows.push(FilesRow {
                chart_id,
                version,
                outcome,
            });
        }
        Self {
            rows,
            seen,
            failed,
            _room: room,
        }
    }

    fn put(&self, store: &Store, repository: &Repository) -> Result<(), CatalogError> {
        let now = Timestamp::now();
        store.put_files(&repository.id, &self.rows, now.as_second())?;
        store.put_archives(&repository.id, &self.seen, now.as_millisecond())
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

pub(super) fn read_archive(
    archive: &[u8],
    digest: String,
    repository: &Repository,
) -> FilesOutcome {
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
            repo: RepoRef {
                namespace: repository.id.namespace.clone(),
                name: repository.id.name.clone(),
                url: repository.url.clone(),
                form: String::new(),
            },
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
async fn gathered<T>(rows: &mut mpsc::Receiver<T>) -> Vec<T> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use tiphys_testkit::archive::{TarEntry, gzip, tar};

    /// A few KiB become many MiB: not all of them at once.
    #[test]
    fn what_is_unpacked_together_is_bounded() {
        let readme = "x".repeat(4 << 20);
        let archive = gzip(&tar(&[TarEntry::file("a/README.md", &readme)]));
        assert!(archive.len() < SMALL);
        let answer = |number: usize| Answer {
            chart_id: "r/a".to_owned(),
            version: number.to_string(),
            digest: String::new(),
            seen: None,
            content: Content::Packed(archive.clone()),
            room: None,
        };
        let mut waiting: VecDeque<Answer> = (0..5).map(answer).collect();
        let mut parts = Vec::new();
        while !waiting.is_empty() {
            let part = Unpacked::of(&mut waiting, &Repository::default());
            assert_eq!(part.failed, 0);
            parts.push(part.rows.len());
        }
        assert_eq!(parts, [2, 2, 1]);
    }
}
