//! Delete: either immediately, or by marking the object and leaving the removal to finalizers,
//! dependents and grace periods.

use super::{Registry, meta};
use crate::admission::{Answers, Objects, Operation, Request};
use crate::base::Stored;
use crate::base::options::{DeleteOptions, Deleted, Propagation};
use crate::catalog::Resource;
use crate::status::Status;
use crate::{admission, convert, validation};
use jiff::SignedDuration;
use std::collections::BTreeSet;
use std::sync::Arc;
use tiphys_apimachinery::{Gvr, Object};

/// The finalizer of a foreground delete, which waits for the dependents.
pub const FOREGROUND: &str = "foregroundDeletion";
/// The finalizer of a delete that orphans the dependents.
pub const ORPHAN: &str = "orphan";

impl Registry {
    /// A pod that runs on a node is only marked; its (simulated) kubelet deletes it again with a
    /// grace period of 0.
    pub fn delete(
        &self,
        gvr: &Gvr,
        namespace: &str,
        name: &str,
        options: &DeleteOptions,
    ) -> Result<Deleted, Status> {
        let resource = self.resource(gvr)?;
        loop {
            let current = self.get_stored(&resource, namespace, name)?;
            let old = current.object();
            if !options.of_many && validation::is_system_class(&resource, name) {
                let why = "this is a system priority class and cannot be deleted";
                return Err(Status::forbidden(
                    &resource.group,
                    &resource.resource,
                    name,
                    why,
                ));
            }
            check_preconditions(&resource, &old, options)?;
            let warnings = self.admit_delete(&resource, &old, options)?;
            let is_namespace = resource.is("", "namespaces");
            if is_namespace && old.deletion_timestamp().is_some() && meta::holds_content(&old) {
                return Ok(Deleted {
                    object: old,
                    stored: current,
                    revision: 0,
                    removed: false,
                    hollow: false,
                    warnings,
                });
            }
            let mut new = (*old).clone();
            mark(self, &resource, &mut new, options);
            // The first delete of a namespace only marks it, even if nothing holds it back.
            let only_marked = is_namespace && old.deletion_timestamp().is_none();
            let removed = !only_marked && meta::is_finished(&resource, &new);
            // Marking is a write in the requested version. It counts as a write even for an object
            // that is already marked, if the current schemas change the object.
            let mut bare = None;
            if !removed && resource.custom.is_some() {
                self.from_storage(&resource, &mut new)?;
                bare = self.as_stored(&resource, &mut new)?;
            }
            // Looked up before taking the lock, so that nothing waits for the catalog while the
            // objects are locked.
            let storage = self.storage_resource(&resource);
            let mut state = self.lock();
            if !state
                .get(&resource.table, namespace, name)
                .is_some_and(|now| Arc::ptr_eq(now, &current))
            {
                continue;
            }
            if options.dry_run && (!removed || is_graceful(&resource)) {
                drop(state);
                let (object, revision) = (Arc::new(new), current.meta.revision);
                let stored = Arc::new(Stored::new(&object, revision));
                return Ok(Deleted {
                    object,
                    stored,
                    revision: 0,
                    removed,
                    hollow: false,
                    warnings,
                });
            }
            if options.dry_run && !old.finalizers().is_empty() {
                drop(state);
                return Ok(hollow(&resource, warnings));
            }
            if options.dry_run || (!removed && new == *old && current.is_as_bare(bare.as_ref())) {
                return Ok(Deleted {
                    object: old,
                    stored: current,
                    revision: 0,
                    removed,
                    hollow: false,
                    warnings,
                });
            }
            let (object, stored) = if removed {
                // An object that is removed immediately is returned in its last state.
                let last = if is_graceful(&resource) {
                    new
                } else {
                    (*old).clone()
                };
                // An object of a kind with grace periods is marked before it is removed, even with
                // a grace period of zero.
                let last = if is_graceful(&resource) && last != *old {
                    (*state.put(&storage, last).0).clone()
                } else {
                    last
                };
                state.remove(&storage, last)
            } else {
                state.put_completed(&storage, new, bare)
            };
            drop(state);
            self.after_write(&storage, &object, removed);
            return Ok(Deleted {
                object,
                revision: stored.meta.revision,
                stored,
                removed,
                hollow: false,
                warnings,
            });
        }
    }
}

