//! The resources that an API server of [`KUBERNETES_VERSION`] serves, from `data/resources.txt`
//! (about 8 KB, made by `cargo xtask codegen`).
//!
//! Main type: [`ResourceInfo`].

use crate::gvk::Gvk;
use std::sync::OnceLock;

const TEXT: &str = include_str!("data/resources.txt");

/// The Kubernetes version whose kinds and resources are built in.
pub const KUBERNETES_VERSION: &str = "1.36.3";

/// A resource, as discovery describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceInfo {
    pub group: &'static str,
    pub version: &'static str,
    /// Plural, as in URLs.
    pub resource: &'static str,
    pub singular: &'static str,
    pub kind: &'static str,
    pub short_names: Vec<&'static str>,
    pub namespaced: bool,
    pub verbs: Vec<&'static str>,
    pub categories: Vec<&'static str>,
    pub subresources: Vec<Subresource>,
}

/// `status`, `scale`, `log`, ... of a resource. Its kind may be of another group (Scale, Eviction,
/// TokenRequest).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subresource {
    pub name: &'static str,
    pub group: &'static str,
    pub version: &'static str,
    pub kind: &'static str,
    pub verbs: Vec<&'static str>,
}

impl ResourceInfo {
    pub fn gvk(&self) -> Gvk {
        Gvk::new(self.group, self.version, self.kind)
    }

    pub fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|s| s.name == name)
    }
}

/// All built-in resources in the order of discovery: the core group first, preferred versions
/// before others.
pub fn resources() -> &'static [ResourceInfo] {
    static RESOURCES: OnceLock<Vec<ResourceInfo>> = OnceLock::new();
    RESOURCES
        .get_or_init(|| parse(TEXT).expect("the committed file is well-formed; a test reads it"))
}

/// The built-in resource of a kind.
pub fn find_resource(gvk: &Gvk) -> Option<&'static ResourceInfo> {
    resources()
        .iter()
        .find(|r| r.kind == gvk.kind && r.group == gvk.group && r.version == gvk.version)
}

/// A line `>group/version` opens a version; `resource singular Kind N|C verbs short-names
/// categories` follow, tab-separated, and `+name group/version/Kind verbs` lines add subresources.
/// Kinds of the open version are written without it.
fn parse(text: &'static str) -> Option<Vec<ResourceInfo>> {
    let words = |s: &'static str| s.split(',').filter(|w| !w.is_empty()).collect::<Vec<_>>();
    let mut all: Vec<ResourceInfo> = Vec::new();
    let (mut group, mut version) = ("", "");
    for line in text
        .lines()
        .filter(|l| !l.is_empty() && !l.starts_with('#'))
    {
        if let Some(gv) = line.strip_prefix('>') {
            (group, version) = gv.split_once('/')?;
            continue;
        }
        let columns: Vec<&'static str> = line.split('\t').collect();
        if let Some(name) = columns[0].strip_prefix('+') {
            let mut parts = columns.get(1)?.rsplitn(3, '/');
            let kind = parts.next()?;
            let (of_version, of_group) = (parts.next(), parts.next());
            let verbs = words(columns.get(2)?);
            let sub = Subresource {
                name,
                group: of_group.unwrap_or(group),
                version: of_version.unwrap_or(version),
                kind,
                verbs,
            };
            all.last_mut()?.subresources.push(sub);
            continue;
        }
        let [
            resource,
            singular,
            kind,
            scope,
            verbs,
            short_names,
            categories,
        ] = columns[..]
        else {
            return None;
        };
        all.push(ResourceInfo {
            group,
            version,
            resource,
            singular,
            kind,
            short_names: words(short_names),
            namespaced: scope == "N",
            verbs: words(verbs),
            categories: words(categories),
            subresources: Vec::new(),
        });
    }
    Some(all)
}
