//! Talking to a remote repository: listing its refs and fetching a commit into a bare copy.

use super::{
    GitLimit, GitLimits, Guard, Store,
    error::text,
    http,
    limits::{CountedHttp, CountedTransport, Watch},
    ssh,
};
use crate::{RepoAccess, RepoError, revision::Reference, url::Location};
use gix::{
    ObjectId,
    bstr::BString,
    credentials::{helper::Action, protocol::Outcome},
    progress::Discard,
    protocol::{
        handshake::Ref,
        transport::{
            Protocol,
            client::blocking_io::{Transport, connect, http::connect_http},
        },
    },
    remote::{
        Direction,
        fetch::{Shallow, Tags},
        ref_map,
    },
};
use std::{
    error::Error as _,
    io::ErrorKind,
    num::NonZeroU32,
    path::Path,
    sync::{Arc, Mutex, PoisonError, atomic::AtomicBool},
    time::Duration,
};

/// A remote repository with credentials. All methods block.
pub(crate) struct Remote<'a> {
    pub location: &'a Location,
    pub access: &'a RepoAccess,
    pub timeout: Duration,
    pub ssh_program: &'a str,
    pub limits: GitLimits,
}

/// What a fetch requests.
enum Want<'a> {
    /// Only this commit, without its history.
    Commit(&'a str),
    /// Only what this ref points to, without history.
    Ref(&'a str),
    /// All branches and tags with their history.
    Everything,
}

impl Remote<'_> {
    /// The refs of the remote. `copy` is the folder of the bare copy, created if missing.
    pub fn list_refs(
        &self,
        copy: &Path,
        stop: &Arc<AtomicBool>,
    ) -> Result<Vec<Reference>, RepoError> {
        let store = open_or_init(copy, &self.location.shown(), self.limits)?;
        let refs = self.connected(&store, &[], stop, |connection, _| {
            let options = ref_map::Options {
                prefix_from_spec_as_filter_on_remote: false,
                ..Default::default()
            };
            Ok(connection.ref_map(Discard, options)?.0.remote_refs)
        })?;
        if refs.len() as u64 > self.limits.refs {
            return Err(self.limits.exceeded(GitLimit::Refs, self.location.shown()));
        }
        Ok(refs.iter().filter_map(reference).collect())
    }

    /// Fetches all branches and tags with their history.
    pub fn fetch_history(&self, copy: &Path, stop: &Arc<AtomicBool>) -> Result<(), RepoError> {
        let store = open_or_init(copy, &self.location.shown(), self.limits)?;
        self.fetch_want(&store, &Want::Everything, stop)
    }

    /// Fetches a commit into the copy: by its SHA, else by a ref that points to it, else by
    /// fetching everything: only the history says what an abbreviation stands for, unless a ref
    /// does.
    pub fn fetch(
        &self,
        copy: &Path,
        sha: &str,
        refs: &[Reference],
        stop: &Arc<AtomicBool>,
    ) -> Result<(), RepoError> {
        let store = open_or_init(copy, &self.location.shown(), self.limits)?;
        let had_packs = has_packs(copy);
        let fetched = self.fetch_into(&store, sha, refs, stop);
        // What is received may build on what was there: only an empty copy cannot be at fault.
        match fetched {
            Err(e @ RepoError::Unreachable { is_away: false, .. })
                if had_packs && store.is_damaged() =>
            {
                Err(RepoError::Corrupt {
                    url: self.location.shown(),
                    reason: e.to_string(),
                })
            }
            fetched => fetched,
        }
    }

    fn fetch_into(
        &self,
        store: &Store,
        sha: &str,
        refs: &[Reference],
        stop: &Arc<AtomicBool>,
    ) -> Result<(), RepoError> {
        let mut sha = sha.to_ascii_lowercase();
        if sha.len() < 40
            && let Some(full) = of_refs(&sha, refs)
        {
            full.clone_into(&mut sha);
        }
        if sha.len() == 40 {
            let by_sha = self.fetch_want(store, &Want::Commit(&sha), stop);
            match by_sha {
                Ok(()) if store.commit(&sha)?.is_some() => return Ok(()),
                Err(
                    e @ (RepoError::AuthFailed { .. }
                    | RepoError::NotFound { .. }
                    | RepoError::Timeout { .. }
                    | RepoError::OverLimit { .. }),
                ) => return Err(e),
                _ => {}
            }
            if let Some(named) = refs
                .iter()
                .find(|r| r.sha == sha && r.name.starts_with("refs/"))
            {
                self.fetch_want(store, &Want::Ref(&named.name), stop)?;
                if store.commit(&sha)?.is_some() {
                    return Ok(());
                }
            }
        }
        self.fetch_want(store, &Want::Everything, stop)
    }

    fn fetch_want(
        &self,
        store: &Store,
        want: &Want<'_>,
        stop: &Arc<AtomicBool>,
    ) -> Result<(), RepoError> {
        let (specs, shallow) = match want {
            Want::Commit(sha) => (
                vec![format!("+{sha}:refs/tiphys/{sha}")],
                Shallow::DepthAtRemote(NonZeroU32::MIN),
            ),
            Want::Ref(name) => (
                vec![format!("+{name}:refs/tiphys/by-ref")],
                Shallow::DepthAtRemote(NonZeroU32::MIN),
            ),
            Want::Everything => {
                let specs =
                    ["heads", "tags"].map(|kind| format!("+refs/{kind}/*:refs/tiphys/{kind}/*"));
                (specs.to_vec(), Shallow::undo())
            }
        };
        self.connected(store, &specs, stop, |connection, guard| {
            let fetch = connection.prepare_fetch(Discard, ref_map::Options::default())?;
            guard.expect_pack();
            fetch
                .with_shallow(shallow)
                .receive(Watch::new(guard), guard.stop())
                .map(|_| ())
                .inspect_err(|e| {
                    // What is not found may be the repository itself.
                    if e.is_corrupted() {
                        store.heed(e);
                    }
                })
        })
    }

    /// Connects for a fetch and runs `work`.
    fn connected<T>(
        &self,
        store: &Store,
        specs: &[String],
        stop: &Arc<AtomicBool>,
        work: impl FnOnce(
            gix::remote::Connection<'_, '_, '_, Box<dyn Transport + Send>>,
            &Arc<Guard>,
        ) -> gix::Result<T>,
    ) -> Result<T, RepoError> {
        let repo = store.local();
        let shown = self.location.shown();
        self.transport(stop, Protocol::V2, |transport, guard| {
            let url = gix::url::parse(shown.as_str())?;
            let remote = repo
                .remote_at_without_url_rewrite(url)?
                .with_fetch_tags(Tags::None);
            let remote =
                remote.with_refspecs(specs.iter().map(String::as_str), Direction::Fetch)?;
            let connection = remote
                .to_connection_with_transport(transport)
                .with_credentials(|action| Ok(self.credentials(action)));
            let connection = match self.location {
                Location::Http { .. } => connection
                    .with_transport_options(Box::new(http::options(self.access, self.timeout))),
                _ => connection,
            };
            work(connection, guard)
        })
    }

    /// Runs `work` on a transport. gix gets URLs without user info, and no git configuration of
    /// this machine.
    pub(super) fn transport<T>(
        &self,
        stop: &Arc<AtomicBool>,
        version: Protocol,
        work: impl FnOnce(Box<dyn Transport + Send>, &Arc<Guard>) -> gix::Result<T>,
    ) -> Result<T, RepoError> {
        let shown = self.location.shown();
        let ssh = match self.location {
            Location::Ssh { .. } => Some(ssh::Files::new(self.access)?),
            _ => None,
        };
        let guard = Guard::new(self.limits, stop);
        let outcome = (|| {
            let url = gix::url::parse(shown.as_str())?;
            let ssh = ssh
                .as_ref()
                .map(|files| files.options(self.ssh_program))
                .unwrap_or_default();
            let transport: Box<dyn Transport + Send> = match self.location {
                Location::Http { .. } => {
                    Box::new(connect_http(CountedHttp::new(&guard), url, version, false))
                }
                _ => {
                    let trace = false;
                    let options = connect::Options {
                        version,
                        ssh,
                        trace,
                    };
                    Box::new(CountedTransport {
                        inner: connect::connect(url, options)?,
                        guard: Arc::clone(&guard),
                    })
                }
            };
            work(transport, &guard)
        })();
        outcome.map_err(|e: gix::Error| match guard.exceeded() {
            Some(limit) => self.limits.exceeded(limit, shown),
            None if e.is_resource_exhausted() => self.limits.exceeded(GitLimit::Object, shown),
            None => {
                let said = ssh.as_ref().map(ssh::Files::said);
                self.classify(&e, &said.unwrap_or_default())
            }
        })
    }

    /// Username and password for the host that they belong to, and for no other: a redirect gets
    /// none.
    pub(super) fn credentials(&self, action: Action) -> Option<Outcome> {
        let Action::Get(context) = action else {
            return None;
        };
        let Location::Http { origin, .. } = self.location else {
            return None;
        };
        let asked = context
            .url
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default();
        let same_host = asked
            .strip_prefix(origin.as_str())
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        if !same_host || (self.access.username.is_empty() && self.access.password.is_empty()) {
            return None;
        }
        let identity = gix::sec::identity::Account {
            username: self.access.username.clone(),
            password: self.access.password.expose().to_owned(),
            oauth_refresh_token: None,
        };
        Some(Outcome {
            identity,
            next: context.into(),
        })
    }

    fn has_credentials(&self) -> bool {
        let a = self.access;
        !a.username.is_empty()
            || !a.password.is_empty()
            || !a.bearer_token.is_empty()
            || !a.ssh_private_key.is_empty()
    }

    /// Classifies an error by who has to fix it. `said`: what `ssh` and the server said besides.
    fn classify(&self, e: &gix::Error, said: &ssh::Said) -> RepoError {
        let url = self.location.shown();
        let message = text(e);
        let all = [message.as_str(), &said.ssh, &said.server];
        let has = |words: &[&str]| {
            words
                .iter()
                .any(|w| all.iter().any(|text| text.contains(w)))
        };
        if is_late(e) {
            return RepoError::Timeout {
                url,
                seconds: self.timeout.as_secs(),
            };
        }
        if has(&[
            "HTTP status 404",
            "HTTP status 410",
            // Over ssh: git, GitHub and GitLab.
            "does not appear to be a git repository",
            "epository not found",
            "could not be found or you don't have permission",
        ]) {
            return RepoError::NotFound { url };
        }
        let refused = io_errors(e).any(|e| e.kind() == std::io::ErrorKind::PermissionDenied)
            || e.is_unauthenticated()
            || has(&[
                "HTTP status 401",
                "HTTP status 403",
                "ermission denied (",
                "Too many authentication failures",
                "No credentials were returned",
                "obtain credentials",
            ]);
        if refused {
            let hint = if ssh::has_passphrase(self.access.ssh_private_key.expose()) {
                ": the ssh key has a passphrase, which nobody can enter here"
            } else if self.has_credentials() {
                ""
            } else {
                " (none are configured)"
            };
            return RepoError::AuthFailed { url, hint };
        }
        // Another host at its address is no outage.
        let host_key = |what: &str| RepoError::Unreachable {
            url: url.clone(),
            reason: format!("host key verification failed: {what}"),
            is_away: false,
        };
        if has(&["HOST IDENTIFICATION HAS CHANGED"]) {
            return host_key("the host's key is not the one in the known hosts");
        }
        if has(&["ost key verification failed"]) {
            return host_key("add the host's key to the known hosts");
        }
        let why = ssh::last_line(&said.ssh);
        let is_away = match self.location {
            Location::Ssh { .. } => why.is_some(),
            _ => is_http_outage(e, &message),
        };
        let reason = match why.or_else(|| ssh::last_line(&said.server)) {
            Some(line) => format!("{message} ({line})"),
            None => of_network(e).unwrap_or(message),
        };
        RepoError::Unreachable {
            url,
            reason,
            is_away,
        }
    }
}

