//! Indexes that an earlier process downloaded: what their servers said about them is kept with the
//! digest of the file, which is believed only if it still has it.
//!
//! Main type: [`KnownIndexes`].

use super::{INDEX_TTL, Index, Key};
use crate::{
    disk_cache::Name,
    ground::{blocking, hex},
    http::Validators,
    known_answers::KnownAnswers,
};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::{
    fs::{self, File},
    io::{self, Read as _},
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

pub(super) struct KnownIndexes(KnownAnswers);

#[derive(Serialize, Deserialize)]
struct Record {
    etag: String,
    modified: String,
    digest: String,
}

impl KnownIndexes {
    pub fn new(answers: KnownAnswers) -> Self {
        Self(answers)
    }

    /// The index is what the repository had when it was asked at that time.
    pub async fn keep(&self, key: &Key, asked: SystemTime, index: &Index) {
        let (etag, modified) = index.version.texts();
        let digest = index.digest.clone();
        let record = Record {
            etag,
            modified,
            digest,
        };
        self.0.keep(self.name(key), asked, Arc::new(record)).await;
    }

    /// The index in a file of an earlier process. `limit`: the largest one.
    pub async fn find(&self, key: &Key, path: PathBuf, limit: u64) -> Option<Index> {
        let found = self.0.find::<Record>(self.name(key), INDEX_TTL).await;
        let (asked, record) = found?;
        let index = Index {
            asked,
            version: Validators::new(&record.etag, &record.modified),
            path,
            digest: record.digest,
        };
        let checked = blocking(move || {
            let found = digest_of(&index.path, limit);
            let is_it = found.is_ok_and(|found| found.as_ref() == Some(&index.digest));
            Ok(is_it.then_some(index))
        });
        checked.await.ok().flatten()
    }

    /// The repository answered that it does not accept the credentials, or is not there.
    pub async fn forget(&self, key: &Key) {
        self.0.forget(self.name(key)).await;
    }

    fn name(&self, key: &Key) -> Name {
        self.0.name("index", key, "")
    }
}

/// The SHA-256 of a file; `None`: it is no file, or too large.
fn digest_of(path: &Path, limit: u64) -> io::Result<Option<String>> {
    if !fs::symlink_metadata(path)?.is_file() {
        return Ok(None);
    }
    let mut file = File::open(path)?.take(limit.saturating_add(1));
    let (mut hash, mut part, mut size) = (Sha256::new(), vec![0_u8; 64 << 10], 0_u64);
    loop {
        let read = file.read(&mut part)?;
        if read == 0 {
            break;
        }
        size += read as u64;
        hash.update(&part[..read]);
    }
    Ok((size <= limit).then(|| hex(&hash.finalize())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk_cache::DiskCache;
    use std::time::{Duration, Instant};

    const TEXT: &str = "entries: {}\n";

    #[tokio::test]
    async fn an_index_of_an_earlier_process_is_believed_by_its_digest() {
        let folder = tempfile::tempdir().expect("a folder");
        let open = || {
            let cache = DiskCache::open(&folder.path().join("rendered"), 1 << 20);
            KnownIndexes::new(KnownAnswers::new(Some(cache.expect("opened")), ""))
        };
        let path = folder.path().join("index");
        fs::write(&path, TEXT).expect("written");
        let index = Index {
            asked: Instant::now(),
            version: Validators::new("\"1\"", "yesterday"),
            path: path.clone(),
            digest: hex(&Sha256::digest(TEXT)),
        };
        let (key, most) = ([1; 32], TEXT.len() as u64);
        let find = async |key: Key, most: u64| open().find(&key, path.clone(), most).await;
        assert!(find(key, most).await.is_none());
        let before = Duration::from_secs(100);
        let asked = SystemTime::now() - before;
        open().keep(&key, asked, &index).await;
        let found = find(key, most).await.expect("it is the same");
        assert_eq!(found.version, index.version);
        assert_eq!(found.digest, index.digest);
        assert!(found.asked.elapsed() >= before);
        assert!(find([2; 32], most).await.is_none(), "of another access");
        assert!(find(key, most - 1).await.is_none(), "it is too large now");

        fs::write(&path, "entries: []\n").expect("written");
        assert!(find(key, most).await.is_none(), "it was changed");
        let elsewhere = folder.path().join("elsewhere");
        fs::write(&elsewhere, TEXT).expect("written");
        fs::remove_file(&path).expect("removed");
        assert!(find(key, most).await.is_none(), "it is not there");
        std::os::unix::fs::symlink(&elsewhere, &path).expect("a link");
        assert!(find(key, most).await.is_none(), "a link");
        fs::remove_file(&path).expect("removed");
        fs::write(&path, TEXT).expect("written");
        assert!(find(key, most).await.is_some());
        open().forget(&key).await;
        assert!(find(key, most).await.is_none());
    }
}
