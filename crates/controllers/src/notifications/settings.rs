//! Reads the configuration from its ConfigMap and Secret.

use super::controller::{Controller, lock};
use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;
use std::{collections::BTreeMap, sync::Arc};
use tiphys_apimachinery::Object;
use tiphys_cluster::{records::Record, records::Store};
use tiphys_notify::{Config, ConfigSource};

impl Controller {
    /// Reads the configuration as it is now. Broken entries are logged; the others work.
    pub fn read_settings(&self) {
        let dependencies = &self.dependencies;
        let records = &dependencies.records;
        let namespace = &records.namespace;
        let config_map = data(&records.config_maps, namespace, &dependencies.config_map);
        let secret = data(&records.secrets, namespace, &dependencies.secret);
        let secret = secret.unwrap_or_default();
        let config = config_map.map(|config_map| {
            let secret = secret
                .into_iter()
                .filter_map(|(key, value)| Some((key, STANDARD.decode(value).ok()?)))
                .collect();
            Config::load(ConfigSource {
                namespace: &records.namespace,
                config_map: &config_map,
                secret: &secret,
                self_service: false,
            })
        });
        for problem in config.iter().flat_map(|config| &config.problems) {
            tracing::warn!(
                key = problem.key,
                problem = problem.message,
                "an entry of the notifications' configuration does not work"
            );
        }
        *lock(&self.config) = config.map(Arc::new);
    }
}

/// The texts of an object's data; `None` if there is no such object.
fn data(store: &Store<Object>, namespace: &str, name: &str) -> Option<BTreeMap<String, String>> {
    let object = store.get(namespace, name).map(|record| object(&record))?;
    let data = object["data"].as_object().cloned().unwrap_or_default();
    let texts = data.into_iter();
    Some(
        texts
            .filter_map(|(key, value)| Some((key, value.as_str()?.to_owned())))
            .collect(),
    )
}

fn object(record: &Record<Object>) -> Value {
    record.object().map(Object::into_value).unwrap_or_default()
}
