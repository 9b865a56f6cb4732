//! What the resource tree shows of an object besides its name and health.
//!
//! Main function: [`of`]. It takes one object and is called when the object is read, so that the
//! object need not be kept.

use super::{gateway, network, pod};
use tiphys_api::resource::{InfoItem, ResourceNetworkingInfo};
use tiphys_apimachinery::Object;

const LINK_PREFIX: &str = "link.argocd.argoproj.io/";
const MANAGED_BY_URL: &str = "argocd.argoproj.io/managed-by-url";

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Info {
    pub items: Vec<InfoItem>,
    pub networking: Option<ResourceNetworkingInfo>,
    /// Sorted, without duplicates.
    pub images: Vec<String>,
}

impl Info {
    pub(super) fn push(&mut self, name: &str, value: impl Into<String>) {
        self.items.push(InfoItem {
            name: name.to_owned(),
            value: value.into(),
        });
    }
}

/// `None` if there is nothing to show.
pub fn of(object: &Object) -> Option<Info> {
    let mut info = Info::default();
    let revision = revision(object);
    if revision > 0 {
        info.push("Revision", format!("Rev:{revision}"));
    }
    let links = links(object);
    if !links.is_empty() {
        info.networking = Some(ResourceNetworkingInfo {
            external_urls: links,
            ..Default::default()
        });
    }
    match (object.group(), object.kind()) {
        ("", "Pod") => pod::fill(object, &mut info),
        ("", "Service") => network::service(object, &mut info),
        ("extensions" | "networking.k8s.io", "Ingress") => network::ingress(object, &mut info),
        ("networking.istio.io", "VirtualService") => network::virtual_service(object, &mut info),
        ("networking.istio.io", "ServiceEntry") => network::service_entry(object, &mut info),
        (gateway::GROUP, "Gateway") => gateway::gateway(object, &mut info),
        (gateway::GROUP, "HTTPRoute" | "GRPCRoute" | "TCPRoute" | "TLSRoute" | "UDPRoute") => {
            gateway::route(object, &mut info);
        }
        ("argoproj.io", "Application") => {
            if let Some(url) = object.annotation(MANAGED_BY_URL) {
                info.push("managed-by-url", url);
            }
        }
        _ => {}
    }
    (info != Info::default()).then_some(info)
}

/// The revision of a rollout: for a ReplicaSet or Rollout from an annotation, for a
/// ControllerRevision from a field.
fn revision(object: &Object) -> i64 {
    let annotated = [
        "deployment.kubernetes.io/revision",
        "rollout.argoproj.io/revision",
    ]
    .iter()
    .find_map(|name| object.annotation(name));
    match annotated {
        Some(text) => text.parse().unwrap_or(0),
        None => object.i64_at("/revision").unwrap_or(0),
    }
}

/// Links from the object's annotations, as `url` or `title|url`.
fn links(object: &Object) -> Vec<String> {
    let annotations = object.annotations().into_iter();
    annotations
        .filter(|(key, value)| is_link(key, value))
        .map(|(_, value)| value)
        .collect()
}

/// Whether an annotation is a link. Anything but http(s) is dropped, because it would run in the
/// browser.
pub(super) fn is_link(key: &str, value: &str) -> bool {
    let url = value.split_once('|').map_or(value, |(_, url)| url);
    let scheme = url
        .split_once(':')
        .map(|(scheme, _)| scheme.to_ascii_lowercase());
    let is_safe = url.is_empty() || matches!(scheme.as_deref(), Some("http" | "https"));
    key.starts_with(LINK_PREFIX) && is_safe
}
