//! The commands that use an API server, one file per command. Main type: [`ClientCommand`]. Names,
//! flags and output are those of the `argocd` command, so that scripts and habits keep working.

mod account;
mod admin;
mod app;
mod apply;
mod appset;
mod catalog;
mod cert;
mod claims;
mod cluster;
mod completion;
mod configure;
mod context;
mod core;
mod diff;
mod edit;
mod fetched;
mod files;
mod forward;
mod gpg;
mod helm;
mod install;
mod kustomize;
mod lifetime;
mod login;
mod logout;
#[cfg(test)]
mod parity;
pub mod plugin;
mod proj;
mod prompt;
mod relogin;
mod repo;
mod repocreds;
mod secrets;
mod sso;
mod version;

use crate::{
    client::{Client, ConnectArgs, Failure},
    output::{self, log},
};
use clap::Command;

#[derive(clap::Subcommand)]
pub enum ClientCommand {
    /// Manage applications
    #[command(subcommand)]
    App(Box<app::AppCommand>),
    Apply(Box<apply::ApplyCommand>),
    Diff(Box<diff::DiffCommand>),
    #[command(flatten)]
    Local(LocalCommand),
    Install(Box<install::InstallCommand>),
    /// Manage projects
    #[command(subcommand, alias = "project")]
    Proj(Box<proj::ProjCommand>),
    /// Manage repository connection parameters
    #[command(subcommand)]
    Repo(Box<repo::RepoCommand>),
    /// Manage credential templates for repositories
    #[command(subcommand)]
    Repocreds(repocreds::RepoCredsCommand),
    /// Manage repository certificates and SSH known hosts entries
    #[command(subcommand)]
    Cert(cert::CertCommand),
    /// Manage GPG keys used for signature verification
    #[command(subcommand)]
    Gpg(gpg::GpgCommand),
    /// Manage ApplicationSets
    #[command(subcommand)]
    Appset(Box<appset::AppSetCommand>),
    /// Search the charts of repositories, on a server or on this machine
    Catalog(Box<catalog::CatalogArgs>),
    /// Manage cluster credentials
    #[command(subcommand)]
    Cluster(cluster::ClusterCommand),
    /// Manage account settings
    #[command(subcommand)]
    Account(account::AccountCommand),
    /// Contains a set of commands useful for Argo CD administrators
    #[command(subcommand)]
    Admin(Box<admin::AdminCommand>),
    /// Log in to an API server
    Login(login::Login),
    /// Refresh an expired authenticate token
    Relogin(relogin::Relogin),
    /// Log out from an API server
    Logout(logout::Logout),
    /// Switch between contexts
    #[command(visible_alias = "ctx")]
    Context(context::ContextCommand),
    /// Manage local configuration
    Configure(configure::Configure),
    /// Print version information
    Version(version::Version),
    /// Print the completion script of a shell (bash, zsh or fish)
    Completion(completion::Completion),
}

/// The catalogue's commands alone: a sync that finds nothing new takes less time than building all
/// commands.
#[derive(clap::Subcommand)]
pub enum CatalogAlone {
    /// Search the charts of repositories, on a server or on this machine
    Catalog(Box<catalog::CatalogArgs>),
}

impl From<CatalogAlone> for ClientCommand {
    fn from(CatalogAlone::Catalog(args): CatalogAlone) -> Self {
        Self::Catalog(args)
    }
}

/// The commands that only read files: without logging, threads or any thought of a server.
#[derive(clap::Subcommand)]
pub enum LocalCommand {
    /// Render and check Helm charts, as `helm` does, without Helm
    #[command(subcommand)]
    Helm(helm::HelmCommand),
    /// Build kustomizations, as `kustomize` does, without kustomize
    #[command(subcommand)]
    Kustomize(kustomize::KustomizeCommand),
}

impl LocalCommand {
    pub fn run(self) -> Result<(), Failure> {
        match self {
            Self::Helm(command) => command.run(),
            Self::Kustomize(command) => command.run(),
        }
    }
}

