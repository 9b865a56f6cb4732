//! Repositories: what users entered, and the state of reading them.

use super::{Sql, Store, sql::values};
use crate::{CatalogError, repository::RepoId};

/// What the last complete sync left.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RepoState {
    /// SHA-256 of the index, as kubeapps keeps it.
    pub checksum: String,
    /// The same, as we left it. It differs once kubeapps synced.
    pub our_checksum: String,
    /// Of the settings; see [`crate::Repository`].
    pub config_sha: String,
    pub etag: String,
    pub modified: String,
    /// Entries of the index that are not in the catalogue.
    pub skipped: i64,
}

/// A repository as users see it. Times are seconds since 1970.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RepoStatus {
    pub id: RepoId,
    pub url: String,
    /// What a user entered; empty if kubeapps or a syncer made the repository.
    pub spec: String,
    pub checksum: String,
    pub attempted_at: Option<i64>,
    pub succeeded_at: Option<i64>,
    /// Why the last attempt failed.
    pub error: Option<String>,
    /// Entries of the index that are not in the catalogue.
    pub skipped: i64,
    pub charts: i64,
    pub versions: i64,
    /// Its charts have tags.
    pub is_registry: bool,
}

impl Store {
    /// Keeps what a user entered about a repository.
    ///
    /// # Errors
    /// The database fails.
    pub fn put_spec(&self, id: &RepoId, url: &str, spec: &str) -> Result<(), CatalogError> {
        self.transaction(|sql| {
            sql.execute(
                "INSERT INTO tiphys_repos (namespace, name, url, spec) VALUES ($1, $2, $3, $4)
                ON CONFLICT (namespace, name) DO UPDATE SET url = $5, spec = $6",
                values![&id.namespace, &id.name, url, spec, url, spec],
            )?;
            Ok(())
        })
    }

    /// Removes a repository with all that is known of it. Returns whether there was one.
    ///
    /// # Errors
    /// The database fails.
    pub fn delete_repo(&self, id: &RepoId) -> Result<bool, CatalogError> {
        let key = values![&id.namespace, &id.name];
        self.transaction(|sql| {
            let theirs = "DELETE FROM repos WHERE namespace = $1 AND name = $2";
            let removed = sql.execute(theirs, key)?;
            for table in [
                "tiphys_charts",
                "tiphys_problems",
                "tiphys_tags",
                "tiphys_archives",
            ] {
                let ours =
                    format!("DELETE FROM {table} WHERE repo_namespace = $1 AND repo_name = $2");
                sql.execute(&ours, key)?;
            }
            let ours = "DELETE FROM tiphys_repos WHERE namespace = $1 AND name = $2";
            Ok(removed + sql.execute(ours, key)? > 0)
        })
    }

    /// All repositories, by namespace and name.
    ///
    /// # Errors
    /// The database fails.
    pub fn repos(&self) -> Result<Vec<RepoStatus>, CatalogError> {
        let rows = self.read(|sql| {
            sql.query(
                "SELECT n.namespace, n.name, t.url, t.spec, r.checksum, t.attempted_at,
                    t.succeeded_at, t.error, t.skipped,
                    (SELECT count(*) FROM charts c
                        WHERE c.repo_namespace = n.namespace AND c.repo_name = n.name),
                    (SELECT CAST(sum(c.versions) AS bigint) FROM tiphys_charts c
                        WHERE c.repo_namespace = n.namespace AND c.repo_name = n.name),
                    (SELECT count(*) FROM (SELECT 1 FROM tiphys_tags g
                        WHERE g.repo_namespace = n.namespace AND g.repo_name = n.name LIMIT 1) f)
                FROM (SELECT namespace, name FROM repos
                    UNION SELECT namespace, name FROM tiphys_repos) n
                LEFT JOIN repos r ON r.namespace = n.namespace AND r.name = n.name
                LEFT JOIN tiphys_repos t ON t.namespace = n.namespace AND t.name = n.name
                ORDER BY n.namespace, n.name",
                &[],
            )
        })?;
        let status = |row: &super::Row| RepoStatus {
            id: RepoId::new(row.text(0), row.text(1)),
            url: row.text(2).to_owned(),
            spec: row.text(3).to_owned(),
            checksum: row.text(4).to_owned(),
            attempted_at: row.optional_int(5),
            succeeded_at: row.optional_int(6),
            error: row.optional_text(7),
            skipped: row.int(8),
            charts: row.int(9),
            versions: row.int(10),
            is_registry: row.int(11) > 0,
        };
        Ok(rows.iter().map(status).collect())
    }

    /// One of them.
    ///
    /// # Errors
    /// The database fails.
    pub fn repo(&self, id: &RepoId) -> Result<Option<RepoStatus>, CatalogError> {
        Ok(self.repos()?.into_iter().find(|repo| repo.id == *id))
    }

    pub(crate) fn state(&self, id: &RepoId) -> Result<RepoState, CatalogError> {
        let rows = self.read(|sql| {
            sql.query(
                "SELECT r.checksum, t.checksum, t.config_sha, t.etag, t.modified, t.skipped
                FROM (SELECT 1) one
                LEFT JOIN repos r ON r.namespace = $1 AND r.name = $2
                LEFT JOIN tiphys_repos t ON t.namespace = $3 AND t.name = $4",
                values![&id.namespace, &id.name, &id.namespace, &id.name],
            )
        })?;
        let of = |column| rows.first().map(|row| row.text(column).to_owned());
        Ok(RepoState {
            checksum: of(0).unwrap_or_default(),
            our_checksum: of(1).unwrap_or_default(),
            config_sha: of(2).unwrap_or_default(),
            etag: of(3).unwrap_or_default(),
            modified: of(4).unwrap_or_default(),
            skipped: rows.first().map_or(0, |row| row.int(5)),
        })
    }

