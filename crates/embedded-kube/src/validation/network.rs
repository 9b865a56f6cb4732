//! Ingresses, their classes, network policies, addresses and service networks.

use super::rules::{self, At};
use crate::status::Cause;
use serde_json::Value;
use std::net::IpAddr;
use tiphys_apimachinery::Object;
use tiphys_kube_schema::formats;

const CLASS: &str = "kubernetes.io/ingress.class";

pub fn ingress(object: &Object, old: Option<&Object>, causes: &mut Vec<Cause>) {
    let spec = At::of(object, old, "spec");
    let (rules, backend) = (spec.get("rules"), spec.get("defaultBackend"));
    if rules.is_empty() && backend.is_null() {
        causes.push(spec.invalid_as(
            rules.value.clone(),
            "either `defaultBackend` or `rules` must be specified",
        ));
    }
    if !backend.is_null() {
        ingress_backend(&backend, causes);
    }
    for rule in rules.items() {
        host(&rule.get("host"), causes);
        if rule.get("http").is_null() {
            continue;
        }
        let paths = rule.get("http.paths");
        if paths.is_empty() {
            causes.push(paths.required(""));
        }
        paths
            .items()
            .iter()
            .for_each(|path| ingress_path(path, causes));
    }
    for tls in spec.get("tls").items() {
        for name in tls.get("hosts").items() {
            name.form(
                if name.text().contains('*') {
                    formats::wildcard_subdomain
                } else {
                    formats::dns_subdomain
                },
                causes,
            );
        }
        let secret = tls.get("secretName");
        if !secret.is_empty() {
            secret.form(formats::dns_subdomain, causes);
        }
    }
    let class = spec.get("ingressClassName");
    if !class.is_null() {
        class.form(formats::dns_subdomain, causes);
    }
    let annotation = object.annotation(CLASS);
    if let (None, false, Some(said)) = (
        old,
        class.is_null(),
        annotation.filter(|a| *a != class.text()),
    ) {
        let field = format!("annotations.{CLASS}");
        causes.push(Cause::invalid(
            &field,
            &said.into(),
            "must match `ingressClassName` when both are specified",
        ));
    }
}

fn host(host: &At<'_>, causes: &mut Vec<Cause>) {
    if host.is_empty() {
        return;
    }
    if formats::is_ip(host.text()) {
        causes.push(host.invalid("must be a DNS name, not an IP address"));
    }
    host.form(
        if host.text().contains('*') {
            formats::wildcard_subdomain
        } else {
            formats::dns_subdomain
        },
        causes,
    );
}

fn ingress_path(path: &At<'_>, causes: &mut Vec<Cause>) {
    let (kind, text) = (path.get("pathType"), path.get("path"));
    if kind.is_null() {
        causes.push(kind.required("pathType must be specified"));
        return;
    }
    let absolute = text.text().starts_with('/');
    match kind.text() {
        "Exact" | "Prefix" => {
            if !absolute {
                causes.push(text.invalid("must be an absolute path"));
            }
            let sequences = ["//", "/./", "/../", "%2f", "%2F"]
                .into_iter()
                .filter(|s| text.text().contains(s));
            causes.extend(sequences.map(|s| text.invalid(&format!("must not contain '{s}'"))));
            let ends = ["/..", "/."]
                .into_iter()
                .filter(|s| text.text().ends_with(s));
            causes.extend(ends.map(|s| text.invalid(&format!("cannot end with '{s}'"))));
        }
        "ImplementationSpecific" if !text.is_empty() && !absolute => {
            causes.push(text.invalid("must be an absolute path"))
        }
        "ImplementationSpecific" => {}
        _ => causes.push(kind.not_supported(&["Exact", "ImplementationSpecific", "Prefix"])),
    }
    ingress_backend(&path.get("backend"), causes);
}

fn ingress_backend(backend: &At<'_>, causes: &mut Vec<Cause>) {
    let (resource, service) = (backend.get("resource"), backend.get("service"));
    match (resource.is_null(), service.is_null()) {
        (false, false) => {
            causes.push(backend.invalid_as("", "cannot set both resource and service backends"))
        }
        (false, true) => reference(&resource, causes),
        (true, true) => {
            causes.push(backend.invalid_as("", "resource or service backend is required"))
        }
        (true, false) => {
            let (name, port_name, number) = (
                service.get("name"),
                service.get("port.name"),
                service.get("port.number"),
            );
            match name.is_empty() {
                true => causes.push(name.required("")),
                false => name.form(formats::dns_label, causes),
            }
            match (port_name.is_empty(), number.int().unwrap_or(0)) {
                (true, 0) => causes.push(backend.required("port name or number is required")),
                (true, n) => causes.extend(formats::port_number(n).map(|p| number.invalid(&p))),
                (false, 0) => port_name.form(formats::port_name, causes),
                (false, _) => {
                    causes.push(backend.invalid_as("", "cannot set both port name & port number"))
                }
            }
        }
    }
}

