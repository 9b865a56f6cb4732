//! Which chart of the catalogue a source is from, and which versions come after it.

use crate::{
    CatalogError, RepoId, Store,
    model::{Chart, ChartVersion},
    store::{Kept, KnownTag, tag_of},
};
use std::{cmp::Ordering, collections::BTreeMap};
use tiphys_api::{repo_url::RepoUrl, source::ApplicationSource};
use tiphys_gocompat::semver::Version;

/// What the annotations of an Application from the catalogue begin with.
pub const ANNOTATION: &str = "catalog.tiphys.dev";

/// The chart that a source is from.
pub struct Origin {
    pub repo: RepoId,
    pub chart: Chart,
    /// `None`: it is not in a registry.
    tags: Option<BTreeMap<String, KnownTag>>,
}

impl Origin {
    /// # Errors
    /// The database fails.
    pub fn new(store: &Store, repo: RepoId, chart: Chart) -> Result<Self, CatalogError> {
        let tags = match store.is_registry(&repo)? {
            true => Some(store.tags(&repo, &chart.id)?),
            false => None,
        };
        Ok(Self { repo, chart, tags })
    }

    /// `None`: no repository of the catalogue has the chart. It is recognized by its address: a
    /// chart of the same name elsewhere is another one.
    ///
    /// # Errors
    /// The database fails.
    pub fn of(store: &Store, source: &ApplicationSource) -> Result<Option<Self>, CatalogError> {
        if source.chart.is_empty() {
            return Ok(None);
        }
        let name = source.chart.rsplit('/').next().unwrap_or_default();
        let wanted = whole(&source.repo_url, &source.chart);
        for found in store.named(name)? {
            let Some(chart) = store.chart(&found.repo, &found.chart_id)? else {
                continue;
            };
            let origin = Self::new(store, found.repo, chart)?;
            // Another repository with the same address has the same charts.
            if origin.address() == wanted {
                return Ok(Some(origin));
            }
        }
        Self::at(store, &wanted)
    }

    /// The chart of a registry at an address: it may call itself otherwise.
    fn at(store: &Store, wanted: &str) -> Result<Option<Self>, CatalogError> {
        for status in store.repos()? {
            let base = format!("{}/", whole(&status.url, ""));
            let Some(path) = wanted.strip_prefix(&base) else {
                continue;
            };
            let id = format!("{}/{}", status.id.name, path.replace('/', "%2F"));
            let Some(chart) = store.chart(&status.id, &id)? else {
                continue;
            };
            let origin = Self::new(store, status.id, chart)?;
            if origin.address() == wanted {
                return Ok(Some(origin));
            }
        }
        Ok(None)
    }

    /// The repository and the chart's name as the source of an Application writes them: registries
    /// without a scheme, with all of the path but its end.
    pub fn place(&self) -> (String, String) {
        address(&self.chart, self.tags.is_some())
    }

    /// What a source says for a version: the tag of a registry, which need not be the version that
    /// the chart says it has.
    pub fn revision<'a>(&'a self, version: &'a ChartVersion) -> &'a str {
        let tag = self.tags.as_ref().and_then(|tags| tag_of(tags, version));
        // A registry cannot have a `+` in a tag: Helm writes `_`, and reads it as one.
        let is_written_so = |tag: &&str| tag.replace('_', "+") != version.version;
        tag.filter(is_written_so).unwrap_or(&version.version)
    }

    /// The newest version after the one of a revision. Prereleases count only for those that have
    /// one.
    pub fn newer(&self, revision: &str) -> Option<String> {
        let installed = self.installed(revision);
        newer(
            &self.chart,
            installed.map_or(revision, |known| &known.version),
        )
    }

    /// Repository and chart in one canonical form.
    pub fn address(&self) -> String {
        let (url, name) = self.place();
        whole(&url, &name)
    }

    /// Remembers the defaults of an installed version while the catalogue has them.
    ///
    /// # Errors
    /// The database fails.
    pub fn keep(&self, store: &Store, version: &str) -> Result<(), CatalogError> {
        let Some(version) = self.installed(version) else {
            return Ok(());
        };
        let (address, version) = (self.address(), &version.version);
        if store.kept(&address, version)?.is_some() {
            return Ok(());
        }
        let files = store.files(&self.repo, &self.chart.id, version)?;
        files.map_or(Ok(()), |files| {
            let kept = Kept {
                digest: files.digest,
                defaults: files.values,
            };
            store.keep(&address, version, &kept)
        })
    }

    /// A version as it is listed.
    pub fn version(&self, version: &str) -> Option<&ChartVersion> {
        let mut versions = self.chart.versions.iter();
        versions.find(|known| known.version == version)
    }

    /// The same of a revision, which is a tag or may have a `v` in front, as Helm reads versions.
    pub fn installed(&self, revision: &str) -> Option<&ChartVersion> {
        let tags = self.tags.as_ref();
        if let Some(tag) = tags.and_then(|tags| tags.get(revision))
            && let Some(version) = self.version(&tag.version)
        {
            return Some(version);
        }
        self.version(revision).or_else(|| {
            let wanted = Version::parse(revision).ok()?;
            let mut versions = self.chart.versions.iter();
            versions.find(|known| {
                let known = Version::parse(&known.version);
                known.is_ok_and(|known| {
                    known.precedence(&wanted) == Ordering::Equal
                        && known.metadata == wanted.metadata
                })
            })
        })
    }
}

