//! Normalizes one object for comparison: removes what the cluster writes, and rewrites equivalent
//! notations to a single one.
//!
//! Main function: [`normalize`]. It does not see the other object of the pair.

use super::{endpoints, secret};
use crate::spec;
use serde_json::Value;
use tiphys_apimachinery::Object;

/// By these the API server remembers how it deletes an object.
const OF_DELETION: [&str; 2] = ["foregroundDeletion", "orphan"];

/// Removes `creationTimestamp` and the finalizers of a deletion, and normalizes Secrets, roles,
/// Endpoints and Applications.
pub fn normalize(object: &mut Object, ignore_aggregated_roles: bool) {
    if object.metadata("creationTimestamp").is_some() {
        object.metadata_mut().remove("creationTimestamp");
    }
    if object.deletion_timestamp().is_some() {
        without_deletion(object);
    }
    match (object.group(), object.kind()) {
        ("", "Secret") => secret::normalize(object),
        ("", "Endpoints") => endpoints::sort(object),
        ("rbac.authorization.k8s.io", "Role" | "ClusterRole") => {
            role(object, ignore_aggregated_roles)
        }
        // The Application controller writes the normal form back, so a different notation in Git is
        // not a difference.
        ("argoproj.io", "Application") => {
            object.0.get_mut("spec").map(spec::normalize_document);
        }
        _ => {}
    }
}

fn without_deletion(object: &mut Object) {
    let metadata = object.metadata_mut();
    let Some(finalizers) = metadata.get_mut("finalizers").and_then(Value::as_array_mut) else {
        return;
    };
    finalizers.retain(|f| f.as_str().is_none_or(|f| !OF_DELETION.contains(&f)));
    if finalizers.is_empty() {
        metadata.remove("finalizers");
    }
}

/// An empty list of rules equals no list. The rules of an aggregated role are written by a
/// controller.
fn role(object: &mut Object, ignore_aggregated: bool) {
    let aggregated = ignore_aggregated
        && object
            .0
            .get("aggregationRule")
            .is_some_and(Value::is_object);
    let empty = object
        .0
        .get("rules")
        .and_then(Value::as_array)
        .is_some_and(Vec::is_empty);
    if aggregated || empty {
        object.0.insert("rules".into(), Value::Null);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_deletion_is_no_difference() {
        for (live, deleted, left) in [
            (
                json!(["a/b", "foregroundDeletion"]),
                true,
                Some(json!(["a/b"])),
            ),
            (json!(["orphan"]), true, None),
            (json!(["a/b"]), true, Some(json!(["a/b"]))),
            // Nobody deletes it: somebody wrote that.
            (
                json!(["foregroundDeletion"]),
                false,
                Some(json!(["foregroundDeletion"])),
            ),
        ] {
            let mut object =
                json!({"kind": "ConfigMap", "metadata": {"name": "a", "finalizers": live}});
            if deleted {
                object["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
            }
            let mut object = Object::from_value(object).expect("an object");
            normalize(&mut object, false);
            assert_eq!(object.metadata("finalizers").cloned(), left);
        }
    }
}
