//! PagerDuty: incidents (the first API) and events (the second).

use super::http::{Request, succeed};
use super::{Sent, World, config, upstream};
use crate::{Destination, Notification, Service};
use serde_json::{Map, Value as Json, json};

/// Opens an incident; the recipient is the id of a service.
pub(super) fn incident(
    service: &Service,
    notification: &Notification,
    to: &Destination,
    world: &mut World<'_>,
) -> Sent {
    let Some(part) = notification.part("pagerduty") else {
        return config("no config found for pagerduty");
    };
    let mut priority = json!({"type": "priority"});
    if !part.text("priorityId").is_empty() {
        priority["id"] = part.text("priorityId").into();
    }
    let mut incident = json!({
        "type": "incident",
        "title": part.text("title"),
        "service": {"type": "service_reference"},
        "priority": priority,
        "body": {"type": "incident_details\t"},
    });
    if !to.recipient.is_empty() {
        incident["service"]["id"] = to.recipient.as_str().into();
    }
    if !part.text("urgency").is_empty() {
        incident["urgency"] = part.text("urgency").into();
    }
    if !part.text("body").is_empty() {
        incident["body"]["details"] = part.text("body").into();
    }
    let request = Request::post("https://api.pagerduty.com/incidents")
        .json(&json!({"incident": incident}))
        .header(
            "Authorization",
            format!("Token token={}", service.text("token")),
        )
        .header("From", service.text("from"));
    taken(&request, world)
}

/// Sends an event; the recipient names a key.
pub(super) fn event(
    service: &Service,
    notification: &Notification,
    to: &Destination,
    world: &mut World<'_>,
) -> Sent {
    let recipient = &to.recipient;
    let Some(key) = service.entry("serviceKeys", recipient) else {
        return config(format!("no API key configured for recipient {recipient}"));
    };
    let Some(part) = notification.part("pagerdutyv2") else {
        return config("no config found for pagerdutyv2");
    };
    let mut payload = json!({
        "summary": part.text("summary"),
        "source": part.text("source"),
        "severity": part.text("severity"),
    });
    for name in ["component", "group", "class"] {
        if !part.text(name).is_empty() {
            payload[name] = part.text(name).into();
        }
    }
    let mut event = json!({
        "routing_key": key,
        "event_action": "trigger",
        "client": "ArgoCD",
        "payload": payload,
    });
    for (name, field) in [("dedup_key", "dedupKey"), ("client_url", "url")] {
        if !part.text(field).is_empty() {
            event[name] = part.text(field).into();
        }
    }
    let request = Request::post("https://events.pagerduty.com/v2/enqueue").json(&event);
    taken(&request, world)
}

/// Sends. A page of a proxy in between is no delivery, whatever its status.
fn taken(request: &Request, world: &mut World<'_>) -> Sent {
    let answer = succeed(world.transport, request)?;
    match serde_json::from_slice::<Map<String, Json>>(&answer.body) {
        Ok(_) => Ok(()),
        Err(_) => upstream("the answer is not PagerDuty's"),
    }
}
