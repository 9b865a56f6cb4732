//! Several replicas of the controller on the embedded API server: who reconciles what, one that
//! dies, one that resumes late.
//!
//! Real time, because clusters are reached through sockets and a paused process does not know
//! tokio's time.

use http::{Method, Request};
use kube::client::Body;
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
    time::Duration,
};
use tiphys_cluster::{
    AppStates, Cluster, Records, RecordsOptions,
    clusters::Clusters,
    leases::{LeaseOptions, Leases},
    request::{Call, JSON, MERGE_PATCH},
};
use tiphys_controllers::{
    application::{self, Dependencies, Sharding},
    sharding::Method as Sharded,
};
use tiphys_embedded_kube::{EmbeddedKube, Options};
use tiphys_gocompat::yaml;
use tiphys_repo::{RepoOptions, Repos};
use tiphys_sources::Sources;
use tiphys_testkit::Repo;
use tokio::{
    net::TcpListener,
    runtime::{Builder, Handle},
    task::JoinHandle,
    time::{Instant, sleep},
};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

const NAMESPACE: &str = "argocd";
const APPS: &str = "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications";
const TOKEN: &str = "a-token-of-the-test";
const LEASE: Duration = Duration::from_secs(3);
const PATIENCE: Duration = Duration::from_secs(60);
const CRDS: [&str; 2] = [
    include_str!("../../../deploy/crds/application-crd.yaml"),
    include_str!("../../../deploy/crds/appproject-crd.yaml"),
];

/// Writing requests except those for leases: method and path.
type Writes = Arc<Mutex<Vec<String>>>;

/// An API server registered as three clusters, and a repository with a folder for each Application.
struct Ground {
    kube: EmbeddedKube,
    cluster: Cluster,
    repo: Repo,
    servers: [String; 3],
}

struct Replica {
    writes: Writes,
    records: Records,
    leases: Arc<Leases>,
    controller: JoinHandle<()>,
}

impl Ground {
    async fn new() -> Self {
        let options = Options {
            admin_token: Some(TOKEN.to_owned()),
            ..Options::default()
        };
        let kube = EmbeddedKube::start(options)
            .await
            .expect("the embedded server starts");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("bound").port();
        kube.serve(listener);
        let own = "https://kubernetes.default.svc";
        let cluster = Cluster::connect_in_process(kube.router(), own)
            .await
            .expect("it answers");
        let servers = [
            own.to_owned(),
            format!("https://127.0.0.1:{port}"),
            format!("https://localhost:{port}"),
        ];
        let ground = Self {
            kube,
            cluster,
            repo: Repo::new(),
            servers,
        };
        ground.prepare().await;
        ground
    }

