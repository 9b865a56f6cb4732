//! A controller that is started again while the Git server is away: it knows from disk what the one
//! before it compared with.

use crate::ground::{APPS, PATIENCE, create, ground};
use http::Method;
use serde_json::{Value, json};
use std::{
    path::Path,
    sync::{Arc, Mutex},
    time::Duration,
};
use tempfile::TempDir;
use tiphys_cluster::{
    AppStates, Cluster, Records, RecordsOptions,
    clusters::Clusters,
    request::{Call, MERGE_PATCH},
};
use tiphys_controllers::{
    application::{self, Dependencies},
    metrics::Metrics,
};
use tiphys_repo::{DiskCache, RepoOptions, Repos};
use tiphys_sources::Sources;
use tiphys_testkit::git_server::{Server, Setup};
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep},
};
use tokio_util::sync::CancellationToken;

const MAP: &str = "/api/v1/namespaces/default/configmaps/settings";

/// A controller with the memory of the one before it in this folder.
async fn controller(cluster: &Cluster, folder: &Path) -> (JoinHandle<()>, CancellationToken) {
    let stop = CancellationToken::new();
    let records = Records::start(cluster.clone(), RecordsOptions::new("argocd"));
    records.wait_ready().await.expect("the records");
    let cache = DiskCache::open(&folder.join("rendered"), 1 << 20);
    let options = RepoOptions {
        // What was looked up is asked for again at once.
        refs_ttl: Duration::ZERO,
        disk_cache: Some(cache.expect("opened")),
        ..RepoOptions::default()
    };
    let repos = Repos::with_options(folder, options);
    let controller = Dependencies {
        clusters: Clusters::new(cluster.clone(), records.clone()),
        sources: Sources::new(&records, repos, None),
        records,
        states: AppStates::new(),
        metrics: Metrics::default(),
        workers: 2,
        sharding: None,
        wave_delay: None,
        clock: Arc::new(jiff::Timestamp::now),
    };
    let running = tokio::spawn(application::run(controller, stop.clone()));
    (running, stop)
}

async fn get(cluster: &Cluster, path: &str) -> Option<Value> {
    match cluster.http().json(&Call::get(path)).await {
        Ok(found) => Some(found),
        Err(e) => {
            assert!(e.is_not_found(), "{path}: {e}");
            None
        }
    }
}

async fn wait_for(cluster: &Cluster, path: &str, field: &str, value: &str) {
    let began = Instant::now();
    loop {
        let found = get(cluster, path).await.unwrap_or_default();
        if found.pointer(field).and_then(Value::as_str) == Some(value) {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "{path} {field}: {found}");
        sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn drift_is_healed_after_a_restart_while_git_is_away() {
    let (kube, cluster) = ground().await;
    let (root, folder) = (
        TempDir::new().expect("a folder"),
        TempDir::new().expect("one"),
    );
    let map =
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: settings\ndata:\n  color: blue\n";
    Repos::init_example(&root.path().join("r.git"), [("map.yaml", map)]).expect("a repository");
    let instead = Arc::new(Mutex::new(None));
    let setup = Setup {
        instead: Arc::clone(&instead),
        ..Setup::default()
    };
    let server = Server::start(root.path(), setup);
    let (running, stop) = controller(&cluster, folder.path()).await;
    let app = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": "web"},
        "spec": {
            "project": "default",
            "source": {"repoURL": server.url("/r.git"), "path": ".", "targetRevision": "HEAD"},
            "destination": {"server": "https://kubernetes.default.svc", "namespace": "default"},
            "syncPolicy": {"automated": {"selfHeal": true}}
        }
    });
    create(&cluster, APPS, &app).await;
    let app = format!("{APPS}/web");
    wait_for(&cluster, &app, "/status/operationState/phase", "Succeeded").await;
    wait_for(&cluster, &app, "/status/sync/status", "Synced").await;
    wait_for(&cluster, MAP, "/data/color", "blue").await;
    stop.cancel();
    running.await.expect("it ends in order");

    *instead.lock().expect("nobody failed") = Some("503 Service Unavailable");
    let edit = json!({"data": {"color": "red"}}).to_string();
    let edit = Call::new(Method::PATCH, MAP).with_body(MERGE_PATCH, edit);
    let edited: Value = cluster.http().json(&edit).await.expect("edited");
    assert_eq!(edited["data"]["color"], "red");
    let asked = server.log().len();
    let (running, stop) = controller(&cluster, folder.path()).await;
    wait_for(&cluster, MAP, "/data/color", "blue").await;
    wait_for(&cluster, &app, "/status/sync/status", "Synced").await;
    assert!(server.log().len() > asked, "the server was asked");
    let shown = get(&cluster, &app).await.expect("it is there");
    let conditions = shown["status"]["conditions"].as_array();
    assert!(conditions.is_none_or(Vec::is_empty), "{shown}");
    stop.cancel();
    running.await.expect("it ends in order");
    drop(kube);
}
