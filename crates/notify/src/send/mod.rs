//! What is sent to services, request by request.
//!
//! Main function: [`send`]; main types: [`Transport`], which carries requests and mails, and
//! [`SendError`]. One file has the conversation of each service.

mod alertmanager;
mod awssqs;
mod email;
mod gcppubsub;
pub(crate) mod github;
mod googlechat;
mod http;
mod lists;
mod nats;
mod newrelic;
mod opsgenie;
mod pagerduty;
mod pushover;
mod rocketchat;
mod simple;
mod slack;
mod teams;
mod teams_workflows;
mod telegram;
mod webhook;

pub use email::Mail;
pub use http::{Request, Response, Signer, Transport};
pub use nats::Published;
pub use slack::Threads;

use crate::{Config, Destination, Notification, Outcome, Service, Subject};
use jiff::Timestamp;

/// Why a notification was not delivered. The text has no secrets: where a URL has some, only its
/// host is named.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The configuration or the template does not fit the service.
    #[error("{0}")]
    Config(String),
    /// The service did not answer, or refused.
    #[error("{0}")]
    Upstream(String),
    /// The service has as many entries for the revision as it takes; another try will not help.
    #[error("{0}")]
    TooMany(String),
}

type Sent = Result<(), SendError>;

fn config<T>(message: impl Into<String>) -> Result<T, SendError> {
    Err(SendError::Config(message.into()))
}

fn upstream<T>(message: impl Into<String>) -> Result<T, SendError> {
    Err(SendError::Upstream(message.into()))
}

/// What sending needs of the world.
pub struct World<'w> {
    pub transport: &'w mut dyn Transport,
    /// Where threads of Slack began, remembered as long as the process lives.
    pub threads: &'w mut Threads,
    pub now: Timestamp,
    /// Fills bytes by chance.
    pub random: &'w mut dyn FnMut(&mut [u8]),
}

/// Sends a notification.
///
/// # Errors
/// If it was not delivered.
pub fn send(
    service: &Service,
    notification: &Notification,
    to: &Destination,
    world: &mut World<'_>,
) -> Result<(), SendError> {
    match service.kind() {
        "webhook" => webhook::send(service, notification, to, world),
        "slack" => slack::send(service, notification, to, world),
        "email" => email::send(service, notification, to, world),
        "teams" => teams::send(service, notification, to, world),
        "teams-workflows" => teams_workflows::send(service, notification, to, world),
        "telegram" => telegram::send(service, notification, to, world),
        "grafana" => simple::grafana(service, notification, to, world),
        "mattermost" => simple::mattermost(service, notification, to, world),
        "webex" => simple::webex(service, notification, to, world),
        "opsgenie" => opsgenie::send(service, notification, to, world),
        "pagerduty" => pagerduty::incident(service, notification, to, world),
        "pagerdutyv2" => pagerduty::event(service, notification, to, world),
        "newrelic" => newrelic::send(service, notification, to, world),
        "alertmanager" => alertmanager::send(service, notification, world),
        "rocketchat" => rocketchat::send(service, notification, to, world),
        "googlechat" => googlechat::send(service, notification, to, world),
        "pushover" => pushover::send(service, notification, to, world),
        "github" => github::send(service, notification, world),
        "awssqs" => awssqs::send(service, notification, to, world),
        "gcppubsub" => gcppubsub::send(service, notification, to, world),
        "nats" => nats::send(service, notification, to, world),
        other => config(format!("notifications of type {other} can not be sent yet")),
    }
}

/// Whether messages are signed with what only this process has: its identity at a cloud provider,
/// or a file. Those who configure a namespace may not use it.
fn is_of_process(service: &Service) -> bool {
    match service.kind() {
        "awssqs" => service.text("key").is_empty() && service.text("secret").is_empty(),
        "gcppubsub" => true,
        _ => false,
    }
}

/// Renders templates for a destination and sends the notification.
pub fn deliver(
    subject: &Subject<'_>,
    templates: &[String],
    to: &Destination,
    random: tiphys_gocompat::sprig::Random,
    world: &mut World<'_>,
) -> Outcome {
    let config: &Config = subject.config;
    let service = match config.services.get(&to.service) {
        Some(Ok(service)) => service,
        Some(Err(error)) => return Outcome::Failed(error.to_string()),
        None => {
            return Outcome::NoService(format!(
                "notification service '{}' is not supported",
                to.service
            ));
        }
    };
    if config.key_namespace().is_some() && is_of_process(service) {
        return Outcome::Failed(format!(
            "the configuration of a namespace cannot send as the controller: {} needs keys of its own",
            service.kind()
        ));
    }
    let notification = match Notification::render(subject, templates, to, random) {
        Ok(notification) => notification,
        Err(error) => return Outcome::Failed(error.to_string()),
    };
    match send(service, &notification, to, world) {
        Ok(()) => Outcome::Sent,
        Err(error @ SendError::TooMany(_)) => Outcome::Refused(error.to_string()),
        Err(error) => Outcome::Failed(error.to_string()),
    }
}
