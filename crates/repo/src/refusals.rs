//! Which repositories refused the credentials when they were asked last: until one accepts them
//! again, nothing that was read with them before is served. Of an earlier process is served only what
//! is of a repository that is known to have accepted them last.
//!
//! Main type: [`Refusals`].

use crate::{
    RepoError,
    acceptances::{Acceptances, Key},
    busy::Busy,
};
use moka::policy::EvictionPolicy;
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

/// Repositories that are remembered; users who can name repositories cannot fill the memory.
const MAX: u64 = 100_000;
/// How often it is kept again, so that what is in use is not taken for old.
const AGAIN: Duration = Duration::from_secs(60 * 60);

#[derive(Clone, Copy, Debug)]
struct Heard {
    is_refused: bool,
    /// Since when the next process would know it.
    kept: Option<Instant>,
}

pub(crate) struct Refusals {
    heard: moka::sync::Cache<Key, Heard>,
    /// For the next process.
    accepted: Acceptances,
    /// Memory and disk have to say the same.
    busy: Busy<Key>,
}

/// Whether an answer says that the credentials are refused. That the repository could not be asked
/// says nothing.
pub(crate) fn verdict<T>(answer: &Result<T, RepoError>) -> Option<bool> {
    match answer {
        Ok(_) => Some(false),
        Err(e) if e.is_refusal() => Some(true),
        Err(_) => None,
    }
}

impl Refusals {
    pub fn keeping(accepted: Acceptances) -> Self {
        let heard = moka::sync::Cache::builder()
            .max_capacity(MAX)
            // The newest must not be the one that is not kept.
            .eviction_policy(EvictionPolicy::lru())
            .build();
        Self {
            heard,
            accepted,
            busy: Busy::default(),
        }
    }

    /// Remembers what an answer says about the credentials.
    pub async fn hear(&self, key: &Key, verdict: Option<bool>) {
        let Some(is_refused) = verdict else {
            return;
        };
        let one = Arc::new(self.busy.wait(key).await);
        let is_kept = |heard: Heard| {
            let is_recent = heard.kept.is_some_and(|kept| kept.elapsed() < AGAIN);
            heard.is_refused == is_refused && is_recent
        };
        if self.heard.get(key).is_some_and(is_kept) {
            return;
        }
        let mut heard = Heard {
            is_refused,
            kept: None,
        };
        // Nothing may be served meanwhile, nor be taken for kept if this is not finished.
        self.heard.insert(key.clone(), heard);
        // If whoever waits for this goes away, the next answer still waits until the file is written.
        let held = Arc::clone(&one);
        let is_kept = self.accepted.set(key, !is_refused, held).await;
        heard.kept = is_kept.then(Instant::now);
        self.heard.insert(key.clone(), heard);
    }

    /// Learns what an earlier process heard. It is to be called before [`Self::is_accepted`] decides
    /// about something that may be of an earlier process.
    pub async fn learn(&self, key: &Key) {
        if self.heard.contains_key(key) {
            return;
        }
        let _one = self.busy.wait(key).await;
        // What this process has heard meanwhile is newer.
        if !self.heard.contains_key(key) && self.accepted.has(key).await {
            let heard = Heard {
                is_refused: false,
                kept: Some(Instant::now()),
            };
            self.heard.insert(key.clone(), heard);
        }
    }

    /// Whether it refused the credentials when this process asked it last.
    pub fn has(&self, key: &Key) -> bool {
        self.heard.get(key).is_some_and(|heard| heard.is_refused)
    }

