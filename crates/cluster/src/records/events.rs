//! Kubernetes Events about Applications and their resources, as Argo CD writes them.
//!
//! Main type: [`Events`]. An Event that cannot be written is only logged; it never causes a
//! failure.

use super::{Records, lean::Meta};
use crate::{
    error::Error,
    leases::Fence,
    request::{Call, JSON, encode},
};
use http::Method;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use tiphys_api::{AppProject, constants};
use tiphys_apimachinery::{Gvk, Object};
use tiphys_engine::spec;
use tiphys_gocompat::glob;

/// Argo CD's own reasons.
const REASONS: [&str; 7] = [
    "StatusRefreshed",
    "ResourceCreated",
    "ResourceUpdated",
    "ResourceDeleted",
    "ResourceActionRan",
    "OperationStarted",
    "OperationCompleted",
];
/// The key of argocd-cmd-params-cm that names those that are written, or `all` or `none`.
const WRITTEN: &str = "tiphys.events";

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

/// One Event.
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
    records: Records,
    component: String,
}

impl Events {
    pub(super) fn new(records: Records, component: &str) -> Self {
        Self {
            records,
            component: component.to_owned(),
        }
    }

    /// Writes in the background, under the caller's fence. Must be called inside a tokio runtime.
    pub fn record(&self, event: Event) {
        if !self.is_wanted(&event) {
            return;
        }
        // The Application may be gone when it is written.
        let event = self.labelled(event);
        let events = self.clone();
        let write = async move {
            if let Err(error) = events.send(&event).await {
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
        if !self.is_wanted(event) {
            return Ok(());
        }
        self.send(&self.labelled(event.clone())).await
    }

    fn is_wanted(&self, event: &Event) -> bool {
        is_written(self.records.settings().param(WRITTEN), event.reason)
    }

    /// With the labels of its Application that the settings name, if it is about one.
    fn labelled(&self, mut event: Event) -> Event {
        if event.target.gvk.kind == "Application" {
            event
                .labels
                .extend(self.records.event_labels(&event.target));
        }
        event
    }

    async fn send(&self, event: &Event) -> Result<(), Error> {
        let t = &event.target;
        let ours = matches!(
            t.gvk.kind.as_str(),
            "Application" | "AppProject" | "ApplicationSet"
        );
        // Resources may be in another cluster; their Events stay in the control plane's.
        let namespace = match ours {
            true => &t.namespace,
            false => &self.records.namespace,
        };
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
        self.records
            .cluster
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
            &self.records.namespace
        } else {
            namespace
        };
        let call = Call::get(format!("/api/v1/namespaces/{}/events", encode(scope)))
            .query("fieldSelector", &selector);
        let mut answer: Value = self.records.cluster.http().json(&call).await?;
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

impl Records {
    /// The labels of an Application, and those of its project, that its Events get.
    fn event_labels(&self, app: &EventTarget) -> BTreeMap<String, String> {
        let settings = self.settings();
        let included = keys(settings.get("resource.includeEventLabelKeys"));
        // The usual case, in which nothing needs to be looked up.
        if included.is_empty() {
            return BTreeMap::new();
        }
        let excluded = keys(settings.get("resource.excludeEventLabelKeys"));
        let Some(record) = self.applications.get(&app.namespace, &app.name) else {
            return BTreeMap::new();
        };
        let project = record
            .value()
            .ok()
            .and_then(|app| self.projects.get(&self.namespace, spec::project_name(&app)));
        // A project is none of the business of Applications that it does not permit.
        let permits = |project: &AppProject| {
            spec::namespace_permitted(project, &app.namespace, &self.namespace)
        };
        let project = project.filter(|project| project.value().is_ok_and(|p| permits(&p)));
        let of_project = project.map(|project| project.meta.labels.clone());
        let mut labels = of_project.unwrap_or_default();
        labels.extend(record.meta.labels.clone());
        labels.retain(|key, _| fits(&included, key) && !fits(&excluded, key));
        labels
    }
}

/// Whether a list of reasons has Events of this one written. Others than Argo CD's are those that
/// somebody asked for, such as the audit log's.
fn is_written(list: &str, reason: &str) -> bool {
    if list.trim().is_empty() || !REASONS.contains(&reason) {
        return true;
    }
    let mut names = list.split(',').map(str::trim);
    let decides = |name: &&str| matches!(*name, "all" | "none");
    match names.clone().find(decides) {
        Some(name) => name == "all",
        None => names.any(|name| name == reason),
    }
}

/// A list of globs for keys of labels, as Argo CD reads it.
fn keys(text: &str) -> Vec<String> {
    let bare = text.replace(' ', "");
    bare.split(',')
        .filter(|key| !key.is_empty())
        .map(str::to_owned)
        .collect()
}

fn fits(keys: &[String], key: &str) -> bool {
    keys.iter().any(|glob| glob::matches(glob, key, &[]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_events_of_the_listed_reasons_are_written() {
        for (list, reason, expected) in [
            ("", "OperationStarted", true),
            ("all", "OperationStarted", true),
            ("none", "OperationStarted", false),
            ("StatusRefreshed, ResourceCreated", "ResourceCreated", true),
            ("StatusRefreshed", "OperationStarted", false),
            // The first word for all of them decides.
            ("StatusRefreshed,none,all", "StatusRefreshed", false),
            ("StatusRefreshed,all,none", "OperationStarted", true),
            ("none", "AuditDenied", true),
        ] {
            assert_eq!(is_written(list, reason), expected, "{list}: {reason}");
        }
    }

    #[test]
    fn keys_of_labels_are_globs() {
        let listed = keys("team, example.com/*,,");
        for (key, expected) in [
            ("team", true),
            ("example.com/a/b", true),
            ("teams", false),
            ("", false),
        ] {
            assert_eq!(fits(&listed, key), expected, "{key}");
        }
    }
}
