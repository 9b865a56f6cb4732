//! NATS: a message for a subject.

use super::{Sent, World, config, upstream};
use crate::{Destination, Notification, Service};

/// A message, and the server it is handed to. It has secrets and is not printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Published {
    /// Of one server, or of several, separated by commas.
    pub url: String,
    /// The seed of a key; empty: none.
    pub nkey: String,
    /// Empty: the server is not told who sends, unless the URL says so.
    pub username: String,
    pub password: String,
    pub headers: Vec<(String, String)>,
    pub subject: String,
    pub data: String,
}

pub(super) fn send(
    service: &Service,
    notification: &Notification,
    to: &Destination,
    world: &mut World<'_>,
) -> Sent {
    let url = service.text("url");
    if url.is_empty() {
        return config("url is missing");
    }
    let subject = to.recipient.as_str();
    if subject.is_empty() || subject.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return config(format!("{subject:?} is not a subject of NATS"));
    }
    let headers = service.get("headers").as_object();
    let headers = headers.into_iter().flatten();
    let headers = headers
        .filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())))
        .collect();
    let (username, password) = (service.text("username"), service.text("password"));
    let with_password = !username.is_empty() && !password.is_empty();
    let of = |text: &str| if with_password { text } else { "" }.to_owned();
    let message = Published {
        url: url.to_owned(),
        nkey: service.text("nkey").to_owned(),
        username: of(username),
        password: of(password),
        headers,
        subject: subject.to_owned(),
        data: notification.message.clone(),
    };
    world.transport.publish(&message).or_else(upstream)
}
