//! Containers, init containers and ephemeral containers. Main function: [`all`].

use super::super::rules::{At, Check};
use super::{Pod, env, probe, resources, security, volume};
use crate::status::Cause;
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use tiphys_kube_schema::formats::{dns_label, port_name, port_number};

const PULL: [&str; 3] = ["Always", "IfNotPresent", "Never"];
const NOT_EPHEMERAL: &str = "cannot be set for an Ephemeral Container";
const ONLY_SIDECARS: &str = "may not be set for init containers without restartPolicy=Always";

/// `containers`, `initContainers` and `ephemeralContainers`.
pub fn all(pod: &Pod<'_>, causes: &mut Vec<Cause>) {
    main(pod, causes);
    init(pod, causes);
    ephemeral(pod, causes);
}

fn main(pod: &Pod<'_>, causes: &mut Vec<Cause>) {
    let containers = pod.spec.get("containers");
    if containers.is_empty() {
        causes.push(containers.required(""));
        return;
    }
    let mut names = HashSet::new();
    let items = containers.items();
    for container in &items {
        common(container, pod, causes);
        let name = container.get("name");
        if !names.insert(name.text()) {
            causes.push(name.duplicate());
        }
        probe::lifecycle(container, pod, causes);
        probe::probes(container, pod, causes);
        restart_policy(container, causes);
    }
    host_ports(&items, causes);
}

fn init(pod: &Pod<'_>, causes: &mut Vec<Cause>) {
    let mut names: HashSet<&str> = pod
        .spec
        .get("containers")
        .items()
        .iter()
        .map(|c| c.get("name").text())
        .collect();
    for container in pod.spec.get("initContainers").items() {
        common(&container, pod, causes);
        restart_policy(&container, causes);
        let stays = container.get("restartPolicy").text() == "Always";
        let name = container.get("name");
        if names.contains(name.text()) {
            causes.push(name.duplicate());
        } else if !name.is_empty() {
            names.insert(name.text());
        }
        host_ports_of_one(&container, causes);
        if stays {
            probe::lifecycle(&container, pod, causes);
            probe::probes(&container, pod, causes);
            continue;
        }
        for field in [
            "lifecycle",
            "livenessProbe",
            "readinessProbe",
            "startupProbe",
        ] {
            let part = container.get(field);
            causes.extend((!part.is_null()).then(|| part.forbidden(ONLY_SIDECARS)));
        }
        for policy in container.get("resizePolicy").items() {
            let restart = policy.get("restartPolicy");
            if restart.text() == "RestartContainer" {
                causes.push(restart.invalid(
                    "must not be set to 'RestartContainer' for non-sidecar initContainers",
                ));
            }
        }
    }
}

fn ephemeral(pod: &Pod<'_>, causes: &mut Vec<Cause>) {
    const FORBIDDEN: [&str; 9] = [
        "ports",
        "resources",
        "resizePolicy",
        "restartPolicy",
        "restartPolicyRules",
        "livenessProbe",
        "readinessProbe",
        "startupProbe",
        "lifecycle",
    ];
    let others: Vec<&str> = ["containers", "initContainers"]
        .iter()
        .flat_map(|list| {
            pod.spec
                .get(list)
                .items()
                .iter()
                .map(|c| c.get("name").text())
                .collect::<Vec<_>>()
        })
        .collect();
    let mut names: HashSet<&str> = others.iter().copied().collect();
    for container in pod.spec.get("ephemeralContainers").items() {
        common(&container, pod, causes);
        trimmed_image(&container, causes);
        let name = container.get("name");
        if !names.insert(name.text()) {
            causes.push(name.duplicate());
        }
        let target = container.get("targetContainerName");
        if !target.is_empty() && !others.contains(&target.text()) {
            causes.push(target.not_found());
        }
        for field in FORBIDDEN {
            let part = container.get(field);
            // A struct counts as set if it is not empty, any other field if it is present.
            let is_set = if field == "resources" {
                !part.is_empty()
            } else {
                !part.is_null()
            };
            causes.extend(is_set.then(|| part.forbidden(NOT_EPHEMERAL)));
        }
        for mount in container.get("volumeMounts").items() {
            for field in ["subPath", "subPathExpr"] {
                let part = mount.get(field);
                causes.extend((!part.is_empty()).then(|| part.forbidden(NOT_EPHEMERAL)));
            }
        }
    }
}

/// Only pods themselves reject an image with surrounding spaces.
pub fn trimmed_image(container: &At<'_>, causes: &mut Vec<Cause>) {
    let image = container.get("image");
    if image.text().trim() != image.text() {
        causes.push(image.invalid("must not have leading or trailing whitespace"));
    }
}

