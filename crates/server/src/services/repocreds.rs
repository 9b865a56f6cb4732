//! repocreds.RepoCredsService: credentials for all repositories below a URL, to read them and to
//! write to them.

use crate::{
    ApiError,
    access::{Create, CredentialUse, Delete, Guard, Update},
    services::concealed,
    state::State,
};
use std::sync::Arc;
use tiphys_api::{
    repository::{RepoCreds, RepoCredsList},
    rpc::repocreds::{
        RepoCredsCreateRequest, RepoCredsDeleteRequest, RepoCredsQuery, RepoCredsResponse,
        RepoCredsUpdateRequest,
    },
};

/// The templates without their secrets.
pub(crate) async fn list(
    use_: CredentialUse,
    state: Arc<State>,
    guard: Guard,
    _: RepoCredsQuery,
) -> Result<RepoCredsList, ApiError> {
    let templates = state.reach.templates(&guard, use_).await?;
    let shown = |creds: &RepoCreds| RepoCreds {
        url: creds.url.clone(),
        username: creds.username.clone(),
        type_: creds.type_.clone(),
        enable_oci: creds.enable_oci,
        ..Default::default()
    };
    Ok(RepoCredsList {
        items: templates.iter().map(|creds| shown(creds)).collect(),
        ..Default::default()
    })
}

/// The reply of create and update.
fn brief(url: &str) -> RepoCreds {
    RepoCreds {
        url: url.to_owned(),
        ..Default::default()
    }
}

fn missing() -> ApiError {
    ApiError::invalid("missing payload in request")
}

fn not_found(use_: CredentialUse, url: &str) -> ApiError {
    let kind = match use_ {
        CredentialUse::Read => "",
        CredentialUse::Write => "write ",
    };
    ApiError::not_found(format!("{kind}repository credentials '{url}' not found"))
}

pub(crate) async fn create(
    use_: CredentialUse,
    state: Arc<State>,
    guard: Guard,
    q: RepoCredsCreateRequest,
) -> Result<RepoCreds, ApiError> {
    let mut creds = q.creds.ok_or_else(missing)?;
    let existing = state
        .reach
        .template::<Create>(&guard, use_, &creds.url)
        .await?;
    if creds.url.trim().is_empty() {
        return Err(ApiError::invalid("must specify URL"));
    }
    let Some(existing) = existing else {
        concealed::of_url("creds.url", &mut creds.url, None)?;
        concealed::of_url("creds.proxy", &mut creds.proxy, None)?;
        state.reach.create_template(&guard, use_, &creds).await?;
        return Ok(brief(&creds.url));
    };
    if *existing.creds == creds && !existing.is_faulty {
        return Ok(brief(&creds.url));
    }
    if !q.upsert {
        return Err(ApiError::invalid(
            "existing repository credentials spec is different; use upsert flag to force update",
        ));
    }
    replace(use_, &state, &guard, creds).await
}

pub(crate) async fn update(
    use_: CredentialUse,
    state: Arc<State>,
    guard: Guard,
    q: RepoCredsUpdateRequest,
) -> Result<RepoCreds, ApiError> {
    replace(use_, &state, &guard, q.creds.ok_or_else(missing)?).await
}

async fn replace(
    use_: CredentialUse,
    state: &State,
    guard: &Guard,
    mut creds: RepoCreds,
) -> Result<RepoCreds, ApiError> {
    let stored = state
        .reach
        .template::<Update>(guard, use_, &creds.url)
        .await?
        .ok_or_else(|| not_found(use_, &creds.url))?;
    concealed::of_url("creds.url", &mut creds.url, Some(&stored.creds.url))?;
    concealed::of_url("creds.proxy", &mut creds.proxy, Some(&stored.creds.proxy))?;
    // Repositories that use the template may be reachable now, or no longer.
    state.connections.forget();
    state
        .reach
        .update_template(guard, use_, stored, &creds)
        .await?;
    Ok(brief(&creds.url))
}

pub(crate) async fn delete(
    use_: CredentialUse,
    state: Arc<State>,
    guard: Guard,
    q: RepoCredsDeleteRequest,
) -> Result<RepoCredsResponse, ApiError> {
    let stored = state
        .reach
        .template::<Delete>(&guard, use_, &q.url)
        .await?
        .ok_or_else(|| not_found(use_, &q.url))?;
    state.connections.forget();
    state.reach.delete_template(stored).await?;
    Ok(RepoCredsResponse {})
}
