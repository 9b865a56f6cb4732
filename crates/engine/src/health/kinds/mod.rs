//! One file per kind: its health, computed from its status. Every status and message is that of
//! Argo CD 3.6.

mod apiservice;
mod daemonset;
mod deployment;
mod hpa;
mod ingress;
mod job;
mod pod;
mod pvc;
mod replicaset;
mod service;
mod statefulset;
mod workflow;

use crate::{error::EngineError, types::Health};
use tiphys_apimachinery::Object;

pub(super) type Check = fn(&Object) -> Result<Health, EngineError>;

/// The check of a kind, for all its versions.
pub(super) fn check_for(group: &str, kind: &str) -> Option<Check> {
    Some(match (group, kind) {
        ("", "Pod") => pod::check,
        ("", "Service") => service::check,
        ("", "PersistentVolumeClaim") => pvc::check,
        ("apps", "Deployment") => deployment::check,
        ("apps", "StatefulSet") => statefulset::check,
        ("apps", "ReplicaSet") => replicaset::check,
        ("apps", "DaemonSet") => daemonset::check,
        ("batch", "Job") => job::check,
        ("networking.k8s.io" | "extensions", "Ingress") => ingress::check,
        ("autoscaling", "HorizontalPodAutoscaler") => hpa::check,
        ("apiregistration.k8s.io", "APIService") => apiservice::check,
        ("argoproj.io", "Workflow") => workflow::check,
        _ => return None,
    })
}
