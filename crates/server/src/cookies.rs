//! The cookies of browser sessions.

use http::{HeaderMap, header};

/// The cookie with the token of a session.
pub const COOKIE: &str = "argocd.token";

/// The cookies of a session: a long token is in several, `argocd.token-1` and so on.
pub fn pieces(headers: &HeaderMap) -> Vec<String> {
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
