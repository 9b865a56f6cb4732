//! Metrics of live caches: processing time of events and, under names of our own, bytes and the
//! time until the first sync.
//!
//! Main type: [`Caches`].

use super::{Labels, clients::histogram, report::Gauges};
use prometheus_client::{
    collector::Collector,
    encoding::DescriptorEncoder,
    metrics::{family::Family, gauge::Gauge},
    registry::Registry,
};
use std::{fmt, sync::atomic::AtomicU64};
use tiphys_cluster::{clusters::LiveCluster, traffic::Histogram};

type Seconds = Family<Labels, Gauge<f64, AtomicU64>>;

/// Processing time of events, by server.
#[derive(Debug)]
struct Events(Vec<(Labels, Histogram)>);

impl Collector for Events {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let rows = self.0.iter().map(|(labels, h)| (labels.clone(), h));
        histogram(
            &mut encoder,
            "argocd_resource_events_processing",
            "Time to process resource events in seconds",
            rows,
        )
    }
}

/// Values for each cluster in use.
#[derive(Default)]
pub struct Caches {
    events: Vec<(Labels, Histogram)>,
    batches: Gauges,
    bytes: Gauges,
    objects: Gauges,
    ready: Seconds,
}

impl Caches {
    pub fn add(&mut self, cluster: &LiveCluster) {
        let server = || vec![("server".into(), cluster.destination.server.clone())];
        let count = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
        if let Some(events) = cluster.cache.processing() {
            // Events are processed one by one.
            self.batches.get_or_create(&server()).set(1);
            self.events.push((server(), events));
        }
        let stats = cluster.cache.stats();
        for (part, bytes) in [
            ("records", stats.record_bytes),
            ("bodies", stats.body_bytes),
        ] {
            self.bytes
                .get_or_create(
                    &server()
                        .into_iter()
                        .chain([("part".into(), part.to_owned())])
                        .collect(),
                )
                .set(count(bytes));
        }
        let per_object = (stats.record_bytes + stats.body_bytes) / stats.objects.max(1);
        self.objects.get_or_create(&server()).set(count(per_object));
        self.ready
            .get_or_create(&server())
            .set(cluster.took.as_secs_f64());
    }

    pub fn register(self, registry: &mut Registry) {
        registry.register_collector(Box::new(Events(self.events)));
        registry.register(
            "argocd_resource_events_processed_in_batch",
            "Number of resource events processed in batch",
            self.batches,
        );
        let help = "Bytes of the cache: records of all objects with their indexes, and compressed bodies of managed ones";
        registry.register("tiphys_cluster_cache_bytes", help, self.bytes);
        registry.register(
            "tiphys_cluster_cache_bytes_per_object",
            "Bytes of the cache for each object in it",
            self.objects,
        );
        registry.register(
            "tiphys_cluster_cache_ready_seconds",
            "Time from the first contact until all objects were in the cache",
            self.ready,
        );
    }
}
