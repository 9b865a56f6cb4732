//! Endpoints and EndpointSlices: the addresses of the pods a Service selects.

use super::super::{
    fields::{condition, owned_object, parse_time, rfc3339, same_object, text},
    kind::Kind,
    plan::{Change, Plan},
};
use crate::sim::workload::pods;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use tiphys_apimachinery::Object;

pub const SERVICE_NAME: &str = "kubernetes.io/service-name";
pub const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
const CONTROLLER: &str = "endpointslice-controller.k8s.io";
const TRIGGER: &str = "endpoints.kubernetes.io/last-change-trigger-time";
/// The maximum number of addresses in an Endpoints object.
const MOST: usize = 1000;
/// The maximum number of endpoints in an EndpointSlice.
const MOST_OF_SLICE: usize = 100;

/// Plans the endpoints of a Service. `pods` are the selected pods, `slices` its EndpointSlices,
/// `endpoints` the Endpoints object with its name.
pub fn reconcile(
    plan: &mut Plan,
    service: &Object,
    selected: &[Arc<Object>],
    slices: &[Arc<Object>],
    endpoints: Option<&Object>,
) {
    let selector = service.pointer("/spec/selector").and_then(Value::as_object);
    if service.deletion_timestamp().is_some()
        || service.str_at("/spec/type") == "ExternalName"
        || selector.is_none_or(Map::is_empty)
    {
        return;
    }
    let mut members: Vec<&Arc<Object>> = selected
        .iter()
        .filter(|p| !p.str_at("/status/podIP").is_empty() && !pods::is_ended(p))
        .collect();
    members.sort_by(|a, b| a.name().cmp(b.name()));
    sliced(plan, service, &members, slices);
    members.truncate(MOST);
    classic(plan, service, &members, endpoints);
}

/// Records the time of the change that triggers this write: of the Service, or of a pod's
/// readiness, if it is newer than the last write.
fn note_trigger(object: &mut Object, service: &Object, members: &[&Arc<Object>]) {
    let writes = object
        .metadata("managedFields")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let last = writes.filter_map(|w| parse_time(text(w, "time"))).max();
    let of_pods = members
        .iter()
        .filter_map(|p| parse_time(text(condition(p, "Ready")?, "lastTransitionTime")));
    let times = of_pods.chain(parse_time(service.creation_timestamp()));
    match times.filter(|t| last.is_none_or(|last| *t > last)).min() {
        Some(time) => object.set_annotation(TRIGGER, &rfc3339(time)),
        None => {
            object.remove_annotation(TRIGGER);
        }
    }
}

/// Plans to replace `current` by `wanted`, if they differ in more than the trigger time.
fn write(
    plan: &mut Plan,
    current: Option<&Object>,
    mut wanted: Object,
    service: &Object,
    members: &[&Arc<Object>],
) {
    if current.is_some_and(|c| same_object(c, &wanted)) {
        return;
    }
    note_trigger(&mut wanted, service, members);
    match current {
        Some(_) => {
            plan.push(Change::Update(wanted));
        }
        None => plan.create(wanted, None),
    }
}

/// The ports of a Service for one of its pods: a named target port is looked up in the containers.
fn ports(service: &Object, pod: Option<&Object>) -> Vec<Value> {
    let list = service.pointer("/spec/ports").and_then(Value::as_array);
    let number = |port: &Value| match port.get("targetPort") {
        Some(Value::String(name)) => named_port(pod?, name),
        Some(target) if target.as_i64().is_some_and(|n| n > 0) => target.as_i64(),
        _ => port.get("port").and_then(Value::as_i64),
    };
    let one = |port: &Value| {
        let protocol = if text(port, "protocol").is_empty() {
            "TCP"
        } else {
            text(port, "protocol")
        };
        let mut out =
            json!({"name": text(port, "name"), "port": number(port)?, "protocol": protocol});
        if let Some(app) = port.get("appProtocol") {
            out["appProtocol"] = app.clone();
        }
        Some(out)
    };
    list.into_iter().flatten().filter_map(one).collect()
}

fn named_port(pod: &Object, name: &str) -> Option<i64> {
    let containers = pod.pointer("/spec/containers").and_then(Value::as_array)?;
    let all = containers
        .iter()
        .filter_map(|c| c.get("ports")?.as_array())
        .flatten();
    all.filter(|p| text(p, "name") == name)
        .find_map(|p| p.get("containerPort")?.as_i64())
}

fn target(pod: &Object) -> Value {
    json!({"kind": "Pod", "name": pod.name(), "namespace": pod.namespace(), "uid": pod.uid()})
}

fn serves(service: &Object, pod: &Object) -> bool {
    pods::is_ready(pod)
        || service
            .pointer("/spec/publishNotReadyAddresses")
            .and_then(Value::as_bool)
            == Some(true)
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

/// The entry of a pod in a slice.
fn endpoint(service: &Object, pod: &Object) -> Value {
    let stopping = pod.deletion_timestamp().is_some();
    let serving = pods::is_ready(pod);
    let published = service
        .pointer("/spec/publishNotReadyAddresses")
        .and_then(Value::as_bool)
        == Some(true);
    let mut one = json!({
        "addresses": [pod.str_at("/status/podIP")], "targetRef": target(pod), "nodeName": pod.str_at("/spec/nodeName"),
        "conditions": {"ready": published || (serving && !stopping), "serving": serving, "terminating": stopping},
    });
    if let Some(name) = hostname(service, pod) {
        one["hostname"] = name.into();
    }
    one
}

/// The host name of a pod in its Service's domain.
fn hostname<'a>(service: &Object, pod: &'a Object) -> Option<&'a str> {
    let name = pod.str_at("/spec/hostname");
    (!name.is_empty() && pod.str_at("/spec/subdomain") == service.name()).then_some(name)
}

