//! Rocket.Chat: a login, then a message.

use super::http::{Request, exchange, succeed};
use super::slack::is_web_url;
use super::{SendError, Sent, World, config, lists, upstream};
use crate::{Destination, Notification, Service};
use serde_json::{Map, Value as Json};
use tiphys_gocompat::url::Url;

pub(super) fn send(
    service: &Service,
    notification: &Notification,
    to: &Destination,
    world: &mut World<'_>,
) -> Sent {
    let message = message(service, notification, to)?;
    let server = server(service.text("serverUrl"))?;
    let login = Request::post(format!("{server}/api/v1/login")).form(&[
        ("user", service.text("email")),
        ("password", service.text("password")),
    ]);
    let answer = exchange(world.transport, &login)?.json();
    let token = &answer["data"];
    let of = |name: &str| token[name].as_str().unwrap_or_default().to_owned();
    if answer["status"] != "success" {
        return upstream(refused(&answer));
    }
    let request = Request::post(format!("{server}/api/v1/chat.postMessage"))
        .json(&message)
        .header("X-Auth-Token", of("authToken"))
        .header("X-User-Id", of("userId"));
    let answer = succeed(world.transport, &request)?.json();
    if answer["success"].as_bool().unwrap_or_default() {
        return Ok(());
    }
    upstream(refused(&answer))
}

fn refused(answer: &Json) -> String {
    let texts = ["error", "message"]
        .iter()
        .filter_map(|name| answer[*name].as_str());
    let why = texts.into_iter().find(|text| !text.is_empty());
    why.unwrap_or("the answer is not Rocket.Chat's").to_owned()
}

fn message(
    service: &Service,
    notification: &Notification,
    to: &Destination,
) -> Result<Json, SendError> {
    let mut message = Map::new();
    let mut put = |name: &str, value: &str| {
        if !value.is_empty() {
            message.insert(name.to_owned(), value.into());
        }
    };
    put("alias", service.text("alias"));
    put("text", &notification.message);
    let channel = to.recipient.starts_with(['#', '@']);
    put(if channel { "channel" } else { "roomId" }, &to.recipient);
    let icon = service.text("icon");
    if icon.len() > 2 && icon.starts_with(':') && icon.ends_with(':') {
        put("emoji", icon);
    }
    if is_web_url(service.text("avatar")) {
        put("avatar", service.text("avatar"));
    }
    let text = notification
        .part("rocketchat")
        .map_or("", |part| part.text("attachments"));
    if !text.is_empty() {
        match lists::maps(text) {
            Ok(items) if items.is_empty() => {}
            Ok(items) => {
                message.insert("attachments".into(), items.into());
            }
            Err(error) => {
                return config(format!(
                    "failed to unmarshal attachments '{text}' : {error}"
                ));
            }
        }
    }
    Ok(message.into())
}

/// The server with its port.
fn server(url: &str) -> Result<String, SendError> {
    let Ok(url) = Url::parse(url.as_bytes()) else {
        return config("serverUrl is not a URL");
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (scheme, mut host) = (text(&url.scheme), text(&url.host));
    if !host.contains(':') {
        host.push_str(if scheme == "https" { ":443" } else { ":80" });
    }
    Ok(format!(
        "{scheme}://{host}{}",
        text(&url.path).trim_end_matches('/')
    ))
}
