//! repository.RepositoryService.

mod connections;
mod secrets;

pub use connections::Connections;
pub use secrets::{repository, stored};

use crate::{
    ApiError,
    auth::Caller,
    ports::{ClusterVersions, RenderRequest},
    server::State,
    services::application::validate::permitted,
};
use futures::StreamExt as _;
use jiff::Timestamp;
use std::{collections::BTreeMap, sync::Arc};
use tiphys_api::{
    Application,
    access::{restore_password, same_repository},
    cluster::ConnectionState,
    repository::{Repository, RepositoryList},
    rpc::repository::{
        Refs, RepoAccessQuery, RepoAppDetailsQuery, RepoAppDetailsResponse, RepoCreateRequest,
        RepoQuery, RepoResponse, RepoUpdateRequest,
    },
};
use tiphys_engine::spec;

const AT_ONCE: usize = 8;

/// Without what is secret.
pub fn sanitized(r: Repository) -> Repository {
    let type_ = match r.type_.as_str() {
        "" if r.repo.starts_with("oci://") => "oci".to_owned(),
        "" => "git".to_owned(),
        _ => r.type_,
    };
    Repository {
        type_,
        password: String::new(),
        bearer_token: String::new(),
        ssh_private_key: String::new(),
        tls_client_cert_data: String::new(),
        tls_client_cert_key: String::new(),
        github_app_private_key: String::new(),
        gcp_service_account_key: String::new(),
        azure_service_principal_client_secret: String::new(),
        insecure: r.insecure || r.insecure_ignore_host_key,
        insecure_ignore_host_key: false,
        ..r
    }
}

/// Whether the repository answers; an answer is good for a while, unless `fresh` is wanted.
async fn connection(state: &State, repository: &Repository, fresh: bool) -> ConnectionState {
    let key = (repository.project.clone(), repository.repo.clone());
    if !fresh && let Some(known) = state.connections.get(&key) {
        return known;
    }
    let found = connect(state, repository).await;
    state.connections.put(key, found.clone());
    found
}

async fn connect(state: &State, repository: &Repository) -> ConnectionState {
    let tested = match secrets::with_inherited(state, repository.clone()).await {
        Ok(repository) => state.sources.test(&repository).await,
        Err(e) => Err(e),
    };
    let (status, message) = match tested {
        Ok(()) => ("Successful", String::new()),
        Err(e) => ("Failed", format!("Unable to connect to repository: {e}")),
    };
    ConnectionState {
        status: status.into(),
        message,
        attempted_at: Some(Timestamp::now().into()),
    }
}

pub async fn list(state: Arc<State>, _: Caller, q: RepoQuery) -> Result<RepositoryList, ApiError> {
    let repositories = stored(&state).await?;
    let connected = futures::stream::iter(repositories).map(|repository| {
        let state = state.clone();
        async move {
            let connection_state = connection(&state, &repository, q.force_refresh).await;
            Repository {
                connection_state,
                ..sanitized(repository)
            }
        }
    });
    Ok(RepositoryList {
        items: connected.buffered(AT_ONCE).collect().await,
        ..Default::default()
    })
}

/// The stored one that a query means.
async fn find(
    state: &State,
    q: &RepoQuery,
) -> Result<(crate::ports::SecretRecord, Repository), ApiError> {
    let mut same: Vec<_> = secrets::records(state)
        .await?
        .into_iter()
        .filter(|(_, r)| same_repository(&r.repo, &q.repo))
        .collect();
    if same.is_empty() {
        return Err(ApiError::denied());
    }
    if same.len() == 1 && q.app_project.is_empty() {
        return Ok(same.remove(0));
    }
    let not_found = || {
        ApiError::plain(format!(
            "repository not found for url {:?} and project {:?}",
            q.repo, q.app_project
        ))
    };
    same.into_iter()
        .find(|(_, r)| r.project == q.app_project)
        .ok_or_else(not_found)
}

pub async fn get(state: Arc<State>, _: Caller, q: RepoQuery) -> Result<Repository, ApiError> {
    let (_, found) = find(&state, &q).await?;
    let connection_state = connection(&state, &found, q.force_refresh).await;
    Ok(Repository {
        connection_state,
        ..sanitized(found)
    })
}

fn checked(repository: Option<Repository>) -> Result<Repository, ApiError> {
    let repository = repository.ok_or_else(|| ApiError::invalid("missing payload in request"))?;
    if repository.repo.trim().is_empty() {
        return Err(ApiError::invalid(
            "repo: the URL of the repository is missing",
        ));
    }
    Ok(repository)
}

/// What creating and updating return.
fn brief(repository: &Repository) -> Repository {
    Repository {
        repo: repository.repo.clone(),
        type_: repository.type_.clone(),
        name: repository.name.clone(),
        ..Default::default()
    }
}

