//! The built-in resources of every server, from the discovery part of the schema table.

use super::{Resource, Subresource};
use std::sync::Arc;
use tiphys_apimachinery::schema;

/// Kinds whose `metadata.generation` is kept, as `<group>/<resource>`.
const WITH_GENERATION: &[&str] = &[
    "/podtemplates",
    "/pods",
    "/replicationcontrollers",
    "admissionregistration.k8s.io/mutatingadmissionpolicies",
    "admissionregistration.k8s.io/mutatingadmissionpolicybindings",
    "admissionregistration.k8s.io/mutatingwebhookconfigurations",
    "admissionregistration.k8s.io/validatingadmissionpolicies",
    "admissionregistration.k8s.io/validatingadmissionpolicybindings",
    "admissionregistration.k8s.io/validatingwebhookconfigurations",
    "apiextensions.k8s.io/customresourcedefinitions",
    "apps/daemonsets",
    "apps/deployments",
    "apps/replicasets",
    "apps/statefulsets",
    "batch/cronjobs",
    "batch/jobs",
    "discovery.k8s.io/endpointslices",
    "flowcontrol.apiserver.k8s.io/flowschemas",
    "flowcontrol.apiserver.k8s.io/prioritylevelconfigurations",
    "networking.k8s.io/ingressclasses",
    "networking.k8s.io/ingresses",
    "networking.k8s.io/networkpolicies",
    "policy/poddisruptionbudgets",
    "resource.k8s.io/deviceclasses",
    "resource.k8s.io/resourceslices",
    "scheduling.k8s.io/priorityclasses",
];

/// All built-in resources, in discovery order.
pub fn resources() -> Vec<Arc<Resource>> {
    let all = schema::resources();
    // The preferred version comes first, and is the one objects are stored in.
    let storage = |group: &str, resource: &str| {
        all.iter()
            .find(|r| r.group == group && r.resource == resource)
            .map_or_else(String::new, |r| r.version.to_owned())
    };
    let owned = |words: &[&str]| words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>();
    let one = |r: &schema::ResourceInfo| {
        // The events of both groups are the same objects.
        let storage_group = if r.group == "events.k8s.io" {
            ""
        } else {
            r.group
        };
        let table = format!("{storage_group}/{}", r.resource);
        Arc::new(Resource {
            group: r.group.to_owned(),
            version: r.version.to_owned(),
            resource: r.resource.to_owned(),
            singular: r.singular.to_owned(),
            kind: r.kind.to_owned(),
            list_kind: format!("{}List", r.kind),
            namespaced: r.namespaced,
            verbs: owned(&r.verbs),
            short_names: owned(&r.short_names),
            categories: owned(&r.categories),
            subresources: r.subresources.iter().map(subresource).collect(),
            storage_version: storage(storage_group, r.resource),
            storage_group: storage_group.to_owned(),
            custom: None,
            customs: Arc::default(),
            unserved: Arc::default(),
            generation: WITH_GENERATION.contains(&table.as_str()),
            table,
        })
    };
    all.iter().map(one).collect()
}

fn subresource(s: &schema::Subresource) -> Subresource {
    Subresource {
        name: s.name.to_owned(),
        group: s.group.to_owned(),
        version: s.version.to_owned(),
        kind: s.kind.to_owned(),
        verbs: s.verbs.iter().map(|v| (*v).to_owned()).collect(),
    }
}
