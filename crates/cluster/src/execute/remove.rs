//! Deleting objects, removing finalizers, migrating field managers.

use super::{Executor, invalid};
use crate::{
    discovery::Kind,
    error::{About, ApiError, Error},
    request::{Call, JSON, JSON_PATCH, backoff},
};
use http::Method;
use serde_json::{Map, Value, json};
use std::time::Duration;
use tiphys_apimachinery::{Gvk, Object, ResourceKey};
use tiphys_engine::sync::{Step, effect::EffectOk};

const CONFLICTS: u32 = 8;

impl Executor {
    pub(super) async fn delete(
        &self,
        step: &Step,
        uid: &str,
        propagation: &str,
    ) -> Result<EffectOk, Error> {
        // Hooks are removed although the project may not permit them any more.
        let kind = if step.is_prune() {
            self.permitted_kind(step).await?
        } else {
            self.kind(&step.gvk, &step.key).await?
        };
        let live = self.delete_uid(&kind, &step.key, uid, propagation).await?;
        Ok(EffectOk {
            live,
            message: "pruned".to_owned(),
        })
    }

    /// Deletes the object with this uid; it may already be gone.
    pub async fn remove(
        &self,
        gvk: &Gvk,
        key: &ResourceKey,
        uid: &str,
        propagation: &str,
    ) -> Result<(), Error> {
        let Some(kind) = self.kind_unless_gone(gvk, key).await? else {
            return Ok(());
        };
        let deleted = self.delete_uid(&kind, key, uid, propagation).await;
        self.unless_gone(key, deleted).await.map(drop)
    }

    /// Deletes an object if it is unchanged since `seen`; it may already be gone.
    ///
    /// # Errors
    /// A conflict: it has changed since.
    pub async fn remove_as_seen(&self, seen: &Object, propagation: &str) -> Result<(), Error> {
        let key = seen.key();
        let Some(kind) = self.kind_unless_gone(&seen.gvk(), &key).await? else {
            return Ok(());
        };
        let conditions = json!({"uid": seen.uid(), "resourceVersion": seen.resource_version()});
        let deleted = self
            .delete_if(&kind, &key, seen.uid(), Some(conditions), propagation)
            .await;
        self.unless_gone(&key, deleted).await.map(drop)
    }

    /// Deletes only the object with this uid (any, if empty); returns what is left of it, if it is
    /// not gone immediately.
    pub(super) async fn delete_uid(
        &self,
        kind: &Kind,
        key: &ResourceKey,
        uid: &str,
        propagation: &str,
    ) -> Result<Option<Object>, Error> {
        let conditions = (!uid.is_empty()).then(|| json!({"uid": uid}));
        self.delete_if(kind, key, uid, conditions, propagation)
            .await
    }

    async fn delete_if(
        &self,
        kind: &Kind,
        key: &ResourceKey,
        uid: &str,
        conditions: Option<Value>,
        propagation: &str,
    ) -> Result<Option<Object>, Error> {
        let namespace = if kind.namespaced {
            key.namespace.as_str()
        } else {
            ""
        };
        let mut options =
            json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": propagation});
        if let Some(conditions) = conditions {
            options["preconditions"] = conditions;
        }
        let call = Call::new(Method::DELETE, kind.object_path(namespace, &key.name))
            .with_body(JSON, options.to_string());
        let answer = match self.send(call).await {
            Err(e) if is_other_uid(&e) => {
                self.observe_deleted(key, uid);
                return Err(absent(key, api_error(e)));
            }
            Err(e) if e.is_absent(&key.name) => {
                self.observe_deleted(key, uid);
                return Err(e);
            }
            result => result?,
        };
        if is_gone(&answer) {
            self.observe_deleted(key, uid);
            return Ok(None);
        }
        self.observe_written(&answer).await;
        Ok(Some(answer))
    }

    pub(super) async fn remove_finalizer(
        &self,
        step: &Step,
        uid: &str,
        finalizer: &str,
    ) -> Result<EffectOk, Error> {
        let kind = self.kind(&step.gvk, &step.key).await?;
        let live = self
            .take_finalizer(&kind, &step.key, uid, finalizer)
            .await?;
        Ok(EffectOk {
            live,
            message: String::new(),
        })
    }

    /// Removes a finalizer from an object; it may already be gone.
    pub async fn release(&self, object: &Object, finalizer: &str) -> Result<(), Error> {
        let key = object.key();
        let Some(kind) = self.kind_unless_gone(&object.gvk(), &key).await? else {
            return Ok(());
        };
        let left = self
            .take_finalizer(&kind, &key, object.uid(), finalizer)
            .await;
        self.unless_gone(&key, left).await.map(drop)
    }

