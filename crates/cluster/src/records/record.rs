//! One record: its JSON and, made on first use, the type it is read as.
//!
//! Main types: [`Record`] and [`RecordChange`].

use super::lean::{Lean, Meta, Raw};
use crate::{cache::ChangeType, discovery::Kind, error::Error};
use serde::de::DeserializeOwned;
use std::{
    sync::{Arc, OnceLock},
    time::Instant,
};
use tiphys_apimachinery::Object;

pub(super) type NamespacedName = (String, String);

/// What a record is read as.
pub trait Readable: DeserializeOwned + Send + Sync + 'static {
    /// Takes away what says nothing of this one record.
    #[must_use]
    fn bare(self) -> Self {
        self
    }

    /// What `lean` says, given what was read of `lean_before`; `None`: it is to be read as a whole.
    fn reread(_lean_before: &Lean, _before: &Self, _lean: &Lean) -> Option<Self> {
        None
    }
}

/// One object and, made on first use, the type it is read as.
pub struct Record<T> {
    pub meta: Meta,
    /// As the server has it, without managedFields.
    lean: Lean,
    value: OnceLock<Result<Arc<T>, String>>,
    /// When it came here.
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

    /// As the server has it, without managedFields; read anew for each caller.
    ///
    /// # Errors
    /// It is nested more deeply than is read.
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

    pub(super) fn key(&self) -> NamespacedName {
        (self.meta.namespace.clone(), self.meta.name.clone())
    }
}

impl<T: Readable> Record<T> {
    /// Reads it now, if the state before was read and that makes it cheap.
    pub(super) fn after(self, before: Option<&Self>) -> Self {
        if let Some((before, Ok(known))) =
            before.and_then(|before| Some((before, before.value.get()?.as_ref())))
            && let Some(value) = T::reread(&before.lean, known, &self.lean)
        {
            let _ = self.value.set(Ok(Arc::new(value)));
        }
        self
    }

    /// The typed value; an error says what is not as it should be.
    pub fn value(&self) -> Result<Arc<T>, String> {
        let read = || match serde_json::from_str::<T>(self.lean.json()) {
            Ok(value) => Ok(Arc::new(value.bare())),
            Err(e) => Err(format!("{}: {e}", self.name())),
        };
        self.value.get_or_init(read).clone()
    }
}

/// A record came, changed or went.
pub struct RecordChange<T> {
    pub change_type: ChangeType,
    /// The new state, or the last one of a deleted record.
    pub record: Arc<Record<T>>,
    pub before: Option<Arc<Record<T>>>,
}
