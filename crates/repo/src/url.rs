//! Which repository URLs are accepted, and how they are reached.

use crate::{RepoAccess, RepoError, Secret};
use sha2::{Digest, Sha256};
use std::path::PathBuf;

/// A URL that was checked. No variant holds a credential.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Location {
    /// Opened where it is.
    Local(PathBuf),
    /// https or http, without userinfo.
    Http { url: String, origin: String },
    /// ssh://[user@]host[:port]/path or [user@]host:path
    Ssh { url: String },
}

impl Location {
    /// The URL as it may be shown.
    pub fn shown(&self) -> String {
        match self {
            Self::Local(path) => path.display().to_string(),
            Self::Http { url, .. } | Self::Ssh { url } => url.clone(),
        }
    }

    /// The folder name of the cached copy: the same for URLs that mean the same repository.
    pub fn cache_name(&self) -> String {
        let text = self.shown();
        let text = text.strip_suffix(".git").unwrap_or(&text);
        Sha256::digest(text).iter().take(20).map(|b| format!("{b:02x}")).collect()
    }
}

fn refuse(url: &str, reason: &str) -> RepoError {
    RepoError::BadUrl { url: shown(url), reason: reason.to_owned() }
}

/// A URL for messages: no userinfo, no control characters, not endless.
pub(crate) fn shown(url: &str) -> String {
    let url: String = url.chars().map(|c| if c.is_control() { '\u{FFFD}' } else { c }).take(300).collect();
    match url.split_once("://") {
        Some((scheme, rest)) => {
            let (authority, path) = rest.find(['/', '?', '#']).map_or((rest, ""), |i| rest.split_at(i));
            let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
            format!("{scheme}://{host}{path}")
        }
        None => url,
    }
}

/// Checks the URL of `access`. Userinfo of an https URL moves into the credentials that are returned.
pub(crate) fn locate(access: &RepoAccess, allow_local: bool) -> Result<(Location, RepoAccess), RepoError> {
    let mut access = access.clone();
    let url = access.url.trim().to_owned();
    if url.is_empty() {
        return Err(refuse(&url, "it is empty"));
    }
    if url.len() > 4096 {
        return Err(refuse(&url, "it is longer than 4096 bytes"));
    }
    if url.chars().any(|c| c.is_control() || c.is_whitespace() || c == '\u{FFFD}') {
        return Err(refuse(&url, "it has a blank, a line break or a control character"));
    }
    if url.starts_with('-') {
        return Err(refuse(&url, "it starts with a dash"));
    }
    let lower = url.to_ascii_lowercase();
    let location = if lower.starts_with("https://") || lower.starts_with("http://") {
        http(&url, &mut access)?
    } else if lower.starts_with("ssh://") {
        ssh_url(&url)?
    } else if lower.starts_with("file://") || url.starts_with('/') {
        local(&url, allow_local)?
    } else if lower.starts_with("oci://") {
        return Err(RepoError::Unsupported(format!("{}: OCI repositories are not supported yet", shown(&url))));
    } else if url.contains("://") || url.contains("::") {
        return Err(refuse(&url, "only https, http, ssh and file URLs are allowed"));
    } else {
        scp(&url)?
    };
    Ok((location, access))
}

fn http(url: &str, access: &mut RepoAccess) -> Result<Location, RepoError> {
    let (scheme, rest) = url.split_once("://").ok_or_else(|| refuse(url, "it has no scheme"))?;
    let (authority, path) = rest.find(['/', '?', '#']).map_or((rest, ""), |i| rest.split_at(i));
    let (userinfo, host) = authority.rsplit_once('@').map_or((None, authority), |(u, h)| (Some(u), h));
    if host.is_empty() || host.starts_with(['-', ':']) || !host.chars().all(|c| c.is_ascii_alphanumeric() || "-._:[]".contains(c)) {
        return Err(refuse(url, "its host is not a host name"));
    }
    if path.contains(['?', '#']) {
        return Err(refuse(url, "it has a query or a fragment"));
    }
    if let Some(userinfo) = userinfo {
        let (user, password) = userinfo.split_once(':').unwrap_or((userinfo, ""));
        if access.username.is_empty() && access.password.is_empty() {
            access.username = percent_decode(user);
            access.password = Secret::new(percent_decode(password));
        }
    }
    let origin = format!("{}://{}", scheme.to_ascii_lowercase(), host.to_ascii_lowercase());
    let url = format!("{origin}{}", path.trim_end_matches('/'));
    access.url.clone_from(&url);
    Ok(Location::Http { url, origin })
}

