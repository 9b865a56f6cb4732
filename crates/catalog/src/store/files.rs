//! Files of versions and icons of charts: what is there, and what an attempt gave.

use super::{
    ProblemKind, Row, Sql, Store, batch,
    charts::put_problem,
    sql::{list, values},
};
use crate::{
    CatalogError,
    model::{Chart, ChartFiles},
    repository::RepoId,
};
use std::collections::HashMap;

/// What an attempt to read one version gave.
#[derive(Clone, Debug)]
pub struct FilesRow {
    pub chart_id: String,
    pub version: String,
    pub outcome: FilesOutcome,
}

#[derive(Clone, Debug)]
pub enum FilesOutcome {
    Read(Box<ChartFiles>),
    Failed {
        reason: String,
        /// The archive is another one than the index says: what was read before is not of it.
        is_other: bool,
    },
}

impl FilesOutcome {
    /// Of the texts.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Failed { .. } => 0,
            Self::Read(files) => {
                let more = files.additional_values.values().map(String::len);
                files.readme.len() + files.values.len() + files.schema.len() + more.sum::<usize>()
            }
        }
    }
}

/// The icon of a chart, as it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IconState {
    pub chart_id: String,
    /// As the repository writes it; never empty.
    pub url: String,
    pub etag: String,
    pub modified: String,
    /// When it was asked for, in seconds since 1970.
    pub tried_at: Option<i64>,
    pub failed: bool,
}

/// What an attempt to read an icon gave.
#[derive(Clone, Debug)]
pub enum IconOutcome {
    Unchanged,
    Drawn {
        /// PNG, in base64.
        png: String,
        etag: String,
        modified: String,
    },
    /// `keep`: an icon that was there before stays.
    Failed {
        reason: String,
        keep: bool,
    },
}

/// A chart, and the digests of its files that are there, by version.
pub(crate) type WithDigests = (Chart, HashMap<String, String>);

/// The ids that the files of a version may have. kubeapps knows the first; it is the same for two
/// versions of two charts where a name ends like a version, and the second one of them gets the
/// other.
pub(super) fn ids(chart_id: &str, version: &str) -> [String; 2] {
    [
        format!("{chart_id}-{version}"),
        format!("{chart_id}@{version}"),
    ]
}

/// The first of these.
pub(crate) fn files_id(chart_id: &str, version: &str) -> String {
    let [first, _] = ids(chart_id, version);
    first
}

impl Store {
    /// Charts with the digests of their files that are there, by version.
    pub(crate) fn with_digests(
        &self,
        id: &RepoId,
        charts: &[String],
    ) -> Result<Vec<WithDigests>, CatalogError> {
        let mut values = values![&id.namespace, &id.name].to_vec();
        let of = list(&mut values, charts.iter().map(String::as_str));
        let condition = format!("repo_namespace = $1 AND repo_name = $2 AND chart_id IN ({of})");
        let (charts, digests) = self.read(|sql| {
            let charts = format!("SELECT info FROM charts WHERE {condition} ORDER BY chart_id");
            let digests = format!(
                "SELECT chart_id, chart_files_id, info->>'Digest' FROM files WHERE {condition}"
            );
            Ok((sql.query(&charts, &values)?, sql.query(&digests, &values)?))
        })?;
        let by_id: HashMap<(&str, &str), &str> = digests
            .iter()
            .map(|row| ((row.text(0), row.text(1)), row.text(2)))
            .collect();
        let with_digests = |row: &Row| {
            let chart: Chart = serde_json::from_str(row.text(0))?;
            let known = chart.versions.iter().filter_map(|version| {
                let ids = ids(&chart.id, &version.version);
                let found = ids.iter().find_map(|id| by_id.get(&(&*chart.id, &**id)));
                found.map(|digest| (version.version.clone(), (*digest).to_owned()))
            });
            let known = known.collect();
            Ok((chart, known))
        };
        charts.iter().map(with_digests).collect()
    }

    /// Stores what attempts gave, in one transaction.
    pub(crate) fn put_files(
        &self,
        id: &RepoId,
        rows: &[FilesRow],
        now: i64,
    ) -> Result<(), CatalogError> {
        self.repeatable(|sql| {
            let mut parts = rows.chunks(batch::ROWS);
            parts.try_for_each(|part| batch::put(sql, id, part, now))
        })
    }

