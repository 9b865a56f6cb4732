//! The rows of kubeapps' three tables, and how those of one time or database differ from others.
//!
//! Main functions: [`rows`] and [`different`].

use crate::swap::state::{Shown, differences};
use anyhow::{Context as _, ensure};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use regex::Regex;
use serde_json::Value;
use std::{collections::BTreeSet, sync::LazyLock};
use tiphys_testkit::postgres::Postgres;

/// What is not compared, or by its meaning, and why.
pub const REASONS: [&str; 4] = [
    "repos.last_update: the time of a sync; only that it is a time",
    "charts.info.raw_icon: one picture, compressed and smoothed in two ways; compared as a picture",
    "files of versions that left their chart: the genuine program keeps them, ours does not",
    "id, between two databases: numbers in the order of storing",
];

/// What is read: a name, the columns that tell the rows apart, and where they come from.
const SOURCES: [(&str, &[&str], &str); 5] = [
    ("repos", &["namespace", "name"], "repos"),
    (
        "charts",
        &["repo_namespace", "repo_name", "chart_id"],
        "charts",
    ),
    (
        "files",
        &["repo_namespace", "repo_name", "chart_files_id"],
        "files",
    ),
    (
        COLUMNS,
        &["table_name", "column_name"],
        "(SELECT table_name, column_name, ordinal_position, data_type, is_nullable, column_default
        FROM information_schema.columns
        WHERE table_schema = 'public' AND table_name IN ('repos', 'charts', 'files'))",
    ),
    (
        CONSTRAINTS,
        &["table_name", "name"],
        "(SELECT conrelid::regclass::text AS table_name, conname AS name,
            pg_get_constraintdef(oid) AS definition FROM pg_constraint
        WHERE conrelid IN ('repos'::regclass, 'charts'::regclass, 'files'::regclass))",
    ),
];
const COLUMNS: &str = "columns";
const CONSTRAINTS: &str = "constraints";

/// How much pictures may differ, of 255, on average.
const TOLERANCE: u64 = 3;

/// Whether numbers of rows are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ids {
    Same,
    Any,
}

/// All rows, and what the tables are.
///
/// # Errors
/// They cannot be understood.
pub fn rows(postgres: &Postgres, database: &str) -> anyhow::Result<Shown> {
    let mut shown = Shown::new();
    for (source, key, from) in SOURCES {
        let sql = format!("SELECT coalesce(json_agg(row_to_json(t)), '[]') FROM {from} t");
        let text = postgres.psql(database, &sql);
        let found: Vec<Value> = serde_json::from_str(&text).context(source)?;
        for row in found {
            let parts = key.iter().map(|column| text_of(&row[*column]));
            let name = format!("{source} {}", parts.collect::<Vec<_>>().join(" "));
            ensure!(shown.insert(name.clone(), row).is_none(), "twice: {name}");
        }
    }
    Ok(shown)
}

fn text_of(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn of<'a>(shown: &'a Shown, source: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    let start = format!("{source} ");
    shown
        .iter()
        .filter(move |(name, _)| name.starts_with(&start))
}

pub fn count(shown: &Shown, source: &str) -> usize {
    of(shown, source).count()
}

/// How many charts have a picture.
pub fn pictures(shown: &Shown) -> usize {
    let charts = of(shown, "charts");
    charts
        .filter(|(_, row)| row["info"]["raw_icon"].is_string())
        .count()
}

/// What the tables are, without rows.
pub fn definitions(shown: &Shown) -> Shown {
    let found = of(shown, COLUMNS).chain(of(shown, CONSTRAINTS));
    found
        .map(|(name, row)| (name.clone(), row.clone()))
        .collect()
}

/// All but the rows of one repository.
pub fn without(shown: &Shown, namespace: &str, name: &str) -> Shown {
    let mut left = shown.clone();
    left.retain(|_, row| {
        let is = |of_namespace: &str, of_name: &str| {
            row[of_namespace] == namespace && row[of_name] == name
        };
        !is("namespace", "name") && !is("repo_namespace", "repo_name")
    });
    left
}

