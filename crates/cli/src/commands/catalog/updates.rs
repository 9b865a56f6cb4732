//! `catalog updates`: Applications whose chart has a newer version.

use super::{called, failed, install::address};
use crate::{
    client::{ConnectArgs, Failure},
    commands::{app, connect},
    output::{self, summary, table},
};
use serde::Serialize;
use std::{cmp::Ordering, sync::Arc};
use tiphys_api::{
    Application, repo_url::RepoUrl, rpc::application::ApplicationQuery, source::ApplicationSource,
};
use tiphys_catalog::{Store, model::Chart};
use tiphys_gocompat::semver::Version;

/// List the Applications whose chart has a newer version in the catalogue
///
/// Whoever made the Application: its source says where the chart is from. Prereleases count only
/// for those that have one.
#[derive(clap::Args)]
pub struct Updates {
    /// Only applications in namespace
    #[arg(long, short = 'N', value_name = "NAMESPACE")]
    app_namespace: Option<String>,
    /// Output format. One of: json|yaml|name
    #[arg(
        long,
        short,
        default_value = "",
        hide_default_value = true,
        value_name = "FORMAT"
    )]
    output: String,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Update {
    application: String,
    chart: String,
    /// The version that is installed, or asked for.
    version: String,
    newest: String,
}

impl Updates {
    pub async fn run(self, store: Arc<Store>, args: &ConnectArgs) -> Result<(), Failure> {
        let client = connect(args).await?;
        let query = ApplicationQuery {
            app_namespace: Some(self.app_namespace.unwrap_or_default()),
            ..Default::default()
        };
        let mut updates = Vec::new();
        for application in app::list(&client, query).await? {
            updates.extend(of(&application, &store)?);
        }
        output::print(&match self.output.as_str() {
            "json" | "yaml" => output::document(&updates, &self.output)?,
            "name" => updates
                .iter()
                .map(|update| format!("{}\n", update.application))
                .collect(),
            "" => table::table(
                &["APPLICATION", "CHART", "VERSION", "NEWEST"],
                updates.iter().map(|update| {
                    let Update {
                        application,
                        chart,
                        version,
                        newest,
                    } = update;
                    [application, chart, version, newest]
                        .map(Clone::clone)
                        .to_vec()
                }),
            ),
            other => return Err(output::unknown_format(other)),
        });
        Ok(())
    }
}

/// The updates of an Application's sources.
fn of(application: &Application, store: &Store) -> Result<Vec<Update>, Failure> {
    let (spec, synced) = (&application.spec, &application.status.sync);
    let single = spec.source.iter().map(|source| (source, &synced.revision));
    let several = spec.sources.iter().enumerate();
    let none = String::new();
    let several = several.map(|(at, source)| (source, synced.revisions.get(at).unwrap_or(&none)));
    let mut updates = Vec::new();
    for (source, revision) in single.chain(several) {
        if source.chart.is_empty() {
            continue;
        }
        let name = source.chart.rsplit('/').next().unwrap_or_default();
        for found in store.named(name).map_err(failed)? {
            let chart = store.chart(&found.repo, &found.chart_id).map_err(failed)?;
            let is_registry = store.is_registry(&found.repo).map_err(failed)?;
            let Some(chart) = chart.filter(|chart| is_of(source, chart, is_registry)) else {
                continue;
            };
            let version = [revision, &source.target_revision]
                .into_iter()
                .find(|text| Version::parse(text).is_ok());
            let newest = version.and_then(|version| newer(&chart, version));
            if let (Some(version), Some(newest)) = (version, newest) {
                updates.push(Update {
                    application: summary::qualified_name(application),
                    chart: format!("{}/{}", called(&found.repo), chart.name),
                    version: version.clone(),
                    newest,
                });
                // Another repository with the same address has the same charts.
                break;
            }
        }
    }
    Ok(updates)
}

/// Whether a source is the chart of this repository.
fn is_of(source: &ApplicationSource, chart: &Chart, is_registry: bool) -> bool {
    let canonical = |url: &str| {
        let url = url.trim_end_matches('/');
        let url = url.strip_prefix("oci://").unwrap_or(url);
        // What is no URL is compared as it is.
        RepoUrl::parse(url).map_or_else(|_| url.to_owned(), |url| url.canonical())
    };
    let (url, name) = address(chart, is_registry);
    let whole = |url: &str, name: &str| canonical(&format!("{}/{name}", url.trim_end_matches('/')));
    whole(&source.repo_url, &source.chart) == whole(&url, &name)
}

/// The newest version after this one.
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

#[cfg(test)]
mod tests {
    use super::*;
    use tiphys_catalog::model::{ChartVersion, RepoRef};

    fn chart(url: &str, versions: &[&str]) -> Chart {
        let versions = versions.iter().map(|version| ChartVersion {
            version: (*version).to_owned(),
            ..ChartVersion::default()
        });
        Chart {
            id: "r/web".to_owned(),
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
        let known = chart("https://x", &["2.0.0-rc.1", "1.10.0", "1.9.0", "junk"]);
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
    fn sources_are_recognized() {
        for (is_registry, url, repo_url, name, wanted) in [
            (
                false,
                "https://charts.example/x/",
                "https://Charts.example/x",
                "web",
                true,
            ),
            (
                false,
                "https://charts.example/x",
                "https://charts.example/y",
                "web",
                false,
            ),
            (
                true,
                "https://r.example/charts",
                "r.example/charts",
                "web",
                true,
            ),
            (
                true,
                "oci://r.example/charts",
                "oci://r.example",
                "charts/web",
                true,
            ),
            (
                true,
                "oci://r.example/charts",
                "r.example/charts",
                "other",
                false,
            ),
        ] {
            let source = ApplicationSource {
                repo_url: repo_url.to_owned(),
                chart: name.to_owned(),
                ..ApplicationSource::default()
            };
            let found = is_of(&source, &chart(url, &[]), is_registry);
            assert_eq!(found, wanted, "{repo_url}");
        }
    }
}
