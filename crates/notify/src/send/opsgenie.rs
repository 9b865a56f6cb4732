//! Opsgenie: alerts for a team.

use super::http::{Request, succeed};
use super::{Sent, World, config};
use crate::{Destination, Notification, Service};
use serde_json::{Map, Value as Json, json};

pub(super) fn send(
    service: &Service,
    notification: &Notification,
    to: &Destination,
    world: &mut World<'_>,
) -> Sent {
    let team = &to.recipient;
    let Some(key) = service.entry("apiKeys", team) else {
        return config(format!("no API key configured for recipient {team}"));
    };
    if notification.message.is_empty() {
        return config("message can not be empty");
    }
    let mut alert = Map::new();
    alert.insert("message".into(), notification.message.as_str().into());
    alert.insert(
        "responders".into(),
        json!([{"type": "team", "id": team, "username": ""}]),
    );
    alert.insert("source".into(), "Argo CD".into());
    if let Some(part) = notification.part("opsgenie") {
        if part.text("description").is_empty() {
            return config("opsgenie notification description is missing");
        }
        for name in ["description", "priority", "alias", "note", "entity", "user"] {
            if !part.text(name).is_empty() {
                alert.insert(name.into(), part.text(name).into());
            }
        }
        for name in ["actions", "tags", "details"] {
            if let Some(value) = part.get(name).filter(|value| !is_empty(value)) {
                alert.insert(name.into(), value.clone());
            }
        }
        if let Some(Json::Array(visible)) = part.get("visibleTo").filter(|v| !is_empty(v)) {
            alert.insert("visibleTo".into(), visible.iter().map(responder).collect());
        }
    }
    let host = match service.text("apiUrl") {
        "" => "api.opsgenie.com",
        // With the scheme, too: people write it.
        own => own
            .strip_prefix("https://")
            .unwrap_or(own)
            .trim_end_matches('/'),
    };
    let request = Request::post(format!("https://{host}/v2/alerts"))
        .header("Content-Type", "application/json; charset=utf-8")
        .header("Authorization", format!("GenieKey {key}"))
        .body(tiphys_gocompat::json::to_string(&alert.into()))
        .insecure(service.flag("insecureSkipVerify"));
    succeed(world.transport, &request).map(drop)
}

fn is_empty(value: &Json) -> bool {
    match value {
        Json::Array(items) => items.is_empty(),
        Json::Object(members) => members.is_empty(),
        other => other.is_null(),
    }
}

/// Without empty fields, but always with a user name.
fn responder(given: &Json) -> Json {
    let mut responder = Map::new();
    for name in ["type", "name", "id", "username"] {
        let text = given[name].as_str().unwrap_or_default();
        if !text.is_empty() || name == "username" {
            responder.insert(name.into(), text.into());
        }
    }
    responder.into()
}
