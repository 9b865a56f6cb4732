//! Hooks: objects that a sync runs instead of keeping. Both notations, `argocd.argoproj.io/hook` and Helm's, are read here and nowhere else.
//!
//! Main functions: [`is_hook`], [`phases`], [`delete_policies`]. This module must not know plans, progress or live state.

use super::{options::csv, step::SyncPhase};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tiphys_apimachinery::Object;

/// Says when a hook runs, as a comma-separated list of [`HookType`]s.
pub const HOOK: &str = "argocd.argoproj.io/hook";
/// Says when a hook object is deleted, as a comma-separated list of [`DeletePolicy`] words.
pub const HOOK_DELETE_POLICY: &str = "argocd.argoproj.io/hook-delete-policy";
/// Keeps a hook in the cluster until its result was seen.
pub const HOOK_FINALIZER: &str = "argocd.argoproj.io/hook-finalizer";
/// Names the operation that created a hook, so that the operation recognises it after a crash.
pub const OPERATION_ID: &str = "tiphys.dev/operation-id";
/// Names the phase a hook was created for; one object may be a hook of several phases.
pub const OPERATION_PHASE: &str = "tiphys.dev/operation-phase";

const HELM_HOOK: &str = "helm.sh/hook";
const HELM_DELETE_POLICY: &str = "helm.sh/hook-delete-policy";

/// The words that `argocd.argoproj.io/hook` understands during a sync.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookType {
    Phase(SyncPhase),
    /// Neither applied nor compared.
    Skip,
}

/// When a hook object is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum DeletePolicy {
    BeforeHookCreation,
    HookSucceeded,
    HookFailed,
}

impl DeletePolicy {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::BeforeHookCreation => "BeforeHookCreation",
            Self::HookSucceeded => "HookSucceeded",
            Self::HookFailed => "HookFailed",
        }
    }
}

/// The hook types of an object. Helm's annotation counts only when the Argo CD one names no known type.
pub fn types(object: &Object) -> Vec<HookType> {
    let own: Vec<HookType> = csv(object.annotation(HOOK)).into_iter().filter_map(parse_type).collect();
    if !own.is_empty() {
        return own;
    }
    csv(object.annotation(HELM_HOOK)).into_iter().filter_map(parse_helm_type).map(HookType::Phase).collect()
}

/// Whether the object is a hook at all, of known type or not. An object that is only `Skip` is none.
pub fn is_hook(object: &Object) -> bool {
    if object.annotation(HOOK).is_some() {
        return !is_skip(object);
    }
    object.annotation(HELM_HOOK).is_some_and(|v| v != "crd-install")
}

/// `Skip` and nothing else.
pub fn is_skip(object: &Object) -> bool {
    types(object) == [HookType::Skip]
}

/// A hook that no sync phase runs: neither applied nor pruned.
pub fn is_ignored(object: &Object) -> bool {
    is_hook(object) && types(object).is_empty()
}

/// The phases of a sync in which the object takes part, in order, each once. A plain resource belongs to `Sync`.
pub fn phases(object: &Object) -> Vec<SyncPhase> {
    if is_skip(object) {
        return Vec::new();
    }
    if !is_hook(object) {
        return vec![SyncPhase::Sync];
    }
    let mut phases: Vec<SyncPhase> = types(object)
        .into_iter()
        .filter_map(|t| match t {
            HookType::Phase(p) => Some(p),
            HookType::Skip => None,
        })
        .collect();
    phases.sort();
    phases.dedup();
    phases
}

/// Runs before the resources of an Application that is being deleted are deleted.
pub fn is_pre_delete(object: &Object) -> bool {
    csv(object.annotation(HOOK)).contains(&"PreDelete") || csv(object.annotation(HELM_HOOK)).contains(&"pre-delete")
}

/// Runs after the resources of an Application that is being deleted are gone.
pub fn is_post_delete(object: &Object) -> bool {
    csv(object.annotation(HOOK)).contains(&"PostDelete") || csv(object.annotation(HELM_HOOK)).contains(&"post-delete")
}

/// Both notations together; `BeforeHookCreation` when neither names a known policy.
pub fn delete_policies(object: &Object) -> Vec<DeletePolicy> {
    let own = csv(object.annotation(HOOK_DELETE_POLICY)).into_iter().filter_map(|w| match w {
        "BeforeHookCreation" => Some(DeletePolicy::BeforeHookCreation),
        "HookSucceeded" => Some(DeletePolicy::HookSucceeded),
        "HookFailed" => Some(DeletePolicy::HookFailed),
        _ => None,
    });
    let helm = csv(object.annotation(HELM_DELETE_POLICY)).into_iter().filter_map(|w| match w {
        "before-hook-creation" => Some(DeletePolicy::BeforeHookCreation),
        "hook-succeeded" => Some(DeletePolicy::HookSucceeded),
        "hook-failed" => Some(DeletePolicy::HookFailed),
        _ => None,
    });
    let mut policies: Vec<DeletePolicy> = own.chain(helm).collect();
    if policies.is_empty() {
        policies.push(DeletePolicy::BeforeHookCreation);
    }
    policies.sort();
    policies.dedup();
    policies
}

/// The name given to a hook that has only `generateName`: the same in every call for one operation.
pub fn generated_name(prefix: &str, revision: &str, phase: SyncPhase, started_at: Timestamp) -> String {
    let short = if revision.len() >= 8 { revision.get(..7).unwrap_or(revision) } else { revision };
    let suffix = format!("{short}-{}-{}", phase.as_str(), started_at.as_second());
    format!("{prefix}{}", suffix.to_lowercase())
}

/// Whether the finalizer that holds a hook is still there.
pub fn has_finalizer(object: &Object) -> bool {
    object.finalizers().iter().any(|f| f == HOOK_FINALIZER)
}

/// Makes a desired hook the one of this operation and phase: name, finalizer and the marks it is recognised by.
pub fn prepare(hook: &Object, operation_id: &str, revision: &str, phase: SyncPhase, started_at: Timestamp) -> Object {
    let mut object = hook.clone();
    if object.name().is_empty() {
        let name = generated_name(hook.generate_name(), revision, phase, started_at);
        object.set_name(&name);
    }
    let mut finalizers = object.finalizers();
    if !finalizers.iter().any(|f| f == HOOK_FINALIZER) {
        finalizers.push(HOOK_FINALIZER.to_owned());
        object.set_finalizers(finalizers);
    }
    object.set_annotation(OPERATION_ID, operation_id);
    object.set_annotation(OPERATION_PHASE, phase.as_str());
    object
}

fn parse_type(word: &str) -> Option<HookType> {
    if word == "Skip" { Some(HookType::Skip) } else { SyncPhase::parse(word).map(HookType::Phase) }
}

fn parse_helm_type(word: &str) -> Option<SyncPhase> {
    match word {
        "pre-install" | "pre-upgrade" => Some(SyncPhase::PreSync),
        "post-install" | "post-upgrade" => Some(SyncPhase::PostSync),
        _ => None,
    }
}
