//! Hooks: objects that a sync runs instead of keeping. Both annotations, `argocd.argoproj.io/hook`
//! and Helm's, are read here and nowhere else.
//!
//! Main functions: [`is_hook`], [`phases`], [`delete_policies`]. This module must not know plans,
//! progress or live state.

use super::{options::csv, step::SyncPhase};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tiphys_apimachinery::Object;

/// When a hook runs: a comma-separated list of [`HookType`]s.
pub const HOOK: &str = "argocd.argoproj.io/hook";
/// When a hook is deleted: a comma-separated list of [`DeletePolicy`] names.
pub const HOOK_DELETE_POLICY: &str = "argocd.argoproj.io/hook-delete-policy";
/// Keeps a hook in the cluster until its result has been recorded.
pub const HOOK_FINALIZER: &str = "argocd.argoproj.io/hook-finalizer";
/// The operation that created a hook, so that the operation recognizes it after a crash.
pub const OPERATION_ID: &str = "tiphys.dev/operation-id";
/// The phase that a hook was created for; one object may be a hook of several phases.
pub const OPERATION_PHASE: &str = "tiphys.dev/operation-phase";

const HELM_HOOK: &str = "helm.sh/hook";
const HELM_DELETE_POLICY: &str = "helm.sh/hook-delete-policy";

/// The values of `argocd.argoproj.io/hook` that matter during a sync.
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

/// The hook types of an object. Helm's annotation is used only if Argo CD's has no known type.
pub fn types(object: &Object) -> Vec<HookType> {
    let own: Vec<HookType> = csv(object.annotation(HOOK))
        .into_iter()
        .filter_map(parse_type)
        .collect();
    if !own.is_empty() {
        return own;
    }
    csv(object.annotation(HELM_HOOK))
        .into_iter()
        .filter_map(parse_helm_type)
        .map(HookType::Phase)
        .collect()
}

/// Whether the object is a hook at all, of known type or not. An object with only `Skip` is not.
pub fn is_hook(object: &Object) -> bool {
    if object.annotation(HOOK).is_some() {
        return !is_skip(object);
    }
    object
        .annotation(HELM_HOOK)
        .is_some_and(|v| v != "crd-install")
}

/// `Skip` and nothing else.
pub fn is_skip(object: &Object) -> bool {
    types(object) == [HookType::Skip]
}

/// A hook that no sync phase runs: neither applied nor pruned.
pub fn is_ignored(object: &Object) -> bool {
    is_hook(object) && types(object).is_empty()
}

/// The phases of a sync in which the object takes part, in order, each once. A plain resource
/// belongs to `Sync`.
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

/// A hook that runs before the Application's resources are deleted.
pub fn is_pre_delete(object: &Object) -> bool {
    csv(object.annotation(HOOK)).contains(&"PreDelete")
        || csv(object.annotation(HELM_HOOK)).contains(&"pre-delete")
}

/// A hook that runs after the Application's resources are deleted.
pub fn is_post_delete(object: &Object) -> bool {
    csv(object.annotation(HOOK)).contains(&"PostDelete")
        || csv(object.annotation(HELM_HOOK)).contains(&"post-delete")
}

