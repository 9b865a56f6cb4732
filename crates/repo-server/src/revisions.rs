//! What repositories say about themselves and their revisions.

use crate::{
    access::repository,
    errors::{of_repo, while_doing},
    integrity::Revision,
    manifests::{is_git, since, source},
    server::Server,
    trust::Servers,
};
use std::sync::Arc;
use tiphys_api::{
    Application,
    repository::{ChartDetails, OCIMetadata, Repository, RevisionMetadata},
    rpc::repo_server::{
        HelmChart, HelmChartsRequest, HelmChartsResponse, ListRefsRequest, PluginInfo, PluginList,
        Refs, RepoServerRevisionChartDetailsRequest, RepoServerRevisionMetadataRequest,
        ResolveRevisionRequest, ResolveRevisionResponse, TestRepositoryRequest,
        TestRepositoryResponse,
    },
    source::ApplicationSource,
};
use tiphys_repo::{RepoAccess, RepoError, Since};
use tiphys_rpc::ApiError;

impl Server {
    /// A repository that belongs to no Application of the request.
    pub(crate) async fn reach(
        &self,
        repo: Option<Repository>,
    ) -> Result<(Repository, RepoAccess, Arc<Servers>), ApiError> {
        let repo = repository(repo)?;
        let servers = self.trust.servers().await?;
        let access = servers.access(&repo, &repo.project);
        Ok((repo, access, servers))
    }

    pub(crate) async fn resolve(
        self: Arc<Self>,
        request: ResolveRevisionRequest,
    ) -> Result<ResolveRevisionResponse, ApiError> {
        let (repo, access, _) = self.reach(request.repo).await?;
        let app = request.app.unwrap_or_default();
        let source = source(of_application(&app, request.source_index), &repo)?;
        // The versions of charts and artifacts are asked for each time.
        let since = since(request.no_revision_cache || !is_git(&source));
        let named = request.ambiguous_revision;
        let resolved = self
            .repos
            .resolve_source(&access, &source, &named, since)
            .await
            .map_err(of_repo)?;
        Ok(ResolveRevisionResponse {
            ambiguous_revision: format!("{named} ({})", resolved.sha),
            revision: resolved.sha,
        })
    }

    pub(crate) async fn test(
        self: Arc<Self>,
        request: TestRepositoryRequest,
    ) -> Result<TestRepositoryResponse, ApiError> {
        let (repo, access, _) = self.reach(request.repo).await?;
        let doing = "error testing repository connectivity: ";
        let has_scheme = repo.repo.contains("://");
        let tested = match repo.type_.as_str() {
            "" | "git" => self.repos.test(&access).await.map_err(|e| {
                let doing = format!("{doing}unable to ls-remote HEAD on repository: ");
                while_doing(&doing)(e)
            }),
            "oci" => self
                .repos
                .test_registry(&access)
                .await
                .map_err(while_doing(doing)),
            "helm" if repo.enable_oci && has_scheme => {
                let text = "OCI Helm repository URL should include hostname and port only";
                Err(ApiError::plain(format!("{doing}{text}")))
            }
            "helm" if repo.enable_oci => self
                .repos
                .test_registry(&access)
                .await
                .map_err(while_doing(doing)),
            "helm" => self
                .repos
                .test_charts(&access)
                .await
                .map_err(while_doing(doing)),
            other => Err(ApiError::plain(format!(
                "unsupported repository type {other:?}"
            ))),
        };
        tested.map(|()| TestRepositoryResponse {
            verified_repository: false,
        })
    }

    pub(crate) async fn metadata(
        self: Arc<Self>,
        request: RepoServerRevisionMetadataRequest,
    ) -> Result<RevisionMetadata, ApiError> {
        let sha = request.revision.as_str();
        if !is_sha(sha) {
            return Err(ApiError::plain(format!("revision {sha} must be resolved")));
        }
        let (repo, access, _) = self.reach(request.repo).await?;
        let demanded = (request.source_integrity.as_ref(), request.check_signature);
        if demanded == (None, false)
            && let Some(metadata) = self.shared_metadata(&repo.repo, sha).await
        {
            // Another repo-server may have read it with other credentials.
            let in_git = ApplicationSource::default();
            let accepted = self.repos.accepts(&access, &in_git, sha).await;
            if accepted.map_err(of_repo)? {
                return Ok(metadata);
            }
        }
        let metadata = self.repos.metadata(&access, sha).await.map_err(of_repo)?;
        let revision = Revision {
            sha,
            named: sha,
            tag_prefix: "",
        };
        Ok(match self.check(&access, demanded, revision).await? {
            None => {
                self.share_metadata(&repo.repo, sha, &metadata).await;
                metadata
            }
            Some(answer) => RevisionMetadata {
                signature_info: answer.description,
                source_integrity_result: Some(answer.result),
                ..metadata
            },
        })
    }