/// The slices: pods with the same ports together, at most a hundred each; a single empty one if
/// there are no pods.
fn sliced(plan: &mut Plan, service: &Object, members: &[&Arc<Object>], slices: &[Arc<Object>]) {
    let mut groups: Vec<(Vec<Value>, Vec<&Arc<Object>>)> = Vec::new();
    for pod in members {
        let ports = ports(service, Some(pod));
        match groups
            .iter_mut()
            .find(|(p, pods)| *p == ports && pods.len() < MOST_OF_SLICE)
        {
            Some((_, pods)) => pods.push(pod),
            None => groups.push((ports, vec![pod])),
        }
    }
    if groups.is_empty() {
        groups.push((Vec::new(), Vec::new()));
    }
    let mut mine: Vec<&Arc<Object>> = slices
        .iter()
        .filter(|s| s.label(MANAGED_BY) == Some(CONTROLLER))
        .collect();
    mine.sort_by(|a, b| {
        (a.creation_timestamp(), a.name()).cmp(&(b.creation_timestamp(), b.name()))
    });
    let mut mine = mine.into_iter();
    for (ports, pods) in groups {
        let current = mine.next();
        let mut wanted = match current {
            Some(slice) => Object::clone(slice),
            None => new_slice(service, service.name(), CONTROLLER),
        };
        copied_labels(service, &mut wanted);
        wanted.0.insert(
            "endpoints".into(),
            pods.iter().map(|p| endpoint(service, p)).collect(),
        );
        wanted.0.insert("ports".into(), ports.into());
        write(plan, current.map(|c| &**c), wanted, service, &pods);
    }
    for surplus in mine {
        plan.delete(surplus, None);
    }
}

/// An empty slice of IPv4 addresses, created for a Service by `manager` and owned by `owner`.
pub fn new_slice(owner: &Object, service: &str, manager: &str) -> Object {
    let mut new = owned_object(Kind::EndpointSlice, owner, "");
    new.metadata_mut().remove("name");
    new.metadata_mut()
        .insert("generateName".into(), pods::name_prefix(service).into());
    new.set_label(MANAGED_BY, manager);
    new.set_label(SERVICE_NAME, service);
    new.0.insert("addressType".into(), "IPv4".into());
    new
}

fn classic(plan: &mut Plan, service: &Object, members: &[&Arc<Object>], current: Option<&Object>) {
    let address = |pod: &Object| {
        let mut one = json!({"ip": pod.str_at("/status/podIP"), "nodeName": pod.str_at("/spec/nodeName"), "targetRef": target(pod)});
        if let Some(name) = hostname(service, pod) {
            one["hostname"] = name.into();
        }
        one
    };
    let mut groups: Vec<(Vec<Value>, Vec<&Arc<Object>>)> = Vec::new();
    for pod in members.iter().filter(|p| p.deletion_timestamp().is_none()) {
        let ports: Vec<Value> = ports(service, Some(pod)).into_iter().map(unnamed).collect();
        match groups.iter_mut().find(|(p, _)| *p == ports) {
            Some((_, pods)) => pods.push(pod),
            None => groups.push((ports, vec![pod])),
        }
    }
    let subset = |(ports, pods): (Vec<Value>, Vec<&Arc<Object>>)| {
        let (ready, waiting): (Vec<_>, Vec<_>) = pods.iter().partition(|p| serves(service, p));
        let list =
            |pods: Vec<&&Arc<Object>>| Value::Array(pods.into_iter().map(|p| address(p)).collect());
        let fields = [
            ("addresses", list(ready)),
            ("notReadyAddresses", list(waiting)),
            ("ports", Value::Array(ports)),
        ];
        let says = |v: &Value| v.as_array().is_some_and(|l| !l.is_empty());
        Value::Object(
            fields
                .into_iter()
                .filter(|(_, v)| says(v))
                .map(|(k, v)| (k.to_owned(), v))
                .collect(),
        )
    };
    let subsets: Vec<Value> = groups.into_iter().map(subset).collect();
    let mut wanted = match current {
        Some(object) => object.clone(),
        None => Object::skeleton(&Kind::Endpoints.gvk(), service.namespace(), service.name()),
    };
    copied_labels(service, &mut wanted);
    wanted.set_label("endpoints.kubernetes.io/managed-by", "endpoint-controller");
    if subsets.is_empty() {
        wanted.0.remove("subsets");
    } else {
        wanted.0.insert("subsets".into(), subsets.into());
    }
    write(plan, current, wanted, service, members);
}

/// In Endpoints, a port omits an empty name.
fn unnamed(mut port: Value) -> Value {
    if text(&port, "name").is_empty()
        && let Value::Object(map) = &mut port
    {
        map.remove("name");
    }
    port
}
