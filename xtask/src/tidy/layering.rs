//! Which crate may import which: the order of the crates, the pairs that must not depend on each
//! other, and what pure crates must not list.

use anyhow::Context;
use serde_json::Value;
use std::{fs, path::Path, process::Command};

/// Imports go only up this list: a crate may import those before it, see
/// docs/decisions/0019-homes-for-what-comes.md.
pub const ORDER: [&str; 24] = [
    "gocompat",
    "apimachinery",
    "kube-schema",
    "api",
    "lua",
    "signatures",
    "engine",
    "rbac",
    "appset",
    "notify",
    "render",
    "cloud",
    "listen",
    "rpc",
    "cmp",
    "repo",
    "repo-server",
    "cluster",
    "sources",
    "catalog",
    "embedded-kube",
    "controllers",
    "server",
    "cli",
];

/// Crates without a clock, network, files or randomness of their own.
pub const PURE: [&str; 11] = [
    "gocompat",
    "apimachinery",
    "kube-schema",
    "api",
    "lua",
    "signatures",
    "engine",
    "rbac",
    "appset",
    "notify",
    "render",
];

/// Pairs that must not depend on each other although the order would allow it.
const APART: [(&str, &str); 8] = [
    ("server", "controllers"),
    ("cluster", "repo"),
    ("render", "engine"),
    ("server", "embedded-kube"),
    ("controllers", "embedded-kube"),
    ("embedded-kube", "api"),
    ("embedded-kube", "engine"),
    ("embedded-kube", "rpc"),
];

/// Dependencies that a pure crate must not have, not even for tests.
const IMPURE: [&str; 14] = [
    "tokio",
    "async-std",
    "kube",
    "hyper",
    "reqwest",
    "tonic",
    "axum",
    "gix",
    "redb",
    "rand",
    "getrandom",
    "tempfile",
    "uuid",
    "tokio-util",
];

/// `cargo metadata` of the workspace.
pub fn metadata(root: &Path, with_dependencies: bool) -> anyhow::Result<Value> {
    let mut command = Command::new("cargo");
    command
        .current_dir(root)
        .args(["metadata", "--format-version", "1", "--locked"]);
    if !with_dependencies {
        command.arg("--no-deps");
    }
    let output = command.output().context("cargo metadata does not start")?;
    anyhow::ensure!(
        output.status.success(),
        "cargo metadata: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// The packages in the output of `cargo metadata`.
pub fn packages(metadata: &Value) -> impl Iterator<Item = &Value> {
    metadata["packages"].as_array().into_iter().flatten()
}

pub fn check(root: &Path) -> anyhow::Result<Vec<String>> {
    let metadata = metadata(root, false)?;
    let mut findings = rules_of_purity(root);
    for package in packages(&metadata) {
        let Some(name) = package["name"]
            .as_str()
            .and_then(|n| n.strip_prefix("tiphys-"))
        else {
            continue;
        };
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let dev = dependency["kind"] == "dev";
            let on = dependency["name"].as_str().unwrap_or_default();
            findings
                .extend(judge(name, on, dev).map(|why| format!("crates/{name}/Cargo.toml: {why}")));
        }
    }
    Ok(findings)
}

/// The list of what a pure crate must not call has to be in each of them, and the same in all.
fn rules_of_purity(root: &Path) -> Vec<String> {
    let of = |name: &str| fs::read_to_string(root.join(format!("crates/{name}/clippy.toml"))).ok();
    let rules = of(PURE[0]);
    let others = PURE
        .iter()
        .filter(|name| of(name) != rules || rules.is_none());
    others
        .map(|name| {
            let first = PURE[0];
            format!("crates/{name}/clippy.toml: a pure crate has the same as crates/{first}")
        })
        .collect()
}

/// Why crate `name` must not list `on`, if so.
fn judge(name: &str, on: &str, dev: bool) -> Option<String> {
    if PURE.contains(&name) && IMPURE.contains(&on) {
        return Some(format!(
            "{name} is pure and must not know `{on}`; pass what it gives as an argument"
        ));
    }
    let ours = on.strip_prefix("tiphys-")?;
    if ours == "testkit" {
        return (!dev).then(|| "testkit is a dev-dependency only".to_owned());
    }
    let rank = |n: &str| ORDER.iter().position(|c| *c == n);
    if name == "testkit" {
        return Some("testkit imports none of ours".to_owned());
    }
    let (Some(mine), Some(theirs)) = (rank(name), rank(ours)) else {
        return Some(format!(
            "`{name}` or `{ours}` has no place in the order of the crates (xtask/src/tidy/layering.rs)"
        ));
    };
    // A test of the cluster crate may start the embedded API server, which it needs as the other
    // side of its connections.
    if dev && ours == "embedded-kube" && !PURE.contains(&name) {
        return None;
    }
    if theirs >= mine {
        return Some(format!(
            "{name} must not import {ours}: imports go up the list, {ours} stands below"
        ));
    }
    APART
        .contains(&(name, ours))
        .then(|| format!("{name} and {ours} must not meet"))
}

#[cfg(test)]
mod tests {
    use super::judge;

    #[test]
    fn the_order_and_the_exceptions_hold() {
        for (name, on, dev, allowed) in [
            ("engine", "tiphys-apimachinery", false, true),
            ("apimachinery", "tiphys-engine", false, false),
            ("server", "tiphys-controllers", false, false),
            ("cluster", "tiphys-repo", false, false),
            ("cluster", "tiphys-embedded-kube", true, true),
            ("engine", "tiphys-embedded-kube", true, false),
            ("engine", "tokio", true, false),
            ("repo", "tokio", false, true),
            ("repo", "tiphys-testkit", false, false),
            ("unknown", "tiphys-engine", false, false),
        ] {
            assert_eq!(judge(name, on, dev).is_none(), allowed, "{name} on {on}");
        }
    }
}
