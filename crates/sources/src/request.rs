//! Requests for sources.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};
use tiphys_api::{
    Application, constants, operation::RefTarget, repository::Repository, source::ApplicationSource,
};
use tiphys_engine::spec;

/// The fields common to all requests for the sources of one Application.
#[derive(Clone, Debug, Default)]
pub struct AppRequest {
    /// The Application's name in labels and annotations, with its namespace if that is not the
    /// control plane's.
    pub instance: String,
    /// The destination namespace.
    pub namespace: String,
    pub project: String,
    /// Such as `v1.36.3`.
    pub kube_version: String,
    /// `apps/v1` and `apps/v1/Deployment`, sorted.
    pub api_versions: Arc<[String]>,
    /// The sources that have a `ref`, by ref name.
    pub refs: BTreeMap<String, RefTarget>,
    /// Whether the sources are in `spec.sources`.
    pub several: bool,
    /// Render again even if the result is cached.
    pub no_cache: bool,
    /// Resolve branches again even if they are cached. Only for a repo-server.
    pub no_revision_cache: bool,
    /// The annotation that lists the paths that affect the Application.
    pub generate_paths: String,
}

impl AppRequest {
    /// What the Application itself says; the cluster and `refs` are still missing. `instance`: its
    /// instance name.
    pub fn of(app: &Application, instance: String) -> Self {
        let paths = app
            .metadata
            .annotations
            .get(constants::MANIFEST_GENERATE_PATHS);
        Self {
            instance,
            namespace: app.spec.destination.namespace.clone(),
            project: spec::project_name(app).to_owned(),
            several: spec::has_several(&app.spec),
            generate_paths: paths.cloned().unwrap_or_default(),
            ..Self::default()
        }
    }
}

/// One source.
#[derive(Clone, Debug)]
pub struct SourceRequest {
    pub app: Arc<AppRequest>,
    /// With its credentials.
    pub repository: Repository,
    pub source: ApplicationSource,
    /// For pinning, a branch, tag or range; for rendering, the pinned revision.
    pub revision: String,
}

/// The earlier state of a source.
#[derive(Clone, Debug, Default)]
pub struct Before {
    /// Empty if unknown.
    pub revision: String,
    /// The sources that have a `ref`, at their revisions at that time.
    pub refs: BTreeMap<String, RefTarget>,
}

impl SourceRequest {
    /// The `ref`s of the sources whose files this one reads.
    pub fn referred(&self) -> BTreeSet<&str> {
        let helm = self.source.helm.iter();
        let paths = helm.flat_map(|helm| {
            let files = helm.file_parameters.iter().map(|p| &p.path);
            helm.value_files.iter().chain(files)
        });
        paths
            .filter_map(|path| path.strip_prefix('$')?.split('/').next())
            .collect()
    }
}

/// Whether the source renders nothing itself; its changes count for the sources that read it.
pub fn is_only_referred_to(source: &ApplicationSource) -> bool {
    let is_oci = source.repo_url.starts_with("oci://");
    !source.ref_.is_empty() && source.path.is_empty() && source.chart.is_empty() && !is_oci
}
