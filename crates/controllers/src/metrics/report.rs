//! Prints the metrics in OpenMetrics format. Main type: [`Report`].

use super::charts::ChartMetrics;
use super::sets::SetReport;
use super::{Labels, Metrics, caches::Caches, clients::Servers};
use prometheus_client::{
    encoding::text::{encode, encode_registry},
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};
use std::{
    borrow::Cow,
    fmt,
    sync::{Arc, OnceLock, atomic::AtomicU64},
};
use tiphys_api::{Application, access::normalize_url};
use tiphys_cluster::{AppKey, AppStates, Records, clusters::Clusters};
use tiphys_engine::spec;

/// The content type.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Optional labels and metrics.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    pub app_labels: Vec<String>,
    pub app_conditions: Vec<String>,
    pub cluster_labels: Vec<String>,
}

/// Where the metrics come from.
#[derive(Clone)]
pub struct Report {
    pub metrics: Metrics,
    pub records: Records,
    pub clusters: Clusters,
    pub states: AppStates,
    pub choice: Choice,
    /// Set once ApplicationSets are watched.
    pub sets: Arc<OnceLock<SetReport>>,
    pub charts: ChartMetrics,
}

pub(super) type Gauges = Family<Labels, Gauge>;

impl Report {
    /// # Errors
    /// If formatting fails, which does not happen.
    pub fn text(&self) -> Result<String, fmt::Error> {
        let mut registry = Registry::default();
        self.applications(&mut registry);
        syncs(&self.metrics, &mut registry);
        self.clusters(&mut registry);
        self.metrics.redis.register(&mut registry);
        if let Some(sets) = self.sets.get() {
            sets.register(&mut registry);
        }
        self.charts.register(&mut registry);
        let help = "Application reconciliation performance in seconds";
        registry.register(
            "argocd_app_reconcile",
            help,
            self.metrics.reconciles.clone(),
        );
        let mut text = String::new();
        encode(&mut text, &registry)?;
        Ok(text)
    }

