//! The one program: argv becomes a role that runs, or a command that asks the API.
//!
//! The only place that wires the crates together, and the only one that reads the environment.

mod client;
mod commands;
mod output;
mod roles;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand, error::ErrorKind};
use std::process::ExitCode;

/// GitOps continuous delivery for Kubernetes: Git says what should run, Tiphys makes clusters agree
#[derive(Parser)]
#[command(name = "tiphys", version, propagate_version = true, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    connect: client::ConnectArgs,
    /// Log level: error, warn, info, debug or trace
    #[arg(long, global = true, env = "TIPHYS_LOG", default_value = "warn")]
    loglevel: String,
}

#[derive(Subcommand)]
enum Command {
    Up(Box<roles::up::UpArgs>),
    ControlPlane(Box<roles::control_plane::ControlPlaneArgs>),
    #[command(flatten)]
    Client(commands::ClientCommand),
}

fn parse() -> Result<Cli, clap::Error> {
    Cli::from_arg_matches(&commands::adapt(Cli::command()).try_get_matches()?)
}

/// What went wrong in a command, with the exit code that scripts know.
fn failed(failure: &client::Failure) -> ExitCode {
    if !failure.message.is_empty() {
        output::log::fatal(&failure.message);
    }
    ExitCode::from(failure.code)
}

fn main() -> ExitCode {
    let cli = match parse() {
        Ok(cli) => cli,
        Err(e) => {
            let _ = e.print();
            return if matches!(e.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            };
        }
    };
    let filter = tracing_subscriber::EnvFilter::try_new(&cli.loglevel).unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("warn"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()))
        .init();
    // One provider for every TLS connection of the process; it fails only when one is installed already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(e) => {
            eprintln!("error: cannot start: {e}");
            return ExitCode::FAILURE;
        }
    };
    let result = match cli.command {
        Command::Up(args) => runtime.block_on(roles::up::run(*args)),
        Command::ControlPlane(args) => runtime.block_on(roles::control_plane::run(*args)),
        Command::Client(command) => {
            return match runtime.block_on(commands::run(command, &cli.connect, commands::adapt(Cli::command()))) {
                Ok(()) => ExitCode::SUCCESS,
                Err(failure) => failed(&failure),
            };
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("error: {e:#}");
            ExitCode::FAILURE
        }
    }
}
