//! The command line of `argocd-server`.

use super::flags::{
    CLIENT,
    Here::{self, Always, Flag, Nothing, Param},
    KUBE,
    Kind::{Bool, Duration, Each, Int, List, Text},
    LOG_FORMAT, LOG_LEVEL, Program, REDIS, Row, repo_server, row, traces,
};

pub const SERVER: Program = Program {
    name: super::SERVER,
    tables: &[
        ROWS,
        repo_server!("repo-server", "ARGOCD_SERVER_REPO_SERVER"),
        traces!("ARGOCD_SERVER_OTLP"),
        &REDIS,
        OTHER_CACHE,
        CATALOG,
        KUBE,
        CLIENT,
    ],
};

#[rustfmt::skip]
const ROWS: &[Row] = &[
    row(LOG_FORMAT, "ARGOCD_SERVER_LOGFORMAT", Text, "json", Here::Own),
    row(LOG_LEVEL, "ARGOCD_SERVER_LOG_LEVEL", Text, "info", Here::Own),
    row("gloglevel", "", Int, "0", Nothing),
    row("address", "ARGOCD_SERVER_LISTEN_ADDRESS", Text, "0.0.0.0", Flag("address")),
    row("port", "", Int, "8080", Flag("port")),
    row("metrics-address", "ARGOCD_SERVER_METRICS_LISTEN_ADDRESS", Text, "0.0.0.0", Flag("metrics-address")),
    row("metrics-port", "", Int, "8083", Flag("metrics-port")),
    row("insecure", "ARGOCD_SERVER_INSECURE", Bool, "false", Flag("insecure")),
    row("tlsminversion", "ARGOCD_TLS_MIN_VERSION", Text, "1.2", Flag("tlsminversion")),
    row("tlsmaxversion", "ARGOCD_TLS_MAX_VERSION", Text, "1.3", Flag("tlsmaxversion")),
    row("tlsciphers", "ARGOCD_TLS_CIPHERS", Text, "", Flag("tlsciphers")),
    row("rootpath", "ARGOCD_SERVER_ROOTPATH", Text, "", Flag("rootpath")),
    row("disable-auth", "ARGOCD_SERVER_DISABLE_AUTH", Bool, "false", Flag("disable-auth")),
    row("x-frame-options", "ARGOCD_SERVER_X_FRAME_OPTIONS", Text, "sameorigin", Here::Empty("x-frame-options")),
    row("content-security-policy", "ARGOCD_SERVER_CONTENT_SECURITY_POLICY", Text, "frame-ancestors 'self';", Here::Empty("content-security-policy")),
    row("api-content-types", "ARGOCD_API_CONTENT_TYPES", Text, "application/json", Here::Empty("api-content-types")),
    row("enable-gzip", "ARGOCD_SERVER_ENABLE_GZIP", Bool, "true", Flag("enable-gzip")),
    row("application-namespaces", "ARGOCD_APPLICATION_NAMESPACES", List, "", Flag("application-namespaces")),
    row("hydrator-enabled", "ARGOCD_HYDRATOR_ENABLED", Bool, "false", Flag("hydrator-enabled")),
    row("sync-with-replace-allowed", "ARGOCD_SYNC_WITH_REPLACE_ALLOWED", Bool, "true", Param("server.sync.replace.allowed")),
    row("enable-proxy-extension", "ARGOCD_SERVER_ENABLE_PROXY_EXTENSION", Bool, "false", Flag("enable-proxy-extension")),
    row("", "ARGOCD_SESSION_FAILURE_MAX_FAIL_COUNT", Int, "5", Flag("max-login-failures")),
    row("", "ARGOCD_SESSION_FAILURE_WINDOW_SECONDS", Int, "300", Flag("login-failure-window")),
    row("", "ARGOCD_ENABLE_GRPC_TIME_HISTOGRAM", Bool, "false", Flag("grpc-time-histogram")),

    // Sign-in by Dex.
    row("dex-server", "ARGOCD_SERVER_DEX_SERVER", Text, "argocd-dex-server:5556", Always("dex-server")),
    row("dex-server-plaintext", "ARGOCD_SERVER_DEX_SERVER_PLAINTEXT", Bool, "false", Flag("dex-server-plaintext")),
    row("dex-server-strict-tls", "ARGOCD_SERVER_DEX_SERVER_STRICT_TLS", Bool, "false", Flag("dex-server-strict-tls")),
    row("", "ARGOCD_APP_CONF_PATH", Text, "/app/config", Flag("config-dir")),

    // The rest of the connection to the repo-server.
    row("repo-server", "ARGOCD_SERVER_REPO_SERVER", Text, "argocd-repo-server:8081", Always("repo-server")),
    row("repo-server-timeout-seconds", "ARGOCD_SERVER_REPO_SERVER_TIMEOUT_SECONDS", Int, "60", Flag("repo-server-timeout-seconds")),

    // What sets may ask, when Applications are generated on request.
    row("appset-allowed-scm-providers", "ARGOCD_APPLICATIONSET_CONTROLLER_ALLOWED_SCM_PROVIDERS", List, "", Param("applicationsetcontroller.allowed.scm.providers")),
    row("appset-enable-scm-providers", "ARGOCD_APPLICATIONSET_CONTROLLER_ENABLE_SCM_PROVIDERS", Bool, "true", Param("applicationsetcontroller.enable.scm.providers")),
    row("appset-scm-root-ca-path", "ARGOCD_APPLICATIONSET_CONTROLLER_SCM_ROOT_CA_PATH", Text, "", Param("applicationsetcontroller.scm.root.ca.path")),
    row("appset-enable-new-git-file-globbing", "ARGOCD_APPLICATIONSET_CONTROLLER_ENABLE_NEW_GIT_FILE_GLOBBING", Bool, "false", Param("applicationsetcontroller.enable.new.git.file.globbing")),
    row("appset-enable-github-api-metrics", "ARGOCD_APPLICATIONSET_CONTROLLER_ENABLE_GITHUB_API_METRICS", Bool, "false", Nothing),

    // The page is in the program, and what is added to it there.
    row("staticassets", "ARGOCD_SERVER_STATIC_ASSETS", Text, "/shared/app", Always("static-files")),
    row("basehref", "ARGOCD_SERVER_BASEHREF", Text, "/", Flag("base-href")),
    row("disable-swagger-ui", "ARGOCD_SERVER_DISABLE_SWAGGER_UI", Bool, "false", Flag("disable-swagger-ui")),

    row("webhook-parallelism-limit", "ARGOCD_SERVER_WEBHOOK_PARALLELISM_LIMIT", Int, "50", Nothing),
    row("webhook-refresh-workers", "ARGOCD_SERVER_WEBHOOK_REFRESH_WORKERS", Int, "20", Nothing),
    row("glob-cache-size", "ARGOCD_SERVER_GLOB_CACHE_SIZE", Int, "10000", Nothing),
    row("enable-k8s-event", "ARGOCD_ENABLE_K8S_EVENT", List, "all", Param("tiphys.events")),
    row("connection-status-cache-expiration", "ARGOCD_SERVER_CONNECTION_STATUS_CACHE_EXPIRATION", Duration, "1h0m0s", Nothing),
    row("oidc-cache-expiration", "ARGOCD_SERVER_OIDC_CACHE_EXPIRATION", Duration, "3m0s", Nothing),
    row("login-attempts-expiration", "ARGOCD_SERVER_LOGIN_ATTEMPTS_EXPIRATION", Duration, "24h0m0s", Nothing),
    row("app-state-cache-expiration", "ARGOCD_APP_STATE_CACHE_EXPIRATION", Duration, "1h0m0s", Nothing),
    row("default-cache-expiration", "ARGOCD_DEFAULT_CACHE_EXPIRATION", Duration, "24h0m0s", Nothing),
    row("", "ARGOCD_SESSION_MAX_CACHE_SIZE", Int, "", Nothing),
    row("", "ARGOCD_MAX_CONCURRENT_LOGIN_REQUESTS_COUNT", Int, "", Nothing),
    row("", "ARGOCD_MAX_COOKIE_NUMBER", Int, "", Nothing),
    row("", "ARGOCD_API_SERVER_REPLICAS", Int, "", Nothing),
    row("", "ARGOCD_GRPC_KEEP_ALIVE_MIN", Duration, "", Nothing),
    row("", "ARGOCD_GRPC_MAX_SIZE_MB", Int, "", Nothing),
    row("", "ARGOCD_WEBHOOK_MANIFEST_CACHE_WARM_DISABLED", Bool, "", Nothing),
    row("", "ARGOCD_LOG_FORMAT_TIMESTAMP", Text, "", Nothing),
    row("", "GRPC_ENABLE_TXT_SERVICE_CONFIG", Bool, "", Nothing),
];

