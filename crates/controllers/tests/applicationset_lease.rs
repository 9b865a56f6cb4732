//! A replica of the ApplicationSet controller whose lease comes back after another one has worked.

use http::Method;
use serde_json::{Value, json};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use tempfile::TempDir;
use tiphys_cluster::{
    Cluster, Records, RecordsOptions,
    leases::{LeaseOptions, Leases},
    request::{Call, JSON, MERGE_PATCH},
};
use tiphys_controllers::{
    applicationset::{self, ControllerSettings, Dependencies, SetMetrics},
    runtime::Clock,
};
use tiphys_embedded_kube::{EmbeddedKube, Options};
use tiphys_gocompat::yaml;
use tiphys_repo::{RepoOptions, Repos};
use tiphys_sources::Sources;
use tiphys_testkit::Repo;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

const SERVER: &str = "https://kubernetes.default.svc";
const CRDS: [&str; 3] = [
    include_str!("../../../deploy/crds/application-crd.yaml"),
    include_str!("../../../deploy/crds/applicationset-crd.yaml"),
    include_str!("../../../deploy/crds/appproject-crd.yaml"),
];
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const OURS: &str = "/apis/argoproj.io/v1alpha1/namespaces/argocd";
const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/argocd/leases/sets-0";
const PATIENCE: Duration = Duration::from_secs(120);

async fn send(cluster: &Cluster, method: Method, path: &str, body: &Value) -> Value {
    let content_type = match method == Method::PATCH {
        true => MERGE_PATCH,
        false => JSON,
    };
    let call = Call::new(method, path).with_body(content_type, body.to_string());
    let began = Instant::now();
    loop {
        match cluster.http().json(&call).await {
            Ok(answer) => return answer,
            // A definition is served a moment after it was created.
            Err(e) if e.is_not_found() && began.elapsed() < PATIENCE => {}
            Err(e) => panic!("{path}: {e}"),
        }
        sleep(Duration::from_millis(20)).await;
    }
}

async fn until(what: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "{what} does not come");
        sleep(Duration::from_millis(20)).await;
    }
}

fn application(name: &str, labels: &Value, repo: &Repo) -> Value {
    json!({
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "project": "default", "destination": {"server": SERVER, "namespace": "default"},
            "source": {"repoURL": repo.url(), "path": "{{path}}", "targetRevision": "HEAD"},
        },
    })
}

/// An API server with a set that makes an Application of each folder of a repository.
async fn ground(repo: &Repo) -> (EmbeddedKube, Cluster, Value) {
    let kube = EmbeddedKube::start(Options::default()).await;
    let kube = kube.expect("the embedded server starts");
    let cluster = Cluster::connect_in_process(kube.router(), SERVER).await;
    let cluster = cluster.expect("it answers");
    for text in CRDS {
        let definition =
            yaml::parse_document(text, &yaml::Limits::default(), yaml::Duplicates::LastWins)
                .expect("our own file");
        send(&cluster, Method::POST, DEFINITIONS, &definition).await;
    }
    let namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "argocd"}});
    send(&cluster, Method::POST, "/api/v1/namespaces", &namespace).await;
    let project = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject",
        "metadata": {"name": "default"},
        "spec": {"sourceRepos": ["*"], "destinations": [{"server": "*", "namespace": "*"}]},
    });
    let projects = format!("{OURS}/appprojects");
    send(&cluster, Method::POST, &projects, &project).await;
    let folders = json!({"git": {
        "repoURL": repo.url(), "revision": "HEAD", "directories": [{"path": "apps/*"}],
    }});
    let template = application("app-{{path.basename}}", &json!({"made": "yes"}), repo);
    let set = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet",
        "metadata": {"name": "set"},
        "spec": {"generators": [folders], "template": template},
    });
    let sets = format!("{OURS}/applicationsets");
    let set = send(&cluster, Method::POST, &sets, &set).await;
    (kube, cluster, set)
}

/// Starts a controller that works while it holds the lease.
async fn start(
    cluster: &Cluster,
    folder: &TempDir,
    stop: CancellationToken,
) -> (Records, Arc<Leases>) {
    let records = Records::start(cluster.clone(), RecordsOptions::new("argocd"));
    records.wait_ready().await.expect("the records");
    let sets = records.application_sets(&[]);
    sets.wait_ready().await.expect("the sets");
    let clock: Clock = Arc::new(jiff::Timestamp::now);
    let options = LeaseOptions {
        namespace: "argocd".to_owned(),
        group: "sets".to_owned(),
        identity: "ours".to_owned(),
        count: 1,
        partition: "1".to_owned(),
        preferred: None,
        pinned: false,
        duration: Duration::from_secs(10),
        clock: Arc::clone(&clock),
        balance: None,
    };
    let leases = Arc::new(Leases::start(cluster, options));
    let options = RepoOptions {
        allow_local: true,
        refs_ttl: Duration::ZERO,
        ..RepoOptions::default()
    };
    let repos = Repos::with_options(folder.path(), options);
    let dependencies = Dependencies {
        sources: Sources::new(&records, repos, None),
        records: records.clone(),
        sets,
        namespaces: Vec::new(),
        workers: 1,
        settings: ControllerSettings::default(),
        leases: Some(Arc::clone(&leases)),
        metrics: SetMetrics::default(),
        clock,
    };
    tokio::spawn(applicationset::run(dependencies, stop));
    (records, leases)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_another_replica_made_is_not_deleted_when_the_lease_comes_back() {
    let (repo, folder) = (Repo::new(), TempDir::new().expect("a folder"));
    repo.commit(&[("apps/a/x", "1")], &[]);
    let (_kube, cluster, set) = ground(&repo).await;
    let stop = CancellationToken::new();
    let _end = stop.clone().drop_guard();
    let (records, leases) = start(&cluster, &folder, stop).await;
    let apps = records.applications.clone();
    let labelled = |name: &str| {
        let record = apps.get("argocd", name)?;
        Some(record.meta.labels.contains_key("made"))
    };
    until("its Application", || labelled("app-a") == Some(true)).await;

    let holder = |name: &str| json!({"spec": {"holderIdentity": name}});
    send(&cluster, Method::PATCH, LEASE, &holder("another")).await;
    until("the end of the lease", || leases.fence(0).is_none()).await;
    repo.commit(&[("apps/b/x", "1")], &[]);
    let mut made = application("app-b", &json!({}), &repo);
    made["apiVersion"] = json!("argoproj.io/v1alpha1");
    made["kind"] = json!("Application");
    made["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "name": "set",
        "uid": set["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true,
    }]);
    let applications = format!("{OURS}/applications");
    send(&cluster, Method::POST, &applications, &made).await;
    until("what the other made", || labelled("app-b").is_some()).await;
    send(&cluster, Method::PATCH, LEASE, &holder("")).await;
    until("the lease", || leases.fence(0).is_some()).await;

    until("its update", || labelled("app-b") != Some(false)).await;
    assert_eq!(labelled("app-b"), Some(true), "it was deleted");
    leases.release().await;
}
