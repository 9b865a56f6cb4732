//! The command line of `argocd-repo-server`.

use super::flags::{
    Here::{self, Flag, Nothing},
    Kind::{Bool, Duration, Globs, Int, List, Text, WholeSeconds},
    LOG_FORMAT, LOG_LEVEL, Program, REDIS, Row, row, traces,
};

pub const REPO_SERVER: Program = Program {
    name: super::REPO_SERVER,
    tables: &[ROWS, traces!("ARGOCD_REPO_SERVER_OTLP"), &REDIS],
};

#[rustfmt::skip]
const ROWS: &[Row] = &[
    row(LOG_FORMAT, "ARGOCD_REPO_SERVER_LOGFORMAT", Text, "json", Here::Own),
    row(LOG_LEVEL, "ARGOCD_REPO_SERVER_LOGLEVEL", Text, "info", Here::Own),
    row("parallelismlimit", "ARGOCD_REPO_SERVER_PARALLELISM_LIMIT", Int, "0", Flag("parallelismlimit")),
    row("address", "ARGOCD_REPO_SERVER_LISTEN_ADDRESS", Text, "0.0.0.0", Flag("address")),
    row("port", "", Int, "8081", Flag("port")),
    row("metrics-address", "ARGOCD_REPO_SERVER_METRICS_LISTEN_ADDRESS", Text, "0.0.0.0", Flag("metrics-address")),
    row("metrics-port", "", Int, "8084", Flag("metrics-port")),
    row("max-combined-directory-manifests-size", "ARGOCD_REPO_SERVER_MAX_COMBINED_DIRECTORY_MANIFESTS_SIZE", Text, "10M", Flag("max-combined-directory-manifests-size")),
    row("plugin-tar-exclude", "ARGOCD_REPO_SERVER_PLUGIN_TAR_EXCLUSIONS", Globs, "", Flag("plugin-tar-exclude")),
    row("streamed-manifest-max-tar-size", "ARGOCD_REPO_SERVER_STREAMED_MANIFEST_MAX_TAR_SIZE", Text, "100M", Flag("streamed-manifest-max-tar-size")),
    row("streamed-manifest-max-extracted-size", "ARGOCD_REPO_SERVER_STREAMED_MANIFEST_MAX_EXTRACTED_SIZE", Text, "1G", Flag("streamed-manifest-max-extracted-size")),
    row("include-hidden-directories", "ARGOCD_REPO_SERVER_INCLUDE_HIDDEN_DIRECTORIES", Bool, "false", Flag("include-hidden-directories")),
    row("disable-tls", "ARGOCD_REPO_SERVER_DISABLE_TLS", Bool, "false", Flag("disable-tls")),
    row("client-ca-path", "ARGOCD_REPO_SERVER_CLIENT_CA_PATH", Text, "/app/config/reposerver/mtls/client-ca.crt", Flag("client-ca-path")),
    row("tlsminversion", "ARGOCD_TLS_MIN_VERSION", Text, "1.2", Flag("tlsminversion")),
    row("tlsmaxversion", "ARGOCD_TLS_MAX_VERSION", Text, "1.3", Flag("tlsmaxversion")),
    row("tlsciphers", "ARGOCD_TLS_CIPHERS", Text, "", Flag("tlsciphers")),
    row("revision-cache-expiration", "ARGOCD_RECONCILIATION_TIMEOUT", Duration, "3m0s", Flag("revision-cache-expiration")),
    row("", "ARGOCD_APP_CONF_PATH", Text, "/app/config", Flag("config-dir")),
    row("", "ARGOCD_SSH_DATA_PATH", Text, "/app/config/ssh", Flag("ssh-dir")),
    row("", "ARGOCD_TLS_DATA_PATH", Text, "/app/config/tls", Flag("tls-dir")),
    row("", "ARGOCD_GPG_DATA_PATH", Text, "/app/config/gpg/source", Flag("gpg-dir")),
    row("", "ARGOCD_GPG_ENABLED", Bool, "true", Flag("git-signatures")),
    row("", "ARGOCD_GIT_MODULES_ENABLED", Bool, "true", Flag("git-submodules")),
    row("", "ARGOCD_EXEC_TIMEOUT", WholeSeconds, "1m30s", Flag("git-timeout-seconds")),
    row("", "ARGOCD_GRPC_MAX_SIZE_MB", Int, "100", Flag("max-message-mb")),
    row("", "ARGOCD_ENABLE_GRPC_TIME_HISTOGRAM", Bool, "false", Flag("grpc-time-histogram")),
    row("oci-layer-media-types", "ARGOCD_REPO_SERVER_OCI_LAYER_MEDIA_TYPES", List, "application/vnd.oci.image.layer.v1.tar,application/vnd.oci.image.layer.v1.tar+gzip,application/vnd.cncf.helm.chart.content.v1.tar+gzip", Flag("oci-layer-media-types")),
    row("oci-manifest-max-extracted-size", "ARGOCD_REPO_SERVER_OCI_MANIFEST_MAX_EXTRACTED_SIZE", Text, "1G", Flag("oci-manifest-max-extracted-size")),
    row("disable-oci-manifest-max-extracted-size", "ARGOCD_REPO_SERVER_DISABLE_OCI_MANIFEST_MAX_EXTRACTED_SIZE", Bool, "false", Flag("disable-oci-manifest-max-extracted-size")),
    row("helm-manifest-max-extracted-size", "ARGOCD_REPO_SERVER_HELM_MANIFEST_MAX_EXTRACTED_SIZE", Text, "1G", Flag("helm-manifest-max-extracted-size")),
    row("disable-helm-manifest-max-extracted-size", "ARGOCD_REPO_SERVER_DISABLE_HELM_MANIFEST_MAX_EXTRACTED_SIZE", Bool, "false", Flag("disable-helm-manifest-max-extracted-size")),
    row("helm-registry-max-index-size", "ARGOCD_REPO_SERVER_HELM_MANIFEST_MAX_INDEX_SIZE", Text, "1G", Flag("helm-registry-max-index-size")),
    row("", "ARGOCD_GIT_REQUEST_TIMEOUT", Duration, "15s", Flag("git-request-timeout")),
    row("", "ARGOCD_GIT_LS_REMOTE_PARALLELISM_LIMIT", Int, "0", Flag("git-lsremote-parallelism-limit")),
    row("", "ARGOCD_GIT_ATTEMPTS_COUNT", Int, "1", Flag("git-attempts-count")),
    row("", "ARGOCD_GIT_RETRY_DURATION", Duration, "250ms", Flag("git-retry-duration")),
    row("", "ARGOCD_GIT_RETRY_FACTOR", Int, "2", Flag("git-retry-factor")),
    row("", "ARGOCD_GIT_RETRY_MAX_DURATION", Duration, "5s", Flag("git-retry-max-duration")),
    row("", "ARGOCD_PLUGINSOCKFILEPATH", Text, "", Flag("plugins-dir")),
    row("", "ARGOCD_ASK_PASS_SOCK", Text, "", Flag("ask-pass-socket")),

    // Links never lead out of a repository, and only what is read matters.
    row("allow-oob-symlinks", "ARGOCD_REPO_SERVER_ALLOW_OUT_OF_BOUNDS_SYMLINKS", Bool, "false", Nothing),
    // No git, helm or kustomize is started.
    row("enable-builtin-git-config", "ARGOCD_REPO_SERVER_ENABLE_BUILTIN_GIT_CONFIG", Bool, "true", Nothing),
    row("", "ARGOCD_HELM_USER_AGENT", Text, "", Nothing),
    row("", "ARGOCD_EXEC_FATAL_TIMEOUT", Duration, "", Nothing),
    row("plugin-use-manifest-generate-paths", "ARGOCD_REPO_SERVER_PLUGIN_USE_MANIFEST_GENERATE_PATHS", Bool, "false", Nothing),
    row("", "ARGOCD_LOG_FORMAT_TIMESTAMP", Text, "", Nothing),
    row("", "GRPC_ENABLE_TXT_SERVICE_CONFIG", Bool, "", Nothing),

    // Failures are not remembered.
    row("", "ARGOCD_PAUSE_GEN_AFTER_FAILED_ATTEMPTS", Int, "3", Nothing),
    row("", "ARGOCD_PAUSE_GEN_MINUTES", Int, "60", Nothing),
    row("", "ARGOCD_PAUSE_GEN_REQUESTS", Int, "0", Nothing),
    row("repo-cache-expiration", "ARGOCD_REPO_CACHE_EXPIRATION", Duration, "24h0m0s", Flag("repo-cache-expiration")),
    row("revision-cache-lock-timeout", "ARGOCD_REVISION_CACHE_LOCK_TIMEOUT", Duration, "10s", Nothing),
    row("default-cache-expiration", "ARGOCD_DEFAULT_CACHE_EXPIRATION", Duration, "24h0m0s", Nothing),
];
