//! Persistent volumes and claims.

use super::rules::{At, Check};
use super::volume_sources::{self, SOURCES};
use super::{labels, pod};
use crate::status::Cause;
use serde_json::Value;
use tiphys_apimachinery::Object;
use tiphys_apimachinery::quantity::Quantity;
use tiphys_kube_schema::{formats, gotypes};

const MODES: &[&str] = &[
    "ReadOnlyMany",
    "ReadWriteMany",
    "ReadWriteOnce",
    "ReadWriteOncePod",
];
const BETA_CLASS: &str = "volume.beta.kubernetes.io/storage-class";
const MOUNT_OPTIONS: &str = "volume.beta.kubernetes.io/mount-options";
const STATES: &[&str] = &[
    "ControllerResizeInProgress",
    "ControllerResizeInfeasible",
    "NodeResizeInProgress",
    "NodeResizeInfeasible",
    "NodeResizePending",
];

/// A quantity; zero if absent.
pub fn quantity(at: &At<'_>) -> Quantity {
    let text = at.value.as_str().unwrap_or("0");
    text.parse()
        .unwrap_or_else(|_| "0".parse().expect("zero is a quantity"))
}

fn zero() -> Quantity {
    "0".parse().expect("zero is a quantity")
}

/// Greater than zero.
pub fn positive(at: &At<'_>, causes: &mut Vec<Cause>) {
    if quantity(at) <= zero() {
        causes.push(at.invalid_as(quantity(at).to_string(), "must be greater than zero"));
    }
}

/// Zero or more.
pub fn non_negative(at: &At<'_>, causes: &mut Vec<Cause>) {
    if quantity(at) < zero() {
        causes.push(at.invalid_as(
            quantity(at).to_string(),
            "must be greater than or equal to 0",
        ));
    }
}

fn basic_resource(at: &At<'_>, causes: &mut Vec<Cause>) {
    let value = quantity(at).value();
    if value < 0 {
        causes.push(at.invalid_as(value, "must be a valid resource quantity"));
    }
}

fn access_modes(modes: &At<'_>, causes: &mut Vec<Cause>) {
    if modes.is_empty() {
        causes.push(modes.required(""));
    }
    let all: Vec<&str> = modes.items().iter().map(At::text).collect();
    for mode in all.iter().filter(|m| !MODES.contains(m)) {
        causes.push(Cause::not_supported(&modes.path, &(*mode).into(), MODES));
    }
    let once = |m: &&&str| **m == "ReadWriteOncePod";
    if all.iter().any(|m| once(&m)) && all.iter().any(|m| !once(&m) && MODES.contains(m)) {
        causes.push(modes.forbidden("may not use ReadWriteOncePod with other access modes"));
    }
}

pub fn claim(object: &Object, old: Option<&Object>, causes: &mut Vec<Cause>) {
    let spec = At::of(object, old, "spec");
    pod::claim::spec(&spec, causes);
    if let Some(old) = old {
        claim_changes(object, old, &spec, causes);
    }
}

/// The specs of a claim before and after, without the mutable fields: the binder sets volume and
/// class, and a bound claim may grow.
fn frozen_claims(old: &Object, new: &Object) -> (Value, Value) {
    let spec = |claim: &Object| {
        claim
            .0
            .get("spec")
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default()
    };
    let (mut was, mut is) = (spec(old), spec(new));
    let copy = |from: &serde_json::Map<String, Value>,
                to: &mut serde_json::Map<String, Value>,
                field: &str| match from.get(field) {
        Some(value) => drop(to.insert(field.to_owned(), value.clone())),
        None => drop(to.remove(field)),
    };
    if old.str_at("/spec/volumeName").is_empty() {
        copy(&is, &mut was, "volumeName");
    }
    let named = old
        .annotation(BETA_CLASS)
        .is_none_or(|class| new.str_at("/spec/storageClassName") == class);
    if named && old.pointer("/spec/storageClassName").is_none() {
        is.remove("storageClassName");
    }
    if new.str_at("/status/phase") == "Bound" {
        copy(&was, &mut is, "volumeAttributesClassName");
        let size = old.pointer("/spec/resources/requests/storage").cloned();
        let requests = is
            .get_mut("resources")
            .and_then(|r| r.get_mut("requests"))
            .and_then(Value::as_object_mut);
        if let (Some(size), Some(requests)) = (size, requests) {
            requests.insert("storage".into(), size);
        }
    }
    (was.into(), is.into())
}

