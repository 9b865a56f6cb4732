//! Protects storage that is in use from removal: claims wait for their pods, volumes for their
//! claims.

use super::modify;
use crate::base::Part;
use crate::registry::Registry;
use crate::strategy::{CLAIM_IN_USE, VOLUME_IN_USE};
use serde_json::Value;
use std::collections::HashSet;
use tiphys_apimachinery::{Gvr, Object};

fn release(registry: &Registry, gvr: &Gvr, object: &Object, finalizer: &str) {
    let Ok(resource) = registry.resource(gvr) else {
        return;
    };
    modify(
        registry,
        &resource,
        (object.namespace(), object.name()),
        Part::Main,
        |live| {
            let mut finalizers = live.finalizers();
            let before = finalizers.len();
            finalizers.retain(|f| f != finalizer);
            let changed = finalizers.len() != before && live.uid() == object.uid();
            live.set_finalizers(finalizers);
            changed
        },
    );
}

/// Releases claims of a namespace that are being deleted and that no pod uses.
pub fn check_claims(registry: &Registry, namespace: &str) {
    let gvr = Gvr::new("", "v1", "persistentvolumeclaims");
    let claims = registry.list(&gvr, Some(namespace)).unwrap_or_default();
    let waiting: Vec<_> = claims
        .iter()
        .filter(|c| c.deletion_timestamp().is_some())
        .collect();
    if waiting.is_empty() {
        return;
    }
    let pods = registry
        .list(&Gvr::new("", "v1", "pods"), Some(namespace))
        .unwrap_or_default();
    let runs = pods
        .iter()
        .filter(|p| !matches!(p.str_at("/status/phase"), "Failed" | "Succeeded"));
    let volumes = runs
        .filter_map(|p| p.pointer("/spec/volumes"))
        .filter_map(Value::as_array)
        .flatten();
    let used: HashSet<&str> = volumes
        .filter_map(|v| v.pointer("/persistentVolumeClaim/claimName")?.as_str())
        .collect();
    for claim in waiting.into_iter().filter(|c| !used.contains(c.name())) {
        release(registry, &gvr, claim, CLAIM_IN_USE);
    }
}

/// Releases a volume that is being deleted and not bound.
pub fn check_volume(registry: &Registry, volume: &Object) {
    if volume.str_at("/status/phase") != "Bound" {
        release(
            registry,
            &Gvr::new("", "v1", "persistentvolumes"),
            volume,
            VOLUME_IN_USE,
        );
    }
}
