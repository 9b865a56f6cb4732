//! `appset confirm-deletion`, `appset restore`: deletions of a set that wait, and those that were
//! made.

use super::{CREATE, GET, get, qualified, split, typed, wait};
use crate::{
    client::{Client, ConnectArgs, Failure},
    commands::connect,
    output::{self, table, time},
};
use jiff::Timestamp;
use tiphys_api::{
    Application, ApplicationSet,
    constants::DELETION_APPROVED,
    rpc::{
        application::ApplicationCreateRequest,
        application_set::{ApplicationSetCreateRequest, ApplicationSetGetQuery},
    },
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

    /// The set, or what is kept of it since it was deleted.
    async fn find(&self, client: &Client) -> Result<Found, Failure> {
        let missing = match self.get(client).await {
            Ok(set) => return Ok(Found::Here(set)),
            Err(error) if error.status == Some(tonic::Code::NotFound) => error,
            Err(error) => return Err(error),
        };
        let (appset_namespace, name) = split(&self.appset, self.appset_namespace.clone());
        let query = ApplicationSetGetQuery {
            name,
            appset_namespace,
            deleted: true,
        };
        let set: Result<ApplicationSet, _> = client.unary(GET, query).await;
        match set {
            Ok(mut set) => {
                typed(&mut set);
                Ok(Found::Deleted(set))
            }
            // Of Argo CD's server, too, which does not know the field.
            Err(status) if status.code() == tonic::Code::NotFound => Err(missing),
            Err(status) => Err(status.into()),
        }
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
        ..Default::default()
    };
    Ok(client.unary(CREATE, request).await?)
}

/// Where the deleted Applications of a set are.
enum Found {
    /// In the set's annotation.
    Here(ApplicationSet),
    /// The set itself was deleted.
    Deleted(ApplicationSet),
}

#[derive(clap::Args)]
pub struct RestoreCommand {
    #[command(flatten)]
    set: SetRef,
    /// The Applications to restore; without any, those that can be restored are listed
    apps: Vec<String>,
    /// Restore all Applications that can be restored, and the ApplicationSet if it was deleted
    #[arg(long, conflicts_with = "apps")]
    all: bool,
    /// Restore the ApplicationSet if it was deleted, and no Applications: it generates its own
    #[arg(long, conflicts_with_all = ["apps", "all"])]
    set_only: bool,
}

impl RestoreCommand {
    pub async fn run(self, args: &ConnectArgs) -> Result<(), Failure> {
        let client = connect(args).await?;
        let found = self.set.find(&client).await?;
        let (set, is_deleted) = match &found {
            Found::Here(set) => (set, false),
            Found::Deleted(set) => (set, true),
        };
        let stones = tombstone::read(set).map_err(|e| Failure::error(e.to_string()))?;
        let lists = self.apps.is_empty() && !self.all && !self.set_only;
        if lists {
            if is_deleted {
                let name = qualified(set);
                eprintln!("ApplicationSet '{name}' was deleted; --all and --set-only restore it");
            }
            output::print(&rows(&stones));
            return Ok(());
        }
        if self.set_only && !is_deleted {
            let name = qualified(set);
            return Err(Failure::error(format!("ApplicationSet '{name}' exists")));
        }
        if !self.set_only {
            for app in chosen(&stones, &self.apps, &qualified(set))? {
                create(&client, app).await?;
            }
        }
        // After its Applications: it takes those over that it generates.
        if is_deleted && self.apps.is_empty() {
            restore(&client, set).await?;
        }
        Ok(())
    }
}

async fn create(client: &Client, app: &Tombstone) -> Result<(), Failure> {
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
    Ok(())
}

/// The server has what is not shown here, such as passwords of URLs.
async fn restore(client: &Client, set: &ApplicationSet) -> Result<(), Failure> {
    let mut named = ApplicationSet::default();
    named.metadata.name.clone_from(&set.metadata.name);
    named.metadata.namespace.clone_from(&set.metadata.namespace);
    let request = ApplicationSetCreateRequest {
        applicationset: Some(named),
        upsert: false,
        restore: true,
        ..Default::default()
    };
    let restored: ApplicationSet = client.unary(CREATE, request).await?;
    let name = qualified(&restored);
    output::print(&format!("ApplicationSet '{name}' restored\n"));
    Ok(())
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
