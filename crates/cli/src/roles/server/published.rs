//! The controller's state in Redis, as the API server's ports. Main type: [`InRedis`].

use async_trait::async_trait;
use futures::StreamExt as _;
use std::sync::Arc;
use tiphys_api::{
    cluster::ClusterInfo,
    resource::{ApplicationTree, ResourceDiff},
};
use tiphys_cluster::AppKey;
use tiphys_controllers::redis::{ReadError, Reader};
use tiphys_server::{
    ApiError, Code,
    adapters::{Published, Trees},
    ports::SharedSessions,
};

pub struct InRedis {
    pub reader: Reader,
    /// The control plane's.
    pub namespace: String,
}

impl InRedis {
    fn instance(&self, app: &AppKey) -> String {
        app.instance(&self.namespace)
    }
}

fn failed(e: ReadError) -> ApiError {
    ApiError::new(Code::Unavailable, e.to_string())
}

#[async_trait]
impl Published for InRedis {
    async fn managed(&self, app: &AppKey) -> Result<Option<Arc<Vec<ResourceDiff>>>, ApiError> {
        let read = self.reader.managed(&self.instance(app)).await;
        Ok(read.map_err(failed)?.map(Arc::new))
    }

    async fn tree(&self, app: &AppKey) -> Result<Option<Arc<ApplicationTree>>, ApiError> {
        let read = self.reader.tree(&self.instance(app)).await;
        Ok(read.map_err(failed)?.map(Arc::new))
    }

    fn watch_tree(&self, app: &AppKey) -> Trees {
        let trees = self.reader.watch_tree(&self.instance(app));
        trees.map(|tree| tree.map(Arc::new).map_err(failed)).boxed()
    }

    async fn cluster(&self, server: &str) -> Result<Option<ClusterInfo>, ApiError> {
        self.reader.cluster(server).await.map_err(failed)
    }
}

#[async_trait]
impl SharedSessions for InRedis {
    fn is_revoked(&self, id: &str) -> bool {
        self.reader.is_revoked(id)
    }

    async fn revoke(&self, id: &str, seconds: i64) -> Result<(), ApiError> {
        self.reader.revoke(id, seconds).await.map_err(failed)
    }
}
