//! Every metric by name, kind and labels, after syncing an Application to an embedded API server.

use crate::ground::{APPS, PATIENCE, create, ground};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tempfile::TempDir;
use tiphys_cluster::{
    AppStates, Cluster, Records, RecordsOptions, clusters::Clusters, request::Call,
};
use tiphys_controllers::{
    application::{self, Dependencies},
    metrics::{
        Metrics,
        charts::ChartMetrics,
        report::{Choice, Report},
    },
};
use tiphys_repo::{RepoOptions, Repos};
use tiphys_sources::Sources;
use tiphys_testkit::Repo;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

/// Name, kind and labels; `-`: no labels, or no value.
const METRICS: &str = "
argocd_app_condition gauge namespace name project condition
argocd_app_info gauge namespace name project autosync_enabled repo dest_server dest_namespace sync_status health_status operation
argocd_app_k8s_request counter namespace name project server response_code verb resource_kind resource_namespace dry_run
argocd_app_labels gauge namespace name project label_team
argocd_app_orphaned_resources_count gauge namespace name project
argocd_app_reconcile histogram namespace dest_server
argocd_app_sync counter namespace name project dest_server phase dry_run
argocd_app_sync_duration_seconds counter namespace name project dest_server
argocd_cluster_api_resource_objects gauge server
argocd_cluster_api_resources gauge server
argocd_cluster_cache_age_seconds gauge server
argocd_cluster_connection_status gauge server k8s_version
argocd_cluster_events counter server group kind
argocd_cluster_info gauge server k8s_version name
argocd_kubectl_exec counter hostname command
argocd_kubectl_exec_pending gauge hostname command
argocd_kubectl_rate_limiter_duration_seconds histogram host verb
argocd_kubectl_request_duration_seconds histogram host verb
argocd_kubectl_request_retries counter -
argocd_kubectl_request_size_bytes histogram host method
argocd_kubectl_requests counter host method code
argocd_kubectl_response_size_bytes histogram host method
argocd_kubectl_transport_cache_entries gauge -
argocd_kubectl_transport_create_calls counter result
argocd_redis_request counter hostname initiator command failed
argocd_redis_request_duration histogram hostname initiator
argocd_resource_events_processed_in_batch gauge server
argocd_resource_events_processing histogram server
tiphys_app_panics counter namespace name
tiphys_cluster_cache_bytes gauge server part
tiphys_cluster_cache_bytes_per_object gauge server
tiphys_cluster_cache_ready_seconds gauge server
";

const GUIDE: &str = include_str!("../../../docs/guide/metrics.md");

/// Creates an Application and waits until its sync status is this one.
async fn application(cluster: &Cluster, repo: &Repo, name: &str, path: &str, status: &str) {
    let app = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": name, "labels": {"team": "a"}},
        "spec": {
            "project": "default", "source": {"repoURL": repo.url(), "path": path, "targetRevision": "HEAD"},
            "destination": {"server": "https://kubernetes.default.svc", "namespace": "default"}, "syncPolicy": {"automated": {}}
        }
    });
    create(cluster, APPS, &app).await;
    let began = Instant::now();
    while cluster
        .http()
        .json::<Value>(&Call::get(format!("{APPS}/{name}")))
        .await
        .expect("it is there")["status"]["sync"]["status"]
        != status
    {
        assert!(began.elapsed() < PATIENCE, "{name} is not {status}");
        sleep(Duration::from_millis(50)).await;
    }
}

/// Kind and labels of every family, and the values of its rows.
type Families = BTreeMap<String, (String, String, Vec<f64>)>;

fn families(text: &str) -> Families {
    let mut families = BTreeMap::new();
    let mut name = String::new();
    for line in text.lines() {
        if let Some(described) = line.strip_prefix("# TYPE ") {
            let (family, kind) = described.split_once(' ').expect("name and kind");
            name = family.to_owned();
            families.insert(name.clone(), (kind.to_owned(), String::new(), Vec::new()));
        } else if !line.starts_with('#') {
            let (series, value) = line.rsplit_once(' ').expect("a row with a value");
            let (_, labels, values) = families.get_mut(&name).expect("described first");
            values.push(value.parse().expect("a number"));
            let inside = series
                .split_once('{')
                .map_or("", |(_, rest)| rest.trim_end_matches('}'));
            let names: Vec<&str> = inside
                .split("\",")
                .filter_map(|pair| Some(pair.split_once("=\"")?.0))
                .filter(|n| *n != "le")
                .collect();
            *labels = names.join(" ");
        }
    }
    families
}

