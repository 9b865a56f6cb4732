//! Messages for Pub/Sub and NATS: what is sent for which configuration.

use crate::broken::{of, random, subject};
use serde_json::{Value, json};
use std::time::Duration;
use tiphys_notify::send::{
    Mail, Published, Request, Response, Signer, Threads, Transport, World, deliver,
};
use tiphys_notify::{Destination, Outcome};

/// Services that answer with a status, and what they were sent.
#[derive(Default)]
struct Services {
    status: u16,
    requests: Vec<Request>,
    messages: Vec<Published>,
}

impl Transport for Services {
    fn exchange(&mut self, request: &Request) -> Result<Response, String> {
        self.requests.push(request.clone());
        Ok(Response {
            status: self.status,
            body: br#"{"messageIds": ["1"]}"#.to_vec(),
            ..Response::default()
        })
    }

    fn mail(&mut self, _: &Mail) -> Result<(), String> {
        Err("no mails".into())
    }

    fn publish(&mut self, message: &Published) -> Result<(), String> {
        self.messages.push(message.clone());
        match self.status {
            200 => Ok(()),
            _ => Err("nats: no".into()),
        }
    }

    fn wait(&mut self, _: Duration) {}
}

const TEMPLATE: &str = "message: '{{.app.metadata.name}} is well'";

fn sent(
    kind: &str,
    (service, template): (&str, &str),
    recipient: &str,
    status: u16,
) -> (Outcome, Services) {
    sent_by(false, kind, (service, template), recipient, status)
}

/// By the configuration of a namespace with `self_service`.
fn sent_by(
    self_service: bool,
    kind: &str,
    (service, template): (&str, &str),
    recipient: &str,
    status: u16,
) -> (Outcome, Services) {
    let entries = [
        (&*format!("service.{kind}"), service),
        ("template.t", template),
    ];
    let config = of(&entries, self_service);
    let app = json!({"metadata": {"name": "shop"}});
    let subject = subject(&config, &app);
    let mut services = Services {
        status,
        ..Services::default()
    };
    let mut world = World {
        transport: &mut services,
        threads: &mut Threads::default(),
        now: "2026-01-02T03:04:05Z".parse().expect("a time"),
        random: &mut |bytes| bytes.fill(0),
    };
    let to = Destination {
        service: kind.to_owned(),
        recipient: recipient.to_owned(),
    };
    let outcome = deliver(&subject, &["t".to_owned()], &to, random(), &mut world);
    (outcome, services)
}

#[test]
fn a_topic_of_pub_sub_gets_a_message() {
    let attributes = format!(
        "{TEMPLATE}\ngcppubsub: {{attributes: {{name: '{{{{.app.metadata.name}}}}', kind: app}}}}"
    );
    let own = "project: p1\ntopic: t1\nkeyFile: /keys/a.json";
    let data = "c2hvcCBpcyB3ZWxs";
    for (service, template, recipient, topic, key_file, message) in [
        (
            "project: p1\ntopic: t1",
            TEMPLATE,
            "",
            "t1",
            "",
            json!({"data": data}),
        ),
        (
            own,
            TEMPLATE,
            "mine",
            "mine",
            "/keys/a.json",
            json!({"data": data}),
        ),
        (
            own,
            attributes.as_str(),
            "",
            "t1",
            "/keys/a.json",
            json!({"data": data, "attributes": {"name": "shop", "kind": "app"}}),
        ),
        (
            "project: p1",
            TEMPLATE,
            "a/b:x",
            "a%2Fb%3Ax",
            "",
            json!({"data": data}),
        ),
    ] {
        let (outcome, services) = sent("gcppubsub", (service, template), recipient, 200);
        assert_eq!(outcome, Outcome::Sent);
        let [request] = services.requests.as_slice() else {
            panic!("one request");
        };
        let url = format!("https://pubsub.googleapis.com/v1/projects/p1/topics/{topic}:publish");
        assert_eq!(
            (request.method.as_str(), request.url.as_str()),
            ("POST", url.as_str())
        );
        let body: Value = serde_json::from_slice(&request.body).expect("JSON");
        assert_eq!(body, json!({"messages": [message]}));
        let signer = Signer::Google {
            key_file: key_file.to_owned(),
        };
        assert!(request.signer == signer, "the signer");
    }
}

