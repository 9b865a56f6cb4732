//! Services.

use super::network;
use super::rules::{self, At};
use crate::status::Cause;
use serde_json::{Value, json};
use tiphys_apimachinery::Object;
use tiphys_kube_schema::formats;

const RANGES: &str = "service.beta.kubernetes.io/load-balancer-source-ranges";
const HINTS: &str = "service.kubernetes.io/topology-aware-hints";
const MODE: &str = "service.kubernetes.io/topology-mode";
const BALANCER_ONLY: &str = "may only be used when `type` is 'LoadBalancer'";
const SET: &str = "may not change once set";

/// Whether clients look up the addresses of the pods themselves.
fn is_headless(spec: &At<'_>) -> bool {
    spec.get("clusterIP").text() == "None"
}

pub fn check(object: &Object, old: Option<&Object>, causes: &mut Vec<Cause>) {
    let spec = At::of(object, old, "spec");
    let kind = spec.get("type");
    if let Some(old) = old {
        changes(&spec, &At::of(old, None, "spec"), causes);
    }
    if let (Some(mode), Some(hints)) = (object.annotation(MODE), object.annotation(HINTS))
        && mode != hints
    {
        let detail = format!("must match annotations[{HINTS}] when both are specified");
        causes.push(Cause::invalid(
            &format!("metadata.annotations[{MODE}]"),
            &mode.into(),
            &detail,
        ));
    }
    if spec.get("ports").is_empty() && !is_headless(&spec) && kind.text() != "ExternalName" {
        causes.push(spec.get("ports").required(""));
    }
    by_type(&spec, causes);
    ports(&spec, causes);
    rules::labels(&spec.get("selector"), causes);
    affinity(&spec, causes);
    if kind.text() != "ExternalName" {
        cluster_ips(&spec, causes);
    }
    for ip in spec.get("externalIPs").items() {
        let before = causes.len();
        ip.form(formats::ip, causes);
        if causes.len() == before {
            super::endpoints::endpoint_ip(&ip, causes);
        }
    }
    match kind.is_empty() {
        true => causes.push(kind.required("")),
        false
            if !matches!(
                kind.text(),
                "ClusterIP" | "ExternalName" | "LoadBalancer" | "NodePort"
            ) =>
        {
            causes.push(kind.not_supported(&[
                "ClusterIP",
                "ExternalName",
                "LoadBalancer",
                "NodePort",
            ]));
        }
        false => {}
    }
    used_twice(&spec, causes);
    source_ranges(object, &spec, causes);
    let allocate = spec.get("allocateLoadBalancerNodePorts");
    match (kind.text() == "LoadBalancer", allocate.is_null()) {
        (false, false) => causes.push(allocate.forbidden(BALANCER_ONLY)),
        (true, true) => causes.push(Cause::required("allocateLoadBalancerNodePorts", "")),
        _ => {}
    }
    balancer_class(&spec, causes);
    traffic(&spec, causes);
}

pub fn check_status(object: &Object, old: Option<&Object>, causes: &mut Vec<Cause>) {
    let ingress = At::of(object, old, "status").get("loadBalancer.ingress");
    if object.str_at("/spec/type") != "LoadBalancer" && !ingress.is_empty() {
        return causes
            .push(ingress.forbidden("may only be used when `spec.type` is 'LoadBalancer'"));
    }
    network::load_balancer(&ingress, true, causes);
}

fn by_type(spec: &At<'_>, causes: &mut Vec<Cause>) {
    match spec.get("type").text() {
        kind @ ("LoadBalancer" | "NodePort") if is_headless(spec) => {
            let field = format!("{}[0]", spec.get("clusterIPs").path);
            causes.push(Cause::invalid(
                &field,
                &"None".into(),
                &format!("may not be set to 'None' for {kind} services"),
            ));
        }
        "ExternalName" => {
            for field in ["clusterIPs", "ipFamilies", "ipFamilyPolicy"].map(|f| spec.get(f)) {
                if field.value.is_string() || !field.is_empty() {
                    causes.push(field.forbidden("may not be set for ExternalName services"));
                }
            }
            let name = spec.get("externalName");
            let text = name.text().strip_suffix('.').unwrap_or(name.text());
            match text.is_empty() {
                true => causes.push(name.required("")),
                false => causes.extend(
                    formats::dns_subdomain(text)
                        .iter()
                        .map(|p| name.invalid_as(text, p)),
                ),
            }
        }
        _ => {}
    }
}