pub async fn create(
    state: Arc<State>,
    _: Caller,
    q: RepoCreateRequest,
) -> Result<Repository, ApiError> {
    let mut repository = checked(q.repo)?;
    repository.connection_state = ConnectionState::default();
    repository.inherited_creds = false;
    if repository.project.is_empty() {
        state
            .sources
            .test(&secrets::with_inherited(&state, repository.clone()).await?)
            .await?;
    }
    let name = secrets::secret_name(&repository.repo, &repository.project);
    let existing = secrets::records(&state)
        .await?
        .into_iter()
        .find(|(secret, r)| {
            secret.name == name
                || (same_repository(&r.repo, &repository.repo) && r.project == repository.project)
        });
    if let Some((_, existing)) = &existing {
        let typed = |r: &Repository| Repository {
            type_: sanitized(r.clone()).type_,
            ..r.clone()
        };
        if typed(existing) == typed(&repository) {
            return Ok(brief(existing));
        }
        if !q.upsert {
            return Err(ApiError::invalid(
                "existing repository spec is different, use upsert flag to force update",
            ));
        }
    }
    state.connections.forget();
    state
        .store
        .put_secret(&secrets::secret_of(
            &repository,
            existing.map(|(secret, _)| secret),
        ))
        .await?;
    Ok(brief(&repository))
}

pub async fn update(
    state: Arc<State>,
    _: Caller,
    q: RepoUpdateRequest,
) -> Result<Repository, ApiError> {
    let mut repository = checked(q.repo)?;
    let query = RepoQuery {
        repo: repository.repo.clone(),
        app_project: repository.project.clone(),
        ..Default::default()
    };
    let (secret, stored) = find(&state, &query).await?;
    restore_password(&mut repository.repo, [stored.repo.as_str()]);
    restore_password(&mut repository.proxy, [stored.proxy.as_str()]);
    state.connections.forget();
    state
        .store
        .put_secret(&secrets::secret_of(&repository, Some(secret)))
        .await?;
    Ok(brief(&repository))
}

pub async fn delete(state: Arc<State>, _: Caller, q: RepoQuery) -> Result<RepoResponse, ApiError> {
    let (secret, _) = find(&state, &q).await?;
    state.connections.forget();
    state.store.delete_secret(&secret.name).await?;
    Ok(RepoResponse {})
}

pub async fn validate_access(
    state: Arc<State>,
    _: Caller,
    q: RepoAccessQuery,
) -> Result<RepoResponse, ApiError> {
    let repository = Repository {
        repo: q.repo,
        type_: q.type_,
        name: q.name,
        username: q.username,
        password: q.password,
        bearer_token: q.bearer_token,
        ssh_private_key: q.ssh_private_key,
        insecure: q.insecure,
        tls_client_cert_data: q.tls_client_cert_data,
        tls_client_cert_key: q.tls_client_cert_key,
        enable_oci: q.enable_oci,
        proxy: q.proxy,
        project: q.project,
        ..Default::default()
    };
    state
        .sources
        .test(&secrets::with_inherited(&state, repository).await?)
        .await?;
    Ok(RepoResponse {})
}

pub async fn refs(state: Arc<State>, _: Caller, q: RepoQuery) -> Result<Refs, ApiError> {
    let repository = repository(&state, &q.repo, &q.app_project).await?;
    let (branches, tags) = state.sources.refs(&repository).await?;
    Ok(Refs { branches, tags })
}

/// Which kind of source it is, and what there is to set in it.
pub async fn app_details(
    state: Arc<State>,
    _: Caller,
    q: RepoAppDetailsQuery,
) -> Result<RepoAppDetailsResponse, ApiError> {
    let source = q
        .source
        .ok_or_else(|| ApiError::invalid("missing payload in request"))?;
    if !q.app_project.is_empty() {
        let project = state
            .store
            .effective_project(state.store.get_project(&q.app_project).await?);
        permitted(&project, &source.repo_url)?;
    }
    let main = repository(&state, &source.repo_url, &q.app_project).await?;
    let (revision, _) = state
        .sources
        .resolve(&main, &source, &source.target_revision)
        .await?;
    let mut refs = BTreeMap::new();
    // The sources that this one may refer to are those of the Application.
    if let Some(app) = app_of(&state, &q.app_name, &q.app_project).await {
        for other in app.spec.sources.iter().filter(|s| !s.ref_.is_empty()) {
            let repository = repository(&state, &other.repo_url, &q.app_project).await?;
            let (sha, _) = state
                .sources
                .resolve(&repository, other, &other.target_revision)
                .await?;
            refs.insert(other.ref_.clone(), (repository, sha));
        }
    }
    let several = !refs.is_empty();
    let request = RenderRequest {
        repository: main,
        source,
        revision,
        app_name: q.app_name.replace('/', "_"),
        namespace: String::new(),
        project: q.app_project,
        facts: ClusterVersions::default(),
        refs,
        several,
        no_cache: false,
    };
    state.sources.details(request).await
}

/// The Application that details are asked for, if there is one in that project.
async fn app_of(state: &State, name: &str, project: &str) -> Option<Application> {
    // It may be qualified: `namespace/name`.
    let (namespace, name) = name
        .split_once('/')
        .unwrap_or((&state.options.namespace, name));
    if !state.store.permits(namespace) {
        return None;
    }
    let found = state.store.get_app(namespace, name).await.ok()?;
    (spec::project_name(&found) == project).then_some(found)
}
