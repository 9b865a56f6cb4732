//! The status of a pod, as a kubelet writes it. Main function: [`check`].

use super::super::rules::{At, Check};
use super::update::annotation_changes;
use crate::status::Cause;
use serde_json::Value;
use std::collections::HashSet;
use std::net::IpAddr;
use tiphys_kube_schema::formats::{dns_label, dns_subdomain, ip, is_ip, qualified_name};

const SYSTEM: [&str; 3] = ["PodScheduled", "Ready", "Initialized"];
const ID: &[Check] = &[Check::Between(0, i32::MAX as i64)];
/// The fields with the container statuses, and those with the containers.
const LISTS: [(&str, &str); 3] = [
    ("containerStatuses", "containers"),
    ("initContainerStatuses", "initContainers"),
    ("ephemeralContainerStatuses", "ephemeralContainers"),
];
const LONGEST_MESSAGE: usize = 1024;

/// A changed status; the pod's metadata has been checked.
pub fn check(pod: &At<'_>, causes: &mut Vec<Cause>) {
    annotation_changes(pod, causes);
    let (spec, status) = (pod.get("spec"), pod.get("status"));
    conditions(&status.get("conditions"), causes);
    nominated(
        &status.get("nominatedNodeName"),
        spec.get("nodeName").text(),
        causes,
    );
    counted(&status.get("observedGeneration"), causes);
    let class = status.get("qosClass");
    causes.extend(
        class
            .is_changed()
            .then(|| class.invalid("field is immutable")),
    );
    LISTS
        .iter()
        .for_each(|(list, of)| transitions(&status.get(list), of, &spec, causes));
    claims(&status.get("resourceClaimStatuses"), &spec, causes);
    extended(&status.get("extendedResourceClaimStatus"), &spec, causes);
    addresses(&status.get("podIPs"), "core/v1.PodIP", causes);
    host_addresses(&status, causes);
    for (list, _) in LISTS {
        users(
            &status.get(list),
            spec.get("os.name").text() == "windows",
            causes,
        );
    }
    LISTS
        .iter()
        .for_each(|(list, of)| health(&status.get(list), &spec.get(of), causes));
}

fn counted(generation: &At<'_>, causes: &mut Vec<Cause>) {
    if generation.int().is_some_and(|n| n < 0) {
        causes.push(generation.invalid("must be a non-negative integer"));
    }
}

fn conditions(all: &At<'_>, causes: &mut Vec<Cause>) {
    for condition in all.items() {
        counted(&condition.get("observedGeneration"), causes);
        let kind = condition.get("type").text();
        if !SYSTEM.contains(&kind) {
            let at = condition.get("Type");
            causes.extend(qualified_name(kind).iter().map(|p| at.invalid_as(kind, p)));
        }
    }
}

/// The nominated node, which must be unset once the pod has a node.
fn nominated(at: &At<'_>, node: &str, causes: &mut Vec<Cause>) {
    if !at.is_changed() || at.is_empty() {
        return;
    }
    at.form(dns_subdomain, causes);
    if !node.is_empty() {
        causes.push(at.forbidden("may not be set on pods that are already bound to a node"));
    }
}

/// A terminated container may only start again if its restart policy allows it.
fn transitions(all: &At<'_>, of: &str, spec: &At<'_>, causes: &mut Vec<Cause>) {
    let others_restart = || {
        let lists = ["initContainers", "containers"]
            .into_iter()
            .flat_map(|list| spec.get(list).items());
        lists
            .flat_map(|c| c.get("restartPolicyRules").items())
            .any(|rule| rule.get("action").text() == "RestartAllContainers")
    };
    let is_ephemeral = of == "ephemeralContainers";
    let before = At::new(all.old.unwrap_or(&Value::Null), all.path.clone());
    if before.is_empty() || (!is_ephemeral && others_restart()) {
        return;
    }
    for was in before.items() {
        let ended = was.get("state.terminated");
        let name = was.get("name").text();
        let runs =
            |now: &At<'_>| now.get("name").text() == name && now.get("state.terminated").is_null();
        if ended.is_null() || !all.items().iter().any(runs) {
            continue;
        }
        let code = ended.get("exitCode").int().unwrap_or(0);
        let container = spec
            .get(of)
            .items()
            .into_iter()
            .find(|c| c.get("name").text() == name);
        if is_ephemeral || !container.is_some_and(|c| restarts(&c, spec, code)) {
            causes.push(
                was.get("state")
                    .forbidden("may not be transitioned to non-terminated state"),
            );
        }
    }
}

