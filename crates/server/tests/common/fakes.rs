//! In-memory fakes of the ports.

use async_trait::async_trait;
use futures::{StreamExt as _, stream::BoxStream};
use serde_json::Value;
use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tiphys_api::{
    AppProject, Application,
    cluster::ClusterInfo,
    repository::{ChartDetails, OCIMetadata, Repository, RevisionMetadata},
    resource::{ApplicationTree, ResourceDiff},
    rpc::{
        application::LogEntry,
        events::EventList,
        repository::{HelmChart, RepoAppDetailsResponse},
    },
    source::ApplicationSource,
};
use tiphys_apimachinery::{
    Object,
    patch::{
        self,
        difference::{self, Difference},
        json_merge,
    },
};
use tiphys_engine::{
    project,
    spec::{self, Destination},
    types::Diff,
};
use tiphys_server::{
    ApiError,
    ports::{
        ClusterVersions, ConfigMapRecord, DiffPair, Ended, EventRecord, Live, LiveRef, LogOptions,
        NewToken, NotRendered, Propagation, RenderRequest, RenderedManifests, SecretData,
        SecretRecord, Shell, Sources, Store, StoreError, StoreEvent, StoreResult,
    },
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    sync::broadcast,
};

#[derive(Default)]
struct Inner {
    version: u64,
    apps: BTreeMap<String, Application>,
    projects: BTreeMap<String, AppProject>,
    secrets: BTreeMap<String, SecretRecord>,
    /// The ConfigMaps that were written through the API.
    config_maps: BTreeMap<String, ConfigMapRecord>,
    events: Vec<String>,
}

pub struct FakeStore {
    inner: Mutex<Inner>,
    changes: broadcast::Sender<StoreEvent>,
    /// How many patches, or changes of Secrets, to answer with a conflict before they succeed.
    pub conflicts: Mutex<u32>,
    /// Who writes to it keeps Applications from being created.
    pub creating: tokio::sync::RwLock<()>,
    /// Notified when an Application is to be created.
    pub asked_to_create: tokio::sync::Notify,
    /// How many writes of Secrets to refuse before they succeed.
    pub refused_secrets: Mutex<u32>,
    /// Namespaces other than `argocd` where Applications are allowed.
    pub permitted: Mutex<Vec<String>>,
    /// argocd-cm.
    pub config: Mutex<BTreeMap<String, String>>,
    /// The versions of all ConfigMaps and Secrets, if they are known.
    pub versions: Mutex<Option<Vec<String>>>,
    /// Why the records cannot be followed.
    pub problem: Mutex<Option<String>>,
    /// Whether ConfigMaps cannot be read.
    pub is_unreadable: AtomicBool,
}

/// The key of an Application: its qualified name, or just its name in `argocd`.
fn qualified(namespace: &str, name: &str) -> String {
    if namespace == "argocd" {
        name.to_owned()
    } else {
        format!("{namespace}/{name}")
    }
}

impl Default for FakeStore {
    fn default() -> Self {
        Self {
            inner: Mutex::default(),
            changes: broadcast::Sender::new(1024),
            conflicts: Mutex::default(),
            creating: tokio::sync::RwLock::default(),
            asked_to_create: tokio::sync::Notify::default(),
            refused_secrets: Mutex::default(),
            permitted: Mutex::default(),
            config: Mutex::default(),
            versions: Mutex::default(),
            problem: Mutex::default(),
            is_unreadable: AtomicBool::default(),
        }
    }
}

/// A version of a Secret, which is another one as soon as its values are others.
fn version_of(data: &SecretData) -> String {
    let mut hasher = DefaultHasher::new();
    data.hash(&mut hasher);
    hasher.finish().to_string()
}

