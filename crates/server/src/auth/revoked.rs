//! Tokens that were logged out, until they would have expired. Main type: [`Revoked`].

use jiff::Timestamp;
use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

/// More than anybody logs out in a day; whoever can log out had to log in for each.
const MOST: usize = 100_000;

/// By id, with the second of the expiry.
#[derive(Default)]
pub struct Revoked(Mutex<BTreeMap<String, i64>>);

impl Revoked {
    /// From the values of the record that keeps them.
    pub fn read(data: &BTreeMap<String, Vec<u8>>) -> Self {
        let expiry = |value: &[u8]| {
            std::str::from_utf8(value)
                .ok()
                .and_then(|text| text.parse().ok())
                .unwrap_or(i64::MAX)
        };
        Self(Mutex::new(
            data.iter()
                .map(|(id, value)| (id.clone(), expiry(value)))
                .collect(),
        ))
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
        all.insert(id.to_owned(), expiry);
    }
}
