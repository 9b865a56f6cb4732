//! The update of one Application. Main function: [`Controller::update`].
//!
//! A sync is started only on the Application that it was decided by. Since then a user may have
//! started one, or this one may have been started by a write whose response was lost: another one
//! would follow it for nothing, and a merge patch would mix the two. Everything else is written
//! whatever the Application has become.

use super::Controller;
use serde_json::{Value, json};
use tiphys_api::Application;
use tiphys_cluster::Error;

/// How often a sync is started again after others wrote the Application, but no operation.
const ATTEMPTS: usize = 5;

/// What was written of an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Written {
    All,
    /// Everything but the start of the sync.
    WithoutSync,
    /// It would only have started a sync, or the Application is gone: it is created anew, without
    /// this being an error.
    Nothing,
}

impl Controller {
    /// Writes a merge patch that was made from the Application `judged`.
    pub(super) async fn update(
        &self,
        judged: &Application,
        patch: &Value,
    ) -> Result<Written, Error> {
        let (namespace, name) = (&judged.metadata.namespace, &judged.metadata.name);
        let applications = &self.records.applications;
        if patch.get("operation").is_none() {
            applications.merge_patch(namespace, name, patch).await?;
            return Ok(Written::All);
        }
        let mut version = judged.metadata.resource_version.clone();
        for _ in 0..ATTEMPTS {
            let mut patch = patch.clone();
            patch["metadata"]["resourceVersion"] = json!(version);
            match applications.merge_patch(namespace, name, &patch).await {
                Err(error) if error.is_conflict() => {}
                Err(error) if applications.is_gone(&error, namespace, name) => {
                    return Ok(Written::Nothing);
                }
                written => return written.map(|_| Written::All),
            }
            let Some(now) = applications.fetch(namespace, name).await? else {
                return Ok(Written::Nothing);
            };
            if !now.value().is_ok_and(|now| may_start(judged, &now)) {
                break;
            }
            version.clone_from(&now.meta.resource_version);
        }
        let mut rest = patch.clone();
        if let Some(fields) = rest.as_object_mut() {
            fields.remove("operation");
            if fields.is_empty() {
                return Ok(Written::Nothing);
            }
        }
        applications.merge_patch(namespace, name, &rest).await?;
        Ok(Written::WithoutSync)
    }
}

/// Whether a sync that was decided by `judged` may still be started: no operation began or ended
/// since.
fn may_start(judged: &Application, now: &Application) -> bool {
    let operation = |app: &Application| {
        let state = app.status.operation_state.as_ref();
        state.map(|state| (state.phase.clone(), state.started_at, state.finished_at))
    };
    now.operation.is_none()
        && now.metadata.uid == judged.metadata.uid
        && now.metadata.deletion_timestamp.is_none()
        && operation(now) == operation(judged)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn app(change: &Value) -> Application {
        let mut app = json!({
            "metadata": {"name": "a", "uid": "1"},
            "spec": {"project": "default", "destination": {}},
            "status": {
                "sync": {"status": "OutOfSync"},
                "operationState": {
                    "phase": "Succeeded", "operation": {}, "startedAt": "2026-01-01T00:00:00Z",
                    "finishedAt": "2026-01-01T00:00:05Z",
                },
            },
        });
        app = tiphys_apimachinery::patch::json_merge::apply(&app, change).expect("maps");
        serde_json::from_value(app).expect("an Application")
    }

    #[test]
    fn only_operations_and_deletions_keep_a_sync_from_starting() {
        let judged = app(&json!({}));
        let state = |change: Value| json!({"status": {"operationState": change}});
        for (change, wanted) in [
            (json!({}), true),
            (json!({"status": {"sync": {"status": "Synced"}}}), true),
            (json!({"metadata": {"resourceVersion": "7"}}), true),
            (json!({"operation": {"sync": {}}}), false),
            (json!({"metadata": {"uid": "2"}}), false),
            (
                json!({"metadata": {"deletionTimestamp": "2026-01-01T00:01:00Z"}}),
                false,
            ),
            (
                state(json!({"phase": "Running", "finishedAt": null})),
                false,
            ),
            (
                state(json!({
                    "startedAt": "2026-01-01T00:00:07Z", "finishedAt": "2026-01-01T00:00:09Z",
                })),
                false,
            ),
            (state(Value::Null), false),
        ] {
            assert_eq!(may_start(&judged, &app(&change)), wanted, "{change}");
        }
    }
}
