//! What makes an Application OutOfSync, and who. Main functions: [`changed_by_others`] and
//! [`leaving`].

use jiff::Timestamp;
use serde_json::Value;
use std::sync::Arc;
use tiphys_api::{constants, status::ResourceStatus};
use tiphys_apimachinery::ResourceKey;
use tiphys_engine::{
    diff,
    types::{Comparison, Entry},
};

/// Our own field managers.
pub const OURS: [&str; 4] = [
    constants::FIELD_MANAGER,
    "kubectl-create",
    "kubectl-replace",
    "argocd-application-controller",
];

/// Resources that require pruning and are already being deleted: a finalizer holds them, and
/// another sync would not speed it up.
pub fn leaving(comparison: &Comparison) -> Vec<&ResourceKey> {
    let pruned = comparison.entries.iter().filter(|e| e.requires_pruning);
    let is_deleted = |e: &&Arc<Entry>| {
        e.live
            .as_ref()
            .is_some_and(|live| live.object().deletion_timestamp().is_some())
    };
    pruned.filter(is_deleted).map(|e| &e.key).collect()
}

pub(super) fn is_leaving(resource: &ResourceStatus, leaving: &[&ResourceKey]) -> bool {
    leaving.iter().any(|key| is_of(key, resource))
}

fn is_of(key: &ResourceKey, resource: &ResourceStatus) -> bool {
    let key = [&key.group, &key.kind, &key.namespace, &key.name];
    key == [
        &resource.group,
        &resource.kind,
        &resource.namespace,
        &resource.name,
    ]
}

/// Whether someone else deleted a resource, owns a field in which it differs, or has written to it
/// since.
pub fn changed_by_others(
    comparison: &Comparison,
    resource: &ResourceStatus,
    since: Option<Timestamp>,
) -> bool {
    let Some(entry) = comparison.entries.iter().find(|e| is_of(&e.key, resource)) else {
        return false;
    };
    let Some(live) = entry.live.as_ref().map(|live| live.object()) else {
        return true;
    };
    let written = live
        .metadata("managedFields")
        .and_then(Value::as_array)
        .is_some_and(|list| list.iter().any(|entry| wrote_another(entry, since)));
    written
        || diff::why(&entry.diff.read(), &live)
            .iter()
            .flat_map(|reason| &reason.owners)
            .any(|o| !OURS.contains(&o.manager.as_str()))
}

/// Whether an entry of `managedFields` says that someone else wrote something else than the status
/// since then.
pub fn wrote_another(entry: &Value, since: Option<Timestamp>) -> bool {
    let text = |field: &str| entry.get(field).and_then(Value::as_str).unwrap_or_default();
    let time = text("time").parse::<Timestamp>().ok();
    let other = !OURS.contains(&text("manager")) && text("subresource") != "status";
    other && time.zip(since).is_some_and(|(time, since)| time >= since)
}
