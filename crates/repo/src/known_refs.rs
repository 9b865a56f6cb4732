//! What a repository listed when it was asked last, kept on disk: also that it accepted the
//! credentials then. It stands in only while the repository cannot be asked.
//!
//! Main type: [`KnownRefs`], of one repository with one set of credentials. All functions block.

use crate::{
    disk_cache::{DiskCache, Name},
    known_answers,
    revision::Reference,
};
use serde::{Deserialize, Serialize};
use std::{
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant, SystemTime},
};

pub(crate) struct KnownRefs {
    cache: DiskCache,
    name: Name,
    told: Mutex<Told>,
    /// An earlier process was told that the credentials are accepted, and the repository could not
    /// be asked since. Only changed while `told` is held, so that it outlives no refusal.
    counts_as_accepted: AtomicBool,
}

/// What this process was told.
#[derive(Default)]
struct Told {
    /// When the look-up began that was answered last.
    last: Option<Instant>,
    /// What was written last, and when it had been asked for.
    written: Option<(SystemTime, Name)>,
}

impl Told {
    /// Whether an answer to a look-up that began then is the newest one. Others may be outdated.
    fn is_newest(&mut self, begun: Instant) -> bool {
        let is_newest = self.last.is_none_or(|last| last <= begun);
        if is_newest {
            self.last = Some(begun);
        }
        is_newest
    }
}

/// When a look-up began.
#[derive(Clone, Copy)]
pub(crate) struct Begun {
    instant: Instant,
    clock: SystemTime,
}

impl Begun {
    pub fn now() -> Self {
        Self {
            instant: Instant::now(),
            clock: SystemTime::now(),
        }
    }

    pub fn instant(self) -> Instant {
        self.instant
    }
}

#[derive(Serialize, Deserialize)]
struct Record {
    /// By the clock of the wall, which processes share.
    asked: SystemTime,
    refs: Vec<Reference>,
}

