//! `catalog problems`: what is wrong with charts, and why.

use super::{
    Catalogue, called, failed,
    server::{self, Server},
};
use crate::{
    client::Failure,
    output::{
        self,
        sort::{Field, SortBy},
        table,
    },
};
use serde::Serialize;
use tiphys_catalog::{Store, store::RepoStatus};

/// List what is wrong with charts of the catalogue
///
/// An entry of an index that cannot be used is skipped by itself; a version that is listed twice with
/// different archives is ambiguous; files and icons that could not be read are tried again.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  # Of all repositories of the server that you are logged in to, else of this machine
  tiphys catalog problems
  tiphys catalog problems --sort-by kind

  # Of one of this machine, for a program
  tiphys catalog problems stable -o json --local")]
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
    #[command(flatten)]
    sort_by: SortBy,
}

#[derive(Serialize)]
struct Shown {
    /// With its repository.
    chart: String,
    /// Empty: the chart as a whole.
    #[serde(skip_serializing_if = "String::is_empty")]
    version: String,
    kind: String,
    reason: String,
}

const FIELDS: &[Field<Shown>] = &[
    ("chart", |problem| problem.chart.as_str().into()),
    ("version", |problem| problem.version.as_str().into()),
    ("kind", |problem| problem.kind.as_str().into()),
    ("reason", |problem| problem.reason.as_str().into()),
];

/// How many of a repository a server tells.
const OF_SERVER: usize = 10;

impl Problems {
    pub(super) async fn run(self, of: &Catalogue) -> Result<(), Failure> {
        let mut all = match of {
            Catalogue::Here(store) => self.here(store)?,
            Catalogue::Of(server) => self.ask(server).await?,
        };
        self.sort_by.sort(&mut all, FIELDS)?;
        output::print(&match self.output.as_str() {
            "json" | "yaml" => output::document(&all, &self.output)?,
            "name" => all.iter().map(|p| format!("{}\n", p.chart)).collect(),
            "wide" | "" => {
                let rows = all
                    .into_iter()
                    .map(|p| vec![p.chart, p.version, p.kind, p.reason]);
                table::table(&["CHART", "VERSION", "KIND", "REASON"], rows)
            }
            other => return Err(output::unknown_format(other)),
        });
        Ok(())
    }

    async fn ask(&self, server: &Server) -> Result<Vec<Shown>, Failure> {
        let mut all = Vec::new();
        for repo in server.named(&self.names).await? {
            let name = called(&server::id(&repo));
            if repo.problems.len() >= OF_SERVER {
                eprintln!("of {name:?}, the server tells the first {OF_SERVER}");
            }
            all.extend(repo.problems.into_iter().map(|problem| Shown {
                chart: format!("{name}/{}", problem.chart),
                version: problem.version,
                kind: problem.kind,
                reason: problem.reason,
            }));
        }
        Ok(all)
    }

    fn here(&self, store: &Store) -> Result<Vec<Shown>, Failure> {
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
                kind: problem.kind.word().to_owned(),
                reason: problem.reason,
            }));
        }
        Ok(all)
    }
}
