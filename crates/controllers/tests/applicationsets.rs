//! The ApplicationSet controller on an API server: Applications come, change and go, and an answer
//! that is missing deletes nothing.

use super::scripts::wire::Wire;
use http::Method;
use serde_json::{Value, json};
use std::{
    path::Path,
    sync::{Arc, OnceLock},
    time::Duration,
};
use tempfile::TempDir;
use tiphys_cluster::{
    Cluster, Records, RecordsOptions,
    request::{Call, JSON, MERGE_PATCH},
};
use tiphys_controllers::{
    applicationset::{self, ControllerSettings, Dependencies, SetMetrics, SetReport},
    runtime::Clock,
};
use tiphys_embedded_kube::{EmbeddedKube, Options};
use tiphys_gocompat::yaml;
use tiphys_repo::{RepoOptions, Repos};
use tiphys_sources::Sources;
use tiphys_testkit::Repo;
use tokio::time::{Instant, sleep};
use tokio_util::sync::{CancellationToken, DropGuard};

const CRDS: [&str; 3] = [
    include_str!("../../../deploy/crds/application-crd.yaml"),
    include_str!("../../../deploy/crds/applicationset-crd.yaml"),
    include_str!("../../../deploy/crds/appproject-crd.yaml"),
];
pub const APPS: &str = "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications";
pub const SETS: &str = "/apis/argoproj.io/v1alpha1/namespaces/argocd/applicationsets";
pub const SECRETS: &str = "/api/v1/namespaces/argocd/secrets";
/// How long no controller runs after one was killed.
const DOWN: Duration = Duration::from_millis(10);
const SERVER: &str = "https://kubernetes.default.svc";
pub const PATIENCE: Duration = Duration::from_secs(60);

/// One process of the controller.
struct Controller {
    dependencies: Dependencies,
    report: SetReport,
}

impl Controller {
    /// `None`: it died before it had read what there is.
    async fn start(
        cluster: Cluster,
        folder: &Path,
        namespaces: &[String],
        settings: ControllerSettings,
        clock: Clock,
    ) -> Option<Self> {
        let options = RecordsOptions {
            application_namespaces: Some(namespaces.to_vec()),
            ..RecordsOptions::new("argocd")
        };
        let records = Records::start(cluster, options);
        records.wait_ready().await.ok()?;
        let options = RepoOptions {
            allow_local: true,
            refs_ttl: Duration::ZERO,
            ..RepoOptions::default()
        };
        let repos = Repos::with_options(folder, options);
        let report = SetReport {
            metrics: SetMetrics::default(),
            sets: records.application_sets(namespaces),
            labels: vec!["example.com/team".to_owned()],
        };
        let dependencies = Dependencies {
            sets: report.sets.clone(),
            namespaces: namespaces.to_vec(),
            metrics: report.metrics.clone(),
            sources: Sources::new(&records, repos, None),
            records,
            workers: 4,
            settings,
            leases: None,
            clock,
        };
        Some(Self {
            dependencies,
            report,
        })
    }

    async fn run(self, stop: CancellationToken) {
        applicationset::run(self.dependencies, stop).await;
    }
}

/// An API server with the controller.
pub struct Plane {
    cluster: Cluster,
    report: OnceLock<SetReport>,
    _kube: Arc<EmbeddedKube>,
    _folder: TempDir,
    _stop: DropGuard,
}

impl Plane {
    pub async fn start(settings: ControllerSettings) -> Self {
        Self::start_in(settings, &[]).await
    }

    /// With sets and Applications in further namespaces, which are named by patterns.
    pub async fn start_in(settings: ControllerSettings, patterns: &[&str]) -> Self {
        Self::start_with(settings, patterns, &[]).await
    }

