//! Google Chat: messages and cards to webhooks.

use super::http::{Request, exchange, query};
use super::{SendError, Sent, World, config, upstream};
use crate::typed;
use crate::{Destination, Notification, Service};
use serde_json::{Value as Json, json};
use tiphys_gocompat::url::Url;

pub(super) fn send(
    service: &Service,
    notification: &Notification,
    to: &Destination,
    world: &mut World<'_>,
) -> Sent {
    let recipient = &to.recipient;
    let Some(url) = service.entry("webhooks", recipient) else {
        return config(format!(
            "no Google chat webhook configured for recipient {recipient}"
        ));
    };
    let message = message(notification, world)?;
    let thread = notification
        .part("googlechat")
        .map_or("", |part| part.text("threadKey"));
    let request = Request::post(with_thread(url, thread)?)
        .json(&message)
        .insecure(service.flag("insecureSkipVerify"));
    let answer = exchange(world.transport, &request)?;
    let error = &answer.json()["error"];
    if error.is_null() && answer.is_success() {
        return Ok(());
    }
    let text = |name: &str| error[name].as_str().unwrap_or_default().to_owned();
    upstream(format!(
        "error with message: code={} status={} message={}",
        error["code"].as_i64().unwrap_or(i64::from(answer.status)),
        text("status"),
        text("message")
    ))
}

/// The URL with the thread in its query, whose fields are ordered then.
fn with_thread(url: &str, thread: &str) -> Result<String, SendError> {
    if thread.is_empty() {
        return Ok(url.to_owned());
    }
    let Ok(mut parsed) = Url::parse(url.as_bytes()) else {
        return config("the webhook is not a URL");
    };
    let old = String::from_utf8_lossy(&parsed.query).into_owned();
    let reply = "REPLY_MESSAGE_FALLBACK_TO_NEW_THREAD";
    let new = query(&[("threadKey", thread), ("messageReplyOption", reply)]);
    let mut fields: Vec<&str> = old.split('&').chain(new.split('&')).collect();
    fields.retain(|field| !field.is_empty());
    fields.sort_by_key(|field| field.split('=').next());
    parsed.query = fields.join("&").into_bytes();
    Ok(String::from_utf8_lossy(&parsed.write()).into_owned())
}

fn message(notification: &Notification, world: &mut World<'_>) -> Result<Json, SendError> {
    let part = notification.part("googlechat");
    let text = |name: &str| part.map_or("", |part| part.text(name));
    let cards = |name: &str| {
        typed::document(text(name))
            .and_then(|cards| typed::list(&cards))
            .or_else(|error| config(format!("cannot create message: {name}: {error}")))
    };
    let (old, new) = (cards("cards")?, cards("cardsV2")?);
    if text("cards").is_empty() && text("cardsV2").is_empty() {
        return Ok(json!({"text": notification.message}));
    }
    let mut message = json!({"text": ""});
    if !new.is_empty() {
        let with_id = |card: Json| json!({"cardId": id(world), "card": card});
        message["cardsV2"] = new.into_iter().map(with_id).collect();
    }
    if !old.is_empty() {
        message["cards"] = old.into();
    }
    Ok(message)
}

/// A random UUID.
fn id(world: &mut World<'_>) -> String {
    let mut bytes = [0; 16];
    (world.random)(&mut bytes);
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let (a, b, c) = (&hex[..8], &hex[8..12], &hex[12..16]);
    format!("{a}-{b}-{c}-{}-{}", &hex[16..20], &hex[20..])
}
