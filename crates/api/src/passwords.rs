//! Passwords in URLs, and in texts with URLs: removed or replaced before these are shown.
//!
//! Main functions: [`shown_url`], [`hide_passwords`], which keeps what may be sent back, and
//! [`without_passwords`].

use crate::repo_url::{Form, RepoUrl};
use serde_json::Value;

/// A URL for messages: without user and password, without control characters, and shortened.
pub fn shown_url(url: &str) -> String {
    let text: String = url
        .chars()
        .map(|c| if c.is_control() { '\u{FFFD}' } else { c })
        .take(300)
        .collect();
    let (scheme, rest) = text
        .split_once("://")
        .map_or(("", text.as_str()), |(scheme, rest)| (scheme, rest));
    let prefix = if scheme.is_empty() {
        String::new()
    } else {
        format!("{scheme}://")
    };
    match RepoUrl::parse(url) {
        // The user is part of an ssh URL.
        Ok(parsed) if matches!(parsed.form, Form::Ssh | Form::Scp | Form::File | Form::Bare) => {
            text
        }
        Ok(_) => {
            let (authority, path) = rest.find('/').map_or((rest, ""), |i| rest.split_at(i));
            let host = authority
                .rsplit_once('@')
                .map_or(authority, |(_, host)| host);
            let shown = format!("{prefix}{host}{path}");
            hide_query(&shown).unwrap_or(shown)
        }
        // It is unknown which part is the password.
        Err(_) => {
            let rest = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
            let shown = format!("{prefix}{rest}");
            hide_query(&shown).unwrap_or(shown)
        }
    }
}

/// The longest text that is read as JSON: Kubernetes accepts no larger annotations.
const MOST_JSON: usize = 256 << 10;
/// Replaces a password in a URL that is shown and may be sent back.
pub const HIDDEN: &str = "******";

/// Whether the user of a URL is an access token, which Git hosts accept without a password. User
/// names are shorter, and people must be able to see them.
fn is_token(user: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    user.len() >= 20 && user.chars().all(is_plain) && user.contains(|c: char| c.is_ascii_digit())
}

/// Parameters of queries that are credentials: tokens of Git hosts, and signatures of storages.
const SECRET_PARAMETERS: [&str; 14] = [
    "access_token",
    "api_key",
    "apikey",
    "auth_token",
    "client_secret",
    "job_token",
    "password",
    "private_token",
    "secret",
    "sig",
    "token",
    "x-amz-credential",
    "x-amz-security-token",
    "x-amz-signature",
];

/// The URL with [`HIDDEN`] for the credentials in its query; `None` if there are none.
fn hide_query(url: &str) -> Option<String> {
    let (before, query) = url.split_once('?')?;
    let (query, fragment) = query.find('#').map_or((query, ""), |at| query.split_at(at));
    let mut found = false;
    let parameters: Vec<String> = query
        .split('&')
        .map(|parameter| match parameter.split_once('=') {
            Some((name, value))
                if !value.is_empty()
                    && SECRET_PARAMETERS.contains(&&*name.to_ascii_lowercase()) =>
            {
                found = true;
                format!("{name}={HIDDEN}")
            }
            _ => parameter.to_owned(),
        })
        .collect();
    found.then(|| format!("{before}?{}{fragment}", parameters.join("&")))
}

/// The URL with [`HIDDEN`] for its password, for the token that is its user, and for tokens in its
/// query; `None` if it has none of them.
pub fn hide_password(url: &str) -> Option<String> {
    let hidden = hide_login(url);
    hide_query(hidden.as_deref().unwrap_or(url)).or(hidden)
}

fn hide_login(url: &str) -> Option<String> {
    let (scheme, rest) = url
        .split_once("://")
        .map_or(("", url), |(scheme, rest)| (scheme, rest));
    // In an invalid URL it is unknown which part is the password.
    let end = if RepoUrl::parse(url).is_ok() {
        rest.find('/').unwrap_or(rest.len())
    } else {
        rest.len()
    };
    let (login, _) = rest.get(..end)?.rsplit_once('@')?;
    let hidden = login_with_hidden(login, is_http(scheme))?;
    let prefix = if scheme.is_empty() {
        String::new()
    } else {
        format!("{scheme}://")
    };
    Some(format!("{prefix}{hidden}{}", &rest[login.len()..]))
}

