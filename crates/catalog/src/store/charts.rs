//! Charts: writing them, and what was known when they were written.

use super::{Problem, ProblemKind, Row, Sql, Store, sql::values};
use crate::{
    CatalogError,
    index::Note,
    repository::{RepoId, sha256},
};
use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap, HashSet},
};

/// What was stored of a section of an index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChartMark {
    pub chart_id: String,
    pub sha: String,
    /// All files of the chart were tried.
    pub files_done: bool,
    pub skipped: i64,
}

/// Notes of one chart that are kept; they are counted all the same.
const NOTES: usize = 20;

impl Store {
    /// What is stored of a repository, by the key in its index.
    pub(crate) fn marks(&self, id: &RepoId) -> Result<HashMap<String, ChartMark>, CatalogError> {
        let rows = self.transaction(|sql| {
            // Rows of charts that kubeapps removed since. PostgreSQL would look through all charts
            // for each row with `NOT EXISTS`, as long as it has no statistics.
            sql.execute(
                "DELETE FROM tiphys_charts WHERE repo_namespace = $1 AND repo_name = $2
                AND chart_id NOT IN (SELECT chart_id FROM charts
                    WHERE repo_namespace = $3 AND repo_name = $4 AND chart_id IS NOT NULL)",
                values![&id.namespace, &id.name, &id.namespace, &id.name],
            )?;
            sql.query(
                "SELECT entry_key, chart_id, entry_sha, files_sha, skipped FROM tiphys_charts
                WHERE repo_namespace = $1 AND repo_name = $2",
                values![&id.namespace, &id.name],
            )
        })?;
        let mark = |row: &Row| {
            let mark = ChartMark {
                chart_id: row.text(1).to_owned(),
                sha: row.text(2).to_owned(),
                files_done: row.text(2) == row.text(3),
                skipped: row.int(4),
            };
            (row.text(0).to_owned(), mark)
        };
        Ok(rows.iter().map(mark).collect())
    }

    /// Whether the newest version of a chart is deprecated.
    ///
    /// # Errors
    /// The database fails.
    pub fn is_deprecated(&self, id: &RepoId, chart_id: &str) -> Result<bool, CatalogError> {
        let rows = self.read(|sql| {
            sql.query(
                "SELECT deprecated FROM tiphys_charts
                WHERE repo_namespace = $1 AND repo_name = $2 AND chart_id = $3",
                values![&id.namespace, &id.name, chart_id],
            )
        })?;
        Ok(rows.first().is_some_and(|row| row.int(0) != 0))
    }

    /// Remembers why a chart has no usable entry.
    pub(crate) fn put_notes(
        &self,
        id: &RepoId,
        chart_id: &str,
        notes: &[Note],
        now: i64,
    ) -> Result<(), CatalogError> {
        self.transaction(|sql| put_notes(sql, id, chart_id, notes, now))
    }

    /// Removes, in one transaction, the charts of a repository that are not among `kept`, and what
    /// is wrong with others than these and those in `noted`, which have no usable entry.
    pub(crate) fn remove_others(
        &self,
        id: &RepoId,
        kept: &HashSet<String>,
        noted: &HashSet<String>,
    ) -> Result<usize, CatalogError> {
        self.transaction(|sql| {
            let rows = sql.query(
                "SELECT chart_id FROM charts WHERE repo_namespace = $1 AND repo_name = $2",
                values![&id.namespace, &id.name],
            )?;
            let gone: Vec<&str> = rows
                .iter()
                .map(|row| row.text(0))
                .filter(|chart| !kept.contains(*chart))
                .collect();
            for chart in &gone {
                for table in ["charts", "tiphys_charts", "tiphys_tags", "tiphys_archives"] {
                    delete_of(sql, table, id, chart)?;
                }
            }
            let known: HashSet<Cow<'_, str>> =
                kept.iter().chain(noted).map(|id| indexable(id)).collect();
            let rows = sql.query(
                "SELECT DISTINCT chart_id FROM tiphys_problems
                WHERE repo_namespace = $1 AND repo_name = $2",
                values![&id.namespace, &id.name],
            )?;
            for chart in rows.iter().map(|row| row.text(0)) {
                if !known.contains(chart) {
                    delete_of(sql, "tiphys_problems", id, chart)?;
                }
            }
            Ok(gone.len())
        })
    }

    /// What is wrong with charts of a repository, by chart and version.
    ///
    /// # Errors
    /// The database fails.
    pub fn problems(&self, id: &RepoId) -> Result<Vec<Problem>, CatalogError> {
        self.some_problems(id, i64::MAX)
    }

