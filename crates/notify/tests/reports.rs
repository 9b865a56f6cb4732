//! What people reported about notifications (`../shared/cases/reports/sets`), with the right
//! answers: those that evaluating alone decides.

use crate::broken::{Always, of, random, subject};
use serde_json::{Value, json};
use std::{collections::BTreeMap, path::Path, time::Duration};
use tiphys_gocompat::yaml;
use tiphys_notify::send::{Mail, Published, Request, Response, Threads, Transport, World, deliver};
use tiphys_notify::{Config, ConfigSource, Destination, Event, Ledger, destinations, evaluate};

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

/// Keeps the requests, and answers them as GitHub does.
#[derive(Default)]
struct GitHub(Vec<Request>);

impl Transport for GitHub {
    fn exchange(&mut self, request: &Request) -> Result<Response, String> {
        self.0.push(request.clone());
        Ok(Response {
            status: 201,
            body: br#"{"token": "ghs_x"}"#.to_vec(),
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

/// The configuration of a report with the key of a GitHub App, and a webhook beside GitHub.
fn beside_github(folder: &Path, file: &str) -> Config {
    let data = read(folder, file)["data"].clone();
    let mut config_map: BTreeMap<String, String> = serde_json::from_value(data).expect("texts");
    let url = "url: http://hook.example.test".to_owned();
    config_map.insert("service.webhook.sink".to_owned(), url);
    let key = include_bytes!("recorded/key.pem").to_vec();
    let config = Config::load(ConfigSource {
        namespace: "argocd",
        config_map: &config_map,
        secret: &BTreeMap::from([("ghkey".to_owned(), key)]),
        self_service: false,
    });
    assert!(config.problems.is_empty(), "{:?}", config.problems);
    config
}

/// What happens when an Application is seen for the first time, and the requests that are sent.
fn seen_first(config: &Config, app: &Value) -> (Vec<Event>, Vec<Request>) {
    let (subject, all) = (subject(config, app), destinations(config, app, None));
    let mut github = GitHub::default();
    let mut send = |to: &Destination, templates: &[String]| {
        let mut world = World {
            transport: &mut github,
            threads: &mut Threads::default(),
            now: subject.clock.now,
            random: &mut |bytes| bytes.fill(0),
        };
        deliver(&subject, templates, to, random(), &mut world)
    };
    let events = evaluate(&subject, &all, &mut Ledger::default(), &mut send);
    (events, github.0)
}

#[test]
fn a_commit_of_several_sources_is_named_by_paths() {
    let Some(folder) = tiphys_testkit::shared("cases/reports/sets/36-github-several-sources")
    else {
        return;
    };
    let mut app = read(&folder, "application.yaml");
    let sink = "notifications.argoproj.io/subscribe.on-deployed.sink";
    app["metadata"]["annotations"][sink] = "".into();
    // The default path is that of `source`, which is not there; the other destination is told.
    let config = beside_github(&folder, "configmap-default.yaml");
    let (events, requests) = seen_first(&config, &app);
    let [
        Event::Failed { to, problem, .. },
        Event::Sent { to: other, .. },
    ] = events.as_slice()
    else {
        panic!("{events:?}");
    };
    assert_eq!(
        (to.service.as_str(), other.service.as_str()),
        ("github", "sink")
    );
    assert!(
        problem.contains("repoURL") && problem.contains("<no value>"),
        "{problem}"
    );
    let urls: Vec<&str> = requests.iter().map(|r| r.url.as_str()).collect();
    assert_eq!(urls, ["http://hook.example.test"]);

    // Two Applications of one repository have two contexts on the same commit.
    let config = beside_github(&folder, "configmap-paths.yaml");
    let expected = read(&folder, "expected.json");
    for (name, url) in [
        ("web", "git@ghe.example.test:acme/shop.git"),
        ("api", "https://ghe.example.test/acme/shop/more"),
    ] {
        app["metadata"]["name"] = name.into();
        app["spec"]["sources"][0]["repoURL"] = url.into();
        let (events, requests) = seen_first(&config, &app);
        let is_sent = |event: &Event| matches!(event, Event::Sent { .. });
        assert!(
            events.len() == 2 && events.iter().all(is_sent),
            "{events:?}"
        );
        let [token, status, _] = requests.as_slice() else {
            panic!("{} requests", requests.len());
        };
        let host = "https://ghe.example.test";
        let tokens = format!("{host}/api/v3/app/installations/2/access_tokens");
        assert_eq!(token.url, tokens);
        assert_eq!(expected["method"], status.method.as_str());
        assert_eq!(status.url.strip_prefix(host), expected["path"].as_str());
        let body: Value = serde_json::from_slice(&status.body).expect("JSON");
        let wanted = expected["json"].to_string().replace("web", name);
        let wanted: Value = serde_json::from_str(&wanted).expect("JSON");
        assert_eq!(body, wanted, "{name}");
    }

    // Characters are counted, not bytes.
    app["metadata"]["name"] = "\u{fc}".repeat(200).into();
    let (_, requests) = seen_first(&config, &app);
    let body: Value = serde_json::from_slice(&requests[1].body).expect("JSON");
    let description = body["description"].as_str().expect("a text");
    assert_eq!(description.chars().count(), 140, "{description}");
}
