//! What the server answers outside the table of calls for pages of others and of its own: badges,
//! extensions, terminals, the description of the API, and what an installation adds to the page.
//!
//! Here are the parts that these share; [`badge`], [`extensions`], [`own`], [`swagger`] and
//! [`terminal`] answer.

pub mod badge;
pub mod extensions;
pub mod own;
pub mod swagger;
pub mod terminal;

use crate::{
    access::{Access, Guard},
    cookies::COOKIE,
    state::State,
};
use http::{HeaderMap, HeaderValue, Response, StatusCode, header, request::Parts};
use tiphys_rpc::{Role as _, Source, text};
use tonic::body::Body;

/// A refusal: one line of text.
fn refused(status: StatusCode, why: &str) -> Response<Body> {
    let mut response = text(status, format!("{why}\n"));
    let nosniff = HeaderValue::from_static("nosniff");
    response
        .headers_mut()
        .insert(header::X_CONTENT_TYPE_OPTIONS, nosniff);
    response
}

/// The caller by the cookie of a browser alone, with these permissions, or the refusal.
async fn guard(state: &State, request: &Parts, access: Access) -> Result<Guard, Response<Body>> {
    let mut cookies = HeaderMap::new();
    for cookie in request.headers.get_all(header::COOKIE) {
        cookies.append(header::COOKIE, cookie.clone());
    }
    let is_disabled = state.options.auth_disabled;
    if !is_disabled && tiphys_rpc::token(&cookies, COOKIE).is_none() {
        return Err(refused(StatusCode::BAD_REQUEST, "Auth cookie not found"));
    }
    let source = request.extensions.get::<Source>().copied();
    let source = source.unwrap_or_default().0;
    let caller = state.caller(source, &cookies, Some(&access)).await;
    match caller {
        Ok(caller) if caller.logged_in() || is_disabled => Ok(state.guard(caller, access)),
        _ => Err(refused(StatusCode::UNAUTHORIZED, "Invalid token")),
    }
}

/// Whether a name is a DNS label, as namespaces have.
fn is_label(name: &str) -> bool {
    let is_inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let ends_well =
        name.bytes().next().is_some_and(is_inner) && name.bytes().next_back().is_some_and(is_inner);
    name.len() <= 63 && ends_well && name.bytes().all(|b| is_inner(b) || b == b'-')
}

/// Whether a name is made of DNS labels, as most objects have.
fn is_subdomain(name: &str) -> bool {
    name.len() <= 253 && name.split('.').all(is_label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for (name, label, subdomain) in [
            ("a", true, true),
            ("a-1", true, true),
            ("a.b", false, true),
            ("", false, false),
            ("A", false, false),
            ("a b", false, false),
            ("-a", false, false),
            ("a..b", false, false),
        ] {
            assert_eq!(
                (is_label(name), is_subdomain(name)),
                (label, subdomain),
                "{name}"
            );
        }
        assert!(!is_label(&"a".repeat(64)));
    }
}
