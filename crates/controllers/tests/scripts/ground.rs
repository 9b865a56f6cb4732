//! The environment of scripts: an API server, and a controller that works on it. Main type:
//! [`Ground`].

use crate::scripts::wire::{Server, Wire};
use http::Method;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::{
    future::Future,
    path::PathBuf,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tempfile::TempDir;
use tiphys_api::{constants::IN_CLUSTER, resource::ApplicationTree};
use tiphys_apimachinery::{Gvk, Object};
use tiphys_cluster::{
    AppKey, AppStates, Cluster, ConnectOptions, Discovery, Error, Records, RecordsOptions,
    clusters::Clusters,
    request::{Call, JSON, JSON_PATCH, MERGE_PATCH},
};
use tiphys_controllers::{application, runtime::Clock as Now};
use tiphys_embedded_kube::{
    EmbeddedKube, Options,
    sim::{Clock, SimOptions},
};
use tiphys_gocompat::yaml;
use tiphys_repo::{PluginSettings, RepoOptions, Repos};
use tiphys_sources::Sources;
use tokio::{
    sync::Notify,
    task::JoinHandle,
    time::{Instant, sleep, sleep_until},
};
use tokio_util::sync::CancellationToken;

/// The control plane's namespace, unless there are several; not a word that occurs in messages.
pub const NAMESPACE: &str = "tiphys-scripts";

const CRDS: [&str; 2] = [
    include_str!("../../../../deploy/crds/application-crd.yaml"),
    include_str!("../../../../deploy/crds/appproject-crd.yaml"),
];

/// An embedded cluster is idle if nothing was written for this long. Shorter than any duration in
/// scripts.
const QUIET: Duration = Duration::from_secs(6);
/// A cluster that never becomes idle is inspected after this time.
const RESTLESS: Duration = Duration::from_secs(20);
const TICK: Duration = Duration::from_millis(250);
/// The real time that passes with each tick where something comes over the network: the simulated
/// clock does not wait for it.
const NETWORK_TICK: Duration = Duration::from_millis(15);
/// How long a controller that died is down.
const DOWN: Duration = Duration::from_secs(1);

/// tokio's time as a clock: it stands still during work, and jumps when there is none.
#[derive(Clone, Copy)]
struct Paused {
    begin: Instant,
}

impl Paused {
    fn first() -> Timestamp {
        // A full minute of a Wednesday.
        "2026-03-04T10:00:00Z".parse().expect("a time")
    }
}

impl Clock for Paused {
    fn now(&self) -> Timestamp {
        Self::first() + self.begin.elapsed()
    }

    fn sleep_until(&self, until: Timestamp) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        let at = self.begin
            + Duration::try_from(until.duration_since(Self::first())).unwrap_or_default();
        Box::pin(sleep_until(at))
    }
}

/// An API server with a running controller.
pub struct Ground {
    pub cluster: Cluster,
    /// The control plane's namespace.
    pub namespace: String,
    /// What it serves, as seen by the test, not by the controller.
    pub discovery: Discovery,
    pub now: Now,
    /// The states of the current process.
    states: Arc<Mutex<AppStates>>,
    embedded: Option<Arc<EmbeddedKube>>,
    /// What is between the controller and the API server, if anything is.
    wire: Option<Wire>,
    /// The controller is not ours: it runs separately, and its behaviour is recorded.
    pub is_external: bool,
    /// If set, the controller's clock panics once.
    pub fault: Arc<AtomicBool>,
    /// The script uses servers on loopback.
    pub network: AtomicBool,
    /// The folder with the sockets of plugins.
    pub plugins: Arc<TempDir>,
    stop: CancellationToken,
    /// Kills the controller of a real control plane without a wire.
    killed: Arc<Notify>,
    controller: JoinHandle<()>,
}

/// The file that names the real cluster.
fn kubeconfig() -> PathBuf {
    PathBuf::from(std::env::var_os("KUBECONFIG").expect("KUBECONFIG names the cluster"))
}

/// What the controller talks to.
enum Other {
    Embedded(Arc<EmbeddedKube>, Wire),
    Real(Cluster),
    /// A real API server behind a wire.
    Behind(Wire),
}