    /// The first of them.
    ///
    /// # Errors
    /// The database fails.
    pub fn some_problems(&self, id: &RepoId, most: i64) -> Result<Vec<Problem>, CatalogError> {
        let rows = self.read(|sql| {
            sql.query(
                "SELECT chart_id, version, kind, reason FROM tiphys_problems
                WHERE repo_namespace = $1 AND repo_name = $2
                ORDER BY chart_id, version, kind LIMIT $3",
                values![&id.namespace, &id.name, most],
            )
        })?;
        Ok(rows.iter().map(problem).collect())
    }

    /// What is wrong with one chart.
    ///
    /// # Errors
    /// The database fails.
    pub fn problems_of(&self, id: &RepoId, chart_id: &str) -> Result<Vec<Problem>, CatalogError> {
        let rows = self.read(|sql| {
            sql.query(
                "SELECT chart_id, version, kind, reason FROM tiphys_problems
                WHERE repo_namespace = $1 AND repo_name = $2 AND chart_id = $3
                ORDER BY version, kind",
                values![&id.namespace, &id.name, &*indexable(chart_id)],
            )
        })?;
        Ok(rows.iter().map(problem).collect())
    }
}

fn problem(row: &Row) -> Problem {
    Problem {
        chart_id: row.text(0).to_owned(),
        version: row.text(1).to_owned(),
        kind: ProblemKind::of(row.text(2)),
        reason: row.text(3).to_owned(),
    }
}

/// `table` is one of ours.
fn delete_of(
    sql: &mut dyn Sql,
    table: &str,
    id: &RepoId,
    chart_id: &str,
) -> Result<(), CatalogError> {
    sql.execute(
        &format!(
            "DELETE FROM {table} WHERE repo_namespace = $1 AND repo_name = $2 AND chart_id = $3"
        ),
        values![&id.namespace, &id.name, chart_id],
    )?;
    Ok(())
}

/// Removes what an index said of a chart that had no usable entry.
pub(super) fn delete_notes(
    sql: &mut dyn Sql,
    id: &RepoId,
    chart_id: &str,
) -> Result<(), CatalogError> {
    sql.execute(
        "DELETE FROM tiphys_problems WHERE repo_namespace = $1 AND repo_name = $2
        AND chart_id = $3 AND kind IN ('skipped', 'ambiguous')",
        values![&id.namespace, &id.name, &*indexable(chart_id)],
    )?;
    Ok(())
}

pub(super) fn put_notes(
    sql: &mut dyn Sql,
    id: &RepoId,
    chart_id: &str,
    notes: &[Note],
    now: i64,
) -> Result<(), CatalogError> {
    let mut reasons: BTreeMap<(&str, bool), Vec<&str>> = BTreeMap::new();
    for note in notes.iter().take(NOTES) {
        let of = reasons.entry((&note.version, note.is_shown)).or_default();
        of.push(&note.reason);
    }
    for ((version, is_shown), reasons) in reasons {
        let kind = if is_shown {
            ProblemKind::Ambiguous
        } else {
            ProblemKind::Skipped
        };
        let reason = reasons.join("; ");
        put_problem(sql, id, chart_id, (version, kind), &reason, now)?;
    }
    Ok(())
}

/// A text that a database can index: of a very long one the start, and a hash of the whole.
fn indexable(text: &str) -> Cow<'_, str> {
    const LONGEST: usize = 512;
    if text.len() <= LONGEST {
        return text.into();
    }
    let start: String = text.chars().take(100).collect();
    format!("{start}…{}", sha256(text.as_bytes())).into()
}

/// Counts how often it happened.
pub(super) fn put_problem(
    sql: &mut dyn Sql,
    id: &RepoId,
    chart_id: &str,
    (version, kind): (&str, ProblemKind),
    reason: &str,
    now: i64,
) -> Result<(), CatalogError> {
    let (chart_id, version) = (indexable(chart_id), indexable(version));
    sql.execute(
        "INSERT INTO tiphys_problems
            (repo_namespace, repo_name, chart_id, version, kind, reason, attempts, at)
        VALUES ($1, $2, $3, $4, $5, $6, 1, $7)
        ON CONFLICT (repo_namespace, repo_name, chart_id, version, kind) DO UPDATE
        SET reason = $8, attempts = tiphys_problems.attempts + 1, at = $9",
        values![
            &id.namespace,
            &id.name,
            &*chart_id,
            &*version,
            kind.word(),
            reason,
            now,
            reason,
            now
        ],
    )?;
    Ok(())
}
