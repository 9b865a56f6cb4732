//! Who set which field: `metadata.managedFields`, and server-side apply.
//!
//! Main functions: [`track`] for creates, updates and patches, [`apply`] for server-side apply.

use super::options::{Part, WriteOptions};
use super::{Registry, meta};
use crate::catalog::Resource;
use crate::status::Status;
use serde_json::Value;
use tiphys_apimachinery::Object;

/// Records that `options.manager` changed what differs between `before` and `after`.
pub fn track(registry: &Registry, resource: &Resource, before: Option<&Object>, after: &mut Object, part: Part, options: &WriteOptions) {
    let _ = (registry, resource, before, after, part, options, meta::timestamp(registry.now()));
}

/// Server-side apply: merges the configuration of a manager into the live object.
pub fn apply(
    registry: &Registry,
    resource: &Resource,
    live: Option<&Object>,
    config: &Object,
    part: Part,
    options: &WriteOptions,
) -> Result<Object, Status> {
    let _ = (registry, resource, live, config, part, options);
    Err(Status::not_implemented("server-side apply"))
}

/// Whether the objects are the same except for their managers.
pub fn same_but_managers(a: &Object, b: &Object) -> bool {
    let skip = |o: &Object| {
        let mut o = o.clone();
        o.metadata_mut().remove("managedFields");
        o
    };
    a.0.get("spec") == b.0.get("spec") && skip(a) == skip(b)
}

/// Whether the objects are the same except for the times of their managers.
pub fn same_but_times(a: &Object, b: &Object) -> bool {
    same_but_managers(a, b) && managers_without_times(a) == managers_without_times(b)
}

fn managers_without_times(object: &Object) -> Vec<Value> {
    let mut list = object.metadata("managedFields").and_then(Value::as_array).cloned().unwrap_or_default();
    for entry in &mut list {
        if let Some(map) = entry.as_object_mut() {
            map.remove("time");
        }
    }
    list
}
