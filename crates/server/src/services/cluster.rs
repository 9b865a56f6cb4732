//! The read calls of cluster.ClusterService.

use crate::{
    ApiError,
    access::{Authorized, Get, Guard},
    server::State,
};
use std::sync::Arc;
use tiphys_api::{
    cluster::{Cluster, ClusterList},
    rpc::cluster::ClusterQuery,
};
use tiphys_rpc::table::percent_decode;

/// The server or the name in a query.
fn wanted(q: &ClusterQuery) -> (String, String) {
    match &q.id {
        Some(id) => match id.type_.as_str() {
            "name" => (String::new(), id.value.clone()),
            "name_escaped" => (String::new(), percent_decode(&id.value)),
            _ => (id.value.clone(), String::new()),
        },
        None => (q.server.clone(), q.name.clone()),
    }
}

/// Fills in the deprecated fields that repeat the cluster's info.
fn complete(state: &State, cluster: Authorized<Cluster, Get>) -> Cluster {
    let mut cluster = cluster.into_inner();
    let serves = |app: &tiphys_api::Application| {
        let d = &app.spec.destination;
        d.server == cluster.server || (!d.name.is_empty() && d.name == cluster.name)
    };
    let count = state.reach.count_apps(serves);
    cluster.info.applications_count = i64::try_from(count).unwrap_or(i64::MAX);
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
    let (server, name) = wanted(&q);
    let all = state
        .reach
        .clusters(&guard)
        .await
        .map_err(|e| e.context("failed to list clusters"))?;
    let matching = all.into_iter().filter(|c| {
        (server.is_empty() || c.server == server) && (name.is_empty() || c.name == name)
    });
    Ok(ClusterList {
        items: matching.map(|c| complete(&state, c)).collect(),
        ..Default::default()
    })
}

/// A missing cluster gets the same error as one that the caller may not see.
pub async fn get(state: Arc<State>, guard: Guard, q: ClusterQuery) -> Result<Cluster, ApiError> {
    let (server, name) = wanted(&q);
    let all = state
        .reach
        .clusters(&guard)
        .await
        .map_err(|e| e.context("failed to list clusters"))?;
    let found = all.into_iter().find(|c| {
        if server.is_empty() {
            !name.is_empty() && c.name == name
        } else {
            c.server == server
        }
    });
    found
        .map(|c| complete(&state, c))
        .ok_or_else(ApiError::denied)
}
