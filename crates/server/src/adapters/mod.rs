//! The ports, filled: records and live objects by the `cluster` crate, sources by the `sources` crate.

mod live;
mod records;
mod sources;

pub use live::ClusterLive;
pub use records::RecordStore;
pub use sources::RepoSources;

use crate::{ApiError, Code};
use serde_json::{Value, json};
use std::sync::Arc;
use tiphys_api::rpc::events::EventList;
use tiphys_cluster::{
    Cluster,
    request::{Call, encode},
};

/// What a cluster answered, as a caller hears it.
fn of_cluster(e: tiphys_cluster::Error) -> ApiError {
    let code = match e.code() {
        Some(400 | 422) => Code::InvalidArgument,
        Some(401) => Code::Unauthenticated,
        Some(403) => Code::PermissionDenied,
        Some(404) => Code::NotFound,
        Some(409) if e.is_already_exists() => Code::AlreadyExists,
        Some(409) => Code::Aborted,
        Some(429) => Code::ResourceExhausted,
        Some(_) => Code::Internal,
        None if e.retryable() => Code::Unavailable,
        None => Code::Unknown,
    };
    ApiError::new(code, e.to_string())
}

/// Events of a namespace, as the API server has them for this user, or for us.
async fn events(
    cluster: &Cluster,
    user: Option<Arc<str>>,
    namespace: &str,
    field_selector: &str,
) -> Result<EventList, ApiError> {
    // Events of what has no namespace are in this one.
    let namespace = if namespace.is_empty() {
        "default"
    } else {
        namespace
    };
    let mut call = Call::get(format!("/api/v1/namespaces/{}/events", encode(namespace)))
        .query("fieldSelector", field_selector);
    call.impersonate = user;
    let mut list: Value = cluster.http().json(&call).await.map_err(of_cluster)?;
    // A client asks for what has happened, not for how it was written down.
    for item in list["items"].as_array_mut().into_iter().flatten() {
        item["metadata"]
            .as_object_mut()
            .map(|m| m.remove("managedFields"));
    }
    let read = json!({"metadata": list["metadata"].take(), "items": list["items"].take()});
    serde_json::from_value(read)
        .map_err(|e| ApiError::internal(format!("cannot read the events: {e}")))
}
