//! Tokens of projects' roles: `project.ProjectService/CreateToken` and `DeleteToken`.

use super::project::record;
use crate::{
    ApiError, Code,
    access::{Guard, find_for_tokens},
    auth::Claims,
    state::State,
};
use jiff::Timestamp;
use std::sync::Arc;
use tiphys_api::{
    AppProject,
    project::JWTToken,
    rpc::project::{
        EmptyResponse, ProjectTokenCreateRequest, ProjectTokenDeleteRequest, ProjectTokenResponse,
    },
};

/// How often a project that somebody else changed is read again.
const ATTEMPTS: usize = 5;

pub async fn create(
    state: Arc<State>,
    guard: Guard,
    q: ProjectTokenCreateRequest,
) -> Result<ProjectTokenResponse, ApiError> {
    if q.expires_in < 0 {
        return Err(ApiError::invalid("expiresIn must not be negative"));
    }
    let id = if q.id.is_empty() {
        uuid::Uuid::new_v4().to_string()
    } else {
        q.id.clone()
    };
    let sub = format!("proj:{}:{}", q.project, q.role);
    let claims = Claims::token(sub, id, q.expires_in, Timestamp::now());
    let about = (q.project.as_str(), q.role.as_str());
    let changed = change(&state, &guard, about, |project| {
        if !has_role(project, &q.role) {
            return Err(ApiError::not_found(format!(
                "project '{}' does not have role '{}'",
                q.project, q.role
            )));
        }
        if tiphys_rbac::tokens(project, &q.role).any(|token| token.id == claims.jti) {
            return Err(ApiError::invalid(format!(
                "rpc error: code = InvalidArgument desc = Token id '{}' has been used. ",
                claims.jti
            )));
        }
        let tokens = project.status.jwt_tokens_by_role.entry(q.role.clone());
        tokens.or_default().items.push(JWTToken {
            iat: claims.iat,
            exp: claims.exp,
            id: claims.jti.clone(),
        });
        tiphys_rbac::normalize_tokens(project);
        Ok(true)
    })
    .await?;
    if let Some(project) = changed {
        let (caller, reason) = (guard.caller(), "ResourceCreated");
        record(&state, caller, &project, reason, "created token").await;
    }
    let token = state.auth.sign_token(&claims).await?;
    Ok(ProjectTokenResponse { token })
}

/// What is not there is deleted already.
pub async fn delete(
    state: Arc<State>,
    guard: Guard,
    q: ProjectTokenDeleteRequest,
) -> Result<EmptyResponse, ApiError> {
    let about = (q.project.as_str(), q.role.as_str());
    let changed = change(&state, &guard, about, |project| {
        let is_it = |token: &JWTToken| {
            if q.id.is_empty() {
                token.iat == q.iat
            } else {
                token.id == q.id
            }
        };
        let before = tiphys_rbac::tokens(project, &q.role).count();
        if let Some(tokens) = project.status.jwt_tokens_by_role.get_mut(&q.role) {
            tokens.items.retain(|token| !is_it(token));
        }
        for role in project.spec.roles.iter_mut().filter(|r| r.name == q.role) {
            role.jwt_tokens.retain(|token| !is_it(token));
        }
        let changed = tiphys_rbac::tokens(project, &q.role).count() != before;
        if changed {
            tiphys_rbac::normalize_tokens(project);
        }
        Ok(changed)
    })
    .await?;
    if let Some(project) = changed {
        let (caller, reason) = (guard.caller(), "ResourceDeleted");
        record(&state, caller, &project, reason, "deleted token").await;
    }
    // Streams of this token end.
    state.auth.password_changed().await;
    Ok(EmptyResponse {})
}

fn has_role(project: &AppProject, role: &str) -> bool {
    project.spec.roles.iter().any(|r| r.name == role)
}

/// `change` says whether the project must be written; it is returned if it was.
async fn change(
    state: &State,
    guard: &Guard,
    (name, role): (&str, &str),
    change: impl Fn(&mut AppProject) -> Result<bool, ApiError>,
) -> Result<Option<AppProject>, ApiError> {
    for attempt in 1.. {
        let project = find_for_tokens(&state.reach, guard, name, role).await?;
        let (project, is_changed) = project.with_tokens(&change)?;
        if !is_changed {
            return Ok(None);
        }
        match state.reach.update_project(&project).await {
            Ok(updated) => return Ok(Some(updated)),
            Err(error) => {
                let error = ApiError::from(error);
                if error.code != Code::Aborted || attempt == ATTEMPTS {
                    return Err(error);
                }
            }
        }
    }
    Ok(None)
}
