//! Addresses of repositories in a registry, and the names of what is in them.
//!
//! Main type: [`Address`].

use crate::{RepoAccess, RepoError, chart::OCI_SCHEME as SCHEME, url::refuse};
use tiphys_api::{
    access::shown_url,
    repo_url::{Form, RepoUrl},
};

/// A repository of a registry, or the registry itself if `repository` is empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    /// Scheme, host and port of the registry.
    pub origin: String,
    pub repository: String,
    /// Host, port and repository, for messages.
    pub shown: String,
}

impl Address {
    /// The registry of an access; with `chart`, the chart below its path.
    pub fn of(access: &RepoAccess, chart: Option<&str>) -> Result<Self, RepoError> {
        let written = access.url.trim_matches(' ');
        let refused = |reason: &str| refuse(written, reason);
        let rest = written.strip_prefix(SCHEME).unwrap_or(written);
        if rest.contains("://") {
            return Err(refused("an OCI repository is oci://host/path or host/path"));
        }
        let parsed = RepoUrl::parse(&format!("{SCHEME}{rest}"));
        let url = parsed.map_err(|e| refused(&e.to_string()))?;
        debug_assert!(url.form == Form::Oci, "the scheme was just written");
        if !(url.user.is_empty() && url.password.is_empty()) {
            return Err(refused(
                "it has a user: credentials for registries belong into a repository Secret",
            ));
        }
        let mut repository = url.path.trim_matches('/').to_owned();
        if let Some(chart) = chart {
            if !repository.is_empty() {
                repository.push('/');
            }
            repository.push_str(chart.trim_matches('/'));
        }
        if !repository.is_empty() && !repository.split('/').all(is_segment) {
            return Err(refused(&format!(
                "invalid reference: invalid repository {repository:?}"
            )));
        }
        let port = url.port.map(|port| format!(":{port}")).unwrap_or_default();
        let scheme = if access.plain_http { "http" } else { "https" };
        // Docker Hub answers under another name than the one it is written with.
        let host = match url.host.as_str() {
            "docker.io" => "registry-1.docker.io",
            host => host,
        };
        let slash = if repository.is_empty() { "" } else { "/" };
        Ok(Self {
            origin: format!("{scheme}://{host}{port}"),
            shown: shown_url(&format!("{}{port}{slash}{repository}", url.host)),
            repository,
        })
    }
}

/// A segment of a repository's name: words in lower case, with separators only between them.
fn is_segment(segment: &str) -> bool {
    let alphanumeric =
        |b: Option<&u8>| b.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    let bytes = segment.as_bytes();
    alphanumeric(bytes.first())
        && alphanumeric(bytes.last())
        && bytes
            .iter()
            .all(|b| alphanumeric(Some(b)) || b"._-".contains(b))
        && !segment.contains("..")
}

/// The tag of a version: registries have no `+` in tags.
pub(crate) fn tag_of(version: &str) -> String {
    version.replace('+', "_")
}

/// The version that a tag stands for.
pub(crate) fn version_of(tag: &str) -> String {
    tag.replace('_', "+")
}

pub(crate) fn is_tag(text: &str) -> bool {
    let word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    let mut bytes = text.bytes();
    text.len() <= 128
        && bytes.next().is_some_and(word)
        && bytes.all(|b| word(b) || b == b'.' || b == b'-')
}

pub(crate) fn is_digest(text: &str) -> bool {
    text.strip_prefix("sha256:").is_some_and(|hex| {
        hex.len() == 64
            && hex
                .bytes()
                .all(|b| b.is_ascii_digit() || matches!(b, b'a'..=b'f'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_with_and_without_a_scheme() {
        for (url, chart, plain, origin, repository) in [
            (
                "oci://ghcr.io/org/app",
                None,
                false,
                "https://ghcr.io",
                "org/app",
            ),
            (
                "ghcr.io/org",
                Some("app"),
                false,
                "https://ghcr.io",
                "org/app",
            ),
            (
                "ghcr.io",
                Some("org/app"),
                false,
                "https://ghcr.io",
                "org/app",
            ),
            (
                "oci://ghcr.io:443/org/",
                None,
                false,
                "https://ghcr.io",
                "org",
            ),
            (
                "localhost:5000",
                Some("app"),
                true,
                "http://localhost:5000",
                "app",
            ),
            (
                "localhost:5000/c",
                Some("app"),
                true,
                "http://localhost:5000",
                "c/app",
            ),
            (
                "oci://[::1]:5000/a__b",
                None,
                true,
                "http://[::1]:5000",
                "a__b",
            ),
            (
                "oci://registry:5000",
                None,
                false,
                "https://registry:5000",
                "",
            ),
            (
                "docker.io/org",
                Some("app"),
                false,
                "https://registry-1.docker.io",
                "org/app",
            ),
        ] {
            let access = RepoAccess {
                plain_http: plain,
                ..RepoAccess::public(url)
            };
            let found = Address::of(&access, chart).expect(url);
            let found = (found.origin.as_str(), found.repository.as_str());
            assert_eq!(found, (origin, repository), "{url}");
        }
        for url in [
            "https://ghcr.io/org",
            "oci://ann:hunter2@ghcr.io/org",
            "oci://ghcr.io/Org",
            "oci://ghcr.io/org/../other",
            "oci://ghcr.io/org/-x",
            "oci://ghcr.io/org/a..b",
            "oci://ghcr.io/org?x=y",
            "oci:///org",
            "oci://",
            "",
        ] {
            let refused = Address::of(&RepoAccess::public(url), None).expect_err(url);
            assert!(!refused.to_string().contains("hunter2"), "{refused}");
        }
        let chart = Address::of(&RepoAccess::public("h/c"), Some("../x"));
        chart.expect_err("a chart is below its repository");
    }

    #[test]
    fn tags_and_digests() {
        for (text, tag) in [
            ("1.2.3_b1", true),
            ("_x", true),
            ("1.2.3+b1", false),
            (".x", false),
            ("a/b", false),
            ("a?b", false),
            ("", false),
        ] {
            assert_eq!(is_tag(text), tag, "{text}");
        }
        assert!(!is_tag(&"a".repeat(129)));
        let hex = "0123456789abcdef".repeat(4);
        assert!(is_digest(&format!("sha256:{hex}")));
        for wrong in [
            hex.clone(),
            format!("sha512:{hex}"),
            format!("sha256:{}", hex.to_uppercase()),
            format!("sha256:{hex}0"),
        ] {
            assert!(!is_digest(&wrong), "{wrong}");
        }
        assert_eq!(tag_of("1.2.2+b1"), "1.2.2_b1");
        assert_eq!(version_of("1.2.2_b1"), "1.2.2+b1");
    }
}
