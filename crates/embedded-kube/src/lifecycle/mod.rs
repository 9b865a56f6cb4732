//! The work of a cluster after a delete: garbage collection, emptying namespaces, removing custom
//! resources.
//!
//! Main function: [`run`], a single task that follows every change. It uses the registry like any
//! client.

mod definitions;
mod garbage;
mod namespaces;
mod storage;

use crate::base::{DeleteOptions, Part, Propagation, WriteOptions};
use crate::catalog::{CRD_TABLE, Resource};
use crate::quiet::Asked;
use crate::registry::{Event, EventType, Registry};
use crate::status::Status;
use std::collections::HashSet;
use std::sync::Arc;
use tiphys_apimachinery::Object;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio_util::sync::CancellationToken;

pub use namespaces::make_system_namespaces;

/// The deletions in progress.
struct Lifecycle {
    registry: Registry,
    /// Namespaces that are being emptied.
    namespaces: HashSet<String>,
    /// Tables whose definition is being deleted.
    definitions: HashSet<String>,
    /// Those in which something has changed since they were last processed.
    changed_namespaces: HashSet<String>,
    changed_definitions: HashSet<String>,
}

/// Processes everything once, then every change, until `stop`.
pub async fn run(
    registry: Registry,
    mut changes: UnboundedReceiver<Event>,
    mut asked: Asked,
    stop: CancellationToken,
) {
    let mut lifecycle = Lifecycle {
        registry,
        namespaces: HashSet::new(),
        definitions: HashSet::new(),
        changed_namespaces: HashSet::new(),
        changed_definitions: HashSet::new(),
    };
    lifecycle.look_at_everything();
    loop {
        // The cost of processing a namespace depends on its size: it is done once for all pending
        // changes, not once for each.
        if changes.is_empty() && lifecycle.look_at_changed() {
            continue;
        }
        if changes.is_empty() {
            asked.answer(None);
        }
        let event = tokio::select! {
            () = stop.cancelled() => return,
            () = asked.next() => continue,
            event = changes.recv() => match event {
                Some(event) => event,
                None => return,
            },
        };
        lifecycle.notice(&event);
    }
}

/// Only what an API server does without a controller manager: deletes the objects of definitions
/// that are being deleted.
pub async fn run_definitions(
    registry: Registry,
    mut changes: UnboundedReceiver<Event>,
    stop: CancellationToken,
) {
    let mut waiting: HashSet<String> = HashSet::new();
    loop {
        let event = tokio::select! {
            () = stop.cancelled() => return,
            event = changes.recv() => match event {
                Some(event) => event,
                None => return,
            },
        };
        let table = match event.resource.table.as_str() {
            CRD_TABLE
                if event.kind != EventType::Deleted
                    && event.object.deletion_timestamp().is_some() =>
            {
                definitions::table(&event.object)
            }
            table if event.kind == EventType::Deleted && waiting.contains(table) => {
                table.to_owned()
            }
            _ => continue,
        };
        if definitions::empty(&registry, &table) {
            waiting.remove(&table);
        } else {
            waiting.insert(table);
        }
    }
}

impl Lifecycle {
    /// After a restart: finds objects that were marked or lost their owner while the server was
    /// down.
    fn look_at_everything(&mut self) {
        let all: Vec<(String, Arc<Object>)> = {
            let state = self.registry.read();
            let interesting = |m: &crate::base::Meta| m.deleting || !m.owners.is_empty();
            let of = |(table, t): (&String, &crate::registry::state::Table)| {
                let found = t
                    .items
                    .values()
                    .filter(|s| interesting(&s.meta))
                    .map(|s| (table.clone(), s.object()));
                found.collect::<Vec<_>>()
            };
            state.tables().flat_map(of).collect()
        };
        for (table, object) in all {
            if let Some(resource) = self.registry.catalog().stored_in(&table).cloned() {
                self.notice(&Event {
                    kind: EventType::Added,
                    resource,
                    object,
                    revision: 0,
                });
            }
        }
    }

