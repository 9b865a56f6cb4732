//! The copies of remote repositories under the cache folder, and the opened object databases of
//! all: which one is current, and what takes the place of one that is large or damaged.

use crate::{
    RepoError,
    git::{self, Store},
    url::Location,
};
use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, Once, Weak,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

/// How long a commit that is too large is refused without fetching it again.
const REFUSED_TTL: Duration = Duration::from_secs(60);

/// A copy that is damaged is replaced at most so often: if the new one is, too, then the repository
/// itself is to blame.
const DAMAGED_PAUSE: Duration = Duration::from_secs(3600);

/// When that is tried again if there was nothing to replace it with.
const REPLACE_RETRY: Duration = Duration::from_secs(60);

/// How the folders of copies begin that are not complete yet.
const INCOMPLETE: &str = ".new";

/// Packs in a copy before a new generation begins. Every fetch adds one, and nothing is ever
/// repacked.
const MAX_PACKS: usize = 48;

/// The opened object database of a location, shared by all users, whatever their credentials.
pub(crate) struct Copy {
    /// The local repository itself, or the folder with the generations of a copy.
    base: PathBuf,
    /// None for a local repository.
    generation: Option<AtomicU32>,
    store: Mutex<Option<Store>>,
    /// Held while fetching.
    pub fetching: tokio::sync::Mutex<()>,
    /// The last commit that was refused because of its size; finding out again would be as
    /// expensive as the first time.
    refused: Mutex<Option<(String, Instant, RepoError)>>,
    /// Until when a damaged copy is not replaced.
    not_before: Mutex<Option<Instant>>,
    /// What earlier processes left has been removed.
    cleaned: Once,
}

/// The copies under the cache folder.
pub(crate) struct Copies {
    dir: PathBuf,
    /// Only while they are in use, so that users who can name repositories cannot fill the memory.
    copies: Mutex<HashMap<Location, Weak<Copy>>>,
}

impl Copies {
    pub fn new(dir: PathBuf) -> Self {
        Self {
            dir,
            copies: Mutex::default(),
        }
    }

    pub fn of(&self, location: &Location) -> Arc<Copy> {
        let new = || {
            Arc::new(match location {
                Location::Local(path) => Copy::new(path.clone(), None),
                _ => Copy::remote(self.dir.join(location.cache_name())),
            })
        };
        match self.copies.lock() {
            Ok(mut copies) => {
                if let Some(known) = copies.get(location).and_then(Weak::upgrade) {
                    return known;
                }
                copies.retain(|_, copy| copy.strong_count() > 0);
                let made = new();
                copies.insert(location.clone(), Arc::downgrade(&made));
                made
            }
            Err(_) => new(),
        }
    }
}

impl Copy {
    fn new(base: PathBuf, generation: Option<u32>) -> Self {
        let generation = generation.map(AtomicU32::new);
        Self {
            base,
            generation,
            store: Mutex::new(None),
            fetching: tokio::sync::Mutex::new(()),
            refused: Mutex::default(),
            not_before: Mutex::default(),
            cleaned: Once::new(),
        }
    }

    /// Uses the newest existing generation.
    fn remote(base: PathBuf) -> Self {
        let names = std::fs::read_dir(&base).into_iter().flatten().flatten();
        let generations = names.filter_map(|name| name.file_name().to_str()?.parse::<u32>().ok());
        let newest = generations.max().unwrap_or(1);
        Self::new(base, Some(newest))
    }

    /// Removes what earlier processes left: older generations, incomplete ones, and locks. Before the
    /// first fetch of this process; blocks.
    pub fn clean(&self) {
        let Some(generation) = &self.generation else {
            return;
        };
        self.cleaned.call_once(|| {
            let current = generation.load(Ordering::Relaxed);
            let names = std::fs::read_dir(&self.base).into_iter().flatten();
            for entry in names.flatten() {
                let name = entry.file_name();
                let name = name.to_string_lossy();
                let is_older = name.parse::<u32>().is_ok_and(|number| number < current);
                if is_older || name.starts_with(INCOMPLETE) {
                    // A folder that cannot be removed only wastes space.
                    let _ = std::fs::remove_dir_all(entry.path());
                }
            }
            git::remove_stale_locks(&self.path());
        });
    }

