//! The world in which the cases were recorded: an embedded API server with the fixtures, and our
//! API on it. Main type: [`World`]. No controller runs; what one would have published comes from
//! the fixtures too.

use super::{
    client::{self, Received, Sent},
    normalise::Normaliser,
    provider,
};
use anyhow::{Context, bail};
use async_trait::async_trait;
use base64::{Engine, prelude::BASE64_STANDARD as STANDARD};
use http::Method;
use serde_json::{Map, Value, json};
use std::{
    collections::BTreeMap, fs, net::Ipv4Addr, net::SocketAddr, path::Path, process::Command,
    sync::Arc, time::Duration,
};
use tiphys_api::{
    cluster::ClusterInfo,
    resource::{ApplicationTree, ResourceDiff},
};
use tiphys_cluster::{
    AppKey, AppStates, Cluster, Records, RecordsOptions,
    clusters::Clusters,
    request::{Call, JSON, MERGE_PATCH},
};
use tiphys_embedded_kube::{EmbeddedKube, Options as KubeOptions};
use tiphys_gocompat::yaml;
use tiphys_repo::{RepoOptions, Repos};
use tiphys_server::{
    ApiError, Assets, Deps, Options, Server, Tls, VersionInfo,
    adapters::{
        ClusterLive, InProcess, NoCatalog, Published, RecordSets, RecordStore, RepoSources, Trees,
    },
};
use tiphys_sources::{Answers, HostSettings, Sources};
use tokio::{net::TcpListener, task::JoinHandle};
use tokio_util::sync::{CancellationToken, DropGuard};

const CRDS: [&str; 3] = [
    include_str!("../../../../deploy/crds/application-crd.yaml"),
    include_str!("../../../../deploy/crds/applicationset-crd.yaml"),
    include_str!("../../../../deploy/crds/appproject-crd.yaml"),
];
const IN_CLUSTER: &str = "https://kubernetes.default.svc";
/// The port of the cluster `remote`, which is the same API server.
const KUBE_PORT: u16 = 6443;
const KUBE_TOKEN: &str = "token-of-the-cases";
const NAMESPACES: [&str; 5] = ["argocd", "team-apps", "outside", "demo", "other"];
/// Kinds and namespaces whose objects are as in the fixtures before each case.
const SCOPE: [(&str, &str); 17] = [
    ("Application", "argocd"),
    ("Application", "team-apps"),
    ("Application", "outside"),
    ("AppProject", "argocd"),
    ("ApplicationSet", "argocd"),
    ("ApplicationSet", "team-apps"),
    ("Secret", "argocd"),
    ("Deployment", "demo"),
    ("Service", "demo"),
    ("Secret", "demo"),
    ("Pod", "demo"),
    ("CronJob", "demo"),
    ("ConfigMap", "demo"),
    ("Job", "demo"),
    ("Event", "argocd"),
    ("Event", "demo"),
    ("Event", "team-apps"),
];

fn plural(kind: &str) -> anyhow::Result<(&'static str, &'static str)> {
    const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
    Ok(match kind.to_lowercase().as_str() {
        "namespace" => ("/api/v1", "namespaces"),
        "configmap" => ("/api/v1", "configmaps"),
        "secret" => ("/api/v1", "secrets"),
        "service" => ("/api/v1", "services"),
        "pod" => ("/api/v1", "pods"),
        "event" => ("/api/v1", "events"),
        "deployment" => ("/apis/apps/v1", "deployments"),
        "job" => ("/apis/batch/v1", "jobs"),
        "cronjob" => ("/apis/batch/v1", "cronjobs"),
        "application" => ("/apis/argoproj.io/v1alpha1", "applications"),
        "appproject" => ("/apis/argoproj.io/v1alpha1", "appprojects"),
        "applicationset" => ("/apis/argoproj.io/v1alpha1", "applicationsets"),
        "serviceaccount" => ("/api/v1", "serviceaccounts"),
        "role" => (RBAC, "roles"),
        "rolebinding" => (RBAC, "rolebindings"),
        "clusterrole" => (RBAC, "clusterroles"),
        "clusterrolebinding" => (RBAC, "clusterrolebindings"),
        other => bail!("fixtures have no {other}"),
    })
}

