//! The command lines of Argo CD 3.6's roles as tables: each flag with its variable, its default, and
//! its effect here. This file has what tables are made of, and those that roles share.

use Here::{Always, Flag, Kube, NotThere, Nothing};
use Kind::{Bool, Duration, Each, Float, Int, Text};

/// A role with its command line.
#[derive(Debug, PartialEq, Eq)]
pub struct Program {
    pub name: &'static str,
    pub tables: &'static [&'static [Row]],
}

impl Program {
    /// The rows of all tables.
    pub fn rows(&self) -> impl Iterator<Item = &'static Row> + use<> {
        self.tables.iter().copied().flatten()
    }
}

/// A flag, a variable, or both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// A flag of ours that is passed on even if its value is empty.
    Empty(&'static str),
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

/// kubectl's flags for selecting a cluster.
#[rustfmt::skip]
pub const KUBE: &[Row] = &[
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
];

/// The requests to API servers.
#[rustfmt::skip]
pub const CLIENT: &[Row] = &[
    row("", "ARGOCD_K8S_CLIENT_QPS", Float, "", Nothing),
    row("", "ARGOCD_K8S_CLIENT_BURST", Int, "", Nothing),
    row("", "ARGOCD_K8S_CLIENT_MAX_IDLE_CONNECTIONS", Int, "", Nothing),
    row("", "ARGOCD_K8S_TCP_TIMEOUT", Duration, "", Nothing),
    row("", "ARGOCD_K8S_TCP_KEEPALIVE", Duration, "", Nothing),
    row("", "ARGOCD_K8S_TCP_IDLE_TIMEOUT", Duration, "", Nothing),
    row("", "ARGOCD_K8S_TLS_HANDSHAKE_TIMEOUT", Duration, "", Nothing),
    row("", "ARGOCD_K8SCLIENT_RETRY_MAX", Int, "", Nothing),
    row("", "ARGOCD_K8SCLIENT_RETRY_BASE_BACKOFF", Int, "", Nothing),
];

#[rustfmt::skip]
pub const REDIS: [Row; 17] = [
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
];

/// Flags of the connection to the repo-server: what its names begin with, and what its variables
/// begin with.
macro_rules! repo_server {
    ($flag:literal, $variable:literal) => {{
        use $crate::roles::argocd::flags::{
            Here::Flag,
            Kind::{Bool, Text},
            row,
        };
        const CERTIFICATE: &str = "/app/config/reposerver/mtls/client.crt";
        const KEY: &str = "/app/config/reposerver/mtls/client.key";
        &[
            row(
                concat!($flag, "-plaintext"),
                concat!($variable, "_PLAINTEXT"),
                Bool,
                "false",
                Flag("repo-server-plaintext"),
            ),
            row(
                concat!($flag, "-strict-tls"),
                concat!($variable, "_STRICT_TLS"),
                Bool,
                "false",
                Flag("repo-server-strict-tls"),
            ),
            row(
                concat!($flag, "-ca-cert-path"),
                concat!($variable, "_CA_CERT_PATH"),
                Text,
                "",
                Flag("repo-server-ca-cert-path"),
            ),
            row(
                concat!($flag, "-client-cert-path"),
                concat!($variable, "_CLIENT_CERT_PATH"),
                Text,
                CERTIFICATE,
                Flag("repo-server-client-cert-path"),
            ),
            row(
                concat!($flag, "-client-cert-key-path"),
                concat!($variable, "_CLIENT_CERT_KEY_PATH"),
                Text,
                KEY,
                Flag("repo-server-client-cert-key-path"),
            ),
        ]
    }};
}
pub(super) use repo_server;

/// Flags of traces, with what its variables begin with.
macro_rules! traces {
    ($variable:literal) => {{
        use $crate::roles::argocd::flags::{
            Here::Flag,
            Kind::{Bool, Float, List, Pairs, Text},
            row,
        };
        &[
            row(
                "otlp-address",
                concat!($variable, "_ADDRESS"),
                Text,
                "",
                Flag("otlp-address"),
            ),
            row(
                "otlp-insecure",
                concat!($variable, "_INSECURE"),
                Bool,
                "true",
                Flag("otlp-insecure"),
            ),
            row(
                "otlp-headers",
                concat!($variable, "_HEADERS"),
                Pairs,
                "",
                Flag("otlp-headers"),
            ),
            row(
                "otlp-attrs",
                concat!($variable, "_ATTRS"),
                List,
                "",
                Flag("otlp-attrs"),
            ),
            row(
                "otlp-sample-ratio",
                concat!($variable, "_SAMPLE_RATIO"),
                Float,
                "1",
                Flag("otlp-sample-ratio"),
            ),
        ]
    }};
}
pub(super) use traces;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    #[test]
    fn each_name_is_there_once() {
        for names in super::super::PROGRAMS.iter().flat_map(|program| {
            [
                program.rows().map(|r| r.flag).collect::<Vec<_>>(),
                program.rows().map(|r| r.variable).collect(),
            ]
        }) {
            let named: Vec<&str> = names.into_iter().filter(|name| !name.is_empty()).collect();
            assert_eq!(named.iter().collect::<BTreeSet<_>>().len(), named.len());
        }
    }
}
