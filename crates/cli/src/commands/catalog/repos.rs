//! `catalog repos`: which repositories are read.

use super::{
    Catalogue, NAMESPACE, alone, called, failed, named,
    server::{self, Server},
};
use crate::{
    client::{ConnectArgs, Failure},
    commands::prompt,
    output::{self, sort::SortBy, table, time},
};
use jiff::Timestamp;
use serde::Serialize;
use std::{
    fs,
    path::PathBuf,
    sync::{Arc, Weak},
};
use tiphys_api::rpc::catalog::{AddRequest, SyncRequest};
use tiphys_catalog::{Filter, RepoId, RepoSpec, Store, store::RepoStatus};

const ADD: &str = "/catalog.CatalogService/AddRepository";
const REMOVE: &str = "/catalog.CatalogService/RemoveRepository";

#[derive(clap::Subcommand)]
pub enum ReposCommand {
    Add(Add),
    /// List the repositories, with the state of their last sync
    #[command(after_help = "Examples:
  # Of the server that you are logged in to, else of this machine
  tiphys catalog repos list -o wide
  tiphys catalog repos list --sort-by status

  # Of this machine, although you are logged in
  tiphys catalog repos list --local")]
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
        #[command(flatten)]
        sort_by: SortBy,
    },
    /// Remove repositories and their charts
    #[command(after_help = "Examples:
  # Of the server that you are logged in to, as `catalog repos list` names it
  tiphys catalog repos rm argocd/argo

  # Of this machine, although you are logged in
  tiphys catalog repos rm argo --local")]
    Rm {
        /// As `catalog repos list` names them
        #[arg(required = true, value_name = "NAME")]
        names: Vec<String>,
        /// Do not ask
        #[arg(long, short)]
        yes: bool,
    },
}

/// Add a chart repository, or change one of this machine
///
/// A server makes an AppRepository of it, in its own namespace, and reads it. It takes the URL, the
/// charts of a registry, user name and password; write an AppRepository for more.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  # In the server that you are logged in to, else in this machine's catalogue
  tiphys catalog repos add argo https://argoproj.github.io/argo-helm
  tiphys catalog repos add podinfo oci://ghcr.io/stefanprodan/charts --oci-repositories podinfo

  # In this machine's catalogue, although you are logged in
  tiphys catalog repos add team https://charts.example.com --filter '.category == \"Database\"' --local")]
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
    pub(super) async fn run(self, of: &Catalogue, args: &ConnectArgs) -> Result<(), Failure> {
        match (self, of) {
            (Self::Add(add), Catalogue::Here(store)) => add.here(store),
            (Self::Add(add), Catalogue::Of(server)) => add.ask(server).await,
            (Self::List { output, sort_by }, Catalogue::Here(store)) => {
                list(&store.repos().map_err(failed)?, &sort_by, &output)
            }
            (Self::List { output, sort_by }, Catalogue::Of(server)) => {
                let repos = server.repositories().await?.into_iter();
                let repos: Vec<RepoStatus> = repos.map(server::status).collect();
                list(&repos, &sort_by, &output)
            }
            (Self::Rm { names, .. }, Catalogue::Here(store)) => remove(store, &names).await,
            (Self::Rm { names, yes }, Catalogue::Of(server)) => {
                let asks = !yes && args.prompts()?;
                remove_of(server, &names, asks).await
            }
        }
    }
}

/// From a server: others read these, too.
async fn remove_of(server: &Server, names: &[String], asks: bool) -> Result<(), Failure> {
    for repo in server.listed(names).await? {
        let name = format!("{}/{}", repo.namespace, repo.name);
        let question =
            format!("Are you sure you want to remove repository '{name}' and its charts? [y/n] ");
        if asks && !prompt::proceed(&question)? {
            output::print(&format!("The command to remove '{name}' was cancelled.\n"));
            continue;
        }
        let request = SyncRequest {
            namespace: repo.namespace,
            name: repo.name,
        };
        server.tell(REMOVE, request).await?;
        removed(&name);
    }
    Ok(())
}

fn removed(name: &str) {
    output::print(&format!("Repository {name:?} removed\n"));
}

async fn remove(store: &Arc<Store>, names: &[String]) -> Result<(), Failure> {
    for repo in named(store, names)? {
        let (rows, id) = (Arc::clone(store), repo.id.clone());
        let delete = async move { rows.delete_repo(&id) };
        let deleted = alone(store, &repo.id, Weak::new(), delete).await;
        deleted.map_err(failed)?;
        removed(&repo.id.name);
    }
    Ok(())
}

impl Add {
    /// In a server, which makes an AppRepository.
    async fn ask(self, server: &Server) -> Result<(), Failure> {
        let only_here = [
            ("--plain-http", self.plain_http),
            ("--ca-file", self.ca_file.is_some()),
            ("--insecure-skip-tls-verify", self.insecure_skip_tls_verify),
            ("--pass-credentials", self.pass_credentials),
            ("--filter", !self.filter.is_empty()),
        ];
        if let Some((flag, _)) = only_here.into_iter().find(|(_, is_given)| *is_given) {
            return Err(Failure::error(format!(
                "the server adds no repository with {flag}: apply an AppRepository that says so to \
                 its cluster, or add the repository to the catalogue of this machine with --local"
            )));
        }
        let name = self.name;
        let request = AddRequest {
            name: name.clone(),
            url: self.url,
            oci_repositories: self.oci_repositories,
            username: self.username,
            password: self.password,
            ..AddRequest::default()
        };
        server.tell(ADD, request).await?;
        added(&name);
        Ok(())
    }

    fn here(self, store: &Store) -> Result<(), Failure> {
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
        added(&self.name);
        Ok(())
    }
}

fn added(name: &str) {
    output::print(&format!("Repository {name:?} added\n"));
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

fn sort(repos: &mut Vec<Shown<'_>>, by: &SortBy) -> Result<(), Failure> {
    by.sort(
        repos,
        &[
            ("name", |repo| repo.name.as_str().into()),
            ("url", |repo| repo.url.into()),
            ("status", |repo| repo.status.into()),
            ("charts", |repo| repo.charts.into()),
            ("last-sync", |repo| repo.last_sync.clone().into()),
            ("versions", |repo| repo.versions.into()),
            ("skipped", |repo| repo.skipped.into()),
            ("message", |repo| repo.error.into()),
        ],
    )
}

fn list(repos: &[RepoStatus], sort_by: &SortBy, format: &str) -> Result<(), Failure> {
    let mut repos: Vec<Shown<'_>> = repos.iter().map(shown).collect();
    sort(&mut repos, sort_by)?;
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
