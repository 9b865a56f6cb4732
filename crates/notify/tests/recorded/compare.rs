//! Compares one case. Main function: [`differs`].

use super::case::{Case, now, strings};
use super::transport::Recorder;
use serde_json::{Map, Value as Json, json};
use std::collections::BTreeMap;
use tiphys_notify::send::{Threads, World, deliver};
use tiphys_notify::{
    Destination, Event, Ledger, NOTIFIED, Notification, Outcome, destinations, evaluate,
};

/// What differs, if something does.
pub fn differs(case: &Case) -> Option<String> {
    match case.line["kind"].as_str() {
        Some("config") => config(case),
        Some("trigger") => trigger(case),
        Some("template") => template(case),
        Some("destinations") => subscriptions(case),
        Some("send") => send(case),
        Some("controller") => controller(case),
        other => Some(format!("unknown kind {other:?}")),
    }
}

fn differ(theirs: &Json, ours: &Json) -> Option<String> {
    (!is_same(theirs, ours)).then(|| format!("\n  theirs {theirs}\n  ours   {ours}"))
}

/// Equal; `<now>` stands for any time, `<app jwt>` for any token.
fn is_same(theirs: &Json, ours: &Json) -> bool {
    match (theirs, ours) {
        (Json::String(text), _) if text == "<now>" => !ours.is_null(),
        (Json::String(text), Json::String(own)) if text == "Bearer <app jwt>" => {
            own.split('.').count() == 3
        }
        (Json::Object(a), Json::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .all(|(k, v)| b.get(k).is_some_and(|w| is_same(v, w)))
        }
        (Json::Array(a), Json::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(a, b))
        }
        _ => theirs == ours,
    }
}

fn names<'k>(keys: impl Iterator<Item = &'k String>) -> Json {
    let names: Vec<&String> = keys.collect();
    if names.is_empty() {
        Json::Null
    } else {
        json!(names)
    }
}

fn config(case: &Case) -> Option<String> {
    let (expected, config) = (&case.line["expected"], &case.config);
    if expected["error"].is_null() == case.error {
        return Some(format!(
            "theirs {}, ours {:?}",
            expected["error"], config.problems
        ));
    }
    let mut ours = json!({
        "services": names(config.services.keys()),
        "templates": names(config.templates.keys()),
        "default_triggers": names(config.default_triggers.iter()),
        "service_default_triggers": config.service_default_triggers,
    });
    let mut theirs = Json::Object(Map::new());
    for name in ["services", "templates", "service_default_triggers"] {
        if let Some(value) = expected.get(name) {
            theirs[name] = value.clone();
        }
    }
    if !case.error {
        theirs["default_triggers"] = expected["default_triggers"].clone();
    }
    let kept: Vec<String> = theirs.as_object().expect("a map").keys().cloned().collect();
    ours.as_object_mut()
        .expect("a map")
        .retain(|name, _| kept.contains(name));
    differ(&theirs, &ours)
}

fn trigger(case: &Case) -> Option<String> {
    let expected = &case.line["expected"];
    if !expected["error"].is_null() && expected["results"].is_null() {
        return (!case.error).then(|| format!("theirs {expected}"));
    }
    let project = case.project();
    let subject = case.subject(project.as_ref());
    let mut wanted = strings(&case.line["triggers"]);
    if wanted.is_empty() {
        wanted.extend(
            expected["results"]
                .as_object()
                .into_iter()
                .flat_map(Map::keys)
                .cloned(),
        );
    }
    let mut results = Map::new();
    for name in wanted {
        let result = match case.config.triggers.get(&name) {
            None => json!({"error": format!("trigger '{name}' is not configured")}),
            Some(Err(error)) => json!({"error": error.to_string()}),
            Some(Ok(trigger)) => {
                let results = trigger.run(&subject);
                let told = results.iter().map(|result| {
                    let mut told = json!({
                        "key": result.key,
                        "templates": result.templates,
                        "triggered": result.triggered,
                    });
                    if let Some(once) = &result.once_per {
                        told["once_per"] = once.as_str().into();
                    }
                    told
                });
                let told: Vec<Json> = told.collect();
                if told.is_empty() {
                    Json::Null
                } else {
                    told.into()
                }
            }
        };
        results.insert(name, result);
    }
    if expected["error"].is_null() == case.error {
        return Some(format!(
            "theirs {}, ours {:?}",
            expected["error"], case.config.problems
        ));
    }
    // Where nothing of theirs loads, the entries that are right work here.
    if case.error {
        return None;
    }
    differ(&expected["results"], &results.into())
}

fn random() -> tiphys_gocompat::sprig::Random {
    Box::new(|bytes| bytes.fill(7))
}

fn template(case: &Case) -> Option<String> {
    let expected = &case.line["expected"];
    let project = case.project();
    let subject = case.subject(project.as_ref());
    let to = case.destination();
    let rendered = Notification::render(&subject, &case.templates(), &to, random());
    match (&expected["error"], rendered) {
        (Json::Null, Ok(ours)) => {
            let theirs = without_empty(&expected["notification"]);
            differ(&theirs, &without_empty(&ours.to_json()))
        }
        (Json::Null, Err(error)) => Some(format!("ours {error}")),
        (_, Err(_)) => None,
        (error, Ok(ours)) => Some(format!("theirs {error}, ours {ours:?}")),
    }
}

fn without_empty(value: &Json) -> Json {
    match value {
        Json::Object(members) => {
            let members = members.iter().map(|(k, v)| (k.clone(), without_empty(v)));
            let kept = members.filter(|(_, v)| !is_empty(v));
            kept.collect::<Map<_, _>>().into()
        }
        other => other.clone(),
    }
}

