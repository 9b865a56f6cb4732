//! The program: the command line selects a role to run, or a command that uses the API.
//!
//! The only place that connects the crates, and the only one that reads the environment.

mod client;
mod commands;
mod failure;
mod flags;
mod kubectl;
mod misuse;
mod output;
mod pace;
mod private;
mod roles;

use roles::{
    argocd::{self, Called, Line},
    logs::Logs,
};

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use std::{env, process::ExitCode};

/// Many threads allocate many small objects, and sometimes lists of several megabytes.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// GitOps continuous delivery for Kubernetes: Git says what should run, Tiphys makes clusters agree
#[derive(Parser)]
#[command(
    name = "tiphys",
    version,
    propagate_version = true,
    arg_required_else_help = true
)]
struct Cli<C: Subcommand = Command> {
    #[command(subcommand)]
    command: C,
    #[command(flatten)]
    connect: client::ConnectArgs,
    /// Log level: error, warn, info, debug or trace [default: warn; of control-plane:
    /// controller.log.level of argocd-cmd-params-cm, or info]
    #[arg(long, global = true, env = "TIPHYS_LOG")]
    loglevel: Option<String>,
}

impl Cli<commands::CatalogAlone> {
    fn whole(self) -> Cli {
        Cli {
            command: Command::Client(self.command.into()),
            connect: self.connect,
            loglevel: self.loglevel,
        }
    }
}

#[derive(Subcommand)]
enum Command {
    Up(Box<roles::up::UpArgs>),
    ControlPlane(Box<roles::control_plane::ControlPlaneArgs>),
    CmpServer(Box<roles::cmp_server::CmpServerArgs>),
    RepoServer(Box<roles::repo_server_role::RepoServerRoleArgs>),
    CommitServer(Box<roles::commit_server::CommitServerArgs>),
    /// Run the controller of ApplicationSets alone, as argocd-applicationset-controller
    Applicationset(argocd::RoleWords),
    /// Run the controller of notifications alone, as argocd-notifications
    Notifications(argocd::RoleWords),
    Server(Box<roles::server::ServerArgs>),
    /// Write Dex's configuration, or run Dex with it, as argocd-dex
    Dex(argocd::RoleWords),
    AssetSyncer(roles::asset_syncer::AssetSyncerArgs),
    #[command(name = roles::apprepository_controller::NAME)]
    AppRepositoryController(roles::apprepository_controller::AppRepositoryControllerArgs),
    #[command(flatten)]
    Client(commands::ClientCommand),
}

fn program<C: Subcommand>() -> clap::Command {
    flags::adapt(Cli::<C>::command())
}

fn parse<C: Subcommand>() -> Result<Cli<C>, clap::Error> {
    Cli::from_arg_matches(&program::<C>().try_get_matches()?)
}

/// How long threads may continue with work that a role left behind.
const LAST_WORK: std::time::Duration = std::time::Duration::from_secs(1);

/// Reports the error of a command, and returns its exit code.
fn failed(failure: &client::Failure) -> ExitCode {
    if !failure.message.is_empty() {
        output::log::fatal(&failure.message, failure.hint);
    }
    if failure.is_misuse {
        output::print(&misuse::usage(program::<Command>));
    }
    ExitCode::from(failure.code)
}

fn ended(result: Result<(), client::Failure>) -> ExitCode {
    let complete = result.and_then(|()| output::arrived());
    complete.map_or_else(|failure| failed(&failure), |()| ExitCode::SUCCESS)
}

fn main() -> ExitCode {
    let words: Vec<String> = env::args_os()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    if let [_, role, memory] = &words[..]
        && role == roles::git::WORKER
    {
        return roles::git::work(memory);
    }
    if let Some(called) = argocd::called(&words, env::var("ARGOCD_BINARY_NAME").ok().as_deref()) {
        return start_called(&called);
    }
    // Its arguments are not in the form of ours.
    if let [_, role, words @ ..] = &words[..]
        && role == roles::asset_syncer::NAME
    {
        return start_asset_syncer(words);
    }
    if let [_, role, words @ ..] = &words[..]
        && role == roles::apprepository_controller::NAME
    {
        return start_apprepository_controller(words);
    }
    // Scripts render charts by the hundred: building the whole command line, threads and logging
    // would take longer than rendering a small chart.
    if env::args_os().nth(1).is_some_and(|word| {
        word.to_str()
            .is_some_and(commands::LocalCommand::has_subcommand)
    }) {
        return parse::<commands::LocalCommand>().map_or_else(
            |e| misuse::told(&e, program::<Command>),
            |cli| ended(cli.command.run()),
        );
    }
    if let [_, command, ..] = &words[..]
        && commands::CatalogAlone::has_subcommand(command)
    {
        return parse::<commands::CatalogAlone>().map_or_else(
            |e| misuse::told(&e, program::<Command>),
            |cli| start(cli.whole()),
        );
    }
    match parse::<Command>() {
        Ok(cli) => start(cli),
        Err(e) => misuse::told(&e, program::<Command>),
    }
}

