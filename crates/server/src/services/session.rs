//! session.SessionService.

use crate::{ApiError, audit, auth::Caller, state::State};
use jiff::Timestamp;
use std::sync::Arc;
use tiphys_api::rpc::session::{
    GetUserInfoRequest, GetUserInfoResponse, SessionCreateRequest, SessionDeleteRequest,
    SessionResponse,
};

pub async fn create(
    state: Arc<State>,
    caller: Caller,
    q: SessionCreateRequest,
) -> Result<SessionResponse, ApiError> {
    if !q.token.is_empty() {
        return Err(ApiError::unauthenticated(
            "token-based session creation no longer supported. please upgrade argocd cli to v0.7+",
        ));
    }
    audit::named(&q.username);
    let token = state
        .auth
        .login(&q.username, &q.password, caller.source, Timestamp::now())
        .await;
    state.metrics.login(token.is_ok());
    Ok(SessionResponse { token: token? })
}

pub async fn delete(
    state: Arc<State>,
    caller: Caller,
    _: SessionDeleteRequest,
) -> Result<SessionResponse, ApiError> {
    if let Some(claims) = &caller.claims {
        state.auth.revoke(claims, Timestamp::now()).await?;
    }
    Ok(SessionResponse::default())
}

pub async fn user_info(
    state: Arc<State>,
    caller: Caller,
    _: GetUserInfoRequest,
) -> Result<GetUserInfoResponse, ApiError> {
    let Some(claims) = &caller.claims else {
        return Ok(GetUserInfoResponse::default());
    };
    let groups = if claims.is_local() {
        Vec::new()
    } else {
        state.enforcer.groups(claims)
    };
    Ok(GetUserInfoResponse {
        logged_in: true,
        username: claims.display_name().to_owned(),
        iss: claims.iss.clone(),
        groups,
    })
}
