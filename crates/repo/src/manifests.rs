//! Rendering a source at a commit, remembered by the content that was read.
//!
//! Main type: [`Renderer`].

use crate::{
    RepoAccess, RepoError,
    git::{CommitId, Found, GitFiles, Store},
    traced::{Files, Key, Traced},
};
use rand::RngCore as _;
use sha2::{Digest, Sha256};
use std::{
    collections::BTreeMap,
    hash::{Hash, Hasher},
    sync::Arc,
    time::{Duration, Instant},
};
use tiphys_api::source::ApplicationSource;
use tiphys_apimachinery::Kept;
use tiphys_gocompat::sprig;
use tiphys_render::{
    AppFacts, Budget, Charts, ClusterFacts, Details, ManifestError, Prepared, RenderError,
    RenderParams, Rendered, SourceFiles, SourceSet, Tool, app_folder, details,
    helm::{Deadline, HelmError, Limits, ParsedChart, chart::Chart},
    prepare, render,
};

/// Part of every digest: a change of what rendering does must not find old results.
const RENDERER: &str = "3";
/// Bytes of parsed charts to remember (estimated).
const CHART_BYTES: u64 = 128 << 20;

/// What to render: a source at a resolved revision.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ManifestRequest {
    pub access: RepoAccess,
    pub source: ApplicationSource,
    /// From [`crate::Repos::resolve`].
    pub sha: String,
    /// The Application's instance name.
    pub app_name: String,
    pub namespace: String,
    pub project: String,
    pub cluster_facts: ClusterFacts,
    /// The Application's sources that have a `ref`, by that name.
    pub refs: BTreeMap<String, RefSource>,
    /// It is one of `spec.sources`.
    pub several: bool,
    /// Render again even when the result is remembered.
    pub no_cache: bool,
}

/// A source that others refer to, at a resolved revision.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RefSource {
    pub access: RepoAccess,
    pub sha: String,
}

impl ManifestRequest {
    /// Whether the source names files of other sources.
    pub fn refers(&self) -> bool {
        let Some(helm) = &self.source.helm else {
            return false;
        };
        let mut paths = helm
            .value_files
            .iter()
            .chain(helm.file_parameters.iter().map(|p| &p.path));
        paths.any(|path| path.starts_with('$'))
    }

    /// Whether the same folder gives the same for both, whatever the commit; `by_cluster`: what the
    /// cluster is matters.
    fn asks_the_same(&self, other: &Self, by_cluster: bool) -> bool {
        !other.no_cache
            && self.several == other.several
            && (&self.access, &self.source) == (&other.access, &other.source)
            && self.cluster_facts.switched_off == other.cluster_facts.switched_off
            && (!by_cluster || self.cluster_facts == other.cluster_facts)
            && (&self.app_name, &self.namespace, &self.project)
                == (&other.app_name, &other.namespace, &other.project)
    }

    /// Without commits.
    fn anywhere(&self) -> Self {
        Self {
            sha: String::new(),
            refs: BTreeMap::new(),
            ..self.clone()
        }
    }

    fn params(&self, revision: String) -> RenderParams {
        let app = AppFacts {
            name: self.app_name.clone(),
            namespace: self.namespace.clone(),
            project: self.project.clone(),
            revision,
        };
        RenderParams {
            source: self.source.clone(),
            folder: None,
            app,
            cluster_facts: self.cluster_facts.clone(),
        }
    }
}

/// Rendered objects, as files hold them: no tracking, no namespace set. `errors` lists files that
/// could not be used: while it is not empty the objects are incomplete and nothing may be pruned
/// because of them.
#[derive(Clone, Debug)]
pub struct Manifests {
    /// The full SHA of the commit that was rendered.
    pub revision: String,
    pub objects: Arc<[Arc<Kept>]>,
    pub errors: Arc<Vec<ManifestError>>,
    pub warnings: Arc<Vec<String>>,
    /// `Directory`, `Helm`, `Kustomize` or `Plugin`.
    pub source_type: String,
    /// The same for the same content: two results with equal digests have equal objects.
    pub digest: String,
    pub(crate) basis: Option<Arc<Basis>>,
}

/// What manifests were made of; all of it the same again gives the same manifests.
#[derive(Debug)]
pub(crate) struct Basis {
    /// Without the commit.
    request: ManifestRequest,
    /// A plain folder is the same whatever the cluster serves, so that a definition that comes or
    /// goes anywhere makes nobody read it again.
    by_cluster: bool,
    /// The Application's folder, and what was looked for elsewhere.
    seen: Vec<(String, Found)>,
}