    /// Remembers how an attempt ended. `state` is that of a complete one.
    pub(crate) fn finish(
        &self,
        id: &RepoId,
        url: &str,
        now: jiff::Timestamp,
        ended: Result<&RepoState, &str>,
    ) -> Result<(), CatalogError> {
        self.transaction(|sql| match ended {
            Ok(state) => {
                succeeded(sql, (id, url), now, state)?;
                sql.execute(
                    "UPDATE tiphys_charts SET files_sha = entry_sha
                    WHERE repo_namespace = $1 AND repo_name = $2 AND files_sha <> entry_sha",
                    values![&id.namespace, &id.name],
                )?;
                Ok(())
            }
            Err(reason) => failed(sql, (id, url), now, reason),
        })
    }

    /// The same of an attempt that found nothing new, without waiting for the disk. Charts whose files
    /// were not tried after another index are still to be tried.
    pub(crate) fn finish_unchanged(
        &self,
        id: &RepoId,
        url: &str,
        now: jiff::Timestamp,
        state: &RepoState,
    ) -> Result<(), CatalogError> {
        self.repeatable(|sql| succeeded(sql, (id, url), now, state))
    }
}

fn failed(
    sql: &mut dyn Sql,
    (id, url): (&RepoId, &str),
    now: jiff::Timestamp,
    reason: &str,
) -> Result<(), CatalogError> {
    sql.execute(
        "INSERT INTO tiphys_repos (namespace, name, url, attempted_at, error)
        VALUES ($1, $2, $3, $4, $5) ON CONFLICT (namespace, name) DO UPDATE
        SET attempted_at = excluded.attempted_at, error = excluded.error",
        values![&id.namespace, &id.name, url, now.as_second(), reason],
    )?;
    Ok(())
}

fn succeeded(
    sql: &mut dyn Sql,
    (id, url): (&RepoId, &str),
    now: jiff::Timestamp,
    state: &RepoState,
) -> Result<(), CatalogError> {
    let seconds = now.as_second();
    sql.execute(
        "INSERT INTO tiphys_repos (namespace, name, url, config_sha, checksum, etag, modified,
            attempted_at, succeeded_at, skipped)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
        ON CONFLICT (namespace, name) DO UPDATE
        SET url = excluded.url, config_sha = excluded.config_sha, checksum = excluded.checksum,
            etag = excluded.etag, modified = excluded.modified,
            attempted_at = excluded.attempted_at, succeeded_at = excluded.succeeded_at,
            error = NULL, skipped = excluded.skipped",
        values![
            &id.namespace,
            &id.name,
            url,
            &state.config_sha,
            &state.checksum,
            &state.etag,
            &state.modified,
            seconds,
            seconds,
            state.skipped
        ],
    )?;
    let text = now.strftime("%Y-%m-%d %H:%M:%S.%f +0000 UTC").to_string();
    sql.execute(
        "INSERT INTO repos (namespace, name, checksum, last_update) VALUES ($1, $2, $3, $4)
        ON CONFLICT (namespace, name) DO UPDATE
        SET checksum = excluded.checksum, last_update = excluded.last_update",
        values![&id.namespace, &id.name, &state.checksum, &text],
    )?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The index is the one before again, after a sync of another one was stopped.
    #[test]
    fn files_that_were_not_tried_are_not_taken_for_tried() {
        let store = Store::in_memory().expect("a database");
        let (id, now) = (RepoId::new("n", "r"), jiff::Timestamp::UNIX_EPOCH);
        let state = RepoState {
            checksum: "one".to_owned(),
            our_checksum: "one".to_owned(),
            config_sha: "config".to_owned(),
            etag: "etag".to_owned(),
            modified: "then".to_owned(),
            skipped: 3,
        };
        assert_eq!(store.state(&id).expect("nothing"), RepoState::default());
        store
            .finish(&id, "u", now, Err("no answer"))
            .expect("stored");
        assert_eq!(store.state(&id).expect("a state"), RepoState::default());
        let insert = "INSERT INTO tiphys_charts (repo_namespace, repo_name, chart_id, entry_key,
                entry_sha, name, folded_name, folded_keywords, folded_text, category, keywords,
                version, app_version, description, versions, icon_url)
            VALUES ('n', 'r', 'r/a', 'a', 'sha', 'a', 'a', '', '', '', '[]', '1', '', '', 1, '')";
        store
            .transaction(|sql| sql.script(insert))
            .expect("a chart");
        let tried = || {
            let asked = "SELECT files_sha FROM tiphys_charts";
            let rows = store.read(|sql| sql.query(asked, &[]));
            rows.expect("a chart")[0].text(0).to_owned()
        };
        store
            .finish_unchanged(&id, "u", now, &state)
            .expect("stored");
        assert_eq!(store.state(&id).expect("a state"), state);
        assert_eq!(tried(), "");
        store.finish(&id, "v", now, Ok(&state)).expect("stored");
        assert_eq!(tried(), "sha");
        let status = store.repo(&id).expect("a database").expect("it is there");
        assert_eq!((status.url.as_str(), status.error), ("v", None));
        store
            .finish(&id, "w", now, Err("no answer"))
            .expect("stored");
        let status = store.repo(&id).expect("a database").expect("it is there");
        let said = (status.url.as_str(), status.error.as_deref());
        assert_eq!(said, ("v", Some("no answer")));
        assert_eq!(
            (status.attempted_at, status.succeeded_at),
            (Some(0), Some(0))
        );
    }
}
