//! How a registry says what it wants to see before it answers, and who may receive credentials.
//!
//! Main function: [`trust`]. A token service that a registry names receives the credentials only if
//! it belongs to the registry's own domain: they were given for the registry, and what it answers
//! decides nothing about other people's servers. Pure.

use super::address::Address;
use crate::Secret;
use serde::Deserialize;
use std::time::Duration;

/// One way of a `WWW-Authenticate` header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Challenge {
    Basic,
    Bearer {
        realm: String,
        service: String,
        scope: String,
    },
}

/// The known ways of all headers; a token is better than a password.
pub(crate) fn challenge<'a>(headers: impl IntoIterator<Item = &'a str>) -> Option<Challenge> {
    let all: Vec<Challenge> = headers.into_iter().flat_map(challenges).collect();
    let bearer = |c: &&Challenge| matches!(c, Challenge::Bearer { .. });
    all.iter().find(bearer).or(all.first()).cloned()
}

/// Reads `Scheme key="value", key=value, Scheme …`.
fn challenges(header: &str) -> Vec<Challenge> {
    let mut found: Vec<(String, Vec<(String, String)>)> = Vec::new();
    let mut rest = header;
    loop {
        rest = rest.trim_start_matches([' ', '\t', ',']);
        let end = rest.find([' ', '\t', ',', '=']).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        if word.is_empty() {
            break;
        }
        match after.strip_prefix('=') {
            Some(value) => {
                let (value, after) = value_of(value);
                if let Some((_, parameters)) = found.last_mut() {
                    parameters.push((word.to_ascii_lowercase(), value));
                }
                rest = after;
            }
            None => {
                found.push((word.to_ascii_lowercase(), Vec::new()));
                rest = after;
            }
        }
    }
    let known = |(scheme, parameters): (String, Vec<(String, String)>)| {
        let of = |name: &str| {
            let found = parameters.iter().find(|(key, _)| key == name);
            found.map(|(_, value)| value.clone()).unwrap_or_default()
        };
        match scheme.as_str() {
            "basic" => Some(Challenge::Basic),
            "bearer" => Some(Challenge::Bearer {
                realm: of("realm"),
                service: of("service"),
                scope: of("scope"),
            }),
            _ => None,
        }
    };
    found.into_iter().filter_map(known).collect()
}

/// A value, quoted or not, and what is after it.
fn value_of(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find([' ', '\t', ',']).unwrap_or(text.len());
        let (value, rest) = text.split_at(end);
        return (value.to_owned(), rest);
    };
    let mut value = String::new();
    let mut characters = quoted.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return (value, quoted.get(at + 1..).unwrap_or_default()),
            '\\' => value.extend(characters.next().map(|(_, escaped)| escaped)),
            character => value.push(character),
        }
    }
    (value, "")
}

/// What a token service that a registry names is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trust {
    Credentials,
    /// It is asked for a token that everybody gets.
    Nothing,
    /// It is not asked at all.
    Refused,
}

