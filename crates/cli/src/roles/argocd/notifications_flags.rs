//! The command line of `argocd-notifications`.

use super::flags::{
    Here::{self, Always, Flag, NotThere},
    KUBE,
    Kind::{Bool, Int, List, Text},
    LOG_FORMAT, LOG_LEVEL, Program, Row, row,
};

pub const NOTIFICATIONS: Program = Program {
    name: super::NOTIFICATIONS,
    tables: &[ROWS, KUBE],
};

#[rustfmt::skip]
const ROWS: &[Row] = &[
    row(LOG_FORMAT, "ARGOCD_NOTIFICATIONS_CONTROLLER_LOGFORMAT", Text, "json", Here::Own),
    row(LOG_LEVEL, "ARGOCD_NOTIFICATIONS_CONTROLLER_LOGLEVEL", Text, "info", Here::Own),
    row("processors-count", "ARGOCD_NOTIFICATION_CONTROLLER_PROCESSORS_COUNT", Int, "1", Flag("processors-count")),
    row("metrics-port", "", Int, "9001", Always("metrics-port")),
    row("config-map-name", "", Text, "argocd-notifications-cm", Flag("config-map-name")),
    row("secret-name", "", Text, "argocd-notifications-secret", Flag("secret-name")),
    row("application-namespaces", "ARGOCD_APPLICATION_NAMESPACES", List, "", Flag("application-namespaces")),
    row("app-label-selector", "", Text, "", NotThere),
    row("self-service-notification-enabled", "ARGOCD_NOTIFICATION_CONTROLLER_SELF_SERVICE_NOTIFICATION_ENABLED", Bool, "false", Flag("self-service-notification-enabled")),

    // The repo-server that knows the commits.
    row("argocd-repo-server", "", Text, "argocd-repo-server:8081", Always("repo-server")),
    row("argocd-repo-server-plaintext", "ARGOCD_NOTIFICATION_CONTROLLER_REPO_SERVER_PLAINTEXT", Bool, "false", Flag("repo-server-plaintext")),
    row("argocd-repo-server-strict-tls", "", Bool, "false", Flag("repo-server-strict-tls")),
    row("argocd-repo-server-ca-cert-path", "ARGOCD_NOTIFICATION_CONTROLLER_REPO_SERVER_CA_CERT_PATH", Text, "", Flag("repo-server-ca-cert-path")),
    row("argocd-repo-server-client-cert-path", "ARGOCD_NOTIFICATION_CONTROLLER_REPO_SERVER_CLIENT_CERT_PATH", Text, "/app/config/reposerver/mtls/client.crt", Flag("repo-server-client-cert-path")),
    row("argocd-repo-server-client-cert-key-path", "ARGOCD_NOTIFICATION_CONTROLLER_REPO_SERVER_CLIENT_CERT_KEY_PATH", Text, "/app/config/reposerver/mtls/client.key", Flag("repo-server-client-cert-key-path")),
];
