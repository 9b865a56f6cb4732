//! `cargo xtask bench`: performance figures of the program and its parts on this machine. Never
//! part of the tests: a figure is not a verdict.

mod allocator;
mod appset;
mod cache;
mod catalog;
mod engine;
mod fleet;
mod helm;
mod kube;
mod limit;
mod process;
mod render;
mod server;
mod soak;
mod storm;
mod subject;
mod timed;

use clap::{Args, Subcommand, ValueEnum, builder::TypedValueParser};
use std::path::{Path, PathBuf};

/// What is measured.
#[derive(Subcommand)]
pub enum Bench {
    /// Many Applications of one 2 KB ConfigMap each, created and synced automatically
    Fleet(FleetArgs),
    /// One commit that changes one of many Applications, all of which are told to look, on a real
    /// API server
    Storm(StormArgs),
    /// A cluster full of pods that nobody manages, on a real API server: what it costs to know it
    Cache(CacheArgs),
    /// A fleet under fire: memory and descriptors stay flat, no operation sticks, in the end all is
    /// well; fails when not
    Soak(SoakArgs),
    /// Comparing, planning and judging many objects, without a cluster; with allocations
    Engine(EngineArgs),
    /// The embedded API server against a real one, which scripts/control-plane starts
    Kube(KubeArgs),
    /// A matrix that generates many Applications, and reconciles that change nothing, on a real API
    /// server
    Appset(AppSetArgs),
    /// The API server alone with many Applications: lists, pages, one, and many watchers, on a real
    /// API server
    Server(ServerArgs),
    /// Charts rendered by the real Helm, by our program and in process
    Helm(HelmArgs),
    /// Every kind of render, and an index, beside the real programs and in process
    Render(RenderArgs),
    /// A large chart repository read into the catalogue, and searched
    Catalog(CatalogArgs),
    /// What `catalog` starts to sync inside one process
    #[command(hide = true)]
    CatalogSyncs(CatalogSyncsArgs),
}

#[derive(Args)]
pub struct RenderArgs {
    /// A chart to render by whole processes, with what it depends on [default: one of our own]
    #[arg(long, value_name = "DIR")]
    chart: Option<PathBuf>,
    /// The real program [default: ~/.cache/control-plane/bin/helm]
    #[arg(long, value_name = "FILE")]
    helm: Option<PathBuf>,
    /// The real program [default: ~/.cache/control-plane/bin/kustomize]
    #[arg(long, value_name = "FILE")]
    kustomize: Option<PathBuf>,
    /// The genuine argocd, which is asked as a repo-server, beside ours
    #[arg(long, value_name = "FILE")]
    repo_server: Option<PathBuf>,
    /// Our program [default: target/release/tiphys]
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Resources of the large kustomization
    #[arg(long, value_name = "N", default_value_t = 4_000)]
    resources: usize,
    /// Subcharts of the umbrella
    #[arg(long, value_name = "N", default_value_t = 100)]
    subcharts: usize,
    /// Size of the index, in MB
    #[arg(long, value_name = "N", default_value_t = 25)]
    megabytes: usize,
    /// How often each is measured; the best counts
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..).map(|n| n as usize))]
    rounds: usize,
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

#[derive(Args)]
pub struct CatalogArgs {
    /// How many charts the index has
    #[arg(long, value_name = "N", default_value_t = 2_000, value_parser = clap::value_parser!(u64).range(1..).map(|n| n as usize))]
    charts: usize,
    /// How many versions each of them has
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..).map(|n| n as usize))]
    versions: usize,
    /// How many versions are searched, at least
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    searched: usize,
    /// kubeapps' asset-syncer, measured in the same run on the same PostgreSQL
    #[arg(long, value_name = "FILE")]
    asset_syncer: Option<PathBuf>,
    /// The program [default: target/release/tiphys]
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

#[derive(Args)]
pub struct CatalogSyncsArgs {
    /// A file, or the URL of a PostgreSQL
    database: String,
    url: String,
}

#[derive(Args)]
pub struct HelmArgs {
    /// Folders of charts, with what they depend on; an umbrella of many subcharts comes after them
    charts: Vec<PathBuf>,
    /// The real program [default: ~/.cache/control-plane/bin/helm]
    #[arg(long, value_name = "FILE")]
    helm: Option<PathBuf>,
    /// Our program [default: target/release/tiphys, when it is there]
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Subcharts of the umbrella
    #[arg(long, value_name = "N", default_value_t = 100)]
    subcharts: usize,
    /// How often each is measured
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..).map(|n| n as usize))]
    rounds: usize,
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

#[derive(Args)]
pub struct EngineArgs {
    /// How many pairs of a desired and a live object are compared
    #[arg(long, value_name = "N", default_value_t = 5_000)]
    pairs: usize,
    /// How many tasks the plan has
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    tasks: usize,
    /// Of how many objects the health is judged
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    judged: usize,
    /// How often each step is measured; the best counts
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..).map(|n| n as usize))]
    rounds: usize,
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

#[derive(Args)]
pub struct KubeArgs {
    /// How many ConfigMaps are stored and how many requests of each kind are made
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    objects: usize,
    /// Connections that make requests at the same time
    #[arg(long, value_name = "N", default_value_t = 8)]
    connections: usize,
    /// How often each server is measured; the best counts
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..).map(|n| n as usize))]
    rounds: usize,
    /// Both servers answer a write only when it is on disk; otherwise neither does
    #[arg(long)]
    durable: bool,
    /// The embedded server [default: target/release/examples/serve]
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

