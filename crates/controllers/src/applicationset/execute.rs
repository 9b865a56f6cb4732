//! Carries out plans. Main functions: [`Controller::carry_out`] and [`Controller::apply`].

use super::{Controller, events::Told, update::Written};
use futures::{FutureExt as _, StreamExt as _, stream};
use serde::Serialize;
use serde_json::json;
use std::{collections::BTreeSet, sync::Arc, time::Duration};
use tiphys_api::{
    Application, ApplicationSet, application::ApplicationSpec, constants, meta::ObjectMeta,
    operation::Operation,
};
use tiphys_appset::{
    reconcile::{Change, Done, Existing, Plan, has_no_cluster, is_owned},
    tombstone,
};
use tiphys_cluster::{Error, records::Record};

/// Concurrent writes of one set, if that is not said.
const CONCURRENT: usize = 16;
/// The most that may be said.
const MOST_CONCURRENT: usize = 200;
/// How often an Application that changes during its deletion is judged again.
const CONFLICTS: usize = 8;
/// When it is decided again whether a sync starts that could not start.
const SOON: Duration = Duration::from_secs(1);

/// What came of a plan.
pub(super) struct Carried {
    pub done: Done,
    /// When the set is to be reconciled again because a sync was not started: its Application was
    /// no longer the one that this was decided by.
    pub again: Option<Duration>,
}

/// Nothing was to be done.
impl Default for Carried {
    fn default() -> Self {
        Self {
            done: Done::Completely,
            again: None,
        }
    }
}

/// What came of several writes.
#[derive(Default)]
struct Applied {
    /// The errors, with the names of the Applications.
    failed: Vec<(String, String)>,
    again: Option<Duration>,
}

impl Controller {
    /// Creates and updates, then deletes if all of that succeeded. The first error by name is the
    /// result; the other writes are made nevertheless.
    pub(super) async fn carry_out(&self, set: &ApplicationSet, plan: &Plan) -> Carried {
        let written = self.apply_all(set, &plan.writes).await;
        let mut failed = plan.refused.clone();
        failed.extend(written.failed);
        let done = match failed.into_values().next() {
            Some(message) => Done::WriteFailed(message),
            None => self.delete_all(set, plan).await,
        };
        Carried {
            done,
            again: written.again,
        }
    }

    async fn delete_all(&self, set: &ApplicationSet, plan: &Plan) -> Done {
        if let Some(tombstones) = &plan.tombstones
            && let Err(error) = self.keep(set, tombstones).await
        {
            return Done::DeleteFailed(format!("what is deleted could not be kept: {error}"));
        }
        let deleted = self.apply_all(set, &plan.deletes).await;
        match deleted.failed.into_iter().min() {
            Some((_, message)) => Done::DeleteFailed(message),
            None => Done::Completely,
        }
    }

    /// Says what is not done in a dry run.
    fn leave(&self, set: &ApplicationSet, change: &Change) {
        let what = match change {
            Change::Create(_) => "create",
            Change::Update { .. } => "update",
            Change::Delete { .. } => "delete",
        };
        let m = &set.metadata;
        tracing::info!(
            applicationset = m.name,
            namespace = m.namespace,
            application = change.name(),
            "dry run: it would {what} the Application"
        );
    }

    /// Keeps what is deleted next.
    async fn keep(
        &self,
        set: &ApplicationSet,
        tombstones: &tombstone::Written,
    ) -> Result<(), Error> {
        if self.settings.dry_run {
            return Ok(());
        }
        let value = &tombstones.value;
        let patch = json!({"metadata": {"annotations": {constants::DELETED_APPLICATIONS: value}}});
        let (namespace, name) = (&set.metadata.namespace, &set.metadata.name);
        self.sets.merge_patch(namespace, name, &patch).await?;
        if tombstones.missing > 0 {
            tracing::warn!(
                applicationset = name,
                namespace,
                "{} of the Applications that are deleted cannot be kept, for lack of room",
                tombstones.missing
            );
        }
        Ok(())
    }

    async fn apply_all(&self, set: &ApplicationSet, changes: &[Change]) -> Applied {
        let told = Told::default();
        // Boxed and collected: a stream of borrowing closures is not `Send` enough for a task.
        let writes: Vec<_> = changes
            .iter()
            .map(|change| self.tried(set, change, &told).boxed())
            .collect();
        let concurrent = self.settings.concurrent_updates.unwrap_or(CONCURRENT);
        let results: Vec<_> = stream::iter(writes)
            .buffer_unordered(concurrent.clamp(1, MOST_CONCURRENT))
            .collect()
            .await;
        self.tell_rest(set, told);
        let mut applied = Applied::default();
        for result in results {
            match result {
                Ok(again) => applied.again = applied.again.or(again),
                Err(failed) => applied.failed.push(failed),
            }
        }
        applied
    }

