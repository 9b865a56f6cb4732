//! The life of namespaces: the ones every cluster has, and emptying one that is being deleted.

use super::{delete, modify};
use crate::registry::{Part, Propagation, Registry, WriteOptions};
use crate::status::Status;
use serde_json::{Value, json};
use tiphys_apimachinery::object::map_entry;
use tiphys_apimachinery::{Gvr, Object};

const SYSTEM: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];

/// Makes the namespaces that every cluster has, and the service through which pods reach the API.
pub fn make_system_namespaces(registry: &Registry) -> Result<(), Status> {
    let options = WriteOptions::manager("kube-apiserver");
    let make = |gvr: &Gvr, namespace: &str, value: Value| {
        let object = Object::from_value(value).map_err(Status::internal)?;
        match registry.create(gvr, namespace, object, &options) {
            Err(status) if !status.is_already_exists() => Err(status),
            _ => Ok(()),
        }
    };
    for name in SYSTEM {
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        make(&Gvr::new("", "v1", "namespaces"), "", object)?;
    }
    let service = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "kubernetes", "labels": {"component": "apiserver", "provider": "kubernetes"}},
        "spec": {"clusterIP": crate::strategy::API_SERVICE_IP, "ports": [{"name": "https", "port": 443, "targetPort": 6443, "protocol": "TCP"}]},
    });
    make(&Gvr::new("", "v1", "services"), "default", service)
}

/// Deletes what is left in a namespace that is being deleted, and the namespace when nothing is. Says whether it is done.
pub fn empty(registry: &Registry, name: &str) -> bool {
    let gvr = Gvr::new("", "v1", "namespaces");
    let Ok(resource) = registry.resource(&gvr) else { return true };
    match registry.get_stored(&resource, "", name) {
        Ok(namespace) if namespace.meta.deleting => {}
        _ => return true,
    }
    let catalog = registry.catalog();
    let tables: Vec<String> = registry.read().tables().map(|(table, _)| table.clone()).collect();
    let mut left = 0;
    for table in tables {
        let Some(kind) = catalog.stored_in(&table).filter(|r| r.namespaced) else { continue };
        let (_, objects) = registry.list_stored(kind, Some(name));
        for object in objects.iter().filter(|o| !o.meta.deleting) {
            delete(registry, kind, &object.meta, Some(Propagation::Background));
        }
        left += registry.list_stored(kind, Some(name)).1.len();
    }
    if left > 0 {
        return false;
    }
    modify(registry, &resource, ("", name), Part::Finalize, |object| {
        map_entry(&mut object.0, "spec").remove("finalizers");
        true
    });
    registry.get_stored(&resource, "", name).is_err()
}
