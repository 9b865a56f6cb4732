//! What chart repositories and registries both know of a chart: how it is named, and whether it is
//! in a registry.
//!
//! Main types: [`ChartName`] and [`RemoteOptions`].

use crate::RepoAccess;
use std::time::Duration;
use tiphys_api::source::ApplicationSource;

/// How the URL of a source in a registry begins.
pub(crate) const OCI_SCHEME: &str = "oci://";

/// Whether a URL is an OCI source, and not a Git repository.
pub(crate) fn is_source(url: &str) -> bool {
    url.starts_with(OCI_SCHEME)
}

/// Whether the charts at a URL are in a registry: only classic repositories have a scheme of their
/// own.
pub(crate) fn has_charts(url: &str) -> bool {
    is_source(url) || !(url.contains("://") || url.starts_with('/'))
}

/// A chart of a repository.
#[derive(Clone, Copy)]
pub(crate) struct ChartName<'a> {
    pub access: &'a RepoAccess,
    pub name: &'a str,
    /// Send the credentials also to another host that the archive is on.
    pub pass_credentials: bool,
}

impl<'a> ChartName<'a> {
    /// The chart of a source, if it is one.
    pub fn of(access: &'a RepoAccess, source: &'a ApplicationSource) -> Option<Self> {
        let helm = source.helm.as_ref();
        // An OCI source is one whatever else it has, as in Argo CD.
        if is_source(&source.repo_url) {
            return None;
        }
        (!source.chart.is_empty()).then(|| Self {
            access,
            name: &source.chart,
            pass_credentials: helm.is_some_and(|helm| helm.pass_credentials),
        })
    }

    pub fn is_in_registry(&self) -> bool {
        has_charts(&self.access.url)
    }
}

/// How a repository is read.
#[derive(Clone, Debug)]
pub struct RemoteOptions {
    /// Send the credentials to every address that the index names, not only to the repository's
    /// own scheme, host and port.
    pub pass_credentials: bool,
    /// The User-Agent; empty means Tiphys' own.
    pub agent: String,
    /// For one request.
    pub timeout: Duration,
}
