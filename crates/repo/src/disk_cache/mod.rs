//! What was rendered and looked up, kept on disk, so that a process that is started again need not
//! do it again.
//!
//! Main type: [`DiskCache`], a folder of files, each of them named by a digest of what it is the
//! result of. It is only a memory: what is missing, torn or changed is made anew. All functions
//! block.

mod folder;
mod index;
mod record;

use crate::ground::hex;
use index::Index;
use sha2::{Digest, Sha256};
use std::{
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

/// What a file is named by.
pub(crate) type Name = [u8; 32];

/// How the names of files begin that are not complete yet.
const INCOMPLETE: &str = ".tmp";

/// Why a folder is not used.
#[derive(Debug, thiserror::Error)]
pub enum DiskCacheError {
    #[error("folder {} for what was rendered belongs to another user", .0.display())]
    Foreign(PathBuf),
    #[error(
        "everybody may write to folder {} for what was rendered (mode {mode:04o}); run chmod 700 on it",
        .path.display()
    )]
    Open { path: PathBuf, mode: u32 },
    #[error("{} for what was rendered is not a folder", .0.display())]
    NoFolder(PathBuf),
    #[error("folder {} for what was rendered cannot be used: {cause}", .path.display())]
    Unusable { path: PathBuf, cause: io::Error },
}

/// A folder of bounded size, for one process at a time. Clones share it.
#[derive(Clone)]
pub struct DiskCache {
    inner: Arc<Inner>,
}

struct Inner {
    folder: PathBuf,
    index: Mutex<Index>,
    /// Nothing can be written; this has been told of.
    is_failing: AtomicBool,
}

impl std::fmt::Debug for DiskCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DiskCache")
            .field("folder", &self.inner.folder)
            .finish_non_exhaustive()
    }
}

impl DiskCache {
    /// Opens the folder, and creates it if it is not there. It has at most so many bytes; what was
    /// not used for the longest time is removed first.
    ///
    /// # Errors
    /// Others could have written what is in the folder, or it cannot be used.
    pub fn open(path: &Path, bytes: u64) -> Result<Self, DiskCacheError> {
        let mut index = Index::new(bytes);
        for (name, size) in folder::open(path)? {
            // More than may be there, if the limit was another one.
            for removed in index.add(name, size) {
                folder::remove(path, &removed);
            }
        }
        Ok(Self {
            inner: Arc::new(Inner {
                folder: path.to_owned(),
                index: Mutex::new(index),
                is_failing: AtomicBool::new(false),
            }),
        })
    }

    /// What a file is named by: `kind` says of what it is, the parts what it depends on. Another
    /// version of the program does not read what this one wrote.
    pub(crate) fn name(kind: &str, parts: &[&[u8]]) -> Name {
        let mut hash = Sha256::new();
        for part in [env!("CARGO_PKG_VERSION").as_bytes(), kind.as_bytes()]
            .iter()
            .chain(parts)
        {
            hash.update(part.len().to_le_bytes());
            hash.update(part);
        }
        hash.finalize().into()
    }

    pub(crate) fn get(&self, name: &Name) -> Option<Vec<u8>> {
        if !self.index().uses(name) {
            return None;
        }
        match record::read(&self.path(name), name) {
            Ok(content) => Some(content),
            Err(why) => {
                tracing::warn!(
                    file = %self.path(name).display(),
                    "what was rendered before cannot be read, and is removed: {why}"
                );
                self.remove(name);
                None
            }
        }
    }

    /// Keeps a content in place of the one that is there. What cannot be kept is made anew another
    /// time.
    pub(crate) fn put(&self, name: &Name, content: &[u8]) {
        let failing = &self.inner.is_failing;
        match self.write(name, content) {
            Ok(()) => failing.store(false, Ordering::Relaxed),
            Err(error) => {
                self.remove(name);
                if !failing.swap(true, Ordering::Relaxed) {
                    let folder = self.inner.folder.display();
                    tracing::warn!(%folder, %error, "what was rendered cannot be kept on disk");
                }
            }
        }
    }

