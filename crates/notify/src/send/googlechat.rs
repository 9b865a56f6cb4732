//! Google Chat: messages and cards to webhooks.

use super::http::{Request, exchange, failed, query};
use super::{SendError, Sent, World, config, upstream};
use crate::typed::{self, Typed};
use crate::{Destination, Notification, Service};
use serde_json::{Map, Value as Json, json};
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
    // A page of a proxy in between is no delivery, whatever its status.
    let Ok(told) = serde_json::from_slice::<Map<String, Json>>(&answer.body) else {
        return upstream(match answer.is_success() {
            true => "the answer is not Google Chat's".to_owned(),
            false => failed(&request, &answer),
        });
    };
    let error = told.get("error").unwrap_or(&Json::Null);
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
        cards_in(text(name))
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

fn cards_in(text: &str) -> Typed<Vec<Json>> {
    let cards = typed::list(&typed::document(text)?)?;
    let card = |card: &Json| Ok(with_texts("", typed::map(card)?.into()));
    cards.iter().map(card).collect()
}

/// The fields of cards that hold numbers and flags.
const NOT_TEXTS: &[&str] = &[
    "allWidgetsAreRequired",
    "alpha",
    "aspectRatio",
    "blue",
    "characterLimit",
    "collapsible",
    "columnCount",
    "contentMultiline",
    "cornerRadius",
    "defaultToCurrentSpace",
    "disabled",
    "enabled",
    "fill",
    "grade",
    "green",
    "includeVariables",
    "maxLines",
    "multiSelectMaxSelectedItems",
    "multiSelectMinQueryLength",
    "persistValues",
    "red",
    "selected",
    "timezoneOffsetDate",
    "uncollapsibleWidgetsCount",
    "weight",
    "wrapText",
];

/// A field of a card with texts where Google wants texts, and refuses anything else: for YAML a
/// revision may be a number, and `yes` a flag.
fn with_texts(name: &str, value: Json) -> Json {
    match value {
        Json::Object(members) => members
            .into_iter()
            .map(|(name, value)| {
                let value = with_texts(&name, value);
                (name, value)
            })
            .collect::<Map<_, _>>()
            .into(),
        Json::Array(items) => items
            .into_iter()
            .map(|item| with_texts(name, item))
            .collect(),
        Json::Bool(_) | Json::Number(_) if !NOT_TEXTS.contains(&name) => {
            typed::text(&value).map_or(value, Json::from)
        }
        other => other,
    }
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
