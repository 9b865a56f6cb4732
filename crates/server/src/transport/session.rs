//! The session of a request: which token it carries, and the cookie of the page.

use crate::{
    ApiError,
    auth::Caller,
    server::State,
    table::{Access, Call},
};
use http::{HeaderMap, HeaderValue, header};
use jiff::Timestamp;
use std::net::IpAddr;

const COOKIE: &str = "argocd.token";

/// The caller of a request, if the call's access allows it.
pub async fn caller(
    state: &State,
    source: IpAddr,
    headers: &HeaderMap,
    access: Access,
) -> Result<Caller, ApiError> {
    let verified = match token(headers) {
        None => Err(ApiError::unauthenticated("no session information")),
        Some(token) => state.auth.verify(&token, Timestamp::now()).await,
    };
    match (verified, access) {
        (Ok(claims), _) => Ok(Caller {
            claims: Some(claims),
            source,
        }),
        (Err(_), Access::Public) => Ok(Caller {
            claims: None,
            source,
        }),
        (Err(e), Access::Session) => Err(e),
    }
}

/// The same for a path without a call: it is not told apart from others without a session.
pub async fn check(
    state: &State,
    source: IpAddr,
    headers: &HeaderMap,
    call: Option<&Call>,
) -> Result<Caller, ApiError> {
    caller(
        state,
        source,
        headers,
        call.map_or(Access::Session, |c| c.access),
    )
    .await
}

fn token(headers: &HeaderMap) -> Option<String> {
    let text = |value: &HeaderValue| value.to_str().ok().map(str::to_owned);
    if let Some(token) = headers.get("token").and_then(text) {
        return Some(token);
    }
    if let Some(bearer) = headers.get(header::AUTHORIZATION).and_then(text) {
        let token = bearer
            .strip_prefix("Bearer ")
            .filter(|t| t.split('.').count() == 3);
        if let Some(token) = token {
            return Some(token.to_owned());
        }
    }
    let cookies = headers
        .get_all(header::COOKIE)
        .iter()
        .filter_map(text)
        .collect::<Vec<_>>()
        .join("; ");
    cookies
        .split(';')
        .filter_map(|c| c.trim().split_once('='))
        .find(|(name, value)| *name == COOKIE && !value.is_empty())
        .map(|(_, v)| v.to_owned())
}

/// A Set-Cookie header with the token; an empty token takes the cookie away.
pub fn cookie(state: &State, token: &str) -> Option<HeaderValue> {
    let root = state.options.root_path.trim_matches('/');
    let secure = if state.options.secure_cookie {
        "; Secure"
    } else {
        ""
    };
    let age = if token.is_empty() { "; Max-Age=0" } else { "" };
    HeaderValue::from_str(&format!(
        "{COOKIE}={token}; Path=/{root}; SameSite=Strict; HttpOnly{secure}{age}"
    ))
    .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_is_found_in_three_places() {
        let found = |pairs: &[(&'static str, &'static str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in pairs {
                headers.append(*name, HeaderValue::from_static(value));
            }
            token(&headers)
        };
        assert_eq!(found(&[]), None);
        assert_eq!(found(&[("token", "a")]).as_deref(), Some("a"));
        assert_eq!(
            found(&[("authorization", "Bearer a.b.c")]).as_deref(),
            Some("a.b.c")
        );
        assert_eq!(found(&[("authorization", "Basic x")]), None);
        assert_eq!(
            found(&[("cookie", "x=1; argocd.token=t")]).as_deref(),
            Some("t")
        );
        assert_eq!(found(&[("cookie", "argocd.token=")]), None);
        assert_eq!(
            found(&[
                ("cookie", "argocd.token=t"),
                ("authorization", "Bearer a.b.c")
            ])
            .as_deref(),
            Some("a.b.c")
        );
    }
}
