//! `catalog repos`: which repositories are read.

use super::{NAMESPACE, alone, called, failed, named};
use crate::{
    client::Failure,
    output::{self, table, time},
};
use jiff::Timestamp;
use serde::Serialize;
use std::{
    fs,
    path::PathBuf,
    sync::{Arc, Weak},
};
use tiphys_catalog::{Filter, RepoId, RepoSpec, Store, store::RepoStatus};

#[derive(clap::Subcommand)]
pub enum ReposCommand {
    /// Add a chart repository, or change one
    Add(Add),
    /// List the repositories, with the state of their last sync
    List {
        /// Output format. One of: json|yaml|wide|name
        #[arg(
            long,
            short,
            default_value = "",
            hide_default_value = true,
            value_name = "FORMAT"
        )]
        output: String,
    },
    /// Remove repositories and their charts
    Rm {
        #[arg(required = true, value_name = "NAME")]
        names: Vec<String>,
    },
}

#[derive(clap::Args)]
pub struct Add {
    /// Name of the repository
    name: String,
    /// URL of the folder that index.yaml is in, or oci://HOST/PATH
    url: String,
    /// Charts below the path of a registry [default: those that it lists]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    oci_repositories: Vec<String>,
    /// Talk to the registry without TLS
    #[arg(long)]
    plain_http: bool,
    /// Username to the repository
    #[arg(long, default_value = "", hide_default_value = true)]
    username: String,
    /// Password to the repository
    #[arg(long, default_value = "", hide_default_value = true)]
    password: String,
    /// Authorities to trust besides the system's (PEM)
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,
    /// Skip the check of the server's certificate
    #[arg(long)]
    insecure_skip_tls_verify: bool,
    /// Send the credentials to other hosts, too, if charts are there
    #[arg(long)]
    pass_credentials: bool,
    /// Keep only the charts for which this jq expression is true
    #[arg(long, default_value = "", hide_default_value = true, value_name = "JQ")]
    filter: String,
}

impl ReposCommand {
    pub async fn run(self, store: Arc<Store>) -> Result<(), Failure> {
        match self {
            Self::Add(add) => add.run(&store),
            Self::List { output } => list(&store, &output),
            Self::Rm { names } => {
                for repo in named(&store, &names)? {
                    let (rows, id) = (Arc::clone(&store), repo.id.clone());
                    let delete = async move { rows.delete_repo(&id) };
                    let deleted = alone(&store, &repo.id, Weak::new(), delete).await;
                    deleted.map_err(failed)?;
                    output::print(&format!("Repository {:?} removed\n", repo.id.name));
                }
                Ok(())
            }
        }
    }
}

impl Add {
    fn run(self, store: &Store) -> Result<(), Failure> {
        if self.name.is_empty() || self.name.contains('/') {
            return Err(Failure::error("the name of a repository has no slash"));
        }
        let ca_data = match &self.ca_file {
            None => String::new(),
            Some(path) => fs::read_to_string(path).map_err(|e| Failure::file(path, &e))?,
        };
        let spec = RepoSpec {
            url: self.url,
            oci_repositories: self.oci_repositories,
            plain_http: self.plain_http,
            username: self.username,
            password: self.password,
            ca_data,
            insecure: self.insecure_skip_tls_verify,
            pass_credentials: self.pass_credentials,
            filter: Filter {
                jq: self.filter,
                ..Filter::default()
            },
        };
        let text = spec.text().map_err(failed)?;
        let id = RepoId::new(NAMESPACE, &self.name);
        let shown = tiphys_api::access::shown_url(&spec.url);
        store.put_spec(&id, &shown, &text).map_err(failed)?;
        output::print(&format!("Repository {:?} added\n", self.name));
        Ok(())
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown<'a> {
    name: String,
    url: &'a str,
    status: &'static str,
    charts: i64,
    versions: i64,
    /// Entries of the index that cannot be used.
    skipped: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_sync: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
}

fn shown(repo: &RepoStatus) -> Shown<'_> {
    let at = repo
        .succeeded_at
        .and_then(|at| Timestamp::from_second(at).ok());
    Shown {
        name: called(&repo.id),
        url: &repo.url,
        status: match (&repo.error, repo.succeeded_at) {
            (Some(_), _) => "Failed",
            (None, Some(_)) => "Ready",
            (None, None) => "New",
        },
        charts: repo.charts,
        versions: repo.versions,
        skipped: repo.skipped,
        last_sync: at.map(|at| at.to_string()),
        error: repo.error.as_deref(),
    }
}

fn list(store: &Store, format: &str) -> Result<(), Failure> {
    let repos = store.repos().map_err(failed)?;
    let repos: Vec<Shown<'_>> = repos.iter().map(shown).collect();
    let wide = format == "wide";
    output::print(&match format {
        "json" | "yaml" => output::document(&repos, format)?,
        "name" => repos
            .iter()
            .map(|repo| format!("{}\n", repo.name))
            .collect(),
        "wide" | "" => {
            let now = Timestamp::now().as_second();
            let row = |repo: &Shown<'_>| {
                let at = repo
                    .last_sync
                    .as_ref()
                    .and_then(|at| at.parse::<Timestamp>().ok());
                let age =
                    at.map_or_else(|| "never".to_owned(), |at| time::age(now - at.as_second()));
                let mut row = vec![
                    repo.name.clone(),
                    repo.url.to_owned(),
                    repo.status.to_owned(),
                    repo.charts.to_string(),
                    age,
                ];
                if wide {
                    row.push(repo.versions.to_string());
                    row.push(repo.skipped.to_string());
                }
                row.push(repo.error.unwrap_or_default().to_owned());
                row
            };
            let mut header = vec!["NAME", "URL", "STATUS", "CHARTS", "LAST SYNC"];
            if wide {
                header.extend(["VERSIONS", "SKIPPED"]);
            }
            header.push("MESSAGE");
            table::table(&header, repos.iter().map(row))
        }
        other => return Err(output::unknown_format(other)),
    });
    Ok(())
}
