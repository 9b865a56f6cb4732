//! Storing sections of an index: what is new of many at once, because a statement costs a round trip
//! to a server, and what is there already chart by chart.

use super::{
    Row, Sql, Store, Value,
    charts::{delete_notes, put_notes},
    files::forget_icon_version,
    sql::{
        Kind::{self, Int, Json, Text},
        list, parts, rows, values,
    },
};
use crate::{
    CatalogError,
    folding::{folded, searched_text},
    index::Note,
    model::{Chart, ChartVersion},
    repository::RepoId,
};
use std::collections::{HashMap, HashSet};

/// A section of an index with what belongs to it in our tables.
#[derive(Default)]
pub struct StoredSection {
    /// `None`: only the notes, why it has no usable entry.
    pub chart: Option<Chart>,
    pub key: String,
    pub sha: String,
    pub deprecated: bool,
    pub notes: Vec<Note>,
}

impl StoredSection {
    /// Of a chart without a usable entry, what its id would be.
    pub fn chart_id(&self, id: &RepoId) -> String {
        match &self.chart {
            Some(chart) => chart.id.clone(),
            None => format!("{}/{}", id.name, self.key),
        }
    }
}

type WithChart<'s> = (&'s StoredSection, &'s Chart);

/// Our columns, without those that say what was read of icons and files.
const COLUMNS: [(&str, Kind); 18] = [
    ("repo_namespace", Text),
    ("repo_name", Text),
    ("chart_id", Text),
    ("entry_key", Text),
    ("entry_sha", Text),
    ("skipped", Int),
    ("name", Text),
    ("folded_name", Text),
    ("folded_keywords", Text),
    ("folded_text", Text),
    ("category", Text),
    ("keywords", Text),
    ("deprecated", Int),
    ("version", Text),
    ("app_version", Text),
    ("description", Text),
    ("versions", Int),
    ("icon_url", Text),
];

impl Store {
    /// Stores sections of an index, in one transaction. An icon stays as long as its address does.
    /// Files of versions that a chart does not have any more are removed.
    pub(crate) fn put_sections(
        &self,
        id: &RepoId,
        sections: &[StoredSection],
        now: i64,
    ) -> Result<(), CatalogError> {
        let charts: Vec<WithChart<'_>> = sections
            .iter()
            .filter_map(|stored| Some((stored, stored.chart.as_ref()?)))
            .collect();
        self.repeatable(|sql| {
            sql.execute(
                "INSERT INTO repos (namespace, name) VALUES ($1, $2)
                ON CONFLICT (namespace, name) DO NOTHING",
                values![&id.namespace, &id.name],
            )?;
            put_charts(sql, id, &charts)?;
            for stored in sections {
                let chart_id = stored.chart_id(id);
                if stored.chart.is_none() {
                    delete_notes(sql, id, &chart_id)?;
                }
                put_notes(sql, id, &chart_id, &stored.notes, now)?;
            }
            Ok(())
        })
    }
}

fn put_charts(
    sql: &mut dyn Sql,
    id: &RepoId,
    charts: &[WithChart<'_>],
) -> Result<(), CatalogError> {
    if charts.is_empty() {
        return Ok(());
    }
    let (condition, values) = of_charts(id, charts);
    sql.execute(
        &format!(
            "DELETE FROM tiphys_problems WHERE {condition} AND kind IN ('skipped', 'ambiguous')"
        ),
        &values,
    )?;
    let before = sql.query(
        &format!(
            "SELECT chart_id, info->>'icon', info->>'raw_icon', info->>'icon_content_type'
            FROM charts WHERE {condition}"
        ),
        &values,
    )?;
    let before: HashMap<&str, &Row> = before.iter().map(|row| (row.text(0), row)).collect();
    let mut seen = HashSet::new();
    let (new, there): (Vec<_>, Vec<_>) = charts
        .iter()
        .copied()
        .partition(|(_, chart)| !before.contains_key(&*chart.id) && seen.insert(&*chart.id));
    put_new(sql, id, &new)?;
    for with_chart @ (_, chart) in there {
        let before = before.get(&*chart.id).copied();
        put_document(sql, id, chart, before)?;
        forget_icon(sql, id, chart)?;
        // kubeapps may have removed it, and its host would say that it did not change.
        let is_drawn = before.is_some_and(|before| before.optional_text(2).is_some());
        if !is_drawn && !chart.icon.is_empty() {
            forget_icon_version(sql, id, &chart.id)?;
        }
        put_rows(sql, id, &[with_chart])?;
        remove_old_files(sql, id, chart)?;
        forget_failures(sql, id, chart)?;
    }
    // An icon that has another address, or none any more, was not tried.
    sql.execute(
        &format!(
            "DELETE FROM tiphys_problems WHERE {condition} AND kind = 'icon' AND NOT EXISTS (
                SELECT 1 FROM tiphys_charts c
                WHERE c.repo_namespace = tiphys_problems.repo_namespace
                AND c.repo_name = tiphys_problems.repo_name
                AND c.chart_id = tiphys_problems.chart_id AND c.icon_at IS NOT NULL)"
        ),
        &values,
    )?;
    Ok(())
}

