//! Reads the index of a chart repository (`index.yaml`). Pure.
//!
//! Main function: [`entries`]. An index of a large repository has tens of megabytes, of which one
//! chart's versions, and of these a few fields, are needed: the lines of the others are skipped
//! without being parsed. That is possible in the form that Helm writes; an index in any other form
//! is parsed as a whole.

use super::divide::sections;
use serde_json::Value;
use std::{
    cmp::Ordering,
    collections::{HashMap, HashSet, hash_map},
};
use tiphys_gocompat::{
    semver::{Constraints, Version},
    yaml::{self, Duplicates},
};

/// One version of a chart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Entry {
    pub version: String,
    /// Absolute, or relative to the repository.
    pub urls: Vec<String>,
    /// SHA-256 of the archive as hexadecimal digits, or empty.
    pub digest: String,
}

/// The versions of one chart in the order of the index, without the invalid ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Entries {
    pub versions: Vec<Entry>,
    /// Why versions were skipped.
    pub warnings: Vec<String>,
}

impl Entries {
    /// The version to download, as Helm chooses it: the one spelled so, else the highest that
    /// satisfies it as a constraint.
    pub fn get(&self, version: &str) -> Option<&Entry> {
        if let Some(same) = self.versions.iter().find(|e| e.version == version) {
            return Some(same);
        }
        let constraint = Constraints::parse(if version.is_empty() { "*" } else { version }).ok()?;
        let matching = self
            .versions
            .iter()
            .filter_map(|e| Some((e, Version::parse(&e.version).ok()?)))
            .filter(|(_, version)| constraint.check(version));
        let highest = matching.reduce(|best, next| match next.1.precedence(&best.1) {
            Ordering::Greater => next,
            _ => best,
        });
        highest.map(|(entry, _)| entry)
    }

    pub fn tags(&self) -> Vec<String> {
        self.versions.iter().map(|e| e.version.clone()).collect()
    }
}

/// Limits for parsing an index; the number of bytes is limited when it is fetched.
pub fn limits() -> yaml::Limits {
    yaml::Limits {
        bytes: 512 << 20,
        nodes: 20_000_000,
        ..yaml::Limits::default()
    }
}

/// The fields of an entry that are read.
const FIELDS: [&str; 4] = ["name", "version", "urls", "digest"];

/// The versions of a chart; `None`: the index does not list the chart.
///
/// # Errors
/// The index cannot be read.
pub(crate) fn entries(index: &[u8], chart: &str) -> Result<Option<Entries>, String> {
    let text = std::str::from_utf8(index).map_err(|_| "it is not UTF-8".to_owned())?;
    if let Some(sections) = sections(text) {
        // The last of them, as where the whole index is parsed.
        let of_chart = sections.iter().rev().find(|(name, _)| name == chart);
        let Some((_, block)) = of_chart else {
            return Ok(None);
        };
        if let Some(found) = of_block(chart, block) {
            return Ok(found);
        }
    }
    let whole = whole(text)?;
    Ok(whole.get(chart).map(|entries| checked(chart, entries)))
}

/// How many versions of a chart an index lists, for benchmarks; `None`: it does not list the chart.
///
/// # Errors
/// The index cannot be read.
#[doc(hidden)]
pub fn index_versions(index: &[u8], chart: &str) -> Result<Option<usize>, String> {
    Ok(entries(index, chart)?.map(|entries| entries.versions.len()))
}

/// The versions in a chart's lines. The outer `None`: the lines alone cannot be parsed.
pub(super) fn of_block(chart: &str, block: &str) -> Option<Option<Entries>> {
    // A document that begins with blanks takes many times longer than one like this.
    let text = format!("entries:\n{}", needed_lines(block));
    let parsed = yaml::parse_document(text, &limits(), Duplicates::LastWins).ok()?;
    let charts = parsed.get("entries").and_then(Value::as_object)?;
    Some(charts.get(chart).map(|entries| checked(chart, entries)))
}