    /// Whether it accepted the credentials when it was asked last. Neither this nor [`Self::has`]: it
    /// is not known.
    pub fn is_accepted(&self, key: &Key) -> bool {
        self.heard.get(key).is_some_and(|heard| !heard.is_refused)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused() -> Option<bool> {
        verdict::<()>(&Err(RepoError::AuthFailed {
            url: "https://example.com".to_owned(),
            hint: "",
        }))
    }

    fn late() -> Option<bool> {
        verdict::<()>(&Err(RepoError::Timeout {
            url: "https://example.com".to_owned(),
            seconds: 1,
        }))
    }

    #[tokio::test]
    async fn only_the_repository_itself_ends_a_refusal() {
        let refusals = Refusals::keeping(Acceptances::none());
        let key = ([1; 32], "team/app".to_owned());
        let other = ([1; 32], "team/other".to_owned());
        refusals.hear(&key, late()).await;
        assert!(!refusals.has(&key), "an outage is no refusal");
        refusals.hear(&key, refused()).await;
        refusals.hear(&key, late()).await;
        refusals.hear(&other, verdict(&Ok(()))).await;
        assert!(refusals.has(&key) && !refusals.has(&other));
        refusals.hear(&key, verdict(&Ok(()))).await;
        assert!(!refusals.has(&key));
    }

    #[tokio::test]
    async fn after_a_restart_only_an_acceptance_counts() {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path().join("accepted");
        let started = || Refusals::keeping(Acceptances::new(folder.clone(), ""));
        let key = ([1; 32], "team/app".to_owned());
        let is_accepted = async |refusals: &Refusals, key: &Key| {
            refusals.learn(key).await;
            assert!(!refusals.has(key), "it is not known");
            refusals.is_accepted(key)
        };
        assert!(!is_accepted(&started(), &key).await);
        started().hear(&key, Some(false)).await;
        let next = started();
        assert!(is_accepted(&next, &key).await);
        assert!(!is_accepted(&next, &([2; 32], "team/app".to_owned())).await);
        // Also of a process that has not learned of it.
        started().hear(&key, refused()).await;
        assert!(!is_accepted(&started(), &key).await);
        // What was heard in this process counts more than what is on disk.
        started().hear(&key, Some(false)).await;
        let other = started();
        other.hear(&key, refused()).await;
        started().hear(&key, Some(false)).await;
        other.learn(&key).await;
        assert!(other.has(&key) && !other.is_accepted(&key));
        // What was kept is lost.
        std::fs::remove_dir_all(&folder).expect("removed");
        assert!(!is_accepted(&started(), &key).await);
    }

    #[tokio::test]
    async fn what_could_not_be_kept_is_kept_with_the_next_answer() {
        let dir = tempfile::tempdir().expect("a folder");
        let folder = dir.path().join("accepted");
        let key = ([1; 32], "team/app".to_owned());
        // A file at its place.
        std::fs::write(&folder, "x").expect("written");
        let accepted = Acceptances::new(folder.clone(), "");
        let refusals = Refusals::keeping(accepted.clone());
        refusals.hear(&key, Some(false)).await;
        assert!(refusals.is_accepted(&key) && !accepted.has(&key).await);
        std::fs::remove_file(&folder).expect("removed");
        refusals.hear(&key, Some(false)).await;
        assert!(accepted.has(&key).await);
    }

    #[test]
    fn who_goes_away_leaves_no_acceptance_behind() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .max_blocking_threads(1)
            .build()
            .expect("a runtime");
        let dir = tempfile::tempdir().expect("a folder");
        let accepted = Acceptances::new(dir.path().join("accepted"), "");
        let refusals = Refusals::keeping(accepted.clone());
        let key = ([1; 32], "team/app".to_owned());
        runtime.block_on(async {
            // The only thread that writes files.
            let (free, is_free) = std::sync::mpsc::channel::<()>();
            let writer = tokio::task::spawn_blocking(move || is_free.recv().is_ok());
            {
                let mut first = Box::pin(refusals.hear(&key, Some(false)));
                let begun = futures::poll!(&mut first);
                assert!(begun.is_pending(), "its file is not written");
            }
            let mut second = Box::pin(refusals.hear(&key, refused()));
            assert!(futures::poll!(&mut second).is_pending());
            assert!(!refusals.has(&key), "it waits for the first one");
            free.send(()).expect("somebody waits");
            second.await;
            assert!(writer.await.expect("it ended"));
            assert!(refusals.has(&key) && !accepted.has(&key).await);
        });
    }

    #[tokio::test]
    async fn what_goes_on_being_accepted_is_not_the_oldest() {
        let dir = tempfile::tempdir().expect("a folder");
        let refusals = Refusals::keeping(Acceptances::new(dir.path().to_owned(), ""));
        let key = ([1; 32], "team/app".to_owned());
        refusals.hear(&key, Some(false)).await;
        let mut files = std::fs::read_dir(dir.path()).expect("a folder").flatten();
        let path = files.next().expect("it is kept").path();
        for is_long_ago in [false, true] {
            let file = std::fs::OpenOptions::new().write(true).open(&path);
            let aged = file
                .expect("it is there")
                .set_modified(std::time::UNIX_EPOCH);
            aged.expect("it is ours");
            if is_long_ago {
                let kept = Instant::now().checked_sub(AGAIN);
                let heard = Heard {
                    is_refused: false,
                    kept: Some(kept.expect("there was such a time")),
                };
                refusals.heard.insert(key.clone(), heard);
            }
            refusals.hear(&key, Some(false)).await;
            let about = std::fs::metadata(&path).expect("it is there");
            let modified = about.modified().expect("it has a time");
            assert_eq!(modified != std::time::UNIX_EPOCH, is_long_ago);
        }
    }

    /// A registry is asked about two tags at a time, and may refuse one of them.
    #[tokio::test(flavor = "multi_thread")]
    async fn memory_and_disk_say_the_same() {
        let dir = tempfile::tempdir().expect("a folder");
        let accepted = Acceptances::new(dir.path().join("accepted"), "");
        let refusals = Refusals::keeping(accepted.clone());
        let key = ([1; 32], "team/app".to_owned());
        for _ in 0..100 {
            tokio::join!(
                refusals.hear(&key, Some(false)),
                refusals.hear(&key, refused())
            );
            assert_eq!(refusals.is_accepted(&key), accepted.has(&key).await);
        }
    }
}
