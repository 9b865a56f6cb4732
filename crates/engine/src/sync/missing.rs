//! Kinds that the cluster does not have, or not in the requested version: which of them this sync
//! defines, and the error for the others.

use super::step::{Invalid, Step};
use crate::{
    normalize::crd,
    types::{Comparison, KindInfo},
};
use std::collections::BTreeMap;
use tiphys_apimachinery::{GroupKind, Gvk};

/// A kind that a CRD among the targets defines.
pub(super) struct Defined {
    pub crd: crd::Defined,
    /// The cluster does not have the CRD.
    pub is_created: bool,
}

/// The kinds defined by CRDs among the targets, hooks included.
pub(super) fn defined(comparison: &Comparison) -> BTreeMap<GroupKind, Defined> {
    let resources = comparison
        .entries
        .iter()
        .filter_map(|e| Some((e.desired.as_ref()?, e.live.is_none())));
    let targets = resources.chain(comparison.hooks.iter().map(|hook| (hook, false)));
    targets
        .filter(|(kept, _)| kept.kind() == "CustomResourceDefinition")
        .filter_map(|(kept, is_created)| {
            let crd = crd::defined(&kept.object())?;
            Some((crd.kind.clone(), Defined { crd, is_created }))
        })
        .collect()
}

/// The kind is unknown because discovery of its API group failed.
pub(super) fn undiscovered(step: &Step, why: &str) -> Invalid {
    let Gvk { group, kind, .. } = &step.gvk;
    let (namespace, name) = (&step.result_namespace, &step.key.name);
    let discovery = format!(
        "failed to discover server resources for group version {}",
        step.gvk.api_version()
    );
    Invalid {
        message: format!(
            "{discovery}, for {group}/{kind} of requested resource {namespace}/{name}: {why}"
        ),
        reason: format!("{discovery}: {why}"),
    }
}

/// Neither the cluster nor this sync provides the step's kind.
pub(super) fn invalid(step: &Step, kinds: &dyn KindInfo) -> Invalid {
    let api_version = step.gvk.api_version();
    if kinds.serves_version(&step.gvk.group, &step.gvk.version) {
        let GroupKind { group, kind } = step.gvk.group_kind();
        let dot = if group.is_empty() { "" } else { "." };
        let reason = format!("{kind}{dot}{group} \"\" not found");
        return Invalid {
            message: format!(
                "{reason}: the cluster serves {api_version}, but no {kind} in it. Make sure the CRD is installed on the destination cluster."
            ),
            reason,
        };
    }
    let installed = kinds.installed(&step.gvk.group_kind());
    Invalid {
        reason: format!(
            "failed to discover server resources for group version {api_version}: the server could not find the requested resource"
        ),
        message: not_found(
            &step.gvk,
            &step.result_namespace,
            &step.key.name,
            installed.as_ref(),
        ),
    }
}

/// Advice for the user. `installed`: the kind as the cluster has it, in another version or, failing
/// that, in another group.
pub fn not_found(gvk: &Gvk, namespace: &str, name: &str, installed: Option<&Gvk>) -> String {
    let Gvk {
        group,
        version,
        kind,
    } = gvk;
    let resource = format!("requested resource {namespace}/{name}");
    match installed {
        None => format!(
            "The Kubernetes API could not find {group}/{kind} for {resource}. Make sure the {kind:?} CRD is installed on the destination cluster."
        ),
        Some(Gvk {
            group: known_group,
            version: known,
            kind: known_kind,
        }) => format!(
            "The Kubernetes API could not find version {version:?} of {group}/{kind} for {resource}. \
             Version {known:?} of {known_group}/{known_kind} is installed on the destination cluster."
        ),
    }
}
