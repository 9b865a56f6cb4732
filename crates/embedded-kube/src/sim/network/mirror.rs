//! Mirrors Endpoints that a user created to EndpointSlices, for Services without a selector.

use super::{
    super::{
        fields::{same_object, text},
        plan::{Change, Plan},
    },
    endpoints::{MANAGED_BY, new_slice},
};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use tiphys_apimachinery::Object;

const CONTROLLER: &str = "endpointslicemirroring-controller.k8s.io";
const SKIP: &str = "endpointslice.kubernetes.io/skip-mirror";

/// The next step of an Endpoints object. `service` is the Service of the same name, `slices` are
/// the slices it owns.
pub fn reconcile(endpoints: &Object, service: Option<&Object>, slices: &[Arc<Object>]) -> Plan {
    let mut plan = Plan::default();
    let mine: Vec<&Arc<Object>> = slices
        .iter()
        .filter(|s| s.label(MANAGED_BY) == Some(CONTROLLER))
        .collect();
    let wanted = service.filter(|s| {
        let selects = s
            .pointer("/spec/selector")
            .and_then(Value::as_object)
            .is_some_and(|m| !m.is_empty());
        !selects
            && endpoints.label(SKIP) != Some("true")
            && endpoints.deletion_timestamp().is_none()
    });
    let subsets = endpoints
        .pointer("/subsets")
        .and_then(Value::as_array)
        .filter(|_| wanted.is_some());
    let mut mine = mine.into_iter();
    for subset in subsets.into_iter().flatten() {
        let current = mine.next();
        let mut slice = current.map_or_else(
            || new_slice(endpoints, endpoints.name(), CONTROLLER),
            |c| Object::clone(c),
        );
        for (key, value) in endpoints.labels() {
            slice.set_label(&key, &value);
        }
        slice.set_label(MANAGED_BY, CONTROLLER);
        slice.0.insert("endpoints".into(), addresses(subset));
        slice.0.insert("ports".into(), ports(subset));
        match current {
            Some(old) if same_object(old, &slice) => {}
            Some(_) => {
                plan.push(Change::Update(slice));
            }
            None => plan.create(slice, None),
        }
    }
    for surplus in mine {
        plan.delete(surplus, None);
    }
    plan
}

fn addresses(subset: &Value) -> Value {
    let of = |field: &str, ready: bool| -> Vec<Value> {
        let list = subset
            .get(field)
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        let one = |address: &Value| {
            let mut one =
                json!({"addresses": [text(address, "ip")], "conditions": {"ready": ready}});
            for field in ["hostname", "nodeName", "targetRef"] {
                if let Some(value) = address.get(field) {
                    one[field] = value.clone();
                }
            }
            one
        };
        list.map(one).collect()
    };
    [of("addresses", true), of("notReadyAddresses", false)]
        .concat()
        .into()
}

fn ports(subset: &Value) -> Value {
    let one = |port: &Value| {
        let mut map: Map<String, Value> = port.as_object().cloned().unwrap_or_default();
        map.entry("name").or_insert_with(|| "".into());
        Value::Object(map)
    };
    subset
        .get("ports")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .map(one)
        .collect()
}
