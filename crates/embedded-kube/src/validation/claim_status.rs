//! The status of a ResourceClaim: its allocation, its users, and the state of its devices.
//!
//! Main function: [`claim_status`].

use super::devices::{
    Names, configuration, driver, each, each_once, request_name, request_names, requests_by_name,
};
use super::rules::At;
use super::slice_devices::binding_conditions;
use super::slices::pool_name;
use super::{nodes, volumes};
use crate::status::Cause;
use serde_json::Value;
use std::collections::HashSet;
use tiphys_apimachinery::Object;
use tiphys_kube_schema::formats;

const MAX_CONSUMERS: usize = 256;
const MAX_RESULTS: usize = 32;
const MAX_CONFIGS: usize = 64;
const MAX_CONDITIONS: usize = 8;
const MAX_DATA: usize = 10 * 1024;
const MAX_INTERFACE: usize = 256;
const MAX_HARDWARE: usize = 128;
const MAX_ADDRESSES: usize = 16;

/// A device: driver, pool, name, and the share if it is shared.
type DeviceId<'v> = [&'v str; 4];

fn id<'v>(device: &At<'v>) -> DeviceId<'v> {
    ["driver", "pool", "device", "shareID"].map(|field| device.get(field).text())
}

/// The devices allocated to a claim.
fn allocated(status: &Value) -> HashSet<DeviceId<'_>> {
    At::root(status, None)
        .get("allocation.devices.results")
        .items()
        .iter()
        .map(id)
        .collect()
}

/// Drops the status of devices that are no longer allocated to the claim.
pub fn forget_deallocated(old: &Object, new: &mut Object) {
    let none = Value::Null;
    let of = |object: &Object| object.0.get("status").cloned().unwrap_or_default();
    let (before, after) = (of(old), of(new));
    let (had, has) = (allocated(&before), allocated(&after));
    let gone = |device: &Value| {
        let id = id(&At::root(device, None));
        had.contains(&id) && !has.contains(&id)
    };
    let kept: Vec<Value> = after
        .get("devices")
        .unwrap_or(&none)
        .as_array()
        .into_iter()
        .flatten()
        .filter(|d| !gone(d))
        .cloned()
        .collect();
    let Some(status) = new.0.get_mut("status").and_then(Value::as_object_mut) else {
        return;
    };
    match kept.is_empty() {
        true => status.remove("devices"),
        false => status.insert("devices".into(), kept.into()),
    };
}

pub fn claim_status(object: &Object, old: Option<&Object>, causes: &mut Vec<Cause>) {
    let status = At::of(object, old, "status");
    let (consumers, allocation) = (status.get("reservedFor"), status.get("allocation"));
    each_once(
        &consumers,
        MAX_CONSUMERS,
        |consumer| consumer.get("uid").value,
        causes,
        |consumer, causes| {
            let missing = ["resource", "name", "uid"]
                .map(|field| consumer.get(field))
                .into_iter()
                .filter(At::is_empty);
            causes.extend(missing.map(|field| field.required("")));
        },
    );
    devices(&status, causes);
    if !consumers.is_empty() {
        reserved(object, &consumers, &allocation, causes);
    }
    let was = allocation.old.is_some_and(|old| !old.is_null());
    if was && !allocation.is_null() {
        if allocation.is_changed() {
            causes.push(
                allocation.invalid_struct("resource/v1.AllocationResult", "field is immutable"),
            );
        }
    } else if !allocation.is_null() {
        let spec = At::of(object, None, "spec");
        self::allocation(
            &allocation,
            &requests_by_name(&spec.get("devices.requests")),
            causes,
        );
    }
}

fn reserved(object: &Object, consumers: &At<'_>, allocation: &At<'_>, causes: &mut Vec<Cause>) {
    if allocation.is_null() {
        return causes
            .push(consumers.forbidden("may not be specified when `allocated` is not set"));
    }
    let before = consumers
        .old
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default();
    let new = consumers
        .items()
        .iter()
        .any(|consumer| !before.contains(consumer.value));
    if object.deletion_timestamp().is_some() && new {
        causes.push(consumers.forbidden("new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"));
    }
}

fn devices(status: &At<'_>, causes: &mut Vec<Cause>) {
    let known = allocated(status.value);
    let list = status.get("devices").items();
    list.iter().for_each(|one| device(one, &known, causes));
    let mut seen = HashSet::new();
    for again in list.iter().filter(|one| !seen.insert(id(one))) {
        let message = format!("Duplicate value: {}", shown(again));
        causes.push(Cause {
            reason: "FieldValueDuplicate",
            message,
            field: again.path.clone(),
        });
    }
}

fn shown(device: &At<'_>) -> String {
    let [driver, pool, name, share] = id(device).map(Value::from);
    format!("{{\"Driver\":{driver},\"Pool\":{pool},\"Device\":{name},\"ShareID\":{share}}}")
}

