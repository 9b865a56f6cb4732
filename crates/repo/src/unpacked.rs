//! What was downloaded, unpacked into a bare repository of our own: an archive becomes a commit
//! there, so that it is read, cached and compared as the commits of Git repositories are.
//!
//! Main type: [`Unpacked`]. All functions block.

use crate::{
    RepoError,
    git::{self, Added, Adding, Commit, GitLimits, Store, UnpackedFile},
};
use sha2::{Digest, Sha256};
use std::{
    path::{Path, PathBuf},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

/// Bytes that are written before a new generation begins: this many at least, and at most, however
/// large a download may be.
const GENERATION_BYTES: u64 = 1 << 30;
const GENERATION_BYTES_MAX: u64 = 16 << 30;

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

    fn names(keys: &[Self]) -> Vec<String> {
        keys.iter().map(Self::name).collect()
    }
}

/// The downloads of a cache folder.
pub(crate) struct Unpacked {
    base: PathBuf,
    /// Bytes that are written before a new generation begins.
    generation_bytes: u64,
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

impl Generation {
    fn count(&mut self, bytes: u64) {
        self.written = self.written.saturating_add(bytes);
    }
}

/// A large download that is being stored, file by file: meanwhile others use the same repository.
/// What was stored stays until its generation goes, so it counts, whatever comes of it.
pub(crate) struct Storing<'a> {
    unpacked: &'a Unpacked,
    number: u32,
    store: Store,
    /// Where the files are added.
    pub adding: Adding,
}

impl Storing<'_> {
    /// Names the download, which can be found from then on, unless a new generation has begun
    /// meanwhile: then only the caller has it.
    pub fn finish<'f>(
        self,
        keys: &[UnpackedKey],
        files: impl IntoIterator<Item = (&'f str, Added)>,
    ) -> Result<Commit, RepoError> {
        let finished = self.adding.finish(&UnpackedKey::names(keys), files);
        let id = finished.map_err(|e| self.failure(e))?;
        Ok((self.store.clone(), id))
    }

    /// Why something was not stored: where its generation has gone, not for good.
    pub fn failure(&self, e: RepoError) -> RepoError {
        if self.unpacked.has_generation(self.number) {
            e
        } else {
            RepoError::Displaced(e.to_string())
        }
    }
}

/// The bytes of the objects that a process before this one stored. What cannot be read does not count.
fn stored(objects: &Path) -> u64 {
    let entries = |folder: &Path| std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries(objects)
        .flat_map(|folder| entries(&folder.path()))
        .filter_map(|file| Some(file.metadata().ok()?.len()))
        .sum()
}

impl Drop for Storing<'_> {
    fn drop(&mut self) {
        self.unpacked.count(self.number, self.adding.bytes());
    }
}