/// The path of an object, or of a collection where the name is empty; the case of the kind does not
/// matter.
pub fn path(kind: &str, namespace: &str, name: &str) -> anyhow::Result<String> {
    let (group, plural) = plural(kind)?;
    let namespace = match (kind, namespace) {
        ("Namespace", _) | (_, "") => String::new(),
        (_, namespace) => format!("namespaces/{namespace}/"),
    };
    let name = if name.is_empty() {
        String::new()
    } else {
        format!("/{name}")
    };
    Ok(format!("{group}/{namespace}{plural}{name}"))
}

/// Kind, namespace and name.
type Key = (String, String, String);

fn key(object: &Value) -> Key {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let metadata = &object["metadata"];
    (
        text(&object["kind"]),
        text(&metadata["namespace"]),
        text(&metadata["name"]),
    )
}

/// What containers have done, as the cases' logs show.
pub const LOGGING: &str = "sleep 1; echo Hi; sleep 1; echo Hi; sleep 1; echo Hi";

/// The status of a Pod whose containers run since before they logged.
fn running(pod: &Value) -> Value {
    let containers = pod["spec"]["containers"].as_array().into_iter().flatten();
    let statuses: Vec<Value> = containers
        .map(|container| {
            json!({
                "name": container["name"], "image": container["image"], "imageID": "",
                "ready": true, "restartCount": 0,
                "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}},
            })
        })
        .collect();
    json!({"status": {"phase": "Running", "containerStatuses": statuses}})
}

/// An object without what the API server adds.
fn stripped(object: &Value) -> Value {
    let mut object = object.clone();
    if ["Deployment", "Pod", "Service", "CronJob"]
        .iter()
        .any(|kind| object["kind"] == *kind)
    {
        object.as_object_mut().map(|fields| fields.remove("status"));
    }
    object
        .as_object_mut()
        .map(|fields| fields.remove("apiVersion"));
    if let Some(metadata) = object["metadata"].as_object_mut() {
        for field in [
            "resourceVersion",
            "uid",
            "creationTimestamp",
            "generation",
            "managedFields",
        ] {
            metadata.remove(field);
        }
    }
    object
}

/// What a controller elsewhere has published.
struct Cached {
    trees: InProcess,
    /// By the cluster's address.
    infos: BTreeMap<String, ClusterInfo>,
}

#[async_trait]
impl Published for Cached {
    async fn managed(&self, app: &AppKey) -> Result<Option<Arc<Vec<ResourceDiff>>>, ApiError> {
        self.trees.managed(app).await
    }

    async fn tree(&self, app: &AppKey) -> Result<Option<Arc<ApplicationTree>>, ApiError> {
        self.trees.tree(app).await
    }

    fn watch_tree(&self, app: &AppKey) -> Trees {
        self.trees.watch_tree(app)
    }

    /// Where nothing is published, the control plane's own cluster can be reached.
    async fn cluster(&self, server: &str) -> Result<Option<ClusterInfo>, ApiError> {
        let mut unpublished = ClusterInfo::default();
        if server == IN_CLUSTER {
            unpublished.connection_state.status = "Successful".into();
            unpublished.connection_state.attempted_at = Some(jiff::Timestamp::now().into());
        }
        let info = self.infos.get(server).cloned();
        Ok(Some(info.unwrap_or(unpublished)))
    }
}

