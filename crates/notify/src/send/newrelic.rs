//! New Relic: markers of deployments.

use super::http::{Request, exchange};
use super::{Sent, World, config};
use crate::{Destination, Notification, Service};
use serde_json::json;

pub(super) fn send(
    service: &Service,
    notification: &Notification,
    to: &Destination,
    world: &mut World<'_>,
) -> Sent {
    if service.text("apiKey").is_empty() {
        return config("apiKey is missing");
    }
    let Some(part) = notification.part("newrelic") else {
        return config("config is missing");
    };
    let mut deployment = json!({"revision": part.text("revision")});
    let description = match part.text("description") {
        "" => notification.message.as_str(),
        own => own,
    };
    for (name, value) in [
        ("changelog", part.text("changelog")),
        ("description", description),
        ("user", part.text("user")),
    ] {
        if !value.is_empty() {
            deployment[name] = value.into();
        }
    }
    let api = match service.text("apiURL") {
        "" => "https://api.newrelic.com",
        own => own.strip_suffix('/').unwrap_or(own),
    };
    let url = format!("{api}/v2/applications/{}/deployments.json", to.recipient);
    let request = Request::post(url)
        .json(&json!({"deployment": deployment}))
        .header("X-Api-Key", service.text("apiKey"))
        .insecure(service.flag("insecureSkipVerify"));
    // Unlike Argo CD, a refusal is an error.
    let answer = exchange(world.transport, &request)?;
    if answer.is_success() {
        return Ok(());
    }
    super::upstream(super::http::failed(&request, &answer))
}