impl FakeStore {
    fn may_write_secret(&self) -> StoreResult<()> {
        let mut refused = self.refused_secrets.lock().expect("not poisoned");
        if *refused > 0 {
            *refused -= 1;
            return Err(StoreError::Unavailable("try again".into()));
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().expect("not poisoned")
    }

    pub fn recorded(&self) -> Vec<String> {
        self.lock().events.clone()
    }

    /// Writes as the controller does: applies any patch.
    pub fn control(&self, name: &str, patch: &Value) -> Application {
        self.patch(name, patch).expect("it is there")
    }

    /// Everything that is stored, as text.
    pub fn everything(&self) -> String {
        let inner = self.lock();
        let secrets: Vec<_> = inner
            .secrets
            .values()
            .map(|s| (&s.name, &s.labels, &s.data))
            .collect();
        format!(
            "{:?}{:?}{secrets:?}{:?}{:?}",
            inner.apps, inner.projects, inner.config_maps, inner.events
        )
    }

    /// Sets a value of argocd-cm.
    pub fn configure(&self, key: &str, value: &str) {
        let mut config = self.config.lock().expect("not poisoned");
        config.insert(key.to_owned(), value.to_owned());
    }

    pub fn exists(&self, name: &str) -> bool {
        self.lock().apps.contains_key(name)
    }

    fn patch(&self, name: &str, patch: &Value) -> StoreResult<Application> {
        let mut inner = self.lock();
        let app = inner
            .apps
            .get(name)
            .ok_or_else(|| StoreError::NotFound("not found".into()))?;
        let wanted = patch["metadata"]["resourceVersion"].as_str();
        if wanted.is_some_and(|v| v != app.metadata.resource_version) {
            return Err(StoreError::Conflict("the object has been modified".into()));
        }
        let after =
            json_merge::apply(&serde_json::to_value(app).expect("JSON"), patch).expect("a patch");
        let mut app: Application = serde_json::from_value(after).expect("an Application");
        inner.version += 1;
        app.metadata.resource_version = inner.version.to_string();
        inner.apps.insert(name.to_owned(), app.clone());
        let _ = self
            .changes
            .send(StoreEvent::Changed(Arc::new(app.clone())));
        Ok(app)
    }
}

#[async_trait]
impl Store for FakeStore {
    fn permits(&self, namespace: &str) -> bool {
        namespace == "argocd"
            || self
                .permitted
                .lock()
                .expect("not poisoned")
                .iter()
                .any(|n| n == namespace)
    }

    fn problem(&self) -> Option<String> {
        self.problem.lock().expect("not poisoned").clone()
    }

    fn versions(&self, _: &[&str], _: &[&str]) -> Option<Vec<String>> {
        self.versions.lock().expect("not poisoned").clone()
    }

    async fn get_app(&self, namespace: &str, name: &str) -> StoreResult<Application> {
        self.lock()
            .apps
            .get(&qualified(namespace, name))
            .cloned()
            .ok_or_else(|| StoreError::NotFound("not found".into()))
    }

    async fn create_app(&self, app: &Application) -> StoreResult<Application> {
        self.asked_to_create.notify_one();
        let _permitted = self.creating.read().await;
        let mut inner = self.lock();
        let key = qualified(&app.metadata.namespace, &app.metadata.name);
        if inner.apps.contains_key(&key) {
            return Err(StoreError::AlreadyExists("it exists".into()));
        }
        inner.version += 1;
        let mut app = app.clone();
        app.metadata.resource_version = inner.version.to_string();
        app.metadata.uid = format!("uid-{}", inner.version);
        inner.apps.insert(key, app.clone());
        let _ = self
            .changes
            .send(StoreEvent::Changed(Arc::new(app.clone())));
        Ok(app)
    }

    async fn patch_app(
        &self,
        namespace: &str,
        name: &str,
        patch: &Value,
    ) -> StoreResult<Application> {
        let mut conflicts = self.conflicts.lock().expect("not poisoned");
        if *conflicts > 0 {
            *conflicts -= 1;
            return Err(StoreError::Conflict("the object has been modified".into()));
        }
        self.patch(&qualified(namespace, name), patch)
    }

    async fn change_app(
        &self,
        current: &Application,
        from: &Value,
        to: &Value,
    ) -> StoreResult<Application> {
        let m = &current.metadata;
        let stored = serde_json::to_value(current).expect("JSON");
        match difference::between(from, to, || Ok(stored.clone())).expect("two maps") {
            Difference::Merge(mut patch) => {
                patch["metadata"]["resourceVersion"] = m.resource_version.as_str().into();
                self.patch_app(&m.namespace, &m.name, &patch).await
            }
            Difference::Operations(list) => {
                let after = patch::json::apply(&stored, &list.into()).expect("it applies");
                let mut app: Application = serde_json::from_value(after).expect("an Application");
                let mut inner = self.lock();
                if inner
                    .apps
                    .get(&qualified(&m.namespace, &m.name))
                    .is_none_or(|a| a.metadata.resource_version != m.resource_version)
                {
                    return Err(StoreError::Conflict("the object has been modified".into()));
                }
                inner.version += 1;
                app.metadata.resource_version = inner.version.to_string();
                inner
                    .apps
                    .insert(qualified(&m.namespace, &m.name), app.clone());
                let _ = self
                    .changes
                    .send(StoreEvent::Changed(Arc::new(app.clone())));
                Ok(app)
            }
        }
    }

