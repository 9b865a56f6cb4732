//! `cargo xtask baseline`: regenerates the committed baselines with the real tools.
//!
//! Main function: [`run`]. Every Go module below a `tests/baseline/generate` folder is a generator
//! that writes the files next to it; the versions of the tools are in its go.mod.

use anyhow::{Context, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

pub fn run(root: &Path, only: Option<&str>) -> anyhow::Result<()> {
    let generators = generators(root)?;
    let wanted: Vec<_> = generators
        .iter()
        .filter(|dir| only.is_none_or(|only| dir.to_string_lossy().contains(only)))
        .collect();
    if wanted.is_empty() {
        bail!(
            "no generator {}; there are {generators:?}",
            only.unwrap_or_default()
        );
    }
    for dir in wanted {
        println!("{}", dir.strip_prefix(root).unwrap_or(dir).display());
        let status = Command::new("go")
            .args(["run", "."])
            .current_dir(dir)
            .status()
            .context("cannot start go")?;
        if !status.success() {
            bail!("the generator in {} failed", dir.display());
        }
    }
    Ok(())
}

/// The folders with a go.mod, sorted.
fn generators(root: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(root.join("crates"))? {
        let top = entry?.path().join("tests/baseline/generate");
        let below = std::fs::read_dir(&top)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path());
        found.extend(
            below
                .chain([top])
                .filter(|dir| dir.join("go.mod").is_file()),
        );
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    #[test]
    fn generators_are_found() {
        let found = super::generators(&crate::root()).expect("the crates folder can be read");
        for known in [
            "gocompat/tests/baseline/generate",
            "gocompat/tests/baseline/generate/helm",
            "render/tests/baseline/generate/source",
        ] {
            assert!(
                found.iter().any(|dir| dir.ends_with(known)),
                "{known}: {found:?}"
            );
        }
    }
}
