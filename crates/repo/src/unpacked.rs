//! What was downloaded, unpacked into a bare repository of our own: an archive becomes a commit
//! there, so that it is read, cached and compared as the commits of Git repositories are.
//!
//! Main type: [`Unpacked`]. All functions block, but those that are `async`.

use crate::{
    RepoError,
    git::{self, Added, Adding, Commit, GitLimits, Store, UnpackedFile},
    ground::blocking,
};
use sha2::{Digest, Sha256};
use std::{
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, Once, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

/// Bytes that are written before a new generation begins: this many at least, and at most, however
/// large a download may be.
const GENERATION_BYTES: u64 = 1 << 30;
const GENERATION_BYTES_MAX: u64 = 16 << 30;

/// A generation that is damaged is replaced at most so often.
const DAMAGED_PAUSE: Duration = Duration::from_secs(3600);

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
    /// The locks of dead processes have been removed.
    cleaned: Once,
}

/// What becomes of a generation that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Over {
    /// It is used once more.
    Stays,
    /// The next one begins if it can be made; else it is used once more.
    MayStay,
    /// The next one begins, or nothing is done.
    Ends,
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
    /// When the last one was replaced because it was damaged.
    replaced: Option<Instant>,
    /// The one before it, if this process used it.
    before: Option<Store>,
}

impl Generation {
    fn count(&mut self, bytes: u64) {
        self.written = self.written.saturating_add(bytes);
    }

