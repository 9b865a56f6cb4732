//! Git servers that accept connections and never respond: Applications with other repositories do
//! not wait for them.

use http::Method;
use serde_json::{Value, json};
use std::{net::TcpListener, sync::Arc, time::Duration};
use tempfile::TempDir;
use tiphys_cluster::{
    AppStates, Cluster, Records, RecordsOptions,
    clusters::Clusters,
    request::{Call, JSON},
};
use tiphys_controllers::{
    application::{self, Dependencies},
    metrics::Metrics,
};
use tiphys_embedded_kube::{EmbeddedKube, Options};
use tiphys_gocompat::yaml;
use tiphys_repo::{RepoOptions, Repos};
use tiphys_sources::Sources;
use tiphys_testkit::Repo;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

pub const CRDS: [&str; 2] = [
    include_str!("../../../deploy/crds/application-crd.yaml"),
    include_str!("../../../deploy/crds/appproject-crd.yaml"),
];
pub const APPS: &str = "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications";
pub const PATIENCE: Duration = Duration::from_secs(120);
const TARPITS: usize = 40;

pub async fn create(cluster: &Cluster, path: &str, object: &Value) {
    let call = Call::new(Method::POST, path).with_body(JSON, object.to_string());
    let began = Instant::now();
    while let Err(e) = cluster.http().json::<Value>(&call).await {
        assert!(
            e.is_not_found() && began.elapsed() < PATIENCE,
            "{path}: {e}"
        );
        sleep(Duration::from_millis(50)).await;
    }
}

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
    let kube = EmbeddedKube::start(Options::default())
        .await
        .expect("the embedded server starts");
    let cluster = Cluster::connect_in_process(kube.router(), "https://kubernetes.default.svc")
        .await
        .expect("it answers");
    for text in CRDS {
        let crd = yaml::parse_document(text, &yaml::Limits::default(), yaml::Duplicates::LastWins)
            .expect("our own file");
        create(
            &cluster,
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
            &crd,
        )
        .await;
    }
    create(
        &cluster,
        "/api/v1/namespaces",
        &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "argocd"}}),
    )
    .await;
    let project = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject", "metadata": {"name": "default"},
        "spec": {"sourceRepos": ["*"], "destinations": [{"server": "*", "namespace": "*"}]}
    });
    create(
        &cluster,
        "/apis/argoproj.io/v1alpha1/namespaces/argocd/appprojects",
        &project,
    )
    .await;

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