impl Manifests {
    /// The same at another commit, if what was read is there, and in memory.
    pub(crate) fn at(&self, (store, id): &Commit, request: &ManifestRequest) -> Option<Self> {
        let basis = self
            .basis
            .as_ref()
            .filter(|basis| basis.request.asks_the_same(request, basis.by_cluster))?;
        GitFiles::are(store, id.tree, &basis.seen).then(|| Self {
            revision: id.commit.to_string(),
            ..self.clone()
        })
    }
}

/// A commit in its repository.
pub(crate) type Commit = (Store, CommitId);

/// Renders, and remembers what came of it.
pub(crate) struct Renderer {
    manifests: Traced<Remembered>,
    charts: Traced<ParsedChart>,
}

struct Remembered {
    objects: Arc<[Arc<Kept>]>,
    errors: Arc<Vec<ManifestError>>,
    warnings: Arc<Vec<String>>,
    kind: &'static str,
    weight: u32,
}

impl Renderer {
    /// `bytes`: how much of rendered manifests is remembered.
    pub fn new(bytes: u64) -> Self {
        Self {
            manifests: Traced::new(bytes, |m| m.weight),
            charts: Traced::new(CHART_BYTES, |c| chart_weight(c.chart())),
        }
    }

    /// Blocks. `refs` are the commits of the sources that the request refers to.
    pub fn manifests(
        &self,
        commit: &Commit,
        refs: &BTreeMap<String, Commit>,
        request: &ManifestRequest,
        (budget, limit): (&Budget, Duration),
    ) -> Result<Manifests, RepoError> {
        let (store, id) = commit;
        if request.several && request.source.path.is_empty() {
            // It has files for others.
            return Ok(answer(
                *id,
                &remember(Rendered::default()),
                String::new(),
                None,
            ));
        }
        check_source(&request.source)?;
        let folder = app_folder(&request.source.path)?;
        let files = files(commit, refs, &folder);
        let sources = sources(&files, request);
        let prepared = prepare(&sources, &request.params(id.commit.to_string()))?;
        let charts = ReadyCharts {
            renderer: self,
            store,
            root: id.tree,
            own: &files.own,
            fresh: request.no_cache,
            limit,
        };
        let own = files.own.look(&folder);
        let key = key(own, &prepared, budget);
        let (key, found) = self.manifests.get(key, &files, request.no_cache, || {
            Ok::<_, RenderError>(Arc::new(remember(render(
                &sources, &prepared, &charts, budget,
            )?)))
        })?;
        // What names the commit, or reads other sources, is not the same at another one.
        let by_commit =
            || Ok::<_, RenderError>(prepare(&sources, &request.params(String::new()))? != prepared);
        let anew =
            request.refers() || (!matches!(prepared.tool, Tool::Directory(_)) && by_commit()?);
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
        Ok(answer(*id, &found, hex(&key), basis))
    }

    /// What there is to set in a source. Blocks.
    pub fn details(
        &self,
        commit: &Commit,
        refs: &BTreeMap<String, Commit>,
        request: &ManifestRequest,
        (budget, limit): (&Budget, Duration),
    ) -> Result<Details, RepoError> {
        check_source(&request.source)?;
        let (store, id) = commit;
        let folder = app_folder(&request.source.path)?;
        let files = files(commit, refs, &folder);
        let charts = ReadyCharts {
            renderer: self,
            store,
            root: id.tree,
            own: &files.own,
            fresh: request.no_cache,
            limit,
        };
        Ok(details(
            &sources(&files, request),
            &request.params(id.commit.to_string()),
            &charts,
            budget,
        )?)
    }
}

/// Refuses sources of kinds that are not supported.
pub fn check_source(source: &ApplicationSource) -> Result<(), RepoError> {
    if source.repo_url.starts_with("oci://") {
        return Err(RepoError::Unsupported(format!(
            "{}: OCI sources are not supported yet",
            source.repo_url
        )));
    }
    if !source.chart.is_empty() {
        return Err(RepoError::Unsupported(format!(
            "chart {}: Helm repositories are not supported yet",
            source.chart
        )));
    }
    Ok(())
}

fn files((store, id): &Commit, refs: &BTreeMap<String, Commit>, folder: &str) -> Files {
    let whole = |(name, (store, id)): (&String, &Commit)| {
        (name.clone(), GitFiles::new(store, id.tree, None))
    };
    Files {
        own: GitFiles::new(store, id.tree, Some(folder)),
        refs: refs.iter().map(whole).collect(),
    }
}

