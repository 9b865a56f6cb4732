//! One repository with one set of credentials: its refs, with coalesced look-ups, and its commits,
//! each fetched once for all waiters.

use crate::{
    Contact, ContactKind, RepoAccess, RepoError, RepoOptions, Retry,
    common::{Common, Looked},
    git::{self, Additions, CommitId, GitLimits, RefUpdate, Remote, Store},
    ground::{Since, blocking},
    known_refs::{Begun, KnownRefs},
    revision::Reference,
    tokens::Tokens,
    url::Location,
};
use gix::ObjectId;
use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, Once, PoisonError, Weak,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::sync::Semaphore;

/// Concurrent connections to one remote repository, including those that exceeded their timeout.
const MAX_CONTACTS: usize = 4;

/// How long a commit that is too large is refused without fetching it again.
const REFUSED_TTL: Duration = Duration::from_secs(60);

/// A copy that is damaged is replaced at most so often: if the new one is, too, then the repository
/// itself is to blame.
const DAMAGED_PAUSE: Duration = Duration::from_secs(3600);

/// When that is tried again if there was nothing to replace it with.
const REPLACE_RETRY: Duration = Duration::from_secs(60);

/// How the folders of copies begin that are not complete yet.
const INCOMPLETE: &str = ".new";

/// How long the error of a look-up is returned to callers with [`Since::Recently`].
const ERROR_TTL: Duration = Duration::from_secs(3);

/// The opened object database of a location, shared by all users, whatever their credentials.
pub(crate) struct Copy {
    /// The local repository itself, or the folder with the generations of a copy.
    base: PathBuf,
    /// None for a local repository.
    generation: Option<AtomicU32>,
    store: Mutex<Option<Store>>,
    /// Held while fetching.
    fetching: tokio::sync::Mutex<()>,
    /// The last commit that was refused because of its size; finding out again would be as
    /// expensive as the first time.
    refused: Mutex<Option<(String, Instant, RepoError)>>,
    /// Until when a damaged copy is not replaced.
    not_before: Mutex<Option<Instant>>,
    /// What earlier processes left has been removed.
    cleaned: Once,
}

/// The copies under the cache folder.
pub(crate) struct Copies {
    dir: PathBuf,
    /// Only while they are in use, so that users who can name repositories cannot fill the memory.
    copies: Mutex<HashMap<Location, Weak<Copy>>>,
}

impl Copies {
    pub fn new(dir: PathBuf) -> Self {
        Self {
            dir,
            copies: Mutex::default(),
        }
    }

    pub fn of(&self, location: &Location) -> Arc<Copy> {
        let new = || {
            Arc::new(match location {
                Location::Local(path) => Copy::new(path.clone(), None),
                _ => Copy::remote(self.dir.join(location.cache_name())),
            })
        };
        match self.copies.lock() {
            Ok(mut copies) => {
                if let Some(known) = copies.get(location).and_then(Weak::upgrade) {
                    return known;
                }
                copies.retain(|_, copy| copy.strong_count() > 0);
                let made = new();
                copies.insert(location.clone(), Arc::downgrade(&made));
                made
            }
            Err(_) => new(),
        }
    }
}

/// Packs in a copy before a new generation begins. Every fetch adds one, and nothing is ever
/// repacked.
const MAX_PACKS: usize = 48;

impl Copy {
    fn new(base: PathBuf, generation: Option<u32>) -> Self {
        let generation = generation.map(AtomicU32::new);
        Self {
            base,
            generation,
            store: Mutex::new(None),
            fetching: tokio::sync::Mutex::new(()),
            refused: Mutex::default(),
            not_before: Mutex::default(),
            cleaned: Once::new(),
        }
    }

    /// Uses the newest existing generation.
    fn remote(base: PathBuf) -> Self {
        let names = std::fs::read_dir(&base).into_iter().flatten().flatten();
        let generations = names.filter_map(|name| name.file_name().to_str()?.parse::<u32>().ok());
        let newest = generations.max().unwrap_or(1);
        Self::new(base, Some(newest))
    }

