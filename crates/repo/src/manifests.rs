//! Rendering a source at a commit, remembered by the content that was read.

use crate::{
    RepoAccess, RepoError,
    git::{CommitId, GitFiles, Store},
};
use sha2::{Digest, Sha256};
use std::sync::Arc;
use tiphys_api::source::ApplicationSource;
use tiphys_apimachinery::Object;
use tiphys_render::{Budget, DirectoryOptions, ExplicitKind, ManifestError, RenderParams, Rendered, render};

/// Part of every digest: a change of what rendering does must not find old results.
const RENDERER: &str = "directory-1";

/// What to render: a source at a resolved revision.
#[derive(Clone, Debug, Default)]
pub struct ManifestRequest {
    pub access: RepoAccess,
    pub source: ApplicationSource,
    /// From [`crate::Repos::resolve`].
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
    /// The full SHA of the commit that was rendered.
    pub revision: String,
    pub objects: Arc<[Arc<Object>]>,
    pub errors: Arc<Vec<ManifestError>>,
    pub warnings: Arc<Vec<String>>,
    /// `Directory`, `Helm`, `Kustomize` or `Plugin`.
    pub source_type: String,
    /// The same for the same content: two results with equal digests have equal objects.
    pub digest: String,
}

/// Results of renders, the least used ones forgotten first.
pub(crate) struct ManifestCache {
    cache: moka::sync::Cache<[u8; 32], Arc<Remembered>>,
}

struct Remembered {
    objects: Arc<[Arc<Object>]>,
    errors: Arc<Vec<ManifestError>>,
    warnings: Arc<Vec<String>>,
    kind: &'static str,
    weight: u32,
}

impl ManifestCache {
    pub fn new(bytes: u64) -> Self {
        let cache = moka::sync::Cache::builder().weigher(|_, v: &Arc<Remembered>| v.weight).max_capacity(bytes).build();
        Self { cache }
    }

    /// Blocks. Concurrent requests for the same content share one render.
    pub fn get(&self, store: &Store, id: CommitId, request: &ManifestRequest, budget: &Budget) -> Result<Manifests, RepoError> {
        let source = &request.source;
        if !source.chart.is_empty() {
            return Err(RepoError::Unsupported("Helm repositories are not supported yet".to_owned()));
        }
        let params = params(source);
        let base = params.path.trim_matches('/').trim_start_matches("./");
        let base = if base == "." { "" } else { base };
        let files = GitFiles::new(store, id.tree, base);
        let Some(folder) = files.base_tree().ok().flatten() else {
            // Only to get the right error.
            return Ok(answer(id, &remember(render(&files, &params, budget)?), String::new()));
        };
        let key = key(folder.as_slice(), &params, budget);
        if !request.no_cache
            && let Some(found) = self.cache.get(&key)
        {
            return Ok(answer(id, &found, hex(&key)));
        }
        // A link out of the folder makes the result depend on the whole tree; such results are found under a second key.
        let wide = self::key(id.tree.as_slice(), &params, budget);
        if !request.no_cache
            && let Some(found) = self.cache.get(&wide)
        {
            return Ok(answer(id, &found, hex(&wide)));
        }
        let rendered = Arc::new(remember(render(&files, &params, budget)?));
        let key = if files.left_base() { wide } else { key };
        self.cache.insert(key, Arc::clone(&rendered));
        Ok(answer(id, &rendered, hex(&key)))
    }
}

fn answer(id: CommitId, found: &Remembered, digest: String) -> Manifests {
    Manifests {
        revision: id.commit.to_string(),
        objects: Arc::clone(&found.objects),
        errors: Arc::clone(&found.errors),
        warnings: Arc::clone(&found.warnings),
        source_type: found.kind.to_owned(),
        digest,
    }
}

fn remember(rendered: Rendered) -> Remembered {
    let weight: usize = rendered.objects.iter().map(|o| 200 + weight(&o.0)).sum::<usize>() + 1000;
    Remembered {
        objects: rendered.objects.into_iter().map(Arc::new).collect(),
        errors: Arc::new(rendered.errors),
        warnings: Arc::new(rendered.warnings),
        kind: rendered.kind.as_str(),
        weight: u32::try_from(weight).unwrap_or(u32::MAX),
    }
}

/// Roughly what a map takes in memory.
fn weight(map: &serde_json::Map<String, serde_json::Value>) -> usize {
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

fn params(source: &ApplicationSource) -> RenderParams {
    let directory = source.directory.as_ref().map(|d| DirectoryOptions {
        recurse: d.recurse,
        include: d.include.clone(),
        exclude: d.exclude.clone(),
        disable_extension_filter: d.disable_extension_filter,
    });
    let explicit = ExplicitKind {
        kustomize: source.kustomize.is_some(),
        helm: source.helm.is_some(),
        directory: source.directory.is_some(),
        plugin: source.plugin.is_some(),
    };
    RenderParams { path: source.path.clone(), directory: directory.unwrap_or_default(), explicit: Some(explicit) }
}

/// Everything the result depends on: the content of the folder and the parameters.
fn key(tree: &[u8], params: &RenderParams, budget: &Budget) -> [u8; 32] {
    let mut hash = Sha256::new();
    let described = format!("{params:?} {budget:?}");
    for part in [RENDERER.as_bytes(), tree, described.as_bytes()] {
        hash.update(part.len().to_le_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}
