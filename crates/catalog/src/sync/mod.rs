//! One run of reading a repository into the store.
//!
//! Main types: [`CatalogSync`] and [`SyncReport`]. The index is imported chart by chart; then icons
//! and files are read, the newest versions first. A run that is stopped anywhere is continued by
//! the next one: what is stored is a chart as a whole or the files of a version as a whole, and the
//! checksum of the index is stored last. Nothing is removed unless an index was read to its end.

mod archive;
mod files;
mod icons;
mod import;
mod looks;
mod registry;
mod storing;

pub use registry::Source;

use crate::{CatalogError, Repository, Store, blocking, store::RepoState};
use files::{Failures, Part};
use futures::future::BoxFuture;
use jiff::Timestamp;
use std::sync::{Arc, Weak};
use tiphys_repo::{ChartRemote, Known, Spooled};

/// Files and icons that are read at the same time.
const CONCURRENCY: usize = 10;
/// Failed files that are tried again while the index stays the same.
const RETRIED: i64 = 200;

/// What a run did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SyncReport {
    /// The index is the one of the last run.
    pub unchanged: bool,
    /// Charts that are in the catalogue now, of those in the index.
    pub charts: usize,
    /// Charts that were written.
    pub changed: usize,
    pub removed: usize,
    /// Versions whose files were read.
    pub files: usize,
    /// Versions whose files could not be read.
    pub failed_files: usize,
    /// Entries of the index that are not in the catalogue.
    pub skipped: i64,
    /// Tags of a registry that name another digest than before.
    pub replaced: usize,
}

/// Reads one repository into a store.
pub struct CatalogSync {
    store: Arc<Store>,
    remote: Arc<ChartRemote>,
    repository: Arc<Repository>,
    registry: Option<Source>,
}

impl CatalogSync {
    pub fn new(store: Arc<Store>, remote: ChartRemote, repository: Repository) -> Self {
        Self {
            store,
            remote: Arc::new(remote),
            repository: Arc::new(repository),
            registry: None,
        }
    }

    /// Reads a registry in place of an index; `remote` is for icons only.
    pub fn with_registry(mut self, source: Source) -> Self {
        self.registry = Some(source);
        self
    }

    /// As long as this can be upgraded, something of this sync may still be writing: its threads
    /// do not end with a run that is dropped.
    pub fn at_work(&self) -> Weak<Repository> {
        Arc::downgrade(&self.repository)
    }

    /// # Errors
    /// The index could not be read, or the database failed. Single charts and files never fail a
    /// run: see [`Store::problems`].
    pub fn run(&self) -> BoxFuture<'_, Result<SyncReport, CatalogError>> {
        Box::pin(self.noted())
    }

    async fn noted(&self) -> Result<SyncReport, CatalogError> {
        let ended = self.attempt().await;
        if let Err(e) = &ended {
            let reason = e.to_string();
            let noted = self.with_store(move |store, repository| {
                let (id, url) = (&repository.id, shown(&repository.url));
                store.finish(id, &url, Timestamp::now(), Err(&reason))
            });
            if let Err(e) = noted.await {
                tracing::warn!(error = %e, "the failure of a sync cannot be stored");
            }
        }
        ended
    }

    async fn attempt(&self) -> Result<SyncReport, CatalogError> {
        let before = self
            .with_store(|store, repository| store.state(&repository.id))
            .await?;
        let config = self.repository.config_sha();
        if let Some(source) = &self.registry {
            let state = RepoState {
                config_sha: config,
                ..RepoState::default()
            };
            return self.read_registry(source, state).await;
        }
        // Else kubeapps, or other settings, left what is there.
        let is_ours = before.config_sha == config
            && !before.checksum.is_empty()
            && before.checksum == before.our_checksum;
        let known = if is_ours {
            Known {
                etag: before.etag.clone(),
                modified: before.modified.clone(),
            }
        } else {
            Known::default()
        };
        let Some(fetched) = self.remote.index(&known).await? else {
            return self.retry(before).await;
        };
        let Spooled {
            mut content,
            sha256: checksum,
            version,
        } = fetched;
        let mut state = RepoState {
            our_checksum: checksum.clone(),
            checksum,
            config_sha: config,
            etag: version.etag,
            modified: version.modified,
            skipped: before.skipped,
        };
        if is_ours && state.checksum == before.checksum {
            return self.retry(state).await;
        }
        let imported = self
            .with_store(move |store, repository| {
                import::run(store, repository, &mut *content, is_ours)
            })
            .await?;
        state.skipped = imported.skipped;
        let mut report = SyncReport {
            unchanged: false,
            charts: imported.charts,
            changed: imported.changed,
            removed: imported.removed,
            skipped: imported.skipped,
            ..SyncReport::default()
        };
        let began = Timestamp::now();
        let failed = self
            .with_store(|store, repository| store.failed_files(&repository.id, i64::MAX))
            .await?;
        let mut before = Failures::new();
        for (chart, version) in failed {
            before.entry(chart).or_default().insert(version);
        }
        let before = Arc::new(before);
        let parts = [Part::Newest, Part::Others, Part::Failed];
        for part in &parts[..parts.len() - usize::from(before.is_empty())] {
            let (read, failed) = self.read_files(&imported.work, (*part, &before)).await?;
            report.files += read;
            report.failed_files += failed;
        }
        report.replaced += self.look_again(began).await?;
        // Last: a host of pictures that does not answer must not keep what people read away.
        self.read_icons(Some(&imported.work)).await?;
        self.finish(state).await?;
        Ok(report)
    }

    /// The index did not change: only what failed is tried again.
    async fn retry(&self, state: RepoState) -> Result<SyncReport, CatalogError> {
        let failed = self
            .with_store(|store, repository| store.failed_files(&repository.id, RETRIED))
            .await?;
        let (files, failed_files) = self.read_versions(failed).await?;
        let replaced = self.look_again(Timestamp::now()).await?;
        self.read_icons(None).await?;
        let skipped = state.skipped;
        self.with_store(move |store, repository| {
            let (id, url) = (&repository.id, shown(&repository.url));
            store.finish_unchanged(id, &url, Timestamp::now(), &state)
        })
        .await?;
        Ok(SyncReport {
            unchanged: true,
            files,
            failed_files,
            replaced,
            skipped,
            ..SyncReport::default()
        })
    }

    async fn finish(&self, state: RepoState) -> Result<(), CatalogError> {
        self.with_store(move |store, repository| {
            let (id, url) = (&repository.id, shown(&repository.url));
            store.finish(id, &url, Timestamp::now(), Ok(&state))
        })
        .await
    }

    /// Boxed, so that the compiler sees that runs can be moved between threads.
    fn with_store<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Store, &Repository) -> Result<T, CatalogError> + Send + 'static,
    ) -> BoxFuture<'static, Result<T, CatalogError>> {
        let (store, repository) = (Arc::clone(&self.store), Arc::clone(&self.repository));
        Box::pin(blocking(move || work(&store, &repository)))
    }
}

/// A URL without what may be secret in it.
pub(crate) fn shown(url: &str) -> String {
    tiphys_api::access::shown_url(url)
}
