//! Warnings about pods and templates. Main functions: [`of_pod`] and [`of_template`].

use super::volume;
use crate::validation::rules::At;
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use tiphys_apimachinery::quantity::Quantity;
use tiphys_kube_schema::formats::{dns_label, ip_warning, label_value};

const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";
const SECCOMP: [&str; 2] = [
    "seccomp.security.alpha.kubernetes.io/pod",
    "container.seccomp.security.alpha.kubernetes.io/",
];
const NO_POD: &str = "a null labelSelector results in matching no pod";
/// Node labels that have been renamed.
const OLD_LABELS: &[(&str, &str)] = &[
    (
        "beta.kubernetes.io/arch",
        "deprecated since v1.14; use \"kubernetes.io/arch\" instead",
    ),
    (
        "beta.kubernetes.io/os",
        "deprecated since v1.14; use \"kubernetes.io/os\" instead",
    ),
    (
        "failure-domain.beta.kubernetes.io/region",
        "deprecated since v1.17; use \"topology.kubernetes.io/region\" instead",
    ),
    (
        "failure-domain.beta.kubernetes.io/zone",
        "deprecated since v1.17; use \"topology.kubernetes.io/zone\" instead",
    ),
    (
        "beta.kubernetes.io/instance-type",
        "deprecated since v1.17; use \"node.kubernetes.io/instance-type\" instead",
    ),
    ("app.kubernetes.io/created-by", "deprecated since v1.9"),
    (
        "scheduler.alpha.kubernetes.io/preferAvoidPods",
        "deprecated since v1.22; use Taints and Tolerations instead",
    ),
    (
        "node-role.kubernetes.io/master",
        "use \"node-role.kubernetes.io/control-plane\" instead",
    ),
];
const OLD_ANNOTATIONS: &[(&str, &str)] = &[
    (
        "scheduler.alpha.kubernetes.io/critical-pod",
        "non-functional in v1.16+; use the \"priorityClassName\" field instead",
    ),
    (
        "security.alpha.kubernetes.io/sysctls",
        "non-functional in v1.11+; use the \"sysctls\" field instead",
    ),
    (
        "security.alpha.kubernetes.io/unsafe-sysctls",
        "non-functional in v1.11+; use the \"sysctls\" field instead",
    ),
];

/// The warning about a renamed node label.
pub fn old_label(name: &str) -> Option<&'static str> {
    OLD_LABELS
        .iter()
        .find(|(label, _)| *label == name)
        .map(|(_, says)| *says)
}

/// Warns about a name that pods get, or a part of one.
pub fn of_name(name: &str, what: &str) -> Option<String> {
    let problems = dns_label(name);
    let text = format!(
        "metadata.name: this is used in {what}, which can result in surprising behavior; a DNS label is recommended: "
    );
    (!problems.is_empty()).then(|| format!("{text}[{}]", problems.join(" ")))
}

/// The warnings for a new pod.
pub fn of_pod(pod: &At<'_>) -> Vec<String> {
    let mut out: Vec<String> = of_name(pod.get("metadata.name").text(), "the Pod's hostname")
        .into_iter()
        .collect();
    of_spec(&pod.get("metadata"), &pod.get("spec"), false, &mut out);
    out
}

/// The warnings for a template.
pub fn of_template(template: &At<'_>) -> Vec<String> {
    let mut out = Vec::new();
    of_spec(
        &template.get("metadata"),
        &template.get("spec"),
        true,
        &mut out,
    );
    out
}

/// All containers, in the order in which the API server visits them.
fn visited<'v>(spec: &At<'v>) -> Vec<At<'v>> {
    ["initContainers", "containers", "ephemeralContainers"]
        .iter()
        .flat_map(|list| spec.get(list).items())
        .collect()
}

