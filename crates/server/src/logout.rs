//! `/auth/logout`, which browsers are sent to and `argocd logout` asks. Main function: [`handle`].

use crate::{role::COOKIE, server::State, sso};
use http::{
    HeaderMap, Response, StatusCode,
    header::{self, SET_COOKIE},
};
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
    let options = &state.options;
    let mut page = String::new();
    let mut target = None;
    if let Ok(settings) = state.settings.get().await {
        // Not the host that the request names, which is not known to be ours.
        settings.value("url").clone_into(&mut page);
        if let Ok(Some(config)) = &settings.sso {
            target = sso::logout_target(config, &headers, &token);
        }
    }
    if page.is_empty() {
        page = format!("/{}", options.root_path.trim_matches('/'));
    }
    let page = target.unwrap_or(page);
    if let Ok(claims) = state.auth.verify(&token, now).await
        && let Err(e) = state.auth.revoke(&claims, now).await
    {
        tracing::warn!(error = e.message, "A session that ended was not recorded");
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

/// The cookies of a session: a long token is in several, `argocd.token-1` and so on.
pub(crate) fn pieces(headers: &HeaderMap) -> Vec<String> {
    let is_piece = |name: &&str| {
        let number = name.strip_prefix(COOKIE).and_then(|n| n.strip_prefix('-'));
        number.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
    };
    let cookies = headers.get_all(header::COOKIE).iter();
    let names = cookies
        .filter_map(|cookie| cookie.to_str().ok())
        .flat_map(|cookie| cookie.split(';'))
        .filter_map(|pair| Some(pair.split_once('=')?.0.trim()));
    let more = names.filter(is_piece).map(str::to_owned);
    [COOKIE.to_owned()].into_iter().chain(more).collect()
}