fn percent_decode(text: &str) -> String {
    let mut out = Vec::new();
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        let rest = bytes.as_slice_text();
        match (byte, rest.get(..2).and_then(|hex| u8::from_str_radix(hex, 16).ok())) {
            (b'%', Some(decoded)) => {
                out.push(decoded);
                bytes.next();
                bytes.next();
            }
            _ => out.push(byte),
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

trait RestOfText {
    fn as_slice_text(&self) -> String;
}

impl RestOfText for std::str::Bytes<'_> {
    fn as_slice_text(&self) -> String {
        self.clone().take(2).map(char::from).collect()
    }
}

fn ssh_part_ok(text: &str) -> bool {
    !text.is_empty() && !text.starts_with('-') && text.chars().all(|c| c.is_ascii_alphanumeric() || "-._+~".contains(c))
}

fn ssh_url(url: &str) -> Result<Location, RepoError> {
    let rest = url.get("ssh://".len()..).unwrap_or_default();
    let (authority, path) = rest.split_once('/').ok_or_else(|| refuse(url, "it has no path"))?;
    let (user, host) = authority.rsplit_once('@').map_or((None, authority), |(u, h)| (Some(u), h));
    if user.is_some_and(|u| !ssh_part_ok(u)) {
        return Err(refuse(url, "its user is not a plain name (passwords do not belong into ssh URLs)"));
    }
    let (host, port) = match host.strip_prefix('[').and_then(|h| h.split_once(']')) {
        Some((v6, port)) if v6.chars().all(|c| c.is_ascii_hexdigit() || c == ':' || c == '.') => ("v6", port.strip_prefix(':')),
        Some(_) => ("", None),
        None => host.split_once(':').map_or((host, None), |(h, p)| (h, Some(p))),
    };
    if !ssh_part_ok(host) || port.is_some_and(|p| p.parse::<u16>().is_err()) {
        return Err(refuse(url, "its host or port is not valid"));
    }
    if path.is_empty() || path.starts_with('-') {
        return Err(refuse(url, "its path is empty or starts with a dash"));
    }
    Ok(Location::Ssh { url: url.trim_end_matches('/').to_owned() })
}

fn scp(url: &str) -> Result<Location, RepoError> {
    let (authority, path) =
        url.split_once(':').ok_or_else(|| refuse(url, "it is neither a URL nor user@host:path nor an absolute path"))?;
    let (user, host) = authority.rsplit_once('@').map_or((None, authority), |(u, h)| (Some(u), h));
    if !ssh_part_ok(host) || user.is_some_and(|u| !ssh_part_ok(u)) {
        return Err(refuse(url, "its user or host is not a plain name"));
    }
    if path.is_empty() || path.starts_with('-') {
        return Err(refuse(url, "its path is empty or starts with a dash"));
    }
    Ok(Location::Ssh { url: url.trim_end_matches('/').to_owned() })
}

fn local(url: &str, allowed: bool) -> Result<Location, RepoError> {
    if !allowed {
        return Err(refuse(url, "repositories of the local file system are not allowed here"));
    }
    let path = if url.starts_with('/') {
        url.to_owned()
    } else {
        let rest = url.get("file://".len()..).unwrap_or_default();
        let rest = rest.strip_prefix("localhost").unwrap_or(rest);
        if !rest.starts_with('/') {
            return Err(refuse(url, "a file URL needs an absolute path and no host"));
        }
        percent_decode(rest)
    };
    if path.contains('\0') {
        return Err(refuse(url, "it has a NUL"));
    }
    Ok(Location::Local(PathBuf::from(path)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(url: &str) -> Result<Location, RepoError> {
        locate(&RepoAccess::public(url), true).map(|(l, _)| l)
    }

    #[test]
    fn accepted() {
        let cases = [
            ("https://Example.com/Org/repo.git", "https://example.com/Org/repo.git"),
            ("https://example.com:8443/r/", "https://example.com:8443/r"),
            ("https://u:p%40ss@example.com/r", "https://example.com/r"),
            ("http://[::1]:80/r", "http://[::1]:80/r"),
            ("ssh://git@example.com:22/org/r.git", "ssh://git@example.com:22/org/r.git"),
            ("git@example.com:org/r.git", "git@example.com:org/r.git"),
            ("file:///srv/git/r%20s", "/srv/git/r s"),
            ("/srv/git/r", "/srv/git/r"),
        ];
        for (url, want) in cases {
            assert_eq!(at(url).map(|l| l.shown()).expect(url), want);
        }
        assert_eq!(at("https://a.b/r").expect("url").cache_name(), at("https://a.b/r.git/").expect("url").cache_name());
    }

    #[test]
    fn userinfo_becomes_credentials() {
        let (_, access) = locate(&RepoAccess::public("https://me:s%40cret@example.com/r"), true).expect("url");
        assert_eq!((access.username.as_str(), access.password.expose(), access.url.as_str()), ("me", "s@cret", "https://example.com/r"));
    }

    #[test]
    fn refused_without_showing_secrets() {
        let cases = [
            "",
            "ext::sh -c touch% /tmp/x",
            "ext::sh",
            "git://example.com/r",
            "fd::17/foo",
            "ftp://example.com/r",
            "--upload-pack=touch /tmp/x",
            "-oProxyCommand=x:y",
            "ssh://-oProxyCommand=x/y",
            "ssh://-l@host/y",
            "ssh://host/-y",
            "ssh://host",
            "ssh://user:secret@host/r",
            "git@-host:x",
            "git@host:-x",
            "-git@host:x",
            "https://user:secret@/x",
            "https://exa\nmple.com/r",
            "https://example.com/r\r\nX: y",
            "https://example.com/r?x=y",
            "https://user:secret@exa|mple.com/r",
            "file://host/x",
            "relative/path",
            "https://",
            "oci://example.com/x",
        ];
        for url in cases {
            let error = at(url).expect_err(url).to_string();
            assert!(!error.contains("secret"), "{error}");
            assert!(!error.contains('\n'), "{error}");
        }
        assert!(locate(&RepoAccess::public("/srv/git"), false).is_err());
        assert!(locate(&RepoAccess::public("file:///srv/git"), false).is_err());
    }
}
