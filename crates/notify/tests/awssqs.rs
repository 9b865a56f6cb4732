//! Amazon SQS: what is sent for which configuration, and which answers are failures.

use crate::broken::{load, random, subject};
use serde_json::{Value, json};
use std::time::Duration;
use tiphys_notify::send::{
    Mail, Published, Request, Response, Signer, Threads, Transport, World, deliver,
};
use tiphys_notify::{Destination, Outcome};

/// A queue's service, which answers the second request with this status.
struct Queues {
    requests: Vec<Request>,
    second: u16,
}

impl Transport for Queues {
    fn exchange(&mut self, request: &Request) -> Result<Response, String> {
        self.requests.push(request.clone());
        let (status, body) = match self.requests.len() {
            1 => (
                200,
                json!({"QueueUrl": "https://sqs.eu-west-1.amazonaws.com/12/q"}),
            ),
            _ => (
                self.second,
                json!({"MessageId": "m", "message": "no such queue"}),
            ),
        };
        Ok(Response {
            status,
            body: body.to_string().into_bytes(),
            ..Response::default()
        })
    }

    fn mail(&mut self, _: &Mail) -> Result<(), String> {
        Err("no mails".into())
    }

    fn publish(&mut self, _: &Published) -> Result<(), String> {
        Err("no messages".into())
    }

    fn wait(&mut self, _: Duration) {}
}

fn sent(service: &str, template: &str, recipient: &str, second: u16) -> (Outcome, Vec<Request>) {
    let config = load(&[("service.awssqs", service), ("template.t", template)]);
    let app = json!({"metadata": {"name": "shop"}});
    let subject = subject(&config, &app);
    let mut queues = Queues {
        requests: Vec::new(),
        second,
    };
    let mut world = World {
        transport: &mut queues,
        threads: &mut Threads::default(),
        now: "2026-01-02T03:04:05Z".parse().expect("a time"),
        random: &mut |bytes| bytes.fill(0),
    };
    let to = Destination {
        service: "awssqs".to_owned(),
        recipient: recipient.to_owned(),
    };
    let outcome = deliver(&subject, &["t".to_owned()], &to, random(), &mut world);
    (outcome, queues.requests)
}

const KEYS: &str = "region: eu-west-1\nkey: AKID\nsecret: $tok\nqueue: q";
const TEMPLATE: &str = "message: '{{.app.metadata.name}} is well'";

#[test]
fn a_message_is_put_into_the_queue() {
    let group = format!("{TEMPLATE}\nawssqs: {{messageGroupId: '{{{{.app.metadata.name}}}}-g'}}");
    let own = format!("{KEYS}\naccount: '12'\nendpointUrl: http://127.0.0.1:4566/base");
    let aws = "https://sqs.eu-west-1.amazonaws.com/";
    let cases = [
        (KEYS, TEMPLATE, "", aws, json!({"QueueName": "q"}), None),
        (
            KEYS,
            TEMPLATE,
            "mine",
            aws,
            json!({"QueueName": "mine"}),
            None,
        ),
        (
            own.as_str(),
            group.as_str(),
            "",
            "http://127.0.0.1:4566/base",
            json!({"QueueName": "q", "QueueOwnerAWSAccountId": "12"}),
            Some("shop-g"),
        ),
    ];
    for (service, template, recipient, url, asked, group) in cases {
        let (outcome, requests) = sent(service, template, recipient, 200);
        assert_eq!(outcome, Outcome::Sent);
        let mut message = json!({
            "QueueUrl": "https://sqs.eu-west-1.amazonaws.com/12/q",
            "MessageBody": "shop is well", "DelaySeconds": 10,
        });
        if let Some(group) = group {
            message["MessageGroupId"] = group.into();
        }
        let expected = [("GetQueueUrl", asked), ("SendMessage", message)];
        assert_eq!(requests.len(), expected.len());
        for (request, (action, body)) in requests.iter().zip(expected) {
            let header = |name: &str| {
                let found = request.headers.iter().find(|(own, _)| own == name);
                found.map_or("", |(_, value)| value.as_str())
            };
            assert_eq!(
                (request.method.as_str(), request.url.as_str()),
                ("POST", url)
            );
            assert_eq!(header("X-Amz-Target"), format!("AmazonSQS.{action}"));
            assert_eq!(header("Content-Type"), "application/x-amz-json-1.0");
            let signer = Signer::Aws {
                region: "eu-west-1".to_owned(),
                service: "sqs",
                keys: Some(("AKID".to_owned(), "s3cret".to_owned())),
            };
            assert!(request.signer == signer, "the signer");
            let sent: Value = serde_json::from_slice(&request.body).expect("JSON");
            assert_eq!(sent, body);
        }
    }
}

#[test]
fn what_cannot_be_sent_is_told_without_secrets() {
    for (service, second, asked, told) in [
        (
            "region: x\nqueue: q\nkey: a",
            200,
            0,
            "key and secret belong together",
        ),
        ("key: a\nsecret: b\nqueue: q", 200, 0, "region is missing"),
        (KEYS, 400, 2, "no such queue"),
        (KEYS, 500, 2, "error code 500"),
    ] {
        let (outcome, requests) = sent(service, TEMPLATE, "", second);
        let Outcome::Failed(problem) = outcome else {
            panic!("{service}: {outcome:?}");
        };
        assert!(problem.contains(told), "{problem}");
        assert!(!problem.contains("s3cret"), "{problem}");
        assert_eq!(requests.len(), asked, "{service}");
    }
}

#[test]
fn without_keys_the_process_signs() {
    let (outcome, requests) = sent("region: eu-west-1\nqueue: q", TEMPLATE, "", 200);
    assert_eq!(outcome, Outcome::Sent);
    for request in requests {
        let is_own = matches!(request.signer, Signer::Aws { keys: None, .. });
        assert!(is_own, "no keys");
    }
}
