//! `catalog show`, `versions` and `values`: one chart.

use super::{called, chart_of, failed};
use crate::{
    client::Failure,
    output::{self, table},
};
use serde_json::{Value, json};
use tiphys_catalog::{
    RepoId, Store,
    model::{Chart, ChartFiles, ChartVersion},
    store::{Problem, ProblemKind},
};

/// Show a chart: what it is, and its README
#[derive(clap::Args)]
#[command(disable_version_flag = true)]
pub struct Show {
    /// Name of the chart, or REPOSITORY/NAME
    chart: String,
    /// Version [default: the newest]
    #[arg(long)]
    version: Option<String>,
    /// Print only the README
    #[arg(long)]
    readme: bool,
    /// Output format. One of: json|yaml|wide|name
    #[arg(
        long,
        short,
        default_value = "",
        hide_default_value = true,
        value_name = "FORMAT"
    )]
    output: String,
}

/// List the versions of a chart, the newest first
#[derive(clap::Args)]
pub struct Versions {
    /// Name of the chart, or REPOSITORY/NAME
    chart: String,
    /// Output format. One of: json|yaml|wide|name
    #[arg(
        long,
        short,
        default_value = "",
        hide_default_value = true,
        value_name = "FORMAT"
    )]
    output: String,
}

/// Print the default values of a chart
#[derive(clap::Args)]
#[command(disable_version_flag = true)]
pub struct Values {
    /// Name of the chart, or REPOSITORY/NAME
    chart: String,
    /// Version [default: the newest]
    #[arg(long)]
    version: Option<String>,
    /// Another file with values that the chart has, such as values-production
    #[arg(long, value_name = "NAME")]
    file: Option<String>,
    /// Print the schema of the values instead
    #[arg(long)]
    schema: bool,
}

pub(super) struct Opened {
    pub id: RepoId,
    pub chart: Chart,
}

impl Opened {
    pub fn new(store: &Store, name: &str) -> Result<Self, Failure> {
        let (id, chart_id) = chart_of(store, name)?;
        let chart = store.chart(&id, &chart_id).map_err(failed)?;
        let absent = || Failure::error(format!("chart {name:?} is not in the catalogue"));
        Ok(Self {
            id,
            chart: chart.ok_or_else(absent)?,
        })
    }

    pub fn version(&self, wanted: Option<&str>) -> Result<&ChartVersion, Failure> {
        let mut versions = self.chart.versions.iter();
        let found = match wanted {
            None => versions.next(),
            Some(wanted) => versions.find(|version| version.version == wanted),
        };
        found.ok_or_else(|| {
            let wanted = wanted.unwrap_or_default();
            Failure::error(format!(
                "chart {:?} has no version {wanted:?}",
                self.chart.name
            ))
        })
    }

    /// The files of a version; `Err`: there are none, and why.
    fn files(&self, store: &Store, version: &ChartVersion) -> Result<ChartFiles, Failure> {
        let files = store
            .files(&self.id, &self.chart.id, &version.version)
            .map_err(failed)?;
        if let Some(files) = files {
            return Ok(files);
        }
        let problems = store
            .problems_of(&self.id, &self.chart.id)
            .map_err(failed)?;
        let failed_kinds = [ProblemKind::Files, ProblemKind::Skipped];
        let reason = problems
            .iter()
            .find(|p| p.version == version.version && failed_kinds.contains(&p.kind))
            .map_or("they were not read yet", |problem| &problem.reason);
        Err(Failure::error(format!(
            "there are no files of {}-{}: {reason}",
            self.chart.name, version.version
        )))
    }
}

impl Show {
    pub fn run(self, store: &Store) -> Result<(), Failure> {
        let opened = Opened::new(store, &self.chart)?;
        let version = opened.version(self.version.as_deref())?;
        if self.readme {
            output::print(&opened.files(store, version)?.readme);
            return Ok(());
        }
        let files = opened.files(store, version).ok();
        let about = About::new(store, &opened, version)?;
        let name = format!("{}/{}", called(&opened.id), opened.chart.name);
        let readme = files.as_ref().map_or("", |files| files.readme.as_str());
        output::print(&match self.output.as_str() {
            "json" | "yaml" => {
                let document = document(&opened, version, readme, &about);
                output::document(&document, &self.output)?
            }
            "name" => name + "\n",
            "wide" | "" => page(&opened, version, readme, &about),
            other => return Err(output::unknown_format(other)),
        });
        Ok(())
    }
}

/// What the catalogue found out about a version.
struct About {
    deprecated: bool,
    problems: Vec<Problem>,
}

