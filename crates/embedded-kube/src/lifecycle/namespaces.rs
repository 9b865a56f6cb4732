//! The lifecycle of namespaces: creates the default ones and empties a namespace that is being
//! deleted.

use super::{delete, modify};
use crate::base::{Part, Propagation, Stored, WriteOptions};
use crate::catalog::Resource;
use crate::registry::Registry;
use crate::status::Status;
use serde_json::{Value, json};
use std::{collections::BTreeMap, sync::Arc};
use tiphys_apimachinery::object::map_entry;
use tiphys_apimachinery::{Gvr, Object};

const SYSTEM: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];

/// The default priority classes.
const PRIORITIES: [(&str, i64, &str); 2] = [
    (
        "system-cluster-critical",
        2_000_000_000,
        "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
    ),
    (
        "system-node-critical",
        2_000_001_000,
        "Used for system critical pods that must not be moved from their current node.",
    ),
];

/// Creates the default namespaces, and the service through which pods reach the API.
pub fn make_system_namespaces(registry: &Registry) -> Result<(), Status> {
    let options = WriteOptions::manager("kube-apiserver");
    let make = |gvr: &Gvr, namespace: &str, value: Value| {
        let object = Object::from_value(value).map_err(Status::internal)?;
        match registry.create(gvr, namespace, object, &options) {
            Err(status) if !status.is_already_exists() => Err(status),
            _ => Ok(()),
        }
    };
    for name in SYSTEM {
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        make(&Gvr::new("", "v1", "namespaces"), "", object)?;
    }
    let service = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "kubernetes", "labels": {"component": "apiserver", "provider": "kubernetes"}},
        "spec": {"clusterIP": crate::strategy::API_SERVICE_IP, "ports": [{"name": "https", "port": 443, "targetPort": 6443, "protocol": "TCP"}]},
    });
    make(&Gvr::new("", "v1", "services"), "default", service)?;
    for (name, value, description) in PRIORITIES {
        let class = json!({
            "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name},
            "value": value, "description": description, "preemptionPolicy": "PreemptLowerPriority",
        });
        make(
            &Gvr::new("scheduling.k8s.io", "v1", "priorityclasses"),
            "",
            class,
        )?;
    }
    Ok(())
}

/// Deletes the remaining objects of a namespace that is being deleted, and finally the namespace.
/// Returns whether it is done.
pub fn empty(registry: &Registry, name: &str) -> bool {
    let gvr = Gvr::new("", "v1", "namespaces");
    let Ok(resource) = registry.resource(&gvr) else {
        return true;
    };
    match registry.get_stored(&resource, "", name) {
        Ok(namespace) if namespace.meta.deleting => {}
        _ => return true,
    }
    let catalog = registry.catalog();
    let tables: Vec<String> = registry
        .read()
        .tables()
        .map(|(table, _)| table.clone())
        .collect();
    let mut left = Left::default();
    for table in tables {
        let Some(kind) = catalog.stored_in(&table).filter(|r| r.namespaced) else {
            continue;
        };
        let (_, objects) = registry.list_stored(kind, Some(name));
        for object in objects.iter().filter(|o| !o.meta.deleting) {
            delete(registry, kind, &object.meta, Some(Propagation::Background));
        }
        left.count(kind, &registry.list_stored(kind, Some(name)).1);
    }
    let time = crate::base::timestamp(registry.now());
    modify(registry, &resource, ("", name), Part::Status, |object| {
        left.tell(object, &time)
    });
    if !left.resources.is_empty() {
        return false;
    }
    modify(registry, &resource, ("", name), Part::Finalize, |object| {
        map_entry(&mut object.0, "spec").remove("finalizers");
        true
    });
    registry.get_stored(&resource, "", name).is_err()
}

/// The reasons why a namespace still exists: objects by resource, and their finalizers.
#[derive(Default)]
struct Left {
    resources: BTreeMap<String, usize>,
    finalizers: BTreeMap<String, usize>,
}

impl Left {
    fn count(&mut self, kind: &Resource, objects: &[Arc<Stored>]) {
        if objects.is_empty() {
            return;
        }
        *self
            .resources
            .entry(format!("{}.{}", kind.resource, kind.group))
            .or_default() += objects.len();
        for finalizer in objects.iter().flat_map(|o| o.object().finalizers()) {
            *self.finalizers.entry(finalizer).or_default() += 1;
        }
    }

    /// Sets the namespace's conditions; returns whether they have changed.
    fn tell(&self, namespace: &mut Object, now: &str) -> bool {
        let list = |counts: &BTreeMap<String, usize>, verb: &str| {
            counts
                .iter()
                .map(|(what, n)| format!("{what} {verb} {n} resource instances"))
                .collect::<Vec<_>>()
                .join(", ")
        };
        let (resources, finalizers) = (list(&self.resources, "has"), list(&self.finalizers, "in"));
        let remaining = format!("Some resources are remaining: {resources}");
        let held = format!("Some content in the namespace has finalizers remaining: {finalizers}");
        let conditions = [
            (
                "NamespaceDeletionDiscoveryFailure",
                false,
                "ResourcesDiscovered",
                "All resources successfully discovered",
            ),
            (
                "NamespaceDeletionGroupVersionParsingFailure",
                false,
                "ParsedGroupVersions",
                "All legacy kube types successfully parsed",
            ),
            (
                "NamespaceDeletionContentFailure",
                false,
                "ContentDeleted",
                "All content successfully deleted, may be waiting on finalization",
            ),
            match resources.is_empty() {
                true => (
                    "NamespaceContentRemaining",
                    false,
                    "ContentRemoved",
                    "All content successfully removed",
                ),
                false => (
                    "NamespaceContentRemaining",
                    true,
                    "SomeResourcesRemain",
                    remaining.as_str(),
                ),
            },
            match finalizers.is_empty() {
                true => (
                    "NamespaceFinalizersRemaining",
                    false,
                    "ContentHasNoFinalizers",
                    "All content-preserving finalizers finished",
                ),
                false => (
                    "NamespaceFinalizersRemaining",
                    true,
                    "SomeFinalizersRemain",
                    held.as_str(),
                ),
            },
        ];
        let before = namespace
            .pointer("/status/conditions")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        let of = |(kind, status, reason, message): &(&str, bool, &str, &str)| {
            let status = if *status { "True" } else { "False" };
            let old = before
                .iter()
                .find(|c| c["type"] == *kind && c["status"] == status);
            let since = old.map_or(now, |o| o["lastTransitionTime"].as_str().unwrap_or(now));
            json!({"type": kind, "status": status, "lastTransitionTime": since, "reason": reason, "message": message})
        };
        let conditions: Vec<Value> = conditions.iter().map(of).collect();
        let changed = conditions != before;
        map_entry(&mut namespace.0, "status").insert("conditions".into(), conditions.into());
        changed
    }
}
