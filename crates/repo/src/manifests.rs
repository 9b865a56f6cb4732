//! Renders a source at a commit, and caches the result by the content that was read.
//!
//! Main type: [`Renderer`].

mod charts;
mod isolated;
mod on_disk;
mod request;

#[doc(hidden)]
pub use isolated::read_worker;
pub use request::{ManifestRequest, RefSource};

use crate::{
    RepoError,
    disk_cache::DiskCache,
    git::{Commit, Found, GitFiles},
    ground::{chart_weight, hex, weight},
    isolation::{Isolation, Workers},
    needs::Fetched,
    plugin,
    traced::{Files, Key, Traced},
};
use charts::ReadyCharts;
use isolated::{Isolated, KnownCharts};
use sha2::{Digest, Sha256};
use std::{
    collections::BTreeMap,
    hash::{Hash, Hasher},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};
use tiphys_api::project::SourceIntegrityCheckResult;
use tiphys_apimachinery::Kept;
use tiphys_render::{
    Budget, Details, FileError, ManifestError, PluginAnswer, PluginQuestion, Plugins, Prepared,
    RenderError, Rendered, SourceFiles, SourceKind, SourceRef, SourceSet, Tool, app_folder,
    details, helm::ParsedChart, prepare, render, source_kind,
};

/// Part of every digest. Increase it when rendering changes, so that old results are not reused:
/// they are kept on disk.
const RENDERER: &str = "6";
/// Cache size for parsed charts (estimated).
const CHART_BYTES: u64 = 128 << 20;
/// Renders whose needs are remembered.
const NEEDS: u64 = 10_000;

/// Rendered objects as in the files, without tracking metadata or namespaces. `errors` lists files
/// that could not be used: if there are any, the objects are incomplete and nothing may be pruned
/// because of them.
#[derive(Clone, Debug)]
pub struct Manifests {
    /// The full SHA of the commit that was rendered, the version of the chart, or the digest of the
    /// artifact.
    pub revision: String,
    pub objects: Arc<[Arc<Kept>]>,
    pub errors: Arc<Vec<ManifestError>>,
    pub warnings: Arc<Vec<String>>,
    /// `Directory`, `Helm`, `Kustomize` or `Plugin`.
    pub source_type: String,
    /// Results with equal digests have equal objects.
    pub digest: String,
    /// What a repo-server said of the signature of the commit.
    pub told: RemoteVerdict,
    /// Files of other repositories than those of the sources were read: of submodules, remote bases
    /// or dependencies. Who may read the sources may not necessarily read these.
    pub reads_others: bool,
    pub(crate) basis: Option<Arc<Basis>>,
}

/// What a repo-server found out about the signature of a commit.
#[derive(Clone, Debug, Default)]
pub struct RemoteVerdict {
    pub integrity: Option<SourceIntegrityCheckResult>,
    /// What git printed.
    pub verify_result: String,
}

/// The inputs of rendered manifests; equal inputs give equal manifests.
#[derive(Debug)]
pub(crate) struct Basis {
    /// Without the commit.
    request: ManifestRequest,
    /// False for a plain folder: its manifests do not depend on the kinds of the cluster, so a new
    /// or removed CRD does not cause rendering.
    by_cluster: bool,
    /// The Application's folder, and the look-ups elsewhere.
    seen: Vec<(String, Found)>,
}

impl Manifests {
    /// No objects of a revision.
    pub fn empty(revision: impl Into<String>) -> Self {
        answer(
            revision.into(),
            &remember(Rendered::default()),
            String::new(),
            None,
        )
    }

    /// The inputs at another commit, if everything that was read is cached and equal there.
    pub(crate) fn at(&self, (store, id): &Commit, request: &ManifestRequest) -> Option<Self> {
        let basis = self
            .basis
            .as_ref()
            .filter(|basis| basis.request.asks_the_same(request, basis.by_cluster))?;
        GitFiles::are(store, id.tree, &basis.seen).then(|| Self {
            revision: request.revision(*id),
            ..self.clone()
        })
    }
}

/// Where the files of a request are.
pub(crate) struct Commits {
    pub own: Commit,
    /// Of the sources that the request refers to.
    pub refs: BTreeMap<String, Commit>,
    pub fetched: Fetched,
    pub plugins: plugin::State,
    /// How long the renders took that found out what had to be fetched first.
    pub spent: Duration,
    /// How long this one has waited for a process.
    pub waited: Mutex<Duration>,
    /// What an earlier render needed is fetched before it is known whether this one needs it.
    pub may_foresee: bool,
}