/// Whether the class of an annotation has moved to the field.
fn names_class_newly(old: &Object, new: &Object) -> bool {
    let class = |claim: &Object| {
        claim
            .pointer("/spec/storageClassName")
            .and_then(Value::as_str)
            .map(str::to_owned)
    };
    let named = old.annotation(BETA_CLASS).map(str::to_owned);
    let kept = new
        .annotation(BETA_CLASS)
        .is_none_or(|now| Some(now) == named.as_deref());
    named.is_some() && class(old).is_none() && class(new) == named && kept
}

fn claim_changes(object: &Object, old: &Object, spec: &At<'_>, causes: &mut Vec<Cause>) {
    let annotation = |o: &Object| o.annotation(BETA_CLASS).unwrap_or("").to_owned();
    if annotation(object) != annotation(old) && !names_class_newly(old, object) {
        let field = format!("metadata.annotations.{BETA_CLASS}");
        causes.push(Cause::invalid(
            &field,
            &annotation(object).into(),
            "field is immutable",
        ));
    }
    let (was, is) = frozen_claims(old, object);
    if was != is {
        let detail = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims";
        let diff = gotypes::diff(&was, &is, "core/v1.PersistentVolumeClaimSpec");
        causes.push(spec.forbidden(&format!("{detail}\n{diff}")));
    }
    let request = |o: &Object| quantity(&At::of(o, None, "spec").get("resources.requests.storage"));
    let reached = quantity(&At::of(old, None, "status").get("capacity.storage"));
    if request(object) < request(old) && request(object) <= reached {
        causes.push(
            spec.get("resources.requests.storage")
                .forbidden("field can not be less than status.capacity"),
        );
    }
    let mode = spec.get("volumeMode");
    if mode.is_changed() {
        causes.push(Cause::invalid(
            "volumeMode",
            mode.value,
            "field is immutable",
        ));
    }
    let class = spec.get("volumeAttributesClassName");
    if class.is_changed()
        && class.is_empty()
        && old
            .pointer("/status/currentVolumeAttributesClassName")
            .is_some()
    {
        let nothing = if class.is_null() {
            "nil"
        } else {
            "empty string"
        };
        causes.push(class.forbidden(&format!("update to {nothing} is forbidden when status.currentVolumeAttributesClassName is not nil")));
    }
}

pub fn claim_status(object: &Object, old: Option<&Object>, causes: &mut Vec<Cause>) {
    let status = At::of(object, old, "status");
    status
        .get("capacity")
        .entries()
        .iter()
        .for_each(|(_, amount)| basic_resource(amount, causes));
    let states = status.get("allocatedResourceStatuses");
    for (key, state) in states.entries() {
        claim_key(&states, key, causes);
        if !STATES.contains(&state.text()) {
            causes.push(Cause::not_supported(&states.path, &key.into(), STATES));
        }
    }
    let allocated = status.get("allocatedResources");
    for (key, amount) in allocated.entries() {
        let before = causes.len();
        claim_key(&allocated, key, causes);
        if causes.len() == before {
            basic_resource(&amount, causes);
        }
    }
}

fn claim_key(at: &At<'_>, key: &str, causes: &mut Vec<Cause>) {
    let problems = formats::qualified_name(key);
    causes.extend(problems.iter().map(|p| at.invalid_as(key, p)));
    let known = key == "storage" || (key.contains('/') && !key.contains("kubernetes.io/"));
    if problems.is_empty() && !known {
        causes.push(Cause::not_supported(&at.path, &key.into(), &["storage"]));
    }
}

/// An inline volume of an attachment, for volumes that have not been migrated to CSI.
pub fn inline_volume(spec: &At<'_>, causes: &mut Vec<Cause>) {
    let refuse = |field: &str| {
        spec.get(field)
            .forbidden("may not be specified in the context of inline volumes")
    };
    causes.extend((!spec.get("claimRef").is_null()).then(|| refuse("claimRef")));
    causes.extend((!spec.get("capacity").is_empty()).then(|| refuse("capacity")));
    if spec.get("csi").is_null() {
        causes.push(
            spec.get("csi")
                .required("has to be specified in the context of inline volumes"),
        );
    }
    access_modes(&spec.get("accessModes"), causes);
    let (policy, mode) = (
        spec.get("persistentVolumeReclaimPolicy"),
        spec.get("volumeMode"),
    );
    if !policy.is_empty() && policy.text() != "Retain" {
        causes.push(policy.forbidden("may only be Retain in the context of inline volumes"));
    }
    causes.extend((!spec.get("nodeAffinity").is_null()).then(|| refuse("nodeAffinity")));
    volume_sources::one(spec, "", causes);
    recycled_root(spec, causes);
    causes.extend((!spec.get("storageClassName").is_empty()).then(|| refuse("storageClassName")));
    if !mode.is_null() && mode.text() != "Filesystem" {
        causes.push(mode.forbidden(
            "may not specify volumeMode other than Filesystem in the context of inline volumes",
        ));
    }
}

