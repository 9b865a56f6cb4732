//! `cargo xtask parity`: compares the real programs with ours on any number of newly generated
//! inputs.

mod dice;
mod health;
mod helm;
mod jq;
mod jsonnet;
mod kustomize;
mod peer;
mod rbac;
mod semver;
mod shrink;
pub mod template;
mod yaml;

pub use helm::read_folder;

use anyhow::{Context, bail};
use clap::Subcommand;
use std::{path::Path, process::Command};

#[derive(Subcommand)]
pub enum Parity {
    /// Random templates, executed by Go's text/template and by ours
    Template(Random),
    /// Every chart below a folder, rendered by the real Helm and by ours
    Helm(Box<helm::Args>),
    /// Every kustomization below some folders, and made-up ones, built by the real kustomize and by
    /// ours
    Kustomize(kustomize::Args),
    /// Every Jsonnet file below some folders, evaluated by the real jsonnet and by ours
    Jsonnet(jsonnet::Args),
    /// Random jq programs, run by gojq and by ours
    Jq(Random),
    /// Random YAML documents and values, read and printed by sigs.k8s.io/yaml and by ours
    Yaml(Random),
    /// Random versions and constraints, read and checked by Masterminds/semver and by ours
    Semver(Random),
    /// Random policies and requests, decided by casbin (in a program built elsewhere) and by ours
    Rbac(rbac::Args),
    /// The health of objects and of changed ones, judged by Argo CD (in a program built elsewhere)
    /// and by ours
    Health(health::Args),
}

/// How much of what is random.
#[derive(clap::Args)]
pub struct Random {
    /// How many cases
    #[arg(long, default_value_t = 100_000)]
    count: u64,
    /// Another seed, other cases
    #[arg(long, default_value_t = 2)]
    seed: u64,
    /// How many differences to print, of each class where there are classes
    #[arg(long, default_value_t = 3)]
    show: usize,
}

pub fn run(root: &Path, parity: &Parity) -> anyhow::Result<()> {
    match parity {
        Parity::Template(args) => template::run(root, args),
        Parity::Helm(args) => helm::run(root, args),
        Parity::Kustomize(args) => kustomize::run(args),
        Parity::Jsonnet(args) => jsonnet::run(args),
        Parity::Jq(args) => jq::run(root, args),
        Parity::Yaml(args) => yaml::run(root, args),
        Parity::Semver(args) => semver::run(root, args),
        Parity::Rbac(args) => rbac::run(args),
        Parity::Health(args) => health::run(args),
    }
}

/// The output of one of gocompat's baseline generators, with the real program's results.
fn generated(root: &Path, generator: &str, args: &Random) -> anyhow::Result<String> {
    let mut go = Command::new("go");
    go.current_dir(
        root.join("crates/gocompat/tests/baseline/generate")
            .join(generator),
    );
    go.args(["run", ".", &args.count.to_string(), &args.seed.to_string()]);
    let output = go.output().context("go does not start")?;
    if !output.status.success() {
        let message: String = String::from_utf8_lossy(&output.stderr)
            .lines()
            .take(5)
            .collect::<Vec<_>>()
            .join("\n");
        bail!("the generator failed: {message}");
    }
    String::from_utf8(output.stdout).context("the generator writes JSON")
}
