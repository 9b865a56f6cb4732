//! The metrics of chart repositories that this process reads. Main type: [`ChartMetrics`].

use super::Labels;
use prometheus_client::{
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};
use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};
use tiphys_catalog::{RepoId, sync::SyncReport};

/// Seconds: from an index that did not change to a registry that is read for the first time.
const BUCKETS: [f64; 10] = [0.01, 0.05, 0.25, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0];

/// How syncs end.
const RESULTS: [&str; 3] = ["changed", "unchanged", "failed"];

/// What was read so far. Cheap to clone.
#[derive(Clone)]
pub struct ChartMetrics {
    is_used: Arc<AtomicBool>,
    syncs: Family<Labels, Counter>,
    seconds: Family<Labels, Histogram, fn() -> Histogram>,
    files: Family<Labels, Counter>,
    skipped: Family<Labels, Gauge>,
    replaced: Family<Labels, Counter>,
    succeeded_at: Family<Labels, Gauge>,
}

impl Default for ChartMetrics {
    fn default() -> Self {
        Self {
            is_used: Arc::default(),
            syncs: Family::default(),
            seconds: Family::new_with_constructor(|| Histogram::new(BUCKETS)),
            files: Family::default(),
            skipped: Family::default(),
            replaced: Family::default(),
            succeeded_at: Family::default(),
        }
    }
}

impl ChartMetrics {
    /// A sync ended; `report` is that of one that succeeded.
    pub(crate) fn synced(&self, id: &RepoId, report: Option<&SyncReport>, took: Duration) {
        self.is_used.store(true, Relaxed);
        let own = own(id);
        let result = match report {
            None => "failed",
            Some(report) if report.unchanged => "unchanged",
            Some(_) => "changed",
        };
        self.syncs.get_or_create(&with(&own, result)).inc();
        let seconds = self.seconds.get_or_create(&own);
        seconds.observe(took.as_secs_f64());
        let Some(report) = report else { return };
        for (succeeded, count) in [("true", report.files), ("false", report.failed_files)] {
            let mut labels = own.clone();
            labels.push(("succeeded".into(), succeeded.to_owned()));
            self.files.get_or_create(&labels).inc_by(count as u64);
        }
        let replaced = self.replaced.get_or_create(&own);
        replaced.inc_by(report.replaced as u64);
        self.skipped.get_or_create(&own).set(report.skipped);
        let now = jiff::Timestamp::now().as_second();
        self.succeeded_at.get_or_create(&own).set(now);
    }

    /// The AppRepository is gone.
    pub(crate) fn gone(&self, id: &RepoId) {
        let own = own(id);
        for result in RESULTS {
            self.syncs.remove(&with(&own, result));
        }
        for succeeded in ["true", "false"] {
            let mut labels = own.clone();
            labels.push(("succeeded".into(), succeeded.to_owned()));
            self.files.remove(&labels);
        }
        self.seconds.remove(&own);
        self.skipped.remove(&own);
        self.replaced.remove(&own);
        self.succeeded_at.remove(&own);
    }

    /// Only these, in OpenMetrics format.
    ///
    /// # Errors
    /// If formatting fails, which does not happen.
    pub fn text(&self) -> Result<String, fmt::Error> {
        super::text(|registry| self.register(registry))
    }

    /// Nothing, where no repository was read.
    pub(crate) fn register(&self, registry: &mut Registry) {
        if !self.is_used.load(Relaxed) {
            return;
        }
        // The format adds `_total`.
        registry.register(
            "tiphys_catalog_syncs",
            "Syncs of chart repositories, by result",
            self.syncs.clone(),
        );
        registry.register(
            "tiphys_catalog_sync_seconds",
            "How long syncs of chart repositories took, in seconds",
            self.seconds.clone(),
        );
        registry.register(
            "tiphys_catalog_files",
            "Archives of chart versions that were read",
            self.files.clone(),
        );
        registry.register(
            "tiphys_catalog_replaced_tags",
            "Tags of registries that name another digest than before",
            self.replaced.clone(),
        );
        registry.register(
            "tiphys_catalog_skipped_entries",
            "Entries of chart repositories that are not in the catalogue",
            self.skipped.clone(),
        );
        registry.register(
            "tiphys_catalog_last_success_timestamp_seconds",
            "When a chart repository was read last, in seconds since 1970",
            self.succeeded_at.clone(),
        );
    }
}

fn own(id: &RepoId) -> Labels {
    vec![
        ("namespace".into(), id.namespace.clone()),
        ("name".into(), id.name.clone()),
    ]
}

fn with(own: &Labels, result: &str) -> Labels {
    let mut labels = own.clone();
    labels.push(("result".into(), result.to_owned()));
    labels
}