    /// Removes what earlier processes left: older generations, incomplete ones, and locks. Before the
    /// first fetch of this process; blocks.
    fn clean(&self) {
        let Some(generation) = &self.generation else {
            return;
        };
        self.cleaned.call_once(|| {
            let current = generation.load(Ordering::Relaxed);
            let names = std::fs::read_dir(&self.base).into_iter().flatten();
            for entry in names.flatten() {
                let name = entry.file_name();
                let name = name.to_string_lossy();
                let is_older = name.parse::<u32>().is_ok_and(|number| number < current);
                if is_older || name.starts_with(INCOMPLETE) {
                    // A folder that cannot be removed only wastes space.
                    let _ = std::fs::remove_dir_all(entry.path());
                }
            }
            git::remove_stale_locks(&self.path());
        });
    }

    fn path(&self) -> PathBuf {
        match &self.generation {
            None => self.base.clone(),
            Some(generation) => self
                .base
                .join(generation.load(Ordering::Relaxed).to_string()),
        }
    }

    /// Whether the repository exists. A local one may have been deleted.
    fn is_there(&self) -> bool {
        match &self.generation {
            None => self.base.exists(),
            Some(_) => self.path().join("HEAD").exists(),
        }
    }

    /// Whether the current generation has many packs, or more than `bytes` in them.
    fn is_large(&self, bytes: u64) -> bool {
        let dir = std::fs::read_dir(self.path().join("objects/pack"));
        let sizes: Vec<u64> = dir
            .into_iter()
            .flatten()
            .filter_map(|file| Some(file.ok()?.metadata().ok()?.len()))
            .collect();
        sizes.len() / 2 >= MAX_PACKS || sizes.iter().sum::<u64>() > bytes
    }

    /// Has a new generation fetched, which takes the place of the current one only if that succeeds:
    /// until then the current one has what there is. The generation before the current one is
    /// removed first, so that there are never three of them, but not the current one, so that its
    /// readers still find its files.
    fn renew(
        &self,
        stop: &AtomicBool,
        fetch: impl FnOnce(&Path) -> Result<(), RepoError>,
    ) -> Result<(), RepoError> {
        let Some(generation) = &self.generation else {
            return Ok(());
        };
        let failed = |e: std::io::Error| {
            RepoError::Internal(format!("cannot renew {}: {e}", self.base.display()))
        };
        std::fs::create_dir_all(&self.base).map_err(failed)?;
        let current = generation.load(Ordering::Relaxed);
        if let Some(previous) = current.checked_sub(1) {
            // A folder that cannot be removed only wastes space.
            let _ = std::fs::remove_dir_all(self.base.join(previous.to_string()));
        }
        let mut new = tempfile::Builder::new();
        let new = new.prefix(INCOMPLETE).tempdir_in(&self.base);
        let new = new.map_err(failed)?;
        fetch(new.path())?;
        if stop.load(Ordering::Relaxed) {
            return Err(RepoError::Internal("the fetch was given up".to_owned()));
        }
        let next = self.base.join((current + 1).to_string());
        std::fs::rename(new.path(), next).map_err(failed)?;
        generation.store(current + 1, Ordering::Relaxed);
        self.forget();
        Ok(())
    }

    /// Whether a read has shown that it is torn, and it may be replaced for that.
    fn is_damaged(&self) -> bool {
        self.opened().is_some_and(|store| store.is_damaged()) && self.may_replace()
    }

    fn may_replace(&self) -> bool {
        let not_before = self.not_before.lock().ok().and_then(|at| *at);
        self.generation.is_some() && not_before.is_none_or(|at| at <= Instant::now())
    }

    /// Has a new copy fetched in place of a damaged one.
    fn replace(
        &self,
        stop: &AtomicBool,
        fetch: impl FnOnce(&Path) -> Result<(), RepoError>,
    ) -> Result<(), RepoError> {
        tracing::warn!(copy = %self.path().display(), "the copy of a repository is damaged: fetching it anew");
        self.leave_alone(REPLACE_RETRY);
        self.renew(stop, fetch)?;
        self.leave_alone(DAMAGED_PAUSE);
        Ok(())
    }

