//! Implementations of the ports: records and live objects with the `cluster` crate, sources with
//! the `sources` crate.

mod live;
mod no_catalog;
mod published;
mod records;
mod sets;
mod sources;

pub use live::ClusterLive;
pub use no_catalog::NoCatalog;
pub use published::{InProcess, Published, Trees, Unpublished};
pub use records::RecordStore;
pub use sets::RecordSets;
pub use sources::RepoSources;

use crate::{ApiError, Code};
use serde_json::{Value, json};
use std::sync::Arc;
use tiphys_api::rpc::events::EventList;
use tiphys_cluster::{
    Cluster,
    request::{Call, encode},
};

/// Converts a cluster's error to an API error.
fn of_cluster(e: tiphys_cluster::Error) -> ApiError {
    let code = match e.code() {
        Some(400) => Code::FailedPrecondition,
        Some(422) => Code::InvalidArgument,
        Some(401) => Code::Unauthenticated,
        Some(403) => Code::PermissionDenied,
        Some(404) => Code::NotFound,
        Some(409) if e.is_already_exists() => Code::AlreadyExists,
        Some(409) => Code::Aborted,
        Some(429) => Code::ResourceExhausted,
        Some(_) => Code::Internal,
        None if matches!(e, tiphys_cluster::Error::UnknownKind { .. }) => Code::NotFound,
        None if e.retryable() => Code::Unavailable,
        None => Code::Unknown,
    };
    ApiError::new(code, e.to_string())
}

/// Events of a namespace, read from the API server as this user, or as ourselves.
async fn events(
    cluster: &Cluster,
    user: Option<Arc<str>>,
    namespace: &str,
    field_selector: &str,
) -> Result<EventList, ApiError> {
    // Events about cluster-scoped objects are in this namespace.
    let namespace = if namespace.is_empty() {
        "default"
    } else {
        namespace
    };
    let mut call = Call::get(format!("/api/v1/namespaces/{}/events", encode(namespace)))
        .query("fieldSelector", field_selector);
    call.impersonate = user;
    let mut list: Value = cluster.http().json(&call).await.map_err(of_cluster)?;
    // Clients don't need the managed fields of events.
    for item in list["items"].as_array_mut().into_iter().flatten() {
        item["metadata"]
            .as_object_mut()
            .map(|m| m.remove("managedFields"));
    }
    let read = json!({"metadata": list["metadata"].take(), "items": list["items"].take()});
    serde_json::from_value(read)
        .map_err(|e| ApiError::internal(format!("cannot read the events: {e}")))
}