/// The policies of both annotations; `BeforeHookCreation` if neither has a known one.
pub fn delete_policies(object: &Object) -> Vec<DeletePolicy> {
    let own = csv(object.annotation(HOOK_DELETE_POLICY))
        .into_iter()
        .filter_map(|w| match w {
            "BeforeHookCreation" => Some(DeletePolicy::BeforeHookCreation),
            "HookSucceeded" => Some(DeletePolicy::HookSucceeded),
            "HookFailed" => Some(DeletePolicy::HookFailed),
            _ => None,
        });
    let helm = csv(object.annotation(HELM_DELETE_POLICY))
        .into_iter()
        .filter_map(|w| match w {
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

/// The suffix for a hook that has only `generateName`: the same in every call for one operation.
pub fn generated_suffix(revision: &str, phase: SyncPhase, started_at: Timestamp) -> String {
    let short = if revision.len() >= 8 {
        revision.get(..7).unwrap_or(revision)
    } else {
        revision
    };
    format!("{short}-{}-{}", phase.as_str(), started_at.as_second()).to_lowercase()
}

/// Names of Jobs and Pods are also used as label values.
const LONGEST_NAME: usize = 63;
/// How much of `generateName` the API server keeps.
const LONGEST_PREFIX: usize = LONGEST_NAME - 5;

/// The name of a hook that has only `generateName`. It depends only on the arguments, so that a
/// process that resumes the operation computes the same one. The second hook with the same prefix
/// ends with `-2`, the third with `-3`. A name that would be too long ends with five characters,
/// like a name generated by the API server.
pub fn generated_name(prefix: &str, suffix: &str, is_taken: impl Fn(&str) -> bool) -> String {
    let name = |number: u32| {
        let suffix = if number == 1 {
            suffix.to_owned()
        } else {
            format!("{suffix}-{number}")
        };
        match prefix.len() + suffix.len() {
            ..=LONGEST_NAME => format!("{prefix}{suffix}"),
            _ => format!(
                "{}{}",
                &prefix[..prefix.floor_char_boundary(LONGEST_PREFIX)],
                five_characters(&format!("{prefix}{suffix}"))
            ),
        }
    };
    (1..)
        .map(name)
        .find(|name| !is_taken(name))
        .expect("only finitely many names are taken")
}

/// Five characters from the API server's alphabet for generated names, computed from a text
/// (FNV-1a).
fn five_characters(text: &str) -> String {
    const CHARACTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
    let mut hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let mut next = || {
        let character = CHARACTERS[(hash % 27) as usize];
        hash /= 27;
        char::from(character)
    };
    (0..5).map(|_| next()).collect()
}

/// Whether the hook still has our finalizer.
pub fn has_finalizer(object: &Object) -> bool {
    object.finalizers().iter().any(|f| f == HOOK_FINALIZER)
}

/// Prepares a desired hook for this operation and phase: adds the finalizer and the annotations
/// that identify it.
pub fn prepare(hook: &Object, operation_id: &str, phase: SyncPhase) -> Object {
    let mut object = hook.clone();
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
    if word == "Skip" {
        Some(HookType::Skip)
    } else {
        SyncPhase::parse(word).map(HookType::Phase)
    }
}

fn parse_helm_type(word: &str) -> Option<SyncPhase> {
    match word {
        "pre-install" | "pre-upgrade" => Some(SyncPhase::PreSync),
        "post-install" | "post-upgrade" => Some(SyncPhase::PostSync),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_names_are_distinct_repeatable_and_fit_into_labels() {
        let suffix = generated_suffix(
            "0123456789",
            SyncPhase::PostSync,
            Timestamp::from_second(1_700_000_000).expect("a time"),
        );
        assert_eq!(suffix, "0123456-postsync-1700000000");
        for prefix in [
            "probe-".to_owned(),
            "p".repeat(36),
            "p".repeat(37),
            format!("{}-", "p".repeat(57)),
            "ä".repeat(60),
        ] {
            let mut taken: Vec<String> = Vec::new();
            for _ in 0..12 {
                let name = generated_name(&prefix, &suffix, |name| taken.iter().any(|t| t == name));
                assert_eq!(
                    name,
                    generated_name(&prefix, &suffix, |name| taken.iter().any(|t| t == name))
                );
                assert!(
                    name.len() <= LONGEST_NAME && !taken.contains(&name),
                    "{name} after {taken:?}"
                );
                assert!(
                    name.starts_with(&prefix[..prefix.floor_char_boundary(LONGEST_PREFIX)]),
                    "{name}"
                );
                taken.push(name);
            }
        }
        let second = generated_name("probe-", &suffix, |name| {
            name == "probe-0123456-postsync-1700000000"
        });
        assert_eq!(second, "probe-0123456-postsync-1700000000-2");
    }
}