/// The levels that commands may be asked for, which are those of Go's library.
const LEVELS: [&str; 8] = [
    "panic", "fatal", "error", "warn", "warning", "info", "debug", "trace",
];

/// Logging for a user at a terminal.
fn log_plainly(level: Option<&str>) {
    let filter = tracing_subscriber::EnvFilter::try_new(level.unwrap_or("warn"));
    tracing_subscriber::fmt()
        .with_env_filter(filter.unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("warn")))
        .with_writer(std::io::stderr)
        .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()))
        .init();
}

/// Half of the processors: more workers would have to be woken for tiny tasks, and long
/// computations (manifests, Git, writes of the embedded API server) have threads of their own.
fn workers() -> usize {
    std::thread::available_parallelism().map_or(1, |n| n.get().div_ceil(2))
}

/// The threads of a role or a command. `streams`: it watches clusters whose API servers are other
/// processes.
fn runtime(streams: bool) -> Result<tokio::runtime::Runtime, ExitCode> {
    // One crypto provider for all TLS connections of the process; it fails only if one is already
    // installed.
    let _ = rustls::crypto::ring::default_provider().install_default();
    tiphys_listen::raise_file_limit();
    // Unoptimized builds keep every step of a future on the stack; unused stack memory is not
    // allocated.
    let mut threads = tokio::runtime::Builder::new_multi_thread();
    if streams {
        pace::keep_pace(&mut threads);
    }
    threads
        .worker_threads(workers())
        .enable_all()
        .thread_stack_size(8 << 20)
        .build()
        .map_err(|e| {
            eprintln!("error: cannot start: {e}");
            ExitCode::FAILURE
        })
}

/// Starts the role that the program is called by, with Argo CD's name.
fn start_called(called: &Called<'_>) -> ExitCode {
    let (program, words) = match called {
        Called::Role(program, words) => (*program, *words),
        Called::CmpServer(words) => return start_cmp_server(words),
        Called::AskPass(words) => {
            return runtime(false).map_or_else(
                |code| code,
                |runtime| match runtime.block_on(roles::cmp_server::ask_pass(words)) {
                    Ok(text) => {
                        output::print(&format!("{text}\n"));
                        ExitCode::SUCCESS
                    }
                    Err(e) => role_ended(Err(e)),
                },
            );
        }
        Called::Dex(name, words) => {
            let name = *name;
            return start_dex(name, words);
        }
    };
    match argocd::read(program, words, |name| env::var(name).ok()) {
        Ok(Line::Run(said)) => runtime(program.name == argocd::CONTROLLER).map_or_else(
            |code| code,
            |runtime| role_ended(runtime.block_on(argocd::run(program, said))),
        ),
        Ok(Line::Help) => {
            output::print(&argocd::usage(program));
            ExitCode::SUCCESS
        }
        Err(wrong) => {
            eprint!("Error: {wrong}\n{}", argocd::usage(program));
            ExitCode::FAILURE
        }
    }
}

/// A role of Argo CD's under our own name.
fn start_own_role(words: Vec<String>, name: &str) -> ExitCode {
    let words = [vec!["tiphys".to_owned(), name.to_owned()], words].concat();
    argocd::called(&words, None).map_or(ExitCode::FAILURE, |called| start_called(&called))
}

/// kubeapps' syncer, whose arguments are read by itself.
fn start_asset_syncer(words: &[String]) -> ExitCode {
    log_plainly(None);
    runtime(false).map_or_else(
        |code| code,
        |runtime| runtime.block_on(roles::asset_syncer::start(words)),
    )
}

/// kubeapps' controller, whose flags are read by itself.
fn start_apprepository_controller(words: &[String]) -> ExitCode {
    use roles::apprepository_controller::{Line, read, run};
    let _logs = Logs::start(None, Some("info".to_owned()));
    match read(words) {
        Ok(Line::Help) => {
            output::print(tiphys_catalog::apprepository::USAGE);
            ExitCode::SUCCESS
        }
        Ok(Line::Run(settings)) => runtime(true).map_or_else(
            |code| code,
            |runtime| role_ended(runtime.block_on(run(*settings))),
        ),
        Err(e) => {
            eprint!("Error: {e}\n{}", tiphys_catalog::apprepository::USAGE);
            ExitCode::FAILURE
        }
    }
}

/// Dex's configuration, under Argo CD's name or ours.
fn start_dex(name: &'static str, words: &[String]) -> ExitCode {
    let line = match roles::dex::read(name, words) {
        Ok(line) => line,
        Err(e) => {
            // It fails only if nobody reads it.
            let _ = e.print();
            let is_help = !e.use_stderr()
                || e.kind() == clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
            return ExitCode::from(u8::from(!is_help));
        }
    };
    runtime(true).map_or_else(
        |code| code,
        |runtime| {
            let _logs = Logs::start(Some(line.log_format()), Some(line.log_level()));
            role_ended(runtime.block_on(roles::dex::run(line)))
        },
    )
}