pub struct World {
    kube: EmbeddedKube,
    user: Cluster,
    repos: Repos,
    fixtures: Value,
    accounts: Value,
    /// What placeholders in fixtures stand for.
    files: [(&'static str, String); 4],
    pub normaliser: Normaliser,
    /// The fixture and what was stored of it.
    stored: BTreeMap<Key, (Value, Value)>,
    /// The revision after the last reset, and what it was for.
    clean: Option<(u64, Value)>,
    plane: Option<Plane>,
    others: [JoinHandle<()>; 2],
    _folder: tempfile::TempDir,
}

impl Drop for World {
    fn drop(&mut self) {
        self.others.iter().for_each(JoinHandle::abort);
    }
}

/// Our API.
struct Plane {
    address: SocketAddr,
    _stop: DropGuard,
}

impl World {
    /// `dir` is the folder with the cases.
    pub async fn start(dir: &Path) -> anyhow::Result<Self> {
        let folder = dir.join("api-fixtures");
        let read = |name: &str| -> anyhow::Result<Value> {
            let text = fs::read_to_string(folder.join(name)).context(name.to_owned())?;
            Ok(serde_json::from_str(&text)?)
        };
        let (fixtures, accounts) = (read("world.json")?, read("authz-accounts.json")?);
        build_repository(&folder, &fixtures)?;
        let kube = EmbeddedKube::start(KubeOptions {
            controllers: false,
            admin_token: Some(KUBE_TOKEN.to_owned()),
            ..KubeOptions::default()
        });
        let kube = kube.await?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, KUBE_PORT)).await;
        kube.serve(listener.with_context(|| format!("the cases need port {KUBE_PORT}"))?);
        let user = Cluster::connect_in_process(kube.router(), IN_CLUSTER).await?;
        let mut tokens = BTreeMap::new();
        let users = read("sso.json")?;
        for (name, token) in [&fixtures["tokens"], &accounts["tokens"], &users["tokens"]]
            .into_iter()
            .filter_map(Value::as_object)
            .flatten()
        {
            tokens.insert(name.clone(), token.as_str().unwrap_or_default().to_owned());
        }
        let pair = rcgen::generate_simple_self_signed(vec!["argocd.example.com".to_owned()])?;
        let certificate = fs::read_to_string(folder.join("cert.pem"))?;
        let files = [
            ("@KUBETOKEN@", KUBE_TOKEN.to_owned()),
            ("@CERT@", certificate),
            ("@TLSCERT@", pair.cert.pem()),
            ("@TLSKEY@", pair.signing_key.serialize_pem()),
        ];
        let mut normaliser = Normaliser::new(tokens)?;
        let known = files
            .iter()
            .map(|(placeholder, text)| (text.clone(), (*placeholder).into()));
        normaliser.known = known.collect();
        // A kubelet writes the times of lines with all their digits.
        let digits = (".000000000Z".to_owned(), "Z".to_owned());
        normaliser.known.push(digits);
        let folder = tempfile::tempdir()?;
        let repos = Repos::with_options(folder.path().join("repos"), RepoOptions::default());
        let mut world = Self {
            kube,
            user,
            repos,
            fixtures,
            accounts,
            files,
            normaliser,
            stored: BTreeMap::new(),
            clean: None,
            plane: None,
            others: [provider::serve(&users).await?, provider::echo().await?],
            _folder: folder,
        };
        world.found().await?;
        Ok(world)
    }