/// Runs a command. `program` is the whole clap command, for which `completion` prints a script.
pub async fn run(
    command: ClientCommand,
    connect: &ConnectArgs,
    program: fn() -> Command,
) -> Result<(), Failure> {
    let format = connect.log_format().unwrap_or_default();
    if !["", "json", "text"].contains(&format.as_str()) {
        log::set_format("text");
        return Err(Failure::fatal(format!("Unknown log format '{format}'")));
    }
    log::set_format(&format);
    match command {
        ClientCommand::App(c) => c.run(connect).await,
        ClientCommand::Apply(c) => c.run().await,
        ClientCommand::Diff(c) => c.run().await,
        ClientCommand::Local(c) => c.run(),
        ClientCommand::Install(c) => c.run().await,
        ClientCommand::Proj(c) => c.run(connect).await,
        ClientCommand::Appset(c) => c.run(connect).await,
        ClientCommand::Repo(c) => c.run(connect).await,
        ClientCommand::Repocreds(c) => c.run(connect).await,
        ClientCommand::Cert(c) => c.run(connect).await,
        ClientCommand::Gpg(c) => c.run(connect).await,
        ClientCommand::Catalog(c) => c.run(connect).await,
        ClientCommand::Cluster(c) => c.run(connect).await,
        ClientCommand::Account(c) => c.run(connect).await,
        ClientCommand::Admin(c) => c.run().await,
        ClientCommand::Login(c) => c.run(connect).await,
        ClientCommand::Relogin(c) => c.run(connect).await,
        ClientCommand::Configure(_) => configure::Configure::run(connect),
        ClientCommand::Logout(c) => c.run(connect).await,
        ClientCommand::Context(c) => c.run(connect),
        ClientCommand::Version(c) => c.run(connect).await,
        ClientCommand::Completion(c) => c.run(program()),
    }
}

async fn connect(args: &ConnectArgs) -> Result<Client, Failure> {
    if let Some(core) = args.core()? {
        return core::connect(core).await;
    }
    let mut connection = args.resolve()?;
    forward::settle(args, &mut connection).await?;
    if let Some(token) = sso::renewed(args, &connection).await {
        connection.token = token;
    }
    Client::connect(connection).await
}