/// A reference to an object of another kind.
fn reference(to: &At<'_>, causes: &mut Vec<Cause>) {
    let group = to.get("apiGroup");
    if !group.is_null() {
        group.form(formats::dns_subdomain, causes);
    }
    for field in ["kind", "name"].map(|f| to.get(f)) {
        match field.is_empty() {
            true => causes.push(field.required("")),
            false => field.form(formats::path_segment, causes),
        }
    }
}

pub fn ingress_class(object: &Object, old: Option<&Object>, causes: &mut Vec<Cause>) {
    let spec = At::of(object, old, "spec");
    let (controller, parameters) = (spec.get("controller"), spec.get("parameters"));
    if controller.is_changed() {
        causes.push(controller.invalid("field is immutable"));
    }
    if controller.len() > 250 {
        causes.push(controller.too_long(250));
    }
    domain_prefixed_path(&controller, causes);
    if parameters.is_null() {
        return;
    }
    reference(&parameters, causes);
    let (scope, namespace) = (parameters.get("scope"), parameters.get("namespace"));
    match scope.text() {
        "" if scope.is_null() => causes.push(scope.required("")),
        "Namespace" if namespace.is_null() => {
            causes.push(namespace.required("`parameters.scope` is set to 'Namespace'"))
        }
        "Namespace" => namespace.form(formats::dns_label, causes),
        "Cluster" if !namespace.is_null() => {
            causes.push(namespace.forbidden("`parameters.scope` is set to 'Cluster'"))
        }
        "Cluster" => {}
        _ => causes.push(scope.not_supported(&["Cluster", "Namespace"])),
    }
}

/// Such as `example.com/controller`.
pub fn domain_prefixed_path(at: &At<'_>, causes: &mut Vec<Cause>) {
    const FORM: &str = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+";
    if at.is_empty() {
        causes.push(at.required(""));
        return;
    }
    match at
        .text()
        .split_once('/')
        .filter(|(host, path)| !host.is_empty() && !path.is_empty())
    {
        None => causes.push(at.invalid("must be a domain-prefixed path (such as \"acme.io/foo\")")),
        Some((host, path)) => {
            causes.extend(
                formats::dns_subdomain(host)
                    .iter()
                    .map(|p| at.invalid_as(host, p)),
            );
            if !path
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"/-._~%!$&'()*+,;=:".contains(&b))
            {
                causes.push(at.invalid_as(path, &formats::regex_error("Invalid path", FORM, &[])));
            }
        }
    }
}

pub fn network_policy(object: &Object, old: Option<&Object>, causes: &mut Vec<Cause>) {
    let spec = At::of(object, old, "spec");
    rules::label_selector(&spec.get("podSelector"), causes);
    for (direction, peers) in [("ingress", "from"), ("egress", "to")] {
        for rule in spec.get(direction).items() {
            rule.get("ports")
                .items()
                .iter()
                .for_each(|port| policy_port(port, causes));
            rule.get(peers)
                .items()
                .iter()
                .for_each(|peer| policy_peer(peer, causes));
        }
    }
    let types = spec.get("policyTypes");
    if types.len() > 2 {
        causes.push(types.invalid("may not specify more than two policyTypes"));
    } else {
        let odd = types
            .items()
            .into_iter()
            .filter(|t| !matches!(t.text(), "Ingress" | "Egress"));
        causes.extend(odd.map(|t| t.not_supported(&["Ingress", "Egress"])));
    }
}

fn policy_port(port: &At<'_>, causes: &mut Vec<Cause>) {
    let (protocol, number, end) = (port.get("protocol"), port.get("port"), port.get("endPort"));
    if !matches!(protocol.text(), "TCP" | "UDP" | "SCTP") {
        causes.push(protocol.not_supported(&["TCP", "UDP", "SCTP"]));
    }
    match number.value {
        Value::Null if !end.is_null() => {
            causes.push(end.invalid("may not be specified when `port` is not specified"))
        }
        Value::String(_) => {
            if !end.is_null() {
                causes.push(end.invalid("may not be specified when `port` is non-numeric"));
            }
            number.form(formats::port_name, causes);
        }
        Value::Number(_) => {
            let n = number.int().unwrap_or(0);
            causes.extend(formats::port_number(n).map(|p| number.invalid(&p)));
            if let Some(last) = end.int() {
                if last < n {
                    causes.push(end.invalid_as(n, "must be greater than or equal to `port`"));
                }
                causes.extend(formats::port_number(last).map(|p| end.invalid(&p)));
            }
        }
        _ => {}
    }
}

fn policy_peer(peer: &At<'_>, causes: &mut Vec<Cause>) {
    let selectors: Vec<_> = ["podSelector", "namespaceSelector"]
        .map(|f| peer.get(f))
        .into_iter()
        .filter(|s| !s.is_null())
        .collect();
    selectors
        .iter()
        .for_each(|selector| rules::label_selector(selector, causes));
    let block = peer.get("ipBlock");
    if !block.is_null() {
        ip_block(&block, causes);
    }
    if selectors.is_empty() && block.is_null() {
        causes.push(peer.required("must specify a peer"));
    } else if !selectors.is_empty() && !block.is_null() {
        causes.push(peer.forbidden("may not specify both ipBlock and another peer"));
    }
}