/// The checks of every container.
fn common(container: &At<'_>, pod: &Pod<'_>, causes: &mut Vec<Cause>) {
    container
        .get("name")
        .check(&[Check::Required(""), Check::Form(dns_label)], causes);
    container.get("image").check(&[Check::Required("")], causes);
    let policy = &[
        Check::Required(""),
        Check::OneOf(&["File", "FallbackToLogsOnError"]),
    ];
    container
        .get("terminationMessagePolicy")
        .check(policy, causes);
    ports(&container.get("ports"), causes);
    env::variables(&container.get("env"), causes);
    env::from(&container.get("envFrom"), causes);
    mounts(container, pod, causes);
    devices(container, pod, causes);
    pull_policy(&container.get("imagePullPolicy"), causes);
    resources::container(&container.get("resources"), &pod.claims, causes);
    resize_policies(&container.get("resizePolicy"), pod, causes);
    security::container(&container.get("securityContext"), pod.host_users, causes);
}

/// When an image is pulled.
pub fn pull_policy(at: &At<'_>, causes: &mut Vec<Cause>) {
    at.check(&[Check::Required(""), Check::OneOf(&PULL)], causes);
}

fn ports(all: &At<'_>, causes: &mut Vec<Cause>) {
    let mut names = HashSet::new();
    for port in all.items() {
        let name = port.get("name");
        if !name.is_empty() {
            let problems = port_name(name.text());
            if problems.is_empty() && !names.insert(name.text()) {
                causes.push(name.duplicate());
            }
            causes.extend(problems.iter().map(|p| name.invalid(p)));
        }
        let number = port.get("containerPort");
        match number.int().unwrap_or(0) {
            0 => causes.push(number.required("")),
            n => causes.extend(port_number(n).map(|p| number.invalid(&p))),
        }
        let host = port.get("hostPort");
        causes.extend(
            host.int()
                .filter(|n| *n != 0)
                .and_then(port_number)
                .map(|p| host.invalid(&p)),
        );
        port.get("protocol").check(
            &[Check::Required(""), Check::OneOf(&["SCTP", "TCP", "UDP"])],
            causes,
        );
    }
}

fn host_ports_of_one(container: &At<'_>, causes: &mut Vec<Cause>) {
    // The cause names the first element, whichever container it is.
    let list = container.path.rsplit_once('[').map_or("", |(list, _)| list);
    let first = At::new(container.value, format!("{list}[0]"));
    host_ports(&[first], causes);
}

fn host_ports(containers: &[At<'_>], causes: &mut Vec<Cause>) {
    let mut taken = HashSet::new();
    for port in containers.iter().flat_map(|c| c.get("ports").items()) {
        let host = port.get("hostPort");
        let number = host.int().unwrap_or(0);
        let key = format!(
            "{}/{}/{number}",
            port.get("protocol").text(),
            port.get("hostIP").text()
        );
        if number != 0 && !taken.insert(key.clone()) {
            causes.push(Cause::duplicate(&host.path, &key.into()));
        }
    }
}

/// Which name is mounted where; the last one counts.
fn by_name<'v>(list: &At<'v>, path: &str) -> HashMap<&'v str, &'v str> {
    list.items()
        .iter()
        .map(|item| (item.get("name").text(), item.get(path).text()))
        .collect()
}

fn mounts(container: &At<'_>, pod: &Pod<'_>, causes: &mut Vec<Cause>) {
    let all = container.get("volumeMounts");
    let devices = by_name(&container.get("volumeDevices"), "devicePath");
    let privileged = container.get("securityContext.privileged").is_true();
    let mut taken = HashSet::new();
    for mount in all.items() {
        let (name, path) = (mount.get("name"), mount.get("mountPath"));
        name.check(&[Check::Required("")], causes);
        if !pod.volumes.contains_key(name.text()) {
            causes.push(name.not_found());
        }
        path.check(&[Check::Required("")], causes);
        if !taken.insert(path.text()) {
            causes.push(path.invalid("must be unique"));
        }
        if devices.contains_key(name.text()) {
            causes.push(name.invalid("must not already exist in volumeDevices"));
        }
        if devices.values().any(|d| *d == path.text()) {
            causes.push(path.invalid("must not already exist as a path in volumeDevices"));
        }
        // The causes of these name the whole list.
        let of_list =
            |field: &str| At::new(mount.get(field).value, format!("{}.{field}", all.path));
        let (sub, expression) = (of_list("subPath"), of_list("subPathExpr"));
        if !sub.is_empty() {
            volume::relative(&sub, causes);
        }
        if !expression.is_empty() {
            if !sub.is_empty() {
                causes.push(
                    mount
                        .get("subPathExpr")
                        .invalid("subPathExpr and subPath are mutually exclusive"),
                );
            }
            volume::relative(&expression, causes);
        }
        propagation(&of_list("mountPropagation"), privileged, causes);
        recursive(&mount, &of_list("recursiveReadOnly"), causes);
    }
}