/// What the network said, without gix's words for where that was.
fn of_network(e: &gix::Error) -> Option<String> {
    let mut parts: Vec<String> = Vec::new();
    let mut cause = io_errors(e).next()?.source();
    while let Some(inner) = cause {
        let part = inner.to_string();
        if !parts.iter().any(|p| p.contains(&part)) {
            parts.push(part);
        }
        cause = inner.source();
    }
    let said: String = parts.join(": ").chars().take(600).collect();
    (!said.is_empty()).then_some(said)
}

fn io_errors(e: &gix::Error) -> impl Iterator<Item = &std::io::Error> {
    e.iter_errors().filter_map(|c| c.downcast_ref())
}

fn network_errors(e: &gix::Error) -> impl Iterator<Item = &reqwest::Error> {
    e.iter_errors().filter_map(|c| c.downcast_ref())
}

fn is_late(e: &gix::Error) -> bool {
    network_errors(e).any(reqwest::Error::is_timeout)
        || io_errors(e).any(|e| e.kind() == std::io::ErrorKind::TimedOut)
}

/// Whether a server could not be asked over HTTP, or said that it cannot answer now. Whatever else
/// it says is an answer.
fn is_http_outage(e: &gix::Error, message: &str) -> bool {
    // gix has the status only in its text.
    let status = message.split("HTTP status ").nth(1);
    if let Some(status) = status.and_then(|rest| rest.get(..3)?.parse::<u16>().ok()) {
        return matches!(status, 408 | 429 | 500..);
    }
    network_errors(e).any(|e| !e.is_redirect() && !e.is_builder())
        || io_errors(e).any(|e| {
            use std::io::ErrorKind as Kind;
            matches!(
                e.kind(),
                Kind::ConnectionRefused
                    | Kind::ConnectionReset
                    | Kind::ConnectionAborted
                    | Kind::NotConnected
                    | Kind::BrokenPipe
                    | Kind::HostUnreachable
                    | Kind::NetworkUnreachable
                    | Kind::NetworkDown
            )
        })
}

