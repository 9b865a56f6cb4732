//! What roles beside a controller begin with: the records of an installation and the sources of its
//! Applications. Main type: [`PlaneArgs`].

use crate::{
    kubectl::kube::KubeArgs,
    roles::{
        git::GitArgs,
        repo_server::RepoServerArgs,
        repositories::{Repositories, RepositoryArgs},
        wire::ControlPlane,
    },
};
use clap::Args;
use tiphys_cluster::{Cluster, RecordsOptions, records::SettingsOverrides};
use tiphys_repo::RepoOptions;

#[derive(Args, Debug)]
pub struct PlaneArgs {
    #[command(flatten)]
    repo_server: RepoServerArgs,
    #[command(flatten)]
    repositories: RepositoryArgs,
    #[command(flatten)]
    git: GitArgs,
    #[command(flatten)]
    pub kube: KubeArgs,
}

/// The records have been read.
pub struct Begun {
    pub plane: ControlPlane,
    pub namespace: String,
    /// Removed with this, if it is temporary.
    pub repositories: Repositories,
}

impl PlaneArgs {
    pub async fn connect(&self) -> anyhow::Result<(Cluster, String)> {
        let cluster = Cluster::connect(self.kube.options()).await?;
        let namespace = self.kube.namespace();
        let namespace = namespace.unwrap_or(cluster.default_namespace()).to_owned();
        Ok((cluster, namespace))
    }

    pub fn repo_options(&self) -> RepoOptions {
        self.repositories.options(&self.git)
    }

    /// `others` are the namespaces beside the control plane's: of Applications, or of sets.
    pub async fn begin(
        &self,
        (cluster, namespace): (Cluster, String),
        others: Vec<String>,
        overrides: SettingsOverrides,
    ) -> anyhow::Result<Begun> {
        let records = RecordsOptions {
            application_namespaces: Some(others),
            overrides,
            ..RecordsOptions::new(&namespace)
        };
        let repositories = self.repositories.folder()?;
        let folder = repositories.path.clone();
        let options = RepoOptions {
            disk_cache: repositories.disk_cache(&self.git)?,
            ..self.repo_options()
        };
        let limits = &self.git.limits;
        let mut plane = ControlPlane::start(cluster, records, folder, options, limits).await?;
        plane.repo_server = self.repo_server.client()?;
        Ok(Begun {
            plane,
            namespace,
            repositories,
        })
    }
}

/// The namespaces of a list; an empty variable, as in Argo CD's manifests, is none.
pub fn named(given: &[String]) -> Vec<String> {
    let given = given.iter().map(|name| name.trim());
    given
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect()
}
