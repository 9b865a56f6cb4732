//! Amazon SQS: a message in a queue.

use super::http::{Request, Signer, succeed};
use super::{Sent, World, config, upstream};
use crate::{Destination, Notification, Service};
use serde_json::{Value as Json, json};
use tiphys_gocompat::{json, url::Url};

/// In seconds, as Argo CD's.
const DELAY: u32 = 10;

pub(super) fn send(
    service: &Service,
    notification: &Notification,
    to: &Destination,
    world: &mut World<'_>,
) -> Sent {
    let (key, secret) = (service.text("key"), service.text("secret"));
    let keys = match (key.is_empty(), secret.is_empty()) {
        (true, true) => None,
        (false, false) => Some((key.to_owned(), secret.to_owned())),
        _ => return config("key and secret belong together: one of them is missing"),
    };
    let region = service.text("region");
    if region.is_empty() {
        return config("region is missing");
    }
    let endpoint = match service.text("endpointUrl") {
        "" if region.starts_with("cn-") => format!("https://sqs.{region}.amazonaws.com.cn/"),
        "" => format!("https://sqs.{region}.amazonaws.com/"),
        own => own.to_owned(),
    };
    if Url::parse(endpoint.as_bytes()).is_err() {
        return config("endpointUrl is not a URL");
    }
    let mut ask = |action: &str, body: &Json| {
        let request = Request::post(&endpoint)
            .header("Content-Type", "application/x-amz-json-1.0")
            .header("X-Amz-Target", format!("AmazonSQS.{action}"))
            .body(json::to_string(body))
            .signed_by(Signer::Aws {
                region: region.to_owned(),
                service: "sqs",
                keys: keys.clone(),
            });
        succeed(world.transport, &request)
    };
    let name = match to.recipient.as_str() {
        "" => service.text("queue"),
        own => own,
    };
    let mut queue = json!({"QueueName": name});
    if !service.text("account").is_empty() {
        queue["QueueOwnerAWSAccountId"] = service.text("account").into();
    }
    let queue = ask("GetQueueUrl", &queue)?.json();
    let Some(queue) = queue["QueueUrl"].as_str() else {
        return upstream("the answer has no URL of the queue");
    };
    let mut message = json!({
        "QueueUrl": queue, "MessageBody": notification.message, "DelaySeconds": DELAY,
    });
    let group = notification.part("awssqs");
    let group = group.map_or("", |part| part.text("messageGroupId"));
    if !group.is_empty() {
        message["MessageGroupId"] = group.into();
    }
    ask("SendMessage", &message).map(drop)
}
