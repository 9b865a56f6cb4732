//! The resources that an Application is known to have, or to have had. Their kinds must be readable
//! before anything is concluded from missing objects. Main functions: [`resources`], [`references`]
//! and [`of`].

use std::collections::BTreeMap;
use tiphys_api::{Application, resource::ResourceRef};
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

/// The same as references, which have versions; one for each resource.
pub fn references(app: &Application) -> Vec<ResourceRef> {
    let status = &app.status;
    let state = status.operation_state.as_ref();
    let results = state.and_then(|state| state.sync_result.as_ref());
    let results = results.into_iter().flat_map(|result| &result.resources);
    let compared = status.resources.iter();
    let versions: BTreeMap<ResourceKey, &str> = results
        .map(|r| (&r.group, &r.kind, &r.namespace, &r.name, &r.version))
        .chain(compared.map(|r| (&r.group, &r.kind, &r.namespace, &r.name, &r.version)))
        .map(|(group, kind, namespace, name, version)| {
            let key = ResourceKey::new(group, kind, namespace, name);
            (key, version.as_str())
        })
        .collect();
    let mut references: BTreeMap<ResourceKey, ResourceRef> = BTreeMap::new();
    for key in resources(app) {
        let reference = ResourceRef {
            group: key.group.clone(),
            version: versions.get(&key).copied().unwrap_or_default().to_owned(),
            kind: key.kind.clone(),
            namespace: key.namespace.clone(),
            name: key.name.clone(),
            uid: String::new(),
        };
        references.insert(key, reference);
    }
    references.into_values().collect()
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
    fn each_resource_has_one_reference_with_its_version() {
        let app = json!({"metadata": {"name": "a"}, "spec": {}, "status": {
            "resources": [
                {"group": "batch", "kind": "Job", "namespace": "m", "name": "b", "version": "v1"},
                {"kind": "ConfigMap", "namespace": "m", "name": "a", "version": "v1"},
            ],
            "operationState": {"phase": "Running", "operation": {}, "syncResult": {"resources": [
                {"group": "batch", "kind": "Job", "namespace": "m", "name": "b", "version": "v1", "status": "Synced"},
                {"group": "apps", "kind": "Deployment", "namespace": "m", "name": "c", "version": "v1", "status": "Synced"},
                {"kind": "ConfigMap", "namespace": "m", "name": "d", "version": "v1", "status": "Pruned"},
            ]}},
        }});
        let app = serde_json::from_value(app).expect("an Application");
        let references = references(&app);
        let shown = references
            .iter()
            .map(|r| format!("{} {} {}", r.version, r.kind, r.name));
        let shown: Vec<String> = shown.collect();
        assert_eq!(shown, ["v1 ConfigMap a", "v1 Deployment c", "v1 Job b"]);
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
