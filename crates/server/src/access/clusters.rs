//! Clusters: what is stored of them, who may see or change it, and what is known of their state.

use super::{
    Authorized, Create, Delete, Get, Guard, Reach, Update, Verb,
    cluster_secrets::{CLUSTER, check_annotations, parse, sanitized, secret_name, secret_of},
};
use crate::{
    ApiError, Code,
    ports::{NewToken, SecretRecord, StoreError},
};
use tiphys_api::{
    AppProject,
    cluster::{Cluster, ClusterInfo},
    constants::{IN_CLUSTER, IN_CLUSTER_NAME, MANAGED_BY, MANAGED_BY_VALUE},
};
use tiphys_engine::spec::Destination;

/// A cluster with its credentials, and its Secret.
pub(crate) struct StoredCluster<A> {
    /// `None`: the control plane's own cluster, which can do without.
    secret: Option<SecretRecord>,
    pub cluster: Authorized<Cluster, A>,
}

/// Which clusters a call is about: those of an address, or those of a name.
pub(crate) struct ClusterKey {
    pub server: String,
    pub name: String,
}

impl ClusterKey {
    pub fn fits(&self, cluster: &Cluster) -> bool {
        if self.server.is_empty() {
            !self.name.is_empty() && self.name == cluster.name
        } else {
            self.server.trim_end_matches('/') == cluster.server
        }
    }
}

impl Guard {
    /// Checks the permission for a state of a cluster that is about to be stored.
    pub(crate) fn changed_cluster(
        &self,
        new: Cluster,
    ) -> Result<Authorized<Cluster, Update>, ApiError> {
        self.grant(new)
    }
}

impl Reach {
    /// All clusters, by the names of their Secrets; the control plane's own one is last if it has
    /// no Secret. One whose Secret cannot be read does not hide the others.
    async fn all_clusters(&self) -> Result<Vec<(Option<SecretRecord>, Cluster)>, ApiError> {
        let own = self.live.destinations().into_iter();
        let is_own_enabled = own.clone().any(|d| d.server == IN_CLUSTER);
        let mut secrets = self.store.secrets_of_type(CLUSTER).await?;
        secrets.sort_by(|a, b| a.name.cmp(&b.name));
        let read = |secret: SecretRecord| match parse(&secret) {
            Ok(cluster) => Some((Some(secret), cluster)),
            Err(e) => {
                tracing::warn!(error = %e, "a cluster is left out");
                None
            }
        };
        let mut all: Vec<_> = secrets.into_iter().filter_map(read).collect();
        if is_own_enabled {
            if !all.iter().any(|(_, c)| c.server == IN_CLUSTER) {
                all.push((None, own_cluster()));
            }
        } else {
            all.retain(|(_, c)| c.server != IN_CLUSTER);
        }
        Ok(all)
    }

    /// The clusters that the caller may see, without credentials.
    pub(crate) async fn clusters(
        &self,
        guard: &Guard,
    ) -> Result<Vec<Authorized<Cluster, Get>>, ApiError> {
        let all = self.all_clusters().await?.into_iter();
        let shown = all.map(|(_, cluster)| sanitized(cluster));
        Ok(shown.filter_map(|c| guard.grant(c).ok()).collect())
    }

    /// What the controller sees of the cluster; `None`: it has nothing to do with it.
    pub(crate) async fn cluster_info<A>(
        &self,
        cluster: &Authorized<Cluster, A>,
    ) -> Option<ClusterInfo> {
        self.live.info(&cluster.server).await
    }

    /// The clusters scoped to the project; no further permission is needed, since they are part of
    /// it.
    pub(crate) async fn clusters_of<A>(
        &self,
        project: &Authorized<AppProject, A>,
    ) -> Result<Vec<Cluster>, ApiError> {
        let of_project = |c: &Cluster| c.project == project.metadata.name;
        let all = self.all_clusters().await?.into_iter();
        Ok(all
            .map(|(_, cluster)| sanitized(cluster))
            .filter(of_project)
            .collect())
    }

    /// The possible destinations, for a caller about to store an Application or a project.
    pub(crate) async fn destinations<T, A>(
        &self,
        _: &Authorized<T, A>,
    ) -> Result<Vec<Destination>, ApiError> {
        Ok(self.live.destinations())
    }

    /// The clusters of this address or name, to do `A` with all of them.
    ///
    /// # Errors
    /// "permission denied" if there is none or one of them is not permitted: who may not see a
    /// cluster does not learn whether it exists.
    pub(crate) async fn stored_clusters<A: Verb>(
        &self,
        guard: &Guard,
        key: &ClusterKey,
    ) -> Result<Vec<StoredCluster<A>>, ApiError> {
        let all = self.all_clusters().await?.into_iter();
        let grant = |(secret, cluster): (Option<SecretRecord>, Cluster)| {
            let cluster = guard.grant(cluster).map_err(|_| ApiError::denied())?;
            Ok(StoredCluster { secret, cluster })
        };
        let granted: Result<Vec<_>, ApiError> =
            all.filter(|(_, c)| key.fits(c)).map(grant).collect();
        granted.and_then(|found| match found.as_slice() {
            [] => Err(ApiError::denied()),
            _ => Ok(found),
        })
    }

