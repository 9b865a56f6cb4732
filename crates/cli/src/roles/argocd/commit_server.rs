//! `argocd-commit-server`, as a replacement for Argo CD's, for its controllers.

use super::{
    COMMIT_SERVER,
    flags::{
        Here::{self, Flag},
        Kind::{Int, Text},
        LOG_FORMAT, LOG_LEVEL, Program, Row, row,
    },
    line::Said,
};
use crate::{
    commands,
    roles::{
        commit_server::{self, CommitServerArgs},
        logs::Logs,
    },
};
use anyhow::bail;
use clap::{CommandFactory as _, FromArgMatches as _, Parser};

pub const PROGRAM: Program = Program {
    name: COMMIT_SERVER,
    rows: ROWS,
};

#[rustfmt::skip]
const ROWS: &[Row] = &[
    row(LOG_FORMAT, "ARGOCD_COMMIT_SERVER_LOGFORMAT", Text, "json", Here::Own),
    row(LOG_LEVEL, "ARGOCD_COMMIT_SERVER_LOGLEVEL", Text, "info", Here::Own),
    row("address", "ARGOCD_COMMIT_SERVER_LISTEN_ADDRESS", Text, "0.0.0.0", Flag("address")),
    row("port", "", Int, "8086", Flag("port")),
    row("metrics-address", "ARGOCD_COMMIT_SERVER_METRICS_LISTEN_ADDRESS", Text, "0.0.0.0", Flag("metrics-address")),
    row("metrics-port", "", Int, "8087", Flag("metrics-port")),
    row("", "ARGOCD_SSH_DATA_PATH", Text, "/app/config/ssh", Flag("ssh-dir")),
    row("", "ARGOCD_TLS_DATA_PATH", Text, "/app/config/tls", Flag("tls-dir")),
    row("", "ARGOCD_GRPC_MAX_SIZE_MB", Int, "100", Flag("max-message-mb")),
];

/// What the role is made of, in our own flags.
#[derive(Parser)]
#[command(name = COMMIT_SERVER, no_binary_name = true)]
struct Role {
    #[command(flatten)]
    role: CommitServerArgs,
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
    commit_server::run(Role::of(&said)?.role, logs).await
}

#[cfg(test)]
mod tests {
    use super::super::line::{Line, read};
    use super::*;

    #[test]
    fn what_is_said_arrives() {
        Role::flags().debug_assert();
        let words = ["--port=9086", "--metrics-port", "0"].map(str::to_owned);
        let variable = |name: &str| {
            let is_it = name == "ARGOCD_COMMIT_SERVER_LISTEN_ADDRESS";
            is_it.then(|| "127.0.0.1".to_owned())
        };
        let Ok(Line::Run(said)) = read(&PROGRAM, &words, variable) else {
            panic!("not to be run");
        };
        let text = format!("{:?}", Role::of(&said).expect("valid").role);
        for part in ["port: 9086", "metrics_port: 0", "address: 127.0.0.1"] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
