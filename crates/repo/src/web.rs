//! Single files of the web: a kustomization's resources and patches, and values files.
//!
//! Main type: [`WebFiles`]. They are fetched without credentials, as kustomize and Helm do, and kept
//! as commits of our own that have one file.

use crate::{
    RepoAccess, RepoError, Since,
    busy::Busy,
    git::Commit,
    git::UnpackedFile,
    ground::blocking,
    http::{Downloads, Question, Validators},
    unpacked::{Epoch, Unpacked, UnpackedKey},
};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use tiphys_render::SourceRef;

/// How long a file serves without a question to its server.
const TTL: Duration = Duration::from_secs(180);
/// The largest file.
const FILE_BYTES: u64 = 32 << 20;
/// Files that are remembered.
const FILES: u64 = 10_000;

#[derive(Clone)]
struct Known {
    asked: Instant,
    version: Validators,
    epoch: Epoch,
    commit: Commit,
}

type Key = ([u8; 32], String);

/// All files that were fetched.
pub(crate) struct WebFiles {
    downloads: Arc<Downloads>,
    unpacked: Arc<Unpacked>,
    known: moka::sync::Cache<Key, Known>,
    busy: Busy<Key>,
}

impl WebFiles {
    pub fn new(downloads: Arc<Downloads>, unpacked: Arc<Unpacked>) -> Self {
        Self {
            downloads,
            unpacked,
            known: moka::sync::Cache::new(FILES),
            busy: Busy::default(),
        }
    }

    /// A commit whose only file is the one of the URL. `access` says how its host is reached.
    pub async fn get(
        &self,
        access: &RepoAccess,
        url: &str,
        since: Since,
    ) -> Result<Commit, RepoError> {
        let key = (access.fingerprint(), url.to_owned());
        let _one = self.busy.wait(&key).await;
        let known = self.known.get(&key);
        let known = known.filter(|known| self.unpacked.still_has(known.epoch));
        if let Some(known) = &known {
            let good = match since {
                Since::Recently => known.asked.elapsed() < TTL,
                Since::At(time) => known.asked >= time,
            };
            if good {
                return Ok(known.commit.clone());
            }
        }
        let asked = Instant::now();
        let question = Question {
            url,
            with_credentials: false,
            limit: FILE_BYTES,
            known: known.as_ref().map(|known| &known.version),
        };
        let answer = self.downloads.get(access, &question).await?;
        let found = match (answer, known) {
            (None, Some(known)) => Known { asked, ..known },
            (answer, _) => {
                let document = answer.unwrap_or_default();
                let (unpacked, content) = (Arc::clone(&self.unpacked), document.content);
                let stored = UnpackedKey::new(&[b"web", &key.0, url.as_bytes()]);
                let epoch = self.unpacked.epoch();
                let commit = blocking(move || {
                    unpacked.put(
                        &[stored],
                        [UnpackedFile::new(SourceRef::FILE, content.as_slice())],
                    )
                });
                Known {
                    asked,
                    version: document.about.version,
                    epoch,
                    commit: commit.await?,
                }
            }
        };
        let commit = found.commit.clone();
        self.known.insert(key, found);
        Ok(commit)
    }
}