fn ports(spec: &At<'_>, causes: &mut Vec<Cause>) {
    let all = spec.get("ports").items();
    let mut names: Vec<&str> = Vec::new();
    for port in &all {
        let name = port.get("name");
        if name.is_empty() {
            causes.extend((all.len() > 1).then(|| name.required("")));
        } else {
            name.form(formats::dns_label, causes);
            match names.contains(&name.text()) {
                true => causes.push(name.duplicate()),
                false => names.push(name.text()),
            }
        }
        let number = port.get("port");
        causes.extend(formats::port_number(number.int().unwrap_or(0)).map(|p| number.invalid(&p)));
        let protocol = port.get("protocol");
        if !matches!(protocol.text(), "TCP" | "UDP" | "SCTP") {
            causes.push(protocol.not_supported(&["SCTP", "TCP", "UDP"]));
        }
        port_number_or_name(&port.get("targetPort"), causes);
        let application = port.get("appProtocol");
        if !application.is_null() {
            application.form(formats::qualified_name, causes);
        }
    }
}

pub fn port_number_or_name(port: &At<'_>, causes: &mut Vec<Cause>) {
    match port.value {
        Value::String(_) => port.form(formats::port_name, causes),
        value => {
            let number = value.as_i64().unwrap_or(0);
            causes.extend(formats::port_number(number).map(|p| port.invalid_as(number, &p)));
        }
    }
}

fn affinity(spec: &At<'_>, causes: &mut Vec<Cause>) {
    let (affinity, config) = (
        spec.get("sessionAffinity"),
        spec.get("sessionAffinityConfig"),
    );
    match affinity.text() {
        "" => causes.push(affinity.required("")),
        "ClientIP" => {
            let missing = ["", "clientIP", "clientIP.timeoutSeconds"].map(|f| {
                if f.is_empty() {
                    config.clone()
                } else {
                    config.get(f)
                }
            });
            match missing.iter().find(|part| part.is_null()) {
                Some(part) => causes.push(part.required("when session affinity type is ClientIP")),
                None => {
                    let timeout = config.get("clientIP.timeoutSeconds");
                    if !(1..=86_400).contains(&timeout.int().unwrap_or(0)) {
                        causes.push(timeout.invalid("must be greater than 0 and less than 86400"));
                    }
                }
            }
        }
        "None" if !config.is_null() => {
            causes.push(config.forbidden("must not be set when session affinity is None"))
        }
        "None" => {}
        _ => causes.push(affinity.not_supported(&["ClientIP", "None"])),
    }
}

/// Checks that addresses and their families are consistent.
pub fn cluster_ips(spec: &At<'_>, causes: &mut Vec<Cause>) {
    let [one, all, families, policy] =
        ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"].map(|f| spec.get(f));
    let ips: Vec<&str> = all.items().iter().map(At::text).collect();
    match (one.is_empty(), ips.first()) {
        (false, None) => causes.push(all.required("")),
        (false, Some(first)) if *first != one.text() => {
            causes.push(all.invalid("first value must match `clusterIP`"))
        }
        (true, Some(_)) => {
            causes.push(all.invalid("must be empty when `clusterIP` is not specified"))
        }
        _ => {}
    }
    let items = families.items();
    for (i, family) in items.iter().enumerate() {
        if !matches!(family.text(), "IPv4" | "IPv6") {
            causes.push(family.not_supported(&["IPv4", "IPv6"]));
        }
        if items[..i].iter().any(|before| before.value == family.value) {
            causes.push(family.duplicate());
        }
    }
    if !policy.is_null()
        && !matches!(
            policy.text(),
            "SingleStack" | "PreferDualStack" | "RequireDualStack"
        )
    {
        causes.push(policy.not_supported(&["PreferDualStack", "RequireDualStack", "SingleStack"]));
    }
    let mut broken = false;
    for (i, ip) in all.items().iter().enumerate() {
        if i == 0 && ip.text() == "None" {
            if ips.len() > 1 {
                broken = true;
                causes.push(all.invalid("'None' must be the first and only value"));
            }
            continue;
        }
        let before = causes.len();
        ip.form(formats::ip, causes);
        broken |= causes.len() > before;
    }
    if ips.len() > 2 {
        causes.push(all.invalid("may only hold up to 2 values"));
    }
    if broken {
        return;
    }
    let is_v6 = |ip: &str| ip.contains(':');
    if ips.len() > 1 && !(ips.iter().any(|ip| is_v6(ip)) && ips.iter().any(|ip| !is_v6(ip))) {
        causes.push(all.invalid("may specify no more than one IP for each IP family"));
    }
    if !is_headless(spec) {
        for (i, (ip, family)) in all.items().iter().zip(&items).enumerate() {
            let expected = family.text();
            if (expected == "IPv4" && is_v6(ip.text())) || (expected == "IPv6" && !is_v6(ip.text()))
            {
                causes.push(ip.invalid(&format!(
                    "expected an {expected} value as indicated by `ipFamilies[{i}]`"
                )));
            }
        }
    }
}