/// A list in the format given by `-o`.
fn list_document<T: serde::Serialize>(items: &[T], format: &str) -> Result<String, Failure> {
    output::document(&items, format)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::adapt;
    use clap::{FromArgMatches as _, Parser};
    use std::collections::BTreeSet;

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        connect: ConnectArgs,
        #[command(subcommand)]
        command: ClientCommand,
    }

    fn parse(words: &[&str]) -> Result<Program, clap::Error> {
        let matches = adapt(<Program as clap::CommandFactory>::command())
            .try_get_matches_from([&["tiphys"], words].concat())?;
        Program::from_arg_matches(&matches)
    }

    #[test]
    fn the_command_line_is_consistent() {
        adapt(<Program as clap::CommandFactory>::command()).debug_assert();
    }

    /// Scripts add flags of their own to those that all their commands have.
    #[test]
    fn the_last_of_repeated_flags_counts() {
        let matches = |words: &[&str]| {
            let program = adapt(<Program as clap::CommandFactory>::command());
            let found = program.try_get_matches_from([&["tiphys", "app"], words].concat());
            let found = found.unwrap_or_else(|e| panic!("{words:?}: {e}"));
            let app = found.subcommand().expect("app").1;
            app.subcommand().expect("its verb").1.clone()
        };
        let list = matches(&[
            "list", "--server", "a", "-o", "name", "--server", "b", "-o", "wide",
        ]);
        let text = |id: &str| list.get_one::<String>(id).map(String::as_str);
        assert_eq!((text("server"), text("output")), (Some("b"), Some("wide")));
        let sync = matches(&["sync", "x", "--prune", "--prune=false", "--prune"]);
        assert_eq!(sync.get_one::<bool>("prune"), Some(&true));
        // A flag with several values keeps them all.
        let sync = matches(&["sync", "x", "--resource", ":A:a", "--resource", ":B:b"]);
        let resources = sync.get_many::<String>("resource").into_iter().flatten();
        assert_eq!(resources.collect::<Vec<_>>(), [":A:a", ":B:b"]);
    }

    /// An argument with the name of a flag for all commands would change where these connect to.
    #[test]
    fn no_argument_takes_the_place_of_a_global_flag() {
        fn check(command: &clap::Command, global: &[String], found: &mut Vec<String>) {
            for arg in command.get_arguments().filter(|a| a.is_positional()) {
                if global.iter().any(|id| arg.get_id() == id.as_str()) {
                    found.push(format!("{} {}", command.get_name(), arg.get_id()));
                }
            }
            for sub in command.get_subcommands() {
                check(sub, global, found);
            }
        }
        let program = adapt(<Program as clap::CommandFactory>::command());
        let global = program.get_arguments().filter(|a| a.is_global_set());
        let global: Vec<String> = global.map(|a| a.get_id().to_string()).collect();
        assert!(global.contains(&"server".to_owned()));
        let mut found = Vec::new();
        check(&program, &global, &mut found);
        // `login` reads the flag itself.
        assert!(found.is_empty(), "{found:?}");
    }

    /// What is accepted because scripts pass it. Flags of Helm are listed where they are.
    const WITHOUT_EFFECT: &[&str] = &[
        "--controller-name",
        "--redis-compress",
        "--redis-haproxy-name",
        "--redis-name",
        "--repo-server-name",
        "admin app generate-spec --env",
        "admin app get-reconcile-results --ignore-normalizer-jq-execution-timeout",
        "admin app get-reconcile-results --repo-server",
        "admin cluster generate-spec --disable-compression",
        "admin cluster shards --app-state-cache-expiration",
        "admin cluster shards --default-cache-expiration",
        "admin cluster shards --port-forward-redis",
        "admin cluster stats --app-state-cache-expiration",
        "admin cluster stats --default-cache-expiration",
        "admin cluster stats --port-forward-redis",
        "admin notifications template get --argocd-repo-server",
        "admin notifications template get --argocd-repo-server-plaintext",
        "admin notifications template notify --argocd-repo-server",
        "admin notifications template notify --argocd-repo-server-plaintext",
        "admin notifications trigger get --argocd-repo-server",
        "admin notifications trigger get --argocd-repo-server-plaintext",
        "admin notifications trigger run --argocd-repo-server",
        "admin notifications trigger run --argocd-repo-server-plaintext",
        "admin settings rbac can --argocd-cm-path",
        "admin settings rbac can --argocd-secret-path",
        "admin settings rbac can --load-cluster-settings",
        "admin settings rbac validate --argocd-cm-path",
        "admin settings rbac validate --argocd-secret-path",
        "admin settings rbac validate --load-cluster-settings",
        "admin settings resource-overrides health --argocd-secret-path",
        "admin settings resource-overrides ignore-differences --argocd-secret-path",
        "admin settings resource-overrides ignore-resource-updates --argocd-secret-path",
        "admin settings resource-overrides ignore-resource-updates --ignore-normalizer-jq-execution-timeout",
        "admin settings resource-overrides list-actions --argocd-secret-path",
        "admin settings resource-overrides run-action --argocd-secret-path",
        "app add-source --env",
        "app create --env",
        "app diff --ignore-normalizer-jq-execution-timeout",
        "app set --env",
        "app sync --ignore-normalizer-jq-execution-timeout",
        "apply --wait",
        "cluster add --disable-compression",
        "diff --concurrency",
        "helm lint --debug",
    ];

    #[test]
    fn flags_without_effect_say_so() {
        fn collect(command: &Command, path: &str, found: &mut BTreeSet<String>) {
            let own = command
                .get_arguments()
                .filter(|arg| path.is_empty() || !arg.is_global_set());
            for arg in own {
                let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
                if help.contains("(no effect") {
                    let long = arg.get_long().expect("only flags have none");
                    found.insert(format!("{path} --{long}").trim_start().to_owned());
                }
            }
            for sub in command.get_subcommands() {
                collect(
                    sub,
                    format!("{path} {}", sub.get_name()).trim_start(),
                    found,
                );
            }
        }
        let mut found = BTreeSet::new();
        collect(
            &adapt(<Program as clap::CommandFactory>::command()),
            "",
            &mut found,
        );
        let of_helm = helm::flags_without_effect();
        let expected = WITHOUT_EFFECT.iter().map(|flag| (*flag).to_owned());
        let expected: BTreeSet<String> = expected.chain(of_helm).collect();
        assert_eq!(found, expected);
    }

    /// Lists by another name.
    const LISTS: &[&str] = &[
        "app history",
        "app resources",
        "appset generate",
        "catalog problems",
        "catalog search",
        "catalog updates",
        "catalog versions",
    ];

    /// What is printed in a format is sorted as the user likes it, and the help shows how.
    #[test]
    fn every_list_can_be_sorted() {
        fn check(command: &Command, path: &str, lists: &mut usize, lacking: &mut Vec<String>) {
            for sub in command.get_subcommands() {
                let path = format!("{path} {}", sub.get_name()).trim_start().to_owned();
                check(sub, &path, lists, lacking);
                let has = |flag: &str| sub.get_arguments().any(|a| a.get_long() == Some(flag));
                let is_list = sub.get_name() == "list" || LISTS.contains(&path.as_str());
                if !is_list || !(has("output") || has("out")) {
                    continue;
                }
                *lists += 1;
                let help = sub.get_after_help().map(ToString::to_string);
                let is_shown = help.is_some_and(|help| help.contains("--sort-by"));
                if !(has("sort-by") && is_shown) {
                    lacking.push(path);
                }
            }
        }
        let program = adapt(<Program as clap::CommandFactory>::command());
        let (mut lists, mut lacking) = (0, Vec::new());
        check(&program, "", &mut lists, &mut lacking);
        assert!(lists >= 20, "{lists}");
        assert!(lacking.is_empty(), "{lacking:?}");
    }

    /// `-w` is what kubectl's is, and no other flag of Argo CD's.
    #[test]
    fn what_can_be_watched() {
        for words in [
            &["app", "list", "-w"][..],
            &["app", "list", "--watch=true", "-o", "json"],
            &["app", "get", "web", "--watch"],
            &["app", "list", "-w", "--sort-by", "{.metadata.name}"],
        ] {
            assert!(parse(words).is_ok(), "{words:?}: {:?}", parse(words).err());
        }
    }

    const ACCEPTED: &[&[&str]] = &[
        &["app", "delete", "a", "--cascade=false", "-y"],
        &[
            "app",
            "sync",
            "a",
            "--prune",
            "--dry-run=true",
            "--resource",
            "!:Service:x",
        ],
        &[
            "--server",
            "localhost",
            "app",
            "list",
            "-l",
            "a in (b,c)",
            "-o",
            "name",
        ],
        &[
            "app",
            "list",
            "--server=localhost",
            "--plaintext",
            "-H",
            "a: b",
        ],
        &[
            "app",
            "set",
            "a",
            "--self-heal=false",
            "-p",
            "a=b",
            "--parameter",
            "c=d",
        ],
        &["app", "diff", "a", "--exit-code=false"],
        &[
            "app",
            "actions",
            "run",
            "a",
            "restart",
            "--kind",
            "Deployment",
            "--all",
        ],
        &[
            "admin",
            "settings",
            "resource-overrides",
            "action",
            "f",
            "a",
            "--param",
            "b=c",
            "--argocd-cm-path",
            "g",
        ],
        &["ctx"],
        &[
            "login",
            "localhost",
            "--username",
            "admin",
            "--password",
            "-x",
        ],
        &["app", "sync", "a", "--revision", "-1"],
        &["app", "sync", "a", "--revision", "--prune"],
        &["app", "set", "a", "-p", "-a=b", "--values", "-"],
        &["app", "wait", "--timeout", "5", "-l", "-x"],
        &[
            "repo",
            "add",
            "https://example.org/r",
            "--username",
            "u",
            "--password",
            "-p",
        ],
        &[
            "app",
            "sync",
            "a",
            "--local-repo-root",
            "/",
            "--ignore-normalizer-jq-execution-timeout",
            "2s",
        ],
    ];

    #[test]
    fn flags_take_values_as_gos_do() {
        for words in ACCEPTED {
            assert!(parse(words).is_ok(), "{words:?}: {:?}", parse(words).err());
        }
        for words in [
            &["app", "sync", "--prune=maybe", "a"][..],
            &["app", "list", "--bogus"],
            &["app", "get"],
        ] {
            assert!(parse(words).is_err(), "{words:?}");
        }
        let matches = adapt(<Program as clap::CommandFactory>::command()).try_get_matches_from([
            "tiphys",
            "login",
            "h",
            "--password",
            "--insecure",
        ]);
        let login = matches
            .as_ref()
            .ok()
            .and_then(|m| m.subcommand())
            .map(|(_, m)| m.get_one::<String>("password").cloned());
        assert_eq!(
            login.flatten().as_deref(),
            Some("--insecure"),
            "the next word is the value, as pflag has it"
        );
        let program = parse(&["app", "list", "--plaintext=false"]).ok();
        assert!(program.is_some_and(
            |p| matches!(p.command, ClientCommand::App(_)) && p.connect.log_format().is_none()
        ));
    }
}
