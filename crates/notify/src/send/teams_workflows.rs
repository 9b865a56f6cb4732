//! Microsoft Teams: adaptive cards to workflows of Power Automate.

use super::http::{Request, exchange};
use super::teams::list;
use super::{SendError, Sent, World, config, upstream};
use crate::{Destination, Notification, Service};
use serde_json::{Map, Value as Json, json};
use tiphys_gocompat::{expr, regex::Regex, url::Url};

/// The URLs of workflows.
const WORKFLOWS: &str = concat!(
    r"^https?://([a-z0-9-]+\.)*(api\.powerautomate\.com|api\.powerplatform\.com",
    r"|flow\.microsoft\.com)(:\d+)?/|/powerautomate/|^https?://.*webhook\.office\.com/workflows"
);

pub(super) fn send(
    service: &Service,
    notification: &Notification,
    to: &Destination,
    world: &mut World<'_>,
) -> Sent {
    let recipient = &to.recipient;
    let Some(url) = service.entry("recipientUrls", recipient) else {
        return config(format!(
            "no teams-workflows webhook configured for recipient {recipient}"
        ));
    };
    if let Err(why) = check(url) {
        return config(format!(
            "invalid webhook URL for recipient {recipient}: {why}"
        ));
    }
    let payload = json!({
        "type": "message",
        "attachments": [{
            "contentType": "application/vnd.microsoft.card.adaptive",
            "content": card(notification)?,
        }],
    });
    let request = Request::post(url)
        .json(&payload)
        .insecure(service.flag("insecureSkipVerify"));
    let answer = exchange(world.transport, &request)?;
    if answer.is_success() {
        return Ok(());
    }
    let text: String = answer.text().chars().take(500).collect();
    upstream(format!(
        "teams workflows webhook post error (status {}): {text}",
        answer.status
    ))
}

fn check(url: &str) -> Result<(), String> {
    let parsed = Url::parse(url.as_bytes()).map_err(|_| "it can not be parsed")?;
    let host = String::from_utf8_lossy(parsed.hostname()).into_owned();
    let local = host == "localhost" || host.starts_with("127.");
    if parsed.scheme != b"https" && !(local && parsed.scheme == b"http") {
        return Err("webhook URL must use HTTPS scheme".into());
    }
    if host.is_empty() {
        return Err("webhook URL must have a valid host".into());
    }
    if !Regex::new(WORKFLOWS)?.is_match(url) {
        return Err(
            "webhook URL does not appear to be a valid Microsoft Teams Workflows URL \
                    (Power Automate)"
                .into(),
        );
    }
    Ok(())
}

fn card(notification: &Notification) -> Result<Json, SendError> {
    let part = notification.part("teams-workflows");
    let text = |name: &str| part.map_or("", |part| part.text(name));
    let own = text("adaptiveCard").trim();
    if !own.is_empty() {
        return serde_json::from_str(own).or_else(|error| {
            config(format!(
                "teams-workflows adaptiveCard unmarshalling error {error}"
            ))
        });
    }
    let mut body = Vec::new();
    if !text("title").is_empty() {
        let mut title = json!({
            "type": "TextBlock", "text": text("title"), "size": "Large", "weight": "Bolder",
            "wrap": true,
        });
        if !text("themeColor").is_empty() {
            title["color"] = text("themeColor").into();
        }
        body.push(title);
    }
    let message = match text("text") {
        "" => notification.message.as_str(),
        own => own,
    };
    if !message.is_empty() {
        body.push(json!({"type": "TextBlock", "text": message, "wrap": true}));
    }
    let sections = list("teams-workflows sections", text("sections"))?;
    let facts = list("teams-workflows facts", text("facts"))?;
    body.extend(fact_set(&facts));
    for section in &sections {
        if let Some(facts) = section["facts"].as_array() {
            body.extend(fact_set(facts));
        }
    }
    let mut card = Map::new();
    card.insert("type".into(), "AdaptiveCard".into());
    card.insert("version".into(), "1.4".into());
    card.insert("body".into(), body.into());
    let given = list("teams-workflows potential action", text("potentialAction"))?;
    let actions: Vec<Json> = given.iter().filter_map(action).collect();
    if !actions.is_empty() {
        card.insert("actions".into(), actions.into());
    }
    Ok(card.into())
}

fn fact_set(facts: &[Json]) -> Option<Json> {
    let fact = |fact: &Json| {
        let value = match &fact["value"] {
            Json::Null => String::new(),
            Json::String(text) => text.clone(),
            other => expr::display(&expr::Value::from_data(other)),
        };
        Some(json!({"title": fact["name"].as_str()?, "value": value}))
    };
    let facts: Vec<Json> = facts.iter().filter_map(fact).collect();
    (!facts.is_empty()).then(|| json!({"type": "FactSet", "facts": facts}))
}

/// A button that opens a page.
fn action(action: &Json) -> Option<Json> {
    if action["@type"] != "OpenUri" {
        return None;
    }
    let url = action["targets"][0]["uri"]
        .as_str()
        .filter(|url| !url.is_empty())?;
    let mut button = json!({"type": "Action.OpenUrl", "url": url});
    if let Some(name) = action["name"].as_str().filter(|name| !name.is_empty()) {
        button["title"] = name.into();
    }
    Some(button)
}
