//! The loop of notifications on an embedded API server, with a webhook that records what it gets.

use super::scripts::wire::Wire;
use http::Method;
use serde_json::{Value, json};
use std::{
    collections::VecDeque,
    path::Path,
    sync::{Arc, Mutex},
    time::Duration,
};
use tempfile::TempDir;
use tiphys_cluster::{
    Cluster, Records, RecordsOptions,
    request::{Call, JSON, MERGE_PATCH},
};
use tiphys_controllers::notifications::{
    self, Dependencies, Link, NotificationMetrics, SelfService,
};
use tiphys_embedded_kube::{EmbeddedKube, Options};
use tiphys_gocompat::yaml;
use tiphys_repo::{RepoOptions, Repos};
use tiphys_sources::Sources;
use tiphys_testkit::Repo;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
    time::{Instant, sleep},
};
use tokio_util::sync::{CancellationToken, DropGuard};

const CRDS: [&str; 2] = [
    include_str!("../../../deploy/crds/application-crd.yaml"),
    include_str!("../../../deploy/crds/appproject-crd.yaml"),
];
pub const APPS: &str = "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications";
pub const CONFIG: &str = "/api/v1/namespaces/argocd/configmaps";
pub const NOTIFIED: &str = "notified.notifications.argoproj.io";
/// How long no controller runs after one was killed.
const DOWN: Duration = Duration::from_millis(10);
const SERVER: &str = "https://kubernetes.default.svc";
pub const PATIENCE: Duration = Duration::from_secs(60);
/// Long enough for what should not happen.
pub const QUIET: Duration = Duration::from_millis(1500);

/// A server that records bodies, and answers with the next status, 200 by default.
#[derive(Clone, Default)]
pub struct Hook {
    bodies: Arc<Mutex<Vec<String>>>,
    /// The head of each request.
    heads: Arc<Mutex<Vec<String>>>,
    statuses: Arc<Mutex<VecDeque<u16>>>,
}

impl Hook {
    pub async fn start(self) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("its address"));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(self.clone().answer(stream));
            }
        });
        url
    }

    async fn answer(self, mut stream: TcpStream) {
        let mut read = Vec::new();
        loop {
            let mut chunk = [0; 4096];
            let Ok(count) = stream.read(&mut chunk).await else {
                return;
            };
            if count == 0 {
                return;
            }
            read.extend_from_slice(&chunk[..count]);
            let text = String::from_utf8_lossy(&read).into_owned();
            let Some((head, body)) = text.split_once("\r\n\r\n") else {
                continue;
            };
            let length = head
                .lines()
                .filter_map(|line| line.split_once(':'))
                .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
                .map_or(0, |(_, length)| length.trim().parse().expect("a length"));
            if body.len() < length {
                continue;
            }
            self.heads.lock().expect("no panic").push(head.to_owned());
            self.bodies.lock().expect("no panic").push(body.to_owned());
            let status = self.statuses.lock().expect("no panic").pop_front();
            let answer = format!(
                "HTTP/1.1 {} Said\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
                status.unwrap_or(200)
            );
            let _ = stream.write_all(answer.as_bytes()).await;
            return;
        }
    }

    /// Answers the next requests so; returns those that were not answered so yet.
    pub fn say(&self, statuses: &[u16]) -> usize {
        let mut waiting = self.statuses.lock().expect("no panic");
        let before = waiting.len();
        waiting.clear();
        waiting.extend(statuses);
        before
    }

    pub fn heads(&self) -> Vec<String> {
        self.heads.lock().expect("no panic").clone()
    }

    pub fn got(&self) -> Vec<String> {
        self.bodies.lock().expect("no panic").clone()
    }

    pub async fn wait_for(&self, bodies: &[&str]) {
        let began = Instant::now();
        while self.got() != bodies {
            assert!(began.elapsed() < PATIENCE, "{:?}", self.got());
            sleep(Duration::from_millis(20)).await;
        }
    }
}