    fn notice(&mut self, event: &Event) {
        let (resource, object) = (&event.resource, &event.object);
        if event.kind == EventType::Deleted {
            garbage::owner_is_gone(&self.registry, object.uid());
            for owner in object.owner_references() {
                garbage::check_foreground(&self.registry, &owner.uid);
            }
            if self.namespaces.contains(object.namespace()) {
                self.changed_namespaces
                    .insert(object.namespace().to_owned());
            }
            if self.definitions.contains(&resource.table) {
                self.changed_definitions.insert(resource.table.clone());
            }
            if resource.table == "/namespaces" {
                self.namespaces.remove(object.name());
            }
            if resource.table == "/pods" {
                storage::check_claims(&self.registry, object.namespace());
            }
            return;
        }
        if object.metadata("ownerReferences").is_some() && event.kind == EventType::Added {
            garbage::check_owners(&self.registry, object.uid());
        }
        if resource.table == "/pods" {
            garbage::release_tracked(&self.registry, resource, object);
        }
        if object.deletion_timestamp().is_none() {
            return;
        }
        garbage::check_orphaning(&self.registry, object.uid());
        garbage::check_foreground(&self.registry, object.uid());
        match resource.table.as_str() {
            "/persistentvolumeclaims" => storage::check_claims(&self.registry, object.namespace()),
            "/persistentvolumes" => storage::check_volume(&self.registry, object),
            _ => {}
        }
        if resource.table == "/namespaces" {
            self.namespaces.insert(object.name().to_owned());
            self.changed_namespaces.insert(object.name().to_owned());
        } else if resource.table == CRD_TABLE {
            let table = definitions::table(object);
            self.definitions.insert(table.clone());
            self.changed_definitions.insert(table);
        }
    }

    /// Continues emptying namespaces and definitions; returns whether there were any.
    fn look_at_changed(&mut self) -> bool {
        let (namespaces, tables) = (
            std::mem::take(&mut self.changed_namespaces),
            std::mem::take(&mut self.changed_definitions),
        );
        for name in &namespaces {
            if namespaces::empty(&self.registry, name) {
                self.namespaces.remove(name);
            }
        }
        for table in &tables {
            if definitions::empty(&self.registry, table) {
                self.definitions.remove(table);
            }
        }
        !namespaces.is_empty() || !tables.is_empty()
    }
}

/// Deletes an object that is not marked yet; it may already be gone.
fn delete(
    registry: &Registry,
    resource: &Resource,
    object: &crate::base::Meta,
    propagation: Option<Propagation>,
) {
    let options = DeleteOptions {
        uid: Some(object.uid.clone()),
        propagation,
        ..DeleteOptions::default()
    };
    let storage =
        tiphys_apimachinery::Gvr::new(&resource.group, &resource.version, &resource.resource);
    match registry.delete(&storage, &object.namespace, &object.name, &options) {
        Ok(_) => {}
        Err(status) if status.is_not_found() || status.is_conflict() => {}
        Err(status) => {
            tracing::warn!(%status, resource = resource.resource, name = object.name, "cannot delete an object")
        }
    }
}

/// Changes an object, retrying after concurrent writes. `change` returns whether there is anything
/// to write.
fn modify(
    registry: &Registry,
    resource: &Resource,
    at: (&str, &str),
    part: Part,
    change: impl Fn(&mut Object) -> bool,
) {
    let options = WriteOptions::manager("kube-controller-manager");
    let (namespace, name) = at;
    let attempt = || -> Result<(), Status> {
        let live = registry.get(&resource.gvr(), namespace, name)?;
        let mut object = (*live).clone();
        if change(&mut object) {
            registry.update_part(&resource.gvr(), namespace, object, part, &options)?;
        }
        Ok(())
    };
    for _ in 0..100 {
        match attempt() {
            Ok(()) => return,
            Err(status) if status.is_not_found() => return,
            Err(status) if status.is_conflict() => {}
            Err(status) => {
                tracing::warn!(%status, resource = resource.resource, name, "cannot change an object");
                return;
            }
        }
    }
}
