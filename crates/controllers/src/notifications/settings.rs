//! Reads the configuration from its ConfigMap and Secret.

use super::controller::{Controller, lock};
use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;
use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};
use tiphys_apimachinery::Object;
use tiphys_cluster::{records::Record, records::Store};
use tiphys_notify::{Config, ConfigSource};

impl Controller {
    /// Reads the configurations as they are now. Broken entries are logged; the others work.
    pub fn read_settings(&self) {
        let dependencies = &self.dependencies;
        let records = &dependencies.records;
        let stores = (&records.config_maps, &records.secrets);
        let mut configs = HashMap::new();
        let mut add = |stores, namespace: &str, self_service| {
            let config = self.read(stores, namespace, self_service);
            configs.extend(config.map(|config| (namespace.to_owned(), Arc::new(config))));
        };
        add(stores, &records.namespace, false);
        if let Some(own) = &dependencies.self_service {
            for record in own.config_maps.list() {
                let namespace = record.meta.namespace.as_str();
                if namespace != records.namespace && records.permits(namespace) {
                    add((&own.config_maps, &own.secrets), namespace, true);
                }
            }
        }
        *lock(&self.configs) = configs;
    }

    /// The configuration of a namespace; `None`: there is none.
    fn read(
        &self,
        (config_maps, secrets): (&Store<Object>, &Store<Object>),
        namespace: &str,
        self_service: bool,
    ) -> Option<Config> {
        let dependencies = &self.dependencies;
        let config_map = data(config_maps, namespace, &dependencies.config_map)?;
        let secret = data(secrets, namespace, &dependencies.secret).unwrap_or_default();
        let decoded = secret
            .into_iter()
            .filter_map(|(key, value)| Some((key, STANDARD.decode(value).ok()?)));
        let config = Config::load(ConfigSource {
            namespace,
            config_map: &config_map,
            secret: &decoded.collect(),
            self_service,
        });
        for problem in &config.problems {
            tracing::warn!(
                namespace,
                key = problem.key,
                problem = problem.message,
                "an entry of the notifications' configuration does not work"
            );
        }
        Some(config)
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
