//! Google Cloud Pub/Sub: a message for a topic.

use super::http::{Request, Signer, succeed};
use super::{Sent, World, config};
use crate::urls::query_escape;
use crate::{Destination, Notification, Service};
use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::json;

const API: &str = "https://pubsub.googleapis.com/v1";

pub(super) fn send(
    service: &Service,
    notification: &Notification,
    to: &Destination,
    world: &mut World<'_>,
) -> Sent {
    let project = service.text("project");
    if project.is_empty() {
        return config("project is missing");
    }
    let topic = match to.recipient.as_str() {
        "" => service.text("topic"),
        own => own,
    };
    if topic.is_empty() {
        return config("topic is missing, and the subscription names none");
    }
    let mut message = json!({"data": STANDARD.encode(&notification.message)});
    let part = notification.part("gcppubsub");
    let attributes = part.and_then(|part| part.get("attributes"));
    if let Some(attributes) =
        attributes.filter(|its| its.as_object().is_some_and(|m| !m.is_empty()))
    {
        message["attributes"] = attributes.clone();
    }
    // No name has a space or a star, for which a query's escapes differ from a path's.
    let (project, topic) = (query_escape(project), query_escape(topic));
    let url = format!("{API}/projects/{project}/topics/{topic}:publish");
    let request = Request::post(url)
        .json(&json!({"messages": [message]}))
        .signed_by(Signer::Google {
            key_file: service.text("keyFile").to_owned(),
        });
    succeed(world.transport, &request).map(drop)
}
