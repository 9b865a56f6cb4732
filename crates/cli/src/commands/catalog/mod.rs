//! `catalog`: charts of repositories, in a database of this machine or in that of a server. Main
//! types: [`CatalogArgs`] and [`Catalogue`], which is who is asked.

mod commit;
mod install;
mod problems;
mod read;
mod repos;
mod rollback;
mod search;
mod server;
mod sync;
mod updates;
mod upgrade;

use crate::{
    client::{Client, ConnectArgs, Failure},
    commands::{
        self,
        app::{self, AppRef},
    },
    private,
    roles::{catalog::FILE, up::default_folder},
};
use read::{Opened, Shown};
use server::Server;
use std::{
    path::PathBuf,
    sync::{Arc, Weak},
    time::Duration,
};
use tiphys_api::{Application, rpc::application::ApplicationUpdateRequest};
use tiphys_catalog::{
    CatalogError, RepoId, Repository, Store, lease, model::Chart, store::RepoStatus,
};

/// Where the repositories of the command line are; other programs use the names of Kubernetes
/// namespaces.
const NAMESPACE: &str = "default";

#[derive(clap::Args)]
#[command(after_help = "\
The catalogue is that of the server that you are logged in to, or that --server or ARGOCD_SERVER
names. Without a server, or with --local or --data, it is that of this machine.

Examples:
  # Of the server that you are logged in to, else of this machine
  tiphys catalog search redis

  # Of another server
  tiphys catalog search redis --server cd.example.com

  # Of this machine, although you are logged in
  tiphys catalog search redis --local

  # Of another folder of this machine
  tiphys catalog search redis --data ~/charts")]
pub struct CatalogArgs {
    /// Folder of the catalogue of this machine, which is asked instead of a server [default:
    /// $XDG_DATA_HOME/tiphys or ~/.local/share/tiphys]
    #[arg(long, global = true, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Ask the catalogue of this machine, although you are logged in to a server
    #[arg(long, global = true)]
    local: Option<bool>,
    #[command(subcommand)]
    command: CatalogCommand,
}

#[derive(clap::Subcommand)]
enum CatalogCommand {
    /// Manage the chart repositories of the catalogue
    #[command(subcommand)]
    Repos(repos::ReposCommand),
    Sync(sync::Sync),
    Problems(problems::Problems),
    Search(search::Search),
    Show(read::Show),
    Versions(read::Versions),
    Values(read::Values),
    Install(Box<install::Install>),
    Updates(updates::Updates),
    Upgrade(Box<upgrade::Upgrade>),
    Rollback(rollback::Rollback),
}

impl CatalogArgs {
    pub async fn run(self, connect: &ConnectArgs) -> Result<(), Failure> {
        let Self {
            data,
            local,
            command,
        } = self;
        let is_here = local == Some(true) || data.is_some();
        let of = match is_here || !knows_server(connect)? {
            true => Catalogue::Here(open(data)?),
            false => Catalogue::Of(Box::new(Server::connect(connect).await?)),
        };
        command.run(&of, connect).await
    }
}

impl CatalogCommand {
    async fn run(self, of: &Catalogue, connect: &ConnectArgs) -> Result<(), Failure> {
        match self {
            Self::Repos(command) => command.run(of, connect).await,
            Self::Sync(command) => command.run(of).await,
            Self::Problems(command) => command.run(of).await,
            Self::Search(command) => command.run(of).await,
            Self::Show(command) => command.run(of).await,
            Self::Versions(command) => command.run(of).await,
            Self::Values(command) => command.run(of).await,
            Self::Install(command) => command.run(of, connect).await,
            Self::Updates(command) => command.run(of, connect).await,
            Self::Upgrade(command) => command.run(of, connect).await,
            Self::Rollback(command) => command.run(of, connect).await,
        }
    }
}

/// Whether there is a server to ask. That a config file cannot be read does not mean that there is
/// none: another catalogue would answer something else.
fn knows_server(args: &ConnectArgs) -> Result<bool, Failure> {
    const INSTEAD: &str =
        "--local asks the catalogue of this machine, whatever the config file says";
    args.knows_server().map_err(|e| e.with_hint(INSTEAD))
}

/// Who is asked.
enum Catalogue {
    Here(Arc<Store>),
    Of(Box<Server>),
}

