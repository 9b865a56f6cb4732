//! The hydrator on an API server: Applications are rendered into branches of a repository on this
//! machine.

use super::scripts::wire::Wire;
use http::Method;
use serde_json::{Value, json};
use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tempfile::TempDir;
use tiphys_cluster::{
    Cluster, Records, RecordsOptions,
    request::{Call, JSON, MERGE_PATCH},
};
use tiphys_controllers::hydrator::{self, Dependencies};
use tiphys_embedded_kube::{EmbeddedKube, Options};
use tiphys_gocompat::yaml;
use tiphys_listen::{Connections, Limits};
use tiphys_repo::{RepoOptions, RepoServer, RepoServerOptions, Repos};
use tiphys_repo_server::{Server, ServerOptions, StreamLimits, TrustPaths};
use tiphys_rpc::Tls;
use tiphys_sources::Sources;
use tiphys_testkit::Repo;
use tokio::{
    net::TcpListener,
    time::{Instant, sleep},
};
use tokio_util::sync::{CancellationToken, DropGuard};

const CRDS: [&str; 2] = [
    include_str!("../../../deploy/crds/application-crd.yaml"),
    include_str!("../../../deploy/crds/appproject-crd.yaml"),
];
const APPS: &str = "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications";
const PROJECTS: &str = "/apis/argoproj.io/v1alpha1/namespaces/argocd/appprojects";
pub const HYDRATE: &str = "argocd.argoproj.io/hydrate";
const REFRESH: &str = "argocd.argoproj.io/refresh";
pub const PATIENCE: Duration = Duration::from_secs(60);
/// How long no loop runs after one was killed.
const DOWN: Duration = Duration::from_millis(10);
/// Long enough for what should not happen.
const QUIET: Duration = Duration::from_secs(1);

/// An API server with the loop, and a repository.
pub struct Plane {
    cluster: Cluster,
    kube: Arc<EmbeddedKube>,
    folder: TempDir,
    pub repo: Repo,
    /// A repo-server that renders, and its port.
    repo_server: Option<(Arc<Server>, u16)>,
    /// What the loop knows, if it runs here.
    records: Option<Records>,
    stop: Option<DropGuard>,
    /// Ends the repo-server.
    serving: Option<DropGuard>,
}

pub fn config_map(name: &str, value: &str) -> String {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"v": value},
    })
    .to_string()
}

impl Plane {
    async fn start() -> Self {
        Self::start_with(false).await
    }

    /// With a repo-server that renders in place of this process.
    async fn start_with(repo_server: bool) -> Self {
        let mut plane = Self::ground().await;
        if repo_server {
            plane.serve().await;
        }
        plane.run().await;
        plane
    }

    /// With a loop that is started again when it dies on the wire.
    pub async fn behind(wire: &Wire) -> Self {
        let mut plane = Self::ground().await;
        let (stop, number) = (CancellationToken::new(), Arc::new(AtomicUsize::new(0)));
        let (folder, stopped) = (plane.folder.path().to_owned(), stop.clone());
        let process = move |cluster| {
            // What one that died has begun with its clones may still run.
            let number = number.fetch_add(1, Ordering::Relaxed);
            let (folder, stop) = (folder.join(format!("cache-{number}")), stopped.clone());
            async move {
                if let Some(dependencies) = dependencies(cluster, &folder, None).await {
                    hydrator::run(dependencies, stop).await;
                }
            }
        };
        let kube = Arc::clone(&plane.kube);
        tokio::spawn(wire.clone().supervise(kube, (stop.clone(), DOWN), process));
        plane.stop = Some(stop.drop_guard());
        plane
    }