impl Registry {
    /// Runs admission for a delete. It is not run a second time for deletes by this server's own
    /// garbage collector.
    fn admit_delete(
        &self,
        resource: &Arc<Resource>,
        old: &Object,
        options: &DeleteOptions,
    ) -> Result<Vec<String>, Status> {
        let mut seen = old.clone();
        self.from_storage(resource, &mut seen)?;
        let at = (
            old.namespace(),
            if options.of_many { "" } else { old.name() },
        );
        let request = Request::new(
            self,
            resource,
            Operation::Delete,
            at,
            (options.dry_run, &options.sender),
        );
        let mut answers = Answers::default();
        admission::admit_delete(&request, &seen, &mut answers)?;
        admission::check(
            &request,
            Objects {
                new: None,
                old: Some(&seen),
            },
            answers,
        )
    }
}

/// Checks the preconditions of a delete.
pub fn check_preconditions(
    resource: &Resource,
    object: &Object,
    options: &DeleteOptions,
) -> Result<(), Status> {
    // Namespaces and definitions check the preconditions themselves, with their own messages.
    let own_way = resource.is("", "namespaces") || resource.table == crate::catalog::CRD_TABLE;
    let refused = |field: &str, asked: &str, found: &str, happened: &str| {
        Err(if own_way {
            let why = format!(
                "Precondition failed: {field} in precondition: {asked}, {field} in object meta: {found}"
            );
            Status::conflict(&resource.group, &resource.resource, object.name(), &why)
        } else {
            let why = format!(
                "the {field} in the precondition ({asked}) does not match the {field} in record ({found}). The object might have been {happened}"
            );
            // Events are reported as core group, whichever group the request uses.
            let group = if resource.table == "/events" {
                ""
            } else {
                &resource.group
            };
            Status::conflict(group, &resource.kind, object.name(), &why)
        })
    };
    if let Some(uid) = options.uid.as_ref().filter(|uid| *uid != object.uid()) {
        return refused("UID", uid, object.uid(), "deleted and then recreated");
    }
    if let Some(version) = options
        .resource_version
        .as_ref()
        .filter(|v| *v != object.resource_version())
    {
        return refused(
            "ResourceVersion",
            version,
            object.resource_version(),
            "modified",
        );
    }
    Ok(())
}

/// The result of a dry run that would remove the last finalizers: the real server does not read the
/// object again, so that the answer is empty.
fn hollow(resource: &Resource, warnings: Vec<String>) -> Deleted {
    let object = Arc::new(convert::hollow(resource));
    Deleted {
        stored: Arc::new(Stored::new(&object, 0)),
        object,
        revision: 0,
        removed: true,
        hollow: true,
        warnings,
    }
}

fn is_graceful(resource: &Resource) -> bool {
    resource.is("", "pods")
}

/// Sets deletion time, grace period and the finalizer that the propagation asks for.
fn mark(registry: &Registry, resource: &Resource, object: &mut Object, options: &DeleteOptions) {
    if resource.table == crate::catalog::CRD_TABLE && object.deletion_timestamp().is_none() {
        let now = crate::base::timestamp(registry.now());
        object
            .metadata_mut()
            .insert("deletionTimestamp".into(), now.clone().into());
        crate::strategy::mark_definition_deleted(object, &now);
        return;
    }
    if is_graceful(resource) && is_pending(object, options) {
        return;
    }
    // Nothing depends on events, so there are no dependents to wait for.
    let propagation = if resource.table == "/events" {
        Some(Propagation::Background)
    } else {
        options.propagation
    };
    let before = object.finalizers();
    let mut finalizers: Vec<String> = before
        .iter()
        .filter(|f| !matches!(f.as_str(), FOREGROUND | ORPHAN))
        .cloned()
        .collect();
    match propagation.unwrap_or_else(|| default_propagation(resource, &before)) {
        Propagation::Foreground => finalizers.push(FOREGROUND.to_owned()),
        Propagation::Orphan => finalizers.push(ORPHAN.to_owned()),
        Propagation::Background => {}
    }
    // If the set is the same, the order stays.
    let set = |list: &[String]| list.iter().cloned().collect::<BTreeSet<_>>();
    if set(&finalizers) != set(&before) {
        object.set_finalizers(finalizers);
    }
    mark_time(registry, resource, object, options);
}

