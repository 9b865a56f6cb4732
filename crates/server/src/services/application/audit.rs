//! Audit of who did what to an Application: Kubernetes events and a log line, with Argo CD's
//! messages.

use crate::{auth::Caller, ports::EventRecord, state::State};
use std::collections::BTreeMap;
use tiphys_api::Application;

pub const OPERATION_STARTED: &str = "OperationStarted";
pub const RESOURCE_CREATED: &str = "ResourceCreated";
pub const RESOURCE_UPDATED: &str = "ResourceUpdated";
pub const RESOURCE_ACTION_RAN: &str = "ResourceActionRan";
pub const RESOURCE_DELETED: &str = "ResourceDeleted";

pub fn user(caller: &Caller) -> &str {
    match caller.username() {
        "" => "Unknown user",
        name => name,
    }
}

/// `action` follows the user's name in the message.
pub async fn app(
    state: &State,
    caller: &Caller,
    app: &Application,
    reason: &'static str,
    action: &str,
) {
    let user = user(caller);
    let (m, destination) = (&app.metadata, &app.spec.destination);
    let annotations = [
        ("dest-server", destination.server.as_str()),
        ("dest-namespace", &destination.namespace),
        ("user", user),
    ];
    let event = EventRecord {
        api_kind: "Application",
        name: m.name.clone(),
        namespace: m.namespace.clone(),
        uid: m.uid.clone(),
        resource_version: m.resource_version.clone(),
        reason,
        message: format!("{user} {action}"),
        annotations: BTreeMap::from(annotations.map(|(k, v)| (k.to_owned(), v.to_owned()))),
    };
    record(state, event).await;
}

/// Failing to store the event does not fail the operation it describes.
pub async fn record(state: &State, event: EventRecord) {
    tracing::info!(
        kind = event.api_kind,
        name = event.name,
        reason = event.reason,
        "{}",
        event.message
    );
    if let Err(e) = state.reach.record_event(event).await {
        tracing::warn!(error = %e, "the event was not stored");
    }
}