/// The rule: the service must be asked over https, unless the registry itself is not. It receives
/// credentials if it is on the registry's host, on any port, or in the domain that the registry's
/// host is in: for `registry.example.com`, `example.com` and everything below it. For
/// `example.com` that would be `com`: a domain of one label, or of two short ones like `co.uk`,
/// does not count, nor does an IP address.
pub(crate) fn trust(registry: &reqwest::Url, realm: &reqwest::Url) -> Trust {
    let is_plain = registry.scheme() == "http";
    let may_ask = realm.scheme() == "https" || (is_plain && realm.scheme() == "http");
    let (Some(own), Some(host)) = (registry.host_str(), realm.host_str()) else {
        return Trust::Refused;
    };
    if !may_ask {
        return Trust::Refused;
    }
    if own == host {
        return Trust::Credentials;
    }
    let is_name = |url: &reqwest::Url| url.domain().is_some();
    let domain = own.split_once('.').map(|(_, domain)| domain);
    let domain = domain.filter(|domain| is_name(registry) && !is_open(domain));
    let below = |domain: &str| {
        let rest = host.strip_suffix(domain);
        rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    match domain {
        Some(domain) if is_name(realm) && below(domain) => Trust::Credentials,
        _ => Trust::Nothing,
    }
}

/// Whether everybody can have a name in a domain, as far as its form tells.
fn is_open(domain: &str) -> bool {
    let labels: Vec<&str> = domain.split('.').collect();
    match labels.as_slice() {
        [second, country] => country.len() == 2 && second.len() <= 3,
        labels => labels.len() < 2,
    }
}

/// What a token is asked for: to read this repository, whatever else the registry names. A token for
/// another repository, or to write, would be of use only to somebody else.
pub(crate) fn scope(address: &Address, named: &str) -> Option<String> {
    if address.repository.is_empty() {
        return None;
    }
    let prefix = format!("repository:{}:", address.repository);
    let mut actions = vec!["pull"];
    for action in named
        .split(' ')
        .filter_map(|scope| scope.strip_prefix(prefix.as_str()))
        .flat_map(|actions| actions.split(','))
    {
        // Azure has an action of its own for the list of tags.
        if action == "metadata_read" && !actions.contains(&action) {
            actions.push(action);
        }
    }
    Some(format!("{prefix}{}", actions.join(",")))
}

/// The longest time that a token is used.
const LONGEST: Duration = Duration::from_secs(3600);
/// What a token lasts if its service says nothing.
const DEFAULT: u64 = 60;
/// A token is not used in its last seconds, in which it could end on its way.
const MARGIN: u64 = 10;

/// The answer of a token service.
#[derive(Default, Deserialize)]
#[serde(default)]
struct TokenAnswer {
    token: Option<String>,
    access_token: Option<String>,
    expires_in: Option<f64>,
}

/// The token and how long it can be used. `None`: there is none in the answer.
pub(crate) fn token(answer: &[u8]) -> Option<(Secret, Duration)> {
    let answer: TokenAnswer = serde_json::from_slice(answer).ok()?;
    let is_there = |token: &String| !token.is_empty();
    let token = answer.token.filter(is_there);
    let token = token.or(answer.access_token.filter(is_there))?;
    let is_header = token.bytes().all(|b| (0x21..0x7f).contains(&b));
    let lasts = answer.expires_in.unwrap_or_default() as u64;
    let lasts = if lasts == 0 { DEFAULT } else { lasts };
    let lasts = Duration::from_secs(lasts.saturating_sub(MARGIN)).min(LONGEST);
    is_header.then(|| (Secret::new(token), lasts))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bearer(realm: &str, service: &str, scope: &str) -> Challenge {
        Challenge::Bearer {
            realm: realm.to_owned(),
            service: service.to_owned(),
            scope: scope.to_owned(),
        }
    }

    #[test]
    fn challenges_are_read_as_registries_write_them() {
        for (header, found) in [
            (
                r#"Bearer realm="https://auth.docker.io/token",service="registry.docker.io",scope="repository:a/b:pull,push""#,
                Some(bearer(
                    "https://auth.docker.io/token",
                    "registry.docker.io",
                    "repository:a/b:pull,push",
                )),
            ),
            (r#"Basic realm="Registry""#, Some(Challenge::Basic)),
            ("basic", Some(Challenge::Basic)),
            (
                r#"Basic realm="x", Bearer realm=https://h/t, service=s"#,
                Some(bearer("https://h/t", "s", "")),
            ),
            (r#"bearer REALM = x"#, Some(bearer("", "", ""))),
            (r#"Bearer realm="a\"b\\c""#, Some(bearer("a\"b\\c", "", ""))),
            (
                r#"Bearer realm="unclosed"#,
                Some(bearer("unclosed", "", "")),
            ),
            ("Negotiate abc==", None),
            ("=x", None),
            ("", None),
        ] {
            assert_eq!(challenge([header]), found, "{header}");
        }
        let two = challenge(["Basic realm=x", r#"Bearer realm="r""#]);
        assert_eq!(two, Some(bearer("r", "", "")));
    }

    #[test]
    fn credentials_are_for_the_domain_of_the_registry() {
        use Trust::{Credentials, Nothing, Refused};
        for (registry, realm, trusted) in [
            ("https://ghcr.io", "https://ghcr.io/token", Credentials),
            (
                "https://registry-1.docker.io",
                "https://auth.docker.io/token",
                Credentials,
            ),
            (
                "https://registry.gitlab.com",
                "https://gitlab.com/jwt/auth",
                Credentials,
            ),
            (
                "https://gitlab.example.com:5050",
                "https://gitlab.example.com/jwt/auth",
                Credentials,
            ),
            (
                "https://r.cn.example.com",
                "https://auth.cn.example.com",
                Credentials,
            ),
            (
                "https://registry.example.com",
                "https://example.com.evil.org/",
                Nothing,
            ),
            (
                "https://registry.example.com",
                "https://evilexample.com/",
                Nothing,
            ),
            (
                "https://registry.example.com",
                "https://registry.example.com@evil.org/",
                Nothing,
            ),
            ("https://ghcr.io", "https://evil.io/token", Nothing),
            ("https://example.co.uk", "https://evil.co.uk/token", Nothing),
            (
                "https://r.example.co.uk",
                "https://auth.example.co.uk/token",
                Credentials,
            ),
            ("https://10.0.0.1", "https://10.0.0.1:8443/t", Credentials),
            ("https://10.0.0.1", "https://11.0.0.1/t", Nothing),
            (
                "https://registry.example.com",
                "http://registry.example.com/t",
                Refused,
            ),
            (
                "https://registry.example.com",
                "http://169.254.169.254/t",
                Refused,
            ),
            (
                "http://127.0.0.1:5000",
                "http://127.0.0.1:5001/t",
                Credentials,
            ),
            ("http://127.0.0.1:5000", "http://localhost:5001/t", Nothing),
            (
                "http://registry.example.com",
                "https://auth.example.com/t",
                Credentials,
            ),
            (
                "http://registry.example.com",
                "ftp://auth.example.com/t",
                Refused,
            ),
            ("http://registry.example.com", "file:///etc/passwd", Refused),
        ] {
            let url = |text: &str| reqwest::Url::parse(text).expect("a URL");
            assert_eq!(
                trust(&url(registry), &url(realm)),
                trusted,
                "{registry} {realm}"
            );
        }
    }

    #[test]
    fn a_token_is_only_asked_to_read_this_repository() {
        let address = |repository: &str| Address {
            origin: "https://h".to_owned(),
            repository: repository.to_owned(),
            shown: String::new(),
        };
        for (repository, named, asked) in [
            ("a/b", "", Some("repository:a/b:pull")),
            (
                "a/b",
                "repository:a/b:pull,push,delete,*",
                Some("repository:a/b:pull"),
            ),
            (
                "a/b",
                "repository:secret:pull registry:catalog:*",
                Some("repository:a/b:pull"),
            ),
            (
                "a/b",
                "repository:a/b:metadata_read",
                Some("repository:a/b:pull,metadata_read"),
            ),
            ("", "repository:user/image:pull", None),
        ] {
            assert_eq!(
                scope(&address(repository), named).as_deref(),
                asked,
                "{named}"
            );
        }
    }

    #[test]
    fn tokens_are_read() {
        for (answer, found) in [
            (r#"{"token":"t","expires_in":300}"#, Some(("t", 290))),
            (r#"{"access_token":"a","token":""}"#, Some(("a", 50))),
            (r#"{"token":"t","expires_in":99999999}"#, Some(("t", 3600))),
            (r#"{"token":"t","expires_in":-5}"#, Some(("t", 50))),
            (r#"{"token":"a\nb"}"#, None),
            (r#"{"token":5}"#, None),
            ("{}", None),
            ("<html>", None),
        ] {
            let token = token(answer.as_bytes());
            let token = token
                .as_ref()
                .map(|(token, lasts)| (token.expose(), lasts.as_secs()));
            assert_eq!(token, found, "{answer}");
        }
    }
}
