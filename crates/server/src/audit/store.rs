//! The ports of records, with a note of each change for the audit log. Main types:
//! [`RecordedStore`] and [`RecordedSets`].

use super::{
    between, changed,
    record::{Change, Difference},
};
use crate::{
    ApiError,
    ports::{
        ConfigMapRecord, EventRecord, IsFollowed, SecretData, SecretRecord, SetEvent, Sets, Store,
        StoreEvent, StoreResult,
    },
};
use async_trait::async_trait;
use futures::stream::BoxStream;
use serde::Serialize;
use serde_json::{Value, json};
use std::{collections::BTreeMap, sync::Arc};
use tiphys_api::{AppProject, Application, ApplicationSet, rpc::events::EventList};

const CREATED: &str = "created";
const UPDATED: &str = "updated";
const DELETED: &str = "deleted";

fn change(done: &str, kind: &str, (namespace, name): (&str, &str), diff: Vec<Difference>) {
    changed(|| Change {
        done: done.to_owned(),
        kind: kind.to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        diff,
    });
}

/// What people write of an object: no status, and of the metadata only labels and annotations.
fn written(object: &impl Serialize) -> Value {
    let value = serde_json::to_value(object).unwrap_or_default();
    json!({
        "metadata": {
            "labels": value["metadata"]["labels"],
            "annotations": value["metadata"]["annotations"],
            "finalizers": value["metadata"]["finalizers"],
        },
        "spec": value["spec"],
        "operation": value["operation"],
    })
}

/// The names of values that differ; the values are secret.
fn keys<'a>(keys: impl Iterator<Item = &'a String>) -> Vec<Difference> {
    keys.map(|key| Difference {
        path: key.clone(),
        from: Value::Null,
        to: Value::Null,
    })
    .collect()
}

/// The records in Kubernetes.
pub(crate) struct RecordedStore(pub Arc<dyn Store>);

#[async_trait]
impl Store for RecordedStore {
    fn permits(&self, namespace: &str) -> bool {
        self.0.permits(namespace)
    }

    fn permits_others(&self) -> bool {
        self.0.permits_others()
    }

    fn problem(&self) -> Option<String> {
        self.0.problem()
    }

    fn versions(&self, config_maps: &[&str], secrets: &[&str]) -> Option<Vec<String>> {
        self.0.versions(config_maps, secrets)
    }

    async fn get_app(&self, namespace: &str, name: &str) -> StoreResult<Application> {
        self.0.get_app(namespace, name).await
    }

    async fn create_app(&self, app: &Application) -> StoreResult<Application> {
        let created = self.0.create_app(app).await?;
        let m = &created.metadata;
        let diff = between(&Value::Null, &written(&created));
        change(CREATED, "Application", (&m.namespace, &m.name), diff);
        Ok(created)
    }

    async fn patch_app(
        &self,
        namespace: &str,
        name: &str,
        patch: &Value,
    ) -> StoreResult<Application> {
        let patched = self.0.patch_app(namespace, name, patch).await?;
        let diff = between(&Value::Null, patch);
        change(UPDATED, "Application", (namespace, name), diff);
        Ok(patched)
    }

    async fn change_app(
        &self,
        current: &Application,
        from: &Value,
        to: &Value,
    ) -> StoreResult<Application> {
        let updated = self.0.change_app(current, from, to).await?;
        let m = &current.metadata;
        change(
            UPDATED,
            "Application",
            (&m.namespace, &m.name),
            between(from, to),
        );
        Ok(updated)
    }

    async fn delete_app(&self, namespace: &str, name: &str) -> StoreResult<()> {
        self.0.delete_app(namespace, name).await?;
        change(DELETED, "Application", (namespace, name), Vec::new());
        Ok(())
    }

