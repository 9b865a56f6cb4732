//! [`RecordSets`]: ApplicationSets through `cluster::records`, and what they generate.

use super::records::{Written, object, readable, typed};
use crate::{
    ApiError,
    ports::{IsFollowed, SetEvent, Sets, StoreError, StoreResult},
};
use async_trait::async_trait;
use futures::{StreamExt as _, stream::BoxStream};
use serde_json::json;
use std::sync::Arc;
use tiphys_api::{
    Application, ApplicationSet,
    constants::{APPLICATION_SET_REFRESH, APPLICATION_SET_REFRESH_TIMESTAMP},
};
use tiphys_appset::{
    Followed,
    deleted_set::{DeletedSet, LABEL, LABEL_VALUE},
};
use tiphys_cluster::{
    ChangeType,
    records::{RecordChange, Store},
};
use tiphys_rpc::heavy;
use tiphys_sources::Answers;
use tokio::sync::broadcast::Receiver;

/// The sets of one control plane.
pub struct RecordSets {
    sets: Store<ApplicationSet>,
    answers: Answers,
}

impl RecordSets {
    pub fn new(sets: Store<ApplicationSet>, answers: Answers) -> Self {
        Self { sets, answers }
    }
}

impl Written for ApplicationSet {
    const KIND: &'static str = "ApplicationSet";
}

#[async_trait]
impl Sets for RecordSets {
    fn list(&self) -> (Vec<Arc<ApplicationSet>>, String) {
        let records = self.sets.list();
        let sets = records.iter().filter_map(|record| readable(record));
        (sets.collect(), self.sets.position().to_string())
    }

    async fn get(&self, namespace: &str, name: &str) -> StoreResult<ApplicationSet> {
        let record = match self.sets.get(namespace, name) {
            Some(record) => Some(record),
            // It may have been created a moment ago.
            None => self.sets.fetch(namespace, name).await?,
        };
        let missing =
            || StoreError::NotFound(format!("applicationset.argoproj.io {name:?} not found"));
        typed(&*record.ok_or_else(missing)?)
    }

    async fn deleted(&self, namespace: &str, name: &str) -> StoreResult<ApplicationSet> {
        let mut secrets = self.answers.records.secrets.list();
        secrets.retain(|secret| {
            let kind = secret.meta.labels.get(LABEL);
            kind.is_some_and(|kind| kind == LABEL_VALUE)
        });
        let wanted = (namespace.to_owned(), name.to_owned());
        let kept = heavy::run(move || {
            let objects = secrets.iter().filter_map(|secret| {
                let name = &secret.meta.name;
                let object = secret.object().inspect_err(|e| {
                    tracing::warn!(secret = name, "a deleted set is left out: {e}");
                });
                Some(object.ok()?.into_value())
            });
            let newest = DeletedSet::newest(objects, &wanted.0, &wanted.1)?;
            Some(DeletedSet::from_secret(&newest))
        })
        .await;
        match kept {
            Some(Ok(kept)) => Ok(kept.set),
            Some(Err(e)) => Err(StoreError::Invalid(format!(
                "the deleted ApplicationSet {name:?} cannot be read: {e}"
            ))),
            None => Err(StoreError::NotFound(format!(
                "no deleted ApplicationSet {name:?} is kept"
            ))),
        }
    }

    async fn create(&self, set: &ApplicationSet) -> StoreResult<ApplicationSet> {
        let mut object = object(set, &set.metadata.namespace)?;
        object.0.remove("status");
        typed(&*self.sets.create(&object).await?)
    }

    async fn update(&self, set: &ApplicationSet) -> StoreResult<ApplicationSet> {
        let object = object(set, &set.metadata.namespace)?;
        typed(&*self.sets.update(&object).await?)
    }

    async fn delete(&self, namespace: &str, name: &str) -> StoreResult<()> {
        Ok(self.sets.delete(namespace, name, "", "").await?)
    }

    fn watch(&self) -> BoxStream<'static, SetEvent> {
        let changes = self.sets.changes();
        futures::stream::unfold(changes, next).boxed()
    }

    async fn refresh(&self, namespace: &str, name: &str) -> StoreResult<()> {
        // A request that comes while another one is answered must differ from it.
        let now = jiff::Timestamp::now().to_string();
        let annotations =
            json!({APPLICATION_SET_REFRESH: "true", APPLICATION_SET_REFRESH_TIMESTAMP: now});
        let patch = json!({"metadata": {"annotations": annotations}});
        let patched = self.sets.merge_patch(namespace, name, &patch).await;
        Ok(patched.map(drop)?)
    }

    async fn follows(&self, set: &ApplicationSet, is_it: IsFollowed) -> bool {
        let is_it = move |generator: Followed<'_>| is_it(generator);
        self.answers.follows(set, is_it).await
    }

    async fn generate(&self, set: &ApplicationSet) -> Result<Vec<Application>, ApiError> {
        let generated = self.answers.generate(set, false).await;
        match generated.failure {
            None => Ok(generated.applications),
            Some(failure) => Err(ApiError::plain(format!(
                "unable to generate Applications of ApplicationSet: error generating applications: {failure}"
            ))),
        }
    }
}

type Changes = Receiver<Arc<RecordChange<ApplicationSet>>>;

/// The next change. There is none after a slow client has missed one: whoever goes on without it
/// would believe for ever what is no longer so.
async fn next(mut changes: Changes) -> Option<(SetEvent, Changes)> {
    while let Ok(change) = changes.recv().await {
        if let Some(set) = readable(&change.record) {
            let change = match change.change_type {
                ChangeType::Added => "ADDED",
                ChangeType::Modified => "MODIFIED",
                ChangeType::Deleted => "DELETED",
            };
            return Some((SetEvent { change, set }, changes));
        }
    }
    None
}