impl Unpacked {
    /// Nothing is created before the first download. Several of the largest, of so many bytes, fit
    /// into a generation, so that they do not displace each other.
    pub fn new(base: PathBuf, largest: u64) -> Self {
        let several = largest.saturating_mul(4);
        Self {
            base,
            generation_bytes: several.clamp(GENERATION_BYTES, GENERATION_BYTES_MAX),
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
            Some(generation) if generation.written > self.generation_bytes => {
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
        let (store, written) = if path.join("HEAD").exists() {
            let shown = path.display().to_string();
            let store = Store::open(&path, &shown, GitLimits::default())?;
            (store, stored(&path.join("objects")))
        } else {
            (git::init_bare(&path)?, 0)
        };
        Ok(Generation {
            number,
            store,
            written,
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
            let (stored, bytes) = generation.store.put(&UnpackedKey::names(keys), files);
            generation.count(bytes);
            Ok((generation.store.clone(), stored?))
        })
    }

    fn count(&self, number: u32, bytes: u64) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(generation) = state.as_mut()
            && generation.number == number
        {
            generation.count(bytes);
        }
    }

    /// Whether a generation is the current one or the one before it; the others are removed.
    fn has_generation(&self, number: u32) -> bool {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let current = state.as_ref().map(|generation| generation.number);
        current.is_some_and(|current| current <= number.saturating_add(1))
    }

    /// Begins to store a download whose files are not in memory together.
    pub fn begin(&self) -> Result<Storing<'_>, RepoError> {
        self.with(|generation| {
            Ok(Storing {
                unpacked: self,
                number: generation.number,
                store: generation.store.clone(),
                adding: generation.store.adding(),
            })
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
        let unpacked = Unpacked::new(base.clone(), 0);
        assert!(unpacked.get(&one).expect("it can be asked").is_none());
        assert!(!base.exists(), "asking creates nothing");
        let files = [
            UnpackedFile::new("Chart.yaml", b"name: x"),
            UnpackedFile::new("templates/a/b.yaml", b"b"),
        ];
        let (_, id) = unpacked.put(&[one], files).expect("it is kept");
        let (_, same) = unpacked.put(&[one], files).expect("it is kept again");
        assert_eq!(id, same);

        let after_restart = Unpacked::new(base, 0);
        let (store, found) = after_restart.get(&one).expect("readable").expect("kept");
        assert_eq!(found, id);
        let files = GitFiles::new(&store, found.tree, None);
        let text = files.read("templates/a/b.yaml").expect("readable");
        assert_eq!(text.as_deref(), Some(b"b".as_slice()));
        assert!(
            after_restart
                .get(&other)
                .expect("it can be asked")
                .is_none()
        );
    }

    #[test]
    fn a_large_download_is_stored_while_others_are() {
        let dir = tempfile::tempdir().expect("a folder");
        let unpacked = Unpacked::new(dir.path().join("unpacked"), 0);
        let (large, small) = (UnpackedKey::new(&[b"large"]), UnpackedKey::new(&[b"small"]));
        let mut storing = unpacked.begin().expect("begun");
        let adding = &mut storing.adding;
        let file = adding.file(&mut b"one".as_slice(), 3).expect("stored");
        let link = adding.link("a/one").expect("stored");
        let files = [UnpackedFile::new("x", b"small")];
        unpacked.put(&[small], files).expect("meanwhile");
        assert!(unpacked.get(&large).expect("readable").is_none());
        let list = [("a/one", file), ("two", link)];
        let (store, id) = storing.finish(&[large], list).expect("named");
        let files = GitFiles::new(&store, id.tree, None);
        for path in ["a/one", "two"] {
            let text = files.read(path).expect("readable");
            assert_eq!(text.as_deref(), Some(b"one".as_slice()), "{path}");
        }
        let found = unpacked.get(&large).expect("readable").expect("kept");
        assert_eq!(found.1, id);
        assert!(unpacked.get(&small).expect("readable").is_some());
    }

    #[test]
    fn what_is_stored_counts_whatever_comes_of_it() {
        let dir = tempfile::tempdir().expect("a folder");
        let unpacked = Unpacked::new(dir.path().join("unpacked"), 0);
        let key = UnpackedKey::new(&[b"refused"]);
        let written = || {
            let state = unpacked.state.lock().expect("nobody failed");
            state.as_ref().map(|generation| generation.written)
        };
        let stored = || {
            let mut storing = unpacked.begin().expect("begun");
            let file = storing.adding.file(&mut b"one".as_slice(), 3);
            (storing, file.expect("stored"))
        };
        let (storing, file) = stored();
        let refused = storing.finish(&[key], [("git~1/x", file)]);
        let refused = refused.expect_err("Git has no such name");
        assert!(!refused.retryable(), "{refused}");
        assert_eq!(written(), Some(3));
        drop(stored());
        assert_eq!(written(), Some(6));
        let files = [UnpackedFile::new("git~1/x", b"three")];
        unpacked.put(&[key], files).expect_err("nor here");
        assert_eq!(written(), Some(11));
    }

    #[test]
    fn what_is_displaced_while_it_is_stored_can_be_tried_again() {
        let dir = tempfile::tempdir().expect("a folder");
        let unpacked = Unpacked {
            generation_bytes: 0,
            ..Unpacked::new(dir.path().join("unpacked"), 0)
        };
        let key = UnpackedKey::new(&[b"key"]);
        let mut storing = unpacked.begin().expect("begun");
        let file = storing.adding.file(&mut b"one".as_slice(), 3);
        let file = file.expect("stored");
        for content in [b"a", b"b", b"c"] {
            let files = [UnpackedFile::new("x", content)];
            unpacked.put(&[key], files).expect("kept");
        }
        let refused = storing.finish(&[key], [("x", file)]);
        let refused = refused.expect_err("its generation has gone");
        assert!(matches!(refused, RepoError::Displaced(_)), "{refused}");
        assert!(refused.retryable());
    }

    #[test]
    fn several_of_the_largest_fit_into_a_generation() {
        let bytes = |largest| Unpacked::new(PathBuf::new(), largest).generation_bytes;
        assert_eq!(bytes(0), 1 << 30);
        assert_eq!(bytes(1_000_000_000), 4_000_000_000);
        assert_eq!(bytes(u64::MAX), 16 << 30);
    }

    /// A process that is started again and again must not fill a generation anew each time.
    #[test]
    fn what_was_stored_before_counts() {
        let folder = tempfile::tempdir().expect("a folder");
        let objects = folder.path().join("objects");
        std::fs::create_dir_all(objects.join("ab")).expect("a folder");
        std::fs::write(objects.join("ab").join("1"), [0; 100]).expect("a file");
        std::fs::create_dir_all(objects.join("pack")).expect("a folder");
        std::fs::write(objects.join("pack").join("p.pack"), [0; 23]).expect("a file");
        assert_eq!(stored(&objects), 123);
        assert_eq!(stored(&folder.path().join("none")), 0);
    }
}
