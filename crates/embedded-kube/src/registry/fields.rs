//! Field ownership: `metadata.managedFields`, and server-side apply.
//!
//! Main functions: [`track`] for creates, updates and patches, [`apply`] for server-side apply.

use super::Registry;
use super::patches::scale_type;
use crate::base::options::{Part, WriteOptions};
use crate::catalog::{Catalog, Resource};
use crate::status::{Cause, Status};
use crate::{convert, strategy};
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::sync::Arc;
use tiphys_apimachinery::patch::apply::{self, ApplyError, ApplyOptions, Conflict, Versions};
use tiphys_apimachinery::schema::{ListType, TypeRef};
use tiphys_apimachinery::{Gvk, Object};
use tiphys_kube_schema::gotypes;

/// The manager name of requests without one.
const UNKNOWN: &str = "unknown";

/// The error for converting a custom object to a version it does not have.
const INVALID_TARGET: &str = "request to convert CR to an invalid group/version";

/// Records that `options.manager` changed what differs between `before` and `after`.
pub fn track(
    registry: &Registry,
    resource: &Resource,
    before: Option<&Object>,
    after: &mut Object,
    part: Part,
    options: &WriteOptions,
) {
    let now = crate::base::timestamp(registry.now());
    let options = ApplyOptions {
        manager: manager_of(options),
        force: false,
        now: &now,
        api_version: &resource.api_version(),
        kind: None,
        subresource: part.word(),
        reset_fields: reset_fields(resource, part),
    };
    // For an unstructured object, Go reads an empty list as no list.
    if resource.custom.is_some()
        && after
            .metadata("managedFields")
            .and_then(Value::as_array)
            .is_some_and(Vec::is_empty)
    {
        after.metadata_mut().remove("managedFields");
    }
    let versions = Served::of(registry, resource);
    apply::track_update_in(before, after, &options, resource.ty(), Some(&versions));
}

fn manager_of(options: &WriteOptions) -> &str {
    if options.manager.is_empty() {
        UNKNOWN
    } else {
        &options.manager
    }
}

/// The currently served versions of a kind.
struct Served<'r> {
    registry: &'r Registry,
    catalog: Arc<Catalog>,
    resource: &'r Resource,
}

impl<'r> Served<'r> {
    fn of(registry: &'r Registry, resource: &'r Resource) -> Self {
        Self {
            registry,
            catalog: registry.catalog(),
            resource,
        }
    }

    fn find(&self, api_version: &str) -> Option<&Resource> {
        if api_version == self.resource.api_version() {
            return Some(self.resource);
        }
        let gvk = Gvk::from_api_version(api_version, &self.resource.kind);
        // The events of the other API group do not count as another version.
        let same = |found: &&Resource| {
            found.table == self.resource.table && found.group == self.resource.group
        };
        let served = self.catalog.kind(&gvk).map(|found| &**found).filter(same);
        served.or_else(|| {
            self.resource
                .unserved
                .iter()
                .find(|other| other.gvk() == gvk)
        })
    }
}

impl Versions for Served<'_> {
    fn convert(
        &self,
        object: &Object,
        api_version: &str,
    ) -> Result<Option<(Object, Option<TypeRef<'_>>)>, String> {
        let (Some(from), Some(to)) = (self.find(object.api_version()), self.find(api_version))
        else {
            return match self.resource.custom {
                Some(_) => Err(format!("{INVALID_TARGET}: {api_version}")),
                None => Ok(None),
            };
        };
        let mut object = object.clone();
        if object.api_version() != api_version {
            if to
                .custom
                .as_ref()
                .is_some_and(|custom| custom.conversion.is_none())
            {
                convert::rename_version(to, &mut object);
            } else {
                self.registry
                    .between(from, to, &mut object)
                    .map_err(|status| status.message)?;
                // A missing field is an empty field of a Go struct, which is not the same as a
                // removed field.
                to.go_type()
                    .into_iter()
                    .for_each(|of| gotypes::drop_empty(&mut object.0, of));
            }
        }
        Ok(Some((object, to.ty())))
    }

    fn reset_everywhere(&self) -> bool {
        self.resource.custom.is_none()
    }

    fn nothing(&self) -> Map<String, Value> {
        let of = self.resource.go_type();
        of.map(gotypes::zero).unwrap_or_default()
    }
}

/// Kinds whose status endpoint does not change any of `metadata`, by group and resource.
const STATUS_WITHOUT_METADATA: [(&str, &str); 11] = [
    (
        "admissionregistration.k8s.io",
        "validatingadmissionpolicies",
    ),
    ("apiregistration.k8s.io", "apiservices"),
    ("flowcontrol.apiserver.k8s.io", "flowschemas"),
    (
        "flowcontrol.apiserver.k8s.io",
        "prioritylevelconfigurations",
    ),
    ("internal.apiserver.k8s.io", "storageversions"),
    ("networking.k8s.io", "servicecidrs"),
    ("resource.k8s.io", "devicetaintrules"),
    ("resource.k8s.io", "resourceclaims"),
    ("scheduling.k8s.io", "podgroups"),
    ("storage.k8s.io", "volumeattachments"),
    ("storagemigration.k8s.io", "storageversionmigrations"),
];

