//! Services that take one request: Grafana, Mattermost, Webex.

use super::http::{Request, exchange, failed, succeed};
use super::{Sent, World, config, lists, upstream};
use crate::{Destination, Notification, Service};
use serde_json::json;
use tiphys_gocompat::{regex::Regex, url::Url};

/// An annotation of dashboards; the recipient is a list of tags.
pub(super) fn grafana(
    service: &Service,
    notification: &Notification,
    to: &Destination,
    world: &mut World<'_>,
) -> Sent {
    let tags: Vec<&str> = to.recipient.split('|').collect();
    let Ok(mut url) = Url::parse(service.text("apiUrl").as_bytes()) else {
        return config("apiUrl is not a URL");
    };
    while url.path.last() == Some(&b'/') {
        url.path.pop();
    }
    url.path.extend_from_slice(b"/annotations");
    let annotation = json!({
        "time": world.now.as_second() * 1000,
        "isRegion": false,
        "tags": tags,
        "text": notification.message,
    });
    let request = Request::post(String::from_utf8_lossy(&url.write()))
        .json(&annotation)
        .bearer(service.text("apiKey"))
        .insecure(service.flag("insecureSkipVerify"));
    wants_ok(&request, world)
}

fn wants_ok(request: &Request, world: &mut World<'_>) -> Sent {
    let answer = exchange(world.transport, request)?;
    if answer.status == 200 {
        return Ok(());
    }
    upstream(failed(request, &answer))
}

pub(super) fn mattermost(
    service: &Service,
    notification: &Notification,
    to: &Destination,
    world: &mut World<'_>,
) -> Sent {
    let text = notification
        .part("mattermost")
        .map_or("", |part| part.text("attachments"));
    let attachments = match lists::items(text) {
        Ok(attachments) => attachments,
        Err(error) => {
            return config(format!(
                "failed to unmarshal attachments '{text}' : {error}"
            ));
        }
    };
    let post = json!({
        "channel_id": to.recipient,
        "message": notification.message,
        "props": {"attachments": attachments},
    });
    let request = Request::post(format!("{}/api/v4/posts", service.text("apiURL")))
        .json(&post)
        .bearer(service.text("token"))
        .insecure(service.flag("insecureSkipVerify"));
    succeed(world.transport, &request).map(drop)
}

pub(super) fn webex(
    service: &Service,
    notification: &Notification,
    to: &Destination,
    world: &mut World<'_>,
) -> Sent {
    let api = match service.text("apiURL") {
        "" => "https://webexapis.com",
        own => own.strip_suffix('/').unwrap_or(own),
    };
    let is_mail = Regex::new(r"^\S+@\S+\.\S+$").is_ok_and(|mail| mail.is_match(&to.recipient));
    let mut message = json!({});
    for (name, value) in [
        (
            if is_mail { "toPersonEmail" } else { "roomId" },
            &to.recipient,
        ),
        ("markdown", &notification.message),
    ] {
        if !value.is_empty() {
            message[name] = value.as_str().into();
        }
    }
    let request = Request::post(format!("{api}/v1/messages"))
        .json(&message)
        .bearer(service.text("token"))
        .insecure(service.flag("insecureSkipVerify"));
    wants_ok(&request, world)
}
