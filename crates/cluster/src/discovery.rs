//! Which kinds a cluster serves, in which versions and scopes.
//!
//! Main types: [`Kinds`], an immutable answer, and [`Discovery`], which keeps the newest one. A group that fails keeps what was known
//! of it before and never hides the others. It knows nothing of the objects.

use crate::{
    connect::Cluster,
    error::Error,
    request::{Call, encode},
};
use futures::{StreamExt, stream};
use serde::Deserialize;
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{Arc, RwLock},
    time::Duration,
};
use tiphys_apimachinery::{GroupKind, Gvk, Gvr};
use tiphys_engine::types::KindInfo;
use tokio::{sync::watch, time::Instant};

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";
/// Not more often than this, however many callers find a kind missing.
const REFRESH_INTERVAL: Duration = Duration::from_millis(250);
const FETCHES: usize = 16;
/// What failed when no group but the core one could be asked.
const ALL_GROUPS: &str = "apis";
/// How often in all an answer is asked for that is refused as unauthorized: a token that has just been renewed may not be known everywhere.
const UNAUTHORIZED_ATTEMPTS: u32 = 5;
const UNAUTHORIZED_WAIT: Duration = Duration::from_millis(10);

/// One resource in one version, as discovery gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kind {
    pub gvk: Gvk,
    /// Plural name, as in URLs.
    pub resource: String,
    pub singular: String,
    pub namespaced: bool,
    pub verbs: Vec<String>,
    pub short_names: Vec<String>,
    pub categories: Vec<String>,
    pub subresources: Vec<String>,
}

impl Kind {
    pub fn gvr(&self) -> Gvr {
        Gvr::new(&self.gvk.group, &self.gvk.version, &self.resource)
    }

    pub fn can(&self, verb: &str) -> bool {
        self.verbs.iter().any(|v| v == verb)
    }

    pub fn has_subresource(&self, name: &str) -> bool {
        self.subresources.iter().any(|s| s == name)
    }

    /// The URL of the collection; an empty namespace means all of them. For a cluster-scoped kind the namespace is left out.
    pub fn collection_path(&self, namespace: &str) -> String {
        let root = self.gvr().root_path();
        if self.namespaced && !namespace.is_empty() {
            format!("{root}/namespaces/{}/{}", encode(namespace), self.resource)
        } else {
            format!("{root}/{}", self.resource)
        }
    }

    /// The URL of one object.
    pub fn object_path(&self, namespace: &str, name: &str) -> String {
        format!("{}/{}", self.collection_path(namespace), encode(name))
    }

    /// As kubectl prints a name: `deployment.apps/web`, `service/web`.
    pub fn print_name(&self, name: &str) -> String {
        let kind = self.gvk.kind.to_lowercase();
        if self.gvk.group.is_empty() { format!("{kind}/{name}") } else { format!("{kind}.{}/{name}", self.gvk.group) }
    }
}

/// What one discovery found. Immutable.
#[derive(Clone, Debug, Default)]
pub struct Kinds {
    /// Group by group as served, versions by preference.
    all: Vec<Arc<Kind>>,
    by_gk: HashMap<GroupKind, Vec<Arc<Kind>>>,
    /// Groups that could not be asked: (group or group/version, reason). What was known of them before is kept.
    pub failures: Vec<(String, String)>,
}

impl Kinds {
    fn new(all: Vec<Kind>, failures: Vec<(String, String)>) -> Self {
        let all: Vec<Arc<Kind>> = all.into_iter().map(Arc::new).collect();
        let mut by_gk: HashMap<GroupKind, Vec<Arc<Kind>>> = HashMap::new();
        for kind in &all {
            by_gk.entry(kind.gvk.group_kind()).or_default().push(kind.clone());
        }
        Self { all, by_gk, failures }
    }

    /// Every kind in every version.
    pub fn all(&self) -> &[Arc<Kind>] {
        &self.all
    }

    /// The kind in exactly this version.
    pub fn get(&self, gvk: &Gvk) -> Option<&Arc<Kind>> {
        self.by_gk.get(&gvk.group_kind())?.iter().find(|k| k.gvk.version == gvk.version)
    }

    /// The kind in the version the server prefers.
    pub fn preferred(&self, gk: &GroupKind) -> Option<&Arc<Kind>> {
        self.by_gk.get(gk)?.first()
    }

