//! The fields of a written object that the server sets, whatever the client sent.
//!
//! Main functions: [`prepare_create`], [`prepare_update`].

use super::service::Allocator;
use super::{
    CLAIM_IN_USE, CSR, VOLUME_IN_USE, definition, fill_in, parts, pods, read_again, service,
};
use crate::base::{Part, UserInfo};
use crate::catalog::{CRD_TABLE, Resource};
use crate::convert::annotated::TEMPLATE_GENERATION;
use crate::convert::{annotated, autoscaler};
use crate::reader::Reader;
use crate::status::Status;
use crate::{defaults, validation};
use serde_json::{Map, Value, json};
use tiphys_apimachinery::Object;
use tiphys_apimachinery::object::map_entry;

/// Adds what is missing whenever an object is read: the initial status of its kind, and the labels
/// that a Job shares with its pods. Returns whether anything was missing.
pub fn complete(resource: &Resource, object: &mut Object) -> bool {
    let first_phase = match resource.table.as_str() {
        "batch/jobs" if object.labels().is_empty() => {
            share_labels(resource, object);
            return !object.labels().is_empty();
        }
        "/persistentvolumes" | "/persistentvolumeclaims" => "Pending",
        "/namespaces" => "Active",
        _ => return false,
    };
    let missing = object.str_at("/status/phase").is_empty();
    if missing {
        map_entry(&mut object.0, "status").insert("phase".into(), first_phase.into());
    }
    missing
}

fn add_finalizer(object: &mut Object, name: &str) {
    let mut finalizers = object.finalizers();
    if !finalizers.iter().any(|f| f == name) {
        finalizers.push(name.to_owned());
    }
    object.set_finalizers(finalizers);
}

/// Sets the server-controlled fields of a new object; this depends on whether it is created through
/// its status, and whether it is a dry run. Returns warnings.
pub fn prepare_create(
    reader: &dyn Allocator,
    resource: &Resource,
    object: &mut Object,
    (part, dry_run): (Part, bool),
) -> Result<Vec<String>, Status> {
    let mut warnings = Vec::new();
    pods::forget(resource, object);
    if resource.has_status() && resource.table != "/nodes" {
        object.0.remove("status");
    }
    match resource.table.as_str() {
        CRD_TABLE => definition::prepare_create(object),
        "/namespaces" => {
            let name = object.name().to_owned();
            object.set_label("kubernetes.io/metadata.name", &name);
            let spec = map_entry(&mut object.0, "spec");
            let mut finalizers = spec
                .get("finalizers")
                .and_then(Value::as_array)
                .cloned()
                .unwrap_or_default();
            if !finalizers.iter().any(|f| f == "kubernetes") {
                finalizers.push("kubernetes".into());
            }
            spec.insert("finalizers".into(), finalizers.into());
            object.0.insert("status".into(), json!({"phase": "Active"}));
        }
        "/pods" => warnings = pods::prepare_create(object, &crate::base::timestamp(reader.now())),
        "/persistentvolumes" => {
            let now = crate::base::timestamp(reader.now());
            object.0.insert(
                "status".into(),
                json!({"phase": "Pending", "lastPhaseTransitionTime": now}),
            );
            add_finalizer(object, VOLUME_IN_USE);
        }
        "/persistentvolumeclaims" => {
            match_data_sources(None, object);
            add_finalizer(object, CLAIM_IN_USE);
        }
        // A service created through its status gets no addresses.
        "/services" if part == Part::Status => {}
        "/services" => service::allocate(reader, object, None, dry_run)?,
        "/nodes" => {
            forget_configuration(object);
            taint_new_node(object);
        }
        "storage.k8s.io/volumeattributesclasses" => {
            add_finalizer(object, "kubernetes.io/vac-protection")
        }
        "discovery.k8s.io/endpointslices" => drop(drop_topology(None, object)),
        "coordination.k8s.io/leases" => drop_strategy(object),
        "resource.k8s.io/resourceslices" => drop(drop_device_fields(object)),
        "apiregistration.k8s.io/apiservices"
            if object.pointer("/spec/service").is_none_or(Value::is_null) =>
        {
            let now = crate::base::timestamp(reader.now());
            let message = "Local APIServices are always available";
            let condition = json!({"type": "Available", "status": "True", "reason": "Local", "message": message, "lastTransitionTime": now});
            object
                .0
                .insert("status".into(), json!({"conditions": [condition]}));
        }
        "storage.k8s.io/csidrivers" => drop_limit_scaling(None, object),
        "/serviceaccounts" => keep_names(object),
        "/limitranges" if object.name().is_empty() => {
            object
                .metadata_mut()
                .insert("name".into(), uuid::Uuid::new_v4().to_string().into());
        }
        "batch/jobs" => defaults::job_selector(object),
        "autoscaling/horizontalpodautoscalers" if !resource.is_storage() => {
            autoscaler::keep_annotations(None, object, false)
        }
        "apps/statefulsets" => drop_unavailable(object),
        "apps/daemonsets" => {
            let sent = object
                .annotation(TEMPLATE_GENERATION)
                .and_then(|count| count.parse::<i64>().ok());
            object.set_annotation(TEMPLATE_GENERATION, &sent.unwrap_or(0).max(1).to_string());
        }
        _ => {}
    }
    read_again(resource, object).map(|()| warnings)
}

