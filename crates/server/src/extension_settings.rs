//! The services that requests below `/extensions` are passed on to: argocd-cm's `extension.config`.
//! Main type: [`Extensions`].

use crate::referred::Referred;
use http::{HeaderName, HeaderValue};
use reqwest::Url;
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use tiphys_api::application::ApplicationDestination;
use tiphys_gocompat::yaml;

const SETTING: &str = "extension.config";

/// The extensions of argocd-cm, by name.
#[derive(Default)]
pub struct Extensions(pub(crate) BTreeMap<String, Backend>);

#[derive(Deserialize, Default)]
#[serde(default)]
pub(crate) struct Backend {
    services: Vec<Service>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(crate) struct Service {
    pub(crate) url: String,
    pub(crate) headers: Vec<Header>,
    cluster: Option<ApplicationDestination>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(crate) struct Header {
    pub(crate) name: String,
    pub(crate) value: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Named {
    name: String,
    backend: Backend,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct All {
    extensions: Vec<Named>,
}

/// What is wrong with the setting.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("argocd-cm: {key}: {why}")]
pub struct ExtensionsFault {
    key: String,
    why: String,
}

/// The keys of argocd-cm with extensions; the name is empty for the one with all.
fn settings(config: &BTreeMap<String, String>) -> impl Iterator<Item = (&str, &str, &str)> {
    config.iter().filter_map(|(key, text)| {
        let name = key.strip_prefix(SETTING)?;
        let name = if name.is_empty() {
            name
        } else {
            name.strip_prefix('.')?
        };
        Some((key.as_str(), name, text.as_str()))
    })
}

fn parsed(text: &str) -> Result<Value, String> {
    let limits = yaml::Limits::default();
    yaml::parse_document(text, &limits, yaml::Duplicates::LastWins).map_err(|e| e.to_string())
}

fn each_text(value: &mut Value, change: &mut impl FnMut(&mut String)) {
    match value {
        Value::String(text) => change(text),
        Value::Array(items) => items.iter_mut().for_each(|item| each_text(item, change)),
        Value::Object(fields) => fields
            .values_mut()
            .for_each(|field| each_text(field, change)),
        _ => {}
    }
}

/// The values `$key` and `$secret:key` that the settings refer to.
pub fn references(config: &BTreeMap<String, String>) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (_, _, text) in settings(config) {
        if let Ok(mut value) = parsed(text) {
            each_text(&mut value, &mut |text| {
                found.extend(text.strip_prefix('$').map(str::to_owned));
            });
        }
    }
    found
}

impl Extensions {
    /// Reads the setting; `secrets` has what it refers to.
    pub fn read(
        config: &BTreeMap<String, String>,
        secrets: &Referred,
    ) -> Result<Self, ExtensionsFault> {
        let mut all = BTreeMap::new();
        for (key, name, text) in settings(config) {
            let fault = |why: String| ExtensionsFault {
                key: key.to_owned(),
                why,
            };
            let mut value = parsed(text).map_err(fault)?;
            each_text(&mut value, &mut |text| {
                let found = text.strip_prefix('$').and_then(|reference| {
                    let found = secrets.get(reference)?.as_ref();
                    // As in the reference, the text stays then, which may not be meant as one.
                    let found = found.inspect_err(|why| {
                        tracing::warn!(key, "{}", why.of(reference));
                    });
                    found.ok().cloned()
                });
                if let Some(found) = found {
                    *text = found;
                }
            });
            let wrong = |e: serde_json::Error| fault(e.to_string());
            let named = if name.is_empty() {
                let all: All = serde_json::from_value(value).map_err(wrong)?;
                all.extensions
            } else {
                vec![Named {
                    name: name.to_owned(),
                    backend: serde_json::from_value(value).map_err(wrong)?,
                }]
            };
            for extension in named {
                check(&extension).map_err(fault)?;
                let name = extension.name.clone();
                if all.insert(extension.name, extension.backend).is_some() {
                    return Err(fault(format!("there are two extensions {name:?}")));
                }
            }
        }
        Ok(Self(all))
    }
}

fn check(extension: &Named) -> Result<(), String> {
    let name = &extension.name;
    let is_safe = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.is_empty() || !name.chars().all(is_safe) {
        return Err(format!(
            "{name:?} is no name of an extension: letters, digits, - and _"
        ));
    }
    let services = &extension.backend.services;
    if services.is_empty() {
        return Err(format!("extension {name:?} has no backend.services"));
    }
    for service in services {
        let url = Url::parse(&service.url).map_err(|e| format!("{name:?}: url: {e}"))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(format!("{name:?}: url: a service is http:// or https://"));
        }
        let names_one = |c: &ApplicationDestination| !(c.name.is_empty() && c.server.is_empty());
        match &service.cluster {
            None if services.len() > 1 => {
                return Err(format!("{name:?}: each of several services has a cluster"));
            }
            Some(cluster) if !names_one(cluster) => {
                return Err(format!("{name:?}: a cluster has a name or a server"));
            }
            _ => {}
        }
        for header in &service.headers {
            let is_valid = HeaderName::try_from(&*header.name).is_ok()
                && HeaderValue::try_from(&*header.value).is_ok()
                && !header.value.is_empty();
            if !is_valid {
                return Err(format!("{name:?}: header {:?} is not valid", header.name));
            }
        }
    }
    Ok(())
}

impl Backend {
    /// The service for an Application's destination.
    pub(crate) fn service(&self, destination: &ApplicationDestination) -> Option<&Service> {
        if let [only] = &*self.services {
            return Some(only);
        }
        let is_it = |cluster: &ApplicationDestination| {
            let same = |ours: &str, asked: &str| asked.is_empty() || ours == asked;
            same(&cluster.name, &destination.name) && same(&cluster.server, &destination.server)
        };
        let mut services = self.services.iter();
        services.find(|service| service.cluster.as_ref().is_some_and(is_it))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(key: &str, text: &str) -> Result<Extensions, ExtensionsFault> {
        let config = BTreeMap::from([(key.to_owned(), text.to_owned())]);
        let secrets = Referred::from([("k".to_owned(), Ok("secret".to_owned()))]);
        Extensions::read(&config, &secrets)
    }

    #[test]
    fn the_setting_is_checked() {
        let one = "backend: {services: [{url: 'http://s', headers: [{name: A, value: $k}]}]}";
        let all = format!("extensions: [{{name: echo, {one}}}]");
        let extensions = read("extension.config", &all).expect("it is valid");
        assert_eq!(extensions.0["echo"].services[0].headers[0].value, "secret");
        let named = read("extension.config.e", "services: [{url: 'http://s'}]");
        assert!(named.expect("it is valid").0.contains_key("e"));
        for wrong in [
            "extensions: [{name: 'a/b', backend: {services: [{url: 'http://s'}]}}]",
            "extensions: [{name: a}]",
            "extensions: [{name: a, backend: {services: [{url: 'file:///s'}]}}]",
            "extensions: [{name: a, backend: {services: [{url: 'http://s'}, {url: 'http://t'}]}}]",
            "extensions: {",
        ] {
            assert!(read("extension.config", wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_cluster_chooses_among_services() {
        let text = "services: [{url: 'http://a', cluster: {name: in, server: 's'}}, \
                    {url: 'http://b', cluster: {name: out}}]";
        let extensions = read("extension.config.e", text).expect("it is valid");
        for (name, server, url) in [
            ("", "s", Some("http://a")),
            ("in", "", Some("http://a")),
            ("out", "", Some("http://b")),
            ("none", "", None),
        ] {
            let destination = ApplicationDestination {
                name: name.to_owned(),
                server: server.to_owned(),
                ..ApplicationDestination::default()
            };
            let found = extensions.0["e"].service(&destination);
            assert_eq!(found.map(|s| &*s.url), url, "{name} {server}");
        }
    }
}