/// Whether a container restarts after it has ended.
fn restarts(container: &At<'_>, spec: &At<'_>, code: i64) -> bool {
    let by = |policy: &str| match policy {
        "Always" => Some(true),
        "OnFailure" => Some(code != 0),
        "Never" => Some(false),
        _ => None,
    };
    let own = container.get("restartPolicy");
    let applies = |rule: &At<'_>| {
        let (codes, operator) = (
            rule.get("exitCodes.values"),
            rule.get("exitCodes.operator").text(),
        );
        let listed = codes.items().iter().any(|c| c.int() == Some(code));
        (operator == "In" && listed) || (operator == "NotIn" && !listed)
    };
    let rule = container
        .get("restartPolicyRules")
        .items()
        .into_iter()
        .find(applies);
    if !own.is_null() && rule.is_some_and(|rule| rule.get("action").text() == "Restart") {
        return true;
    }
    by(own.text())
        .or_else(|| by(spec.get("restartPolicy").text()))
        .unwrap_or(true)
}

fn claims(all: &At<'_>, spec: &At<'_>, causes: &mut Vec<Cause>) {
    let known = spec.get("resourceClaims").items();
    let mut seen = HashSet::new();
    for claim in all.items() {
        let (name, own) = (claim.get("name"), claim.get("resourceClaimName"));
        if !known.iter().any(|k| k.get("name").text() == name.text()) {
            causes.push(name.invalid("must match the name of an entry in `spec.resourceClaims`"));
        }
        if !seen.insert(name.text()) {
            causes.push(name.duplicate());
        }
        if !own.is_null() {
            own.form(dns_subdomain, causes);
        }
    }
}

/// The claim for extended resources in the containers.
fn extended(at: &At<'_>, spec: &At<'_>, causes: &mut Vec<Cause>) {
    if at.is_null() {
        return;
    }
    let mappings = at.get("requestMappings");
    mappings.check(
        &[Check::Required("at least one request mapping is required")],
        causes,
    );
    let containers: Vec<At<'_>> = ["containers", "initContainers"]
        .iter()
        .flat_map(|list| spec.get(list).items())
        .collect();
    let mut seen = HashSet::new();
    for mapping in mappings.items() {
        let parts =
            ["containerName", "resourceName", "requestName"].map(|field| mapping.get(field));
        let [container, resource, request] = &parts;
        match containers
            .iter()
            .find(|c| c.get("name").text() == container.text())
        {
            None => {
                causes.push(container.invalid("must match the name of an entry in spec.initContainers.name or spec.containers.name"));
            }
            Some(c)
                if c.get("resources.requests")
                    .value
                    .get(resource.text())
                    .is_none() =>
            {
                let lists =
                    "spec.initContainers.resources.requests or spec.containers.resources.requests";
                causes.push(resource.invalid(&format!(
                    "must match the extended resource name of an entry in {lists}"
                )));
            }
            Some(_) => {}
        }
        At::new(request.value, format!("{}.requestName", at.path)).form(dns_label, causes);
        if !seen.insert(parts.each_ref().map(At::text)) {
            causes.extend(parts.iter().map(At::duplicate));
        }
    }
    at.get("resourceClaimName")
        .check(&[Check::Required(""), Check::Form(dns_subdomain)], causes);
}