    /// Returns what is left of the object, if it is not gone after the finalizer was removed.
    async fn take_finalizer(
        &self,
        kind: &Kind,
        key: &ResourceKey,
        uid: &str,
        finalizer: &str,
    ) -> Result<Option<Object>, Error> {
        let namespace = if kind.namespaced {
            key.namespace.as_str()
        } else {
            ""
        };
        let mut live = self
            .cache
            .as_ref()
            .and_then(|c| c.object(key))
            .filter(|o| o.uid() == uid)
            .map(|o| Object::clone(&o));
        for attempt in 0..=CONFLICTS {
            let object = match live.take() {
                Some(object) => object,
                None => self.get(kind, namespace, &key.name).await?,
            };
            if !uid.is_empty() && object.uid() != uid {
                return Err(absent(
                    key,
                    ApiError {
                        message: format!("{} {:?} not found", kind.resource, key.name),
                        ..ApiError::default()
                    },
                ));
            }
            let Some(at) = object.finalizers().iter().position(|f| f == finalizer) else {
                return Ok(Some(object));
            };
            let path = format!("/metadata/finalizers/{at}");
            let patch = json!([
                {"op": "test", "path": "/metadata/uid", "value": object.uid()},
                {"op": "test", "path": path, "value": finalizer},
                {"op": "remove", "path": path},
            ]);
            let call = Call::new(Method::PATCH, kind.object_path(namespace, &key.name))
                .query("fieldManager", &self.manager);
            match self
                .send(call.with_body(JSON_PATCH, patch.to_string()))
                .await
            {
                // The JSON patch `test` fails if the list has changed.
                Err(e) if (e.is_conflict() || e.code() == Some(422)) && attempt < CONFLICTS => {
                    tokio::time::sleep(backoff(Duration::from_millis(5), attempt)).await
                }
                Err(e) => return Err(e),
                Ok(answer) if is_gone(&answer) => {
                    self.observe_deleted(key, object.uid());
                    return Ok(None);
                }
                Ok(object) => {
                    self.observe_written(&object).await;
                    return Ok(Some(object));
                }
            }
        }
        Err(invalid(
            key,
            format!("the finalizer {finalizer} could not be removed: the object keeps changing"),
        ))
    }

    /// Migrates the fields that `manager` owns with operation Update to our server-side apply
    /// manager.
    pub(super) async fn migrate_managers(
        &self,
        step: &Step,
        uid: &str,
        manager: &str,
    ) -> Result<EffectOk, Error> {
        let kind = self.permitted_kind(step).await?;
        self.migrate(&kind, &step.key, uid, manager).await
    }

    pub(super) async fn migrate(
        &self,
        kind: &Kind,
        key: &ResourceKey,
        uid: &str,
        manager: &str,
    ) -> Result<EffectOk, Error> {
        let namespace = if kind.namespaced {
            key.namespace.as_str()
        } else {
            ""
        };
        for attempt in 0..=CONFLICTS {
            let object = self.get(kind, namespace, &key.name).await?;
            let entries = object
                .metadata("managedFields")
                .and_then(Value::as_array)
                .cloned()
                .unwrap_or_default();
            let migrated = if uid.is_empty() || object.uid() == uid {
                migrated(&entries, manager, &self.manager)
            } else {
                None
            };
            let Some(migrated) = migrated else {
                return Ok(EffectOk {
                    live: Some(object),
                    message: String::new(),
                });
            };
            // Replacing the resourceVersion by itself turns a lost race into a conflict.
            let patch = json!([
                {"op": "replace", "path": "/metadata/managedFields", "value": migrated},
                {"op": "replace", "path": "/metadata/resourceVersion", "value": object.resource_version()},
            ]);
            let call = Call::new(Method::PATCH, kind.object_path(namespace, &key.name));
            match self
                .send(call.with_body(JSON_PATCH, patch.to_string()))
                .await
            {
                Err(e) if e.is_conflict() && attempt < CONFLICTS => {
                    tokio::time::sleep(backoff(Duration::from_millis(10), attempt)).await
                }
                Err(e) => return Err(e),
                Ok(object) => {
                    self.observe_written(&object).await;
                    return Ok(EffectOk {
                        live: Some(object),
                        message: String::new(),
                    });
                }
            }
        }
        Err(invalid(
            key,
            "its field managers could not be migrated: the object keeps changing",
        ))
    }
}

/// The object that is meant is gone; another one has its name.
fn absent(key: &ResourceKey, error: ApiError) -> Error {
    Error::Api(ApiError {
        code: 404,
        reason: "NotFound".into(),
        about: Some(Box::new(About {
            kind: key.kind.clone(),
            name: key.name.clone(),
        })),
        ..error
    })
}

