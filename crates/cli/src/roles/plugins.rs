//! Flags for the servers of plugins that a renderer asks, with Argo CD's variables.

use clap::Args;
use std::path::PathBuf;
use tiphys_repo::{ASK_PASS_SOCKET, PluginSettings};

/// Argo CD's folder for the sockets of plugins, and the variable for another one.
pub const SOCKETS: &str = "/home/argocd/cmp-server/plugins";
pub const SOCKETS_VARIABLE: &str = "ARGOCD_PLUGINSOCKFILEPATH";

#[derive(Args, Debug)]
pub struct PluginArgs {
    /// Folder with the sockets of plugins (tiphys cmp-server, or Argo CD's)
    #[arg(long, value_name = "DIR", default_value = SOCKETS, env = SOCKETS_VARIABLE)]
    plugins_dir: PathBuf,
    /// Globs of paths in a repository that are not sent to plugins, such as docs/*
    #[arg(
        long,
        value_name = "GLOB",
        value_delimiter = ';',
        env = "ARGOCD_REPO_SERVER_PLUGIN_TAR_EXCLUSIONS"
    )]
    plugin_tar_exclude: Vec<String>,
    /// Socket on which a plugin that may use the credentials of a repository asks for its password
    #[arg(
        long,
        value_name = "FILE",
        default_value = ASK_PASS_SOCKET,
        env = "ARGOCD_ASK_PASS_SOCK"
    )]
    ask_pass_socket: PathBuf,
}

impl PluginArgs {
    pub fn settings(&self) -> PluginSettings {
        PluginSettings {
            dir: Some(self.plugins_dir.clone()),
            exclude: self.plugin_tar_exclude.clone(),
            ask_pass: self.ask_pass_socket.clone(),
            ..PluginSettings::default()
        }
    }
}