fn sources<'a>(files: &'a Files, request: &ManifestRequest) -> SourceSet<'a> {
    let refs = files
        .refs
        .iter()
        .map(|(name, files)| (name.clone(), files as &dyn SourceFiles))
        .collect();
    SourceSet {
        files: &files.own,
        refs,
        fetched: BTreeMap::new(),
        several: request.several,
    }
}

/// Charts that other renders have parsed already.
struct ReadyCharts<'a> {
    renderer: &'a Renderer,
    store: &'a Store,
    root: gix::ObjectId,
    own: &'a GitFiles,
    fresh: bool,
    limit: Duration,
}

impl Charts for ReadyCharts<'_> {
    fn chart(
        &self,
        _: &dyn SourceFiles,
        folder: &str,
        limits: &Limits,
    ) -> Result<Arc<ParsedChart>, HelmError> {
        // What the chart is made of is noted apart from what else the render reads.
        let files = Files {
            own: GitFiles::new(self.store, self.root, Some(folder)),
            refs: BTreeMap::new(),
        };
        let key = digest(&[
            b"chart",
            RENDERER.as_bytes(),
            format!("{:?} {limits:?}", files.own.look(folder)).as_bytes(),
        ]);
        let load = || {
            Ok::<_, HelmError>(Arc::new(ParsedChart::new(
                Chart::from_folder(&files.own, folder, limits)?.chart,
            )))
        };
        let (_, chart) = self.renderer.charts.get(key, &files, self.fresh, load)?;
        self.own.note(files.own.noted());
        Ok(chart)
    }

    fn sources(&self) -> Arc<dyn Fn() -> sprig::Sources + Send + Sync> {
        Arc::new(|| sprig::Sources {
            random: Box::new(|bytes| rand::rng().fill_bytes(bytes)),
            now: jiff::Timestamp::now(),
            zone: || jiff::tz::TimeZone::UTC,
        })
    }

    fn deadline(&self) -> Option<Deadline> {
        let (begun, limit) = (Instant::now(), self.limit);
        Some(Deadline {
            limit,
            hint: " (raise the limit with --render-timeout-seconds)",
            passed: Arc::new(move || begun.elapsed() > limit),
        })
    }
}

fn chart_weight(chart: &Chart) -> u32 {
    fn bytes(chart: &Chart) -> usize {
        let own: usize = chart
            .templates
            .iter()
            .chain(&chart.files)
            .map(|f| 100 + f.data.len())
            .sum();
        // Parsed templates take several times what their text does; the values of the last render
        // are kept, too.
        1000 + 4 * own
            + 2 * weight(&chart.values)
            + chart.dependencies.iter().map(bytes).sum::<usize>()
    }
    u32::try_from(bytes(chart)).unwrap_or(u32::MAX)
}

fn answer(
    id: CommitId,
    found: &Remembered,
    digest: String,
    basis: Option<Arc<Basis>>,
) -> Manifests {
    Manifests {
        revision: id.commit.to_string(),
        objects: Arc::clone(&found.objects),
        errors: Arc::clone(&found.errors),
        warnings: Arc::clone(&found.warnings),
        source_type: found.kind.to_owned(),
        digest,
        basis,
    }
}

fn remember(rendered: Rendered) -> Remembered {
    let weight: usize = rendered
        .objects
        .iter()
        .map(|o| 200 + weight(&o.0))
        .sum::<usize>()
        + 1000;
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

/// Roughly what a map takes in memory.
pub(crate) fn weight(map: &serde_json::Map<String, serde_json::Value>) -> usize {
    fn value(v: &serde_json::Value) -> usize {
        match v {
            serde_json::Value::String(s) => 32 + s.len(),
            serde_json::Value::Array(items) => 32 + items.iter().map(value).sum::<usize>(),
            serde_json::Value::Object(map) => weight(map),
            _ => 32,
        }
    }
    map.iter().map(|(k, v)| 64 + k.len() + value(v)).sum()
}

/// Everything the result depends on but files outside of the folder.
fn key(folder: Found, prepared: &Prepared, budget: &Budget) -> Key {
    let mut options = Digester(Sha256::new());
    prepared.hash(&mut options);
    let options: Key = options.0.finalize().into();
    digest(&[
        RENDERER.as_bytes(),
        format!("{folder:?} {budget:?}").as_bytes(),
        &options,
    ])
}

/// A digest of what is hashed: unlike the keys of a hash table it is the same in every program.
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

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}
