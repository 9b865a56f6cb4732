//! The writing calls of cluster.ClusterService. What is stored has been connected to before.

use super::{complete, key};
use crate::{
    ApiError, Code,
    access::{ClusterKey, Delete, Guard, StoredCluster, Update, sanitized},
    services::concealed,
    state::State,
};
use jiff::Timestamp;
use std::sync::Arc;
use tiphys_api::{
    access::has_hidden,
    cluster::{Cluster, ClusterInfo, ConnectionState},
    constants::REFRESH,
    rpc::cluster::{ClusterCreateRequest, ClusterQuery, ClusterResponse, ClusterUpdateRequest},
};

const PROXY: &str = "cluster.config.proxyUrl";

fn missing() -> ApiError {
    ApiError::invalid("missing payload in request")
}

/// The program that gives a token runs beside the API server, so who may manage clusters of one
/// project only must not name one. `ask` asks about the cluster as one of no project.
fn check_program<T>(
    cluster: &Cluster,
    stored: Option<&Cluster>,
    ask: impl FnOnce(Cluster) -> Result<T, ApiError>,
) -> Result<(), ApiError> {
    let program = &cluster.config.exec_provider_config;
    let is_new = stored.is_none_or(|s| s.config.exec_provider_config != *program);
    if program.is_none() || !is_new {
        return Ok(());
    }
    let outside = Cluster {
        project: String::new(),
        ..cluster.clone()
    };
    ask(outside).map(drop).map_err(|_| {
        ApiError::new(
            Code::PermissionDenied,
            "config.execProviderConfig names a program, which needs the permission for clusters \
             of no project",
        )
    })
}

fn reached(version: String) -> ClusterInfo {
    ClusterInfo {
        connection_state: ConnectionState {
            status: "Successful".into(),
            message: String::new(),
            attempted_at: Some(Timestamp::now().into()),
        },
        server_version: version,
        ..Default::default()
    }
}

/// The answer about a cluster that was just connected to.
fn answer(state: &State, cluster: Cluster, version: String) -> Cluster {
    let info = reached(version);
    state.probes.put(&cluster.server, info.clone());
    complete(state, sanitized(cluster), info)
}

/// Whether nothing would change.
fn is_same(a: &Cluster, b: &Cluster) -> bool {
    let bare = |c: &Cluster| Cluster {
        info: ClusterInfo::default(),
        connection_state: ConnectionState::default(),
        server_version: String::new(),
        refresh_requested_at: None,
        ..c.clone()
    };
    bare(a) == bare(b)
}

pub async fn create(
    state: Arc<State>,
    guard: Guard,
    q: ClusterCreateRequest,
) -> Result<Cluster, ApiError> {
    let mut cluster = q.cluster.ok_or_else(missing)?;
    cluster.server = without_slash(&cluster.server);
    // With the mark they would be those of another cluster.
    concealed::of_url("cluster.server", &mut cluster.server, None)?;
    concealed::of_url("cluster.name", &mut cluster.name, None)?;
    if cluster.name.is_empty() {
        cluster.name.clone_from(&cluster.server);
    }
    let mut new = guard.create(cluster)?;
    check_program(&new, None, |c| guard.create(c))?;
    if new.server.trim().is_empty() {
        let why = "failed to get server version: the address of its API server is missing";
        return Err(ApiError::plain(why).within("error getting server version"));
    }
    let existing = state.reach.cluster_to_replace(&guard, &new).await?;
    if has_hidden(&new.config.proxy_url) {
        let mut complete = new.into_inner();
        let known = existing.as_ref();
        let known = known.map(|e| e.cluster.config.proxy_url.as_str());
        concealed::of_url(PROXY, &mut complete.config.proxy_url, known)?;
        new = guard.create(complete)?;
    }
    let version = state
        .reach
        .probe_cluster(&new, "error getting server version")
        .await?;
    match existing {
        None => state.reach.create_cluster(&new).await?,
        Some(existing) if is_same(&existing.cluster, &new) => {}
        Some(existing) if q.upsert => {
            state.reach.update_cluster(&guard, existing, &new).await?;
        }
        Some(_) => {
            return Err(ApiError::invalid(
                "existing cluster spec is different; use upsert flag to force update",
            ));
        }
    }
    Ok(answer(&state, new.into_inner(), version))
}

fn without_slash(server: &str) -> String {
    server.trim_end_matches('/').to_owned()
}

/// The fields that an update may name; others are not looked at, as in Argo CD.
fn set_field(name: &str, cluster: &mut Cluster, from: &Cluster) {
    match name {
        "name" => cluster.name.clone_from(&from.name),
        "namespaces" => cluster.namespaces.clone_from(&from.namespaces),
        "config" => cluster.config.clone_from(&from.config),
        "shard" => cluster.shard = from.shard,
        "clusterResources" => cluster.cluster_resources = from.cluster_resources,
        "labels" => cluster.labels.clone_from(&from.labels),
        "annotations" => cluster.annotations.clone_from(&from.annotations),
        "project" => cluster.project.clone_from(&from.project),
        _ => {}
    }
}

