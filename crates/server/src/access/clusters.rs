//! Listing clusters.

use super::{Authorized, Get, Guard, Reach};
use crate::ApiError;
use tiphys_api::{AppProject, cluster::Cluster};
use tiphys_engine::spec::Destination;

impl Reach {
    /// The clusters that the caller may see.
    pub(crate) async fn clusters(
        &self,
        guard: &Guard,
    ) -> Result<Vec<Authorized<Cluster, Get>>, ApiError> {
        let all = self.live.clusters().await?;
        Ok(all
            .into_iter()
            .filter_map(|c| guard.grant(c).ok())
            .collect())
    }

    /// The clusters scoped to the project; no further permission is needed, since they are part of
    /// it.
    pub(crate) async fn clusters_of<A>(
        &self,
        project: &Authorized<AppProject, A>,
    ) -> Result<Vec<Cluster>, ApiError> {
        let mut clusters = self.live.clusters().await?;
        clusters.retain(|c| c.project == project.metadata.name);
        Ok(clusters)
    }

    /// The possible destinations, for a caller about to store an Application or a project.
    pub(crate) async fn destinations<T, A>(
        &self,
        _: &Authorized<T, A>,
    ) -> Result<Vec<Destination>, ApiError> {
        let clusters = self.live.clusters().await?.into_iter();
        let destination = |c: Cluster| Destination {
            server: c.server,
            name: c.name,
            project: c.project,
        };
        Ok(clusters.map(destination).collect())
    }
}
