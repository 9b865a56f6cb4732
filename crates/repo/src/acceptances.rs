//! Which repositories accepted the credentials when they were asked last, for the next process:
//! what was downloaded with them stands in while such a repository is away.
//!
//! Main type: [`Acceptances`]. There is a file for each of them, beside what was downloaded. That one
//! is lost only means that the repository has to be asked: it never makes a refusal forgotten.

use crate::{
    RepoError,
    ground::{blocking, hex},
};
use sha2::{Digest, Sha256};
use std::{
    fs::{self, DirBuilder, OpenOptions},
    io,
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::SystemTime,
};

/// The fingerprint of an access, and which of the repositories that it reads; empty where that is
/// only one.
pub(crate) type Key = ([u8; 32], String);

/// Files that are kept; users who can name repositories cannot fill the disk.
const MAX: usize = 100_000;
/// Files that are added before those unused for longest are removed, if there are too many.
const ADDED: u64 = 10_000;

#[derive(Clone)]
pub(crate) struct Acceptances(Option<Arc<Kept>>);

struct Kept {
    folder: PathBuf,
    workload: String,
    /// By this process.
    added: AtomicU64,
}

impl Acceptances {
    /// `folder` is created when it is needed. `workload`: who this process is to the servers that it
    /// asks without other credentials.
    pub fn new(folder: PathBuf, workload: &str) -> Self {
        let workload = workload.to_owned();
        Self(Some(Arc::new(Kept {
            folder,
            workload,
            added: AtomicU64::new(0),
        })))
    }

    /// That nothing is kept.
    pub fn none() -> Self {
        Self(None)
    }

    /// Whether the repository accepted the credentials; what cannot be read says no.
    pub async fn has(&self, key: &Key) -> bool {
        let Some(kept) = self.0.clone() else {
            return false;
        };
        let path = kept.path(key);
        let read = move || {
            let is_there = fs::symlink_metadata(&path).is_ok_and(|about| about.is_file());
            if is_there {
                // What is in use is not the oldest. If that fails it is only removed earlier.
                let _ = fs::File::open(&path).and_then(|file| touch(&file));
            }
            Ok(is_there)
        };
        blocking(read).await.unwrap_or(false)
    }

    /// Keeps what the repository answered. False: that could not be done, and is to be tried again.
    /// `held` is kept until it is done, even if nobody waits for it any more.
    pub async fn set(&self, key: &Key, is_accepted: bool, held: impl Send + 'static) -> bool {
        let Some(kept) = self.0.clone() else {
            return true;
        };
        let path = kept.path(key);
        let done = blocking(move || {
            let _held = held;
            let done = match is_accepted {
                true => kept.add(&path),
                false => removed(&path),
            };
            done.map_err(|e| RepoError::Internal(format!("{}: {e}", path.display())))
        });
        match done.await {
            Ok(()) => true,
            Err(error) => {
                tracing::warn!(%error, "whether a repository accepts credentials cannot be kept on disk");
                false
            }
        }
    }
}

impl Kept {
    /// The same in every version of the program, as what was downloaded is.
    fn path(&self, (fingerprint, repository): &Key) -> PathBuf {
        let mut hash = Sha256::new();
        for part in [
            fingerprint.as_slice(),
            self.workload.as_bytes(),
            repository.as_bytes(),
        ] {
            hash.update(part.len().to_le_bytes());
            hash.update(part);
        }
        let name: [u8; 32] = hash.finalize().into();
        self.folder.join(hex(&name))
    }

    fn add(&self, path: &Path) -> io::Result<()> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.folder)?;
        match self.added.fetch_add(1, Ordering::Relaxed) {
            0 => bound(&self.folder, MAX)?,
            ADDED => self.added.store(0, Ordering::Relaxed),
            _ => {}
        }
        // Nothing is written into it: it cannot be torn.
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(path)?;
        touch(&file)
    }
}

fn touch(file: &fs::File) -> io::Result<()> {
    file.set_modified(SystemTime::now())
}

fn removed(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

/// Removes the files that have not been used for longest of a folder that has more than so many.
fn bound(folder: &Path, most: usize) -> io::Result<()> {
    let mut files = Vec::new();
    for file in fs::read_dir(folder)? {
        let file = file?;
        let written = file.metadata().and_then(|about| about.modified());
        files.push((written.unwrap_or(SystemTime::UNIX_EPOCH), file.path()));
    }
    let excess = files.len().saturating_sub(most);
    files.sort();
    files
        .iter()
        .take(excess)
        .try_for_each(|(_, path)| removed(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(repository: &str) -> Key {
        ([1; 32], repository.to_owned())
    }

    #[tokio::test]
    async fn what_cannot_be_read_was_not_accepted() {
        let dir = tempfile::tempdir().expect("a folder");
        let folder = dir.path().join("accepted");
        let started = || Acceptances::new(folder.clone(), "");
        assert!(!started().has(&key("a")).await);
        assert!(started().set(&key("a"), true, ()).await);
        assert!(started().has(&key("a")).await);
        assert!(!started().has(&key("b")).await);
        let other = Acceptances::new(folder.clone(), "another workload");
        assert!(!other.has(&key("a")).await);
        for _ in 0..2 {
            assert!(started().set(&key("a"), false, ()).await);
            assert!(!started().has(&key("a")).await);
        }
        // A file at the place of the folder.
        fs::remove_dir_all(&folder).expect("removed");
        fs::write(&folder, "x").expect("written");
        assert!(!started().set(&key("a"), true, ()).await);
        assert!(!started().has(&key("a")).await);
    }

    #[tokio::test]
    async fn what_is_used_is_not_the_oldest() {
        let dir = tempfile::tempdir().expect("a folder");
        let accepted = Acceptances::new(dir.path().to_owned(), "");
        assert!(accepted.set(&key("a"), true, ()).await);
        let mut files = fs::read_dir(dir.path()).expect("a folder").flatten();
        let path = files.next().expect("it is kept").path();
        let age = || {
            let file = OpenOptions::new().write(true).open(&path);
            let file = file.expect("it is there");
            let aged = file.set_modified(SystemTime::UNIX_EPOCH);
            aged.expect("it is ours");
        };
        let modified = || {
            let about = fs::metadata(&path).expect("it is there");
            about.modified().expect("it has a time")
        };
        age();
        assert!(accepted.has(&key("a")).await);
        assert_ne!(modified(), SystemTime::UNIX_EPOCH);
        age();
        assert!(accepted.set(&key("a"), true, ()).await);
        assert_ne!(modified(), SystemTime::UNIX_EPOCH);
    }

    #[test]
    fn there_are_not_more_than_may_be() {
        let dir = tempfile::tempdir().expect("a folder");
        for i in 0..5_u64 {
            let file = fs::File::create(dir.path().join(i.to_string())).expect("created");
            let written = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(i);
            file.set_modified(written).expect("it is ours");
        }
        bound(dir.path(), 2).expect("bounded");
        let left = fs::read_dir(dir.path()).expect("a folder").flatten();
        let mut left: Vec<_> = left.map(|file| file.file_name()).collect();
        left.sort();
        assert_eq!(left, ["3", "4"]);
    }
}
