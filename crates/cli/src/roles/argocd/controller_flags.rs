//! The command line of `argocd-application-controller`.

use super::flags::{
    CLIENT,
    Here::{self, Always, Config, Flag, Nothing, Param},
    KUBE,
    Kind::{Bool, Duration, Float, Int, List, Seconds, Text},
    LOG_FORMAT, LOG_LEVEL, Program, REDIS, Row, repo_server, row, traces,
};

pub const CONTROLLER: Program = Program {
    name: super::CONTROLLER,
    tables: &[
        ROWS,
        repo_server!("repo-server", "ARGOCD_APPLICATION_CONTROLLER_REPO_SERVER"),
        traces!("ARGOCD_APPLICATION_CONTROLLER_OTLP"),
        &REDIS,
        KUBE,
        CLIENT,
    ],
};

#[rustfmt::skip]
const ROWS: &[Row] = &[
    row("app-resync", "ARGOCD_RECONCILIATION_TIMEOUT", Seconds, "120", Config("timeout.reconciliation")),
    row("app-hard-resync", "ARGOCD_HARD_RECONCILIATION_TIMEOUT", Seconds, "0", Config("timeout.hard.reconciliation")),
    row("app-resync-jitter", "ARGOCD_RECONCILIATION_JITTER", Seconds, "60", Config("timeout.reconciliation.jitter")),
    row("repo-error-grace-period-seconds", "ARGOCD_REPO_ERROR_GRACE_PERIOD_SECONDS", Seconds, "180", Param("controller.repo.error.grace.period.seconds")),
    row("repo-server", "ARGOCD_APPLICATION_CONTROLLER_REPO_SERVER", Text, "argocd-repo-server:8081", Always("repo-server")),
    row("repo-server-timeout-seconds", "ARGOCD_APPLICATION_CONTROLLER_REPO_SERVER_TIMEOUT_SECONDS", Int, "60", Flag("repo-server-timeout-seconds")),
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
    row("enable-k8s-event", "ARGOCD_ENABLE_K8S_EVENT", List, "all", Param("tiphys.events")),
    row("application-namespaces", "ARGOCD_APPLICATION_NAMESPACES", List, "", Flag("application-namespaces")),

    // Which part of the clusters this replica gets.
    row("sharding-method", "ARGOCD_CONTROLLER_SHARDING_ALGORITHM", Text, "legacy", Flag("sharding-method")),
    row("dynamic-cluster-distribution-enabled", "ARGOCD_ENABLE_DYNAMIC_CLUSTER_DISTRIBUTION", Bool, "false", Flag("dynamic-cluster-distribution-enabled")),
    row("", "ARGOCD_CONTROLLER_REPLICAS", Int, "", Flag("replicas")),
    row("", "ARGOCD_CONTROLLER_SHARD", Int, "", Flag("shard")),
    row("", "ARGOCD_CONTROLLER_HEARTBEAT_TIME", Int, "", Flag("heartbeat-time")),
    row("", "ARGOCD_APPLICATION_CONTROLLER_NAME", Text, "", Flag("deployment")),
    row("", "POD_NAME", Text, "", Flag("pod-name")),

    // Redis.
    row("default-cache-expiration", "ARGOCD_DEFAULT_CACHE_EXPIRATION", Duration, "24h0m0s", Nothing),
    row("app-state-cache-expiration", "ARGOCD_APP_STATE_CACHE_EXPIRATION", Duration, "1h0m0s", Flag("app-state-cache-expiration")),

    // The work queue: one reconcile per Application at a time, and back-off for failures.
    row("wq-bucket-size", "WORKQUEUE_BUCKET_SIZE", Int, "500", Nothing),
    row("wq-bucket-qps", "WORKQUEUE_BUCKET_QPS", Float, "1.7976931348623157e+308", Nothing),
    row("wq-cooldown-ns", "WORKQUEUE_FAILURE_COOLDOWN_NS", Duration, "0s", Nothing),
    row("wq-basedelay-ns", "WORKQUEUE_BASE_DELAY_NS", Duration, "1ms", Nothing),
    row("wq-maxdelay-ns", "WORKQUEUE_MAX_DELAY_NS", Duration, "1s", Nothing),
    row("wq-backoff-factor", "WORKQUEUE_BACKOFF_FACTOR", Float, "1.5", Nothing),

    // The cluster cache and its requests.
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
