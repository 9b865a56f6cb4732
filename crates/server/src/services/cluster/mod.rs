//! cluster.ClusterService.

mod write;

pub use write::{create, delete, invalidate_cache, rotate_auth, update};

use crate::{
    ApiError,
    access::{Authorized, ClusterKey, Guard},
    state::State,
};
use jiff::Timestamp;
use std::sync::Arc;
use tiphys_api::{
    cluster::{Cluster, ClusterInfo, ClusterList, ConnectionState},
    rpc::cluster::ClusterQuery,
};
use tiphys_rpc::table::percent_decode;

/// The clusters that a query is about.
fn key(q: &ClusterQuery) -> ClusterKey {
    let (server, name) = match &q.id {
        Some(id) => match id.type_.as_str() {
            "name" => (String::new(), id.value.clone()),
            "name_escaped" => (String::new(), percent_decode(&id.value)),
            _ => (id.value.clone(), String::new()),
        },
        None => (q.server.clone(), q.name.clone()),
    };
    ClusterKey { server, name }
}

/// What is known of the cluster: what the controller sees, else what the last connection showed.
async fn info_of<A>(state: &State, cluster: &Authorized<Cluster, A>) -> ClusterInfo {
    let seen = state.reach.cluster_info(cluster).await;
    match seen {
        Some(info) if info.connection_state.status != "Unknown" => info,
        seen => {
            let probed = state.probes.get(&cluster.server).or(seen);
            probed.unwrap_or_else(unknown)
        }
    }
}

/// The info of a cluster that nothing has been deployed to yet.
fn unknown() -> ClusterInfo {
    ClusterInfo {
        connection_state: ConnectionState {
            status: "Unknown".into(),
            message: "Cluster has no applications and is not being monitored.".into(),
            attempted_at: Some(Timestamp::now().into()),
        },
        ..Default::default()
    }
}

/// Fills in the info, and the deprecated fields that repeat it.
fn complete(state: &State, mut cluster: Cluster, info: ClusterInfo) -> Cluster {
    let serves = |app: &tiphys_api::Application| {
        let d = &app.spec.destination;
        d.server == cluster.server || (!d.name.is_empty() && d.name == cluster.name)
    };
    cluster.info = info;
    if cluster.info.applications_count == 0 {
        let count = state.reach.count_apps(serves);
        cluster.info.applications_count = i64::try_from(count).unwrap_or(i64::MAX);
    }
    cluster
        .server_version
        .clone_from(&cluster.info.server_version);
    cluster.connection_state = cluster.info.connection_state.clone();
    cluster
}

pub async fn list(
    state: Arc<State>,
    guard: Guard,
    q: ClusterQuery,
) -> Result<ClusterList, ApiError> {
    let wanted = key(&q);
    let all = state
        .reach
        .clusters(&guard)
        .await
        .map_err(|e| e.context("failed to list clusters"))?;
    let matching = all.into_iter().filter(|c| {
        (wanted.server.is_empty() || c.server == wanted.server)
            && (wanted.name.is_empty() || c.name == wanted.name)
    });
    let mut items = Vec::new();
    for cluster in matching {
        let info = info_of(&state, &cluster).await;
        items.push(complete(&state, cluster.into_inner(), info));
    }
    Ok(ClusterList {
        items,
        ..Default::default()
    })
}

/// A missing cluster gets the same error as one that the caller may not see.
pub async fn get(state: Arc<State>, guard: Guard, q: ClusterQuery) -> Result<Cluster, ApiError> {
    let wanted = key(&q);
    let all = state
        .reach
        .clusters(&guard)
        .await
        .map_err(|e| e.context("failed to list clusters"))?;
    let found = all.into_iter().find(|c| wanted.fits(c));
    let cluster = found.ok_or_else(ApiError::denied)?;
    let info = info_of(&state, &cluster).await;
    Ok(complete(&state, cluster.into_inner(), info))
}
