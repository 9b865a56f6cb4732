//! What depends on the kind: which fields exist, what is filled in, what is refused.
//!
//! Main functions, called by the registry in this order: [`check_fields`], [`fill_in`], [`prepare_create`] or [`prepare_update`],
//! [`validate`].

mod custom;
mod defaults;
mod definition;
pub mod service;
mod validate;

use crate::catalog::{CRD_TABLE, Resource};
use crate::gotypes;
use crate::registry::{FieldValidation, Part, Registry, WriteOptions};
use crate::status::Status;
pub use definition::CLEANUP;
use serde_json::{Value, json};
use tiphys_apimachinery::object::map_entry;
use tiphys_apimachinery::{Object, schema};

/// Keep a claim that a pod uses, and a volume that is bound.
pub const CLAIM_IN_USE: &str = "kubernetes.io/pvc-protection";
pub const VOLUME_IN_USE: &str = "kubernetes.io/pv-protection";

/// The cluster IP of the service `kubernetes`.
pub const API_SERVICE_IP: &str = "10.0.0.1";

/// Drops fields that the type does not have and what Go would not keep; fills in what a CustomResourceDefinition has as default.
/// Returns warnings.
pub fn check_fields(resource: &Resource, object: &mut Object, options: &WriteOptions) -> Result<Vec<String>, Status> {
    let mut findings = options.findings.clone();
    if let Some(ty) = resource.ty() {
        let mut value = std::mem::take(object).into_value();
        findings.extend(schema::prune(&mut value, ty).into_iter().map(|path| format!("unknown field \"{path}\"")));
        if resource.custom.is_some() {
            schema::apply_defaults(&mut value, ty);
        }
        *object = Object::from_value(value).map_err(Status::internal)?;
    }
    go_round_trip(resource, object)?;
    match options.validation {
        _ if findings.is_empty() => Ok(findings),
        FieldValidation::Ignore => Ok(Vec::new()),
        FieldValidation::Warn => Ok(findings),
        FieldValidation::Strict => Err(not_handled(resource, &format!("strict decoding error: {}", findings.join(", ")))),
    }
}

fn not_handled(resource: &Resource, why: &str) -> Status {
    let (kind, version) = (&resource.kind, &resource.version);
    Status::bad_request(format!("{kind} in version \"{version}\" cannot be handled as a {kind}: {why}"))
}

/// Reads a built-in object into Go types and writes it again, so to speak.
fn go_round_trip(resource: &Resource, object: &mut Object) -> Result<(), Status> {
    if resource.custom.is_some() {
        return Ok(());
    }
    match gotypes::of(&resource.gvk()) {
        Some(of) => gotypes::normalize(&mut object.0, of).map_err(|e| not_handled(resource, &e.to_string())),
        None => Ok(()),
    }
}

/// Defaults of built-in kinds.
pub fn fill_in(resource: &Resource, object: &mut Object) {
    if resource.table == CRD_TABLE {
        definition::fill_in(object);
    } else if resource.is("autoscaling", "horizontalpodautoscalers") && resource.version == "v1" {
        map_entry(&mut object.0, "spec").entry("minReplicas").or_insert_with(|| 1.into());
    } else if resource.custom.is_none() {
        defaults::apply(&resource.table, object);
    }
}

fn add_finalizer(object: &mut Object, name: &str) {
    let mut finalizers = object.finalizers();
    if !finalizers.iter().any(|f| f == name) {
        finalizers.push(name.to_owned());
    }
    object.set_finalizers(finalizers);
}

