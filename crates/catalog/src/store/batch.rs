//! Files of many versions at once: a statement costs a round trip to a server.

use super::{
    FilesOutcome, FilesRow, Sql, Value,
    files::{files_id, put_one},
    sql::{
        Kind::{Json, Text},
        list, parts, rows, values,
    },
};
use crate::{CatalogError, model::ChartFiles, repository::RepoId};
use std::collections::{BTreeSet, HashMap, HashSet};

/// Rows of one statement.
pub(super) const ROWS: usize = 256;

/// Stores what attempts gave. What needs more than a new row, or a new text in its own row, is
/// stored by itself.
pub(super) fn put(
    sql: &mut dyn Sql,
    id: &RepoId,
    rows: &[FilesRow],
    now: i64,
) -> Result<(), CatalogError> {
    let first_ids = rows.iter().map(|row| files_id(&row.chart_id, &row.version));
    let first_ids: Vec<String> = first_ids.collect();
    let mut often: HashMap<&str, usize> = HashMap::new();
    for first in &first_ids {
        *often.entry(first).or_default() += 1;
    }
    let there = there(sql, id, rows)?;
    let (mut together, mut single): (Vec<Found<'_>>, Vec<_>) = (Vec::new(), Vec::new());
    for (row, first) in rows.iter().zip(&first_ids) {
        match &row.outcome {
            FilesOutcome::Read(files) if often[first.as_str()] == 1 => {
                together.push((row, first.as_str(), files.as_ref()));
            }
            _ => single.push(row),
        }
    }
    // Charts may have been removed since.
    together.retain(|(row, ..)| there.contains(&row.chart_id));
    let mut stored = HashSet::new();
    for part in parts(&together) {
        stored.extend(insert(sql, id, part)?);
    }
    let (together, taken): (Vec<_>, Vec<_>) = together
        .into_iter()
        .partition(|(_, first, _)| stored.contains(*first));
    single.extend(taken.into_iter().map(|(row, ..)| row));
    for (chart_id, version) in failed(sql, id, rows)? {
        if together
            .iter()
            .any(|(row, ..)| row.chart_id == chart_id && row.version == version)
        {
            sql.execute(
                "DELETE FROM tiphys_problems WHERE repo_namespace = $1 AND repo_name = $2
                AND chart_id = $3 AND version = $4 AND kind = 'files'",
                values![&id.namespace, &id.name, chart_id, version],
            )?;
        }
    }
    single
        .into_iter()
        .try_for_each(|row| put_one(sql, id, row, now))
}

/// Files that were read, with their first id.
type Found<'r> = (&'r FilesRow, &'r str, &'r ChartFiles);

/// The statement's condition and values for the charts of rows.
fn of_charts(id: &RepoId, rows: &[FilesRow]) -> (String, Vec<Value>) {
    let charts: BTreeSet<&str> = rows.iter().map(|row| row.chart_id.as_str()).collect();
    let mut values = vec![Value::from(&id.namespace), Value::from(&id.name)];
    let charts = list(&mut values, charts);
    let condition = format!("repo_namespace = $1 AND repo_name = $2 AND chart_id IN ({charts})");
    (condition, values)
}

fn there(
    sql: &mut dyn Sql,
    id: &RepoId,
    rows: &[FilesRow],
) -> Result<HashSet<String>, CatalogError> {
    let (condition, values) = of_charts(id, rows);
    let statement = format!("SELECT chart_id FROM charts WHERE {condition}");
    let found = sql.query(&statement, &values)?;
    Ok(found.iter().map(|row| row.text(0).to_owned()).collect())
}

/// Versions of these charts whose files could not be read before.
fn failed(
    sql: &mut dyn Sql,
    id: &RepoId,
    rows: &[FilesRow],
) -> Result<Vec<(String, String)>, CatalogError> {
    let (condition, values) = of_charts(id, rows);
    let statement = format!(
        "SELECT chart_id, version FROM tiphys_problems WHERE {condition} AND kind = 'files'"
    );
    let found = sql.query(&statement, &values)?;
    let pair = |row: &super::Row| (row.text(0).to_owned(), row.text(1).to_owned());
    Ok(found.iter().map(pair).collect())
}

/// Returns the ids that were stored. The others are those of files of other charts.
fn insert(
    sql: &mut dyn Sql,
    id: &RepoId,
    found: &[Found<'_>],
) -> Result<Vec<String>, CatalogError> {
    let row = |(row, first, files): &Found<'_>| {
        // Mostly it was read as these.
        let text = if files.id == *first {
            serde_json::to_string(files)?
        } else {
            serde_json::to_string(&ChartFiles {
                id: (*first).to_owned(),
                ..(*files).clone()
            })?
        };
        let (repo, namespace) = (Value::from(&id.name), Value::from(&id.namespace));
        let (chart_id, first) = (Value::from(&row.chart_id), Value::from(*first));
        Ok([chart_id, repo, namespace, first, text.into()])
    };
    let found = found.iter().map(row).collect::<Result<_, CatalogError>>()?;
    let kinds = [Text, Text, Text, Text, Json];
    let (rows, values) = rows(sql.dialect(), kinds, found);
    let stored = sql.query(
        &format!(
            "INSERT INTO files (chart_id, repo_name, repo_namespace, chart_files_id, info)
            {rows}
            ON CONFLICT (repo_namespace, chart_files_id) DO UPDATE SET info = excluded.info
            WHERE files.repo_name = excluded.repo_name AND files.chart_id = excluded.chart_id
            RETURNING chart_files_id"
        ),
        &values,
    )?;
    Ok(stored.iter().map(|row| row.text(0).to_owned()).collect())
}
