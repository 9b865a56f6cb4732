//! Which top module of a crate may import which, for the crates that have an order: a circle of
//! modules cannot be read, moved or cut into crates without the rest.

use super::sources::walk;
use std::{fs, path::Path};

/// A crate and its top modules: each may import those before it. `lib.rs` stands above all.
const ORDERS: [(&str, &[&str]); 2] = [
    (
        "kube-schema",
        &[
            "gofmt",
            "cause",
            "formats",
            "go_regex",
            "structural",
            "gotypes",
            "cel",
        ],
    ),
    (
        "embedded-kube",
        &[
            // What all share.
            "status",
            "base",
            "store",
            "error",
            "quiet",
            // What is served, and how it is read.
            "route",
            "catalog",
            "reader",
            "outbound",
            "rbac",
            // What becomes of an object.
            "convert",
            "validation",
            "defaults",
            "warnings",
            "strategy",
            "admission",
            "registry",
            // Who uses the registry.
            "lifecycle",
            "auth",
            "sim",
            "http",
            "edge",
            "tls",
            "serve",
        ],
    ),
];

pub fn check(root: &Path) -> anyhow::Result<Vec<String>> {
    let mut findings = Vec::new();
    for (name, order) in ORDERS {
        let src = root.join("crates").join(name).join("src");
        walk(&src, &mut |path| {
            let file = path
                .strip_prefix(&src)
                .unwrap_or(path)
                .to_string_lossy()
                .into_owned();
            if !file.ends_with(".rs") || file == "lib.rs" {
                return;
            }
            let at = format!("crates/{name}/src/{file}");
            match fs::read_to_string(path) {
                Ok(text) => {
                    findings.extend(judge(order, &file, &text).map(|why| format!("{at}: {why}")))
                }
                Err(e) => findings.push(format!("{at}: {e}")),
            }
        })?;
    }
    Ok(findings)
}

/// What a file, named from the crate's `src`, imports although it must not.
fn judge<'a>(order: &'a [&str], file: &str, text: &str) -> impl Iterator<Item = String> + 'a {
    let path = file.strip_suffix(".rs").unwrap_or(file);
    let path: Vec<&str> = path
        .strip_suffix("/mod")
        .unwrap_or(path)
        .split('/')
        .collect();
    let own = path.first().copied().unwrap_or_default().to_owned();
    let mut imported = imports(text, path.len());
    imported.retain(|name| *name != own);
    imported.sort_unstable();
    imported.dedup();
    let rank = |name: &str| order.iter().position(|m| *m == name);
    let mine = rank(&own);
    let placed = mine.is_none().then(|| {
        format!("`{own}` has no place in the order of the modules (xtask/src/tidy/modules.rs)")
    });
    let above = imported.into_iter().filter_map(move |name| {
        let below = rank(&name).is_some_and(|theirs| Some(theirs) < mine);
        (mine.is_some() && !below).then(|| {
            format!(
                "`{own}` must not import `{name}`, which stands above it; see the order in \
                 xtask/src/tidy/modules.rs"
            )
        })
    });
    placed.into_iter().chain(above)
}

/// The first names of all paths that begin at the crate, in a file whose module is `depth` levels
/// below it.
pub(super) fn imports(text: &str, depth: usize) -> Vec<String> {
    let code: String = text
        .lines()
        .map(|line| line.split("//").next().unwrap_or(line))
        .collect::<Vec<_>>()
        .join("\n");
    // The tests at the end of a file are a module of their own.
    let tests = code.find("#[cfg(test)]\nmod tests {");
    let mut found = Vec::new();
    let mut rest = code.as_str();
    while let Some(at) = rest
        .find("crate::")
        .into_iter()
        .chain(rest.find("super::"))
        .min()
    {
        let before = &rest[..at];
        let position = code.len() - rest.len() + at;
        rest = &rest[at..];
        let whole_word = !before.ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let mut up = 0;
        let is_crate = rest.starts_with("crate::");
        if is_crate {
            rest = &rest["crate::".len()..];
        }
        while let Some(next) = rest.strip_prefix("super::") {
            rest = next;
            up += 1;
        }
        let levels = depth + usize::from(tests.is_some_and(|tests| tests < position));
        if whole_word && (is_crate || up == levels) {
            found.extend(heads(rest));
        }
    }
    found
}

/// The first names of a path, or of each path of a group in braces.
fn heads(path: &str) -> Vec<String> {
    let word = |text: &str| -> String {
        let text = text.trim_start();
        let end = text.find(|c: char| !(c.is_alphanumeric() || c == '_'));
        text[..end.unwrap_or(text.len())].to_owned()
    };
    let Some(group) = path.strip_prefix('{') else {
        return vec![word(path)];
    };
    let (mut depth, mut found, mut start) = (0, Vec::new(), 0);
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' | '}' if depth == 0 => {
                found.push(word(&group[start..at]));
                start = at + 1;
                if c == '}' {
                    break;
                }
            }
            _ => {}
        }
    }
    found.retain(|name| !name.is_empty() && name != "self");
    found
}

#[cfg(test)]
mod tests {
    use super::judge;

    #[test]
    fn a_module_may_import_only_those_below_it() {
        let order = ["low", "middle", "high"];
        for (file, text, findings) in [
            ("middle.rs", "use crate::low::A;", 0),
            ("middle.rs", "use crate::high::A;", 1),
            ("middle.rs", "use crate::{low::{A, B}, high};", 1),
            ("middle/a/b.rs", "use crate::middle::c::D;", 0),
            ("middle/mod.rs", "use super::high;", 1),
            ("middle/a.rs", "use super::high;", 0),
            ("middle/a.rs", "let x = super::super::high::f();", 1),
            (
                "middle/a.rs",
                "// crate::high\nlet x = tiphys_crate::high();",
                0,
            ),
            (
                "middle/a.rs",
                "#[cfg(test)]\nmod tests {\n use super::super::high;\n}",
                0,
            ),
            ("high.rs", "use crate::low::A;\nuse crate::Limits;", 1),
            ("other.rs", "", 1),
        ] {
            let found: Vec<String> = judge(&order, file, text).collect();
            assert_eq!(found.len(), findings, "{file}: {text}: {found:?}");
        }
    }
}
