//! The configuration: argocd-notifications-cm and argocd-notifications-secret.
//!
//! Main type: [`Config`]. A broken entry is kept as its error, so that the others work; Argo CD
//! sends nothing at all until it is repaired.

mod legacy;
mod options;

use crate::notification::Template;
use crate::triggers::Trigger;
use crate::typed::{self, TypeError, Typed};
use serde_json::Value as Json;
use std::collections::BTreeMap;
use tiphys_apimachinery::selector::LabelSelector;

pub use options::Service;

/// What a configuration is read from.
#[derive(Clone, Copy)]
pub struct ConfigSource<'s> {
    pub namespace: &'s str,
    /// The data of the ConfigMap.
    pub config_map: &'s BTreeMap<String, String>,
    /// The data of the Secret, decoded.
    pub secret: &'s BTreeMap<String, Vec<u8>>,
    /// Whether it belongs to a namespace of Applications: expressions and templates see no secrets,
    /// and the keys of its ledger have the namespace.
    pub self_service: bool,
}

/// An entry that does not work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The key of the ConfigMap or Secret.
    pub key: String,
    pub message: String,
}

/// An entry, or why it does not work.
type Entry<T> = Result<T, TypeError>;

/// A subscription of all Applications with certain labels.
pub struct GlobalSubscription {
    /// `service:recipient`
    pub recipients: Vec<String>,
    /// Empty: the default triggers.
    pub triggers: Vec<String>,
    pub selector: LabelSelector,
}

pub struct Config {
    pub services: BTreeMap<String, Entry<Service>>,
    pub triggers: BTreeMap<String, Entry<Trigger>>,
    pub templates: BTreeMap<String, Entry<Template>>,
    pub subscriptions: Vec<GlobalSubscription>,
    pub default_triggers: Vec<String>,
    pub service_default_triggers: BTreeMap<String, Vec<String>>,
    pub context: BTreeMap<String, String>,
    /// The Secret, for expressions and templates.
    pub(crate) secrets: Option<BTreeMap<String, Vec<u8>>>,
    pub problems: Vec<Problem>,
    namespace: Option<String>,
}

impl Config {
    /// Reads a configuration. Other keys than those of notifications are ignored.
    pub fn load(source: ConfigSource<'_>) -> Self {
        let mut config = Self {
            services: BTreeMap::new(),
            triggers: BTreeMap::new(),
            templates: BTreeMap::new(),
            subscriptions: Vec::new(),
            default_triggers: Vec::new(),
            service_default_triggers: BTreeMap::new(),
            context: BTreeMap::new(),
            secrets: (!source.self_service).then(|| source.secret.clone()),
            problems: Vec::new(),
            namespace: source.self_service.then(|| source.namespace.to_owned()),
        };
        for (key, value) in source.config_map {
            if let Err(TypeError(message)) = config.entry(key, value, source.secret) {
                config.problem(key, message);
            }
        }
        legacy::apply(&mut config, source);
        config
    }

    /// The namespace in the keys of the ledger; none for the configuration of the control plane.
    pub fn key_namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    fn problem(&mut self, key: &str, message: String) {
        self.problems.push(Problem {
            key: key.to_owned(),
            message,
        });
    }

    fn entry(&mut self, key: &str, value: &str, secret: &BTreeMap<String, Vec<u8>>) -> Typed<()> {
        if let Some(name) = key.strip_prefix("template.") {
            let entry = Template::parse(name, value);
            let done = entry.as_ref().map(drop).map_err(Clone::clone);
            self.templates.insert(name.to_owned(), entry);
            return done;
        }
        if let Some(name) = key.strip_prefix("trigger.") {
            let entry = Trigger::parse(value);
            let done = entry.as_ref().map(drop).map_err(Clone::clone);
            self.triggers.insert(name.to_owned(), entry);
            return done;
        }
        if let Some(name) = key.strip_prefix("service.") {
            let (kind, name) = match name.split('.').collect::<Vec<_>>().as_slice() {
                [kind] => (*kind, *kind),
                [kind, name] => (*kind, *name),
                _ => {
                    return Err(TypeError(format!(
                        "invalid service key; expected 'service.<type>(.<name>)' but got '{key}'"
                    )));
                }
            };
            let entry = Service::parse(kind, value, secret);
            let done = entry.as_ref().map(drop).map_err(Clone::clone);
            self.services.insert(name.to_owned(), entry);
            return done;
        }
        if let Some(name) = key.strip_prefix("defaultTriggers.") {
            let triggers = typed::texts(&typed::document(value)?)?.unwrap_or_default();
            self.service_default_triggers
                .insert(name.to_owned(), triggers);
            return Ok(());
        }
        match key {
            "defaultTriggers" => {
                self.default_triggers = typed::texts(&typed::document(value)?)?.unwrap_or_default();
            }
            "context" => {
                self.context = typed::text_map(&typed::document(value)?)?.unwrap_or_default();
            }
            "subscriptions" => {
                let items = typed::list(&typed::document(value)?)?;
                for item in items {
                    match GlobalSubscription::parse(&item) {
                        Ok(subscription) => self.subscriptions.push(subscription),
                        Err(TypeError(message)) => self.problem(key, message),
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }
}

impl GlobalSubscription {
    fn parse(value: &Json) -> Typed<Self> {
        let map = typed::map(value)?;
        let names = |name: &str| {
            let given = typed::field(&map, name).unwrap_or(&Json::Null);
            Ok(typed::texts(given)?.unwrap_or_default())
        };
        let selector = LabelSelector::parse(&typed::text_field(&map, "selector")?)
            .map_err(|error| TypeError(format!("selector: {error}")))?;
        Ok(Self {
            recipients: names("recipients")?,
            triggers: names("triggers")?,
            selector,
        })
    }
}
