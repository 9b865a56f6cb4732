//! Git servers that accept connections and never respond: Applications with other repositories do
//! not wait for them.

use crate::ground::{APPS, PATIENCE, create, ground};
use serde_json::{Value, json};
use std::{net::TcpListener, sync::Arc, time::Duration};
use tempfile::TempDir;
use tiphys_cluster::{
    AppStates, Cluster, Records, RecordsOptions, clusters::Clusters, request::Call,
};
use tiphys_controllers::{
    application::{self, Dependencies},
    metrics::Metrics,
};
use tiphys_repo::{RepoOptions, Repos};
use tiphys_sources::Sources;
use tiphys_testkit::Repo;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

const TARPITS: usize = 40;

fn application(name: &str, url: &str) -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": name},
        "spec": {
            "project": "default", "source": {"repoURL": url, "path": ".", "targetRevision": "HEAD"},
            "destination": {"server": "https://kubernetes.default.svc", "namespace": "default"}, "syncPolicy": {"automated": {}}
        }
    })
}

async fn status(cluster: &Cluster, name: &str) -> Value {
    let app: Value = cluster
        .http()
        .json(&Call::get(format!("{APPS}/{name}")))
        .await
        .expect("it is there");
    app["status"]["sync"]["status"].clone()
}

/// Waits until this many connections are open at the tarpits, and keeps them.
async fn accept(tarpits: &[TcpListener], many: usize) -> Vec<std::net::TcpStream> {
    let (mut open, began) = (Vec::new(), Instant::now());
    while open.len() < many {
        open.extend(
            tarpits
                .iter()
                .filter_map(|tarpit| Some(tarpit.accept().ok()?.0)),
        );
        assert!(began.elapsed() < PATIENCE, "{} connections", open.len());
        sleep(Duration::from_millis(10)).await;
    }
    open
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_healthy_repository_is_synced_while_forty_do_not_answer() {
    let (kube, cluster) = ground().await;
    let (folder, stop) = (TempDir::new().expect("a folder"), CancellationToken::new());
    let records = Records::start(cluster.clone(), RecordsOptions::new("argocd"));
    records.wait_ready().await.expect("the records");
    let options = RepoOptions {
        // What nobody answers ends with the test, not by itself.
        timeout: Duration::from_secs(600),
        ..RepoOptions::default()
    };
    let repos = Repos::with_options(folder.path(), options);
    let controller = Dependencies {
        records: records.clone(),
        clusters: Clusters::new(cluster.clone(), records.clone()),
        sources: Sources::new(&records, repos, None),
        states: AppStates::new(),
        metrics: Metrics::default(),
        workers: 2,
        sharding: None,
        wave_delay: None,
        clock: Arc::new(jiff::Timestamp::now),
    };
    let controller = tokio::spawn(application::run(controller, stop.clone()));

    let tarpits: Vec<TcpListener> = (0..TARPITS)
        .map(|_| TcpListener::bind("127.0.0.1:0").expect("bind"))
        .collect();
    for (n, tarpit) in tarpits.iter().enumerate() {
        tarpit.set_nonblocking(true).expect("nonblocking");
        let port = tarpit.local_addr().expect("address").port();
        create(
            &cluster,
            APPS,
            &application(
                &format!("tarpit-{n}"),
                &format!("http://127.0.0.1:{port}/r.git"),
            ),
        )
        .await;
    }
    // There are two workers: all of them have waited for a tarpit.
    let open = accept(&tarpits, TARPITS).await;
    let repo = Repo::new();
    repo.commit(
        &[(
            "map.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: m\n",
        )],
        &[],
    );
    create(&cluster, APPS, &application("healthy", &repo.url())).await;
    let began = Instant::now();
    while status(&cluster, "healthy").await != "Synced" {
        assert!(began.elapsed() < PATIENCE, "it waits for the others");
        sleep(Duration::from_millis(50)).await;
    }
    for n in 0..TARPITS {
        assert_eq!(
            status(&cluster, &format!("tarpit-{n}")).await,
            Value::Null,
            "tarpit-{n} still waits"
        );
    }
    // Now they end, and so do the Applications that wait for them.
    drop((open, tarpits));
    stop.cancel();
    controller.await.expect("it ends in order");
    drop(kube);
}
