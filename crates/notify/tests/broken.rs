//! Broken entries of the configuration, and what messages tell of secrets.

use serde_json::json;
use std::{collections::BTreeMap, rc::Rc, time::Duration};
use tiphys_gocompat::expr::Clock;
use tiphys_notify::send::{Mail, Published, Request, Response, Threads, Transport, World, deliver};
use tiphys_notify::{
    CommitMetadata, Config, ConfigSource, Destination, Event, Ledger, Lookup, Outcome, Subject,
    Unavailable, destinations, evaluate,
};

struct Nothing;

impl Lookup for Nothing {
    fn commit(&self, _: &str, _: &str, _: &str) -> Result<CommitMetadata, Unavailable> {
        Err(Unavailable("no repository".into()))
    }

    fn details(&self, _: &serde_json::Value) -> Result<serde_json::Value, Unavailable> {
        Err(Unavailable("no repository".into()))
    }
}

pub fn load(entries: &[(&str, &str)]) -> Config {
    of(entries, false)
}

/// The configuration of a namespace of Applications with `self_service`.
pub fn of(entries: &[(&str, &str)], self_service: bool) -> Config {
    let config_map: BTreeMap<String, String> = entries
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect();
    let secret = BTreeMap::from([("tok".to_owned(), b"s3cret".to_vec())]);
    Config::load(ConfigSource {
        namespace: "argocd",
        config_map: &config_map,
        secret: &secret,
        self_service,
    })
}

pub fn subject<'c>(config: &'c Config, app: &'c serde_json::Value) -> Subject<'c> {
    Subject {
        config,
        app,
        project: None,
        lookup: Rc::new(Nothing),
        clock: Clock {
            now: "2024-03-01T10:10:00Z".parse().expect("a time"),
            zone: jiff::tz::TimeZone::UTC,
        },
    }
}