/// Whether the object in a response is already gone: the server returned only a status, or an
/// object that is being deleted and has no finalizers.
fn is_gone(object: &Object) -> bool {
    if object.kind() == "Status" {
        return true;
    }
    object.deletion_timestamp().is_some()
        && object.finalizers().is_empty()
        && object
            .metadata("deletionGracePeriodSeconds")
            .and_then(Value::as_i64)
            .unwrap_or(0)
            == 0
}

/// The server has two messages for it, depending on the storage path of the deletion.
fn is_other_uid(error: &Error) -> bool {
    let text = error.to_string();
    error.code() == Some(409) && text.contains("UID in") && text.contains("precondition")
}

fn api_error(error: Error) -> ApiError {
    match error {
        Error::Api(e) => e,
        other => ApiError {
            message: other.to_string(),
            ..ApiError::default()
        },
    }
}

/// Whether a manager owns fields of the object with operation Update.
pub(super) fn updates(object: &Object, manager: &str) -> bool {
    let entries = object.metadata("managedFields").and_then(Value::as_array);
    entries.is_some_and(|entries| migrated(entries, manager, manager).is_some())
}

/// The managedFields with `from`'s Update entries merged into `to`'s Apply entry; `None` if there
/// is nothing to change.
fn migrated(entries: &[Value], from: &str, to: &str) -> Option<Vec<Value>> {
    let text = |e: &Value, f: &str| e.get(f).and_then(Value::as_str).unwrap_or("").to_owned();
    let is = |e: &Value, manager: &str, operation: &str| {
        text(e, "manager") == manager
            && text(e, "operation") == operation
            && text(e, "subresource").is_empty()
    };
    let mut entries = entries.to_vec();
    let first = entries.iter().position(|e| is(e, from, "Update"))?;
    let target = entries
        .iter()
        .position(|e| is(e, to, "Apply"))
        .unwrap_or_else(|| {
            entries[first]["manager"] = to.into();
            entries[first]["operation"] = "Apply".into();
            first
        });
    let version = text(&entries[target], "apiVersion");
    if let Some(other) = entries
        .iter()
        .position(|e| is(e, from, "Update") && text(e, "apiVersion") == version)
    {
        let fields = |i: usize| {
            entries[i]
                .get("fieldsV1")
                .and_then(Value::as_object)
                .cloned()
                .unwrap_or_default()
        };
        entries[target]["fieldsV1"] = Value::Object(union(fields(target), fields(other)));
    }
    entries.retain(|e| !is(e, from, "Update"));
    Some(entries)
}

/// The union of two field sets in their JSON form: a tree whose empty leaves, and nodes with a `.`,
/// are the members.
fn union(mut a: Map<String, Value>, b: Map<String, Value>) -> Map<String, Value> {
    for (name, theirs) in b {
        let Value::Object(theirs) = theirs else {
            continue;
        };
        let ours = match a.remove(&name) {
            None => Value::Object(theirs),
            Some(Value::Object(ours)) => {
                let member = ours.is_empty() || theirs.is_empty();
                let mut both = union(ours, theirs);
                if member && !both.is_empty() {
                    both.insert(".".to_owned(), json!({}));
                }
                Value::Object(both)
            }
            Some(other) => other,
        };
        a.insert(name, ours);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn updates_of_one_manager_become_applies_of_the_other() {
        let update = json!({"manager": "kubectl-client-side-apply", "operation": "Update", "apiVersion": "v1", "fieldsV1": {"f:data": {"f:a": {}}}});
        let apply = json!({"manager": "argocd-controller", "operation": "Apply", "apiVersion": "v1", "fieldsV1": {"f:data": {"f:b": {}}}});
        let status = json!({"manager": "kubectl-client-side-apply", "operation": "Update", "apiVersion": "v1", "subresource": "status", "fieldsV1": {}});
        let rows = [
            (vec![apply.clone()], None),
            (
                vec![update.clone(), status.clone()],
                Some(vec![
                    json!({"manager": "argocd-controller", "operation": "Apply", "apiVersion": "v1", "fieldsV1": {"f:data": {"f:a": {}}}}),
                    status.clone(),
                ]),
            ),
            (
                vec![update, apply],
                Some(vec![
                    json!({"manager": "argocd-controller", "operation": "Apply", "apiVersion": "v1", "fieldsV1": {"f:data": {"f:a": {}, "f:b": {}}}}),
                ]),
            ),
        ];
        for (entries, want) in rows {
            assert_eq!(
                migrated(&entries, "kubectl-client-side-apply", "argocd-controller"),
                want,
                "{entries:?}"
            );
        }
    }
}
