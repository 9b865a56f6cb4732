//! The command line of `argocd-applicationset-controller`.

use super::flags::{
    Here::{self, Always, Flag, Nothing, Param},
    KUBE,
    Kind::{Bool, Duration, Int, List, Text},
    LOG_FORMAT, LOG_LEVEL, Program, Row, repo_server, row,
};

pub const APPLICATION_SETS: Program = Program {
    name: super::APPLICATION_SETS,
    tables: &[
        ROWS,
        repo_server!(
            "repo-server",
            "ARGOCD_APPLICATIONSET_CONTROLLER_REPO_SERVER"
        ),
        KUBE,
    ],
};

#[rustfmt::skip]
const ROWS: &[Row] = &[
    row(LOG_FORMAT, "ARGOCD_APPLICATIONSET_CONTROLLER_LOGFORMAT", Text, "json", Here::Own),
    row(LOG_LEVEL, "ARGOCD_APPLICATIONSET_CONTROLLER_LOGLEVEL", Text, "info", Here::Own),
    row("debug", "ARGOCD_APPLICATIONSET_CONTROLLER_DEBUG", Bool, "false", Nothing),
    row("metrics-addr", "", Text, ":8080", Always("metrics-addr")),
    row("probe-addr", "", Text, ":8081", Always("probe-addr")),
    row("webhook-addr", "", Text, ":7000", Always("webhook-addr")),
    row("enable-leader-election", "ARGOCD_APPLICATIONSET_CONTROLLER_ENABLE_LEADER_ELECTION", Bool, "false", Flag("enable-leader-election")),
    row("concurrent-reconciliations", "ARGOCD_APPLICATIONSET_CONTROLLER_CONCURRENT_RECONCILIATIONS", Int, "10", Flag("concurrent-reconciliations")),
    row("concurrent-application-updates", "ARGOCD_APPLICATIONSET_CONTROLLER_CONCURRENT_APPLICATION_UPDATES", Int, "1", Flag("concurrent-application-updates")),
    row("webhook-parallelism-limit", "ARGOCD_APPLICATIONSET_CONTROLLER_WEBHOOK_PARALLELISM_LIMIT", Int, "50", Nothing),
    row("metrics-applicationset-labels", "", List, "", Flag("metrics-applicationset-labels")),
    row("enable-github-api-metrics", "ARGOCD_APPLICATIONSET_CONTROLLER_ENABLE_GITHUB_API_METRICS", Bool, "false", Nothing),
    row("cache-sync-period", "ARGOCD_APPLICATIONSET_CONTROLLER_CACHE_SYNC_PERIOD", Duration, "10h", Nothing),
    row("dry-run", "ARGOCD_APPLICATIONSET_CONTROLLER_DRY_RUN", Bool, "false", Flag("dry-run")),

    // What sets do.
    row("applicationset-namespaces", "ARGOCD_APPLICATIONSET_CONTROLLER_NAMESPACES", List, "", Param("applicationsetcontroller.namespaces")),
    row("policy", "ARGOCD_APPLICATIONSET_CONTROLLER_POLICY", Text, "", Param("applicationsetcontroller.policy")),
    row("enable-policy-override", "ARGOCD_APPLICATIONSET_CONTROLLER_ENABLE_POLICY_OVERRIDE", Bool, "true", Param("applicationsetcontroller.enable.policy.override")),
    row("enable-progressive-syncs", "ARGOCD_APPLICATIONSET_CONTROLLER_ENABLE_PROGRESSIVE_SYNCS", Bool, "false", Param("applicationsetcontroller.enable.progressive.syncs")),
    row("enable-new-git-file-globbing", "ARGOCD_APPLICATIONSET_CONTROLLER_ENABLE_NEW_GIT_FILE_GLOBBING", Bool, "false", Param("applicationsetcontroller.enable.new.git.file.globbing")),
    row("preserved-annotations", "ARGOCD_APPLICATIONSET_CONTROLLER_GLOBAL_PRESERVED_ANNOTATIONS", List, "", Param("applicationsetcontroller.global.preserved.annotations")),
    row("preserved-labels", "ARGOCD_APPLICATIONSET_CONTROLLER_GLOBAL_PRESERVED_LABELS", List, "", Param("applicationsetcontroller.global.preserved.labels")),
    row("max-resources-status-count", "ARGOCD_APPLICATIONSET_CONTROLLER_MAX_RESOURCES_STATUS_COUNT", Int, "5000", Param("applicationsetcontroller.status.max.resources.count")),
    row("", "ARGOCD_APPLICATIONSET_CONTROLLER_REQUEUE_AFTER", Duration, "3m", Param("applicationsetcontroller.requeue.after")),

    // Hosts of Git.
    row("allowed-scm-providers", "ARGOCD_APPLICATIONSET_CONTROLLER_ALLOWED_SCM_PROVIDERS", List, "", Param("applicationsetcontroller.allowed.scm.providers")),
    row("enable-scm-providers", "ARGOCD_APPLICATIONSET_CONTROLLER_ENABLE_SCM_PROVIDERS", Bool, "true", Param("applicationsetcontroller.enable.scm.providers")),
    row("token-ref-strict-mode", "ARGOCD_APPLICATIONSET_CONTROLLER_TOKENREF_STRICT_MODE", Bool, "false", Param("applicationsetcontroller.enable.tokenref.strict.mode")),
    row("scm-root-ca-path", "ARGOCD_APPLICATIONSET_CONTROLLER_SCM_ROOT_CA_PATH", Text, "", Param("applicationsetcontroller.scm.root.ca.path")),
    row("scm-proxy-url", "ARGOCD_APPLICATIONSET_CONTROLLER_SCM_PROXY_URL", Text, "", Flag("scm-proxy-url")),
    row("scm-no-proxy", "ARGOCD_APPLICATIONSET_CONTROLLER_SCM_NO_PROXY", Text, "", Flag("scm-no-proxy")),

    // The repo-server that reads the repositories.
    row("argocd-repo-server", "ARGOCD_APPLICATIONSET_CONTROLLER_REPO_SERVER", Text, "argocd-repo-server:8081", Always("repo-server")),
    row("repo-server-timeout-seconds", "ARGOCD_APPLICATIONSET_CONTROLLER_REPO_SERVER_TIMEOUT_SECONDS", Int, "60", Flag("repo-server-timeout-seconds")),
];
