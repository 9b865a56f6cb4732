//! The options of services, with the values of the Secret.
//!
//! Main type: [`Service`].

use crate::send::github;
use crate::typed::{self, TypeError, Typed};
use serde_json::{Map, Value as Json};
use std::collections::BTreeMap;

/// What an option holds.
#[derive(Clone, Copy)]
enum Kind {
    Text,
    Flag,
    Int,
    Texts,
    TextMap,
    /// A number, as a number or text.
    Id,
    /// `[{name, value}]`
    Headers,
    /// `{username, password}`
    BasicAuth,
}

use Kind::{BasicAuth, Flag, Headers, Id, Int, Text, TextMap, Texts};

type Options = &'static [(&'static str, Kind)];

const INSECURE: (&str, Kind) = ("insecureSkipVerify", Flag);

/// The options that each type of service has.
const TYPES: &[(&str, Options)] = &[
    (
        "email",
        &[
            ("host", Text),
            ("port", Int),
            ("insecure_skip_verify", Flag),
            ("username", Text),
            ("password", Text),
            ("from", Text),
            ("html", Flag),
        ],
    ),
    (
        "slack",
        &[
            ("username", Text),
            ("icon", Text),
            ("token", Text),
            ("signingSecret", Text),
            ("channels", Texts),
            ("apiURL", Text),
            ("disableUnfurl", Flag),
            INSECURE,
        ],
    ),
    ("mattermost", &[("apiURL", Text), ("token", Text), INSECURE]),
    (
        "rocketchat",
        &[
            ("alias", Text),
            ("email", Text),
            ("password", Text),
            ("icon", Text),
            ("avatar", Text),
            ("serverUrl", Text),
        ],
    ),
    ("grafana", &[("apiUrl", Text), ("apiKey", Text), INSECURE]),
    (
        "opsgenie",
        &[("apiUrl", Text), ("apiKeys", TextMap), INSECURE],
    ),
    (
        "webhook",
        &[
            ("url", Text),
            ("headers", Headers),
            ("basicAuth", BasicAuth),
            ("retryWaitMin", Int),
            ("retryWaitMax", Int),
            ("retryMax", Int),
            INSECURE,
        ],
    ),
    ("telegram", &[("token", Text)]),
    (
        "github",
        &[
            ("appID", Id),
            ("installationID", Id),
            ("privateKey", Text),
            ("enterpriseBaseURL", Text),
            INSECURE,
        ],
    ),
    ("teams", &[("recipientUrls", TextMap), INSECURE]),
    ("teams-workflows", &[("recipientUrls", TextMap), INSECURE]),
    ("googlechat", &[("webhooks", TextMap), INSECURE]),
    ("pushover", &[("token", Text)]),
    (
        "alertmanager",
        &[
            ("targets", Texts),
            ("scheme", Text),
            ("apiPath", Text),
            ("basicAuth", BasicAuth),
            ("bearerToken", Text),
            ("timeout", Int),
            INSECURE,
        ],
    ),
    (
        "pagerduty",
        &[("token", Text), ("from", Text), ("serviceId", Text)],
    ),
    ("pagerdutyv2", &[("serviceKeys", TextMap)]),
    ("newrelic", &[("apiKey", Text), ("apiURL", Text), INSECURE]),
    ("webex", &[("token", Text), ("apiURL", Text), INSECURE]),
    (
        "awssqs",
        &[
            ("queue", Text),
            ("account", Text),
            ("region", Text),
            ("endpointUrl", Text),
            ("key", Text),
            ("secret", Text),
        ],
    ),
    (
        "gcppubsub",
        &[("project", Text), ("topic", Text), ("keyFile", Text)],
    ),
    (
        "nats",
        &[
            ("url", Text),
            ("headers", TextMap),
            ("nkey", Text),
            ("username", Text),
            ("password", Text),
        ],
    ),
];

/// A service of the configuration. It holds secrets, and is neither printed nor compared.
pub struct Service {
    kind: &'static str,
    options: Map<String, Json>,
}