    fn leave_alone(&self, pause: Duration) {
        if let Ok(mut not_before) = self.not_before.lock() {
            *not_before = Instant::now().checked_add(pause);
        }
    }

    fn forget(&self) {
        if let Ok(mut kept) = self.store.lock() {
            *kept = None;
        }
    }

    /// The stored refusal of a commit, while it is recent.
    fn refusal(&self, sha: &str) -> Option<RepoError> {
        let refused = self.refused.lock().ok()?;
        refused
            .as_ref()
            .filter(|(of, at, _)| of == sha && at.elapsed() < REFUSED_TTL)
            .map(|(_, _, e)| e.clone())
    }

    fn opened(&self) -> Option<Store> {
        self.store.lock().ok().and_then(|s| s.clone())
    }

    fn keep(&self, store: &Store) {
        if let Ok(mut kept) = self.store.lock() {
            *kept = Some(store.clone());
        }
    }
}

/// The resolved commit of a revision, with the time of the look-up.
struct Named {
    revision: String,
    started: Instant,
    sha: String,
}

pub(crate) struct Entry {
    location: Location,
    access: RepoAccess,
    copy: Arc<Copy>,
    refs_ttl: Duration,
    timeout: Duration,
    ssh_program: String,
    limits: GitLimits,
    /// Timeout of one request for refs.
    look_up_timeout: Duration,
    look_up_retry: Retry,
    common: Arc<Common>,
    tokens: Arc<Tokens>,
    /// The key in the look-ups.
    key: [u8; 32],
    /// Running connections. One that timed out continues in its thread until the other side gives
    /// up; their number is limited.
    contacts: Arc<Semaphore>,
    /// Held while refs are looked up.
    looking: tokio::sync::Mutex<()>,
    named: Mutex<Option<Named>>,
    /// The remote accepted these credentials when it was asked last, so what others fetched may be
    /// shown.
    proved: AtomicBool,
    /// When the question began whose answer that is.
    heard: Mutex<Option<Instant>>,
    /// What it listed last, for the next process, and whether it accepted the credentials then.
    known: Option<KnownRefs>,
}

impl Entry {
    pub fn new(
        location: Location,
        access: RepoAccess,
        copy: Arc<Copy>,
        options: &RepoOptions,
        common: &Arc<Common>,
        tokens: &Arc<Tokens>,
        key: [u8; 32],
    ) -> Self {
        let local = matches!(location, Location::Local(_));
        let of_http = options.sources.look_up_timeout;
        let is_http = matches!(location, Location::Http { .. });
        let of_http = of_http.filter(|timeout| is_http && !timeout.is_zero());
        let disk = options.disk_cache.clone().filter(|_| !local);
        Self {
            known: disk.map(|cache| KnownRefs::new(cache, &key, &options.workload())),
            look_up_timeout: of_http.unwrap_or(options.timeout),
            look_up_retry: options.sources.look_up_retry,
            refs_ttl: if local {
                Duration::ZERO
            } else {
                options.refs_ttl
            },
            timeout: options.timeout,
            ssh_program: options.ssh_program.clone(),
            limits: options.limits,
            common: Arc::clone(common),
            tokens: Arc::clone(tokens),
            key,
            contacts: Arc::new(Semaphore::new(MAX_CONTACTS)),
            proved: AtomicBool::new(local),
            heard: Mutex::default(),
            looking: tokio::sync::Mutex::new(()),
            named: Mutex::default(),
            location,
            access,
            copy,
        }
    }

    pub fn is_local(&self) -> bool {
        matches!(self.location, Location::Local(_))
    }

