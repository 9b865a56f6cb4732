//! Charts as people read them.

use super::{Row, Store, sql::values};
use crate::{CatalogError, model::Chart, repository::RepoId};

/// A chart's version, by the repository and the name of the chart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionOf {
    pub repo: RepoId,
    pub chart_id: String,
}

impl Store {
    /// A chart, by its id.
    ///
    /// # Errors
    /// The database fails.
    pub fn chart(&self, id: &RepoId, chart_id: &str) -> Result<Option<Chart>, CatalogError> {
        let rows = self.read(|sql| {
            sql.query(
                "SELECT info FROM charts
                WHERE repo_namespace = $1 AND repo_name = $2 AND chart_id = $3",
                values![&id.namespace, &id.name, chart_id],
            )
        })?;
        let row = rows.first();
        row.map(|row| Ok(serde_json::from_str(row.text(0))?))
            .transpose()
    }

    /// A chart's icon: PNG, in base64.
    ///
    /// # Errors
    /// The database fails.
    pub fn icon(&self, id: &RepoId, chart_id: &str) -> Result<Option<String>, CatalogError> {
        let rows = self.read(|sql| {
            sql.query(
                "SELECT info->>'raw_icon' FROM charts
                WHERE repo_namespace = $1 AND repo_name = $2 AND chart_id = $3",
                values![&id.namespace, &id.name, chart_id],
            )
        })?;
        let icon = rows.first().and_then(|row| row.optional_text(0));
        Ok(icon.filter(|icon| !icon.is_empty()))
    }

    /// The charts with a name, in all repositories.
    ///
    /// # Errors
    /// The database fails.
    pub fn named(&self, name: &str) -> Result<Vec<VersionOf>, CatalogError> {
        let rows = self.read(|sql| {
            sql.query(
                "SELECT repo_namespace, repo_name, chart_id FROM charts
                WHERE info->>'name' = $1 ORDER BY repo_namespace, repo_name",
                values![name],
            )
        })?;
        let found = |row: &Row| VersionOf {
            repo: RepoId::new(row.text(0), row.text(1)),
            chart_id: row.text(2).to_owned(),
        };
        Ok(rows.iter().map(found).collect())
    }
}

/// The tables that kubeapps has, with the columns that are compared and their order.
const TABLES: [(&str, &[&str]); 3] = [
    ("repos", &["namespace", "name", "checksum"]),
    (
        "charts",
        &["repo_namespace", "repo_name", "chart_id", "info"],
    ),
    (
        "files",
        &[
            "repo_namespace",
            "repo_name",
            "chart_id",
            "chart_files_id",
            "info",
        ],
    ),
];

impl Store {
    /// kubeapps' three tables without numbers and times: what tests and recorded cases compare.
    ///
    /// # Errors
    /// The database fails.
    #[doc(hidden)]
    pub fn rows(&self) -> Result<serde_json::Value, CatalogError> {
        let mut tables = serde_json::Map::new();
        for (table, columns) in TABLES {
            let (names, order) = (columns.join(", "), columns[..2].join(", "));
            let statement = format!("SELECT {names} FROM {table} ORDER BY {order}");
            let rows = self.read(|sql| sql.query(&statement, &[]))?;
            let row = |row: &Row| {
                let cells = columns.iter().enumerate().map(|(place, name)| {
                    let value = match row.optional_text(place) {
                        None => serde_json::Value::Null,
                        Some(text) if *name == "info" => serde_json::from_str(&text)?,
                        Some(text) => text.into(),
                    };
                    Ok(((*name).to_owned(), value))
                });
                let cells = cells.collect::<Result<serde_json::Map<_, _>, CatalogError>>();
                cells.map(serde_json::Value::Object)
            };
            let rows: Result<Vec<_>, CatalogError> = rows.iter().map(row).collect();
            tables.insert(table.to_owned(), rows?.into());
        }
        Ok(tables.into())
    }
}
