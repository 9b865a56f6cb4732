//! The one program: argv becomes a role that runs, or a command that asks the API.
//!
//! The only place that wires the crates together, and the only one that reads the environment.

mod roles;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// GitOps continuous delivery for Kubernetes: Git says what should run, Tiphys makes clusters agree
#[derive(Parser)]
#[command(name = "tiphys", version, propagate_version = true, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Log level: error, warn, info, debug or trace
    #[arg(long, global = true, env = "TIPHYS_LOG", default_value = "warn")]
    loglevel: String,
}

#[derive(Subcommand)]
enum Command {
    Up(Box<roles::up::UpArgs>),
    ControlPlane(Box<roles::control_plane::ControlPlaneArgs>),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let filter = tracing_subscriber::EnvFilter::try_new(&cli.loglevel).unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("warn"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr())).init();
    // One provider for every TLS connection of the process; it fails only when one is installed already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(e) => {
            eprintln!("error: cannot start: {e}");
            return ExitCode::FAILURE;
        }
    };
    let result = runtime.block_on(async {
        match cli.command {
            Command::Up(args) => roles::up::run(*args).await,
            Command::ControlPlane(args) => roles::control_plane::run(*args).await,
        }
    });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("error: {e:#}");
            ExitCode::FAILURE
        }
    }
}
