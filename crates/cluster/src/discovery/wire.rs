//! The API server's discovery documents, aggregated and older ones, and their conversion to
//! [`Kind`].

use super::Kind;
use serde::Deserialize;
use std::collections::BTreeMap;
use tiphys_apimachinery::Gvk;

#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct RootAnswer {
    pub(super) kind: String,
    pub(super) items: Vec<GroupDiscovery>,
    pub(super) versions: Vec<VersionName>,
    pub(super) groups: Vec<OldGroup>,
}

/// `APIVersions` lists strings, `APIGroup` lists objects.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum VersionName {
    Plain(String),
    Full { version: String },
}

impl VersionName {
    pub(super) fn name(self) -> String {
        match self {
            Self::Plain(s) => s,
            Self::Full { version } => version,
        }
    }
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct OldGroup {
    pub(super) name: String,
    pub(super) versions: Vec<VersionName>,
    pub(super) preferred_version: Option<VersionName>,
}

impl OldGroup {
    pub(super) fn ordered(self) -> (String, Vec<String>) {
        let mut versions: Vec<String> = self.versions.into_iter().map(VersionName::name).collect();
        if let Some(preferred) = self.preferred_version.map(VersionName::name) {
            versions.sort_by_key(|v| *v != preferred);
        }
        (self.name, versions)
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct GroupDiscovery {
    pub(super) metadata: Name,
    pub(super) versions: Vec<VersionDiscovery>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct Name {
    pub(super) name: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct VersionDiscovery {
    pub(super) version: String,
    pub(super) freshness: String,
    pub(super) resources: Vec<ResourceDiscovery>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ResourceDiscovery {
    pub(super) resource: String,
    pub(super) response_kind: Option<ResponseKind>,
    pub(super) scope: String,
    pub(super) singular_resource: String,
    pub(super) verbs: Vec<String>,
    pub(super) short_names: Vec<String>,
    pub(super) categories: Vec<String>,
    pub(super) subresources: Vec<Subresource>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct ResponseKind {
    pub(super) group: String,
    pub(super) version: String,
    pub(super) kind: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct Subresource {
    pub(super) subresource: String,
}

impl ResourceDiscovery {
    pub(super) fn into_kind(self, group: &str, version: &str) -> Option<Kind> {
        let response = self.response_kind.filter(|r| !r.kind.is_empty())?;
        let group = if response.group.is_empty() {
            group
        } else {
            &response.group
        };
        let version = if response.version.is_empty() {
            version
        } else {
            &response.version
        };
        Some(Kind {
            gvk: Gvk::new(group, version, &response.kind),
            resource: self.resource,
            singular: self.singular_resource,
            namespaced: self.scope == "Namespaced",
            verbs: self.verbs,
            short_names: self.short_names,
            categories: self.categories,
            subresources: self
                .subresources
                .into_iter()
                .map(|s| s.subresource)
                .collect(),
        })
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct ResourceList {
    pub(super) resources: Vec<Resource>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Resource {
    pub(super) name: String,
    pub(super) singular_name: String,
    pub(super) namespaced: bool,
    pub(super) kind: String,
    pub(super) verbs: Vec<String>,
    pub(super) short_names: Vec<String>,
    pub(super) categories: Vec<String>,
}

impl ResourceList {
    pub(super) fn into_kinds(self, group: &str, version: &str) -> Vec<Kind> {
        let mut subresources: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for r in &self.resources {
            if let Some((parent, sub)) = r.name.split_once('/') {
                subresources
                    .entry(parent.to_owned())
                    .or_default()
                    .push(sub.to_owned());
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
