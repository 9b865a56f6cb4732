//! `app`: everything about Applications. Main type: [`AppCommand`].

mod actions;
mod confirm;
pub(super) mod create;
mod delete;
pub(super) mod diff;
mod edit;
mod follow;
mod get;
mod get_resource;
mod history;
mod hydrator;
mod list;
mod live;
mod local;
mod logs;
mod manifests;
mod operation;
mod patch;
mod resources;
mod select;
mod send;
mod set;
mod source;
mod sources;
mod spec;
mod states;
mod sync;
mod unset;
mod views;
mod wait;
mod watching;

pub(super) use diff::difference;

pub(super) use list::{FIELDS, rows};

use crate::{
    client::{Client, ConnectArgs, Failure},
    output::summary,
};
use tiphys_api::{
    Application,
    application::ApplicationList,
    rpc::{
        application::ApplicationQuery,
        settings::{Settings, SettingsQuery},
    },
};

#[derive(clap::Subcommand)]
pub enum AppCommand {
    /// Create an application
    Create(Box<create::Create>),
    /// List applications
    List(list::List),
    /// Get application details
    Get(get::Get),
    /// Sync an application to its target state
    Sync(Box<sync::Sync>),
    /// Wait for an application to reach a synced and healthy state
    Wait(wait::WaitCommand),
    /// Perform a diff against the target and live state
    Diff(diff::DiffCommand),
    /// Show application deployment history
    History(history::History),
    /// Print manifests of an application
    Manifests(manifests::Manifests),
    /// List resources of application
    Resources(resources::Resources),
    /// Set application parameters
    Set(Box<set::Set>),
    /// Unset application parameters
    Unset(Box<unset::Unset>),
    /// Edit application
    Edit(edit::Edit),
    /// Adds a source to the list of sources in the application
    AddSource(Box<sources::AddSource>),
    /// Remove a source from multiple sources application
    RemoveSource(sources::RemoveSource),
    /// Delete an application
    Delete(delete::Delete),
    /// Confirms deletion/pruning of an application resources
    ConfirmDeletion(confirm::ConfirmDeletion),
    /// Patch application
    Patch(patch::Patch),
    /// Get logs of application pods
    Logs(Box<logs::Logs>),
    /// Get details about the live Kubernetes manifests of a resource in an application. The
    /// filter-fields flag can be used to only display fields you want to see.
    GetResource(Box<get_resource::GetResource>),
    /// Patch resource in an application
    PatchResource(Box<live::PatchResource>),
    /// Delete resource in an application
    DeleteResource(Box<live::DeleteResource>),
    /// Manage Resource actions
    #[command(subcommand)]
    Actions(actions::ActionsCommand),
    /// Terminate running operation of an application
    TerminateOp(operation::TerminateOp),
    /// Rollback application to a previous deployed version by History ID, omitted will Rollback to
    /// the previous version
    Rollback(operation::Rollback),
}

impl AppCommand {
    pub async fn run(self, args: &ConnectArgs) -> Result<(), Failure> {
        match self {
            Self::Create(c) => c.run(args).await,
            Self::List(c) => c.run(args).await,
            Self::Get(c) => c.run(args).await,
            Self::Sync(c) => c.run(args).await,
            Self::Wait(c) => c.run(args).await,
            Self::Diff(c) => c.run(args).await,
            Self::History(c) => c.run(args).await,
            Self::Manifests(c) => c.run(args).await,
            Self::Resources(c) => c.run(args).await,
            Self::Set(c) => c.run(args).await,
            Self::Unset(c) => c.run(args).await,
            Self::Edit(c) => c.run(args).await,
            Self::AddSource(c) => c.run(args).await,
            Self::RemoveSource(c) => c.run(args).await,
            Self::Delete(c) => c.run(args).await,
            Self::ConfirmDeletion(c) => c.run(args).await,
            Self::Logs(c) => c.run(args).await,
            Self::GetResource(c) => c.run(args).await,
            Self::PatchResource(c) => c.run(args).await,
            Self::DeleteResource(c) => c.run(args).await,
            Self::Patch(c) => c.run(args).await,
            Self::Actions(c) => c.run(args).await,
            Self::TerminateOp(c) => c.run(args).await,
            Self::Rollback(c) => c.run(args).await,
        }
    }
}

/// An Application by name, and by namespace if it is not the control plane's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AppRef {
    pub(super) name: String,
    pub(super) namespace: String,
}

impl AppRef {
    /// Parses `name` or `namespace/name`.
    pub(super) fn new(text: &str, namespace: Option<&str>) -> Self {
        let (namespace, name) = text
            .split_once('/')
            .unwrap_or((namespace.unwrap_or_default(), text));
        Self {
            name: name.to_owned(),
            namespace: namespace.to_owned(),
        }
    }

    fn qualified(&self) -> String {
        if self.namespace.is_empty() {
            self.name.clone()
        } else {
            format!("{}/{}", self.namespace, self.name)
        }
    }

    fn query(&self) -> ApplicationQuery {
        ApplicationQuery {
            name: Some(self.name.clone()),
            app_namespace: self.namespace(),
            ..Default::default()
        }
    }

    fn namespace(&self) -> Option<String> {
        Some(self.namespace.clone())
    }
}

/// How to look at an Application before it is answered.
#[derive(clap::Args, Clone, Copy)]
struct Refresh {
    /// Refresh application data when retrieving
    #[arg(long)]
    refresh: bool,
    /// Refresh application data as well as target manifests cache
    #[arg(long)]
    hard_refresh: bool,
}

