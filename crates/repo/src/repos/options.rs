//! Limits and options of all repositories. Main type: [`RepoOptions`].

use crate::{
    ContactWatch, SourceLimits, disk_cache::DiskCache, git::GitLimits, isolation::Isolation,
    plugin::PluginSettings, tokens::Workload as AzureWorkload,
};
use std::{collections::BTreeMap, time::Duration};
use tiphys_render::Budget;

/// Limits and options of [`Repos`].
#[derive(Clone, Debug)]
pub struct RepoOptions {
    /// Accept file:// URLs and absolute paths. Anyone who may name a repository can then read every
    /// repository on this machine.
    pub allow_local: bool,
    /// How long a look-up of a remote repository's refs is used for
    /// [`Since::Recently`](crate::Since::Recently).
    pub refs_ttl: Duration,
    /// Timeout of one connection to a remote repository.
    pub timeout: Duration,
    /// Limits of one render.
    pub budget: Budget,
    /// Time limit for the templates of one render.
    pub render_timeout: Duration,
    /// Cache size for rendered manifests (estimated).
    pub manifest_bytes: u64,
    /// Keeps rendered manifests and what repositories listed for the next process.
    pub disk_cache: Option<DiskCache>,
    /// Limits on repositories.
    pub limits: GitLimits,
    /// Limits on what is not Git, and how patiently refs are asked for.
    pub sources: SourceLimits,
    /// The program for ssh URLs, searched in PATH.
    pub ssh_program: String,
    /// Where plugins are.
    pub plugins: PluginSettings,
    /// The identity for repositories with `useAzureWorkloadIdentity`.
    pub azure_workload: Option<AzureWorkload>,
    /// What takes precedence over the environment where it says who this process is at AWS.
    pub cloud: BTreeMap<String, String>,
    /// Concurrent renders; 0 means twice the number of processors. With isolation there are at most
    /// as many as workers.
    pub parallelism: usize,
    /// Render in other processes; `None`: in this one, whose memory a source can use up.
    pub isolation: Option<Isolation>,
    /// Fetch the submodules of a commit that is rendered.
    pub submodules: bool,
    /// Check signatures where projects demand them.
    pub signatures: bool,
    /// Is told of contacts with Git servers.
    pub contacts: ContactWatch,
}

impl RepoOptions {
    /// How many sources are rendered at a time. Who may render finds a worker free: otherwise one
    /// project, which has half of these, could take all workers.
    pub(crate) fn renders(&self) -> usize {
        let processors = std::thread::available_parallelism().map_or(2, usize::from);
        let wanted = match self.parallelism {
            0 => processors * 2,
            wanted => wanted,
        };
        match &self.isolation {
            Some(isolation) => wanted.min(isolation.workers.max(1)),
            None => wanted,
        }
    }

    /// Who this process is to the servers that it asks as its workload: part of the names of what
    /// they answered.
    pub(crate) fn workload(&self) -> String {
        // The fingerprint of an access does not tell it: a process has only one.
        format!("{:?}", self.azure_workload)
    }
}

impl Default for RepoOptions {
    fn default() -> Self {
        Self {
            allow_local: true,
            refs_ttl: Duration::from_secs(20),
            timeout: Duration::from_secs(90),
            budget: Budget::default(),
            render_timeout: Duration::from_secs(60),
            manifest_bytes: 256 << 20,
            disk_cache: None,
            limits: GitLimits::default(),
            sources: SourceLimits::default(),
            ssh_program: "ssh".to_owned(),
            plugins: PluginSettings::default(),
            azure_workload: None,
            cloud: BTreeMap::new(),
            parallelism: 0,
            isolation: None,
            submodules: true,
            signatures: true,
            contacts: ContactWatch::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_sources_are_rendered_than_there_are_workers() {
        let renders = |parallelism: usize, workers: Option<usize>| {
            let isolation = workers.map(|workers| Isolation {
                program: "/no/such/program".into(),
                args: Vec::new(),
                workers,
                spare: false,
            });
            let options = RepoOptions {
                parallelism,
                isolation,
                ..RepoOptions::default()
            };
            options.renders()
        };
        assert_eq!(renders(7, None), 7);
        assert!(renders(0, None) >= 2);
        assert_eq!(renders(7, Some(4)), 4);
        assert_eq!(renders(3, Some(4)), 3);
        assert_eq!(renders(0, Some(1)), 1);
        assert_eq!(renders(5, Some(0)), 1, "one can always render");
    }
}
