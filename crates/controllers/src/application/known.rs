//! The resources that an Application is known to have, or to have had. Their kinds must be readable
//! before anything is concluded from missing objects. Main functions: [`resources`] and [`of`].

use tiphys_api::Application;
use tiphys_apimachinery::ResourceKey;
use tiphys_cluster::Known;
use tiphys_engine::types::SyncStatus;

/// The resources in the status: those compared, and those that a sync applied.
pub fn resources(app: &Application) -> Vec<ResourceKey> {
    let compared = app
        .status
        .resources
        .iter()
        .map(|r| ResourceKey::new(&r.group, &r.kind, &r.namespace, &r.name));
    let result = app
        .status
        .operation_state
        .as_ref()
        .and_then(|state| state.sync_result.as_ref());
    let applied = result
        .into_iter()
        .flat_map(|result| &result.resources)
        .filter(|r| r.status != "Pruned");
    compared
        .chain(applied.map(|r| ResourceKey::new(&r.group, &r.kind, &r.namespace, &r.name)))
        .collect()
}

/// Everything it may have. If all its comparisons failed, or its status was lost, nothing is known.
pub fn of(app: &Application) -> Known {
    let resources = resources(app);
    let status = app.status.sync.status.as_str();
    if resources.is_empty() && (status.is_empty() || status == SyncStatus::Unknown.as_str()) {
        return Known::Nothing;
    }
    Known::Resources(resources)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn known(status: &Value) -> Option<Vec<String>> {
        let app = json!({"metadata": {"name": "a"}, "spec": {}, "status": status});
        match of(&serde_json::from_value(app).expect("an Application")) {
            Known::Resources(keys) => Some(keys.iter().map(ToString::to_string).collect()),
            Known::Nothing => None,
        }
    }

    #[test]
    fn what_is_known_of_an_application() {
        let compared =
            json!([{"kind": "ConfigMap", "namespace": "n", "name": "a", "version": "v1"}]);
        let applied = json!([{"group": "batch", "kind": "Job", "namespace": "n", "name": "b", "status": "Synced"},
            {"group": "apps", "kind": "Deployment", "namespace": "n", "name": "c", "status": "Pruned"}]);
        let both = json!({"resources": compared, "sync": {"status": "Unknown"},
            "operationState": {"phase": "Running", "operation": {}, "syncResult": {"resources": applied}}});
        assert_eq!(
            known(&both),
            Some(vec!["/ConfigMap/n/a".into(), "batch/Job/n/b".into()])
        );
        assert_eq!(
            known(&json!({"sync": {"status": "Synced"}})),
            Some(Vec::new()),
            "it was compared, and has nothing"
        );
        assert_eq!(
            known(&json!({"sync": {"status": "Unknown"}, "reconciledAt": "2026-01-01T00:00:00Z"})),
            None
        );
        assert_eq!(known(&json!({})), None);
    }
}
