//! Who is told of what: subscriptions of Applications, of their projects, and of all.
//!
//! Main function: [`destinations`].

use crate::{Config, typed};
use serde_json::Value as Json;
use std::collections::{BTreeMap, BTreeSet};

const SUBSCRIBE: &str = "notifications.argoproj.io/subscribe.";
const SUBSCRIPTIONS: &str = "notifications.argoproj.io/subscriptions";
/// The annotation of releases before 1.0, with or without a trigger in front.
const LEGACY: &str = "recipients.argocd-notifications.argoproj.io";

/// A recipient of a service.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Destination {
    /// The name of the service.
    pub service: String,
    pub recipient: String,
}

/// Destinations by trigger.
pub type Destinations = BTreeMap<String, BTreeSet<Destination>>;

type Texts = BTreeMap<String, String>;

/// Every destination of an Application, by the annotations of it and of its project, and by the
/// global subscriptions.
pub fn destinations(config: &Config, app: &Json, project: Option<&Json>) -> Destinations {
    let mut all = Destinations::new();
    let labels = texts(app, "labels");
    for subscription in &config.subscriptions {
        if !subscription.selector.matches(&labels) {
            continue;
        }
        let triggers = if subscription.triggers.is_empty() {
            &config.default_triggers
        } else {
            &subscription.triggers
        };
        for recipient in &subscription.recipients {
            add(&mut all, triggers, split(recipient));
        }
    }
    for object in [Some(app), project].into_iter().flatten() {
        let annotations = texts(object, "annotations");
        subscribed(config, &annotations, &mut all);
        legacy(config, &annotations, &mut all);
    }
    all
}

fn texts(object: &Json, name: &str) -> Texts {
    let map = object["metadata"][name].as_object();
    let entries = map.into_iter().flatten();
    entries
        .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
        .collect()
}

/// `service:recipient`. What follows a second colon is lost, as in Argo CD.
fn split(text: &str) -> Destination {
    let mut parts = text.split(':');
    let mut next = || parts.next().unwrap_or_default().to_owned();
    Destination {
        service: next(),
        recipient: next(),
    }
}

fn add(all: &mut Destinations, triggers: &[String], to: Destination) {
    for trigger in triggers {
        all.entry(trigger.clone()).or_default().insert(to.clone());
    }
}

/// The triggers of a subscription that names none.
fn default_triggers<'c>(config: &'c Config, service: &str) -> &'c [String] {
    let own = config.service_default_triggers.get(service);
    own.unwrap_or(&config.default_triggers)
}

fn subscribed(config: &Config, annotations: &Texts, all: &mut Destinations) {
    for (key, value) in annotations {
        if let Some(name) = key.strip_prefix(SUBSCRIBE) {
            let mut parts = name.split('.');
            let (first, second) = (parts.next().unwrap_or_default(), parts.next());
            let (trigger, service) = match second {
                Some(service) => (first, service),
                None => ("", first),
            };
            for recipient in recipients(value) {
                subscribe(config, trigger, service, recipient, all);
            }
        } else if key.starts_with(SUBSCRIPTIONS) {
            listed(config, value, all);
        }
    }
}

/// Recipients with `;` between them; an empty text is one empty recipient.
fn recipients(value: &str) -> Vec<&str> {
    if value.is_empty() {
        return vec![""];
    }
    let trimmed = value.split(';').map(str::trim);
    trimmed.filter(|one| !one.is_empty()).collect()
}

fn subscribe(
    config: &Config,
    trigger: &str,
    service: &str,
    recipient: &str,
    all: &mut Destinations,
) {
    let to = Destination {
        service: service.to_owned(),
        recipient: recipient.to_owned(),
    };
    match trigger {
        "" => add(all, default_triggers(config, service), to),
        trigger => add(all, &[trigger.to_owned()], to),
    }
}

/// A YAML list of `{trigger: [], destinations: [{service, recipients}]}`. What is not such a list
/// subscribes nobody.
fn listed(config: &Config, value: &str, all: &mut Destinations) {
    let Some(entries) = read(value) else {
        return;
    };
    for (triggers, destinations) in entries {
        let triggers = if triggers.is_empty() {
            vec![String::new()]
        } else {
            triggers
        };
        for trigger in &triggers {
            for (service, recipients) in &destinations {
                for recipient in recipients {
                    subscribe(config, trigger, service, recipient, all);
                }
            }
        }
    }
}

type Listed = Vec<(Vec<String>, Vec<(String, Vec<String>)>)>;

fn read(value: &str) -> Option<Listed> {
    let items = typed::list(&typed::document(value).ok()?).ok()?;
    items
        .iter()
        .map(|item| {
            let map = typed::map(item).ok()?;
            let names = |map: &serde_json::Map<String, Json>, name: &str| {
                let given = typed::field(map, name).unwrap_or(&Json::Null);
                Some(typed::texts(given).ok()?.unwrap_or_default())
            };
            let given = typed::field(&map, "destinations").unwrap_or(&Json::Null);
            let destinations = typed::list(given).ok()?;
            let destinations = destinations
                .iter()
                .map(|destination| {
                    let map = typed::map(destination).ok()?;
                    let service = typed::text_field(&map, "service").ok()?;
                    Some((service, names(&map, "recipients")?))
                })
                .collect::<Option<_>>()?;
            Some((names(&map, "trigger")?, destinations))
        })
        .collect()
}

/// `[TRIGGER.]recipients.argocd-notifications.argoproj.io: service:recipient, …`
fn legacy(config: &Config, annotations: &Texts, all: &mut Destinations) {
    for (key, value) in annotations {
        let Some(trigger) = key.strip_suffix(LEGACY) else {
            continue;
        };
        let trigger = trigger.trim_end_matches('.');
        for recipient in value.split(',').map(str::trim).filter(|r| !r.is_empty()) {
            let to = split(recipient);
            let triggers = match config.service_default_triggers.get(&to.service) {
                Some(own) => own.clone(),
                None if trigger.is_empty() => config.default_triggers.clone(),
                None => vec![trigger.to_owned()],
            };
            add(all, &triggers, to);
        }
    }
}