    async fn tried(
        &self,
        set: &ApplicationSet,
        change: &Change,
        told: &Told,
    ) -> Result<Option<Duration>, (String, String)> {
        let applied = self.apply(set, change, told).await;
        applied.map_err(|error| (change.name().to_owned(), error.to_string()))
    }

    /// One write. Returns when the set is to be reconciled again because of it.
    pub(super) async fn apply(
        &self,
        set: &ApplicationSet,
        change: &Change,
        told: &Told,
    ) -> Result<Option<Duration>, Error> {
        if self.settings.dry_run {
            self.leave(set, change);
            return Ok(None);
        }
        let mut again = None;
        let name = change.name();
        let applications = &self.records.applications;
        let (reason, verb) = match change {
            Change::Create(app) => {
                let (json, meta) = (json_of(app)?, &app.metadata);
                applications
                    .create_json(&meta.namespace, &meta.name, json)
                    .await?;
                ("created", "created")
            }
            Change::Update { patch, after, .. } => {
                let written = self.update(after, patch).await?;
                again = (written != Written::All).then_some(SOON);
                if written == Written::Nothing {
                    return Ok(again);
                }
                ("updated", "updated")
            }
            Change::Delete { release, .. } => {
                if !self.delete_one(set, name, *release, told).await? {
                    return Ok(None);
                }
                ("Deleted", "Deleted")
            }
        };
        self.tell(set, told, reason, format!("{verb} Application \"{name}\""));
        Ok(again)
    }

    /// Deletes an Application in the state in which it was judged. Since it was planned it may have
    /// been made independent of the set, or another one may have its name; its cluster may be known
    /// again, so that its resources can be deleted. `false`: it is no longer to be deleted.
    async fn delete_one(
        &self,
        set: &ApplicationSet,
        name: &str,
        release: bool,
        told: &Told,
    ) -> Result<bool, Error> {
        let namespace = &set.metadata.namespace;
        let applications = &self.records.applications;
        let mut found = applications.get(namespace, name);
        let mut attempt = 0;
        loop {
            let Some(record) = found else {
                return Ok(false);
            };
            let app = judged(&record)?;
            if !is_owned(&app, set) {
                return Ok(false);
            }
            let seen = if release && self.has_no_cluster(&app) {
                self.release(set, &record, told).await
            } else {
                Ok(record)
            };
            let deleted = match seen {
                Ok(record) => applications.delete_as_seen(&record).await,
                Err(error) => Err(error),
            };
            match deleted {
                Err(e) if e.is_conflict() && attempt < CONFLICTS => {}
                Err(e) if applications.is_gone(&e, namespace, name) => return Ok(true),
                result => return result.map(|()| true),
            }
            attempt += 1;
            found = applications.fetch(namespace, name).await?;
        }
    }

    /// Makes an Application that outlives its set independent of it, in the state in which it was
    /// judged: since it was planned another owner may have taken it over, whose reference must
    /// stay.
    pub(super) async fn disown(&self, set: &ApplicationSet, name: &str) -> Result<(), Error> {
        let namespace = &set.metadata.namespace;
        let applications = &self.records.applications;
        let mut found = applications.get(namespace, name);
        let mut attempt = 0;
        loop {
            let Some(record) = found else {
                return Ok(());
            };
            let app = judged(&record)?;
            if !is_owned(&app, set) {
                return Ok(());
            }
            let version = &record.meta.resource_version;
            let patch = json!({"metadata": {"ownerReferences": null, "resourceVersion": version}});
            match applications.merge_patch(namespace, name, &patch).await {
                Err(e) if e.is_conflict() && attempt < CONFLICTS => {}
                Err(e) if applications.is_gone(&e, namespace, name) => return Ok(()),
                result => return result.map(drop),
            }
            attempt += 1;
            found = applications.fetch(namespace, name).await?;
        }
    }