/// Answers every request alike.
pub struct Always(pub u16, pub &'static str);

impl Transport for Always {
    fn exchange(&mut self, _: &Request) -> Result<Response, String> {
        match self.0 {
            0 => Err("connection refused".into()),
            status => Ok(Response {
                status,
                body: self.1.as_bytes().to_vec(),
                ..Response::default()
            }),
        }
    }

    fn mail(&mut self, _: &Mail) -> Result<(), String> {
        Err("connection refused".into())
    }

    fn publish(&mut self, _: &Published) -> Result<(), String> {
        Err("no messages".into())
    }

    fn wait(&mut self, _: Duration) {}
}

pub fn random() -> tiphys_gocompat::sprig::Random {
    Box::new(|bytes| bytes.fill(0))
}

#[test]
fn a_broken_entry_does_not_silence_the_others() {
    let config = load(&[
        ("service.webhook.w", "url: http://hook.example.test"),
        ("service.nope", "a: b"),
        ("service.slack", "token: ["),
        ("service.webhook.a.b", "url: x"),
        ("template.good", "message: m"),
        ("template.bad", "message: '{{.a'"),
        ("template.worse", "- a"),
        ("trigger.good", "- when: 'true'\n  send: [good]"),
        ("trigger.bad", "- when: \"not a == 'b'\""),
        ("trigger.object", "when: 'true'"),
        (
            "subscriptions",
            "- recipients: [w:a]\n  selector: 'a in ('\n- recipients: [w:b]\n  triggers: [good, bad]",
        ),
    ]);
    let keys: Vec<&str> = config.problems.iter().map(|p| p.key.as_str()).collect();
    assert_eq!(
        keys,
        [
            "service.nope",
            "service.slack",
            "service.webhook.a.b",
            "subscriptions",
            "template.bad",
            "template.worse",
            "trigger.bad",
            "trigger.object"
        ]
    );
    let app = json!({"metadata": {"name": "a"}});
    let subject = subject(&config, &app);
    let mut ledger = Ledger::default();
    let all = destinations(&config, &app, None);
    let events = evaluate(
        &subject,
        &all,
        &mut ledger,
        &mut |to: &Destination, templates: &[String]| {
            let mut world = World {
                transport: &mut Always(200, ""),
                threads: &mut Threads::default(),
                now: subject.clock.now,
                random: &mut |bytes| bytes.fill(0),
            };
            deliver(&subject, templates, to, random(), &mut world)
        },
    );
    let to = Destination {
        service: "w".into(),
        recipient: "b".into(),
    };
    assert!(
        matches!(&events[0], Event::Trigger { trigger, problem }
            if trigger == "bad" && problem.contains("mismatched types bool and string")),
        "{events:?}"
    );
    let sent = Event::Sent {
        trigger: "good".into(),
        to,
    };
    assert_eq!(events[1..], [sent]);
}

#[test]
fn a_failed_delivery_is_never_recorded() {
    let config = load(&[
        ("service.webhook.w", "url: http://hook.example.test"),
        ("template.t", "message: m"),
        (
            "template.fails",
            "message: '{{ call .repo.GetCommitMetadata \"a\" }}'",
        ),
        (
            "trigger.t",
            "- when: 'true'\n  oncePer: app.metadata.name\n  send: [t]\n- when: 'true'\n  \
             send: [t]\n- when: 'true'\n  oncePer: app.metadata.name\n  send: [fails]",
        ),
        ("subscriptions", "- recipients: [w:b]\n  triggers: [t]"),
    ]);
    let app = json!({"metadata": {"name": "a"}, "spec": {}});
    let subject = subject(&config, &app);
    let all = destinations(&config, &app, None);
    for status in [0, 400, 500] {
        let mut ledger = Ledger::default();
        let events = evaluate(
            &subject,
            &all,
            &mut ledger,
            &mut |to: &Destination, templates: &[String]| {
                let mut world = World {
                    transport: &mut Always(status, "no"),
                    threads: &mut Threads::default(),
                    now: subject.clock.now,
                    random: &mut |bytes| bytes.fill(0),
                };
                deliver(&subject, templates, to, random(), &mut world)
            },
        );
        assert_eq!(events.len(), 3, "{events:?}");
        assert!(events.iter().all(|e| matches!(e, Event::Failed { .. })));
        assert_eq!(ledger, Ledger::default(), "{status}");
    }
}

#[test]
fn messages_have_no_secrets() {
    let config = load(&[
        ("service.telegram", "token: $tok"),
        (
            "service.webhook.w",
            "url: http://user:$tok@hook.example.test/$tok?key=$tok",
        ),
        (
            "service.teams",
            "recipientUrls:\n  c: https://teams.example.test/$tok",
        ),
        (
            "service.googlechat",
            "webhooks:\n  c: https://chat.example.test/x?key=$tok",
        ),
        ("service.slack", "token: $tok"),
        (
            "service.github",
            "appID: 1\ninstallationID: 2\nprivateKey: $tok",
        ),
        ("template.t", "message: m"),
    ]);
    assert!(
        config
            .problems
            .iter()
            .all(|p| !p.message.contains("s3cret"))
    );
    let app = json!({"metadata": {"name": "a"}});
    let subject = subject(&config, &app);
    for status in [0, 400, 500, 200] {
        for service in ["telegram", "w", "teams", "googlechat", "slack", "github"] {
            let mut world = World {
                transport: &mut Always(status, "{\"error\": {}}"),
                threads: &mut Threads::default(),
                now: subject.clock.now,
                random: &mut |bytes| bytes.fill(0),
            };
            let to = Destination {
                service: service.into(),
                recipient: "c".into(),
            };
            let templates = ["t".to_owned()];
            match deliver(&subject, &templates, &to, random(), &mut world) {
                Outcome::Failed(problem) => assert!(!problem.contains("s3cret"), "{problem}"),
                other => assert_eq!((status, service, other), (200, "w", Outcome::Sent)),
            }
        }
    }
}
