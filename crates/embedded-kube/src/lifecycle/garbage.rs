//! Garbage collection by owner references: background, foreground and orphan. Functions take uids
//! because names can be reused.

use super::{delete, modify};
use crate::base::{Meta, Part, Propagation, Stored, WriteOptions};
use crate::catalog::Resource;
use crate::registry::{FOREGROUND, ORPHAN, Registry};
use serde_json::{Value, json};
use std::sync::Arc;
use tiphys_apimachinery::object::OwnerReference;
use tiphys_apimachinery::{Gvk, Gvr, Object};

fn find(registry: &Registry, uid: &str) -> Option<(Arc<Resource>, Arc<Stored>)> {
    let (table, stored) = {
        let state = registry.read();
        let (table, stored) = state.by_uid(uid)?;
        (table.to_owned(), stored.clone())
    };
    Some((registry.catalog().stored_in(&table)?.clone(), stored))
}

fn dependents(registry: &Registry, uid: &str) -> Vec<(Arc<Resource>, Arc<Stored>)> {
    let found = registry.read().owned_by(uid);
    let catalog = registry.catalog();
    found
        .into_iter()
        .filter_map(|(table, stored)| Some((catalog.stored_in(&table)?.clone(), stored)))
        .collect()
}

/// Handles the removal of an object: its dependents are deleted too, unless they have another
/// owner.
pub fn owner_is_gone(registry: &Registry, uid: &str) {
    for (_, dependent) in dependents(registry, uid) {
        check_owners(registry, &dependent.meta.uid);
    }
}

/// The state of the owner in an owner reference.
enum Owner {
    Missing,
    /// Deleted, and waiting for its dependents.
    Going,
    Solid,
}

fn judge(
    registry: &Registry,
    resource: &Resource,
    object: &Object,
    owner: &OwnerReference,
) -> Owner {
    let kind = registry
        .catalog()
        .kind(&Gvk::from_api_version(&owner.api_version, &owner.kind))
        .cloned();
    // For an unknown kind, or a namespaced owner of a cluster-scoped object, it is impossible to
    // say whether the owner exists.
    let Some(kind) = kind else {
        return Owner::Solid;
    };
    match find(registry, &owner.uid) {
        Some((_, found)) if kind.namespaced && found.meta.namespace != object.namespace() => {
            report(registry, object, owner);
            if resource.namespaced {
                Owner::Missing
            } else {
                Owner::Solid
            }
        }
        Some((_, found)) if waits_for_dependents(&found) => Owner::Going,
        Some(_) => Owner::Solid,
        None if kind.namespaced && !resource.namespaced => Owner::Solid,
        None => Owner::Missing,
    }
}

/// Reports an owner in another namespace: an owner must be in the object's own namespace or
/// cluster-scoped.
fn report(registry: &Registry, object: &Object, owner: &OwnerReference) {
    let home = if object.namespace().is_empty() {
        "default"
    } else {
        object.namespace()
    };
    let (version, kind, name, uid) = (&owner.api_version, &owner.kind, &owner.name, &owner.uid);
    let identity = format!(
        "[{version}/{kind}, namespace: {}, name: {name}, uid: {uid}]",
        object.namespace()
    );
    let time = crate::base::timestamp(registry.now());
    let event = json!({
        "apiVersion": "v1", "kind": "Event", "metadata": {"generateName": format!("{}.", object.name()), "namespace": home},
        "involvedObject": {"apiVersion": object.api_version(), "kind": object.kind(), "namespace": object.namespace(), "name": object.name(), "uid": object.uid()},
        "type": "Warning", "reason": "OwnerRefInvalidNamespace",
        "message": format!("ownerRef {identity} does not exist in namespace \"{}\"", object.namespace()),
        "source": {"component": "garbage-collector-controller"}, "reportingComponent": "garbage-collector-controller",
        "reportingInstance": "", "firstTimestamp": time, "lastTimestamp": time, "count": 1,
    });
    let Ok(event) = Object::from_value(event) else {
        return;
    };
    // A failure to record the event is ignored.
    let _ = registry.create(
        &Gvr::new("", "v1", "events"),
        home,
        event,
        &WriteOptions::manager("kube-controller-manager"),
    );
}

