//! SQLite: one file, or memory.

use super::sql::{Dialect, Row, Sql, Value};
use crate::CatalogError;
use rusqlite::{
    Connection, ToSql,
    types::{ToSqlOutput, ValueRef},
};
use std::{path::Path, time::Duration};

/// How long to wait for another process that writes.
const BUSY: Duration = Duration::from_secs(30);

impl ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Int(number) => ValueRef::Integer(*number),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Column(_) => {
                let e = "SQLite has no arrays";
                return Err(rusqlite::Error::ToSqlConversionFailure(e.into()));
            }
        }))
    }
}

/// Opens a file, or creates it for its owner only: it may hold credentials.
pub fn open(path: &Path) -> Result<Connection, CatalogError> {
    let unusable = |e: std::io::Error| {
        CatalogError::Database(format!("{} cannot be created: {e}", path.display()))
    };
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(unusable)?;
    }
    let mut options = std::fs::OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map_err(unusable)?;
    prepared(Connection::open(path)?)
}

pub fn in_memory() -> Result<Connection, CatalogError> {
    prepared(Connection::open_in_memory()?)
}

fn prepared(connection: Connection) -> Result<Connection, CatalogError> {
    connection.busy_timeout(BUSY)?;
    connection.set_prepared_statement_cache_capacity(64);
    // After a power cut the last transactions may be missing, never parts of them.
    connection.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON;",
    )?;
    Ok(connection)
}

/// A transaction of SQLite.
pub struct Running<'c>(pub rusqlite::Transaction<'c>);

impl Sql for Running<'_> {
    fn dialect(&self) -> Dialect {
        Dialect::Sqlite
    }

    fn execute(&mut self, sql: &str, values: &[Value]) -> Result<u64, CatalogError> {
        let mut statement = self.0.prepare_cached(&sql.replace('$', "?"))?;
        let changed = statement.execute(rusqlite::params_from_iter(values))?;
        Ok(changed as u64)
    }

    fn query(&mut self, sql: &str, values: &[Value]) -> Result<Vec<Row>, CatalogError> {
        let mut statement = self.0.prepare_cached(&sql.replace('$', "?"))?;
        let columns = statement.column_count();
        let rows = statement.query_map(rusqlite::params_from_iter(values), |row| {
            let value = |column| {
                Ok(match row.get_ref(column)? {
                    ValueRef::Integer(number) => Value::Int(number),
                    ValueRef::Text(text) => Value::Text(String::from_utf8_lossy(text).into_owned()),
                    ValueRef::Null | ValueRef::Real(_) | ValueRef::Blob(_) => Value::Null,
                })
            };
            (0..columns).map(value).collect::<Result<_, _>>().map(Row)
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    fn script(&mut self, sql: &str) -> Result<(), CatalogError> {
        Ok(self.0.execute_batch(sql)?)
    }
}
