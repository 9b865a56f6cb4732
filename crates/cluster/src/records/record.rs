//! One record: its JSON and, parsed on first use, its type.
//!
//! Main types: [`Record`] and [`RecordChange`].

use super::lean::{Lean, Meta, Raw};
use crate::{cache::ChangeType, discovery::Kind, error::Error, watch::version_of};
use serde::de::DeserializeOwned;
use std::{
    sync::{Arc, OnceLock},
    time::Instant,
};
use tiphys_apimachinery::Object;

pub(super) type NamespacedName = (String, String);

/// The type that a record is parsed into.
pub trait Readable: DeserializeOwned + Send + Sync + 'static {
    /// Removes what is not specific to this record.
    #[must_use]
    fn bare(self) -> Self {
        self
    }

    /// Parses `lean`, reusing `before`, which was parsed from `lean_before`; `None`: it must be
    /// parsed entirely.
    fn reread(_lean_before: &Lean, _before: &Self, _lean: &Lean) -> Option<Self> {
        None
    }
}

/// One object and, parsed on first use, its type.
pub struct Record<T> {
    pub meta: Meta,
    /// The server's object without managedFields.
    lean: Lean,
    value: OnceLock<Result<Arc<T>, String>>,
    /// When it was received.
    pub seen: Instant,
}

impl<T> Record<T> {
    pub(super) fn new(raw: Raw<'_>, kind: &Kind) -> Self {
        let (lean, meta) = raw.keep(kind);
        Self {
            meta,
            lean,
            value: OnceLock::new(),
            seen: Instant::now(),
        }
    }

    /// The server's object without managedFields; parsed anew for each caller.
    ///
    /// # Errors
    /// If it is nested too deeply.
    pub fn object(&self) -> Result<Object, Error> {
        serde_json::from_str(self.lean.json()).map_err(|e| Error::Invalid {
            key: self.name(),
            problem: e.to_string(),
        })
    }

    fn name(&self) -> String {
        format!("{}/{}", self.meta.namespace, self.meta.name)
    }

    pub(super) fn version(&self) -> u64 {
        self.meta.resource_version.parse().unwrap_or(0)
    }

    /// Whether the server's response to a request for this object, its JSON, is this state. Of an
    /// object in deletion the version does not tell: the response to the removal of the last
    /// finalizer still has the previous one.
    pub(super) fn is_state(&self, response: &str) -> bool {
        !self.meta.is_deleting
            && version_of(response).is_some_and(|version| version == self.meta.resource_version)
    }

    pub(super) fn key(&self) -> NamespacedName {
        (self.meta.namespace.clone(), self.meta.name.clone())
    }
}

impl<T: Readable> Record<T> {
    /// Parses it now if the previous state was parsed, which makes it cheap.
    pub(super) fn after(self, before: Option<&Self>) -> Self {
        if let Some((before, Ok(known))) =
            before.and_then(|before| Some((before, before.value.get()?.as_ref())))
            && let Some(value) = T::reread(&before.lean, known, &self.lean)
        {
            let _ = self.value.set(Ok(Arc::new(value)));
        }
        self
    }

    /// The typed value; an error says what is invalid.
    pub fn value(&self) -> Result<Arc<T>, String> {
        let read = || match serde_json::from_str::<T>(self.lean.json()) {
            Ok(value) => Ok(Arc::new(value.bare())),
            Err(e) => Err(format!("{}: {e}", self.name())),
        };
        self.value.get_or_init(read).clone()
    }
}

/// A record was added, changed or deleted.
pub struct RecordChange<T> {
    pub change_type: ChangeType,
    /// The new state, or the last one of a deleted record.
    pub record: Arc<Record<T>>,
    pub before: Option<Arc<Record<T>>>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn a_response_is_a_known_state_by_its_version_unless_that_is_in_deletion() {
        let object = |metadata: Value| json!({"metadata": metadata, "spec": {}}).to_string();
        let kind = super::super::kind("g", "v1", "Thing", "things");
        let record = |metadata: Value| {
            let json = object(metadata);
            Record::<Value>::new(Raw::read(&json).expect("readable"), &kind)
        };
        let known = record(json!({"name": "a", "resourceVersion": "7"}));
        for (metadata, same) in [
            (json!({"name": "a", "resourceVersion": "7"}), true),
            (json!({"name": "a", "resourceVersion": "8"}), false),
            (json!({"name": "a", "resourceVersion": "77"}), false),
            (
                json!({"name": "a", "labels": {"resourceVersion": "7"}}),
                false,
            ),
            (json!({"name": "a"}), false),
        ] {
            let response = object(metadata);
            assert_eq!(known.is_state(&response), same, "{response}");
        }
        let deleting = json!({
            "name": "a", "resourceVersion": "7", "finalizers": ["f"],
            "deletionTimestamp": "2026-01-01T00:00:00Z",
        });
        let last = json!({
            "name": "a", "resourceVersion": "7", "deletionTimestamp": "2026-01-01T00:00:00Z",
        });
        assert!(!record(deleting).is_state(&object(last)));
        // Two states without a version may differ.
        assert!(!record(json!({"name": "a"})).is_state(&object(json!({"name": "a"}))));
    }
}
