//! What a default API server admits: the plugins that fill in and judge a write by other objects.
//!
//! Main functions: [`admit`], before a kind's own rules, and [`check`], after them. Plugins read the registry; only quotas write.

mod account;
mod limits;
mod priority;
mod quota;
mod tolerations;
mod usage;

use crate::catalog::Resource;
use crate::registry::Registry;
use crate::status::Status;
use serde_json::{Map, Value};
use tiphys_apimachinery::Object;
use tiphys_apimachinery::object::map_entry;

/// Fills in what other objects say about this one; `old` is there for updates.
pub fn admit(registry: &Registry, resource: &Resource, object: &mut Object, old: Option<&Object>) -> Result<(), Status> {
    if resource.table != "/pods" {
        return Ok(());
    }
    match old {
        None => {
            limits::fill_in(registry, object);
            account::admit(registry, resource, object)?;
            priority::admit(registry, resource, object)?;
            tolerations::admit(object);
        }
        Some(old) => {
            priority::keep(old, object);
            tolerations::admit(object);
        }
    }
    Ok(())
}

/// Refuses what is in order by itself.
pub fn check(registry: &Registry, resource: &Resource, object: &Object, old: Option<&Object>, dry_run: bool) -> Result<(), Status> {
    if old.is_none() || resource.table == "/persistentvolumeclaims" {
        limits::check(registry, resource, object)?;
    }
    if resource.namespaced {
        quota::charge(registry, resource, object, old, dry_run)?;
    }
    Ok(())
}

/// A refusal in the words of the API server.
fn forbidden(resource: &Resource, object: &Object, why: &str) -> Status {
    let name = if object.name().is_empty() { object.generate_name() } else { object.name() };
    Status::forbidden(&resource.group, &resource.resource, name, why)
}

fn spec(object: &mut Object) -> &mut Map<String, Value> {
    map_entry(&mut object.0, "spec")
}

/// The containers of a list in a pod spec.
fn containers<'a>(spec: &'a mut Map<String, Value>, list: &str) -> impl Iterator<Item = &'a mut Map<String, Value>> {
    spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten().filter_map(Value::as_object_mut)
}