fn of_spec(metadata: &At<'_>, spec: &At<'_>, is_template: bool, out: &mut Vec<String>) {
    placement(spec, out);
    let annotations = metadata.get("annotations");
    for (key, says) in OLD_ANNOTATIONS {
        let at = annotations.key(key);
        out.extend((!at.is_null()).then(|| format!("{}: {says}", at.path)));
    }
    volume::of_volumes(spec, out);
    duplicates(&spec.get("hostAliases"), "ip", out);
    duplicates(&spec.get("imagePullSecrets"), "name", out);
    for secret in spec.get("imagePullSecrets").items() {
        let name = secret.get("name");
        out.extend(
            name.is_empty()
                .then(|| format!("{}: invalid empty name \"\"", name.path)),
        );
    }
    for name in ["memory", "ephemeral-storage"] {
        fraction(&spec.get("overhead").key(name), out);
    }
    if spec.get("securityContext.seccompProfile").is_null() {
        old_seccomp(&annotations.key(SECCOMP[0]), out);
    }
    for container in visited(spec) {
        of_container(&container, &annotations, spec, is_template, out);
    }
    ports(spec, out);
    port_names(spec, out);
    let grace = spec.get("terminationGracePeriodSeconds");
    if grace.int().is_some_and(|n| n < 0) {
        out.push(format!(
            "{}: must be >= 0; negative values are invalid and will be treated as 1",
            grace.path
        ));
    }
    pod_affinity(spec, out);
    spec.get("dnsConfig.nameservers")
        .items()
        .iter()
        .for_each(|ip| out.extend(ip_warning(&ip.path, ip.text())));
    for alias in spec.get("hostAliases").items() {
        let ip = alias.get("ip");
        out.extend(ip_warning(&ip.path, ip.text()));
    }
}

fn placement(spec: &At<'_>, out: &mut Vec<String>) {
    for (key, at) in spec.get("nodeSelector").entries() {
        out.extend(old_label(key).map(|says| format!("{}: {says}", at.path)));
    }
    let node = spec.get("affinity.nodeAffinity");
    let terms = node.get("requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms");
    terms
        .items()
        .iter()
        .for_each(|term| node_term(term, false, out));
    for term in node
        .get("preferredDuringSchedulingIgnoredDuringExecution")
        .items()
    {
        node_term(&term.get("preference"), true, out);
    }
    for spread in spec.get("topologySpreadConstraints").items() {
        let (key, selector) = (spread.get("topologyKey"), spread.get("labelSelector"));
        out.extend(
            old_label(key.text()).map(|says| format!("{}: {} is {says}", key.path, key.text())),
        );
        out.extend(
            selector
                .is_null()
                .then(|| format!("{}: {NO_POD}", selector.path)),
        );
    }
}

pub fn node_term(term: &At<'_>, values: bool, out: &mut Vec<String>) {
    for expression in term.get("matchExpressions").items() {
        let key = expression.get("key");
        out.extend(
            old_label(key.text()).map(|says| format!("{}: {} is {says}", key.path, key.text())),
        );
        for value in expression.get("values").items().iter().filter(|_| values) {
            out.extend(
                label_value(value.text())
                    .iter()
                    .map(|p| format!("{}: {} is invalid, {p}", value.path, value.text())),
            );
        }
    }
}

fn pod_affinity(spec: &At<'_>, out: &mut Vec<String>) {
    for kind in ["podAffinity", "podAntiAffinity"] {
        let terms = spec.get("affinity").get(kind);
        let required = terms
            .get("requiredDuringSchedulingIgnoredDuringExecution")
            .items();
        let preferred = terms
            .get("preferredDuringSchedulingIgnoredDuringExecution")
            .items();
        let selectors = required.iter().map(|t| t.get("labelSelector"));
        for selector in selectors.chain(
            preferred
                .iter()
                .map(|t| t.get("podAffinityTerm.labelSelector")),
        ) {
            out.extend(
                selector
                    .is_null()
                    .then(|| format!("{}: {NO_POD}", selector.path)),
            );
        }
    }
}

fn duplicates(list: &At<'_>, field: &str, out: &mut Vec<String>) {
    let mut seen = HashSet::new();
    for item in list.items() {
        let value = item.get(field);
        if !seen.insert(value.text()) {
            out.push(format!(
                "{}: duplicate {field} \"{}\"",
                value.path,
                value.text()
            ));
        }
    }
}

/// There are no fractions of bytes.
pub fn fraction(at: &At<'_>, out: &mut Vec<String>) {
    if at
        .text()
        .parse::<Quantity>()
        .is_ok_and(|q| q.milli_value() % 1000 != 0)
    {
        out.push(format!(
            "{}: fractional byte value \"{}\" is invalid, must be an integer",
            at.path,
            at.text()
        ));
    }
}

fn old_seccomp(at: &At<'_>, out: &mut Vec<String>) {
    out.extend((!at.is_null()).then(|| {
        format!(
            "{}: non-functional in v1.27+; use the \"seccompProfile\" field instead",
            at.path
        )
    }));
}