    /// The files of a version.
    ///
    /// # Errors
    /// The database fails.
    pub fn files(
        &self,
        id: &RepoId,
        chart_id: &str,
        version: &str,
    ) -> Result<Option<ChartFiles>, CatalogError> {
        let [first, second] = ids(chart_id, version);
        let rows = self.read(|sql| {
            sql.query(
                "SELECT info FROM files WHERE repo_name = $1 AND repo_namespace = $2
                AND chart_id = $3 AND (chart_files_id = $4 OR chart_files_id = $5)",
                values![&id.name, &id.namespace, chart_id, first, second],
            )
        })?;
        let row = rows.first();
        row.map(|row| Ok(serde_json::from_str(row.text(0))?))
            .transpose()
    }

    /// Versions whose files could not be read, those that were tried least first.
    pub(crate) fn failed_files(
        &self,
        id: &RepoId,
        most: i64,
    ) -> Result<Vec<(String, String)>, CatalogError> {
        let rows = self.read(|sql| {
            sql.query(
                "SELECT chart_id, version FROM tiphys_problems
                WHERE repo_namespace = $1 AND repo_name = $2 AND kind = 'files'
                ORDER BY attempts, chart_id, version LIMIT $3",
                values![&id.namespace, &id.name, most],
            )
        })?;
        let pair = |row: &Row| (row.text(0).to_owned(), row.text(1).to_owned());
        Ok(rows.iter().map(pair).collect())
    }

    /// The charts of a repository that name an icon.
    pub(crate) fn icons(&self, id: &RepoId) -> Result<Vec<IconState>, CatalogError> {
        let rows = self.read(|sql| {
            sql.query(
                "SELECT c.chart_id, c.icon_url, c.icon_etag, c.icon_modified, c.icon_at, p.kind
                FROM tiphys_charts c LEFT JOIN tiphys_problems p
                ON p.repo_namespace = c.repo_namespace AND p.repo_name = c.repo_name
                    AND p.chart_id = c.chart_id AND p.kind = 'icon'
                WHERE c.repo_namespace = $1 AND c.repo_name = $2 AND c.icon_url <> ''
                ORDER BY c.chart_id",
                values![&id.namespace, &id.name],
            )
        })?;
        let icon = |row: &Row| IconState {
            chart_id: row.text(0).to_owned(),
            url: row.text(1).to_owned(),
            etag: row.text(2).to_owned(),
            modified: row.text(3).to_owned(),
            tried_at: row.optional_int(4),
            failed: row.optional_text(5).is_some(),
        };
        Ok(rows.iter().map(icon).collect())
    }

    /// Stores what an attempt to read an icon gave.
    pub(crate) fn put_icon(
        &self,
        id: &RepoId,
        chart_id: &str,
        outcome: &IconOutcome,
        now: i64,
    ) -> Result<(), CatalogError> {
        self.transaction(|sql| {
            let key = values![&id.namespace, &id.name, chart_id];
            sql.execute(
                "UPDATE tiphys_charts SET icon_at = $1
                WHERE repo_namespace = $2 AND repo_name = $3 AND chart_id = $4",
                values![now, &id.namespace, &id.name, chart_id],
            )?;
            let drawn = match outcome {
                IconOutcome::Unchanged => None,
                IconOutcome::Drawn { png, .. } => Some(png.as_str()),
                IconOutcome::Failed { reason, keep } => {
                    put_problem(sql, id, chart_id, ("", ProblemKind::Icon), reason, now)?;
                    if !keep {
                        // Its host may go back to the version before: "not modified".
                        forget_icon_version(sql, id, chart_id)?;
                        set_icon(sql, id, chart_id, None)?;
                    }
                    return Ok(());
                }
            };
            sql.execute(
                "DELETE FROM tiphys_problems WHERE repo_namespace = $1 AND repo_name = $2
                AND chart_id = $3 AND kind = 'icon'",
                key,
            )?;
            if let IconOutcome::Drawn { etag, modified, .. } = outcome {
                sql.execute(
                    "UPDATE tiphys_charts SET icon_etag = $1, icon_modified = $2
                    WHERE repo_namespace = $3 AND repo_name = $4 AND chart_id = $5",
                    values![etag, modified, &id.namespace, &id.name, chart_id],
                )?;
                set_icon(sql, id, chart_id, drawn)?;
            }
            Ok(())
        })
    }
}

/// The icon is asked for as one that was never read.
pub(super) fn forget_icon_version(
    sql: &mut dyn Sql,
    id: &RepoId,
    chart_id: &str,
) -> Result<(), CatalogError> {
    sql.execute(
        "UPDATE tiphys_charts SET icon_etag = '', icon_modified = ''
        WHERE repo_namespace = $1 AND repo_name = $2 AND chart_id = $3
        AND (icon_etag <> '' OR icon_modified <> '')",
        values![&id.namespace, &id.name, chart_id],
    )?;
    Ok(())
}

