//! `/auth/logout`, which browsers are sent to and `argocd logout` asks. Main function: [`handle`].

use crate::{role::COOKIE, server::State, sso};
use http::{
    HeaderMap, HeaderValue, Response, StatusCode,
    header::{LOCATION, SET_COOKIE},
};
use jiff::Timestamp;
use std::sync::Arc;
use tiphys_rpc::{set_cookie, text, token};
use tonic::body::Body;

pub const PATH: &str = "/auth/logout";

/// Ends the session of the cookie or token, and leads back to the page. A session that is over
/// already is no error.
pub async fn handle(state: Arc<State>, headers: HeaderMap) -> Response<Body> {
    let Some(token) = token(&headers, COOKIE) else {
        let refusal = "Failed to retrieve ArgoCD auth token\n";
        return text(StatusCode::BAD_REQUEST, refusal);
    };
    let now = Timestamp::now();
    let mut target = None;
    if let Ok(settings) = state.settings.get().await
        && let Ok(Some(config)) = &settings.sso
    {
        target = sso::logout_target(config, &headers, &token);
    }
    if let Ok(claims) = state.auth.verify(&token, now).await
        && let Err(e) = state.auth.revoke(&claims, now).await
    {
        tracing::warn!(error = e.message, "A session that ended was not recorded");
    }
    let options = &state.options;
    let mut answer = text(StatusCode::SEE_OTHER, "");
    let headers = answer.headers_mut();
    // Not the host that the request names, which is not known to be ours.
    let page = format!("/{}", options.root_path.trim_matches('/'));
    let page = target.unwrap_or(page);
    headers.extend(
        HeaderValue::from_str(&page)
            .ok()
            .map(|page| (LOCATION, page)),
    );
    let none = set_cookie(COOKIE, "", &options.root_path, options.secure_cookie);
    headers.extend(none.map(|none| (SET_COOKIE, none)));
    answer
}
