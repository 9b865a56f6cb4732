//! repository.RepositoryService, for repositories that are read and those that the hydrator writes
//! to: [`CredentialUse`] tells them apart.

use super::different;
use crate::{
    ApiError, Code,
    access::{
        Authorized, Create, CredentialUse, Delete, Get, Guard, Stored, Update, app_in_project,
        may_write,
    },
    ports::{RenderRequest, StoreError},
    services::{
        application::{render, validate::permitted},
        concealed,
    },
    state::State,
};
use futures::{StreamExt as _, TryStreamExt as _};
use jiff::Timestamp;
use std::{collections::BTreeMap, sync::Arc};
use tiphys_api::{
    access::has_hidden,
    cluster::ConnectionState,
    repository::{Repository, RepositoryList},
    rpc::repository::{
        AppInfo, HelmChartsResponse, Refs, RepoAccessQuery, RepoAppDetailsQuery,
        RepoAppDetailsResponse, RepoAppsQuery, RepoAppsResponse, RepoCreateRequest, RepoQuery,
        RepoResponse, RepoUpdateRequest,
    },
};
use tiphys_sources::AppRequest;

const AT_ONCE: usize = 8;

/// The repository without secrets.
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

/// The repository's connection state; a cached result is used unless `fresh` is set.
async fn connection(
    state: &State,
    use_: CredentialUse,
    repository: &Authorized<Repository, Get>,
    fresh: bool,
) -> ConnectionState {
    if let Some(fault) = repository.fault() {
        return failed(fault.to_owned());
    }
    let key = (use_, repository.project.clone(), repository.repo.clone());
    if !fresh && let Some(known) = state.connections.get(&key) {
        return known;
    }
    let found = connect(state, use_, repository).await;
    state.connections.put(key, found.clone());
    found
}

async fn connect(
    state: &State,
    use_: CredentialUse,
    repository: &Authorized<Repository, Get>,
) -> ConnectionState {
    match test(state, use_, repository).await {
        Ok(()) => ConnectionState {
            status: "Successful".into(),
            attempted_at: Some(Timestamp::now().into()),
            ..ConnectionState::default()
        },
        Err(e) => failed(format!("Unable to connect to repository: {e}")),
    }
}

fn failed(message: String) -> ConnectionState {
    ConnectionState {
        status: "Failed".into(),
        message,
        attempted_at: Some(Timestamp::now().into()),
    }
}

/// Tests the connection with the credentials that would be used.
async fn test<A>(
    state: &State,
    use_: CredentialUse,
    repository: &Authorized<Repository, A>,
) -> Result<(), ApiError> {
    let complete = state.reach.with_inherited(use_, repository).await?;
    if let Some(fault) = complete.fault() {
        return Err(ApiError::invalid(fault.to_owned()));
    }
    state.reach.sources(&complete).test().await
}

/// The same for a call that fails with it, as Argo CD says it.
async fn check_connection<A>(
    state: &State,
    use_: CredentialUse,
    repository: &Authorized<Repository, A>,
) -> Result<(), ApiError> {
    let tested = test(state, use_, repository).await;
    tested.map_err(|e| ApiError::plain(&*e.message).within(CONNECTIVITY))
}

const CONNECTIVITY: &str = "error testing repository connectivity";

pub(crate) async fn list(
    use_: CredentialUse,
    state: Arc<State>,
    guard: Guard,
    q: RepoQuery,
) -> Result<RepositoryList, ApiError> {
    let repositories = state.reach.repositories(&guard, use_).await?;
    let connected = futures::stream::iter(repositories).map(|stored| {
        let (state, repository) = (state.clone(), stored.repository);
        async move { shown(&state, use_, repository, q.force_refresh).await }
    });
    Ok(RepositoryList {
        items: connected.buffered(AT_ONCE).try_collect().await?,
        ..Default::default()
    })
}

pub(crate) async fn get(
    use_: CredentialUse,
    state: Arc<State>,
    guard: Guard,
    q: RepoQuery,
) -> Result<Repository, ApiError> {
    let found = state.reach.repository(&guard, use_, &q).await?.repository;
    shown(&state, use_, found, q.force_refresh).await
}

async fn shown(
    state: &State,
    use_: CredentialUse,
    repository: Authorized<Repository, Get>,
    fresh: bool,
) -> Result<Repository, ApiError> {
    let connection_state = connection(state, use_, &repository, fresh).await;
    let inherited_creds = state
        .reach
        .with_inherited(use_, &repository)
        .await?
        .inherited_creds;
    Ok(Repository {
        connection_state,
        inherited_creds,
        ..sanitized(repository.into_inner())
    })
}

