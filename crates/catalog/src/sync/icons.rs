//! Reading the icons of charts.

use super::{CONCURRENCY, CatalogSync};
use crate::{
    CatalogError, blocking, icon,
    repository::Form,
    store::{IconOutcome, IconState},
};
use base64::Engine as _;
use futures::{StreamExt as _, stream};
use jiff::Timestamp;
use std::{collections::HashSet, time::Duration};
use tiphys_repo::Known;

/// For one icon.
const PATIENCE: Duration = Duration::from_secs(20);
/// When an icon that failed is asked for again, in seconds.
const RETRY: i64 = 3_600;

impl CatalogSync {
    /// Reads the icons of charts that changed, and those that failed a while ago. `changed`: the
    /// index did, and in it these charts.
    pub(super) async fn read_icons(&self, changed: Option<&[String]>) -> Result<(), CatalogError> {
        let now = Timestamp::now().as_second();
        let icons = self
            .with_store(|store, repository| store.icons(&repository.id))
            .await?;
        let charts: HashSet<&str> = changed.into_iter().flatten().map(String::as_str).collect();
        // kubeapps looks at all icons whenever the index changed.
        let all = changed.is_some() && self.repository.form == Form::Kubeapps;
        let is_due = |icon: &IconState| {
            let waited = icon
                .tried_at
                .is_none_or(|at| now.saturating_sub(at) >= RETRY);
            all || charts.contains(icon.chart_id.as_str())
                || icon.tried_at.is_none()
                || icon.failed && waited
        };
        let due = icons.into_iter().filter(is_due);
        let read = stream::iter(due).map(|icon| async move {
            let outcome = self.icon(&icon).await;
            (icon.chart_id, outcome)
        });
        let mut read = std::pin::pin!(read.buffer_unordered(CONCURRENCY));
        while let Some((chart_id, outcome)) = read.next().await {
            if let IconOutcome::Failed { reason, .. } = &outcome {
                tracing::info!(chart = chart_id, "no icon: {reason}");
            }
            self.with_store(move |store, repository| {
                store.put_icon(&repository.id, &chart_id, &outcome, now)
            })
            .await?;
        }
        Ok(())
    }

    async fn icon(&self, icon: &IconState) -> IconOutcome {
        let failed = |reason: String, keep: bool| IconOutcome::Failed { reason, keep };
        let is_absolute = ["http://", "https://"].iter().any(|scheme| {
            let start = icon.url.get(..scheme.len());
            start.is_some_and(|start| start.eq_ignore_ascii_case(scheme))
        });
        if self.repository.form == Form::Kubeapps && !is_absolute {
            return failed("its address is neither http nor https".to_owned(), false);
        }
        if let Some(inline) = icon::in_url(&icon.url) {
            return match inline {
                Ok((content, kind)) => drawn(content, kind, Known::default()).await,
                Err(e) => failed(e.to_string(), false),
            };
        }
        let known = Known {
            etag: icon.etag.clone(),
            modified: icon.modified.clone(),
        };
        // Not asked again: the next sync does.
        let asked = self.remote.picture(&icon.url, &known);
        let Ok(asked) = tokio::time::timeout(PATIENCE, asked).await else {
            return failed(format!("no answer within {PATIENCE:?}"), true);
        };
        match asked {
            Ok(None) => IconOutcome::Unchanged,
            Ok(Some(fetched)) => drawn(fetched.content, fetched.kind, fetched.version).await,
            Err(e) => failed(e.to_string(), e.retryable()),
        }
    }
}

async fn drawn(content: Vec<u8>, kind: String, version: Known) -> IconOutcome {
    let png = blocking(move || {
        let png = icon::draw(&content, &kind);
        png.map_err(|e| CatalogError::Invalid(e.to_string()))
    });
    match png.await {
        Ok(png) => IconOutcome::Drawn {
            png: base64::engine::general_purpose::STANDARD.encode(png),
            etag: version.etag,
            modified: version.modified,
        },
        Err(e) => IconOutcome::Failed {
            reason: e.to_string(),
            keep: false,
        },
    }
}
