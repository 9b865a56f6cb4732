//! [`RecordStore`]: Applications, projects, settings and Secrets through `cluster::records`.

use crate::ports::{
    ConfigMapRecord, EventRecord, SecretData, SecretRecord, Store, StoreError, StoreEvent,
    StoreResult,
};
use async_trait::async_trait;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use futures::{StreamExt as _, stream::BoxStream};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::{collections::BTreeMap, sync::Arc};
use tiphys_api::{
    AppProject, Application,
    constants::{API_VERSION, PART_OF_LABEL, SECRET_TYPE_LABEL},
    rpc::events::EventList,
};
use tiphys_apimachinery::{Gvk, Object};
use tiphys_cluster::{
    ChangeType, Cluster, Error, Records,
    records::{Event, EventTarget, Events, Readable, Record, RecordChange},
};
use tokio::sync::broadcast::{self, error::RecvError};

const COMPONENT: &str = "argocd-server";
const PARAMS: &str = "argocd-cmd-params-cm";
const SECRET: &str = "argocd-secret";

/// The records of one control plane.
pub struct RecordStore {
    records: Records,
    events: Events,
}

impl RecordStore {
    pub fn new(records: Records) -> Self {
        Self {
            events: records.events(COMPONENT),
            records,
        }
    }

    fn cluster(&self) -> &Cluster {
        &self.records.cluster
    }
}

impl From<Error> for StoreError {
    fn from(e: Error) -> Self {
        let text = e.to_string();
        match e.code() {
            _ if e.is_already_exists() => Self::AlreadyExists(text),
            _ if e.is_conflict() => Self::Conflict(text),
            Some(404) => Self::NotFound(text),
            Some(401 | 403) => Self::Forbidden(text),
            Some(400..=499) => Self::Invalid(text),
            _ => Self::Unavailable(text),
        }
    }
}

/// Records that clients can write.
pub(super) trait Written: Readable + Serialize + Clone {
    const KIND: &'static str;
}

impl Written for Application {
    const KIND: &'static str = "Application";
}

impl Written for AppProject {
    const KIND: &'static str = "AppProject";
}

fn not_found(name: &str) -> String {
    format!("applications.argoproj.io {name:?} not found")
}

pub(super) fn typed<T: Written>(record: &Record<T>) -> StoreResult<T> {
    record
        .value()
        .map(|value| T::clone(&value))
        .map_err(StoreError::Invalid)
}

/// Lists omit records that cannot be parsed; the reason is logged.
pub(super) fn readable<T: Written>(record: &Record<T>) -> Option<Arc<T>> {
    record
        .value()
        .inspect_err(|e| tracing::warn!(error = %e, "a record is left out"))
        .ok()
}

pub(super) fn object<T: Written>(value: &T, namespace: &str) -> StoreResult<Object> {
    let mut value = serde_json::to_value(value).map_err(|e| StoreError::Invalid(e.to_string()))?;
    value["apiVersion"] = API_VERSION.into();
    value["kind"] = T::KIND.into();
    if value["metadata"]["namespace"]
        .as_str()
        .is_none_or(str::is_empty)
    {
        value["metadata"]["namespace"] = namespace.into();
    }
    Object::from_value(value).map_err(|e| StoreError::Invalid(e.to_string()))
}

/// The texts of a ConfigMap.
fn texts(config_map: &Object) -> BTreeMap<String, String> {
    let data = config_map.0.get("data").and_then(Value::as_object);
    data.into_iter()
        .flatten()
        .filter_map(|(k, v)| Some((k.clone(), v.as_str()?.to_owned())))
        .collect()
}

/// An Application that was never compared has no status; an empty status would fail validation by
/// Argo CD's CRD.
fn without_empty_status(mut object: Object, app: &Application) -> Object {
    if app.status == Default::default() {
        object.0.remove("status");
    }
    object
}

