//! Argo CD's roles under their own names, so that a manifest works with only the image replaced:
//! the name that the program is started by selects the role. Main function: [`called`].

mod applicationset;
mod applicationset_flags;
mod commit_server;
mod controller;
mod controller_flags;
mod flags;
mod line;
mod notifications;
mod notifications_flags;
mod plane;
mod repo_server;
mod repo_server_flags;
mod server;
mod server_flags;

pub use flags::Program;
pub use line::{Line, read, usage};
pub use plane::{PlaneArgs, named};

use super::logs::Logs;
use crate::flags::adapt;
use anyhow::bail;
use clap::{Args, CommandFactory, FromArgMatches, Parser};
use flags::{LOG_FORMAT, LOG_LEVEL};
use line::Said;
use tiphys_cluster::records::SettingsOverrides;

/// The names of the roles.
pub const CONTROLLER: &str = "argocd-application-controller";
pub const REPO_SERVER: &str = "argocd-repo-server";
pub const NOTIFICATIONS: &str = "argocd-notifications";
pub const APPLICATION_SETS: &str = "argocd-applicationset-controller";
pub const COMMIT_SERVER: &str = "argocd-commit-server";
pub const SERVER: &str = "argocd-server";
const CMP_SERVER: &str = super::cmp_server::NAME;
const ASK_PASS: &str = "argocd-git-ask-pass";
const DEX: &str = super::dex::NAME;

/// Roles under our own names, with the same arguments.
const OWN: [(&str, &Program); 2] = [
    ("applicationset", &applicationset_flags::APPLICATION_SETS),
    ("notifications", &notifications_flags::NOTIFICATIONS),
];

/// The arguments of a role with Argo CD's flags, which are not in the form of ours.
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub struct RoleWords {
    /// Argo CD's flags; --help explains them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub words: Vec<String>,
}

/// The roles whose command lines are tables.
const PROGRAMS: [&Program; 6] = [
    &controller_flags::CONTROLLER,
    &server_flags::SERVER,
    &repo_server_flags::REPO_SERVER,
    &commit_server::PROGRAM,
    &notifications_flags::NOTIFICATIONS,
    &applicationset_flags::APPLICATION_SETS,
];

/// A role that is only its own arguments.
#[derive(Parser)]
#[command(no_binary_name = true)]
struct Only<A: Args> {
    #[command(flatten)]
    args: A,
}

/// Our flags of a role. The variables have already been read by Argo CD's rules.
fn flags_of<R: CommandFactory>() -> clap::Command {
    adapt(R::command()).mut_args(|arg| arg.env(clap::builder::Resettable::Reset))
}

/// What a role is made of, in our own flags.
fn arguments<R: CommandFactory + FromArgMatches>(said: &Said) -> anyhow::Result<R> {
    if let Some(name) = said.refused() {
        bail!("{name} is not there yet");
    }
    let matches = flags_of::<R>().try_get_matches_from(said.words())?;
    Ok(R::from_arg_matches(&matches)?)
}

/// What the variables of `argocd-applicationset-controller` set, for a process that is everything.
/// One that cannot be read is logged.
pub fn variables_of_sets() -> SettingsOverrides {
    let program = &applicationset_flags::APPLICATION_SETS;
    let Ok(line::Line::Run(said)) = line::read(program, &[], |name| std::env::var(name).ok())
    else {
        return SettingsOverrides::default();
    };
    for broken in &said.broken {
        tracing::warn!("{broken}");
    }
    said.overrides()
}

/// The role that the program was called by.
#[derive(Debug, PartialEq, Eq)]
pub enum Called<'a> {
    /// One with a table, with these arguments.
    Role(&'static Program, &'a [String]),
    /// [`CMP_SERVER`].
    CmpServer(&'a [String]),
    /// [`ASK_PASS`].
    AskPass(&'a [String]),
    /// [`DEX`], by this name.
    Dex(&'static str, &'a [String]),
}

/// The role that the program is called by: its own name, Argo CD's variable for it, or the first
/// argument, which is our own name of a role, or contains the program path of a manifest if the image
/// has an entry point.
pub fn called<'a>(words: &'a [String], variable: Option<&str>) -> Option<Called<'a>> {
    let role = |path: &str| {
        let name = path.rsplit('/').next().unwrap_or(path);
        let tables = PROGRAMS.iter().map(|program| program.name);
        let others = [CMP_SERVER, ASK_PASS, DEX];
        tables.chain(others).find(|role| *role == name)
    };
    let own = variable
        .filter(|name| !name.is_empty())
        .or(words.first().map(String::as_str));
    let (role, rest) = match own.and_then(role) {
        Some(role) => (role, words.get(1..)?),
        None => {
            let (word, rest) = (words.get(1)?, words.get(2..)?);
            if let Some((_, program)) = OWN.iter().find(|(name, _)| name == word) {
                return Some(Called::Role(program, rest));
            }
            if word == "dex" {
                return Some(Called::Dex(super::dex::OWN_NAME, rest));
            }
            (role(word)?, rest)
        }
    };
    if let Some(program) = PROGRAMS.into_iter().find(|program| program.name == role) {
        return Some(Called::Role(program, rest));
    }
    Some(match role {
        CMP_SERVER => Called::CmpServer(rest),
        DEX => Called::Dex(DEX, rest),
        _ => Called::AskPass(rest),
    })
}

