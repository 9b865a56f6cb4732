//! The `Warning` headers for objects that the server accepts. Main function: [`of`].

mod cluster;
mod pod;
mod volume;
mod workloads;

use crate::base::Part;
use crate::catalog::Resource;
use crate::validation::rules::At;
use tiphys_apimachinery::Object;
use tiphys_apimachinery::quantity::Quantity;
use tiphys_kube_schema::formats;

const HINTS: &str = "service.kubernetes.io/topology-aware-hints";
const INGRESS_CLASS: &str = "kubernetes.io/ingress.class";

/// The warnings for a write of a part; `old` is set for updates.
pub fn of(resource: &Resource, object: &Object, old: Option<&Object>, part: Part) -> Vec<String> {
    let mut out = Vec::new();
    if resource.custom.is_some() {
        return out;
    }
    let spec = At::of(object, old, "spec");
    if part == Part::Status {
        of_status(resource, object, old, &mut out);
        return out;
    }
    match resource.table.as_str() {
        "/services" => of_service(object, &spec, &mut out),
        "/secrets" => out.extend(of_secret(object)),
        "storage.k8s.io/csidrivers" => {
            let tokens = spec.get("tokenRequests");
            let new = !tokens.is_empty() && (old.is_none() || tokens.is_changed());
            let advice = "if supported by this CSI driver, set to true to prevent possible logging of tokens in volume attributes";
            let text = format!("spec.serviceAccountTokenInSecrets is unset; {advice}");
            out.extend((new && spec.get("serviceAccountTokenInSecrets").is_null()).then_some(text));
        }
        "resource.k8s.io/resourceslices" => {
            let driver = spec.get("driver").text();
            let text = format!(
                "spec.driver: driver names should be lowercase; {driver:?} contains uppercase characters"
            );
            out.extend((driver != driver.to_lowercase()).then_some(text));
        }
        "/persistentvolumeclaims" => of_claim(object, &spec, &mut out),
        "/persistentvolumes" => of_volume(object, &spec, &mut out),
        "networking.k8s.io/ingresses" => {
            let deprecated = old.is_none()
                && object.annotation(INGRESS_CLASS).is_some()
                && spec.get("ingressClassName").is_null();
            let text = format!(
                "annotation \"{INGRESS_CLASS}\" is deprecated, please use 'spec.ingressClassName' instead"
            );
            out.extend(deprecated.then_some(text));
        }
        "networking.k8s.io/networkpolicies" => of_network_policy(&spec, &mut out),
        "/endpoints"
            if object.label("endpoints.kubernetes.io/managed-by")
                != Some("endpoint-controller") =>
        {
            for subset in At::of(object, old, "subsets").items() {
                let addresses =
                    ["addresses", "notReadyAddresses"].map(|list| subset.get(list).items());
                addresses.iter().flatten().for_each(|a| {
                    out.extend(formats::ip_warning(&a.get("ip").path, a.get("ip").text()))
                });
            }
        }
        "discovery.k8s.io/endpointslices" => of_slice(object, old, &mut out),
        "/nodes" => {
            let unused = !spec.get("externalID").is_empty();
            out.extend(unused.then(|| {
                "spec.externalID: this field is deprecated, and is unused by Kubernetes".to_owned()
            }));
            spec.get("podCIDRs").items().iter().for_each(|network| {
                out.extend(formats::cidr_warning(&network.path, network.text()))
            });
        }
        _ => {
            let own = object.without_managers().into_value();
            let before = old.map(|old| old.without_managers().into_value());
            let at = At::root(&own, before.as_ref());
            out.extend(workloads::of(resource, &at));
            out.extend(cluster::of(resource, &at));
        }
    }
    out
}

fn of_status(resource: &Resource, object: &Object, old: Option<&Object>, out: &mut Vec<String>) {
    if matches!(
        resource.table.as_str(),
        "/services" | "networking.k8s.io/ingresses"
    ) {
        let points = At::of(object, old, "status").get("loadBalancer.ingress");
        points
            .items()
            .iter()
            .for_each(|point| out.extend(formats::ip_warning(&point.path, point.get("ip").text())));
    }
    if resource.is("", "pods") {
        let status = At::of(object, old, "status");
        let addresses = ["podIPs", "hostIPs"]
            .into_iter()
            .flat_map(|list| status.get(list).items())
            .map(|item| item.get("ip"));
        addresses.for_each(|ip| out.extend(formats::ip_warning(&ip.path, ip.text())));
    }
}

fn of_service(object: &Object, spec: &At<'_>, out: &mut Vec<String>) {
    if object.annotation(HINTS).is_some() {
        out.push(format!("annotation {HINTS} is deprecated, please use service.kubernetes.io/topology-mode instead"));
    }
    let kind = spec.get("type").text();
    let cluster_ip = spec.get("clusterIP").text();
    let warn_each = |list: &At<'_>, out: &mut Vec<String>| {
        list.items()
            .iter()
            .for_each(|ip| out.extend(formats::ip_warning(&ip.path, ip.text())));
    };
    if !cluster_ip.is_empty() && cluster_ip != "None" {
        warn_each(&spec.get("clusterIPs"), out);
    }
    let headless = kind == "ClusterIP" && cluster_ip == "None";
    let (external, balancer) = (spec.get("externalIPs"), spec.get("loadBalancerIP"));
    if headless {
        let ignored = [
            (
                !balancer.is_empty(),
                "spec.loadBalancerIP is ignored for headless services",
            ),
            (
                !external.is_empty(),
                "spec.externalIPs is ignored for headless services",
            ),
            (
                spec.get("sessionAffinity").text() != "None",
                "spec.SessionAffinity is ignored for headless services",
            ),
        ];
        out.extend(
            ignored
                .iter()
                .filter(|(is, _)| *is)
                .map(|(_, text)| (*text).to_owned()),
        );
    }
    warn_each(&external, out);
    if !external.is_empty() && !headless && kind != "ExternalName" {
        out.push(
            "spec.externalIPs is deprecated and may no longer be implemented in some clusters"
                .to_owned(),
        );
    }
    if !balancer.is_empty() {
        out.extend(formats::ip_warning(&balancer.path, balancer.text()));
    }
    for range in spec.get("loadBalancerSourceRanges").items() {
        out.extend(formats::cidr_warning(&range.path, range.text()));
    }
    if kind == "ExternalName" && !external.is_empty() {
        out.push("spec.externalIPs is ignored when spec.type is \"ExternalName\"".to_owned());
    }
    if kind != "ExternalName" && !spec.get("externalName").is_empty() {
        out.push("spec.externalName is ignored when spec.type is not \"ExternalName\"".to_owned());
    }
    if spec.get("trafficDistribution").text() == "PreferClose" {
        out.push(
            "spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\""
                .to_owned(),
        );
    }
}

