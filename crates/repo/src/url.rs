//! Validates repository URLs and decides how to access them.

use crate::{RepoAccess, RepoError, Secret};
use sha2::{Digest, Sha256};
use std::path::PathBuf;
use tiphys_api::{
    access::shown_url,
    repo_url::{Form, RepoUrl},
};

/// A validated URL. No variant contains a credential.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Location {
    /// Opened in place.
    Local(PathBuf),
    /// https or http, without userinfo.
    Http { url: String, origin: String },
    /// ssh://[user@]host[:port]/path or [user@]host:path
    Ssh { url: String },
}

impl Location {
    /// The URL for display.
    pub fn shown(&self) -> String {
        match self {
            Self::Local(path) => path.display().to_string(),
            Self::Http { url, .. } | Self::Ssh { url } => url.clone(),
        }
    }

    /// The server and its port. Empty for a local repository.
    pub fn host(&self) -> &str {
        match self {
            Self::Local(_) => "",
            Self::Http { origin, .. } => origin,
            Self::Ssh { url } => {
                let rest = url.strip_prefix("ssh://").unwrap_or(url);
                let authority = rest.split('/').next().unwrap_or(rest);
                let host = authority
                    .rsplit_once('@')
                    .map_or(authority, |(_, host)| host);
                // In the scp-like form a path follows the colon.
                if url.starts_with("ssh://") {
                    host
                } else {
                    host.split(':').next().unwrap_or(host)
                }
            }
        }
    }

    /// The folder name of the cached copy: the same for URLs of the same repository.
    pub fn cache_name(&self) -> String {
        let text = self.shown();
        let text = text.strip_suffix(".git").unwrap_or(&text);
        Sha256::digest(text)
            .iter()
            .take(20)
            .map(|b| format!("{b:02x}"))
            .collect()
    }
}

pub(crate) fn refuse(url: &str, reason: &str) -> RepoError {
    RepoError::BadUrl {
        url: shown_url(url),
        reason: reason.to_owned(),
    }
}

/// Validates the URL of `access`. User info in an https URL is moved to the returned credentials.
pub(crate) fn locate(
    access: &RepoAccess,
    allow_local: bool,
) -> Result<(Location, RepoAccess), RepoError> {
    let mut access = access.clone();
    let url = access.url.trim_matches(' ').to_owned();
    if url.starts_with('-') {
        return Err(refuse(&url, "it starts with a dash"));
    }
    if url.contains("::") && !url.contains("://") {
        return Err(refuse(
            &url,
            "only https, http, ssh and file URLs are allowed",
        ));
    }
    let parsed = RepoUrl::parse(&url).map_err(|fault| refuse(&url, &fault.to_string()))?;
    let location = match parsed.form {
        Form::Https | Form::Http => http(&parsed, &mut access),
        Form::Ssh | Form::Scp => ssh(&url, &parsed)?,
        Form::File if !allow_local => {
            return Err(refuse(
                &url,
                "repositories of the local file system are not allowed here",
            ));
        }
        Form::File => Location::Local(PathBuf::from(parsed.path)),
        Form::Oci => {
            return Err(RepoError::Unsupported(format!(
                "{}: a registry has no commits, branches or Git tags",
                shown_url(&url)
            )));
        }
        Form::Other => {
            return Err(refuse(
                &url,
                "only https, http, ssh and file URLs are allowed",
            ));
        }
        Form::Bare => {
            return Err(refuse(
                &url,
                "it is neither a URL nor user@host:path nor an absolute path",
            ));
        }
    };
    Ok((location, access))
}

fn http(url: &RepoUrl, access: &mut RepoAccess) -> Location {
    if access.username.is_empty() && access.password.is_empty() {
        access.username = percent_decode(&url.user);
        access.password = Secret::new(percent_decode(&url.password));
    }
    access.url = url.http_url();
    Location::Http {
        url: access.url.clone(),
        origin: url.origin(),
    }
}

pub(crate) fn percent_decode(text: &str) -> String {
    let mut out = Vec::new();
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        let rest = bytes.as_slice_text();
        match (
            byte,
            rest.get(..2)
                .and_then(|hex| u8::from_str_radix(hex, 16).ok()),
        ) {
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
    !text.is_empty()
        && !text.starts_with('-')
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-._+~".contains(c))
}

fn ssh(text: &str, url: &RepoUrl) -> Result<Location, RepoError> {
    if !url.user.is_empty() && !ssh_part_ok(&url.user) {
        return Err(refuse(
            text,
            "its user is not a plain name (passwords do not belong into ssh URLs)",
        ));
    }
    if !url.host.starts_with('[') && !ssh_part_ok(&url.host) {
        return Err(refuse(text, "its user or host is not a plain name"));
    }
    let path = url.path.trim_start_matches('/');
    if path.is_empty() || path.starts_with('-') {
        return Err(refuse(text, "its path is empty or starts with a dash"));
    }
    Ok(Location::Ssh { url: url.ssh_url() })
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
            (
                "https://Example.com/Org/repo.git",
                "https://example.com/Org/repo.git",
            ),
            ("https://example.com:8443/r/", "https://example.com:8443/r"),
            ("https://u:p%40ss@example.com/r", "https://example.com/r"),
            ("http://[::1]:80/r", "http://[::1]/r"),
            (
                "ssh://git@example.com:22/org/r.git",
                "ssh://git@example.com/org/r.git",
            ),
            (
                "ssh://git@example.com:2222/org/r.git",
                "ssh://git@example.com:2222/org/r.git",
            ),
            ("git@example.com:org/r.git", "git@example.com:org/r.git"),
            ("file:///srv/git/r%20s", "/srv/git/r s"),
            ("/srv/git/r", "/srv/git/r"),
        ];
        for (url, want) in cases {
            assert_eq!(at(url).map(|l| l.shown()).expect(url), want);
        }
        assert_eq!(
            at("https://a.b/r").expect("url").cache_name(),
            at("https://a.b/r.git/").expect("url").cache_name()
        );
    }

    #[test]
    fn userinfo_becomes_credentials() {
        let (_, access) = locate(
            &RepoAccess::public("https://me:s%40cret@example.com/r"),
            true,
        )
        .expect("url");
        assert_eq!(
            (
                access.username.as_str(),
                access.password.expose(),
                access.url.as_str()
            ),
            ("me", "s@cret", "https://example.com/r")
        );
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
            "https://example.com/team/../secret",
            "https://example.com/team/%2e%2e/secret",
            "https://example.com/team/%252e%252e/secret",
            "https://example.com/team%2fsecret",
            "https://example.com/team/..\\secret",
            "https://example.com/team/%00secret",
            "git@example.com:team/../secret",
            "git@example.com:team/..\\secret",
            "user:secret@example.com:team",
            "ssh://git@example.com/team/%2e%2e/x",
            "/srv/team/../x",
            "file:///srv/team/%2e%2e/x",
        ];
        for url in cases {
            let error = at(url).expect_err(url).to_string();
            assert!(
                !error.contains("user:") && !error.contains("secret@"),
                "{error}"
            );
            assert!(!error.contains('\n'), "{error}");
        }
        assert!(locate(&RepoAccess::public("/srv/git"), false).is_err());
        assert!(locate(&RepoAccess::public("file:///srv/git"), false).is_err());
    }
}