/// What the values must be after a few syncs of a small cluster.
fn check_values(families: &Families, text: &str) {
    let sum = |name: &str| families[name].2.iter().sum::<f64>();
    assert!(
        sum("argocd_kubectl_requests") > 50.0 && sum("argocd_kubectl_exec") >= 1.0,
        "{text}"
    );
    assert_eq!(
        (sum("argocd_kubectl_exec_pending"), sum("tiphys_app_panics")),
        (0.0, 1.0)
    );
    assert!(text.contains("argocd_kubectl_requests_total{host=\"kubernetes.default.svc\",method=\"POST\",code=\"201\"}"), "{text}");
    for verb in ["List", "Watch", "Get", "Create", "Patch"] {
        assert!(
            text.contains(&format!("argocd_kubectl_request_duration_seconds_count{{host=\"kubernetes.default.svc\",verb=\"{verb}\"}}")),
            "{verb}"
        );
    }
    let per_object = sum("tiphys_cluster_cache_bytes_per_object");
    assert!((100.0..5000.0).contains(&per_object), "{per_object}");
    assert!(
        (0.0..30.0).contains(&sum("tiphys_cluster_cache_ready_seconds"))
            && sum("tiphys_cluster_cache_ready_seconds") > 0.0
    );
    assert!(sum("argocd_resource_events_processing") > 0.0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_metric_has_its_name_its_kind_and_its_labels() {
    let (kube, cluster) = ground().await;
    let (repo, folder, stop) = (
        Repo::new(),
        TempDir::new().expect("a folder"),
        CancellationToken::new(),
    );
    let records = Records::start(cluster.clone(), RecordsOptions::new("argocd"));
    records.wait_ready().await.expect("the records");
    let (clusters, states, metrics) = (
        Clusters::new(cluster.clone(), records.clone()),
        AppStates::new(),
        Metrics::default(),
    );
    let options = RepoOptions {
        allow_local: true,
        ..RepoOptions::default()
    };
    let fault = Arc::new(AtomicBool::new(false));
    let broken = fault.clone();
    let controller = Dependencies {
        records: records.clone(),
        clusters: clusters.clone(),
        sources: Sources::new(&records, Repos::with_options(folder.path(), options), None),
        states: states.clone(),
        metrics: metrics.clone(),
        workers: 2,
        sharding: None,
        wave_delay: None,
        clock: Arc::new(move || {
            assert!(
                !broken.swap(false, Ordering::Relaxed),
                "a clock that breaks once"
            );
            jiff::Timestamp::now()
        }),
    };
    let controller = tokio::spawn(application::run(controller, stop.clone()));
    repo.commit(
        &[(
            "map.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: m\n",
        )],
        &[],
    );
    application(&cluster, &repo, "web", ".", "Synced").await;
    application(&cluster, &repo, "broken", "nowhere", "Unknown").await;
    fault.store(true, Ordering::Relaxed);
    application(&cluster, &repo, "late", ".", "Synced").await;
    metrics
        .redis
        .made(&[("set", 1)], false, Duration::from_millis(1));

    let choice = Choice {
        app_labels: vec!["team".into()],
        app_conditions: vec!["ComparisonError".into()],
        cluster_labels: Vec::new(),
    };
    let text = Report {
        metrics,
        records,
        clusters,
        states,
        choice,
        sets: Arc::default(),
        charts: ChartMetrics::default(),
    }
    .text()
    .expect("a text");
    let families = families(&text);
    let shown = |(name, (kind, labels, _)): (&String, &(String, String, Vec<f64>))| {
        format!(
            "{name} {kind} {}",
            if labels.is_empty() { "-" } else { labels }
        )
    };
    assert_eq!(
        families.iter().map(shown).collect::<Vec<_>>().join("\n"),
        METRICS.trim()
    );
    for name in families.keys() {
        assert!(
            GUIDE.contains(&format!("`{name}`")) || GUIDE.contains(&format!("`{name}_total`")),
            "the guide lacks {name}"
        );
    }
    check_values(&families, &text);
    stop.cancel();
    controller.await.expect("it ends in order");
    drop(kube);
}