/// Runs a role until it is stopped.
pub async fn run(program: &Program, said: Said) -> anyhow::Result<()> {
    let logs = begin(&said);
    match program.name {
        REPO_SERVER => repo_server::run(said, logs).await,
        COMMIT_SERVER => commit_server::run(said, logs).await,
        NOTIFICATIONS => notifications::run(said, logs).await,
        APPLICATION_SETS => applicationset::run(said, logs).await,
        SERVER => server::run(said, logs).await,
        _ => controller::run(said, logs).await,
    }
}

/// Starts the log, and tells what of the command line does not count.
fn begin(said: &Said) -> Logs {
    let logs = Logs::start(said.text(LOG_FORMAT), said.text(LOG_LEVEL));
    said.broken
        .iter()
        .for_each(|broken| tracing::warn!("{broken}"));
    let unused = said.without_effect();
    if !unused.is_empty() {
        tracing::info!(
            names = unused.join(","),
            "these flags and variables have no effect here"
        );
    }
    logs
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a command line of a role says, with these variables.
    pub fn said(program: &Program, words: &[&str], variables: &[(&str, &str)]) -> Option<Said> {
        let words: Vec<String> = words.iter().map(|w| (*w).to_owned()).collect();
        let variable = |name: &str| {
            let found = variables.iter().find(|(n, _)| *n == name);
            found.map(|(_, v)| (*v).to_owned())
        };
        match read(program, &words, variable) {
            Ok(Line::Run(said)) => Some(said),
            _ => None,
        }
    }

    /// The arguments of a role.
    pub fn of<R: CommandFactory + FromArgMatches>(
        program: &Program,
        words: &[&str],
        variables: &[(&str, &str)],
    ) -> anyhow::Result<R> {
        match said(program, words, variables) {
            Some(said) => arguments(&said),
            None => bail!("not to be run"),
        }
    }

    fn has_all_flags<R: CommandFactory>(program: &Program) {
        let ours = flags_of::<R>();
        ours.clone().debug_assert();
        for row in program.rows() {
            use flags::Here::{Always, Empty, Flag};
            if let Flag(flag) | Always(flag) | Empty(flag) = row.here {
                let is_there = ours.get_arguments().any(|a| a.get_long() == Some(flag));
                assert!(is_there, "{} {flag}", program.name);
            }
        }
    }

    #[test]
    fn every_flag_is_one_of_ours() {
        has_all_flags::<controller::Role>(&controller_flags::CONTROLLER);
        has_all_flags::<server::Role>(&server_flags::SERVER);
        has_all_flags::<repo_server::Role>(&repo_server_flags::REPO_SERVER);
        has_all_flags::<commit_server::Role>(&commit_server::PROGRAM);
        has_all_flags::<notifications::Role>(&notifications_flags::NOTIFICATIONS);
        has_all_flags::<applicationset::Role>(&applicationset_flags::APPLICATION_SETS);
    }

    #[test]
    fn the_name_is_the_role() {
        let of = |words: &[&str], variable: Option<&str>| {
            let words: Vec<String> = words.iter().map(|w| (*w).to_owned()).collect();
            match called(&words, variable) {
                Some(Called::Role(program, rest)) => {
                    format!(
                        "{} {}",
                        program.name.trim_start_matches("argocd-"),
                        rest.join(" ")
                    )
                }
                Some(Called::CmpServer(rest)) => format!("cmp-server {}", rest.join(" ")),
                Some(Called::AskPass(rest)) => format!("ask-pass {}", rest.join(" ")),
                Some(Called::Dex(name, rest)) => format!("{name}: {}", rest.join(" ")),
                None => "command line".to_owned(),
            }
        };
        for (words, variable, expected) in [
            (
                &[
                    "/usr/local/bin/argocd-application-controller",
                    "--redis",
                    "a",
                ][..],
                None,
                "application-controller --redis a",
            ),
            (
                &["argocd-application-controller"],
                Some(""),
                "application-controller ",
            ),
            (
                &["tiphys", "--redis", "a"],
                Some("argocd-application-controller"),
                "application-controller --redis a",
            ),
            (
                &[
                    "tiphys",
                    "/usr/local/bin/argocd-application-controller",
                    "--redis",
                    "a",
                ],
                None,
                "application-controller --redis a",
            ),
            (
                &["/var/run/argocd/argocd-cmp-server", "--loglevel", "debug"],
                None,
                "cmp-server --loglevel debug",
            ),
            // As git calls it for a plugin.
            (
                &["argocd", "Password for 'https://h': "],
                Some("argocd-git-ask-pass"),
                "ask-pass Password for 'https://h': ",
            ),
            (
                &["tiphys", "/usr/local/bin/argocd-repo-server", "--port=1"],
                None,
                "repo-server --port=1",
            ),
            (
                &["argocd-applicationset-controller", "--policy=sync"],
                None,
                "applicationset-controller --policy=sync",
            ),
            (
                &["tiphys", "applicationset", "--policy=sync"],
                None,
                "applicationset-controller --policy=sync",
            ),
            (
                &["tiphys", "notifications", "--namespace", "cd"],
                None,
                "notifications --namespace cd",
            ),
            (&["tiphys", "appset", "list"], None, "command line"),
            (&["argocd-server", "--insecure"], None, "server --insecure"),
            (
                &["/shared/argocd-dex", "rundex"],
                None,
                "argocd-dex: rundex",
            ),
            (
                &["tiphys", "dex", "gendexcfg", "-n", "cd"],
                None,
                "tiphys dex: gendexcfg -n cd",
            ),
            (&["tiphys", "app", "list"], None, "command line"),
            (&["argocd", "version"], Some("argocd"), "command line"),
            (&["tiphys"], None, "command line"),
            (&[], None, "command line"),
        ] {
            assert_eq!(of(words, variable), expected, "{words:?}");
        }
    }
}
