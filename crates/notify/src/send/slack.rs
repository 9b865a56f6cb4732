//! Slack: messages, threads, and updates of messages.

use super::http::{Request, Response, exchange, failed, host, query};
use super::{SendError, Sent, World, config, lists, upstream};
use crate::notification::Part;
use crate::typed;
use crate::{Destination, Notification, Service};
use serde_json::{Map, Value as Json};
use std::{collections::BTreeMap, time::Duration};
use tiphys_gocompat::url::Url;

/// Most threads that are remembered.
const MOST_THREADS: usize = 10_000;

/// Where threads began, by channel and grouping key, and the ids of channels by name.
#[derive(Clone, Debug, Default)]
pub struct Threads {
    began: BTreeMap<(String, String), String>,
    channels: BTreeMap<String, String>,
}

impl Threads {
    /// Adds what others have learned.
    pub fn merge(&mut self, others: Self) {
        self.began.extend(others.began);
        self.channels.extend(others.channels);
    }
}

/// The fields that attachments have, in the order in which they are written.
const ATTACHMENT: &[&str] = &[
    "color",
    "fallback",
    "callback_id",
    "id",
    "author_id",
    "author_name",
    "author_subname",
    "author_link",
    "author_icon",
    "title",
    "title_link",
    "pretext",
    "text",
    "image_url",
    "thumb_url",
    "service_name",
    "service_icon",
    "from_url",
    "original_url",
    "fields",
    "actions",
    "mrkdwn_in",
    "blocks",
    "footer",
    "footer_icon",
    "ts",
];

pub(super) fn send(
    service: &Service,
    notification: &Notification,
    to: &Destination,
    world: &mut World<'_>,
) -> Sent {
    let part = notification.part("slack");
    let fields = fields(service, notification, part)?;
    let text = |name: &str| part.map_or("", |part| part.text(name));
    let (group, policy) = (text("groupingKey"), text("deliveryPolicy"));
    let broadcast = part
        .and_then(|part| part.get("notifyBroadcast"))
        .and_then(Json::as_bool)
        .unwrap_or_default();
    let thread = (to.recipient.clone(), group.to_owned());
    let began = world.threads.began.get(&thread).cloned();
    let began = began.filter(|_| !group.is_empty());
    let post = |began: Option<&String>, world: &mut World<'_>| {
        let mut fields = fields.clone();
        fields.extend(began.map(|began| ("thread_ts", began.clone())));
        fields.push(("channel", to.recipient.clone()));
        if broadcast {
            fields.push(("reply_broadcast", "true".into()));
        }
        let answer = call(service, "chat.postMessage", &fields, world)?;
        let answered = |name: &str| answer[name].as_str().unwrap_or_default().to_owned();
        if !group.is_empty() && began.is_none() && world.threads.began.len() < MOST_THREADS {
            world.threads.began.insert(thread.clone(), answered("ts"));
        }
        let channels = &mut world.threads.channels;
        if channels.len() < MOST_THREADS {
            channels.insert(to.recipient.clone(), answered("channel"));
        }
        Ok(())
    };
    let posts = began.is_none() || policy != "Update";
    if posts {
        post(began.as_ref(), world)?;
    }
    let Some(began) = began.filter(|_| policy != "Post" && !policy.is_empty()) else {
        return Ok(());
    };
    let channel = world.threads.channels.get(&to.recipient);
    let channel = channel.unwrap_or(&to.recipient).clone();
    let mut fields = fields.clone();
    fields.push(("thread_ts", began.clone()));
    fields.push(("channel", channel));
    fields.push(("ts", began));
    fields.push(("as_user", "true".into()));
    match call(service, "chat.update", &fields, world) {
        // What was told is not told again because of it.
        Err(_) if posts => Ok(()),
        Err(SendError::Upstream(why)) if GONE.iter().any(|gone| why.ends_with(gone)) => {
            post(None, world)
        }
        updated => updated.map(drop),
    }
}

/// Why a message can never be updated again.
const GONE: [&str; 3] = [
    "message_not_found",
    "cant_update_message",
    "edit_window_closed",
];
/// How often a call that comes too soon is made, and how long it may wait altogether.
const TRIES: usize = 5;
const LONGEST_WAIT: Duration = Duration::from_secs(60);

