//! The metrics of ApplicationSets, under Argo CD's names. Main types: [`SetMetrics`] and
//! [`SetReport`].

use super::{Labels, report::label_name};
use prometheus_client::{
    metrics::{family::Family, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};
use std::{fmt, time::Duration};
use tiphys_api::ApplicationSet;
use tiphys_cluster::{AppKey, records::Store};

/// Seconds; those that Prometheus' library has by default, as Argo CD's.
const BUCKETS: [f64; 11] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
];

/// How long reconciles took. Cheap to clone.
#[derive(Clone)]
pub struct SetMetrics(Family<Labels, Histogram, fn() -> Histogram>);

impl Default for SetMetrics {
    fn default() -> Self {
        Self(Family::new_with_constructor(|| Histogram::new(BUCKETS)))
    }
}

impl SetMetrics {
    pub(crate) fn reconciled(&self, set: &AppKey, took: Duration) {
        let labels = own(&set.namespace, &set.name);
        self.0.get_or_create(&labels).observe(took.as_secs_f64());
    }

    pub(crate) fn gone(&self, set: &AppKey) {
        self.0.remove(&own(&set.namespace, &set.name));
    }
}

/// Where the metrics come from.
#[derive(Clone)]
pub struct SetReport {
    pub metrics: SetMetrics,
    pub sets: Store<ApplicationSet>,
    /// Labels of sets that the metric argocd_appset_labels shows.
    pub labels: Vec<String>,
}

impl SetReport {
    /// Only these, in OpenMetrics format.
    ///
    /// # Errors
    /// If formatting fails, which does not happen.
    pub fn text(&self) -> Result<String, fmt::Error> {
        super::text(|registry| self.register(registry))
    }

    pub(crate) fn register(&self, registry: &mut Registry) {
        type Gauges = Family<Labels, Gauge>;
        let (info, owned, labels) = (Gauges::default(), Gauges::default(), Gauges::default());
        for record in self.sets.list() {
            let Ok(set) = record.value() else { continue };
            let own = own(&set.metadata.namespace, &set.metadata.name);
            let mut conditions = set.status.conditions.iter();
            let state = conditions
                .find(|condition| condition.type_ == "ResourcesUpToDate")
                .map_or("Unknown", |condition| condition.reason.as_str());
            let mut with_state = own.clone();
            with_state.push(("resource_update_status".into(), state.to_owned()));
            info.get_or_create(&with_state).set(1);
            let count = i64::try_from(set.status.resources.len()).unwrap_or(i64::MAX);
            owned.get_or_create(&own).set(count);
            let mut with_labels = own;
            for label in &self.labels {
                let value = set.metadata.labels.get(label).cloned();
                with_labels.push((label_name(label), value.unwrap_or_default()));
            }
            labels.get_or_create(&with_labels).set(1);
        }
        registry.register(
            "argocd_appset_info",
            "Information about applicationset",
            info,
        );
        registry.register(
            "argocd_appset_owned_applications",
            "Number of applications owned by the applicationset",
            owned,
        );
        if !self.labels.is_empty() {
            registry.register(
                "argocd_appset_labels",
                "Applicationset labels translated to Prometheus labels",
                labels,
            );
        }
        registry.register(
            "argocd_appset_reconcile",
            "Application reconciliation performance in seconds",
            self.metrics.0.clone(),
        );
    }
}

fn own(namespace: &str, name: &str) -> Labels {
    vec![
        ("namespace".into(), namespace.to_owned()),
        ("name".into(), name.to_owned()),
    ]
}
