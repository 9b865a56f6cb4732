//! Takes the watch of one collection into the store.
//!
//! Main type: [`Feed`]. States that the store already has, such as those of our own writes, are
//! dropped here.

use super::{
    lean::Raw,
    record::{NamespacedName, Readable, Record},
    store::Shared,
};
use crate::{
    discovery::Kind,
    error::Error,
    watch::{EventKind, Sink},
};
use serde_json::value::RawValue;
use std::{
    collections::HashSet,
    sync::{Arc, PoisonError, Weak},
};

/// What the watch of one collection shares with the store.
pub(super) struct Feed<T> {
    pub shared: Weak<Shared<T>>,
    /// Empty: all.
    pub namespace: String,
    pub listed: HashSet<NamespacedName>,
    pub done: bool,
    /// This feed is the only one, so its position is the store's.
    pub whole: bool,
    pub generation: u64,
}

/// `None`: it does not have the form of a server's object.
fn read<'a>(kind: &Kind, raw: &'a RawValue) -> Option<Raw<'a>> {
    let overrides = |error: &_| tracing::warn!(kind = %kind.gvk, %error, "a record was left out: it cannot be read");
    Raw::read(raw.get()).inspect_err(overrides).ok()
}

impl<T: Readable> Sink for Feed<T> {
    fn list_begin(&mut self) {
        self.listed.clear();
    }

    fn page(&mut self, items: &[&RawValue]) {
        let Some(shared) = self.shared.upgrade() else {
            return;
        };
        for raw in items.iter().filter_map(|raw| read(&shared.kind, raw)) {
            let record = Record::new(raw, &shared.kind);
            self.listed.insert(record.key());
            shared.take(Arc::new(record), false);
        }
    }

    fn list_done(&mut self, resource_version: &str) {
        let Some(shared) = self.shared.upgrade() else {
            return;
        };
        let version = resource_version.parse().unwrap_or(0);
        let gone: Vec<NamespacedName> = {
            let records = shared
                .records
                .read()
                .unwrap_or_else(PoisonError::into_inner);
            let here = |k: &&NamespacedName| {
                (self.namespace.is_empty() || k.0 == self.namespace) && !self.listed.contains(*k)
            };
            records.all.keys().filter(here).cloned().collect()
        };
        gone.iter()
            .for_each(|key| shared.remove(key, None, version));
        // No watch will report what the list contained.
        shared
            .records
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .answered
            .retain(|answered| *answered > version);
        self.position(resource_version);
        shared.state.send_modify(|s| {
            if s.generation == self.generation {
                s.pending -= usize::from(!self.done);
                s.error = None;
            }
        });
        self.done = true;
    }

    fn event(&mut self, kind: EventKind, object: &RawValue) {
        let Some(shared) = self.shared.upgrade() else {
            return;
        };
        let Some(raw) = read(&shared.kind, object) else {
            return;
        };
        let (key, version) = (raw.key(), raw.version());
        let record = Record::new(raw, &shared.kind).after(shared.get(&key).as_deref());
        match kind {
            EventKind::Deleted => shared.remove(&key, Some(record), version),
            EventKind::Added | EventKind::Modified => shared.take(Arc::new(record), false),
        }
    }

    /// Half of the events are echoes of writes whose responses were already stored.
    fn knows(&mut self, resource_version: &str) -> bool {
        let (Some(shared), Ok(version)) = (self.shared.upgrade(), resource_version.parse()) else {
            return false;
        };
        let mut records = shared
            .records
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        records.answered.remove(&version)
    }

    fn position(&mut self, resource_version: &str) {
        let (Some(shared), Ok(version)) = (self.shared.upgrade(), resource_version.parse::<u64>())
        else {
            return;
        };
        // The watch resumes where it was.
        shared.state.send_if_modified(|s| {
            s.generation == self.generation && self.whole && self.done && s.error.take().is_some()
        });
        if self.whole && shared.state.borrow().generation == self.generation {
            let mut records = shared
                .records
                .write()
                .unwrap_or_else(PoisonError::into_inner);
            records.position = records.position.max(version);
        }
        // A watch that broke resumes without a new list.
        shared.state.send_if_modified(|s| {
            s.generation == self.generation && s.pending == 0 && s.error.take().is_some()
        });
    }

    fn failed(&mut self, error: &Error) {
        let Some(shared) = self.shared.upgrade() else {
            return;
        };
        tracing::warn!(kind = %shared.kind.gvk, %error, "cannot follow these records; trying again");
        shared.state.send_modify(|s| {
            if s.generation == self.generation {
                s.error = Some(error.clone());
            }
        });
    }
}