    /// An API server without the loop.
    async fn ground() -> Self {
        let kube = EmbeddedKube::start(Options::default())
            .await
            .expect("the embedded server starts");
        let cluster = Cluster::connect_in_process(kube.router(), "https://kubernetes.default.svc")
            .await
            .expect("it answers");
        let plane = Self {
            cluster,
            kube: Arc::new(kube),
            folder: TempDir::new().expect("a folder"),
            repo: Repo::with(&[
                ("src/web/cm.yaml", &config_map("web", "1")),
                ("src/api/cm.yaml", &config_map("api", "1")),
            ]),
            repo_server: None,
            records: None,
            stop: None,
            serving: None,
        };
        for text in CRDS {
            let limits = yaml::Limits::default();
            let crd = yaml::parse_document(text, &limits, yaml::Duplicates::LastWins);
            let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
            plane.create(path, &crd.expect("our own file")).await;
        }
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "argocd"}});
        plane.create("/api/v1/namespaces", &namespace).await;
        let project = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject", "metadata": {"name": "default"},
            "spec": {"sourceRepos": ["*"], "destinations": [{"server": "*", "namespace": "*"}]}
        });
        plane.create(PROJECTS, &project).await;
        plane
    }

    /// Starts a repo-server.
    async fn serve(&mut self) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let folder = self.folder.path();
        let options = ServerOptions {
            max_message: 8 << 20,
            trust: TrustPaths {
                known_hosts: folder.join("ssh_known_hosts"),
                certificates: folder.join("tls"),
                keys: folder.join("keys"),
            },
            version: "v1".to_owned(),
            streamed: StreamLimits {
                archive: 1 << 20,
                bytes: 4 << 20,
            },
            hidden_folders: false,
        };
        let repos = Repos::with_options(folder.join("of-server"), RepoOptions::default());
        let (server, stop) = (
            Arc::new(Server::new(repos, options)),
            CancellationToken::new(),
        );
        self.repo_server = Some((Arc::clone(&server), port));
        self.serving = Some(stop.clone().drop_guard());
        let connections = Connections::new(Limits::default());
        let serving = server.serve(listener, Tls::Off, connections, stop);
        tokio::spawn(async move { serving.await.expect("it needs no certificate") });
    }

    /// Runs the loop, in place of one that runs.
    async fn run(&mut self) {
        self.stop = None;
        let stop = CancellationToken::new();
        let cache = self.folder.path().join("cache");
        let dependencies = dependencies(self.cluster.clone(), &cache, self.client()).await;
        let dependencies = dependencies.expect("the records");
        self.records = Some(dependencies.records.clone());
        self.stop = Some(stop.clone().drop_guard());
        tokio::spawn(hydrator::run(dependencies, stop));
    }

    fn client(&self) -> Option<RepoServer> {
        let (_, port) = self.repo_server.as_ref()?;
        let options = RepoServerOptions {
            address: format!("localhost:{port}"),
            timeout: Duration::from_secs(60),
            plaintext: true,
            trusted: Vec::new(),
            identity: None,
        };
        Some(RepoServer::new(options).expect("an address"))
    }

    pub fn url(&self) -> String {
        self.repo.url()
    }

    pub fn git(&self, arguments: &[&str]) -> String {
        self.repo.git(arguments)
    }

    /// The last commit of the branch; empty: there is none.
    pub fn head(&self) -> String {
        self.git(&[
            "for-each-ref",
            "--format=%(objectname)",
            "refs/heads/env/dev",
        ])
    }

    fn files(&self) -> Vec<String> {
        let names = self.git(&["ls-tree", "-r", "--full-tree", "--name-only", "env/dev"]);
        names.lines().map(str::to_owned).collect()
    }

    fn show(&self, path: &str) -> String {
        self.git(&["show", &format!("env/dev:{path}")])
    }

    fn commit(&self, path: &str, text: &str) -> String {
        self.repo.commit(&[(path, text)], &[])
    }

    async fn send(&self, call: Call) -> Result<Value, tiphys_cluster::Error> {
        self.cluster.http().json(&call).await
    }

    async fn create(&self, path: &str, object: &Value) {
        let began = Instant::now();
        loop {
            let call = Call::new(Method::POST, path).with_body(JSON, object.to_string());
            match self.send(call).await {
                Ok(_) => return,
                // A definition is served a moment after it was created.
                Err(e) if e.is_not_found() && began.elapsed() < PATIENCE => {}
                Err(e) => panic!("{path}: {e}"),
            }
            sleep(Duration::from_millis(50)).await;
        }
    }

    async fn patch(&self, path: &str, patch: &Value) {
        let call = Call::new(Method::PATCH, path).with_body(MERGE_PATCH, patch.to_string());
        self.send(call).await.expect("it is changed");
    }

    /// Has the project permit these sources only; returns when the loop knows it.
    async fn permit(&self, sources: &str) {
        let project = format!("{PROJECTS}/default");
        self.patch(&project, &json!({"spec": {"sourceRepos": [sources]}}))
            .await;
        let stored = self.send(Call::get(&project)).await.expect("it is there");
        let version = stored["metadata"]["resourceVersion"].as_str();
        let version = version.expect("a version").to_owned();
        let records = self.records.as_ref().expect("the loop runs here");
        let known = || records.projects.get("argocd", "default");
        let began = Instant::now();
        while known().is_none_or(|known| known.meta.resource_version != version) {
            assert!(began.elapsed() < PATIENCE, "the project is not seen");
            sleep(Duration::from_millis(20)).await;
        }
    }

    pub async fn app(&self, name: &str, (url, from, to): (&str, &str, &str)) {
        let app = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": name},
            "spec": {
                "project": "default",
                "destination": {"server": "https://kubernetes.default.svc", "namespace": name},
                "sourceHydrator": {
                    "drySource": {"repoURL": url, "path": from, "targetRevision": "main"},
                    "syncSource": {"targetBranch": "env/dev", "path": to},
                },
            },
        });
        self.create(APPS, &app).await;
    }

    async fn change(&self, name: &str, patch: Value) {
        self.patch(&format!("{APPS}/{name}"), &patch).await;
    }

    pub async fn ask(&self, name: &str, kind: &str) {
        let now = jiff::Timestamp::now().to_string();
        let annotations = json!({HYDRATE: kind, "argocd.argoproj.io/hydrate-timestamp": now});
        self.change(name, json!({"metadata": {"annotations": annotations}}))
            .await;
    }

    pub async fn get(&self, name: &str) -> Value {
        let app = self.send(Call::get(format!("{APPS}/{name}"))).await;
        app.expect("it is there")
    }

    /// The state of an Application once it has this phase, of this dry commit if one is given.
    async fn until(&self, name: &str, phase: &str, dry: Option<&str>) -> Value {
        let began = Instant::now();
        loop {
            let app = self.get(name).await;
            let state = &app["status"]["sourceHydrator"];
            let operation = &state["currentOperation"];
            let is_it = operation["phase"] == phase
                && dry.is_none_or(|dry| operation["drySHA"] == dry)
                && app["metadata"]["annotations"].get(HYDRATE).is_none();
            if is_it {
                return state.clone();
            }
            assert!(began.elapsed() < PATIENCE, "{name} {phase}: {state}");
            sleep(Duration::from_millis(20)).await;
        }
    }
}