/// A certificate request contains the requesting user; clients cannot set it.
pub fn asked_by(resource: &Resource, object: &mut Object, user: &UserInfo) {
    if resource.table != CSR {
        return;
    }
    let user = user.to_json();
    let spec = map_entry(&mut object.0, "spec");
    for field in ["username", "uid", "groups", "extra"] {
        match user.get(field) {
            Some(value) => spec.insert(field.into(), value.clone()),
            None => spec.remove(field),
        };
    }
}

/// A Job without labels gets those of its pods, including the generated ones.
pub fn share_labels(resource: &Resource, object: &mut Object) {
    if resource.table == "batch/jobs"
        && let Some(labels) = object.pointer("/spec/template/metadata/labels").cloned()
    {
        object.metadata_mut().insert("labels".into(), labels);
    }
}

/// Sets the server-controlled fields of a changed object.
pub fn prepare_update(
    reader: &dyn Allocator,
    resource: &Resource,
    old: &Object,
    new: &mut Object,
    (part, dry_run): (Part, bool),
) -> Result<(), Status> {
    if resource.table == CSR {
        parts::prepare_request(part, old, new, &crate::base::timestamp(reader.now()));
    }
    if resource.is("autoscaling", "horizontalpodautoscalers") && !resource.is_storage() {
        autoscaler::keep_annotations(Some(old), new, part == Part::Status);
    }
    if part == Part::Status || part == Part::Finalize {
        fill_in(reader, resource, new);
        annotated::keep(&resource.table, old, new);
        complete(resource, new);
        match resource.table.as_str() {
            "/persistentvolumes" => note_phase(reader, old, new),
            "/pods" => pods::keep_status(old, new),
            "/nodes" => forget_configuration(new),
            "resource.k8s.io/resourceclaims" => validation::forget_deallocated(old, new),
            _ => {}
        }
        return Ok(());
    }
    fill_in(reader, resource, new);
    pods::forget(resource, new);
    match resource.table.as_str() {
        CRD_TABLE => definition::prepare_update(old, new),
        "/namespaces" => {
            let spec = map_entry(&mut new.0, "spec");
            match old.pointer("/spec/finalizers") {
                Some(finalizers) => spec.insert("finalizers".into(), finalizers.clone()),
                None => spec.remove("finalizers"),
            };
        }
        "/services" => service::allocate(reader, new, Some(old), dry_run)?,
        "coordination.k8s.io/leases" => drop_strategy(new),
        // Counted before the fields are dropped.
        "resource.k8s.io/resourceslices" | "discovery.k8s.io/endpointslices"
            if drops_fields(resource, old, new) =>
        {
            let next = old.generation().wrapping_add(1);
            new.metadata_mut().insert("generation".into(), next.into());
        }
        "storage.k8s.io/csidrivers" => {
            drop_limit_scaling(Some(old), new);
            // Counted from the first change on.
            if old.0.get("spec") != new.0.get("spec") {
                let next = old.generation().wrapping_add(1);
                new.metadata_mut().insert("generation".into(), next.into());
            }
        }
        "/serviceaccounts" => keep_names(new),
        "/persistentvolumeclaims" => match_data_sources(Some(old), new),
        "/nodes" => forget_configuration(new),
        "apps/daemonsets" => count_template(resource, old, new),
        "apps/statefulsets" => drop_unavailable(new),
        _ => {}
    }
    Ok(())
}