    async fn delete_app(&self, namespace: &str, name: &str) -> StoreResult<()> {
        let mut inner = self.lock();
        inner.version += 1;
        let mut app = inner
            .apps
            .remove(&qualified(namespace, name))
            .ok_or_else(|| StoreError::NotFound("not found".into()))?;
        app.metadata.resource_version = inner.version.to_string();
        let _ = self.changes.send(StoreEvent::Deleted(Arc::new(app)));
        Ok(())
    }

    fn watch_apps(&self) -> BoxStream<'static, StoreEvent> {
        let inner = self.lock();
        let reset = StoreEvent::Reset {
            items: inner.apps.values().cloned().map(Arc::new).collect(),
            resource_version: inner.version.to_string(),
        };
        let changes = tokio_stream::wrappers::BroadcastStream::new(self.changes.subscribe());
        futures::stream::iter([reset])
            .chain(changes.map(|e| e.expect("the test is not that fast")))
            .boxed()
    }

    fn project(&self, name: &str) -> Option<Arc<AppProject>> {
        self.lock().projects.get(name).cloned().map(Arc::new)
    }

    async fn list_projects(&self) -> StoreResult<Vec<AppProject>> {
        Ok(self.lock().projects.values().cloned().collect())
    }

    async fn get_project(&self, name: &str) -> StoreResult<AppProject> {
        self.lock().projects.get(name).cloned().ok_or_else(|| {
            StoreError::NotFound(format!("appprojects.argoproj.io {name:?} not found"))
        })
    }

    fn effective_project(&self, project: AppProject) -> AppProject {
        let globals: Vec<_> = self
            .global_projects(&project)
            .into_iter()
            .map(Arc::new)
            .collect();
        AppProject::clone(&project::effective(
            &Arc::new(project),
            &globals,
            Default::default(),
        ))
    }

    /// The project called `global`, if it exists.
    fn global_projects(&self, project: &AppProject) -> Vec<AppProject> {
        self.lock()
            .projects
            .get("global")
            .filter(|g| g.metadata.name != project.metadata.name)
            .cloned()
            .into_iter()
            .collect()
    }

    async fn create_project(&self, project: &AppProject) -> StoreResult<AppProject> {
        let mut inner = self.lock();
        if inner.projects.contains_key(&project.metadata.name) {
            return Err(StoreError::AlreadyExists("it exists".into()));
        }
        inner
            .projects
            .insert(project.metadata.name.clone(), project.clone());
        Ok(project.clone())
    }

    async fn update_project(&self, project: &AppProject) -> StoreResult<AppProject> {
        self.lock()
            .projects
            .insert(project.metadata.name.clone(), project.clone());
        Ok(project.clone())
    }

    async fn delete_project(&self, name: &str) -> StoreResult<()> {
        self.lock()
            .projects
            .remove(name)
            .map(drop)
            .ok_or_else(|| StoreError::NotFound("not found".into()))
    }

    async fn config_map(&self, _: &str) -> StoreResult<BTreeMap<String, String>> {
        if self.is_unreadable.load(Ordering::SeqCst) {
            return Err(StoreError::Unavailable("no answer".into()));
        }
        Ok(self.config.lock().expect("not poisoned").clone())
    }

    async fn read_config_map(&self, name: &str) -> StoreResult<ConfigMapRecord> {
        let found = self.lock().config_maps.get(name).cloned();
        Ok(found.unwrap_or_default())
    }