pub fn volume(object: &Object, old: Option<&Object>, causes: &mut Vec<Cause>) {
    let spec = At::of(object, old, "spec");
    volume_spec(&spec, object.name(), causes);
    if old.is_none() {
        return mount_options(object, &spec, causes);
    }
    // Updates are checked twice.
    let first = causes.clone();
    mount_options(object, &spec, causes);
    causes.extend(
        first
            .into_iter()
            .filter(|cause| cause.field.starts_with("spec")),
    );
    let source = |spec: &Value| {
        let mut only = serde_json::Map::new();
        for source in SOURCES {
            let name = source.field;
            only.extend(
                spec.get(name)
                    .filter(|v| !v.is_null())
                    .map(|v| (name.to_owned(), v.clone())),
            );
        }
        Value::Object(only)
    };
    let (was, mut is) = (source(spec.old.unwrap_or(&Value::Null)), source(spec.value));
    let expand = "controllerExpandSecretRef";
    if was
        .pointer("/csi")
        .is_some_and(|csi| csi.get(expand).is_none())
        && let Some(csi) = is.get_mut("csi").and_then(Value::as_object_mut)
    {
        csi.remove(expand);
    }
    if was != is {
        let diff = gotypes::diff(&was, &is, "core/v1.PersistentVolumeSource");
        let detail = format!("spec.persistentvolumesource is immutable after creation\n{diff}");
        causes.push(Cause::forbidden("spec.persistentvolumesource", &detail));
    }
    let (mode, attributes) = (
        spec.get("volumeMode"),
        spec.get("volumeAttributesClassName"),
    );
    if mode.is_changed() {
        causes.push(Cause::invalid(
            "volumeMode",
            mode.value,
            "field is immutable",
        ));
    }
    let affinity = spec.get("nodeAffinity");
    if affinity
        .old
        .is_some_and(|old| !old.is_null() && !labels::same_affinity(old, affinity.value))
    {
        let detail = "field is immutable, except for updating from beta label to GA";
        causes.push(
            At {
                path: "nodeAffinity".into(),
                ..affinity
            }
            .invalid_struct("core/v1.VolumeNodeAffinity", detail),
        );
    }
    if attributes.is_changed() && attributes.is_null() {
        causes.push(attributes.forbidden("update from non-nil value to nil is forbidden"));
    }
}

/// Whether the volume type supports mount options.
fn mount_options(object: &Object, spec: &At<'_>, causes: &mut Vec<Cause>) {
    const MOUNTED: [&str; 13] = [
        "gcePersistentDisk",
        "awsElasticBlockStore",
        "glusterfs",
        "nfs",
        "rbd",
        "quobyte",
        "iscsi",
        "cinder",
        "cephfs",
        "azureFile",
        "vsphereVolume",
        "azureDisk",
        "photonPersistentDisk",
    ];
    if object.annotation(MOUNT_OPTIONS).is_some()
        && MOUNTED.iter().all(|source| spec.get(source).is_null())
    {
        let field = format!("metadata.annotations.{MOUNT_OPTIONS}");
        causes.push(Cause::forbidden(
            &field,
            "may not specify mount options for this volume type",
        ));
    }
}

