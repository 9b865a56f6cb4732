//! `catalog show`, `versions` and `values`: one chart. Main types: [`Opened`], and [`Shown`] for
//! what is printed.

use super::{Catalogue, called, chart_of, failed};
use crate::{
    client::Failure,
    output::{
        self,
        sort::{Field, SortBy},
        table,
    },
};
use serde_json::{Value, json};
use tiphys_catalog::{
    RepoId, Store,
    model::{Chart, ChartFiles, ChartVersion},
    store::ProblemKind,
};

/// Why there are no files of a version with which nothing is wrong.
pub(super) const NOT_YET: &str = "they were not read yet";

/// Show a chart: what it is, and its README
#[derive(clap::Args)]
#[command(
    disable_version_flag = true,
    after_help = "Examples:
  # Of the server that you are logged in to, else of this machine
  tiphys catalog show argo/argo-cd

  # Only the README, of this machine's catalogue
  tiphys catalog show argo-cd --readme --local"
)]
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
#[command(after_help = "Examples:
  # Of the server that you are logged in to, else of this machine
  tiphys catalog versions argo-cd
  tiphys catalog versions argo-cd --sort-by created

  # For a program, of this machine's catalogue
  tiphys catalog versions argo-cd -o name --local")]
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
    #[command(flatten)]
    sort_by: SortBy,
}

const FIELDS: &[Field<ChartVersion>] = &[
    ("version", |version| version.version.as_str().into()),
    ("appversion", |version| version.app_version.as_str().into()),
    ("created", |version| version.created.as_str().into()),
    ("digest", |version| version.digest.as_str().into()),
];

/// Print the default values of a chart
#[derive(clap::Args)]
#[command(
    disable_version_flag = true,
    after_help = "Examples:
  # Of the server that you are logged in to, else of this machine
  tiphys catalog values argo-cd

  # The schema of another version, of this machine's catalogue
  tiphys catalog values argo-cd --version 7.0.0 --schema --local"
)]
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
}

/// A chart with one of its versions, whoever knows them.
pub(super) struct Shown {
    pub id: RepoId,
    pub chart: Chart,
    pub version: ChartVersion,
    /// `Err`: there are none, and why.
    pub files: Result<ChartFiles, String>,
    pub deprecated: bool,
    /// What is wrong with the version.
    pub reasons: Vec<String>,
}

impl Shown {
    /// From a database of this machine.
    pub fn here(store: &Store, name: &str, version: Option<&str>) -> Result<Self, Failure> {
        let opened = Opened::new(store, name)?;
        let version = opened.version(version)?.clone();
        let Opened { id, chart } = opened;
        let files = store.files(&id, &chart.id, &version.version);
        let files = files.map_err(failed)?;
        let mut problems = store.problems_of(&id, &chart.id).map_err(failed)?;
        problems.retain(|problem| problem.version == version.version);
        let failed_kinds = [ProblemKind::Files, ProblemKind::Skipped];
        let why = problems.iter().find(|p| failed_kinds.contains(&p.kind));
        let why = why.map_or(NOT_YET, |problem| &problem.reason).to_owned();
        Ok(Self {
            files: files.ok_or(why),
            deprecated: store.is_deprecated(&id, &chart.id).map_err(failed)?,
            reasons: problems.into_iter().map(|p| p.reason).collect(),
            id,
            chart,
            version,
        })
    }

    fn files(&self) -> Result<&ChartFiles, Failure> {
        let (name, version) = (&self.chart.name, &self.version.version);
        self.files.as_ref().map_err(|reason| {
            Failure::error(format!("there are no files of {name}-{version}: {reason}"))
        })
    }

    /// With its repository.
    fn name(&self) -> String {
        format!("{}/{}", called(&self.id), self.chart.name)
    }
}

impl Show {
    pub(super) async fn run(self, of: &Catalogue) -> Result<(), Failure> {
        let shown = of.shown(&self.chart, self.version.as_deref()).await?;
        if self.readme {
            output::print(&shown.files()?.readme);
            return Ok(());
        }
        output::print(&match self.output.as_str() {
            "json" | "yaml" => output::document(&document(&shown), &self.output)?,
            "name" => shown.name() + "\n",
            "wide" | "" => page(&shown),
            other => return Err(output::unknown_format(other)),
        });
        Ok(())
    }
}

fn document(shown: &Shown) -> Value {
    let (chart, version) = (&shown.chart, &shown.version);
    let readme = shown.files.as_ref().map_or("", |files| &files.readme);
    json!({
        "repository": called(&shown.id),
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
        "deprecated": shown.deprecated,
        "problems": shown.reasons,
        "readme": readme,
    })
}

fn page(shown: &Shown) -> String {
    let (chart, version) = (&shown.chart, &shown.version);
    let readme = shown.files.as_ref().map_or("", |files| &files.readme);
    let people = chart.maintainers.iter().flatten();
    let people: Vec<&str> = people.map(|person| person.name.as_str()).collect();
    let keywords = chart.keywords.clone().unwrap_or_default();
    let mut text = String::new();
    for (name, value) in [
        ("Name", chart.name.clone()),
        (
            "Repository",
            format!("{} ({})", called(&shown.id), chart.repo.url),
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
            if shown.deprecated { "yes" } else { "" }.to_owned(),
        ),
        ("Problems", shown.reasons.join("; ")),
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
    pub(super) async fn run(self, of: &Catalogue) -> Result<(), Failure> {
        let mut versions = of.chart(&self.chart).await?.versions;
        self.sort_by.sort(&mut versions, FIELDS)?;
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
    pub(super) async fn run(self, of: &Catalogue) -> Result<(), Failure> {
        let shown = of.shown(&self.chart, self.version.as_deref()).await?;
        let files = shown.files()?;
        let text = match &self.file {
            _ if self.schema => &files.schema,
            None => &files.values,
            Some(name) => {
                let key = name.strip_suffix(".yaml").unwrap_or(name);
                let found = files.additional_values.get(key);
                found.ok_or_else(|| {
                    let known: Vec<&str> =
                        files.additional_values.keys().map(String::as_str).collect();
                    Failure::error(format!(
                        "the chart has no {key}.yaml; it has: {}",
                        known.join(", ")
                    ))
                })?
            }
        };
        output::print(text);
        Ok(())
    }
}