impl Catalogue {
    /// The control plane, which has the Applications.
    async fn control_plane(&self, connect: &ConnectArgs) -> Result<Client, Failure> {
        match self {
            Self::Here(_) => commands::connect(connect).await,
            Self::Of(server) => Ok(server.client().clone()),
        }
    }

    /// The chart that a name means, with one of its versions; `None`: the newest.
    async fn shown(&self, name: &str, version: Option<&str>) -> Result<Shown, Failure> {
        match self {
            Self::Here(store) => Shown::here(store, name, version),
            Self::Of(server) => server.shown(name, version).await,
        }
    }

    /// The same without the files of a version, where that saves reading them.
    async fn chart(&self, name: &str) -> Result<Chart, Failure> {
        match self {
            Self::Here(store) => Ok(Opened::new(store, name)?.chart),
            Self::Of(server) => Ok(server.shown(name, None).await?.chart),
        }
    }
}

/// Works on a repository while no other process does, and says so while it waits for one.
async fn alone<T>(
    store: &Arc<Store>,
    id: &RepoId,
    at_work: Weak<Repository>,
    work: impl Future<Output = Result<T, CatalogError>> + Send,
) -> Result<T, CatalogError> {
    let now = jiff::Timestamp::now().as_nanosecond();
    let holder = format!("cli-{}-{now:x}", std::process::id());
    if !lease::claim(store, id, &holder).await? {
        eprintln!("waiting for another process that works on {:?}", id.name);
    }
    lease::leased(store, (id, &holder), at_work, work).await
}

fn open(data: Option<PathBuf>) -> Result<Arc<Store>, Failure> {
    let folder = data.or_else(default_folder);
    let folder = folder
        .ok_or_else(|| Failure::error("no folder for data: set --data, XDG_DATA_HOME or HOME"))?;
    private::folder(&folder).map_err(|e| Failure::file(&folder, &e))?;
    Ok(Arc::new(Store::sqlite(&folder.join(FILE)).map_err(failed)?))
}

fn failed(e: CatalogError) -> Failure {
    Failure::error(e.to_string())
}

/// Why the control plane refuses; if it did not answer, why there was a question.
fn better(why: Failure, asked_for: CatalogError) -> Failure {
    if why.status.is_some() {
        return why;
    }
    failed(asked_for)
}

/// Whether a repository was entered here. The credentials of others are not here.
fn is_ours(store: &Store, id: &RepoId) -> Result<bool, Failure> {
    let status = store.repo(id).map_err(failed)?;
    Ok(status.is_some_and(|status| !status.spec.is_empty()))
}

/// How often an Application whose status changes all the time is written.
const TRIES: u32 = 20;

/// Writes an Application as it was shown, if it is still the one that it was made of. Whether its
/// project permits it is decided in the control plane.
async fn write(client: &Client, before: &Application, app: Application) -> Result<(), Failure> {
    let name = &before.metadata.name;
    let of = AppRef::new(name, Some(&before.metadata.namespace));
    let mut tries = 0;
    loop {
        let now = app::get(client, &of, None).await?;
        let changed = changed_parts(before, &now);
        if !changed.is_empty() {
            return Err(Failure::error(format!(
                "application '{name}' was changed meanwhile ({}): nothing was written",
                changed.join(", ")
            )));
        }
        let request = ApplicationUpdateRequest {
            project: Some(app.spec.project.clone()),
            application: app.clone(),
            validate: Some(true),
            // What was looked at: a change from now on is not overwritten.
            resource_version: Some(now.metadata.resource_version.clone()),
        };
        let updated: Result<Application, tonic::Status> = client
            .unary("/application.ApplicationService/Update", request)
            .await;
        match updated {
            Ok(_) => return Ok(()),
            // Mostly its status: the next look says.
            Err(e) if e.code() == tonic::Code::Aborted && tries < TRIES => {
                tokio::time::sleep(Duration::from_millis(10 * u64::from(tries))).await;
                tries += 1;
            }
            Err(e) => return Err(e.into()),
        }
    }
}

