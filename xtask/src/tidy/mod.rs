//! The conventions of this repository that the compiler does not check: `cargo xtask tidy`, and a
//! test.
//!
//! Each check returns its findings as lines "file: what is wrong and how to fix it"; no lines mean
//! success.

mod behaviours;
mod circles;
mod layering;
mod licences;
mod modules;
mod paths;
mod recorded;
mod sources;

use anyhow::bail;
use std::path::Path;

/// Runs every check and prints what it finds.
///
/// # Errors
/// If there is a finding, or the repository cannot be read.
pub fn run(root: &Path) -> anyhow::Result<()> {
    let mut findings = layering::check(root)?;
    findings.extend(modules::check(root)?);
    findings.extend(circles::check(root)?);
    findings.extend(sources::check(root)?);
    findings.extend(behaviours::check(root)?);
    findings.extend(licences::check(root)?);
    findings.extend(paths::check(root)?);
    findings.extend(recorded::check(root)?);
    for finding in &findings {
        eprintln!("tidy: {finding}");
    }
    if findings.is_empty() {
        println!("tidy: no findings");
        return Ok(());
    }
    bail!("{} findings", findings.len())
}

#[cfg(test)]
mod tests {
    #[test]
    fn conventions_are_kept() {
        if let Err(e) = super::run(&crate::root()) {
            panic!("{e}: run `cargo xtask tidy`");
        }
    }
}