    /// The refs of the repository. While it cannot be asked, the result of an earlier process's
    /// look-up is used for as long as one of this process would be.
    pub async fn refs(self: &Arc<Self>, since: Since) -> Result<Arc<Vec<Reference>>, RepoError> {
        let outcome = self.asked_refs(since).await;
        let Err(e) = &outcome else {
            return outcome;
        };
        if since != Since::Recently || !e.is_away() {
            return outcome;
        }
        let ttl = self.refs_ttl;
        let known = self.with_known(move |known| known.of_the_last(ttl)).await;
        known.flatten().map_or(outcome, |known| Ok(Arc::new(known)))
    }

    /// The same from the repository itself. A caller that arrives during a look-up gets at the
    /// latest the result of the next one, so any number of concurrent requests cost at most two
    /// look-ups.
    async fn asked_refs(self: &Arc<Self>, since: Since) -> Result<Arc<Vec<Reference>>, RepoError> {
        let now = Instant::now();
        let _one = self.looking.lock().await;
        if let Some(looked) = self.common.look_ups.get(&self.key) {
            let is_good = match (since, &looked.outcome) {
                (Since::Recently, Ok(_)) => looked.started.elapsed() < self.refs_ttl,
                (Since::Recently, Err(_)) => {
                    looked.started.elapsed() < ERROR_TTL.min(self.refs_ttl)
                }
                (Since::At(asked), Ok(_)) => looked.started >= asked,
                // A caller that asks again after a failure wants another attempt.
                (Since::At(_), Err(_)) => false,
            };
            if is_good || looked.started >= now {
                return looked.outcome.clone();
            }
        }
        let started = Instant::now();
        let outcome = self.look_up().await;
        if outcome.is_ok() && !self.is_proved() {
            // It was refused meanwhile: this must not be told to those who ask from now on.
            return outcome;
        }
        self.common.look_ups.insert(
            self.key,
            Arc::new(Looked {
                started,
                outcome: outcome.clone(),
            }),
        );
        outcome
    }

    /// The commit of a revision in a local repository if it is the last one found: this reads just
    /// one line of a file.
    pub fn last_of(&self, revision: &str, since: Since) -> Option<String> {
        let store = self.copy.opened().filter(|_| self.is_local())?;
        let mut named = self.named.lock().ok()?;
        let is_good = |n: &&Named| {
            matches!(since, Since::At(asked) if n.started >= asked) && n.revision == revision
        };
        if let Some(known) = named.as_ref().filter(is_good) {
            return Some(known.sha.clone());
        }
        let started = Instant::now();
        let sha = store.last_of(revision)?;
        *named = Some(Named {
            revision: revision.to_owned(),
            started,
            sha: sha.clone(),
        });
        Some(sha)
    }

    async fn look_up(self: &Arc<Self>) -> Result<Arc<Vec<Reference>>, RepoError> {
        let begun = Begun::now();
        let outcome = match &self.location {
            Location::Local(_) => {
                let entry = Arc::clone(self);
                blocking(move || entry.open()?.references()).await
            }
            _ => self.ask_for_refs().await,
        };
        if outcome.as_ref().is_err_and(RepoError::is_refusal) {
            self.hear_refusal(begun).await;
        }
        let refs = Arc::new(outcome?);
        self.hear(begun, true);
        let (list, pause) = (Arc::clone(&refs), self.refs_ttl / 2);
        self.with_known(move |known| known.keep(begun, &list, pause))
            .await;
        Ok(refs)
    }

    /// The remote does not accept the credentials: such an answer is worth more than what this or
    /// another process was told before.
    async fn hear_refusal(self: &Arc<Self>, begun: Begun) {
        if !self.is_local() {
            self.hear(begun, false);
            // A look-up before it does not prove anything any more.
            self.common.look_ups.invalidate(&self.key);
            self.with_known(move |known| known.forget(begun)).await;
        }
    }

    /// Of two answers counts the one to the later question.
    fn hear(&self, begun: Begun, is_accepted: bool) {
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        if heard.is_none_or(|last| last <= begun.instant()) {
            *heard = Some(begun.instant());
            self.proved.store(is_accepted, Ordering::Relaxed);
        }
    }