/// The chart catalogue, which Argo CD does not have: a manifest of its server gets one with these.
#[rustfmt::skip]
const CATALOG: &[Row] = &[
    row("catalog-database-url", "TIPHYS_CATALOG_DATABASE_URL", Text, "", Flag("catalog-database-url")),
    row("catalog-database-user", "", Text, "postgres", Flag("catalog-database-user")),
    row("catalog-database-name", "", Text, "charts", Flag("catalog-database-name")),
    row("catalog-file", "TIPHYS_CATALOG_FILE", Text, "", Flag("catalog-file")),
];

/// The repo-server's cache, which this server does not read: it asks the repo-server.
#[rustfmt::skip]
const OTHER_CACHE: &[Row] = &[
    row("repo-cache-expiration", "ARGOCD_REPO_CACHE_EXPIRATION", Duration, "24h0m0s", Nothing),
    row("revision-cache-expiration", "ARGOCD_RECONCILIATION_TIMEOUT", Duration, "3m0s", Nothing),
    row("revision-cache-lock-timeout", "ARGOCD_REVISION_CACHE_LOCK_TIMEOUT", Duration, "10s", Nothing),
    row("repo-server-default-cache-expiration", "", Duration, "24h0m0s", Nothing),
    row("repo-server-redis", "REPO_SERVER_REDIS_SERVER", Text, "", Nothing),
    row("repo-server-redisdb", "REPO_SERVER_REDISDB", Int, "0", Nothing),
    row("repo-server-sentinel", "REPO_SERVER_REDIS_SENTINEL_HOSTS", Each, "", Nothing),
    row("repo-server-sentinelmaster", "REPO_SERVER_REDIS_SENTINEL_MASTER", Text, "master", Nothing),
    row("repo-server-redis-use-tls", "", Bool, "false", Nothing),
    row("repo-server-redis-client-certificate", "", Text, "", Nothing),
    row("repo-server-redis-client-key", "", Text, "", Nothing),
    row("repo-server-redis-insecure-skip-tls-verify", "", Bool, "false", Nothing),
    row("repo-server-redis-ca-certificate", "", Text, "", Nothing),
    row("repo-server-redis-compress", "REPO_SERVER_REDIS_COMPRESSION", Text, "gzip", Nothing),
];