pub struct Ground {
    pub kube: Arc<EmbeddedKube>,
    cluster: Cluster,
    folder: TempDir,
    metrics: NotificationMetrics,
}

impl Ground {
    pub async fn new() -> Self {
        let kube = EmbeddedKube::start(Options::default())
            .await
            .expect("the embedded server starts");
        let cluster = Cluster::connect_in_process(kube.router(), SERVER)
            .await
            .expect("it answers");
        let kube = Arc::new(kube);
        let ground = Self {
            kube,
            cluster,
            folder: TempDir::new().expect("a folder"),
            metrics: NotificationMetrics::default(),
        };
        for text in CRDS {
            let (limits, last) = (yaml::Limits::default(), yaml::Duplicates::LastWins);
            let crd = yaml::parse_document(text, &limits, last).expect("our own file");
            let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
            ground.send(Method::POST, path, JSON, &crd).await;
        }
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "argocd"}});
        ground
            .send(Method::POST, "/api/v1/namespaces", JSON, &namespace)
            .await;
        ground
    }

    /// Sends until it is accepted: a definition is served a moment after it is created.
    pub async fn send(&self, method: Method, path: &str, kind: &'static str, body: &Value) {
        let call = Call::new(method, path).with_body(kind, body.to_string());
        let began = Instant::now();
        while let Err(e) = self.cluster.http().json::<Value>(&call).await {
            assert!(
                e.is_not_found() && began.elapsed() < PATIENCE,
                "{path}: {e}"
            );
            sleep(Duration::from_millis(50)).await;
        }
    }

    pub async fn configure(&self, url: &str, extra: &[(&str, &str)]) {
        let mut data = json!({
            "service.webhook.hook": format!("url: {url}\nretryMax: 1\nretryWaitMin: 1000000\nretryWaitMax: 1000000"),
            "template.broken": "message: '{{'",
            "template.state": "message: '{{.app.metadata.name}} is {{.app.status.health.status}}'",
            "trigger.on-degraded": "- when: app.status.health.status == 'Degraded'\n  send: [state]",
        });
        for (key, value) in extra {
            data[*key] = (*value).into();
        }
        let config = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "argocd-notifications-cm"}, "data": data,
        });
        self.send(Method::POST, CONFIG, JSON, &config).await;
    }

    pub async fn application(&self, name: &str) {
        let app = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {"name": name, "annotations": {
                "notifications.argoproj.io/subscribe.on-degraded.hook": "someone",
            }},
            "spec": {
                "project": "default",
                "source": {"repoURL": "https://git.example.test/a/b", "path": ".", "targetRevision": "HEAD"},
                "destination": {"server": "https://kubernetes.default.svc", "namespace": "default"},
            },
        });
        self.send(Method::POST, APPS, JSON, &app).await;
    }

    pub async fn patch(&self, name: &str, patch: Value) {
        let path = format!("{APPS}/{name}");
        self.send(Method::PATCH, &path, MERGE_PATCH, &patch).await;
    }

    pub async fn health(&self, name: &str, status: &str) {
        self.patch(name, json!({"status": {"health": {"status": status}}}))
            .await;
    }

    pub async fn notified(&self, name: &str) -> Value {
        let call = Call::get(format!("{APPS}/{name}"));
        let app = self.cluster.http().json::<Value>(&call).await;
        app.expect("it is there")["metadata"]["annotations"][NOTIFIED].clone()
    }

    /// Waits until the annotation is there, or is not.
    pub async fn wait_notified(&self, name: &str, there: bool) {
        let began = Instant::now();
        while self.notified(name).await.is_string() != there {
            assert!(began.elapsed() < PATIENCE, "{}", self.notified(name).await);
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// Runs the loop.
    pub async fn start(&self) -> Run {
        self.start_with(false).await
    }

    /// With Applications in the namespace `team`, which may configure its own notifications.
    async fn start_with(&self, self_service: bool) -> Run {
        let cluster = self.cluster.clone();
        let dependencies = dependencies(cluster, self.folder.path(), self_service).await;
        let dependencies = Dependencies {
            metrics: self.metrics.clone(),
            ..dependencies.expect("the records are read")
        };
        let stop = CancellationToken::new();
        let task = tokio::spawn(notifications::run(dependencies, stop.clone()));
        Run { stop, task }
    }

    /// Nobody else uses its server any more.
    pub async fn shutdown(self) {
        let kube = Arc::into_inner(self.kube).expect("no controller runs behind a wire");
        kube.shutdown().await;
    }

    /// Runs a loop that is started again when it dies on the wire.
    pub fn start_behind(self: &Arc<Self>, wire: &Wire) -> DropGuard {
        let stop = CancellationToken::new();
        let (ground, stopped) = (Arc::clone(self), stop.clone());
        let process = move |cluster| {
            let (ground, stop) = (Arc::clone(&ground), stopped.clone());
            async move {
                let dependencies = dependencies(cluster, ground.folder.path(), false).await;
                if let Some(dependencies) = dependencies {
                    notifications::run(dependencies, stop).await;
                }
            }
        };
        let kube = Arc::clone(&self.kube);
        tokio::spawn(wire.clone().supervise(kube, (stop.clone(), DOWN), process));
        stop.drop_guard()
    }
}

/// `None`: the process died before it had read what there is.
async fn dependencies(cluster: Cluster, folder: &Path, self_service: bool) -> Option<Dependencies> {
    let options = RecordsOptions {
        application_namespaces: self_service.then(|| vec!["team".to_owned()]),
        ..RecordsOptions::new("argocd")
    };
    let records = Records::start(cluster, options);
    records.wait_ready().await.ok()?;
    let options = RepoOptions {
        allow_local: true,
        ..RepoOptions::default()
    };
    let repos = Repos::with_options(folder, options);
    Some(Dependencies {
        sources: Sources::new(&records, repos, None),
        lease: None,
        workers: 4,
        config_map: notifications::CONFIG_MAP.to_owned(),
        secret: notifications::SECRET.to_owned(),
        link: Link::new().expect("a client"),
        metrics: NotificationMetrics::default(),
        self_service: self_service.then(|| {
            SelfService::start(&records, notifications::CONFIG_MAP, notifications::SECRET)
        }),
        clock: Arc::new(jiff::Timestamp::now),
        records,
    })
}

pub struct Run {
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Run {
    pub async fn end(self) {
        self.stop.cancel();
        self.task.await.expect("no panic");
    }
}

/// A mail server that offers STARTTLS and passwords, and gives what it was told.
async fn mail_server(told: Arc<Mutex<Vec<String>>>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("its address").port();
    let _ = rustls::crypto::ring::default_provider().install_default();
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("a certificate");
    let key = rustls::pki_types::PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
    let config = rustls::ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .expect("a server's configuration");
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("a client");
        stream.write_all(b"220 here\r\n").await.expect("sent");
        assert!(!talk(&mut stream, &told, true).await, "no STARTTLS");
        let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
        let mut stream = acceptor.accept(stream).await.expect("TLS");
        talk(&mut stream, &told, false).await;
    });
    port
}

