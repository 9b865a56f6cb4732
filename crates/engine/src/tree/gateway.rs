//! The Gateway API: where its routes lead, and the addresses of Gateways.

use super::{
    info::Info,
    network::{self, has_default_links, links, list},
};
use serde_json::Value;
use std::collections::BTreeSet;
use tiphys_api::{
    meta::LoadBalancerIngress,
    resource::{ResourceNetworkingInfo, ResourceRef},
};
use tiphys_apimachinery::Object;

pub const GROUP: &str = "gateway.networking.k8s.io";

/// The Gateways that a route belongs to, and what it sends requests to.
pub fn route(object: &Object, info: &mut Info) {
    let parents = list(object.pointer("/spec/parentRefs")).iter();
    let parents = parents.filter_map(|parent| target(object, parent, (GROUP, "Gateway")));
    let rules = list(object.pointer("/spec/rules")).iter();
    let backends = rules.flat_map(|rule| list(rule.get("backendRefs")));
    let backends = backends.filter_map(|backend| target(object, backend, ("", "Service")));
    let targets: BTreeSet<[String; 4]> = parents.chain(backends).collect();
    let targets = targets.into_iter();
    let target_refs = targets.map(|[group, kind, namespace, name]| ResourceRef {
        group,
        kind,
        namespace,
        name,
        ..Default::default()
    });
    info.networking = Some(ResourceNetworkingInfo {
        target_refs: target_refs.collect(),
        external_urls: links(info),
        ..Default::default()
    });
}

/// Group, kind, namespace and name of what a route refers to; without a name it refers to nothing.
fn target(route: &Object, reference: &Value, usual: (&str, &str)) -> Option<[String; 4]> {
    let text = |field: &str, usual: &str| {
        let value = text(reference, field);
        let value = if value.is_empty() { usual } else { value };
        value.to_owned()
    };
    let name = text("name", "");
    let (group, kind) = usual;
    (!name.is_empty()).then(|| {
        let namespace = text("namespace", route.namespace());
        [text("group", group), text("kind", kind), namespace, name]
    })
}

/// The addresses of a Gateway, and the URLs of its listeners.
pub fn gateway(object: &Object, info: &mut Info) {
    let addresses: Vec<_> = list(object.pointer("/status/addresses"))
        .iter()
        .filter_map(address)
        .collect();
    let mut external_urls = links(info);
    if has_default_links(object) {
        let listeners = list(object.pointer("/spec/listeners")).iter();
        let urls: BTreeSet<String> = listeners.flat_map(|l| urls(l, &addresses)).collect();
        external_urls.extend(urls);
    }
    info.networking = Some(ResourceNetworkingInfo {
        ingress: addresses,
        external_urls,
        ..Default::default()
    });
}

fn address(address: &Value) -> Option<LoadBalancerIngress> {
    let value = text(address, "value").to_owned();
    if value.is_empty() {
        return None;
    }
    match text(address, "type") {
        "Hostname" => Some(LoadBalancerIngress {
            hostname: value,
            ..Default::default()
        }),
        "IPAddress" | "" => Some(LoadBalancerIngress {
            ip: value,
            ..Default::default()
        }),
        _ => None,
    }
}

/// A listener for any host has the Gateway's addresses.
fn urls(listener: &Value, addresses: &[LoadBalancerIngress]) -> Vec<String> {
    let (scheme, usual) = match text(listener, "protocol") {
        "HTTPS" | "TLS" => ("https", 443),
        _ => ("http", 80),
    };
    let port = match listener.get("port").and_then(Value::as_u64) {
        Some(port) if port != usual => format!(":{port}"),
        _ => String::new(),
    };
    let hosts: Vec<&str> = match text(listener, "hostname") {
        "" | "*" => addresses.iter().map(network::address).collect(),
        host => vec![host],
    };
    let url = |host: &str| match host.contains(':') {
        true => format!("{scheme}://[{host}]{port}"),
        false => format!("{scheme}://{host}{port}"),
    };
    hosts.into_iter().map(url).collect()
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}
