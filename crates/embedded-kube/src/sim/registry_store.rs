//! The API server's registry as a [`SimStore`].

use super::{
    kind::Kind,
    store::{Change, ChangeFeed, DeleteRequest, Propagation, SimStore, StoreError},
};
use crate::base::{DeleteOptions, Part, Sender, UserInfo, WriteOptions};
use crate::registry::{self, Event, EventType, Registry};
use crate::status::Status;
use std::sync::Arc;
use tiphys_apimachinery::{Gvr, Object};
use tokio::sync::mpsc::UnboundedReceiver;

/// The simulated controllers' access to the registry.
pub struct RegistryStore {
    registry: Registry,
    options: WriteOptions,
}

impl RegistryStore {
    pub fn new(registry: Registry) -> Self {
        let user = Arc::new(UserInfo::new(
            "system:kube-controller-manager",
            &["system:authenticated"],
        ));
        let sender = Sender {
            user,
            ..Sender::default()
        };
        Self {
            registry,
            options: WriteOptions {
                sender,
                ..WriteOptions::manager("kube-controller-manager")
            },
        }
    }

    /// The registry's revision: it does not change without writes.
    #[cfg(test)]
    pub fn revision(&self) -> u64 {
        self.registry.revision()
    }
}

fn gvr(kind: Kind) -> Gvr {
    let (group, version, _, resource) = kind.names();
    Gvr::new(group, version, resource)
}

fn resource_of(object: &Object) -> Result<Gvr, StoreError> {
    Kind::of(object)
        .map(gvr)
        .ok_or_else(|| StoreError::Refused(format!("{} is not a simulated kind", object.kind())))
}

impl From<Status> for StoreError {
    fn from(status: Status) -> Self {
        let terminating = status
            .details
            .as_ref()
            .is_some_and(|d| d.causes.iter().any(|c| c.reason == "NamespaceTerminating"));
        let message = status.message;
        match status.reason {
            _ if terminating => Self::NamespaceTerminating(message),
            "NotFound" => Self::NotFound(message),
            "Conflict" => Self::Conflict(message),
            "AlreadyExists" => Self::AlreadyExists(message),
            _ if status.code >= 500 => Self::Unavailable(message),
            _ => Self::Refused(message),
        }
    }
}

impl SimStore for RegistryStore {
    type Feed = RegistryFeed;

    fn get(
        &self,
        kind: Kind,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Arc<Object>>, StoreError> {
        match self.registry.get(&gvr(kind), namespace, name) {
            Ok(object) => Ok(Some(object)),
            Err(status) if status.is_not_found() => Ok(None),
            Err(status) => Err(status.into()),
        }
    }

    fn list(&self, kind: Kind) -> Result<Vec<Arc<Object>>, StoreError> {
        Ok(self.registry.list(&gvr(kind), None)?)
    }

    fn count(&self, group: &str, resource: &str, namespace: &str) -> usize {
        let table = format!("{group}/{resource}");
        let catalog = self.registry.catalog();
        catalog.stored_in(&table).map_or(0, |kind| {
            self.registry.list_stored(kind, Some(namespace)).1.len()
        })
    }

    fn create(&self, object: Object) -> Result<Arc<Object>, StoreError> {
        let namespace = object.namespace().to_owned();
        Ok(self
            .registry
            .create(&resource_of(&object)?, &namespace, object, &self.options)?
            .object)
    }

    fn update(&self, object: Object) -> Result<Arc<Object>, StoreError> {
        let namespace = object.namespace().to_owned();
        let resource = resource_of(&object)?;
        // The scheduler assigns a node through the binding, because an update cannot change it.
        let placed = object.kind() == "Pod" && !object.str_at("/spec/nodeName").is_empty();
        let binds = placed
            && self
                .registry
                .get(&resource, &namespace, object.name())?
                .str_at("/spec/nodeName")
                .is_empty();
        let part = if binds { Part::Binding } else { Part::Main };
        Ok(self
            .registry
            .update_part(&resource, &namespace, object, part, &self.options)?
            .object)
    }

    fn update_status(&self, object: Object) -> Result<Arc<Object>, StoreError> {
        let namespace = object.namespace().to_owned();
        Ok(self
            .registry
            .update_status(&resource_of(&object)?, &namespace, object, &self.options)?
            .object)
    }

    fn delete(
        &self,
        kind: Kind,
        namespace: &str,
        name: &str,
        request: DeleteRequest,
    ) -> Result<Option<Arc<Object>>, StoreError> {
        let propagation = match request.propagation {
            Propagation::Background => registry::Propagation::Background,
            Propagation::Foreground => registry::Propagation::Foreground,
            Propagation::Orphan => registry::Propagation::Orphan,
        };
        let options = DeleteOptions {
            propagation: Some(propagation),
            grace_period_seconds: request.grace_seconds,
            uid: request.uid,
            sender: self.options.sender.clone(),
            ..DeleteOptions::default()
        };
        let deleted = self
            .registry
            .delete(&gvr(kind), namespace, name, &options)?;
        Ok((!deleted.removed).then_some(deleted.object))
    }

    fn feed(&self) -> RegistryFeed {
        RegistryFeed {
            events: self.registry.subscribe(),
        }
    }
}

/// The registry's changes of the simulated kinds.
pub struct RegistryFeed {
    events: UnboundedReceiver<Event>,
}

fn change(event: Event) -> Option<Change> {
    // Most objects of a GitOps cluster are of kinds and names that are not simulated: only their
    // number matters.
    let simulated = Kind::of_names(&event.resource.group, &event.resource.kind)
        .is_some_and(|kind| kind.wants(event.object.name()));
    match event.kind {
        EventType::Modified if !simulated => None,
        _ if !simulated => {
            (event.resource.namespaced && event.resource.kind != "Event").then(|| Change::Other {
                namespace: event.object.namespace().to_owned(),
            })
        }
        EventType::Added | EventType::Modified => Some(Change::Applied(event.object)),
        EventType::Deleted => Some(Change::Deleted(event.object)),
    }
}

impl ChangeFeed for RegistryFeed {
    fn try_next(&mut self) -> Option<Change> {
        while let Ok(event) = self.events.try_recv() {
            if let Some(change) = change(event) {
                return Some(change);
            }
        }
        None
    }

    async fn next(&mut self) -> Option<Change> {
        loop {
            if let Some(change) = change(self.events.recv().await?) {
                return Some(change);
            }
        }
    }
}