fn propagation(at: &At<'_>, privileged: bool, causes: &mut Vec<Cause>) {
    if at.is_null() {
        return;
    }
    const KINDS: [&str; 3] = ["Bidirectional", "HostToContainer", "None"];
    if !KINDS.contains(&at.text()) {
        causes.push(at.not_supported(&KINDS));
    }
    if at.text() == "Bidirectional" && !privileged {
        causes.push(at.forbidden(
            "Bidirectional mount propagation is available only to privileged containers",
        ));
    }
}

fn recursive(mount: &At<'_>, at: &At<'_>, causes: &mut Vec<Cause>) {
    match at.text() {
        _ if at.is_null() => {}
        "Disabled" => {}
        "Enabled" | "IfPossible" => {
            if !mount.get("readOnly").is_true() {
                causes.push(at.forbidden("may only be specified when readOnly is true"));
            }
            let propagation = mount.get("mountPropagation");
            if !propagation.is_null() && propagation.text() != "None" {
                causes.push(at.forbidden(
                    "may only be specified when mountPropagation is None or not specified",
                ));
            }
        }
        _ => causes.push(at.not_supported(&["Disabled", "Enabled", "IfPossible"])),
    }
}

fn devices(container: &At<'_>, pod: &Pod<'_>, causes: &mut Vec<Cause>) {
    let mounts = by_name(&container.get("volumeMounts"), "mountPath");
    let (mut names, mut paths) = (HashSet::new(), HashSet::new());
    for device in container.get("volumeDevices").items() {
        let (name, path) = (device.get("name"), device.get("devicePath"));
        name.check(&[Check::Required("")], causes);
        if names.contains(name.text()) {
            causes.push(name.invalid("must be unique"));
        }
        match pod.volumes.get(name.text()) {
            None => causes.push(name.not_found()),
            Some(volume)
                if ["persistentVolumeClaim", "ephemeral"]
                    .iter()
                    .any(|k| volume.get(*k).is_some_and(Value::is_object)) => {}
            Some(_) => {
                let detail = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode";
                causes.push(name.invalid(detail));
            }
        }
        path.check(&[Check::Required("")], causes);
        if paths.contains(path.text()) {
            causes.push(path.invalid("must be unique"));
        }
        if path.text().split('/').any(|part| part == "..") {
            causes.push(path.invalid("can not contain backsteps ('..')"));
        } else {
            paths.insert(path.text());
        }
        if mounts.contains_key(name.text()) {
            causes.push(name.invalid("must not already exist in volumeMounts"));
        }
        if mounts.values().any(|m| *m == path.text()) {
            causes.push(path.invalid("must not already exist as a path in volumeMounts"));
        }
        if !name.is_empty() {
            names.insert(name.text());
        }
    }
}

fn resize_policies(all: &At<'_>, pod: &Pod<'_>, causes: &mut Vec<Cause>) {
    let mut seen = HashSet::new();
    for policy in all.items() {
        let (resource, restart) = (
            policy.get("resourceName").text(),
            policy.get("restartPolicy").text(),
        );
        if !seen.insert(resource) {
            causes.push(Cause::duplicate(&policy.path, &resource.into()));
        }
        // These causes name the whole list.
        for (value, allowed) in [
            (resource, ["cpu", "memory"]),
            (restart, ["NotRequired", "RestartContainer"]),
        ] {
            if value.is_empty() {
                causes.push(all.required(""));
            } else if !allowed.contains(&value) {
                causes.push(Cause::not_supported(&all.path, &value.into(), &allowed));
            }
        }
        if pod.spec.get("restartPolicy").text() == "Never" && restart != "NotRequired" {
            causes.push(all.invalid_as(
                restart,
                "must be 'NotRequired' when pod `restartPolicy` is 'Never'",
            ));
        }
    }
}

/// A container's own restart policy and its rules.
fn restart_policy(container: &At<'_>, causes: &mut Vec<Cause>) {
    let (policy, rules) = (
        container.get("restartPolicy"),
        container.get("restartPolicyRules"),
    );
    if policy.is_null() {
        if rules.is_empty() {
            return;
        }
        causes.push(policy.required("must specify restartPolicy when restart rules are used"));
        // For init containers nothing more is looked at.
        if container.path.contains("initContainers") {
            return;
        }
    } else if !["Always", "Never", "OnFailure"].contains(&policy.text()) {
        causes.push(policy.not_supported(&["Always", "Never", "OnFailure"]));
    }
    rules.check(&[Check::MaxItems(20)], causes);
    for rule in rules.items() {
        let action = rule.get("action");
        if !["Restart", "RestartAllContainers"].contains(&action.text()) {
            causes.push(action.not_supported(&["Restart", "RestartAllContainers"]));
        }
        let codes = rule.get("exitCodes");
        if codes.is_null() {
            causes.push(codes.required("must be specified"));
            continue;
        }
        let operator = codes.get("operator");
        if !["In", "NotIn"].contains(&operator.text()) {
            causes.push(operator.not_supported(&["In", "NotIn"]));
        }
        codes.get("values").check(&[Check::MaxItems(255)], causes);
    }
}
