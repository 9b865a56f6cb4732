//! A render without a process, whose worker is at the other end of a connection: for fuzzing what a
//! worker may say, and for tests of what both ends say to each other.
//!
//! Main function: [`read_worker`].

use super::{
    Commits, Connection, Deadline, Isolated, KnownCharts, Lost, MAX_ERROR_BYTES, MAX_MESSAGE_BYTES,
    MAX_MESSAGES, ManifestRequest, Outcome, Session, What, known_charts,
};
use crate::{
    git::{GitLimits, Store},
    isolation::{Isolation, Workers},
    needs::Fetched,
    plugin,
};
use std::{
    collections::BTreeMap,
    io::{self, Write as _},
    net::Shutdown,
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    sync::Mutex,
    thread,
    time::{Duration, Instant},
};
use tiphys_api::source::ApplicationSource;
use tiphys_render::{Budget, RenderError, SourceRef, prepare};

/// Nothing waits: what is sent has an end.
const PATIENCE: Duration = Duration::from_secs(30);

/// A source in a repository of this machine.
pub(super) struct Source {
    request: ManifestRequest,
    commits: Commits,
    workers: Workers,
    charts: KnownCharts,
}

impl Source {
    /// The repository is also the source with the `ref` "values".
    pub(super) fn open(
        repository: &Path,
        sha: &str,
        source: ApplicationSource,
    ) -> Result<Self, String> {
        let url = repository.display().to_string();
        let store = Store::open(repository, &url, GitLimits::default());
        let store = store.map_err(|e| e.to_string())?;
        let found = store.commit(sha).map_err(|e| e.to_string())?;
        let id = found.ok_or("there is no such commit")?;
        let commits = Commits {
            own: (store.clone(), id),
            refs: BTreeMap::from([("values".to_owned(), (store, id))]),
            fetched: Fetched::default(),
            plugins: plugin::State::default(),
            spent: Duration::ZERO,
            waited: Mutex::default(),
            may_foresee: false,
        };
        let request = ManifestRequest {
            source,
            sha: sha.to_owned(),
            project: "shop".to_owned(),
            several: true,
            ..ManifestRequest::default()
        };
        // None is started.
        let isolation = Isolation {
            program: PathBuf::new(),
            args: Vec::new(),
            workers: 1,
            spare: false,
        };
        Ok(Self {
            request,
            commits,
            workers: Workers::new(isolation),
            charts: known_charts(),
        })
    }

    /// What comes of it, and how many frames the other end has sent.
    pub(super) fn rendered(
        &self,
        socket: UnixStream,
    ) -> (Result<Result<Outcome, RenderError>, Lost>, usize) {
        let (request, commits) = (&self.request, &self.commits);
        let folder = request.source.path.as_str();
        let (files, budget) = (super::super::files(commits, folder), Budget::default());
        let answers = commits.fetched.answers();
        let sources = super::super::sources(&files, commits, &answers, request);
        let prepared = prepare(&sources, &request.params(request.sha.clone()));
        let prepared = match prepared {
            Ok(prepared) => prepared,
            Err(error) => return (Ok(Err(error)), 0),
        };
        let render = Isolated {
            workers: &self.workers,
            charts: &self.charts,
            files: &files,
            folder,
            commits,
            request,
            budget: &budget,
            limit: PATIENCE,
        };
        let deadline = Deadline {
            begun: Instant::now(),
            limit: PATIENCE,
        };
        let mut connection = Connection::from(socket);
        let mut session = Session::new(&render, &mut connection, deadline);
        let outcome = session.run(What::Manifests(Box::new(prepared)));
        let reports = session.reports;
        (outcome, reports)
    }
}

/// For fuzzing: a render of the folder `app` of a repository whose worker sends these frames,
/// whatever it is told. What is taken from them keeps to the limits.
///
/// # Errors
/// What does not.
#[doc(hidden)]
pub fn read_worker(repository: &Path, sha: &str, frames: &[u8]) -> Result<(), String> {
    let source = ApplicationSource {
        path: "app".to_owned(),
        ..ApplicationSource::default()
    };
    let source = Source::open(repository, sha, source)?;
    let failed = |e: io::Error| e.to_string();
    let (ours, mut its) = UnixStream::pair().map_err(failed)?;
    let mut told = its.try_clone().map_err(failed)?;
    let (outcome, _) = thread::scope(|scope| {
        scope.spawn(move || {
            // The render may end before it has read everything.
            let _ = its.write_all(frames);
            let _ = its.shutdown(Shutdown::Write);
        });
        scope.spawn(move || io::copy(&mut told, &mut io::sink()));
        source.rendered(ours)
    });
    match outcome {
        Ok(outcome) => judge(outcome),
        Err(Lost::Late) => Err("the render waits for ever".to_owned()),
        Err(_) => Ok(()),
    }
}

fn judge(outcome: Result<Outcome, RenderError>) -> Result<(), String> {
    let fault = match outcome {
        Ok(Outcome::Rendered(made)) => {
            let of_errors = made.errors.iter().map(|e| e.file.len() + e.message.len());
            let bytes = of_errors.chain(made.warnings.iter().map(String::len));
            let is_small = made.objects.len() <= Budget::default().objects
                && made.errors.len() + made.warnings.len() <= MAX_MESSAGES
                && bytes.sum::<usize>() <= MAX_MESSAGE_BYTES;
            (!is_small).then_some("more than a render may have")
        }
        Ok(Outcome::Details(..)) => Some("details, which nobody asked for"),
        Err(RenderError::Lost(_) | RenderError::Stopped(_)) => {
            Some("what only the owner of a worker knows")
        }
        Err(RenderError::Need(needed)) => {
            let is_plugin = |one: &SourceRef| matches!(one, SourceRef::Plugin(_));
            let is_wrong = needed.is_empty() || needed.iter().any(is_plugin);
            is_wrong.then_some("something to fetch that no worker may need")
        }
        Err(error) => {
            // In a text some characters are longer than they were sent.
            let is_long = error.to_string().len() > 4 * MAX_ERROR_BYTES;
            is_long.then_some("an error that is too long")
        }
    };
    fault.map_or(Ok(()), |fault| Err(fault.to_owned()))
}
