//! What is known of repositories: in SQLite or PostgreSQL, with the same statements.
//!
//! Main type: [`Store`]. Its functions block: call them from a thread for that.

mod address;
mod archives;
mod batch;
mod charts;
mod files;
mod kept;
mod leases;
mod postgres;
mod read;
mod repos;
mod schema;
mod sections;
mod sql;
mod sqlite;
mod tags;
mod tls;

pub(crate) use address::{is_url, shown};
pub(crate) use archives::SeenArchive;
pub(crate) use files::{FilesOutcome, FilesRow, IconOutcome, IconState, files_id};
pub use kept::Kept;
pub use postgres::PostgresOptions;
pub use read::VersionOf;
pub use repos::{RepoState, RepoStatus};
pub(crate) use sections::StoredSection;
pub(crate) use tags::{KnownTag, tag_of};
pub use tls::{Ssl, SslMode};

use crate::{CatalogError, model::path_of};
use rusqlite::TransactionBehavior;
pub(crate) use sql::{Dialect, Row, Sql, Value};
use std::{
    path::Path,
    sync::{Mutex, PoisonError},
};

/// What is wrong with one chart, or one version of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The chart's id; of a chart without a usable entry, what its id would be.
    pub chart_id: String,
    pub version: String,
    pub kind: ProblemKind,
    pub reason: String,
}

impl Problem {
    /// Where the chart is below its repository.
    pub fn path(&self) -> String {
        path_of(&self.chart_id)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProblemKind {
    /// The entry is not in the catalogue.
    Skipped,
    /// The version is listed more than once, with different archives.
    Ambiguous,
    /// The archive could not be read; it is tried again.
    Files,
    Icon,
}

impl ProblemKind {
    pub fn word(self) -> &'static str {
        match self {
            Self::Skipped => "skipped",
            Self::Ambiguous => "ambiguous",
            Self::Files => "files",
            Self::Icon => "icon",
        }
    }

    fn of(word: &str) -> Self {
        match word {
            "ambiguous" => Self::Ambiguous,
            "files" => Self::Files,
            "icon" => Self::Icon,
            _ => Self::Skipped,
        }
    }
}

enum Database {
    Sqlite(Mutex<rusqlite::Connection>),
    Postgres(Box<postgres::Postgres>),
}

/// The database of the catalogue.
pub struct Store(Database);

impl Store {
    /// A file of this machine; it and its folder are created when they are missing.
    ///
    /// # Errors
    /// It cannot be opened, or was written by a newer program.
    pub fn sqlite(path: &Path) -> Result<Self, CatalogError> {
        Self::opened(Database::Sqlite(Mutex::new(sqlite::open(path)?)))
    }

    /// # Errors
    /// SQLite fails.
    pub fn in_memory() -> Result<Self, CatalogError> {
        Self::opened(Database::Sqlite(Mutex::new(sqlite::in_memory()?)))
    }

    /// A server. Call it from a thread that may block, within a runtime.
    ///
    /// # Errors
    /// It cannot be reached, or its tables were written by a newer program.
    pub fn postgres(options: PostgresOptions) -> Result<Self, CatalogError> {
        let runtime = tokio::runtime::Handle::current();
        let postgres = postgres::Postgres::new(options, runtime);
        Self::opened(Database::Postgres(Box::new(postgres)))
    }

    fn opened(database: Database) -> Result<Self, CatalogError> {
        let store = Self(database);
        // Mostly nothing is left to do, and to find that out nobody has to wait for who writes.
        if !store.read(|sql| schema::is_current(sql))? {
            store.transaction(|sql| schema::migrate(sql))?;
        }
        Ok(store)
    }

    /// Removes everything that was read from repositories.
    ///
    /// # Errors
    /// The database fails.
    pub fn invalidate(&self) -> Result<(), CatalogError> {
        self.transaction(|sql| schema::invalidate(sql))
    }

    pub(crate) fn transaction<T>(
        &self,
        work: impl FnOnce(&mut dyn Sql) -> Result<T, CatalogError>,
    ) -> Result<T, CatalogError> {
        // Without this, two processes that both read first would both be refused.
        self.begin(TransactionBehavior::Immediate, work)
    }

    /// For work that is done again if it gets lost: in a crash of the server, the last transactions
    /// may be missing, and all before them is there.
    pub(crate) fn repeatable<T>(
        &self,
        work: impl FnOnce(&mut dyn Sql) -> Result<T, CatalogError>,
    ) -> Result<T, CatalogError> {
        match &self.0 {
            Database::Sqlite(_) => self.transaction(work),
            Database::Postgres(postgres) => postgres.repeatable(work),
        }
    }

    /// For work that writes nothing: it does not wait for another process that does.
    pub(crate) fn read<T>(
        &self,
        work: impl FnOnce(&mut dyn Sql) -> Result<T, CatalogError>,
    ) -> Result<T, CatalogError> {
        match &self.0 {
            Database::Sqlite(_) => self.begin(TransactionBehavior::Deferred, work),
            Database::Postgres(postgres) => postgres.read(work),
        }
    }

    fn begin<T>(
        &self,
        behaviour: TransactionBehavior,
        work: impl FnOnce(&mut dyn Sql) -> Result<T, CatalogError>,
    ) -> Result<T, CatalogError> {
        match &self.0 {
            Database::Sqlite(connection) => {
                let mut connection = connection.lock().unwrap_or_else(PoisonError::into_inner);
                let begun = connection.transaction_with_behavior(behaviour)?;
                let mut running = sqlite::Running(begun);
                let done = work(&mut running)?;
                running.0.commit()?;
                Ok(done)
            }
            Database::Postgres(postgres) => postgres.transaction(work),
        }
    }
}