fn of_container(
    container: &At<'_>,
    annotations: &At<'_>,
    spec: &At<'_>,
    is_template: bool,
    out: &mut Vec<String>,
) {
    let name = container.get("name").text();
    if container.get("securityContext.seccompProfile").is_null() {
        old_seccomp(&annotations.key(&format!("{}{name}", SECCOMP[1])), out);
    }
    let profile = container.get("securityContext.appArmorProfile");
    let old = annotations.key(&format!("{APP_ARMOR}{name}"));
    if is_template
        && profile.is_null()
        && !old.is_null()
        && !says_the_same(old.text(), &spec.get("securityContext.appArmorProfile"))
    {
        out.push(format!(
            "{}: deprecated since v1.30; use the \"appArmorProfile\" field instead",
            old.path
        ));
    }
    for resource in ["memory", "ephemeral-storage"] {
        for kind in ["limits", "requests"] {
            fraction(&container.get("resources").get(kind).key(resource), out);
        }
    }
    let mut seen = HashSet::new();
    for variable in container.get("env").items() {
        let (name, value) = (variable.get("name").text(), variable.get("value").text());
        let reference = format!("$({name})");
        let hides = !variable.get("valueFrom").is_null()
            || value == reference
            || !value.contains(&reference);
        if !seen.insert(name) && hides {
            out.push(format!("{}: hides previous definition of \"{name}\", which may be dropped when using apply", variable.path));
        }
    }
}

/// Whether a pod's profile matches the annotation of a container.
fn says_the_same(annotation: &str, profile: &At<'_>) -> bool {
    let kind = match annotation {
        "unconfined" => "Unconfined",
        "runtime/default" => "RuntimeDefault",
        _ if annotation.starts_with("localhost/") => "Localhost",
        _ => return false,
    };
    let path = annotation.strip_prefix("localhost/").unwrap_or("");
    profile.get("type").text() == kind && profile.get("localhostProfile").text() == path
}

fn ports(spec: &At<'_>, out: &mut Vec<String>) {
    let mut all: HashMap<String, Vec<At<'_>>> = HashMap::new();
    for port in visited(spec).iter().flat_map(|c| c.get("ports").items()) {
        let number = |p: &At<'_>| p.get("hostPort").int().unwrap_or(0);
        let ip = |p: &At<'_>| p.get("hostIP").value.as_str().unwrap_or("").to_owned();
        let (host, address) = (number(&port), ip(&port));
        let (own, protocol) = (
            port.get("containerPort").int().unwrap_or(0),
            port.get("protocol").text(),
        );
        if !address.is_empty() && host == 0 {
            let shown = format!(
                "{{Name:{} HostPort:0 ContainerPort:{own} Protocol:{protocol} HostIP:{address}}}",
                port.get("name").text()
            );
            out.push(format!(
                "{}: hostIP set without hostPort: {shown}",
                port.path
            ));
        }
        let others = all.entry(format!("{own}/{protocol}")).or_default();
        for other in others.iter() {
            let (other_host, other_address) = (number(other), ip(other));
            let what = if address == other_address && host == other_host {
                "duplicate"
            } else if host == 0 || other_host == 0 {
                "overlapping"
            } else if host == other_host && address.is_empty() != other_address.is_empty() {
                "dangerously ambiguous"
            } else {
                continue;
            };
            out.push(format!(
                "{}: {what} port definition with {}",
                port.path, other.path
            ));
        }
        others.push(port);
    }
}

fn port_names(spec: &At<'_>, out: &mut Vec<String>) {
    let mut names: HashMap<&str, String> = HashMap::new();
    for port in visited(spec).iter().flat_map(|c| c.get("ports").items()) {
        let name = port.get("name").value.as_str().unwrap_or("");
        match names.get(name) {
            _ if name.is_empty() => {}
            Some(other) => out.push(format!(
                "{}: duplicate port name \"{name}\" with {other}, services and probes that select ports by name will use {other}",
                port.path
            )),
            None => drop(names.insert(name, port.path.clone())),
        }
    }
}

/// The warnings for the spec of a claim.
pub fn of_claim(spec: &At<'_>, out: &mut Vec<String>) {
    for kind in ["requests", "limits"] {
        let at = spec.get("resources").get(kind);
        fraction(
            &At::new(
                at.value.get("storage").unwrap_or(&Value::Null),
                format!("{}[storage]", at.path),
            ),
            out,
        );
    }
}
