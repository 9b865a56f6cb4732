//! The order of the steps of a sync: phase, wave, kind, name; then namespaces and CRDs are moved
//! before the steps that need them.

use super::step::Step;
use crate::normalize::crd;
use std::collections::BTreeMap;
use tiphys_apimachinery::Object;

/// Kinds in the order in which they are applied; all others come after these.
const KINDS: [&str; 35] = [
    "Namespace",
    "NetworkPolicy",
    "ResourceQuota",
    "LimitRange",
    "PodSecurityPolicy",
    "PodDisruptionBudget",
    "ServiceAccount",
    "Secret",
    "SecretList",
    "ConfigMap",
    "StorageClass",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "CustomResourceDefinition",
    "ClusterRole",
    "ClusterRoleList",
    "ClusterRoleBinding",
    "ClusterRoleBindingList",
    "Role",
    "RoleList",
    "RoleBinding",
    "RoleBindingList",
    "Service",
    "DaemonSet",
    "Pod",
    "ReplicationController",
    "ReplicaSet",
    "Deployment",
    "HorizontalPodAutoscaler",
    "StatefulSet",
    "Job",
    "CronJob",
    "IngressClass",
    "Ingress",
    "APIService",
];

/// Position of a kind; custom and unlisted kinds are last.
pub fn kind_rank(kind: &str) -> usize {
    KINDS.iter().position(|k| *k == kind).unwrap_or(KINDS.len())
}

/// Sorts steps into the order in which they run.
pub fn sort(steps: &mut Vec<Step>) {
    steps.sort_by_cached_key(|s| {
        (
            s.phase,
            s.wave,
            kind_rank(&s.gvk.kind),
            s.key.name.clone(),
            s.key.clone(),
        )
    });
    lift(
        steps,
        |s, o| (s.gvk.group.is_empty() && s.gvk.kind == "Namespace").then(|| o.name().to_owned()),
        |s, _| (!s.result_namespace.is_empty()).then(|| s.result_namespace.clone()),
    );
    lift(
        steps,
        |s, o| crd_of(s, o).map(|(g, k)| format!("{g}/{k}")),
        |s, _| Some(format!("{}/{}", s.gvk.group, s.gvk.kind)),
    );
}

/// Group and kind that a CRD step defines.
pub fn crd_of<'a>(step: &Step, target: &'a Object) -> Option<(&'a str, &'a str)> {
    crd::kind(target).filter(|_| step.is_crd())
}

/// Moves each step that provides something before the first step that needs it, into that step's
/// phase and wave.
fn lift(
    steps: &mut Vec<Step>,
    provides: impl Fn(&Step, &Object) -> Option<String>,
    needs: impl Fn(&Step, &Object) -> Option<String>,
) {
    let mut first_need: BTreeMap<String, usize> = BTreeMap::new();
    for i in 0..steps.len() {
        let Some(target) = steps[i].target.clone() else {
            continue;
        };
        if let Some(provided) = provides(&steps[i], &target) {
            let Some(&at) = first_need.get(&provided) else {
                continue;
            };
            let mut step = steps.remove(i);
            (step.phase, step.wave) = steps[at].group();
            steps.insert(at, step);
            for index in first_need.values_mut().filter(|index| **index >= at) {
                *index += 1;
            }
        } else if let Some(needed) = needs(&steps[i], &target) {
            first_need.entry(needed).or_insert(i);
        }
    }
}
