//! Caches results by the files that were read for them, and by those that were looked up and not
//! found.
//!
//! Main type: [`Traced`]. A folder's tree and the options lead to the places outside of the folder
//! that the last computation looked up; the current content of these places leads to the result, if
//! it was computed before.

use crate::git::{Found, GitFiles};
use sha2::{Digest, Sha256};
use std::{collections::BTreeMap, sync::Arc};

pub(crate) type Key = [u8; 32];

/// A path in a source; `None` is the Application's own source.
type Place = (Option<String>, String);

/// Cache size for places (estimated).
const PLACES_BYTES: u64 = 32 << 20;

fn weight_of(places: &[Place]) -> u32 {
    let one = |(source, path): &Place| 64 + path.len() + source.as_ref().map_or(0, String::len);
    u32::try_from(100 + places.iter().map(one).sum::<usize>()).unwrap_or(u32::MAX)
}

/// The files of a source and of those it references.
pub(crate) struct Files {
    pub own: GitFiles,
    pub refs: BTreeMap<String, GitFiles>,
}

impl Files {
    fn look(&self, (source, path): &Place) -> Found {
        match source {
            None => self.own.look(path),
            Some(name) => self
                .refs
                .get(name)
                .map_or(Found::Bad, |files| files.look(path)),
        }
    }

    fn noted(&self) -> BTreeMap<Place, Found> {
        let refs = self.refs.iter().map(|(name, files)| (Some(name), files));
        let all = [(None, &self.own)].into_iter().chain(refs);
        all.flat_map(|(name, files)| {
            files
                .noted()
                .into_iter()
                .map(move |(path, found)| ((name.cloned(), path), found))
        })
        .collect()
    }
}

/// A cache that evicts the least used results first.
pub(crate) struct Traced<T> {
    places: moka::sync::Cache<Key, Arc<Vec<Place>>>,
    results: moka::sync::Cache<Key, Arc<T>>,
}

impl<T: Send + Sync + 'static> Traced<T> {
    /// `weight` returns the approximate size of a result in bytes.
    pub fn new(bytes: u64, weight: fn(&T) -> u32) -> Self {
        let results = moka::sync::Cache::builder()
            .weigher(move |_, v: &Arc<T>| weight(v))
            .max_capacity(bytes)
            .build();
        let places = moka::sync::Cache::builder()
            .weigher(|_, v: &Arc<Vec<Place>>| weight_of(v))
            .max_capacity(PLACES_BYTES)
            .build();
        Self { places, results }
    }

    /// The result for a key, which represents everything except the files outside of the folder.
    /// The returned key includes these, too.
    pub fn get<E>(
        &self,
        key: Key,
        files: &Files,
        fresh: bool,
        make: impl FnOnce() -> Result<Arc<T>, E>,
    ) -> Result<(Key, Arc<T>), E> {
        if !fresh && let Some(places) = self.places.get(&key) {
            let seen = places
                .iter()
                .map(|place| (place.clone(), files.look(place)))
                .collect();
            let whole = whole(key, &seen);
            if let Some(found) = self.results.get(&whole) {
                return Ok((whole, found));
            }
        }
        let made = make()?;
        let seen = files.noted();
        let whole = whole(key, &seen);
        self.places
            .insert(key, Arc::new(seen.into_keys().collect()));
        self.results.insert(whole, Arc::clone(&made));
        Ok((whole, made))
    }
}

fn whole(key: Key, seen: &BTreeMap<Place, Found>) -> Key {
    if seen.is_empty() {
        return key;
    }
    let mut hash = Sha256::new();
    hash.update(key);
    hash.update(format!("{seen:?}"));
    hash.finalize().into()
}