/// The charts with their versions, in the order of the index.
///
/// # Errors
/// The index cannot be read.
pub(crate) fn charts(index: &[u8]) -> Result<Vec<(String, Vec<String>)>, String> {
    let text = std::str::from_utf8(index).map_err(|_| "it is not UTF-8".to_owned())?;
    if let Some(charts) = sections(text).and_then(of_sections) {
        return Ok(charts);
    }
    let mut charts = Vec::new();
    for (name, entries) in whole(text)? {
        let entries = checked(&name, &entries);
        charts.push((name, entries.tags()));
    }
    Ok(charts)
}

/// Charts with their versions, where every chart's lines can be parsed alone. Each is parsed once:
/// an index may list thousands.
fn of_sections(sections: Vec<(String, &str)>) -> Option<Vec<(String, Vec<String>)>> {
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut last: Vec<(String, &str)> = Vec::new();
    for (name, block) in sections {
        match places.entry(name.clone()) {
            hash_map::Entry::Occupied(place) => last[*place.get()].1 = block,
            hash_map::Entry::Vacant(place) => {
                place.insert(last.len());
                last.push((name, block));
            }
        }
    }
    let read = |(name, block): (String, &str)| {
        let entries = of_block(&name, block)?.unwrap_or_default();
        Some((name, entries.tags()))
    };
    last.into_iter().map(read).collect()
}

/// For fuzzing: an index that can be parsed as a whole says the same when only the lines of a chart
/// are parsed.
#[doc(hidden)]
pub fn read_index(index: &[u8]) -> Result<(), String> {
    let Ok(text) = std::str::from_utf8(index) else {
        return Ok(());
    };
    let (Ok(all), Some(sections)) = (whole(text), sections(text)) else {
        return Ok(());
    };
    let named: HashSet<&str> = sections.iter().map(|(name, _)| name.as_str()).collect();
    for name in all.keys().map(String::as_str).chain(named) {
        // Why a version is skipped may differ: fields that are not needed are not read.
        let counted = |all: Entries| (all.versions, all.warnings.len());
        let found = entries(index, name)?.map(counted);
        let expected = all.get(name).map(|all| counted(checked(name, all)));
        if found != expected {
            return Err(format!("chart {name:?}: {found:?} instead of {expected:?}"));
        }
    }
    Ok(())
}

/// The entries of an index in any style, by the names of the charts.
///
/// # Errors
/// Why the index cannot be read.
pub fn whole(text: &str) -> Result<serde_json::Map<String, Value>, String> {
    let parsed = yaml::parse_document(text, &limits(), Duplicates::LastWins);
    let Value::Object(mut index) = parsed.map_err(|e| e.to_string())? else {
        return Err("it is not a map".to_owned());
    };
    if index
        .get("apiVersion")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .is_empty()
    {
        return Err("no API version specified".to_owned());
    }
    match index.remove("entries") {
        Some(Value::Object(entries)) => Ok(entries),
        None | Some(Value::Null) => Ok(serde_json::Map::new()),
        Some(_) => Err("entries is not a map".to_owned()),
    }
}

fn checked(chart: &str, entries: &Value) -> Entries {
    let mut checked = Entries::default();
    let none = Vec::new();
    for entry in entries.as_array().unwrap_or(&none) {
        match entry_of(entry) {
            Ok(entry) => checked.versions.push(entry),
            Err(why) => checked.warnings.push(format!(
                "skipping loading invalid entry for chart {chart:?}: {why}"
            )),
        }
    }
    checked
}

fn entry_of(entry: &Value) -> Result<Entry, String> {
    if entry.is_null() {
        return Err("empty entry".to_owned());
    }
    let text = |field: &str| match entry.get(field) {
        Some(Value::String(text)) => text.clone(),
        // An unquoted version may look like a number.
        Some(number @ Value::Number(_)) => number.to_string(),
        _ => String::new(),
    };
    let version = text("version");
    if version.is_empty() {
        return Err("chart.metadata.version is required".to_owned());
    }
    if Version::parse(&version).is_err() {
        return Err(format!("chart.metadata.version {version:?} is invalid"));
    }
    let urls = entry.get("urls").and_then(Value::as_array);
    Ok(Entry {
        version,
        urls: urls
            .into_iter()
            .flatten()
            .filter_map(|url| url.as_str().map(str::to_owned))
            .collect(),
        digest: text("digest"),
    })
}

