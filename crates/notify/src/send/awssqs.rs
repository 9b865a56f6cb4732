//! Amazon SQS: a message in a queue.

use super::http::{Request, succeed};
use super::sigv4::Signer;
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
    if key.is_empty() || secret.is_empty() {
        return config("key and secret are missing: this program has no credentials of its own");
    }
    let region = service.text("region");
    if region.is_empty() {
        return config("region is missing");
    }
    let endpoint = match service.text("endpointUrl") {
        "" => format!("https://sqs.{region}.amazonaws.com/"),
        own => own.to_owned(),
    };
    let Ok(url) = Url::parse(endpoint.as_bytes()) else {
        return config("endpointUrl is not a URL");
    };
    let host = String::from_utf8_lossy(&url.host).into_owned();
    let path = match String::from_utf8_lossy(&url.path).as_ref() {
        "" => "/".to_owned(),
        own => own.to_owned(),
    };
    let signer = Signer {
        id: key,
        secret,
        region,
        service: "sqs",
        now: world.now,
    };
    let mut ask = |action: &str, body: &Json| {
        let request = Request::post(&endpoint)
            .header("Content-Type", "application/x-amz-json-1.0")
            .header("X-Amz-Target", format!("AmazonSQS.{action}"))
            .body(json::to_string(body));
        let request = signer.signed(request, &host, &path);
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
