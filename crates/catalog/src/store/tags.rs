//! Tags of charts in registries: which of them were read, and which version each has.

use super::{Row, Store, sql::values};
use crate::{CatalogError, repository::RepoId};
use std::collections::BTreeMap;

impl Store {
    /// Whether a repository is one of a registry: its charts have tags.
    ///
    /// # Errors
    /// The database fails.
    pub fn is_registry(&self, id: &RepoId) -> Result<bool, CatalogError> {
        let rows = self.transaction(|sql| {
            sql.query(
                "SELECT tag FROM tiphys_tags
                WHERE repo_namespace = $1 AND repo_name = $2 LIMIT 1",
                values![&id.namespace, &id.name],
            )
        })?;
        Ok(!rows.is_empty())
    }

    /// The versions of a chart by tag.
    pub(crate) fn tags(
        &self,
        id: &RepoId,
        chart_id: &str,
    ) -> Result<BTreeMap<String, String>, CatalogError> {
        let rows = self.transaction(|sql| {
            sql.query(
                "SELECT tag, version FROM tiphys_tags
                WHERE repo_namespace = $1 AND repo_name = $2 AND chart_id = $3",
                values![&id.namespace, &id.name, chart_id],
            )
        })?;
        let pair = |row: &Row| (row.text(0).to_owned(), row.text(1).to_owned());
        Ok(rows.iter().map(pair).collect())
    }

    /// Replaces them.
    pub(crate) fn put_tags(
        &self,
        id: &RepoId,
        chart_id: &str,
        tags: &BTreeMap<String, String>,
    ) -> Result<(), CatalogError> {
        self.transaction(|sql| {
            sql.execute(
                "DELETE FROM tiphys_tags
                WHERE repo_namespace = $1 AND repo_name = $2 AND chart_id = $3",
                values![&id.namespace, &id.name, chart_id],
            )?;
            for (tag, version) in tags {
                sql.execute(
                    "INSERT INTO tiphys_tags (repo_namespace, repo_name, chart_id, tag, version)
                    VALUES ($1, $2, $3, $4, $5)",
                    values![&id.namespace, &id.name, chart_id, tag, version],
                )?;
            }
            Ok(())
        })
    }
}