/// Files of versions that their chart does not have any more.
pub fn left_over(shown: &Shown) -> Vec<String> {
    let of_chart = |(_, row): (&String, &Value)| {
        let (namespace, id) = (text_of(&row["repo_namespace"]), text_of(&row["chart_id"]));
        let versions = row["info"]["chartVersions"]
            .as_array()
            .into_iter()
            .flatten();
        let version = |version: &Value| {
            let version = text_of(&version["version"]);
            (namespace.to_owned(), format!("{id}-{version}"))
        };
        versions.map(version).collect::<Vec<_>>()
    };
    let versions: BTreeSet<(String, String)> = of(shown, "charts").flat_map(of_chart).collect();
    let files = of(shown, "files").filter(|(_, row)| {
        let key = (&row["repo_namespace"], &row["chart_files_id"]);
        !versions.contains(&(text_of(key.0).to_owned(), text_of(key.1).to_owned()))
    });
    files.map(|(name, _)| name.clone()).collect()
}

/// What of some rows differs from others, by table, row and column.
pub fn different(before: &Shown, after: &Shown, ids: Ids) -> Vec<String> {
    let (before, mut after) = (settled(before, ids), settled(after, ids));
    for (name, row) in &mut after {
        let Some(was) = before.get(name) else {
            continue;
        };
        let was = &was["info"]["raw_icon"];
        if let (Some(was), Some(is)) = (was.as_str(), row["info"]["raw_icon"].as_str())
            && (was == is || look_alike(was, is))
        {
            row["info"]["raw_icon"] = was.into();
        }
    }
    differences(&before, &after)
}

/// Without what may differ.
fn settled(shown: &Shown, ids: Ids) -> Shown {
    static TIME: LazyLock<Regex> = LazyLock::new(|| {
        // Go adds what its monotonic clock says.
        let time = r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)? \+0000 UTC( m=[+-][\d.]+)?$";
        Regex::new(time).expect("a constant")
    });
    let mut settled = shown.clone();
    for name in left_over(shown) {
        settled.remove(&name);
    }
    for row in settled.values_mut() {
        let Some(row) = row.as_object_mut() else {
            continue;
        };
        if ids == Ids::Any {
            row.remove("id");
        }
        if let Some(time) = row.get_mut("last_update")
            && TIME.is_match(text_of(time))
        {
            *time = "a time".into();
        }
    }
    settled
}

/// Whether two pictures in base64 look alike.
fn look_alike(one: &str, other: &str) -> bool {
    let picture = |text: &str| {
        let png = STANDARD.decode(text).ok()?;
        Some(image::load_from_memory(&png).ok()?.to_rgba8())
    };
    let (Some(one), Some(other)) = (picture(one), picture(other)) else {
        return false;
    };
    if one.dimensions() != other.dimensions() {
        return false;
    }
    // Colours count as much as they are seen.
    let seen = |[red, green, blue, alpha]: [u8; 4]| {
        let [red, green, blue] = [red, green, blue].map(|of| u64::from(of) * u64::from(alpha));
        [red, green, blue, 255 * u64::from(alpha)]
    };
    let (mut sum, mut values) = (0, 0);
    for (one, other) in one.pixels().zip(other.pixels()) {
        for (one, other) in seen(one.0).into_iter().zip(seen(other.0)) {
            sum += one.abs_diff(other);
            values += 1;
        }
    }
    sum <= values * TOLERANCE * 255
}

#[cfg(test)]
mod tests {
    use super::*;
    use image::{ImageFormat, Rgba, RgbaImage};
    use serde_json::json;
    use std::io::Cursor;

    fn picture(colour: [u8; 4], width: u32) -> String {
        let mut png = Cursor::new(Vec::new());
        RgbaImage::from_pixel(width, 8, Rgba(colour))
            .write_to(&mut png, ImageFormat::Png)
            .expect("a picture");
        STANDARD.encode(png.into_inner())
    }