/// What users changed of an Application. The control plane changes its status all the time, and
/// asks for refreshes with an annotation.
fn changed_parts(before: &Application, now: &Application) -> Vec<&'static str> {
    let entered = |app: &Application| {
        let mut annotations = app.metadata.annotations.clone();
        annotations.retain(|key, _| !key.starts_with("argocd.argoproj.io/refresh"));
        annotations
    };
    let (old, new) = (&before.metadata, &now.metadata);
    let parts = [
        ("it was made again", old.uid != new.uid),
        ("source", before.spec.source != now.spec.source),
        ("sources", before.spec.sources != now.spec.sources),
        ("spec", before.spec != now.spec),
        ("labels", old.labels != new.labels),
        ("annotations", entered(before) != entered(now)),
    ];
    let changed = parts.into_iter().filter(|(_, differs)| *differs);
    changed.map(|(part, _)| part).collect()
}

/// What a user calls a repository, or with more words what is in it. Repositories of a cluster have
/// their namespace before their name.
fn called(id: &RepoId) -> String {
    if id.namespace == NAMESPACE {
        id.name.clone()
    } else {
        format!("{}/{}", id.namespace, id.name)
    }
}

/// The repositories of the command line with these names; all of them if none is named.
fn named(store: &Store, names: &[String]) -> Result<Vec<RepoStatus>, Failure> {
    let mut repos = store.repos().map_err(failed)?;
    for name in names {
        match repos.iter().find(|repo| called(&repo.id) == *name) {
            None => {
                return Err(Failure::error(format!(
                    "there is no repository {name:?}; `catalog repos add` adds one"
                )));
            }
            Some(repo) if repo.spec.is_empty() => {
                return Err(Failure::error(format!(
                    "repository {name:?} was not added here: change its AppRepository in the cluster"
                )));
            }
            Some(_) => {}
        }
    }
    repos.retain(|repo| !repo.spec.is_empty());
    if !names.is_empty() {
        repos.retain(|repo| names.contains(&called(&repo.id)));
    }
    Ok(repos)
}

/// The chart of a database that a name means.
fn chart_of(store: &Store, name: &str) -> Result<(RepoId, String), Failure> {
    let chart = name.rsplit_once('/').map_or(name, |(_, chart)| chart);
    let found = store.named(chart).map_err(failed)?.into_iter();
    meant(
        name,
        found.map(|found| (found.repo, found.chart_id)).collect(),
    )
}

/// The one that `NAME`, `REPOSITORY/NAME` or `NAMESPACE/REPOSITORY/NAME` means, of the charts whose
/// name is `NAME`.
fn meant<T>(name: &str, mut found: Vec<(RepoId, T)>) -> Result<(RepoId, T), Failure> {
    let (of, chart) = name.rsplit_once('/').unwrap_or(("", name));
    let is_meant = |id: &RepoId| of.is_empty() || called(id) == of || id.name == of;
    found.retain(|(id, _)| is_meant(id));
    // A name as it is shown is never ambiguous.
    if found.len() > 1 && found.iter().any(|(id, _)| called(id) == of) {
        found.retain(|(id, _)| called(id) == of);
    }
    match found.len() {
        0 => Err(Failure::error(format!(
            "chart {name:?} is not in the catalogue"
        ))),
        1 => Ok(found.remove(0)),
        _ => {
            let names: Vec<String> = found
                .iter()
                .map(|(id, _)| format!("{}/{chart}", called(id)))
                .collect();
            Err(Failure::error(format!(
                "several repositories have a chart {name:?}: {}",
                names.join(", ")
            )))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_changed_meanwhile_is_named() {
        let app = |uid: &str, version: &str, annotation: &str, more: &str| -> Application {
            let app = json!({
                "metadata": {"name": "a", "uid": uid, "resourceVersion": more,
                    "annotations": {annotation: "x"}},
                "spec": {"project": "p", "source": {"repoURL": "https://x", "chart": "c",
                    "targetRevision": version}},
                "status": {"sync": {"revision": more}},
            });
            serde_json::from_value(app).expect("an Application")
        };
        let refresh = "argocd.argoproj.io/refresh";
        let before = app("1", "1.0.0", refresh, "1");
        for (now, wanted) in [
            (app("1", "1.0.0", refresh, "2"), ""),
            (app("1", "1.0.0", "argocd.argoproj.io/refresh-x", "2"), ""),
            (app("1", "1.1.0", refresh, "2"), "source, spec"),
            (app("1", "1.0.0", "team", "1"), "annotations"),
            (app("2", "1.0.0", refresh, "1"), "it was made again"),
        ] {
            assert_eq!(changed_parts(&before, &now).join(", "), wanted);
        }
    }
}