fn whole(url: &str, name: &str) -> String {
    let url = url.trim_end_matches('/');
    let url = url.strip_prefix("oci://").unwrap_or(url);
    let url = format!("{url}/{name}");
    // What is no URL is compared as it is.
    RepoUrl::parse(&url).map_or_else(|_| url.clone(), |url| url.canonical())
}

fn address(chart: &Chart, is_registry: bool) -> (String, String) {
    if !is_registry {
        return (chart.repo.url.clone(), chart.name.clone());
    }
    let url = &chart.repo.url;
    let base = url.split_once("://").map_or(&**url, |(_, rest)| rest);
    let path = format!("{}/{}", base.trim_end_matches('/'), chart.path());
    let (url, name) = path.rsplit_once('/').unwrap_or((&path, ""));
    (url.to_owned(), name.to_owned())
}

fn newer(chart: &Chart, version: &str) -> Option<String> {
    let current = Version::parse(version).ok()?;
    let versions = chart.versions.iter();
    let versions = versions.filter_map(|known| Version::parse(&known.version).ok());
    let newest = versions
        .filter(|known| known.prerelease.is_empty() || !current.prerelease.is_empty())
        .max_by(Version::precedence)?;
    let is_newer = newest.precedence(&current) == Ordering::Greater;
    is_newer.then(|| newest.original().to_owned())
}

/// The annotations of an Application that has a version of a chart. `repository` is what users
/// call it. A digest that is not known is empty.
pub fn annotations(
    repository: &str,
    chart: &str,
    version: &str,
    digest: &str,
) -> BTreeMap<String, String> {
    [
        ("repository", repository),
        ("chart", chart),
        ("version", version),
        ("digest", digest),
    ]
    .into_iter()
    .map(|(key, value)| (format!("{ANNOTATION}/{key}"), value.to_owned()))
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::RepoRef;

    fn chart(url: &str, id: &str, versions: &[&str]) -> Chart {
        let versions = versions.iter().map(|version| ChartVersion {
            version: (*version).to_owned(),
            ..ChartVersion::default()
        });
        Chart {
            id: id.to_owned(),
            name: "web".to_owned(),
            repo: RepoRef {
                url: url.to_owned(),
                ..RepoRef::default()
            },
            versions: versions.collect(),
            ..Chart::default()
        }
    }

    #[test]
    fn newer_versions_are_found() {
        let known = chart(
            "https://x",
            "r/web",
            &["2.0.0-rc.1", "1.10.0", "1.9.0", "junk"],
        );
        for (version, newest) in [
            ("1.9.0", Some("1.10.0")),
            ("v1.2", Some("1.10.0")),
            ("1.10.0", None),
            ("1.11.0", None),
            ("2.0.0-beta", Some("2.0.0-rc.1")),
            ("1.x", None),
        ] {
            assert_eq!(newer(&known, version).as_deref(), newest, "{version}");
        }
    }

    #[test]
    fn addresses_are_those_of_sources() {
        for (is_registry, url, id, wanted) in [
            (
                false,
                "https://charts.example/x",
                "r/web",
                ("https://charts.example/x", "web"),
            ),
            (
                true,
                "https://registry.example/charts/",
                "r/team%2Fweb",
                ("registry.example/charts/team", "web"),
            ),
            (
                true,
                "oci://registry.example",
                "r/web",
                ("registry.example", "web"),
            ),
        ] {
            let (url, name) = address(&chart(url, id, &[]), is_registry);
            assert_eq!((&*url, &*name), wanted);
        }
    }

    #[test]
    fn sources_are_recognized() {
        let (index, registry) = ("https://charts.example/x", "oci://r.example/charts");
        for (is_registry, url, repo_url, name, wanted) in [
            (
                false,
                "https://charts.example/x/",
                "https://Charts.example/x",
                "web",
                true,
            ),
            (false, index, "https://charts.example/y", "web", false),
            (
                true,
                "https://r.example/charts",
                "r.example/charts",
                "web",
                true,
            ),
            (true, registry, "oci://r.example", "charts/web", true),
            (true, registry, "r.example/charts", "other", false),
        ] {
            let origin = Origin {
                repo: RepoId::default(),
                chart: chart(url, "r/web", &[]),
                tags: is_registry.then(BTreeMap::new),
            };
            assert_eq!(
                origin.address() == whole(repo_url, name),
                wanted,
                "{repo_url}"
            );
        }
    }

    #[test]
    fn an_installed_version_may_have_a_letter() {
        let origin = Origin {
            repo: RepoId::default(),
            chart: chart("https://x", "r/web", &["1.2.0", "v1.1.0", "1.0.0+b"]),
            tags: None,
        };
        for (revision, found) in [
            ("1.2.0", Some("1.2.0")),
            ("v1.2.0", Some("1.2.0")),
            ("1.1", Some("v1.1.0")),
            ("1.0.0", None),
            ("1.0.0+b", Some("1.0.0+b")),
            ("junk", None),
        ] {
            let version = origin.installed(revision).map(|known| &*known.version);
            assert_eq!(version, found, "{revision}");
        }
    }
}