impl Ground {
    /// Must be called in a runtime of one thread whose time is paused.
    pub async fn embedded(wire: &Wire) -> Self {
        let clock = Paused {
            begin: Instant::now(),
        };
        // Over long times, most events would be heartbeats.
        let sim = SimOptions {
            heartbeat: Duration::ZERO,
            ..SimOptions::default()
        };
        let options = Options {
            sim,
            clock: Arc::new(clock),
            ..Options::default()
        };
        let kube = Arc::new(
            EmbeddedKube::start(options)
                .await
                .expect("the embedded server starts"),
        );
        let cluster = Cluster::connect_in_process(kube.router(), IN_CLUSTER)
            .await
            .expect("it answers");
        Self::start(
            cluster,
            NAMESPACE,
            Other::Embedded(kube, wire.clone()),
            Arc::new(move || clock.now()),
        )
        .await
    }

    /// A separate control plane in a namespace of the cluster of `KUBECONFIG`.
    pub async fn real(namespace: &str) -> Self {
        let cluster = Self::of_kubeconfig().await;
        let controllers = cluster.clone();
        Self::start(
            cluster,
            namespace,
            Other::Real(controllers),
            Arc::new(Timestamp::now),
        )
        .await
    }

    /// The same, with `wire` between the controller and the API server.
    pub async fn real_behind(wire: &Wire, namespace: &str) -> Self {
        let cluster = Self::of_kubeconfig().await;
        let other = Other::Behind(wire.clone());
        Self::start(cluster, namespace, other, Arc::new(Timestamp::now)).await
    }

    async fn of_kubeconfig() -> Cluster {
        Cluster::connect(ConnectOptions::kubeconfig(Some(kubeconfig()), None))
            .await
            .expect("the cluster answers")
    }

    async fn start(cluster: Cluster, namespace: &str, other: Other, now: Now) -> Self {
        let discovery = prepare(&cluster, namespace).await;
        let namespace = namespace.to_owned();
        let (fault, stop, states) = (
            Arc::new(AtomicBool::new(false)),
            CancellationToken::new(),
            Arc::default(),
        );
        let (broken, clock) = (fault.clone(), now.clone());
        let clock: Now = Arc::new(move || {
            if broken.swap(false, Ordering::Relaxed) {
                panic!("the clock is broken")
            } else {
                clock()
            }
        });
        let plugins = Arc::new(TempDir::new().expect("a temporary folder"));
        let process = Process {
            namespace: namespace.clone(),
            clock,
            states: Arc::clone(&states),
            stop: stop.clone(),
            plugins: Arc::clone(&plugins),
        };
        let asked = std::env::var("TIPHYS_SCRIPTS_CONTROLLER");
        let is_real = !matches!(other, Other::Embedded(..));
        let is_external = is_real && asked.as_deref() == Ok("external");
        let killed = Arc::new(Notify::new());
        let wire = match &other {
            Other::Embedded(_, wire) | Other::Behind(wire) => Some(wire.clone()),
            Other::Real(_) => None,
        };
        let (controller, embedded) = match other {
            Other::Real(_) | Other::Behind(_) if is_external => {
                (tokio::spawn(stop.clone().cancelled_owned()), None)
            }
            Other::Embedded(kube, wire) => {
                let run = process.behind(wire, Server::Embedded(kube.clone()));
                (tokio::spawn(run), Some(kube))
            }
            Other::Behind(wire) => {
                let run = process.behind(wire, Server::Real(kubeconfig()));
                (tokio::spawn(run), None)
            }
            Other::Real(cluster) => {
                let run = process.run_until_killed(cluster, killed.clone());
                (tokio::spawn(run), None)
            }
        };
        Self {
            cluster,
            namespace,
            discovery,
            now,
            states,
            embedded,
            wire,
            is_external,
            fault,
            network: AtomicBool::new(false),
            plugins,
            stop,
            killed,
            controller,
        }
    }

    pub async fn close(self) {
        self.stop.cancel();
        self.controller.await.expect("the controller ends in order");
        if let Some(kube) = self.embedded.and_then(Arc::into_inner) {
            kube.shutdown().await;
        }
    }