#[test]
fn a_subject_of_nats_gets_a_message() {
    let message = |headers: &[(&str, &str)], user: &str, nkey: &str| Published {
        url: "nats://nats:4222".to_owned(),
        nkey: nkey.to_owned(),
        username: user.to_owned(),
        password: if user.is_empty() { "" } else { "s3cret" }.to_owned(),
        headers: headers
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
        subject: "apps.shop".to_owned(),
        data: "shop is well".to_owned(),
    };
    for (service, expected) in [
        ("", message(&[], "", "")),
        ("username: u\npassword: $tok", message(&[], "u", "")),
        // As Argo CD: without a password there is no user.
        ("username: u", message(&[], "", "")),
        ("nkey: $tok", message(&[], "", "s3cret")),
        (
            "headers: {b: '2', a: '1'}",
            message(&[("a", "1"), ("b", "2")], "", ""),
        ),
    ] {
        let service = format!("url: nats://nats:4222\n{service}");
        let (outcome, services) = sent("nats", (&service, TEMPLATE), "apps.shop", 200);
        assert_eq!(outcome, Outcome::Sent);
        assert!(services.messages == [expected], "{service}");
    }
}

#[test]
fn what_cannot_be_sent_is_told_without_secrets() {
    let nats = "url: nats://u:s3cret@nats";
    for (kind, service, recipient, status, asked, told) in [
        ("gcppubsub", "topic: t", "", 200, 0, "project is missing"),
        ("gcppubsub", "project: p", "", 200, 0, "topic is missing"),
        (
            "gcppubsub",
            "project: p\ntopic: t",
            "",
            403,
            1,
            "POST to https://pubsub.googleapis.com has failed with error code 403",
        ),
        ("nats", "username: u", "s", 200, 0, "url is missing"),
        ("nats", nats, "", 200, 0, "\"\" is not a subject of NATS"),
        (
            "nats",
            nats,
            "a b",
            200,
            0,
            "\"a b\" is not a subject of NATS",
        ),
        ("nats", nats, "a\r\nPUB", 200, 0, "is not a subject of NATS"),
        ("nats", nats, "s", 500, 1, "nats: no"),
    ] {
        let (outcome, services) = sent(kind, (service, TEMPLATE), recipient, status);
        let Outcome::Failed(problem) = outcome else {
            panic!("{service}: {outcome:?}");
        };
        assert!(problem.contains(told), "{problem}");
        assert!(!problem.contains("s3cret"), "{problem}");
        assert_eq!(
            services.requests.len() + services.messages.len(),
            asked,
            "{service}"
        );
    }
}

/// Those who configure a namespace send as themselves only.
#[test]
fn a_namespace_does_not_send_as_the_controller() {
    let keys = "region: r\nqueue: q\nkey: a\nsecret: b";
    for (kind, service, is_refused) in [
        ("awssqs", "region: r\nqueue: q", true),
        ("awssqs", keys, false),
        ("gcppubsub", "project: p\ntopic: t", true),
        (
            "gcppubsub",
            "project: p\ntopic: t\nkeyFile: /keys/a.json",
            true,
        ),
        ("nats", "url: nats://nats", false),
    ] {
        for self_service in [true, false] {
            let (outcome, services) = sent_by(self_service, kind, (service, TEMPLATE), "s", 200);
            let asked = services.requests.len() + services.messages.len();
            if self_service && is_refused {
                let Outcome::Failed(problem) = outcome else {
                    panic!("{service}: {outcome:?}");
                };
                let told = "the configuration of a namespace cannot send as the controller";
                assert!(problem.starts_with(told), "{problem}");
                assert_eq!(asked, 0, "{service}");
            } else {
                assert!(asked > 0, "{kind} {service} {self_service}");
            }
        }
    }
}