#[derive(Args)]
pub struct StormArgs {
    /// How many Applications
    #[arg(long, value_name = "N", default_value_t = 300)]
    apps: usize,
    /// Each Application's source is a kustomization
    #[arg(long)]
    kustomize: bool,
    /// How often; the median counts
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..).map(|n| n as usize))]
    rounds: usize,
    /// Use this cluster instead of one that scripts/control-plane starts
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The program [default: target/release/tiphys]
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Another controller that already runs on a cluster of its own, measured in the same run; may
    /// be given again
    #[arg(long, value_name = "NAME=KUBECONFIG:ID[,ID…]")]
    beside: Vec<subject::Beside>,
    /// How long to wait for each step, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    timeout: u64,
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

#[derive(Args)]
pub struct AppSetArgs {
    /// How many Applications, rounded up to 25
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    apps: usize,
    /// How many reconciles that change nothing
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..).map(|n| n as usize))]
    rounds: usize,
    /// Use this API server, one without controllers, instead of one that scripts/control-plane
    /// starts
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The program [default: target/release/tiphys]
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Argo CD's program, measured in the same run
    #[arg(long, value_name = "FILE")]
    genuine: Option<PathBuf>,
    /// How long to wait for each step, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    timeout: u64,
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

#[derive(Args)]
pub struct ServerArgs {
    /// How many Applications
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..).map(|n| n as usize))]
    apps: usize,
    /// How many lists of all of them are asked for
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..).map(|n| n as usize))]
    rounds: usize,
    /// How many smaller requests of each kind are made; of pages a tenth
    #[arg(long, value_name = "N", default_value_t = 5_000, value_parser = clap::value_parser!(u64).range(1..).map(|n| n as usize))]
    requests: usize,
    /// How many watch all Applications
    #[arg(long, value_name = "N", default_value_t = 200)]
    watchers: usize,
    /// Connections that make mixed requests at the same time
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..).map(|n| n as usize))]
    connections: usize,
    /// Use this API server, one without controllers, instead of one that scripts/control-plane
    /// starts; the Applications stay there for another run
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The program [default: target/release/tiphys]
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Argo CD's program, measured in the same run
    #[arg(long, value_name = "FILE")]
    genuine: Option<PathBuf>,
    /// How long to wait for each step, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    timeout: u64,
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

#[derive(Args)]
pub struct CacheArgs {
    /// How many pods
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    pods: usize,
    /// How large each is, about
    #[arg(long, value_name = "BYTES", default_value_t = 4_096)]
    bytes: usize,
    /// Use this API server, one without controllers, instead of one that scripts/control-plane
    /// starts
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The program [default: target/release/tiphys]
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

#[derive(Args)]
pub struct SoakArgs {
    /// How many Applications
    #[arg(long, value_name = "N", default_value_t = 500)]
    apps: usize,
    /// How long
    #[arg(long, value_name = "N", default_value_t = 30)]
    minutes: u64,
    /// Repeats what is done, though not when exactly
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Use this real control plane on loopback, instead of one that scripts/control-plane starts
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The program [default: target/release/tiphys]
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
}

#[derive(Args)]
pub struct FleetArgs {
    /// How many Applications
    #[arg(long, value_name = "N", default_value_t = 300)]
    apps: usize,
    /// Use this cluster instead of the embedded API server
    #[arg(long, value_name = "FILE", conflicts_with = "real")]
    kubeconfig: Option<PathBuf>,
    /// Start a real control plane with scripts/control-plane and use it
    #[arg(long)]
    real: bool,
    /// The program [default: target/release/tiphys]
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Another controller that already runs on a cluster of its own, measured in the same run; may
    /// be given again
    #[arg(long, value_name = "NAME=KUBECONFIG:ID[,ID…]")]
    beside: Vec<subject::Beside>,
    /// How long to wait for the fleet, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    timeout: u64,
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    Text,
    Json,
}

/// Runs it and prints its figures.
///
/// # Errors
/// If the program cannot be started, or the work is not done in time.
pub fn run(root: &Path, bench: Bench) -> anyhow::Result<()> {
    match bench {
        Bench::Engine(args) => engine::run(&args),
        Bench::Appset(args) => appset::run(root, &args),
        Bench::Server(args) => server::run(root, &args),
        Bench::Fleet(args) => fleet::run(root, &args),
        Bench::Soak(args) => soak::run(root, &args),
        Bench::Storm(args) => storm::run(root, &args),
        Bench::Cache(args) => cache::run(root, &args),
        Bench::Kube(args) => kube::run(root, &args),
        Bench::Helm(args) => helm::run(root, &args),
        Bench::Render(args) => render::run(root, &args),
        Bench::Catalog(args) => catalog::run(root, &args),
        Bench::CatalogSyncs(args) => catalog::inside::serve(&args),
    }
}

/// The program to measure: the given one, or our release build.
pub fn program(root: &Path, named: Option<&Path>) -> anyhow::Result<PathBuf> {
    let program = named.map_or_else(|| root.join("target/release/tiphys"), Path::to_owned);
    anyhow::ensure!(
        program.exists(),
        "{} is missing; build it with `cargo build --release -p tiphys-cli`, or name another with --program",
        program.display()
    );
    Ok(program)
}
