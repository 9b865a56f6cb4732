//! What is asked about a source.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};
use tiphys_api::{operation::RefTarget, repository::Repository, source::ApplicationSource};

/// What all requests about the sources of one Application say.
#[derive(Clone, Debug, Default)]
pub struct AppRequest {
    /// The Application's name in labels and annotations: with its namespace when that is not the
    /// control plane's.
    pub instance: String,
    /// Where it is deployed to.
    pub namespace: String,
    pub project: String,
    /// Such as `v1.36.3`.
    pub kube_version: String,
    /// `apps/v1` and `apps/v1/Deployment`, sorted.
    pub api_versions: Arc<[String]>,
    /// The sources that have a `ref`, by that name.
    pub refs: BTreeMap<String, RefTarget>,
    /// They are of `spec.sources`.
    pub several: bool,
    /// Render again even when the result is remembered.
    pub no_cache: bool,
    /// Ask what a branch is now even when that is remembered. Of a repo-server.
    pub no_revision_cache: bool,
    /// The annotation that names the paths which concern the Application.
    pub generate_paths: String,
}

/// One source.
#[derive(Clone, Debug)]
pub struct SourceRequest {
    pub app: Arc<AppRequest>,
    /// With its credentials.
    pub repository: Repository,
    pub source: ApplicationSource,
    /// To pin: a branch, a tag, a range; to render: what it was pinned to.
    pub revision: String,
}

/// What a source was at an earlier time.
#[derive(Clone, Debug, Default)]
pub struct Before {
    /// Empty when it is not known.
    pub revision: String,
    /// The sources that have a `ref`, at their revisions of that time.
    pub refs: BTreeMap<String, RefTarget>,
}

impl SourceRequest {
    /// The `ref`s of the sources whose files it reads.
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

/// It makes nothing itself: its changes count with the sources that read it.
pub fn is_only_referred_to(source: &ApplicationSource) -> bool {
    !source.ref_.is_empty() && source.path.is_empty() && source.chart.is_empty()
}