/// A statement's condition and values.
fn of_charts(id: &RepoId, charts: &[WithChart<'_>]) -> (String, Vec<Value>) {
    let mut values = values![&id.namespace, &id.name].to_vec();
    let ids = list(&mut values, charts.iter().map(|(_, chart)| &*chart.id));
    let condition = format!("repo_namespace = $1 AND repo_name = $2 AND chart_id IN ({ids})");
    (condition, values)
}

/// Charts that have no document.
fn put_new(sql: &mut dyn Sql, id: &RepoId, new: &[WithChart<'_>]) -> Result<(), CatalogError> {
    if new.is_empty() {
        return Ok(());
    }
    // What is known of an icon is not known any more: there is none.
    let (condition, values) = of_charts(id, new);
    sql.execute(
        &format!("DELETE FROM tiphys_charts WHERE {condition}"),
        &values,
    )?;
    for part in parts(new) {
        let document = |(_, chart): &WithChart<'_>| {
            let [namespace, repo, chart_id] = [&id.namespace, &id.name, &chart.id].map(Value::from);
            Ok([
                namespace,
                repo,
                chart_id,
                serde_json::to_string(chart)?.into(),
            ])
        };
        let documents = part
            .iter()
            .map(document)
            .collect::<Result<_, CatalogError>>()?;
        let (rows, values) = rows(sql.dialect(), [Text, Text, Text, Json], documents);
        let insert = "INSERT INTO charts (repo_namespace, repo_name, chart_id, info)";
        sql.execute(&format!("{insert} {rows}"), &values)?;
        put_rows(sql, id, part)?;
    }
    Ok(())
}

/// The document as kubeapps reads it. A row that would not change is not written.
fn put_document(
    sql: &mut dyn Sql,
    id: &RepoId,
    chart: &Chart,
    before: Option<&Row>,
) -> Result<(), CatalogError> {
    let mut document = chart.clone();
    if let Some(before) = before.filter(|before| before.text(1) == chart.icon) {
        document.raw_icon = before.optional_text(2);
        document.icon_content_type = before.text(3).to_owned();
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

fn forget_icon(sql: &mut dyn Sql, id: &RepoId, chart: &Chart) -> Result<(), CatalogError> {
    sql.execute(
        "DELETE FROM tiphys_charts
        WHERE repo_namespace = $1 AND repo_name = $2 AND chart_id = $3 AND icon_url <> $4",
        values![&id.namespace, &id.name, &chart.id, &chart.icon],
    )?;
    Ok(())
}

fn put_rows(sql: &mut dyn Sql, id: &RepoId, charts: &[WithChart<'_>]) -> Result<(), CatalogError> {
    let of_chart = |(stored, chart): &WithChart<'_>| row(id, stored, chart);
    let found = charts.iter().map(of_chart).collect::<Result<_, _>>()?;
    let (rows, values) = rows(sql.dialect(), COLUMNS.map(|(_, kind)| kind), found);
    let names = COLUMNS.map(|(name, _)| name);
    let updates = names.map(|name| format!("{name} = excluded.{name}"));
    sql.execute(
        &format!(
            "INSERT INTO tiphys_charts ({}) {rows}
            ON CONFLICT (repo_namespace, repo_name, chart_id) DO UPDATE SET {}",
            names.join(", "),
            updates.join(", ")
        ),
        &values,
    )?;
    Ok(())
}

fn row(
    id: &RepoId,
    stored: &StoredSection,
    chart: &Chart,
) -> Result<[Value; COLUMNS.len()], CatalogError> {
    let newest = chart.versions.first();
    let of_newest = |field: fn(&ChartVersion) -> &String| newest.map(field).cloned();
    let keywords = chart.keywords.clone().unwrap_or_default();
    let skipped = stored.notes.iter().filter(|note| !note.is_shown).count();
    let number = |count: usize| Value::from(i64::try_from(count).unwrap_or(i64::MAX));
    Ok([
        (&id.namespace).into(),
        (&id.name).into(),
        (&chart.id).into(),
        (&stored.key).into(),
        (&stored.sha).into(),
        number(skipped),
        (&chart.name).into(),
        folded(&chart.name).into(),
        folded(&keywords.join("\n")).into(),
        folded(&searched_text(chart)).into(),
        (&chart.category).into(),
        serde_json::to_string(&keywords)?.into(),
        i64::from(stored.deprecated).into(),
        of_newest(|v| &v.version).unwrap_or_default().into(),
        of_newest(|v| &v.app_version).unwrap_or_default().into(),
        (&chart.description).into(),
        number(chart.versions.len()),
        (&chart.icon).into(),
    ])
}

/// Forgets the failures of versions that are not there any more. Of the others it is remembered how
/// often they failed: they are tried after those that never did.
fn forget_failures(sql: &mut dyn Sql, id: &RepoId, chart: &Chart) -> Result<(), CatalogError> {
    let rows = sql.query(
        "SELECT version FROM tiphys_problems
        WHERE repo_namespace = $1 AND repo_name = $2 AND chart_id = $3 AND kind = 'files'",
        values![&id.namespace, &id.name, &chart.id],
    )?;
    if rows.is_empty() {
        return Ok(());
    }
    let now: HashSet<&str> = chart.versions.iter().map(|v| v.version.as_str()).collect();
    for row in rows.iter().filter(|row| !now.contains(row.text(0))) {
        sql.execute(
            "DELETE FROM tiphys_problems WHERE repo_namespace = $1 AND repo_name = $2
            AND chart_id = $3 AND version = $4 AND kind = 'files'",
            values![&id.namespace, &id.name, &chart.id, row.text(0)],
        )?;
    }
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
