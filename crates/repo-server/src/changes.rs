//! UpdateRevisionForPaths: whether a new revision matters to an Application that lists the paths
//! that do. Manifests are remembered by what was read for them, so nothing is moved when it does not.

use crate::{
    access::repository,
    manifests::{is_git, referred, since, source},
    server::Server,
    trust::Servers,
};
use std::sync::Arc;
use tiphys_api::{
    operation::RefTarget,
    repository::Repository,
    rpc::repo_server::{UpdateRevisionForPathsRequest, UpdateRevisionForPathsResponse},
    source::ApplicationSource,
};
use tiphys_engine::generate_paths;
use tiphys_repo::{RepoError, Since};
use tiphys_rpc::ApiError;

/// What is compared.
struct Pair<'a> {
    repo: Option<Repository>,
    project: &'a str,
    /// For ranges of revisions.
    tag_prefix: &'a str,
    from: &'a str,
    to: &'a str,
}

fn internal(doing: String) -> impl Fn(RepoError) -> ApiError {
    move |e| ApiError::internal(format!("{doing}: {e}"))
}

fn revision(target: &RefTarget) -> &str {
    target.target_revision.as_deref().unwrap_or_default()
}

impl Server {
    pub(crate) async fn update_revision(
        self: Arc<Self>,
        request: UpdateRevisionForPathsRequest,
    ) -> Result<UpdateRevisionForPathsResponse, ApiError> {
        let repo = repository(request.repo.clone())?;
        if request.paths.is_empty() {
            return Ok(UpdateRevisionForPathsResponse {
                changes: true,
                revision: String::new(),
            });
        }
        let source = source(request.application_source.clone(), &repo)?;
        let is_git = is_git(&source) && matches!(repo.type_.as_str(), "" | "git");
        if !is_git && request.ref_sources.is_empty() {
            return Ok(UpdateRevisionForPathsResponse::default());
        }
        let servers = self.trust.servers().await?;
        let since = since(request.no_revision_cache);
        let paths: Arc<[String]> = request.paths.clone().into();
        let mut response = UpdateRevisionForPathsResponse {
            changes: false,
            revision: request.revision.clone(),
        };
        if is_git && request.synced_revision != request.revision {
            let pair = Pair {
                project: &repo.project,
                repo: Some(repo.clone()),
                tag_prefix: &source.tag_prefix,
                from: &request.synced_revision,
                to: &request.revision,
            };
            let (resolved, changes) = self.compare(pair, &paths, (since, &servers)).await?;
            response.revision = resolved;
            response.changes = changes;
        }
        let names = if request.has_multiple_sources {
            referred(&source)
        } else {
            Vec::new()
        };
        for name in names {
            if response.changes {
                break;
            }
            let both = (
                request.synced_ref_sources.get(name),
                request.ref_sources.get(name),
            );
            let (Some(synced), Some(now)) = both else {
                return Err(ApiError::plain(format!(
                    "source referenced {name:?}, but no source has a 'ref' field defined"
                )));
            };
            if revision(synced) != revision(now) {
                let pair = Pair {
                    repo: now.repo.clone(),
                    project: &repo.project,
                    tag_prefix: "",
                    from: revision(synced),
                    to: revision(now),
                };
                let (_, changes) = self.compare(pair, &paths, (since, &servers)).await?;
                response.changes = changes;
            }
        }
        Ok(response)
    }

    /// The commit of the new revision, and whether a file that matters differs there.
    async fn compare(
        &self,
        pair: Pair<'_>,
        paths: &Arc<[String]>,
        (since, servers): (Since, &Servers),
    ) -> Result<(String, bool), ApiError> {
        let repo = repository(pair.repo)?;
        let access = servers.access(&repo, pair.project);
        let of_repository = ApplicationSource {
            repo_url: repo.repo.clone(),
            tag_prefix: pair.tag_prefix.to_owned(),
            ..ApplicationSource::default()
        };
        let resolve = async |named: &str| {
            let resolved = self
                .repos
                .resolve_source(&access, &of_repository, named, since);
            let doing = format!("unable to resolve git revision {named}");
            Ok::<_, ApiError>(resolved.await.map_err(internal(doing))?.sha)
        };
        let (to, from) = (resolve(pair.to).await?, resolve(pair.from).await?);
        if from == to {
            return Ok((to, false));
        }
        let paths = Arc::clone(paths);
        let is_meant = move |file: &str| generate_paths::touched(&paths, &[file.to_owned()]);
        let changed = self.repos.any_changed(&access, &from, &to, is_meant).await;
        let doing = format!(
            "unable to get changed files for repo {} with revision {to}",
            repo.repo
        );
        Ok((to, changed.map_err(internal(doing))?))
    }
}
