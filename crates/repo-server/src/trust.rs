//! What an installation trusts, from files that are mounted from its ConfigMaps: ssh host keys,
//! certificate authorities and the keys that signatures are made with.
//!
//! Main type: [`Trusted`]. The files are read for each request, as they may change at any time.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::SystemTime,
};
use tiphys_api::repository::Repository;
use tiphys_repo::{RepoAccess, Trust};
use tiphys_rpc::ApiError;
use tiphys_signatures::Keyring;

/// The largest file; a ConfigMap has at most 1 MiB.
const MAX_FILE: u64 = 2 << 20;

/// Where the files are. What is missing counts as empty.
#[derive(Clone, Debug)]
pub struct TrustPaths {
    /// A known_hosts file.
    pub known_hosts: PathBuf,
    /// A folder of PEM files, each with the name of a host.
    pub certificates: PathBuf,
    /// A folder of public keys, each with the id of its key as name.
    pub keys: PathBuf,
}

impl Default for TrustPaths {
    /// Argo CD's.
    fn default() -> Self {
        Self {
            known_hosts: "/app/config/ssh/ssh_known_hosts".into(),
            certificates: "/app/config/tls".into(),
            keys: "/app/config/gpg/source".into(),
        }
    }
}

/// The servers that are trusted.
#[derive(Debug, Default)]
pub(crate) struct Servers {
    known_hosts: String,
    certificates: BTreeMap<String, String>,
}

impl Servers {
    /// How a repository is reached, for a project.
    pub fn access(&self, repository: &Repository, project: &str) -> RepoAccess {
        let trust = Trust {
            known_hosts: &self.known_hosts,
            certificates: &self.certificates,
        };
        RepoAccess::new(repository, project, trust)
    }
}

type ReadKeys = (BTreeMap<String, String>, Arc<Keyring>);

/// Reads the files.
pub(crate) struct Trusted {
    paths: TrustPaths,
    /// Parsing keys takes longer than reading them.
    keyring: Mutex<Option<ReadKeys>>,
}

impl Trusted {
    pub fn new(paths: TrustPaths) -> Self {
        Self {
            paths,
            keyring: Mutex::default(),
        }
    }

    pub async fn servers(&self) -> Result<Arc<Servers>, ApiError> {
        let paths = self.paths.clone();
        let read = move || {
            let known_hosts = file(&paths.known_hosts)?.unwrap_or_default();
            let certificates = folder(&paths.certificates)?;
            Ok(Arc::new(Servers {
                known_hosts,
                certificates,
            }))
        };
        away(read).await
    }

    /// The keys of signatures.
    pub async fn keyring(&self) -> Result<Arc<Keyring>, ApiError> {
        let path = self.paths.keys.clone();
        let texts = away(move || folder(&path)).await?;
        if let Some((known, keyring)) = &*self.lock()
            && *known == texts
        {
            return Ok(Arc::clone(keyring));
        }
        let parsed = {
            let texts = texts.clone();
            away(move || Ok(Keyring::new(&texts, now()))).await?
        };
        let (keyring, faults) = parsed;
        for fault in faults {
            tracing::warn!("a key for signatures is not used: {fault}");
        }
        let keyring = Arc::new(keyring);
        *self.lock() = Some((texts, Arc::clone(&keyring)));
        Ok(keyring)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<ReadKeys>> {
        self.keyring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Seconds since 1970.
pub(crate) fn now() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
    })
}

async fn away<T: Send + 'static>(
    read: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, ApiError> {
    let done = tokio::task::spawn_blocking(read).await;
    let done = done.map_err(|e| ApiError::internal(format!("a task stopped: {e}")))?;
    done.map_err(|e| ApiError::internal(format!("cannot read what is trusted: {e}")))
}

/// The text of a file, if it is there.
fn file(path: &Path) -> io::Result<Option<String>> {
    let told = |e: io::Error| io::Error::new(e.kind(), format!("{}: {e}", path.display()));
    match fs::metadata(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(told(e)),
        Ok(found) if !found.is_file() => Ok(None),
        Ok(found) if found.len() > MAX_FILE => {
            let text = format!("it has more than {MAX_FILE} bytes");
            Err(told(io::Error::other(text)))
        }
        Ok(_) => fs::read_to_string(path).map(Some).map_err(told),
    }
}

/// The texts of the files in a folder, by name. A mounted ConfigMap has hidden entries of its own.
fn folder(path: &Path) -> io::Result<BTreeMap<String, String>> {
    let listed = match fs::read_dir(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        listed => listed?,
    };
    let mut texts = BTreeMap::new();
    for entry in listed {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with('.') {
            continue;
        }
        if let Some(text) = file(&entry.path())? {
            texts.insert(name, text);
        }
    }
    Ok(texts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mounted_config_map_is_read() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = |name: &str| dir.path().join(name);
        fs::create_dir(path("..2026")).expect("made");
        fs::write(path("..2026/git.example.com"), "pem").expect("written");
        std::os::unix::fs::symlink("..2026", path("..data")).expect("linked");
        let target = "..data/git.example.com";
        std::os::unix::fs::symlink(target, path("git.example.com")).expect("linked");
        let texts = folder(dir.path()).expect("readable");
        let expected = BTreeMap::from([("git.example.com".to_owned(), "pem".to_owned())]);
        assert_eq!(texts, expected);
        let missing = folder(&path("missing")).expect("it counts as empty");
        assert!(missing.is_empty());
        assert_eq!(file(&path("missing")).expect("it counts as empty"), None);
        fs::write(path("not-text"), [0xff, 0xfe]).expect("written");
        assert!(folder(dir.path()).is_err(), "what cannot be read is told");
    }
}
