//! The token in a request, and a browser's session cookie. Which tokens are valid is up to the
//! role.

use http::{HeaderMap, HeaderValue, header};

/// Where a token may be on its own: metadata of gRPC, and how a client of REST sends that.
pub const METADATA: [&str; 2] = ["token", "grpc-metadata-token"];
/// What browsers keep of a cookie with its name and attributes, and what its number takes.
const MAX_COOKIE: usize = 4093;
const NUMBER: usize = "-1=".len();
const MAX_COOKIES: usize = 20;

/// The token of a request; `cookie` is the name of the cookie that may contain it.
pub fn found(headers: &HeaderMap, cookie: &str) -> Option<String> {
    let text = |value: &HeaderValue| value.to_str().ok().map(str::to_owned);
    if let Some(token) = METADATA
        .iter()
        .find_map(|name| headers.get(*name).and_then(text))
        && !token.is_empty()
    {
        return Some(token);
    }
    let bearers = headers.get_all(header::AUTHORIZATION).iter();
    let mut bearers = bearers.filter_map(text);
    if let Some(token) = bearers.find_map(|b| {
        let token = b.strip_prefix("Bearer ")?.to_owned();
        has_parts(&token).then_some(token)
    }) {
        return Some(token);
    }
    let cookies = headers
        .get_all(header::COOKIE)
        .iter()
        .filter_map(text)
        .collect::<Vec<_>>()
        .join("; ");
    let named = |wanted: &str| {
        cookies
            .split(';')
            .filter_map(|c| c.trim().split_once('='))
            .find(|(name, value)| *name == wanted && !value.is_empty())
            .map(|(_, v)| v)
    };
    let first = named(cookie)?;
    // A long token is in several cookies; the first one says in how many.
    let Some((count, part)) = first.split_once(':') else {
        return Some(first.to_owned()).filter(|token| has_parts(token));
    };
    let count = count.parse::<usize>().ok()?.min(MAX_COOKIES);
    // Without one of them, it is no token, which is said where it is checked.
    let rest: String = (1..count)
        .filter_map(|n| named(&format!("{cookie}-{n}")))
        .collect();
    Some(part.to_owned() + &rest)
}

/// Whether it could be a JSON Web Token. What has more parts is refused later, with a reason.
fn has_parts(token: &str) -> bool {
    token.split('.').count() >= 3
}

/// `Set-Cookie` headers with a token that may be longer than a cookie, as Argo CD divides it.
///
/// # Errors
/// It is longer than browsers would keep.
pub fn set_cookies(
    cookie: &str,
    token: &str,
    root: &str,
    only_https: bool,
) -> Result<Vec<HeaderValue>, String> {
    let one = |name: &str, value: &str| {
        set_cookie(name, value, root, only_https).ok_or_else(|| "the token is no text".to_owned())
    };
    if !token.is_ascii() {
        return Err("the token is no text".to_owned());
    }
    let around = attributes(root, only_https).len() + cookie.len() + NUMBER;
    let most = MAX_COOKIE.saturating_sub(around).max(1);
    if token.len() <= most {
        return Ok(vec![one(cookie, token)?]);
    }
    let count = token.len().div_ceil(most);
    if count > MAX_COOKIES {
        return Err(format!(
            "the authentication token is {} characters long and requires {count} cookies but the \
             max number of cookies is {MAX_COOKIES}. Contact your Argo CD administrator to increase \
             the max number of cookies",
            token.len()
        ));
    }
    (0..count)
        .map(|n| {
            let end = token.len().min((n + 1) * most);
            let part = &token[n * most..end];
            match n {
                0 => one(cookie, &format!("{count}:{part}")),
                n => one(&format!("{cookie}-{n}"), part),
            }
        })
        .collect()
}

