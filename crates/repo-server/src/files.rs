//! What ApplicationSets and the page ask of a repository: its files, its folders, and the folders
//! that a tool renders.

use crate::{
    access::{Known, others},
    errors::of_repo,
    integrity::Revision,
    manifests::since,
    server::Server,
};
use std::{collections::BTreeMap, sync::Arc};
use tiphys_api::{
    project::SourceIntegrity,
    repository::Repository,
    rpc::repo_server::{
        AppList, GitDirectoriesRequest, GitDirectoriesResponse, GitFilesRequest, GitFilesResponse,
        ListAppsRequest,
    },
};
use tiphys_repo::{ClusterFacts, FilePattern, ManifestRequest, RepoError, SourceKind};
use tiphys_rpc::ApiError;

/// What all these requests have.
struct Question {
    repo: Option<Repository>,
    revision: String,
    /// Look refs up again.
    is_fresh: bool,
    with_submodules: bool,
}

/// What is demanded of the commit, and whether it is in the way of Argo CD before 3.6.
struct Demand {
    integrity: Option<SourceIntegrity>,
    is_old: bool,
}

fn internal(doing: &str) -> impl Fn(RepoError) -> ApiError {
    move |e| ApiError::internal(format!("{doing}: {e}"))
}

impl Server {
    /// A commit, if it is signed as is demanded.
    async fn commit(
        &self,
        question: Question,
        demand: &Demand,
    ) -> Result<ManifestRequest, ApiError> {
        let (repo, access, servers) = self.reach(question.repo).await?;
        let named = &question.revision;
        let since = since(question.is_fresh);
        let resolved = self.repos.resolve(&access, named, since).await;
        let sha = resolved
            .map_err(internal(&format!("unable to resolve git revision {named}")))?
            .sha;
        let revision = Revision {
            sha: &sha,
            named,
            tag_prefix: "",
        };
        let demanded = (demand.integrity.as_ref(), demand.is_old);
        self.insist(&access, demanded, revision).await?;
        let known = Known {
            project: repo.project.clone(),
            ..Known::default()
        };
        Ok(ManifestRequest {
            access,
            sha,
            project: repo.project,
            others: others(known, servers),
            no_submodules: !question.with_submodules,
            ..ManifestRequest::default()
        })
    }

    pub(crate) async fn git_files(
        self: Arc<Self>,
        request: GitFilesRequest,
    ) -> Result<GitFilesResponse, ApiError> {
        let question = Question {
            repo: request.repo,
            revision: request.revision,
            is_fresh: request.no_revision_cache,
            with_submodules: request.submodule_enabled,
        };
        let demand = Demand {
            integrity: request.source_integrity,
            is_old: request.verify_commit,
        };
        let commit = self.commit(question, &demand).await?;
        let pattern = Some(request.path).filter(|path| !path.is_empty());
        let pattern = pattern.unwrap_or_else(|| ".".to_owned());
        let doing = format!(
            "unable to list files. repo {} with revision {} pattern {pattern}",
            commit.access.url, commit.sha
        );
        let pattern = if request.new_git_file_globbing_enabled {
            FilePattern::Doublestar(pattern)
        } else {
            FilePattern::Git(pattern)
        };
        let map = self.repos.files(&commit, pattern).await;
        Ok(GitFilesResponse {
            map: map.map_err(internal(&doing))?,
        })
    }

    pub(crate) async fn git_directories(
        self: Arc<Self>,
        request: GitDirectoriesRequest,
    ) -> Result<GitDirectoriesResponse, ApiError> {
        let question = Question {
            repo: request.repo,
            revision: request.revision,
            is_fresh: request.no_revision_cache,
            with_submodules: request.submodule_enabled,
        };
        let demand = Demand {
            integrity: request.source_integrity,
            is_old: request.verify_commit,
        };
        let commit = self.commit(question, &demand).await?;
        let doing = format!(
            "unable to checkout git repo {} with revision {}",
            commit.access.url, commit.sha
        );
        let folders = self.repos.folders(&commit, self.options.hidden_folders);
        Ok(GitDirectoriesResponse {
            paths: folders.await.map_err(internal(&doing))?,
        })
    }

    /// The folders that Helm or Kustomize render. Plugins are not asked about each folder.
    pub(crate) async fn list_apps(
        self: Arc<Self>,
        request: ListAppsRequest,
    ) -> Result<AppList, ApiError> {
        let question = Question {
            repo: request.repo,
            revision: request.revision,
            is_fresh: false,
            with_submodules: true,
        };
        let demand = Demand {
            integrity: None,
            is_old: false,
        };
        let commit = self.commit(question, &demand).await?;
        let is_on = |kind: &str| *request.enabled_source_types.get(kind).unwrap_or(&true);
        let commit = ManifestRequest {
            cluster_facts: ClusterFacts {
                switched_off: SourceKind::switched_off(is_on),
                ..ClusterFacts::default()
            },
            ..commit
        };
        let tools = self.repos.tools(&commit).await.map_err(of_repo)?;
        let app = |(folder, tool): (String, SourceKind)| (folder, tool.as_str().to_owned());
        let apps: BTreeMap<String, String> = tools.into_iter().map(app).collect();
        Ok(AppList { apps })
    }
}
