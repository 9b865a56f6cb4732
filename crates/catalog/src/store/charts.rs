//! Charts: writing them, and what was known when they were written.

use super::{Problem, ProblemKind, Row, Sql, Store, sql::values};
use crate::{
    CatalogError,
    index::Note,
    model::Chart,
    repository::RepoId,
    search::{folded, searched_text},
};
use std::collections::{BTreeMap, HashMap, HashSet};

/// What was stored of a section of an index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChartMark {
    pub chart_id: String,
    pub sha: String,
    /// All files of the chart were tried.
    pub files_done: bool,
    pub skipped: i64,
}

/// A section of an index with what belongs to it in our tables.
pub struct StoredSection {
    /// `None`: only the notes, why it has no usable entry.
    pub chart: Option<Chart>,
    pub key: String,
    pub sha: String,
    pub deprecated: bool,
    pub notes: Vec<Note>,
}

/// Notes of one chart that are kept; they are counted all the same.
const NOTES: usize = 20;

impl Store {
    /// What is stored of a repository, by the key in its index.
    pub(crate) fn marks(&self, id: &RepoId) -> Result<HashMap<String, ChartMark>, CatalogError> {
        let rows = self.transaction(|sql| {
            // Rows of charts that kubeapps removed since.
            sql.execute(
                "DELETE FROM tiphys_charts WHERE repo_namespace = $1 AND repo_name = $2
                AND NOT EXISTS (SELECT 1 FROM charts c
                    WHERE c.repo_namespace = tiphys_charts.repo_namespace
                    AND c.repo_name = tiphys_charts.repo_name
                    AND c.chart_id = tiphys_charts.chart_id)",
                values![&id.namespace, &id.name],
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

    /// Stores sections of an index, in one transaction. An icon stays as long as its address does.
    /// Files of versions that a chart does not have any more are removed.
    pub(crate) fn put_sections(
        &self,
        id: &RepoId,
        sections: &[StoredSection],
        now: i64,
    ) -> Result<(), CatalogError> {
        self.transaction(|sql| {
            sql.execute(
                "INSERT INTO repos (namespace, name) VALUES ($1, $2)
                ON CONFLICT (namespace, name) DO NOTHING",
                values![&id.namespace, &id.name],
            )?;
            for section in sections {
                put_section(sql, id, section, now)?;
            }
            Ok(())
        })
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

    /// Removes, in one transaction, the charts of a repository that are not among `kept`.
    pub(crate) fn remove_others(
        &self,
        id: &RepoId,
        kept: &HashSet<String>,
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
                for table in ["charts", "tiphys_charts", "tiphys_problems", "tiphys_tags"] {
                    sql.execute(
                        &format!(
                            "DELETE FROM {table}
                            WHERE repo_namespace = $1 AND repo_name = $2 AND chart_id = $3"
                        ),
                        values![&id.namespace, &id.name, *chart],
                    )?;
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
        let rows = self.transaction(|sql| {
            sql.query(
                "SELECT chart_id, version, kind, reason FROM tiphys_problems
                WHERE repo_namespace = $1 AND repo_name = $2 ORDER BY chart_id, version, kind",
                values![&id.namespace, &id.name],
            )
        })?;
        let problem = |row: &Row| Problem {
            chart_id: row.text(0).to_owned(),
            version: row.text(1).to_owned(),
            kind: ProblemKind::of(row.text(2)),
            reason: row.text(3).to_owned(),
        };
        Ok(rows.iter().map(problem).collect())
    }
}

/// The document as kubeapps reads it. A row that would not change is not written.
fn put_document(sql: &mut dyn Sql, id: &RepoId, chart: &Chart) -> Result<(), CatalogError> {
    let mut document = chart.clone();
    let before = sql.query(
        "SELECT info->>'icon', info->>'raw_icon', info->>'icon_content_type' FROM charts
        WHERE repo_namespace = $1 AND repo_name = $2 AND chart_id = $3",
        values![&id.namespace, &id.name, &chart.id],
    )?;
    if let Some(before) = before.first()
        && before.text(0) == chart.icon
    {
        document.raw_icon = before.optional_text(1);
        document.icon_content_type = before.text(2).to_owned();
    }
    let text = serde_json::to_string(&document)?;
    sql.execute(
        "INSERT INTO charts (repo_namespace, repo_name, chart_id, info) VALUES ($1, $2, $3, $4)
        ON CONFLICT (repo_name, repo_namespace, chart_id) DO UPDATE SET info = $5
        WHERE charts.info IS DISTINCT FROM $6",
        values![&id.namespace, &id.name, &chart.id, &text, &text, &text],
    )?;
    Ok(())
}

fn put_section(
    sql: &mut dyn Sql,
    id: &RepoId,
    stored: &StoredSection,
    now: i64,
) -> Result<(), CatalogError> {
    let Some(chart) = &stored.chart else {
        let would_be = format!("{}/{}", id.name, stored.key);
        return put_notes(sql, id, &would_be, &stored.notes, now);
    };
    put_document(sql, id, chart)?;
    put_row(sql, id, stored, chart)?;
    remove_old_files(sql, id, chart)?;
    sql.execute(
        "DELETE FROM tiphys_problems
        WHERE repo_namespace = $1 AND repo_name = $2 AND chart_id = $3",
        values![&id.namespace, &id.name, &chart.id],
    )?;
    put_notes(sql, id, &chart.id, &stored.notes, now)
}

fn put_row(
    sql: &mut dyn Sql,
    id: &RepoId,
    stored: &StoredSection,
    chart: &Chart,
) -> Result<(), CatalogError> {
    let newest = chart.versions.first();
    let of_newest = |field: fn(&crate::model::ChartVersion) -> &String| {
        newest
            .map(|version| field(version).clone())
            .unwrap_or_default()
    };
    let keywords = chart.keywords.clone().unwrap_or_default();
    let skipped = stored.notes.iter().filter(|note| !note.is_shown).count();
    sql.execute(
        "DELETE FROM tiphys_charts
        WHERE repo_namespace = $1 AND repo_name = $2 AND chart_id = $3 AND icon_url <> $4",
        values![&id.namespace, &id.name, &chart.id, &chart.icon],
    )?;
    let columns: &[(&str, super::Value)] = &[
        ("repo_namespace", (&id.namespace).into()),
        ("repo_name", (&id.name).into()),
        ("chart_id", (&chart.id).into()),
        ("entry_key", (&stored.key).into()),
        ("entry_sha", (&stored.sha).into()),
        ("skipped", i64::try_from(skipped).unwrap_or(i64::MAX).into()),
        ("name", (&chart.name).into()),
        ("folded_name", folded(&chart.name).into()),
        ("folded_keywords", folded(&keywords.join("\n")).into()),
        ("folded_text", folded(&searched_text(chart)).into()),
        ("category", (&chart.category).into()),
        ("keywords", serde_json::to_string(&keywords)?.into()),
        ("deprecated", i64::from(stored.deprecated).into()),
        ("version", of_newest(|v| &v.version).into()),
        ("app_version", of_newest(|v| &v.app_version).into()),
        ("description", (&chart.description).into()),
        (
            "versions",
            i64::try_from(chart.versions.len())
                .unwrap_or(i64::MAX)
                .into(),
        ),
        ("icon_url", (&chart.icon).into()),
    ];
    let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
    let places: Vec<String> = (1..=columns.len()).map(|n| format!("${n}")).collect();
    let updates: Vec<String> = names
        .iter()
        .map(|name| format!("{name} = excluded.{name}"))
        .collect();
    let statement = format!(
        "INSERT INTO tiphys_charts ({}) VALUES ({})
        ON CONFLICT (repo_namespace, repo_name, chart_id) DO UPDATE SET {}",
        names.join(", "),
        places.join(", "),
        updates.join(", ")
    );
    let values: Vec<super::Value> = columns.iter().map(|(_, value)| value.clone()).collect();
    sql.execute(&statement, &values)?;
    Ok(())
}

fn remove_old_files(sql: &mut dyn Sql, id: &RepoId, chart: &Chart) -> Result<(), CatalogError> {
    let key = values![&id.name, &id.namespace, &chart.id];
    let rows = sql.query(
        "SELECT chart_files_id FROM files
        WHERE repo_name = $1 AND repo_namespace = $2 AND chart_id = $3",
        key,
    )?;
    if rows.is_empty() {
        return Ok(());
    }
    let now: HashSet<String> = chart
        .versions
        .iter()
        .flat_map(|version| super::files::ids(&chart.id, &version.version))
        .collect();
    for row in rows.iter().filter(|row| !now.contains(row.text(0))) {
        sql.execute(
            "DELETE FROM files WHERE repo_namespace = $1 AND chart_files_id = $2 AND repo_name = $3
            AND chart_id = $4",
            values![&id.namespace, row.text(0), &id.name, &chart.id],
        )?;
    }
    Ok(())
}

fn put_notes(
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

/// Counts how often it happened.
pub(super) fn put_problem(
    sql: &mut dyn Sql,
    id: &RepoId,
    chart_id: &str,
    (version, kind): (&str, ProblemKind),
    reason: &str,
    now: i64,
) -> Result<(), CatalogError> {
    sql.execute(
        "INSERT INTO tiphys_problems
            (repo_namespace, repo_name, chart_id, version, kind, reason, attempts, at)
        VALUES ($1, $2, $3, $4, $5, $6, 1, $7)
        ON CONFLICT (repo_namespace, repo_name, chart_id, version, kind) DO UPDATE
        SET reason = $8, attempts = tiphys_problems.attempts + 1, at = $9",
        values![
            &id.namespace,
            &id.name,
            chart_id,
            version,
            kind.word(),
            reason,
            now,
            reason,
            now
        ],
    )?;
    Ok(())
}