    /// Whether it is certain now that the Application's cluster does not exist.
    fn has_no_cluster(&self, app: &Application) -> bool {
        let settings = self.records.settings();
        let existing = Existing {
            applications: &[],
            projects: &BTreeSet::new(),
            clusters: &settings.destinations,
            local_names: &settings.local_names,
            broken_clusters: &settings.broken_clusters,
        };
        self.records.problem().is_none() && has_no_cluster(app, &existing)
    }

    /// Removes the finalizer that deletes resources: their cluster does not exist. Returns the
    /// Application without it.
    async fn release(
        &self,
        set: &ApplicationSet,
        record: &Arc<Record<Application>>,
        told: &Told,
    ) -> Result<Arc<Record<Application>>, Error> {
        let meta = &record.meta;
        let kept: Vec<&String> = meta
            .finalizers
            .iter()
            .filter(|finalizer| *finalizer != constants::RESOURCES_FINALIZER)
            .collect();
        if kept.len() == meta.finalizers.len() {
            return Ok(Arc::clone(record));
        }
        let name = &meta.name;
        // Of the state that was judged: others may have added finalizers of their own.
        let patch = json!({
            "metadata": {"finalizers": kept, "resourceVersion": meta.resource_version},
        });
        let applications = &self.records.applications;
        let released = applications
            .merge_patch(&meta.namespace, name, &patch)
            .await?;
        let message = format!(
            "Updated Application \"{name}\" finalizer before deletion, because application has an \
             invalid destination"
        );
        self.tell(set, told, "Updated", message);
        Ok(released)
    }
}

/// What an Application is judged by just before it is written: by its metadata alone if the rest
/// cannot be read.
fn judged(record: &Record<Application>) -> Result<Arc<Application>, Error> {
    record
        .value()
        .or_else(|_| by_metadata(record).map(Arc::new))
}

/// An Application whose spec or status cannot be read, by its metadata alone: it does not hold the
/// sets up that have nothing to do with it, and a set that owns it writes its spec anew.
pub(super) fn by_metadata(record: &Record<Application>) -> Result<Application, Error> {
    let object = record.object()?;
    let metadata = object.0.get("metadata").cloned().unwrap_or_default();
    serde_json::from_value(json!({"metadata": metadata})).map_err(|e| Error::Invalid {
        key: format!("{}/{}", record.meta.namespace, record.meta.name),
        problem: e.to_string(),
    })
}

/// An Application for the API server: without a status. Its fields are those of [`Application`].
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Created<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    api_version: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    kind: &'a str,
    metadata: &'a ObjectMeta,
    spec: &'a ApplicationSpec,
    #[serde(skip_serializing_if = "Option::is_none")]
    operation: Option<&'a Operation>,
}

impl<'a> Created<'a> {
    fn new(app: &'a Application) -> Self {
        Self {
            api_version: &app.api_version,
            kind: &app.kind,
            metadata: &app.metadata,
            spec: &app.spec,
            operation: app.operation.as_deref(),
        }
    }
}

/// What is sent to create an Application.
fn json_of(app: &Application) -> Result<Vec<u8>, Error> {
    serde_json::to_vec(&Created::new(app)).map_err(|e| Error::Invalid {
        key: format!("{}/{}", app.metadata.namespace, app.metadata.name),
        problem: e.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn an_application_is_created_with_everything_but_a_status() {
        let whole = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {
                "name": "a", "namespace": "argocd", "labels": {"team": "one"},
                "annotations": {"b": "<&>"}, "finalizers": ["a.example/b"],
            },
            "spec": {
                "project": "default",
                "source": {
                    "repoURL": "https://git.example.test/a", "path": "a",
                    "helm": {"valuesObject": {"z": 1, "a": {"deep": [1.5, null, "x"]}}},
                },
                "destination": {"server": "https://kubernetes.default.svc", "namespace": "a"},
            },
            "operation": {"sync": {"revision": "v1"}, "initiatedBy": {"username": "set"}},
            "status": {"sync": {"status": "Synced"}, "health": {"status": "Healthy"}},
        });
        let mut app: Application = serde_json::from_value(whole).expect("an Application");
        for has_operation in [true, false] {
            app.operation = app.operation.filter(|_| has_operation);
            let mut wanted = serde_json::to_value(&app).expect("JSON");
            let fields = wanted.as_object_mut().expect("a map");
            assert!(fields.remove("status").is_some());
            let sent = json_of(&app).expect("JSON");
            let sent: Value = serde_json::from_slice(&sent).expect("JSON");
            assert_eq!(sent, wanted);
            assert_eq!(sent.get("operation").is_some(), has_operation);
        }
    }
}