    /// With sets and Applications that are there before the controller is.
    pub async fn start_with(
        settings: ControllerSettings,
        patterns: &[&str],
        before: &[Value],
    ) -> Self {
        let (kube, plane, stop) = Self::ground(before).await;
        let namespaces: Vec<String> = patterns.iter().map(|p| (*p).to_owned()).collect();
        let folder = plane._folder.path();
        let (cluster, clock) = (plane.cluster.clone(), Arc::new(jiff::Timestamp::now));
        let controller = Controller::start(cluster, folder, &namespaces, settings, clock);
        let controller = controller.await.expect("the records");
        let _ = plane.report.set(controller.report.clone());
        tokio::spawn(controller.run(stop));
        drop(kube);
        plane
    }

    /// With a controller that is started again when it dies on the wire.
    pub async fn behind(wire: &Wire, settings: ControllerSettings) -> Self {
        Self::behind_at(wire, settings, Arc::new(jiff::Timestamp::now)).await
    }

    /// The same, with the controller's clock.
    pub async fn behind_at(wire: &Wire, settings: ControllerSettings, clock: Clock) -> Self {
        let (kube, plane, stop) = Self::ground(&[]).await;
        let (folder, stopped) = (plane._folder.path().to_owned(), stop.clone());
        let process = move |cluster| {
            let (folder, stop) = (folder.clone(), stopped.clone());
            let (settings, clock) = (settings.clone(), clock.clone());
            async move {
                let controller = Controller::start(cluster, &folder, &[], settings, clock).await;
                if let Some(controller) = controller {
                    controller.run(stop).await;
                }
            }
        };
        tokio::spawn(wire.clone().supervise(kube, (stop, DOWN), process));
        plane
    }

