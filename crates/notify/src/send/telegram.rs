//! Telegram: messages of a bot.

use super::http::{Request, exchange};
use super::{SendError, Sent, World, config, upstream};
use crate::{Destination, Notification, Service};
use serde_json::Value as Json;

pub(super) fn send(
    service: &Service,
    notification: &Notification,
    to: &Destination,
    world: &mut World<'_>,
) -> Sent {
    call(service, "getMe", &[], world)?;
    let mut fields = vec![
        ("business_connection_id", String::new()),
        ("entities", "null".to_owned()),
        ("link_preview_options", "{}".to_owned()),
        ("parse_mode", "Markdown".to_owned()),
        ("reply_parameters", "{\"message_id\":0}".to_owned()),
        ("text", notification.message.clone()),
    ];
    let number = |text: &str| {
        text.parse::<i64>()
            .or_else(|_| config(format!("the chat {text:?} is not a number")))
    };
    if to.recipient.starts_with('-') {
        let mut parts = to.recipient.split('|');
        let chat = number(parts.next().unwrap_or_default())?;
        fields.push(("chat_id", chat.to_string()));
        if let Some(thread) = parts.next() {
            match number(thread)? {
                0 => {}
                thread => fields.push(("message_thread_id", thread.to_string())),
            }
        }
    } else {
        fields.push(("chat_id", format!("@{}", to.recipient)));
    }
    call(service, "sendMessage", &fields, world).map(drop)
}

fn call(
    service: &Service,
    method: &str,
    fields: &[(&str, String)],
    world: &mut World<'_>,
) -> Result<Json, SendError> {
    let url = format!(
        "https://api.telegram.org/bot{}/{method}",
        service.text("token")
    );
    let fields: Vec<(&str, &str)> = fields.iter().map(|(n, v)| (*n, v.as_str())).collect();
    let answer = exchange(world.transport, &Request::post(url).form(&fields))?.json();
    if answer["ok"].as_bool().unwrap_or_default() {
        return Ok(answer);
    }
    let why = answer["description"]
        .as_str()
        .unwrap_or("the answer is not Telegram's");
    upstream(format!("{method}: {why}"))
}