impl KnownRefs {
    /// `fingerprint`: of the repository with its credentials, which are not in the file. `workload`:
    /// who this process is.
    pub fn new(cache: DiskCache, fingerprint: &[u8; 32], workload: &str) -> Self {
        Self {
            name: known_answers::name("refs", fingerprint, workload, ""),
            cache,
            told: Mutex::default(),
            counts_as_accepted: AtomicBool::new(false),
        }
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The repository listed these when it was asked at that time. `pause`: how long the same list
    /// need not be written again.
    pub fn keep(&self, begun: Begun, refs: &[Reference], pause: Duration) {
        let asked = begun.clock;
        let Ok(list) = serde_json::to_vec(refs) else {
            return;
        };
        let digest = DiskCache::name("list of refs", &[&list]);
        let mut told = self.told();
        if !told.is_newest(begun.instant) {
            return;
        }
        let is_known = told.written.is_some_and(|(at, of)| {
            of == digest && asked.duration_since(at).is_ok_and(|since| since < pause)
        });
        if is_known {
            return;
        }
        let record = Record {
            asked,
            refs: refs.to_vec(),
        };
        if let Ok(record) = serde_json::to_vec(&record) {
            self.cache.put(&self.name, &record);
            told.written = Some((asked, digest));
        }
    }

    /// The repository answered that it does not accept these credentials, or is not there.
    pub fn forget(&self, begun: Begun) {
        let mut told = self.told();
        if !told.is_newest(begun.instant) {
            return;
        }
        told.written = None;
        self.cache.remove(&self.name);
        self.counts_as_accepted.store(false, Ordering::Relaxed);
    }

    /// Whether the repository once accepted the credentials, and has not refused them since. This
    /// then counts until it refuses them.
    pub fn was_accepted(&self) -> bool {
        let _told = self.told();
        let was_accepted = self.read().is_some();
        self.count_as_accepted(was_accepted);
        was_accepted
    }

    /// Whether it counts that the repository accepted the credentials. This does not block.
    pub fn counts_as_accepted(&self) -> bool {
        self.counts_as_accepted.load(Ordering::Relaxed)
    }

    /// The refs, if they were asked for at most so long ago. It then counts that the credentials
    /// were accepted.
    pub fn of_the_last(&self, time: Duration) -> Option<Vec<Reference>> {
        let _told = self.told();
        let record = self.read()?;
        // Not if the clock was set back meanwhile.
        let since = SystemTime::now().duration_since(record.asked).ok()?;
        let is_new = since < time;
        self.count_as_accepted(is_new);
        is_new.then_some(record.refs)
    }

    fn count_as_accepted(&self, is_accepted: bool) {
        if is_accepted {
            self.counts_as_accepted.store(true, Ordering::Relaxed);
        }
    }

    fn read(&self) -> Option<Record> {
        let record = serde_json::from_slice(&self.cache.get(&self.name)?);
        record.ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refs_are_known_for_a_time_and_to_their_credentials_only() {
        let folder = tempfile::tempdir().expect("a folder");
        let open = || DiskCache::open(&folder.path().join("rendered"), 1 << 20).expect("opened");
        let refs = vec![Reference {
            name: "refs/heads/main".to_owned(),
            sha: "1".repeat(40),
            target: None,
            tag: None,
        }];
        let (hour, now) = (Duration::from_secs(3_600), SystemTime::now());
        let known = KnownRefs::new(open(), &[1; 32], "");
        let at = |clock| Begun {
            clock,
            ..Begun::now()
        };
        assert!(!known.was_accepted());
        known.keep(at(now - hour), &refs, Duration::ZERO);
        let known = KnownRefs::new(open(), &[1; 32], "");
        assert!(known.was_accepted());
        assert_eq!(known.of_the_last(hour * 2), Some(refs.clone()));
        assert_eq!(known.of_the_last(hour / 2), None, "it is too old");
        known.keep(at(now + hour), &refs, Duration::ZERO);
        assert_eq!(known.of_the_last(hour * 2), None, "the clock was set back");
        for other in [
            KnownRefs::new(open(), &[2; 32], ""),
            KnownRefs::new(open(), &[1; 32], "another workload"),
        ] {
            assert!(!other.was_accepted());
        }
        known.forget(Begun::now());
        assert!(!KnownRefs::new(open(), &[1; 32], "").was_accepted());
    }

    #[test]
    fn an_older_answer_does_not_undo_a_newer_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let cache = DiskCache::open(&folder.path().join("rendered"), 1 << 20).expect("opened");
        let known = KnownRefs::new(cache, &[1; 32], "");
        let older = Begun::now();
        let later = |by: u64| Begun {
            instant: older.instant + Duration::from_secs(by),
            clock: older.clock,
        };
        known.keep(older, &[], Duration::ZERO);
        assert!(!known.counts_as_accepted());
        assert!(known.was_accepted());
        assert!(known.counts_as_accepted());
        known.forget(later(1));
        assert!(!known.counts_as_accepted());
        known.keep(older, &[], Duration::ZERO);
        assert!(!known.was_accepted());
        assert!(!known.counts_as_accepted());

        known.keep(later(2), &[], Duration::ZERO);
        known.forget(later(1));
        assert!(known.was_accepted());
    }

    #[test]
    fn the_same_list_is_written_after_a_pause() {
        let folder = tempfile::tempdir().expect("a folder");
        let cache = DiskCache::open(&folder.path().join("rendered"), 1 << 20).expect("opened");
        let (known, begin) = (KnownRefs::new(cache, &[1; 32], ""), SystemTime::UNIX_EPOCH);
        let asked = |seconds, refs: &[Reference]| {
            let at = begin + Duration::from_secs(seconds);
            let at = Begun {
                clock: at,
                ..Begun::now()
            };
            known.keep(at, refs, Duration::from_secs(10));
            let asked = known.read().expect("kept").asked;
            asked.duration_since(begin).expect("later").as_secs()
        };
        let other = [Reference {
            name: "HEAD".to_owned(),
            sha: "1".repeat(40),
            target: None,
            tag: None,
        }];
        assert_eq!(asked(0, &[]), 0);
        assert_eq!(asked(9, &[]), 0);
        assert_eq!(asked(9, &other), 9);
        assert_eq!(asked(12, &other), 9);
        assert_eq!(asked(19, &other), 19);
    }
}