    async fn set_in_config_map(
        &self,
        name: &str,
        version: &str,
        values: &BTreeMap<String, Option<String>>,
    ) -> StoreResult<()> {
        let conflict = || StoreError::Conflict("the object has been modified".into());
        let mut conflicts = self.conflicts.lock().expect("not poisoned");
        if *conflicts > 0 {
            *conflicts -= 1;
            return Err(conflict());
        }
        let mut inner = self.lock();
        inner.version += 1;
        let now = inner.version.to_string();
        let map = inner.config_maps.entry(name.to_owned()).or_default();
        if map.version != version {
            return Err(conflict());
        }
        map.version = now;
        for (key, value) in values {
            match value {
                Some(value) => map.data.insert(key.clone(), value.clone()),
                None => map.data.remove(key),
            };
        }
        Ok(())
    }

    async fn secret(&self, name: &str) -> StoreResult<SecretRecord> {
        self.lock()
            .secrets
            .get(name)
            .cloned()
            .ok_or_else(|| StoreError::NotFound("not found".into()))
    }

    async fn secrets_of_type(&self, secret_type: &str) -> StoreResult<Vec<SecretRecord>> {
        let is = |s: &&SecretRecord| {
            s.labels
                .get("argocd.argoproj.io/secret-type")
                .is_some_and(|t| t == secret_type)
        };
        Ok(self.lock().secrets.values().filter(is).cloned().collect())
    }

    async fn put_secret(&self, secret: &SecretRecord) -> StoreResult<()> {
        super::keys_are_valid(&secret.data)?;
        self.may_write_secret()?;
        self.lock()
            .secrets
            .insert(secret.name.clone(), secret.clone());
        Ok(())
    }

    async fn set_in_secret(
        &self,
        name: &str,
        values: &BTreeMap<String, Vec<u8>>,
    ) -> StoreResult<()> {
        super::keys_are_valid(values)?;
        let mut inner = self.lock();
        let secret = inner
            .secrets
            .get_mut(name)
            .ok_or_else(|| StoreError::NotFound("not found".into()))?;
        secret.data.extend(values.clone());
        Ok(())
    }

    async fn read_secret(&self, name: &str) -> StoreResult<(SecretData, String)> {
        let inner = self.lock();
        let data = inner.secrets.get(name).map(|secret| secret.data.clone());
        let version = data.as_ref().map(version_of).unwrap_or_default();
        Ok((data.unwrap_or_default(), version))
    }

    async fn change_secret(
        &self,
        name: &str,
        version: &str,
        values: &BTreeMap<String, Option<Vec<u8>>>,
    ) -> StoreResult<()> {
        self.may_write_secret()?;
        let mut conflicts = self.conflicts.lock().expect("not poisoned");
        let mut inner = self.lock();
        if *conflicts > 0 {
            *conflicts -= 1;
            // Somebody else writes it just now.
            let secret = inner.secrets.entry(name.to_owned()).or_default();
            let other = format!("other-{conflicts}");
            secret.data.insert(other, i64::MAX.to_string().into_bytes());
        }
        let now = inner
            .secrets
            .get(name)
            .map(|secret| version_of(&secret.data));
        if now.unwrap_or_default() != version {
            let why = "the object has been modified";
            return Err(StoreError::Conflict(why.into()));
        }
        let secret = inner.secrets.entry(name.to_owned()).or_default();
        for (key, value) in values {
            match value {
                Some(value) => secret.data.insert(key.clone(), value.clone()),
                None => secret.data.remove(key),
            };
        }
        super::keys_are_valid(&secret.data)
    }

    async fn delete_secret(&self, name: &str) -> StoreResult<()> {
        self.lock()
            .secrets
            .remove(name)
            .map(drop)
            .ok_or_else(|| StoreError::NotFound("not found".into()))
    }

    async fn release_secret(&self, name: &str) -> StoreResult<()> {
        let mut inner = self.lock();
        let secret = inner
            .secrets
            .get_mut(name)
            .ok_or_else(|| StoreError::NotFound("not found".into()))?;
        secret.labels.remove("argocd.argoproj.io/secret-type");
        Ok(())
    }

    async fn record_event(&self, event: EventRecord) -> StoreResult<()> {
        self.lock().events.push(format!(
            "{} {}: {}",
            event.reason, event.name, event.message
        ));
        Ok(())
    }

    async fn events(&self, _: &str, _: &str) -> StoreResult<EventList> {
        Ok(EventList::default())
    }
}