fn of_network_policy(spec: &At<'_>, out: &mut Vec<String>) {
    let peers = |direction: &str, field: &'static str| {
        spec.get(direction)
            .items()
            .iter()
            .flat_map(|rule| rule.get(field).items())
            .collect::<Vec<_>>()
    };
    for peer in peers("ingress", "from")
        .into_iter()
        .chain(peers("egress", "to"))
    {
        let block = peer.get("ipBlock");
        out.extend(formats::cidr_warning(
            &block.get("cidr").path,
            block.get("cidr").text(),
        ));
        block
            .get("except")
            .items()
            .iter()
            .for_each(|e| out.extend(formats::cidr_warning(&e.path, e.text())));
    }
}

const BETA_CLASS: &str = "volume.beta.kubernetes.io/storage-class";

fn of_claim(object: &Object, spec: &At<'_>, out: &mut Vec<String>) {
    if object.annotation(BETA_CLASS).is_some() {
        let advice = "deprecated since v1.8; use \"storageClassName\" attribute instead";
        out.push(format!("metadata.annotations[{BETA_CLASS}]: {advice}"));
    }
    for field in ["requests", "limits"] {
        let size = spec.get("resources").get(field).key("storage");
        let fraction = size
            .text()
            .parse::<Quantity>()
            .is_ok_and(|size| size.milli_value() % 1000 != 0);
        if fraction {
            let text = size.text();
            out.push(format!(
                "{}: fractional byte value \"{text}\" is invalid, must be an integer",
                size.path
            ));
        }
    }
}

/// What happened to volume types that used to be part of Kubernetes.
const OLD_VOLUMES: [(&str, &str); 6] = [
    ("cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    (
        "photonPersistentDisk",
        "deprecated in v1.11, non-functional in v1.16+",
    ),
    ("scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("storageos", "deprecated in v1.22, non-functional in v1.25+"),
    ("glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ("rbd", "deprecated in v1.28, non-functional in v1.31+"),
];

fn of_volume(object: &Object, spec: &At<'_>, out: &mut Vec<String>) {
    let annotations = [
        (
            BETA_CLASS,
            "deprecated since v1.8; use \"storageClassName\" attribute instead",
        ),
        (
            "volume.beta.kubernetes.io/mount-options",
            "deprecated since v1.31; use \"mountOptions\" attribute instead",
        ),
    ];
    let present = annotations
        .iter()
        .filter(|(key, _)| object.annotation(key).is_some());
    out.extend(present.map(|(key, advice)| format!("metadata.annotations[{key}]: {advice}")));
    if spec.get("persistentVolumeReclaimPolicy").text() == "Recycle" {
        let advice = "The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning.";
        out.push(format!("spec.persistentVolumeReclaimPolicy: {advice}"));
    }
    spec.get("nodeAffinity.required.nodeSelectorTerms")
        .items()
        .iter()
        .for_each(|term| pod::node_term(term, false, out));
    for (field, fate) in OLD_VOLUMES
        .iter()
        .filter(|(field, _)| !spec.get(field).is_null())
    {
        let said = if *field == "storageos" {
            "storageOS"
        } else {
            field
        };
        out.push(format!("spec.{said}: {fate}"));
    }
}

/// Warns about a certificate and key that do not even have the right format.
fn of_secret(object: &Object) -> Option<String> {
    use base64::Engine;
    if object.str_at("/type") != "kubernetes.io/tls" {
        return None;
    }
    let data = At::of(object, None, "data");
    let text = |key: &str| {
        let bytes = base64::engine::general_purpose::STANDARD
            .decode(data.key(key).text())
            .unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let missing = [("tls.crt", "certificate"), ("tls.key", "key")]
        .into_iter()
        .find(|(key, _)| !text(key).contains("-----BEGIN "));
    missing.map(|(_, what)| format!("tls: failed to find any PEM data in {what} input"))
}

fn of_slice(object: &Object, old: Option<&Object>, out: &mut Vec<String>) {
    if old.is_none() && object.str_at("/addressType") == "FQDN" {
        out.push("spec.addressType: FQDN endpoints are deprecated".to_owned());
    }
    let manager = object
        .label("endpointslice.kubernetes.io/managed-by")
        .unwrap_or("");
    if matches!(
        manager,
        "endpointslice-controller.k8s.io" | "endpointslicemirroring-controller.k8s.io"
    ) {
        return;
    }
    for endpoint in At::of(object, old, "endpoints").items() {
        endpoint
            .get("addresses")
            .items()
            .iter()
            .for_each(|ip| out.extend(formats::ip_warning(&ip.path, ip.text())));
    }
}
