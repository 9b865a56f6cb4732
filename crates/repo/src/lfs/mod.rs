//! Git LFS: files that a commit only points to, and that a render reads, are downloaded from the
//! server of the repository.
//!
//! Main types: [`Pointer`]; [`Objects`], which a reader of files has and which records what is
//! missing; [`Lfs`], which downloads that. Nothing is downloaded that is not read.

mod batch;

use crate::{RepoAccess, RepoError, common::Common, http::Clients, url::refuse};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tiphys_api::{access::shown_url, repo_url::Form, repo_url::RepoUrl};
use tiphys_render::FileError;

/// Bytes of one object.
const MAX_BYTES: u64 = 64 << 20;
/// Bytes, and number, of the objects of one render.
const MAX_TOTAL: u64 = 256 << 20;
const MAX_OBJECTS: usize = 1_000;
/// Bytes of objects that are kept in memory for later renders.
const KEPT: u64 = 64 << 20;
/// No pointer is longer.
const MAX_POINTER: usize = 1024;
const VERSION: &str = "version https://git-lfs.github.com/spec/v1";
const MAX_REDIRECTS: usize = 10;

/// What is in a repository in place of a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Pointer {
    /// SHA-256 as 64 hexadecimal digits.
    pub oid: String,
    pub size: u64,
}

/// Bytes of the largest pointer.
pub(crate) const LARGEST_POINTER: u64 = MAX_POINTER as u64;

/// Whether the content of a file is a pointer, even one that cannot be read.
pub(crate) fn is_pointer(content: &[u8]) -> bool {
    content.len() < MAX_POINTER && content.starts_with(VERSION.as_bytes())
}

impl Pointer {
    /// `None`: it is of no known form.
    fn parse(content: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(content).ok()?;
        let mut lines = text.lines();
        lines.next().filter(|line| *line == VERSION)?;
        let oid = lines.next()?.strip_prefix("oid sha256:")?;
        let size = lines.next()?.strip_prefix("size ")?.parse().ok()?;
        let is_hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
        let is_whole = oid.len() == 64 && oid.bytes().all(is_hex) && lines.next().is_none();
        is_whole.then(|| Self {
            oid: oid.to_owned(),
            size,
        })
    }
}

/// The objects of one render, shared by all readers of its files.
#[derive(Default)]
pub(crate) struct Objects {
    /// The fingerprint of the access that they are downloaded with.
    access: [u8; 32],
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    found: BTreeMap<Pointer, Arc<[u8]>>,
    /// With the path of a file that points to it.
    missing: BTreeMap<Pointer, String>,
}

impl Objects {
    pub fn new(access: &RepoAccess) -> Self {
        Self {
            access: access.fingerprint(),
            state: Mutex::default(),
        }
    }

    /// What is rendered of the objects belongs to this access: others who have the same commit may
    /// not read them.
    pub fn access(&self) -> [u8; 32] {
        self.access
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The content that a pointer stands for.
    ///
    /// # Errors
    /// It has not been downloaded yet, and is recorded as missing; or the pointer cannot be read.
    pub fn read(&self, path: &str, content: &[u8]) -> Result<Vec<u8>, FileError> {
        let broken = || FileError::Unreadable {
            path: path.to_owned(),
            reason: "it is a Git LFS pointer that cannot be read".to_owned(),
        };
        let pointer = Pointer::parse(content).ok_or_else(broken)?;
        if pointer.size == 0 {
            return Ok(Vec::new());
        }
        let mut state = self.state();
        if let Some(content) = state.found.get(&pointer) {
            return Ok(content.to_vec());
        }
        state.missing.insert(pointer, path.to_owned());
        Err(FileError::LfsPointer(path.to_owned()))
    }

    /// Records what a pointer stands for as missing, unless it is there.
    pub fn want(&self, path: &str, content: &[u8]) {
        let is_small = Pointer::parse(content).is_some_and(|pointer| pointer.size <= MAX_BYTES);
        if is_small {
            // The error only says that it is missing.
            let _ = self.read(path, content);
        }
    }

    pub fn is_any_missing(&self) -> bool {
        !self.state().missing.is_empty()
    }
}

/// Downloads objects.
pub(crate) struct Lfs {
    clients: Clients,
    /// By the access that they were downloaded with: who knows the digest of a file may not read it.
    kept: moka::sync::Cache<([u8; 32], Pointer), Arc<[u8]>>,
}

impl Lfs {
    pub fn new(timeout: Duration, common: Arc<Common>) -> Self {
        let weigh = |_: &([u8; 32], Pointer), content: &Arc<[u8]>| {
            u32::try_from(200 + content.len()).unwrap_or(u32::MAX)
        };
        Self {
            clients: Clients::new(timeout, common, MAX_REDIRECTS),
            kept: moka::sync::Cache::builder()
                .weigher(weigh)
                .max_capacity(KEPT)
                .build(),
        }
    }

