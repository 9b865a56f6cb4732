//! One repository with one set of credentials: its refs, with coalesced look-ups, and its commits,
//! each fetched once for all waiters.

use crate::{
    Contact, ContactKind, RepoAccess, RepoError, RepoOptions, Retry,
    common::{Common, Looked},
    copies::Copy,
    git::{Additions, CommitId, GitLimits, RefUpdate, Remote, Store, open_or_init},
    ground::{Since, blocking},
    known_refs::{Begun, KnownRefs},
    revision::Reference,
    tokens::Tokens,
    url::Location,
};
use gix::ObjectId;
use std::{
    path::Path,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::sync::Semaphore;

/// Concurrent connections to one remote repository, including those that exceeded their timeout.
const MAX_CONTACTS: usize = 4;

/// How long the error of a look-up is returned to callers with [`Since::Recently`].
const ERROR_TTL: Duration = Duration::from_secs(3);

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
            if let Err(e @ RepoError::OverLimit { .. }) = &fetched {
                self.copy.refuse(sha, e);
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

    /// The object database, to add to. Nothing was ever fetched from an empty repository: its copy is
    /// made.
    pub async fn store(self: &Arc<Self>) -> Result<Store, RepoError> {
        let entry = Arc::clone(self);
        blocking(move || match entry.open() {
            Err(RepoError::NotFound { .. }) if !entry.is_local() => {
                let (path, shown) = (entry.copy.path(), entry.location.shown());
                let store = open_or_init(&path, &shown, entry.limits)?;
                entry.copy.keep(&store);
                Ok(store)
            }
            opened => opened,
        })
        .await
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
