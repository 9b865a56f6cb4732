//! Requests to a repo-server for an Application's sources, with everything that Argo CD's
//! controller sends.
//!
//! Main type: [`Questions`], built once for all sources of a reconcile.

use super::{
    context::ReconcileContext, refresh::Refresh, sources::RequestedSources,
    touched::is_only_referred_to,
};
use std::{collections::BTreeMap, sync::Arc};
use tiphys_api::{
    AppProject, constants,
    operation::RefTarget,
    repository::Repository,
    rpc::repo_server::{ManifestRequest, UpdateRevisionForPathsRequest},
    source::ApplicationSource,
};
use tiphys_cluster::{clusters::LiveCluster, records::Settings};
use tiphys_engine::generate_paths;
use tiphys_repo::{Manifests, RepoServer};

type Refs = BTreeMap<String, RefTarget>;

/// What the requests for an Application's sources have in common.
pub struct Questions<'a> {
    ctx: &'a ReconcileContext<'a>,
    wanted: &'a RequestedSources,
    settings: Arc<Settings>,
    project: Arc<AppProject>,
    /// The common part of the requests.
    common: ManifestRequest,
    /// The previous revisions, for comparison if the annotation lists paths.
    before: &'a [String],
    /// The sources with a `ref`, at those revisions.
    refs_before: Refs,
}

impl<'a> Questions<'a> {
    /// `names`: the index of the source for each `ref`; `before` and `revisions`: each source's
    /// previous and current revision.
    pub fn new(
        ctx: &'a ReconcileContext<'a>,
        cluster: &LiveCluster,
        wanted: &'a RequestedSources,
        names: &BTreeMap<String, usize>,
        (before, revisions): (&'a [String], &[String]),
        refresh: &Refresh,
    ) -> Result<Self, String> {
        let (controller, app) = (ctx.controller, &ctx.app);
        let settings = controller.records.settings();
        let project = controller.project_of(app)?;
        let refs_at = |at: &dyn Fn(usize) -> String| -> Refs {
            let target = |(name, i): (&String, &usize)| {
                let source = &wanted.list[*i];
                let repo = settings.known_repository(&source.repo_url, &app.spec.project);
                let chart = Some(source.chart.clone()).filter(|c| !c.is_empty());
                (
                    format!("${name}"),
                    RefTarget {
                        repo: Some(repo),
                        target_revision: Some(at(*i)),
                        chart,
                    },
                )
            };
            names.iter().map(target).collect()
        };
        let common = ManifestRequest {
            no_cache: refresh.hard,
            no_revision_cache: refresh.resolves(),
            namespace: app.spec.destination.namespace.clone(),
            kube_version: cluster
                .cache
                .discovery()
                .cluster()
                .version()
                .git_version
                .clone(),
            api_versions: cluster.cache.kinds().api_versions().to_vec(),
            has_multiple_sources: wanted.several,
            ref_sources: refs_at(&|i| revisions[i].clone()),
            annotation_manifest_generate_paths: annotated_paths(ctx).to_owned(),
            ..settings.manifest_request(&project, &ctx.key.instance(&controller.records.namespace))
        };
        let of_before = |i: usize| before.get(i).cloned().unwrap_or_default();
        let refs_before = if wanted.several {
            refs_at(&of_before)
        } else {
            Refs::new()
        };
        Ok(Self {
            ctx,
            wanted,
            settings,
            project,
            common,
            before,
            refs_before,
        })
    }

    /// Requests the manifests of each source.
    pub async fn ask(
        &self,
        server: &RepoServer,
        revisions: &[String],
    ) -> Result<Vec<Arc<Manifests>>, String> {
        let mut manifests = Vec::with_capacity(revisions.len());
        for (i, revision) in revisions.iter().enumerate() {
            manifests.push(self.one(server, i, revision).await?);
        }
        Ok(manifests)
    }

    /// Whether one of the sources has changed in the paths of the annotation.
    pub async fn any_changed(
        &self,
        server: &RepoServer,
        revisions: &[String],
    ) -> Result<bool, String> {
        for (i, revision) in revisions.iter().enumerate() {
            let source = &self.wanted.list[i];
            let same = self.before.get(i) == Some(revision);
            if is_only_referred_to(source) || (same && self.common.ref_sources.is_empty()) {
                continue;
            }
            // A repo-server compares paths only for Git, and would treat another version of a chart
            // as no change.
            let is_git = source.chart.is_empty() && !source.repo_url.starts_with("oci://");
            let repo = self
                .settings
                .known_repository(&source.repo_url, &self.ctx.app.spec.project);
            let request = self
                .comparison(source, i, revision, &repo)
                .filter(|_| same || is_git);
            let Some(request) = request else {
                return Ok(true);
            };
            if server
                .update_revision(&request)
                .await
                .map_err(|e| e.to_string())?
                .changes
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    async fn one(
        &self,
        server: &RepoServer,
        i: usize,
        revision: &str,
    ) -> Result<Arc<Manifests>, String> {
        let (source, all) = (&self.wanted.list[i], self.wanted.list.len());
        let repo = self
            .settings
            .known_repository(&source.repo_url, &self.ctx.app.spec.project);
        let revision = match self.comparison(source, i, revision, &repo) {
            None => revision.to_owned(),
            Some(request) => {
                let failed = |e| {
                    format!(
                        "failed to evaluate revision changes for source {} of {all}: failed to update revision for paths: {e}",
                        i + 1
                    )
                };
                let answer = server.update_revision(&request).await.map_err(failed)?;
                Some(answer.revision)
                    .filter(|r| !r.is_empty())
                    .unwrap_or(request.revision)
            }
        };
        let common = self.common.clone();
        let request = self
            .settings
            .source_request(common, &self.project, source, repo, revision);
        let failed = |e| {
            format!(
                "failed to generate manifest for source {} of {all}: {e}",
                i + 1
            )
        };
        server.manifests(&request).await.map_err(failed)
    }

    /// The request whether a new commit affects the Application, if the annotation lists paths.
    fn comparison(
        &self,
        source: &ApplicationSource,
        i: usize,
        revision: &str,
        repo: &Repository,
    ) -> Option<UpdateRevisionForPathsRequest> {
        let before = self.before.get(i).filter(|r| !r.is_empty())?;
        let same = before == revision && self.common.ref_sources.is_empty();
        if is_only_referred_to(source)
            || same
            || repo.depth != 0
            || self.common.annotation_manifest_generate_paths.is_empty()
        {
            return None;
        }
        let common = self.common.clone();
        Some(UpdateRevisionForPathsRequest {
            repo: Some(repo.clone()),
            application_source: Some(source.clone()),
            synced_revision: before.clone(),
            revision: revision.to_owned(),
            paths: generate_paths::whole(&common.annotation_manifest_generate_paths, &source.path),
            synced_ref_sources: self.refs_before.clone(),
            app_label_key: common.app_label_key,
            app_name: common.app_name,
            namespace: common.namespace,
            tracking_method: common.tracking_method,
            ref_sources: common.ref_sources,
            kube_version: common.kube_version,
            api_versions: common.api_versions,
            has_multiple_sources: common.has_multiple_sources,
            no_revision_cache: common.no_revision_cache,
            installation_id: common.installation_id,
            source_integrity: common.source_integrity,
        })
    }
}

pub fn annotated_paths<'a>(ctx: &'a ReconcileContext<'_>) -> &'a str {
    ctx.app
        .metadata
        .annotations
        .get(constants::MANIFEST_GENERATE_PATHS)
        .map_or("", String::as_str)
}
