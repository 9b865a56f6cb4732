//! Takes the list and watch of one kind into the store.
//!
//! Main type: [`Feed`], the sink of one followed collection. Parsing happens before the lock is
//! taken.

use super::{
    Shared,
    parse::{self, Parsed},
    record::{KindId, Uid},
    store::{EventSource, StoreChange},
};
use crate::{
    discovery::Kind,
    error::Error,
    traffic::Histogram,
    watch::{EventKind, Sink},
};
use hashbrown::HashSet;
use serde_json::value::RawValue;
use std::sync::{Arc, Weak};
use tokio::time::Instant;

/// Objects added to the store per lock acquisition.
const BATCH: usize = 64;

/// Seconds; Argo CD's buckets, with additional ones below for faster processing.
const PROCESSING: &[f64] = &[
    0.000_01, 0.000_1, 0.001, 0.01, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0,
];

/// The namespaces that one watch of a kind covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    All,
    In(String),
    AllBut(Vec<String>),
}

impl Scope {
    pub fn has(&self, namespace: &str) -> bool {
        match self {
            Self::All => true,
            Self::In(own) => own == namespace,
            Self::AllBut(others) => !others.iter().any(|other| other == namespace),
        }
    }

    /// The namespace for the path of a collection; empty means every namespace.
    pub fn namespace(&self) -> &str {
        if let Self::In(namespace) = self {
            namespace
        } else {
            ""
        }
    }

    pub fn field_selector(&self) -> String {
        let Self::AllBut(others) = self else {
            return String::new();
        };
        others
            .iter()
            .map(|namespace| format!("metadata.namespace!={namespace}"))
            .collect::<Vec<_>>()
            .join(",")
    }
}

pub(super) struct Feed {
    /// Weak, so that a cache without other references is dropped.
    shared: Weak<Shared>,
    kind: Arc<Kind>,
    slot: KindId,
    scope: Scope,
    listed: HashSet<Uid>,
    reported: bool,
}

impl Feed {
    pub fn new(shared: &Arc<Shared>, kind: Arc<Kind>, slot: KindId, scope: Scope) -> Self {
        Self {
            shared: Arc::downgrade(shared),
            kind,
            slot,
            scope,
            listed: HashSet::new(),
            reported: false,
        }
    }

    fn parse(&self, shared: &Shared, raw: &RawValue) -> Option<Parsed> {
        let keep =
            |namespace: &str, name: &str| shared.read().is_pinned(&self.kind, namespace, name);
        match parse::parse(
            raw.get(),
            &self.kind,
            &shared.options.tracking,
            &shared.customizations(),
            keep,
        ) {
            Ok(parsed) => Some(parsed),
            Err(error) => {
                tracing::warn!(kind = %self.kind.gvk, %error, "an object was left out: it cannot be read");
                None
            }
        }
    }

    /// The first result, success or failure, counts the collection as answered.
    fn report(&mut self, shared: &Shared) {
        if !self.reported {
            self.reported = true;
            shared.pending.send_modify(|n| *n -= 1);
        }
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        if let Some(shared) = self.shared.upgrade() {
            self.report(&shared);
        }
    }
}

impl Sink for Feed {
    fn list_begin(&mut self) {
        self.listed.clear();
    }

    fn page(&mut self, items: &[&RawValue]) {
        let Some(shared) = self.shared.upgrade() else {
            return;
        };
        for batch in items.chunks(BATCH) {
            let parsed: Vec<Parsed> = batch
                .iter()
                .filter_map(|raw| self.parse(&shared, raw))
                .collect();
            self.listed.extend(parsed.iter().map(|p| p.uid));
            let mut store = shared.write();
            let effects: Vec<StoreChange> = parsed
                .into_iter()
                .filter_map(|p| store.upsert(self.slot, p, EventSource::List))
                .collect();
            drop(store);
            effects
                .into_iter()
                .for_each(|e| shared.publish(&self.kind, e));
        }
    }

    fn list_done(&mut self, resource_version: &str) {
        let Some(shared) = self.shared.upgrade() else {
            return;
        };
        let version = resource_version.parse().unwrap_or(0);
        let mut store = shared.write();
        let effects = store.retain_listed(self.slot, &self.scope, &self.listed, version);
        let slot = store.slot_mut(self.slot);
        slot.readings.succeeded(&self.scope);
        slot.advance(&self.scope, version);
        drop(store);
        self.listed = HashSet::new();
        effects
            .into_iter()
            .for_each(|e| shared.publish(&self.kind, e));
        self.report(&shared);
    }

    fn event(&mut self, kind: EventKind, object: &RawValue) {
        let Some(shared) = self.shared.upgrade() else {
            return;
        };
        let begun = Instant::now();
        let Some(parsed) = self.parse(&shared, object) else {
            return;
        };
        let mut store = shared.write();
        let slot = store.slot_mut(self.slot);
        slot.events += 1;
        // With the change, not after it: the answer to our own write may come between the two.
        let version = parsed.version;
        let effect = match kind {
            EventKind::Deleted => store.remove(
                self.slot,
                &parsed.namespace,
                &parsed.name,
                parsed.uid,
                parsed.version,
            ),
            EventKind::Added | EventKind::Modified => {
                store.upsert(self.slot, parsed, EventSource::Watch)
            }
        };
        store.slot_mut(self.slot).advance(&self.scope, version);
        store
            .processing
            .get_or_insert_with(|| Histogram::new(PROCESSING))
            .observe(begun.elapsed().as_secs_f64());
        drop(store);
        if let Some(effect) = effect {
            shared.publish(&self.kind, effect);
        }
    }

    fn position(&mut self, resource_version: &str) {
        let (Some(shared), Ok(version)) = (self.shared.upgrade(), resource_version.parse::<u64>())
        else {
            return;
        };
        let mut store = shared.write();
        let slot = store.slot_mut(self.slot);
        slot.readings.goes_on(&self.scope);
        slot.advance(&self.scope, version);
    }

    fn failed(&mut self, error: &Error) {
        let Some(shared) = self.shared.upgrade() else {
            return;
        };
        tracing::warn!(kind = %self.kind.gvk, %error, "cannot follow this kind; trying again");
        shared
            .write()
            .slot_mut(self.slot)
            .readings
            .failed(&self.scope, error);
        self.report(&shared);
    }
}