    /// Downloads what is missing. False: nothing is. `key` tells accesses apart, `access` is the
    /// one to use, with its token.
    ///
    /// # Errors
    /// An object cannot be had, it is not what its pointer says, or there are too many.
    pub async fn complete(
        &self,
        objects: &Objects,
        key: [u8; 32],
        access: &RepoAccess,
    ) -> Result<bool, RepoError> {
        let missing = std::mem::take(&mut objects.state().missing);
        if missing.is_empty() {
            return Ok(false);
        }
        check_amount(&access.url, objects, &missing)?;
        let mut wanted = BTreeMap::new();
        for (pointer, path) in missing {
            match self.kept.get(&(key, pointer.clone())) {
                Some(content) => drop(objects.state().found.insert(pointer, content)),
                None => drop(wanted.insert(pointer, path)),
            }
        }
        if !wanted.is_empty() {
            let endpoint = endpoint(&access.url)?;
            let found = batch::download(&self.clients, access, &endpoint, &wanted).await?;
            for (pointer, content) in found {
                self.kept
                    .insert((key, pointer.clone()), Arc::clone(&content));
                objects.state().found.insert(pointer, content);
            }
        }
        Ok(true)
    }
}

fn check_amount(
    url: &str,
    objects: &Objects,
    missing: &BTreeMap<Pointer, String>,
) -> Result<(), RepoError> {
    let over = |excess: String| RepoError::OverLimit {
        url: shown_url(url),
        excess,
    };
    if let Some((pointer, path)) = missing.iter().find(|(p, _)| p.size > MAX_BYTES) {
        let size = pointer.size;
        return Err(over(format!(
            "a Git LFS file of {size} bytes, more than {MAX_BYTES}: {path}"
        )));
    }
    let state = objects.state();
    let all = || state.found.keys().chain(missing.keys());
    let bytes = all().fold(0_u64, |sum, pointer| sum.saturating_add(pointer.size));
    if all().count() > MAX_OBJECTS {
        return Err(over(format!(
            "more than {MAX_OBJECTS} Git LFS files to read"
        )));
    }
    if bytes > MAX_TOTAL {
        return Err(over(format!(
            "more than {MAX_TOTAL} bytes of Git LFS files to read"
        )));
    }
    Ok(())
}

/// The LFS server of a repository, without a slash at the end. Only https and http have one that
/// takes the same credentials.
fn endpoint(url: &str) -> Result<String, RepoError> {
    let parsed = RepoUrl::parse(url).map_err(|e| refuse(url, &e.to_string()))?;
    if !matches!(parsed.form, Form::Https | Form::Http) {
        return Err(RepoError::Unsupported(format!(
            "Git LFS of {} is not supported: only https and http repositories have an LFS server that can be asked",
            shown_url(url)
        )));
    }
    let url = url.trim_end_matches('/');
    let end = if url.ends_with(".git") { "" } else { ".git" };
    Ok(format!("{url}{end}/info/lfs"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OID: &str = "4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393";

    #[test]
    fn pointers() {
        let good = format!("{VERSION}\noid sha256:{OID}\nsize 12345\n");
        let pointer = Pointer::parse(good.as_bytes()).expect("a pointer");
        assert_eq!((pointer.oid.as_str(), pointer.size), (OID, 12_345));
        for bad in [
            format!("{VERSION}\noid sha256:{OID}\n"),
            format!("{VERSION}\noid sha256:{}\nsize 1\n", &OID[1..]),
            format!("{VERSION}\noid sha256:{}\nsize 1\n", OID.to_uppercase()),
            format!("{VERSION}\noid md5:{OID}\nsize 1\n"),
            format!("{VERSION}\noid sha256:{OID}\nsize -1\n"),
            format!("{VERSION}\next-0-x sha256:{OID}\noid sha256:{OID}\nsize 1\n"),
            format!("{VERSION}\noid sha256:{OID}\nsize 1\nmore\n"),
            VERSION.to_owned(),
        ] {
            assert!(is_pointer(bad.as_bytes()), "{bad}");
            assert_eq!(Pointer::parse(bad.as_bytes()), None, "{bad}");
            let read = Objects::default().read("a", bad.as_bytes());
            assert!(matches!(read, Err(FileError::Unreadable { .. })), "{bad}");
        }
    }

    #[test]
    fn what_is_read_is_recorded_until_it_is_there() {
        let objects = Objects::default();
        let text = format!("{VERSION}\noid sha256:{OID}\nsize 3\n");
        let read = || objects.read("a/b", text.as_bytes());
        assert_eq!(read(), Err(FileError::LfsPointer("a/b".to_owned())));
        assert!(objects.is_any_missing());
        let missing = std::mem::take(&mut objects.state().missing);
        let (pointer, path) = missing.into_iter().next().expect("one");
        assert_eq!((path.as_str(), pointer.size), ("a/b", 3));
        objects
            .state()
            .found
            .insert(pointer, b"abc".as_slice().into());
        assert_eq!(read(), Ok(b"abc".to_vec()));
        assert!(!objects.is_any_missing());
        let empty = format!("{VERSION}\noid sha256:{OID}\nsize 0\n");
        assert_eq!(objects.read("a", empty.as_bytes()), Ok(Vec::new()));
    }

    #[test]
    fn limits() {
        let pointer = |n: usize, size: u64| Pointer {
            oid: format!("{n:064}"),
            size,
        };
        for (count, size, good) in [
            (1, MAX_BYTES, true),
            (1, MAX_BYTES + 1, false),
            (5, MAX_BYTES, false),
            (MAX_OBJECTS, 1, true),
            (MAX_OBJECTS + 1, 1, false),
        ] {
            let missing = (0..count).map(|n| (pointer(n, size), "a".to_owned()));
            let checked = check_amount("https://h/r", &Objects::default(), &missing.collect());
            assert_eq!(checked.is_ok(), good, "{count} of {size}");
        }
    }

    #[test]
    fn endpoints() {
        for (url, expected) in [
            ("https://h/g/r", Some("https://h/g/r.git/info/lfs")),
            ("https://h/g/r.git", Some("https://h/g/r.git/info/lfs")),
            ("http://h:8080/g/r/", Some("http://h:8080/g/r.git/info/lfs")),
            ("git@h:g/r.git", None),
            ("ssh://git@h/g/r.git", None),
            ("file:///r.git", None),
        ] {
            assert_eq!(endpoint(url).ok().as_deref(), expected, "{url}");
        }
    }
}