    /// Runs blocking work on what is kept for the next process. `None`: nothing is kept.
    async fn with_known<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&KnownRefs) -> T + Send + 'static,
    ) -> Option<T> {
        self.known.as_ref()?;
        let entry = Arc::clone(self);
        let done = blocking(move || Ok(entry.known.as_ref().map(work))).await;
        done.ok().flatten()
    }

    /// Whether what others fetched may be shown.
    pub fn is_proved(&self) -> bool {
        let before = || {
            self.known
                .as_ref()
                .is_some_and(KnownRefs::counts_as_accepted)
        };
        self.proved.load(Ordering::Relaxed) || before()
    }

    /// Has the remote accept the credentials, unless it did before.
    pub async fn accepted(self: &Arc<Self>) -> Result<(), RepoError> {
        if self.is_proved() {
            return Ok(());
        }
        self.prove().await
    }

    /// The same. Whether it is known besides that the remote has the commit: a ref names it, or it
    /// was fetched from there.
    pub async fn accepts(self: &Arc<Self>, sha: &str) -> Result<bool, RepoError> {
        self.accepted().await?;
        if self.is_local() || matches!(self.find(sha).await, Ok(Some(_))) {
            return Ok(true);
        }
        let refs = self.refs(Since::Recently).await;
        Ok(refs.is_ok_and(|refs| refs.iter().any(|reference| reference.sha == sha)))
    }

    /// Has the remote accept the credentials. While it cannot be asked, it counts that it accepted
    /// them when it was asked last, as it would if this process had been the one to ask.
    async fn prove(self: &Arc<Self>) -> Result<(), RepoError> {
        let Err(e) = self.refs(Since::Recently).await else {
            return Ok(());
        };
        if !e.is_away() || self.with_known(KnownRefs::was_accepted).await != Some(true) {
            return Err(e);
        }
        tracing::warn!(error = %e, "using what was fetched before");
        Ok(())
    }

    /// Asks again if that may help and is wanted.
    async fn ask_for_refs(self: &Arc<Self>) -> Result<Vec<Reference>, RepoError> {
        let mut attempt = 1;
        loop {
            let (entry, timeout) = (Arc::clone(self), self.look_up_timeout);
            let list = (ContactKind::LsRemote, "");
            let asked = self.contact(list, move |remote, stop| {
                let remote = Remote { timeout, ..*remote };
                remote.list_refs(&entry.copy.path(), stop)
            });
            let outcome = asked.await;
            let pause = match &outcome {
                // Whoever waits for others now only makes them wait longer.
                Err(RepoError::Busy { .. }) => None,
                Err(e) if e.retryable() => self.look_up_retry.after(attempt),
                _ => None,
            };
            let Some(pause) = pause else {
                return outcome;
            };
            tokio::time::sleep(pause).await;
            attempt += 1;
        }
    }

    fn busy(&self) -> RepoError {
        RepoError::Busy {
            url: self.location.shown(),
            seconds: self.timeout.as_secs(),
        }
    }

    fn remote<'a>(&'a self, access: &'a RepoAccess) -> Remote<'a> {
        Remote {
            location: &self.location,
            access,
            timeout: self.timeout,
            ssh_program: &self.ssh_program,
            limits: self.limits,
        }
    }

    /// A contact with the remote, which is told of: see [`Self::in_time`].
    async fn contact<T: Send + 'static>(
        self: &Arc<Self>,
        (kind, revision): (ContactKind, &str),
        work: impl FnOnce(&Remote<'_>, &Arc<AtomicBool>) -> Result<T, RepoError> + Send + 'static,
    ) -> Result<T, RepoError> {
        let begun = Instant::now();
        let outcome = self.in_time(kind, work).await;
        self.common.contacts.tell(&Contact {
            repository: &self.location.shown(),
            kind,
            revision,
            took: begun.elapsed(),
            is_failed: outcome.is_err(),
        });
        outcome
    }

    /// Runs blocking work on the remote with the allowed timeout. Work that exceeds it is told to
    /// stop.
    async fn in_time<T: Send + 'static>(
        self: &Arc<Self>,
        kind: ContactKind,
        work: impl FnOnce(&Remote<'_>, &Arc<AtomicBool>) -> Result<T, RepoError> + Send + 'static,
    ) -> Result<T, RepoError> {
        let is_look_up = kind == ContactKind::LsRemote;
        let timeout = if is_look_up {
            self.timeout.max(self.look_up_timeout)
        } else {
            self.timeout
        };
        let (stop, begun) = (Arc::new(AtomicBool::new(false)), AtomicBool::new(false));
        let (told, contacts) = (Arc::clone(&stop), Arc::clone(&self.contacts));
        let contact = async {
            let closed = |e: tokio::sync::AcquireError| RepoError::Internal(e.to_string());
            let permit = contacts.acquire_owned().await.map_err(closed)?;
            let (shares, host) = (&self.common.shares, self.location.host());
            // Unlike the share, the permit to look up is not held by work that exceeded its timeout.
            let (share, _look_up) = if is_look_up {
                let both = shares.look_up(host, &self.access.project).await;
                both.map_err(closed)?
            } else {
                let share = shares.contact(host, &self.access.project).await;
                (share.map_err(closed)?, None)
            };
            let share = Arc::new(share);
            let held = Arc::clone(&share);
            begun.store(true, Ordering::Relaxed);
            let access = self.tokens.signed_in(&self.access).await?;
            let entry = Arc::clone(self);
            let mut done = std::pin::pin!(blocking(move || {
                let _until_done = (permit, held);
                work(&entry.remote(&access), &told)
            }));
            tokio::select! {
                outcome = &mut done => return outcome,
                () = share.slow_down() => {}
            }
            done.await
        };
        match tokio::time::timeout(timeout, contact).await {
            Ok(outcome) => {
                if matches!(outcome, Err(RepoError::AuthFailed { .. })) {
                    self.tokens.refused(&self.access);
                }
                outcome
            }
            Err(_) => {
                stop.store(true, Ordering::Relaxed);
                if !begun.load(Ordering::Relaxed) {
                    return Err(self.busy());
                }
                Err(RepoError::Timeout {
                    url: self.location.shown(),
                    seconds: timeout.as_secs(),
                })
            }
        }
    }

    /// Opens the object database, or returns the open one.
    fn open(&self) -> Result<Store, RepoError> {
        if let Some(store) = self.copy.opened()
            && (!self.is_local() || self.copy.is_there())
        {
            return Ok(store);
        }
        let store = Store::open(&self.copy.path(), &self.location.shown(), self.limits)?;
        self.copy.keep(&store);
        Ok(store)
    }

    /// A commit by its full or abbreviated SHA, fetched if it is missing.
    pub async fn commit(self: &Arc<Self>, sha: &str) -> Result<(Store, CommitId), RepoError> {
        self.accepted().await?;
        if self.is_local() && self.copy.opened().is_some_and(|store| store.is_damaged()) {
            // Someone may have mended it.
            self.copy.forget();
        }
        let found = self.find(sha).await;
        if !self.copy.is_damaged()
            && let Some(found) = found?
        {
            return Ok(found);
        }
        if !self.is_local() {
            let _one = self.copy.fetching.lock().await;
            let is_damaged = self.copy.is_damaged();
            if !is_damaged && let Some(found) = self.find(sha).await? {
                return Ok(found);
            }
            if let Some(refusal) = self.copy.refusal(sha) {
                return Err(refusal);
            }
            let mut fetched = self.fetch(sha, is_damaged).await;
            let is_torn = matches!(fetched, Err(RepoError::Corrupt { .. }));
            if is_torn && !is_damaged && self.copy.may_replace() {
                // What is received builds on what is torn here.
                fetched = self.fetch(sha, true).await;
            }
            if let Err(e @ RepoError::OverLimit { .. }) = &fetched
                && let Ok(mut refused) = self.copy.refused.lock()
            {
                *refused = Some((sha.to_owned(), Instant::now(), e.clone()));
            }
            if is_damaged
                && let Err(e) = &fetched
                && !e.is_refusal()
                && let Ok(Some(found)) = self.find(sha).await
            {
                // A render that meets what is torn in it fails for that.
                tracing::warn!(error = %e, "the copy is damaged, and there is no other");
                return Ok(found);
            }
            fetched?;
            self.copy.forget();
            return self.found(sha).await;
        }
        // Reopened: there may be another repository at this path by now.
        self.copy.forget();
        self.found(sha).await
    }

    async fn found(self: &Arc<Self>, sha: &str) -> Result<(Store, CommitId), RepoError> {
        self.find(sha)
            .await?
            .ok_or_else(|| RepoError::CommitMissing {
                url: self.location.shown(),
                sha: sha.to_owned(),
            })
    }

    /// A commit if it is the last one found, from memory alone.
    pub fn last(&self, sha: &str) -> Option<(Store, CommitId)> {
        let store = self.copy.opened().filter(|_| self.is_proved())?;
        let id = store.last(sha)?;
        Some((store, id))
    }

    async fn find(self: &Arc<Self>, sha: &str) -> Result<Option<(Store, CommitId)>, RepoError> {
        if let Some(found) = self.last(sha).filter(|_| self.copy.is_there()) {
            return Ok(Some(found));
        }
        let (entry, sha) = (Arc::clone(self), sha.to_owned());
        blocking(move || {
            if !entry.is_local() && !entry.copy.is_there() {
                return Ok(None);
            }
            let store = match entry.open() {
                // A process was killed while it made it: the fetch makes it again.
                Err(RepoError::Corrupt { .. } | RepoError::NotFound { .. })
                    if !entry.is_local() =>
                {
                    return Ok(None);
                }
                opened => opened?,
            };
            Ok(store.commit(&sha)?.map(|id| (store, id)))
        })
        .await
    }

    /// The object database, to add to.
    pub async fn store(self: &Arc<Self>) -> Result<Store, RepoError> {
        let entry = Arc::clone(self);
        blocking(move || entry.open()).await
    }

    /// Sends objects that were added to the database, and moves a ref to one of them. What was
    /// looked up before is not up to date then.
    pub async fn push(
        self: &Arc<Self>,
        store: Store,
        update: RefUpdate,
        objects: Vec<ObjectId>,
    ) -> Result<(), RepoError> {
        if self.is_local() {
            return blocking(move || Additions::new(&store).move_ref(&update)).await;
        }
        let sha = update.new.to_string();
        self.contact((ContactKind::Push, &sha), move |remote, stop| {
            remote.push(&store, &update, &objects, stop)
        })
        .await
    }

    /// Fetches the whole history; a local repository has it.
    pub async fn fetch_history(self: &Arc<Self>) -> Result<(), RepoError> {
        if self.is_local() {
            return Ok(());
        }
        let _one = self.copy.fetching.lock().await;
        let entry = Arc::clone(self);
        let fetch = (ContactKind::Fetch, "");
        self.contact(fetch, move |remote, stop| {
            entry.copy.clean();
            remote.fetch_history(&entry.copy.path(), stop)
        })
        .await?;
        self.copy.forget();
        Ok(())
    }

    /// Fetches a commit; `anew`: into a copy that replaces the damaged one.
    async fn fetch(self: &Arc<Self>, sha: &str, anew: bool) -> Result<(), RepoError> {
        // Refs for servers that do not serve commits by SHA; without them only this method is
        // unavailable.
        let refs = self.refs(Since::Recently).await.unwrap_or_default();
        let (entry, wanted) = (Arc::clone(self), sha.to_owned());
        let begun = Begun::now();
        let fetched = self.contact((ContactKind::Fetch, sha), move |remote, stop| {
            let copy = &entry.copy;
            copy.clean();
            let into = |path: &Path| {
                remote.fetch(path, &wanted, &refs, stop)?;
                let url = entry.location.shown();
                match Store::open(path, &url, entry.limits)?.commit(&wanted)? {
                    Some(_) => Ok(()),
                    None => Err(RepoError::CommitMissing {
                        url,
                        sha: wanted.clone(),
                    }),
                }
            };
            if anew {
                return copy.replace(stop, into);
            }
            // Large enough for the previous fetch and the current one together.
            if copy.is_large(entry.limits.pack_bytes.saturating_mul(2)) {
                return copy.renew(stop, into);
            }
            remote.fetch(&copy.path(), &wanted, &refs, stop)
        });
        let fetched = fetched.await;
        if fetched.as_ref().is_err_and(RepoError::is_refusal) {
            self.hear_refusal(begun).await;
        }
        fetched
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails, or makes a new one.
    fn replaced(copy: &Copy, is_away: bool) -> Result<(), RepoError> {
        copy.replace(&AtomicBool::new(false), |new| {
            std::fs::write(new.join("HEAD"), "new").expect("written");
            match is_away {
                true => Err(RepoError::Internal("away".to_owned())),
                false => Ok(()),
            }
        })
    }

    #[test]
    fn a_damaged_copy_stays_until_there_is_another() {
        let dir = tempfile::tempdir().expect("a folder");
        let base = dir.path().join("copy");
        std::fs::create_dir_all(base.join("1")).expect("a folder");
        let copy = Copy::remote(base.clone());
        let before = copy.path();
        assert!(copy.may_replace());
        replaced(&copy, true).expect_err("there is no other");
        assert_eq!(copy.path(), before);
        assert!(before.exists() && !copy.may_replace());
        assert_eq!(std::fs::read_dir(&base).expect("a folder").count(), 1);

        replaced(&copy, false).expect("there is another");
        assert_ne!(copy.path(), before);
        assert!(copy.path().join("HEAD").exists());
        assert!(before.exists(), "someone may read it");
        assert!(
            !copy.may_replace(),
            "the next one is the repository's fault"
        );
        assert_eq!(Copy::remote(base).path(), copy.path());
        let local = Copy::new(dir.path().to_owned(), None);
        replaced(&local, false).expect("nothing to do");
        assert!(!local.may_replace() && dir.path().exists(), "it is no copy");
    }

    /// The volume need not have room for three.
    #[test]
    fn there_are_never_more_than_two_generations() {
        let dir = tempfile::tempdir().expect("a folder");
        for generation in ["1", "2"] {
            std::fs::create_dir_all(dir.path().join(generation)).expect("a folder");
        }
        let copy = Copy::remote(dir.path().to_owned());
        let renewed = copy.renew(&AtomicBool::new(false), |_| {
            assert!(!dir.path().join("1").exists());
            assert!(dir.path().join("2").exists(), "someone may read it");
            Ok(())
        });
        renewed.expect("renewed");
        assert_eq!(copy.path(), dir.path().join("3"));
        assert!(dir.path().join("2").exists(), "someone may read it");
    }

    #[test]
    fn what_earlier_processes_left_is_removed_before_the_first_fetch() {
        let dir = tempfile::tempdir().expect("a folder");
        for left in ["1/refs", "2/refs", ".newabc/refs"] {
            std::fs::create_dir_all(dir.path().join(left)).expect("a folder");
        }
        let lock = dir.path().join("2/refs/a.lock");
        std::fs::write(&lock, "").expect("written");
        let copy = Copy::remote(dir.path().to_owned());
        assert!(lock.exists(), "nothing is written while it is only named");
        copy.clean();
        let names = std::fs::read_dir(dir.path()).expect("a folder").flatten();
        let names: Vec<_> = names.map(|entry| entry.file_name()).collect();
        assert_eq!(names, ["2"]);
        assert!(!lock.exists());
        // From now on it may be one of ours.
        std::fs::write(&lock, "").expect("written");
        copy.clean();
        assert!(lock.exists());
    }
}