fn volume_spec(spec: &At<'_>, name: &str, causes: &mut Vec<Cause>) {
    access_modes(&spec.get("accessModes"), causes);
    let capacity = spec.get("capacity");
    if capacity.is_empty() {
        causes.push(capacity.required(""));
    }
    if capacity.value.get("storage").is_none() || capacity.len() > 1 {
        let shown = if capacity.is_null() {
            Value::Null
        } else {
            capacity.value.clone()
        };
        causes.push(Cause::not_supported(&capacity.path, &shown, &["storage"]));
    }
    for (_, amount) in capacity.entries() {
        basic_resource(&amount, causes);
        positive(&amount, causes);
    }
    let policy = spec.get("persistentVolumeReclaimPolicy");
    policy.check(&[Check::OneOf(&["Delete", "Recycle", "Retain"])], causes);
    let affinity = spec.get("nodeAffinity");
    if !affinity.is_null() {
        match affinity.get("required").is_null() {
            true => causes.push(
                affinity
                    .get("required")
                    .required("must specify required node constraints"),
            ),
            false => node_selector(&affinity.get("required"), causes),
        }
    }
    volume_sources::one(spec, name, causes);
    recycled_root(spec, causes);
    spec.get("storageClassName")
        .check(&[Check::Form(formats::dns_subdomain)], causes);
    let (mode, attributes) = (
        spec.get("volumeMode"),
        spec.get("volumeAttributesClassName"),
    );
    if !mode.is_null() && !matches!(mode.text(), "Block" | "Filesystem") {
        causes.push(mode.not_supported(&["Block", "Filesystem"]));
    }
    if !attributes.is_null() {
        match attributes.is_empty() {
            true => causes.push(attributes.required("an empty string is disallowed")),
            false => attributes.form(formats::dns_subdomain, causes),
        }
        if spec.get("csi").is_null() {
            causes.push(
                spec.get("csi")
                    .required("has to be specified when using volumeAttributesClassName"),
            );
        }
    }
}

fn recycled_root(spec: &At<'_>, causes: &mut Vec<Cause>) {
    let (root, policy) = (
        spec.get("hostPath.path"),
        spec.get("persistentVolumeReclaimPolicy"),
    );
    if !root.is_empty() && root.text().trim_matches('/').is_empty() && policy.text() == "Recycle" {
        causes.push(policy.forbidden("may not be 'recycle' for a hostPath mount of '/'"));
    }
}

/// The name of a CSI driver, which may contain capitals.
pub fn driver_name(name: &At<'_>, causes: &mut Vec<Cause>) {
    if name.is_empty() {
        return causes.push(name.required(""));
    }
    if name.len() > 63 {
        causes.push(name.too_long(63));
    }
    causes.extend(
        formats::dns_subdomain(&name.text().to_lowercase())
            .iter()
            .map(|p| name.invalid(p)),
    );
}

/// The required node labels.
pub fn node_selector(selector: &At<'_>, causes: &mut Vec<Cause>) {
    let terms = selector.get("nodeSelectorTerms");
    if terms.is_empty() {
        return causes.push(terms.required("must have at least one node selector term"));
    }
    for term in terms.items() {
        term.get("matchExpressions")
            .items()
            .iter()
            .for_each(|requirement| node_labels(requirement, causes));
        term.get("matchFields")
            .items()
            .iter()
            .for_each(|requirement| node_fields(requirement, causes));
    }
}

fn node_labels(requirement: &At<'_>, causes: &mut Vec<Cause>) {
    let (operator, values) = (requirement.get("operator"), requirement.get("values"));
    match operator.text() {
        "In" | "NotIn" if values.is_empty() => {
            causes.push(values.required("must be specified when `operator` is 'In' or 'NotIn'"));
        }
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            causes.push(
                values.forbidden(
                    "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
                ),
            );
        }
        "Gt" | "Lt" if values.len() != 1 => {
            causes.push(
                values.required("must be specified single value when `operator` is 'Lt' or 'Gt'"),
            );
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
        _ => causes.push(operator.invalid("not a valid selector operator")),
    }
    requirement.get("key").form(formats::qualified_name, causes);
    values
        .items()
        .iter()
        .for_each(|value| value.form(formats::label_value, causes));
}

fn node_fields(requirement: &At<'_>, causes: &mut Vec<Cause>) {
    let (operator, values, key) = (
        requirement.get("operator"),
        requirement.get("values"),
        requirement.get("key"),
    );
    match operator.text() {
        "In" | "NotIn" if values.len() != 1 => {
            causes.push(values.required(
                "must be only one value when `operator` is 'In' or 'NotIn' for node field selector",
            ));
        }
        "In" | "NotIn" => {}
        _ => causes.push(operator.invalid("not a valid selector operator")),
    }
    match key.text() {
        "metadata.name" => values
            .items()
            .iter()
            .for_each(|value| value.form(formats::dns_subdomain, causes)),
        _ => causes.push(key.invalid("not a valid field selector key")),
    }
}