    async fn prepare(&self) {
        for text in CRDS {
            let crd =
                yaml::parse_document(text, &yaml::Limits::default(), yaml::Duplicates::LastWins)
                    .expect("our own file");
            self.create(
                "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
                &crd,
            )
            .await;
        }
        self.create(
            "/api/v1/namespaces",
            &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}),
        )
        .await;
        let config =
            json!({"bearerToken": TOKEN, "tlsClientConfig": {"insecure": true}}).to_string();
        for (number, server) in self.servers.iter().enumerate().skip(1) {
            let labels = json!({"argocd.argoproj.io/secret-type": "cluster"});
            let data = json!({"name": format!("c{number}"), "server": server, "config": config});
            let metadata = json!({"name": format!("cluster-{number}"), "labels": labels});
            let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": data});
            self.create(&format!("/api/v1/namespaces/{NAMESPACE}/secrets"), &secret)
                .await;
        }
        let project = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject", "metadata": {"name": "default"},
            "spec": {"sourceRepos": ["*"], "destinations": [{"server": "*", "namespace": "*"}]}
        });
        self.create(
            "/apis/argoproj.io/v1alpha1/namespaces/argocd/appprojects",
            &project,
        )
        .await;
    }

    async fn send(&self, method: Method, path: &str, body: &Value) -> Value {
        let content_type = if method == Method::PATCH {
            MERGE_PATCH
        } else {
            JSON
        };
        let call = Call::new(method, path).with_body(content_type, body.to_string());
        self.cluster
            .http()
            .json(&call)
            .await
            .unwrap_or_else(|e| panic!("{path}: {e}"))
    }

    async fn create(&self, path: &str, object: &Value) {
        let call = Call::new(Method::POST, path).with_body(JSON, object.to_string());
        let began = Instant::now();
        while let Err(e) = self.cluster.http().json::<Value>(&call).await {
            assert!(
                e.is_not_found() && began.elapsed() < PATIENCE,
                "{path}: {e}"
            );
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// Creates an Application with automated sync to a cluster.
    async fn application(&self, name: &str, server: &str) {
        let map = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\ndata:\n  value: first\n"
        );
        self.repo
            .commit(&[(&format!("{name}/map.yaml"), &map)], &[]);
        let app = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": name},
            "spec": {
                "project": "default", "source": {"repoURL": self.repo.url(), "path": name, "targetRevision": "HEAD"},
                "destination": {"server": server, "namespace": "default"}, "syncPolicy": {"automated": {"prune": true}}
            }
        });
        self.create(APPS, &app).await;
    }

    /// Requests a comparison with Git's current state.
    async fn refresh(&self, name: &str) {
        let patch = json!({"metadata": {"annotations": {"argocd.argoproj.io/refresh": "normal"}}});
        self.send(Method::PATCH, &format!("{APPS}/{name}"), &patch)
            .await;
    }

    /// Waits until each has this many finished syncs; a moment later there must not be more.
    async fn synced(&self, names: &[&str], times: usize) {
        let counts = async || {
            let mut counts = BTreeMap::new();
            for name in names {
                let app: Value = self
                    .cluster
                    .http()
                    .json(&Call::get(format!("{APPS}/{name}")))
                    .await
                    .expect("it is there");
                let done =
                    app["status"]["sync"]["status"] == "Synced" && app.get("operation").is_none();
                counts.insert(
                    *name,
                    if done {
                        app["status"]["history"].as_array().map_or(0, Vec::len)
                    } else {
                        0
                    },
                );
            }
            counts
        };
        let began = Instant::now();
        loop {
            let now = counts().await;
            if now.values().all(|n| *n >= times) {
                break;
            }
            assert!(
                began.elapsed() < PATIENCE,
                "not all were synced {times} times: {now:?}"
            );
            sleep(Duration::from_millis(50)).await;
        }
        sleep(Duration::from_millis(500)).await;
        let now = counts().await;
        assert!(
            now.values().all(|n| *n == times),
            "some were synced more often than {times} times: {now:?}"
        );
    }

    /// Starts a replica in its own runtime. It records its writes.
    async fn replica(
        &self,
        runtime: &Handle,
        name: &str,
        count: usize,
        method: Sharded,
    ) -> Replica {
        let (writes, router) = (Writes::default(), self.kube.router());
        let log = writes.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let (path, method) = (request.uri().path().to_owned(), request.method().clone());
            if method != Method::GET && !path.contains("/leases") {
                log.lock()
                    .expect("no panic")
                    .push(format!("{method} {path}"));
            }
            router.clone().oneshot(request)
        });
        let options = LeaseOptions {
            namespace: NAMESPACE.to_owned(),
            group: "controller".to_owned(),
            identity: name.to_owned(),
            count,
            partition: format!("{count}.{}", method.as_str()),
            preferred: None,
            pinned: false,
            duration: LEASE,
            clock: Arc::new(jiff::Timestamp::now),
            balance: None,
        };
        let server = self.servers[0].clone();
        let started = runtime.spawn(async move {
            let cluster = Cluster::connect_in_process(service, &server)
                .await
                .expect("it answers");
            let records = Records::start(cluster.clone(), RecordsOptions::new(NAMESPACE));
            records
                .wait_ready()
                .await
                .expect("our own records can be read");
            let leases = Arc::new(Leases::start(&cluster, options));
            let folder = tempfile::TempDir::new().expect("a temporary folder");
            let repos = Repos::with_options(
                folder.path(),
                RepoOptions {
                    allow_local: true,
                    ..RepoOptions::default()
                },
            );
            let sharding = Some(Sharding::fixed(leases.clone(), method, Arc::default()));
            let seen = records.clone();
            let clusters = Clusters::new(cluster, records.clone());
            let clock = Arc::new(jiff::Timestamp::now);
            let dependencies = Dependencies {
                sources: Sources::new(&records, repos, None),
                records,
                clusters,
                states: AppStates::new(),
                metrics: Default::default(),
                workers: 4,
                sharding,
                wave_delay: None,
                clock,
            };
            let controller = tokio::spawn(async move {
                application::run(dependencies, CancellationToken::new()).await;
                drop(folder);
            });
            (leases, controller, seen)
        });
        let (leases, controller, records) = started.await.expect("it starts");
        Replica {
            writes,
            records,
            leases,
            controller,
        }
    }
}

impl Replica {
    fn holds(&self) -> Vec<usize> {
        (0..self.leases.count())
            .filter(|shard| self.leases.fence(*shard).is_some())
            .collect()
    }

