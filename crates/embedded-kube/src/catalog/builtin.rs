//! The resources every server has.

use super::{Resource, Subresource};
use std::sync::Arc;

/// All built-in resources, in discovery order.
pub fn resources() -> Vec<Arc<Resource>> {
    let table: &[(&str, &str, &str, &str, bool, bool)] = &[
        ("", "v1", "namespaces", "Namespace", false, true),
        ("", "v1", "nodes", "Node", false, true),
        ("", "v1", "pods", "Pod", true, true),
        ("", "v1", "services", "Service", true, true),
        ("", "v1", "endpoints", "Endpoints", true, false),
        ("", "v1", "configmaps", "ConfigMap", true, false),
        ("", "v1", "secrets", "Secret", true, false),
        ("", "v1", "serviceaccounts", "ServiceAccount", true, false),
        ("", "v1", "persistentvolumes", "PersistentVolume", false, true),
        ("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", true, true),
        ("", "v1", "events", "Event", true, false),
        ("apps", "v1", "deployments", "Deployment", true, true),
        ("apps", "v1", "replicasets", "ReplicaSet", true, true),
        ("apps", "v1", "statefulsets", "StatefulSet", true, true),
        ("apps", "v1", "daemonsets", "DaemonSet", true, true),
        ("apps", "v1", "controllerrevisions", "ControllerRevision", true, false),
        ("batch", "v1", "jobs", "Job", true, true),
        ("batch", "v1", "cronjobs", "CronJob", true, true),
        ("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice", true, false),
        ("networking.k8s.io", "v1", "ingresses", "Ingress", true, true),
        ("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler", true, true),
        ("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", false, true),
    ];
    let verbs = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
    let row = |&(group, version, resource, kind, namespaced, status): &(&str, &str, &str, &str, bool, bool)| {
        let sub = Subresource {
            name: "status".into(),
            group: group.into(),
            version: version.into(),
            kind: kind.into(),
            verbs: ["get", "patch", "update"].map(str::to_owned).to_vec(),
        };
        Arc::new(Resource {
            group: group.into(),
            version: version.into(),
            resource: resource.into(),
            singular: kind.to_lowercase(),
            kind: kind.into(),
            list_kind: format!("{kind}List"),
            namespaced,
            verbs: verbs.map(str::to_owned).to_vec(),
            short_names: Vec::new(),
            categories: Vec::new(),
            subresources: if status { vec![sub] } else { Vec::new() },
            table: format!("{group}/{resource}"),
            storage_version: version.into(),
        })
    };
    table.iter().map(row).collect()
}