/// What the server decides about a new object.
pub fn prepare_create(registry: &Registry, resource: &Resource, object: &mut Object) -> Result<(), Status> {
    if resource.has_status() {
        object.0.remove("status");
    }
    match resource.table.as_str() {
        CRD_TABLE => definition::prepare(registry, object),
        "/namespaces" => {
            let name = object.name().to_owned();
            object.set_label("kubernetes.io/metadata.name", &name);
            let spec = map_entry(&mut object.0, "spec");
            let mut finalizers = spec.get("finalizers").and_then(Value::as_array).cloned().unwrap_or_default();
            if !finalizers.iter().any(|f| f == "kubernetes") {
                finalizers.push("kubernetes".into());
            }
            spec.insert("finalizers".into(), finalizers.into());
            object.0.insert("status".into(), json!({"phase": "Active"}));
        }
        "/pods" => {
            defaults::admit_pod(object);
            let quality = defaults::quality_of_service(object);
            object.0.insert("status".into(), json!({"phase": "Pending", "qosClass": quality}));
        }
        "/persistentvolumes" => {
            let now = crate::registry::meta::timestamp(registry.now());
            object.0.insert("status".into(), json!({"phase": "Pending", "lastPhaseTransitionTime": now}));
            add_finalizer(object, VOLUME_IN_USE);
        }
        "/persistentvolumeclaims" => {
            object.0.insert("status".into(), json!({"phase": "Pending"}));
            add_finalizer(object, CLAIM_IN_USE);
        }
        "/services" => service::allocate(registry, object, None)?,
        // Now that it has a uid.
        "batch/jobs" => defaults::apply(&resource.table, object),
        _ => {}
    }
    go_round_trip(resource, object)
}

/// What the server decides about a changed object.
pub fn prepare_update(registry: &Registry, resource: &Resource, old: &Object, new: &mut Object, part: Part) -> Result<(), Status> {
    if part == Part::Status || part == Part::Finalize {
        if resource.table == "/namespaces" && part == Part::Status {
            // The phase follows the deletion.
            let phase = if new.deletion_timestamp().is_some() { "Terminating" } else { "Active" };
            map_entry(&mut new.0, "status").insert("phase".into(), phase.into());
        }
        return Ok(());
    }
    fill_in(resource, new);
    match resource.table.as_str() {
        CRD_TABLE => definition::prepare(registry, new),
        "/namespaces" => {
            let finalizers = old.pointer("/spec/finalizers").cloned();
            if let Some(finalizers) = finalizers {
                map_entry(&mut new.0, "spec").insert("finalizers".into(), finalizers);
            }
        }
        "/services" => service::allocate(registry, new, Some(old))?,
        "batch/jobs" => keep_job_selector(old, new),
        "apps/daemonsets" => count_template(old, new),
        _ => {}
    }
    Ok(())
}

/// DaemonSets count the changes of their template in an annotation, from the time when others were missing.
fn count_template(old: &Object, new: &mut Object) {
    const GENERATION: &str = "deprecated.daemonset.template.generation";
    let before = old.annotation(GENERATION).and_then(|a| a.parse::<i64>().ok()).unwrap_or(0);
    let changed = old.pointer("/spec/template") != new.pointer("/spec/template");
    new.set_annotation(GENERATION, &(before + i64::from(changed)).to_string());
}

/// An applied Job that does not say its generated selector and labels keeps them.
fn keep_job_selector(old: &Object, new: &mut Object) {
    const LABELS: [&str; 4] = ["batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name", "controller-uid", "job-name"];
    if let (None, Some(selector)) = (new.pointer("/spec/selector"), old.pointer("/spec/selector").cloned()) {
        map_entry(&mut new.0, "spec").insert("selector".into(), selector);
    }
    let Some(Value::Object(before)) = old.pointer("/spec/template/metadata/labels").cloned() else { return };
    let template = map_entry(map_entry(&mut new.0, "spec"), "template");
    let labels = map_entry(map_entry(template, "metadata"), "labels");
    for key in LABELS {
        if let (false, Some(value)) = (labels.contains_key(key), before.get(key)) {
            labels.insert(key.into(), value.clone());
        }
    }
}

/// Refuses what must not be stored; returns warnings.
pub fn validate(resource: &Resource, object: &Object, old: Option<&Object>) -> Result<Vec<String>, Status> {
    let mut causes = validate::check(resource, object, old);
    if let Some(custom) = &resource.custom {
        causes.extend(custom::check(custom, object));
    } else if resource.table == CRD_TABLE {
        causes.extend(definition::check(object, old));
    }
    if causes.is_empty() {
        let old_endpoints = resource.table == "/endpoints";
        let text = "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice";
        return Ok(old_endpoints.then(|| text.to_owned()).into_iter().collect());
    }
    Err(Status::invalid(&resource.group, &resource.kind, object.name(), causes))
}

/// Whether an update without a resourceVersion overwrites what is there.
pub fn allows_blind_update(resource: &Resource) -> bool {
    resource.custom.is_none() && !matches!(resource.resource.as_str(), "customresourcedefinitions" | "leases")
}
