//! The kinds found by one discovery, and lookups in them.
//!
//! Main types: [`Kind`], one resource in one version, and [`Kinds`], all of them. Both are plain
//! values; nothing here makes requests.

use super::ALL_GROUPS;
use crate::request::encode;
use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, OnceLock},
};
use tiphys_apimachinery::{GroupKind, Gvk, Gvr};
use tiphys_engine::types::KindInfo;

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

    /// The URL of the collection; an empty namespace means all. It is ignored for cluster-scoped
    /// kinds.
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

    /// A name as kubectl prints it: `deployment.apps/web`, `service/web`.
    pub fn print_name(&self, name: &str) -> String {
        let kind = self.gvk.kind.to_lowercase();
        if self.gvk.group.is_empty() {
            format!("{kind}/{name}")
        } else {
            format!("{kind}.{}/{name}", self.gvk.group)
        }
    }
}

/// The result of one discovery. Immutable.
#[derive(Clone, Debug, Default)]
pub struct Kinds {
    /// Group by group as served, versions by preference.
    all: Vec<Arc<Kind>>,
    by_gk: HashMap<GroupKind, Vec<Arc<Kind>>>,
    /// Groups whose discovery failed: (group or group/version, reason). Their previously known
    /// kinds are kept.
    pub failures: Vec<(String, String)>,
    api_versions: OnceLock<Arc<[String]>>,
}

impl Kinds {
    pub(super) fn new(all: Vec<Kind>, failures: Vec<(String, String)>) -> Self {
        let all: Vec<Arc<Kind>> = all.into_iter().map(Arc::new).collect();
        let mut by_gk: HashMap<GroupKind, Vec<Arc<Kind>>> = HashMap::new();
        for kind in &all {
            by_gk
                .entry(kind.gvk.group_kind())
                .or_default()
                .push(kind.clone());
        }
        Self {
            all,
            by_gk,
            failures,
            api_versions: OnceLock::new(),
        }
    }

    /// Every kind in every version.
    pub fn all(&self) -> &[Arc<Kind>] {
        &self.all
    }

    /// The kind in exactly this version.
    pub fn get(&self, gvk: &Gvk) -> Option<&Arc<Kind>> {
        self.by_gk
            .get(&gvk.group_kind())?
            .iter()
            .find(|k| k.gvk.version == gvk.version)
    }

    /// The kind in the version the server prefers.
    pub fn preferred(&self, gk: &GroupKind) -> Option<&Arc<Kind>> {
        self.by_gk.get(gk)?.first()
    }

    /// Each kind once, in its preferred version.
    pub fn preferred_kinds(&self) -> impl Iterator<Item = &Arc<Kind>> {
        self.by_gk.values().filter_map(|v| v.first())
    }

    /// By plural, singular, short name or kind, with an optional group, as a user types it.
    pub fn find(&self, word: &str) -> Option<&Arc<Kind>> {
        let (name, group) = word
            .split_once('.')
            .map_or((word, None), |(n, g)| (n, Some(g)));
        let name = name.to_lowercase();
        self.all.iter().find(|k| {
            group.is_none_or(|g| k.gvk.group == g)
                && (k.resource == name
                    || k.singular == name
                    || k.gvk.kind.to_lowercase() == name
                    || k.short_names.contains(&name))
        })
    }

    /// The API versions that templates see: `apps/v1` and `apps/v1/Deployment`, sorted, without
    /// kinds that cannot be listed and watched.
    pub fn api_versions(&self) -> Arc<[String]> {
        let list = || {
            let mut out = BTreeSet::new();
            for kind in self.all.iter().filter(|k| k.can("list") && k.can("watch")) {
                let api_version = kind.gvk.api_version();
                out.insert(format!("{api_version}/{}", kind.gvk.kind));
                out.insert(api_version);
            }
            out.into_iter().collect()
        };
        Arc::clone(self.api_versions.get_or_init(list))
    }

    pub(super) fn group(&self, group: &str) -> impl Iterator<Item = Kind> {
        self.all
            .iter()
            .filter(move |k| k.gvk.group == group)
            .map(|k| Kind::clone(k))
    }
}

impl KindInfo for Kinds {
    fn is_namespaced(&self, gk: &GroupKind) -> Option<bool> {
        self.preferred(gk).map(|k| k.namespaced)
    }

    fn serves(&self, gvk: &Gvk) -> bool {
        self.get(gvk).is_some()
    }

    fn installed(&self, gk: &GroupKind) -> Option<Gvk> {
        let of_another_group = || self.all.iter().find(|k| k.gvk.kind == gk.kind);
        self.preferred(gk)
            .or_else(of_another_group)
            .map(|k| k.gvk.clone())
    }

    fn serves_version(&self, group: &str, version: &str) -> bool {
        let is_in = |k: &Arc<Kind>| k.gvk.group == group && k.gvk.version == version;
        self.all.iter().any(is_in)
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