    /// The cluster that is stored under this address, to replace it.
    pub(crate) async fn cluster_to_replace(
        &self,
        guard: &Guard,
        new: &Authorized<Cluster, Create>,
    ) -> Result<Option<StoredCluster<Create>>, ApiError> {
        let mut all = self.all_clusters().await?.into_iter();
        let is_same = |(secret, c): &(Option<SecretRecord>, Cluster)| {
            secret.is_some() && c.server == new.server
        };
        match all.find(is_same) {
            None => Ok(None),
            Some((secret, cluster)) => Ok(Some(StoredCluster {
                secret,
                cluster: guard.create(cluster)?,
            })),
        }
    }

    pub(crate) async fn create_cluster(
        &self,
        cluster: &Authorized<Cluster, Create>,
    ) -> Result<(), ApiError> {
        let is_disabled = !self
            .live
            .destinations()
            .iter()
            .any(|d| d.server == IN_CLUSTER);
        if cluster.server == IN_CLUSTER && is_disabled {
            return Err(ApiError::invalid(
                "cannot register cluster: in-cluster has been disabled",
            ));
        }
        let name = secret_name(&cluster.server)?;
        // The name is a hash of the address: what has it is something else, and must stay.
        match self.store.secret(&name).await {
            Ok(_) => Err(ApiError::new(
                Code::AlreadyExists,
                format!("cluster {:?} already exists", cluster.server),
            )),
            Err(StoreError::NotFound(_)) => {
                Ok(self.store.put_secret(&secret_of(cluster, None)?).await?)
            }
            Err(e) => Err(e.into()),
        }
    }

    /// Stores another state of a cluster. The caller needs the permission for where it is now and
    /// for where it will be.
    pub(crate) async fn update_cluster<A>(
        &self,
        guard: &Guard,
        old: StoredCluster<A>,
        new: &Cluster,
    ) -> Result<(), ApiError> {
        let _: Authorized<Cluster, Update> = guard.grant(old.cluster.into_inner())?;
        let _: Authorized<Cluster, Update> = guard.grant(new.clone())?;
        Ok(self.store.put_secret(&secret_of(new, old.secret)?).await?)
    }

    /// As Argo CD: a Secret that somebody else made stays theirs and is no cluster any more.
    pub(crate) async fn delete_cluster(
        &self,
        stored: StoredCluster<Delete>,
    ) -> Result<(), ApiError> {
        let Some(secret) = stored.secret else {
            let server = &stored.cluster.server;
            return Err(ApiError::not_found(format!("cluster {server:?} not found")));
        };
        let is_ours = secret
            .annotations
            .get(MANAGED_BY)
            .is_some_and(|by| by == MANAGED_BY_VALUE);
        let done = if is_ours {
            self.store.delete_secret(&secret.name).await
        } else {
            self.store.release_secret(&secret.name).await
        };
        Ok(done?)
    }

    /// Connects to a cluster that is about to be stored and asks its version. `doing` introduces
    /// what is wrong with the cluster or its address.
    pub(crate) async fn probe_cluster<A>(
        &self,
        cluster: &Authorized<Cluster, A>,
        doing: &str,
    ) -> Result<String, ApiError> {
        check_annotations(cluster)?;
        // The codes of a cluster are no codes of this call.
        let not_reached = |e: ApiError| {
            let error = ApiError::plain(e.message);
            error.within("failed to get server version").within(doing)
        };
        let mut secret = secret_of(cluster, None).map_err(not_reached)?;
        secret.name = format!("of cluster {:?}", cluster.name);
        self.live.probe(&secret).await.map_err(not_reached)
    }

    /// Another token of the service account that the cluster is managed with.
    pub(crate) async fn renew_token(
        &self,
        stored: &StoredCluster<Update>,
    ) -> Result<NewToken, ApiError> {
        let secret = secret_of(&stored.cluster, None)?;
        let token = &stored.cluster.config.bearer_token;
        self.live.renew_token(&secret, token).await
    }

    /// Withdraws the token that was replaced.
    pub(crate) async fn retire_token(
        &self,
        new: &Authorized<Cluster, Update>,
        old_token: &str,
        token: &NewToken,
    ) -> Result<(), ApiError> {
        let secret = secret_of(new, None)?;
        self.live.retire_token(&secret, old_token, token).await
    }
}

fn own_cluster() -> Cluster {
    Cluster {
        server: IN_CLUSTER.to_owned(),
        name: IN_CLUSTER_NAME.to_owned(),
        ..Default::default()
    }
}
