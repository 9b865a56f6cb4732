//! Storage classes, CSI drivers and their nodes, attachments and capacities.

use super::rules::{self, At, Check};
use super::volumes;
use crate::status::Cause;
use serde_json::Value;
use tiphys_apimachinery::Object;
use tiphys_kube_schema::formats;

const MAX_PARAMETERS: usize = 512;
const MAX_PARAMETER_BYTES: usize = 256 * 1024;
const MAX_ATTACHMENT_BYTES: usize = 256 * 1024;
const MAX_ERROR_MESSAGE: usize = 1024;

fn provisioner(name: &At<'_>, causes: &mut Vec<Cause>) {
    match name.is_empty() {
        true => causes.push(name.required("")),
        false => {
            let lower = name.text().to_lowercase();
            causes.extend(
                formats::qualified_name(&lower)
                    .iter()
                    .map(|p| name.invalid_as(lower.as_str(), p)),
            );
        }
    }
}

fn parameters(map: &At<'_>, may_be_empty: bool, causes: &mut Vec<Cause>) {
    if map.len() > MAX_PARAMETERS {
        return causes.push(map.too_long(MAX_PARAMETERS));
    }
    let empty = map
        .entries()
        .iter()
        .filter(|(key, _)| key.is_empty())
        .count();
    causes.extend((0..empty).map(|_| map.invalid_as("", "field can not be empty.")));
    if map
        .entries()
        .iter()
        .map(|(k, v)| k.len() + v.len())
        .sum::<usize>()
        > MAX_PARAMETER_BYTES
    {
        causes.push(map.too_long(MAX_PARAMETER_BYTES));
    }
    if !may_be_empty && map.is_empty() {
        causes.push(map.required("must contain at least one key/value pair"));
    }
}

pub fn class(object: &Object, old: Option<&Object>, causes: &mut Vec<Cause>) {
    let at = |field: &str| At::of(object, old, field);
    provisioner(&at("provisioner"), causes);
    parameters(&at("parameters"), true, causes);
    at("reclaimPolicy").check(&[Check::OneOf(&["Delete", "Retain"])], causes);
    let mode = at("volumeBindingMode");
    match mode.is_null() {
        true => causes.push(mode.required("")),
        false if !matches!(mode.text(), "Immediate" | "WaitForFirstConsumer") => {
            causes.push(mode.not_supported(&["Immediate", "WaitForFirstConsumer"]));
        }
        false => {}
    }
    let terms = at("allowedTopologies").items();
    for (i, term) in terms.iter().enumerate() {
        let expressions = term.get("matchLabelExpressions");
        let items = expressions.items();
        for (j, expression) in items.iter().enumerate() {
            topology(expression, causes);
            let key = expression.get("key");
            if items[..j]
                .iter()
                .any(|before| before.get("key").value == key.value)
            {
                causes.push(key.duplicate());
            }
        }
        // A term that says nothing is like the places that the real server keeps for all of them.
        let places = if items.is_empty() { terms.len() } else { 0 };
        let same = places
            + terms[..i]
                .iter()
                .filter(|before| before.value == term.value)
                .count();
        causes.extend((0..same).map(|_| Cause::duplicate(&expressions.path, &"".into())));
    }
    for field in [
        "parameters",
        "provisioner",
        "reclaimPolicy",
        "volumeBindingMode",
    ] {
        let value = at(field);
        if value.is_changed() {
            causes.push(value.invalid_as(value.value.clone(), "field is immutable"));
        }
    }
}

fn topology(expression: &At<'_>, causes: &mut Vec<Cause>) {
    let values = expression.get("values");
    if values.is_empty() {
        causes.push(values.required(""));
    }
    values.check(&[Check::Distinct], causes);
    expression.get("key").form(formats::qualified_name, causes);
}

