//! `argocd-repo-server`, as a replacement for Argo CD's, for its controllers and servers.

use super::{REPO_SERVER, line::Said};
use crate::{
    commands,
    roles::{
        logs::Logs,
        repo_server_role::{self, RepoServerRoleArgs},
    },
};
use anyhow::bail;
use clap::{CommandFactory as _, FromArgMatches as _, Parser};

/// What the role is made of, in our own flags.
#[derive(Parser)]
#[command(name = REPO_SERVER, no_binary_name = true)]
struct Role {
    #[command(flatten)]
    role: RepoServerRoleArgs,
}

impl Role {
    /// The variables have already been read by Argo CD's rules.
    fn flags() -> clap::Command {
        commands::adapt(Self::command()).mut_args(|arg| arg.env(clap::builder::Resettable::Reset))
    }

    fn of(said: &Said) -> anyhow::Result<Self> {
        if let Some(name) = said.refused() {
            bail!("{name} is not there yet");
        }
        let matches = Self::flags().try_get_matches_from(said.words())?;
        Ok(Self::from_arg_matches(&matches)?)
    }
}

/// Runs until stopped.
pub async fn run(said: Said, logs: Logs) -> anyhow::Result<()> {
    repo_server_role::run(Role::of(&said)?.role, logs).await
}

#[cfg(test)]
mod tests {
    use super::super::{
        flags::Here,
        line::{Line, read},
        repo_server_flags::REPO_SERVER,
    };
    use super::*;

    fn of(words: &[&str], variables: &[(&str, &str)]) -> anyhow::Result<Role> {
        let words: Vec<String> = words.iter().map(|w| (*w).to_owned()).collect();
        let variable = |name: &str| {
            let found = variables.iter().find(|(n, _)| *n == name);
            found.map(|(_, v)| (*v).to_owned())
        };
        match read(&REPO_SERVER, &words, variable) {
            Ok(Line::Run(said)) => Role::of(&said),
            _ => bail!("not to be run"),
        }
    }

    #[test]
    fn every_flag_is_one_of_ours() {
        Role::flags().debug_assert();
        let flags = Role::flags();
        for row in REPO_SERVER.rows {
            if let Here::Flag(flag) = row.here {
                let is_there = flags.get_arguments().any(|a| a.get_long() == Some(flag));
                assert!(is_there, "{flag}");
            }
        }
    }

    #[test]
    fn what_is_said_arrives() {
        let role = of(
            &[
                "--port=9081",
                "--disable-tls",
                "--plugin-tar-exclude",
                "docs/*",
                "--plugin-tar-exclude=.git",
                "--allow-oob-symlinks",
            ],
            &[
                ("ARGOCD_REPO_SERVER_PARALLELISM_LIMIT", "4"),
                ("ARGOCD_EXEC_TIMEOUT", "2m30s"),
                ("ARGOCD_GPG_ENABLED", "false"),
                ("ARGOCD_RECONCILIATION_TIMEOUT", "120s"),
                (
                    "ARGOCD_REPO_SERVER_MAX_COMBINED_DIRECTORY_MANIFESTS_SIZE",
                    "",
                ),
                ("ARGOCD_TLS_CIPHERS", "A:B"),
                ("REDIS_SERVER", "argocd-redis:6379"),
            ],
        );
        let text = format!("{:?}", role.expect("valid").role);
        for part in [
            "port: 9081",
            "disable_tls: true",
            "parallelism_limit: 4",
            "git_timeout_seconds: 150",
            "git_signatures: false",
            "revision_cache_expiration: \"120s\"",
            "combined: \"10M\"",
            "plugin_tar_exclude: [\"docs/*\", \".git\"]",
            "ciphers: [\"A\", \"B\"]",
            "server: Some(\"argocd-redis:6379\")",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(of(&["--parallelismlimit", "x"], &[]).is_err());
        assert!(of(&["--unknown"], &[]).is_err());
    }
}