pub async fn update(
    state: Arc<State>,
    guard: Guard,
    q: ClusterUpdateRequest,
) -> Result<Cluster, ApiError> {
    let sent = q.cluster.ok_or_else(missing)?;
    let of = match q.id {
        Some(id) => key(&ClusterQuery {
            id: Some(id),
            ..Default::default()
        }),
        None => ClusterKey {
            server: sent.server.clone(),
            name: sent.name.clone(),
        },
    };
    let stored = one(&state, &guard, &of).await?;
    let mut new = if q.updated_fields.is_empty() {
        Cluster {
            server: Some(without_slash(&sent.server))
                .filter(|s| !s.is_empty())
                .unwrap_or_else(|| stored.cluster.server.clone()),
            ..sent
        }
    } else {
        let mut new = Cluster::clone(&stored.cluster);
        for field in &q.updated_fields {
            set_field(field, &mut new, &sent);
        }
        new
    };
    let (server, name) = (&stored.cluster.server, &stored.cluster.name);
    concealed::of_url("cluster.server", &mut new.server, Some(server))?;
    concealed::of_url("cluster.name", &mut new.name, Some(name))?;
    if new.server != stored.cluster.server {
        return Err(ApiError::invalid(format!(
            "server: the address of cluster {:?} cannot be changed; add the new one and remove the \
             old one",
            stored.cluster.server
        )));
    }
    let known = stored.cluster.config.proxy_url.as_str();
    concealed::of_url(PROXY, &mut new.config.proxy_url, Some(known))?;
    check_program(&new, Some(&stored.cluster), |c| guard.changed_cluster(c))?;
    let new = guard.changed_cluster(new).map_err(|_| ApiError::denied())?;
    let version = state
        .reach
        .probe_cluster(&new, "failed to get server version")
        .await?;
    state.reach.update_cluster(&guard, stored, &new).await?;
    Ok(answer(&state, new.into_inner(), version))
}

/// The one cluster that is meant; of several of one name, the first.
async fn one(
    state: &State,
    guard: &Guard,
    of: &ClusterKey,
) -> Result<StoredCluster<Update>, ApiError> {
    let found = state.reach.stored_clusters(guard, of).await?;
    found.into_iter().next().ok_or_else(ApiError::denied)
}

/// All clusters of a name are removed.
pub async fn delete(
    state: Arc<State>,
    guard: Guard,
    q: ClusterQuery,
) -> Result<ClusterResponse, ApiError> {
    let found: Vec<StoredCluster<Delete>> = state.reach.stored_clusters(&guard, &key(&q)).await?;
    for stored in found {
        state.probes.forget(&stored.cluster.server);
        state.reach.delete_cluster(stored).await?;
    }
    Ok(ClusterResponse {})
}

pub async fn rotate_auth(
    state: Arc<State>,
    guard: Guard,
    q: ClusterQuery,
) -> Result<ClusterResponse, ApiError> {
    let found: Vec<StoredCluster<Update>> = state.reach.stored_clusters(&guard, &key(&q)).await?;
    for stored in found {
        rotate(&state, &guard, stored).await?;
    }
    Ok(ClusterResponse {})
}

async fn rotate(
    state: &State,
    guard: &Guard,
    stored: StoredCluster<Update>,
) -> Result<(), ApiError> {
    let server = stored.cluster.server.clone();
    let old_token = stored.cluster.config.bearer_token.clone();
    if old_token.is_empty() {
        return Err(ApiError::invalid(format!(
            "Cluster '{server}' does not use bearer token authentication"
        )));
    }
    let token = state.reach.renew_token(&stored).await?;
    let mut new = Cluster::clone(&stored.cluster);
    new.config.bearer_token.clone_from(&token.token);
    // A client certificate would be used instead of the token.
    new.config.tls_client_config.cert_data.clear();
    new.config.tls_client_config.key_data.clear();
    let new = guard.changed_cluster(new)?;
    // The new token must work before the old one is withdrawn.
    let version = state
        .reach
        .probe_cluster(&new, "failed to get server version")
        .await?;
    state.reach.update_cluster(guard, stored, &new).await?;
    state.probes.put(&server, reached(version));
    state.reach.retire_token(&new, &old_token, &token).await?;
    tracing::info!(cluster = server, secret = token.secret, "Rotated auth");
    Ok(())
}

/// Has everything in the clusters read again.
pub async fn invalidate_cache(
    state: Arc<State>,
    guard: Guard,
    q: ClusterQuery,
) -> Result<Cluster, ApiError> {
    let stored = one(&state, &guard, &key(&q)).await?;
    let info = super::info_of(&state, &stored.cluster).await;
    let (mut new, now) = (Cluster::clone(&stored.cluster), Timestamp::now());
    new.refresh_requested_at = Some(now.into());
    let at = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    new.annotations.insert(REFRESH.to_owned(), at);
    state.reach.update_cluster(&guard, stored, &new).await?;
    Ok(complete(&state, sanitized(new), info))
}