/// Adds a taint to a new node, so that no pods are scheduled before it is ready.
fn taint_new_node(node: &mut Object) {
    const NOT_READY: &str = "node.kubernetes.io/not-ready";
    let taint = json!({"key": NOT_READY, "effect": "NoSchedule"});
    let taints = map_entry(&mut node.0, "spec")
        .entry("taints")
        .or_insert_with(|| json!([]));
    if let Some(list) = taints.as_array_mut()
        && !list
            .iter()
            .any(|t| t["key"] == NOT_READY && t["effect"] == "NoSchedule")
    {
        list.push(taint);
    }
}

/// Drops the former configuration source of kubelets.
fn forget_configuration(node: &mut Object) {
    for (part, field) in [("spec", "configSource"), ("status", "config")] {
        let part = node.0.get_mut(part).and_then(Value::as_object_mut);
        part.map(|map| map.remove(field));
    }
}

/// Records the time at which a volume entered its phase.
fn note_phase(reader: &dyn Reader, old: &Object, new: &mut Object) {
    let field = "lastPhaseTransitionTime";
    let same_phase = old.pointer("/status/phase") == new.pointer("/status/phase");
    let before = old.pointer(&format!("/status/{field}")).cloned();
    let sent = new.pointer(&format!("/status/{field}")).cloned();
    let status = map_entry(&mut new.0, "status");
    if same_phase && sent.is_none() {
        status.extend(before.map(|time| (field.to_owned(), time)));
    } else if !same_phase && (sent.is_none() || sent == before) {
        status.insert(field.into(), crate::base::timestamp(reader.now()).into());
    }
}

/// Whether an object has fields that are known but not stored. Their sender owns them anyway.
pub fn forgets(resource: &Resource, object: &Object) -> bool {
    let any = |list: &str, fields: &[&str]| {
        let mut items = object
            .pointer(list)
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        items.any(|item| fields.iter().any(|field| item.get(field).is_some()))
    };
    match resource.table.as_str() {
        "coordination.k8s.io/leases" => LEASE_FIELDS
            .iter()
            .any(|field| object.pointer(&format!("/spec/{field}")).is_some()),
        "discovery.k8s.io/endpointslices" => any("/endpoints", &["deprecatedTopology"]),
        "resource.k8s.io/resourceslices" => any(
            "/spec/devices",
            &["attributes", "nodeAllocatableResourceMappings"],
        ),
        _ => pods::forgets(resource, object),
    }
}

/// Two more lease fields exist for coordinated leader election, which is disabled.
const LEASE_FIELDS: [&str; 2] = ["strategy", "preferredHolder"];

fn drop_strategy(lease: &mut Object) {
    map_entry(&mut lease.0, "spec").retain(|field, _| !LEASE_FIELDS.contains(&field.as_str()));
}

/// Drops a driver field whose feature, preventing pod scheduling, is disabled.
fn drop_limit_scaling(old: Option<&Object>, driver: &mut Object) {
    const FIELD: &str = "preventPodSchedulingIfMissing";
    if old.is_none_or(|old| old.pointer(&format!("/spec/{FIELD}")).is_none()) {
        map_entry(&mut driver.0, "spec").remove(FIELD);
    }
}

/// Keeps only the names of an account's secrets.
fn keep_names(account: &mut Object) {
    let secrets = account.0.get_mut("secrets").and_then(Value::as_array_mut);
    for secret in secrets
        .into_iter()
        .flatten()
        .filter_map(Value::as_object_mut)
    {
        secret.retain(|field, _| field == "name");
    }
}