pub fn attachment(object: &Object, old: Option<&Object>, causes: &mut Vec<Cause>) {
    let spec = At::of(object, old, "spec");
    volumes::driver_name(&spec.get("attacher"), causes);
    let (source, name) = (spec.get("source"), spec.get("source.persistentVolumeName"));
    let inline = source.get("inlineVolumeSpec");
    match (inline.is_null(), name.is_null()) {
        (true, true) => causes.push(
            source
                .required("must specify exactly one of inlineVolumeSpec and persistentVolumeName"),
        ),
        (false, false) => causes
            .push(source.forbidden(
                "must specify exactly one of inlineVolumeSpec and persistentVolumeName",
            )),
        (true, false) if name.is_empty() => {
            causes.push(name.required("must specify non empty persistentVolumeName"))
        }
        (false, true) => volumes::inline_volume(&inline, causes),
        _ => {}
    }
    spec.get("nodeName").form(formats::dns_subdomain, causes);
    if !name.is_null() {
        name.form(formats::dns_subdomain, causes);
    }
    if spec.is_changed() {
        causes.push(spec.invalid_struct("storage/v1.VolumeAttachmentSpec", "field is immutable"));
    }
}

/// The result of attaching a volume.
pub fn attachment_status(object: &Object, old: Option<&Object>, causes: &mut Vec<Cause>) {
    let status = At::of(object, old, "status");
    let data = status.get("attachmentMetadata");
    if data
        .entries()
        .iter()
        .map(|(key, value)| key.len() + value.len())
        .sum::<usize>()
        > MAX_ATTACHMENT_BYTES
    {
        causes.push(data.too_long(MAX_ATTACHMENT_BYTES));
    }
    for error in ["attachError", "detachError"].map(|field| status.get(field)) {
        let message = error.get("message");
        if message.len() > MAX_ERROR_MESSAGE {
            causes.push(message.too_long(MAX_ATTACHMENT_BYTES));
        }
        error
            .get("errorCode")
            .check(&[Check::Between(0, i64::from(i32::MAX))], causes);
    }
}

pub fn driver(object: &Object, old: Option<&Object>, causes: &mut Vec<Cause>) {
    let spec = At::of(object, old, "spec");
    let said = |field: &str, name: &str| At {
        path: format!("spec.{name}"),
        ..spec.get(field)
    };
    for (field, name) in [
        ("attachRequired", "attachedRequired"),
        ("podInfoOnMount", "podInfoOnMount"),
        ("storageCapacity", "storageCapacity"),
    ] {
        let value = said(field, name);
        causes.extend(value.is_null().then(|| value.required("")));
    }
    let policy = spec.get("fsGroupPolicy");
    if !policy.is_null() && !matches!(policy.text(), "File" | "None" | "ReadWriteOnceWithFSType") {
        causes.push(policy.not_supported(&["File", "None", "ReadWriteOnceWithFSType"]));
    }
    let requests = spec.get("tokenRequests");
    let items = requests.items();
    for (i, request) in items.iter().enumerate() {
        let (audience, expiration) = (request.get("audience"), request.get("expirationSeconds"));
        if items[..i]
            .iter()
            .any(|before| before.get("audience").value == audience.value)
        {
            causes.push(audience.duplicate());
            continue;
        }
        match expiration.int() {
            Some(n) if n < 600 => {
                causes.push(expiration.invalid("may not specify a duration less than 10 minutes"))
            }
            Some(n) if n > 1 << 32 => causes
                .push(expiration.invalid("may not specify a duration larger than 2^32 seconds")),
            _ => {}
        }
    }
    let modes = spec.get("volumeLifecycleModes");
    for mode in modes
        .items()
        .iter()
        .filter(|m| !matches!(m.text(), "Persistent" | "Ephemeral"))
    {
        causes.push(Cause::not_supported(
            &modes.path,
            mode.value,
            &["Persistent", "Ephemeral"],
        ));
    }
    let linux = spec.get("seLinuxMount");
    causes.extend(linux.is_null().then(|| linux.required("")));
    let period = spec.get("nodeAllocatableUpdatePeriodSeconds");
    if period.int().is_some_and(|n| n < 10) {
        causes.push(period.invalid("must be greater than or equal to 10 seconds"));
    }
    let secrets = spec.get("serviceAccountTokenInSecrets");
    if !secrets.is_null() && requests.is_empty() {
        causes.push(
            secrets
                .invalid("serviceAccountTokenInSecrets is set but no tokenRequests are specified"),
        );
    }
    for at in [said("attachRequired", "attachedRequired"), modes] {
        if at.is_changed() {
            causes.push(at.invalid_as(at.value.clone(), "field is immutable"));
        }
    }
}