/// The plugin's server under Argo CD's name.
fn start_cmp_server(words: &[String]) -> ExitCode {
    let called = match roles::cmp_server::Called::try_parse_from(words) {
        Ok(called) => called,
        Err(e) => return misuse::told(&e, program::<Command>),
    };
    runtime(false).map_or_else(
        |code| code,
        |runtime| {
            let (format, level) = (called.logformat.clone(), called.loglevel.clone());
            let _logs = Logs::start(Some(format), Some(level));
            called.warn();
            role_ended(runtime.block_on(roles::cmp_server::run(called.args)))
        },
    )
}

fn start(cli: Cli) -> ExitCode {
    let streams = match &cli.command {
        Command::Up(args) => args.kubeconfig.is_some(),
        Command::ControlPlane(_) => true,
        Command::CmpServer(_)
        | Command::RepoServer(_)
        | Command::CommitServer(_)
        | Command::Applicationset(_)
        | Command::Notifications(_)
        | Command::Server(_)
        | Command::Dex(_)
        | Command::AssetSyncer(_)
        | Command::AppRepositoryController(_)
        | Command::Client(_) => false,
    };
    let runtime = match runtime(streams) {
        Ok(runtime) => runtime,
        Err(code) => return code,
    };
    let result = match cli.command {
        Command::Up(args) => {
            match cli.connect.log_format() {
                Some(format) => drop(Logs::start(
                    Some(format),
                    Some(cli.loglevel.unwrap_or_else(|| "warn".to_owned())),
                )),
                None => log_plainly(cli.loglevel.as_deref()),
            }
            runtime.block_on(roles::up::run(*args))
        }
        Command::ControlPlane(args) => {
            let logs = Logs::start(cli.connect.log_format(), cli.loglevel);
            runtime.block_on(roles::control_plane::run(*args, logs))
        }
        Command::CmpServer(args) => {
            let level = cli.loglevel.unwrap_or_else(|| "info".to_owned());
            let _logs = Logs::start(cli.connect.log_format(), Some(level));
            runtime.block_on(roles::cmp_server::run(*args))
        }
        Command::RepoServer(args) => {
            let level = cli.loglevel.unwrap_or_else(|| "info".to_owned());
            let logs = Logs::start(cli.connect.log_format(), Some(level));
            runtime.block_on(roles::repo_server_role::run(*args, logs))
        }
        Command::CommitServer(args) => {
            let level = cli.loglevel.unwrap_or_else(|| "info".to_owned());
            let logs = Logs::start(cli.connect.log_format(), Some(level));
            runtime.block_on(roles::commit_server::run(*args, logs))
        }
        // After a flag of ours; without one it began before.
        Command::Applicationset(args) => {
            return start_own_role(args.words, "applicationset");
        }
        Command::Notifications(args) => {
            return start_own_role(args.words, "notifications");
        }
        Command::Dex(args) => return start_own_role(args.words, "dex"),
        Command::Server(args) => {
            let level = cli.loglevel.unwrap_or_else(|| "info".to_owned());
            let logs = Logs::start(cli.connect.log_format(), Some(level));
            runtime.block_on(roles::server::run(*args, Default::default(), logs))
        }
        Command::AssetSyncer(args) => {
            log_plainly(cli.loglevel.as_deref());
            return runtime.block_on(roles::asset_syncer::start(&args.words));
        }
        Command::AppRepositoryController(args) => {
            return start_apprepository_controller(&args.words);
        }
        Command::Client(command) => {
            if let Some(level) = &cli.loglevel
                && !LEVELS.contains(&level.to_lowercase().as_str())
            {
                let message = format!("not a valid logrus Level: {level:?}");
                return failed(&client::Failure::error(message));
            }
            log_plainly(cli.loglevel.as_deref());
            return ended(runtime.block_on(commands::run(
                command,
                &cli.connect,
                program::<Command>,
            )));
        }
    };
    // A fetch from an unresponsive Git server must not keep the process running.
    runtime.shutdown_timeout(LAST_WORK);
    role_ended(result)
}

fn role_ended(result: anyhow::Result<()>) -> ExitCode {
    let complete = result.and_then(|()| {
        let lost = output::lost().map(|why| anyhow::anyhow!("write /dev/stdout: {why}"));
        lost.map_or(Ok(()), Err)
    });
    match complete {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("error: {e:#}");
            e.downcast_ref::<roles::up::Interrupted>()
                .map_or(ExitCode::FAILURE, |i| ExitCode::from(i.exit_code()))
        }
    }
}

/// How to call this program in a shell: by name if it is in PATH, else by the path that was used.
fn program_name() -> String {
    let called = env::args_os()
        .next()
        .map(std::path::PathBuf::from)
        .unwrap_or_default();
    let name = called
        .file_name()
        .map(|n| n.to_string_lossy().into_owned())
        .unwrap_or_else(|| "tiphys".to_owned());
    let same = |found: &std::path::Path| {
        found.is_file()
            && found.canonicalize().ok()
                == env::current_exe().ok().and_then(|p| p.canonicalize().ok())
    };
    let in_path = env::var_os("PATH")
        .is_some_and(|path| env::split_paths(&path).any(|folder| same(&folder.join(&name))));
    if in_path || called.components().count() < 2 {
        name
    } else {
        roles::up::quoted(&called.to_string_lossy())
    }
}