/// What became of a change of an object that was read before.
fn changed_since<T>(written: Result<T, Error>) -> StoreResult<()> {
    match written.map_err(StoreError::from) {
        Ok(_) => Ok(()),
        // Somebody else created or deleted it after it was read.
        Err(StoreError::AlreadyExists(e) | StoreError::NotFound(e)) => Err(StoreError::Conflict(e)),
        Err(e) => Err(e),
    }
}

/// Whether the settings contain something of a Secret. Who writes another one, such as that of the
/// sessions that ended, is not made to wait for them.
fn is_setting(name: &str, labels: &BTreeMap<String, String>) -> bool {
    name == SECRET || labels.contains_key(SECRET_TYPE_LABEL)
}

fn secret_record(object: &Object) -> SecretRecord {
    let texts = |pointer: &str| -> BTreeMap<String, String> {
        let map = object.metadata(pointer).and_then(Value::as_object);
        map.into_iter()
            .flatten()
            .filter_map(|(k, v)| Some((k.clone(), v.as_str()?.to_owned())))
            .collect()
    };
    let data = object.0.get("data").and_then(Value::as_object);
    SecretRecord {
        name: object.name().to_owned(),
        labels: texts("labels"),
        annotations: texts("annotations"),
        data: data
            .into_iter()
            .flatten()
            .filter_map(|(k, v)| Some((k.clone(), STANDARD.decode(v.as_str()?).ok()?)))
            .collect(),
    }
}

#[async_trait]
impl Store for RecordStore {
    fn permits(&self, namespace: &str) -> bool {
        self.records.permits(namespace)
    }

    fn permits_others(&self) -> bool {
        self.records.permits_others()
    }

    fn problem(&self) -> Option<String> {
        self.records.problem()
    }

    fn versions(&self, config_maps: &[&str], secrets: &[&str]) -> Option<Vec<String>> {
        let namespace = &self.records.namespace;
        let mut versions = Vec::new();
        for name in config_maps {
            let record = self.records.config_maps.get(namespace, name);
            let version = record.map(|record| record.meta.resource_version.clone());
            versions.push(version.unwrap_or_default());
            if *name == PARAMS {
                let settings = self.records.settings();
                let params = settings.params.iter();
                versions.extend(params.map(|(key, value)| format!("{key}={value}")));
            }
        }
        for name in secrets {
            let record = self.records.secrets.get(namespace, name);
            let version = record.map(|record| record.meta.resource_version.clone());
            versions.push(version.unwrap_or_default());
        }
        Some(versions)
    }

    async fn get_app(&self, namespace: &str, name: &str) -> StoreResult<Application> {
        match self.records.applications.fetch(namespace, name).await? {
            Some(record) => typed(&record),
            None => Err(StoreError::NotFound(not_found(name))),
        }
    }

    async fn create_app(&self, app: &Application) -> StoreResult<Application> {
        let object = without_empty_status(object(app, &self.records.namespace)?, app);
        typed(&*self.records.applications.create(&object).await?)
    }

    async fn patch_app(
        &self,
        namespace: &str,
        name: &str,
        patch: &Value,
    ) -> StoreResult<Application> {
        typed(
            &*self
                .records
                .applications
                .merge_patch(namespace, name, patch)
                .await?,
        )
    }

    async fn change_app(
        &self,
        current: &Application,
        from: &Value,
        to: &Value,
    ) -> StoreResult<Application> {
        let m = &current.metadata;
        let applications = &self.records.applications;
        let known = applications
            .get(&m.namespace, &m.name)
            .filter(|known| known.meta.resource_version == m.resource_version);
        let record = match known {
            Some(known) => known,
            None => applications
                .fetch(&m.namespace, &m.name)
                .await?
                .ok_or_else(|| StoreError::NotFound(not_found(&m.name)))?,
        };
        if record.meta.resource_version != m.resource_version {
            return Err(StoreError::Conflict(format!(
                "applications.argoproj.io {:?}: the object has been modified",
                m.name
            )));
        }
        typed(
            &*applications
                .write(&record, from, to)
                .await?
                .unwrap_or(record),
        )
    }

