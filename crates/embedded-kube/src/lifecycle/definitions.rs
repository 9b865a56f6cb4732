//! Deletion of a CustomResourceDefinition: its objects are deleted first.

use super::delete;
use crate::base::{Part, WriteOptions};
use crate::registry::Registry;
use crate::status::Status;
use crate::strategy::{CLEANUP, mark_definition_emptied, mark_definition_emptying};
use tiphys_apimachinery::{Gvr, Object};

/// The table of the objects of a definition.
pub fn table(definition: &Object) -> String {
    format!(
        "{}/{}",
        definition.str_at("/spec/group"),
        definition.str_at("/spec/names/plural")
    )
}

/// Deletes the objects of a definition that is being deleted, then removes the definition. Returns
/// whether it is done.
pub fn empty(registry: &Registry, table: &str) -> bool {
    let (group, plural) = table.split_once('/').unwrap_or(("", table));
    let name = format!("{plural}.{group}");
    let gvr = Gvr::new("apiextensions.k8s.io", "v1", "customresourcedefinitions");
    let Ok(resource) = registry.resource(&gvr) else {
        return true;
    };
    match registry.get_stored(&resource, "", &name) {
        Ok(definition)
            if definition.meta.deleting
                && definition
                    .object()
                    .finalizers()
                    .iter()
                    .any(|f| f == CLEANUP) => {}
        _ => return true,
    }
    if let Err(status) = tell(registry, &gvr, &name, mark_definition_emptying) {
        return status.is_not_found();
    }
    if let Some(kind) = registry.catalog().stored_in(table) {
        let (_, objects) = registry.list_stored(kind, None);
        // An object that is already marked is written again if the current schemas change it.
        objects
            .iter()
            .for_each(|object| delete(registry, kind, &object.meta, None));
        if !registry.list_stored(kind, None).1.is_empty() {
            return false;
        }
    }
    let told = tell(registry, &gvr, &name, mark_definition_emptied);
    told.is_ok() || registry.get_stored(&resource, "", &name).is_err()
}

/// Reports the state of its objects in the definition, if it has changed.
fn tell(
    registry: &Registry,
    gvr: &Gvr,
    name: &str,
    news: impl Fn(&mut Object) -> bool,
) -> Result<(), Status> {
    let mut definition = (*registry.get(gvr, "", name)?).clone();
    if news(&mut definition) {
        registry.update_part(
            gvr,
            "",
            definition,
            Part::Status,
            &WriteOptions::manager("kube-apiserver"),
        )?;
    }
    Ok(())
}