    fn watch_apps(&self) -> BoxStream<'static, StoreEvent> {
        self.0.watch_apps()
    }

    fn project(&self, name: &str) -> Option<Arc<AppProject>> {
        self.0.project(name)
    }

    async fn list_projects(&self) -> StoreResult<Vec<AppProject>> {
        self.0.list_projects().await
    }

    async fn get_project(&self, name: &str) -> StoreResult<AppProject> {
        self.0.get_project(name).await
    }

    fn effective_project(&self, project: AppProject) -> AppProject {
        self.0.effective_project(project)
    }

    fn global_projects(&self, project: &AppProject) -> Vec<AppProject> {
        self.0.global_projects(project)
    }

    async fn create_project(&self, project: &AppProject) -> StoreResult<AppProject> {
        let created = self.0.create_project(project).await?;
        let m = &created.metadata;
        let diff = between(&Value::Null, &written(&created));
        change(CREATED, "AppProject", (&m.namespace, &m.name), diff);
        Ok(created)
    }

    async fn update_project(&self, project: &AppProject) -> StoreResult<AppProject> {
        let before = self.0.project(&project.metadata.name);
        let before = before.map_or(Value::Null, |before| written(&*before));
        let updated = self.0.update_project(project).await?;
        let m = &updated.metadata;
        let diff = between(&before, &written(&updated));
        change(UPDATED, "AppProject", (&m.namespace, &m.name), diff);
        Ok(updated)
    }

    async fn delete_project(&self, name: &str) -> StoreResult<()> {
        self.0.delete_project(name).await?;
        change(DELETED, "AppProject", ("", name), Vec::new());
        Ok(())
    }

    async fn config_map(&self, name: &str) -> StoreResult<BTreeMap<String, String>> {
        self.0.config_map(name).await
    }

    async fn read_config_map(&self, name: &str) -> StoreResult<ConfigMapRecord> {
        self.0.read_config_map(name).await
    }

    async fn set_in_config_map(
        &self,
        name: &str,
        version: &str,
        values: &BTreeMap<String, Option<String>>,
    ) -> StoreResult<()> {
        self.0.set_in_config_map(name, version, values).await?;
        change(UPDATED, "ConfigMap", ("", name), keys(values.keys()));
        Ok(())
    }

    async fn secret(&self, name: &str) -> StoreResult<SecretRecord> {
        self.0.secret(name).await
    }

    async fn secrets_of_type(&self, secret_type: &str) -> StoreResult<Vec<SecretRecord>> {
        self.0.secrets_of_type(secret_type).await
    }

    async fn put_secret(&self, secret: &SecretRecord) -> StoreResult<()> {
        let before = self.0.secret(&secret.name).await;
        self.0.put_secret(secret).await?;
        let (done, before) = match before {
            Ok(before) => (UPDATED, before.data),
            Err(_) => (CREATED, BTreeMap::new()),
        };
        let is_other = |key: &&String| before.get(*key) != secret.data.get(*key);
        let gone = before.keys().filter(|key| !secret.data.contains_key(*key));
        let names = secret.data.keys().filter(is_other).chain(gone);
        change(done, "Secret", ("", &secret.name), keys(names));
        Ok(())
    }

    async fn set_in_secret(
        &self,
        name: &str,
        values: &BTreeMap<String, Vec<u8>>,
    ) -> StoreResult<()> {
        self.0.set_in_secret(name, values).await?;
        change(UPDATED, "Secret", ("", name), keys(values.keys()));
        Ok(())
    }

    async fn read_secret(&self, name: &str) -> StoreResult<(SecretData, String)> {
        self.0.read_secret(name).await
    }

    async fn change_secret(
        &self,
        name: &str,
        version: &str,
        values: &BTreeMap<String, Option<Vec<u8>>>,
    ) -> StoreResult<()> {
        self.0.change_secret(name, version, values).await?;
        let done = if version.is_empty() { CREATED } else { UPDATED };
        change(done, "Secret", ("", name), keys(values.keys()));
        Ok(())
    }

    async fn delete_secret(&self, name: &str) -> StoreResult<()> {
        self.0.delete_secret(name).await?;
        change(DELETED, "Secret", ("", name), Vec::new());
        Ok(())
    }

    async fn release_secret(&self, name: &str) -> StoreResult<()> {
        self.0.release_secret(name).await?;
        let label = "metadata.labels.argocd.argoproj.io/secret-type".to_owned();
        change(UPDATED, "Secret", ("", name), keys(std::iter::once(&label)));
        Ok(())
    }

    async fn record_event(&self, event: EventRecord) -> StoreResult<()> {
        self.0.record_event(event).await
    }

    async fn events(&self, namespace: &str, field_selector: &str) -> StoreResult<EventList> {
        self.0.events(namespace, field_selector).await
    }
}

/// The ApplicationSets in Kubernetes.
pub(crate) struct RecordedSets(pub Arc<dyn Sets>);

const SET: &str = "ApplicationSet";

#[async_trait]
impl Sets for RecordedSets {
    fn list(&self) -> (Vec<Arc<ApplicationSet>>, String) {
        self.0.list()
    }

    async fn get(&self, namespace: &str, name: &str) -> StoreResult<ApplicationSet> {
        self.0.get(namespace, name).await
    }

    async fn deleted(&self, namespace: &str, name: &str) -> StoreResult<ApplicationSet> {
        self.0.deleted(namespace, name).await
    }

    async fn create(&self, set: &ApplicationSet) -> StoreResult<ApplicationSet> {
        let created = self.0.create(set).await?;
        let m = &created.metadata;
        let diff = between(&Value::Null, &written(&created));
        change(CREATED, SET, (&m.namespace, &m.name), diff);
        Ok(created)
    }

    async fn update(&self, set: &ApplicationSet) -> StoreResult<ApplicationSet> {
        let m = &set.metadata;
        let before = self.0.get(&m.namespace, &m.name).await;
        let before = before.map_or(Value::Null, |before| written(&before));
        let updated = self.0.update(set).await?;
        let diff = between(&before, &written(&updated));
        change(UPDATED, SET, (&m.namespace, &m.name), diff);
        Ok(updated)
    }

    async fn delete(&self, namespace: &str, name: &str) -> StoreResult<()> {
        self.0.delete(namespace, name).await?;
        change(DELETED, SET, (namespace, name), Vec::new());
        Ok(())
    }

    fn watch(&self) -> BoxStream<'static, SetEvent> {
        self.0.watch()
    }

    async fn refresh(&self, namespace: &str, name: &str) -> StoreResult<()> {
        self.0.refresh(namespace, name).await
    }

    async fn follows(&self, set: &ApplicationSet, is_it: IsFollowed) -> bool {
        self.0.follows(set, is_it).await
    }

    async fn generate(&self, set: &ApplicationSet) -> Result<Vec<Application>, ApiError> {
        self.0.generate(set).await
    }
}
