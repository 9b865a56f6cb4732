//! kubeapps' `asset-syncer`: its arguments, environment and messages, for our engine.
//!
//! Main function: [`run`]. It is what the Jobs of an AppRepository run.

mod address;
mod credentials;
mod flags;

pub(crate) use credentials::header as authorization;
pub use flags::Line;

use crate::{
    CatalogError, Filter, Form, RepoId, Store, blocking,
    lease::leased,
    opening::Opening,
    store::{PostgresOptions, Ssl, is_url, shown},
};
use std::{
    path::PathBuf,
    sync::{Arc, Weak},
};
use tiphys_repo::Secret;

/// Where Jobs mount the authorities of a repository.
pub const CA_FILE: &str = "/usr/local/share/ca-certificates/ca.crt";
/// What the program finds around it.
#[derive(Clone, Default)]
pub struct Surroundings {
    /// `DB_PASSWORD`
    pub database_password: Secret,
    /// `AUTHORIZATION_HEADER`: the whole value of the header.
    pub authorization: Secret,
    /// `DOCKER_CONFIG_JSON`, which counts before the header.
    pub docker_config: Secret,
    /// Authorities besides the system's, if the file exists; usually [`CA_FILE`].
    pub ca_file: PathBuf,
    /// A proxy for everything; empty: what the process' environment says.
    pub proxy: String,
    /// Of this program, for the User-Agent.
    pub version: String,
    /// Authorities in PEM, in place of the file.
    pub authorities: Option<String>,
    /// Unique per run: who has the repository's lease. Empty: made of the process and the time.
    pub holder: String,
    /// `PGSSLMODE`, `PGSSLROOTCERT`, `PGSSLCERT` and `PGSSLKEY`.
    pub ssl: [String; 4],
    /// In place of the server that the command line names.
    pub store: Option<Arc<Store>>,
}

/// Why the program fails, as it says so after `Error: `.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct AssetSyncerError(String);

impl AssetSyncerError {
    fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }
}

const USAGE: &str = "Asset Synchronization utility

Usage:
  asset-syncer sync [REPO NAME] [REPO URL] [REPO TYPE]
  asset-syncer delete [REPO NAME]
  asset-syncer invalidate-cache