    /// An API server without a controller, and what ends that.
    async fn ground(before: &[Value]) -> (Arc<EmbeddedKube>, Self, CancellationToken) {
        let kube = EmbeddedKube::start(Options::default())
            .await
            .expect("the embedded server starts");
        let kube = Arc::new(kube);
        let cluster = Cluster::connect_in_process(kube.router(), SERVER)
            .await
            .expect("it answers");
        let (folder, stop) = (TempDir::new().expect("a folder"), CancellationToken::new());
        let plane = Self {
            cluster,
            report: OnceLock::new(),
            _kube: Arc::clone(&kube),
            _folder: folder,
            _stop: stop.clone().drop_guard(),
        };
        for text in CRDS {
            let crd =
                yaml::parse_document(text, &yaml::Limits::default(), yaml::Duplicates::LastWins)
                    .expect("our own file");
            let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
            plane.create(path, &crd).await;
        }
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "argocd"}});
        plane.create("/api/v1/namespaces", &namespace).await;
        let project = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject", "metadata": {"name": "default"},
            "spec": {"sourceRepos": ["*"], "destinations": [{"server": "*", "namespace": "*"}]}
        });
        plane
            .create(
                "/apis/argoproj.io/v1alpha1/namespaces/argocd/appprojects",
                &project,
            )
            .await;
        for object in before {
            plane.create_with_status(object).await;
        }
        (kube, plane, stop)
    }

    pub async fn send(&self, call: Call) -> Result<Value, tiphys_cluster::Error> {
        self.cluster.http().json(&call).await
    }

    /// Returns what was stored.
    pub async fn create(&self, path: &str, object: &Value) -> Value {
        let began = Instant::now();
        loop {
            let call = Call::new(Method::POST, path).with_body(JSON, object.to_string());
            match self.send(call).await {
                Ok(stored) => return stored,
                // A definition is served a moment after it was created.
                Err(e) if e.is_not_found() && began.elapsed() < PATIENCE => {}
                Err(e) => panic!("{path}: {e}"),
            }
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// A set or an Application with the status that is written in it.
    async fn create_with_status(&self, object: &Value) {
        let path = match object["kind"].as_str() {
            Some("ApplicationSet") => SETS,
            _ => APPS,
        };
        self.create(path, object).await;
        if path == SETS && !object["status"].is_null() {
            let name = text(&object["metadata"]["name"]);
            let status = json!({"status": object["status"]});
            self.patch(&format!("{path}/{name}/status"), status).await;
        }
    }

    pub async fn get(&self, path: &str) -> Value {
        self.send(Call::get(path)).await.expect(path)
    }

    pub async fn set(&self, name: &str, spec: Value) {
        let set = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet",
            "metadata": {"name": name}, "spec": spec,
        });
        self.create(SETS, &set).await;
    }

    pub async fn patch(&self, path: &str, patch: Value) {
        let call = Call::new(Method::PATCH, path).with_body(MERGE_PATCH, patch.to_string());
        self.send(call).await.expect("it is patched");
    }

    pub async fn delete(&self, path: &str) {
        let call = Call::new(Method::DELETE, path).with_body(JSON, "{}");
        self.send(call).await.expect("it is deleted");
    }

    pub async fn apps(&self) -> Vec<Value> {
        let list = self.send(Call::get(APPS)).await.expect("a list");
        list["items"].as_array().cloned().unwrap_or_default()
    }

    pub async fn names(&self) -> Vec<String> {
        let apps = self.apps().await;
        apps.iter()
            .map(|app| text(&app["metadata"]["name"]))
            .collect()
    }

    /// How many reconciles of a set have ended.
    pub fn reconciles(&self, set: &str) -> u64 {
        let text = self.report.get().expect("it runs").text().expect("text");
        let counted =
            format!(r#"argocd_appset_reconcile_count{{namespace="argocd",name="{set}"}} "#);
        let mut lines = text.lines().filter_map(|line| line.strip_prefix(&counted));
        let count = lines.next().map(|count| count.trim().parse());
        count.map_or(0, |count| count.expect("a number"))
    }

    /// Waits until there are exactly these Applications.
    pub async fn has(&self, wanted: &[&str]) {
        let began = Instant::now();
        loop {
            let names = self.names().await;
            if names == wanted {
                return;
            }
            assert!(
                began.elapsed() < PATIENCE,
                "there are {names:?} instead of {wanted:?}; the sets: {:?}",
                self.send(Call::get(SETS)).await.map(|list| list["items"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .map(|set| set["status"].clone())
                    .collect::<Vec<_>>())
            );
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits until the condition of a set has this status, and returns its message.
    pub async fn condition(&self, set: &str, type_: &str, status: &str) -> String {
        let began = Instant::now();
        loop {
            let set = self
                .send(Call::get(format!("{SETS}/{set}")))
                .await
                .expect("a set");
            let conditions = set["status"]["conditions"].as_array().cloned();
            let found = conditions
                .into_iter()
                .flatten()
                .find(|c| c["type"] == type_);
            if let Some(found) = found.filter(|c| c["status"] == status) {
                return text(&found["message"]);
            }
            assert!(
                began.elapsed() < PATIENCE,
                "no {type_}={status}: {}",
                set["status"]
            );
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits until a field of an Application has this value.
    pub async fn field(&self, app: &str, pointer: &str, wanted: &str) {
        let began = Instant::now();
        loop {
            let app = self.send(Call::get(format!("{APPS}/{app}"))).await;
            let value = app
                .as_ref()
                .ok()
                .and_then(|app| app.pointer(pointer)?.as_str());
            if value == Some(wanted) {
                return;
            }
            if began.elapsed() >= PATIENCE {
                let sets = self.send(Call::get(SETS)).await;
                panic!("{pointer} is {value:?}: {app:?}; the sets: {sets:?}");
            }
            sleep(Duration::from_millis(20)).await;
        }
    }
}

pub fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

pub fn template(name: &str, url: &str, path: &str) -> Value {
    json!({
        "metadata": {"name": name, "labels": {"made": "yes"}},
        "spec": {
            "project": "default",
            "source": {"repoURL": url, "path": path, "targetRevision": "HEAD"},
            "destination": {"server": "https://kubernetes.default.svc", "namespace": "default"},
        },
    })
}

fn list(elements: &[&str]) -> Value {
    let elements: Vec<Value> = elements.iter().map(|name| json!({"name": name})).collect();
    json!([{"list": {"elements": elements}}])
}

fn secret(name: &str, labels: Value) -> Value {
    let mut labels = labels;
    labels["argocd.argoproj.io/secret-type"] = json!("cluster");
    json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "labels": labels},
        "stringData": {"name": name, "server": format!("https://{name}.example.com"), "config": "{}"},
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn applications_come_change_and_go() {
    let plane = Plane::start(ControllerSettings::default()).await;
    let spec = json!({
        "generators": list(&["one", "two"]),
        "template": template("app-{{name}}", "https://example.com/r", "{{name}}"),
    });
    plane.set("set", spec).await;
    plane.has(&["app-one", "app-two"]).await;
    let message = plane.condition("set", "ResourcesUpToDate", "True").await;
    assert_eq!(message, "All applications have been generated successfully");
    let apps = plane.apps().await;
    let set = plane
        .send(Call::get(format!("{SETS}/set")))
        .await
        .expect("the set");
    assert_eq!(set["status"]["resourcesCount"], 2, "{}", set["status"]);
    assert_eq!(set["status"]["health"]["status"], "Healthy");
    metrics_say(&plane).await;
    assert_eq!(
        apps[0]["metadata"]["ownerReferences"],
        json!([{
            "apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "name": "set",
            "uid": set["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true,
        }])
    );
    assert_eq!(
        apps[0]["metadata"]["finalizers"],
        json!(["resources-finalizer.argocd.argoproj.io"])
    );

    // What someone else changes comes back; what is to be preserved stays.
    let by_hand = json!({
        "metadata": {"annotations": {
            "argocd.argoproj.io/refresh": "normal", "mine": "x",
            // The controller of Applications keeps them for itself.
            "tiphys.dev/sync-progress": "p", "tiphys.dev/last-healthy": "7",
        }},
        "spec": {"source": {"path": "elsewhere"}},
    });
    plane.patch(&format!("{APPS}/app-one"), by_hand).await;
    plane.field("app-one", "/spec/source/path", "one").await;
    plane
        .field(
            "app-one",
            "/metadata/annotations/argocd.argoproj.io~1refresh",
            "normal",
        )
        .await;
    let app = plane
        .send(Call::get(format!("{APPS}/app-one")))
        .await
        .expect("an app");
    let annotations = &app["metadata"]["annotations"];
    assert_eq!(annotations["mine"], Value::Null);
    assert_eq!(annotations["tiphys.dev/sync-progress"], "p");
    assert_eq!(annotations["tiphys.dev/last-healthy"], "7");

    // Applications follow the set.
    let edit = json!({"spec": {"template": {"spec": {"source": {"targetRevision": "v2"}}}}});
    plane.patch(&format!("{SETS}/set"), edit).await;
    plane
        .field("app-two", "/spec/source/targetRevision", "v2")
        .await;
    let edit = json!({"spec": {"generators": list(&["two", "three"])}});
    plane.patch(&format!("{SETS}/set"), edit).await;
    // Nobody here carries out the finalizer of the Application that goes.
    plane.field("app-three", "/spec/source/path", "three").await;
    gone(&plane, "app-one").await;
    plane.has(&["app-three", "app-two"]).await;
    told(
        &plane,
        &[
            r#"Deleted Deleted Application "app-one""#,
            r#"created created Application "app-one""#,
            r#"created created Application "app-three""#,
            r#"created created Application "app-two""#,
            r#"updated updated Application "app-one""#,
            r#"updated updated Application "app-two""#,
        ],
    )
    .await;

    // The garbage collector deletes what the set owned.
    plane.delete(&format!("{SETS}/set")).await;
    gone(&plane, "app-two").await;
    gone(&plane, "app-three").await;
    plane.has(&[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_about_many_applications_are_combined() {
    let plane = Plane::start(ControllerSettings::default()).await;
    let elements: Vec<String> = (10..30).map(|number| format!("a{number}")).collect();
    let elements: Vec<&str> = elements.iter().map(String::as_str).collect();
    let spec = json!({
        "generators": list(&elements),
        "template": template("{{name}}", "https://example.com/r", "{{name}}"),
    });
    plane.set("set", spec).await;
    plane.has(&elements).await;
    let began = Instant::now();
    let mut events = Vec::new();
    while events.len() < 11 && began.elapsed() < PATIENCE {
        let list = plane.get("/api/v1/namespaces/argocd/events").await;
        let all = list["items"].as_array().into_iter().flatten();
        let created =
            all.filter(|e| e["involvedObject"]["name"] == "set" && e["reason"] == "created");
        events = created.cloned().collect();
        sleep(Duration::from_millis(20)).await;
    }
    let (combined, single): (Vec<Value>, Vec<Value>) = events
        .into_iter()
        .partition(|event| text(&event["message"]).starts_with("(combined from similar events): "));
    assert_eq!((combined.len(), single.len()), (1, 10), "{combined:#?}");
    assert_eq!(combined[0]["count"], 10, "{combined:#?}");
    assert!(
        single.iter().all(|event| event["count"] == 1),
        "{single:#?}"
    );
}

/// Waits until these are the reasons and messages of the set's Events, each of which may have been
/// told more than once: they are written in the background.
async fn told(plane: &Plane, wanted: &[&str]) {
    let began = Instant::now();
    loop {
        let list = plane.get("/api/v1/namespaces/argocd/events").await;
        let events = list["items"].as_array().into_iter().flatten();
        let of_set = events.filter(|event| {
            let about = &event["involvedObject"];
            about["kind"] == "ApplicationSet"
                && about["name"] == "set"
                && event["type"] == "Normal"
                && event["source"]["component"] == "argocd-applicationset-controller"
        });
        let mut found: Vec<String> = of_set
            .map(|event| format!("{} {}", text(&event["reason"]), text(&event["message"])))
            .collect();
        found.sort();
        found.dedup();
        if found == wanted {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "{found:#?}");
        sleep(Duration::from_millis(20)).await;
    }
}

/// Waits until the metrics have these lines: a reconcile is counted after its status is written.
async fn metrics_say(plane: &Plane) {
    let own = r#"namespace="argocd",name="set""#;
    let lines = [
        format!(r#"argocd_appset_info{{{own},resource_update_status="ApplicationSetUpToDate"}} 1"#),
        format!("argocd_appset_owned_applications{{{own}}} 2"),
        format!(r#"argocd_appset_labels{{{own},label_example_com_team=""}} 1"#),
        format!(r#"argocd_appset_reconcile_bucket{{le="10.0",{own}}}"#),
        format!("argocd_appset_reconcile_count{{{own}}}"),
    ];
    let began = Instant::now();
    loop {
        let text = plane.report.get().expect("it runs").text().expect("text");
        let Some(line) = lines.iter().find(|line| !text.contains(*line)) else {
            return;
        };
        assert!(began.elapsed() < PATIENCE, "{line}: {text}");
        sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sets_count_in_the_namespaces_that_patterns_name() {
    let plane = Plane::start_in(ControllerSettings::default(), &["team-*", "!team-x"]).await;
    for namespace in ["team-a", "team-x", "other"] {
        let object = json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace},
        });
        plane.create("/api/v1/namespaces", &object).await;
    }
    let of = |namespace: &str, plural: &str| {
        format!("/apis/argoproj.io/v1alpha1/namespaces/{namespace}/{plural}")
    };
    for namespace in ["other", "team-x", "team-a"] {
        let set = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet",
            "metadata": {"name": "set"},
            "spec": {
                "generators": list(&["one"]),
                "template": template("app-{{name}}", "https://example.com/r", "x"),
            },
        });
        plane.create(&of(namespace, "applicationsets"), &set).await;
    }
    let apps = async |namespace: &str| {
        let list = plane.send(Call::get(of(namespace, "applications"))).await;
        list.expect("a list")["items"]
            .as_array()
            .map_or(0, Vec::len)
    };
    let began = Instant::now();
    while apps("team-a").await == 0 {
        assert!(began.elapsed() < PATIENCE, "nothing is generated");
        sleep(Duration::from_millis(20)).await;
    }
    // The others were there before.
    sleep(Duration::from_millis(300)).await;
    assert_eq!((apps("other").await, apps("team-x").await), (0, 0));
    // Hosts of Git may be asked from there only if they are listed.
    let spec = json!({"generators": [{"scmProvider": {"github": {"organization": "o"}}}]});
    let path = format!("{}/set", of("team-a", "applicationsets"));
    plane.patch(&path, json!({"spec": spec})).await;
    let began = Instant::now();
    loop {
        let set = plane.send(Call::get(path.clone())).await.expect("the set");
        if set["status"]
            .to_string()
            .contains("scm provider not allowed: sets outside")
        {
            break;
        }
        assert!(began.elapsed() < PATIENCE, "{}", set["status"]);
        sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(apps("team-a").await, 1);
}

/// Waits until an Application is being deleted, and removes its finalizers.
async fn gone(plane: &Plane, name: &str) {
    let began = Instant::now();
    let path = format!("{APPS}/{name}");
    loop {
        let app = plane
            .send(Call::get(path.clone()))
            .await
            .expect("an Application");
        if app["metadata"]["deletionTimestamp"].is_string() {
            break;
        }
        assert!(began.elapsed() < PATIENCE, "{name} stays");
        sleep(Duration::from_millis(20)).await;
    }
    plane
        .patch(&path, json!({"metadata": {"finalizers": null}}))
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_matrix_of_clusters_and_git_follows_both() {
    let plane = Plane::start(ControllerSettings::default()).await;
    let repo = Repo::with(&[
        ("apps/web/deploy.yaml", "{}"),
        ("apps/db/deploy.yaml", "{}"),
        ("other/x.yaml", "{}"),
    ]);
    for (name, env) in [("east", "prod"), ("west", "prod"), ("lab", "test")] {
        plane
            .create(SECRETS, &secret(name, json!({"env": env})))
            .await;
    }
    let mut template = template(
        "{{.name}}-{{.path.basename}}",
        &repo.url(),
        "{{.path.path}}",
    );
    template["spec"]["destination"] =
        json!({"name": "{{.name}}", "namespace": "{{.metadata.labels.env}}"});
    let spec = json!({
        "goTemplate": true,
        "goTemplateOptions": ["missingkey=error"],
        "syncPolicy": {"preserveResourcesOnDeletion": true},
        "generators": [{"matrix": {"generators": [
            {"clusters": {"selector": {"matchLabels": {"env": "prod"}}}},
            {"git": {
                "repoURL": repo.url(), "revision": "HEAD", "requeueAfterSeconds": 1,
                "directories": [{"path": "apps/*"}],
            }},
        ]}}],
        "template": template,
    });
    plane.set("fleet", spec).await;
    plane
        .has(&["east-db", "east-web", "west-db", "west-web"])
        .await;
    plane
        .field("west-web", "/spec/source/path", "apps/web")
        .await;
    plane
        .field("west-web", "/spec/destination/namespace", "prod")
        .await;

    // A folder goes, another one comes.
    repo.commit(&[("apps/api/deploy.yaml", "{}")], &["apps/db/deploy.yaml"]);
    plane
        .has(&["east-api", "east-web", "west-api", "west-web"])
        .await;

    // A cluster that is labelled comes with all its Applications.
    let label = json!({"metadata": {"labels": {"env": "prod"}}});
    plane.patch(&format!("{SECRETS}/lab"), label).await;
    plane
        .has(&[
            "east-api", "east-web", "lab-api", "lab-web", "west-api", "west-web",
        ])
        .await;

    // While the repository is away, nothing goes and nothing comes, whatever else happens.
    repo.set_away(true);
    let message = plane.condition("fleet", "ErrorOccurred", "True").await;
    assert!(
        message.contains("error generating params from git"),
        "{message}"
    );
    plane.delete(&format!("{SECRETS}/lab")).await;
    let generated = plane
        .condition("fleet", "ParametersGenerated", "False")
        .await;
    assert_eq!(generated, message);
    sleep(Duration::from_millis(1500)).await;
    assert_eq!(plane.names().await.len(), 6);

    // When it is back, the set catches up.
    repo.set_away(false);
    plane.patch(&format!("{SETS}/fleet"), json!({"metadata": {"annotations": {"argocd.argoproj.io/application-set-refresh": "true"}}})).await;
    plane
        .has(&["east-api", "east-web", "west-api", "west-web"])
        .await;
    plane.condition("fleet", "ErrorOccurred", "False").await;
    let began = Instant::now();
    loop {
        let set = plane
            .send(Call::get(format!("{SETS}/fleet")))
            .await
            .expect("the set");
        let request = "argocd.argoproj.io/application-set-refresh";
        if set["metadata"]["annotations"].get(request).is_none() {
            break;
        }
        assert!(
            began.elapsed() < PATIENCE,
            "the request stays: {}",
            set["metadata"]
        );
        sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broken_element_or_cluster_deletes_nothing() {
    let plane = Plane::start(ControllerSettings::default()).await;
    plane.create(SECRETS, &secret("east", json!({}))).await;
    let spec = json!({
        "syncPolicy": {"preserveResourcesOnDeletion": true},
        "generators": [{"clusters": {}}],
        "template": template("on-{{name}}", "https://example.com/r", "."),
    });
    plane.set("clusters", spec).await;
    plane.has(&["on-east", "on-in-cluster"]).await;
    // A Secret whose name cannot be read leaves no answer about any cluster.
    plane
        .patch(
            &format!("{SECRETS}/east"),
            json!({"data": {"name": "/w=="}}),
        )
        .await;
    let message = plane.condition("clusters", "ErrorOccurred", "True").await;
    assert!(message.contains("data.name is not UTF-8"), "{message}");
    assert_eq!(plane.names().await, ["on-east", "on-in-cluster"]);

    // One invalid Application does not hold the others, and is not deleted either.
    let mut template = template("x-{{name}}", "https://example.com/r", ".");
    template["spec"]["project"] = json!("{{project}}");
    let spec = json!({
        "syncPolicy": {"preserveResourcesOnDeletion": true},
        "generators": [{"list": {"elements": [
            {"name": "good", "project": "default"}, {"name": "bad", "project": "nope"},
        ]}}],
        "template": template,
    });
    plane.set("validated", spec).await;
    plane.has(&["on-east", "on-in-cluster", "x-good"]).await;
    let message = plane.condition("validated", "ErrorOccurred", "True").await;
    assert_eq!(
        message,
        "application references project nope which does not exist"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_set_that_cannot_be_read_says_so() {
    let plane = Plane::start(ControllerSettings::default()).await;
    let mut generators = list(&["one"]);
    generators[0]["list"]["template"] = json!({"spec": {"revisionHistoryLimit": "five"}});
    let spec = json!({
        "generators": generators,
        "template": template("{{name}}", "https://example.com/r", "."),
    });
    plane.set("typo", spec).await;
    let message = plane.condition("typo", "ErrorOccurred", "True").await;
    assert!(message.contains("expected i64"), "{message}");
    assert!(plane.names().await.is_empty());
    let edit = json!({"spec": {"generators": list(&["one"])}});
    plane.patch(&format!("{SETS}/typo"), edit).await;
    plane.has(&["one"]).await;
    plane.condition("typo", "ErrorOccurred", "False").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn policies_hold_updates_and_deletions() {
    let settings = ControllerSettings {
        policy: Some("create-only".to_owned()),
        ..ControllerSettings::default()
    };
    let plane = Plane::start(settings).await;
    let spec = json!({
        "syncPolicy": {"preserveResourcesOnDeletion": true, "applicationsSync": "sync"},
        "generators": list(&["one", "two"]),
        "template": template("{{name}}", "https://example.com/r", "."),
    });
    plane.set("set", spec).await;
    plane.has(&["one", "two"]).await;
    let edit = json!({"spec": {
        "generators": list(&["two", "three"]),
        "template": {"spec": {"source": {"targetRevision": "v2"}}},
    }});
    plane.patch(&format!("{SETS}/set"), edit).await;
    plane.has(&["one", "three", "two"]).await;
    plane
        .field("three", "/spec/source/targetRevision", "v2")
        .await;
    plane
        .field("two", "/spec/source/targetRevision", "HEAD")
        .await;
    // Deleting the set leaves what it made, since it may not delete.
    let keep = json!({"metadata": {"finalizers": ["resources-finalizer.argocd.argoproj.io"]}});
    plane.patch(&format!("{SETS}/set"), keep).await;
    plane.delete(&format!("{SETS}/set")).await;
    let began = Instant::now();
    while plane.send(Call::get(format!("{SETS}/set"))).await.is_ok() {
        assert!(began.elapsed() < PATIENCE, "the set stays");
        sleep(Duration::from_millis(20)).await;
    }
    let apps = plane.apps().await;
    assert_eq!(apps.len(), 3);
    assert!(
        apps.iter()
            .all(|app| app["metadata"]["ownerReferences"].is_null())
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rollout_goes_step_by_step() {
    let settings = ControllerSettings {
        progressive_syncs: Some(true),
        ..ControllerSettings::default()
    };
    let plane = Plane::start(settings).await;
    let mut template = template("app-{{env}}", "https://example.com/r", ".");
    template["metadata"]["labels"] = json!({"env": "{{env}}"});
    template["spec"]["syncPolicy"] = json!({"automated": {"prune": true}});
    let step = |env: &str| json!({"matchExpressions": [{"key": "env", "operator": "In", "values": [env]}]});
    let spec = json!({
        "syncPolicy": {"preserveResourcesOnDeletion": true},
        "strategy": {"type": "RollingSync", "rollingSync": {"steps": [step("dev"), step("prod")]}},
        "generators": [{"list": {"elements": [{"env": "dev"}, {"env": "prod"}]}}],
        "template": template,
    });
    plane.set("rollout", spec).await;
    plane.has(&["app-dev", "app-prod"]).await;
    // The rollout syncs, not the Applications themselves: first the first step.
    plane
        .field(
            "app-dev",
            "/operation/initiatedBy/username",
            "applicationset-controller",
        )
        .await;
    let message = plane
        .condition("rollout", "RolloutProgressing", "True")
        .await;
    assert_eq!(message, "ApplicationSet is performing rollout of step 1");
    let prod = plane
        .send(Call::get(format!("{APPS}/app-prod")))
        .await
        .expect("an app");
    assert_eq!(prod["operation"], Value::Null);
    assert_eq!(prod["spec"]["syncPolicy"]["automated"]["enabled"], false);

    // Once it is synced and healthy, the next one follows.
    plane.patch(&format!("{APPS}/app-dev"), well()).await;
    plane
        .field(
            "app-prod",
            "/operation/initiatedBy/username",
            "applicationset-controller",
        )
        .await;
    plane.patch(&format!("{APPS}/app-prod"), well()).await;
    let message = plane
        .condition("rollout", "RolloutProgressing", "False")
        .await;
    assert_eq!(message, "ApplicationSet Rollout has completed");
}

/// What the Application controller would write after a sync.
fn well() -> Value {
    json!({
        "operation": null,
        "status": {
            "sync": {"status": "Synced", "revision": "r1"},
            "health": {"status": "Healthy"},
        },
    })
}