fn ip_block(block: &At<'_>, causes: &mut Vec<Cause>) {
    let whole = block.get("cidr");
    if whole.is_empty() {
        causes.push(whole.required(""));
        return;
    }
    whole.form(formats::cidr, causes);
    let Some((ip, length)) = formats::parse_cidr(whole.text()) else {
        return;
    };
    for part in block.get("except").items() {
        part.form(formats::cidr, causes);
        let inside = |(inner, bits): (IpAddr, u8)| {
            inner.is_ipv4() == ip.is_ipv4()
                && bits > length
                && formats::network(inner, length) == formats::network(ip, length)
        };
        if formats::parse_cidr(part.text()).is_some_and(|parsed| !inside(parsed)) {
            causes.push(part.invalid("must be a strict subset of `cidr`"));
        }
    }
}

pub fn ip_address(object: &Object, old: Option<&Object>, causes: &mut Vec<Cause>) {
    let parent = At::of(object, old, "spec").get("parentRef");
    let changed = parent
        .is_changed()
        .then(|| parent.invalid_struct("networking/v1.ParentReference", "field is immutable"));
    if parent.is_null() {
        causes.push(parent.required(""));
        return causes.extend(changed);
    }
    let (group, namespace) = (parent.get("group"), parent.get("namespace"));
    if !group.is_empty() {
        group.form(formats::dns_subdomain, causes);
    }
    for field in ["resource", "name"].map(|f| parent.get(f)) {
        match field.is_empty() {
            true => causes.push(field.required("")),
            false => field.form(formats::path_segment, causes),
        }
    }
    if !namespace.is_empty() {
        namespace.form(formats::path_segment, causes);
    }
    causes.extend(changed);
}

pub fn service_cidr(object: &Object, old: Option<&Object>, causes: &mut Vec<Cause>) {
    let networks = At::of(object, old, "spec").get("cidrs");
    if networks.len() > 2 && old.is_none() {
        let spec = At::new(At::of(object, old, "spec").value, networks.path.clone());
        return causes.push(spec.invalid_struct(
            "networking/v1.ServiceCIDRSpec",
            "may only hold up to 2 values",
        ));
    }
    if old.is_none() {
        return service_networks(&networks, causes);
    }
    let grows = networks.len() == 2
        && networks
            .old
            .is_some_and(|old| old.as_array().is_some_and(|list| list.len() == 1));
    let same_length = networks.old.and_then(Value::as_array).map_or(0, Vec::len) == networks.len();
    if !grows && !same_length {
        return causes.push(networks.invalid_as(networks.value.clone(), "field is immutable"));
    }
    let before = networks.old.and_then(Value::as_array).into_iter().flatten();
    let changed = networks
        .items()
        .into_iter()
        .zip(before)
        .filter(|(now, before)| now.value != *before);
    causes.extend(changed.map(|(now, _)| now.invalid("field is immutable")));
    if grows {
        service_networks(&networks, causes);
    }
}

fn service_networks(networks: &At<'_>, causes: &mut Vec<Cause>) {
    if networks.is_empty() {
        return causes.push(networks.required("at least one CIDR required"));
    }
    networks
        .items()
        .iter()
        .for_each(|network| network.form(formats::canonical_cidr, causes));
    let families: Vec<bool> = networks
        .items()
        .iter()
        .filter_map(|n| Some(formats::parse_cidr(n.text())?.0.is_ipv4()))
        .collect();
    if let [first, second] = families[..]
        && first == second
    {
        let text = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64";
        causes.push(networks.invalid_as(networks.value.clone(), text));
    }
}

/// The addresses in the status of a service or an ingress.
pub fn load_balancer(ingress: &At<'_>, with_mode: bool, causes: &mut Vec<Cause>) {
    for point in ingress.items() {
        let (ip, mode, name) = (point.get("ip"), point.get("ipMode"), point.get("hostname"));
        if !ip.is_empty() {
            ip.form(formats::ip, causes);
        }
        match (with_mode, mode.is_null(), ip.is_empty()) {
            (true, true, false) => causes.push(mode.required("must be specified when `ip` is set")),
            (true, false, true) => {
                causes.push(mode.forbidden("may not be specified when `ip` is not set"))
            }
            (true, false, false) if !matches!(mode.text(), "VIP" | "Proxy") => {
                causes.push(mode.not_supported(&["Proxy", "VIP"]))
            }
            _ => {}
        }
        if !name.is_empty() {
            name.form(formats::dns_subdomain, causes);
            if formats::is_ip(name.text()) {
                causes.push(name.invalid("must be a DNS name, not an IP address"));
            }
        }
    }
}