/// Whether a scheme is HTTP's, alone or behind another: `git::https`, `git+https`.
fn is_http(scheme: &str) -> bool {
    let scheme = scheme.to_ascii_lowercase();
    scheme.ends_with("http") || scheme.ends_with("https")
}

/// The part of a URL before its `@` with what is secret hidden, if anything is. Hosts of Git take a
/// token as the user name, with no password, an empty one, or `x-oauth-basic`.
fn login_with_hidden(login: &str, is_http: bool) -> Option<String> {
    let (user, password) = match login.split_once(':') {
        Some((user, password)) => (user, Some(password)),
        None => (login, None),
    };
    let no_password = matches!(password, Some("" | "x-oauth-basic"));
    let is_secret = is_http && !user.is_empty() && (no_password || is_token(user));
    let user = if is_secret { HIDDEN } else { user };
    match password {
        Some(password) if !password.is_empty() => Some(format!("{user}:{HIDDEN}")),
        _ => is_secret.then(|| user.to_owned()),
    }
}

/// Whether a text has [`HIDDEN`] where [`hide_password`] puts it: such a URL cannot be used, and
/// nobody means to store it.
pub fn has_hidden(text: &str) -> bool {
    text.match_indices(HIDDEN).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + HIDDEN.len()..]);
        if after.starts_with('@') {
            return before.ends_with([':', '/']);
        }
        let parameter = before
            .strip_suffix('=')
            .and_then(|before| before.rfind(['?', '&']).map(|at| &before[at + 1..]));
        parameter.is_some_and(|name| SECRET_PARAMETERS.contains(&&*name.to_ascii_lowercase()))
    })
}

/// A text with [`HIDDEN`] for the passwords of the URLs in it: one that is shown and may be sent
/// back. Messages, which are never sent back, are better off with [`without_passwords`].
pub fn hide_passwords(text: &str) -> String {
    let hide = |url: &str| hide_password(url).unwrap_or_else(|| url.to_owned());
    if is_url(text) {
        return hide(text);
    }
    if let Some(shown) = hide_in_json(text) {
        return shown;
    }
    of_words(text, |word| match is_url(word) {
        true => hide(word),
        false => word_with_hidden(word),
    })
}

/// JSON in a text, such as the last applied manifest in an annotation, string by string: a string
/// may be a URL as a whole, and JSON writes characters such as `&` in other ways, too. `None`:
/// nothing is hidden in it.
fn hide_in_json(text: &str) -> Option<String> {
    let is_candidate = text.len() <= MOST_JSON
        && text.trim_start().starts_with(['{', '['])
        && text.contains(['@', '?', '\\']);
    if !is_candidate {
        return None;
    }
    let mut json: Value = serde_json::from_str(text).ok()?;
    // Read as words it would be damaged: they may end between a backslash and what it escapes.
    Some(match hide_in_strings(&mut json) {
        true => json.to_string(),
        false => text.to_owned(),
    })
}