    async fn delete_app(&self, namespace: &str, name: &str) -> StoreResult<()> {
        Ok(self
            .records
            .applications
            .delete(namespace, name, "", "")
            .await?)
    }

    fn watch_apps(&self) -> BoxStream<'static, StoreEvent> {
        let applications = self.records.applications.clone();
        let changes: Option<broadcast::Receiver<Arc<RecordChange<Application>>>> = None;
        futures::stream::unfold(
            (applications, changes),
            |(applications, mut changes)| async move {
                loop {
                    let Some(receiver) = &mut changes else {
                        while let Err(e) = applications.wait_ready().await {
                            tracing::warn!(error = %e, "the Applications cannot be read");
                            tokio::time::sleep(std::time::Duration::from_millis(500)).await;
                        }
                        changes = Some(applications.changes());
                        let items = applications
                            .list()
                            .iter()
                            .filter_map(|r| readable(r))
                            .collect();
                        let resource_version = applications.position().to_string();
                        return Some((
                            StoreEvent::Reset {
                                items,
                                resource_version,
                            },
                            (applications, changes),
                        ));
                    };
                    match receiver.recv().await {
                        Ok(change) => {
                            if let Some(app) = readable(&change.record) {
                                let event = match change.change_type {
                                    ChangeType::Deleted => StoreEvent::Deleted(app),
                                    ChangeType::Added | ChangeType::Modified => {
                                        StoreEvent::Changed(app)
                                    }
                                };
                                return Some((event, (applications, changes)));
                            }
                        }
                        Err(RecvError::Lagged(_)) => changes = None,
                        Err(RecvError::Closed) => return None,
                    }
                }
            },
        )
        .boxed()
    }

    fn project(&self, name: &str) -> Option<Arc<AppProject>> {
        self.records.project(name)
    }

    async fn list_projects(&self) -> StoreResult<Vec<AppProject>> {
        Ok(self
            .records
            .projects
            .list()
            .iter()
            .filter_map(|r| Some(AppProject::clone(&*readable(r)?)))
            .collect())
    }

    async fn get_project(&self, name: &str) -> StoreResult<AppProject> {
        let known = self.records.projects.get(&self.records.namespace, name);
        let found = match known {
            Some(record) => Some(record),
            None => {
                self.records
                    .projects
                    .fetch(&self.records.namespace, name)
                    .await?
            }
        };
        match found {
            Some(record) => typed(&record),
            None => Err(StoreError::NotFound(format!(
                "appprojects.argoproj.io {name:?} not found"
            ))),
        }
    }

    fn effective_project(&self, project: AppProject) -> AppProject {
        AppProject::clone(&self.records.effective(&Arc::new(project)))
    }

    fn global_projects(&self, project: &AppProject) -> Vec<AppProject> {
        self.records
            .global_projects(project)
            .iter()
            .map(|p| AppProject::clone(p))
            .collect()
    }

    async fn create_project(&self, project: &AppProject) -> StoreResult<AppProject> {
        typed(
            &*self
                .records
                .projects
                .create(&object(project, &self.records.namespace)?)
                .await?,
        )
    }

    async fn update_project(&self, project: &AppProject) -> StoreResult<AppProject> {
        typed(
            &*self
                .records
                .projects
                .update(&object(project, &self.records.namespace)?)
                .await?,
        )
    }

    async fn delete_project(&self, name: &str) -> StoreResult<()> {
        Ok(self
            .records
            .projects
            .delete(&self.records.namespace, name, "", "")
            .await?)
    }

    async fn config_map(&self, name: &str) -> StoreResult<BTreeMap<String, String>> {
        let record = self.records.config_maps.get(&self.records.namespace, name);
        let object = record.map(|r| r.object()).transpose()?;
        let mut data = object.as_ref().map(texts).unwrap_or_default();
        if name == PARAMS {
            // Those of the command line are among them.
            data.extend(self.records.settings().params.clone());
        }
        Ok(data)
    }

    async fn read_config_map(&self, name: &str) -> StoreResult<ConfigMapRecord> {
        let store = &self.records.config_maps;
        let Some(record) = store.fetch(&self.records.namespace, name).await? else {
            return Ok(ConfigMapRecord::default());
        };
        Ok(ConfigMapRecord {
            data: texts(&record.object()?),
            version: record.meta.resource_version.clone(),
        })
    }

    async fn set_in_config_map(
        &self,
        name: &str,
        version: &str,
        values: &BTreeMap<String, Option<String>>,
    ) -> StoreResult<()> {
        let (namespace, store) = (&self.records.namespace, &self.records.config_maps);
        let written = if version.is_empty() {
            let data: BTreeMap<_, _> = values.iter().filter(|(_, v)| v.is_some()).collect();
            let labels = json!({"app.kubernetes.io/name": name, PART_OF_LABEL: "argocd"});
            let metadata = json!({"name": name, "namespace": namespace, "labels": labels});
            let new = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data});
            let new = Object::from_value(new).map_err(|e| StoreError::Invalid(e.to_string()))?;
            store.create(&new).await
        } else {
            let patch = json!({"metadata": {"resourceVersion": version}, "data": values});
            store.merge_patch(namespace, name, &patch).await
        };
        changed_since(written)?;
        self.records.settle().await;
        Ok(())
    }

    async fn secret(&self, name: &str) -> StoreResult<SecretRecord> {
        let record = self.records.secrets.get(&self.records.namespace, name);
        let record =
            record.ok_or_else(|| StoreError::NotFound(format!("secrets {name:?} not found")))?;
        Ok(secret_record(&record.object()?))
    }

    async fn secrets_of_type(&self, secret_type: &str) -> StoreResult<Vec<SecretRecord>> {
        let all = self.records.secrets.list();
        let of_type = |r: &Record<Object>| {
            r.meta
                .labels
                .get(SECRET_TYPE_LABEL)
                .is_some_and(|t| t == secret_type)
        };
        Ok(all
            .iter()
            .filter(|r| of_type(r))
            .filter_map(|r| Some(secret_record(&r.object().ok()?)))
            .collect())
    }

    async fn put_secret(&self, secret: &SecretRecord) -> StoreResult<()> {
        let (namespace, store) = (&self.records.namespace, &self.records.secrets);
        let mut data: Map<String, Value> = secret
            .data
            .iter()
            .map(|(k, v)| (k.clone(), STANDARD.encode(v).into()))
            .collect();
        let mut metadata = json!({"name": secret.name, "namespace": namespace, "labels": secret.labels, "annotations": secret.annotations});
        if let Some(before) = store.fetch(namespace, &secret.name).await? {
            let before = before.object()?;
            // A merge patch keeps what it does not name.
            for (field, had) in [
                ("labels", before.labels()),
                ("annotations", before.annotations()),
            ] {
                for key in had.into_keys() {
                    if metadata[field].get(&key).is_none() {
                        metadata[field][key] = Value::Null;
                    }
                }
            }
            for key in before
                .0
                .get("data")
                .and_then(Value::as_object)
                .into_iter()
                .flat_map(Map::keys)
            {
                data.entry(key.clone()).or_insert(Value::Null);
            }
            store
                .merge_patch(
                    namespace,
                    &secret.name,
                    &json!({"metadata": metadata, "data": data}),
                )
                .await?;
        } else {
            let new = json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": metadata, "data": data});
            store
                .create(&Object::from_value(new).map_err(|e| StoreError::Invalid(e.to_string()))?)
                .await?;
        }
        self.records.settle().await;
        Ok(())
    }

    async fn set_in_secret(
        &self,
        name: &str,
        values: &BTreeMap<String, Vec<u8>>,
    ) -> StoreResult<()> {
        let data: Map<String, Value> = values
            .iter()
            .map(|(k, v)| (k.clone(), STANDARD.encode(v).into()))
            .collect();
        self.records
            .secrets
            .merge_patch(&self.records.namespace, name, &json!({"data": data}))
            .await?;
        self.records.settle().await;
        Ok(())
    }

    async fn read_secret(&self, name: &str) -> StoreResult<(SecretData, String)> {
        let store = &self.records.secrets;
        let Some(record) = store.fetch(&self.records.namespace, name).await? else {
            return Ok((SecretData::new(), String::new()));
        };
        let version = record.meta.resource_version.clone();
        Ok((secret_record(&record.object()?).data, version))
    }

    async fn change_secret(
        &self,
        name: &str,
        version: &str,
        values: &BTreeMap<String, Option<Vec<u8>>>,
    ) -> StoreResult<()> {
        let (namespace, store) = (&self.records.namespace, &self.records.secrets);
        let encoded = |value: &Option<Vec<u8>>| value.as_ref().map(|value| STANDARD.encode(value));
        let values: BTreeMap<_, _> = values.iter().map(|(k, v)| (k, encoded(v))).collect();
        let written = if version.is_empty() {
            let data: BTreeMap<_, _> = values.iter().filter(|(_, v)| v.is_some()).collect();
            let labels = json!({PART_OF_LABEL: "argocd"});
            let metadata = json!({"name": name, "namespace": namespace, "labels": labels});
            let new = json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": metadata, "data": data});
            let new = Object::from_value(new).map_err(|e| StoreError::Invalid(e.to_string()))?;
            store.create(&new).await
        } else {
            let patch = json!({"metadata": {"resourceVersion": version}, "data": values});
            store.merge_patch(namespace, name, &patch).await
        };
        let concerns_settings = written
            .as_ref()
            .is_ok_and(|record| is_setting(&record.meta.name, &record.meta.labels));
        changed_since(written)?;
        if concerns_settings {
            self.records.settle().await;
        }
        Ok(())
    }

    async fn delete_secret(&self, name: &str) -> StoreResult<()> {
        self.records
            .secrets
            .delete(&self.records.namespace, name, "", "")
            .await?;
        self.records.settle().await;
        Ok(())
    }

    async fn release_secret(&self, name: &str) -> StoreResult<()> {
        let patch = json!({"metadata": {"labels": {SECRET_TYPE_LABEL: null}}});
        self.records
            .secrets
            .merge_patch(&self.records.namespace, name, &patch)
            .await?;
        self.records.settle().await;
        Ok(())
    }

    async fn record_event(&self, event: EventRecord) -> StoreResult<()> {
        let (group, version) = match event.api_kind {
            EventRecord::CONFIG_MAP => ("", "v1"),
            _ => (tiphys_api::constants::GROUP, tiphys_api::constants::VERSION),
        };
        let target = EventTarget {
            gvk: Gvk::new(group, version, event.api_kind),
            namespace: event.namespace,
            name: event.name,
            uid: event.uid,
            resource_version: event.resource_version,
        };
        let annotated = event.annotations.iter().fold(
            Event::new(target, event.reason, event.message),
            |e, (k, v)| e.annotation(k, v),
        );
        // Clients that list events after the call returns must find this one.
        self.events
            .write(&annotated)
            .await
            .map_err(|e| StoreError::Unavailable(e.to_string()))
    }

    async fn events(&self, namespace: &str, field_selector: &str) -> StoreResult<EventList> {
        super::events(self.cluster(), None, namespace, field_selector)
            .await
            .map_err(|e| StoreError::Unavailable(e.message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_contain_only_some_secrets() {
        let labelled =
            |label: &str, value: &str| BTreeMap::from([(label.to_owned(), value.to_owned())]);
        for (name, labels, expected) in [
            ("argocd-secret", BTreeMap::new(), true),
            ("repo-1", labelled(SECRET_TYPE_LABEL, "repository"), true),
            (
                "tiphys-revoked-sessions",
                labelled(PART_OF_LABEL, "argocd"),
                false,
            ),
        ] {
            assert_eq!(is_setting(name, &labels), expected, "{name}");
        }
    }
}