/// Drops list attributes and devices that represent a node's own resources, whose features are
/// disabled; returns whether there were any.
fn drop_device_fields(slice: &mut Object) -> bool {
    let dropped = |map: &mut Map<String, Value>, fields: &[&str]| {
        let gone: Vec<Value> = fields
            .iter()
            .filter_map(|field| map.remove(*field))
            .collect();
        gone.iter().any(|value| {
            value.as_array().is_some_and(|list| !list.is_empty())
                || value.as_object().is_some_and(|map| !map.is_empty())
        })
    };
    let mut any = false;
    let devices = slice
        .0
        .get_mut("spec")
        .and_then(|spec| spec.get_mut("devices"))
        .and_then(Value::as_array_mut);
    for device in devices
        .into_iter()
        .flatten()
        .filter_map(Value::as_object_mut)
    {
        any |= dropped(device, &["nodeAllocatableResourceMappings"]);
        let attributes = device.get_mut("attributes").and_then(Value::as_object_mut);
        for attribute in attributes
            .into_iter()
            .flat_map(|map| map.values_mut())
            .filter_map(Value::as_object_mut)
        {
            any |= dropped(attribute, &["bools", "ints", "strings", "versions"]);
        }
    }
    any
}

/// Keeps the two data source fields of a claim consistent.
fn match_data_sources(old: Option<&Object>, claim: &mut Object) {
    let had_one = old.is_some_and(|o| {
        ["dataSource", "dataSourceRef"]
            .iter()
            .any(|f| o.pointer(&format!("/spec/{f}")).is_some())
    });
    let spec = map_entry(&mut claim.0, "spec");
    let text = |source: &Value, field: &str| source[field].as_str().unwrap_or("").to_owned();
    if spec
        .get("dataSourceRef")
        .is_some_and(|r| !text(r, "namespace").is_empty())
        && !had_one
    {
        spec.remove("dataSourceRef");
    }
    let known = |source: &Value| match text(source, "kind").as_str() {
        "PersistentVolumeClaim" => text(source, "apiGroup").is_empty(),
        "VolumeSnapshot" => text(source, "apiGroup") == "snapshot.storage.k8s.io",
        _ => false,
    };
    if !had_one
        && !spec.contains_key("dataSourceRef")
        && spec.get("dataSource").is_some_and(|s| !known(s))
    {
        spec.remove("dataSource");
    }
    let (source, reference) = (
        spec.get("dataSource").cloned(),
        spec.get("dataSourceRef").cloned(),
    );
    match (source, reference) {
        (Some(source), None) => drop(spec.insert("dataSourceRef".into(), source)),
        (None, Some(reference)) if text(&reference, "namespace").is_empty() => {
            drop(spec.insert("dataSource".into(), reference))
        }
        _ => {}
    }
}

/// Drops the fields of a slice that can no longer be written; returns whether there were any.
fn drops_fields(resource: &Resource, old: &Object, new: &mut Object) -> bool {
    if resource.table == "discovery.k8s.io/endpointslices" {
        drop_topology(Some(old), new)
    } else {
        drop_device_fields(new)
    }
}

/// The legacy topology can no longer be written; returns whether there was any.
fn drop_topology(old: Option<&Object>, new: &mut Object) -> bool {
    if old.is_some_and(|old| old.0.get("endpoints") == new.0.get("endpoints")) {
        return false;
    }
    let endpoints = new
        .0
        .get_mut("endpoints")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten();
    let dropped = endpoints
        .filter_map(Value::as_object_mut)
        .filter_map(|endpoint| endpoint.remove("deprecatedTopology"));
    dropped
        .filter(|topology| topology.as_object().is_some_and(|map| !map.is_empty()))
        .count()
        > 0
}

/// `maxUnavailable` of a StatefulSet is behind a disabled feature gate.
fn drop_unavailable(set: &mut Object) {
    let rolling = set
        .0
        .get_mut("spec")
        .and_then(|spec| spec.get_mut("updateStrategy"))
        .and_then(|s| s.get_mut("rollingUpdate"));
    if let Some(rolling) = rolling.and_then(Value::as_object_mut) {
        rolling.remove("maxUnavailable");
    }
}

/// DaemonSets count the changes of their template in an annotation, from before there was a
/// generation.
fn count_template(resource: &Resource, old: &Object, new: &mut Object) {
    let before = old
        .annotation(TEMPLATE_GENERATION)
        .and_then(|a| a.parse::<i64>().ok())
        .unwrap_or(0);
    // Empty lists and maps count as missing.
    let mut kept = new.clone();
    super::drop_empty(resource, &mut kept);
    let changed = old.pointer("/spec/template") != kept.pointer("/spec/template");
    new.set_annotation(
        TEMPLATE_GENERATION,
        &(before + i64::from(changed)).to_string(),
    );
}
