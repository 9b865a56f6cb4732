//! `/auth/logout`, which browsers are sent to and `argocd logout` asks. Main function: [`handle`].

use crate::{
    cookies::{COOKIE, pieces},
    sign_in,
    state::State,
};
use http::{HeaderMap, Response, StatusCode, header::SET_COOKIE};
use jiff::Timestamp;
use std::sync::Arc;
use tiphys_rpc::{redirect, set_cookie, text, token};
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
    let verified = state.auth.verified_to_end(&token, now).await;
    if let Err(unverified) = &verified
        && !unverified.is_of_token
    {
        let error = &unverified.error.message;
        tracing::warn!(%error, "A session may go on: its token could not be verified when it should end");
    }
    // The provider is told of the end of its own sessions alone, and gets no other's token.
    let theirs = verified.as_ref().is_ok_and(|claims| !claims.is_local());
    let theirs = theirs.then_some(token.as_str());
    let options = &state.options;
    let mut page = String::new();
    let mut target = None;
    if let Ok(settings) = state.settings.get().await {
        // Not the host that the request names, which is not known to be ours.
        settings.value("url").clone_into(&mut page);
        if let Ok(Some(config)) = &settings.sso {
            target = sign_in::logout_target(config, &headers, theirs);
        }
    }
    if page.is_empty() {
        page = format!("/{}", options.root_path.trim_matches('/'));
    }
    let page = target.unwrap_or(page);
    // A browser that goes away must not keep it from being recorded.
    if let Ok(claims) = verified {
        let recorded = state.auth.end(&claims, now).record();
        if let Err(e) = state.audit.work.unstopped(PATH, recorded).await {
            tracing::warn!(error = e.message, "A session that ended was not recorded");
        }
    }
    let sent = headers;
    let mut answer = redirect(StatusCode::SEE_OTHER, &page);
    let headers = answer.headers_mut();
    for name in pieces(&sent) {
        let none = set_cookie(&name, "", &options.root_path, options.secure_cookie);
        headers.extend(none.map(|none| (SET_COOKIE, none)));
    }
    answer
}
