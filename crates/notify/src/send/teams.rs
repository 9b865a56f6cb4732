//! Microsoft Teams: cards to incoming webhooks.

use super::http::{Request, exchange};
use super::{SendError, Sent, World, config, lists, upstream};
use crate::{Destination, Notification, Service};
use serde_json::{Map, Value as Json, json};

pub(super) fn send(
    service: &Service,
    notification: &Notification,
    to: &Destination,
    world: &mut World<'_>,
) -> Sent {
    let recipient = &to.recipient;
    let Some(url) = service.entry("recipientUrls", recipient) else {
        return config(format!(
            "no teams webhook configured for recipient {recipient}"
        ));
    };
    let request = Request::post(url)
        .header("Content-Type", "application/json")
        .body(message(notification)?)
        .insecure(service.flag("insecureSkipVerify"));
    let answer = exchange(world.transport, &request)?;
    if answer.text() == "1" {
        return Ok(());
    }
    let text: String = answer.text().chars().take(500).collect();
    upstream(format!("teams webhook post error: {text}"))
}

fn message(notification: &Notification) -> Result<String, SendError> {
    let part = notification.part("teams");
    let text = |name: &str| part.map_or("", |part| part.text(name));
    if !text("template").is_empty() {
        return Ok(text("template").to_owned());
    }
    let mut message = Map::new();
    message.insert("@type".into(), "MessageCard".into());
    message.insert("context".into(), "https://schema.org/extensions".into());
    let body = match text("text") {
        "" => notification.message.as_str(),
        own => own,
    };
    for (name, value) in [
        ("title", text("title")),
        ("summary", text("summary")),
        ("text", body),
    ] {
        message.insert(name.into(), value.into());
    }
    if !text("themeColor").is_empty() {
        message.insert("themeColor".into(), text("themeColor").into());
    }
    let mut sections = list("teams sections", text("sections"))?;
    if !text("facts").is_empty() {
        sections.push(json!({"facts": list("teams facts", text("facts"))?}));
    }
    let actions = list("teams potential action", text("potentialAction"))?;
    for (name, items) in [("sections", sections), ("potentialAction", actions)] {
        if !items.is_empty() {
            message.insert(name.into(), items.into());
        }
    }
    Ok(tiphys_gocompat::json::to_string(&Json::Object(message)))
}

/// A list of maps in a text.
pub(super) fn list(what: &str, text: &str) -> Result<Vec<Json>, SendError> {
    lists::maps(text).or_else(|error| config(format!("{what} unmarshalling error {error}")))
}
