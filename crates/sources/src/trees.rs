//! The files and folders of a commit, for what generates Applications from them.
//!
//! Main type: [`TreeRequest`]; main functions: [`Sources::tree_files`] and
//! [`Sources::tree_folders`].

use crate::{Sources, local, usable};
use std::collections::BTreeMap;
use tiphys_api::{
    project::SourceIntegrity,
    repository::Repository,
    rpc::repo_server::{GitDirectoriesRequest, GitFilesRequest},
};
use tiphys_engine::integrity;
use tiphys_repo::{FilePattern, ManifestRequest, RepoError, Since, SourceKind};

/// A commit of a repository.
#[derive(Clone, Debug)]
pub struct TreeRequest {
    pub repo_url: String,
    /// Empty means HEAD.
    pub revision: String,
    /// The project whose credentials are used and whose demands on signatures are met; empty if it
    /// is not known yet: then only credentials of no project.
    pub project: String,
    /// Looks the revision up again.
    pub is_fresh: bool,
}

impl Sources {
    /// The contents of the files that a pattern selects, by path.
    pub async fn tree_files(
        &self,
        request: &TreeRequest,
        pattern: FilePattern,
    ) -> Result<BTreeMap<String, Vec<u8>>, RepoError> {
        let Some(server) = &self.server else {
            let commit = self.commit(request).await?;
            return self.repos.files(&commit, pattern).await;
        };
        let (path, globbing) = match pattern {
            FilePattern::Git(path) => (path, false),
            FilePattern::Doublestar(path) => (path, true),
        };
        let request = GitFilesRequest {
            repo: Some(self.told_repository(request)?),
            submodule_enabled: (self.settings)().takes_submodules(),
            revision: request.revision.clone(),
            path,
            new_git_file_globbing_enabled: globbing,
            no_revision_cache: request.is_fresh,
            verify_commit: false,
            source_integrity: self.demanded(&request.project)?,
        };
        Ok(server.git_files(&request).await?.map)
    }

    /// The folders that contain files, and those above them, in the order of their paths. Hidden
    /// ones are left out.
    pub async fn tree_folders(&self, request: &TreeRequest) -> Result<Vec<String>, RepoError> {
        let Some(server) = &self.server else {
            let commit = self.commit(request).await?;
            return self.repos.folders(&commit, false).await;
        };
        let request = GitDirectoriesRequest {
            repo: Some(self.told_repository(request)?),
            submodule_enabled: (self.settings)().takes_submodules(),
            revision: request.revision.clone(),
            no_revision_cache: request.is_fresh,
            verify_commit: false,
            source_integrity: self.demanded(&request.project)?,
        };
        Ok(server.git_directories(&request).await?.paths)
    }

    /// The folders that Helm or Kustomize render, with the tool; `.` is the root. Read by this
    /// process, as everything that is only shown.
    pub async fn tree_tools(
        &self,
        request: &TreeRequest,
    ) -> Result<BTreeMap<String, SourceKind>, RepoError> {
        let commit = self.commit(request).await?;
        self.repos.tools(&commit).await
    }

    /// The repository as a repo-server is told of it.
    fn told_repository(&self, request: &TreeRequest) -> Result<Repository, RepoError> {
        let repository = self.repository(&request.repo_url, &request.project);
        // A repo-server that is not ours would ask it without its credentials.
        usable(&repository)?;
        Ok(repository)
    }

    fn demanded(&self, project: &str) -> Result<Option<SourceIntegrity>, RepoError> {
        if project.is_empty() {
            return Ok(None);
        }
        let known = (self.project)(project).ok_or_else(|| RepoError::NoProject {
            name: project.to_owned(),
        })?;
        Ok(integrity::effective(&known).map(std::borrow::Cow::into_owned))
    }

    /// The resolved commit, if it is signed as its project demands.
    async fn commit(&self, request: &TreeRequest) -> Result<ManifestRequest, RepoError> {
        let repository: Repository = self.repository(&request.repo_url, &request.project);
        let access = self.access(&repository, &request.project)?;
        let since = match request.is_fresh {
            true => Since::now(),
            false => Since::Recently,
        };
        let resolved = self
            .repos
            .resolve(&access, &request.revision, since)
            .await?;
        if !request.project.is_empty() {
            self.insist(&access, request, &resolved.sha).await?;
        }
        Ok(ManifestRequest {
            access,
            sha: resolved.sha,
            project: request.project.clone(),
            others: local::others(self, &request.project),
            no_submodules: !(self.settings)().takes_submodules(),
            ..ManifestRequest::default()
        })
    }
}