/// A `Set-Cookie` header with the token, for paths below `root`; an empty token empties the cookie.
/// It is sent when a link leads here, as after a sign-in at an identity provider, but with no
/// request that another site's page makes.
pub fn set_cookie(cookie: &str, token: &str, root: &str, only_https: bool) -> Option<HeaderValue> {
    if token.is_empty() {
        let root = root.trim_matches('/');
        return HeaderValue::from_str(&format!("{cookie}=; Path=/{root}")).ok();
    }
    let attributes = attributes(root, only_https);
    HeaderValue::from_str(&format!("{cookie}={token}{attributes}")).ok()
}

fn attributes(root: &str, only_https: bool) -> String {
    let root = root.trim_matches('/');
    let secure = if only_https { "; Secure" } else { "" };
    format!("; path=/{root}; SameSite=lax; httpOnly{secure}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_tokens_are_in_several_cookies() {
        let token = "abc.".repeat(3000);
        let cookies = set_cookies("c", &token, "", true).expect("it is not too long");
        assert_eq!(cookies.len(), 3);
        let mut headers = HeaderMap::new();
        for cookie in &cookies {
            assert!(cookie.len() <= 4096);
            let text = cookie.to_str().expect("text");
            let pair = text.split(';').next().expect("a pair");
            headers.append(header::COOKIE, pair.parse().expect("a value"));
        }
        assert_eq!(found(&headers, "c").as_deref(), Some(&*token));
        let mut part = HeaderMap::new();
        part.append(header::COOKIE, HeaderValue::from_static("c=3:abc; c-1=d"));
        // What is missing makes it no token, which its check says.
        assert_eq!(found(&part, "c").as_deref(), Some("abcd"));
        assert!(set_cookies("c", &"a".repeat(90_000), "", true).is_err());
    }

    /// Report 13: the sizes of the parts, for the attributes of a server at the top of a host.
    #[test]
    fn parts_are_as_long_as_browsers_keep() {
        for (length, parts) in [
            (3_000, vec![3_000]),
            (4_038, vec![4_038]),
            (4_039, vec![4_038, 1]),
            (9_000, vec![4_038, 4_038, 924]),
            (80_760, vec![4_038; 20]),
        ] {
            let token = "a".repeat(length);
            let cookies = set_cookies("argocd.token", &token, "", true).expect("it fits");
            let sizes: Vec<usize> = cookies
                .iter()
                .map(|cookie| {
                    let text = cookie.to_str().expect("text");
                    let value = text.split(';').next().and_then(|pair| pair.split_once('='));
                    let value = value.expect("a pair").1;
                    value.split_once(':').map_or(value, |(_, part)| part).len()
                })
                .collect();
            assert_eq!(sizes, parts, "{length}");
        }
        let why = set_cookies("argocd.token", &"a".repeat(80_761), "", true);
        let why = why.expect_err("it is too long");
        let begin = "the authentication token is 80761 characters long and requires 21 cookies but \
                     the max number of cookies is 20.";
        assert!(why.starts_with(begin), "{why}");
    }

    #[test]
    fn parts_come_in_any_order_and_beside_other_cookies() {
        let mut headers = HeaderMap::new();
        for cookie in ["c-2=f.g", "cX=other; c-10=no", "c=3:a.b", "c-1=.c.d.e"] {
            headers.append(header::COOKIE, HeaderValue::from_static(cookie));
        }
        assert_eq!(found(&headers, "c").as_deref(), Some("a.b.c.d.ef.g"));
    }

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
            token(&[("cookie", "x=1; argocd.token=t.t.t")]).as_deref(),
            Some("t.t.t")
        );
        assert_eq!(token(&[("cookie", "argocd.token=")]), None);
        assert_eq!(token(&[("cookie", "argocd.token=nodots")]), None);
        assert_eq!(
            token(&[
                ("authorization", "Bearer x"),
                ("authorization", "Bearer d.e.f")
            ])
            .as_deref(),
            Some("d.e.f")
        );
        assert_eq!(
            token(&[
                ("cookie", "argocd.token=t.t.t"),
                ("authorization", "Bearer a.b.c")
            ])
            .as_deref(),
            Some("a.b.c")
        );
    }
}
