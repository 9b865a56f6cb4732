//! What servers answered last, kept on disk with the time: it stands in while they are away, for as
//! long as a process that went on would use it.
//!
//! Main type: [`KnownAnswers`]. `KnownRefs` does the same for Git, where it also proves that
//! credentials were accepted.

use crate::{
    RepoError, Since,
    disk_cache::{DiskCache, Name},
    ground::blocking,
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::{
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

#[derive(Clone)]
pub(crate) struct KnownAnswers {
    /// `None`: nothing is kept.
    cache: Option<DiskCache>,
    workload: Arc<str>,
}

#[derive(Serialize, Deserialize)]
struct Record<T> {
    /// By the clock of the wall, which processes share.
    asked: SystemTime,
    answer: T,
}

/// What an answer is kept by: its kind, the fingerprint of the access, who this process is (see
/// `RepoOptions::workload`), and what was asked.
pub(crate) fn name(kind: &str, fingerprint: &[u8; 32], workload: &str, asked: &str) -> Name {
    let parts = [
        fingerprint.as_slice(),
        workload.as_bytes(),
        asked.as_bytes(),
    ];
    DiskCache::name(kind, &parts)
}

impl KnownAnswers {
    /// `workload`: who this process is to the servers that it asks without other credentials.
    pub fn new(cache: Option<DiskCache>, workload: &str) -> Self {
        let workload = workload.into();
        Self { cache, workload }
    }

    /// That nothing is kept.
    pub fn none() -> Self {
        Self::new(None, "")
    }

    /// What an answer to this question is kept by.
    pub fn name(&self, kind: &str, fingerprint: &[u8; 32], asked: &str) -> Name {
        name(kind, fingerprint, &self.workload, asked)
    }

    /// The server was asked at that time, and answered this.
    pub async fn keep<T>(&self, name: Name, asked: SystemTime, answer: Arc<T>)
    where
        T: Serialize + Send + Sync + 'static,
    {
        self.with_cache(move |cache| {
            let record = Record {
                asked,
                answer: &*answer,
            };
            if let Ok(record) = serde_json::to_vec(&record) {
                cache.put(&name, &record);
            }
        })
        .await;
    }

    /// The server answered that there is none, or that it does not accept the credentials.
    pub async fn forget(&self, name: Name) {
        self.with_cache(move |cache| cache.remove(&name)).await;
    }

    /// The last answer, and when this process would have asked for it. `ttl`: how long answers
    /// serve; one whose time is unknown no longer does.
    pub async fn find<T>(&self, name: Name, ttl: Duration) -> Option<(Instant, T)>
    where
        T: DeserializeOwned + Send + 'static,
    {
        let read = move |cache: &DiskCache| {
            let record: Record<T> = serde_json::from_slice(&cache.get(&name)?).ok()?;
            Some(record)
        };
        let record = self.with_cache(read).await.flatten()?;
        // An error: the clock was set back meanwhile.
        let age = SystemTime::now().duration_since(record.asked);
        let asked = Instant::now().checked_sub(age.unwrap_or(ttl))?;
        Some((asked, record.answer))
    }

    /// What stands in for an answer that failed with this error, if anything does.
    pub async fn instead_of<T>(
        &self,
        error: RepoError,
        name: Name,
        since: Since,
        ttl: Duration,
    ) -> Result<(Instant, T), RepoError>
    where
        T: DeserializeOwned + Send + 'static,
    {
        if error.is_refusal() {
            // An answer is worth more than what another process was told.
            self.forget(name).await;
        }
        if since != Since::Recently || !error.is_away() {
            return Err(error);
        }
        let found = self.find(name, ttl).await;
        found
            .filter(|(asked, _)| asked.elapsed() < ttl)
            .ok_or(error)
    }

    async fn with_cache<T: Send + 'static>(
        &self,
        work: impl FnOnce(&DiskCache) -> T + Send + 'static,
    ) -> Option<T> {
        let cache = self.cache.clone()?;
        blocking(move || Ok(work(&cache))).await.ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3_600);

    fn away() -> RepoError {
        RepoError::Unreachable {
            url: "https://example.com".to_owned(),
            reason: "connection refused".to_owned(),
            is_away: true,
        }
    }

    fn refused() -> RepoError {
        RepoError::NotFound {
            url: "https://example.com".to_owned(),
        }
    }

    #[tokio::test]
    async fn an_answer_stands_in_for_an_outage_as_long_as_it_is_new() {
        let folder = tempfile::tempdir().expect("a folder");
        let open = || {
            let cache = DiskCache::open(&folder.path().join("rendered"), 1 << 20);
            KnownAnswers::new(Some(cache.expect("opened")), "")
        };
        let (of, other) = (
            open().name("tags", &[1; 32], "a"),
            open().name("tags", &[2; 32], "a"),
        );
        let answer = Arc::new(vec!["1.0.0".to_owned()]);
        let keep = async |asked: SystemTime| open().keep(of, asked, Arc::clone(&answer)).await;
        let instead = async |name: Name, error: RepoError, since: Since, ttl: Duration| {
            let found = open()
                .instead_of::<Vec<String>>(error, name, since, ttl)
                .await;
            found.ok().map(|(_, answer)| answer)
        };
        let recently = Since::Recently;
        assert_eq!(instead(of, away(), recently, HOUR).await, None);
        keep(SystemTime::now() - HOUR / 2).await;
        let found = instead(of, away(), recently, HOUR).await;
        assert_eq!(found.as_ref(), Some(&*answer));
        assert_eq!(instead(other, away(), recently, HOUR).await, None);
        assert_eq!(instead(of, away(), recently, HOUR / 4).await, None);
        assert_eq!(instead(of, away(), Since::now(), HOUR).await, None);
        // The clock was set back.
        keep(SystemTime::now() + HOUR).await;
        assert_eq!(instead(of, away(), recently, HOUR).await, None);

        keep(SystemTime::now()).await;
        assert_eq!(instead(of, refused(), recently, HOUR).await, None);
        assert_eq!(instead(of, away(), recently, HOUR).await, None);
    }

    #[tokio::test]
    async fn without_a_folder_nothing_is_kept() {
        let none = KnownAnswers::none();
        let of = none.name("tags", &[1; 32], "a");
        let other = KnownAnswers::new(None, "another workload");
        assert_ne!(of, other.name("tags", &[1; 32], "a"));
        none.keep(of, SystemTime::now(), Arc::new(1_u8)).await;
        assert_eq!(none.find::<u8>(of, HOUR).await, None);
    }
}