/// Those of one process. `None`: it died before it had read what there is.
async fn dependencies(
    cluster: Cluster,
    cache: &Path,
    client: Option<RepoServer>,
) -> Option<Dependencies> {
    let records = Records::start(cluster, RecordsOptions::new("argocd"));
    records.wait_ready().await.ok()?;
    let repos = Repos::with_options(cache, RepoOptions::default());
    Some(Dependencies {
        sources: Sources::new(&records, repos, client),
        records,
        workers: 4,
        leases: None,
        clock: Arc::new(jiff::Timestamp::now),
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn an_application_is_rendered_into_its_branch() {
    let plane = Plane::start().await;
    let dry = plane.git(&["rev-parse", "main"]).trim().to_owned();
    plane
        .app("web", (&plane.url(), "src/web", "apps/web"))
        .await;
    let state = plane.until("web", "Hydrated", None).await;
    let operation = &state["currentOperation"];
    assert_eq!(operation["drySHA"], dry);
    assert_eq!(operation["hydratedSHA"], plane.head());
    assert_eq!(state["lastComparedDryRevision"], dry);
    let last = &state["lastSuccessfulOperation"];
    assert_eq!(last["hydratedSHA"], plane.head());
    assert_eq!(last["sourceHydrator"], operation["sourceHydrator"]);
    let app = plane.get("web").await;
    assert_eq!(app["metadata"]["annotations"][REFRESH], "normal");
    let manifest = "apiVersion: v1\ndata:\n  v: \"1\"\nkind: ConfigMap\nmetadata:\n  name: web";
    assert_eq!(plane.show("apps/web/manifest.yaml"), manifest);
    let subject = plane.git(&["log", "-1", "--format=%s", "env/dev"]);
    assert_eq!(subject.trim(), format!("{}: A change", &dry[..7]));
    assert!(plane.show("apps/web/README.md").contains(&dry));

    // A new commit, when someone asks; another one that changes nothing of it.
    let second = plane.commit("src/web/cm.yaml", &config_map("web", "2"));
    plane.ask("web", "normal").await;
    plane.until("web", "Hydrated", Some(&second)).await;
    assert!(plane.show("apps/web/manifest.yaml").contains("v: \"2\""));
    let head = plane.head();
    let third = plane.commit("README.md", "words");
    plane.ask("web", "normal").await;
    let state = plane.until("web", "Hydrated", Some(&third)).await;
    assert_eq!(state["currentOperation"]["hydratedSHA"], head);
    assert_eq!(plane.head(), head);
}

/// A repo-server resolves and renders; what it says is written.
#[tokio::test(flavor = "multi_thread")]
async fn a_repo_server_renders_what_is_hydrated() {
    let plane = Plane::start_with(true).await;
    plane
        .app("web", (&plane.url(), "src/web", "apps/web"))
        .await;
    let state = plane.until("web", "Hydrated", None).await;
    assert_eq!(state["currentOperation"]["hydratedSHA"], plane.head());
    assert!(plane.show("apps/web/manifest.yaml").contains("v: \"1\""));
    let (server, _) = plane.repo_server.as_ref().expect("it is there");
    let counts = server.metrics();
    let rendered = counts.lines().any(|line| {
        line.starts_with("grpc_server_handled_total{")
            && line.contains("\"GenerateManifest\"")
            && line.contains("\"OK\"")
    });
    assert!(rendered, "the repo-server was asked: {counts}");

    // What it refuses is told, and changes nothing.
    let head = plane.head();
    let broken = plane.commit(
        "src/web/cm.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: [",
    );
    plane.ask("web", "normal").await;
    let state = plane.until("web", "Failed", Some(&broken)).await;
    let message = state["currentOperation"]["message"]
        .as_str()
        .expect("a text");
    assert!(message.starts_with("Failed to hydrate: "), "{message}");
    assert_eq!(plane.head(), head);
    let good = plane.commit("src/web/cm.yaml", &config_map("web", "3"));
    plane.ask("web", "normal").await;
    plane.until("web", "Hydrated", Some(&good)).await;
    assert!(plane.show("apps/web/manifest.yaml").contains("v: \"3\""));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_comes_late_gets_its_files() {
    let mut plane = Plane::start().await;
    plane
        .app("web", (&plane.url(), "src/web", "apps/web"))
        .await;
    let first = plane.until("web", "Hydrated", None).await;
    let web = plane.show("apps/web/hydrator.metadata");
    plane
        .app("api", (&plane.url(), "src/api", "apps/api"))
        .await;
    let late = plane.until("api", "Hydrated", None).await;
    let (first, late) = (&first["currentOperation"], &late["currentOperation"]);
    assert_eq!(first["drySHA"], late["drySHA"]);
    assert_ne!(first["hydratedSHA"], late["hydratedSHA"]);
    assert_eq!(late["hydratedSHA"], plane.head());
    assert!(plane.files().contains(&"apps/api/manifest.yaml".to_owned()));
    assert_eq!(plane.show("apps/web/hydrator.metadata"), web);

    // The same for one whose folder changes, and for a process that begins while one is worked on.
    let changed = json!({"spec": {"sourceHydrator": {"syncSource": {"path": "apps/moved"}}}});
    plane.change("api", changed).await;
    let began = Instant::now();
    while !plane
        .files()
        .contains(&"apps/moved/manifest.yaml".to_owned())
    {
        assert!(began.elapsed() < PATIENCE, "{:?}", plane.files());
        sleep(Duration::from_millis(20)).await;
    }
    plane.until("api", "Hydrated", None).await;
    let operation = json!({"phase": "Hydrating", "finishedAt": null});
    let killed = json!({"status": {"sourceHydrator": {"currentOperation": operation}}});
    plane.stop = None;
    plane.change("web", killed).await;
    plane.run().await;
    plane.until("web", "Hydrated", None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn spellings_of_one_repository_share_a_commit() {
    let plane = Plane::start().await;
    let other = plane.url().trim_end_matches(".git").to_owned();
    std::os::unix::fs::symlink(plane.repo.bare(), plane.repo.bare().with_extension(""))
        .expect("a link");
    // A clash is told to both, and nothing is written.
    plane
        .app("web", (&plane.url(), "src/web", "apps/web"))
        .await;
    plane.until("web", "Hydrated", None).await;
    let head = plane.head();
    plane.app("clash", (&other, "src/api", "apps/web/")).await;
    let state = plane.until("clash", "Failed", None).await;
    let message = state["currentOperation"]["message"]
        .as_str()
        .expect("a text");
    let expected = "Failed to hydrate: app argocd/web hydrator uses the same destination: repo=";
    assert!(message.starts_with(expected), "{message}");
    let state = plane.until("web", "Failed", None).await;
    let message = state["currentOperation"]["message"]
        .as_str()
        .expect("a text");
    assert!(
        message.contains("app argocd/clash hydrator uses"),
        "{message}"
    );
    assert_eq!(plane.head(), head);
    // Without it both are written by one commit.
    let call = Call::new(Method::DELETE, format!("{APPS}/clash"));
    plane.send(call).await.expect("it is deleted");
    plane.app("api", (&other, "src/api", "apps/api")).await;
    plane.until("api", "Hydrated", None).await;
    plane.until("web", "Hydrated", None).await;
    let commits = plane.git(&["rev-list", "--count", &format!("{head}..env/dev")]);
    assert_eq!(commits.trim(), "1");
    sleep(QUIET).await;
    assert_eq!(
        plane
            .git(&["rev-list", "--count", &format!("{head}..env/dev")])
            .trim(),
        "1"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_one_stops_its_group() {
    let plane = Plane::start().await;
    let broken = plane.commit(
        "src/api/cm.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: [",
    );
    plane
        .app("api", (&plane.url(), "src/api", "apps/api"))
        .await;
    let state = plane.until("api", "Failed", None).await;
    let operation = &state["currentOperation"];
    assert_eq!(operation["drySHA"], broken);
    let message = operation["message"].as_str().expect("a text");
    let expected = "Failed to hydrate: failed to get manifests: failed to get repo objects for app \"argocd/api\": ";
    assert!(message.starts_with(expected), "{message}");
    plane
        .app("web", (&plane.url(), "src/web", "apps/web"))
        .await;
    let state = plane.until("web", "Failed", None).await;
    assert_eq!(
        state["currentOperation"]["message"],
        "Failed to hydrate: cannot hydrate because application argocd/api has an error"
    );
    assert_eq!(plane.head(), "", "nothing is written");
    // A new commit mends it, without waiting.
    let mended = plane.commit("src/api/cm.yaml", &config_map("api", "2"));
    plane.ask("api", "normal").await;
    plane.until("api", "Hydrated", Some(&mended)).await;
    plane.until("web", "Hydrated", Some(&mended)).await;

    // A project that permits something else.
    plane.permit("https://git.example.com/*").await;
    plane.ask("web", "hard").await;
    let state = plane.until("web", "Failed", None).await;
    let message = state["currentOperation"]["message"]
        .as_str()
        .expect("a text");
    assert!(
        message.contains("is not permitted in project 'default'"),
        "{message}"
    );
    plane.permit("*").await;
    plane.ask("web", "normal").await;
    plane.until("web", "Hydrated", Some(&mended)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn paths_that_are_listed_decide() {
    let plane = Plane::start().await;
    plane
        .app("web", (&plane.url(), "src/web", "apps/web"))
        .await;
    plane.until("web", "Hydrated", None).await;
    let paths = json!({"argocd.argoproj.io/manifest-generate-paths": "."});
    plane
        .change("web", json!({"metadata": {"annotations": paths}}))
        .await;
    let before = plane.until("web", "Hydrated", None).await;
    let elsewhere = plane.commit("docs/a.md", "words");
    plane.ask("web", "normal").await;
    let began = Instant::now();
    loop {
        let state = plane.until("web", "Hydrated", None).await;
        if state["lastComparedDryRevision"] == elsewhere {
            assert_eq!(state["currentOperation"], before["currentOperation"]);
            break;
        }
        assert!(began.elapsed() < PATIENCE, "{state}");
        sleep(Duration::from_millis(20)).await;
    }
    let here = plane.commit("src/web/cm.yaml", &config_map("web", "2"));
    plane.ask("web", "normal").await;
    plane.until("web", "Hydrated", Some(&here)).await;
}

/// It looks as if its hydration had been interrupted, again and again.
#[tokio::test(flavor = "multi_thread")]
async fn an_application_that_cannot_be_written_is_hydrated_more_and_more_rarely() {
    let wire = Wire::default();
    let write = format!("PATCH {APPS}/web");
    wire.plan(|plan| {
        let refusal = (write.clone(), 403, "not permitted".to_owned());
        plan.refusals.push(refusal);
    });
    let plane = Plane::behind(&wire).await;
    plane
        .app("web", (&plane.url(), "src/web", "apps/web"))
        .await;
    let refused = || wire.writes().iter().filter(|w| w.what == write).count();
    let began = Instant::now();
    while refused() < 2 {
        assert!(began.elapsed() < PATIENCE, "nothing is written");
        sleep(Duration::from_millis(20)).await;
    }
    sleep(3 * QUIET).await;
    let (count, passed) = (refused(), began.elapsed().as_secs_f64());
    // The beginning and the end of each hydration. The pauses are half a second, one, two, four …;
    // the first may have been asked for twice.
    let most = 2.0 * ((passed / 0.5 + 1.0).log2().floor() + 2.0);
    assert!(count as f64 <= most, "{count} writes in {passed} s");
    wire.plan(|plan| plan.refusals.clear());
    plane.until("web", "Hydrated", None).await;
}