pub fn node(object: &Object, old: Option<&Object>, causes: &mut Vec<Cause>) {
    let drivers = At::of(object, old, "spec").get("drivers");
    let items = drivers.items();
    for (i, driver) in items.iter().enumerate() {
        let (name, id, count) = (
            driver.get("name"),
            driver.get("nodeID"),
            driver.get("allocatable.count"),
        );
        volumes::driver_name(&name, causes);
        id.check(&[Check::Required("")], causes);
        if id.len() > 256 {
            causes.push(id.invalid("must be 256 characters or less"));
        }
        count.check(&[Check::AtLeast(0)], causes);
        if items[..i]
            .iter()
            .any(|before| before.get("name").value == name.value)
        {
            causes.push(name.duplicate());
        }
        let keys: Vec<&str> = driver
            .get("topologyKeys")
            .items()
            .iter()
            .map(At::text)
            .collect();
        for (j, key) in keys.iter().enumerate() {
            causes.extend(key.is_empty().then(|| driver.required("")));
            if keys[..j].contains(key) {
                causes.push(Cause::duplicate(&driver.path, &(*key).into()));
            }
            causes.extend(
                formats::qualified_name(key)
                    .iter()
                    .map(|p| driver.invalid_as(*key, p)),
            );
        }
    }
    let before = old
        .and_then(|o| o.pointer("/spec/drivers"))
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    let fixed = |driver: &Value| {
        let mut driver = driver.clone();
        if let Some(map) = driver.as_object_mut() {
            map.remove("allocatable");
        }
        driver
    };
    // A missing topology equals one without keys.
    let compared = |driver: &Value| {
        let mut driver = fixed(driver);
        let without = driver["topologyKeys"].as_array().is_none_or(Vec::is_empty);
        if without && let Some(map) = driver.as_object_mut() {
            map.remove("topologyKeys");
        }
        driver
    };
    for was in &before {
        for now in items
            .iter()
            .filter(|now| now.value["name"] == was["name"] && compared(now.value) != compared(was))
        {
            let shown = fixed(now.value);
            causes.push(
                At::new(&shown, drivers.path.clone())
                    .invalid_struct("storage/v1.CSINodeDriver", "field is immutable"),
            );
        }
    }
}

pub fn capacity(object: &Object, old: Option<&Object>, causes: &mut Vec<Cause>) {
    let at = |field: &str| At::of(object, old, field);
    let (topology, class) = (at("nodeTopology"), at("storageClassName"));
    rules::label_selector(&topology, causes);
    class.form(formats::dns_subdomain, causes);
    volumes::non_negative(&at("capacity"), causes);
    if topology.is_changed() {
        causes.push(topology.invalid_struct("meta/v1.LabelSelector", "field is immutable"));
    }
    class.check(&[Check::Immutable], causes);
}

pub fn attributes_class(object: &Object, old: Option<&Object>, causes: &mut Vec<Cause>) {
    let (name, map) = (
        At::of(object, old, "driverName"),
        At::of(object, old, "parameters"),
    );
    causes.extend(
        name.is_changed()
            .then(|| name.forbidden("updates to driverName are forbidden.")),
    );
    causes.extend(
        map.is_changed()
            .then(|| map.forbidden("updates to parameters are forbidden.")),
    );
    provisioner(&name, causes);
    parameters(&map, false, causes);
}