    async fn until_holds(&self, number: usize) {
        let began = Instant::now();
        while self.holds().len() != number {
            assert!(
                began.elapsed() < PATIENCE,
                "{:?} instead of {number}",
                self.holds()
            );
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// Returns when it has seen this version of a Secret, and its settings have it.
    async fn sees(&self, secret: &str, version: &Value) {
        let known = || self.records.secrets.get(NAMESPACE, secret);
        let began = Instant::now();
        while known().is_none_or(|known| *version != known.meta.resource_version) {
            assert!(began.elapsed() < PATIENCE, "{secret} is not seen");
            sleep(Duration::from_millis(20)).await;
        }
        self.records.settle().await;
    }

    /// Takes the recorded writes.
    fn written(&self) -> Vec<String> {
        std::mem::take(&mut *self.writes.lock().expect("no panic"))
    }

    /// The Applications that it wrote to.
    fn wrote(&self) -> BTreeSet<String> {
        self.written()
            .iter()
            .filter_map(|w| Some(w.strip_prefix("PATCH ")?.strip_prefix(APPS)?[1..].to_owned()))
            .collect()
    }

    /// Like `kill -9`: nothing is finished or released.
    async fn kill(self) {
        self.controller.abort();
        let _ = self.controller.await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_works_on_the_clusters_of_its_shards_and_none_is_left_when_one_dies() {
    let ground = Ground::new().await;
    let here = Handle::current();
    let mut replicas = Vec::new();
    for name in ["one", "two", "three"] {
        let replica = ground.replica(&here, name, 3, Sharded::RoundRobin).await;
        replica.until_holds(1).await;
        replicas.push(replica);
    }
    let names: Vec<String> = (0..12).map(|n| format!("app-{n}")).collect();
    for (n, name) in names.iter().enumerate() {
        ground.application(name, &ground.servers[n % 3]).await;
    }
    let all: Vec<&str> = names.iter().map(String::as_str).collect();
    ground.synced(&all, 1).await;
    let wrote: Vec<BTreeSet<String>> = replicas.iter().map(Replica::wrote).collect();
    assert_eq!(
        wrote.iter().map(BTreeSet::len).collect::<Vec<_>>(),
        [4, 4, 4],
        "{wrote:?}"
    );
    let of_shard = |shard: usize| {
        replicas
            .iter()
            .position(|r| r.holds() == [shard])
            .expect("it is held")
    };
    assert!(
        wrote[of_shard(0)].contains("app-0"),
        "the own cluster comes first: {wrote:?}"
    );
    let victim = wrote[1].first().expect("four").clone();
    let dead = replicas.remove(1);
    dead.kill().await;
    ground.repo.commit(
        &[(
            &format!("{victim}/map.yaml"),
            &format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {victim}\n"),
        )],
        &[],
    );
    ground.refresh(&victim).await;
    ground.synced(&[&victim], 2).await;
    let rest: Vec<&str> = all.iter().copied().filter(|name| *name != victim).collect();
    ground.synced(&rest, 1).await;
    assert_eq!(replicas.iter().map(|r| r.holds().len()).sum::<usize>(), 3);
    ground.kube.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_is_to_be_skipped_is_left_alone() {
    let ground = Ground::new().await;
    let secret = format!("/api/v1/namespaces/{NAMESPACE}/secrets/cluster-1");
    let skip = |word: Value| json!({"metadata": {"annotations": {"argocd.argoproj.io/skip-reconcile": word}}});
    ground
        .send(Method::PATCH, &secret, &skip("true".into()))
        .await;
    let replica = ground
        .replica(&Handle::current(), "one", 1, Sharded::Legacy)
        .await;
    replica.until_holds(1).await;
    ground.application("skipped", &ground.servers[1]).await;
    ground.application("other", &ground.servers[0]).await;
    ground.synced(&["other"], 1).await;
    assert_eq!(replica.wrote(), BTreeSet::from(["other".to_owned()]));
    ground
        .send(Method::PATCH, &secret, &skip(Value::Null))
        .await;
    ground.synced(&["skipped", "other"], 1).await;
    ground.kube.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn c102_a_cluster_whose_secret_names_another_shard_changes_hands() {
    let ground = Ground::new().await;
    let mut replicas = Vec::new();
    for name in ["one", "two"] {
        let replica = ground
            .replica(&Handle::current(), name, 2, Sharded::Legacy)
            .await;
        replica.until_holds(1).await;
        replicas.push(replica);
    }
    let secret = format!("/api/v1/namespaces/{NAMESPACE}/secrets/cluster-1");
    let shard = async |shard: &str| {
        let stored = ground
            .send(
                Method::PATCH,
                &secret,
                &json!({"stringData": {"shard": shard}}),
            )
            .await;
        for replica in &replicas {
            let version = &stored["metadata"]["resourceVersion"];
            replica.sees("cluster-1", version).await;
        }
        // They do what follows from it.
        sleep(Duration::from_secs(1)).await;
        replicas.iter().for_each(|r| drop(r.written()));
    };
    let who_wrote = || {
        let of_shard = |shard: usize| {
            replicas
                .iter()
                .find(|r| r.holds() == [shard])
                .expect("it is held")
        };
        [0, 1].map(|shard| of_shard(shard).wrote().contains("moved"))
    };
    shard("0").await;
    ground.application("moved", &ground.servers[1]).await;
    ground.synced(&["moved"], 1).await;
    assert_eq!(who_wrote(), [true, false]);
    shard("1").await;
    ground.repo.commit(
        &[(
            "moved/map.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: moved\n",
        )],
        &[],
    );
    ground.refresh("moved").await;
    ground.synced(&["moved"], 2).await;
    assert_eq!(who_wrote(), [false, true]);
    ground.kube.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_applications_of_one_cluster_are_work_for_several() {
    let ground = Ground::new().await;
    let mut replicas = Vec::new();
    for name in ["one", "two"] {
        let replica = ground
            .replica(&Handle::current(), name, 2, Sharded::ByApplication)
            .await;
        replica.until_holds(1).await;
        replicas.push(replica);
    }
    let names: Vec<String> = (0..12).map(|n| format!("app-{n}")).collect();
    for name in &names {
        ground.application(name, &ground.servers[0]).await;
    }
    let all: Vec<&str> = names.iter().map(String::as_str).collect();
    ground.synced(&all, 1).await;
    let wrote: Vec<BTreeSet<String>> = replicas.iter().map(Replica::wrote).collect();
    assert!(
        wrote[0].is_disjoint(&wrote[1]) && wrote.iter().all(|w| w.len() >= 3),
        "{wrote:?}"
    );
    assert_eq!(wrote[0].len() + wrote[1].len(), 12);
    let (victim, dead) = (wrote[1].first().expect("some").clone(), replicas.remove(1));
    dead.kill().await;
    ground.repo.commit(
        &[(
            &format!("{victim}/map.yaml"),
            &format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {victim}\n"),
        )],
        &[],
    );
    ground.refresh(&victim).await;
    ground.synced(&[&victim], 2).await;
    ground.kube.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_wakes_up_late_writes_nothing() {
    let ground = Ground::new().await;
    // For timing purposes a separate process: one thread, which can be paused with everything in
    // it.
    let (give, take) = std::sync::mpsc::channel();
    let process = std::thread::spawn(move || {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        give.send(runtime.handle().clone())
            .expect("somebody waits for it");
        runtime.block_on(std::future::pending::<()>());
    });
    let handle = take.recv().expect("it is made");
    let sleeper = ground
        .replica(&handle, "sleeper", 1, Sharded::RoundRobin)
        .await;
    sleeper.until_holds(1).await;
    let standby = ground
        .replica(&Handle::current(), "standby", 1, Sharded::RoundRobin)
        .await;
    for n in 0..4 {
        ground
            .application(&format!("app-{n}"), &ground.servers[0])
            .await;
    }
    let names = ["app-0", "app-1", "app-2", "app-3"];
    ground.synced(&names, 1).await;
    assert_eq!((sleeper.wrote().len(), standby.written()), (4, Vec::new()));
    // It is paused while it works.
    for name in names {
        ground.repo.commit(
            &[(
                &format!("{name}/map.yaml"),
                &format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n"),
            )],
            &[],
        );
    }
    for name in names {
        ground.refresh(name).await;
    }
    let (sleeps, asleep) = tokio::sync::oneshot::channel();
    handle.spawn(async {
        sleeps.send(()).expect("somebody waits for it");
        std::thread::sleep(3 * LEASE);
    });
    asleep.await.expect("it is put to sleep");
    sleeper.written();
    standby.until_holds(1).await;
    ground.synced(&names, 2).await;
    for name in names {
        ground.refresh(name).await;
    }
    sleep(4 * LEASE).await;
    assert_eq!(
        sleeper.written(),
        Vec::<String>::new(),
        "its lease was another's when it woke up"
    );
    assert_eq!((sleeper.holds(), standby.holds()), (vec![], vec![0]));
    ground.synced(&names, 2).await;
    assert!(!process.is_finished());
    ground.kube.shutdown().await;
}
