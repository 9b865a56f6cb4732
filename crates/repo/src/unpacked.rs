//! What was downloaded, unpacked into a bare repository of our own: an archive becomes a commit
//! there, so that it is read, cached and compared as the commits of Git repositories are.
//!
//! Main type: [`Unpacked`]. All functions block.

use crate::{
    RepoError,
    git::{self, Commit, GitLimits, Store, UnpackedFile},
};
use sha2::{Digest, Sha256};
use std::{
    path::PathBuf,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

/// Bytes that are written before a new generation begins.
const GENERATION_BYTES: u64 = 1 << 30;

/// What identifies a download: never the same for different credentials.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct UnpackedKey([u8; 32]);

impl UnpackedKey {
    pub fn new(parts: &[&[u8]]) -> Self {
        let mut hash = Sha256::new();
        for part in parts {
            hash.update(part.len().to_le_bytes());
            hash.update(part);
        }
        Self(hash.finalize().into())
    }

    fn name(&self) -> String {
        self.0.iter().map(|b| format!("{b:02x}")).collect()
    }
}

/// The downloads of a cache folder.
pub(crate) struct Unpacked {
    base: PathBuf,
    state: Mutex<Option<Generation>>,
    begun: AtomicU64,
}

/// When something was stored, in generations that this process began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Epoch(u64);

/// A repository that is not written to any more once it is large. The one before it stays until the
/// next one begins, for those who still read it.
struct Generation {
    number: u32,
    store: Store,
    /// Estimated, in this process.
    written: u64,
}

impl Unpacked {
    /// Nothing is created before the first download.
    pub fn new(base: PathBuf) -> Self {
        Self {
            base,
            state: Mutex::default(),
            begun: AtomicU64::new(0),
        }
    }

    pub fn epoch(&self) -> Epoch {
        Epoch(self.begun.load(Ordering::Acquire))
    }

    /// Whether what was stored then has not been removed since.
    pub fn still_has(&self, then: Epoch) -> bool {
        self.epoch().0 <= then.0 + 1
    }

    fn with<T>(
        &self,
        work: impl FnOnce(&mut Generation) -> Result<T, RepoError>,
    ) -> Result<T, RepoError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let generation = match state.take() {
            Some(generation) if generation.written > GENERATION_BYTES => {
                if let Some(before) = generation.number.checked_sub(1) {
                    // A folder that cannot be removed only wastes space.
                    let _ = std::fs::remove_dir_all(self.base.join(before.to_string()));
                }
                self.begun.fetch_add(1, Ordering::AcqRel);
                self.open(generation.number + 1)?
            }
            Some(generation) => generation,
            None => self.open(self.newest())?,
        };
        work(state.insert(generation))
    }

    fn newest(&self) -> u32 {
        let names = std::fs::read_dir(&self.base);
        let numbers = names
            .into_iter()
            .flatten()
            .filter_map(|name| name.ok()?.file_name().to_str()?.parse().ok());
        numbers.max().unwrap_or(1)
    }

    fn open(&self, number: u32) -> Result<Generation, RepoError> {
        let path = self.base.join(number.to_string());
        let store = if path.join("HEAD").exists() {
            Store::open(&path, &path.display().to_string(), GitLimits::default())?
        } else {
            git::init_bare(&path)?
        };
        Ok(Generation {
            number,
            store,
            written: 0,
        })
    }

    pub fn get(&self, key: &UnpackedKey) -> Result<Option<Commit>, RepoError> {
        if !self.base.exists() {
            return Ok(None);
        }
        self.with(|generation| {
            let found = generation.store.named(&key.name())?;
            Ok(found.map(|id| (generation.store.clone(), id)))
        })
    }

    pub fn put<'a>(
        &self,
        keys: &[UnpackedKey],
        files: impl IntoIterator<Item = UnpackedFile<'a>>,
    ) -> Result<Commit, RepoError> {
        self.with(|generation| {
            let names: Vec<String> = keys.iter().map(UnpackedKey::name).collect();
            let (id, bytes) = generation.store.put(&names, files)?;
            generation.written = generation.written.saturating_add(bytes);
            Ok((generation.store.clone(), id))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::GitFiles;
    use tiphys_render::SourceFiles as _;

    #[test]
    fn a_download_is_found_again_by_its_key_only() {
        let dir = tempfile::tempdir().expect("a folder");
        let base = dir.path().join("unpacked");
        let (one, other) = (
            UnpackedKey::new(&[b"a", b"bc"]),
            UnpackedKey::new(&[b"ab", b"c"]),
        );
        assert_ne!(one, other);
        let unpacked = Unpacked::new(base.clone());
        assert!(unpacked.get(&one).expect("it can be asked").is_none());
        assert!(!base.exists(), "asking creates nothing");
        let files = [
            UnpackedFile::new("Chart.yaml", b"name: x"),
            UnpackedFile::new("templates/a/b.yaml", b"b"),
            UnpackedFile::link("templates/c.yaml", "a/b.yaml"),
        ];
        let (_, id) = unpacked.put(&[one], files).expect("it is kept");
        let (_, same) = unpacked.put(&[one], files).expect("it is kept again");
        assert_eq!(id, same);

        let after_restart = Unpacked::new(base);
        let (store, found) = after_restart.get(&one).expect("readable").expect("kept");
        assert_eq!(found, id);
        let files = GitFiles::new(&store, found.tree, None);
        for path in ["templates/a/b.yaml", "templates/c.yaml"] {
            let text = files.read(path).expect("readable");
            assert_eq!(text.as_deref(), Some(b"b".as_slice()), "{path}");
        }
        assert!(
            after_restart
                .get(&other)
                .expect("it can be asked")
                .is_none()
        );
    }
}