    pub(crate) async fn list_refs(
        self: Arc<Self>,
        request: ListRefsRequest,
    ) -> Result<Refs, ApiError> {
        let (_, access, _) = self.reach(request.repo).await?;
        let refs = self.repos.refs(&access, Since::Recently).await;
        let refs = refs.map_err(of_repo)?;
        Ok(Refs {
            branches: refs.branches,
            tags: refs.tags,
        })
    }

    pub(crate) async fn list_oci_tags(
        self: Arc<Self>,
        request: ListRefsRequest,
    ) -> Result<Refs, ApiError> {
        let (_, access, _) = self.reach(request.repo).await?;
        let tags = self.repos.oci_tags(&access).await.map_err(of_repo)?;
        Ok(Refs {
            branches: Vec::new(),
            tags,
        })
    }

    pub(crate) async fn list_plugins(self: Arc<Self>) -> Result<PluginList, ApiError> {
        let server = Arc::clone(&self);
        let names = tokio::task::spawn_blocking(move || server.repos.plugins()).await;
        let names = names.unwrap_or_else(|e| Err(RepoError::Internal(e.to_string())));
        let info = |name| PluginInfo { name };
        Ok(PluginList {
            items: names.map_err(of_repo)?.into_iter().map(info).collect(),
        })
    }

    pub(crate) async fn charts(
        self: Arc<Self>,
        request: HelmChartsRequest,
    ) -> Result<HelmChartsResponse, ApiError> {
        let (_, access, _) = self.reach(request.repo).await?;
        let charts = self.repos.charts(&access).await.map_err(of_repo)?;
        let chart = |(name, versions)| HelmChart { name, versions };
        Ok(HelmChartsResponse {
            items: charts.into_iter().map(chart).collect(),
        })
    }

    pub(crate) async fn chart_details(
        self: Arc<Self>,
        request: RepoServerRevisionChartDetailsRequest,
    ) -> Result<ChartDetails, ApiError> {
        let (repo, access, _) = self.reach(request.repo).await?;
        let chart = ApplicationSource {
            repo_url: repo.repo.clone(),
            chart: request.name,
            ..ApplicationSource::default()
        };
        let version = self
            .repos
            .resolve_source(&access, &chart, &request.revision, Since::now())
            .await
            .map_err(while_doing("helm client error: "))?;
        let details = self.repos.chart_details(&access, &chart, &version.sha);
        details
            .await
            .map_err(while_doing("error extracting chart: "))
    }

    pub(crate) async fn oci_metadata(
        self: Arc<Self>,
        request: RepoServerRevisionChartDetailsRequest,
    ) -> Result<OCIMetadata, ApiError> {
        let (_, access, _) = self.reach(request.repo).await?;
        let revision = &request.revision;
        let doing = format!("failed to extract digest metadata for revision {revision:?}: ");
        let metadata = self.repos.oci_metadata(&access, revision).await;
        metadata.map_err(while_doing(&doing))
    }
}

/// The source with this index, or the first one.
fn of_application(app: &Application, index: i64) -> Option<ApplicationSource> {
    let spec = &app.spec;
    if spec.source_hydrator.is_some() {
        // Both of its sources are in Git, and are found by the repository of the request.
        return Some(ApplicationSource::default());
    }
    let at = usize::try_from(index).unwrap_or_default();
    if spec.sources.is_empty() {
        return spec.source.clone();
    }
    spec.sources.get(at).cloned()
}

fn is_sha(text: &str) -> bool {
    matches!(text.len(), 7 | 40) && text.bytes().all(|b| b.is_ascii_hexdigit())
}