/// One address per family. Existing addresses are accepted in any notation.
fn addresses(all: &At<'_>, of: &str, causes: &mut Vec<Cause>) {
    let before = At::new(all.old.unwrap_or(&Value::Null), "").items();
    let items = all.items();
    for item in &items {
        let address = item.get("ip").text();
        if !before.iter().any(|known| known.get("ip").text() == address) {
            causes.extend(ip(address).iter().map(|p| item.invalid_as(address, p)));
        }
    }
    let unreadable = items
        .iter()
        .position(|item| !is_ip(item.get("ip").text()))
        .filter(|_| items.len() > 1);
    if let Some(i) = unreadable {
        let message = format!(
            "Internal error: failed to check for dual stack with error:invalid IP[{i}]: {}",
            items[i].get("ip").text()
        );
        causes.push(Cause {
            reason: "InternalError",
            message,
            field: all.path.clone(),
        });
    }
    let later = items
        .iter()
        .filter(|item| {
            item.get("ip")
                .text()
                .parse::<IpAddr>()
                .is_ok_and(|ip| ip.is_ipv6())
        })
        .count();
    if items.len() > 2 || (items.len() == 2 && later != 1) {
        causes.push(all.invalid_struct(
            &format!("[]{of}"),
            "may specify no more than one IP for each IP family",
        ));
    }
}

fn host_addresses(status: &At<'_>, causes: &mut Vec<Cause>) {
    let all = status.get("hostIPs");
    let first = all.items().into_iter().next().map(|item| item.get("ip"));
    let other = first.filter(|ip| ip.text() != status.get("hostIP").text());
    causes.extend(other.map(|ip| ip.invalid("must be equal to `hostIP`")));
    addresses(&all, "core/v1.HostIP", causes);
}

fn users(all: &At<'_>, on_windows: bool, causes: &mut Vec<Cause>) {
    for container in all.items() {
        let user = container.get("user.linux");
        if user.is_null() {
            continue;
        }
        if on_windows {
            causes.push(user.forbidden("cannot be set for a windows pod"));
            continue;
        }
        ["uid", "gid"]
            .iter()
            .for_each(|field| user.get(field).check(ID, causes));
        user.get("supplementalGroups")
            .items()
            .iter()
            .for_each(|group| group.check(ID, causes));
    }
}

/// The health of the resources allocated to containers.
fn health(all: &At<'_>, containers: &At<'_>, causes: &mut Vec<Cause>) {
    for status in all.items() {
        let given = status.get("allocatedResourcesStatus");
        if containers.path.ends_with("ephemeralContainers") {
            causes.extend(
                (!given.is_empty())
                    .then(|| given.forbidden("must not be specified in container status")),
            );
            continue;
        }
        let container = containers
            .items()
            .into_iter()
            .find(|c| c.get("name").text() == status.get("name").text());
        for resource in given.items() {
            let name = resource.get("name");
            let unknown = container
                .as_ref()
                .and_then(|c| not_asked_for(c, name.text()));
            causes.extend(unknown.map(|why| name.invalid(why)));
            let mut seen = HashSet::new();
            resource
                .get("resources")
                .items()
                .iter()
                .for_each(|one| health_of(one, &mut seen, causes));
        }
    }
}

fn not_asked_for(container: &At<'_>, name: &str) -> Option<&'static str> {
    if !name.starts_with("claim:") {
        let is_asked = container
            .get("resources.requests")
            .value
            .get(name)
            .is_some();
        return (!is_asked).then_some("must match one of the container's resource requests");
    }
    let claims = container.get("resources.claims").items();
    let called =
        claims.iter().map(
            |claim| match (claim.get("name").text(), claim.get("request").text()) {
                (name, "") => format!("claim:{name}"),
                (name, request) => format!("claim:{name}/{request}"),
            },
        );
    let why = "must match one of the container's resource claims in a format 'claim:<claimName>/<request>' or 'claim:<claimName>' if \
               request is empty";
    (!called.into_iter().any(|known| known == name)).then_some(why)
}

fn health_of<'v>(one: &At<'v>, seen: &mut HashSet<&'v str>, causes: &mut Vec<Cause>) {
    const KINDS: [&str; 3] = ["Healthy", "Unhealthy", "Unknown"];
    let [health, message, id] = ["health", "message", "resourceID"].map(|field| one.get(field));
    causes.extend((!KINDS.contains(&health.text())).then(|| health.not_supported(&KINDS)));
    if !message.is_null() {
        message.check(
            &[
                Check::Required("must be non-empty if specified"),
                Check::MaxBytes(LONGEST_MESSAGE),
            ],
            causes,
        );
    }
    causes.extend((!seen.insert(id.text())).then(|| id.duplicate()));
}