#[derive(Default)]
pub struct FakeLive {
    pub tree: Mutex<Option<Arc<ApplicationTree>>>,
    /// A watch of the tree shows it again and again.
    pub tree_changes: AtomicBool,
    pub managed: Mutex<Option<Arc<Vec<ResourceDiff>>>>,
    pub objects: Mutex<BTreeMap<String, Value>>,
    pub deleted: Mutex<Vec<(String, Propagation)>>,
    /// Patches and new objects, in order.
    pub written: Mutex<Vec<Value>>,
    /// Kind and name of what the API server was asked for by a dry run.
    pub dry_runs: Mutex<Vec<String>>,
    /// The Secrets of the clusters that were connected to.
    pub probed: Mutex<Vec<SecretRecord>>,
    /// The tokens that were withdrawn, and for which.
    pub retired: Mutex<Vec<String>>,
}

#[async_trait]
impl Live for FakeLive {
    async fn managed_resources(
        &self,
        _: &Application,
    ) -> Result<Option<Arc<Vec<ResourceDiff>>>, ApiError> {
        Ok(self.managed.lock().expect("not poisoned").clone())
    }

    async fn tree(&self, _: &Application) -> Result<Option<Arc<ApplicationTree>>, ApiError> {
        Ok(self.tree.lock().expect("not poisoned").clone())
    }