    /// Kinds and namespaces.
    async fn found(&mut self) -> anyhow::Result<()> {
        let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        for text in CRDS {
            let limits = yaml::Limits::default();
            let crd = yaml::parse_document(text, &limits, yaml::Duplicates::LastWins)?;
            self.send(Call::new(Method::POST, definitions).with_body(JSON, crd.to_string()))
                .await?;
        }
        for kind in ["Application", "AppProject", "ApplicationSet"] {
            let list = Call::get(path(kind, "argocd", "")?);
            for attempt in 0.. {
                match self.user.http().send(&list).await {
                    Ok(_) => break,
                    Err(e) if attempt > 500 => return Err(e.into()),
                    Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
                }
            }
        }
        for name in NAMESPACES {
            let namespace =
                json!({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": name}});
            let call = Call::new(Method::POST, path("Namespace", "", "")?);
            self.send(call.with_body(JSON, namespace.to_string()))
                .await?;
            let account = json!({
                "kind": "ServiceAccount", "apiVersion": "v1", "metadata": {"name": "default"},
            });
            let accounts = format!("/api/v1/namespaces/{name}/serviceaccounts");
            let call = Call::new(Method::POST, accounts);
            self.send(call.with_body(JSON, account.to_string())).await?;
        }
        Ok(())
    }

    async fn send(&self, call: Call) -> anyhow::Result<()> {
        self.user.http().send(&call).await?;
        Ok(())
    }

    async fn get(&self, path: String) -> anyhow::Result<Option<Value>> {
        match self.user.http().json::<Value>(&Call::get(path)).await {
            Ok(object) => Ok(Some(object)),
            Err(e) if e.is_not_found() => Ok(None),
            Err(e) => Err(e.into()),
        }
    }

    /// An object by `Kind/namespace/name`.
    pub async fn object(&self, named: &str) -> anyhow::Result<Option<Value>> {
        let (kind, namespace, name) = parts(named)?;
        self.get(path(kind, namespace, name)?).await
    }

    pub async fn delete(&self, named: &str) -> anyhow::Result<()> {
        let (kind, namespace, name) = parts(named)?;
        self.send(Call::new(Method::DELETE, path(kind, namespace, name)?))
            .await
    }

    pub async fn merge(&self, named: &str, patch: &Value) -> anyhow::Result<()> {
        let (kind, namespace, name) = parts(named)?;
        let call = Call::new(Method::PATCH, path(kind, namespace, name)?);
        self.send(call.with_body(MERGE_PATCH, patch.to_string()))
            .await
    }

    pub async fn create(&self, object: &Value) -> anyhow::Result<()> {
        let (kind, namespace, _) = key(object);
        let real = self.real(object);
        let call = Call::new(Method::POST, path(&kind, &namespace, "")?);
        self.send(call.with_body(JSON, real.to_string())).await?;
        self.run_pod(&real).await
    }

    /// A Pod that was stored runs.
    async fn run_pod(&self, object: &Value) -> anyhow::Result<()> {
        let (kind, namespace, name) = key(object);
        if kind != "Pod" {
            return Ok(());
        }
        let place = format!("{}/status", path(&kind, &namespace, &name)?);
        let status = running(object).to_string();
        let call = Call::new(Method::PATCH, place).with_body(MERGE_PATCH, status);
        self.send(call).await
    }

    fn filled(&self, text: &str) -> String {
        let files = self.files.iter();
        files.fold(text.to_owned(), |text, (placeholder, file)| {
            text.replace(placeholder, file)
        })
    }

    /// A fixture as it is stored: the data of Secrets has its placeholders replaced.
    fn real(&self, object: &Value) -> Value {
        let mut object = object.clone();
        if object["kind"] == "Secret"
            && let Some(data) = object["data"].as_object_mut()
        {
            for value in data.values_mut() {
                let text = value.as_str().and_then(|text| STANDARD.decode(text).ok());
                if let Some(text) = text.and_then(|bytes| String::from_utf8(bytes).ok()) {
                    *value = STANDARD.encode(self.filled(&text)).into();
                }
            }
        }
        if object["kind"] == "Pod" {
            object["spec"]["nodeName"] = "node-1".into();
            let containers = object["spec"]["containers"].as_array_mut();
            for container in containers.into_iter().flatten() {
                container["command"] = json!(["sh", "-c", LOGGING]);
            }
        }
        object
    }

    /// Makes the world that a case starts from, and a new API on it unless nothing has changed
    /// since the last one. `over` are settings, the later ones win.
    pub async fn prepare(&mut self, case: &Value, over: &[&Value]) -> anyhow::Result<()> {
        let fixtures = &case["fixtures"];
        let wanted = json!([
            over,
            fixtures["settings"],
            fixtures["more_settings"],
            fixtures["manifests"],
            fixtures["drop"],
            fixtures["server"],
            case["request"]["plain_http"],
        ]);
        let revision = self.kube.registry().revision();
        if self.plane.is_some() && self.clean == Some((revision, wanted.clone())) {
            return Ok(());
        }
        self.plane = None;
        let mut all: Vec<&Value> = Vec::new();
        if fixtures["settings"]["argocd-cm"] == "authz" {
            all.push(&self.accounts["settings"]);
        }
        all.extend([&fixtures["settings"], &fixtures["more_settings"]]);
        all.extend(over);
        self.settings(&all).await?;
        self.reset(&fixtures["manifests"], &fixtures["drop"])
            .await?;
        // The other cases with a certificate were recorded over TLS, and are sent without.
        let is_tls = case["request"]["plain_http"] == true;
        self.serve(&fixtures["server"], is_tls).await?;
        for step in fixtures["prepare"].as_array().into_iter().flatten() {
            self.delete(step[1].as_str().unwrap_or_default()).await?;
        }
        self.clean = Some((self.kube.registry().revision(), wanted));
        Ok(())
    }

    /// The next case starts anew.
    pub fn spoil(&mut self) {
        self.clean = None;
    }

    pub async fn settings(&self, over: &[&Value]) -> anyhow::Result<()> {
        for (name, data) in self.fixtures["settings"]
            .as_object()
            .context("no settings")?
        {
            let mut data = data.as_object().cloned().unwrap_or_default();
            for more in over.iter().filter_map(|over| over[name].as_object()) {
                data.extend(more.clone());
            }
            let is_secret = name == "argocd-secret";
            let data: Map<String, Value> = data
                .iter()
                .filter_map(|(key, value)| {
                    let text = self.filled(value.as_str()?);
                    let text = if is_secret {
                        STANDARD.encode(text)
                    } else {
                        text
                    };
                    Some((key.clone(), text.into()))
                })
                .collect();
            let kind = if is_secret { "Secret" } else { "ConfigMap" };
            let labels =
                json!({"app.kubernetes.io/name": name, "app.kubernetes.io/part-of": "argocd"});
            let object = json!({
                "kind": kind, "apiVersion": "v1", "data": data,
                "metadata": {"name": name, "namespace": "argocd", "labels": labels},
            });
            let call = match self.get(path(kind, "argocd", name)?).await? {
                Some(found) if found["data"].as_object().cloned().unwrap_or_default() == data => {
                    continue;
                }
                Some(_) => Call::new(Method::PUT, path(kind, "argocd", name)?),
                None => Call::new(Method::POST, path(kind, "argocd", "")?),
            };
            self.send(call.with_body(JSON, object.to_string())).await?;
        }
        Ok(())
    }

    async fn reset(&mut self, manifests: &Value, drop: &Value) -> anyhow::Result<()> {
        let fixtures = self.fixtures["objects"].as_array().into_iter().flatten();
        let more = manifests.as_array().into_iter().flatten();
        let mut wanted: BTreeMap<Key, Value> = fixtures
            .chain(more)
            .filter(|object| object["kind"] != "Namespace")
            .map(|object| (key(object), object.clone()))
            .collect();
        for dropped in drop
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
        {
            let (kind, namespace, name) = parts(dropped)?;
            wanted.remove(&(kind.to_owned(), namespace.to_owned(), name.to_owned()));
        }
        for (kind, namespace) in SCOPE {
            self.reset_kind(kind, namespace, &mut wanted).await?;
        }
        for (key, object) in wanted {
            let call = Call::new(Method::POST, path(&key.0, &key.1, "")?);
            let call = call.with_body(JSON, self.real(&object).to_string());
            let stored = self.user.http().json::<Value>(&call).await;
            let mut stored = stored.with_context(|| format!("{key:?}"))?;
            self.run_pod(&stored).await?;
            stored["kind"] = key.0.clone().into();
            self.stored.insert(key, (object, stripped(&stored)));
        }
        Ok(())
    }

    /// Deletes what is not as wanted; what is leaves the list of what is wanted.
    async fn reset_kind(
        &self,
        kind: &str,
        namespace: &str,
        wanted: &mut BTreeMap<Key, Value>,
    ) -> anyhow::Result<()> {
        let list = self
            .get(path(kind, namespace, "")?)
            .await?
            .unwrap_or_default();
        for object in list["items"].as_array().into_iter().flatten() {
            let mut object = object.clone();
            object["kind"] = kind.into();
            let key = key(&object);
            if key.2 == "kube-root-ca.crt" || key.0 == "Secret" && key.2 == "argocd-secret" {
                continue;
            }
            let is_wanted = wanted.get(&key).is_some_and(|wanted| {
                let known = self.stored.get(&key);
                known.is_some_and(|(fixture, stored)| {
                    fixture == wanted && *stored == stripped(&object)
                })
            });
            if is_wanted {
                wanted.remove(&key);
                continue;
            }
            let path = path(kind, namespace, &key.2)?;
            if !object["metadata"]["finalizers"].is_null() {
                let patch = json!({"metadata": {"finalizers": null}}).to_string();
                let call = Call::new(Method::PATCH, path.clone()).with_body(MERGE_PATCH, patch);
                self.send(call).await?;
            }
            match self
                .send(Call::new(Method::DELETE, path).query("gracePeriodSeconds", "0"))
                .await
            {
                // One that was waiting for its finalizers went with them.
                Err(e) if e.to_string().contains("not found") => {}
                ended => ended?,
            }
        }
        Ok(())
    }

    async fn serve(&mut self, flags: &Value, is_tls: bool) -> anyhow::Result<()> {
        let records = Records::start(
            self.user.clone(),
            RecordsOptions {
                application_namespaces: Some(vec!["team-apps".to_owned()]),
                ..RecordsOptions::new("argocd")
            },
        );
        records.wait_ready().await?;
        let sets = records.application_sets(&["team-apps".to_owned()]);
        sets.wait_ready().await?;
        let sources = Sources::new(&records, self.repos.clone(), None);
        let answers = Answers {
            records: records.clone(),
            sources: sources.clone(),
            new_git_file_globbing: None,
            hosts: HostSettings::default(),
            clock: Arc::new(jiff::Timestamp::now),
        };
        let clusters = Clusters::new(self.user.clone(), records.clone());
        let (states, infos) = (self.states()?, self.infos()?);
        let published = Cached {
            trees: InProcess {
                states,
                clusters: clusters.clone(),
            },
            infos,
        };
        let live = ClusterLive::reading(records.clone(), clusters, Arc::new(published));
        let server = Server::new(Deps {
            store: Arc::new(RecordStore::new(records.clone())),
            live: Arc::new(live),
            sources: Arc::new(RepoSources::new(sources)),
            sets: Arc::new(RecordSets::new(sets, answers)),
            catalog: Arc::new(NoCatalog),
            sessions: None,
            assets: assets(),
            options: options(flags),
        })?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let stop = CancellationToken::new();
        let (serving, stopped) = (server.clone(), stop.clone());
        let tls = match is_tls {
            true => Tls::SelfSigned(vec![client::HOST.to_owned()]),
            false => Tls::Off,
        };
        tokio::spawn(async move { serving.serve(listener, tls, stopped).await });
        server.ready().await;
        self.plane = Some(Plane {
            address,
            _stop: stop.drop_guard(),
        });
        Ok(())
    }

    /// What the controller has published of clusters, by address.
    fn infos(&self) -> anyhow::Result<BTreeMap<String, ClusterInfo>> {
        let cache = self.fixtures["redis"].as_object().context("no cache")?;
        let infos = cache.iter().filter_map(|(key, info)| {
            let server = key.strip_prefix("cluster|info|")?.split('|').next()?;
            let info = serde_json::from_value(info.clone());
            Some(info.map(|info| (server.to_owned(), info)))
        });
        Ok(infos.collect::<Result<_, _>>()?)
    }

    /// Trees and differences, which the controller has published.
    fn states(&self) -> anyhow::Result<AppStates> {
        let states = AppStates::new();
        let cache = self.fixtures["redis"].as_object().context("no cache")?;
        for (key, tree) in cache {
            let Some(instance) = key.strip_prefix("app|resources-tree|") else {
                continue;
            };
            let instance = instance.split('|').next().unwrap_or_default();
            let managed = &cache[&format!("app|managed-resources|{instance}|1.8.3")];
            let managed: Vec<_> = match managed {
                Value::Null => Vec::new(),
                managed => serde_json::from_value(managed.clone())?,
            };
            let app = AppKey::from_instance(instance, "argocd");
            states.publish(&app, &managed, serde_json::from_value(tree.clone())?);
        }
        Ok(states)
    }

    pub fn address(&self) -> anyhow::Result<SocketAddr> {
        Ok(self.plane.as_ref().context("the API does not run")?.address)
    }

    /// Text with the tokens that it names.
    pub fn with_tokens(&self, text: &str) -> String {
        let mut filled = String::new();
        let mut rest = text;
        while let Some((before, name)) = rest.split_once("<TOKEN:") {
            let (name, after) = name.split_once('>').unwrap_or((name, ""));
            filled.push_str(before);
            let token = self.normaliser.tokens.get(name);
            filled.push_str(token.map_or("missing", String::as_str));
            rest = after;
        }
        filled + rest
    }

    /// Sends a recorded request with these headers.
    pub async fn http(
        &self,
        request: &Value,
        headers: Vec<(String, String)>,
    ) -> anyhow::Result<Received> {
        let sent = Sent {
            headers: headers
                .into_iter()
                .map(|(n, v)| (n, self.with_tokens(&v)))
                .collect(),
            body: self.body(request).await?,
            ..unbodied(request)
        };
        client::http(self.address()?, sent).await
    }

    async fn body(&self, request: &Value) -> anyhow::Result<Option<Vec<u8>>> {
        if let Some(bytes) = request["body_base64"].as_str() {
            return Ok(Some(STANDARD.decode(bytes)?));
        }
        if let Some(repeated) = request["body_repeat"].as_array() {
            let text = repeated[0].as_str().unwrap_or_default();
            let times = usize::try_from(repeated[1].as_u64().unwrap_or_default())?;
            return Ok(Some(text.repeat(times).into_bytes()));
        }
        let text = match (&request["body_text"], &request["body"]) {
            (Value::String(text), _) | (_, Value::String(text)) => text.clone(),
            (_, Value::Null) => return Ok(None),
            (_, body) => body.to_string(),
        };
        let mut text = text.replace("@KUBETOKEN@", KUBE_TOKEN);
        while let Some(start) = text.find("<RV:") {
            let end = text[start..].find('>').context("an open placeholder")? + start;
            let object = self
                .object(&text[start + 4..end])
                .await?
                .unwrap_or_default();
            let version = object["metadata"]["resourceVersion"]
                .as_str()
                .unwrap_or("1")
                .to_owned();
            text.replace_range(start..=end, &version);
        }
        Ok(Some(text.into_bytes()))
    }
}

/// A recorded request without headers and body.
pub fn unbodied(request: &Value) -> Sent {
    let text = |field: &str| request[field].as_str().unwrap_or_default();
    let read = &request["read"];
    let read = read["lines"].as_u64().zip(read["seconds"].as_f64());
    let read = read.map(|(lines, seconds)| {
        let lines = usize::try_from(lines).unwrap_or(usize::MAX);
        (lines, Duration::from_secs_f64(seconds))
    });
    Sent {
        method: text("method").to_owned(),
        target: match text("query") {
            "" => text("path").to_owned(),
            query => format!("{}?{query}", text("path")),
        },
        headers: Vec::new(),
        body: None,
        read,
    }
}

/// The parts of `Kind/namespace/name`.
fn parts(named: &str) -> anyhow::Result<(&str, &str, &str)> {
    let mut parts = named.splitn(3, '/');
    let mut next = || {
        parts
            .next()
            .with_context(|| format!("{named:?} names no object"))
    };
    Ok((next()?, next()?, next()?))
}

/// The options of our API for the recorded flags and variables.
fn options(flags: &Value) -> Options {
    let flags: Vec<&str> = flags
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let has = |flag: &str| flags.contains(&flag);
    let after = |flag: &str| {
        let at = flags.iter().position(|f| *f == flag)?;
        flags.get(at + 1).copied()
    };
    let number = |name: &str| {
        let value = flags.iter().find_map(|f| f.strip_prefix(name))?;
        value.strip_prefix('=')?.parse::<u32>().ok()
    };
    let known = || "known".to_owned();
    let mut options = Options {
        version: VersionInfo {
            version: known(),
            build_date: known(),
            git_commit: known(),
            platform: known(),
            kubectl_version: known(),
        },
        refresh_timeout: Duration::from_secs(2),
        hydrator_enabled: has("--hydrator-enabled=true"),
        proxy_extensions: has("--enable-proxy-extension"),
        gzip: !has("--enable-gzip=false"),
        replace_allowed: !has("--sync-with-replace-allowed=false"),
        auth_disabled: has("--disable-auth"),
        secure_cookie: has("(without --insecure)"),
        ..Options::default()
    };
    if let Some(root) = after("--rootpath") {
        root.clone_into(&mut options.root_path);
    }
    if let Some(value) = after("--x-frame-options") {
        value.clone_into(&mut options.frame_options);
    }
    if let Some(value) = after("--content-security-policy") {
        value.clone_into(&mut options.content_security_policy);
    }
    if let Some(types) = after("--api-content-types") {
        let types = types.split(';').filter(|t| !t.is_empty());
        options.content_types = types.map(str::to_owned).collect();
    }
    if let Some(count) = number("env ARGOCD_SESSION_FAILURE_MAX_FAIL_COUNT") {
        options.limits.per_account = count;
    }
    if let Some(seconds) = number("env ARGOCD_SESSION_FAILURE_WINDOW_SECONDS") {
        options.limits.window_seconds = seconds.into();
    }
    options
}

fn assets() -> Assets {
    Assets::new([
        (
            "index.html",
            "text/html; charset=utf-8",
            "<!doctype html><title>Argo CD</title>",
        ),
        (
            "main.0123456789abcdef0123.js",
            "text/javascript; charset=utf-8",
            "//",
        ),
        ("assets/logo.svg", "image/svg+xml", "<svg/>"),
    ])
}

/// The repository of the fixtures, unless it is there.
fn build_repository(folder: &Path, fixtures: &Value) -> anyhow::Result<()> {
    let url = fixtures["repository"].as_str().unwrap_or_default();
    let place = Path::new(url.strip_prefix("file://").context("no local repository")?);
    if place.join("HEAD").exists() {
        return Ok(());
    }
    let parent = place.parent().context("a repository needs a folder")?;
    let built = Command::new("bash")
        .arg(folder.join("make-repo.sh"))
        .arg(parent)
        .output()?;
    if !built.status.success() {
        bail!("{}", String::from_utf8_lossy(&built.stderr));
    }
    Ok(())
}