fn is_empty(value: &Json) -> bool {
    match value {
        Json::Null | Json::Bool(false) => true,
        Json::String(text) => text.is_empty(),
        Json::Array(items) => items.is_empty(),
        Json::Object(members) => members.is_empty(),
        _ => false,
    }
}

fn subscriptions(case: &Case) -> Option<String> {
    let project = case.project();
    let all = destinations(&case.config, case.app(), project.as_ref());
    let ours: BTreeMap<&String, Vec<String>> = all
        .iter()
        .map(|(trigger, to)| (trigger, to.iter().map(told).collect()))
        .collect();
    differ(&case.line["expected"]["destinations"], &json!(ours))
}

fn told(to: &Destination) -> String {
    format!("{}|{}", to.service, to.recipient)
}

/// The requests with their bodies in the form that theirs have.
fn in_their_form(theirs: &Json, ours: &[Json]) -> Json {
    let mut ours = ours.to_vec();
    for (index, request) in ours.iter_mut().enumerate() {
        let wants_json = theirs[index].get("json").is_some();
        if wants_json && let Some(body) = request["body"].as_str() {
            request["json"] = serde_json::from_str(body).unwrap_or_default();
            request.as_object_mut().expect("a map").remove("body");
        }
        if theirs[index].get("headers").is_none() {
            request.as_object_mut().expect("a map").remove("headers");
        }
    }
    ours.into()
}

fn or_empty(value: &Json) -> Json {
    match value {
        Json::Null => json!([]),
        other => other.clone(),
    }
}

fn send(case: &Case) -> Option<String> {
    let expected = &case.line["expected"];
    let project = case.project();
    let subject = case.subject(project.as_ref());
    let mut recorder = Recorder {
        answers: case.line["responses"]
            .as_array()
            .cloned()
            .unwrap_or_default(),
        ..Recorder::default()
    };
    let mut threads = Threads::default();
    let mut problem = None;
    for _ in 0..case.line["repeat"].as_u64().unwrap_or(1) {
        let mut world = World {
            transport: &mut recorder,
            threads: &mut threads,
            now: now(),
            random: &mut |bytes| bytes.fill(7),
        };
        let outcome = deliver(
            &subject,
            &case.templates(),
            &case.destination(),
            random(),
            &mut world,
        );
        if outcome != Outcome::Sent {
            problem = Some(outcome);
        }
    }
    if expected["error"].is_null() == problem.is_some() {
        return Some(format!("theirs {}, ours {problem:?}", expected["error"]));
    }
    let theirs = or_empty(&expected["requests"]);
    let mails = or_empty(&expected["mails"]);
    differ(&theirs, &in_their_form(&theirs, &recorder.requests))
        .or_else(|| differ(&mails, &recorder.mails.clone().into()))
}

fn controller(case: &Case) -> Option<String> {
    let expected = &case.line["expected"];
    let project = case.project();
    let mut app = case.app().clone();
    let mut recorder = Recorder {
        answers: case.line["responses"]
            .as_array()
            .cloned()
            .unwrap_or_default(),
        ..Recorder::default()
    };
    let mut threads = Threads::default();
    let mut rounds = Vec::new();
    for _ in 0..case.line["repeat"].as_u64().unwrap_or(1) {
        let sent = recorder.requests.len();
        let subject = case.subject_of(&app, project.as_ref());
        let all = destinations(&case.config, &app, project.as_ref());
        let annotation = app["metadata"]["annotations"][NOTIFIED].as_str();
        let mut ledger = Ledger::parse(annotation.unwrap_or_default());
        let events = evaluate(
            &subject,
            &all,
            &mut ledger,
            &mut |to: &Destination, templates: &[String]| {
                let mut world = World {
                    transport: &mut recorder,
                    threads: &mut threads,
                    now: now(),
                    random: &mut |bytes| bytes.fill(7),
                };
                deliver(&subject, templates, to, random(), &mut world)
            },
        );
        let notified = ledger.annotation().unwrap_or_default();
        let events: Vec<String> = events.iter().filter_map(event).collect();
        rounds.push(json!({
            "events": if events.is_empty() { Json::Null } else { events.into() },
            "notified": notified,
            "requests_sent": recorder.requests.len() - sent,
        }));
        app["metadata"]["annotations"][NOTIFIED] = notified.into();
    }
    let theirs: Vec<Json> = expected["rounds"]
        .as_array()
        .into_iter()
        .flatten()
        .map(parsed)
        .collect();
    let ours: Vec<Json> = rounds.iter().map(parsed).collect();
    let requests = or_empty(&expected["requests"]);
    differ(&theirs.into(), &ours.into())
        .or_else(|| differ(&requests, &in_their_form(&requests, &recorder.requests)))
}

/// A round with its annotation as a document.
fn parsed(round: &Json) -> Json {
    let mut round = round.clone();
    let text = round["notified"].as_str().unwrap_or_default();
    round["notified"] = match serde_json::from_str(text) {
        Ok(document) => document,
        Err(_) => text.into(),
    };
    round
}

fn event(event: &Event) -> Option<String> {
    Some(match event {
        Event::Trigger { trigger, problem } => format!("trigger {trigger}: {problem}"),
        Event::Condition { .. } => return None,
        Event::Sent { trigger, to } => format!("sent {trigger} {}", told(to)),
        Event::Already { trigger, to } => format!("already {trigger} {}", told(to)),
        Event::Failed {
            trigger,
            to,
            problem,
        } => format!("failed {trigger} {}: {problem}", told(to)),
    })
}
