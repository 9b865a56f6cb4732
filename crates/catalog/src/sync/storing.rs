//! Unpacking archives, and storing the files of many versions at once.
//!
//! Main type: [`Answer`], which reading gives.

use super::CatalogSync;
use crate::{
    CatalogError, Repository, Store, blocking,
    files::extract_with,
    gunzip::Inflater,
    index::plain_digest,
    model::{ChartFiles, RepoRef},
    repository::sha256,
    store::{FilesOutcome, FilesRow, SeenArchive, files_id},
};
use jiff::Timestamp;
use std::{collections::VecDeque, sync::Arc, time::Duration};
use tokio::sync::{OwnedSemaphorePermit, mpsc};

/// Files that are stored in one transaction, their bytes, and how long they wait for others.
pub(super) const BATCH: usize = 256;
const BATCH_BYTES: usize = 8 << 20;
const GATHERING: Duration = Duration::from_millis(100);
/// KiB of all archives and files that wait.
pub(super) const ROOM: u32 = 32 << 10;
/// The largest archive that waits to be unpacked with others; changing threads for each costs more.
pub(super) const SMALL: usize = 64 << 10;

/// A version whose archive was asked for.
pub(super) struct Answer {
    pub chart_id: String,
    pub version: String,
    /// As the index writes it.
    pub digest: String,
    /// Of an archive for which the index has no digest.
    pub seen: Option<SeenArchive>,
    pub content: Content,
    /// Its part of [`ROOM`].
    pub room: Option<OwnedSemaphorePermit>,
}

pub(super) enum Content {
    Packed(Vec<u8>),
    Read(FilesOutcome),
}

impl Content {
    pub fn bytes(&self) -> usize {
        match self {
            Self::Packed(archive) => archive.len(),
            Self::Read(outcome) => outcome.bytes(),
        }
    }
}

impl CatalogSync {
    /// Stores what is read, many at once; meanwhile the next ones are unpacked.
    pub(super) async fn write(
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
        let mut inflater = Inflater::default();
        while bytes < BATCH_BYTES
            && let Some(answer) = waiting.pop_front()
        {
            room.extend(answer.room);
            let (chart_id, version) = (answer.chart_id, answer.version);
            let mut outcome = match answer.content {
                Content::Read(outcome) => outcome,
                Content::Packed(archive) => {
                    read_archive(&archive, answer.digest, (repository, &mut inflater))
                }
            };
            match &mut outcome {
                FilesOutcome::Failed { reason, .. } => {
                    tracing::warn!(chart = chart_id, version, "no files: {reason}");
                    failed += 1;
                }
                FilesOutcome::Read(files) => {
                    files.id = files_id(&chart_id, &version);
                    seen.extend(answer.seen);
                }
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
    (repository, inflater): (&Repository, &mut Inflater),
) -> FilesOutcome {
    if let Err(reason) = checked(archive, &digest) {
        return FilesOutcome::Failed {
            reason,
            is_other: true,
        };
    }
    match extract_with(inflater, archive) {
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
