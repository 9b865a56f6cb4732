//! Flags that Helm accepts, but that do not affect the output of `template` and `lint`. Main types:
//! [`OfInstall`], [`OfCharts`] and [`OfHelm`].

use std::path::PathBuf;
use tiphys_gocompat::{duration, text::quote};

/// The help of all of them.
const NONE: &str = "(no effect)";

/// What is about an installation.
#[derive(clap::Args)]
pub struct OfInstall {
    #[arg(long, hide = true, help = NONE)]
    skip_crds: bool,
    #[arg(long, hide = true, help = NONE)]
    create_namespace: bool,
    #[arg(long, hide = true, help = NONE)]
    devel: bool,
    #[arg(long, hide = true, help = NONE)]
    replace: bool,
    #[arg(long, hide = true, help = NONE)]
    disable_openapi_validation: bool,
    #[arg(long, hide = true, help = NONE)]
    hide_notes: bool,
    #[arg(long, hide = true, help = NONE)]
    render_subchart_notes: bool,
    #[arg(long, hide = true, help = NONE, value_name = "DURATION", value_parser = timeout)]
    timeout: Option<i64>,
    #[arg(long, hide = true, help = NONE, value_name = "HOW", num_args = 0..=1, require_equals = true, default_missing_value = "watcher", value_parser = wait)]
    wait: Option<String>,
    #[arg(long, hide = true, help = NONE)]
    wait_for_jobs: bool,
    #[arg(long, hide = true, help = NONE)]
    atomic: bool,
    #[arg(long, hide = true, help = NONE)]
    rollback_on_failure: bool,
    #[arg(long, hide = true, help = NONE, value_name = "TEXT", allow_hyphen_values = true)]
    description: Option<String>,
    #[arg(long, hide = true, help = NONE)]
    force: bool,
    #[arg(long, hide = true, help = NONE)]
    force_replace: bool,
    #[arg(long, hide = true, help = NONE)]
    force_conflicts: bool,
    #[arg(long, hide = true, help = NONE, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    server_side: Option<String>,
    #[arg(long, hide = true, help = NONE)]
    take_ownership: bool,
    #[arg(long, short = 'l', hide = true, help = NONE, value_name = "KEY=VALUE")]
    labels: Vec<String>,
    #[arg(long, hide = true, help = NONE, value_name = "TEXT", allow_hyphen_values = true)]
    post_renderer_args: Vec<String>,
}

/// What is about fetching a chart.
#[derive(clap::Args)]
pub struct OfCharts {
    #[arg(long, hide = true, help = NONE, value_name = "VERSION")]
    version: Option<String>,
    #[arg(long, hide = true, help = NONE, value_name = "FILE")]
    keyring: Option<PathBuf>,
    #[arg(long, hide = true, help = NONE, value_name = "NAME")]
    username: Option<String>,
    #[arg(long, hide = true, help = NONE, value_name = "TEXT")]
    password: Option<String>,
    #[arg(long, hide = true, help = NONE, value_name = "FILE")]
    cert_file: Option<PathBuf>,
    #[arg(long, hide = true, help = NONE, value_name = "FILE")]
    key_file: Option<PathBuf>,
    #[arg(long, hide = true, help = NONE, value_name = "FILE")]
    ca_file: Option<PathBuf>,
    #[arg(long, hide = true, help = NONE)]
    insecure_skip_tls_verify: bool,
    #[arg(long, hide = true, help = NONE)]
    plain_http: bool,
    #[arg(long, hide = true, help = NONE)]
    pass_credentials: bool,
}

/// What every command of Helm takes: about a cluster, registries and files of its own.
#[derive(clap::Args)]
pub struct OfHelm {
    #[arg(long, hide = true, help = NONE, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    #[arg(long, hide = true, help = NONE, value_name = "NAME")]
    kube_context: Option<String>,
    #[arg(long, hide = true, help = NONE, value_name = "TEXT")]
    kube_token: Option<String>,
    #[arg(long, hide = true, help = NONE, value_name = "NAME")]
    kube_as_user: Option<String>,
    #[arg(long, hide = true, help = NONE, value_name = "NAME")]
    kube_as_group: Vec<String>,
    #[arg(long, hide = true, help = NONE, value_name = "URL")]
    kube_apiserver: Option<String>,
    #[arg(long, hide = true, help = NONE, value_name = "FILE")]
    kube_ca_file: Option<PathBuf>,
    #[arg(long, hide = true, help = NONE, value_name = "NAME")]
    kube_tls_server_name: Option<String>,
    #[arg(long, hide = true, help = NONE)]
    kube_insecure_skip_tls_verify: bool,
    #[arg(long, hide = true, help = NONE, value_name = "FILE")]
    registry_config: Option<PathBuf>,
    #[arg(long, hide = true, help = NONE, value_name = "FILE")]
    repository_config: Option<PathBuf>,
    #[arg(long, hide = true, help = NONE, value_name = "DIR")]
    repository_cache: Option<PathBuf>,
    #[arg(long, hide = true, help = NONE, value_name = "DIR")]
    content_cache: Option<PathBuf>,
    #[arg(long, hide = true, help = NONE, value_name = "NUMBER")]
    burst_limit: Option<i64>,
    #[arg(long, hide = true, help = NONE, value_name = "NUMBER")]
    qps: Option<f32>,
    #[arg(long, hide = true, help = NONE, alias = "colour", value_name = "WHEN")]
    color: Option<String>,
}

impl OfInstall {
    /// Helm's warnings about deprecated ones.
    pub fn told(&self) -> Vec<String> {
        let none = "this flag has no effect for 'helm template' and will be removed in Helm 5";
        let flags = [
            (self.atomic, "atomic", "use --rollback-on-failure instead"),
            (self.force, "force", "use --force-replace instead"),
            (self.hide_notes, "hide-notes", none),
            (self.render_subchart_notes, "render-subchart-notes", none),
        ];
        flags
            .into_iter()
            .filter(|(given, ..)| *given)
            .map(|(_, flag, what)| deprecated(flag, what))
            .collect()
    }
}

pub fn deprecated(flag: &str, what: &str) -> String {
    format!("Flag --{flag} has been deprecated, {what}")
}

fn timeout(text: &str) -> Result<i64, String> {
    duration::parse(text).map_err(|e| e.to_string())
}

/// The values that Helm accepts for `--wait`.
fn wait(how: &str) -> Result<String, String> {
    match how {
        "watcher" | "legacy" | "hookOnly" | "true" | "false" => Ok(how.to_owned()),
        _ => Err(format!(
            "invalid wait input {}. Valid inputs are watcher, hookOnly, and legacy",
            quote(how)
        )),
    }
}