    /// Only the requests to API servers, for use with other metrics.
    ///
    /// # Errors
    /// If formatting fails, which does not happen.
    pub fn requests(&self) -> Result<String, fmt::Error> {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(self.servers()));
        let mut text = String::new();
        encode_registry(&mut text, &registry)?;
        Ok(text)
    }

    /// Requests to all API servers, including the one with our records.
    fn servers(&self) -> Servers {
        let own = self.records.cluster.http().traffic();
        let clusters = self.clusters.list();
        let others = clusters
            .iter()
            .map(|c| c.cache.discovery().cluster().http().traffic())
            .filter(|t| !t.is_same(own));
        Servers::of(others.chain([own]))
    }

    fn applications(&self, registry: &mut Registry) {
        let (info, labels, conditions, orphans) = (
            Gauges::default(),
            Gauges::default(),
            Gauges::default(),
            Gauges::default(),
        );
        let destinations = self.records.settings().destinations.clone();
        for record in self.records.applications.list() {
            let Ok(app) = record.value() else { continue };
            let own = own(&app);
            let server = spec::destination(&app.spec.destination, &destinations)
                .map(|d| d.server)
                .unwrap_or_default();
            info.get_or_create(&with(&own, info_labels(&app, server)))
                .set(1);
            let chosen = &self.choice.app_labels;
            if !chosen.is_empty() {
                labels
                    .get_or_create(&with(
                        &own,
                        chosen
                            .iter()
                            .map(|l| (label_name(l), text(app.metadata.labels.get(l))))
                            .collect(),
                    ))
                    .set(1);
            }
            for kind in &self.choice.app_conditions {
                let count = app
                    .status
                    .conditions
                    .iter()
                    .filter(|c| c.type_ == *kind)
                    .count();
                if count > 0 {
                    conditions
                        .get_or_create(&with(&own, vec![("condition".into(), kind.clone())]))
                        .set(number(count));
                }
            }
            if let Some(state) = self
                .states
                .get(&AppKey::new(&app.metadata.namespace, &app.metadata.name))
            {
                orphans
                    .get_or_create(&own)
                    .set(number(state.tree.orphaned_nodes.len()));
            }
        }
        registry.register("argocd_app_info", "Information about application", info);
        registry.register(
            "argocd_app_orphaned_resources_count",
            "Number of orphaned resources per application",
            orphans,
        );
        if !self.choice.app_labels.is_empty() {
            registry.register(
                "argocd_app_labels",
                "Argo Application labels converted to Prometheus labels",
                labels,
            );
        }
        if !self.choice.app_conditions.is_empty() {
            registry.register(
                "argocd_app_condition",
                "Report application conditions",
                conditions,
            );
        }
    }

    fn clusters(&self, registry: &mut Registry) {
        let (info, objects, kinds, connected) = (
            Gauges::default(),
            Gauges::default(),
            Gauges::default(),
            Gauges::default(),
        );
        let (age, labels, events) = (
            Gauges::default(),
            Gauges::default(),
            Family::<Labels, Counter>::default(),
        );
        let mut caches = Caches::default();
        let (settings, chosen) = (self.records.settings(), &self.choice.cluster_labels);
        for cluster in self.clusters.list() {
            let of = vec![(Cow::from("server"), cluster.destination.server.clone())];
            let version = cluster.cache.discovery().cluster().version().plain();
            let stats = cluster.cache.stats();
            let name = cluster.destination.name.clone();
            caches.add(&cluster);
            if let (false, Some(secret)) = (
                chosen.is_empty(),
                settings.cluster(&cluster.destination.server, ""),
            ) {
                let values = chosen
                    .iter()
                    .map(|l| (label_name(l), text(secret.labels.get(l))));
                labels
                    .get_or_create(&with(
                        &of,
                        [("name".into(), name.clone())]
                            .into_iter()
                            .chain(values)
                            .collect(),
                    ))
                    .set(1);
            }
            for (kind, count) in cluster.cache.events() {
                events
                    .get_or_create(&with(
                        &of,
                        vec![("group".into(), kind.group), ("kind".into(), kind.kind)],
                    ))
                    .inc_by(count);
            }
            age.get_or_create(&of)
                .set(i64::try_from(cluster.ready.elapsed().as_secs()).unwrap_or(i64::MAX));
            info.get_or_create(&with(
                &of,
                vec![
                    ("k8s_version".into(), version.clone()),
                    ("name".into(), name),
                ],
            ))
            .set(1);
            connected
                .get_or_create(&with(&of, vec![("k8s_version".into(), version)]))
                .set(i64::from(stats.failed_kinds == 0));
            objects.get_or_create(&of).set(number(stats.objects));
            kinds.get_or_create(&of).set(number(stats.kinds));
        }
        caches.register(registry);
        registry.register_collector(Box::new(self.servers()));
        registry.register("argocd_cluster_info", "Information about cluster", info);
        registry.register(
            "argocd_cluster_api_resource_objects",
            "Number of k8s resource objects in the cache",
            objects,
        );
        registry.register(
            "argocd_cluster_api_resources",
            "Number of monitored kubernetes API resources",
            kinds,
        );
        registry.register(
            "argocd_cluster_cache_age_seconds",
            "Cluster cache age in seconds",
            age,
        );
        registry.register(
            "argocd_cluster_events",
            "Number of processes k8s resource events",
            events,
        );
        if !chosen.is_empty() {
            registry.register(
                "argocd_cluster_labels",
                "Argo Cluster labels converted to Prometheus labels",
                labels,
            );
        }
        registry.register(
            "argocd_cluster_connection_status",
            "The k8s cluster current connection status",
            connected,
        );
    }
}

fn syncs(metrics: &Metrics, registry: &mut Registry) {
    let count = Family::<Labels, Counter>::default();
    let seconds = Family::<Labels, Counter<f64, AtomicU64>>::default();
    let requests = Family::<Labels, Counter>::default();
    let panics = Family::<Labels, Counter>::default();
    for (app, syncs) in metrics.apps().iter() {
        let place = |(project, server): &(String, String)| {
            with(
                &named(&app.namespace, &app.name, project),
                vec![("dest_server".into(), server.clone())],
            )
        };
        for ((at, phase, dry_run), times) in &syncs.count {
            let more = vec![
                ("phase".into(), phase.clone()),
                ("dry_run".into(), dry_run.to_string()),
            ];
            count.get_or_create(&with(&place(at), more)).inc_by(*times);
        }
        for (((project, server), request), times) in &syncs.requests {
            let more = vec![
                ("server".into(), server.clone()),
                ("response_code".into(), request.code.to_string()),
                ("verb".into(), request.verb.to_owned()),
                ("resource_kind".into(), request.resource.clone()),
                ("resource_namespace".into(), request.namespace.clone()),
                ("dry_run".into(), request.dry_run.to_string()),
            ];
            requests
                .get_or_create(&with(&named(&app.namespace, &app.name, project), more))
                .inc_by(*times);
        }
        if syncs.panics > 0 {
            let of = vec![
                ("namespace".into(), app.namespace.clone()),
                ("name".into(), app.name.clone()),
            ];
            panics.get_or_create(&of).inc_by(syncs.panics);
        }
        for (at, took) in &syncs.seconds {
            seconds.get_or_create(&place(at)).inc_by(*took);
        }
    }
    registry.register(
        "tiphys_app_panics",
        "Looks at an Application that panicked; it is looked at again later",
        panics,
    );
    registry.register("argocd_app_sync", "Number of application syncs", count);
    registry.register(
        "argocd_app_k8s_request",
        "Number of kubernetes requests executed during application reconciliation",
        requests,
    );
    registry.register(
        "argocd_app_sync_duration_seconds",
        "Application sync performance in seconds total",
        seconds,
    );
}

