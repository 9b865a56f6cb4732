//! The command lines of Argo CD 3.6's roles as tables: each flag with its variable, its default, and
//! its effect here. This file has what tables are made of, and that of
//! `argocd-application-controller`.

use Here::{Always, Config, Flag, Kube, NotThere, Nothing, Param};
use Kind::{Bool, Duration, Each, Float, Int, List, Pairs, Seconds, Text};

/// A role with its command line.
#[derive(Debug, PartialEq, Eq)]
pub struct Program {
    pub name: &'static str,
    pub rows: &'static [Row],
}

/// A flag, a variable, or both.
#[derive(Debug, PartialEq, Eq)]
pub struct Row {
    /// Empty: there is only a variable.
    pub flag: &'static str,
    /// Empty: there is only a flag.
    pub variable: &'static str,
    pub kind: Kind,
    /// Upstream Argo CD's default.
    pub default: &'static str,
    pub here: Here,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Bool,
    Int,
    Float,
    Text,
    Duration,
    /// A number as a flag, a duration as a variable.
    Seconds,
    /// Comma-separated texts; a repeated flag adds to them.
    List,
    /// The same, but commas in the flag are part of the value.
    Each,
    /// As `List`, of `name=value`.
    Pairs,
    /// The same as `Each`, with semicolons.
    Globs,
    /// A duration, for a flag of ours that takes seconds.
    WholeSeconds,
}

