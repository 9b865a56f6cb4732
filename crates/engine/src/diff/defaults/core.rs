//! Defaults of Pods and of other kinds in the core group.

use super::{
    Fields, Rule,
    fields::{existing, is_unset, items, map, set, set_number, set_text, text},
};
use serde_json::{Map, Value, json};

pub(super) fn rule_for(name: &str) -> Option<Rule> {
    Some(match name {
        "core.v1.Pod" => pod,
        "core.v1.PodSpec" => pod_spec,
        "core.v1.Container" | "core.v1.EphemeralContainer" => container,
        "core.v1.ContainerPort" => |m| set_text(m, "protocol", "TCP"),
        "core.v1.Probe" => probe,
        "core.v1.HTTPGetAction" => http_get,
        "core.v1.GRPCAction" => |m| set(m, "service", ""),
        "core.v1.ObjectFieldSelector" => |m| set_text(m, "apiVersion", "v1"),
        "core.v1.FileKeySelector" => |m| set(m, "optional", false),
        "core.v1.Volume" => volume,
        "core.v1.SecretVolumeSource"
        | "core.v1.ConfigMapVolumeSource"
        | "core.v1.DownwardAPIVolumeSource"
        | "core.v1.ProjectedVolumeSource" => |m| set(m, "defaultMode", 0o644),
        "core.v1.ServiceAccountTokenProjection" => |m| set(m, "expirationSeconds", 3600),
        "core.v1.HostPathVolumeSource" => |m| set(m, "type", ""),
        "core.v1.ISCSIVolumeSource" | "core.v1.ISCSIPersistentVolumeSource" => {
            |m| set_text(m, "iscsiInterface", "default")
        }
        "core.v1.RBDVolumeSource" | "core.v1.RBDPersistentVolumeSource" => rbd,
        "core.v1.AzureDiskVolumeSource" => azure_disk,
        "core.v1.ScaleIOVolumeSource" | "core.v1.ScaleIOPersistentVolumeSource" => scale_io,
        "core.v1.Service" => service,
        "core.v1.Secret" => |m| set_text(m, "type", "Opaque"),
        "core.v1.Namespace" => namespace,
        "core.v1.NamespaceStatus" => |m| set_text(m, "phase", "Active"),
        "core.v1.PersistentVolumeClaim" => |m| phase(m, "Pending"),
        "core.v1.PersistentVolumeClaimSpec" => |m| set(m, "volumeMode", "Filesystem"),
        "core.v1.PersistentVolume" => persistent_volume,
        "core.v1.EndpointPort" => |m| set_text(m, "protocol", "TCP"),
        "core.v1.ReplicationController" => replication_controller,
        "core.v1.LimitRangeItem" => limit_range_item,
        _ => return None,
    })
}

fn pod(pod: &mut Fields) {
    let Some(spec) = existing(pod, "spec") else {
        return;
    };
    for list in ["containers", "initContainers"] {
        for container in items(spec, list) {
            let Some(resources) = existing(container, "resources") else {
                continue;
            };
            let Some(Value::Object(limits)) = resources.get("limits").cloned() else {
                continue;
            };
            let Some(requests) = map(resources, "requests") else {
                continue;
            };
            for (name, limit) in limits {
                requests.entry(name).or_insert(limit);
            }
        }
    }
    set(spec, "enableServiceLinks", true);
    if spec.get("hostNetwork").and_then(Value::as_bool) == Some(true) {
        for list in ["containers", "initContainers"] {
            for port in items(spec, list).flat_map(|container| items(container, "ports")) {
                if let Some(number) = port.get("containerPort").and_then(Value::as_i64) {
                    set_number(port, "hostPort", number);
                }
            }
        }
    }
}

fn pod_spec(spec: &mut Fields) {
    set_text(spec, "dnsPolicy", "ClusterFirst");
    set_text(spec, "restartPolicy", "Always");
    set(spec, "securityContext", Map::new());
    set(spec, "terminationGracePeriodSeconds", 30);
    set_text(spec, "schedulerName", "default-scheduler");
}

fn container(container: &mut Fields) {
    let latest = image_tag(text(container, "image")) == Some("latest");
    set_text(
        container,
        "imagePullPolicy",
        if latest { "Always" } else { "IfNotPresent" },
    );
    set_text(container, "terminationMessagePath", "/dev/termination-log");
    set_text(container, "terminationMessagePolicy", "File");
}

/// The tag of an image; `latest` if there is neither a tag nor a digest.
fn image_tag(image: &str) -> Option<&str> {
    if image.is_empty() {
        return None;
    }
    let (name, digest) = image
        .split_once('@')
        .map_or((image, false), |(name, _)| (name, true));
    let last = name.rsplit('/').next().unwrap_or(name);
    match last.split_once(':') {
        Some((_, tag)) => Some(tag),
        None if digest => None,
        None => Some("latest"),
    }
}

fn probe(probe: &mut Fields) {
    set_number(probe, "timeoutSeconds", 1);
    set_number(probe, "periodSeconds", 10);
    set_number(probe, "successThreshold", 1);
    set_number(probe, "failureThreshold", 3);
}

fn http_get(action: &mut Fields) {
    set_text(action, "path", "/");
    set_text(action, "scheme", "HTTP");
}

