//! A second look at archives for which the index has no digest: nothing else says that one was
//! replaced. Some are asked for in each sync, by what their server called them.

use super::{CONCURRENCY, CatalogSync, storing::read_archive};
use crate::{
    CatalogError, blocking,
    gunzip::Inflater,
    model::ChartVersion,
    repository::{Form, sha256},
    store::{FilesOutcome, FilesRow, SeenArchive},
};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use jiff::Timestamp;
use std::sync::Arc;
use tiphys_repo::Known;

/// Archives that are asked for in one sync, those first that were asked for longest ago.
const LOOKS: i64 = 20;

/// What a look gave.
enum Look {
    /// It is not in the catalogue, or has a digest now.
    Gone(SeenArchive),
    /// What it is now, and its files if it is another one.
    Seen(SeenArchive, Option<FilesRow>),
}

impl CatalogSync {
    /// Looks at what was not read since a time. Returns how many were replaced.
    pub(super) async fn look_again(&self, since: Timestamp) -> Result<usize, CatalogError> {
        // kubeapps never does.
        if self.repository.form == Form::Kubeapps {
            return Ok(0);
        }
        let oldest = self
            .with_store(move |store, repository| {
                let since = since.as_millisecond();
                store.oldest_archives(&repository.id, since, LOOKS)
            })
            .await?;
        let looks: Vec<Look> = stream::iter(oldest)
            .map(|seen| self.look(seen))
            .buffer_unordered(CONCURRENCY)
            .try_collect()
            .await?;
        let now = Timestamp::now();
        self.with_store(move |store, repository| {
            let id = &repository.id;
            let (mut seen, mut rows) = (Vec::new(), Vec::new());
            for look in looks {
                match look {
                    Look::Gone(gone) => {
                        store.forget_archive(id, &gone.chart_id, &gone.version)?;
                    }
                    Look::Seen(archive, row) => {
                        seen.push(archive);
                        rows.extend(row);
                    }
                }
            }
            store.put_files(id, &rows, now.as_second())?;
            store.put_archives(id, &seen, now.as_millisecond())?;
            Ok(rows.len())
        })
        .await
    }

    async fn look(&self, seen: SeenArchive) -> Result<Look, CatalogError> {
        let Some(version) = self.without_digest(&seen).await? else {
            return Ok(Look::Gone(seen));
        };
        let Some(url) = version.urls.iter().flatten().next() else {
            return Ok(Look::Gone(seen));
        };
        let known = Known {
            etag: seen.etag.clone(),
            modified: seen.modified.clone(),
        };
        // Not asked twice: the next sync does.
        let fetched = match self.remote.archive(url, &known).await {
            Ok(Some(fetched)) => fetched,
            Ok(None) => return Ok(Look::Seen(seen, None)),
            // What cannot be read takes nothing away.
            Err(e) => {
                tracing::debug!(chart = seen.chart_id, version = seen.version, error = %e, "no look");
                return Ok(Look::Seen(seen, None));
            }
        };
        let repository = Arc::clone(&self.repository);
        blocking(move || {
            let now = SeenArchive {
                sha: sha256(&fetched.content),
                etag: fetched.version.etag,
                modified: fetched.version.modified,
                ..seen.clone()
            };
            if now.sha == seen.sha {
                return Ok(Look::Seen(now, None));
            }
            let with = (&*repository, &mut Inflater::default());
            let outcome = read_archive(&fetched.content, String::new(), with);
            if let FilesOutcome::Failed { reason, .. } = &outcome {
                let (chart, version) = (&seen.chart_id, &seen.version);
                tracing::warn!(chart, version, "what took its place is no chart: {reason}");
                return Ok(Look::Seen(seen, None));
            }
            let row = FilesRow {
                chart_id: now.chart_id.clone(),
                version: now.version.clone(),
                outcome,
            };
            Ok(Look::Seen(now, Some(row)))
        })
        .await
    }

    async fn without_digest(
        &self,
        seen: &SeenArchive,
    ) -> Result<Option<ChartVersion>, CatalogError> {
        let (chart_id, wanted) = (seen.chart_id.clone(), seen.version.clone());
        self.with_store(move |store, repository| {
            let chart = store.chart(&repository.id, &chart_id)?;
            let mut versions = chart.into_iter().flat_map(|chart| chart.versions);
            Ok(versions.find(|known| known.version == wanted && known.digest.is_empty()))
        })
        .await
    }
}