impl Refresh {
    fn kind(self) -> Option<String> {
        match self {
            Self {
                hard_refresh: true, ..
            } => Some("hard".into()),
            Self { refresh: true, .. } => Some("normal".into()),
            _ => None,
        }
    }
}

pub(super) async fn get(
    client: &Client,
    app: &AppRef,
    refresh: Option<String>,
) -> Result<Application, Failure> {
    Ok(client
        .unary(
            "/application.ApplicationService/Get",
            ApplicationQuery {
                refresh,
                ..app.query()
            },
        )
        .await?)
}

pub(super) async fn list(
    client: &Client,
    query: ApplicationQuery,
) -> Result<Vec<Application>, Failure> {
    Ok(read_list(client, query).await?.items)
}

/// The same, with the version of the list.
async fn read_list(client: &Client, query: ApplicationQuery) -> Result<ApplicationList, Failure> {
    Ok(client
        .unary("/application.ApplicationService/List", query)
        .await?)
}

pub(super) async fn settings(client: &Client) -> Result<Settings, Failure> {
    Ok(client
        .unary("/cluster.SettingsService/Get", SettingsQuery {})
        .await?)
}

/// The URL of an Application in the web UI.
async fn url(client: &Client, name: &str) -> Result<String, Failure> {
    let settings = settings(client).await?;
    if !settings.url.is_empty() {
        return Ok(format!("{}/applications/{name}", settings.url));
    }
    let connection = client.connection();
    let server = &connection.server;
    Ok(match connection.plaintext {
        true => format!("http://{server}/applications/{name}"),
        false => format!(
            "https://{}/applications/{name}",
            server.strip_suffix(":443").unwrap_or(server)
        ),
    })
}

/// `key=value` pairs.
pub(crate) fn pairs(
    texts: &[String],
) -> Result<std::collections::BTreeMap<String, String>, Failure> {
    let parse = |text: &String| match text.split('=').collect::<Vec<_>>()[..] {
        [key, value] => Ok((key.to_owned(), value.to_owned())),
        _ => Err(Failure::error(format!(
            "labels should have key=value, but instead got: {text}"
        ))),
    };
    texts.iter().map(parse).collect()
}

/// Positions of sources, counted from 1, for the names of sources.
fn positions(app: &Application, names: &[String]) -> Result<Vec<i64>, Failure> {
    let position = |name: &String| {
        let found = app
            .spec
            .sources
            .iter()
            .position(|s| !s.name.is_empty() && s.name == *name);
        let found = found.and_then(|n| i64::try_from(n + 1).ok());
        found.ok_or_else(|| Failure::fatal(format!("Unknown source name '{name}'")))
    };
    names.iter().map(position).collect()
}

/// The source that a flag selects, by position or by name; required for an Application with
/// several.
fn source_position(
    app: &Application,
    position: Option<i64>,
    name: Option<&str>,
) -> Result<Option<usize>, Failure> {
    let position = match (position, name) {
        (Some(_), Some(_)) => {
            return Err(Failure::error(
                "Only one of source-position and source-name can be specified.",
            ));
        }
        (position, None) => position,
        (None, Some(name)) => positions(app, &[name.to_owned()])?.first().copied(),
    };
    if !summary::has_many_sources(app) {
        return Ok(None);
    }
    let at = position.and_then(|p| usize::try_from(p).ok()).filter(|p| *p > 0).ok_or_else(|| {
        Failure::error("Source position should be specified and must be greater than 0 for applications with multiple sources")
    })?;
    if at > app.spec.sources.len() {
        return Err(Failure::error(
            "Source position should be less than the number of sources in the application",
        ));
    }
    Ok(Some(at - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_and_without_namespace() {
        assert_eq!(
            AppRef::new("a", None),
            AppRef {
                name: "a".into(),
                namespace: String::new()
            }
        );
        assert_eq!(AppRef::new("ns/a", Some("other")).qualified(), "ns/a");
        assert_eq!(AppRef::new("a", Some("other")).qualified(), "other/a");
    }

    #[test]
    fn pairs_have_one_equals_sign() {
        assert_eq!(
            pairs(&["a=b".into()])
                .expect("a pair")
                .get("a")
                .map(String::as_str),
            Some("b")
        );
        let message = pairs(&["a=b=c".into()]).err().map(|e| e.message);
        assert_eq!(
            message.as_deref(),
            Some("labels should have key=value, but instead got: a=b=c")
        );
    }

    #[test]
    fn which_source() {
        let mut app = Application::default();
        assert_eq!(source_position(&app, None, None).expect("one source"), None);
        let source = |name: &str| tiphys_api::source::ApplicationSource {
            name: name.into(),
            ..Default::default()
        };
        app.spec.sources = vec![source("a"), source("b")];
        assert_eq!(
            source_position(&app, Some(2), None).expect("in range"),
            Some(1)
        );
        assert_eq!(
            source_position(&app, None, Some("b")).expect("known"),
            Some(1)
        );
        for (position, name) in [
            (None, None),
            (Some(0), None),
            (Some(3), None),
            (None, Some("c")),
            (Some(1), Some("a")),
        ] {
            assert!(
                source_position(&app, position, name).is_err(),
                "{position:?} {name:?}"
            );
        }
    }
}
