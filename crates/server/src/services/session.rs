//! session.SessionService.

use crate::{ApiError, auth::Caller, server::State};
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
    _: Arc<State>,
    caller: Caller,
    _: GetUserInfoRequest,
) -> Result<GetUserInfoResponse, ApiError> {
    let iss = caller
        .claims
        .as_ref()
        .map(|c| c.iss.clone())
        .unwrap_or_default();
    Ok(GetUserInfoResponse {
        logged_in: caller.logged_in(),
        username: caller.username().to_owned(),
        iss,
        groups: Vec::new(),
    })
}
