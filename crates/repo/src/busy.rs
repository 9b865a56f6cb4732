//! Main type: [`Busy`], which lets one task at a time do the same.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Mutex, PoisonError, Weak},
};

/// What is being done, by a key.
pub(crate) struct Busy<K>(Mutex<HashMap<K, Weak<tokio::sync::Mutex<()>>>>);

impl<K> Default for Busy<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Eq + Hash + Clone> Busy<K> {
    /// Waits until nobody else does it; it is free again when the guard is dropped.
    pub async fn wait(&self, what: &K) -> tokio::sync::OwnedMutexGuard<()> {
        let mutex = {
            let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            known.retain(|_, mutex| mutex.strong_count() > 0);
            match known.get(what).and_then(Weak::upgrade) {
                Some(mutex) => mutex,
                None => {
                    let mutex = Arc::new(tokio::sync::Mutex::new(()));
                    known.insert(what.clone(), Arc::downgrade(&mutex));
                    mutex
                }
            }
        };
        mutex.lock_owned().await
    }
}