/// The common labels of an Application's metrics.
fn own(app: &Application) -> Labels {
    named(
        &app.metadata.namespace,
        &app.metadata.name,
        spec::project_name(app),
    )
}

fn named(namespace: &str, name: &str, project: &str) -> Labels {
    [
        ("namespace", namespace),
        ("name", name),
        ("project", project),
    ]
    .map(|(k, v)| (k.into(), v.to_owned()))
    .into()
}

fn info_labels(app: &Application, server: String) -> Labels {
    let unless_known = |status: &str| {
        if status.is_empty() {
            "Unknown".to_owned()
        } else {
            status.to_owned()
        }
    };
    let automated = app
        .spec
        .sync_policy
        .as_ref()
        .and_then(|p| p.automated.as_ref());
    let operation = match (&app.metadata.deletion_timestamp, &app.operation) {
        (Some(_), _) => "delete",
        (None, Some(operation)) if operation.sync.is_some() => "sync",
        _ => "",
    };
    let sources = tiphys_engine::spec::sources(&app.spec);
    let source = sources.first();
    vec![
        (
            "autosync_enabled".into(),
            automated
                .is_some_and(|a| a.enabled.unwrap_or(true))
                .to_string(),
        ),
        (
            "repo".into(),
            source
                .map(|s| normalize_url(&s.repo_url))
                .unwrap_or_default(),
        ),
        ("dest_server".into(), server),
        (
            "dest_namespace".into(),
            app.spec.destination.namespace.clone(),
        ),
        ("sync_status".into(), unless_known(&app.status.sync.status)),
        (
            "health_status".into(),
            unless_known(&app.status.health.status),
        ),
        ("operation".into(), operation.to_owned()),
    ]
}

fn with(labels: &Labels, more: Labels) -> Labels {
    labels.iter().cloned().chain(more).collect()
}

/// The metric label for a Kubernetes label.
pub(crate) fn label_name(label: &str) -> Cow<'static, str> {
    let plain: String = label
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
        .collect();
    format!("label_{plain}").into()
}

fn text(value: Option<&String>) -> String {
    value.cloned().unwrap_or_default()
}

fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::{EndedSync, Request};
    use http::Method;
    use std::time::Duration;
    use tiphys_cluster::request::Call;

    #[test]
    fn labels_get_names_that_prometheus_takes() {
        assert_eq!(
            label_name("app.kubernetes.io/part-of"),
            "label_app_kubernetes_io_part_of"
        );
    }

    #[test]
    fn syncs_are_counted_until_their_application_is_gone() {
        let metrics = Metrics::default();
        let app = AppKey::new("argocd", "web");
        let ended = |phase: &str| EndedSync {
            project: "default".into(),
            server: "https://one".into(),
            phase: phase.into(),
            dry_run: false,
            took: Duration::from_secs(3),
        };
        for phase in ["Succeeded", "Succeeded", "Failed"] {
            metrics.ended(&app, ended(phase));
        }
        for _ in 0..2 {
            let create = Call::new(Method::POST, "/api/v1/namespaces/n/configmaps");
            metrics.requested(&app, "default", "https://one", Request::of(&create, 201));
        }
        let shown = || {
            let (mut registry, mut text) = (Registry::default(), String::new());
            syncs(&metrics, &mut registry);
            encode(&mut text, &registry).expect("a text");
            text
        };
        let of =
            "namespace=\"argocd\",name=\"web\",project=\"default\",dest_server=\"https://one\"";
        let text = shown();
        for line in [
            format!("argocd_app_sync_total{{{of},phase=\"Succeeded\",dry_run=\"false\"}} 2\n"),
            format!("argocd_app_sync_total{{{of},phase=\"Failed\",dry_run=\"false\"}} 1\n"),
            format!("argocd_app_sync_duration_seconds_total{{{of}}} 9.0\n"),
            "argocd_app_k8s_request_total{namespace=\"argocd\",name=\"web\",project=\"default\",server=\"https://one\",response_code=\"201\",\
             verb=\"Create\",resource_kind=\"configmaps\",resource_namespace=\"n\",dry_run=\"false\"} 2\n"
                .to_owned(),
        ] {
            assert!(text.contains(&line), "{line} is missing in {text}");
        }
        metrics.gone(&app);
        assert!(!shown().contains("web"));
    }
}
