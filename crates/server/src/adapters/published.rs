//! What the Application controller has published: [`Published`], and the adapters for a controller
//! in this process ([`InProcess`]) and for none that could be read ([`Unpublished`]).

use crate::{ApiError, Code};
use async_trait::async_trait;
use futures::{StreamExt as _, stream::BoxStream};
use jiff::Timestamp;
use std::sync::Arc;
use tiphys_api::{
    cluster::ClusterInfo,
    resource::{ApplicationTree, ResourceDiff},
};
use tiphys_cluster::{AppKey, AppStates, clusters::Clusters};
use tiphys_rpc::heavy;

/// Trees as they change; an error is the last item.
pub type Trees = BoxStream<'static, Result<Arc<ApplicationTree>, ApiError>>;

/// Where the controller's state of Applications and clusters can be read. `Ok(None)`: it has not
/// published any.
#[async_trait]
pub trait Published: Send + Sync + 'static {
    async fn managed(&self, app: &AppKey) -> Result<Option<Arc<Vec<ResourceDiff>>>, ApiError>;
    async fn tree(&self, app: &AppKey) -> Result<Option<Arc<ApplicationTree>>, ApiError>;
    /// The tree now, if there is one, and after each change.
    fn watch_tree(&self, app: &AppKey) -> Trees;
    /// By the cluster's address.
    async fn cluster(&self, server: &str) -> Result<Option<ClusterInfo>, ApiError>;
}

/// The controller is in this process.
pub struct InProcess {
    pub states: AppStates,
    pub clusters: Clusters,
}

#[async_trait]
impl Published for InProcess {
    async fn managed(&self, app: &AppKey) -> Result<Option<Arc<Vec<ResourceDiff>>>, ApiError> {
        let state = self.states.get(app).filter(|state| state.is_compared());
        let Some(state) = state else {
            return Ok(None);
        };
        Ok(Some(heavy::run(move || Arc::new(state.managed())).await))
    }

    async fn tree(&self, app: &AppKey) -> Result<Option<Arc<ApplicationTree>>, ApiError> {
        Ok(self.states.get(app).map(|state| state.tree.clone()))
    }

    fn watch_tree(&self, app: &AppKey) -> Trees {
        let states = self.states.subscribe(app);
        let changes = futures::stream::unfold((states, true), |(mut states, first)| async move {
            if !first {
                states.changed().await.ok()?;
            }
            let state = states.borrow_and_update().clone();
            Some((state, (states, false)))
        });
        let published = changes.filter_map(|state| {
            std::future::ready((state.generation > 0).then(|| Ok(state.tree.clone())))
        });
        published.boxed()
    }

    async fn cluster(&self, server: &str) -> Result<Option<ClusterInfo>, ApiError> {
        let open = self.clusters.list();
        let live = open.iter().find(|c| c.destination.server == server);
        Ok(live.map(|live| live.info(Timestamp::now())))
    }
}

/// A controller in another process that shares nothing with this one; the text tells users why.
pub struct Unpublished(pub &'static str);

impl Unpublished {
    fn refusal(&self) -> ApiError {
        ApiError::new(Code::FailedPrecondition, self.0)
    }
}

#[async_trait]
impl Published for Unpublished {
    async fn managed(&self, _: &AppKey) -> Result<Option<Arc<Vec<ResourceDiff>>>, ApiError> {
        Err(self.refusal())
    }

    async fn tree(&self, _: &AppKey) -> Result<Option<Arc<ApplicationTree>>, ApiError> {
        Err(self.refusal())
    }

    fn watch_tree(&self, _: &AppKey) -> Trees {
        futures::stream::iter([Err(self.refusal())]).boxed()
    }

    async fn cluster(&self, _: &str) -> Result<Option<ClusterInfo>, ApiError> {
        Err(self.refusal())
    }
}
