//! The handle that the rest of the program uses. Main types: [`Repos`] and [`RepoOptions`].
//!
//! Here is what it is made of, and how revisions are resolved; [`rendering`] fetches what renders
//! need, and [`questions`] answers what is asked besides.

mod options;
mod questions;
mod rendering;

pub use options::RepoOptions;
pub use questions::Refs;
pub(crate) use rendering::since;

use crate::{
    RepoAccess, RepoError,
    acceptances::Acceptances,
    chart::ChartName,
    charts::Charts,
    common::{Common, no_look_ups},
    copies::Copies,
    entry::Entry,
    git::{self, CommitId, GitLimits, Store},
    ground::Since,
    http::Downloads,
    known_answers::KnownAnswers,
    lfs::Lfs,
    manifests::{ManifestRequest, Manifests, Renderer},
    oci::{self, Oci},
    plugin::Plugins,
    revision::{self, Target},
    scm::Scm,
    shares::Shares,
    streamed::Streamed,
    submodules::Submodules,
    tokens::Tokens,
    unpacked::Unpacked,
    url::locate,
    web::WebFiles,
};
use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::SystemTime,
};
use tiphys_api::source::ApplicationSource;
use tracing::Instrument as _;

/// A revision that was looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// 40 hexadecimal digits, or the requested abbreviated SHA if no ref has that name.
    pub sha: String,
    /// `sha` itself if a full SHA was requested, else like `HEAD (sha)`.
    pub display: String,
}

/// How many repositories with different URLs or credentials are cached.
const MAX_ENTRIES: usize = 10_000;

/// A cheap handle to all repositories; clones share caches and running fetches.
#[derive(Clone)]
pub struct Repos {
    inner: Arc<Inner>,
}

struct Inner {
    options: RepoOptions,
    copies: Copies,
    entries: Mutex<HashMap<[u8; 32], Arc<Entry>>>,
    renderer: Renderer,
    common: Arc<Common>,
    charts: Charts,
    web: WebFiles,
    oci: Arc<Oci>,
    submodules: Submodules,
    plugins: Plugins,
    streamed: Streamed,
    tokens: Arc<Tokens>,
    lfs: Lfs,
    scm: Scm,
}

impl std::fmt::Debug for Repos {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Repos")
            .field("options", &self.inner.options)
            .finish_non_exhaustive()
    }
}

impl Repos {
    /// `cache_dir` contains bare copies of remote repositories; it is created when needed and may
    /// be deleted while no process uses it.
    pub fn new(cache_dir: impl Into<PathBuf>) -> Self {
        Self::with_options(cache_dir, RepoOptions::default())
    }

    pub fn with_options(cache_dir: impl Into<PathBuf>, options: RepoOptions) -> Self {
        // If another one is already installed, that is fine.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let cache_dir = cache_dir.into();
        let sources = &options.sources;
        let common = Arc::new(Common {
            shares: Shares::new(options.renders()).with_look_ups(sources.look_ups),
            look_ups: no_look_ups(),
            contacts: options.contacts.clone(),
        });
        let streamed = Streamed::new(cache_dir.join("streamed"));
        let downloads = Arc::new(Downloads::new(options.timeout, Arc::clone(&common)));
        let unpacked = Unpacked::new(cache_dir.join("unpacked"), sources.artifact_bytes);
        let unpacked = Arc::new(unpacked);
        let web = WebFiles::new(Arc::clone(&downloads), Arc::clone(&unpacked));
        let place = (Arc::clone(&unpacked), cache_dir.join("downloads"));
        let known = KnownAnswers::new(options.disk_cache.clone(), &options.workload());
        let oci = Oci::new(options.timeout, Arc::clone(&common), place, sources);
        let accepted = Acceptances::new(cache_dir.join("accepted"), &options.workload());
        let oci = Arc::new(oci.keeping(known.clone(), accepted.clone()));
        let indexes = cache_dir.join("indexes");
        let charts = Charts::new(downloads, Arc::clone(&oci), unpacked, indexes, sources);
        let charts = charts.keeping(known, accepted);
        let limit = options.render_timeout;
        let workload = options.azure_workload.clone();
        let tokens = Tokens::new(options.timeout, Arc::clone(&common), workload);
        let tokens = Arc::new(tokens);
        let plugins = Plugins::new(
            &options.plugins,
            limit,
            Arc::clone(&common),
            Arc::clone(&tokens),
        );
        let scm = Scm::new(
            Arc::clone(&common),
            Arc::clone(&tokens),
            options.cloud.clone(),
        );
        let lfs = Lfs::new(options.timeout, Arc::clone(&common));
        // What was rendered under other limits might not be rendered under these.
        let limits = format!("{:?} {:?}", options.limits, options.sources);
        let disk = options.disk_cache.clone().map(|cache| (cache, limits));
        let (bytes, isolation) = (options.manifest_bytes, options.isolation.clone());
        Self {
            inner: Arc::new(Inner {
                scm,
                charts,
                web,
                oci,
                plugins,
                streamed,
                tokens,
                lfs,
                copies: Copies::new(cache_dir),
                entries: Mutex::default(),
                submodules: Submodules::default(),
                renderer: Renderer::new(bytes, isolation, disk),
                common,
                options,
            }),
        }
    }

