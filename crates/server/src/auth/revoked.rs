//! Tokens that were logged out and have not expired yet. Main type: [`Revoked`].

use jiff::Timestamp;
use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

/// More logouts than a day sees; each needs a login first.
const MOST: usize = 100_000;

/// Expiry in seconds by token id.
#[derive(Default)]
pub struct Revoked(Mutex<BTreeMap<String, i64>>);

/// When a token expires by its value in the record; never if that cannot be read.
pub fn revoked_until(value: &[u8]) -> i64 {
    let text = std::str::from_utf8(value).ok();
    text.and_then(|text| text.parse().ok()).unwrap_or(i64::MAX)
}

impl Revoked {
    /// Reads the revoked tokens from the record's values.
    pub fn read(data: &BTreeMap<String, Vec<u8>>) -> Self {
        let all = data.iter();
        let all = all.map(|(id, value)| (id.clone(), revoked_until(value)));
        Self(Mutex::new(all.collect()))
    }

    pub fn contains(&self, id: &str) -> bool {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .contains_key(id)
    }

    pub fn insert(&self, id: &str, expiry: i64, now: Timestamp) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, expiry| *expiry > now.as_second());
        if all.len() >= MOST {
            let soonest = all
                .iter()
                .min_by_key(|(_, expiry)| **expiry)
                .map(|(id, _)| id.clone());
            soonest.and_then(|id| all.remove(&id));
        }
        // Tokens with the same id may end at different times.
        let known = all.entry(id.to_owned()).or_insert(expiry);
        *known = expiry.max(*known);
    }
}