type Fields = Vec<(&'static str, String)>;

fn fields(
    service: &Service,
    notification: &Notification,
    part: Option<Part<'_>>,
) -> Result<Fields, SendError> {
    let given = |name: &str| {
        let own = part.map_or("", |part| part.text(name));
        if own.is_empty() {
            service.text(name)
        } else {
            own
        }
    };
    // Empty, too: an update takes the old text away.
    let mut fields: Fields = vec![("text", notification.message.clone())];
    let (username, icon) = (given("username"), given("icon"));
    if !username.is_empty() {
        fields.push(("username", username.to_owned()));
    }
    if icon.len() > 2 && icon.starts_with(':') && icon.ends_with(':') {
        fields.push(("icon_emoji", icon.to_owned()));
    } else if is_web_url(icon) {
        fields.push(("icon_url", icon.to_owned()));
    }
    if let Some(part) = part {
        let attachments = list(part, "attachments")?;
        let attachments = attachments.iter().map(attachment);
        fields.push((
            "attachments",
            format!("[{}]", attachments.collect::<Vec<_>>().join(",")),
        ));
        let blocks = list(part, "blocks")?;
        fields.push(("blocks", written(&Json::Array(blocks))));
    }
    if service.flag("disableUnfurl") {
        fields.push(("unfurl_links", "false".into()));
        fields.push(("unfurl_media", "false".into()));
    }
    Ok(fields)
}

pub(super) fn is_web_url(text: &str) -> bool {
    let web = |url: &Url| matches!(url.scheme.as_slice(), b"http" | b"https");
    Url::parse(text.as_bytes()).is_ok_and(|url| web(&url) && !url.host.is_empty())
}

fn list(part: Part<'_>, name: &str) -> Result<Vec<Json>, SendError> {
    let text = part.text(name);
    lists::maps(text)
        .or_else(|error| config(format!("failed to unmarshal {name} '{text}' : {error}")))
}

/// An attachment with the fields that Slack knows, in their order.
fn attachment(value: &Json) -> String {
    let empty = Map::new();
    let given = value.as_object().unwrap_or(&empty);
    let mut members = Vec::new();
    for name in ATTACHMENT {
        let value = match (*name, typed::field(given, name)) {
            ("blocks", None) => &Json::Null,
            (_, None) => continue,
            (_, Some(value)) => value,
        };
        let empty = match value {
            Json::String(text) => text.is_empty(),
            Json::Array(items) => items.is_empty(),
            Json::Null => *name != "blocks",
            _ => false,
        };
        if !empty {
            let value = match (*name, value) {
                ("fields", Json::Array(fields)) => fields_text(fields),
                _ => written(value),
            };
            members.push(format!("\"{name}\":{value}"));
        }
    }
    format!("{{{}}}", members.join(","))
}

fn fields_text(fields: &[Json]) -> String {
    let field = |field: &Json| {
        let empty = Map::new();
        let given = field.as_object().unwrap_or(&empty);
        let of = |name: &str| typed::field(given, name).unwrap_or(&Json::Null);
        let text = |name: &str| written(&of(name).as_str().unwrap_or_default().into());
        let short = of("short").as_bool().unwrap_or_default();
        let (title, value) = (text("title"), text("value"));
        format!("{{\"title\":{title},\"value\":{value},\"short\":{short}}}")
    };
    format!(
        "[{}]",
        fields.iter().map(field).collect::<Vec<_>>().join(",")
    )
}

fn written(value: &Json) -> String {
    match value {
        // The type of a block comes first, and of its texts.
        Json::Object(members) => {
            let mut members: Vec<(&String, &Json)> = members.iter().collect();
            members.sort_by_key(|(name, _)| *name != "type");
            let pairs = members.iter().map(|(name, value)| {
                format!("{}:{}", tiphys_gocompat::json::quote(name), written(value))
            });
            format!("{{{}}}", pairs.collect::<Vec<_>>().join(","))
        }
        Json::Array(items) => {
            let items = items.iter().map(written);
            format!("[{}]", items.collect::<Vec<_>>().join(","))
        }
        other => tiphys_gocompat::json::to_string(other),
    }
}

fn call(
    service: &Service,
    method: &str,
    fields: &[(&'static str, String)],
    world: &mut World<'_>,
) -> Result<Json, SendError> {
    let api = match service.text("apiURL") {
        "" => "https://slack.com/api/",
        own => own,
    };
    let mut all: Vec<(&str, &str)> = fields.iter().map(|(n, v)| (*n, v.as_str())).collect();
    all.push(("token", service.text("token")));
    let request = Request::post(format!("{api}{method}"))
        .header("Content-Type", "application/x-www-form-urlencoded")
        .body(query(&all))
        .insecure(service.flag("insecureSkipVerify"));
    let mut waited = Duration::ZERO;
    for _ in 1..TRIES {
        let response = exchange(world.transport, &request)?;
        let pause = response.retry_after.unwrap_or(Duration::from_secs(1));
        if response.status != 429 || waited + pause > LONGEST_WAIT {
            return answer_of(response, &request, method, api);
        }
        world.transport.wait(pause);
        waited += pause;
        if world.transport.is_over() {
            return answer_of(response, &request, method, api);
        }
    }
    let response = exchange(world.transport, &request)?;
    answer_of(response, &request, method, api)
}

fn answer_of(
    response: Response,
    request: &Request,
    method: &str,
    api: &str,
) -> Result<Json, SendError> {
    if !response.is_success() {
        return upstream(failed(request, &response));
    }
    let answer = response.json();
    if answer["ok"].as_bool().unwrap_or_default() {
        return Ok(answer);
    }
    let error = answer["error"]
        .as_str()
        .unwrap_or("the answer is not Slack's");
    upstream(format!("{method} of {}: {error}", host(api)))
}