fn used_twice(spec: &At<'_>, causes: &mut Vec<Cause>) {
    let all = spec.get("ports").items();
    if spec.get("type").text() == "ClusterIP" {
        let given = all
            .iter()
            .map(|p| p.get("nodePort"))
            .filter(|n| n.int().unwrap_or(0) != 0);
        causes.extend(given.map(|n| n.forbidden("may not be used when `type` is 'ClusterIP'")));
    }
    let same = |a: &At<'_>, b: &At<'_>, field: &str| {
        a.get(field).value == b.get(field).value
            && a.get("protocol").value == b.get("protocol").value
    };
    for (i, port) in all.iter().enumerate() {
        let node_port = port.get("nodePort");
        if node_port.int().unwrap_or(0) != 0
            && all[..i].iter().any(|before| same(before, port, "nodePort"))
        {
            causes.push(node_port.duplicate());
        }
    }
    for (i, port) in all.iter().enumerate() {
        if all[..i].iter().any(|before| same(before, port, "port")) {
            let key =
                json!({"port": port.get("port").value, "protocol": port.get("protocol").value});
            let message = format!(
                "Duplicate value: {}",
                tiphys_kube_schema::gotypes::internal(&key, "core/v1.ServicePort")
            );
            causes.push(Cause {
                reason: "FieldValueDuplicate",
                message,
                field: port.path.clone(),
            });
        }
    }
}

fn source_ranges(object: &Object, spec: &At<'_>, causes: &mut Vec<Cause>) {
    let is_balancer = spec.get("type").text() == "LoadBalancer";
    let ranges = spec.get("loadBalancerSourceRanges");
    let check = |field: &str, value: &str, causes: &mut Vec<Cause>| {
        causes.extend(
            formats::cidr(value.trim())
                .iter()
                .map(|p| Cause::invalid(field, &value.trim().into(), p)),
        );
    };
    if !ranges.is_empty() {
        let field = "spec.LoadBalancerSourceRanges";
        if !is_balancer {
            causes.push(Cause::forbidden(field, BALANCER_ONLY));
        }
        ranges
            .items()
            .iter()
            .enumerate()
            .for_each(|(i, range)| check(&format!("{field}[{i}]"), range.text(), causes));
    } else if let Some(text) = object.annotation(RANGES) {
        let field = format!("metadata.annotations[{RANGES}]");
        if !is_balancer {
            causes.push(Cause::forbidden(&field, BALANCER_ONLY));
        }
        text.trim()
            .split(',')
            .filter(|_| !text.trim().is_empty())
            .for_each(|range| check(&field, range, causes));
    }
}

fn balancer_class(spec: &At<'_>, causes: &mut Vec<Cause>) {
    let class = spec.get("loadBalancerClass");
    match (class.is_null(), spec.get("type").text() == "LoadBalancer") {
        (false, true) => class.form(formats::qualified_name, causes),
        (false, false) => causes.push(class.forbidden(BALANCER_ONLY)),
        _ => {}
    }
}

/// Whether the service accepts external traffic.
pub fn is_external(spec: &At<'_>) -> bool {
    let kind = spec.get("type");
    matches!(kind.text(), "LoadBalancer" | "NodePort")
        || (kind.text() == "ClusterIP" && !spec.get("externalIPs").is_empty())
}

/// Whether a load balancer checks the health of the nodes' endpoints.
pub fn needs_health_check(spec: &At<'_>) -> bool {
    spec.get("type").text() == "LoadBalancer" && spec.get("externalTrafficPolicy").text() == "Local"
}