/// Answers until the end, or until TLS is to begin: false then.
async fn talk(
    stream: &mut (impl AsyncReadExt + AsyncWriteExt + Unpin),
    told: &Mutex<Vec<String>>,
    plain: bool,
) -> bool {
    let (mut read, mut in_data) = (String::new(), false);
    loop {
        let mut chunk = [0; 1024];
        let count = stream.read(&mut chunk).await.unwrap_or(0);
        if count == 0 {
            return true;
        }
        read.push_str(&String::from_utf8_lossy(&chunk[..count]));
        while let Some((line, rest)) = read.split_once("\r\n") {
            let line = line.to_owned();
            read = rest.to_owned();
            told.lock().expect("no panic").push(line.clone());
            let answer = match line.split(' ').next().unwrap_or_default() {
                "." => {
                    in_data = false;
                    "250 taken"
                }
                _ if in_data => continue,
                "EHLO" if plain => "250-here\r\n250 STARTTLS",
                "EHLO" => "250-here\r\n250-8BITMIME\r\n250 AUTH PLAIN LOGIN",
                "STARTTLS" => "220 go",
                "AUTH" => "235 welcome",
                "DATA" => {
                    in_data = true;
                    "354 go on"
                }
                _ => "250 yes",
            };
            let answer = format!("{answer}\r\n");
            stream.write_all(answer.as_bytes()).await.expect("sent");
            if line == "STARTTLS" {
                return false;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mail_is_handed_over_under_tls() {
    let ground = Ground::new().await;
    let told = Arc::new(Mutex::new(Vec::new()));
    let port = mail_server(told.clone()).await;
    ground.application("shop").await;
    let service = format!(
        "host: 127.0.0.1\nport: {port}\nfrom: cd@example.test\nusername: u\npassword: $word\n\
         insecure_skip_verify: true"
    );
    let secret = json!({"apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "argocd-notifications-secret"}, "stringData": {"word": "s3cret"}});
    let secrets = "/api/v1/namespaces/argocd/secrets";
    ground.send(Method::POST, secrets, JSON, &secret).await;
    let everybody = "- recipients: ['email:a@example.test']\n  triggers: [on-degraded]";
    let template = "message: '{{.app.metadata.name}} ü'\nemail:\n  subject: It is bad";
    ground
        .configure(
            "http://127.0.0.1:1",
            &[
                ("service.email", &service),
                ("subscriptions", everybody),
                ("template.state", template),
            ],
        )
        .await;
    let run = ground.start().await;
    ground.health("shop", "Degraded").await;
    ground.wait_notified("shop", true).await;
    let told = told.lock().expect("no panic").clone();
    let position = |start: &str| told.iter().position(|line| line.starts_with(start));
    let order = [
        "STARTTLS",
        "AUTH PLAIN AHUAczNjcmV0",
        "MAIL FROM:<cd@example.test>",
    ];
    let places: Vec<usize> = order.iter().filter_map(|start| position(start)).collect();
    assert!(places.len() == 3 && places.is_sorted(), "{told:?}");
    for line in [
        "RCPT TO:<a@example.test>",
        "From: cd@example.test",
        "To: a@example.test",
        "Subject: It is bad",
        "shop =C3=BC",
    ] {
        assert!(told.iter().any(|own| own == line), "{line}: {told:?}");
    }
    run.end().await;
    ground.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_state_is_told_once_until_it_ends() {
    let (ground, hook) = (Ground::new().await, Hook::default());
    let url = hook.clone().start().await;
    ground.application("shop").await;
    ground.configure(&url, &[]).await;
    let run = ground.start().await;
    ground.health("shop", "Healthy").await;
    ground.health("shop", "Degraded").await;
    hook.wait_for(&["shop is Degraded"]).await;
    ground.wait_notified("shop", true).await;
    // Neither other changes nor a new process tell it again.
    ground
        .patch("shop", json!({"metadata": {"labels": {"team": "a"}}}))
        .await;
    run.end().await;
    let run = ground.start().await;
    sleep(QUIET).await;
    assert_eq!(hook.got().len(), 1);
    // Once it has ended, it is forgotten, and told again.
    ground.health("shop", "Healthy").await;
    ground.wait_notified("shop", false).await;
    ground.health("shop", "Degraded").await;
    hook.wait_for(&["shop is Degraded"; 2]).await;
    run.end().await;
    ground.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_failed_is_tried_again_and_only_then_recorded() {
    let (ground, hook) = (Ground::new().await, Hook::default());
    // It fails until it is told not to.
    hook.say(&[400; 1000]);
    let url = hook.clone().start().await;
    ground.application("shop").await;
    ground.configure(&url, &[]).await;
    ground.health("shop", "Degraded").await;
    let run = ground.start().await;
    let began = Instant::now();
    while hook.got().len() < 2 {
        assert!(began.elapsed() < PATIENCE, "{:?}", hook.got());
        sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(ground.notified("shop").await, Value::Null);
    hook.say(&[]);
    ground.wait_notified("shop", true).await;
    let told = hook.got();
    assert_eq!(told, vec!["shop is Degraded"; told.len()]);
    sleep(QUIET).await;
    assert_eq!(hook.got().len(), told.len());
    let metrics = ground.metrics.text().expect("it is text");
    for (succeeded, count) in [(false, told.len() - 1), (true, 1)] {
        let line = format!("succeeded=\"{succeeded}\"}} {count}\n");
        let lines = metrics
            .lines()
            .filter(|line| line.starts_with("argocd_notifications_deliveries_total{trigger=\""));
        let found = lines
            .filter(|own| format!("{own}\n").ends_with(&line))
            .count();
        assert_eq!(found, 1, "{line}: {metrics}");
    }
    assert!(
        metrics.contains("argocd_notifications_trigger_eval_total{name="),
        "{metrics}"
    );
    run.end().await;
    ground.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_configuration_is_followed() {
    let (ground, hook) = (Ground::new().await, Hook::default());
    let url = hook.clone().start().await;
    ground.application("shop").await;
    ground.application("old").await;
    ground.health("shop", "Degraded").await;
    // An operation that the status does not know yet.
    let operation = json!({"phase": "Succeeded", "startedAt": "2024-01-01T00:00:00Z",
        "finishedAt": "2024-01-01T00:01:00Z",
        "operation": {"sync": {}}});
    ground
        .patch("old", json!({"status": {"operationState": operation}}))
        .await;
    ground.health("old", "Degraded").await;
    let run = ground.start().await;
    sleep(QUIET).await;
    assert_eq!(hook.got().len(), 0, "there is no configuration");
    let secret = json!({"apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "argocd-notifications-secret"}, "stringData": {"word": "hello"}});
    let secrets = "/api/v1/namespaces/argocd/secrets";
    ground.send(Method::POST, secrets, JSON, &secret).await;
    let greeting = (
        "template.state",
        "message: '{{printf \"%s\" .secrets.word}}'",
    );
    ground.configure(&url, &[greeting]).await;
    hook.wait_for(&["hello"]).await;
    // A global subscription, and a status that has caught up.
    ground
        .patch(
            "old",
            json!({"status": {"reconciledAt": "2024-01-01T00:02:00Z"}}),
        )
        .await;
    hook.wait_for(&["hello"; 2]).await;
    run.end().await;
    ground.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_template_tells_commits_and_details() {
    let (ground, hook) = (Ground::new().await, Hook::default());
    let url = hook.clone().start().await;
    let repo = Repo::with(&[
        ("Chart.yaml", "apiVersion: v2\nname: shop\nversion: 1.0.0\n"),
        ("values.yaml", "image:\n  tag: v7\n"),
    ]);
    ground.application("shop").await;
    let status = json!({"sync": {"status": "Synced", "revision": repo.head()}});
    let source = json!({"repoURL": repo.url(), "path": ".", "targetRevision": "HEAD"});
    ground
        .patch(
            "shop",
            json!({"spec": {"source": source}, "status": status}),
        )
        .await;
    ground.health("shop", "Degraded").await;
    let told = "message: '{{(call .repo.GetAppDetails).Type}} \
        {{(call .repo.GetAppDetails).Helm.GetParameterValueByName \"image.tag\"}} \
        {{len (call .repo.GetCommitMetadata .app.status.sync.revision).Author | lt 0}}'";
    ground.configure(&url, &[("template.state", told)]).await;
    let run = ground.start().await;
    hook.wait_for(&["Helm v7 true"]).await;
    run.end().await;
    ground.shutdown().await;
}

/// A source that is hydrated is told when it is, with its dry commit.
#[tokio::test(flavor = "multi_thread")]
async fn a_hydrated_source_is_told_with_its_commits() {
    let (ground, hook) = (Ground::new().await, Hook::default());
    let url = hook.clone().start().await;
    let repo = Repo::with(&[
        ("dry/cm.yaml", "a: b\n"),
        (
            "wet/Chart.yaml",
            "apiVersion: v2\nname: shop\nversion: 1.0.0\n",
        ),
    ]);
    ground.application("shop").await;
    let hydrator = json!({
        "drySource": {"repoURL": repo.url(), "path": "dry", "targetRevision": "main"},
        "syncSource": {"targetBranch": "main", "path": "wet"},
    });
    let state = |phase: &str, dry: &str| {
        json!({"phase": phase, "drySHA": dry, "hydratedSHA": dry, "startedAt": "2024-01-01T00:00:00Z",
            "message": "", "sourceHydrator": hydrator})
    };
    let told = "message: '{{.app.metadata.name}} is hydrated from \
        {{len (call .repo.GetCommitMetadata .app.status.sourceHydrator.currentOperation.drySHA).Author | lt 0}} \
        {{(call .repo.GetAppDetails).Type}}'";
    let trigger = "- when: app.status?.sourceHydrator?.currentOperation?.phase == 'Hydrated'\n  \
        oncePer: app.status.sourceHydrator.currentOperation.drySHA\n  send: [state]";
    let entries = [
        ("template.state", told),
        ("trigger.on-hydrated", trigger),
        (
            "subscriptions",
            "- recipients: [hook:someone]\n  triggers: [on-hydrated]",
        ),
    ];
    ground.configure(&url, &entries).await;
    let run = ground.start().await;
    let patch = |phase: &str, dry: &str| {
        json!({"spec": {"source": null, "sourceHydrator": hydrator},
            "status": {"sourceHydrator": {"currentOperation": state(phase, dry)}}})
    };
    let first = repo.head();
    ground.patch("shop", patch("Hydrating", &first)).await;
    ground.patch("shop", patch("Hydrated", &first)).await;
    hook.wait_for(&["shop is hydrated from true Helm"]).await;
    let second = repo.commit(&[("dry/cm.yaml", "a: c\n")], &[]);
    ground.patch("shop", patch("Hydrating", &second)).await;
    ground.patch("shop", patch("Failed", &second)).await;
    ground.patch("shop", patch("Hydrated", &second)).await;
    hook.wait_for(&["shop is hydrated from true Helm"; 2]).await;
    sleep(QUIET).await;
    assert_eq!(hook.got().len(), 2);
    run.end().await;
    ground.shutdown().await;
}

/// A project is in the control plane's namespace, wherever its Applications are.
#[tokio::test(flavor = "multi_thread")]
async fn a_project_subscribes_for_applications_of_other_namespaces() {
    let (ground, hook) = (Ground::new().await, Hook::default());
    let url = hook.clone().start().await;
    for name in ["team", "elsewhere"] {
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        ground
            .send(Method::POST, "/api/v1/namespaces", JSON, &namespace)
            .await;
    }
    ground.configure(&url, &[]).await;
    let project = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject",
        "metadata": {"name": "payments", "annotations": {
            "notifications.argoproj.io/subscribe.on-degraded.hook": "alerts",
        }},
        "spec": {},
    });
    let projects = "/apis/argoproj.io/v1alpha1/namespaces/argocd/appprojects";
    ground.send(Method::POST, projects, JSON, &project).await;
    // The namespace has a service of the same name.
    let own = Hook::default();
    let own_url = own.clone().start().await;
    let config = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "argocd-notifications-cm"},
        "data": {
            "service.webhook.hook": format!("url: {own_url}"),
            "template.own": "message: 'own: {{.app.metadata.name}}'",
            "trigger.on-degraded": "- when: app.status.health.status == 'Degraded'\n  send: [own]",
        },
    });
    let config_maps = "/api/v1/namespaces/team/configmaps";
    ground.send(Method::POST, config_maps, JSON, &config).await;
    for (namespace, name) in [("elsewhere", "not-permitted"), ("team", "pay-api")] {
        let app = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {"name": name},
            "spec": {
                "project": "payments",
                "source": {"repoURL": "https://git.example.test/a/b", "path": ".", "targetRevision": "HEAD"},
                "destination": {"server": "https://kubernetes.default.svc", "namespace": "default"},
            },
            "status": {"health": {"status": "Degraded"}},
        });
        let path = format!("/apis/argoproj.io/v1alpha1/namespaces/{namespace}/applications");
        ground.send(Method::POST, &path, JSON, &app).await;
    }
    let run = ground.start_with(true).await;
    hook.wait_for(&["pay-api is Degraded"]).await;
    sleep(QUIET).await;
    assert_eq!((hook.got().len(), own.got().len()), (1, 0));
    run.end().await;
}

/// A namespace's own triggers, templates, services and secrets count for its Applications alone.
#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_configures_its_own_notifications() {
    let (ground, hook, own) = (Ground::new().await, Hook::default(), Hook::default());
    let (url, own_url) = (hook.clone().start().await, own.clone().start().await);
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}});
    ground
        .send(Method::POST, "/api/v1/namespaces", JSON, &namespace)
        .await;
    ground.configure(&url, &[]).await;
    ground.application("shop").await;
    ground.health("shop", "Degraded").await;
    let run = ground.start_with(true).await;
    hook.wait_for(&["shop is Degraded"]).await;

    let apps = "/apis/argoproj.io/v1alpha1/namespaces/team/applications";
    let app = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": "till", "annotations": {
            "notifications.argoproj.io/subscribe.on-degraded.hook": "someone",
            "notifications.argoproj.io/subscribe.on-ours.ours": "someone",
        }},
        "spec": {
            "project": "default",
            "source": {"repoURL": "https://git.example.test/a/b", "path": ".", "targetRevision": "HEAD"},
            "destination": {"server": "https://kubernetes.default.svc", "namespace": "default"},
        },
        "status": {"health": {"status": "Degraded"}},
    });
    ground.send(Method::POST, apps, JSON, &app).await;
    hook.wait_for(&["shop is Degraded", "till is Degraded"])
        .await;
    assert!(own.got().is_empty());

    // The configuration comes later, with a Secret of its own; the variable `secrets` is not there.
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "argocd-notifications-secret"},
        "stringData": {"url": own_url},
    });
    let secrets = "/api/v1/namespaces/team/secrets";
    ground.send(Method::POST, secrets, JSON, &secret).await;
    let config = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "argocd-notifications-cm"},
        "data": {
            "service.webhook.ours": "url: $url\nretryMax: 1\nretryWaitMin: 1000000\nretryWaitMax: 1000000",
            "template.ours": "message: 'ours: {{.app.metadata.name}} {{if .secrets}}secrets{{end}}'",
            "trigger.on-ours": "- when: app.status.health.status == 'Degraded'\n  send: [ours]",
        },
    });
    let config_maps = "/api/v1/namespaces/team/configmaps";
    ground.send(Method::POST, config_maps, JSON, &config).await;
    own.wait_for(&["ours: till "]).await;
    // It is told once, under a key with its namespace, beside that of the control plane.
    let call = Call::get(format!("{apps}/till"));
    let began = Instant::now();
    loop {
        let app = ground
            .cluster
            .http()
            .json::<Value>(&call)
            .await
            .expect("it is there");
        let notified = app["metadata"]["annotations"][NOTIFIED]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        if notified.contains("team:on-ours:") && notified.contains("on-degraded:") {
            break;
        }
        assert!(began.elapsed() < PATIENCE, "{notified}");
        sleep(Duration::from_millis(20)).await;
    }
    sleep(QUIET).await;
    assert_eq!(own.got().len(), 1);
    assert_eq!(hook.got().len(), 2);
    run.end().await;
    ground.shutdown().await;
}
