//! Checks that every path in docs/architecture.md exists.
//!
//! In a row about a crate paths are short (`sync/mod.rs`), so a path exists if some file of the
//! repository ends with it, in whole segments.

use super::sources::walk;
use std::{collections::BTreeSet, fs, path::Path};

const MAP: &str = "docs/architecture.md";
const MOST_LINES: usize = 500;

pub fn check(root: &Path) -> anyhow::Result<Vec<String>> {
    let mut files = BTreeSet::new();
    for top in [
        "crates", "xtask", "ui", "docs", "examples", "deploy", "scripts",
    ] {
        walk(&root.join(top), &mut |path| {
            let name = path.strip_prefix(root).unwrap_or(path);
            files.insert(name.to_string_lossy().into_owned());
        })?;
    }
    for entry in fs::read_dir(root)? {
        files.insert(entry?.file_name().to_string_lossy().into_owned());
    }
    Ok(judge(&fs::read_to_string(root.join(MAP))?, &files))
}

fn judge(text: &str, files: &BTreeSet<String>) -> Vec<String> {
    let mut findings = Vec::new();
    if text.lines().count() > MOST_LINES {
        findings.push(format!("{MAP}: more than {MOST_LINES} lines: shorten it"));
    }
    for (number, line) in text.lines().enumerate() {
        for path in line
            .split('`')
            .skip(1)
            .step_by(2)
            .filter(|word| is_path(word))
        {
            if !files.iter().any(|file| holds(file, path)) {
                let number = number + 1;
                findings.push(format!(
                    "{MAP}:{number}: there is no `{path}`: name the file as it is now"
                ));
            }
        }
    }
    findings
}

fn is_path(word: &str) -> bool {
    let plain = word
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || "_-./".contains(c));
    let is_file = [".rs", ".md", ".yaml", ".toml"]
        .iter()
        .any(|end| word.ends_with(end));
    let is_folder = word.ends_with('/') || word.split_once('/').is_some_and(|(top, _)| is_top(top));
    plain && (is_file || is_folder)
}

fn is_top(name: &str) -> bool {
    [
        "crates", "xtask", "ui", "docs", "examples", "deploy", "scripts",
    ]
    .contains(&name)
}

/// `file` is `path`, ends with it, or is inside of it.
fn holds(file: &str, path: &str) -> bool {
    let (file, path) = (
        format!("/{file}/"),
        format!("/{}/", path.trim_end_matches('/')),
    );
    file.contains(&path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_does_not_exist_is_found() {
        let files = [
            "crates/engine/src/sync/mod.rs",
            "scripts/control-plane",
            "deny.toml",
        ]
        .map(str::to_owned)
        .into();
        for (text, wrong) in [
            (
                "see `sync/mod.rs`, `sync/`, `crates/engine`, `deny.toml`",
                None,
            ),
            ("`scripts/control-plane` and `mod.rs`", None),
            ("`apps/v1`, `a.b/c`, `X::y`, `github.com/a/b`", None),
            ("`ync/mod.rs`", Some("ync/mod.rs")),
            ("`sync/gone.rs`", Some("sync/gone.rs")),
            ("`crates/gone`", Some("crates/gone")),
            ("`gone/`", Some("gone/")),
        ] {
            let found = judge(text, &files);
            assert_eq!(
                found.len(),
                usize::from(wrong.is_some()),
                "{text}: {found:?}"
            );
            if let Some(wrong) = wrong {
                assert!(found[0].contains(wrong), "{found:?}");
            }
        }
        assert_eq!(judge(&"\n".repeat(MOST_LINES + 1), &files).len(), 1);
    }
}
