//! The controller's metrics. Main type: [`Metrics`]; [`report`] prints them together with current
//! values, under Argo CD's names.
//!
//! An Application's counters are removed with it, so that memory does not grow.

mod caches;
pub mod charts;
mod clients;
pub mod report;
mod requests;
pub mod sets;

pub use clients::RedisRequests;
pub use requests::Request;

use prometheus_client::{
    encoding::text::encode,
    metrics::{family::Family, histogram::Histogram},
    registry::Registry,
};
use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tiphys_cluster::AppKey;

/// Seconds; Argo CD's buckets, with additional ones below for faster reconciles.
const BUCKETS: [f64; 10] = [0.001, 0.01, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0];

/// Names and values of labels.
pub type Labels = Vec<(Cow<'static, str>, String)>;

/// What is registered, in OpenMetrics format.
///
/// # Errors
/// If formatting fails, which does not happen.
pub(crate) fn text(register: impl FnOnce(&mut Registry)) -> Result<String, fmt::Error> {
    let (mut registry, mut text) = (Registry::default(), String::new());
    register(&mut registry);
    encode(&mut text, &registry)?;
    Ok(text)
}

/// The counters of a controller. Cheap to clone.
#[derive(Clone)]
pub struct Metrics {
    apps: Arc<Mutex<HashMap<AppKey, Syncs>>>,
    reconciles: Family<Labels, Histogram, fn() -> Histogram>,
    pub redis: RedisRequests,
}

/// The number of syncs of one Application by result, and of panics.
#[derive(Clone, Debug, Default)]
struct Syncs {
    /// By project and server, then by phase and whether it was a dry run.
    count: BTreeMap<(Place, String, bool), u64>,
    seconds: BTreeMap<Place, f64>,
    requests: BTreeMap<(Place, Request), u64>,
    panics: u64,
}

/// Project and server.
type Place = (String, String);

/// A finished sync.
pub struct EndedSync {
    pub project: String,
    pub server: String,
    pub phase: String,
    pub dry_run: bool,
    pub took: Duration,
}

impl Default for Metrics {
    fn default() -> Self {
        let histogram: fn() -> Histogram = || Histogram::new(BUCKETS);
        Self {
            apps: Arc::default(),
            reconciles: Family::new_with_constructor(histogram),
            redis: RedisRequests::default(),
        }
    }
}

impl Metrics {
    pub fn ended(&self, app: &AppKey, sync: EndedSync) {
        let mut apps = self.apps();
        let syncs = apps.entry(app.clone()).or_default();
        let place = (sync.project, sync.server);
        *syncs.seconds.entry(place.clone()).or_default() += sync.took.as_secs_f64();
        *syncs
            .count
            .entry((place, sync.phase, sync.dry_run))
            .or_default() += 1;
    }

    /// Counts a request for an Application's sync or deletion.
    pub fn requested(&self, app: &AppKey, project: &str, server: &str, request: Request) {
        let key = ((project.to_owned(), server.to_owned()), request);
        *self
            .apps()
            .entry(app.clone())
            .or_default()
            .requests
            .entry(key)
            .or_default() += 1;
    }

    /// Counts a comparison.
    pub fn reconciled(&self, namespace: &str, server: &str, took: Duration) {
        let labels = vec![
            ("namespace".into(), namespace.to_owned()),
            ("dest_server".into(), server.to_owned()),
        ];
        self.reconciles
            .get_or_create(&labels)
            .observe(took.as_secs_f64());
    }

    /// Counts a panic in a reconcile.
    pub fn panicked(&self, app: &AppKey) {
        self.apps().entry(app.clone()).or_default().panics += 1;
    }

    pub fn gone(&self, app: &AppKey) {
        self.apps().remove(app);
    }

    fn apps(&self) -> MutexGuard<'_, HashMap<AppKey, Syncs>> {
        self.apps.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