/// The lines of a chart that hold the fields that are read; those of entries in any other form are
/// all kept.
fn needed_lines(block: &str) -> String {
    let mut kept = String::new();
    let mut lines = block.split_inclusive('\n');
    kept.push_str(lines.next().unwrap_or_default());
    // The indentation of the fields of the current entry, once known, and whether the current
    // field is needed.
    let (mut item, mut fields, mut needed) = (None, None, true);
    for line in lines {
        let blanks = line.len() - line.trim_start_matches(' ').len();
        let content = line.get(blanks..).unwrap_or_default();
        if content.trim_end().is_empty() {
            if needed {
                kept.push_str(line);
            }
            continue;
        }
        let begins = content.starts_with("- ") || content.trim_end() == "-";
        if begins && *item.get_or_insert(blanks) == blanks {
            let after = content.trim_start_matches('-');
            let inner = after.len() - after.trim_start_matches(' ').len();
            let field = after.trim_start_matches(' ');
            let block_style = field
                .split_once(':')
                .is_some_and(|(key, _)| key.bytes().all(|b| b.is_ascii_alphanumeric()));
            if block_style {
                let column = blanks + 1 + inner;
                fields = Some(column);
                needed = is_needed(field);
                if needed {
                    kept.push_str(line);
                } else {
                    // The entry begins with a field that is skipped.
                    kept.extend(std::iter::repeat_n(' ', blanks));
                    kept.push_str("-\n");
                }
            } else {
                (fields, needed) = (None, true);
                kept.push_str(line);
            }
            continue;
        }
        if Some(blanks) == fields && !begins {
            needed = is_needed(content);
        }
        if needed {
            kept.push_str(line);
        }
    }
    kept
}

fn is_needed(field: &str) -> bool {
    let key = field.split(':').next().unwrap_or_default();
    // What is not a plain key is kept, and with it everything up to the next one.
    !key.bytes().all(|b| b.is_ascii_alphanumeric()) || FIELDS.contains(&key)
}

#[cfg(test)]
mod tests {
    use super::*;

    const INDEX: &str = r#"apiVersion: v1
entries:
  demo:
  - annotations:
      note: |
        version: 9.9.9
        - urls
    apiVersion: v2
    created: "2026-01-01T00:00:00Z"
    dependencies:
    - name: other
      version: 8.8.8
    description: >-
      two
      lines
    digest: aa11
    name: demo
    urls:
    - https://h/demo-1.2.3.tgz
    - second
    version: 1.2.3
  - apiVersion: v2
    name: demo
    version: 1.2
    urls: [demo-1.2.tgz]
  -
  - {name: demo, version: 0.9.0, urls: [flow.tgz]}
  - name: demo
    version: canary
  - name: demo

  "quoted":
    - version: v2.0.0
      urls:
        - a
  none: []
  nothing:
generated: "2026-01-01T00:00:00Z"
"#;

    fn shown(entries: &Entries) -> Vec<(String, String, String)> {
        let entry = |e: &Entry| (e.version.clone(), e.urls.join(" "), e.digest.clone());
        entries.versions.iter().map(entry).collect()
    }

    #[test]
    fn lone_carriage_returns_are_left_to_the_parser() {
        assert!(sections("entries:\n  a:\n  - version: 1\r\n").is_some());
        assert_eq!(sections("entries:\n  a:\n  - version: 1\r    x: y\n"), None);
    }