/// Deletes an object if none of its owners exists; removes references to missing owners if another
/// one exists.
pub fn check_owners(registry: &Registry, uid: &str) {
    let Some((resource, stored)) = find(registry, uid) else {
        return;
    };
    let (mut missing, mut solid) = (Vec::new(), 0);
    let object = stored.object();
    for owner in object.owner_references() {
        match judge(registry, &resource, &object, &owner) {
            Owner::Missing => missing.push(owner.uid),
            Owner::Going => {}
            Owner::Solid => solid += 1,
        }
    }
    if missing.is_empty() {
        return;
    }
    if solid > 0 {
        let keep = |o: &Value| !missing.iter().any(|uid| o["uid"].as_str() == Some(uid));
        drop_references(registry, &resource, &stored.meta, &keep);
    } else if !stored.meta.deleting {
        delete(
            registry,
            &resource,
            &stored.meta,
            Some(Propagation::Background),
        );
    }
}

fn waits_for_dependents(owner: &Stored) -> bool {
    owner.meta.deleting && owner.object().finalizers().iter().any(|f| f == FOREGROUND)
}

fn drop_references(
    registry: &Registry,
    resource: &Resource,
    meta: &Meta,
    keep: &dyn Fn(&Value) -> bool,
) {
    modify(
        registry,
        resource,
        (&meta.namespace, &meta.name),
        Part::Main,
        |object| {
            let Some(Value::Array(list)) = object.metadata_mut().get_mut("ownerReferences") else {
                return false;
            };
            let before = list.len();
            list.retain(|o| keep(o));
            list.len() != before
        },
    );
}

fn remove_finalizer(registry: &Registry, resource: &Resource, meta: &Meta, name: &str) {
    modify(
        registry,
        resource,
        (&meta.namespace, &meta.name),
        Part::Main,
        |object: &mut Object| {
            let mut finalizers = object.finalizers();
            let before = finalizers.len();
            finalizers.retain(|f| f != name);
            let changed = finalizers.len() != before && object.uid() == meta.uid;
            object.set_finalizers(finalizers);
            changed
        },
    );
}

/// Pods of Jobs have a finalizer until the Job has counted them; a pod without its Job will never
/// be counted.
pub fn release_tracked(registry: &Registry, resource: &Resource, pod: &Object) {
    const TRACKING: &str = "batch.kubernetes.io/job-tracking";
    if !pod.finalizers().iter().any(|f| f == TRACKING) {
        return;
    }
    let has_job = pod
        .controller_of()
        .is_some_and(|c| c.kind != "Job" || find(registry, &c.uid).is_some());
    if !has_job {
        remove_finalizer(registry, resource, &Meta::of(pod, 0), TRACKING);
    }
}

/// A foreground delete: dependents are deleted first, then the object.
pub fn check_foreground(registry: &Registry, uid: &str) {
    let Some((resource, owner)) = find(registry, uid) else {
        return;
    };
    if !waits_for_dependents(&owner) {
        return;
    }
    let mut blocking = false;
    for (kind, dependent) in dependents(registry, uid) {
        let object = dependent.object();
        let references = object.owner_references();
        blocking |= references
            .iter()
            .any(|o| o.uid == uid && o.block_owner_deletion == Some(true));
        let others = references.iter().any(|o| {
            o.uid != uid && find(registry, &o.uid).is_some_and(|(_, s)| !waits_for_dependents(&s))
        });
        if others {
            drop_references(registry, &kind, &dependent.meta, &|o| {
                o["uid"].as_str() != Some(uid)
            });
        } else if !dependent.meta.deleting {
            let has_own = !dependents(registry, &dependent.meta.uid).is_empty();
            let propagation = if has_own {
                Propagation::Foreground
            } else {
                Propagation::Background
            };
            delete(registry, &kind, &dependent.meta, Some(propagation));
        }
    }
    // The object just deleted may have been the last one.
    let left = dependents(registry, uid).iter().any(|(_, d)| {
        d.object()
            .owner_references()
            .iter()
            .any(|o| o.uid == uid && o.block_owner_deletion == Some(true))
    });
    if !blocking || !left {
        remove_finalizer(registry, &resource, &owner.meta, FOREGROUND);
    }
}

/// An orphaning delete: the owner references of the dependents are removed, then the object.
pub fn check_orphaning(registry: &Registry, uid: &str) {
    let Some((resource, owner)) = find(registry, uid) else {
        return;
    };
    if !owner.meta.deleting || !owner.object().finalizers().iter().any(|f| f == ORPHAN) {
        return;
    }
    for (kind, dependent) in dependents(registry, uid) {
        drop_references(registry, &kind, &dependent.meta, &|o| {
            o["uid"].as_str() != Some(uid)
        });
    }
    remove_finalizer(registry, &resource, &owner.meta, ORPHAN);
}
