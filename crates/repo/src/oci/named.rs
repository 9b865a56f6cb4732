//! A chart in a registry that the index of another repository names: `oci://host/path/name:tag`.
//!
//! Main type: [`Named`].

use crate::{RepoAccess, RepoError, chart::is_source, url::refuse};
use tiphys_api::repo_url::RepoUrl;

/// Where such a chart is.
pub(crate) struct Named {
    /// To the folder above the chart.
    pub access: RepoAccess,
    pub name: String,
    pub tag: String,
}

impl Named {
    /// What an index writes; `None`: it is not in a registry. The credentials of the index go along
    /// if its host is the registry, or if they are for every host.
    pub fn of(written: &str, index: &RepoAccess, to_all: bool) -> Option<Result<Self, RepoError>> {
        let written = written.trim();
        is_source(written).then(|| Self::parse(written, index, to_all))
    }

    fn parse(written: &str, index: &RepoAccess, to_all: bool) -> Result<Self, RepoError> {
        let refused = || refuse(written, "a chart in a registry is oci://host/path/name:tag");
        let (folder, last) = written.rsplit_once('/').ok_or_else(refused)?;
        let (name, tag) = last.split_once(':').ok_or_else(refused)?;
        let named = RepoUrl::parse(folder).map_err(|_| refused())?;
        if name.is_empty() || tag.is_empty() || named.host.is_empty() {
            return Err(refused());
        }
        let of_index = RepoUrl::parse(index.url.split('?').next().unwrap_or_default()).ok();
        let is_plain = index.url.trim_start().starts_with("http://");
        let usual = if is_plain { 80 } else { 443 };
        let is_same_host = |url: &RepoUrl| {
            let port = |url: &RepoUrl| url.port.unwrap_or(usual);
            url.host == named.host && port(url) == port(&named)
        };
        let is_trusted = to_all || of_index.as_ref().is_some_and(is_same_host);
        let mut access = match is_trusted {
            true => index.clone(),
            false => RepoAccess {
                ca_data: index.ca_data.clone(),
                insecure: index.insecure,
                proxy: index.proxy.clone(),
                no_proxy: index.no_proxy.clone(),
                plain_http: index.plain_http,
                project: index.project.clone(),
                ..RepoAccess::default()
            },
        };
        // Whoever reads the index itself without TLS from a host has no more to lose there.
        access.plain_http |= is_plain && of_index.is_some_and(|url| url.host == named.host);
        folder.clone_into(&mut access.url);
        Ok(Self {
            access,
            name: name.to_owned(),
            tag: tag.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Secret;

    fn of(written: &str, index: &str, to_all: bool) -> Option<Result<Named, RepoError>> {
        let index = RepoAccess {
            username: "u".to_owned(),
            password: Secret::new("p"),
            ..RepoAccess::public(index)
        };
        Named::of(written, &index, to_all)
    }

    #[test]
    fn credentials_stay_with_their_host() {
        let index = "https://charts.example.test/stable";
        for (written, index, to_all, user, is_plain) in [
            (
                "oci://registry.example.test/c/web:1.0.0",
                index,
                false,
                "",
                false,
            ),
            (
                "oci://registry.example.test/c/web:1.0.0",
                index,
                true,
                "u",
                false,
            ),
            (
                "oci://charts.example.test/c/web:1.0.0",
                index,
                false,
                "u",
                false,
            ),
            (
                "oci://charts.example.test:443/c/web:1.0.0",
                index,
                false,
                "u",
                false,
            ),
            (
                "oci://charts.example.test:8443/c/web:1.0.0",
                index,
                false,
                "",
                false,
            ),
            (
                "oci://127.0.0.1:5000/c/web:1.0.0",
                "http://127.0.0.1:80/x",
                false,
                "",
                true,
            ),
            (
                "oci://a.test/c/web:1.0.0",
                "http://b.test/x",
                false,
                "",
                false,
            ),
        ] {
            let named = of(written, index, to_all).expect(written).expect(written);
            assert_eq!(named.access.username, user, "{written}");
            assert_eq!(named.access.plain_http, is_plain, "{written}");
            assert_eq!((named.name.as_str(), named.tag.as_str()), ("web", "1.0.0"));
            assert!(named.access.url.ends_with("/c") && named.access.url.starts_with("oci://"));
        }
    }

    #[test]
    fn what_is_no_chart_in_a_registry_is_said() {
        assert!(of("https://a.test/web-1.0.0.tgz", "https://a.test", false).is_none());
        assert!(of("web-1.0.0.tgz", "https://a.test", false).is_none());
        for written in [
            "oci://a.test",
            "oci://a.test/c/web",
            "oci://a.test/c/:1",
            "oci:///web:1",
            "oci://a.test/web:",
        ] {
            let error = of(written, "https://a.test", false).expect(written).err();
            assert!(error.is_some(), "{written}");
        }
    }
}
