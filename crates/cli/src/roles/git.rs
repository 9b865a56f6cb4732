//! Flags for the limits on repositories.

use super::plugins::PluginArgs;
use clap::Args;
use std::time::Duration;
use tiphys_repo::{GitLimits, RepoOptions};

const LIMITS: GitLimits = GitLimits::DEFAULT;

/// Each limit counts for each repository by itself; one that is larger is refused by name.
#[derive(Args, Debug)]
pub struct GitArgs {
    /// Most refs that a repository may list
    #[arg(long, value_name = "N", default_value_t = LIMITS.refs, env = "TIPHYS_GIT_MAX_REFS")]
    git_max_refs: u64,
    /// Most bytes of a repository's list of refs
    #[arg(long, value_name = "BYTES", default_value_t = LIMITS.advertisement_bytes, env = "TIPHYS_GIT_MAX_REFS_BYTES")]
    git_max_refs_bytes: u64,
    /// Most bytes that one fetch may bring
    #[arg(long, value_name = "BYTES", default_value_t = LIMITS.pack_bytes, env = "TIPHYS_GIT_MAX_PACK_BYTES")]
    git_max_pack_bytes: u64,
    /// Most objects that one fetch may bring
    #[arg(long, value_name = "N", default_value_t = LIMITS.objects, env = "TIPHYS_GIT_MAX_OBJECTS")]
    git_max_objects: u64,
    /// Most bytes of one object of a repository, such as a file, when it is unpacked
    #[arg(long, value_name = "BYTES", default_value_t = LIMITS.object_bytes, env = "TIPHYS_GIT_MAX_OBJECT_BYTES")]
    git_max_object_bytes: u64,
    /// Most entries of one folder
    #[arg(long, value_name = "N", default_value_t = LIMITS.tree_entries, env = "TIPHYS_GIT_MAX_FOLDER_ENTRIES")]
    git_max_folder_entries: u64,
    /// Most folders inside each other
    #[arg(long, value_name = "N", default_value_t = LIMITS.depth, env = "TIPHYS_GIT_MAX_FOLDER_DEPTH")]
    git_max_folder_depth: u64,
    /// Longest time for one contact with a Git server, in seconds
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 90,
        env = "TIPHYS_GIT_TIMEOUT_SECONDS"
    )]
    git_timeout_seconds: u64,
    /// Longest time for the templates of one render, and for each call of a plugin, in seconds
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 60,
        env = "TIPHYS_RENDER_TIMEOUT_SECONDS"
    )]
    render_timeout_seconds: u64,
    #[command(flatten)]
    plugins: PluginArgs,
}

impl GitArgs {
    pub fn options(&self) -> RepoOptions {
        let limits = GitLimits {
            refs: self.git_max_refs,
            advertisement_bytes: self.git_max_refs_bytes,
            pack_bytes: self.git_max_pack_bytes,
            objects: self.git_max_objects,
            object_bytes: self.git_max_object_bytes,
            tree_entries: self.git_max_folder_entries,
            depth: self.git_max_folder_depth,
        };
        RepoOptions {
            allow_local: false,
            limits,
            timeout: Duration::from_secs(self.git_timeout_seconds),
            render_timeout: Duration::from_secs(self.render_timeout_seconds),
            plugins: self.plugins.settings(),
            ..RepoOptions::default()
        }
    }
}
