//! One repository with one set of credentials: its refs, coalesced, and its commits, fetched once for everyone who waits.

use crate::{
    RepoAccess, RepoError, RepoOptions,
    git::{CommitId, Remote, Store},
    repos::blocking,
    revision::Reference,
    url::Location,
};
use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

/// How long a failed look-up answers requests that are not fresh.
const ERROR_TTL: Duration = Duration::from_secs(3);

/// The opened object database of a location, shared by everyone who uses it, whatever their credentials.
pub(crate) struct Copy {
    path: PathBuf,
    store: Mutex<Option<Store>>,
    /// Held while fetching.
    fetching: tokio::sync::Mutex<()>,
}

/// The copies under the cache folder.
pub(crate) struct Copies {
    dir: PathBuf,
    copies: Mutex<HashMap<Location, Arc<Copy>>>,
}

impl Copies {
    pub fn new(dir: PathBuf) -> Self {
        Self { dir, copies: Mutex::default() }
    }

    pub fn of(&self, location: &Location) -> Arc<Copy> {
        let new = || {
            let path = match location {
                Location::Local(path) => path.clone(),
                _ => self.dir.join(location.cache_name()),
            };
            Arc::new(Copy { path, store: Mutex::new(None), fetching: tokio::sync::Mutex::new(()) })
        };
        match self.copies.lock() {
            Ok(mut copies) => Arc::clone(copies.entry(location.clone()).or_insert_with(new)),
            Err(_) => new(),
        }
    }
}

impl Copy {
    fn opened(&self) -> Option<Store> {
        self.store.lock().ok().and_then(|s| s.clone())
    }

    fn keep(&self, store: &Store) {
        if let Ok(mut kept) = self.store.lock() {
            *kept = Some(store.clone());
        }
    }
}

/// The outcome of the last look-up of refs, with the time it started.
struct Looked {
    started: Instant,
    outcome: Result<Arc<Vec<Reference>>, RepoError>,
}

pub(crate) struct Entry {
    location: Location,
    access: RepoAccess,
    copy: Arc<Copy>,
    refs_ttl: Duration,
    timeout: Duration,
    refs: tokio::sync::Mutex<Option<Looked>>,
    /// These credentials have been accepted by the remote: what others fetched may be shown.
    proved: AtomicBool,
}

impl Entry {
    pub fn new(location: Location, access: RepoAccess, copy: Arc<Copy>, options: &RepoOptions) -> Self {
        let local = matches!(location, Location::Local(_));
        Self {
            refs_ttl: if local { Duration::ZERO } else { options.refs_ttl },
            timeout: options.timeout,
            proved: AtomicBool::new(local),
            refs: tokio::sync::Mutex::new(None),
            location,
            access,
            copy,
        }
    }

    pub fn is_local(&self) -> bool {
        matches!(self.location, Location::Local(_))
    }

    /// The refs of the repository. Whoever asks while a look-up runs gets the next one's answer at the latest: any number of requests
    /// that come together cost two look-ups at most.
    pub async fn refs(self: &Arc<Self>, fresh: bool) -> Result<Arc<Vec<Reference>>, RepoError> {
        let asked = Instant::now();
        let mut last = self.refs.lock().await;
        if let Some(looked) = last.as_ref() {
            let ttl = if looked.outcome.is_ok() { self.refs_ttl } else { ERROR_TTL.min(self.refs_ttl) };
            if looked.started >= asked || (!fresh && looked.started.elapsed() < ttl) {
                return looked.outcome.clone();
            }
        }
        let started = Instant::now();
        let outcome = self.look_up().await.map(Arc::new);
        *last = Some(Looked { started, outcome: outcome.clone() });
        outcome
    }

    async fn look_up(self: &Arc<Self>) -> Result<Vec<Reference>, RepoError> {
        let entry = Arc::clone(self);
        let refs = self.in_time(move |_| match &entry.location {
            Location::Local(_) => entry.open()?.references(),
            _ => entry.remote().list_refs(&entry.copy.path),
        });
        let refs = refs.await?;
        self.proved.store(true, Ordering::Relaxed);
        Ok(refs)
    }

    fn remote(&self) -> Remote<'_> {
        Remote { location: &self.location, access: &self.access, timeout: self.timeout }
    }

    /// Runs blocking work on the remote, at most as long as allowed. Work that is late is told to stop.
    async fn in_time<T: Send + 'static>(
        &self,
        work: impl FnOnce(&AtomicBool) -> Result<T, RepoError> + Send + 'static,
    ) -> Result<T, RepoError> {
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        match tokio::time::timeout(self.timeout, blocking(move || work(&told))).await {
            Ok(outcome) => outcome,
            Err(_) => {
                stop.store(true, Ordering::Relaxed);
                Err(RepoError::Timeout { url: self.location.shown(), seconds: self.timeout.as_secs() })
            }
        }
    }

    /// Opens the object database, or answers with the one that is open.
    fn open(&self) -> Result<Store, RepoError> {
        if let Some(store) = self.copy.opened() {
            // A local repository may have been deleted, or made anew at the same place.
            if !self.is_local() || self.copy.path.exists() {
                return Ok(store);
            }
        }
        let store = Store::open(&self.copy.path, &self.location.shown())?;
        self.copy.keep(&store);
        Ok(store)
    }

    /// A commit by its full or abbreviated SHA, fetched when it is not here.
    pub async fn commit(self: &Arc<Self>, sha: &str) -> Result<(Store, CommitId), RepoError> {
        if !self.proved.load(Ordering::Relaxed) {
            self.refs(false).await?;
        }
        if let Some(found) = self.find(sha).await? {
            return Ok(found);
        }
        if !self.is_local() {
            let _one = self.copy.fetching.lock().await;
            if let Some(found) = self.find(sha).await? {
                return Ok(found);
            }
            self.fetch(sha).await?;
        }
        // Opened again: a local repository may be another one by now, a remote one has new packs.
        if let Ok(mut kept) = self.copy.store.lock() {
            *kept = None;
        }
        self.find(sha).await?.ok_or_else(|| RepoError::CommitMissing { url: self.location.shown(), sha: sha.to_owned() })
    }

    async fn find(self: &Arc<Self>, sha: &str) -> Result<Option<(Store, CommitId)>, RepoError> {
        let (entry, sha) = (Arc::clone(self), sha.to_owned());
        blocking(move || {
            if !entry.is_local() && !entry.copy.path.join("HEAD").exists() {
                return Ok(None);
            }
            let store = entry.open()?;
            Ok(store.commit(&sha)?.map(|id| (store, id)))
        })
        .await
    }

    async fn fetch(self: &Arc<Self>, sha: &str) -> Result<(), RepoError> {
        let (entry, sha) = (Arc::clone(self), sha.to_owned());
        self.in_time(move |stop| entry.remote().fetch(&entry.copy.path, &sha, stop)).await
    }
}
