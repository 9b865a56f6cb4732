//! An API server with what a control plane needs. Main function: [`ground`].

use http::Method;
use serde_json::{Value, json};
use std::time::Duration;
use tiphys_cluster::{
    Cluster,
    request::{Call, JSON},
};
use tiphys_embedded_kube::{EmbeddedKube, Options};
use tiphys_gocompat::yaml;
use tokio::time::{Instant, sleep};

const CRDS: [&str; 2] = [
    include_str!("../../../deploy/crds/application-crd.yaml"),
    include_str!("../../../deploy/crds/appproject-crd.yaml"),
];
pub const APPS: &str = "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications";
pub const PATIENCE: Duration = Duration::from_secs(120);

/// A definition is served a moment after it was created.
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

/// With the definitions, the namespace `argocd` and a project that permits everything.
pub async fn ground() -> (EmbeddedKube, Cluster) {
    let kube = EmbeddedKube::start(Options::default())
        .await
        .expect("the embedded server starts");
    let cluster = Cluster::connect_in_process(kube.router(), "https://kubernetes.default.svc")
        .await
        .expect("it answers");
    for text in CRDS {
        let crd = yaml::parse_document(text, &yaml::Limits::default(), yaml::Duplicates::LastWins)
            .expect("our own file");
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        create(&cluster, path, &crd).await;
    }
    let namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "argocd"}});
    create(&cluster, "/api/v1/namespaces", &namespace).await;
    let project = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject", "metadata": {"name": "default"},
        "spec": {"sourceRepos": ["*"], "destinations": [{"server": "*", "namespace": "*"}]}
    });
    let projects = "/apis/argoproj.io/v1alpha1/namespaces/argocd/appprojects";
    create(&cluster, projects, &project).await;
    (kube, cluster)
}