fn device(device: &At<'_>, known: &HashSet<DeviceId<'_>>, causes: &mut Vec<Cause>) {
    place(device, causes);
    share(&device.get("shareID"), causes);
    if !known.contains(&id(device)) {
        let message = format!(
            "Invalid value: {}: must be an allocated device in the claim",
            shown(device)
        );
        causes.push(Cause {
            reason: "FieldValueInvalid",
            message,
            field: device.path.clone(),
        });
    }
    let (conditions, data, network) = (
        device.get("conditions"),
        device.get("data"),
        device.get("networkData"),
    );
    if conditions.len() > MAX_CONDITIONS {
        causes.push(conditions.too_many(MAX_CONDITIONS));
    }
    nodes::conditions(&conditions, causes);
    match data.value {
        Value::Null => {}
        value if value.to_string().len() > MAX_DATA => causes.push(data.too_long(MAX_DATA)),
        Value::Object(_) => {}
        _ => causes.push(data.invalid_as("<value omitted>", "must be a valid JSON object")),
    }
    for (field, max) in [
        ("interfaceName", MAX_INTERFACE),
        ("hardwareAddress", MAX_HARDWARE),
    ] {
        let text = network.get(field);
        causes.extend((text.len() > max).then(|| text.too_long(max)));
    }
    each_once(
        &network.get("ips"),
        MAX_ADDRESSES,
        |ip| ip.value,
        causes,
        |ip, causes| ip.form(formats::interface_address, causes),
    );
}

/// Driver, pool and name of a device.
fn place(device: &At<'_>, causes: &mut Vec<Cause>) {
    let name = device.get("driver");
    driver(&name, name.text(), causes);
    pool_name(&device.get("pool"), causes);
    device.get("device").form(formats::dns_label, causes);
}

/// The share of a device.
fn share(id: &At<'_>, causes: &mut Vec<Cause>) {
    const NORMAL: &str = "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase hexadecimal characters";
    if id.is_null() {
        return;
    }
    match unreadable_uuid(id.text()) {
        Some(why) => causes.push(id.invalid(&format!("error validating uid: {why}"))),
        None if id.len() != 36 || id.text() != id.text().to_lowercase() => {
            causes.push(id.invalid(NORMAL))
        }
        None => {}
    }
}

/// The error of Go's library about a UUID, which may be in braces, after `urn:uuid:`, or without
/// hyphens.
fn unreadable_uuid(text: &str) -> Option<String> {
    let inner = match text.len() {
        36 => text,
        45 if text
            .get(..9)
            .is_some_and(|prefix| prefix.eq_ignore_ascii_case("urn:uuid:")) =>
        {
            &text[9..]
        }
        45 => {
            return Some(format!(
                "invalid urn prefix: {:?}",
                String::from_utf8_lossy(&text.as_bytes()[..9])
            ));
        }
        38 => match text
            .strip_prefix('{')
            .and_then(|rest| rest.strip_suffix('}'))
        {
            Some(inner) => inner,
            None => return Some("invalid bracketed UUID format".to_owned()),
        },
        32 => {
            return (!text.bytes().all(|b| b.is_ascii_hexdigit()))
                .then(|| "invalid UUID format".to_owned());
        }
        other => return Some(format!("invalid UUID length: {other}")),
    };
    let fits = |(at, byte): (usize, u8)| {
        if matches!(at, 8 | 13 | 18 | 23) {
            byte == b'-'
        } else {
            byte.is_ascii_hexdigit()
        }
    };
    (!inner.bytes().enumerate().all(fits)).then(|| "invalid UUID format".to_owned())
}

fn allocation(allocation: &At<'_>, names: &Names<'_>, causes: &mut Vec<Cause>) {
    each(
        &allocation.get("devices.results"),
        MAX_RESULTS,
        causes,
        |result, causes| {
            request_name(&result.get("request"), names, causes);
            place(result, causes);
            binding_conditions(result, causes);
            share(&result.get("shareID"), causes);
        },
    );
    each(
        &allocation.get("devices.config"),
        MAX_CONFIGS,
        causes,
        |config, causes| {
            let source = config.get("source");
            match source.text() {
                "" => causes.push(source.required("")),
                "FromClaim" | "FromClass" => {}
                _ => causes.push(source.not_supported(&["FromClaim", "FromClass"])),
            }
            request_names(&config.get("requests"), names, causes);
            configuration(config, causes);
        },
    );
    let nodes = allocation.get("nodeSelector");
    if !nodes.is_null() {
        volumes::node_selector(&nodes, causes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uuids_have_several_forms() {
        let plain = "11111111-2222-4333-8444-555555555555";
        for good in [
            plain.to_owned(),
            format!("{{{plain}}}"),
            format!("URN:uuid:{plain}"),
            plain.replace('-', ""),
        ] {
            assert_eq!(unreadable_uuid(&good), None, "{good}");
        }
        assert_eq!(
            unreadable_uuid("x").as_deref(),
            Some("invalid UUID length: 1")
        );
        assert_eq!(
            unreadable_uuid(&plain.replace('1', "g")).as_deref(),
            Some("invalid UUID format")
        );
    }
}