/// Whether something was hidden.
pub fn hide_in_strings(json: &mut Value) -> bool {
    match json {
        Value::String(text) => {
            let hidden = hide_passwords(text);
            let is_changed = hidden != *text;
            *text = hidden;
            is_changed
        }
        Value::Array(items) => items
            .iter_mut()
            .fold(false, |found, item| hide_in_strings(item) | found),
        Value::Object(members) => {
            let keys: Vec<(String, String)> = members
                .keys()
                .map(|key| (key.clone(), hide_passwords(key)))
                .filter(|(key, hidden)| key != hidden)
                .collect();
            let mut found = !keys.is_empty();
            for (key, hidden) in keys {
                let member = members.remove(&key).unwrap_or_default();
                members.insert(hidden, member);
            }
            for member in members.values_mut() {
                found |= hide_in_strings(member);
            }
            found
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Whether all of a text is one URL, so that its password ends where its host begins, whatever
/// characters it has.
fn is_url(text: &str) -> bool {
    let is_scheme = |c: char| c.is_ascii_alphanumeric() || "+-.:".contains(c);
    match text.split_once("://") {
        Some((scheme, rest)) => {
            scheme.chars().all(is_scheme)
                && !rest.contains("://")
                && !rest.contains(|c: char| c.is_whitespace() || "\"'`<>{}".contains(c))
        }
        None => false,
    }
}

fn word_with_hidden(word: &str) -> String {
    let (prefix, rest) = match word.split_once("://") {
        Some((before, _)) => word.split_at(before.len() + "://".len()),
        None => ("", word),
    };
    let is_http = is_http(prefix.trim_end_matches("://"));
    let end = match prefix {
        "" => rest.len(),
        _ => rest.find(['/', '?', '#']).unwrap_or(rest.len()),
    };
    // An image with a digest looks as if it had a login.
    let is_digest = |host: &str| host.starts_with("sha256:") || host.starts_with("sha512:");
    let shown = match rest[..end].rsplit_once('@') {
        Some((login, host)) if !(prefix.is_empty() && is_digest(host)) => {
            let host = &rest[login.len()..];
            match login_with_hidden(login, is_http) {
                Some(hidden) => format!("{prefix}{hidden}{host}"),
                None => word.to_owned(),
            }
        }
        _ => word.to_owned(),
    };
    match prefix {
        "" => shown,
        _ => hide_query(&shown).unwrap_or(shown),
    }
}

/// A message without the passwords of URLs in it, whatever its source.
pub fn without_passwords(message: &str) -> String {
    of_words(message, word_without_password)
}

/// A text whose words that may have a password are replaced.
fn of_words(text: &str, replaced: impl Fn(&str) -> String) -> String {
    if !text.contains('@') && !text.contains('?') {
        return text.to_owned();
    }
    let ends = |c: char| c.is_whitespace() || "\"'`<>(){}|,".contains(c);
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(ends).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        out.push_str(&replaced(word));
        let next = after.chars().next().map_or(0, char::len_utf8);
        out.push_str(&after[..next]);
        rest = &after[next..];
    }
    out
}

fn word_without_password(word: &str) -> String {
    let Some((before, after)) = word.split_once("://") else {
        // `user:password@host:path`; an image with a digest looks similar.
        return match word.rsplit_once('@') {
            Some((login, rest))
                if login.contains(':')
                    && !rest.starts_with("sha256:")
                    && !rest.starts_with("sha512:") =>
            {
                rest.to_owned()
            }
            _ => word.to_owned(),
        };
    };
    let (authority, path) = after
        .find(['/', '?', '#'])
        .map_or((after, ""), |i| after.split_at(i));
    let shown = match authority.rsplit_once('@') {
        Some((login, host)) if login.contains(':') || before != "ssh" => {
            format!("{before}://{host}{path}")
        }
        _ => word.to_owned(),
    };
    hide_query(&shown).unwrap_or(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_has_no_password() {
        for (url, shown) in [
            ("https://u:CANARY@h/r.git", "https://h/r.git"),
            ("https://CANARY@h/r.git", "https://h/r.git"),
            ("https://u:CANARY@h/../r", "https://h/../r"),
            ("https://u:CAN/ARY@h/r", "https://h/r"),
            ("u:CANARY@h:r", "h:r"),
            ("u:CANARY@h/r", "h/r"),
            ("u@x:CANARY@h:r", "h:r"),
            ("ssh://u:CANARY@h/r", "ssh://h/r"),
            ("git@h:r", "git@h:r"),
            ("ssh://git@h/r", "ssh://git@h/r"),
            ("https://h/@scope/r", "https://h/@scope/r"),
            (
                "https://h/v.yaml?ref=a&private_token=CANARY",
                "https://h/v.yaml?ref=a&private_token=******",
            ),
        ] {
            assert_eq!(shown_url(url), shown);
        }
        for (url, hidden) in [
            ("https://u:CANARY@h/r.git", Some("https://u:******@h/r.git")),
            ("u:CANARY@h:r", Some("u:******@h:r")),
            ("http://u:CAN/ARY@h:80", Some("http://u:******@h:80")),
            ("https://u@h/r", None),
            ("https://some-organization@h/r", None),
            (
                "https://ghp_0123456789abcdefCANARY@h/r",
                Some("https://******@h/r"),
            ),
            (
                "HTTPS://CANARY:x-oauth-basic@h/r",
                Some("HTTPS://******:******@h/r"),
            ),
            ("git::https://CANARY:@h/r", Some("git::https://******@h/r")),
            (
                "git+https://ghp_0123456789abcdefCANARY@h/r",
                Some("git+https://******@h/r"),
            ),
            (
                "https://ghp_0123456789abcdefCANARY:CANARY@h/r",
                Some("https://******:******@h/r"),
            ),
            ("ssh://git:@h/r", None),
            ("ssh://ghp_0123456789abcdefCANARY@h/r", None),
            ("git@h:r", None),
            ("https://h:80/@a/r", None),
            (
                "https://u:CANARY@h/v?X-Amz-Signature=CANARY&a=b#c",
                Some("https://u:******@h/v?X-Amz-Signature=******&a=b#c"),
            ),
            ("git::https://h/r?ref=v1&token=", None),
        ] {
            assert_eq!(hide_password(url).as_deref(), hidden);
            assert_eq!(has_hidden(hidden.unwrap_or(url)), hidden.is_some(), "{url}");
        }
        for text in [
            "******",
            "a:******",
            "https://h/?ref=******",
            "x=******&y",
            "u:p@h:r",
        ] {
            assert!(!has_hidden(text), "{text}");
        }
    }

    #[test]
    fn texts_with_urls_are_shown_without_passwords() {
        for (text, hidden) in [
            ("https://u:CAN/ARY,CANARY@h/r", "https://u:******@h/r"),
            ("u:CANARY@h:r", "u:******@h:r"),
            (
                "{\"a\":\"https://u:CANARY@h/r\",\"b\":\"u:CANARY@h:r\"}",
                "{\"a\":\"https://u:******@h/r\",\"b\":\"u:******@h:r\"}",
            ),
            (
                "x=https://ghp_0123456789abcdefCANARY@h/r and https://h/v?token=CANARY",
                "x=https://******@h/r and https://h/v?token=******",
            ),
            (
                r#"{"b":"https://u:CAN,(|ARY@h/r","a":["https://h/?a=b\u0026token=CANARY"]}"#,
                r#"{"a":["https://h/?a=b&token=******"],"b":"https://u:******@h/r"}"#,
            ),
            ("nginx:1@sha256:aa", "nginx:1@sha256:aa"),
            (
                "https://{{user}}:{{token}}@h/r",
                "https://{{user}}:{{token}}@h/r",
            ),
            (
                "https://org@h/r git@h:r a@b.c?",
                "https://org@h/r git@h:r a@b.c?",
            ),
        ] {
            assert_eq!(hide_passwords(text), hidden);
            assert_eq!(hide_passwords(hidden), hidden, "once more changes nothing");
            assert_eq!(has_hidden(hidden), text != hidden, "{hidden}");
        }
        for (message, shown) in [
            (
                "cannot reach https://u:CANARY@h/r: no",
                "cannot reach https://h/r: no",
            ),
            (
                "Get \"http://CANARY@proxy:80\": refused",
                "Get \"http://proxy:80\": refused",
            ),
            ("repo u:CANARY@h:r failed", "repo h:r failed"),
            (
                "image nginx:1@sha256:aa by a@b.c",
                "image nginx:1@sha256:aa by a@b.c",
            ),
            ("ssh://git@h/r and git@h:r", "ssh://git@h/r and git@h:r"),
            (
                "Get \"https://h/v?access_token=CANARY&x=1\": 404; what?",
                "Get \"https://h/v?access_token=******&x=1\": 404; what?",
            ),
        ] {
            assert_eq!(without_passwords(message), shown);
        }
    }
}