Flags:
      --database-name string            Name of the database to use (default \"charts\")
      --database-url string             Database URL: host:port (default \"localhost:5432\")
      --database-user string            Database user
      --debug                           no effect
      --filter-rules string             JSON blob with the rules to filter assets
      --global-repos-namespace string   Namespace for global repos (default \"kubeapps\")
      --namespace string                Namespace of the repository being synced
      --oci-repositories strings        List of OCI Repositories in case the type is OCI (sync)
      --pass-credentials                pass credentials to all domains
      --tls-insecure-skip-verify        Skip TLS verification
      --user-agent-comment string       UserAgent comment used during outbound requests

Environment: DB_PASSWORD, AUTHORIZATION_HEADER, DOCKER_CONFIG_JSON
";

/// Runs a command; returns what it says at its end.
///
/// # Errors
/// What the program prints before it exits with 1.
pub async fn run(
    words: &[String],
    surroundings: &Surroundings,
) -> Result<String, AssetSyncerError> {
    let line = Line::parse(words)?;
    let Some((command, arguments)) = line.words.split_first() else {
        return Ok(USAGE.to_owned());
    };
    if line.help {
        return Ok(USAGE.to_owned());
    }
    let got = arguments.len();
    match command.as_str() {
        "sync" => match arguments {
            [name, url, form] => sync(&line, surroundings, name, url, form).await,
            _ => Err(AssetSyncerError::new(format!(
                "need exactly three arguments: [REPO NAME] [REPO URL] [REPO TYPE] (got {got})"
            ))),
        },
        "delete" => match arguments {
            [name] => {
                let id = RepoId::new(&line.namespace, name);
                let store = open(&line, surroundings).await?;
                let (rows, of) = (Arc::clone(&store), id.clone());
                let deleting = blocking(move || rows.delete_repo(&of));
                let deleted =
                    leased(&store, (&id, &holder(surroundings)), Weak::new(), deleting).await;
                deleted.map_err(|e| {
                    let why = format!("can't delete chart repository {name} from database: {e}");
                    AssetSyncerError::new(why)
                })?;
                Ok(format!(
                    "Successfully deleted the chart repository {name} from database\n"
                ))
            }
            _ => Err(AssetSyncerError::new(format!(
                "exactly one argument: [REPO NAME] (got {got})"
            ))),
        },
        "invalidate-cache" => match got {
            0 => {
                let store = open(&line, surroundings).await?;
                blocking(move || store.invalidate()).await.map_err(failed)?;
                Ok("Successfully invalidated cache\n".to_owned())
            }
            _ => Err(AssetSyncerError::new(format!(
                "this command does not take any arguments (got {got})"
            ))),
        },
        "help" => Ok(USAGE.to_owned()),
        other => Err(AssetSyncerError::new(format!(
            "unknown command {other:?} for \"asset-syncer\""
        ))),
    }
}

fn failed(e: impl std::fmt::Display) -> AssetSyncerError {
    AssetSyncerError::new(format!("error: {e}"))
}

async fn open(line: &Line, surroundings: &Surroundings) -> Result<Arc<Store>, AssetSyncerError> {
    let address = &line.database_url;
    let is_pair = |(_, port): (&str, &str)| port.parse::<u16>().is_ok();
    if !is_url(address) && !address.split_once(':').is_some_and(is_pair) {
        let shown = shown(address);
        return Err(failed(format!("can't parse database URL: {shown}")));
    }
    if let Some(store) = &surroundings.store {
        return Ok(Arc::clone(store));
    }
    let [mode, root, certificate, key] = &surroundings.ssl;
    let options = PostgresOptions {
        user: line.database_user.clone(),
        password: surroundings.database_password.clone(),
        database: line.database_name.clone(),
        ssl: Ssl::new(mode, root, certificate, key).map_err(failed)?,
        ..PostgresOptions::default()
    };
    let options = options.at(address).map_err(failed)?;
    // Not the address as it was given, which may contain a password.
    let place = format!("{}:{}", options.host, options.port);
    let store = blocking(move || Store::postgres(options)).await;
    store.map(Arc::new).map_err(|e| match e {
        CatalogError::Database(why) => failed(format!("database at {place}: {why}")),
        e => failed(e),
    })
}

async fn sync(
    line: &Line,
    surroundings: &Surroundings,
    name: &str,
    url: &str,
    form: &str,
) -> Result<String, AssetSyncerError> {
    let store = open(line, surroundings).await?;
    let ca_data = authorities(surroundings)?;
    let authorization = authorization(surroundings)?;
    let filter = Filter::parse(&line.filter_rules).map_err(failed)?;
    let opening = Opening {
        id: RepoId::new(&line.namespace, name),
        url: address::read(url)?,
        is_registry: form != "helm",
        oci_repositories: line.oci_repositories.clone(),
        form: Form::Kubeapps,
        filter,
        authorization,
        ca_data,
        skip_tls: line.skip_tls,
        pass_credentials: line.pass_credentials,
        proxy: surroundings.proxy.clone(),
        agent: agent(&surroundings.version, &line.user_agent_comment),
    };
    let id = opening.id.clone();
    let sync = opening.open(Arc::clone(&store)).map_err(failed)?;
    let report = leased(
        &store,
        (&id, &holder(surroundings)),
        sync.at_work(),
        sync.run(),
    )
    .await;
    let report = report.map_err(|e| match e {
        CatalogError::Filter(_) => AssetSyncerError::new(e.to_string()),
        e => failed(e),
    })?;
    if report.unchanged {
        return Ok("Skipping repository since checksum has not changed\n".to_owned());
    }
    Ok(format!(
        "Successfully added the package repository {name} to database\n"
    ))
}

fn holder(surroundings: &Surroundings) -> String {
    if !surroundings.holder.is_empty() {
        return surroundings.holder.clone();
    }
    let now = jiff::Timestamp::now().as_nanosecond();
    format!("asset-syncer-{}-{now:x}", std::process::id())
}

fn authorities(surroundings: &Surroundings) -> Result<String, AssetSyncerError> {
    if let Some(text) = &surroundings.authorities {
        return checked(text.clone());
    }
    let text = match std::fs::read_to_string(&surroundings.ca_file) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(String::new()),
        Err(e) => {
            let file = surroundings.ca_file.display();
            return Err(failed(format!("failed to append {file} to RootCAs: {e}")));
        }
    };
    checked(text)
}

fn checked(text: String) -> Result<String, AssetSyncerError> {
    if !text.contains("-----BEGIN CERTIFICATE-----") {
        return Err(failed("failed to append certs to RootCAs"));
    }
    Ok(text)
}

fn agent(version: &str, comment: &str) -> String {
    let version = if version.is_empty() { "devel" } else { version };
    if comment.is_empty() {
        format!("asset-syncer/{version}")
    } else {
        format!("asset-syncer/{version} ({comment})")
    }
}
