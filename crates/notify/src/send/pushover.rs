//! Pushover: a message to a user or group.

use super::http::{Request, exchange};
use super::{Sent, World, config, upstream};
use crate::{Destination, Notification, Service};

/// The length of tokens and of keys of recipients.
const KEY: usize = 30;
/// Longest message, in characters.
const LONGEST: usize = 1024;

pub(super) fn send(
    service: &Service,
    notification: &Notification,
    to: &Destination,
    world: &mut World<'_>,
) -> Sent {
    let is_key = |key: &str| key.len() == KEY && key.bytes().all(|b| b.is_ascii_alphanumeric());
    let (token, message) = (service.text("token"), notification.message.as_str());
    if token.is_empty() {
        return config("pushover: empty API token");
    }
    if !is_key(token) {
        return config("pushover: invalid API token");
    }
    if !is_key(&to.recipient) {
        return config("pushover: invalid recipient token");
    }
    if message.is_empty() {
        return config("pushover: message empty");
    }
    if message.chars().count() > LONGEST {
        return config("pushover: message too long");
    }
    let request = Request::post("https://api.pushover.net/1/messages.json").form(&[
        ("token", token),
        ("user", &to.recipient),
        ("message", message),
        ("priority", "0"),
    ]);
    let answer = exchange(world.transport, &request)?;
    let answered = answer.json();
    if answered["status"] == 1 {
        return Ok(());
    }
    let errors = answered["errors"].as_array().into_iter().flatten();
    let texts: Vec<&str> = errors.filter_map(|error| error.as_str()).collect();
    upstream(format!(
        "pushover: status {}: {}",
        answer.status,
        texts.join(", ")
    ))
}