    /// Whether something in it is torn: all of it can be downloaded again.
    fn is_to_be_replaced(&self) -> bool {
        let is_time = |at: Instant| at.elapsed() >= DAMAGED_PAUSE;
        self.store.is_damaged() && self.replaced.is_none_or(is_time)
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
            cleaned: Once::new(),
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
        over: Over,
        work: impl FnOnce(&mut Generation) -> Result<T, RepoError>,
    ) -> Result<T, RepoError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.is_none() {
            let newest = self.newest();
            // Later ones are of this process.
            self.cleaned
                .call_once(|| git::remove_stale_locks(&self.path(newest)));
            *state = Some(self.open(newest)?);
        }
        let Some(generation) = state.as_mut() else {
            return Err(RepoError::Internal("no generation is open".to_owned()));
        };
        let is_over = generation.written > self.generation_bytes || generation.is_to_be_replaced();
        if is_over && over != Over::Stays {
            match self.after(generation, over) {
                Ok(next) => *generation = next,
                Err(e) if over == Over::Ends => return Err(e),
                // What there is can be read all the same.
                Err(e) => tracing::debug!(error = %e, "the next generation cannot be made"),
            }
        }
        work(generation)
    }

    /// Begins the next generation. Where it is needed, the one before gives way to it if there is
    /// no room for three.
    fn after(&self, generation: &mut Generation, over: Over) -> Result<Generation, RepoError> {
        let number = generation.number + 1;
        let before = generation.number.checked_sub(1);
        let is_before_there = before.is_some_and(|before| self.path(before).exists());
        let mut next = match self.open_next(number) {
            Ok(next) => {
                self.remove_before(generation);
                next
            }
            Err(e) if over == Over::Ends && is_before_there => {
                tracing::warn!(error = %e, "making room for the next generation");
                self.remove_before(generation);
                self.open_next(number)?
            }
            Err(e) => return Err(e),
        };
        next.replaced = match generation.is_to_be_replaced() {
            true => Some(Instant::now()),
            false => generation.replaced,
        };
        next.before = Some(generation.store.clone());
        Ok(next)
    }

    /// Removes the generation before this one. That counts as the beginning of the next one: what
    /// was stored in it is there no more.
    fn remove_before(&self, generation: &mut Generation) {
        generation.before = None;
        if let Some(before) = generation.number.checked_sub(1) {
            // A folder that cannot be removed only wastes space.
            let _ = std::fs::remove_dir_all(self.path(before));
        }
        self.begun.fetch_add(1, Ordering::AcqRel);
    }

    fn open_next(&self, number: u32) -> Result<Generation, RepoError> {
        let opened = self.open(number);
        if opened.is_err() {
            // The next process would take it for the newest.
            let _ = std::fs::remove_dir_all(self.path(number));
        }
        opened
    }

    fn path(&self, number: u32) -> PathBuf {
        self.base.join(number.to_string())
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
        let path = self.path(number);
        let shown = path.display().to_string();
        let store = git::open_or_init(&path, &shown, GitLimits::default())?;
        Ok(Generation {
            number,
            store,
            written: stored(&path.join("objects")),
            replaced: None,
            before: None,
        })
    }

    pub fn get(&self, key: &UnpackedKey) -> Result<Option<Commit>, RepoError> {
        if !self.base.exists() {
            return Ok(None);
        }
        match self.find(key, Over::MayStay) {
            // Its generation is replaced if it is torn.
            Err(RepoError::Corrupt { .. }) => self.find(key, Over::Ends),
            found => found,
        }
    }

    fn find(&self, key: &UnpackedKey, over: Over) -> Result<Option<Commit>, RepoError> {
        self.with(over, |generation| {
            let found = generation.store.named(&key.name())?;
            Ok(found.map(|id| (generation.store.clone(), id)))
        })
    }

    /// The same, also from the generation before: what it has stands in for what cannot be downloaded
    /// now. If that generation is damaged, then this may be, too.
    pub fn get_or_before(&self, key: &UnpackedKey) -> Result<Option<Commit>, RepoError> {
        if let Some(found) = self.get(key)? {
            return Ok(Some(found));
        }
        if !self.base.exists() {
            return Ok(None);
        }
        let before = self.with(Over::Stays, |generation| Ok(generation.before.clone()))?;
        let Some(before) = before.filter(Store::is_there) else {
            return Ok(None);
        };
        match before.named(&key.name()) {
            Err(RepoError::Corrupt { .. }) => Ok(None),
            found => Ok(found?.map(|id| (before, id))),
        }
    }

    /// As [`Self::get`], without blocking.
    pub async fn kept(self: &Arc<Self>, key: UnpackedKey) -> Result<Option<Commit>, RepoError> {
        let unpacked = Arc::clone(self);
        blocking(move || unpacked.get(&key)).await
    }

    /// As [`Self::get_or_before`], without blocking.
    pub async fn kept_before(
        self: &Arc<Self>,
        key: UnpackedKey,
    ) -> Result<Option<Commit>, RepoError> {
        let unpacked = Arc::clone(self);
        blocking(move || unpacked.get_or_before(&key)).await
    }

    /// As [`Self::forget`], without blocking. A failure is only logged, with what the download is.
    pub async fn forget_kept(self: &Arc<Self>, what: &'static str, key: UnpackedKey) {
        let unpacked = Arc::clone(self);
        if let Err(e) = blocking(move || unpacked.forget(&key)).await {
            tracing::warn!(error = %e, what, "a download that was refused stays in the cache");
        }
    }

    /// What the key names is not found by it any more: its owner has refused it. Those who read it
    /// are not disturbed.
    pub fn forget(&self, key: &UnpackedKey) -> Result<(), RepoError> {
        if !self.base.exists() {
            return Ok(());
        }
        self.with(Over::Stays, |generation| {
            let name = key.name();
            let current = generation.store.forget_name(&name);
            // Also if that failed: each of the two may be asked for it.
            let before = generation.before.as_ref().filter(|store| store.is_there());
            let before = before.map_or(Ok(()), |store| store.forget_name(&name));
            current.and(before)
        })
    }

    pub fn put<'a>(
        &self,
        keys: &[UnpackedKey],
        files: impl IntoIterator<Item = UnpackedFile<'a>>,
    ) -> Result<Commit, RepoError> {
        self.with(Over::Ends, |generation| {
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

    /// Whether a generation is the current one or the one before it, unless that gave way already;
    /// the others are removed.
    fn has_generation(&self, number: u32) -> bool {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let current = state.as_ref().map(|generation| generation.number);
        current.is_some_and(|current| current <= number.saturating_add(1))
            && self.path(number).exists()
    }

    /// Begins to store a download whose files are not in memory together.
    pub fn begin(&self) -> Result<Storing<'_>, RepoError> {
        self.with(Over::Ends, |generation| {
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
    fn what_a_killed_process_left_is_no_obstacle() {
        let dir = tempfile::tempdir().expect("a folder");
        let base = dir.path().join("unpacked");
        // It was making the repository.
        std::fs::create_dir_all(base.join("1/objects/info")).expect("a folder");
        let key = UnpackedKey::new(&[b"key"]);
        let put = |content: &[u8]| {
            let files = [UnpackedFile::new("x", content)];
            let put = Unpacked::new(base.clone(), 0).put(&[key], files);
            put.expect("kept").1
        };
        put(b"one");
        // It was naming another download.
        let lock = base.join(format!("1/refs/unpacked/{}.lock", key.name()));
        std::fs::create_dir_all(lock.parent().expect("a folder")).expect("made");
        std::fs::write(&lock, "").expect("written");
        let second = put(b"two");
        let found = Unpacked::new(base.clone(), 0).get(&key);
        assert_eq!(found.expect("readable").expect("kept").1, second);
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
    fn what_the_next_generation_lacks_stands_in() {
        let dir = tempfile::tempdir().expect("a folder");
        let unpacked = Unpacked {
            generation_bytes: 0,
            ..Unpacked::new(dir.path().join("unpacked"), 0)
        };
        let (first, second) = (UnpackedKey::new(&[b"1"]), UnpackedKey::new(&[b"2"]));
        let files = [UnpackedFile::new("x", b"one")];
        let (_, id) = unpacked.put(&[first], files).expect("kept");
        // The next one begins.
        assert!(unpacked.get(&first).expect("readable").is_none());
        let before = || unpacked.get_or_before(&first).expect("readable");
        assert_eq!(before().expect("kept").1, id);
        assert!(unpacked.get_or_before(&second).expect("readable").is_none());
        unpacked.forget(&first).expect("forgotten");
        assert!(before().is_none());
        unpacked.forget(&first).expect("as it was");
    }

    /// Others still have what it has.
    #[test]
    fn a_generation_stays_until_the_next_one_can_be_made() {
        let dir = tempfile::tempdir().expect("a folder");
        let base = dir.path().join("unpacked");
        let unpacked = Unpacked {
            generation_bytes: 0,
            ..Unpacked::new(base.clone(), 0)
        };
        let (first, second) = (UnpackedKey::new(&[b"1"]), UnpackedKey::new(&[b"2"]));
        for (key, content) in [(first, b"a"), (second, b"b")] {
            let files = [UnpackedFile::new("x", content)];
            unpacked.put(&[key], files).expect("kept");
        }
        assert!(base.join("1").exists() && base.join("2").exists());
        let epoch = unpacked.epoch();
        std::fs::write(base.join("3"), "no folder").expect("written");
        for _ in 0..2 {
            let found = unpacked.get(&second).expect("this one can be read");
            assert!(found.is_some());
            let before = unpacked.get_or_before(&first).expect("readable");
            assert!(before.is_some());
        }
        assert!(base.join("1").exists());
        assert_eq!(unpacked.epoch(), epoch);

        // Whoever stores something needs the next one.
        let put = || {
            let files = [UnpackedFile::new("x", b"c")];
            unpacked.put(&[first], files).map(|_| ())
        };
        put().expect_err("there was another reason than the room");
        assert!(!base.join("1").exists(), "it gave way");
        let (begun, cleared) = (epoch, unpacked.epoch());
        assert_eq!(cleared, Epoch(begun.0 + 1));
        assert!(unpacked.still_has(begun));
        put().expect_err("as before");
        assert_eq!(unpacked.epoch(), cleared, "nothing more has gone");
        unpacked.forget(&second).expect("it needs no other");
        assert!(unpacked.get(&second).expect("readable").is_none());
        let files = [UnpackedFile::new("x", b"d")];
        std::fs::remove_file(base.join("3")).expect("removed");
        unpacked.put(&[second], files).expect("kept");
        assert!(base.join("2").exists() && base.join("3").exists());
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
