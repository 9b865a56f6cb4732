//! Rules for source files: sizes, module headers, forbidden words, and calls that belong in one
//! crate.

use std::{fs, path::Path};

/// 400 are wanted; a file with more than this is refused.
const MAX_LINES: usize = 1000;

/// A word, where it is allowed (path prefixes), and why not elsewhere.
const WORDS: [(&str, &[&str], &str); 8] = [
    (
        "Command::new",
        &[
            "crates/cmp/src/run.rs",
            "crates/repo/",
            "crates/cli/src/commands/prompt.rs",
            "crates/cli/src/commands/app/diff.rs",
            "crates/cli/src/commands/apply/editor.rs",
            "crates/cli/src/commands/diff/external.rs",
            "crates/cli/src/commands/edit.rs",
            // Verbs that are programs in PATH.
            "crates/cli/src/commands/plugin.rs",
            // The browser.
            "crates/cli/src/commands/sso.rs",
            // Dex, beside which the role runs.
            "crates/cli/src/roles/dex/process.rs",
            "crates/cli/tests/",
            // This program again.
            "crates/controllers/tests/scripts/mod.rs",
            "crates/testkit/",
            "crates/embedded-kube/tests/",
            "crates/repo/tests/",
            "crates/sources/tests/",
            "xtask/",
        ],
        "only repo runs processes, and cmp the commands of plugins",
    ),
    (
        "todo!(",
        &[],
        "finish it, or answer with an error that says what is missing",
    ),
    (
        "unimplemented!(",
        &[],
        "finish it, or answer with an error that says what is missing",
    ),
    ("allow(clippy::too_many_lines", &[], "split the function"),
    (
        "allow(clippy::too_many_arguments",
        &[],
        "gather the parameters in a type",
    ),
    ("allow(dead_code", &[], "remove what nothing uses"),
    (concat!("/ro", "ot/"), &[], "no machine paths"),
    (concat!("/wo", "rk/"), &[], "no machine paths"),
];

pub fn check(root: &Path) -> anyhow::Result<Vec<String>> {
    let mut findings = Vec::new();
    for top in [
        "crates", "xtask", "ui/src", "docs", "examples", "deploy", "scripts",
    ] {
        walk(&root.join(top), &mut |path| {
            let name = path
                .strip_prefix(root)
                .unwrap_or(path)
                .to_string_lossy()
                .into_owned();
            match fs::read_to_string(path) {
                Ok(text) => findings.extend(judge(&name, &text)),
                Err(e) if e.kind() == std::io::ErrorKind::InvalidData => {}
                Err(e) => findings.push(format!("{name}: {e}")),
            }
        })?;
    }
    Ok(findings)
}

/// Visits each file below a folder, except build outputs and recorded data.
pub(super) fn walk(folder: &Path, visit: &mut dyn FnMut(&Path)) -> anyhow::Result<()> {
    if !folder.exists() {
        return Ok(());
    }
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path
            .file_name()
            .and_then(|n| n.to_str())
            .unwrap_or_default();
        if path.is_dir() {
            if !["node_modules", "target", "dist", "baseline"].contains(&name) {
                walk(&path, visit)?;
            }
        } else {
            visit(&path);
        }
    }
    Ok(())
}

/// The findings in one file.
fn judge(name: &str, text: &str) -> Vec<String> {
    let mut findings = Vec::new();
    let code = [".rs", ".ts", ".tsx"].iter().any(|e| name.ends_with(e));
    let lines = text.lines().count();
    if code && lines > MAX_LINES {
        findings.push(format!(
            "{name}: {lines} lines; {MAX_LINES} is the limit, look for the seam"
        ));
    }
    if name.ends_with(".rs") && !text.starts_with("//!") {
        findings.push(format!(
            "{name}: opens without `//!`: say its purpose, its main type and what it must not know"
        ));
    }
    for (number, line) in text.lines().enumerate() {
        for (word, allowed, why) in WORDS {
            let own = name.starts_with("xtask/src/tidy/");
            let helper = word.starts_with("allow(dead") && name.contains("/tests/");
            if line.contains(word)
                && !own
                && !helper
                && !allowed.iter().any(|a| name.starts_with(a))
                && (code || word.starts_with('/'))
            {
                findings.push(format!("{name}:{}: `{word}`: {why}", number + 1));
            }
        }
        if code && line.contains(concat!("TO", "DO")) && !line.contains("STATUS.md") {
            findings.push(format!(
                "{name}:{}: a task without an owner; write it into STATUS.md",
                number + 1
            ));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::judge;

    #[test]
    fn each_rule_finds_its_fault_and_leaves_good_code_alone() {
        assert!(judge("crates/engine/src/a.rs", "//! Fine.\nfn a() {}\n").is_empty());
        assert_eq!(
            judge("crates/engine/src/a.rs", "fn a() {}\n").len(),
            1,
            "no header"
        );
        assert_eq!(
            judge(
                "crates/engine/src/a.rs",
                "//! x\nlet c = Command::new(\"ls\");\n"
            )
            .len(),
            1,
            "a process outside repo"
        );
        assert!(
            judge(
                "crates/repo/src/a.rs",
                "//! x\nlet c = Command::new(\"ssh\");\n"
            )
            .is_empty()
        );
        assert_eq!(
            judge(
                "crates/engine/src/a.rs",
                &format!("//! x\n{}", "\n".repeat(1001))
            )
            .len(),
            1,
            "too long"
        );
    }
}