/// The only commit of refs that begins so; branches and tags usually name what people abbreviate.
/// Git would refuse it where another commit of the history begins so, too, which is not fetched.
fn of_refs<'r>(beginning: &str, refs: &'r [Reference]) -> Option<&'r str> {
    let mut found = refs.iter().filter(|r| r.sha.starts_with(beginning));
    let first = found.next()?;
    found.all(|r| r.sha == first.sha).then_some(&first.sha)
}

fn reference(r: &Ref) -> Option<Reference> {
    let new = |name: &BString, id: &ObjectId, target: Option<&BString>, tag: Option<&ObjectId>| {
        Some(Reference {
            name: name.to_string(),
            sha: id.to_string(),
            target: target.map(ToString::to_string),
            tag: tag.map(ToString::to_string),
        })
    };
    match r {
        Ref::Direct {
            full_ref_name,
            object,
        } => new(full_ref_name, object, None, None),
        Ref::Peeled {
            full_ref_name,
            object,
            tag,
        } => new(full_ref_name, object, None, Some(tag)),
        Ref::Symbolic {
            full_ref_name,
            target,
            object,
            ..
        } => new(full_ref_name, object, Some(target), None),
        Ref::Unborn { .. } => None,
    }
}

fn has_packs(copy: &Path) -> bool {
    let packs = std::fs::read_dir(copy.join("objects/pack"));
    packs.is_ok_and(|mut packs| packs.next().is_some())
}

