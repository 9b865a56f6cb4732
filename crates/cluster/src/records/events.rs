//! Kubernetes Events about Applications and their resources, as Argo CD writes them.
//!
//! Main type: [`Events`]. An Event that cannot be written is only logged; it never causes a
//! failure.

use super::lean::Meta;
use crate::{
    connect::Cluster,
    error::Error,
    leases::Fence,
    request::{Call, JSON, encode},
};
use http::Method;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use tiphys_api::constants;
use tiphys_apimachinery::{Gvk, Object};

/// The object that an Event is about.
#[derive(Clone, Debug, Default)]
pub struct EventTarget {
    pub gvk: Gvk,
    pub namespace: String,
    pub name: String,
    pub uid: String,
    pub resource_version: String,
}

impl EventTarget {
    pub fn application(meta: &Meta) -> Self {
        Self {
            gvk: Gvk::new(constants::GROUP, constants::VERSION, "Application"),
            namespace: meta.namespace.clone(),
            name: meta.name.clone(),
            uid: meta.uid.clone(),
            resource_version: meta.resource_version.clone(),
        }
    }
}

/// One Event. Reasons are Argo CD's: `StatusRefreshed`, `ResourceCreated`, `ResourceUpdated`,
/// `ResourceDeleted`, `ResourceActionRan`, `OperationStarted`, `OperationCompleted`.
#[derive(Clone, Debug)]
pub struct Event {
    pub target: EventTarget,
    /// When it happened. It is part of the Event's name, so that a listing shows Events in order,
    /// whichever is written first.
    pub at: jiff::Timestamp,
    /// `Normal` or `Warning`.
    pub warning: bool,
    pub reason: &'static str,
    pub message: String,
    /// How often it happened.
    pub count: u32,
    /// Such as `user`, `dest-server`, `dest-namespace`; written as annotations.
    pub annotations: BTreeMap<String, String>,
    pub labels: BTreeMap<String, String>,
}

impl Event {
    pub fn new(target: EventTarget, reason: &'static str, message: impl Into<String>) -> Self {
        let at = jiff::Timestamp::now();
        Self {
            target,
            at,
            warning: false,
            reason,
            message: message.into(),
            count: 1,
            annotations: BTreeMap::new(),
            labels: BTreeMap::new(),
        }
    }

    pub fn warning(mut self, warning: bool) -> Self {
        self.warning = warning;
        self
    }

    pub fn counted(mut self, count: u32) -> Self {
        self.count = count;
        self
    }

    /// An empty value adds nothing.
    pub fn annotation(mut self, name: &str, value: &str) -> Self {
        if !value.is_empty() {
            self.annotations.insert(name.to_owned(), value.to_owned());
        }
        self
    }
}

/// Writes Events under one component's name. Cheap to clone.
#[derive(Clone)]
pub struct Events {
    cluster: Cluster,
    component: String,
    namespace: String,
}

impl Events {
    pub(super) fn new(cluster: Cluster, component: &str, namespace: &str) -> Self {
        Self {
            cluster,
            component: component.to_owned(),
            namespace: namespace.to_owned(),
        }
    }

    /// Writes in the background, under the caller's fence. Must be called inside a tokio runtime.
    pub fn record(&self, event: Event) {
        let events = self.clone();
        let write = async move {
            if let Err(error) = events.write(&event).await {
                tracing::warn!(reason = event.reason, target = %event.target.name, %error, "an Event could not be written");
            }
        };
        match Fence::current() {
            Some(fence) => tokio::spawn(fence.scope(write)),
            None => tokio::spawn(write),
        };
    }

    /// Writes and waits.
    pub async fn write(&self, event: &Event) -> Result<(), Error> {
        let t = &event.target;
        let ours = matches!(
            t.gvk.kind.as_str(),
            "Application" | "AppProject" | "ApplicationSet"
        );
        // Resources may be in another cluster; their Events stay in the control plane's.
        let namespace = if ours { &t.namespace } else { &self.namespace };
        let mut annotations = event.annotations.clone();
        if !ours {
            annotations.insert("resource-namespace".to_owned(), t.namespace.clone());
        }
        let stamp = event.at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let mut metadata = Map::from_iter([
            (
                "name".to_owned(),
                Value::from(format!("{}.{:x}", t.name, event.at.as_nanosecond())),
            ),
            ("namespace".to_owned(), Value::from(namespace.as_str())),
        ]);
        for (field, map) in [("annotations", &annotations), ("labels", &event.labels)] {
            if !map.is_empty() {
                metadata.insert(field.to_owned(), json!(map));
            }
        }
        let body = json!({
            "apiVersion": "v1", "kind": "Event", "metadata": metadata,
            "involvedObject": {
                "apiVersion": t.gvk.api_version(), "kind": t.gvk.kind, "namespace": t.namespace, "name": t.name,
                "uid": t.uid, "resourceVersion": t.resource_version,
            },
            "source": {"component": self.component},
            "firstTimestamp": stamp, "lastTimestamp": stamp, "count": event.count,
            "type": if event.warning { "Warning" } else { "Normal" },
            "reason": event.reason, "message": event.message,
        });
        let call = Call::new(
            Method::POST,
            format!("/api/v1/namespaces/{}/events", encode(namespace)),
        );
        self.cluster
            .http()
            .send(&call.with_body(JSON, body.to_string()))
            .await
            .map(drop)
    }

    /// The Events about an object, oldest first.
    pub async fn about(
        &self,
        namespace: &str,
        name: &str,
        uid: &str,
    ) -> Result<Vec<Object>, Error> {
        let mut selector = format!("involvedObject.name={name}");
        if !namespace.is_empty() {
            selector.push_str(&format!(",involvedObject.namespace={namespace}"));
        }
        if !uid.is_empty() {
            selector.push_str(&format!(",involvedObject.uid={uid}"));
        }
        let scope = if namespace.is_empty() {
            &self.namespace
        } else {
            namespace
        };
        let call = Call::get(format!("/api/v1/namespaces/{}/events", encode(scope)))
            .query("fieldSelector", &selector);
        let mut answer: Value = self.cluster.http().json(&call).await?;
        let items = answer.get_mut("items").map(Value::take).and_then(|i| {
            if let Value::Array(a) = i {
                Some(a)
            } else {
                None
            }
        });
        Ok(items
            .unwrap_or_default()
            .into_iter()
            .filter_map(|v| Object::from_value(v).ok())
            .collect())
    }
}
