//! Carries out plans. Main functions: [`Controller::carry_out`] and [`Controller::apply`].

use super::Controller;
use futures::{FutureExt as _, StreamExt as _, stream};
use serde_json::{Value, json};
use tiphys_api::{ApplicationSet, constants};
use tiphys_apimachinery::{Gvk, Object};
use tiphys_appset::reconcile::{Change, Done, Plan};
use tiphys_cluster::{
    Error,
    records::{Event, EventTarget},
};

/// Concurrent writes of one set.
const CONCURRENT: usize = 16;

impl Controller {
    /// Creates and updates, then deletes if all of that succeeded. The first error by name is the
    /// result; the other writes are made nevertheless.
    pub(super) async fn carry_out(&self, set: &ApplicationSet, plan: &Plan) -> Done {
        let mut failed = plan.refused.clone();
        failed.extend(self.apply_all(set, &plan.writes).await);
        if let Some(message) = failed.into_values().next() {
            return Done::WriteFailed(message);
        }
        match self.apply_all(set, &plan.deletes).await.into_iter().min() {
            Some((_, message)) => Done::DeleteFailed(message),
            None => Done::Completely,
        }
    }

    /// The errors, with the names of the Applications.
    async fn apply_all(&self, set: &ApplicationSet, changes: &[Change]) -> Vec<(String, String)> {
        // Boxed and collected: a stream of borrowing closures is not `Send` enough for a task.
        let writes: Vec<_> = changes
            .iter()
            .map(|change| self.tried(set, change).boxed())
            .collect();
        let results: Vec<_> = stream::iter(writes)
            .buffer_unordered(CONCURRENT)
            .collect()
            .await;
        results.into_iter().flatten().collect()
    }

    async fn tried(&self, set: &ApplicationSet, change: &Change) -> Option<(String, String)> {
        let error = self.apply(set, change).await.err()?;
        Some((change.name().to_owned(), error.to_string()))
    }

    /// One write.
    pub(super) async fn apply(&self, set: &ApplicationSet, change: &Change) -> Result<(), Error> {
        let (namespace, name) = (set.metadata.namespace.as_str(), change.name());
        let applications = &self.records.applications;
        let (reason, verb) = match change {
            Change::Create(app) => {
                applications.create(&object(app)?).await?;
                ("created", "created")
            }
            Change::Update { patch, .. } => {
                applications.merge_patch(namespace, name, patch).await?;
                ("updated", "updated")
            }
            Change::Delete { release, .. } => {
                let Some(record) = applications.get(namespace, name) else {
                    return Ok(());
                };
                if *release {
                    self.release(namespace, name, &record.meta.finalizers)
                        .await?;
                }
                let uid = record.meta.uid.as_str();
                match applications.delete(namespace, name, uid, "").await {
                    Err(e) if e.is_not_found() => {}
                    result => result?,
                }
                ("Deleted", "Deleted")
            }
        };
        self.tell(set, reason, format!("{verb} Application \"{name}\""));
        Ok(())
    }

    /// Removes the finalizer that deletes resources: their cluster does not exist.
    async fn release(
        &self,
        namespace: &str,
        name: &str,
        finalizers: &[String],
    ) -> Result<(), Error> {
        let kept: Vec<&String> = finalizers
            .iter()
            .filter(|finalizer| *finalizer != constants::RESOURCES_FINALIZER)
            .collect();
        if kept.len() == finalizers.len() {
            return Ok(());
        }
        let patch = json!({"metadata": {"finalizers": kept}});
        let applications = &self.records.applications;
        applications.merge_patch(namespace, name, &patch).await?;
        Ok(())
    }

    pub(super) fn tell(&self, set: &ApplicationSet, reason: &'static str, message: String) {
        let target = EventTarget {
            gvk: Gvk::new(constants::GROUP, constants::VERSION, "ApplicationSet"),
            namespace: set.metadata.namespace.clone(),
            name: set.metadata.name.clone(),
            uid: set.metadata.uid.clone(),
            resource_version: set.metadata.resource_version.clone(),
        };
        self.events.record(Event::new(target, reason, message));
    }
}

/// An Application for the API server: without a status.
fn object(app: &tiphys_api::Application) -> Result<Object, Error> {
    let invalid = |problem: String| Error::Invalid {
        key: format!("{}/{}", app.metadata.namespace, app.metadata.name),
        problem,
    };
    let mut json = serde_json::to_value(app).map_err(|e| invalid(e.to_string()))?;
    if let Value::Object(fields) = &mut json {
        fields.remove("status");
    }
    Object::from_value(json).map_err(|e| invalid(e.to_string()))
}
