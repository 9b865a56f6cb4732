//! Flags for the limits on repositories and renders, and the process that renders.

use super::{plugins::PluginArgs, source_limits::SourceLimitArgs};
use anyhow::Context as _;
use clap::Args;
use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};
use tiphys_repo::{AzureWorkload, DiskCache, GitLimits, Isolation, RepoOptions, work_in_isolation};

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
    /// Whether submodules are fetched; reposerver.enable.git.submodule of argocd-cmd-params-cm
    /// switches them off, too
    #[arg(
        long,
        value_name = "BOOL",
        default_value = "true",
        action = clap::ArgAction::Set,
        value_parser = clap::builder::BoolishValueParser::new(),
        env = "ARGOCD_GIT_MODULES_ENABLED"
    )]
    git_submodules: bool,
    /// Whether signatures are verified where projects demand them; false: nothing is demanded
    #[arg(
        long,
        value_name = "BOOL",
        default_value = "true",
        action = clap::ArgAction::Set,
        value_parser = clap::builder::BoolishValueParser::new(),
        env = "ARGOCD_GPG_ENABLED"
    )]
    git_signatures: bool,
    /// Longest time for one contact with a Git server, in seconds
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 90,
        env = "TIPHYS_GIT_TIMEOUT_SECONDS"
    )]
    git_timeout_seconds: u64,
    /// Longest time for one render, and for each call of a plugin, in seconds
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 60,
        env = "TIPHYS_RENDER_TIMEOUT_SECONDS"
    )]
    render_timeout_seconds: u64,
    /// Most memory of each process that renders, in MiB; as many as processors render at a time, but
    /// at least 4 and at most 16, and a spare one waits
    #[arg(
        long,
        value_name = "MIB",
        default_value_t = 2048,
        value_parser = clap::value_parser!(u64).range(64..=1 << 20),
        env = "TIPHYS_RENDER_MEMORY_MIB"
    )]
    render_memory_mib: u64,
    /// The former limit, for Jsonnet alone
    #[arg(
        long = "jsonnet-memory-mib",
        value_name = "MIB",
        hide = true,
        value_parser = of_jsonnet,
        env = "TIPHYS_JSONNET_MEMORY_MIB"
    )]
    _jsonnet_memory_mib: Option<String>,
    /// Most bytes of rendered manifests and of lists of refs that are kept on disk for the next start,
    /// beside the copies of repositories, where their folder outlives the process; 0: none are kept
    #[arg(
        long,
        value_name = "BYTES",
        default_value_t = 1 << 30,
        env = "TIPHYS_RENDER_CACHE_BYTES"
    )]
    render_cache_bytes: u64,
    #[command(flatten)]
    pub limits: SourceLimitArgs,
    #[command(flatten)]
    plugins: PluginArgs,
}

/// Refuses the limit for Jsonnet: one that was enough for it may be too little for a chart.
fn of_jsonnet(_: &str) -> Result<String, &'static str> {
    Err(
        "there is one limit for renders of every type: --render-memory-mib, or \
         TIPHYS_RENDER_MEMORY_MIB",
    )
}

/// The folder for rendered manifests, among those of the repositories.
const RENDERED: &str = "rendered";

/// The role of a process that renders for another one. Not for users.
pub const WORKER: &str = "render-worker";

/// Such processes that render at a time. One project has half of them, and one of its sources that
/// takes long must not keep its others waiting.
const FEWEST: usize = 4;
/// Each may have much memory.
const MOST: usize = 16;

/// Serves the process that started this one. `memory`: in MiB.
pub fn work(memory: &str) -> ExitCode {
    let served = memory.parse().map(|mib: u64| work_in_isolation(mib << 20));
    ExitCode::from(u8::from(!matches!(served, Ok(Ok(())))))
}

impl GitArgs {
    fn isolation(&self) -> Isolation {
        // The program that runs, even if its file has been replaced since.
        let program = if cfg!(target_os = "linux") {
            PathBuf::from("/proc/self/exe")
        } else {
            // Without a name no worker starts, and the error says so.
            std::env::current_exe().unwrap_or_default()
        };
        Isolation {
            program,
            args: vec![WORKER.to_owned(), self.render_memory_mib.to_string()],
            workers: std::thread::available_parallelism()
                .map_or(FEWEST, usize::from)
                .clamp(FEWEST, MOST),
            spare: true,
        }
    }

    /// What was rendered before, in the folder of the copies of repositories; `None`: nothing is to be
    /// kept.
    pub fn disk_cache(&self, repositories: &Path) -> anyhow::Result<Option<DiskCache>> {
        if self.render_cache_bytes == 0 {
            return Ok(None);
        }
        let opened = DiskCache::open(&repositories.join(RENDERED), self.render_cache_bytes);
        opened
            .map(Some)
            .context("rendered manifests cannot be kept; --render-cache-bytes=0 keeps none")
    }

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
            sources: self.limits.limits(),
            submodules: self.git_submodules,
            signatures: self.git_signatures,
            timeout: Duration::from_secs(self.git_timeout_seconds),
            render_timeout: Duration::from_secs(self.render_timeout_seconds),
            isolation: Some(self.isolation()),
            plugins: self.plugins.settings(),
            azure_workload: AzureWorkload::from_environment(),
            ..RepoOptions::default()
        }
    }
}
