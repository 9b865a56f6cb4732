//! Fields of pods and templates that a default API server knows but drops, because their feature is
//! disabled. Main functions: [`forget`], [`forget_in_status`].

use crate::catalog::Resource;
use serde_json::{Map, Value};
use tiphys_apimachinery::Object;

const CONTAINERS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

/// The disabled sources of projected volumes.
const SOURCES: [&str; 2] = ["clusterTrustBundle", "podCertificate"];

/// The path to the pod in an object that is a pod or has a template.
fn way(resource: &Resource) -> Option<&'static [&'static str]> {
    Some(match resource.table.as_str() {
        "/pods" => &["spec"],
        "/podtemplates" => &["template", "spec"],
        "batch/cronjobs" => &["spec", "jobTemplate", "spec", "template", "spec"],
        "/replicationcontrollers"
        | "apps/deployments"
        | "apps/replicasets"
        | "apps/statefulsets"
        | "apps/daemonsets"
        | "batch/jobs" => &["spec", "template", "spec"],
        _ => return None,
    })
}

/// Drops the disabled fields of a pod or a pod template.
pub fn forget(resource: &Resource, object: &mut Object) {
    let Some(way) = way(resource) else { return };
    let spec = way
        .iter()
        .try_fold(&mut object.0, |map, key| map.get_mut(*key)?.as_object_mut());
    if let Some(spec) = spec {
        of_spec(spec);
    }
}

/// Whether there are any such fields.
pub fn forgets(resource: &Resource, object: &Object) -> bool {
    let spec = way(resource).and_then(|way| {
        way.iter()
            .try_fold(&object.0, |map, key| map.get(*key)?.as_object())
    });
    let Some(spec) = spec else { return false };
    let list = |name: &str| {
        spec.get(name)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
    };
    let mut containers = CONTAINERS.iter().flat_map(|name| list(name));
    let mut sources = list("volumes")
        .filter_map(|volume| volume.pointer("/projected/sources")?.as_array())
        .flatten();
    spec.contains_key("schedulingGroup")
        || containers.any(|container| container.pointer("/lifecycle/stopSignal").is_some())
        || sources.any(|source| SOURCES.iter().any(|field| source.get(field).is_some()))
}

fn each<'a>(
    map: &'a mut Map<String, Value>,
    list: &str,
) -> impl Iterator<Item = &'a mut Map<String, Value>> {
    map.get_mut(list)
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
        .filter_map(Value::as_object_mut)
}

fn of_spec(spec: &mut Map<String, Value>) {
    spec.remove("schedulingGroup");
    for list in CONTAINERS {
        for container in each(spec, list) {
            let lifecycle = container
                .get_mut("lifecycle")
                .and_then(Value::as_object_mut);
            let was_all = lifecycle
                .is_some_and(|hooks| hooks.remove("stopSignal").is_some() && hooks.is_empty());
            if was_all {
                container.remove("lifecycle");
            }
        }
    }
    for volume in each(spec, "volumes") {
        let projected = volume.get_mut("projected").and_then(Value::as_object_mut);
        for source in projected
            .into_iter()
            .flat_map(|projected| each(projected, "sources"))
        {
            source.retain(|field, _| !SOURCES.contains(&field.as_str()));
        }
    }
}

/// The same for a status.
pub fn forget_in_status(status: &mut Map<String, Value>) {
    status.remove("nodeAllocatableResourceClaimStatuses");
    for list in [
        "initContainerStatuses",
        "containerStatuses",
        "ephemeralContainerStatuses",
    ] {
        for container in each(status, list) {
            each(container, "volumeMounts").for_each(|mount| drop(mount.remove("volumeStatus")));
        }
    }
}
