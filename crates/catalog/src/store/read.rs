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
        let rows = self.transaction(|sql| {
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

    /// The charts with a name, in all repositories of a namespace or in one of them.
    ///
    /// # Errors
    /// The database fails.
    pub fn named(
        &self,
        namespace: &str,
        repo: Option<&str>,
        name: &str,
    ) -> Result<Vec<VersionOf>, CatalogError> {
        let rows = self.transaction(|sql| {
            sql.query(
                "SELECT repo_name, chart_id FROM charts
                WHERE repo_namespace = $1 AND info->>'name' = $2 ORDER BY repo_name",
                values![namespace, name],
            )
        })?;
        let found = |row: &Row| VersionOf {
            repo: RepoId::new(namespace, row.text(0)),
            chart_id: row.text(1).to_owned(),
        };
        let wanted = |of: &VersionOf| repo.is_none_or(|repo| repo == of.repo.name);
        Ok(rows.iter().map(found).filter(wanted).collect())
    }
}
