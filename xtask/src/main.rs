//! Tasks of the repository that are not part of the product. `cargo xtask help` lists them.

mod baseline;
mod bench;
mod codegen;
mod conformance;
mod crds;
mod differential;
mod examples;
mod fuzz;
mod parity;
mod realrepos;
mod swap;
mod tidy;

use clap::{Parser, Subcommand};
use std::path::PathBuf;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Tasks of the repository")]
struct Args {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Measure the program, or a part of it, on this machine
    #[command(subcommand)]
    Bench(bench::Bench),
    /// Check layering, the order of modules, purity, sizes, module headers, forbidden words,
    /// licences and duplicate versions
    Tidy,
    /// Ask the real tools (Go must be there) again for the committed baselines
    Baseline {
        /// Only generators with this in their path
        only: Option<String>,
    },
    /// Run recorded cases of the programs that Tiphys agrees with, one line a suite
    Conformance(conformance::Conformance),
    /// Give the real program and ours the same generated inputs, and report what differs
    #[command(subcommand)]
    Parity(parity::Parity),
    /// Render the Applications and charts of cloned repositories, and say why the others do not
    Realrepos(realrepos::Args),
    /// Deploy each folder of a clone of argocd-example-apps with `tiphys up --once`; fails when one
    /// does not become Synced and Healthy
    Examples(examples::Args),
    /// Replace the programs of a genuine Argo CD by ours, one at a time, and report what its API
    /// shows otherwise
    Swap(swap::Args),
    /// Play random scripts on a real API server and on the embedded one, and group what differs
    Differential(differential::DifferentialArgs),
    /// Run mutated inputs through the parsers of outside content
    Fuzz(fuzz::Fuzz),
    /// Write the committed schema table from an OpenAPI v2 document and discovery files
    Codegen {
        /// Arguments for the generator, such as `--from DIR`
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Write the CRDs of Application and AppProject to deploy/crds
    Crds {
        /// Only check that the committed files are fresh
        #[arg(long)]
        check: bool,
        /// Only compare them with Argo CD's own CRDs, YAML files in this folder
        #[arg(long, value_name = "DIR", conflicts_with = "check")]
        compare: Option<PathBuf>,
    },
}

fn main() -> anyhow::Result<()> {
    match Args::parse().task {
        Task::Bench(bench) => bench::run(&root(), bench),
        Task::Differential(args) => differential::run(&root(), &args),
        Task::Baseline { only } => baseline::run(&root(), only.as_deref()),
        Task::Tidy => tidy::run(&root()),
        Task::Conformance(args) => conformance::run(&root(), &args),
        Task::Parity(parity) => parity::run(&root(), &parity),
        Task::Realrepos(args) => realrepos::run(&args),
        Task::Examples(args) => examples::run(&root(), &args),
        Task::Swap(args) => swap::run(&root(), &args),
        Task::Fuzz(args) => fuzz::run(&args),
        Task::Codegen { args } => codegen::run(&args),
        Task::Crds {
            compare: Some(folder),
            ..
        } => crds::compare(&folder),
        Task::Crds { check, .. } => crds::run(&root(), check),
    }
}

/// The top-level folder of the repository.
fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("xtask lies one folder below the top")
        .to_owned()
}