    /// The hosts of Git repositories.
    pub fn scm(&self) -> &Scm {
        &self.inner.scm
    }

    pub(crate) fn entry(&self, access: &RepoAccess) -> Result<Arc<Entry>, RepoError> {
        let key = access.fingerprint();
        let mut entries = self
            .inner
            .entries
            .lock()
            .map_err(|_| RepoError::Internal("an earlier request failed badly".to_owned()))?;
        if let Some(entry) = entries.get(&key) {
            return Ok(Arc::clone(entry));
        }
        let (location, access) = locate(access, self.inner.options.allow_local)?;
        let copy = self.inner.copies.of(&location);
        let entry = Arc::new(Entry::new(
            location,
            access,
            copy,
            &self.inner.options,
            &self.inner.common,
            &self.inner.tokens,
            key,
        ));
        if entries.len() >= MAX_ENTRIES {
            // Credentials that change often must not fill the memory. Dropped entries are looked up
            // again.
            entries.clear();
        }
        entries.insert(key, Arc::clone(&entry));
        Ok(entry)
    }

    /// What the target revision of a source resolves to: a commit, a version of its chart, or the
    /// digest of an artifact. A constraint, such as `1.x`, is the highest tag or version that
    /// satisfies it.
    pub async fn resolve_source(
        &self,
        access: &RepoAccess,
        source: &ApplicationSource,
        revision: &str,
        since: Since,
    ) -> Result<Resolved, RepoError> {
        if oci::is_source(&source.repo_url) {
            let digest = self.inner.oci.resolve(access, revision, since).await?;
            return Ok(Resolved {
                display: format!("{revision} ({digest})"),
                sha: digest,
            });
        }
        let Some(chart) = ChartName::of(access, source) else {
            let target = Target::new(revision, &source.tag_prefix);
            return self.resolve_to(access, revision, target, since).await;
        };
        let version = self.inner.charts.resolve(chart, revision, since).await?;
        Ok(Resolved {
            display: format!("{revision} ({version})"),
            sha: version,
        })
    }

    /// The commit that the name of a ref or a SHA resolves to. Concurrent and recent look-ups of a
    /// repository share one result.
    pub async fn resolve(
        &self,
        access: &RepoAccess,
        revision: &str,
        since: Since,
    ) -> Result<Resolved, RepoError> {
        let target = Target::Name(revision::or_head(revision).into());
        self.resolve_to(access, revision, target, since).await
    }

    async fn resolve_to(
        &self,
        access: &RepoAccess,
        revision: &str,
        target: Target<'_>,
        since: Since,
    ) -> Result<Resolved, RepoError> {
        let entry = self.entry(access)?;
        if revision::is_full_sha(revision) {
            return Ok(Resolved {
                sha: revision.to_owned(),
                display: revision.to_owned(),
            });
        }
        let name = revision::or_head(revision);
        let look_up = async {
            match &target {
                Target::Name(name) => self.sha(&entry, name, since).await,
                Target::Highest {
                    constraint,
                    tag_prefix,
                } => revision::highest(&entry.refs(since).await?, constraint, tag_prefix),
            }
        };
        let sha = look_up
            .instrument(tracing::trace_span!("ResolveRevision", revision))
            .await?;
        Ok(Resolved {
            display: format!("{name} ({sha})"),
            sha,
        })
    }