fn set_icon(
    sql: &mut dyn Sql,
    id: &RepoId,
    chart_id: &str,
    png: Option<&str>,
) -> Result<(), CatalogError> {
    let rows = sql.query(
        "SELECT info FROM charts WHERE repo_namespace = $1 AND repo_name = $2 AND chart_id = $3",
        values![&id.namespace, &id.name, chart_id],
    )?;
    let Some(row) = rows.first() else {
        return Ok(());
    };
    let mut chart: Chart = serde_json::from_str(row.text(0))?;
    if chart.raw_icon.as_deref() == png {
        return Ok(());
    }
    chart.raw_icon = png.map(str::to_owned);
    let kind = png.map(|_| crate::icon::CONTENT_TYPE);
    chart.icon_content_type = kind.unwrap_or_default().to_owned();
    sql.execute(
        "UPDATE charts SET info = $1
        WHERE repo_namespace = $2 AND repo_name = $3 AND chart_id = $4",
        values![
            serde_json::to_string(&chart)?,
            &id.namespace,
            &id.name,
            chart_id
        ],
    )?;
    Ok(())
}

pub(super) fn put_one(
    sql: &mut dyn Sql,
    id: &RepoId,
    row: &FilesRow,
    now: i64,
) -> Result<(), CatalogError> {
    let [first, second] = ids(&row.chart_id, &row.version);
    let files = match &row.outcome {
        FilesOutcome::Failed { reason, is_other } => {
            let of = (row.version.as_str(), ProblemKind::Files);
            put_problem(sql, id, &row.chart_id, of, reason, now)?;
            if *is_other {
                sql.execute(
                    "DELETE FROM files WHERE repo_namespace = $1 AND repo_name = $2
                    AND chart_id = $3 AND (chart_files_id = $4 OR chart_files_id = $5)",
                    values![&id.namespace, &id.name, &row.chart_id, first, second],
                )?;
            }
            return Ok(());
        }
        FilesOutcome::Read(files) => files,
    };
    let mut files = files.clone();
    files.id = if takes_first_id(sql, id, &row.chart_id, &first)? {
        first
    } else {
        second
    };
    let text = serde_json::to_string(&files)?;
    // The chart may have been removed since.
    sql.execute(
        "INSERT INTO files (chart_id, repo_name, repo_namespace, chart_files_id, info)
        SELECT chart_id, repo_name, repo_namespace, $1, $2 FROM charts
        WHERE repo_name = $3 AND repo_namespace = $4 AND chart_id = $5
        ON CONFLICT (repo_namespace, chart_files_id) DO UPDATE SET info = $6",
        values![
            &files.id,
            &text,
            &id.name,
            &id.namespace,
            &row.chart_id,
            &text
        ],
    )?;
    sql.execute(
        "DELETE FROM tiphys_problems WHERE repo_namespace = $1 AND repo_name = $2
        AND chart_id = $3 AND version = $4 AND kind = 'files'",
        values![&id.namespace, &id.name, &row.chart_id, &row.version],
    )?;
    Ok(())
}

/// Whether files of a chart may have an id that those of another chart might have, too: the chart
/// whose id comes first has it, whichever was read first.
fn takes_first_id(
    sql: &mut dyn Sql,
    id: &RepoId,
    chart_id: &str,
    first: &str,
) -> Result<bool, CatalogError> {
    let holders = sql.query(
        "SELECT repo_name, chart_id, info FROM files
        WHERE repo_namespace = $1 AND chart_files_id = $2",
        values![&id.namespace, first],
    )?;
    let Some(holder) = holders.first() else {
        return Ok(true);
    };
    let (repo, other) = (holder.text(0), holder.text(1));
    if repo != id.name || other <= chart_id {
        return Ok(repo == id.name && other == chart_id);
    }
    let version = first
        .strip_prefix(other)
        .and_then(|rest| rest.strip_prefix('-'));
    let [_, moved] = ids(other, version.unwrap_or_default());
    let mut files: ChartFiles = serde_json::from_str(holder.text(2))?;
    files.id.clone_from(&moved);
    sql.execute(
        "UPDATE files SET chart_files_id = $1, info = $2
        WHERE repo_namespace = $3 AND chart_files_id = $4",
        values![moved, serde_json::to_string(&files)?, &id.namespace, first],
    )?;
    Ok(true)
}