/// Lock files that a killed process may have left and that would block every later fetch; those of
/// refs are beside them.
const LOCKS: &[&str] = &[
    "shallow.lock",
    "packed-refs.lock",
    "HEAD.lock",
    "config.lock",
];

/// Held while a repository of our own is made: meanwhile it looks like one that a process left half
/// made.
static MAKING: Mutex<()> = Mutex::new(());

/// Opens a bare repository of our own; creates it if it is missing or was not made to its end.
///
/// # Errors
/// The machine cannot read it: then it stays as it is.
pub(crate) fn open_or_init(path: &Path, url: &str, limits: GitLimits) -> Result<Store, RepoError> {
    // An error may be one of a repository that is being made.
    if let Ok(Some(store)) = open_whole(path, url, limits) {
        return Ok(store);
    }
    let _one = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(store) = open_whole(path, url, limits)? {
        return Ok(store);
    }
    // A process that was killed, or had no room, while it made it: a new one needs an empty folder.
    match std::fs::remove_dir_all(path) {
        Err(e) if e.kind() != ErrorKind::NotFound => {
            let why = format!("cannot remove {}: {e}", path.display());
            return Err(RepoError::Internal(why));
        }
        _ => {}
    }
    super::init_bare(path)?;
    Store::open(path, url, limits)
}

