//! Caches results by the files that were read for them, and by those that were looked up and not
//! found.
//!
//! Main type: [`Traced`]. A folder's tree and the options lead to the places outside of the folder
//! that the last computation looked up; the current content of these places leads to the result, if
//! it was computed before.

mod on_disk;

pub(crate) use on_disk::OnDisk;

use crate::git::{Found, GitFiles};
use sha2::{Digest, Sha256};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};
use tiphys_render::SourceRef;

pub(crate) type Key = [u8; 32];

/// Whose files a path is in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Root {
    /// The Application's source.
    Own,
    /// Another source of the Application, by its `ref`.
    Ref(String),
    /// Something that the render needed besides.
    Fetched(SourceRef),
}

type Place = (Root, String);

/// Cache size for places (estimated).
const PLACES_BYTES: u64 = 32 << 20;

fn weight_of(places: &[Place]) -> u32 {
    let one = |(root, path): &Place| {
        let name = match root {
            Root::Own => 0,
            Root::Ref(name) => name.len(),
            Root::Fetched(_) => 200,
        };
        64 + path.len() + name
    };
    u32::try_from(100 + places.iter().map(one).sum::<usize>()).unwrap_or(u32::MAX)
}

/// The files of a source, of those it refers to, and of what it needed besides.
pub(crate) struct Files {
    pub own: GitFiles,
    pub refs: BTreeMap<String, GitFiles>,
    pub fetched: BTreeMap<SourceRef, GitFiles>,
}

impl Files {
    pub fn new(own: GitFiles) -> Self {
        Self {
            own,
            refs: BTreeMap::new(),
            fetched: BTreeMap::new(),
        }
    }

    fn look(&self, (root, path): &Place) -> Found {
        let files = match root {
            Root::Own => Some(&self.own),
            Root::Ref(name) => self.refs.get(name),
            Root::Fetched(needed) => self.fetched.get(needed),
        };
        files.map_or(Found::Bad, |files| files.look(path))
    }

    pub fn all(&self) -> impl Iterator<Item = &GitFiles> {
        [&self.own]
            .into_iter()
            .chain(self.refs.values())
            .chain(self.fetched.values())
    }

    fn noted(&self) -> BTreeMap<Place, Found> {
        let refs = self
            .refs
            .iter()
            .map(|(name, files)| (Root::Ref(name.clone()), files));
        let fetched = self
            .fetched
            .iter()
            .map(|(needed, files)| (Root::Fetched(needed.clone()), files));
        let all = [(Root::Own, &self.own)]
            .into_iter()
            .chain(refs)
            .chain(fetched);
        all.flat_map(|(root, files)| {
            let of_root = move |(path, found)| ((root.clone(), path), found);
            files.noted().into_iter().map(of_root)
        })
        .collect()
    }
}

/// A cache that evicts the least used results first.
pub(crate) struct Traced<T> {
    places: moka::sync::Cache<Key, Arc<Vec<Place>>>,
    results: moka::sync::Cache<Key, Arc<T>>,
    /// What was computed before this process began.
    disk: Option<OnDisk<T>>,
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
        Self {
            places,
            results,
            disk: None,
        }
    }

    /// The same, which keeps its results on disk as well.
    pub fn on_disk(self, disk: Option<OnDisk<T>>) -> Self {
        Self { disk, ..self }
    }

    /// What the last computation looked at of things that had to be fetched.
    pub fn fetched(&self, key: &Key) -> Vec<SourceRef> {
        let places = self.places(key).unwrap_or_default();
        let fetched: BTreeSet<&SourceRef> = places
            .iter()
            .filter_map(|(root, _)| match root {
                Root::Fetched(needed) => Some(needed),
                Root::Own | Root::Ref(_) => None,
            })
            .collect();
        fetched.into_iter().cloned().collect()
    }

    fn places(&self, key: &Key) -> Option<Arc<Vec<Place>>> {
        if let Some(places) = self.places.get(key) {
            return Some(places);
        }
        let places = Arc::new(self.disk.as_ref()?.places(key)?);
        self.places.insert(*key, Arc::clone(&places));
        Some(places)
    }

    fn result(&self, whole: &Key) -> Option<Arc<T>> {
        if let Some(result) = self.results.get(whole) {
            return Some(result);
        }
        let result = Arc::new(self.disk.as_ref()?.result(whole)?);
        self.results.insert(*whole, Arc::clone(&result));
        Some(result)
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
        if !fresh && let Some(places) = self.places(&key) {
            let before: Vec<_> = files.all().map(GitFiles::noted).collect();
            let seen = places
                .iter()
                .map(|place| (place.clone(), files.look(place)))
                .collect();
            let whole = whole(key, &seen);
            if let Some(found) = self.result(&whole) {
                return Ok((whole, found));
            }
            // Places that only the last computation looked at must not become those of this one.
            for (files, before) in files.all().zip(before) {
                files.note_only(before);
            }
        }
        let made = make()?;
        let seen = files.noted();
        let whole = whole(key, &seen);
        if files.all().any(GitFiles::is_damaged) {
            // What could not be read of a torn copy counts as missing in it.
            return Ok((whole, made));
        }
        let places: Vec<Place> = seen.into_keys().collect();
        if let Some(disk) = &self.disk {
            disk.keep(&key, &places, &whole, &made);
        }
        self.places.insert(key, Arc::new(places));
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