    pub fn path(&self) -> PathBuf {
        match &self.generation {
            None => self.base.clone(),
            Some(generation) => self
                .base
                .join(generation.load(Ordering::Relaxed).to_string()),
        }
    }

    /// Whether the repository exists. A local one may have been deleted.
    pub fn is_there(&self) -> bool {
        match &self.generation {
            None => self.base.exists(),
            Some(_) => self.path().join("HEAD").exists(),
        }
    }

    /// Whether the current generation has many packs, or more than `bytes` in them.
    pub fn is_large(&self, bytes: u64) -> bool {
        let dir = std::fs::read_dir(self.path().join("objects/pack"));
        let sizes: Vec<u64> = dir
            .into_iter()
            .flatten()
            .filter_map(|file| Some(file.ok()?.metadata().ok()?.len()))
            .collect();
        sizes.len() / 2 >= MAX_PACKS || sizes.iter().sum::<u64>() > bytes
    }

    /// Has a new generation fetched, which takes the place of the current one only if that succeeds:
    /// until then the current one has what there is. The generation before the current one is
    /// removed first, so that there are never three of them, but not the current one, so that its
    /// readers still find its files.
    pub fn renew(
        &self,
        stop: &AtomicBool,
        fetch: impl FnOnce(&Path) -> Result<(), RepoError>,
    ) -> Result<(), RepoError> {
        let Some(generation) = &self.generation else {
            return Ok(());
        };
        let failed = |e: std::io::Error| {
            RepoError::Internal(format!("cannot renew {}: {e}", self.base.display()))
        };
        std::fs::create_dir_all(&self.base).map_err(failed)?;
        let current = generation.load(Ordering::Relaxed);
        if let Some(previous) = current.checked_sub(1) {
            // A folder that cannot be removed only wastes space.
            let _ = std::fs::remove_dir_all(self.base.join(previous.to_string()));
        }
        let mut new = tempfile::Builder::new();
        let new = new.prefix(INCOMPLETE).tempdir_in(&self.base);
        let new = new.map_err(failed)?;
        fetch(new.path())?;
        if stop.load(Ordering::Relaxed) {
            return Err(RepoError::Internal("the fetch was given up".to_owned()));
        }
        let next = self.base.join((current + 1).to_string());
        std::fs::rename(new.path(), next).map_err(failed)?;
        generation.store(current + 1, Ordering::Relaxed);
        self.forget();
        Ok(())
    }

    /// Whether a read has shown that it is torn, and it may be replaced for that.
    pub fn is_damaged(&self) -> bool {
        self.opened().is_some_and(|store| store.is_damaged()) && self.may_replace()
    }

    pub fn may_replace(&self) -> bool {
        let not_before = self.not_before.lock().ok().and_then(|at| *at);
        self.generation.is_some() && not_before.is_none_or(|at| at <= Instant::now())
    }

    /// Has a new copy fetched in place of a damaged one.
    pub fn replace(
        &self,
        stop: &AtomicBool,
        fetch: impl FnOnce(&Path) -> Result<(), RepoError>,
    ) -> Result<(), RepoError> {
        tracing::warn!(copy = %self.path().display(), "the copy of a repository is damaged: fetching it anew");
        self.leave_alone(REPLACE_RETRY);
        self.renew(stop, fetch)?;
        self.leave_alone(DAMAGED_PAUSE);
        Ok(())
    }

    fn leave_alone(&self, pause: Duration) {
        if let Ok(mut not_before) = self.not_before.lock() {
            *not_before = Instant::now().checked_add(pause);
        }
    }

    pub fn forget(&self) {
        if let Ok(mut kept) = self.store.lock() {
            *kept = None;
        }
    }