    fn watch_tree(
        &self,
        _: &Application,
    ) -> BoxStream<'static, Result<Arc<ApplicationTree>, ApiError>> {
        let tree = self.tree.lock().expect("not poisoned").clone();
        if !self.tree_changes.load(Ordering::Relaxed) {
            let once = futures::stream::iter(tree.map(Ok));
            return once.chain(futures::stream::pending()).boxed();
        }
        let again = tokio::time::interval(Duration::from_millis(50));
        futures::stream::unfold((tree, again), |(tree, mut again)| async {
            again.tick().await;
            Some((Ok(tree.clone()?), (tree, again)))
        })
        .boxed()
    }

    /// Every container has `sh`, which says where it runs, and prints what is typed, and the size of
    /// its terminal.
    async fn shell(
        &self,
        _: &Application,
        pod: &LiveRef,
        container: &str,
        command: &str,
    ) -> Result<Shell, ApiError> {
        let (input, mut typed) = tokio::io::duplex(1024);
        let (mut print, output) = tokio::io::duplex(1024);
        let (sizes, mut resized) = tokio::sync::mpsc::unbounded_channel();
        let is_there = command == "sh";
        let ended = if is_there {
            Ended::Ran
        } else {
            Ended::NotStarted(format!("there is no {command}"))
        };
        let greeting = format!("{command} in {}/{container}\r\n", pod.name);
        tokio::spawn(async move {
            if !is_there {
                // Long enough for somebody to type.
                tokio::time::sleep(Duration::from_millis(300)).await;
            }
            let (mut buffer, mut shown) = ([0; 1024], greeting.into_bytes());
            while is_there && shown != b"exit" {
                print.write_all(&shown).await.expect("the terminal is open");
                shown = tokio::select! {
                    read = typed.read(&mut buffer) => match read {
                        Ok(count) if count > 0 => buffer[..count].to_vec(),
                        _ => return,
                    },
                    Some((columns, rows)) = resized.recv() => format!("{columns}x{rows}\r\n").into_bytes(),
                };
            }
        });
        Ok(Shell {
            input: Box::new(input),
            output: Box::new(output),
            size: Box::new(move |columns, rows| {
                let _ = sizes.send((columns, rows));
            }),
            ended: Box::pin(std::future::ready(ended)),
        })
    }

    async fn facts(&self, _: &Application) -> Result<ClusterVersions, ApiError> {
        Ok(ClusterVersions::default())
    }

    fn destination(&self, app: &Application) -> Result<Destination, ApiError> {
        spec::destination(&app.spec.destination, &[spec::in_cluster()]).map_err(ApiError::plain)
    }

    /// An apply is a merge here.
    async fn server_side_diff(
        &self,
        _: &Application,
        pairs: Vec<DiffPair>,
    ) -> Result<Vec<Diff>, ApiError> {
        let difference = |pair: DiffPair| {
            let value = |object: &Option<Object>| {
                let object = object.clone();
                object.map_or(Value::Null, |object| Value::Object(object.0))
            };
            let (target, live) = (value(&pair.target), value(&pair.live));
            let predicted = match (&pair.target, &pair.live) {
                (Some(of), Some(_)) => {
                    let asked = format!("{}/{}", of.kind(), of.name());
                    self.dry_runs.lock().expect("not poisoned").push(asked);
                    json_merge::apply(&live, &target).expect("a patch")
                }
                _ => target,
            };
            Diff {
                modified: !predicted.is_null() && predicted != live,
                normalized_live: Arc::new(live),
                predicted_live: Arc::new(predicted),
            }
        };
        Ok(pairs.into_iter().map(difference).collect())
    }

    /// Kinds of the whole cluster say so in their names.
    async fn is_namespaced(&self, _: &Application, object: &LiveRef) -> Result<bool, ApiError> {
        match object.kind.as_str() {
            "Unknown" => Err(ApiError::not_found("no such kind")),
            kind => Ok(!kind.starts_with("Cluster") && kind != "Namespace"),
        }
    }

    async fn get(&self, _: &Application, object: &LiveRef) -> Result<Value, ApiError> {
        self.objects
            .lock()
            .expect("not poisoned")
            .get(&object.name)
            .cloned()
            .ok_or_else(|| ApiError::not_found("not found"))
    }

    async fn delete(
        &self,
        _: &Application,
        object: &LiveRef,
        how: Propagation,
    ) -> Result<(), ApiError> {
        self.deleted
            .lock()
            .expect("not poisoned")
            .push((object.name.clone(), how));
        Ok(())
    }

    async fn patch(
        &self,
        _: &Application,
        object: &LiveRef,
        patch: &str,
        _: &str,
    ) -> Result<Value, ApiError> {
        self.written
            .lock()
            .expect("not poisoned")
            .push(serde_json::from_str(patch).unwrap_or_default());
        let before = self
            .objects
            .lock()
            .expect("not poisoned")
            .get(&object.name)
            .cloned()
            .unwrap_or_default();
        let patch = serde_json::from_str(patch).map_err(|e| ApiError::invalid(e.to_string()))?;
        json_merge::apply(&before, &patch).map_err(|e| ApiError::invalid(e.to_string()))
    }

    async fn patch_status(
        &self,
        _: &Application,
        object: &LiveRef,
        patch: &Value,
    ) -> Result<bool, ApiError> {
        self.written
            .lock()
            .expect("not poisoned")
            .push(patch.clone());
        Ok(object.kind == "Rollout")
    }

    async fn create(&self, _: &Application, object: &Value, dry_run: bool) -> Result<(), ApiError> {
        let mut written = self.written.lock().expect("not poisoned");
        written.push(serde_json::json!({"dryRun": dry_run, "kind": object["kind"], "name": object["metadata"]["name"]}));
        Ok(())
    }

    async fn events(&self, _: &Application, _: &str, _: &str) -> Result<EventList, ApiError> {
        Ok(EventList::default())
    }

    async fn logs(
        &self,
        _: &Application,
        pod: &LiveRef,
        options: &LogOptions,
    ) -> Result<BoxStream<'static, Result<LogEntry, ApiError>>, ApiError> {
        let line = LogEntry {
            content: "hello".into(),
            pod_name: pod.name.clone(),
            ..Default::default()
        };
        let line = futures::stream::iter([Ok(line)]);
        // A pod that is followed and runs on.
        if options.follow && pod.name == "web-runs" {
            return Ok(line.chain(futures::stream::pending()).boxed());
        }
        Ok(line.boxed())
    }

    fn destinations(&self) -> Vec<Destination> {
        vec![Destination {
            server: "https://kubernetes.default.svc".into(),
            name: "in-cluster".into(),
            project: String::new(),
        }]
    }

    async fn info(&self, _: &str) -> Option<ClusterInfo> {
        None
    }

    async fn probe(&self, cluster: &SecretRecord) -> Result<String, ApiError> {
        self.probed
            .lock()
            .expect("not poisoned")
            .push(cluster.clone());
        if cluster.text("server").contains("dead") {
            return Err(ApiError::plain("connection refused"));
        }
        Ok("v1.36.3".into())
    }

    async fn renew_token(&self, _: &SecretRecord, token: &str) -> Result<NewToken, ApiError> {
        Ok(NewToken {
            secret: "argocd-manager-long-lived-2".into(),
            token: format!("{token}-2"),
        })
    }

    async fn retire_token(
        &self,
        _: &SecretRecord,
        token: &str,
        new: &NewToken,
    ) -> Result<(), ApiError> {
        let retired = format!("{token} for {}", new.secret);
        self.retired.lock().expect("not poisoned").push(retired);
        Ok(())
    }
}

