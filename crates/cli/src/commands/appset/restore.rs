//! `appset confirm-deletion`, `appset restore`: deletions of a set that wait, and those that were
//! made.

use super::{CREATE, get, qualified, split, wait};
use crate::{
    client::{Client, ConnectArgs, Failure},
    commands::connect,
    output::{self, table, time},
};
use jiff::Timestamp;
use tiphys_api::{
    Application, ApplicationSet,
    constants::DELETION_APPROVED,
    rpc::{application::ApplicationCreateRequest, application_set::ApplicationSetCreateRequest},
};
use tiphys_appset::tombstone::{self, Tombstone};

/// A set by its name.
#[derive(clap::Args)]
pub struct SetRef {
    /// The ApplicationSet, by name or namespace/name
    appset: String,
    /// Namespace of the ApplicationSet
    #[arg(long, short = 'N', value_name = "NAMESPACE")]
    appset_namespace: Option<String>,
}

impl SetRef {
    async fn get(&self, client: &Client) -> Result<ApplicationSet, Failure> {
        let (namespace, name) = split(&self.appset, self.appset_namespace.clone());
        get(client, namespace, name).await
    }

    pub async fn confirm(&self, args: &ConnectArgs) -> Result<(), Failure> {
        let client = connect(args).await?;
        let set = confirm(&client, self.get(&client).await?).await?;
        let name = qualified(&set);
        output::print(&format!("ApplicationSet '{name}' updated successfully\n"));
        Ok(())
    }
}

/// Approves what the set's condition says. The server adds annotations to those that are there.
pub async fn confirm(client: &Client, set: ApplicationSet) -> Result<ApplicationSet, Failure> {
    let mut approved = ApplicationSet {
        spec: set.spec,
        ..ApplicationSet::default()
    };
    let m = &mut approved.metadata;
    (m.name, m.namespace) = (set.metadata.name, set.metadata.namespace);
    (m.labels, m.finalizers) = (set.metadata.labels, set.metadata.finalizers);
    let approval = time::rfc3339(Timestamp::now());
    m.annotations.insert(DELETION_APPROVED.to_owned(), approval);
    wait::ask(&mut approved);
    let request = ApplicationSetCreateRequest {
        applicationset: Some(approved),
        upsert: true,
        dry_run: false,
    };
    Ok(client.unary(CREATE, request).await?)
}

#[derive(clap::Args)]
pub struct RestoreCommand {
    #[command(flatten)]
    set: SetRef,
    /// The Applications to restore; without any, those that can be restored are listed
    apps: Vec<String>,
    /// Restore all Applications that can be restored
    #[arg(long, conflicts_with = "apps")]
    all: bool,
}

impl RestoreCommand {
    pub async fn run(self, args: &ConnectArgs) -> Result<(), Failure> {
        let client = connect(args).await?;
        let set = self.set.get(&client).await?;
        let stones = tombstone::read(&set).map_err(|e| Failure::error(e.to_string()))?;
        if self.apps.is_empty() && !self.all {
            output::print(&rows(&stones));
            return Ok(());
        }
        for app in chosen(&stones, &self.apps, &qualified(&set))? {
            let request = ApplicationCreateRequest {
                application: app.restored(),
                upsert: Some(false),
                // Its repository may be away: it shall come back nevertheless.
                validate: Some(false),
            };
            let restored: Application = client
                .unary("/application.ApplicationService/Create", request)
                .await?;
            output::print(&format!(
                "application '{}' restored\n",
                restored.metadata.name
            ));
        }
        Ok(())
    }
}

fn rows(stones: &[Tombstone]) -> String {
    let rows = stones.iter().map(|stone| {
        vec![
            stone.name().to_owned(),
            stone.application.spec.project.clone(),
            time::text(Some(&stone.deleted_at)),
        ]
    });
    table::table(&["NAME", "PROJECT", "DELETED"], rows)
}

/// The newest of each name; all, if no name is given.
fn chosen<'a>(
    stones: &'a [Tombstone],
    names: &[String],
    set: &str,
) -> Result<Vec<&'a Tombstone>, Failure> {
    let newest = |name: &str| stones.iter().find(|stone| stone.name() == name);
    if names.is_empty() {
        let is_newest = |stone: &&Tombstone| newest(stone.name()) == Some(*stone);
        return Ok(stones.iter().filter(is_newest).collect());
    }
    let of = |name: &String| {
        newest(name).ok_or_else(|| {
            Failure::error(format!(
                "ApplicationSet '{set}' keeps no deleted Application '{name}'"
            ))
        })
    };
    names.iter().map(of).collect()
}
