//! `catalog problems`: what is wrong with charts, and why.

use super::{called, failed};
use crate::{
    client::Failure,
    output::{self, table},
};
use serde::Serialize;
use tiphys_catalog::{Store, store::RepoStatus};

/// List what is wrong with charts of the catalogue
///
/// An entry of an index that cannot be used is skipped by itself; a version that is listed twice with
/// different archives is ambiguous; files and icons that could not be read are tried again.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  # Of all repositories
  tiphys catalog problems

  # Of one, for a program
  tiphys catalog problems stable -o json")]
pub struct Problems {
    /// Names of repositories [default: all]
    names: Vec<String>,
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

#[derive(Serialize)]
struct Shown {
    /// With its repository.
    chart: String,
    /// Empty: the chart as a whole.
    #[serde(skip_serializing_if = "String::is_empty")]
    version: String,
    kind: &'static str,
    reason: String,
}

impl Problems {
    pub fn run(self, store: &Store) -> Result<(), Failure> {
        let repos = store.repos().map_err(failed)?;
        let is_known = |name: &&String| repos.iter().any(|repo| called(&repo.id) == **name);
        if let Some(name) = self.names.iter().find(|name| !is_known(name)) {
            return Err(Failure::error(format!("there is no repository {name:?}")));
        }
        let is_asked =
            |repo: &&RepoStatus| self.names.is_empty() || self.names.contains(&called(&repo.id));
        let mut all = Vec::new();
        for repo in repos.iter().filter(is_asked) {
            let problems = store.problems(&repo.id).map_err(failed)?.into_iter();
            all.extend(problems.map(|problem| Shown {
                chart: format!("{}/{}", called(&repo.id), problem.path()),
                version: problem.version,
                kind: problem.kind.word(),
                reason: problem.reason,
            }));
        }
        output::print(&match self.output.as_str() {
            "json" | "yaml" => output::document(&all, &self.output)?,
            "name" => all.iter().map(|p| format!("{}\n", p.chart)).collect(),
            "wide" | "" => {
                let rows = all
                    .into_iter()
                    .map(|p| vec![p.chart, p.version, p.kind.into(), p.reason]);
                table::table(&["CHART", "VERSION", "KIND", "REASON"], rows)
            }
            other => return Err(output::unknown_format(other)),
        });
        Ok(())
    }
}