    /// Each kind once, in its preferred version.
    pub fn preferred_kinds(&self) -> impl Iterator<Item = &Arc<Kind>> {
        self.by_gk.values().filter_map(|v| v.first())
    }

    /// By plural, singular, short name or kind, with an optional group: what a user types.
    pub fn find(&self, word: &str) -> Option<&Arc<Kind>> {
        let (name, group) = word.split_once('.').map_or((word, None), |(n, g)| (n, Some(g)));
        let name = name.to_lowercase();
        self.all.iter().find(|k| {
            group.is_none_or(|g| k.gvk.group == g)
                && (k.resource == name || k.singular == name || k.gvk.kind.to_lowercase() == name || k.short_names.contains(&name))
        })
    }

    /// What templates get as the cluster's API versions: `apps/v1` and `apps/v1/Deployment`, sorted; kinds that cannot be listed and watched are left out.
    pub fn api_versions(&self) -> Vec<String> {
        let mut out = BTreeSet::new();
        for kind in self.all.iter().filter(|k| k.can("list") && k.can("watch")) {
            let api_version = kind.gvk.api_version();
            out.insert(format!("{api_version}/{}", kind.gvk.kind));
            out.insert(api_version);
        }
        out.into_iter().collect()
    }

    fn group(&self, group: &str) -> impl Iterator<Item = Kind> {
        self.all.iter().filter(move |k| k.gvk.group == group).map(|k| Kind::clone(k))
    }
}

impl KindInfo for Kinds {
    fn is_namespaced(&self, gk: &GroupKind) -> Option<bool> {
        self.preferred(gk).map(|k| k.namespaced)
    }

    fn failure(&self, gk: &GroupKind) -> Option<String> {
        let concerns = |what: &str| match what {
            ALL_GROUPS => !gk.group.is_empty(),
            _ => what.split_once('/').map_or(what, |(group, _)| group) == gk.group,
        };
        let (_, why) = self.failures.iter().find(|(what, _)| concerns(what))?;
        self.preferred(gk).is_none().then(|| why.clone())
    }
}

/// Keeps the newest [`Kinds`] of a cluster. Cheap to clone.
#[derive(Clone)]
pub struct Discovery {
    shared: Arc<Shared>,
}

struct Shared {
    cluster: Cluster,
    kinds: RwLock<Arc<Kinds>>,
    changed: watch::Sender<u64>,
    last: tokio::sync::Mutex<Instant>,
}

