//! An embedded cluster that knows AppRepositories, for tests of what reads them.

use http::Method;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tiphys_cluster::{
    Cluster,
    request::{Call, JSON},
};
use tiphys_embedded_kube::{EmbeddedKube, Options};
use tiphys_gocompat::yaml;
use tokio::time::sleep;

const CRD: &str = include_str!("../../../deploy/crds/apprepository-crd.yaml");
const PATIENCE: Duration = Duration::from_secs(120);

/// Nothing happens in it by itself.
pub async fn start(namespaces: &[&str]) -> (EmbeddedKube, Cluster) {
    let kube = EmbeddedKube::start(Options {
        controllers: false,
        ..Options::default()
    });
    let kube = kube.await.expect("the embedded server starts");
    let cluster = Cluster::connect_in_process(kube.router(), "https://kubernetes.default.svc");
    let cluster = cluster.await.expect("it answers");
    let crd = yaml::parse_document(CRD, &yaml::Limits::default(), yaml::Duplicates::LastWins);
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    create(&cluster, path, &crd.expect("our own file")).await;
    for name in namespaces {
        let namespace = json!({"metadata": {"name": name}});
        create(&cluster, "/api/v1/namespaces", &namespace).await;
    }
    (kube, cluster)
}

pub async fn create(cluster: &Cluster, path: &str, object: &Value) {
    let call = Call::new(Method::POST, path).with_body(JSON, object.to_string());
    let began = Instant::now();
    while let Err(e) = cluster.http().send(&call).await {
        // A definition is served a moment after it was created.
        assert!(
            e.is_not_found() && began.elapsed() < PATIENCE,
            "{path}: {e}"
        );
        sleep(Duration::from_millis(20)).await;
    }
}
