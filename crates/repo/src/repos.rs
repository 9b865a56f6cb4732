//! The handle that the rest of the program uses.

use crate::{
    ContactWatch, RepoAccess, RepoError, SourceLimits,
    charts::{ChartName, Charts},
    common::{Common, no_look_ups},
    disk_cache::DiskCache,
    entry::{Copies, Entry},
    git::{self, Commit, CommitId, GitFiles, GitLimits, Store},
    ground::{Since, blocking},
    http::Downloads,
    isolation::Isolation,
    known_answers::KnownAnswers,
    lfs::{Lfs, Objects},
    manifests::{Commits, ManifestRequest, Manifests, Renderer},
    needs::{self, Fetched, Got},
    oci::{self, Oci},
    plugin::{PluginSettings, Plugins},
    revision::{self, Reference, Target},
    scm::Scm,
    shares::Shares,
    streamed::{STREAMED, Streamed},
    submodules::Submodules,
    tokens::{Tokens, Workload as AzureWorkload},
    unpacked::Unpacked,
    url::locate,
    web::WebFiles,
};
use std::{
    collections::{BTreeMap, HashMap},
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::{Duration, Instant, SystemTime},
};
use tiphys_api::{
    access::shown_url,
    repository::{ChartDetails, OCIMetadata, RevisionMetadata},
    source::ApplicationSource,
};
use tiphys_render::{Budget, Details, RenderError, SourceRef, helm};
use tracing::Instrument as _;

/// A revision that was looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// 40 hexadecimal digits, or the requested abbreviated SHA if no ref has that name.
    pub sha: String,
    /// `sha` itself if a full SHA was requested, else like `HEAD (sha)`.
    pub display: String,
}

/// Names of branches and tags, sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refs {
    pub branches: Vec<String>,
    pub tags: Vec<String>,
}

/// Limits and options of [`Repos`].
#[derive(Clone, Debug)]
pub struct RepoOptions {
    /// Accept file:// URLs and absolute paths. Anyone who may name a repository can then read every
    /// repository on this machine.
    pub allow_local: bool,
    /// How long a look-up of a remote repository's refs is used for [`Since::Recently`].
    pub refs_ttl: Duration,
    /// Timeout of one connection to a remote repository.
    pub timeout: Duration,
    /// Limits of one render.
    pub budget: Budget,
    /// Time limit for the templates of one render.
    pub render_timeout: Duration,
    /// Cache size for rendered manifests (estimated).
    pub manifest_bytes: u64,
    /// Keeps rendered manifests and what repositories listed for the next process.
    pub disk_cache: Option<DiskCache>,
    /// Limits on repositories.
    pub limits: GitLimits,
    /// Limits on what is not Git, and how patiently refs are asked for.
    pub sources: SourceLimits,
    /// The program for ssh URLs, searched in PATH.
    pub ssh_program: String,
    /// Where plugins are.
    pub plugins: PluginSettings,
    /// The identity for repositories with `useAzureWorkloadIdentity`.
    pub azure_workload: Option<AzureWorkload>,
    /// What takes precedence over the environment where it says who this process is at AWS.
    pub cloud: BTreeMap<String, String>,
    /// Concurrent renders; 0 means twice the number of processors.
    pub parallelism: usize,
    /// Evaluate Jsonnet in other processes; `None`: in this one, whose memory it can use up.
    pub isolation: Option<Isolation>,
    /// Fetch the submodules of a commit that is rendered.
    pub submodules: bool,
    /// Check signatures where projects demand them.
    pub signatures: bool,
    /// Is told of contacts with Git servers.
    pub contacts: ContactWatch,
}

impl RepoOptions {
    /// Who this process is to the servers that it asks as its workload: part of the names of what
    /// they answered.
    pub(crate) fn workload(&self) -> String {
        // The fingerprint of an access does not tell it: a process has only one.
        format!("{:?}", self.azure_workload)
    }
}

