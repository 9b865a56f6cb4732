//! What to render. Main type: [`ManifestRequest`].

use crate::{
    RepoAccess, chart::ChartName, git::CommitId, kustomize::KustomizeVersions, needs::Others, oci,
    streamed::STREAMED,
};
use std::collections::BTreeMap;
use tiphys_api::source::ApplicationSource;
use tiphys_render::{AppFacts, ClusterFacts, RenderParams};

/// What to render: a source at a resolved revision.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ManifestRequest {
    pub access: RepoAccess,
    pub source: ApplicationSource,
    /// From [`crate::Repos::resolve_source`]: a commit, a chart's version, or an artifact's digest.
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
    /// Render again even if the result is cached.
    pub no_cache: bool,
    /// How other repositories that it needs are reached.
    pub others: Others,
    /// Leave the folders of submodules empty.
    pub no_submodules: bool,
    /// What `spec.source.kustomize.version` may name.
    pub kustomize_versions: KustomizeVersions,
}

/// A source that others reference, at a resolved revision.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RefSource {
    pub access: RepoAccess,
    pub sha: String,
}

impl ManifestRequest {
    /// Whether the source references files of other sources.
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

    /// The revision of what is rendered: a chart's version, an artifact's digest, that of files that
    /// were sent, else a commit.
    pub(super) fn revision(&self, id: CommitId) -> String {
        if self.source.chart.is_empty() && !self.is_oci() && self.sha != STREAMED {
            id.commit.to_string()
        } else {
            self.sha.clone()
        }
    }

    /// Whether the source is an artifact of a registry.
    pub(crate) fn is_oci(&self) -> bool {
        oci::is_source(&self.source.repo_url)
    }

    /// The chart of a repository, if the source is one.
    pub(crate) fn chart(&self) -> Option<ChartName<'_>> {
        ChartName::of(&self.access, &self.source)
    }

    /// Whether both requests have the same result for the same folder, whatever the commit;
    /// `by_cluster`: the cluster's versions matter.
    pub(super) fn asks_the_same(&self, other: &Self, by_cluster: bool) -> bool {
        !other.no_cache
            && self.several == other.several
            && (&self.access, &self.source) == (&other.access, &other.source)
            && self.cluster_facts.switched_off == other.cluster_facts.switched_off
            && self.kustomize_versions == other.kustomize_versions
            && (!by_cluster || self.cluster_facts == other.cluster_facts)
            && (&self.app_name, &self.namespace, &self.project)
                == (&other.app_name, &other.namespace, &other.project)
    }

    /// The request without commits.
    pub(super) fn anywhere(&self) -> Self {
        Self {
            sha: String::new(),
            refs: BTreeMap::new(),
            ..self.clone()
        }
    }

    pub(super) fn params(&self, revision: String) -> RenderParams {
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
