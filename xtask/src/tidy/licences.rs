//! Licences and duplicate versions of our dependencies, from `cargo metadata`.

use super::layering::{metadata, packages};
use std::{collections::BTreeMap, path::Path};

/// Accepted licences. One of an `OR` is enough; of an `AND` all must be accepted.
const ACCEPTED: [&str; 14] = [
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "MIT",
    "MIT-0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "MPL-2.0",
    "Zlib",
    "Unicode-3.0",
    "CC0-1.0",
    "CDLA-Permissive-2.0",
    "BSL-1.0",
    "0BSD",
];

/// More versions than this of one crate are a finding: two are a transition, three are neglect.
const MAX_VERSIONS: usize = 2;

/// Crates with more versions in the ecosystem than we can avoid.
const MANY_VERSIONS: [&str; 7] = [
    "getrandom",
    "hashbrown",
    "rand",
    "rand_core",
    "windows-sys",
    "syn",
    "windows-targets",
];

pub fn check(root: &Path) -> anyhow::Result<Vec<String>> {
    let metadata = metadata(root, true)?;
    let mut findings = Vec::new();
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for package in packages(&metadata) {
        let name = package["name"].as_str().unwrap_or_default();
        let version = package["version"].as_str().unwrap_or_default();
        versions.entry(name).or_default().push(version);
        match package["license"].as_str() {
            Some(licence) if accepted(licence) => {}
            Some(licence) => findings.push(format!(
                "{name} {version}: licence `{licence}` is not on the list"
            )),
            None if name == "ring" => {}
            None => findings.push(format!("{name} {version}: no licence is stated")),
        }
    }
    for (name, versions) in versions {
        if versions.len() > MAX_VERSIONS && !MANY_VERSIONS.contains(&name) {
            findings.push(format!(
                "{name}: {} versions ({}); unify them",
                versions.len(),
                versions.join(", ")
            ));
        }
    }
    Ok(findings)
}

/// Whether accepted licences satisfy an SPDX expression.
fn accepted(expression: &str) -> bool {
    let flat = expression.replace(['(', ')'], " ").replace('/', " OR ");
    flat.split(" AND ")
        .all(|part| part.split(" OR ").any(|one| ACCEPTED.contains(&one.trim())))
}

#[cfg(test)]
mod tests {
    use super::accepted;

    #[test]
    fn one_of_several_licences_is_enough_and_copyleft_alone_is_not() {
        for (expression, expected) in [
            ("MIT", true),
            ("MIT OR GPL-3.0", true),
            ("MIT/Apache-2.0", true),
            ("(MIT OR Apache-2.0) AND Unicode-3.0", true),
            ("GPL-3.0", false),
            ("MIT AND GPL-3.0", false),
        ] {
            assert_eq!(accepted(expression), expected, "{expression}");
        }
    }
}
