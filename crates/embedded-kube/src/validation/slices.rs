//! ResourceSlices: the devices that a driver offers. Main function: [`slice`]; single devices are
//! checked in `slice_devices`.

use super::devices::{driver, each_once};
use super::rules::At;
use super::slice_devices::{counters, device};
use super::volumes;
use crate::status::Cause;
use serde_json::Value;
use tiphys_apimachinery::Object;
use tiphys_kube_schema::formats;

const MAX_DEVICES: usize = 128;
/// The limit if devices have taints or consume counters.
const MAX_ADVANCED_DEVICES: usize = 64;
const MAX_COUNTER_SETS: usize = 8;
const MAX_POOL_NAME: usize = 253;
const UNSET_OR_TRUE: &str = "must be either unset or set to true";
const ONE_OF_NODES: &str =
    "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required";

pub fn slice(object: &Object, old: Option<&Object>, causes: &mut Vec<Cause>) {
    let spec = At::of(object, old, "spec");
    let name = spec.get("driver");
    driver(&name, name.text(), causes);
    pool(&spec.get("pool"), causes);
    for field in ["pool.name", "driver", "nodeName"] {
        let field = spec.get(field);
        causes.extend(
            field
                .is_changed()
                .then(|| field.invalid_as(field.value.clone(), "field is immutable")),
        );
    }
    nodes(&spec, causes);
    let (devices, shared) = (spec.get("devices"), spec.get("sharedCounters"));
    if !devices.is_null() && !shared.is_null() {
        causes.push(spec.invalid_as("", "only one of `sharedCounters` or `devices` is allowed"));
    }
    let advanced = devices.items().iter().any(|device| {
        ["taints", "consumesCounters"]
            .iter()
            .any(|list| !device.get(list).is_empty())
    });
    let most = if advanced {
        MAX_ADVANCED_DEVICES
    } else {
        MAX_DEVICES
    };
    let before = old.map(|old| At::of(old, None, "spec").get("devices"));
    let by_device = spec.get("perDeviceNodeSelection").is_true();
    each_once(
        &devices,
        most,
        |device| device.get("name").value,
        causes,
        |one, causes| {
            let same = |other: &At<'_>| other.get("name").text() == one.get("name").text();
            let before = before
                .as_ref()
                .and_then(|list| list.items().into_iter().find(same));
            device(one, before.as_ref(), by_device, causes);
        },
    );
    each_once(
        &shared,
        MAX_COUNTER_SETS,
        |set| set.get("name").value,
        causes,
        |set, causes| counters(set, "name", causes),
    );
}

fn pool(pool: &At<'_>, causes: &mut Vec<Cause>) {
    let (name, count, generation) = (
        pool.get("name"),
        pool.get("resourceSliceCount"),
        pool.get("generation"),
    );
    pool_name(&name, causes);
    let (slices, number) = (count.int().unwrap_or(0), generation.int().unwrap_or(0));
    causes.extend((slices <= 0).then(|| count.invalid_as(slices, "must be greater than zero")));
    causes.extend(
        (number < 0)
            .then(|| generation.invalid_as(number, "must be greater than or equal to zero")),
    );
}

pub fn pool_name(name: &At<'_>, causes: &mut Vec<Cause>) {
    match name.is_empty() {
        true => causes.push(name.required("")),
        false => {
            causes.extend((name.len() > MAX_POOL_NAME).then(|| name.too_long(MAX_POOL_NAME)));
            for part in name.text().split('/') {
                causes.extend(
                    formats::dns_subdomain(part)
                        .iter()
                        .map(|problem| name.invalid_as(part, problem)),
                );
            }
        }
    }
}

/// The nodes that can access the devices.
fn nodes(spec: &At<'_>, causes: &mut Vec<Cause>) {
    let mut said = Vec::new();
    said.extend(node_name(
        &spec.get("nodeName"),
        "must be either unset or set to a non-empty string",
        causes,
    ));
    said.extend(node_selector(&spec.get("nodeSelector"), causes));
    let terms = spec.get("nodeSelector.nodeSelectorTerms");
    if !spec.get("nodeSelector").is_null() && terms.len() != 1 {
        causes.push(terms.invalid_struct(
            "[]core/v1.NodeSelectorTerm",
            "must have exactly one node selector term",
        ));
    }
    said.extend(flag(&spec.get("allNodes"), "`allNodes`", causes));
    said.extend(flag(
        &spec.get("perDeviceNodeSelection"),
        "`perDeviceNodeSelection`",
        causes,
    ));
    exactly_one(
        spec,
        &said,
        (
            ONE_OF_NODES,
            &format!("{ONE_OF_NODES}, but multiple fields are set"),
        ),
        causes,
    );
}

/// Each tells what was said, if it counts.
pub fn node_name(name: &At<'_>, empty: &str, causes: &mut Vec<Cause>) -> Option<&'static str> {
    match name.value {
        Value::Null => None,
        _ if name.is_empty() => {
            causes.push(name.invalid(empty));
            None
        }
        _ => {
            name.form(formats::dns_subdomain, causes);
            Some("`nodeName`")
        }
    }
}

pub fn node_selector(selector: &At<'_>, causes: &mut Vec<Cause>) -> Option<&'static str> {
    if selector.is_null() {
        return None;
    }
    volumes::node_selector(selector, causes);
    Some("`nodeSelector`")
}

pub fn flag(flag: &At<'_>, name: &'static str, causes: &mut Vec<Cause>) -> Option<&'static str> {
    match flag.is_null() || flag.is_true() {
        true => flag.is_true().then_some(name),
        false => {
            causes.push(flag.invalid(UNSET_OR_TRUE));
            None
        }
    }
}

pub fn exactly_one(
    at: &At<'_>,
    said: &[&str],
    (none, many): (&str, &str),
    causes: &mut Vec<Cause>,
) {
    match said.len() {
        0 => causes.push(at.required(none)),
        1 => {}
        _ => causes.push(at.invalid_as(format!("{{{}}}", said.join(", ")), many)),
    }
}
