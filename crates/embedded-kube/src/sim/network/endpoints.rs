//! Endpoints and EndpointSlices: the addresses of the pods a Service selects.

use super::super::{
    fields::{owned_object, same_object, text},
    kind::Kind,
    plan::{Change, Plan},
};
use crate::sim::workload::pods;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use tiphys_apimachinery::Object;

const SERVICE_NAME: &str = "kubernetes.io/service-name";
const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
/// At most this many addresses are listed: an EndpointSlice may hold 1,000.
const MOST: usize = 1000;

/// Plans the endpoints of a Service. `pods` are those it selects, `slices` its EndpointSlices, `endpoints` the object of its name.
pub fn reconcile(plan: &mut Plan, service: &Object, selected: &[Arc<Object>], slices: &[Arc<Object>], endpoints: Option<&Object>) {
    let selector = service.pointer("/spec/selector").and_then(Value::as_object);
    if service.deletion_timestamp().is_some() || service.str_at("/spec/type") == "ExternalName" || selector.is_none_or(Map::is_empty) {
        return;
    }
    let mut members: Vec<&Arc<Object>> = selected.iter().filter(|p| !p.str_at("/status/podIP").is_empty() && !pods::is_ended(p)).collect();
    members.sort_by(|a, b| a.name().cmp(b.name()));
    members.truncate(MOST);
    slice(plan, service, &members, slices);
    classic(plan, service, &members, endpoints);
}

/// The ports of a Service as a pod of it has them: a named target port is looked up in the containers.
fn ports(service: &Object, pod: Option<&Object>) -> Vec<Value> {
    let list = service.pointer("/spec/ports").and_then(Value::as_array);
    let number = |port: &Value| match port.get("targetPort") {
        Some(Value::String(name)) => named_port(pod?, name),
        Some(target) if target.as_i64().is_some_and(|n| n > 0) => target.as_i64(),
        _ => port.get("port").and_then(Value::as_i64),
    };
    let one = |port: &Value| {
        let protocol = if text(port, "protocol").is_empty() { "TCP" } else { text(port, "protocol") };
        let mut out = json!({"name": text(port, "name"), "port": number(port)?, "protocol": protocol});
        if let Some(app) = port.get("appProtocol") {
            out["appProtocol"] = app.clone();
        }
        Some(out)
    };
    list.into_iter().flatten().filter_map(one).collect()
}

fn named_port(pod: &Object, name: &str) -> Option<i64> {
    let containers = pod.pointer("/spec/containers").and_then(Value::as_array)?;
    let all = containers.iter().filter_map(|c| c.get("ports")?.as_array()).flatten();
    all.filter(|p| text(p, "name") == name).find_map(|p| p.get("containerPort")?.as_i64())
}

fn target(pod: &Object) -> Value {
    json!({"kind": "Pod", "name": pod.name(), "namespace": pod.namespace(), "uid": pod.uid()})
}

fn serves(service: &Object, pod: &Object) -> bool {
    pods::is_ready(pod) || service.pointer("/spec/publishNotReadyAddresses").and_then(Value::as_bool) == Some(true)
}

fn copied_labels(service: &Object, object: &mut Object) {
    for (key, value) in service.labels() {
        object.set_label(&key, &value);
    }
    let ip = service.str_at("/spec/clusterIP");
    if ip == "None" {
        object.set_label("service.kubernetes.io/headless", "");
    }
}

fn slice(plan: &mut Plan, service: &Object, members: &[&Arc<Object>], slices: &[Arc<Object>]) {
    let endpoint = |pod: &&Arc<Object>| {
        let stopping = pod.deletion_timestamp().is_some();
        let serving = serves(service, pod);
        let mut one = json!({
            "addresses": [pod.str_at("/status/podIP")], "targetRef": target(pod), "nodeName": pod.str_at("/spec/nodeName"),
            "conditions": {"ready": serving && !stopping, "serving": serving, "terminating": stopping},
        });
        if !pod.str_at("/spec/hostname").is_empty() && pod.str_at("/spec/subdomain") == service.name() {
            one["hostname"] = pod.str_at("/spec/hostname").into();
        }
        one
    };
    let endpoints: Value = members.iter().map(endpoint).collect();
    let ports: Value = ports(service, members.first().map(|p| &***p)).into();
    let mine = slices.iter().find(|s| s.label(MANAGED_BY) == Some("endpointslice-controller.k8s.io"));
    let mut wanted = match mine {
        Some(slice) => Object::clone(slice),
        None => {
            let mut new = owned_object(Kind::EndpointSlice, service, "");
            new.metadata_mut().remove("name");
            new.metadata_mut().insert("generateName".into(), pods::name_prefix(service.name()).into());
            new.set_label(MANAGED_BY, "endpointslice-controller.k8s.io");
            new.set_label(SERVICE_NAME, service.name());
            new.0.insert("addressType".into(), "IPv4".into());
            new
        }
    };
    copied_labels(service, &mut wanted);
    wanted.0.insert("endpoints".into(), endpoints);
    wanted.0.insert("ports".into(), ports);
    match mine {
        Some(slice) if same_object(slice, &wanted) => {}
        Some(_) => {
            plan.push(Change::Update(wanted));
        }
        None => plan.create(wanted, None),
    }
}

fn classic(plan: &mut Plan, service: &Object, members: &[&Arc<Object>], current: Option<&Object>) {
    let address = |pod: &&&Arc<Object>| json!({"ip": pod.str_at("/status/podIP"), "nodeName": pod.str_at("/spec/nodeName"), "targetRef": target(pod)});
    let live = |pod: &&&Arc<Object>| pod.deletion_timestamp().is_none();
    let ready: Vec<Value> = members.iter().filter(live).filter(|p| serves(service, p)).map(|p| address(&p)).collect();
    let waiting: Vec<Value> = members.iter().filter(live).filter(|p| !serves(service, p)).map(|p| address(&p)).collect();
    let mut subset = Map::new();
    for (field, list) in [("addresses", ready), ("notReadyAddresses", waiting)] {
        if !list.is_empty() {
            subset.insert(field.into(), Value::Array(list));
        }
    }
    let mut wanted = match current {
        Some(object) => object.clone(),
        None => Object::skeleton(&Kind::Endpoints.gvk(), service.namespace(), service.name()),
    };
    copied_labels(service, &mut wanted);
    wanted.set_label("endpoints.kubernetes.io/managed-by", "endpoint-controller");
    if subset.is_empty() {
        wanted.0.remove("subsets");
    } else {
        let ports: Vec<Value> = ports(service, members.first().map(|p| &***p)).into_iter().map(unnamed).collect();
        if !ports.is_empty() {
            subset.insert("ports".into(), ports.into());
        }
        wanted.0.insert("subsets".into(), json!([subset]));
    }
    match current {
        Some(object) if same_object(object, &wanted) => {}
        Some(_) => {
            plan.push(Change::Update(wanted));
        }
        None => plan.create(wanted, None),
    }
}

/// A port of Endpoints leaves an empty name out.
fn unnamed(mut port: Value) -> Value {
    if text(&port, "name").is_empty()
        && let Value::Object(map) = &mut port
    {
        map.remove("name");
    }
    port
}
