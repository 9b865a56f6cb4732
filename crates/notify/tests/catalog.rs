//! The catalogue loads, and its triggers and templates say what they should.

use jiff::tz::TimeZone;
use serde_json::{Value as Json, json};
use std::{collections::BTreeMap, rc::Rc};
use tiphys_gocompat::expr::Clock;
use tiphys_notify::{
    CommitMetadata, Config, ConfigSource, Destination, Lookup, Notification, Subject, Unavailable,
    catalog,
};

struct Nothing;

impl Lookup for Nothing {
    fn commit(&self, _: &str, _: &str, _: &str) -> Result<CommitMetadata, Unavailable> {
        Err(Unavailable("no repository".into()))
    }

    fn details(&self, _: &Json) -> Result<Json, Unavailable> {
        Err(Unavailable("no repository".into()))
    }
}

fn config() -> Config {
    let config_map: BTreeMap<String, String> = catalog::triggers()
        .into_iter()
        .chain(catalog::templates())
        .collect();
    let config = Config::load(ConfigSource {
        namespace: "argocd",
        config_map: &config_map,
        secret: &BTreeMap::new(),
        self_service: false,
    });
    assert_eq!(config.problems, []);
    config
}

fn subject<'c>(config: &'c Config, app: &'c Json) -> Subject<'c> {
    Subject {
        config,
        app,
        project: None,
        lookup: Rc::new(Nothing),
        clock: Clock {
            now: "2024-03-01T10:10:00Z".parse().expect("a time"),
            zone: TimeZone::UTC,
        },
    }
}

fn app(status: Json) -> Json {
    json!({"metadata": {"name": "guestbook"}, "spec": {"project": "default"}, "status": status})
}

/// The triggers that are met, with what they are sent once for.
fn met(status: Json) -> Vec<(String, String)> {
    let (config, app) = (config(), app(status));
    let subject = subject(&config, &app);
    let mut met = Vec::new();
    for (name, trigger) in &config.triggers {
        for result in trigger.as_ref().expect("a trigger").run(&subject) {
            if result.triggered && name != "on-created" {
                met.push((name.clone(), result.once_per.unwrap_or_default()));
            }
        }
    }
    met
}

#[test]
fn triggers_are_met_by_their_states() {
    let operation = |phase: &str| {
        json!({"phase": phase, "startedAt": "2024-03-01T10:05:00Z",
            "finishedAt": "2024-03-01T10:06:00Z", "syncResult": {"revision": "abc"}})
    };
    let healthy = json!({"status": "Healthy", "lastTransitionTime": "2024-03-01T10:06:20Z"});
    let synced = json!({"status": "Synced"});
    let table = [
        (json!({"sync": synced}), vec![]),
        (
            json!({"health": {"status": "Degraded"}}),
            vec![("on-health-degraded", "<nil>")],
        ),
        (
            json!({"health": healthy, "sync": synced, "operationState": operation("Succeeded")}),
            vec![("on-deployed", "abc"), ("on-sync-succeeded", "abc")],
        ),
        (
            json!({"operationState": operation("Failed")}),
            vec![("on-sync-failed", "abc")],
        ),
        (
            json!({"operationState": operation("Running")}),
            vec![("on-sync-running", "abc")],
        ),
        (
            json!({"sync": {"status": "Unknown"}}),
            vec![("on-sync-status-unknown", "<nil>")],
        ),
    ];
    for (status, wanted) in table {
        let ours = met(status.clone());
        let ours: Vec<(&str, &str)> = ours.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        assert_eq!(ours, wanted, "{status}");
    }
}

#[test]
fn every_template_is_rendered_for_every_service() {
    let config = config();
    let app = app(json!({
        "sync": {"status": "Synced", "revision": "abc"},
        "health": {"status": "Healthy"},
        "operationState": {"message": "it says \"no\"", "startedAt": "t1", "finishedAt": "t2"},
    }));
    let subject = subject(&config, &app);
    assert_eq!(config.templates.len(), 8);
    for (name, _) in catalog::templates() {
        let name = name.trim_start_matches("template.").to_owned();
        let to = Destination {
            service: "slack".into(),
            recipient: "channel".into(),
        };
        let random = Box::new(|bytes: &mut [u8]| bytes.fill(0));
        let templates = std::slice::from_ref(&name);
        let rendered = Notification::render(&subject, templates, &to, random);
        let rendered = rendered.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(rendered.message.contains("guestbook"), "{name}");
        for (service, field) in [
            ("slack", "attachments"),
            ("teams", "facts"),
            ("teams", "potentialAction"),
        ] {
            let text = rendered.parts[service][field].as_str().expect("a text");
            let parsed = serde_json::from_str::<Vec<Json>>(text);
            assert!(parsed.is_ok_and(|list| !list.is_empty()), "{name}: {text}");
        }
    }
}