/// The fields that a write to this part does not change, and that it therefore must not own.
fn reset_fields(resource: &Resource, part: Part) -> &'static [&'static str] {
    let is = |list: &[(&str, &str)]| list.iter().any(|(group, name)| resource.is(group, name));
    match part {
        Part::Main | Part::Status
            if is(&[("certificates.k8s.io", "certificatesigningrequests")]) =>
        {
            match part {
                Part::Main => &["spec", "status"],
                _ => &["spec", "status.conditions"],
            }
        }
        Part::Main if resource.has_status() => &["status"],
        Part::Status if resource.custom.is_some() || is(&STATUS_WITHOUT_METADATA) => {
            &["spec", "metadata"]
        }
        Part::Status if is(&[("apps", "deployments")]) => &["spec", "metadata.labels"],
        Part::Status if is(&[("", "pods")]) => &[
            "spec",
            "metadata.deletionTimestamp",
            "metadata.ownerReferences",
        ],
        Part::Status => &["spec"],
        Part::Finalize => &["status"],
        Part::Approval => &["spec", "status.certificate"],
        _ => &[],
    }
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
    let now = crate::base::timestamp(registry.now());
    let how = ApplyOptions {
        manager: &options.manager,
        force: options.force,
        now: &now,
        api_version: &resource.api_version(),
        kind: Some(&resource.kind),
        subresource: part.word(),
        reset_fields: reset_fields(resource, part),
    };
    let versions = Served::of(registry, resource);
    apply::apply_in(live, config, &how, resource.ty(), Some(&versions)).map_err(refused)
}

fn refused(error: ApplyError) -> Status {
    match error {
        ApplyError::Conflicts(ref list) => conflicts(&error.to_string(), list),
        ApplyError::BadRequest(text) => Status::bad_request(text),
        ApplyError::Invalid(text) => Status::new(500, "", text),
    }
}

fn of_scale<'o>(options: &'o WriteOptions, now: &'o str) -> ApplyOptions<'o> {
    let (manager, force, kind) = (manager_of(options), options.force, Some("Scale"));
    ApplyOptions {
        manager,
        force,
        now,
        api_version: "autoscaling/v1",
        kind,
        subresource: "scale",
        reset_fields: &[],
    }
}

/// The same as [`track`] for the Scale of an object.
pub fn track_scale(
    registry: &Registry,
    before: &Object,
    after: &mut Object,
    options: &WriteOptions,
) {
    apply::track_update_in(
        Some(before),
        after,
        &of_scale(options, &crate::base::timestamp(registry.now())),
        scale_type(),
        None,
    );
}

/// The same as [`apply`] for the Scale of an object. The real server cannot convert a changed Scale
/// of a custom resource, because it handles it as a custom object; this returns the same error.
pub fn apply_scale(
    registry: &Registry,
    resource: &Resource,
    live: &Object,
    config: &Object,
    options: &WriteOptions,
) -> Result<Object, Status> {
    let now = crate::base::timestamp(registry.now());
    let new = apply::apply_in(
        Some(live),
        config,
        &of_scale(options, &now),
        scale_type(),
        None,
    )
    .map_err(refused)?;
    if resource.custom.is_some() && !same_but_managers(live, &new) {
        let who = format!("{}/{}; {}", config.namespace(), config.name(), config.gvk());
        let why = format!("{INVALID_TARGET}: {}", config.api_version());
        return Err(Status::new(
            500,
            "",
            format!("failed to convert new object ({who}) to proper version: {why}"),
        ));
    }
    Ok(new)
}

/// A conflict of managers has one cause for each field.
fn conflicts(message: &str, list: &[Conflict]) -> Status {
    let cause = |c: &Conflict| Cause {
        reason: "FieldManagerConflict",
        message: c.cause_message(),
        field: c.field.clone(),
    };
    Status::new(409, "Conflict", message).with_causes(list.iter().map(cause).collect())
}

/// Whether the request itself sets `managedFields`, as tools do that migrate ownership.
pub fn sets_managers(old: &Object, new: &Object) -> bool {
    let sent = new.metadata("managedFields").filter(|m| !m.is_null());
    sent.is_some() && sent != old.metadata("managedFields")
}

/// Whether the field managers may change even though nothing else does. That is possible if an
/// entry has another version (all entries are lost if that version can no longer read the object),
/// if the schema has changed since the entries were written, and if there are more entries than a
/// write keeps.
pub fn may_change_managers(resource: &Resource, object: &Object) -> bool {
    let version = resource.api_version();
    let managers = object
        .metadata("managedFields")
        .and_then(Value::as_array)
        .map_or(&[][..], Vec::as_slice);
    convert::is_older(resource)
        || managers.iter().any(|entry| entry["apiVersion"] != version)
        || apply::merges_managers(managers)
}

