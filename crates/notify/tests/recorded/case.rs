//! A recorded case, and what it is about.

use jiff::{Timestamp, tz::TimeZone};
use serde_json::{Value as Json, json};
use std::{collections::BTreeMap, rc::Rc};
use tiphys_gocompat::expr::Clock;
use tiphys_notify::{
    CommitMetadata, Config, ConfigSource, Destination, Lookup, Subject, Unavailable,
};

/// A key that is as good as any.
const KEY: &str = include_str!("key.pem");

pub struct Case {
    pub line: Json,
    pub config: Config,
    /// Broken entries, without those that concern only ours.
    pub error: bool,
    app: Json,
}

fn texts(value: &Json) -> BTreeMap<String, String> {
    let members = value.as_object().into_iter().flatten();
    members
        .filter(|(key, _)| *key != "@")
        .map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().to_owned()))
        .collect()
}

impl Case {
    pub fn new(line: &Json, fixtures: &Json) -> Self {
        let mut config_map = texts(&line["configmap"]);
        if let Some(name) = line["configmap"]["@"].as_str() {
            for (key, value) in texts(&fixtures[name]) {
                config_map.entry(key).or_insert(value);
            }
        }
        let secret = texts(&line["secret"])
            .into_iter()
            .map(|(key, value)| match key.as_str() {
                "ghkey" => (key, KEY.as_bytes().to_vec()),
                _ => (key, value.into_bytes()),
            })
            .collect();
        let config = Config::load(ConfigSource {
            namespace: "argocd",
            config_map: &config_map,
            secret: &secret,
            self_service: line["self_service"] == true,
        });
        let app = match &line["app"] {
            Json::Null => json!({"metadata": {
                "name": "a", "annotations": line["annotations"], "labels": line["labels"],
            }}),
            app => app.clone(),
        };
        Self {
            line: line.clone(),
            error: !config.problems.is_empty(),
            config,
            app,
        }
    }

    pub fn app(&self) -> &Json {
        &self.app
    }

    /// The project: an object, or its annotations alone.
    pub fn project(&self) -> Option<Json> {
        match &self.line["project"] {
            Json::Null => None,
            project if project["metadata"].is_object() => Some(project.clone()),
            annotations => Some(json!({"metadata": {"annotations": annotations}})),
        }
    }

    pub fn subject<'c>(&'c self, project: Option<&'c Json>) -> Subject<'c> {
        self.subject_of(&self.app, project)
    }

    pub fn subject_of<'c>(&'c self, app: &'c Json, project: Option<&'c Json>) -> Subject<'c> {
        Subject {
            config: &self.config,
            app,
            project,
            lookup: Rc::new(Known {
                commits: self.line["commits"].clone(),
                details: self.line["app_details"].clone(),
            }),
            clock: Clock {
                now: now(),
                zone: TimeZone::UTC,
            },
        }
    }

    pub fn destination(&self) -> Destination {
        let text = |name: &str| {
            let value = self.line["destination"][name].as_str();
            value.unwrap_or_default().to_owned()
        };
        Destination {
            service: text("service"),
            recipient: text("recipient"),
        }
    }

    pub fn templates(&self) -> Vec<String> {
        strings(&self.line["templates"])
    }
}

pub fn now() -> Timestamp {
    Timestamp::from_second(1_790_000_000).expect("a time")
}

pub fn strings(value: &Json) -> Vec<String> {
    let items = value.as_array().into_iter().flatten();
    items
        .filter_map(|i| i.as_str().map(str::to_owned))
        .collect()
}

struct Known {
    commits: Json,
    details: Json,
}

impl Lookup for Known {
    fn commit(&self, _: &str, sha: &str, _: &str) -> Result<CommitMetadata, Unavailable> {
        let commit = &self.commits[sha];
        let text = |name: &str| commit[name].as_str().unwrap_or_default().to_owned();
        if commit.is_null() {
            return Err(Unavailable("commit not found".into()));
        }
        Ok(CommitMetadata {
            message: text("Message"),
            author: text("Author"),
            date: text("Date").parse().expect("a time"),
            tags: strings(&commit["Tags"]),
        })
    }

    fn details(&self, _: &Json) -> Result<Json, Unavailable> {
        match &self.details {
            Json::Null => Err(Unavailable("no details".into())),
            details => Ok(details.clone()),
        }
    }
}
