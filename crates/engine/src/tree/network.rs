//! Services, Ingresses and Istio's routing kinds: their targets and external URLs.

use super::info::Info;
use serde_json::Value;
use std::collections::BTreeSet;
use tiphys_api::{
    meta::LoadBalancerIngress,
    resource::{ResourceNetworkingInfo, ResourceRef},
};
use tiphys_apimachinery::Object;

const IGNORE_DEFAULT_LINKS: &str = "argocd.argoproj.io/ignore-default-links";

pub fn service(object: &Object, info: &mut Info) {
    let selector = object.pointer("/spec/selector").and_then(Value::as_object);
    let labels = selector
        .into_iter()
        .flatten()
        .filter_map(|(k, v)| Some((k.clone(), v.as_str()?.to_owned())));
    let ingress = if object.str_at("/spec/type") == "LoadBalancer" {
        balancers(object)
    } else {
        Vec::new()
    };
    info.networking = Some(ResourceNetworkingInfo {
        target_labels: labels.collect(),
        ingress,
        external_urls: links(info),
        ..Default::default()
    });
}

pub fn ingress(object: &Object, info: &mut Info) {
    let balancers = balancers(object);
    let fallback_host = balancers
        .iter()
        .map(address)
        .find(|a| !a.is_empty())
        .unwrap_or("");
    let secure = has_certificate(object);
    let (mut targets, mut urls) = (BTreeSet::new(), BTreeSet::new());
    for pointer in ["/spec/backend", "/spec/defaultBackend"] {
        targets.extend(object.pointer(pointer).and_then(backend_service));
    }
    for rule in list(object.pointer("/spec/rules")) {
        let host = rule
            .get("host")
            .and_then(Value::as_str)
            .filter(|h| !h.is_empty())
            .unwrap_or(fallback_host);
        for path in list(rule.pointer("/http/paths")) {
            targets.extend(path.get("backend").and_then(backend_service));
            if !host.is_empty() {
                let scheme = if secure || tls_names(object, host) {
                    "https"
                } else {
                    "http"
                };
                let sub_path = path.get("path").and_then(Value::as_str).unwrap_or("");
                urls.insert(format!(
                    "{scheme}://{host}{}",
                    sub_path.strip_suffix('*').unwrap_or(sub_path)
                ));
            }
        }
    }
    let mut external_urls = links(info);
    if has_default_links(object) {
        external_urls.extend(urls);
    }
    let namespace = object.namespace();
    let service = |name: String| ResourceRef {
        kind: "Service".into(),
        namespace: namespace.to_owned(),
        name,
        ..Default::default()
    };
    let target_refs = targets.into_iter().map(service).collect();
    info.networking = Some(ResourceNetworkingInfo {
        target_refs,
        ingress: balancers,
        external_urls,
        ..Default::default()
    });
}

/// The Services that a VirtualService routes to: the first part of a host is the name, the second
/// the namespace (by default the object's own).
pub fn virtual_service(object: &Object, info: &mut Info) {
    let routes = list(object.pointer("/spec/http"))
        .iter()
        .flat_map(|http| list(http.get("route")));
    let hosts =
        routes.filter_map(|route| route.pointer("/destination/host").and_then(Value::as_str));
    let targets: BTreeSet<(String, String)> = hosts
        .map(|host| {
            let mut parts = host.split('.');
            let name = parts.next().unwrap_or_default();
            (
                parts.next().unwrap_or(object.namespace()).to_owned(),
                name.to_owned(),
            )
        })
        .collect();
    let service = |(namespace, name)| ResourceRef {
        kind: "Service".into(),
        namespace,
        name,
        ..Default::default()
    };
    let target_refs = targets.into_iter().map(service).collect();
    info.networking = Some(ResourceNetworkingInfo {
        target_refs,
        external_urls: links(info),
        ..Default::default()
    });
}

/// The Pods that a ServiceEntry selects.
pub fn service_entry(object: &Object, info: &mut Info) {
    let Some(selector) = object
        .pointer("/spec/workloadSelector/labels")
        .and_then(Value::as_object)
    else {
        return;
    };
    let labels = selector
        .iter()
        .filter_map(|(k, v)| Some((k.clone(), v.as_str()?.to_owned())));
    info.networking = Some(ResourceNetworkingInfo {
        target_labels: labels.collect(),
        target_refs: vec![ResourceRef {
            kind: "Pod".into(),
            ..Default::default()
        }],
        external_urls: links(info),
        ..Default::default()
    });
}

/// Whether the URLs that follow from an object are shown beside those of its annotations.
pub(super) fn has_default_links(object: &Object) -> bool {
    !matches!(
        object.annotation(IGNORE_DEFAULT_LINKS),
        Some("1" | "t" | "T" | "TRUE" | "true" | "True")
    )
}

pub(super) fn links(info: &Info) -> Vec<String> {
    info.networking
        .as_ref()
        .map(|n| n.external_urls.clone())
        .unwrap_or_default()
}

/// The addresses assigned to load balancers.
fn balancers(object: &Object) -> Vec<LoadBalancerIngress> {
    let text =
        |item: &Value, field: &str| item.get(field).and_then(Value::as_str).map(str::to_owned);
    let read = |item: &Value| match (text(item, "hostname"), text(item, "ip")) {
        (Some(hostname), _) => Some(LoadBalancerIngress {
            hostname,
            ..Default::default()
        }),
        (None, Some(ip)) => Some(LoadBalancerIngress {
            ip,
            ..Default::default()
        }),
        (None, None) => None,
    };
    list(object.pointer("/status/loadBalancer/ingress"))
        .iter()
        .filter_map(read)
        .collect()
}

pub(super) fn address(balancer: &LoadBalancerIngress) -> &str {
    if balancer.hostname.is_empty() {
        &balancer.ip
    } else {
        &balancer.hostname
    }
}

fn backend_service(backend: &Value) -> Option<String> {
    let name = backend
        .pointer("/service/name")
        .or_else(|| backend.get("serviceName"))?;
    name.as_str().map(str::to_owned)
}

/// A certificate for any host is assumed to cover all hosts.
fn has_certificate(object: &Object) -> bool {
    list(object.pointer("/spec/tls"))
        .iter()
        .any(|tls| tls.get("secretName").is_some_and(|s| !s.is_null()))
}

fn tls_names(object: &Object, host: &str) -> bool {
    list(object.pointer("/spec/tls"))
        .iter()
        .any(|tls| tls.get("host").and_then(Value::as_str) == Some(host))
}

pub(super) fn list(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