/// Whether the object is already being deleted, no later than requested, so that another delete
/// would not change it.
fn is_pending(object: &Object, options: &DeleteOptions) -> bool {
    let before = object
        .metadata("deletionGracePeriodSeconds")
        .and_then(serde_json::Value::as_i64);
    let later = |before| {
        before > 0
            && options
                .grace_period_seconds
                .is_none_or(|seconds| positive(seconds) >= before)
    };
    object.deletion_timestamp().is_some() && before.is_some_and(later)
}

/// A negative grace period means one second.
fn positive(seconds: i64) -> i64 {
    if seconds < 0 { 1 } else { seconds }
}

fn mark_time(
    registry: &Registry,
    resource: &Resource,
    object: &mut Object,
    options: &DeleteOptions,
) {
    let grace = grace_seconds(resource, object, options);
    let already = object.deletion_timestamp().is_some();
    let before = object
        .metadata("deletionGracePeriodSeconds")
        .and_then(serde_json::Value::as_i64)
        .unwrap_or(0);
    if !already || grace < before {
        let until = registry
            .now()
            .saturating_add(SignedDuration::from_secs(grace))
            .unwrap_or(jiff::Timestamp::MAX);
        let until = crate::base::timestamp(until);
        let generation = object.generation();
        // The object may have been created with a deletion time; only kinds with graceful deletion
        // replace it.
        let keeps = !is_graceful(resource)
            && object
                .deletion_timestamp()
                .is_some_and(|time| time <= until.as_str());
        let metadata = object.metadata_mut();
        if !keeps {
            metadata.insert("deletionTimestamp".into(), until.into());
        }
        if !resource.is("", "namespaces") {
            metadata.insert("deletionGracePeriodSeconds".into(), grace.into());
        }
        if !already && generation > 0 && !resource.is("", "namespaces") {
            metadata.insert("generation".into(), generation.wrapping_add(1).into());
        }
    }
    if already && !is_graceful(resource) {
        // From the second delete on, the grace period is zero for every kind, however the object
        // was marked first.
        object
            .metadata_mut()
            .insert("deletionGracePeriodSeconds".into(), 0.into());
    } else if resource.is("", "namespaces") {
        tiphys_apimachinery::object::map_entry(&mut object.0, "status")
            .insert("phase".into(), "Terminating".into());
    }
}

/// Jobs and replication controllers orphan their pods by default, for compatibility with old
/// clients.
fn default_propagation(resource: &Resource, finalizers: &[String]) -> Propagation {
    match finalizers
        .iter()
        .find(|f| matches!(f.as_str(), FOREGROUND | ORPHAN))
    {
        Some(first) if first == FOREGROUND => Propagation::Foreground,
        Some(_) => Propagation::Orphan,
        None if resource.is("batch", "jobs") || resource.is("", "replicationcontrollers") => {
            Propagation::Orphan
        }
        None => Propagation::Background,
    }
}

/// Only pods on a node get a grace period.
fn grace_seconds(resource: &Resource, object: &Object, options: &DeleteOptions) -> i64 {
    let ended = matches!(object.str_at("/status/phase"), "Failed" | "Succeeded");
    if !is_graceful(resource) || object.str_at("/spec/nodeName").is_empty() || ended {
        return 0;
    }
    let asked = options
        .grace_period_seconds
        .or_else(|| object.i64_at("/spec/terminationGracePeriodSeconds"));
    positive(asked.unwrap_or(30))
}