fn volume(volume: &mut Fields) {
    if !volume
        .iter()
        .any(|(key, value)| key != "name" && !value.is_null())
    {
        volume.insert("emptyDir".into(), json!({}));
    }
    if let Some(image) = existing(volume, "image") {
        let latest = image_tag(text(image, "reference")) == Some("latest");
        set_text(
            image,
            "pullPolicy",
            if latest { "Always" } else { "IfNotPresent" },
        );
    }
}

fn rbd(source: &mut Fields) {
    set_text(source, "pool", "rbd");
    set_text(source, "user", "admin");
    set_text(source, "keyring", "/etc/ceph/keyring");
}

fn azure_disk(source: &mut Fields) {
    set(source, "cachingMode", "ReadWrite");
    set(source, "fsType", "ext4");
    set(source, "readOnly", false);
    set(source, "kind", "Shared");
}

fn scale_io(source: &mut Fields) {
    set_text(source, "storageMode", "ThinProvisioned");
    set_text(source, "fsType", "xfs");
}

fn service(service: &mut Fields) {
    let Some(spec) = map(service, "spec") else {
        return;
    };
    set_text(spec, "sessionAffinity", "None");
    match text(spec, "sessionAffinity") {
        "None" => drop(spec.remove("sessionAffinityConfig")),
        "ClientIP" => {
            if let Some(client) =
                map(spec, "sessionAffinityConfig").and_then(|config| map(config, "clientIP"))
            {
                set(client, "timeoutSeconds", 10800);
            }
        }
        _ => {}
    }
    set_text(spec, "type", "ClusterIP");
    for port in items(spec, "ports") {
        set_text(port, "protocol", "TCP");
        let unset = port
            .get("targetPort")
            .is_none_or(|p| p.is_null() || *p == json!(0) || *p == json!(""));
        if let (true, Some(number)) = (unset, port.get("port").cloned()) {
            port.insert("targetPort".into(), number);
        }
    }
    let kind = text(spec, "type").to_owned();
    let external_ips = spec
        .get("externalIPs")
        .and_then(Value::as_array)
        .is_some_and(|ips| !ips.is_empty());
    if matches!(kind.as_str(), "LoadBalancer" | "NodePort") || (kind == "ClusterIP" && external_ips)
    {
        set_text(spec, "externalTrafficPolicy", "Cluster");
    }
    if matches!(kind.as_str(), "LoadBalancer" | "NodePort" | "ClusterIP") {
        set(spec, "internalTrafficPolicy", "Cluster");
    }
    if kind == "LoadBalancer" {
        set(spec, "allocateLoadBalancerNodePorts", true);
        let balancer =
            existing(service, "status").and_then(|status| existing(status, "loadBalancer"));
        for ingress in balancer
            .into_iter()
            .flat_map(|balancer| items(balancer, "ingress"))
        {
            if !text(ingress, "ip").is_empty() {
                set(ingress, "ipMode", "VIP");
            }
        }
    }
}

fn namespace(namespace: &mut Fields) {
    let Some(metadata) = map(namespace, "metadata") else {
        return;
    };
    let name = text(metadata, "name").to_owned();
    if let (false, Some(labels)) = (name.is_empty(), map(metadata, "labels")) {
        labels.insert("kubernetes.io/metadata.name".into(), name.into());
    }
    phase(namespace, "Active");
}

fn phase(object: &mut Fields, phase: &str) {
    if let Some(status) = map(object, "status") {
        set_text(status, "phase", phase);
    }
}

fn persistent_volume(volume: &mut Fields) {
    phase(volume, "Pending");
    if let Some(spec) = map(volume, "spec") {
        set_text(spec, "persistentVolumeReclaimPolicy", "Retain");
        set(spec, "volumeMode", "Filesystem");
    }
}

fn replication_controller(controller: &mut Fields) {
    let template = controller
        .get("spec")
        .and_then(|spec| spec.pointer("/template/metadata/labels"));
    let labels = template.filter(|l| l.is_object()).cloned();
    if let Some(spec) = map(controller, "spec") {
        set(spec, "replicas", 1);
        if let (Some(labels), true) = (&labels, is_unset(spec, "selector")) {
            spec.insert("selector".into(), labels.clone());
        }
    }
    if let (Some(labels), Some(metadata)) = (labels, map(controller, "metadata")) {
        set(metadata, "labels", labels);
    }
}

fn limit_range_item(item: &mut Fields) {
    if text(item, "type") != "Container" {
        return;
    }
    for (to, from) in [
        ("default", "max"),
        ("defaultRequest", "default"),
        ("defaultRequest", "min"),
    ] {
        let Some(Value::Object(source)) = item.get(from).cloned() else {
            continue;
        };
        let Some(target) = map(item, to) else {
            continue;
        };
        for (name, value) in source {
            target.entry(name).or_insert(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::image_tag;

    #[test]
    fn only_latest_is_always_pulled() {
        for (image, tag) in [
            ("nginx", Some("latest")),
            ("nginx:1.27", Some("1.27")),
            ("localhost:5000/nginx", Some("latest")),
            ("localhost:5000/nginx:1", Some("1")),
            ("nginx@sha256:00", None),
            ("nginx:latest@sha256:00", Some("latest")),
            ("", None),
        ] {
            assert_eq!(image_tag(image), tag, "{image}");
        }
    }
}
