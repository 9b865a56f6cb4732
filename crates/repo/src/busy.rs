//! Keeps tasks from downloading the same at the same time. Main type: [`Busy`].

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak},
};

/// The fingerprint of an access, and what is downloaded with it.
type What = ([u8; 32], String);

/// Lets one task at a time do the same.
#[derive(Default)]
pub(crate) struct Busy(Mutex<HashMap<What, Weak<tokio::sync::Mutex<()>>>>);

impl Busy {
    pub async fn wait(&self, what: What) -> tokio::sync::OwnedMutexGuard<()> {
        let mutex = {
            let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            known.retain(|_, mutex| mutex.strong_count() > 0);
            match known.get(&what).and_then(Weak::upgrade) {
                Some(mutex) => mutex,
                None => {
                    let mutex = Arc::new(tokio::sync::Mutex::new(()));
                    known.insert(what, Arc::downgrade(&mutex));
                    mutex
                }
            }
        };
        mutex.lock_owned().await
    }
}