fn checked(repository: Option<Repository>) -> Result<Repository, ApiError> {
    let repository = repository.ok_or_else(|| ApiError::invalid("missing payload in request"))?;
    if repository.repo.trim().is_empty() {
        let why = "unable to initialize git client: repository \"\" cannot be initialized: \
                   repo URL is invalid";
        return Err(ApiError::plain(why).within(CONNECTIVITY));
    }
    let type_ = repository.type_.as_str();
    if !["", "git", "helm", "oci"].contains(&type_) {
        return Err(ApiError::plain(format!(
            "unsupported repository type {type_:?}"
        )));
    }
    Ok(repository)
}

/// The reply of create and update.
fn brief(repository: &Repository) -> Repository {
    Repository {
        repo: repository.repo.clone(),
        type_: repository.type_.clone(),
        name: repository.name.clone(),
        ..Default::default()
    }
}

pub(crate) async fn create(
    use_: CredentialUse,
    state: Arc<State>,
    guard: Guard,
    q: RepoCreateRequest,
) -> Result<Repository, ApiError> {
    let mut repository = checked(q.repo)?;
    repository.connection_state = ConnectionState::default();
    repository.inherited_creds = false;
    // With the mark it would be another repository.
    concealed::of_url("repo.repo", &mut repository.repo, None)?;
    let repository = use_.new_repository(&guard, repository)?;
    let repository = with_proxy(use_, &state, &guard, repository).await?;
    let is_write = use_ == CredentialUse::Write;
    if is_write && !repository.has_credentials() {
        return Err(ApiError::invalid("missing credentials in request"));
    }
    if is_write || repository.project.is_empty() {
        check_connection(&state, use_, &repository).await?;
    }
    let existing = state.reach.existing_repository(use_, &repository).await?;
    if let Some(Stored {
        repository: existing,
        ..
    }) = &existing
    {
        let typed = |r: &Repository| Repository {
            type_: sanitized(r.clone()).type_,
            ..r.clone()
        };
        if typed(existing) == typed(&repository) {
            return Ok(brief(existing));
        }
        if !q.upsert {
            return Err(different(
                "repository",
                &typed(existing),
                &typed(&repository),
            ));
        }
    }
    state.connections.forget();
    let is_new = existing.is_none();
    state
        .reach
        .create_repository(use_, &repository, existing)
        .await?;
    let mut answer = brief(&repository);
    if !is_new {
        answer.username.clone_from(&repository.username);
        // It has just been connected to.
        "Successful".clone_into(&mut answer.connection_state.status);
    }
    Ok(answer)
}

/// What was shown of an existing repository is sent back with the stored password of its proxy.
/// Only who may change that one has it used.
async fn with_proxy(
    use_: CredentialUse,
    state: &State,
    guard: &Guard,
    new: Authorized<Repository, Create>,
) -> Result<Authorized<Repository, Create>, ApiError> {
    if !has_hidden(&new.proxy) {
        return Ok(new);
    }
    let existing = state.reach.existing_repository(use_, &new).await?;
    let existing: Option<Stored<Update>> = match existing {
        Some(existing) => Some(existing.also(guard)?),
        None => None,
    };
    let known = existing.as_ref().map(|e| e.repository.proxy.as_str());
    let mut complete = new.into_inner();
    concealed::of_url("repo.proxy", &mut complete.proxy, known)?;
    use_.new_repository(guard, complete)
}

pub(crate) async fn update(
    use_: CredentialUse,
    state: Arc<State>,
    guard: Guard,
    q: RepoUpdateRequest,
) -> Result<Repository, ApiError> {
    let mut repository = checked(q.repo)?;
    let query = RepoQuery {
        repo: repository.repo.clone(),
        app_project: repository.project.clone(),
        ..Default::default()
    };
    let stored = state
        .reach
        .repository_to_change(&guard, use_, &query)
        .await?;
    let known = &stored.repository;
    concealed::of_url("repo.repo", &mut repository.repo, Some(&known.repo))?;
    concealed::of_url("repo.proxy", &mut repository.proxy, Some(&known.proxy))?;
    let repository = stored.replaced_by(&guard, repository)?;
    state.connections.forget();
    state.reach.update_repository(stored, &repository).await?;
    Ok(brief(&repository))
}

pub(crate) async fn delete(
    use_: CredentialUse,
    state: Arc<State>,
    guard: Guard,
    q: RepoQuery,
) -> Result<RepoResponse, ApiError> {
    let stored = state.reach.repository(&guard, use_, &q).await?;
    let stored: Stored<Delete> = stored.also(&guard)?;
    state.connections.forget();
    state.reach.delete_repository(stored).await?;
    Ok(RepoResponse {})
}