impl About {
    fn new(store: &Store, opened: &Opened, version: &ChartVersion) -> Result<Self, Failure> {
        let (repo, chart) = (&opened.id, &opened.chart.id);
        let mut problems = store.problems_of(repo, chart).map_err(failed)?;
        problems.retain(|problem| problem.version == version.version);
        let deprecated = store.is_deprecated(repo, chart).map_err(failed)?;
        Ok(Self {
            deprecated,
            problems,
        })
    }

    fn reasons(&self) -> Vec<&str> {
        self.problems.iter().map(|p| p.reason.as_str()).collect()
    }
}

fn document(opened: &Opened, version: &ChartVersion, readme: &str, about: &About) -> Value {
    let chart = &opened.chart;
    json!({
        "repository": called(&opened.id),
        "name": chart.name,
        "version": version.version,
        "appVersion": version.app_version,
        "created": version.created,
        "digest": version.digest,
        "urls": version.urls,
        "description": chart.description,
        "home": chart.home,
        "category": chart.category,
        "keywords": chart.keywords,
        "maintainers": chart.maintainers,
        "sources": chart.sources,
        "versions": chart.versions.len(),
        "deprecated": about.deprecated,
        "problems": about.reasons(),
        "readme": readme,
    })
}

fn page(opened: &Opened, version: &ChartVersion, readme: &str, about: &About) -> String {
    let chart = &opened.chart;
    let people = chart.maintainers.iter().flatten();
    let people: Vec<&str> = people.map(|person| person.name.as_str()).collect();
    let keywords = chart.keywords.clone().unwrap_or_default();
    let mut text = String::new();
    for (name, value) in [
        ("Name", chart.name.clone()),
        (
            "Repository",
            format!("{} ({})", called(&opened.id), chart.repo.url),
        ),
        (
            "Version",
            format!("{} of {}", version.version, chart.versions.len()),
        ),
        ("App version", version.app_version.clone()),
        ("Description", chart.description.clone()),
        ("Category", chart.category.clone()),
        ("Keywords", keywords.join(", ")),
        ("Home", chart.home.clone()),
        (
            "Sources",
            chart.sources.clone().unwrap_or_default().join(", "),
        ),
        ("Maintainers", people.join(", ")),
        ("Digest", version.digest.clone()),
        (
            "Deprecated",
            if about.deprecated { "yes" } else { "" }.to_owned(),
        ),
        ("Problems", about.reasons().join("; ")),
    ] {
        if !value.is_empty() {
            text.push_str(&format!("{name}:\t{}\n", value.replace(['\n', '\t'], " ")));
        }
    }
    let mut text = table::align(&text, 0);
    if !readme.is_empty() {
        text.push('\n');
        text.push_str(readme);
    }
    text
}

impl Versions {
    pub fn run(self, store: &Store) -> Result<(), Failure> {
        let opened = Opened::new(store, &self.chart)?;
        let versions = &opened.chart.versions;
        let wide = self.output == "wide";
        output::print(&match self.output.as_str() {
            "json" | "yaml" => {
                let list = versions.iter().map(|version| {
                    json!({
                        "version": version.version,
                        "appVersion": version.app_version,
                        "created": version.created,
                        "digest": version.digest,
                        "urls": version.urls,
                    })
                });
                output::document(&list.collect::<Vec<Value>>(), &self.output)?
            }
            "name" => versions
                .iter()
                .map(|v| format!("{}\n", v.version))
                .collect(),
            "wide" | "" => {
                let row = |version: &ChartVersion| {
                    let mut row = vec![
                        version.version.clone(),
                        version.app_version.clone(),
                        version.created.clone(),
                    ];
                    if wide {
                        row.push(version.digest.clone());
                        row.push(version.urls.clone().unwrap_or_default().join(","));
                    }
                    row
                };
                let mut header = vec!["VERSION", "APP VERSION", "CREATED"];
                if wide {
                    header.extend(["DIGEST", "URLS"]);
                }
                table::table(&header, versions.iter().map(row))
            }
            other => return Err(output::unknown_format(other)),
        });
        Ok(())
    }
}

impl Values {
    pub fn run(self, store: &Store) -> Result<(), Failure> {
        let opened = Opened::new(store, &self.chart)?;
        let version = opened.version(self.version.as_deref())?;
        let files = opened.files(store, version)?;
        let text = match &self.file {
            _ if self.schema => files.schema,
            None => files.values,
            Some(name) => {
                let key = name.strip_suffix(".yaml").unwrap_or(name);
                let found = files.additional_values.get(key);
                found.cloned().ok_or_else(|| {
                    let known: Vec<&str> =
                        files.additional_values.keys().map(String::as_str).collect();
                    Failure::error(format!(
                        "the chart has no {key}.yaml; it has: {}",
                        known.join(", ")
                    ))
                })?
            }
        };
        output::print(&text);
        Ok(())
    }
}
