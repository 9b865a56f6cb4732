//! What people reported about notifications (`../shared/cases/reports/sets`), with the right
//! answers: those that evaluating alone decides.

use crate::broken::{Always, of, random, subject};
use serde_json::{Value, json};
use std::path::Path;
use tiphys_gocompat::yaml;
use tiphys_notify::send::{Threads, World, deliver};
use tiphys_notify::{Config, Destination, Event, Ledger, destinations, evaluate};

fn read(folder: &Path, file: &str) -> Value {
    let text = std::fs::read_to_string(folder.join(file)).expect(file);
    yaml::parse_document(&text, &yaml::Limits::default(), yaml::Duplicates::LastWins).expect(file)
}

/// The configuration of a report.
fn config(folder: &Path) -> Config {
    let data = read(folder, "configmap.yaml")["data"].clone();
    let entries = data.as_object().into_iter().flatten();
    let entries: Vec<(&str, &str)> = entries
        .map(|(key, value)| (key.as_str(), value.as_str().expect("a text")))
        .collect();
    of(&entries, false)
}

/// Shows an Application, subscribed to a trigger by a hook, and returns how many requests were sent
/// and which keys the ledger has.
fn show(config: &Config, trigger: &str, status: &Value, ledger: &mut Ledger) -> (u64, Vec<String>) {
    let subscription = format!("notifications.argoproj.io/subscribe.{trigger}.sink");
    let app = json!({
        "metadata": {"name": "web", "annotations": {subscription: ""}},
        "spec": {"project": "default"}, "status": status,
    });
    let subject = subject(config, &app);
    let all = destinations(config, &app, None);
    let mut sent = 0;
    let mut send = |to: &Destination, templates: &[String]| {
        sent += 1;
        let mut world = World {
            transport: &mut Always(200, ""),
            threads: &mut Threads::default(),
            now: subject.clock.now,
            random: &mut |bytes| bytes.fill(0),
        };
        deliver(&subject, templates, to, random(), &mut world)
    };
    for event in evaluate(&subject, &all, ledger, &mut send) {
        let is_well = matches!(event, Event::Sent { .. } | Event::Already { .. });
        assert!(is_well, "{event:?}");
    }
    let kept = ledger.annotation().unwrap_or_else(|| "{}".to_owned());
    let kept: Value = serde_json::from_str(&kept).expect("JSON");
    let keys = kept.as_object().expect("a map").keys().cloned();
    (sent, keys.collect())
}

#[test]
fn once_per_nothing_is_once_per_state() {
    let Some(folder) = tiphys_testkit::shared("cases/reports/sets/32-once-per-empty") else {
        return;
    };
    let (config, expected) = (config(&folder), read(&folder, "expected.yaml"));
    let states = read(&folder, "states.yaml")["multi"].clone();
    for name in ["multi", "single"] {
        let mut ledger = Ledger::default();
        for (index, state) in states.as_array().expect("a list").iter().enumerate() {
            let mut status = state.clone();
            if name == "single" {
                status["operationState"]["syncResult"] = json!({"revision": "abc"});
            }
            let (sent, keys) = show(&config, "on-deployed", &status, &mut ledger);
            let wanted = &expected[name];
            assert_eq!(json!(sent), wanted["requests"][index], "{name} {index}");
            assert_eq!(json!(keys), wanted["keys_after"][index], "{name} {index}");
        }
    }
}

#[test]
fn a_failure_is_told_once_for_a_revision() {
    let Some(folder) = tiphys_testkit::shared("cases/reports/sets/38-sync-failed-repeat") else {
        return;
    };
    let (config, expected) = (config(&folder), read(&folder, "expected.yaml"));
    let states = read(&folder, "states.yaml");
    let (mut ledger, mut requests, mut last) = (Ledger::default(), Vec::new(), Vec::new());
    for state in states.as_array().expect("a list") {
        let mut status = json!({"reconciledAt": "2026-01-10T10:05:00Z"});
        if state.is_object() {
            status["operationState"] = state.clone();
            status["operationState"]["finishedAt"] = "2026-01-10T10:00:00Z".into();
        }
        let (sent, keys) = show(&config, "on-sync-failed", &status, &mut ledger);
        requests.push(sent);
        last = keys;
    }
    assert_eq!(json!(requests), expected["requests"]);
    assert_eq!(json!(last), expected["keys_at_end"]);
    let written = ledger.annotation().expect("keys");
    assert!(
        written.contains(r"\u003cnil\u003e:on-sync-failed:"),
        "{written}"
    );
}

#[test]
fn annotations_that_are_no_subscriptions_have_no_destinations() {
    let Some(folder) = tiphys_testkit::shared("cases/reports/sets/35-empty-service") else {
        return;
    };
    let (config, app) = (config(&folder), read(&folder, "application.yaml"));
    for _ in 0..50 {
        let found = destinations(&config, &app, None);
        let found: serde_json::Map<String, Value> = found
            .iter()
            .map(|(trigger, all)| {
                let all = all.iter();
                let all = all.map(|to| json!(format!("{}|{}", to.service, to.recipient)));
                (trigger.clone(), all.collect())
            })
            .collect();
        assert_eq!(Value::Object(found), read(&folder, "expected.yaml"));
    }
}