pub(crate) async fn validate_access(
    use_: CredentialUse,
    state: Arc<State>,
    guard: Guard,
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
        insecure_oci_force_http: q.insecure_oci_force_http,
        github_app_private_key: q.github_app_private_key,
        github_app_id: q.github_app_id,
        github_app_installation_id: q.github_app_installation_id,
        github_app_enterprise_base_url: q.github_app_enterprise_base_url,
        gcp_service_account_key: q.gcp_service_account_key,
        use_azure_workload_identity: q.use_azure_workload_identity,
        azure_service_principal_client_id: q.azure_service_principal_client_id,
        azure_service_principal_client_secret: q.azure_service_principal_client_secret,
        azure_service_principal_tenant_id: q.azure_service_principal_tenant_id,
        azure_active_directory_endpoint: q.azure_active_directory_endpoint,
        force_http_basic_auth: q.force_http_basic_auth,
        proxy: q.proxy,
        project: q.project,
        ..Default::default()
    };
    let repository = use_.new_repository(&guard, repository)?;
    check_connection(&state, use_, &repository).await?;
    Ok(RepoResponse {})
}

pub async fn refs(state: Arc<State>, guard: Guard, q: RepoQuery) -> Result<Refs, ApiError> {
    let repository = state
        .reach
        .repository_for(&guard, &q.repo, &q.app_project)
        .await?;
    let (branches, tags) = state.reach.sources(&repository).refs().await?;
    Ok(Refs { branches, tags })
}

/// The tags of a repository in a registry, as it lists them now.
pub async fn oci_tags(state: Arc<State>, guard: Guard, q: RepoQuery) -> Result<Refs, ApiError> {
    let repository = state
        .reach
        .repository_for(&guard, &q.repo, &q.app_project)
        .await?;
    let tags = state.reach.sources(&repository).oci_tags().await?;
    Ok(Refs {
        tags,
        ..Refs::default()
    })
}

/// The charts of a repository, as its index lists them now.
pub async fn charts(
    state: Arc<State>,
    guard: Guard,
    q: RepoQuery,
) -> Result<HelmChartsResponse, ApiError> {
    let repository = state
        .reach
        .repository_for(&guard, &q.repo, &q.app_project)
        .await?;
    let items = state.reach.sources(&repository).charts().await?;
    Ok(HelmChartsResponse { items })
}

/// The folders of a repository that hold Applications, for callers who may create or change the one
/// that is asked for.
pub async fn apps(
    state: Arc<State>,
    guard: Guard,
    q: RepoAppsQuery,
) -> Result<RepoAppsResponse, ApiError> {
    let reach = &state.reach;
    let repository = reach
        .repository_for(&guard, &q.repo, &q.app_project)
        .await?;
    may_write(&guard, &q.app_name, &q.app_project)?;
    let project = reach.project_of_details(&repository, &q.app_project).await;
    let project = project.map_err(|e| {
        let name = &q.app_project;
        let error = match e {
            StoreError::NotFound(_) => {
                ApiError::not_found(format!("appproject.argoproj.io {name:?} not found"))
            }
            e => ApiError::from(e),
        };
        error.within(&format!("error getting app project {name:?}"))
    })?;
    permitted(&reach.effective_project(project), &q.repo)?;
    let sources = reach.sources(&repository);
    let found = sources.tools(&q.revision, &q.app_project).await?;
    let info = |(path, type_)| AppInfo { type_, path };
    Ok(RepoAppsResponse {
        items: found.into_iter().map(info).collect(),
    })
}

/// The type of the source and the parameters that can be set in it.
pub async fn app_details(
    state: Arc<State>,
    guard: Guard,
    q: RepoAppDetailsQuery,
) -> Result<RepoAppDetailsResponse, ApiError> {
    let source = q
        .source
        .ok_or_else(|| ApiError::invalid("missing payload in request"))?;
    let reach = &state.reach;
    let main = reach
        .repository_for(&guard, &source.repo_url, &q.app_project)
        .await?;
    let (named, at) = (
        (&*q.app_name, &*q.app_project),
        (q.source_index, q.version_id),
    );
    let app = app_in_project(&state.reach, &guard, named, &source, at).await?;
    if !q.app_project.is_empty() {
        let project = reach.project_of_details(&main, &q.app_project).await?;
        permitted(&reach.effective_project(project), &source.repo_url)?;
    }
    let resolved = reach.sources(&main);
    let resolved = resolved.resolve(&source, &source.target_revision).await;
    let (revision, _) = resolved.map_err(|e| match e.code {
        Code::NotFound => ApiError::plain(format!("failed to list refs: {}", e.message)),
        _ => ApiError::plain(e.message),
    })?;
    // A source may refer to the Application's other sources.
    let refs = match app {
        Some(app) => render::refs(&state, &app, &app.spec.sources).await?,
        None => BTreeMap::new(),
    };
    let app = AppRequest {
        instance: q.app_name.replace('/', "_"),
        project: q.app_project,
        several: !refs.is_empty(),
        refs,
        ..AppRequest::default()
    };
    let request = RenderRequest {
        app: Arc::new(app),
        repository: Repository::clone(&main),
        source,
        revision,
    };
    reach.sources(&main).details(request).await
}