/// A built-in object in the form in which Go compares it with its previous state, if that differs
/// from the form in which Go writes it: atomic lists are compared literally, so that empty lists
/// and maps inside them count.
pub fn as_compared(resource: &Resource, object: &Object) -> Option<Object> {
    let (ty, of) = (resource.builtin_type()?, resource.go_type()?);
    let parts = object
        .0
        .iter()
        .filter_map(|(key, value)| Some((key, value, ty.field(key)?)));
    if !parts
        .into_iter()
        .any(|(key, value, ty)| key != "metadata" && lists_empty(value, ty))
    {
        return None;
    }
    let (mut whole, mut written) = (object.clone(), object.clone());
    gotypes::drop_zero(&mut whole.0, of);
    strategy::drop_empty(resource, &mut written);
    let (from, mut to) = (whole.into_value(), written.into_value());
    keep_in_lists(&from, &mut to, ty)
        .then(|| Object::from_value(to).ok())
        .flatten()
}

/// Whether an atomic list contains empty lists or maps.
fn lists_empty(value: &Value, ty: TypeRef<'_>) -> bool {
    match value {
        Value::Object(map) => map
            .iter()
            .any(|(key, value)| ty.field(key).is_some_and(|ty| lists_empty(value, ty))),
        Value::Array(list) if matches!(ty.list_type(), Some(ListType::Map | ListType::Set)) => ty
            .items()
            .is_some_and(|ty| list.iter().any(|item| lists_empty(item, ty))),
        Value::Array(list) => list.iter().any(holds_empty),
        _ => false,
    }
}

fn holds_empty(value: &Value) -> bool {
    match value {
        Value::Array(list) => list.is_empty() || list.iter().any(holds_empty),
        Value::Object(map) => map.is_empty() || map.values().any(holds_empty),
        _ => false,
    }
}

/// Replaces the atomic lists of `to` by those of `from`; returns whether that changed any.
fn keep_in_lists(from: &Value, to: &mut Value, ty: TypeRef<'_>) -> bool {
    match (from, to) {
        (Value::Object(from), Value::Object(to)) => {
            let below = |(key, to): (&String, &mut Value)| {
                from.get(key)
                    .zip(ty.field(key))
                    .is_some_and(|(from, ty)| keep_in_lists(from, to, ty))
            };
            to.iter_mut()
                .map(below)
                .fold(false, |some, changed| some | changed)
        }
        (Value::Array(from), Value::Array(to))
            if matches!(ty.list_type(), Some(ListType::Map | ListType::Set)) =>
        {
            let Some(ty) = ty.items() else { return false };
            from.iter()
                .zip(to)
                .map(|(from, to)| keep_in_lists(from, to, ty))
                .fold(false, |some, changed| some | changed)
        }
        (Value::Array(list), to) if !list.is_empty() && from != to => {
            *to = from.clone();
            true
        }
        _ => false,
    }
}

/// Copies the field managers of `from` to `to`.
pub fn copy_managers(from: &Object, to: &mut Object) {
    match from.metadata("managedFields") {
        Some(managers) => to
            .metadata_mut()
            .insert("managedFields".into(), managers.clone()),
        None => to.metadata_mut().remove("managedFields"),
    };
}

/// Whether the objects are equal except for `managedFields`.
pub fn same_but_managers(a: &Object, b: &Object) -> bool {
    let others = |o: &Object| o.0.iter().filter(|(key, _)| *key != "metadata").count();
    others(a) == others(b)
        && a.0
            .iter()
            .filter(|(key, _)| *key != "metadata")
            .all(|(key, value)| b.0.get(key) == Some(value))
        && same_metadata(a, b)
}

fn same_metadata(a: &Object, b: &Object) -> bool {
    let (a, b) = (metadata_but_managers(a), metadata_but_managers(b));
    a == b
}

fn metadata_but_managers(object: &Object) -> HashMap<&str, &Value> {
    let metadata = object
        .0
        .get("metadata")
        .and_then(Value::as_object)
        .into_iter()
        .flatten();
    metadata
        .filter(|(key, _)| *key != "managedFields")
        .map(|(key, value)| (key.as_str(), value))
        .collect()
}

/// Whether the objects are equal except for the times in `managedFields`.
pub fn same_but_times(a: &Object, b: &Object) -> bool {
    same_but_managers(a, b) && managers_without_times(a) == managers_without_times(b)
}

fn managers_without_times(object: &Object) -> Vec<Value> {
    let mut list = object
        .metadata("managedFields")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    for entry in &mut list {
        if let Some(map) = entry.as_object_mut() {
            map.remove("time");
        }
    }
    list
}