pub struct FakeSources;

#[async_trait]
impl Sources for FakeSources {
    async fn tools(
        &self,
        _: &Repository,
        _: &str,
        _: &str,
    ) -> Result<BTreeMap<String, String>, ApiError> {
        Ok(BTreeMap::from([("helm".into(), "Helm".into())]))
    }

    async fn plugins(&self) -> Result<Vec<String>, ApiError> {
        Ok(vec!["cmp-v1.0".into()])
    }

    async fn resolve(
        &self,
        _: &Repository,
        _: &ApplicationSource,
        revision: &str,
    ) -> Result<(String, String), ApiError> {
        let name = if revision.is_empty() {
            "HEAD"
        } else {
            revision
        };
        match name {
            "HEAD" | "main" => Ok((super::SHA.into(), format!("{name} ({})", super::SHA))),
            other => Err(ApiError::not_found(format!(
                "unable to resolve '{other}' to a commit SHA: revision not found"
            ))),
        }
    }

    async fn render(&self, request: RenderRequest) -> Result<RenderedManifests, NotRendered> {
        let files = request.source.helm.iter().flat_map(|h| &h.value_files);
        if let Some(file) = files.clone().next() {
            return Err(if file.contains('*') {
                let why = format!("values file glob {file:?} matched no files");
                NotRendered::AwaitsValues(ApiError::not_found(why))
            } else {
                NotRendered::Failed(ApiError::not_found("repository not found"))
            });
        }
        let object = serde_json::json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "labels": {"of": request.app.instance}, "annotations": {"token": "HIDDEN"}}, "data": {"a": "dmFsdWU="}});
        Ok(RenderedManifests {
            revision: request.revision,
            source_type: "Directory".into(),
            objects: vec![object],
            errors: Vec::new(),
        })
    }

    async fn render_files(
        &self,
        request: RenderRequest,
        (mut archive, checksum): (std::fs::File, &str),
    ) -> Result<RenderedManifests, ApiError> {
        use std::io::{Read as _, Seek as _};
        let mut text = String::new();
        archive.rewind().expect("a file");
        archive.read_to_string(&mut text).expect("text");
        let object = serde_json::json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"text": text, "checksum": checksum, "path": request.source.path}});
        Ok(RenderedManifests {
            revision: "streamed".into(),
            source_type: "Directory".into(),
            objects: vec![object],
            errors: Vec::new(),
        })
    }

    async fn details(&self, _: RenderRequest) -> Result<RepoAppDetailsResponse, ApiError> {
        Ok(RepoAppDetailsResponse {
            type_: "Directory".into(),
            ..Default::default()
        })
    }

    async fn test(&self, repository: &Repository) -> Result<(), ApiError> {
        if repository.repo.contains("unreachable") {
            Err(ApiError::plain("it does not answer"))
        } else {
            Ok(())
        }
    }

    async fn refs(&self, _: &Repository) -> Result<(Vec<String>, Vec<String>), ApiError> {
        Ok((vec!["main".into()], vec!["v1".into()]))
    }

    async fn metadata(
        &self,
        _: &Repository,
        _: &str,
        _: &AppProject,
    ) -> Result<RevisionMetadata, ApiError> {
        Ok(RevisionMetadata {
            author: "a".into(),
            message: "m".into(),
            ..Default::default()
        })
    }

    async fn chart_details(
        &self,
        _: &Repository,
        source: &ApplicationSource,
        version: &str,
    ) -> Result<ChartDetails, ApiError> {
        Ok(ChartDetails {
            description: format!("{} {version}", source.chart),
            ..Default::default()
        })
    }

    async fn oci_tags(&self, _: &Repository) -> Result<Vec<String>, ApiError> {
        Ok(vec!["1.0.0".into()])
    }

    async fn oci_metadata(&self, _: &Repository, revision: &str) -> Result<OCIMetadata, ApiError> {
        Ok(OCIMetadata {
            description: revision.to_owned(),
            ..Default::default()
        })
    }

    async fn charts(&self, _: &Repository) -> Result<Vec<HelmChart>, ApiError> {
        Ok(vec![HelmChart {
            name: "web".into(),
            versions: vec!["1.0.0".into()],
        }])
    }
}