impl Service {
    /// Reads the value of `service.TYPE[.NAME]`. In each text, `$name` stands for a value of the
    /// Secret.
    ///
    /// # Errors
    /// For an unknown type, or an option of another type.
    pub fn parse(
        kind: &str,
        text: &str,
        secret: &BTreeMap<String, Vec<u8>>,
    ) -> Result<Self, TypeError> {
        Self::from_json(kind, &replaced(&typed::document(text)?, secret))
    }

    pub(super) fn from_json(kind: &str, value: &Json) -> Typed<Self> {
        let found = TYPES.iter().find(|(name, _)| *name == kind);
        let (kind, fields) =
            found.ok_or_else(|| TypeError(format!("service type '{kind}' is not supported")))?;
        let given = typed::map(value)?;
        let mut options = Map::new();
        for (name, kind) in *fields {
            let value = typed::field(&given, name).unwrap_or(&Json::Null);
            let value = option(*kind, value)
                .map_err(|TypeError(message)| TypeError(format!("{name}: {message}")))?;
            options.insert((*name).to_owned(), value);
        }
        let service = Self { kind, options };
        if *kind == "github" {
            github::check(&service)?;
        }
        Ok(service)
    }

    /// The type.
    pub fn kind(&self) -> &'static str {
        self.kind
    }

    /// An option; empty if it is not given.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.get(name).as_str().unwrap_or_default()
    }

    pub(crate) fn flag(&self, name: &str) -> bool {
        self.get(name).as_bool().unwrap_or_default()
    }

    pub(crate) fn integer(&self, name: &str) -> i64 {
        self.get(name).as_i64().unwrap_or_default()
    }

    pub(crate) fn get(&self, name: &str) -> &Json {
        self.options.get(name).unwrap_or(&Json::Null)
    }

    /// An entry of an option that is a map of texts.
    pub(crate) fn entry(&self, name: &str, key: &str) -> Option<&str> {
        self.get(name).get(key)?.as_str()
    }
}

fn option(kind: Kind, value: &Json) -> Typed<Json> {
    Ok(match kind {
        Text => typed::text(value)?.into(),
        Flag => typed::boolean(value)?.into(),
        Int => typed::integer(value)?.into(),
        Texts => typed::texts(value)?.unwrap_or_default().into(),
        TextMap => typed::text_map(value)?
            .unwrap_or_default()
            .into_iter()
            .collect(),
        Id => match value {
            Json::String(text) => text
                .parse::<i64>()
                .map_err(|_| TypeError("it is not a number".into()))?
                .into(),
            other => typed::integer(other)?.into(),
        },
        Headers => {
            let items = typed::list(value)?;
            let pair = |item: &Json| {
                let map = typed::map(item)?;
                let text = |name: &str| typed::text_field(&map, name);
                Ok(Json::from(vec![text("name")?, text("value")?]))
            };
            items.iter().map(pair).collect::<Typed<Vec<_>>>()?.into()
        }
        BasicAuth if value.is_null() => Json::Null,
        BasicAuth => {
            let map = typed::map(value)?;
            let text = |name: &str| typed::text_field(&map, name);
            Json::from(vec![text("username")?, text("password")?])
        }
    })
}

/// The value with the Secret's values in its texts and keys.
fn replaced(value: &Json, secret: &BTreeMap<String, Vec<u8>>) -> Json {
    match value {
        Json::String(text) => replaced_text(text, secret).into(),
        Json::Array(items) => items.iter().map(|item| replaced(item, secret)).collect(),
        Json::Object(members) => members
            .iter()
            .map(|(key, value)| (replaced_text(key, secret), replaced(value, secret)))
            .collect::<Map<_, _>>()
            .into(),
        other => other.clone(),
    }
}

/// `$name`; an unknown name stays as it is written.
fn replaced_text(text: &str, secret: &BTreeMap<String, Vec<u8>>) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        let end = after.find(|c| !is_name(c)).unwrap_or(after.len());
        let (name, next) = after.split_at(end);
        match secret.get(name).filter(|_| !name.is_empty()) {
            Some(value) => out.push_str(&String::from_utf8_lossy(value)),
            None => {
                out.push('$');
                out.push_str(name);
            }
        }
        rest = next;
    }
    out.push_str(rest);
    out
}
