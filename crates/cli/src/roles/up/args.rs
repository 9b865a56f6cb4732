//! The arguments of `tiphys up`.

use crate::roles::catalog::Mode;
use crate::roles::git::GitArgs;
use crate::roles::{audit::AuditArgs, connections::ConnectionArgs};
use clap::Args;
use std::path::PathBuf;

/// Start everything in one process: a Kubernetes-compatible API server, the controller, the API and
/// the page
#[derive(Args, Debug)]
#[command(
    after_help = "Without arguments it runs its own examples on its own API server. Nothing leaves this machine.\n\nExamples:\n  tiphys up\n  tiphys up --repo https://github.com/argoproj/argocd-example-apps --path guestbook --namespace guestbook\n  tiphys up --kubeconfig ~/.kube/config --context kind-kind --repo . --path deploy"
)]
pub struct UpArgs {
    /// Repository to deploy instead of the examples: https, ssh, file URL or a local path
    #[arg(long, value_name = "URL")]
    pub repo: Option<String>,
    /// Folder in the repository
    #[arg(long, value_name = "P", requires = "repo", default_value = ".")]
    pub path: String,
    /// Branch, tag or commit
    #[arg(long, value_name = "R", requires = "repo", default_value = "HEAD")]
    pub revision: String,
    /// Namespace to deploy to; it is created when missing
    #[arg(
        long,
        value_name = "N",
        requires = "repo",
        default_value = "default",
        value_parser = namespace_name
    )]
    pub namespace: String,
    /// Name of the Application [default: the last part of the path, or of the repository]
    #[arg(long, value_name = "NAME", requires = "repo")]
    pub name: Option<String>,
    /// Read folders below the path too
    #[arg(long, requires = "repo")]
    pub directory_recurse: bool,
    /// Only files that match this glob
    #[arg(long, value_name = "GLOB", requires = "repo")]
    pub directory_include: Option<String>,
    /// No files that match this glob
    #[arg(long, value_name = "GLOB", requires = "repo")]
    pub directory_exclude: Option<String>,
    /// User name for the repository
    #[arg(long, requires = "repo", env = "TIPHYS_REPO_USERNAME")]
    pub username: Option<String>,
    /// Password for the repository; better through the variable than on the command line
    #[arg(
        long,
        requires = "repo",
        env = "TIPHYS_REPO_PASSWORD",
        hide_env_values = true
    )]
    pub password: Option<String>,
    /// Bearer token for the repository
    #[arg(
        long,
        requires = "repo",
        env = "TIPHYS_REPO_TOKEN",
        hide_env_values = true
    )]
    pub token: Option<String>,
    /// File with the private key for an ssh repository
    #[arg(long, value_name = "FILE", requires = "repo")]
    pub ssh_private_key_path: Option<PathBuf>,
    /// Do not check the repository's certificate or host key
    #[arg(long, requires = "repo")]
    pub insecure_repo: bool,
    /// Use a real cluster instead of the embedded API server
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig
    #[arg(long, value_name = "C", requires = "kubeconfig")]
    pub context: Option<String>,
    /// Folder for everything that stays [default: $XDG_DATA_HOME/tiphys or ~/.local/share/tiphys]
    #[arg(long, value_name = "DIR", conflicts_with = "ephemeral")]
    pub data: Option<PathBuf>,
    /// Keep nothing: the API server's store is in memory
    #[arg(long)]
    pub ephemeral: bool,
    /// Exit when everything is Synced and Healthy: 0, else 1 with the reasons
    #[arg(long)]
    pub once: bool,
    /// How long `--once` waits, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    pub timeout: u64,
    /// Port of API and page on the loopback address; 0 takes any free one
    #[arg(long, default_value_t = 8080)]
    pub port: u16,
    /// Port of the embedded API server on the loopback address; 0 takes any free one
    #[arg(long, default_value_t = 0, conflicts_with = "kubeconfig")]
    pub kube_port: u16,
    #[command(flatten)]
    pub connections: ConnectionArgs,
    #[command(flatten)]
    pub audit: AuditArgs,
    /// Serve TLS with a self-signed certificate
    #[arg(long)]
    pub tls: bool,
    /// Refuse kinds and storage classes that nobody defined, as a real cluster does, instead of
    /// making placeholders for them
    #[arg(long, conflicts_with = "kubeconfig")]
    pub strict_kinds: bool,
    /// Deploy the examples into the cluster of --kubeconfig without asking
    #[arg(long, short = 'y', requires = "kubeconfig")]
    pub yes: bool,
    /// Who reads the chart repositories of AppRepositories [default: in-process; off with
    /// --kubeconfig]
    #[arg(long, value_enum, value_name = "WHO")]
    pub catalog: Option<Mode>,
    /// Create no Application: only the control plane
    #[arg(long, conflicts_with = "repo")]
    pub bare: bool,
    #[command(flatten, next_help_heading = "Limits of repositories")]
    pub git: GitArgs,
}

const NAMESPACES: &str = "it must be at most 63 lowercase letters, digits and '-', the first and \
                          the last one a letter or digit";

/// The API server would refuse any other name, with each attempt to sync. None is right for those
/// whose resources name their own.
fn namespace_name(text: &str) -> Result<String, String> {
    let is_edge = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = text.as_bytes();
    let is_name = bytes.len() <= 63
        && bytes.iter().all(|byte| is_edge(byte) || *byte == b'-')
        && bytes.first().is_none_or(is_edge)
        && bytes.last().is_none_or(is_edge);
    if is_name {
        Ok(text.to_owned())
    } else {
        Err(NAMESPACES.to_owned())
    }
}