    async fn sha(&self, entry: &Arc<Entry>, name: &str, since: Since) -> Result<String, RepoError> {
        if let Some(sha) = entry.last_of(name, since) {
            return Ok(sha);
        }
        let sha = revision::resolve(&entry.refs(since).await?, name)?;
        if sha == name && entry.is_local() {
            return Ok(self.commit(entry, &sha).await?.1.commit.to_string());
        }
        Ok(sha)
    }

    /// `before` adapted to the commit that is requested now, if nothing that was read for it
    /// differs there. Does not block: returns `None` if something is not in memory.
    pub fn unchanged(
        &self,
        request: &ManifestRequest,
        before: &Manifests,
    ) -> Option<Arc<Manifests>> {
        if self.inner.plugins.is_any() {
            // One of them may be for these files now.
            return None;
        }
        let now = match request.chart() {
            Some(chart) => self.inner.charts.last(chart, &request.sha)?,
            None if request.is_oci() => self.inner.oci.last(&request.access, &request.sha)?,
            None => {
                let found = self.entry(&request.access).ok()?.last(&request.sha)?;
                match self.submodules(request) {
                    Some(known) => known.in_memory(found, &request.access, (self, request))?,
                    None => found,
                }
            }
        };
        before.at(&now, request).map(Arc::new)
    }

    /// Has the repository of a source accept the access, unless it did before: what others read of
    /// it with theirs may be shown then. Refs and versions were not necessarily asked for: a whole
    /// SHA, an exact version and a digest stand for themselves. `sha`: as it was resolved. False: it
    /// is not known here whether the repository has this commit.
    pub async fn accepts(
        &self,
        access: &RepoAccess,
        source: &ApplicationSource,
        sha: &str,
    ) -> Result<bool, RepoError> {
        let since = Since::Recently;
        let inner = &self.inner;
        if oci::is_source(&source.repo_url) {
            return inner.oci.files(access, sha, since).await.map(|_| true);
        }
        match ChartName::of(access, source) {
            Some(chart) => inner.charts.files(chart, sha, since).await.map(|_| true),
            None => self.entry(access)?.accepts(sha).await,
        }
    }

    pub(crate) fn streamed(&self) -> &Streamed {
        &self.inner.streamed
    }

    /// The commit, fetched if it is missing.
    async fn commit(&self, entry: &Arc<Entry>, sha: &str) -> Result<(Store, CommitId), RepoError> {
        if !revision::is_abbreviated_sha(sha) {
            return Err(RepoError::RevisionNotFound {
                revision: revision::shortened(sha),
            });
        }
        entry.commit(sha).await
    }

    /// Creates a bare repository with one commit on `main`: for `tiphys up` and tests. Blocks.
    /// Returns the commit.
    pub fn init_example<'a>(
        dir: &Path,
        files: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<String, RepoError> {
        let store = git::init_bare(dir)?;
        let files: Vec<(&str, Option<&[u8]>)> = files
            .into_iter()
            .map(|(path, text)| (path, Some(text.as_bytes())))
            .collect();
        git::commit_files(&store, "main", &files, "Add the example", now())
    }

    /// Adds a commit to a branch of a local repository; `None` removes a file. Blocks. Returns the
    /// commit.
    pub fn commit_files(
        repository: &Path,
        branch: &str,
        changes: &[(&str, Option<&str>)],
        message: &str,
    ) -> Result<String, RepoError> {
        let store = Store::open(
            repository,
            &repository.display().to_string(),
            GitLimits::default(),
        )?;
        let changes: Vec<(&str, Option<&[u8]>)> = changes
            .iter()
            .map(|(path, text)| (*path, text.map(str::as_bytes)))
            .collect();
        git::commit_files(&store, branch, &changes, message, now())
    }
}

fn now() -> i64 {
    let since = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}