    #[test]
    fn a_divided_index_reads_as_the_whole_one() {
        let names: Vec<String> = sections(INDEX)
            .expect("it is in block style")
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        assert_eq!(names, ["demo", "quoted", "none", "nothing"]);
        for name in names {
            let found = entries(INDEX.as_bytes(), &name).expect("it can be read");
            let whole = whole(INDEX).expect("it can be read");
            assert_eq!(found, whole.get(&name).map(|e| checked(&name, e)), "{name}");
        }
        let demo = entries(INDEX.as_bytes(), "demo")
            .expect("index")
            .expect("demo");
        let text = |a: &str, b: &str, c: &str| (a.to_owned(), b.to_owned(), c.to_owned());
        assert_eq!(
            shown(&demo),
            [
                text("1.2.3", "https://h/demo-1.2.3.tgz second", "aa11"),
                text("1.2", "demo-1.2.tgz", ""),
                text("0.9.0", "flow.tgz", ""),
            ]
        );
        assert_eq!(
            demo.warnings,
            [
                "skipping loading invalid entry for chart \"demo\": empty entry",
                "skipping loading invalid entry for chart \"demo\": chart.metadata.version \"canary\" is invalid",
                "skipping loading invalid entry for chart \"demo\": chart.metadata.version is required",
            ]
        );
        assert_eq!(entries(INDEX.as_bytes(), "absent"), Ok(None));
    }

    #[test]
    fn an_index_in_another_form_is_read_as_a_whole() {
        for index in [
            r#"{"apiVersion": "v1", "entries": {"demo": [{"version": "1.2.3", "urls": ["a"]}]}}"#,
            "apiVersion: v1\nentries: {demo: [{version: 1.2.3, urls: [a]}]}\n",
            "apiVersion: v1\nentries:\n  ? demo\n  : - version: 1.2.3\n      urls: [a]\n",
            "apiVersion: v1\nx: &v 1.2.3\nentries:\n  demo:\n  - version: *v\n    urls: [a]\n",
            "apiVersion: v1\nentries:\n  &a demo:\n  - version: 1.2.3\n    urls: [a]\n",
        ] {
            let found = entries(index.as_bytes(), "demo")
                .expect(index)
                .expect(index);
            assert_eq!(
                shown(&found),
                [("1.2.3".to_owned(), "a".to_owned(), String::new())],
                "{index}"
            );
            let listed = charts(index.as_bytes()).expect(index);
            assert_eq!(listed, [("demo".to_owned(), vec!["1.2.3".to_owned()])]);
        }
        for (index, why) in [
            ("entries", "it is not a map"),
            ("a: 1\n", "no API version specified"),
            ("apiVersion: v1\nentries: 3\n", "entries is not a map"),
            ("<html>", "it is not a map"),
        ] {
            assert_eq!(
                entries(index.as_bytes(), "demo"),
                Err(why.to_owned()),
                "{index}"
            );
        }
    }

    #[test]
    fn all_charts_are_listed() {
        let listed = charts(INDEX.as_bytes()).expect("it can be read");
        let names: Vec<&str> = listed.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["demo", "quoted", "none", "nothing"]);
        assert_eq!(listed[0].1, ["1.2.3", "1.2", "0.9.0"]);
        let twice = "apiVersion: v1\nentries:\n  a:\n  - version: 1.0.0\n  b: []\n  a:\n  - version: 2.0.0\n";
        let listed = charts(twice.as_bytes()).expect("it can be read");
        let expected = [
            ("a".to_owned(), vec!["2.0.0".to_owned()]),
            ("b".to_owned(), vec![]),
        ];
        assert_eq!(listed, expected, "the last of two keys counts");
    }

    #[test]
    fn the_version_to_download_is_chosen_as_helm_does() {
        let entry = |version: &str| Entry {
            version: version.to_owned(),
            ..Entry::default()
        };
        let versions = [
            "0.5.0",
            "0.5.1",
            "1.2.2",
            "1.2.3",
            "1.3.0-rc.1",
            "2.0.0+build.7",
            "v3.0.0",
        ];
        let all = Entries {
            versions: versions.iter().map(|v| entry(v)).collect(),
            warnings: Vec::new(),
        };
        for (wanted, chosen) in [
            ("0.5", Some("0.5.1")),
            ("1.2", Some("1.2.3")),
            ("2.0.0", Some("2.0.0+build.7")),
            ("3.0.0", Some("v3.0.0")),
            ("v1.2.3", Some("1.2.3")),
            ("1.3.0-rc.1", Some("1.3.0-rc.1")),
            ("", Some("v3.0.0")),
            ("99.0.0", None),
            ("latest", None),
        ] {
            let found = all.get(wanted).map(|e| e.version.as_str());
            assert_eq!(found, chosen, "{wanted:?}");
        }
    }
}
