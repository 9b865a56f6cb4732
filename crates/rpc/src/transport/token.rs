//! The token in a request, and a browser's session cookie. Which tokens are valid is up to the
//! role.

use http::{HeaderMap, HeaderValue, header};

/// The token of a request; `cookie` is the name of the cookie that may contain it.
pub fn found(headers: &HeaderMap, cookie: &str) -> Option<String> {
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
        .find(|(name, value)| *name == cookie && !value.is_empty())
        .map(|(_, v)| v.to_owned())
}

/// A `Set-Cookie` header with the token, for paths below `root`; an empty token deletes the cookie.
pub fn set_cookie(cookie: &str, token: &str, root: &str, only_https: bool) -> Option<HeaderValue> {
    let root = root.trim_matches('/');
    let secure = if only_https { "; Secure" } else { "" };
    let age = if token.is_empty() { "; Max-Age=0" } else { "" };
    HeaderValue::from_str(&format!(
        "{cookie}={token}; Path=/{root}; SameSite=Strict; HttpOnly{secure}{age}"
    ))
    .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_is_found_in_three_places() {
        let token = |pairs: &[(&'static str, &'static str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in pairs {
                headers.append(*name, HeaderValue::from_static(value));
            }
            found(&headers, "argocd.token")
        };
        assert_eq!(token(&[]), None);
        assert_eq!(token(&[("token", "a")]).as_deref(), Some("a"));
        assert_eq!(
            token(&[("authorization", "Bearer a.b.c")]).as_deref(),
            Some("a.b.c")
        );
        assert_eq!(token(&[("authorization", "Basic x")]), None);
        assert_eq!(
            token(&[("cookie", "x=1; argocd.token=t")]).as_deref(),
            Some("t")
        );
        assert_eq!(token(&[("cookie", "argocd.token=")]), None);
        assert_eq!(
            token(&[
                ("cookie", "argocd.token=t"),
                ("authorization", "Bearer a.b.c")
            ])
            .as_deref(),
            Some("a.b.c")
        );
    }
}
