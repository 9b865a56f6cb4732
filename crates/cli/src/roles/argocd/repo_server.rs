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
                "--oci-layer-media-types=a.tar,b.tar",
                "--oci-layer-media-types",
                "c.tar",
                "--helm-registry-max-index-size=2M",
                "--disable-oci-manifest-max-extracted-size",
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
                ("ARGOCD_REPO_SERVER_HELM_MANIFEST_MAX_EXTRACTED_SIZE", "1Gi"),
                ("ARGOCD_GIT_REQUEST_TIMEOUT", "7s"),
                ("ARGOCD_GIT_LS_REMOTE_PARALLELISM_LIMIT", "5"),
                ("ARGOCD_GIT_ATTEMPTS_COUNT", "3"),
                ("ARGOCD_GIT_RETRY_DURATION", "100ms"),
                ("ARGOCD_GIT_RETRY_FACTOR", "no number"),
                ("ARGOCD_GIT_RETRY_MAX_DURATION", "1m"),
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
            "oci_layer_media_types: [\"a.tar\", \"b.tar\", \"c.tar\"]",
            "oci_manifest_max_extracted_size: None",
            "disable_oci_manifest_max_extracted_size: true",
            "helm_manifest_max_extracted_size: Some(1073741824)",
            "helm_registry_max_index_size: Some(2000000)",
            "git_request_timeout: Some(7s)",
            "git_lsremote_parallelism_limit: Some(5)",
            "git_attempts_count: Some(3)",
            "git_retry_duration: Some(100ms)",
            "git_retry_factor: None",
            "git_retry_max_duration: Some(60s)",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(of(&["--parallelismlimit", "x"], &[]).is_err());
        assert!(of(&["--oci-manifest-max-extracted-size=much"], &[]).is_err());
        assert!(of(&["--unknown"], &[]).is_err());
    }

    #[test]
    fn limits_are_not_said_to_have_no_effect() {
        let words = [
            "--oci-layer-media-types=a.tar",
            "--oci-manifest-max-extracted-size=1G",
            "--disable-helm-manifest-max-extracted-size",
            "--allow-oob-symlinks",
        ];
        let variables = [
            ("ARGOCD_GIT_ATTEMPTS_COUNT", "3"),
            ("ARGOCD_GIT_REQUEST_TIMEOUT", "15s"),
        ];
        let said = super::super::tests::said(&REPO_SERVER, &words, &variables);
        let said = said.expect("to be run");
        assert_eq!(said.without_effect(), ["allow-oob-symlinks"]);
    }
}
