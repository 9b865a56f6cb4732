//! `argocd-repo-server`, as a replacement for Argo CD's, for its controllers and servers.

use super::{Only, arguments, line::Said};
use crate::roles::{
    logs::Logs,
    repo_server_role::{self, RepoServerRoleArgs},
};

pub type Role = Only<RepoServerRoleArgs>;

/// Runs until stopped.
pub async fn run(said: Said, logs: Logs) -> anyhow::Result<()> {
    repo_server_role::run(arguments::<Role>(&said)?.args, logs).await
}

#[cfg(test)]
mod tests {
    use super::{super::repo_server_flags::REPO_SERVER, *};

    fn of(words: &[&str], variables: &[(&str, &str)]) -> anyhow::Result<Role> {
        super::super::tests::of(&REPO_SERVER, words, variables)
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
        let text = format!("{:?}", role.expect("valid").args);
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
