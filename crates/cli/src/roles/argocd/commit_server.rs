//! `argocd-commit-server`, as a replacement for Argo CD's, for its controllers.

use super::{
    COMMIT_SERVER, Only, arguments,
    flags::{
        Here::{self, Flag},
        Kind::{Int, Text},
        LOG_FORMAT, LOG_LEVEL, Program, Row, row,
    },
    line::Said,
};
use crate::roles::{
    commit_server::{self, CommitServerArgs},
    logs::Logs,
};

pub const PROGRAM: Program = Program {
    name: COMMIT_SERVER,
    tables: &[ROWS],
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

pub type Role = Only<CommitServerArgs>;

/// Runs until stopped.
pub async fn run(said: Said, logs: Logs) -> anyhow::Result<()> {
    commit_server::run(arguments::<Role>(&said)?.args, logs).await
}

#[cfg(test)]
mod tests {
    use super::{super::tests::of, *};

    #[test]
    fn what_is_said_arrives() {
        let words = ["--port=9086", "--metrics-port", "0"];
        let variables = [("ARGOCD_COMMIT_SERVER_LISTEN_ADDRESS", "127.0.0.1")];
        let role: Role = of(&PROGRAM, &words, &variables).expect("valid");
        let text = format!("{:?}", role.args);
        for part in ["port: 9086", "metrics_port: 0", "address: 127.0.0.1"] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