    /// Kills the controller immediately; another one starts.
    pub fn restart(&self) {
        match &self.wire {
            Some(wire) => wire.kill(),
            None => self.killed.notify_one(),
        }
    }

    /// The tree of an Application that readers see.
    pub fn tree(&self, namespace: &str, name: &str) -> Option<Arc<ApplicationTree>> {
        let states = self.states.lock().expect("no panic");
        let state = states.get(&AppKey::new(namespace, name))?;
        Some(state.tree.clone())
    }

    /// Adds the health to the resources of an Application's status, as the API's responses contain
    /// it: the stored status omits it.
    pub fn add_health(&self, namespace: &str, name: &str, app: &mut Value) {
        let Some(state) = self
            .states
            .lock()
            .expect("no panic")
            .get(&AppKey::new(namespace, name))
        else {
            return;
        };
        for resource in app
            .pointer_mut("/status/resources")
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
        {
            let of = |field: &str| resource[field].as_str().unwrap_or_default();
            let node = state
                .tree
                .nodes
                .iter()
                .map(|n| (&n.resource_ref, &n.health))
                .find(|(r, _)| {
                    (
                        r.group.as_str(),
                        r.kind.as_str(),
                        r.namespace.as_str(),
                        r.name.as_str(),
                    ) == (of("group"), of("kind"), of("namespace"), of("name"))
                });
            if let Some((_, Some(health))) = node {
                resource["health"] = json!({"status": health.status, "message": health.message});
            }
        }
    }

    /// Whether time passes by itself.
    pub fn is_real(&self) -> bool {
        self.embedded.is_none()
    }

    /// Waits until the embedded cluster and the controller are idle. A controller that has just
    /// died or started is not idle: it waits again for what it waited for.
    pub async fn settle(&self) {
        let (Some(kube), Some(wire)) = (&self.embedded, &self.wire) else {
            return;
        };
        let state = || (kube.registry().revision(), wire.process());
        let (mut before, mut quiet, limit) = (state(), Duration::ZERO, Instant::now() + RESTLESS);
        while quiet < QUIET && Instant::now() < limit {
            sleep(TICK).await;
            if self.network.load(Ordering::Relaxed) {
                let real = tokio::task::spawn_blocking(|| std::thread::sleep(NETWORK_TICK));
                real.await.expect("a thread can sleep");
            }
            let now = state();
            quiet = if now == before {
                quiet + TICK
            } else {
                Duration::ZERO
            };
            before = now;
        }
    }

    /// One request.
    pub async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, Error> {
        let content_type = match body {
            Some(Value::Array(_)) if method == Method::PATCH => JSON_PATCH,
            _ if method == Method::PATCH => MERGE_PATCH,
            _ => JSON,
        };
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let mut call = Call::new(method, path);
        query.clone_into(&mut call.query);
        if let Some(body) = body {
            call = call.with_body(content_type, body.to_string());
        }
        self.cluster.http().json(&call).await
    }

    /// The object, if it exists.
    pub async fn find(&self, path: &str) -> Option<Value> {
        match self.send(Method::GET, path, None).await {
            Ok(object) => Some(object),
            Err(e) if e.is_not_found() => None,
            Err(e) => panic!("GET {path}: {e}"),
        }
    }

    /// The path of an object, or of a collection if the name is empty. `None`: there is no such
    /// kind.
    pub async fn path(
        &self,
        version: &str,
        kind: &str,
        namespace: &str,
        name: &str,
    ) -> Option<String> {
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        let kind = self
            .discovery
            .resolve(&Gvk::new(group, version, kind))
            .await
            .ok()?;
        Some(if name.is_empty() {
            kind.collection_path(namespace)
        } else {
            kind.object_path(namespace, name)
        })
    }

    pub async fn is_namespaced(&self, version: &str, kind: &str) -> bool {
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        self.discovery
            .resolve(&Gvk::new(group, version, kind))
            .await
            .is_ok_and(|k| k.namespaced)
    }
}

