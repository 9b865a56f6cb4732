//! The refs of a local repository, read again only when a file that holds some has changed.
//!
//! Main type: [`Seen`]. Whether files have changed is asked of the file system, which costs a hundredth of reading them.

use super::Store;
use crate::{RepoError, revision::Reference};
use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{Arc, PoisonError},
    time::{Duration, SystemTime},
};

/// Files and folders that are looked at; a repository with more refs in files of their own has them read each time.
const MAX_SIGNS: usize = 200;
/// Two changes within this time may leave a file with one time.
const RACY: Duration = Duration::from_millis(100);

/// What a file or folder looked like; `None`: it was not there.
type Sign = Option<(SystemTime, u64, u64)>;

/// Refs, and what the files that hold them looked like before they were read.
pub(super) struct Seen {
    signs: Vec<(PathBuf, Sign)>,
    refs: Arc<Vec<Reference>>,
}

fn sign(path: &Path) -> Sign {
    let meta = fs::symlink_metadata(path).ok()?;
    Some((meta.modified().ok()?, meta.ino(), meta.len()))
}

/// `None`: they are too many.
fn signs(repo: &gix::Repository) -> Option<Vec<(PathBuf, Sign)>> {
    let mut signs = vec![];
    let mut left = vec![repo.git_dir().join("HEAD"), repo.common_dir().join("packed-refs"), repo.common_dir().join("refs")];
    while let Some(path) = left.pop() {
        // The sign first: what is added while the folder is read changes it.
        let seen = sign(&path);
        let inside = fs::read_dir(&path).into_iter().flatten().filter_map(Result::ok).map(|entry| entry.path());
        left.extend(inside.take(MAX_SIGNS + 1));
        signs.push((path, seen));
        if signs.len() + left.len() > MAX_SIGNS {
            return None;
        }
    }
    Some(signs)
}

impl Seen {
    fn is_current(&self) -> bool {
        self.signs.iter().all(|(path, seen)| sign(path) == *seen)
    }

    fn is_racy(&self, read: SystemTime) -> bool {
        self.signs.iter().filter_map(|(_, seen)| seen.as_ref()).any(|(changed, ..)| *changed + RACY >= read)
    }
}

impl Store {
    /// All refs of a local repository, as `ls-remote` would list them; `HEAD` first.
    pub fn references(&self) -> Result<Arc<Vec<Reference>>, RepoError> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(seen) = seen.filter(|seen| seen.is_current()) {
            return Ok(Arc::clone(&seen.refs));
        }
        let (repo, now) = (self.local(), SystemTime::now());
        let signs = signs(&repo);
        let refs = Arc::new(self.read_references(&repo)?);
        let seen = signs.map(|signs| Arc::new(Seen { signs, refs: Arc::clone(&refs) })).filter(|seen| !seen.is_racy(now));
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = seen;
        Ok(refs)
    }

    fn read_references(&self, repo: &gix::Repository) -> Result<Vec<Reference>, RepoError> {
        let mut out = Vec::new();
        let platform = repo.references().map_err(|e| self.corrupt(&e))?;
        for reference in platform.all().map_err(|e| self.corrupt(&e))? {
            // A ref that cannot be read or leads nowhere is as good as absent, as for `git ls-remote`.
            let Ok(mut reference) = reference else { continue };
            let name = reference.name().as_bstr().to_string();
            // Only a tag may be an object that stands for a commit.
            let sha = match reference.target().try_id() {
                Some(id) if !name.starts_with("refs/tags/") && repo.has_object(id) => id.to_string(),
                _ => match reference.peel_to_id() {
                    Ok(id) => id.to_string(),
                    Err(_) => continue,
                },
            };
            out.push(Reference { name, sha, target: None });
        }
        let head = repo.head().map_err(|e| self.corrupt(&e))?;
        let target = head.referent_name().map(|n| n.as_bstr().to_string());
        let known = target.as_ref().and_then(|target| out.iter().find(|r| r.name == *target)).map(|r| r.sha.clone());
        if let Some(sha) = known.or_else(|| repo.head_id().ok().map(|id| id.to_string())) {
            out.insert(0, Reference { name: "HEAD".to_owned(), sha, target });
        }
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::{commit_files, init_bare};

    #[test]
    fn a_change_of_any_kind_is_seen() {
        let dir = tempfile::tempdir().expect("a folder");
        let store = init_bare(dir.path()).expect("made");
        let commit = |n: i64| commit_files(&store, "main", &[("a", Some(n.to_string().as_bytes()))], "m", n).expect("committed");
        let named = |name: &str| store.references().expect("read").iter().find(|r| r.name == name).map(|r| r.sha.clone());
        let settle = || {
            std::thread::sleep(RACY * 2);
            store.references().expect("read");
            assert!(store.seen.lock().expect("no panic").is_some(), "remembered");
        };
        let first = commit(1);
        assert!(store.references().is_ok() && store.seen.lock().expect("no panic").is_none(), "too fresh to be remembered");
        settle();
        assert_eq!(named("HEAD"), Some(first.clone()));
        let second = commit(2);
        assert_eq!((named("HEAD"), named("refs/heads/main")), (Some(second.clone()), Some(second.clone())));
        settle();
        fs::create_dir_all(dir.path().join("refs/heads/deep")).expect("made");
        fs::write(dir.path().join("refs/heads/deep/er"), format!("{first}\n")).expect("written");
        assert_eq!(named("refs/heads/deep/er"), Some(first.clone()));
        settle();
        fs::write(dir.path().join("refs/heads/deep/er"), format!("{second}\n")).expect("written");
        assert_eq!(named("refs/heads/deep/er"), Some(second), "written in place");
        settle();
        fs::write(dir.path().join("HEAD"), "ref: refs/heads/deep/er2\n").expect("written");
        assert_eq!(named("HEAD"), None, "it leads nowhere");
        settle();
        fs::write(dir.path().join("packed-refs"), format!("# pack-refs with: peeled fully-peeled sorted \n{first} refs/heads/deep/er2\n"))
            .expect("written");
        assert_eq!(named("HEAD"), Some(first));
        settle();
        fs::remove_file(dir.path().join("refs/heads/deep/er")).expect("removed");
        assert_eq!(named("refs/heads/deep/er"), None);
    }
}
