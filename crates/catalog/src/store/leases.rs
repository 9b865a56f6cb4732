//! Which process reads a repository: several may share a database.

use super::{
    Store,
    sql::{Dialect, Sql, values},
};
use crate::{CatalogError, repository::RepoId};
use std::time::Duration;

/// The time of the database, in seconds: clocks of different machines differ.
fn now(sql: &dyn Sql) -> &'static str {
    match sql.dialect() {
        Dialect::Sqlite => "CAST(unixepoch() AS bigint)",
        Dialect::Postgres => "CAST(extract(epoch from clock_timestamp()) AS bigint)",
    }
}

impl Store {
    /// Takes the lease of a repository, or renews it. Returns whether `holder` has it now.
    ///
    /// # Errors
    /// The database fails.
    pub fn claim(&self, id: &RepoId, holder: &str, lasts: Duration) -> Result<bool, CatalogError> {
        let seconds = i64::try_from(lasts.as_secs()).unwrap_or(i64::MAX);
        // A lease that a crash of the server loses is taken again when it is renewed.
        self.repeatable(|sql| {
            let now = now(sql);
            let claimed = sql.execute(
                &format!(
                    "INSERT INTO tiphys_leases (namespace, name, holder, until)
                    VALUES ($1, $2, $3, {now} + $4) ON CONFLICT (namespace, name) DO UPDATE
                    SET holder = excluded.holder, until = excluded.until
                    WHERE tiphys_leases.holder = excluded.holder OR tiphys_leases.until <= {now}"
                ),
                values![&id.namespace, &id.name, holder, seconds],
            )?;
            Ok(claimed > 0)
        })
    }

    /// Gives the lease of a repository back, if `holder` has it.
    ///
    /// # Errors
    /// The database fails.
    pub fn release(&self, id: &RepoId, holder: &str) -> Result<(), CatalogError> {
        // If this gets lost, the lease ends by itself.
        self.repeatable(|sql| {
            sql.execute(
                "DELETE FROM tiphys_leases WHERE namespace = $1 AND name = $2 AND holder = $3",
                values![&id.namespace, &id.name, holder],
            )?;
            Ok(())
        })
    }
}