/// A controller, which is restarted when it dies.
#[derive(Clone)]
struct Process {
    namespace: String,
    clock: Now,
    states: Arc<Mutex<AppStates>>,
    stop: CancellationToken,
    plugins: Arc<TempDir>,
}

impl Process {
    /// Whenever it dies on the wire, the next one starts.
    fn behind(self, wire: Wire, server: Server) -> impl Future<Output = ()> + Send {
        let stop = self.stop.clone();
        wire.supervise(server, (stop, DOWN), move |cluster| {
            self.clone().run(cluster)
        })
    }

    async fn run_until_killed(self, cluster: Cluster, killed: Arc<Notify>) {
        loop {
            let mut running = tokio::spawn(self.clone().run(cluster.clone()));
            tokio::select! {
                ended = &mut running => return ended.expect("the controller ends in order"),
                () = killed.notified() => running.abort(),
            }
            sleep(DOWN).await;
        }
    }

    async fn run(self, cluster: Cluster) {
        let records = Records::start(cluster.clone(), RecordsOptions::new(&self.namespace));
        let ready = tokio::select! { ready = records.wait_ready() => ready, () = self.stop.cancelled() => return };
        if ready.is_err() {
            // Like a program that exits and is started again.
            return;
        }
        let repositories = TempDir::new().expect("a temporary folder");
        let states = AppStates::new();
        *self.states.lock().expect("no panic") = states.clone();
        let options = RepoOptions {
            allow_local: true,
            plugins: PluginSettings {
                dir: Some(self.plugins.path().to_owned()),
                ..PluginSettings::default()
            },
            ..RepoOptions::default()
        };
        let repos = Repos::with_options(repositories.path(), options);
        let dependencies = application::Dependencies {
            clusters: Clusters::new(cluster, records.clone()),
            sources: Sources::new(&records, repos, None),
            records,
            states,
            workers: 8,
            metrics: Default::default(),
            sharding: None,
            wave_delay: None,
            clock: self.clock,
        };
        application::run(dependencies, self.stop).await;
    }
}

/// Creates what a control plane needs: its CRDs, namespace, settings, and the default project.
async fn prepare(cluster: &Cluster, namespace: &str) -> Discovery {
    for text in CRDS {
        let crd = yaml::parse_document(text, &yaml::Limits::default(), yaml::Duplicates::LastWins)
            .expect("our own file");
        create(
            cluster,
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
            &crd,
        )
        .await;
    }
    let discovery = Discovery::new(cluster.clone()).await.expect("discovery");
    let project = Gvk::new("argoproj.io", "v1alpha1", "AppProject");
    while discovery.resolve(&project).await.is_err() {
        sleep(TICK).await;
    }
    let core = |name: &str| format!("/api/v1/namespaces/{namespace}/{name}");
    create(
        cluster,
        "/api/v1/namespaces",
        &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}),
    )
    .await;
    for name in ["argocd-cm", "argocd-cmd-params-cm"] {
        let labels = json!({"app.kubernetes.io/part-of": "argocd"});
        create(
            cluster,
            &core("configmaps"),
            &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": labels}}),
        )
        .await;
    }
    let project = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject", "metadata": {"name": "default"},
        "spec": {"sourceRepos": ["*"], "destinations": [{"server": "*", "namespace": "*"}], "clusterResourceWhitelist": [{"group": "*", "kind": "*"}]}
    });
    create(
        cluster,
        &format!("/apis/argoproj.io/v1alpha1/namespaces/{namespace}/appprojects"),
        &project,
    )
    .await;
    discovery
}

/// Creates an object that may already exist; waits while its kind is not served yet.
async fn create(cluster: &Cluster, path: &str, object: &Value) {
    for _ in 0..40 {
        match cluster
            .http()
            .json::<Object>(&Call::new(Method::POST, path).with_body(JSON, object.to_string()))
            .await
        {
            Ok(_) => return,
            Err(e) if e.is_already_exists() => return,
            Err(e) if e.is_not_found() => sleep(TICK).await,
            Err(e) => panic!("POST {path}: {e}"),
        }
    }
    panic!("POST {path}: nothing is served there");
}
