//! The end of a CustomResourceDefinition: its objects go first.

use super::{delete, modify};
use crate::registry::{Part, Registry, WriteOptions};
use crate::status::Status;
use crate::strategy::{CLEANUP, mark_definition_emptying};
use tiphys_apimachinery::{Gvr, Object};

/// Where the objects of a definition are kept.
pub fn table(definition: &Object) -> String {
    format!("{}/{}", definition.str_at("/spec/group"), definition.str_at("/spec/names/plural"))
}

/// Deletes the objects of a definition that is being deleted, then lets the definition go. Says whether it is done.
pub fn empty(registry: &Registry, table: &str) -> bool {
    let (group, plural) = table.split_once('/').unwrap_or(("", table));
    let name = format!("{plural}.{group}");
    let gvr = Gvr::new("apiextensions.k8s.io", "v1", "customresourcedefinitions");
    let Ok(resource) = registry.resource(&gvr) else { return true };
    match registry.get_stored(&resource, "", &name) {
        Ok(definition) if definition.meta.deleting => {}
        _ => return true,
    }
    if let Err(status) = begin(registry, &gvr, &name) {
        return status.is_not_found();
    }
    if let Some(kind) = registry.catalog().stored_in(table) {
        let (_, objects) = registry.list_stored(kind, None);
        // What was marked before is written once more if the schemas of now make another object of it.
        objects.iter().for_each(|object| delete(registry, kind, &object.meta, None));
        if !registry.list_stored(kind, None).1.is_empty() {
            return false;
        }
    }
    modify(registry, &resource, ("", &name), Part::Main, |object| {
        let mut finalizers = object.finalizers();
        let before = finalizers.len();
        finalizers.retain(|f| f != CLEANUP);
        let changed = finalizers.len() != before;
        object.set_finalizers(finalizers);
        changed
    });
    registry.get_stored(&resource, "", &name).is_err()
}

/// Says in the definition that its objects go now.
fn begin(registry: &Registry, gvr: &Gvr, name: &str) -> Result<(), Status> {
    let mut definition = (*registry.get(gvr, "", name)?).clone();
    if mark_definition_emptying(&mut definition) {
        registry.update_part(gvr, "", definition, Part::Status, &WriteOptions::manager("kube-apiserver"))?;
    }
    Ok(())
}