impl Default for RepoOptions {
    fn default() -> Self {
        Self {
            allow_local: true,
            refs_ttl: Duration::from_secs(20),
            timeout: Duration::from_secs(90),
            budget: Budget::default(),
            render_timeout: Duration::from_secs(60),
            manifest_bytes: 256 << 20,
            disk_cache: None,
            limits: GitLimits::default(),
            sources: SourceLimits::default(),
            ssh_program: "ssh".to_owned(),
            plugins: PluginSettings::default(),
            azure_workload: None,
            cloud: BTreeMap::new(),
            parallelism: 0,
            isolation: None,
            submodules: true,
            signatures: true,
            contacts: ContactWatch::default(),
        }
    }
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

/// The Git LFS objects of the sources of one render, with the access to their repositories.
#[derive(Default)]
struct Pointed(Vec<(Arc<Objects>, RepoAccess)>);

impl Pointed {
    /// The commit, with the files that its pointers stand for if the repository has them.
    fn in_commit(&mut self, (store, id): Commit, access: &RepoAccess) -> Commit {
        if !access.lfs {
            return (store, id);
        }
        let objects = Arc::new(Objects::new(access));
        let store = store.with_lfs(Arc::clone(&objects));
        self.0.push((objects, access.clone()));
        (store, id)
    }
}

impl Inner {
    fn manifests(
        &self,
        commits: &Commits,
        request: &ManifestRequest,
    ) -> Result<Arc<Manifests>, RepoError> {
        let (budget, limit) = (&self.options.budget, self.options.render_timeout);
        let made = self.renderer.manifests(commits, request, budget, limit);
        made.map(Arc::new)
    }
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
        let processors = std::thread::available_parallelism().map_or(2, usize::from);
        let renders = if options.parallelism == 0 {
            processors * 2
        } else {
            options.parallelism
        };
        let cache_dir = cache_dir.into();
        let sources = &options.sources;
        let common = Arc::new(Common {
            shares: Shares::new(renders).with_look_ups(sources.look_ups),
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
        let oci = Arc::new(oci.keeping(known.clone()));
        let indexes = cache_dir.join("indexes");
        let charts = Charts::new(downloads, Arc::clone(&oci), unpacked, indexes, sources);
        let charts = charts.keeping(known);
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
                    Some(known) => known.in_memory(found, &request.access, request)?,
                    None => found,
                }
            }
        };
        before.at(&now, request).map(Arc::new)
    }

    /// The objects of a source. Cached by what was read, not by the commit.
    pub async fn manifests(&self, request: ManifestRequest) -> Result<Arc<Manifests>, RepoError> {
        let span = tracing::trace_span!(
            "GenerateManifest",
            revision = request.sha,
            path = request.source.path
        );
        self.render(request, Inner::manifests)
            .instrument(span)
            .await
    }

    /// The same, of files that are not those of the source.
    pub(crate) async fn manifests_of(
        &self,
        files: Commit,
        request: ManifestRequest,
    ) -> Result<Arc<Manifests>, RepoError> {
        self.render_from(files, request, Inner::manifests).await
    }

    pub(crate) fn streamed(&self) -> &Streamed {
        &self.inner.streamed
    }

    /// The details and settable parameters of a source.
    pub async fn details(&self, request: ManifestRequest) -> Result<Details, RepoError> {
        self.render(request, |inner, commits, request| {
            let (budget, limit) = (&inner.options.budget, inner.options.render_timeout);
            inner.renderer.details(commits, request, budget, limit)
        })
        .await
    }

    /// Fetches the commits of a request and runs `work` on them, again and again until everything
    /// that it needs has been fetched.
    async fn render<T: Send + 'static>(
        &self,
        request: ManifestRequest,
        work: fn(&Inner, &Commits, &ManifestRequest) -> Result<T, RepoError>,
    ) -> Result<T, RepoError> {
        let own = self.own(&request).await?;
        self.render_from(own, request, work).await
    }

    async fn render_from<T: Send + 'static>(
        &self,
        own: Commit,
        request: ManifestRequest,
        work: fn(&Inner, &Commits, &ManifestRequest) -> Result<T, RepoError>,
    ) -> Result<T, RepoError> {
        let mut refs = BTreeMap::new();
        let mut pointed = Pointed::default();
        let is_git = request.chart().is_none() && !request.is_oci();
        let own = if is_git && request.sha != STREAMED {
            pointed.in_commit(own, &request.access)
        } else {
            own
        };
        for (name, source) in request.refs.iter().filter(|_| request.refers()) {
            let commit = if oci::is_source(&source.access.url) {
                self.inner.oci.files(&source.access, &source.sha).await?
            } else {
                let commit = self.whole(&source.access, &source.sha, &request).await?;
                pointed.in_commit(commit, &source.access)
            };
            refs.insert(name.clone(), commit);
        }
        let mut commits = Arc::new(Commits {
            own,
            refs,
            fetched: Fetched::default(),
            plugins: self.inner.plugins.state(),
            spent: Duration::ZERO,
            may_foresee: !request.no_cache,
        });
        let request = Arc::new(request);
        loop {
            // Not held while something is fetched: a slow host must not keep others from rendering.
            let common = &self.inner.common;
            let waiting = common.contacts.waiting();
            let permit = common.shares.render(&request.project).await;
            drop(waiting);
            let permit = permit.map_err(|e| RepoError::Internal(e.to_string()))?;
            let (inner, of, what) = (
                Arc::clone(&self.inner),
                Arc::clone(&commits),
                Arc::clone(&request),
            );
            let begun = Instant::now();
            let outcome = blocking(move || {
                // The work goes on even if the caller stops waiting.
                let _until_done = permit;
                work(&inner, &of, &what)
            })
            .await;
            let spent = commits.spent + begun.elapsed();
            let mut may_foresee = commits.may_foresee;
            let fetched = if self.fetch_pointed(&pointed).await? {
                commits.fetched.clone()
            } else {
                let Err(RepoError::Render(RenderError::Need(needed))) = outcome else {
                    return outcome;
                };
                match self.fetch_needs(&request, &commits, needed).await {
                    // What an earlier render needed may not be needed now: it must not count.
                    Err(RepoError::Render(RenderError::OverBudget { .. })) if may_foresee => {
                        may_foresee = false;
                        Fetched::default()
                    }
                    fetched => fetched?,
                }
            };
            commits = Arc::new(Commits {
                fetched,
                spent,
                may_foresee,
                plugins: commits.plugins,
                own: commits.own.clone(),
                refs: commits.refs.clone(),
            });
        }
    }

    /// Downloads what Git LFS pointers that were read stand for. False: none were.
    async fn fetch_pointed(&self, pointed: &Pointed) -> Result<bool, RepoError> {
        let mut is_any = false;
        for (objects, access) in &pointed.0 {
            if objects.is_any_missing() {
                let (_, own) = locate(access, self.inner.options.allow_local)?;
                let own = self.inner.tokens.signed_in(&own).await?;
                let key = access.fingerprint();
                is_any |= self.inner.lfs.complete(objects, key, &own).await?;
            }
        }
        Ok(is_any)
    }

    /// The files of the source itself.
    async fn own(&self, request: &ManifestRequest) -> Result<Commit, RepoError> {
        if request.is_oci() {
            return self.inner.oci.files(&request.access, &request.sha).await;
        }
        let Some(chart) = request.chart() else {
            return self.whole(&request.access, &request.sha, request).await;
        };
        let since = since(request);
        self.inner.charts.files(chart, &request.sha, since).await
    }

    /// Fetches what is needed, and adds it to what was fetched before.
    async fn fetch_needs(
        &self,
        request: &ManifestRequest,
        commits: &Commits,
        needed: Vec<SourceRef>,
    ) -> Result<Fetched, RepoError> {
        let before = &commits.fetched;
        let needed = before.next(needed)?;
        let since = since(request);
        let fetch = async |needed: &SourceRef| match needed {
            SourceRef::Plugin(question) => {
                let answer = self.inner.plugins.ask(question, &commits.own, request);
                answer.await.map(Got::Answer)
            }
            other => self.fetch(request, other, since).await.map(Got::Files),
        };
        let found = futures::future::join_all(needed.iter().map(fetch)).await;
        Ok(before.with(needed.into_iter().zip(found)))
    }

    pub(crate) async fn fetch(
        &self,
        request: &ManifestRequest,
        needed: &SourceRef,
        since: Since,
    ) -> Result<Commit, RepoError> {
        match needed {
            SourceRef::Git {
                url,
                revision,
                submodules,
            } => {
                let reach = needs::repository(url, request)?;
                let commit = self.base_at(&reach.access, revision, since).await;
                let commit = commit
                    .map_err(|e| needs::unless_permitted(e, &reach, &request.project, false))?;
                if *submodules {
                    self.with_submodules(commit, &reach.access, request).await
                } else {
                    Ok(commit)
                }
            }
            SourceRef::Chart {
                repository,
                name,
                version,
            } => {
                let reach = needs::chart_repository(repository, request)?;
                let chart = ChartName {
                    access: &reach.access,
                    name,
                    pass_credentials: false,
                };
                let files = self.inner.charts.files(chart, version, since).await;
                files.map_err(|e| needs::unless_permitted(e, &reach, &request.project, true))
            }
            SourceRef::File { url } => {
                let access = needs::web(url, request)?;
                self.inner.web.get(&access, url, since).await
            }
            SourceRef::Plugin(_) => Err(RepoError::Internal(format!("{needed} has no files"))),
        }
    }

    /// The names of the plugins, sorted.
    pub fn plugins(&self) -> Result<Vec<String>, RepoError> {
        self.inner.plugins.names()
    }

    /// Whether signatures are checked at all.
    pub fn verifies(&self) -> bool {
        self.inner.options.signatures
    }

    /// Whether the repository responds and the credentials are valid.
    pub async fn test(&self, access: &RepoAccess) -> Result<(), RepoError> {
        self.entry(access)?.refs(Since::now()).await.map(|_| ())
    }

    /// Whether the registry responds and the credentials are valid.
    pub async fn test_registry(&self, access: &RepoAccess) -> Result<(), RepoError> {
        self.inner.oci.test(access).await
    }

    /// The tags of a repository in a registry, in the registry's order, with `+` for `_` as
    /// versions have it.
    pub async fn oci_tags(&self, access: &RepoAccess) -> Result<Vec<String>, RepoError> {
        let tags = self.inner.oci.tags(access, Since::now()).await?;
        Ok(tags.to_vec())
    }

    /// What the author of an artifact says about it. `revision`: a digest or a tag.
    pub async fn oci_metadata(
        &self,
        access: &RepoAccess,
        revision: &str,
    ) -> Result<OCIMetadata, RepoError> {
        self.inner.oci.metadata(access, revision).await
    }

    /// Whether the chart repository responds with an index.
    pub async fn test_charts(&self, access: &RepoAccess) -> Result<(), RepoError> {
        self.inner.charts.list(access).await.map(|_| ())
    }

    /// The charts of a repository, with their versions, in the order of its index.
    pub async fn charts(
        &self,
        access: &RepoAccess,
    ) -> Result<Vec<(String, Vec<String>)>, RepoError> {
        self.inner.charts.list(access).await
    }

    /// What a version of a chart says about itself.
    pub async fn chart_details(
        &self,
        access: &RepoAccess,
        source: &ApplicationSource,
        version: &str,
    ) -> Result<ChartDetails, RepoError> {
        let chart = ChartName::of(access, source).ok_or_else(|| RepoError::NoVersion {
            reason: "the source is not a chart".to_owned(),
        })?;
        let commit = self.inner.charts.files(chart, version, Since::Recently);
        let (store, id) = commit.await?;
        let shown = shown_url(&access.url);
        blocking(move || {
            let files = GitFiles::new(&store, id.tree, None);
            let limits = helm::Limits::default();
            let loaded = helm::chart::Chart::from_unpacked(&files, &limits);
            let chart = loaded.map_err(|e| RepoError::Corrupt {
                url: shown,
                reason: e.to_string(),
            })?;
            let metadata = chart.chart.metadata;
            let person = |m: helm::chart::Maintainer| {
                let text = format!("{} <{}>", m.name, m.email);
                text.trim().to_owned()
            };
            Ok(ChartDetails {
                description: metadata.description,
                home: metadata.home,
                maintainers: metadata.maintainers.into_iter().map(person).collect(),
            })
        })
        .await
    }

    pub async fn refs(&self, access: &RepoAccess, since: Since) -> Result<Refs, RepoError> {
        let refs = self.entry(access)?.refs(since).await?;
        let names = |prefix: &str| {
            let mut names: Vec<String> = refs
                .iter()
                .filter_map(|r| r.name.strip_prefix(prefix))
                .map(str::to_owned)
                .collect();
            names.sort();
            names
        };
        Ok(Refs {
            branches: names("refs/heads/"),
            tags: names("refs/tags/"),
        })
    }

    /// Author, date, message and tags of a commit.
    pub async fn metadata(
        &self,
        access: &RepoAccess,
        sha: &str,
    ) -> Result<RevisionMetadata, RepoError> {
        let entry = self.entry(access)?;
        let (store, id) = self.commit(&entry, sha).await?;
        let refs = entry.refs(Since::Recently).await?;
        let commit = id.commit.to_string();
        let tag = |r: &Reference| {
            r.name
                .strip_prefix("refs/tags/")
                .filter(|_| r.sha == commit)
                .map(str::to_owned)
        };
        let tags = refs.iter().filter_map(tag).collect();
        blocking(move || store.metadata(id.commit, tags)).await
    }

    /// Whether `is_meant` is true for a file that differs between two commits.
    pub async fn any_changed(
        &self,
        access: &RepoAccess,
        from: &str,
        to: &str,
        is_meant: impl Fn(&str) -> bool + Send + 'static,
    ) -> Result<bool, RepoError> {
        let entry = self.entry(access)?;
        let (_, from) = self.commit(&entry, from).await?;
        let (store, to) = self.commit(&entry, to).await?;
        blocking(move || git::any_changed(&store, from.tree, to.tree, &is_meant)).await
    }

    /// The commit of a remote base. `git fetch`, with which Kustomize gets it, knows refs and whole
    /// SHAs only.
    async fn base_at(
        &self,
        access: &RepoAccess,
        revision: &str,
        since: Since,
    ) -> Result<Commit, RepoError> {
        let resolved = self.resolve(access, revision, since).await?;
        if !revision::is_full_sha(&resolved.sha) {
            let reason = format!(
                "couldn't find remote ref {revision}, and a commit is named by its whole SHA here"
            );
            let revision = revision.to_owned();
            return Err(RepoError::NoTag { revision, reason });
        }
        self.commit(&self.entry(access)?, &resolved.sha).await
    }

    /// None if they are switched off.
    pub(crate) fn submodules(&self, request: &ManifestRequest) -> Option<&Submodules> {
        let inner = &self.inner;
        let is_on = inner.options.submodules && !request.no_submodules;
        is_on.then_some(&inner.submodules)
    }

    /// The commit with its submodules.
    pub(crate) async fn whole(
        &self,
        access: &RepoAccess,
        sha: &str,
        request: &ManifestRequest,
    ) -> Result<Commit, RepoError> {
        let commit = self.commit(&self.entry(access)?, sha).await?;
        self.with_submodules(commit, access, request).await
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

/// How recent what a render reads must be.
pub(crate) fn since(request: &ManifestRequest) -> Since {
    if request.no_cache {
        Since::now()
    } else {
        Since::Recently
    }
}

fn now() -> i64 {
    let since = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}