    fn example() -> Shown {
        let icon = picture([10, 20, 30, 255], 8);
        let rows = [
            (
                "repos n r",
                json!({"id": 1, "namespace": "n", "name": "r", "checksum": "c",
                    "last_update": "2026-01-01 10:00:00.5 +0000 UTC"}),
            ),
            (
                "charts n r r/a",
                json!({"id": 2, "repo_namespace": "n", "repo_name": "r", "chart_id": "r/a",
                    "info": {"raw_icon": icon, "chartVersions": [{"version": "1.0.0"}]}}),
            ),
            (
                "files n r r/a-1.0.0",
                json!({"id": 3, "repo_namespace": "n", "repo_name": "r",
                    "chart_files_id": "r/a-1.0.0", "info": {"Readme": "words"}}),
            ),
            ("columns repos id", json!({"data_type": "integer"})),
        ];
        rows.map(|(name, row)| (name.to_owned(), row)).into()
    }

    #[test]
    fn a_difference_is_named_with_its_row_and_column() {
        let before = example();
        let differ = |change: &dyn Fn(&mut Shown), ids| {
            let mut after = example();
            change(&mut after);
            different(&before, &after, ids)
        };
        let edit = |row: &'static str, pointer: &'static str, value: Value| {
            move |shown: &mut Shown| {
                let row = shown.get_mut(row).expect("a row");
                *row.pointer_mut(pointer).expect("a column") = value.clone();
            }
        };
        let repo = "repos n r";
        let (chart, file) = ("charts n r r/a", "files n r r/a-1.0.0");
        let icon = "/info/raw_icon";
        let time = json!("2026-01-02 11:00:00.25 +0000 UTC m=+0.123");
        for (row, pointer, value) in [
            (repo, "/last_update", time),
            (chart, icon, picture([11, 20, 31, 255], 8).into()),
        ] {
            let lines = differ(&edit(row, pointer, value), Ids::Same);
            assert_eq!(lines, Vec::<String>::new(), "{row}{pointer}");
        }
        for (row, pointer, value) in [
            (repo, "/checksum", json!("d")),
            (repo, "/last_update", json!("")),
            (repo, "/id", json!(9)),
            (chart, icon, Value::Null),
            (chart, icon, picture([90, 20, 30, 255], 8).into()),
            (chart, icon, picture([10, 20, 30, 255], 9).into()),
            (file, "/info/Readme", json!("other")),
            ("columns repos id", "/data_type", json!("bigint")),
        ] {
            let lines = differ(&edit(row, pointer, value), Ids::Same);
            assert_eq!(lines.len(), 1, "{row}{pointer}: {lines:?}");
            assert!(
                lines[0].starts_with(&format!("{row}{pointer}: ")),
                "{lines:?}"
            );
        }
        let other_id = edit(repo, "/id", json!(9));
        assert_eq!(differ(&other_id, Ids::Any), Vec::<String>::new());
        let lost = |shown: &mut Shown| drop(shown.remove(file));
        assert_eq!(
            differ(&lost, Ids::Same),
            [format!("{file}: is missing afterwards")]
        );
    }

    #[test]
    fn files_that_are_left_over_are_told_apart() {
        let before = example();
        assert_eq!(left_over(&before), Vec::<String>::new());
        let mut after = example();
        let old = json!({"repo_namespace": "n", "repo_name": "r", "chart_files_id": "r/a-0.9.0"});
        let name = "files n r r/a-0.9.0".to_owned();
        after.insert(name.clone(), old);
        assert_eq!(left_over(&after), [name]);
        assert_eq!(different(&before, &after, Ids::Same), Vec::<String>::new());
        assert_eq!(without(&after, "n", "r"), definitions(&after));
        assert_eq!((count(&after, "files"), pictures(&after)), (2, 1));
    }
}
