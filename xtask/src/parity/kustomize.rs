//! `cargo xtask parity kustomize DIR…`: every kustomization below some folders, built by the real
//! kustomize and by ours; with `--random SEED` those that are made up.
//!
//! Main function: [`run`]. What needs something from elsewhere is counted and not compared: nothing
//! is fetched. Of failures, only that both fail counts.

mod objects;
mod random;

use super::helm::read_folder;
use crate::conformance::kustomize::NoChance;
use anyhow::{Context, bail};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::Command,
};
use tiphys_render::{
    Budget, MemoryFiles, RenderError, SourceSet,
    kustomize::{BuildOptions, build},
};

#[derive(clap::Args)]
pub struct Args {
    /// Folders with kustomizations, at any depth; each is a source of its own
    #[arg(required_unless_present = "random")]
    dirs: Vec<PathBuf>,
    /// Also build made-up kustomizations: each has a seed of its own, of which this is the first
    #[arg(long, value_name = "SEED")]
    random: Option<u64>,
    /// How many are made up
    #[arg(long, default_value_t = 1000, requires = "random")]
    count: u64,
    /// The real program [env: KUSTOMIZE] [default: ~/.cache/control-plane/bin/kustomize]
    #[arg(long, value_name = "PROGRAM")]
    kustomize: Option<PathBuf>,
    /// How many that differ to print
    #[arg(long, default_value_t = 10)]
    show: usize,
}

/// What both made of one kustomization.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    Same,
    BothFail,
    Differ,
    OnlyWeFail,
    OnlyTheyFail,
    /// Something must be fetched.
    NotCompared,
}

impl Outcome {
    fn is_wrong(self) -> bool {
        matches!(self, Self::Differ | Self::OnlyWeFail | Self::OnlyTheyFail)
    }
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let program = match &args.kustomize {
        Some(program) => program.clone(),
        None => real().context("there is no real kustomize: see scripts/control-plane")?,
    };
    let mut found = Found {
        show: args.show,
        counts: BTreeMap::new(),
        shown: 0,
    };
    for dir in &args.dirs {
        let dir = dir
            .canonicalize()
            .with_context(|| format!("{}", dir.display()))?;
        let files = read_folder(&dir)?;
        for folder in kustomizations(&files) {
            let compared = compare(&program, &dir, &files, &folder)?;
            found.add(compared, &format!("{}/{folder}", dir.display()));
        }
    }
    if let Some(first) = args.random {
        for seed in first..first.saturating_add(args.count) {
            let (files, folder) = random::files(seed);
            let dir = written(&files)?;
            let compared = compare(&program, dir.path(), &files, &folder)?;
            found.add(compared, &format!("--random {seed} --count 1, {folder}"));
        }
    }
    let counts = found.counts;
    println!("{counts:?}");
    let wrong: usize = counts
        .iter()
        .filter(|(outcome, _)| outcome.is_wrong())
        .map(|(_, count)| count)
        .sum();
    if wrong > 0 {
        bail!("{wrong} kustomizations are not built as the real kustomize builds them");
    }
    Ok(())
}

/// What was found so far.
struct Found {
    show: usize,
    counts: BTreeMap<Outcome, usize>,
    shown: usize,
}

impl Found {
    fn add(&mut self, (outcome, told): (Outcome, String), of: &str) {
        *self.counts.entry(outcome).or_default() += 1;
        if outcome.is_wrong() && self.shown < self.show {
            self.shown += 1;
            println!("{outcome:?} {of}: {told}");
        }
    }
}

/// A folder with these files, for the real program.
fn written(files: &MemoryFiles) -> anyhow::Result<tempfile::TempDir> {
    let dir = tempfile::tempdir()?;
    for (name, content) in &files.0 {
        let path = dir.path().join(name);
        let folder = path.parent().context("it is in the folder")?;
        std::fs::create_dir_all(folder)?;
        std::fs::write(&path, content)?;
    }
    Ok(dir)
}

/// The program that the environment names, or that scripts/control-plane has installed.
pub fn real() -> Option<PathBuf> {
    let named = std::env::var_os("KUSTOMIZE").map(PathBuf::from);
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let installed = home.map(|home| home.join(".cache/control-plane/bin/kustomize"));
    named.or(installed).filter(|program| program.is_file())
}

/// Folders that have a kustomization.
fn kustomizations(files: &MemoryFiles) -> Vec<String> {
    let names = ["kustomization.yaml", "kustomization.yml", "Kustomization"];
    let folders = files.0.keys().filter_map(|path| {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        names.contains(&name).then(|| folder.to_owned())
    });
    let mut folders: Vec<_> = folders.collect();
    folders.dedup();
    folders
}

fn compare(
    program: &Path,
    dir: &Path,
    files: &MemoryFiles,
    folder: &str,
) -> anyhow::Result<(Outcome, String)> {
    let sources = SourceSet::new(files);
    let options = BuildOptions::default();
    let ours = build(&sources, folder, &options, &NoChance, &Budget::default());
    let ours = ours.and_then(|built| built.yaml());
    if matches!(ours, Err(RenderError::Need(_))) {
        return Ok((Outcome::NotCompared, String::new()));
    }
    let output = Command::new(program)
        .arg("build")
        .arg(dir.join(folder))
        .output()
        .context("kustomize does not start")?;
    let theirs = output.status.success().then_some(output.stdout);
    Ok(match (ours, theirs) {
        (Ok(ours), Some(theirs)) if ours.as_bytes() == theirs => (Outcome::Same, String::new()),
        (Ok(ours), Some(theirs)) => {
            let theirs = String::from_utf8_lossy(&theirs).into_owned();
            let difference = similar::TextDiff::from_lines(&theirs, &ours);
            let told = difference.unified_diff().context_radius(2).to_string();
            (Outcome::Differ, told)
        }
        (Err(_), None) => (Outcome::BothFail, String::new()),
        (Err(error), Some(_)) => (Outcome::OnlyWeFail, error.to_string()),
        (Ok(_), None) => {
            let told = String::from_utf8_lossy(&output.stderr).into_owned();
            (Outcome::OnlyTheyFail, told)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The inputs of the committed baseline, asked of the real program again.
    #[test]
    fn the_real_kustomize_builds_the_same() {
        let Some(program) = real() else {
            return tiphys_testkit::skip("kustomize", "there is no kustomize");
        };
        let path = crate::root().join("crates/render/tests/baseline/kustomize.jsonl");
        let text = std::fs::read_to_string(path).expect("the baseline can be read");
        for line in text.lines().skip(1) {
            let case: serde_json::Value = serde_json::from_str(line).expect("JSON");
            if case["flags"]
                .as_array()
                .is_some_and(|flags| !flags.is_empty())
            {
                continue;
            }
            let mut files = MemoryFiles::default();
            for (name, text) in case["files"].as_object().expect("files") {
                let text = text.as_str().expect("text").as_bytes();
                files.0.insert(name.clone(), text.to_vec());
            }
            let dir = written(&files).expect("a folder");
            let folder = case["folder"].as_str().expect("a folder").trim_matches('.');
            let (outcome, told) =
                compare(&program, dir.path(), &files, folder).expect("both have been asked");
            assert!(!outcome.is_wrong(), "{}: {outcome:?} {told}", case["id"]);
        }
    }
}
