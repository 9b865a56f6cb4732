//! The handle that the rest of the program uses.

use crate::{RepoAccess, RepoError};
use std::{path::PathBuf, sync::Arc};
use tiphys_api::{repository::RevisionMetadata, source::ApplicationSource};
use tiphys_apimachinery::Object;
use tiphys_render::ManifestError;

/// A revision that was looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// 40 hexadecimal digits, or the abbreviated SHA that was asked for.
    pub sha: String,
    /// `sha` itself when a SHA was asked for, else like `HEAD (sha)`.
    pub display: String,
}

/// Names of branches and tags, sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refs {
    pub branches: Vec<String>,
    pub tags: Vec<String>,
}

/// What to render: a source at a resolved revision.
#[derive(Clone, Debug, Default)]
pub struct ManifestRequest {
    pub access: RepoAccess,
    pub source: ApplicationSource,
    /// From [`Repos::resolve`].
    pub sha: String,
    pub app_name: String,
    pub namespace: String,
    pub project: String,
    /// Render again even when the result is remembered.
    pub no_cache: bool,
}

/// Rendered objects, as files hold them: no tracking, no namespace set. `errors` lists files that could not be used: while it is not
/// empty the objects are incomplete and nothing may be pruned because of them.
#[derive(Clone, Debug)]
pub struct Manifests {
    /// The commit that was asked for.
    pub revision: String,
    pub objects: Arc<Vec<Object>>,
    pub errors: Arc<Vec<ManifestError>>,
    pub warnings: Arc<Vec<String>>,
    /// `Directory`, `Helm`, `Kustomize` or `Plugin`.
    pub source_type: String,
    /// The same for the same content: two requests with equal digests have equal objects.
    pub digest: String,
}

/// A cheap handle to all repositories; clones share caches and running fetches.
#[derive(Clone, Debug)]
pub struct Repos {
    #[allow(dead_code)]
    cache_dir: Arc<PathBuf>,
}

fn not_built() -> RepoError {
    RepoError::Internal("not built".to_owned())
}

impl Repos {
    /// `cache_dir` holds bare copies of remote repositories; it is made when needed and may be deleted while nothing runs.
    pub fn new(cache_dir: impl Into<PathBuf>) -> Self {
        Self { cache_dir: Arc::new(cache_dir.into()) }
    }

    /// The commit a revision stands for. Concurrent and recent look-ups of a repository share one answer; `fresh` asks again.
    pub async fn resolve(&self, _access: &RepoAccess, _revision: &str, _fresh: bool) -> Result<Resolved, RepoError> {
        Err(not_built())
    }

    /// The objects of a source. Remembered by what is in the folder, not by the commit.
    pub async fn manifests(&self, _request: ManifestRequest) -> Result<Arc<Manifests>, RepoError> {
        Err(not_built())
    }

    /// Whether the repository answers and the credentials are right.
    pub async fn test(&self, _access: &RepoAccess) -> Result<(), RepoError> {
        Err(not_built())
    }

    pub async fn refs(&self, _access: &RepoAccess, _fresh: bool) -> Result<Refs, RepoError> {
        Err(not_built())
    }

    /// Author, date, message and tags of a commit.
    pub async fn metadata(&self, _access: &RepoAccess, _sha: &str) -> Result<RevisionMetadata, RepoError> {
        Err(not_built())
    }

    /// A new bare repository with one commit on `main`: for `tiphys up` and tests. Returns the commit.
    pub fn init_example(_dir: &std::path::Path, _files: &[(&str, &str)]) -> Result<String, RepoError> {
        Err(not_built())
    }

    /// Adds a commit to a branch of a local repository; `None` removes a file. Returns the commit.
    pub fn commit_files(
        _repository: &std::path::Path,
        _branch: &str,
        _changes: &[(&str, Option<&str>)],
        _message: &str,
    ) -> Result<String, RepoError> {
        Err(not_built())
    }
}
