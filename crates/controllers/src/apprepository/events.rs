//! Events about AppRepositories. Main type: [`Events`].
//!
//! The same Event again is counted, as kubeapps does. One that cannot be written is only logged.

use super::{Key, object};
use http::Method;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};
use tiphys_api::{AppRepository, app_repository};
use tiphys_cluster::{Cluster, Error, request::encode};

/// kubeapps' component.
const COMPONENT: &str = "apprepository-controller";

pub(super) struct Events {
    cluster: Cluster,
    /// Name and count of the last Event with the same uid and text.
    known: Mutex<HashMap<(String, String), Known>>,
}

#[derive(Clone)]
struct Known {
    name: String,
    count: u64,
    message: String,
}

impl Events {
    pub fn new(cluster: Cluster) -> Self {
        Self {
            cluster,
            known: Mutex::default(),
        }
    }

    pub async fn normal(&self, about: &AppRepository, reason: &str, message: &str) {
        self.tell(about, "Normal", reason, message).await;
    }

    pub async fn warning(&self, about: &AppRepository, reason: &str, message: &str) {
        self.tell(about, "Warning", reason, message).await;
    }

    /// The AppRepository is gone.
    pub fn forget(&self, uid: &str) {
        self.lock().retain(|(known, _), _| known != uid);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<(String, String), Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn tell(&self, about: &AppRepository, kind: &str, reason: &str, message: &str) {
        if let Err(error) = self.write(about, kind, reason, message).await {
            tracing::warn!(reason, %error, "an Event could not be written");
        }
    }

    async fn write(
        &self,
        about: &AppRepository,
        kind: &str,
        reason: &str,
        message: &str,
    ) -> Result<(), Error> {
        let meta = &about.metadata;
        let now = Timestamp::now();
        let stamp = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let collection = format!("/api/v1/namespaces/{}/events", encode(&meta.namespace));
        let slot = (meta.uid.clone(), reason.to_owned());
        let known = self.lock().get(&slot).cloned();
        if let Some(known) = known.filter(|known| known.message == message) {
            let count = known.count + 1;
            let again = json!({"count": count, "lastTimestamp": stamp});
            let path = format!("{collection}/{}", encode(&known.name));
            match object::patch(&self.cluster, &path, &again).await {
                // It is too old.
                Err(e) if e.is_not_found() => {}
                Err(e) => return Err(e),
                Ok(_) => {
                    self.lock().insert(slot, Known { count, ..known });
                    return Ok(());
                }
            }
        }
        let name = format!("{}.{:x}", meta.name, now.as_nanosecond());
        let event = event(about, kind, (reason, message), &name, &stamp);
        object::write(&self.cluster, Method::POST, &collection, &event).await?;
        let known = Known {
            name,
            count: 1,
            message: message.to_owned(),
        };
        self.lock().insert(slot, known);
        Ok(())
    }
}

fn event(
    about: &AppRepository,
    kind: &str,
    (reason, message): (&str, &str),
    name: &str,
    stamp: &str,
) -> Value {
    let meta = &about.metadata;
    let key = Key::new(&meta.namespace, &meta.name);
    json!({
        "apiVersion": "v1", "kind": "Event",
        "metadata": {"name": name, "namespace": key.namespace},
        "involvedObject": {
            "apiVersion": format!("{}/{}", app_repository::GROUP, app_repository::VERSION),
            "kind": app_repository::KIND,
            "namespace": key.namespace, "name": key.name,
            "uid": meta.uid, "resourceVersion": meta.resource_version,
        },
        "source": {"component": COMPONENT},
        "firstTimestamp": stamp, "lastTimestamp": stamp, "count": 1,
        "type": kind, "reason": reason, "message": message,
    })
}