/// A repository that is whole; `None`: it is certain that there is none.
fn open_whole(path: &Path, url: &str, limits: GitLimits) -> Result<Option<Store>, RepoError> {
    let unread = |why: &str| RepoError::Internal(format!("cannot read {}: {why}", path.display()));
    if is_half_made(path).map_err(|e| unread(&e.to_string()))? {
        return Ok(None);
    }
    match Store::opened(path, url, limits) {
        Ok(store) => Ok(Some(store)),
        // Too many open files, for example.
        Err(e) if io_errors(&e).next().is_some() => Err(unread(&text(&e))),
        Err(_) => Ok(None),
    }
}

fn is_half_made(path: &Path) -> std::io::Result<bool> {
    for part in ["HEAD", "objects", "refs"] {
        match std::fs::metadata(path.join(part)) {
            Ok(about) if about.is_file() && about.len() == 0 => return Ok(true),
            Ok(_) => {}
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(true),
            Err(e) => return Err(e),
        }
    }
    Ok(false)
}

/// Removes locks of a dead process. Only before the first use of a repository in this process.
pub(crate) fn remove_stale_locks(path: &Path) {
    for lock in LOCKS {
        // Usually there is none; a lock that cannot be removed makes the fetch fail.
        let _ = std::fs::remove_file(path.join(lock));
    }
    remove_locks_of_refs(&path.join("refs"));
}

/// No ref has such a name.
fn remove_locks_of_refs(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => remove_locks_of_refs(&path),
            Ok(_) if path.extension().is_some_and(|end| end == "lock") => {
                let _ = std::fs::remove_file(&path);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_process_left_is_no_obstacle() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("1");
        let open = || open_or_init(&path, "https://example.com/r", GitLimits::default());
        // It was making the repository.
        std::fs::create_dir_all(path.join("objects/info")).expect("a folder");
        open().expect("made anew");
        // There was no room for the content.
        std::fs::write(path.join("HEAD"), "").expect("written");
        open().expect("made anew");
        std::fs::write(path.join("kept"), "").expect("written");
        open().expect("it is whole");
        assert!(path.join("kept").exists(), "it was not made again");

        let locks = ["shallow.lock", "refs/a.lock", "refs/tiphys/heads/b.lock"];
        let other = "refs/tiphys/heads/lock";
        std::fs::create_dir_all(path.join("refs/tiphys/heads")).expect("a folder");
        for file in locks.iter().chain([&other]) {
            std::fs::write(path.join(file), "").expect("written");
        }
        remove_stale_locks(&path);
        assert!(locks.iter().all(|lock| !path.join(lock).exists()));
        assert!(path.join(other).exists());
    }

    /// Root may read everything, so a link to itself stands for what cannot be read.
    #[test]
    fn what_cannot_be_read_is_not_made_anew() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("1");
        let open = || open_or_init(&path, "https://example.com/r", GitLimits::default());
        open().expect("made");
        std::fs::write(path.join("kept"), "").expect("written");
        std::fs::rename(path.join("HEAD"), path.join("was")).expect("moved");
        std::os::unix::fs::symlink("HEAD", path.join("HEAD")).expect("a link to itself");
        open().expect_err("nobody knows whether it is there");
        assert!(path.join("kept").exists());
        std::fs::rename(path.join("was"), path.join("HEAD")).expect("moved");
        open().expect("it can be read again");
        assert!(path.join("kept").exists());
    }

    #[test]
    fn a_repository_is_made_once_for_all_who_want_it() {
        let dir = tempfile::tempdir().expect("a folder");
        for round in 0..20 {
            let path = dir.path().join(round.to_string());
            let open = || open_or_init(&path, "https://example.com/r", GitLimits::default());
            std::thread::scope(|scope| {
                let all: Vec<_> = (0..8).map(|_| scope.spawn(|| open().map(drop))).collect();
                for one in all {
                    let opened = one.join().expect("no panic");
                    opened.expect("it is made once");
                }
            });
        }
    }
}
