//! Checks that docs/recorded-data.md has a row for all data that tests read, and none for data that
//! is gone.

use super::sources::walk;
use anyhow::Context;
use std::{collections::BTreeSet, fs, path::Path};

const FORMATS: &str = "docs/recorded-data.md";

pub fn check(root: &Path) -> anyhow::Result<Vec<String>> {
    let text = fs::read_to_string(root.join(FORMATS)).with_context(|| FORMATS.to_owned())?;
    let listed = listed(&text);
    let mut files = BTreeSet::new();
    for top in ["crates", "xtask"] {
        walk(&root.join(top), &mut |path| {
            let name = path.strip_prefix(root).unwrap_or(path);
            files.insert(name.to_string_lossy().replace('\\', "/"));
        })?;
    }
    let mut findings = unlisted(&listed, &files);
    let gone = listed.iter().filter(|path| !root.join(path).exists());
    findings.extend(gone.map(|path| {
        format!("{FORMATS}: there is no `{path}`: name the folder as it is now, or take it off")
    }));
    Ok(findings)
}

/// The paths in the first column of the table, without the last part where that is a pattern.
fn listed(text: &str) -> BTreeSet<String> {
    let rows = text.lines().filter_map(|line| line.strip_prefix("| `"));
    let paths = rows.flat_map(|row| {
        let cell = row.split('|').next().unwrap_or_default();
        cell.split('`').step_by(2).collect::<Vec<_>>()
    });
    let whole = paths.map(|path| match path.split_once('*') {
        Some((folder, _)) => folder.trim_end_matches('/'),
        None => path,
    });
    whole
        .filter(|path| path.contains('/'))
        .map(str::to_owned)
        .collect()
}

/// The folders of data without a row. Each is named once.
fn unlisted(listed: &BTreeSet<String>, files: &BTreeSet<String>) -> Vec<String> {
    let has_row = |file: &str| {
        listed.iter().any(|path| {
            let rest = file.strip_prefix(path.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    };
    let folders: BTreeSet<&str> = files
        .iter()
        .filter(|file| is_data(file) && !has_row(file))
        .map(|file| file.rsplit_once('/').map_or("", |(folder, _)| folder))
        .collect();
    folders
        .into_iter()
        .map(|folder| {
            format!(
                "{folder}: it has data without a row in {FORMATS}: say there who made it, how it \
                 is written, and how to make it again"
            )
        })
        .collect()
}

/// Whether tests read the file: it is in a folder of tests, or of our own tools, and is no program.
fn is_data(file: &str) -> bool {
    let mut parts = file.split('/');
    let of_tests = match parts.next() {
        Some("crates") => parts.nth(1) == Some("tests"),
        Some("xtask") => parts.next() == Some("src"),
        _ => false,
    };
    let name = file.rsplit('/').next().unwrap_or_default();
    let is_program = [".rs", ".md", ".sh"].iter().any(|end| name.ends_with(end));
    of_tests && !is_program && !name.starts_with('.')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(paths: &[&str]) -> BTreeSet<String> {
        paths.iter().map(|path| (*path).to_owned()).collect()
    }

    #[test]
    fn data_without_a_row_is_found() {
        let text = "| folder | what |\n|---|---|\n\
                    | `crates/a/tests/cases/*.txt`, `crates/a/tests/one.json` | `tests/other` |\n";
        let rows = listed(text);
        assert_eq!(
            rows,
            set(&["crates/a/tests/cases", "crates/a/tests/one.json"])
        );
        let known = set(&[
            "crates/a/tests/cases/x.txt",
            "crates/a/tests/cases/deep/x.json",
            "crates/a/tests/one.json",
            "crates/a/tests/main.rs",
            "crates/a/tests/README.md",
            "crates/a/src/data/table.txt",
            "xtask/Cargo.toml",
        ]);
        assert!(unlisted(&rows, &known).is_empty());
        let new = set(&[
            "crates/a/tests/cases-of-others/x.txt",
            "crates/a/tests/other/x.txt",
            "crates/a/tests/other/y.txt",
            "xtask/src/fuzz/seeds/x",
        ]);
        let found = unlisted(&rows, &new);
        let folders: Vec<_> = found.iter().filter_map(|f| f.split(':').next()).collect();
        let expected = [
            "crates/a/tests/cases-of-others",
            "crates/a/tests/other",
            "xtask/src/fuzz/seeds",
        ];
        assert_eq!(folders, expected);
    }
}
