//! Templates of notifications, and what is rendered from them.
//!
//! Main types: [`Template`] and [`Notification`]. A template has a message and parts for services;
//! [`PARTS`] lists their fields. Several templates are applied in order onto one notification.

mod parts;

use crate::Destination;
use crate::subject::Subject;
use crate::template::{Renderer, Text};
use crate::typed::{self, TypeError, Typed};
use parts::{Compiled, PARTS};
use serde_json::{Map, Value as Json};
use std::collections::BTreeMap;
use tiphys_gocompat::{expr::to_template, sprig::Random};

/// A template of the configuration.
pub struct Template {
    message: Text,
    parts: Vec<(&'static str, Compiled)>,
}

/// A rendered notification.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Notification {
    pub message: String,
    /// By the name of the service's type, with the fields that its part of the template has.
    pub parts: BTreeMap<&'static str, Map<String, Json>>,
}

impl Template {
    /// Reads the value of `template.NAME`.
    ///
    /// # Errors
    /// If it is not YAML, if a field has another type, or if a text is not a template.
    pub fn parse(name: &str, text: &str) -> Result<Self, TypeError> {
        Self::from_json(name, &typed::map(&typed::document(text)?)?)
    }

    pub(crate) fn from_json(name: &str, map: &Map<String, Json>) -> Typed<Self> {
        let message = Text::parse(name, &typed::text_field(map, "message")?)?;
        let mut parts = Vec::new();
        for part in PARTS {
            match typed::field(map, part.service) {
                None | Some(Json::Null) => {}
                Some(value) => parts.push((part.service, Compiled::parse(part, name, value)?)),
            }
        }
        Ok(Self { message, parts })
    }

    fn apply(&self, renderer: &mut Renderer, onto: &mut Notification) -> Typed<()> {
        let message = renderer.render(&self.message)?;
        if !message.is_empty() {
            onto.message = message;
        }
        for (service, compiled) in &self.parts {
            compiled.apply(renderer, onto.parts.entry(service).or_default())?;
        }
        Ok(())
    }
}

impl Notification {
    /// Applies templates in order.
    ///
    /// # Errors
    /// If there is no template of a name, or if one fails; it names template and line.
    pub fn render(
        subject: &Subject<'_>,
        templates: &[String],
        to: &Destination,
        random: Random,
    ) -> Result<Self, TypeError> {
        let variables = subject.template_variables(&to.service, &to.recipient);
        let mut renderer = Renderer::new(
            to_template(&variables),
            subject.clock.now,
            || jiff::tz::TimeZone::UTC,
            random,
        );
        let mut notification = Self::default();
        for name in templates {
            let template = subject.config.templates.get(name);
            let template =
                template.ok_or_else(|| TypeError(format!("template '{name}' is not supported")))?;
            let template = template.as_ref().map_err(Clone::clone)?;
            template.apply(&mut renderer, &mut notification)?;
        }
        Ok(notification)
    }

    /// A service's part.
    pub(crate) fn part(&self, service: &str) -> Option<Part<'_>> {
        self.parts.get(service).map(Part)
    }

    /// The notification as a document, without the empty fields that Argo CD leaves out.
    pub fn to_json(&self) -> Json {
        let mut map = Map::new();
        if !self.message.is_empty() {
            map.insert("message".into(), self.message.clone().into());
        }
        for (service, fields) in &self.parts {
            let mut fields = fields.clone();
            fields.retain(|name, _| !name.starts_with('$'));
            drop_empty(service, &mut fields);
            map.insert((*service).to_owned(), fields.into());
        }
        Json::Object(map)
    }
}

/// Texts that are written even if they are empty. Those of webhooks are, too.
const ALWAYS: [(&str, &str); 8] = [
    ("alertmanager", "generatorURL"),
    ("newrelic", "revision"),
    ("pagerduty", "title"),
    ("pagerdutyv2", "severity"),
    ("pagerdutyv2", "source"),
    ("pagerdutyv2", "summary"),
    ("pagerdutyv2", "url"),
    ("slack", "groupingKey"),
];

fn drop_empty(service: &str, fields: &mut Map<String, Json>) {
    fields.retain(|name, value| {
        // Maps of others have keys that a template chooses, whose values count.
        if let (Json::Object(members), "github") = (&mut *value, service) {
            drop_empty(service, members);
        }
        value.as_str() != Some("") || ALWAYS.contains(&(service, name.as_str()))
    });
}

/// A rendered part.
#[derive(Clone, Copy)]
pub(crate) struct Part<'n>(&'n Map<String, Json>);

impl<'n> Part<'n> {
    /// A text; empty if there is none.
    pub fn text(&self, name: &str) -> &'n str {
        self.0.get(name).and_then(Json::as_str).unwrap_or_default()
    }

    pub fn get(&self, name: &str) -> Option<&'n Json> {
        self.0.get(name)
    }

    /// A part within this one.
    pub fn part(&self, name: &str) -> Option<Part<'n>> {
        self.0.get(name).and_then(Json::as_object).map(Part)
    }
}
