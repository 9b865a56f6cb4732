//! Argo CD's roles under their own names, so that a manifest works with only the image replaced:
//! the name that the program is started by selects the role. Main function: [`called`].

mod applicationset;
mod applicationset_flags;
mod commit_server;
mod controller;
mod flags;
mod line;
mod notifications;
mod notifications_flags;
mod repo_server;
mod repo_server_flags;

pub use flags::Program;
pub use line::{Line, read, usage};

use super::logs::Logs;
use flags::{LOG_FORMAT, LOG_LEVEL};
use line::Said;
use tiphys_cluster::records::SettingsOverrides;

/// The roles that are implemented, and those that are not.
pub const CONTROLLER: &str = "argocd-application-controller";
pub const REPO_SERVER: &str = "argocd-repo-server";
pub const NOTIFICATIONS: &str = "argocd-notifications";
pub const APPLICATION_SETS: &str = "argocd-applicationset-controller";
pub const COMMIT_SERVER: &str = "argocd-commit-server";
const CMP_SERVER: &str = super::cmp_server::NAME;
const ASK_PASS: &str = "argocd-git-ask-pass";
const OTHERS: [&str; 2] = ["argocd-server", "argocd-dex"];

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

const ROLES: [&str; 7] = [
    CONTROLLER,
    REPO_SERVER,
    COMMIT_SERVER,
    NOTIFICATIONS,
    APPLICATION_SETS,
    CMP_SERVER,
    ASK_PASS,
];

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
    /// [`CONTROLLER`], [`REPO_SERVER`], [`COMMIT_SERVER`], [`NOTIFICATIONS`] or
    /// [`APPLICATION_SETS`], with these
    /// arguments.
    Role(&'static Program, &'a [String]),
    /// [`CMP_SERVER`].
    CmpServer(&'a [String]),
    /// [`ASK_PASS`].
    AskPass(&'a [String]),
    NotThere(&'static str),
}

/// The role that the program is called by: its own name, Argo CD's variable for it, or the first
/// argument, which is our own name of a role, or contains the program path of a manifest if the image
/// has an entry point.
pub fn called<'a>(words: &'a [String], variable: Option<&str>) -> Option<Called<'a>> {
    let role = |path: &str| {
        let name = path.rsplit('/').next().unwrap_or(path);
        ROLES
            .iter()
            .chain(&OTHERS)
            .copied()
            .find(|role| *role == name)
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
            (role(word)?, rest)
        }
    };
    Some(match role {
        CONTROLLER => Called::Role(&flags::CONTROLLER, rest),
        REPO_SERVER => Called::Role(&repo_server_flags::REPO_SERVER, rest),
        COMMIT_SERVER => Called::Role(&commit_server::PROGRAM, rest),
        NOTIFICATIONS => Called::Role(&notifications_flags::NOTIFICATIONS, rest),
        APPLICATION_SETS => Called::Role(&applicationset_flags::APPLICATION_SETS, rest),
        CMP_SERVER => Called::CmpServer(rest),
        ASK_PASS => Called::AskPass(rest),
        role => Called::NotThere(role),
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
                Some(Called::NotThere(role)) => format!("no {role}"),
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
            (&["argocd-server"], None, "no argocd-server"),
            (&["tiphys", "app", "list"], None, "command line"),
            (&["argocd", "version"], Some("argocd"), "command line"),
            (&["tiphys"], None, "command line"),
            (&[], None, "command line"),
        ] {
            assert_eq!(of(words, variable), expected, "{words:?}");
        }
    }
}
