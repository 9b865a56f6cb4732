//! Persistent storage of objects: one trait, two implementations.
//!
//! Main type: [`Store`]. It sees keys and bytes; it does not know what an object is. The registry
//! serves reads from memory, so a store is loaded once at startup and only written after that.

pub mod disk;

use bytes::Bytes;
use std::path::PathBuf;

/// `<group>/<resource>/<namespace>/<name>` (namespace and group may be empty).
pub type StoreKey = String;

/// One change; a batch of them is committed together.
#[derive(Clone, Debug)]
pub struct Write {
    pub key: StoreKey,
    /// `None` removes the key.
    pub value: Option<Bytes>,
    /// The resourceVersion of the change.
    pub revision: u64,
}

/// The contents of a store when it is opened.
#[derive(Debug, Default)]
pub struct Loaded {
    pub revision: u64,
    pub entries: Vec<(StoreKey, Bytes)>,
}

/// Why a data folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("cannot use the data folder {}: {reason}; check that it exists, is writable and has free space", .folder.display())]
    Io { folder: PathBuf, reason: String },
    #[error("the data folder {} is in use by another process; stop that process or choose another folder", .folder.display())]
    InUse { folder: PathBuf },
    #[error("the data folder {} was written by a newer version (format {found}, this one knows {known}); use that version, or another folder", .folder.display())]
    Newer {
        folder: PathBuf,
        found: u32,
        known: u32,
    },
    #[error("the data folder {} is damaged: {reason}; restore it from a copy, or move it away to start empty", .folder.display())]
    Damaged { folder: PathBuf, reason: String },
}

/// A durable map. `commit` returns when the batch survives a crash.
pub trait Store: Send + Sync {
    fn load(&self) -> Result<Loaded, StoreError>;
    fn commit(&self, batch: &[Write]) -> Result<(), StoreError>;
    /// Whether commits are expensive enough to be batched in a separate thread.
    fn is_durable(&self) -> bool;
}

/// Stores nothing: the registry's memory is the store.
#[derive(Debug, Default)]
pub struct Memory;

impl Store for Memory {
    fn load(&self) -> Result<Loaded, StoreError> {
        Ok(Loaded::default())
    }

    fn commit(&self, _batch: &[Write]) -> Result<(), StoreError> {
        Ok(())
    }

    fn is_durable(&self) -> bool {
        false
    }
}