fn traffic(spec: &At<'_>, causes: &mut Vec<Cause>) {
    let [external, internal, health, distribution] = [
        "externalTrafficPolicy",
        "internalTrafficPolicy",
        "healthCheckNodePort",
        "trafficDistribution",
    ]
    .map(|f| spec.get(f));
    match (is_external(spec), external.text()) {
        (true, "") => causes.push(external.required("")),
        (true, "Cluster" | "Local") | (false, "") => {}
        (true, _) => causes.push(external.not_supported(&["Cluster", "Local"])),
        (false, _) => {
            causes.push(external.invalid("may only be set for externally-accessible services"))
        }
    }
    match (needs_health_check(spec), health.int().unwrap_or(0)) {
        (true, 0) => causes.push(health.required("")),
        (true, port) => causes.extend(formats::port_number(port).map(|p| health.invalid(&p))),
        (false, 0) => {}
        (false, _) => causes.push(health.invalid(
            "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'",
        )),
    }
    if internal.is_null() {
        let needed = matches!(
            spec.get("type").text(),
            "ClusterIP" | "LoadBalancer" | "NodePort"
        );
        causes.extend(needed.then(|| internal.required("")));
    } else if !matches!(internal.text(), "Cluster" | "Local") {
        causes.push(internal.not_supported(&["Cluster", "Local"]));
    }
    let known = ["PreferClose", "PreferSameZone", "PreferSameNode"];
    if !distribution.is_null() && !known.contains(&distribution.text()) {
        causes.push(distribution.not_supported(&known));
    }
}

/// Changes of addresses, families and the load balancer class that an update must not make.
fn changes(new: &At<'_>, old: &At<'_>, causes: &mut Vec<Cause>) {
    let external = [new, old]
        .iter()
        .any(|spec| spec.get("type").text() == "ExternalName");
    let headless = is_headless(new) && is_headless(old);
    if !external && !headless {
        list_changes("clusterIPs", ("clusterIP", "clusterIP"), new, old, causes);
    }
    if !external && !is_headless(new) && !is_headless(old) {
        list_changes("ipFamilies", ("ipFamily", "ipFamily"), new, old, causes);
    }
    let balancers = [new, old]
        .iter()
        .all(|spec| spec.get("type").text() == "LoadBalancer");
    let class = new.get("loadBalancerClass");
    if balancers && class.value != old.get("loadBalancerClass").value {
        causes.push(class.invalid_as(class.value.clone(), SET));
    }
    balancer_class(new, causes);
    let health = new.get("healthCheckNodePort");
    if needs_health_check(new)
        && needs_health_check(old)
        && health.value != old.get("healthCheckNodePort").value
    {
        causes.push(health.forbidden("field is immutable"));
    }
}

fn list_changes(
    field: &str,
    (primary, secondary): (&str, &str),
    new: &At<'_>,
    old: &At<'_>,
    causes: &mut Vec<Cause>,
) {
    let (after, before) = (new.get(field), old.get(field));
    let values = |at: &At<'_>| {
        at.items()
            .iter()
            .map(|v| v.text().to_owned())
            .collect::<Vec<_>>()
    };
    let (now, was) = (values(&after), values(&before));
    let mut at_index = |i: usize, detail: &str| {
        causes.push(Cause::invalid(
            &format!("{}[{i}]", after.path),
            after.value,
            detail,
        ))
    };
    if now.len() == was.len() {
        let changed = now
            .iter()
            .zip(&was)
            .enumerate()
            .filter(|(_, (a, b))| a != b);
        changed.for_each(|(i, _)| at_index(if field == "ipFamilies" { 0 } else { i }, SET));
        return;
    }
    if now.is_empty() {
        at_index(0, &format!("primary {primary} can not be unset"));
    }
    if let (Some(a), Some(b)) = (now.first(), was.first())
        && a != b
    {
        at_index(0, SET);
    }
    let policy = new.get("ipFamilyPolicy");
    if was.len() > now.len() && now.len() == 1 && policy.text() != "SingleStack" {
        let detail =
            format!("must be set to 'SingleStack' when releasing the secondary {secondary}");
        causes.push(policy.invalid_as(policy.value.clone(), &detail));
    }
}