impl Commits {
    /// Whether there are files of other repositories than those of the sources.
    fn reads_others(&self) -> bool {
        let mut of_sources = [&self.own].into_iter().chain(self.refs.values());
        of_sources.any(|(store, _)| store.is_composed()) || self.fetched.commits().next().is_some()
    }

    /// When a render that begins now must count as begun: all renders of one source have the time of
    /// one.
    fn begun(&self) -> Instant {
        let now = Instant::now();
        now.checked_sub(self.spent).unwrap_or(now)
    }

    fn has_waited(&self, time: Duration) {
        *self.waited.lock().unwrap_or_else(PoisonError::into_inner) += time;
    }

    /// How long the renders have taken, once one ends that began then.
    pub fn spent_since(&self, begun: Instant) -> Duration {
        let waited = *self.waited.lock().unwrap_or_else(PoisonError::into_inner);
        self.spent + begun.elapsed().saturating_sub(waited)
    }
}

/// Renders, and remembers what came of it.
pub(crate) struct Renderer {
    manifests: Traced<Remembered>,
    charts: Traced<ParsedChart>,
    /// What renders needed, so that it is fetched before they run.
    needs: moka::sync::Cache<Key, Arc<Vec<SourceRef>>>,
    /// Where sources are rendered, if not in this process, and what is known of the charts there.
    workers: Option<(Workers, KnownCharts)>,
}

struct Remembered {
    objects: Arc<[Arc<Kept>]>,
    errors: Arc<Vec<ManifestError>>,
    warnings: Arc<Vec<String>>,
    kind: &'static str,
    weight: u32,
}

impl Renderer {
    /// `bytes`: cache size for rendered manifests; `isolation`: how renders are kept apart; `disk`:
    /// where results are kept, with the limits that they were made under.
    pub fn new(
        bytes: u64,
        isolation: Option<Isolation>,
        disk: Option<(DiskCache, String)>,
    ) -> Self {
        let disk = disk.map(|(cache, basis)| on_disk::renders(cache, basis));
        Self {
            manifests: Traced::new(bytes, |m: &Remembered| m.weight).on_disk(disk),
            charts: Traced::new(CHART_BYTES, |c| chart_weight(c.chart())),
            needs: moka::sync::Cache::new(NEEDS),
            workers: isolation.map(|how| (Workers::new(how), isolated::known_charts())),
        }
    }

    /// Blocks.
    ///
    /// # Errors
    /// [`RenderError::Need`], until all that the render needs has been fetched.
    pub fn manifests(
        &self,
        commits: &Commits,
        request: &ManifestRequest,
        budget: &Budget,
        limit: Duration,
    ) -> Result<Manifests, RepoError> {
        let (_, id) = &commits.own;
        let revision = request.revision(*id);
        let has_content =
            !request.source.path.is_empty() || !request.source.chart.is_empty() || request.is_oci();
        if request.several && !has_content {
            // It only provides files for other sources.
            return Ok(Manifests::empty(revision));
        }
        let folder = app_folder(&request.source.path)?;
        let files = files(commits, &folder);
        let answers = commits.fetched.answers();
        let sources = sources(&files, commits, &answers, request);
        let prepared = prepare(&sources, &request.params(revision.clone()))?;
        let replaced = match &prepared.tool {
            Tool::Kustomize(options) => request.kustomize_versions.check(&options.version)?,
            _ => None,
        };
        let own = files.own.look(&folder);
        let lfs = files.all().map(GitFiles::lfs_access).collect();
        // A process that content has taken over must not answer for other projects. Plugins, and
        // what reads their answers, are not such processes.
        let is_shared = prepared.tool.kind() == SourceKind::Plugin;
        let project = (!is_shared).then_some(&*request.project);
        let key = key((own, lfs), &prepared, &answers, budget, project);
        if commits.may_foresee {
            let known = self.needs.get(&key);
            let known = known.unwrap_or_else(|| Arc::new(self.manifests.fetched(&key)));
            let missing = commits.fetched.missing(&known);
            if !missing.is_empty() {
                return Err(RenderError::Need(missing).into());
            }
        }
        let (whole, found) = self.manifests.get(key, &files, request.no_cache, || {
            let of = Of {
                commits,
                request,
                files: &files,
                folder: &folder,
                budget,
                limit,
            };
            let rendered = self.rendered(&sources, &prepared, &of)?;
            // Once: what is remembered has been told.
            for warning in rendered.warnings.iter().chain(&replaced) {
                tracing::warn!(application = request.app_name, "{warning}");
            }
            // Without them it is not what is to be remembered.
            if files.all().any(|files| files.misses_lfs() == Some(true)) {
                let missing = FileError::LfsPointer(request.source.path.clone());
                return Err(RenderError::File(missing));
            }
            Ok(Arc::new(remember(rendered)))
        })?;
        if !commits.fetched.is_empty() {
            self.needs
                .insert(key, Arc::new(files.fetched.keys().cloned().collect()));
        }
        // What names the commit, or reads other sources, is not the same at another one.
        let by_commit =
            || Ok::<_, RenderError>(prepare(&sources, &request.params(String::new()))? != prepared);
        let anew = request.refers()
            || !commits.fetched.is_empty()
            || (!matches!(prepared.tool, Tool::Directory(_)) && by_commit()?);
        let seen = || {
            [(folder.clone(), own)]
                .into_iter()
                .chain(files.own.noted())
                .collect()
        };
        let by_cluster = !matches!(prepared.tool, Tool::Directory(_));
        let basis = (!anew).then(|| {
            Arc::new(Basis {
                request: request.anywhere(),
                by_cluster,
                seen: seen(),
            })
        });
        let mut manifests = answer(revision, &found, hex(&whole), basis);
        manifests.reads_others = commits.reads_others();
        if let Some(warning) = replaced {
            let all = manifests.warnings.iter().cloned().chain([warning]);
            manifests.warnings = Arc::new(all.collect());
        }
        Ok(manifests)
    }

