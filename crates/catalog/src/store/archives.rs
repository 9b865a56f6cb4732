//! Archives for which their index has no digest: what they were, and when they were asked for.
//!
//! Main type: [`SeenArchive`].

use super::{Row, Store, sql::values};
use crate::{CatalogError, repository::RepoId};

/// An archive that was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SeenArchive {
    pub chart_id: String,
    pub version: String,
    pub sha: String,
    /// What its server calls this state of it, at least one of them.
    pub etag: String,
    pub modified: String,
}

impl Store {
    /// Those that were asked for longest ago, before a time in milliseconds.
    pub(crate) fn oldest_archives(
        &self,
        id: &RepoId,
        before: i64,
        most: i64,
    ) -> Result<Vec<SeenArchive>, CatalogError> {
        let rows = self.read(|sql| {
            sql.query(
                "SELECT chart_id, version, sha, etag, modified FROM tiphys_archives
                WHERE repo_namespace = $1 AND repo_name = $2 AND looked_at < $3
                ORDER BY looked_at, chart_id, version LIMIT $4",
                values![&id.namespace, &id.name, before, most],
            )
        })?;
        let seen = |row: &Row| SeenArchive {
            chart_id: row.text(0).to_owned(),
            version: row.text(1).to_owned(),
            sha: row.text(2).to_owned(),
            etag: row.text(3).to_owned(),
            modified: row.text(4).to_owned(),
        };
        Ok(rows.iter().map(seen).collect())
    }

    /// Remembers what was seen, at a time in milliseconds.
    pub(crate) fn put_archives(
        &self,
        id: &RepoId,
        seen: &[SeenArchive],
        now: i64,
    ) -> Result<(), CatalogError> {
        if seen.is_empty() {
            return Ok(());
        }
        self.repeatable(|sql| {
            for archive in seen {
                sql.execute(
                    "INSERT INTO tiphys_archives (repo_namespace, repo_name, chart_id, version, sha,
                        etag, modified, looked_at)
                    VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
                    ON CONFLICT (repo_namespace, repo_name, chart_id, version) DO UPDATE
                    SET sha = excluded.sha, etag = excluded.etag, modified = excluded.modified,
                        looked_at = excluded.looked_at",
                    values![
                        &id.namespace,
                        &id.name,
                        &archive.chart_id,
                        &archive.version,
                        &archive.sha,
                        &archive.etag,
                        &archive.modified,
                        now
                    ],
                )?;
            }
            Ok(())
        })
    }

    /// Forgets one that is not there any more, or has a digest now.
    pub(crate) fn forget_archive(
        &self,
        id: &RepoId,
        chart_id: &str,
        version: &str,
    ) -> Result<(), CatalogError> {
        self.transaction(|sql| {
            sql.execute(
                "DELETE FROM tiphys_archives WHERE repo_namespace = $1 AND repo_name = $2
                AND chart_id = $3 AND version = $4",
                values![&id.namespace, &id.name, chart_id, version],
            )?;
            Ok(())
        })
    }
}