impl Discovery {
    /// Asks the cluster for its kinds. Fails only when nothing at all could be read.
    pub async fn new(cluster: Cluster) -> Result<Self, Error> {
        let kinds = fetch(&cluster, &Kinds::default()).await?;
        let shared = Shared {
            cluster,
            kinds: RwLock::new(Arc::new(kinds)),
            changed: watch::Sender::new(0),
            last: tokio::sync::Mutex::new(Instant::now()),
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    pub fn cluster(&self) -> &Cluster {
        &self.shared.cluster
    }

    /// The newest answer.
    pub fn kinds(&self) -> Arc<Kinds> {
        self.shared.kinds.read().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }

    /// Counts up whenever the set of kinds changed.
    pub fn changed(&self) -> watch::Receiver<u64> {
        self.shared.changed.subscribe()
    }

    /// Asks again, however recently it was asked before. Callers at the same time wait for each other; a failure keeps the old answer.
    pub async fn refresh(&self) -> Result<Arc<Kinds>, Error> {
        let mut last = self.shared.last.lock().await;
        let result = self.refresh_locked().await;
        *last = Instant::now();
        result
    }

    async fn refresh_locked(&self) -> Result<Arc<Kinds>, Error> {
        let old = self.kinds();
        let new = Arc::new(fetch(&self.shared.cluster, &old).await?);
        let same = old.all == new.all;
        *self.shared.kinds.write().unwrap_or_else(std::sync::PoisonError::into_inner) = new.clone();
        if !same {
            self.shared.changed.send_modify(|n| *n += 1);
        }
        Ok(new)
    }

    /// The kind in this version; asks the cluster again when it is not known (a CRD may have come), but not in a storm.
    pub async fn resolve(&self, gvk: &Gvk) -> Result<Arc<Kind>, Error> {
        if let Some(kind) = self.kinds().get(gvk) {
            return Ok(kind.clone());
        }
        let mut last = self.shared.last.lock().await;
        if self.kinds().get(gvk).is_none() && last.elapsed() >= REFRESH_INTERVAL {
            let result = self.refresh_locked().await;
            *last = Instant::now();
            result?;
        }
        drop(last);
        let kinds = self.kinds();
        kinds.get(gvk).cloned().ok_or_else(|| Error::UnknownKind { api_version: gvk.api_version(), kind: gvk.kind.clone() })
    }
}

impl KindInfo for Discovery {
    fn is_namespaced(&self, gk: &GroupKind) -> Option<bool> {
        self.kinds().is_namespaced(gk)
    }

    fn failure(&self, gk: &GroupKind) -> Option<String> {
        self.kinds().failure(gk)
    }
}

/// One answer from `/api` and one from `/apis`: aggregated where the server can, else group by group.
async fn fetch(cluster: &Cluster, old: &Kinds) -> Result<Kinds, Error> {
    let (core, groups) = tokio::join!(fetch_root(cluster, "/api", old), fetch_root(cluster, "/apis", old));
    let mut failures = Vec::new();
    let mut all = match core {
        Ok((kinds, bad)) => {
            failures.extend(bad);
            kinds
        }
        // Without the core group nothing works; the reason is the whole answer.
        Err(e) => return Err(e),
    };
    match groups {
        Ok((kinds, bad)) => {
            all.extend(kinds);
            failures.extend(bad);
        }
        Err(e) => {
            failures.push((ALL_GROUPS.to_owned(), e.to_string()));
            all.extend(old.all.iter().filter(|k| !k.gvk.group.is_empty()).map(|k| Kind::clone(k)));
        }
    }
    Ok(Kinds::new(all, failures))
}

/// Sends a request, again if it is refused as unauthorized; any other refusal is final.
async fn ask(cluster: &Cluster, call: &Call) -> Result<bytes::Bytes, Error> {
    let mut wait = UNAUTHORIZED_WAIT;
    for _ in 1..UNAUTHORIZED_ATTEMPTS {
        match cluster.http().send(call).await {
            Err(e) if e.code() == Some(401) => tokio::time::sleep(wait).await,
            answer => return answer,
        }
        wait *= 5;
    }
    cluster.http().send(call).await
}

type Found = (Vec<Kind>, Vec<(String, String)>);

async fn fetch_root(cluster: &Cluster, root: &'static str, old: &Kinds) -> Result<Found, Error> {
    let body = ask(cluster, &Call::get(root).accept(AGGREGATED)).await?;
    let answer: RootAnswer = serde_json::from_slice(&body).map_err(|e| Error::decode(format!("GET {root}"), e))?;
    match answer.kind.as_str() {
        "APIGroupDiscoveryList" => Ok(read_aggregated(answer.items, old)),
        "APIVersions" => fetch_versions(cluster, vec![(String::new(), answer.versions.into_iter().map(|v| v.name()).collect())], old).await,
        "APIGroupList" => fetch_versions(cluster, answer.groups.into_iter().map(OldGroup::ordered).collect(), old).await,
        other => Err(Error::decode(format!("GET {root}"), format!("unexpected kind {other:?}"))),
    }
}

fn read_aggregated(items: Vec<GroupDiscovery>, old: &Kinds) -> Found {
    let (mut kinds, mut failures) = (Vec::new(), Vec::new());
    for group in items {
        let name = group.metadata.name;
        let stale = group.versions.iter().any(|v| v.freshness == "Stale");
        if stale {
            failures.push((name.clone(), "the aggregated API server does not answer".to_owned()));
        }
        let before = kinds.len();
        for version in group.versions {
            kinds.extend(version.resources.into_iter().filter_map(|r| r.into_kind(&name, &version.version)));
        }
        if stale && kinds.len() == before {
            kinds.extend(old.group(&name));
        }
    }
    (kinds, failures)
}

/// The older way: one request a group and version.
async fn fetch_versions(cluster: &Cluster, groups: Vec<(String, Vec<String>)>, old: &Kinds) -> Result<Found, Error> {
    let wanted: Vec<(String, String)> =
        groups.into_iter().flat_map(|(g, versions)| versions.into_iter().map(move |v| (g.clone(), v))).collect();
    let fetches = wanted.into_iter().map(|(group, version)| async move {
        let path = Gvr::new(&group, &version, "").root_path();
        let answer = ask(cluster, &Call::get(path.clone())).await;
        let decode = |e| Error::decode(format!("GET {path}"), e);
        ((group, version), answer.and_then(|body| serde_json::from_slice::<ResourceList>(&body).map_err(decode)))
    });
    // The stream keeps the order, which is that of preference.
    let answers: Vec<_> = stream::iter(fetches).buffered(FETCHES).collect().await;
    let (mut kinds, mut failures) = (Vec::new(), Vec::new());
    for ((group, version), answer) in answers {
        match answer {
            Ok(list) => kinds.extend(list.into_kinds(&group, &version)),
            Err(e) => {
                failures.push((if group.is_empty() { version.clone() } else { format!("{group}/{version}") }, e.to_string()));
                kinds.extend(old.group(&group).filter(|k| k.gvk.version == version));
            }
        }
    }
    if kinds.is_empty() && !failures.is_empty() {
        let (what, reason) = failures.remove(0);
        return Err(Error::transport(format!("discovery of {what}"), reason));
    }
    Ok((kinds, failures))
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct RootAnswer {
    kind: String,
    items: Vec<GroupDiscovery>,
    versions: Vec<VersionName>,
    groups: Vec<OldGroup>,
}

/// `APIVersions` lists strings, `APIGroup` lists objects.
#[derive(Deserialize)]
#[serde(untagged)]
enum VersionName {
    Plain(String),
    Full { version: String },
}

impl VersionName {
    fn name(self) -> String {
        match self {
            Self::Plain(s) => s,
            Self::Full { version } => version,
        }
    }
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct OldGroup {
    name: String,
    versions: Vec<VersionName>,
    preferred_version: Option<VersionName>,
}

impl OldGroup {
    fn ordered(self) -> (String, Vec<String>) {
        let mut versions: Vec<String> = self.versions.into_iter().map(VersionName::name).collect();
        if let Some(preferred) = self.preferred_version.map(VersionName::name) {
            versions.sort_by_key(|v| *v != preferred);
        }
        (self.name, versions)
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct GroupDiscovery {
    metadata: Name,
    versions: Vec<VersionDiscovery>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Name {
    name: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct VersionDiscovery {
    version: String,
    freshness: String,
    resources: Vec<ResourceDiscovery>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct ResourceDiscovery {
    resource: String,
    response_kind: Option<ResponseKind>,
    scope: String,
    singular_resource: String,
    verbs: Vec<String>,
    short_names: Vec<String>,
    categories: Vec<String>,
    subresources: Vec<Subresource>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ResponseKind {
    group: String,
    version: String,
    kind: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Subresource {
    subresource: String,
}

impl ResourceDiscovery {
    fn into_kind(self, group: &str, version: &str) -> Option<Kind> {
        let response = self.response_kind.filter(|r| !r.kind.is_empty())?;
        let group = if response.group.is_empty() { group } else { &response.group };
        let version = if response.version.is_empty() { version } else { &response.version };
        Some(Kind {
            gvk: Gvk::new(group, version, &response.kind),
            resource: self.resource,
            singular: self.singular_resource,
            namespaced: self.scope == "Namespaced",
            verbs: self.verbs,
            short_names: self.short_names,
            categories: self.categories,
            subresources: self.subresources.into_iter().map(|s| s.subresource).collect(),
        })
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ResourceList {
    resources: Vec<Resource>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Resource {
    name: String,
    singular_name: String,
    namespaced: bool,
    kind: String,
    verbs: Vec<String>,
    short_names: Vec<String>,
    categories: Vec<String>,
}

impl ResourceList {
    fn into_kinds(self, group: &str, version: &str) -> Vec<Kind> {
        let mut subresources: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for r in &self.resources {
            if let Some((parent, sub)) = r.name.split_once('/') {
                subresources.entry(parent.to_owned()).or_default().push(sub.to_owned());
            }
        }
        let whole = self.resources.into_iter().filter(|r| !r.name.contains('/'));
        whole
            .map(|r| Kind {
                gvk: Gvk::new(group, version, &r.kind),
                subresources: subresources.remove(&r.name).unwrap_or_default(),
                resource: r.name,
                singular: r.singular_name,
                namespaced: r.namespaced,
                verbs: r.verbs,
                short_names: r.short_names,
                categories: r.categories,
            })
            .collect()
    }
}