    /// In a worker, if there are any. What plugins answered is read here: they ran elsewhere.
    fn rendered(
        &self,
        sources: &SourceSet<'_>,
        prepared: &Prepared,
        of: &Of<'_>,
    ) -> Result<Rendered, RenderError> {
        match &self.workers {
            Some(workers) if prepared.tool.kind() != SourceKind::Plugin => {
                of.isolated(workers).render(prepared)
            }
            _ => render(sources, prepared, &of.ready_charts(self), of.budget),
        }
    }

    /// The details and settable parameters of a source. Blocks.
    pub fn details(
        &self,
        commits: &Commits,
        request: &ManifestRequest,
        budget: &Budget,
        limit: Duration,
    ) -> Result<Details, RepoError> {
        let (_, id) = &commits.own;
        let folder = app_folder(&request.source.path)?;
        let files = files(commits, &folder);
        let of = Of {
            commits,
            request,
            files: &files,
            folder: &folder,
            budget,
            limit,
        };
        let answers = commits.fetched.answers();
        let sources = sources(&files, commits, &answers, request);
        let params = request.params(request.revision(*id));
        if let Some(workers) = &self.workers {
            let kind = source_kind(&sources, &params)?;
            if kind != SourceKind::Plugin {
                return Ok(of.isolated(workers).details(params, kind)?);
            }
        }
        Ok(details(&sources, &params, &of.ready_charts(self), budget)?)
    }
}

/// What a render is of.
struct Of<'a> {
    commits: &'a Commits,
    request: &'a ManifestRequest,
    files: &'a Files,
    /// The Application's.
    folder: &'a str,
    budget: &'a Budget,
    limit: Duration,
}

impl<'a> Of<'a> {
    fn ready_charts(&self, renderer: &'a Renderer) -> ReadyCharts<'a> {
        ReadyCharts {
            renderer,
            files: self.files,
            fresh: self.request.no_cache,
            limit: self.limit,
            begun: self.commits.begun(),
        }
    }

    fn isolated(&self, (workers, charts): &'a (Workers, KnownCharts)) -> Isolated<'a> {
        Isolated {
            workers,
            charts,
            files: self.files,
            folder: self.folder,
            commits: self.commits,
            request: self.request,
            budget: self.budget,
            limit: self.limit,
        }
    }
}

fn files(commits: &Commits, folder: &str) -> Files {
    let whole = |(store, id): &Commit| GitFiles::new(store, id.tree, None);
    let (store, id) = &commits.own;
    Files {
        own: GitFiles::new(store, id.tree, Some(folder)),
        refs: commits
            .refs
            .iter()
            .map(|(name, commit)| (name.clone(), whole(commit)))
            .collect(),
        fetched: commits
            .fetched
            .commits()
            .map(|(needed, commit)| (needed.clone(), whole(commit)))
            .collect(),
    }
}

fn dynamic<K: Ord + Clone>(files: &BTreeMap<K, GitFiles>) -> BTreeMap<K, &dyn SourceFiles> {
    files
        .iter()
        .map(|(name, files)| (name.clone(), files as &dyn SourceFiles))
        .collect()
}

type Answers = BTreeMap<PluginQuestion, Arc<PluginAnswer>>;

fn sources<'a>(
    files: &'a Files,
    commits: &Commits,
    answers: &'a Answers,
    request: &ManifestRequest,
) -> SourceSet<'a> {
    SourceSet {
        files: &files.own,
        refs: dynamic(&files.refs),
        fetched: dynamic(&files.fetched),
        plugins: Plugins {
            is_open: commits.plugins.is_open,
            is_any: commits.plugins.is_any,
            answers: Some(answers),
        },
        several: request.several,
    }
}