    pub(crate) fn remove(&self, name: &Name) {
        let mut index = self.index();
        if index.remove(name) {
            folder::remove(&self.inner.folder, name);
        }
    }

    fn write(&self, name: &Name, content: &[u8]) -> io::Result<()> {
        let packed = record::packed(name, content)?;
        let size = packed.len() as u64;
        if !self.index().fits(size) {
            self.remove(name);
            return Ok(());
        }
        // With mode 0600. A name of its own, so that nobody reads half of it.
        let mut file = tempfile::Builder::new()
            .prefix(INCOMPLETE)
            .tempfile_in(&self.inner.folder)?;
        file.write_all(&packed)?;
        // Until it is counted nobody else adds or removes files.
        let mut index = self.index();
        file.persist(self.path(name)).map_err(|e| e.error)?;
        for removed in index.add(*name, size) {
            folder::remove(&self.inner.folder, &removed);
        }
        Ok(())
    }

    fn path(&self, name: &Name) -> PathBuf {
        self.inner.folder.join(hex(name))
    }

    fn index(&self) -> MutexGuard<'_, Index> {
        self.inner
            .index
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, os::unix::fs::PermissionsExt as _};

    fn folder() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("rendered");
        (dir, path)
    }

    fn open(path: &Path, bytes: u64) -> DiskCache {
        DiskCache::open(path, bytes).expect("opened")
    }

    fn name(of: &str) -> Name {
        DiskCache::name("test", &[of.as_bytes()])
    }

    fn mode(path: &Path) -> u32 {
        let about = fs::metadata(path).expect("it is there");
        about.permissions().mode() & 0o777
    }

    fn chmod(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("it is ours");
    }

    #[test]
    fn what_is_kept_is_there_after_a_restart_for_the_owner_only() {
        let (_dir, path) = folder();
        let cache = open(&path, 1 << 20);
        assert_eq!(cache.get(&name("a")), None);
        cache.put(&name("a"), b"one");
        cache.put(&name("a"), b"two");
        cache.put(&name("b"), b"");
        for cache in [cache, open(&path, 1 << 20)] {
            assert_eq!(cache.get(&name("a")).as_deref(), Some(b"two".as_slice()));
            assert_eq!(cache.get(&name("b")).as_deref(), Some(b"".as_slice()));
            assert_eq!(cache.get(&name("c")), None);
        }
        assert_eq!(mode(&path), 0o700);
        let files: Vec<_> = fs::read_dir(&path).expect("a folder").flatten().collect();
        assert_eq!(files.len(), 2, "nothing else is left");
        for file in files {
            assert_eq!(mode(&file.path()), 0o600);
        }
        let cache = open(&path, 1 << 20);
        cache.remove(&name("a"));
        assert_eq!(cache.get(&name("a")), None);
        assert_eq!(open(&path, 1 << 20).get(&name("a")), None);
    }

    #[test]
    fn parts_are_not_confused() {
        let names = [
            DiskCache::name("a", &[b"b", b"c"]),
            DiskCache::name("a", &[b"bc"]),
            DiskCache::name("ab", &[b"c"]),
            DiskCache::name("a", &[b"c", b"b"]),
        ];
        for (i, one) in names.iter().enumerate() {
            assert!(!names[..i].contains(one), "{i}");
        }
    }

    #[test]
    fn a_torn_or_changed_file_is_removed() {
        let spoils: [fn(&mut Vec<u8>); 5] = [
            Vec::clear,
            |bytes| bytes.truncate(bytes.len() / 2),
            |bytes| bytes.truncate(20),
            |bytes| {
                if let Some(last) = bytes.last_mut() {
                    *last ^= 1;
                }
            },
            |bytes| bytes.push(0),
        ];
        for (i, spoil) in spoils.iter().enumerate() {
            let (_dir, path) = folder();
            let cache = open(&path, 1 << 20);
            cache.put(&name("a"), &b"a long text ".repeat(50));
            let file = path.join(hex(&name("a")));
            let mut bytes = fs::read(&file).expect("it is there");
            spoil(&mut bytes);
            fs::write(&file, bytes).expect("written");
            let cache = open(&path, 1 << 20);
            assert_eq!(cache.get(&name("a")), None, "{i}");
            assert!(!file.exists(), "{i}");
            cache.put(&name("a"), b"anew");
            assert_eq!(cache.get(&name("a")).as_deref(), Some(b"anew".as_slice()));
        }
    }

    #[test]
    fn a_file_does_not_stand_for_another() {
        let (_dir, path) = folder();
        let cache = open(&path, 1 << 20);
        cache.put(&name("a"), b"a");
        cache.put(&name("b"), b"b");
        let file = |of: &str| path.join(hex(&name(of)));
        fs::copy(file("a"), file("b")).expect("copied");
        assert_eq!(cache.get(&name("b")), None);
        assert_eq!(cache.get(&name("a")).as_deref(), Some(b"a".as_slice()));
    }

    #[test]
    fn what_was_not_used_for_the_longest_time_goes_first() {
        let (_dir, path) = folder();
        // Each of them is counted as one block of the disk.
        let cache = open(&path, 3 * index::BLOCK);
        for of in ["a", "b", "c"] {
            cache.put(&name(of), of.as_bytes());
        }
        assert!(cache.get(&name("a")).is_some());
        cache.put(&name("d"), b"d");
        let there = |cache: &DiskCache| {
            let of = ["a", "b", "c", "d"];
            of.map(|of| cache.index().has(&name(of)) && path.join(hex(&name(of))).exists())
        };
        assert_eq!(there(&cache), [true, false, true, true]);
        // What alone is too large displaces nothing.
        let random: Vec<u8> = (0..5_000u32)
            .flat_map(|n| Sha256::digest(n.to_le_bytes()))
            .collect();
        cache.put(&name("e"), &random);
        assert_eq!(cache.get(&name("e")), None);
        assert_eq!(there(&cache), [true, false, true, true]);
        let narrower = open(&path, index::BLOCK);
        let left = there(&narrower);
        assert_eq!(left.iter().filter(|is| **is).count(), 1, "{left:?}");
    }

    #[test]
    fn the_rest_of_an_interrupted_write_is_removed() {
        let (_dir, path) = folder();
        drop(open(&path, 1 << 20));
        fs::write(path.join(".tmpAb12"), "x").expect("written");
        fs::write(path.join("notes.txt"), "x").expect("written");
        drop(open(&path, 1 << 20));
        let left = fs::read_dir(&path).expect("a folder").flatten();
        let left: Vec<_> = left.map(|file| file.file_name()).collect();
        assert_eq!(left, ["notes.txt"], "what is not ours stays");
    }

    #[test]
    fn a_folder_that_others_may_write_to_is_not_believed() {
        let (_dir, path) = folder();
        open(&path, 1 << 20).put(&name("a"), b"a");
        chmod(&path, 0o777);
        let refused = DiskCache::open(&path, 1 << 20).expect_err("refused");
        assert_eq!(
            refused.to_string(),
            format!(
                "everybody may write to folder {} for what was rendered (mode 0777); run chmod 700 on it",
                path.display()
            )
        );
        assert!(path.join(hex(&name("a"))).exists());
        // Its group may be that of a volume: it is used, but not what is in it.
        chmod(&path, 0o770);
        let cache = open(&path, 1 << 20);
        assert_eq!((cache.get(&name("a")), mode(&path)), (None, 0o700));
        cache.put(&name("a"), b"a");
        assert!(open(&path, 1 << 20).get(&name("a")).is_some());

        let (dir, other) = folder();
        fs::write(&other, "x").expect("written");
        let refused = DiskCache::open(&other, 1 << 20).expect_err("a file");
        assert!(matches!(refused, DiskCacheError::NoFolder(_)), "{refused}");
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&path, &link).expect("a link");
        let refused = DiskCache::open(&link, 1 << 20).expect_err("a link");
        assert!(matches!(refused, DiskCacheError::NoFolder(_)), "{refused}");
    }
}
