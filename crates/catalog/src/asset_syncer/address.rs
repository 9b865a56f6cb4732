//! The URL of a repository as kubeapps reads it, which is as that of a request. Pure.

use super::{AssetSyncerError, failed};

/// # Errors
/// An http URL names no host.
pub(super) fn read(url: &str) -> Result<String, AssetSyncerError> {
    let url = url.trim();
    let is_scheme = |text: &str| text.bytes().all(|b| b.is_ascii_alphanumeric());
    let parts = url.split_once(':').filter(|(scheme, _)| is_scheme(scheme));
    let Some((scheme, rest)) = parts else {
        return Ok(url.to_owned());
    };
    let scheme = scheme.to_ascii_lowercase();
    let Some(rest) = rest.strip_prefix("//") else {
        if matches!(&*scheme, "http" | "https") {
            return Err(failed("no Host in request URL"));
        }
        return Ok(url.to_owned());
    };
    let (place, query) = rest.split_at(rest.find('?').unwrap_or(rest.len()));
    let (host, path) = place.split_at(place.find('/').unwrap_or(place.len()));
    // A request has no fragment: the sign is one of the path.
    let path = path.replace('#', "%23");
    Ok(format!("{scheme}://{host}{path}{query}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By Go's rules for the URI of a request.
    #[test]
    fn urls_are_read_as_those_of_requests() {
        for (url, wanted) in [
            (" http://h/repo ", Some("http://h/repo")),
            ("HTTP://Host:1/Repo?a=B", Some("http://Host:1/Repo?a=B")),
            ("http://h/repo#x?y#z", Some("http://h/repo%23x?y#z")),
            ("https://h", Some("https://h")),
            ("OCI://h/charts", Some("oci://h/charts")),
            ("http:127.0.0.1/repo", None),
            ("https:/h/repo", None),
            ("h/repo", Some("h/repo")),
            ("localhost:8080/repo", Some("localhost:8080/repo")),
            ("", Some("")),
        ] {
            assert_eq!(read(url).ok().as_deref(), wanted, "{url}");
        }
    }
}