/// The effect here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Here {
    /// A flag of ours.
    Flag(&'static str),
    /// The same; upstream's default is passed if it is not set, because ours differs.
    Always(&'static str),
    /// One of kubectl's flags for selecting a cluster, under its own name.
    Kube,
    /// Overrides this key of argocd-cm.
    Config(&'static str),
    /// Overrides this key of argocd-cmd-params-cm.
    Param(&'static str),
    /// Read by the role itself.
    Own,
    /// Not applicable here.
    Nothing,
    /// Not implemented, and refused.
    NotThere,
}

pub(super) const fn row(
    flag: &'static str,
    variable: &'static str,
    kind: Kind,
    default: &'static str,
    here: Here,
) -> Row {
    Row {
        flag,
        variable,
        kind,
        default,
        here,
    }
}

/// Read by the role itself.
pub const LOG_FORMAT: &str = "logformat";
pub const LOG_LEVEL: &str = "loglevel";
/// The only flag with a short form.
pub const NAMESPACE: &str = "namespace";

pub const CONTROLLER: Program = Program {
    name: super::CONTROLLER,
    rows: ROWS,
};

#[rustfmt::skip]
const ROWS: &[Row] = &[
    row("app-resync", "ARGOCD_RECONCILIATION_TIMEOUT", Seconds, "120", Config("timeout.reconciliation")),
    row("app-hard-resync", "ARGOCD_HARD_RECONCILIATION_TIMEOUT", Seconds, "0", Config("timeout.hard.reconciliation")),
    row("app-resync-jitter", "ARGOCD_RECONCILIATION_JITTER", Seconds, "60", Config("timeout.reconciliation.jitter")),
    row("repo-error-grace-period-seconds", "ARGOCD_REPO_ERROR_GRACE_PERIOD_SECONDS", Seconds, "180", Param("controller.repo.error.grace.period.seconds")),
    row("repo-server", "ARGOCD_APPLICATION_CONTROLLER_REPO_SERVER", Text, "argocd-repo-server:8081", Always("repo-server")),
    row("repo-server-timeout-seconds", "ARGOCD_APPLICATION_CONTROLLER_REPO_SERVER_TIMEOUT_SECONDS", Int, "60", Flag("repo-server-timeout-seconds")),
    row("repo-server-plaintext", "ARGOCD_APPLICATION_CONTROLLER_REPO_SERVER_PLAINTEXT", Bool, "false", Flag("repo-server-plaintext")),
    row("repo-server-strict-tls", "ARGOCD_APPLICATION_CONTROLLER_REPO_SERVER_STRICT_TLS", Bool, "false", Flag("repo-server-strict-tls")),
    row("repo-server-ca-cert-path", "ARGOCD_APPLICATION_CONTROLLER_REPO_SERVER_CA_CERT_PATH", Text, "", Flag("repo-server-ca-cert-path")),
    row("repo-server-client-cert-path", "ARGOCD_APPLICATION_CONTROLLER_REPO_SERVER_CLIENT_CERT_PATH", Text, "/app/config/reposerver/mtls/client.crt", Flag("repo-server-client-cert-path")),
    row("repo-server-client-cert-key-path", "ARGOCD_APPLICATION_CONTROLLER_REPO_SERVER_CLIENT_CERT_KEY_PATH", Text, "/app/config/reposerver/mtls/client.key", Flag("repo-server-client-cert-key-path")),
    row("commit-server", "ARGOCD_APPLICATION_CONTROLLER_COMMIT_SERVER", Text, "argocd-commit-server:8086", Always("commit-server")),
    row("hydrator-enabled", "ARGOCD_HYDRATOR_ENABLED", Bool, "false", Flag("hydrator-enabled")),
    row("hydration-processors", "ARGOCD_APPLICATION_CONTROLLER_HYDRATION_PROCESSORS", Int, "5", Flag("hydration-processors")),
    row("status-processors", "ARGOCD_APPLICATION_CONTROLLER_STATUS_PROCESSORS", Int, "20", Flag("status-processors")),
    row("operation-processors", "ARGOCD_APPLICATION_CONTROLLER_OPERATION_PROCESSORS", Int, "10", Nothing),
    row("kubectl-parallelism-limit", "ARGOCD_APPLICATION_CONTROLLER_KUBECTL_PARALLELISM_LIMIT", Int, "20", Nothing),
    row(LOG_FORMAT, "ARGOCD_APPLICATION_CONTROLLER_LOGFORMAT", Text, "json", Here::Own),
    row(LOG_LEVEL, "ARGOCD_APPLICATION_CONTROLLER_LOGLEVEL", Text, "info", Here::Own),
    row("gloglevel", "", Int, "0", Nothing),
    row("metrics-port", "", Int, "8082", Flag("metrics-port")),
    row("metrics-cache-expiration", "ARGOCD_APPLICATION_CONTROLLER_METRICS_CACHE_EXPIRATION", Duration, "0s", Nothing),
    row("metrics-application-labels", "ARGOCD_APPLICATION_CONTROLLER_METRICS_APPLICATION_LABELS", List, "", Flag("metrics-application-labels")),
    row("metrics-application-conditions", "ARGOCD_APPLICATION_CONTROLLER_METRICS_APPLICATION_CONDITIONS", List, "", Flag("metrics-application-conditions")),
    row("metrics-cluster-labels", "ARGOCD_APPLICATION_CONTROLLER_METRICS_CLUSTER_LABELS", List, "", Flag("metrics-cluster-labels")),
    row("self-heal-timeout-seconds", "ARGOCD_APPLICATION_CONTROLLER_SELF_HEAL_TIMEOUT_SECONDS", Int, "0", Param("controller.self.heal.timeout.seconds")),
    row("self-heal-backoff-timeout-seconds", "ARGOCD_APPLICATION_CONTROLLER_SELF_HEAL_BACKOFF_TIMEOUT_SECONDS", Int, "2", Param("controller.self.heal.backoff.timeout.seconds")),
    row("self-heal-backoff-factor", "ARGOCD_APPLICATION_CONTROLLER_SELF_HEAL_BACKOFF_FACTOR", Int, "3", Param("controller.self.heal.backoff.factor")),
    row("self-heal-backoff-cap-seconds", "ARGOCD_APPLICATION_CONTROLLER_SELF_HEAL_BACKOFF_CAP_SECONDS", Int, "300", Param("controller.self.heal.backoff.cap.seconds")),
    row("self-heal-backoff-cooldown-seconds", "ARGOCD_APPLICATION_CONTROLLER_SELF_HEAL_BACKOFF_COOLDOWN_SECONDS", Int, "330", Nothing),
    row("sync-timeout", "ARGOCD_APPLICATION_CONTROLLER_SYNC_TIMEOUT", Int, "0", Param("controller.sync.timeout.seconds")),
    row("", "ARGOCD_SYNC_WAVE_DELAY", Int, "", Param("controller.sync.wave.delay.seconds")),
    row("persist-resource-health", "ARGOCD_APPLICATION_CONTROLLER_PERSIST_RESOURCE_HEALTH", Bool, "false", Param("controller.resource.health.persist")),
    row("server-side-diff-enabled", "ARGOCD_APPLICATION_CONTROLLER_SERVER_SIDE_DIFF", Bool, "false", Param("controller.diff.server.side")),
    row("ignore-normalizer-jq-execution-timeout-seconds", "ARGOCD_IGNORE_NORMALIZER_JQ_TIMEOUT", Duration, "0s", Nothing),
    row("enable-k8s-event", "ARGOCD_ENABLE_K8S_EVENT", List, "all", Nothing),
    row("application-namespaces", "ARGOCD_APPLICATION_NAMESPACES", List, "", Flag("application-namespaces")),
    row("otlp-address", "ARGOCD_APPLICATION_CONTROLLER_OTLP_ADDRESS", Text, "", Flag("otlp-address")),
    row("otlp-insecure", "ARGOCD_APPLICATION_CONTROLLER_OTLP_INSECURE", Bool, "true", Flag("otlp-insecure")),
    row("otlp-headers", "ARGOCD_APPLICATION_CONTROLLER_OTLP_HEADERS", Pairs, "", Flag("otlp-headers")),
    row("otlp-attrs", "ARGOCD_APPLICATION_CONTROLLER_OTLP_ATTRS", List, "", Flag("otlp-attrs")),
    row("otlp-sample-ratio", "ARGOCD_APPLICATION_CONTROLLER_OTLP_SAMPLE_RATIO", Float, "1", Flag("otlp-sample-ratio")),

    // Which part of the clusters this replica gets.
    row("sharding-method", "ARGOCD_CONTROLLER_SHARDING_ALGORITHM", Text, "legacy", Flag("sharding-method")),
    row("dynamic-cluster-distribution-enabled", "ARGOCD_ENABLE_DYNAMIC_CLUSTER_DISTRIBUTION", Bool, "false", Flag("dynamic-cluster-distribution-enabled")),
    row("", "ARGOCD_CONTROLLER_REPLICAS", Int, "", Flag("replicas")),
    row("", "ARGOCD_CONTROLLER_SHARD", Int, "", Flag("shard")),
    row("", "ARGOCD_CONTROLLER_HEARTBEAT_TIME", Int, "", Flag("heartbeat-time")),
    row("", "ARGOCD_APPLICATION_CONTROLLER_NAME", Text, "", Flag("deployment")),
    row("", "POD_NAME", Text, "", Flag("pod-name")),

    // Redis.
    row("redis", "REDIS_SERVER", Text, "argocd-redis:6379", Always("redis")),
    row("redisdb", "REDISDB", Int, "0", Flag("redisdb")),
    row("sentinel", "REDIS_SENTINEL_HOSTS", Each, "", Flag("sentinel")),
    row("sentinelmaster", "REDIS_SENTINEL_MASTER", Text, "master", Flag("sentinelmaster")),
    row("", "REDIS_SENTINEL_USERNAME", Text, "", Flag("sentinel-username")),
    row("", "REDIS_SENTINEL_PASSWORD", Text, "", Flag("sentinel-password")),
    row("redis-use-tls", "", Bool, "false", Flag("redis-use-tls")),
    row("redis-client-certificate", "", Text, "", Flag("redis-client-certificate")),
    row("redis-client-key", "", Text, "", Flag("redis-client-key")),
    row("redis-insecure-skip-tls-verify", "", Bool, "false", Flag("redis-insecure-skip-tls-verify")),
    row("redis-ca-certificate", "", Text, "", Flag("redis-ca-certificate")),
    row("redis-compress", "REDIS_COMPRESSION", Text, "gzip", Flag("redis-compress")),
    row("", "REDIS_USERNAME", Text, "", Flag("redis-username")),
    row("", "REDIS_PASSWORD", Text, "", Flag("redis-password")),
    row("", "REDIS_CREDS_DIR_PATH", Text, "", Flag("redis-credentials")),
    row("", "REDIS_RETRY_COUNT", Int, "", Nothing),
    row("", "ARGOCD_REDIS_KEY_PREFIX", Text, "", Flag("redis-key-prefix")),
    row("default-cache-expiration", "ARGOCD_DEFAULT_CACHE_EXPIRATION", Duration, "24h0m0s", Nothing),
    row("app-state-cache-expiration", "ARGOCD_APP_STATE_CACHE_EXPIRATION", Duration, "1h0m0s", Flag("app-state-cache-expiration")),

    // The work queue: one reconcile per Application at a time, and back-off for failures.
    row("wq-bucket-size", "WORKQUEUE_BUCKET_SIZE", Int, "500", Nothing),
    row("wq-bucket-qps", "WORKQUEUE_BUCKET_QPS", Float, "1.7976931348623157e+308", Nothing),
    row("wq-cooldown-ns", "WORKQUEUE_FAILURE_COOLDOWN_NS", Duration, "0s", Nothing),
    row("wq-basedelay-ns", "WORKQUEUE_BASE_DELAY_NS", Duration, "1ms", Nothing),
    row("wq-maxdelay-ns", "WORKQUEUE_MAX_DELAY_NS", Duration, "1s", Nothing),
    row("wq-backoff-factor", "WORKQUEUE_BACKOFF_FACTOR", Float, "1.5", Nothing),

    // The cluster to use.
    row("kubeconfig", "", Text, "", Kube),
    row("context", "", Text, "", Kube),
    row("cluster", "", Text, "", Kube),
    row("user", "", Text, "", Kube),
    row(NAMESPACE, "", Text, "", Kube),
    row("server", "", Text, "", Kube),
    row("tls-server-name", "", Text, "", Kube),
    row("certificate-authority", "", Text, "", Kube),
    row("insecure-skip-tls-verify", "", Bool, "false", Kube),
    row("client-certificate", "", Text, "", Kube),
    row("client-key", "", Text, "", Kube),
    row("token", "", Text, "", Kube),
    row("as", "", Text, "", Kube),
    row("as-group", "", Each, "", Kube),
    row("as-uid", "", Text, "", NotThere),
    row("as-user-extra", "", Each, "", NotThere),
    row("username", "", Text, "", NotThere),
    row("password", "", Text, "", NotThere),
    row("proxy-url", "", Text, "", NotThere),
    row("request-timeout", "", Text, "0", Nothing),
    row("disable-compression", "", Bool, "false", Nothing),

    // The cluster cache and its requests.
    row("", "ARGOCD_K8S_CLIENT_QPS", Float, "", Nothing),
    row("", "ARGOCD_K8S_CLIENT_BURST", Int, "", Nothing),
    row("", "ARGOCD_K8S_CLIENT_MAX_IDLE_CONNECTIONS", Int, "", Nothing),
    row("", "ARGOCD_K8S_TCP_TIMEOUT", Duration, "", Nothing),
    row("", "ARGOCD_K8S_TCP_KEEPALIVE", Duration, "", Nothing),
    row("", "ARGOCD_K8S_TCP_IDLE_TIMEOUT", Duration, "", Nothing),
    row("", "ARGOCD_K8S_TLS_HANDSHAKE_TIMEOUT", Duration, "", Nothing),
    row("", "ARGOCD_K8SCLIENT_RETRY_MAX", Int, "", Nothing),
    row("", "ARGOCD_K8SCLIENT_RETRY_BASE_BACKOFF", Int, "", Nothing),
    row("", "ARGOCD_CLUSTER_CACHE_RESYNC_DURATION", Duration, "", Nothing),
    row("", "ARGOCD_CLUSTER_CACHE_WATCH_RESYNC_DURATION", Duration, "", Nothing),
    row("", "ARGOCD_CLUSTER_SYNC_RETRY_TIMEOUT_DURATION", Duration, "", Nothing),
    row("", "ARGOCD_CLUSTER_CACHE_LIST_PAGE_SIZE", Int, "", Nothing),
    row("", "ARGOCD_CLUSTER_CACHE_LIST_PAGE_BUFFER_SIZE", Int, "", Nothing),
    row("", "ARGOCD_CLUSTER_CACHE_LIST_SEMAPHORE", Int, "", Nothing),
    row("", "ARGOCD_CLUSTER_CACHE_ATTEMPT_LIMIT", Int, "", Nothing),
    row("", "ARGOCD_CLUSTER_CACHE_RETRY_USE_BACKOFF", Bool, "", Nothing),
    row("", "ARGOCD_CLUSTER_CACHE_BATCH_EVENTS_PROCESSING", Bool, "", Nothing),
    row("", "ARGOCD_CLUSTER_CACHE_EVENTS_PROCESSING_INTERVAL", Duration, "", Nothing),
    row("", "ARGO_CD_UPDATE_CLUSTER_INFO_TIMEOUT", Duration, "", Nothing),
    row("", "ARGOCD_APPLICATION_TREE_SHARD_SIZE", Int, "", Nothing),
    row("", "ARGOCD_LOG_FORMAT_TIMESTAMP", Text, "", Nothing),
    row("", "GRPC_ENABLE_TXT_SERVICE_CONFIG", Bool, "", Nothing),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_name_is_there_once() {
        let programs = [
            CONTROLLER.rows,
            super::super::repo_server_flags::REPO_SERVER.rows,
            super::super::notifications_flags::NOTIFICATIONS.rows,
        ];
        for names in programs.iter().flat_map(|rows| {
            [
                rows.iter().map(|r| r.flag).collect::<Vec<_>>(),
                rows.iter().map(|r| r.variable).collect(),
            ]
        }) {
            let named: Vec<&str> = names.into_iter().filter(|name| !name.is_empty()).collect();
            assert_eq!(named.iter().collect::<BTreeSet<_>>().len(), named.len());
        }
    }
}
