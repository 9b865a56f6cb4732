//! The kinds that CRDs among the desired objects define: what is known of a kind before the cluster
//! has it.

use crate::{base::KindInfo, track};
use serde_json::Value;
use std::{collections::BTreeMap, sync::Arc};
use tiphys_apimachinery::{GroupKind, Kept, Object};

/// A kind that a CRD defines.
pub struct Defined {
    pub kind: GroupKind,
    pub namespaced: bool,
    /// The served versions. Empty: the CRD does not list any.
    versions: Vec<String>,
}

impl Defined {
    pub fn serves(&self, version: &str) -> bool {
        self.versions.is_empty() || self.versions.iter().any(|v| v == version)
    }
}

/// What an object defines, if it is a complete CRD.
pub fn defined(object: &Object) -> Option<Defined> {
    let (group, kind) = kind(object).filter(|_| track::is_crd(object))?;
    let served = |v: &Value| v["served"] != Value::Bool(false);
    let versions = object
        .pointer("/spec/versions")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter(|v| served(v));
    Some(Defined {
        kind: GroupKind::new(group, kind),
        namespaced: object.str_at("/spec/scope") != "Cluster",
        versions: versions
            .filter_map(|v| Some(v["name"].as_str()?.to_owned()))
            .collect(),
    })
}

/// Group and kind that a CRD defines.
pub fn kind(crd: &Object) -> Option<(&str, &str)> {
    let (group, kind) = (crd.str_at("/spec/group"), crd.str_at("/spec/names/kind"));
    (!group.is_empty() && !kind.is_empty()).then_some((group, kind))
}

/// Whether the kinds are namespaced that the cluster does not have and CRDs among the objects
/// define. The last CRD of a kind counts, as the last of equal objects does.
pub fn expected_scopes(objects: &[Arc<Kept>], kinds: &dyn KindInfo) -> BTreeMap<GroupKind, bool> {
    objects
        .iter()
        .filter(|o| o.kind() == "CustomResourceDefinition")
        .filter_map(|o| defined(&o.object()))
        // A kind whose discovery failed may exist, with another scope than the one in Git.
        .filter(|d| kinds.is_namespaced(&d.kind).is_none() && kinds.failure(&d.kind).is_none())
        .map(|d| (d.kind, d.namespaced))
        .collect()
}