    /// The stored refusal of a commit, while it is recent.
    pub fn refusal(&self, sha: &str) -> Option<RepoError> {
        let refused = self.refused.lock().ok()?;
        refused
            .as_ref()
            .filter(|(of, at, _)| of == sha && at.elapsed() < REFUSED_TTL)
            .map(|(_, _, e)| e.clone())
    }

    /// A commit is too large, as a fetch has shown.
    pub fn refuse(&self, sha: &str, e: &RepoError) {
        if let Ok(mut refused) = self.refused.lock() {
            *refused = Some((sha.to_owned(), Instant::now(), e.clone()));
        }
    }

    pub fn opened(&self) -> Option<Store> {
        self.store.lock().ok().and_then(|s| s.clone())
    }

    pub fn keep(&self, store: &Store) {
        if let Ok(mut kept) = self.store.lock() {
            *kept = Some(store.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails, or makes a new one.
    fn replaced(copy: &Copy, is_away: bool) -> Result<(), RepoError> {
        copy.replace(&AtomicBool::new(false), |new| {
            std::fs::write(new.join("HEAD"), "new").expect("written");
            match is_away {
                true => Err(RepoError::Internal("away".to_owned())),
                false => Ok(()),
            }
        })
    }

    #[test]
    fn a_damaged_copy_stays_until_there_is_another() {
        let dir = tempfile::tempdir().expect("a folder");
        let base = dir.path().join("copy");
        std::fs::create_dir_all(base.join("1")).expect("a folder");
        let copy = Copy::remote(base.clone());
        let before = copy.path();
        assert!(copy.may_replace());
        replaced(&copy, true).expect_err("there is no other");
        assert_eq!(copy.path(), before);
        assert!(before.exists() && !copy.may_replace());
        assert_eq!(std::fs::read_dir(&base).expect("a folder").count(), 1);

        replaced(&copy, false).expect("there is another");
        assert_ne!(copy.path(), before);
        assert!(copy.path().join("HEAD").exists());
        assert!(before.exists(), "someone may read it");
        assert!(
            !copy.may_replace(),
            "the next one is the repository's fault"
        );
        assert_eq!(Copy::remote(base).path(), copy.path());
        let local = Copy::new(dir.path().to_owned(), None);
        replaced(&local, false).expect("nothing to do");
        assert!(!local.may_replace() && dir.path().exists(), "it is no copy");
    }

    /// The volume need not have room for three.
    #[test]
    fn there_are_never_more_than_two_generations() {
        let dir = tempfile::tempdir().expect("a folder");
        for generation in ["1", "2"] {
            std::fs::create_dir_all(dir.path().join(generation)).expect("a folder");
        }
        let copy = Copy::remote(dir.path().to_owned());
        let renewed = copy.renew(&AtomicBool::new(false), |_| {
            assert!(!dir.path().join("1").exists());
            assert!(dir.path().join("2").exists(), "someone may read it");
            Ok(())
        });
        renewed.expect("renewed");
        assert_eq!(copy.path(), dir.path().join("3"));
        assert!(dir.path().join("2").exists(), "someone may read it");
    }

    #[test]
    fn what_earlier_processes_left_is_removed_before_the_first_fetch() {
        let dir = tempfile::tempdir().expect("a folder");
        for left in ["1/refs", "2/refs", ".newabc/refs"] {
            std::fs::create_dir_all(dir.path().join(left)).expect("a folder");
        }
        let lock = dir.path().join("2/refs/a.lock");
        std::fs::write(&lock, "").expect("written");
        let copy = Copy::remote(dir.path().to_owned());
        assert!(lock.exists(), "nothing is written while it is only named");
        copy.clean();
        let names = std::fs::read_dir(dir.path()).expect("a folder").flatten();
        let names: Vec<_> = names.map(|entry| entry.file_name()).collect();
        assert_eq!(names, ["2"]);
        assert!(!lock.exists());
        // From now on it may be one of ours.
        std::fs::write(&lock, "").expect("written");
        copy.clean();
        assert!(lock.exists());
    }
}
