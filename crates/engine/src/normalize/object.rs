//! Normalizes one object for comparison: removes what the cluster writes, and rewrites equivalent
//! notations to a single one.
//!
//! Main function: [`normalize`]. It does not see the other object of the pair.

use super::{endpoints, secret};
use crate::spec;
use serde_json::Value;
use tiphys_apimachinery::Object;

/// Removes `creationTimestamp` and normalizes Secrets, roles, Endpoints and Applications.
pub fn normalize(object: &mut Object, ignore_aggregated_roles: bool) {
    if object.metadata("creationTimestamp").is_some() {
        object.metadata_mut().remove("creationTimestamp");
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
