//! Results on disk, and the places that were looked at for them. Main type: [`OnDisk`].

use super::{Key, Place, Root};
use crate::disk_cache::{DiskCache, Name};
use serde::{Deserialize, Serialize};
use tiphys_render::SourceRef;

/// Keeps the results of a [`Traced`](super::Traced) on disk.
pub(crate) struct OnDisk<T> {
    pub cache: DiskCache,
    /// What every result depends on besides its key.
    pub basis: String,
    /// `None`: a result that is not kept.
    pub write: fn(&T) -> Option<Vec<u8>>,
    /// `None`: it is not what was written.
    pub read: fn(&[u8]) -> Option<T>,
}

impl<T> OnDisk<T> {
    pub(super) fn places(&self, key: &Key) -> Option<Vec<Place>> {
        let list = self.cache.get(&self.name("places", key))?;
        let list: Vec<(Written, String)> = serde_json::from_slice(&list).ok()?;
        let place = |(root, path): (Written, String)| (root.into(), path);
        Some(list.into_iter().map(place).collect())
    }

    pub(super) fn result(&self, whole: &Key) -> Option<T> {
        (self.read)(&self.cache.get(&self.name("result", whole))?)
    }

    /// What is kept from before must not stand for a result that is not.
    pub(super) fn keep(&self, key: &Key, places: &[Place], whole: &Key, result: &T) {
        let (by_key, by_whole) = (self.name("places", key), self.name("result", whole));
        let list: Option<Vec<(Written, &str)>> = places
            .iter()
            .map(|(root, path)| Some((Written::of(root)?, path.as_str())))
            .collect();
        let list = list.and_then(|list| serde_json::to_vec(&list).ok());
        match (list, (self.write)(result)) {
            (Some(list), Some(result)) => {
                self.cache.put(&by_whole, &result);
                self.cache.put(&by_key, &list);
            }
            _ => {
                self.cache.remove(&by_key);
                self.cache.remove(&by_whole);
            }
        }
    }

    fn name(&self, kind: &str, key: &Key) -> Name {
        DiskCache::name(kind, &[self.basis.as_bytes(), key])
    }
}

/// Whose files a path is in, as it is written.
#[derive(Serialize, Deserialize)]
enum Written {
    Own,
    Ref(String),
    Git {
        url: String,
        revision: String,
        submodules: bool,
    },
    File {
        url: String,
    },
    Chart {
        repository: String,
        name: String,
        version: String,
    },
}

impl Written {
    /// `None`: it has no files.
    fn of(root: &Root) -> Option<Self> {
        Some(match root {
            Root::Own => Self::Own,
            Root::Ref(name) => Self::Ref(name.clone()),
            Root::Fetched(SourceRef::Git {
                url,
                revision,
                submodules,
            }) => Self::Git {
                url: url.clone(),
                revision: revision.clone(),
                submodules: *submodules,
            },
            Root::Fetched(SourceRef::File { url }) => Self::File { url: url.clone() },
            Root::Fetched(SourceRef::Chart {
                repository,
                name,
                version,
            }) => Self::Chart {
                repository: repository.clone(),
                name: name.clone(),
                version: version.clone(),
            },
            Root::Fetched(SourceRef::Plugin(_)) => return None,
        })
    }
}

impl From<Written> for Root {
    fn from(written: Written) -> Self {
        Self::Fetched(match written {
            Written::Own => return Self::Own,
            Written::Ref(name) => return Self::Ref(name),
            Written::Git {
                url,
                revision,
                submodules,
            } => SourceRef::Git {
                url,
                revision,
                submodules,
            },
            Written::File { url } => SourceRef::File { url },
            Written::Chart {
                repository,
                name,
                version,
            } => SourceRef::Chart {
                repository,
                name,
                version,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on_disk(cache: DiskCache, basis: &str) -> OnDisk<u8> {
        OnDisk {
            cache,
            basis: basis.to_owned(),
            write: |result| (*result != 0).then(|| vec![*result]),
            read: |bytes| bytes.first().copied(),
        }
    }

    #[test]
    fn results_and_places_come_back() {
        let folder = tempfile::tempdir().expect("a folder");
        let open = || DiskCache::open(&folder.path().join("rendered"), 1 << 20).expect("opened");
        let fetched = [
            SourceRef::Git {
                url: "https://git.example.com/a.git".to_owned(),
                revision: "main".to_owned(),
                submodules: true,
            },
            SourceRef::File {
                url: "https://example.com/a.yaml".to_owned(),
            },
            SourceRef::Chart {
                repository: "oci://example.com".to_owned(),
                name: "demo".to_owned(),
                version: "1.x".to_owned(),
            },
        ];
        let places: Vec<Place> = [Root::Own, Root::Ref("values".to_owned())]
            .into_iter()
            .chain(fetched.map(Root::Fetched))
            .map(|root| (root, "a/b.yaml".to_owned()))
            .collect();
        let (key, whole) = ([1; 32], [2; 32]);
        on_disk(open(), "").keep(&key, &places, &whole, &7);
        let again = on_disk(open(), "");
        assert_eq!(again.places(&key), Some(places.clone()));
        assert_eq!(again.result(&whole), Some(7));
        assert_eq!((again.places(&whole), again.result(&key)), (None, None));
        let other = on_disk(open(), "other limits");
        assert_eq!((other.places(&key), other.result(&whole)), (None, None));
        // What is not kept takes the place of what was.
        again.keep(&key, &places, &whole, &0);
        let again = on_disk(open(), "");
        assert_eq!((again.places(&key), again.result(&whole)), (None, None));
    }
}
