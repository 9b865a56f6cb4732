//! Tags of charts in registries: which of them were read, and which version each has.
//!
//! Main type: [`KnownTag`].

use super::{Row, Store, sql::values};
use crate::{CatalogError, model::ChartVersion, repository::RepoId};
use std::collections::BTreeMap;

/// A tag that was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct KnownTag {
    /// As the chart says it.
    pub version: String,
    /// Of the manifest that the tag named; empty: it is not known.
    pub digest: String,
    /// When the registry was asked for the digest; milliseconds since 1970.
    pub looked_at: i64,
}

/// The tag that has this version of a chart: the one with its digest, if several have it.
pub(crate) fn tag_of<'t>(
    tags: &'t BTreeMap<String, KnownTag>,
    version: &ChartVersion,
) -> Option<&'t str> {
    let mut of_version = tags.iter().filter(|(_, of)| of.version == version.version);
    let same = of_version
        .clone()
        .find(|(_, of)| of.digest == version.digest);
    same.or_else(|| of_version.next()).map(|(tag, _)| &**tag)
}

impl Store {
    /// Whether a repository is one of a registry: its charts have tags.
    ///
    /// # Errors
    /// The database fails.
    pub fn is_registry(&self, id: &RepoId) -> Result<bool, CatalogError> {
        let rows = self.read(|sql| {
            sql.query(
                "SELECT tag FROM tiphys_tags
                WHERE repo_namespace = $1 AND repo_name = $2 LIMIT 1",
                values![&id.namespace, &id.name],
            )
        })?;
        Ok(!rows.is_empty())
    }

    /// What was read of a chart, by tag.
    pub(crate) fn tags(
        &self,
        id: &RepoId,
        chart_id: &str,
    ) -> Result<BTreeMap<String, KnownTag>, CatalogError> {
        let rows = self.read(|sql| {
            sql.query(
                "SELECT tag, version, digest, looked_at FROM tiphys_tags
                WHERE repo_namespace = $1 AND repo_name = $2 AND chart_id = $3",
                values![&id.namespace, &id.name, chart_id],
            )
        })?;
        let pair = |row: &Row| {
            let known = KnownTag {
                version: row.text(1).to_owned(),
                digest: row.text(2).to_owned(),
                looked_at: row.int(3),
            };
            (row.text(0).to_owned(), known)
        };
        Ok(rows.iter().map(pair).collect())
    }

    /// Replaces them.
    pub(crate) fn put_tags(
        &self,
        id: &RepoId,
        chart_id: &str,
        tags: &BTreeMap<String, KnownTag>,
    ) -> Result<(), CatalogError> {
        self.transaction(|sql| {
            sql.execute(
                "DELETE FROM tiphys_tags
                WHERE repo_namespace = $1 AND repo_name = $2 AND chart_id = $3",
                values![&id.namespace, &id.name, chart_id],
            )?;
            for (tag, known) in tags {
                sql.execute(
                    "INSERT INTO tiphys_tags (repo_namespace, repo_name, chart_id, tag, version,
                        digest, looked_at)
                    VALUES ($1, $2, $3, $4, $5, $6, $7)",
                    values![
                        &id.namespace,
                        &id.name,
                        chart_id,
                        tag,
                        &known.version,
                        &known.digest,
                        known.looked_at
                    ],
                )?;
            }
            Ok(())
        })
    }
}