fn answer(
    revision: String,
    found: &Remembered,
    digest: String,
    basis: Option<Arc<Basis>>,
) -> Manifests {
    Manifests {
        revision,
        objects: Arc::clone(&found.objects),
        errors: Arc::clone(&found.errors),
        warnings: Arc::clone(&found.warnings),
        source_type: found.kind.to_owned(),
        digest,
        told: RemoteVerdict::default(),
        reads_others: false,
        basis,
    }
}

fn remember(rendered: Rendered) -> Remembered {
    let of_error = |error: &ManifestError| 100 + error.file.len() + error.message.len();
    let objects = rendered.objects.iter().map(|o| 200 + weight(&o.0));
    let errors = rendered.errors.iter().map(of_error);
    let warnings = rendered.warnings.iter().map(|text| 50 + text.len());
    let weight = 1000 + objects.chain(errors).chain(warnings).sum::<usize>();
    Remembered {
        objects: rendered
            .objects
            .into_iter()
            .map(|o| Arc::new(o.into()))
            .collect(),
        errors: Arc::new(rendered.errors),
        warnings: Arc::new(rendered.warnings),
        kind: rendered.kind.as_str(),
        weight: u32::try_from(weight).unwrap_or(u32::MAX),
    }
}

/// Everything that the result depends on except files outside of the folder.
/// `lfs`: with whose access the files were downloaded that Git LFS pointers stand for; `project`:
/// whose result it is, if not everybody's.
fn key(
    (folder, lfs): (Found, Vec<Option<[u8; 32]>>),
    prepared: &Prepared,
    answers: &Answers,
    budget: &Budget,
    project: Option<&str>,
) -> Key {
    let mut options = Digester(Sha256::new());
    prepared.hash(&mut options);
    for answer in answers.values() {
        // Which plugin it is from is among the options.
        if let PluginAnswer::Generated { digest, .. } = &**answer {
            options.0.update(digest);
        }
    }
    let options: Key = options.0.finalize().into();
    digest(&[
        RENDERER.as_bytes(),
        format!("{folder:?} {budget:?} {lfs:?} {project:?}").as_bytes(),
        &options,
    ])
}

/// A stable digest: unlike the hasher of a hash table it is the same in every process.
struct Digester(Sha256);

impl Hasher for Digester {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        0
    }
}

fn digest(parts: &[&[u8]]) -> Key {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part.len().to_le_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiphys_render::Failed;

    #[test]
    fn errors_and_warnings_have_a_weight() {
        let error = ManifestError {
            failed: Failed::Unmarshal,
            file: "a".repeat(300),
            line: 1,
            message: "b".repeat(700),
        };
        let nothing = remember(Rendered::default()).weight;
        let errors = remember(Rendered {
            errors: vec![error; 100],
            ..Rendered::default()
        });
        assert!(errors.weight > nothing + 100 * 1000);
        let warnings = remember(Rendered {
            warnings: vec!["c".repeat(1000); 100],
            ..Rendered::default()
        });
        assert!(warnings.weight > nothing + 100 * 1000);
    }

    #[test]
    fn results_are_those_of_a_project() {
        let prepared = Prepared {
            folder: String::new(),
            tool: Tool::Directory(tiphys_render::DirectoryOptions::default()),
        };
        let key = |project| {
            let (answers, budget) = (Answers::new(), Budget::default());
            let own = (Found::Missing, Vec::new());
            key(own, &prepared, &answers, &budget, project)
        };
        assert_eq!(key(Some("a")), key(Some("a")));
        assert_ne!(key(Some("a")), key(Some("b")));
        assert_ne!(key(Some("")), key(None));
    }
}
