//! Endpoint slices, endpoints and events.

use super::rules::{self, At, Check, Rule};
use super::webhooks::one_of;
use crate::status::Cause;
use serde_json::Value;
use std::net::IpAddr;
use tiphys_apimachinery::Object;
use tiphys_kube_schema::formats;

const PROTOCOLS: &[&str] = &["SCTP", "TCP", "UDP"];
const MAX_PORTS: usize = 20_000;
const MAX_ENDPOINTS: usize = 1000;
const MAX_ADDRESSES: usize = 100;
const MAX_TOPOLOGY: usize = 16;
const MAX_HINTS: usize = 8;

/// An address that can receive traffic.
pub fn endpoint_ip(at: &At<'_>, causes: &mut Vec<Cause>) {
    let Some(ip) = formats::lenient_ip(at.text()) else {
        return causes.push(at.invalid("must be a valid IP address"));
    };
    let (link_local, multicast) = match ip {
        IpAddr::V4(v4) => (v4.is_link_local(), v4.octets()[..3] == [224, 0, 0]),
        IpAddr::V6(v6) => (
            v6.is_unicast_link_local(),
            v6.segments()[0] & 0xff0f == 0xff02,
        ),
    };
    if ip.is_unspecified() {
        causes.push(at.invalid(&format!("may not be unspecified ({})", at.text())));
    }
    let rules = [
        (
            ip.is_loopback(),
            "may not be in the loopback range (127.0.0.0/8, ::1/128)",
        ),
        (
            link_local,
            "may not be in the link-local range (169.254.0.0/16, fe80::/10)",
        ),
        (
            multicast,
            "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)",
        ),
    ];
    causes.extend(
        rules
            .iter()
            .filter(|(broken, _)| *broken)
            .map(|(_, detail)| at.invalid(detail)),
    );
}

pub fn slice(object: &Object, old: Option<&Object>, causes: &mut Vec<Cause>) {
    let (kind, ports, endpoints) = (
        At::of(object, old, "addressType"),
        At::of(object, old, "ports"),
        At::of(object, old, "endpoints"),
    );
    kind.check(
        &[Check::Required(""), Check::OneOf(&["FQDN", "IPv4", "IPv6"])],
        causes,
    );
    match ports.len() > MAX_PORTS {
        true => causes.push(ports.too_many(MAX_PORTS)),
        false => slice_ports(&ports, causes),
    }
    if old.is_none() || endpoints.is_changed() {
        if endpoints.len() > MAX_ENDPOINTS {
            causes.push(endpoints.too_many(MAX_ENDPOINTS));
        } else {
            endpoints
                .items()
                .iter()
                .for_each(|endpoint| slice_endpoint(endpoint, kind.text(), causes));
        }
    }
    kind.check(&[Check::Immutable], causes);
}

fn slice_ports(ports: &At<'_>, causes: &mut Vec<Cause>) {
    let mut names = Vec::new();
    for port in ports.items() {
        let (name, protocol, application) = (
            port.get("name"),
            port.get("protocol"),
            port.get("appProtocol"),
        );
        if !name.is_empty() {
            name.form(formats::dns_label, causes);
        }
        match names.contains(&name.text()) {
            true => causes.push(name.duplicate()),
            false => names.push(name.text()),
        }
        match protocol.is_null() {
            true => causes.push(protocol.required("")),
            false => one_of(&protocol, PROTOCOLS, causes),
        }
        if !application.is_null() {
            application.form(formats::qualified_name, causes);
        }
    }
}

fn slice_endpoint(endpoint: &At<'_>, kind: &str, causes: &mut Vec<Cause>) {
    let addresses = endpoint.get("addresses");
    addresses.check(
        &[
            Check::Required("must contain at least 1 address"),
            Check::MaxItems(MAX_ADDRESSES),
        ],
        causes,
    );
    for address in addresses.items() {
        let (format, wrong): (formats::Format, _) = match kind {
            "IPv4" => (
                formats::ip,
                (address.text().contains(':'), "must be an IPv4 address"),
            ),
            "IPv6" => (
                formats::canonical_ip,
                (!address.text().contains(':'), "must be an IPv6 address"),
            ),
            "FQDN" => {
                domain_name(&address, causes);
                continue;
            }
            _ => continue,
        };
        let before = causes.len();
        address.form(format, causes);
        if causes.len() == before {
            causes.extend(
                wrong
                    .0
                    .then(|| addresses.invalid_as(address.text(), wrong.1)),
            );
            endpoint_ip(&address, causes);
        }
    }
    let (node, topology, host) = (
        endpoint.get("nodeName"),
        endpoint.get("deprecatedTopology"),
        endpoint.get("hostname"),
    );
    if !node.is_null() {
        node.form(formats::dns_subdomain, causes);
    }
    if topology.len() > MAX_TOPOLOGY {
        causes.push(topology.too_many(MAX_TOPOLOGY));
    }
    rules::labels(&topology, causes);
    if !host.is_null() {
        host.form(formats::dns_label, causes);
    }
    for (field, format) in [
        ("hints.forZones", formats::label_value as formats::Format),
        ("hints.forNodes", formats::dns_subdomain),
    ] {
        let hints = endpoint.get(field);
        if hints.len() > MAX_HINTS {
            return causes.push(hints.too_many(MAX_HINTS));
        }
        let names: Vec<At<'_>> = hints.items().iter().map(|hint| hint.get("name")).collect();
        for (i, name) in names.iter().enumerate() {
            if names[..i].iter().any(|before| before.text() == name.text()) {
                causes.push(name.duplicate());
            }
            name.form(format, causes);
        }
    }
}

fn domain_name(at: &At<'_>, causes: &mut Vec<Cause>) {
    let name = at.text().strip_suffix('.').unwrap_or(at.text());
    let problems = formats::dns_subdomain(name);
    if at.is_empty() {
        causes.push(at.required(""));
    } else if !problems.is_empty() {
        causes.push(at.invalid_as(name, &problems.join(",")));
    } else if !name.contains('.') {
        causes.push(at.invalid_as(
            name,
            "should be a domain with at least two segments separated by dots",
        ));
    } else if let Some(long) = name.split('.').find(|label| label.len() > 63) {
        causes.push(at.invalid_as(long, &formats::dns_label(long).join(",")));
    }
}

pub fn endpoints(object: &Object, old: Option<&Object>, causes: &mut Vec<Cause>) {
    let subsets = At::of(object, old, "subsets");
    if old.is_some() && !subsets.is_changed() {
        return;
    }
    for subset in subsets.items() {
        let (ready, unready, ports) = (
            subset.get("addresses"),
            subset.get("notReadyAddresses"),
            subset.get("ports"),
        );
        if ready.is_empty() && unready.is_empty() {
            causes.push(subset.required("must specify `addresses` or `notReadyAddresses`"));
        }
        for address in ready.items().iter().chain(&unready.items()) {
            let ip = address.get("ip");
            ip.form(formats::ip, causes);
            if !address.get("hostname").is_empty() {
                address.get("hostname").form(formats::dns_label, causes);
            }
            if !address.get("nodeName").is_null() {
                address.get("nodeName").form(formats::dns_subdomain, causes);
            }
            endpoint_ip(&ip, causes);
        }
        for port in ports.items() {
            let (name, number, application) =
                (port.get("name"), port.get("port"), port.get("appProtocol"));
            match name.is_empty() {
                true => causes.extend((ports.len() > 1).then(|| name.required(""))),
                false => name.form(formats::dns_label, causes),
            }
            causes.extend(
                formats::port_number(number.int().unwrap_or(0)).map(|p| number.invalid(&p)),
            );
            port.get("protocol")
                .check(&[Check::Required(""), Check::OneOf(PROTOCOLS)], causes);
            if !application.is_null() {
                application.form(formats::qualified_name, causes);
            }
        }
    }
}

/// The names of an event's field in core and in `events.k8s.io`.
struct Names {
    new_api: bool,
}

impl Names {
    fn get(&self, core: &'static str) -> &'static str {
        match core {
            _ if !self.new_api => core,
            "involvedObject" => "regarding",
            "message" => "note",
            "reportingComponent" => "reportingController",
            "source" => "deprecatedSource",
            "firstTimestamp" => "deprecatedFirstTimestamp",
            "lastTimestamp" => "deprecatedLastTimestamp",
            "count" => "deprecatedCount",
            other => other,
        }
    }
}

/// Events in either form. Causes use core's field names, whichever form was sent.
pub fn event(object: &Object, old: Option<&Object>, new_api: bool, causes: &mut Vec<Cause>) {
    let names = Names { new_api };
    // The name in messages is the internal one.
    let at = |core: &'static str, said: &str| At {
        path: said.to_owned(),
        ..At::of(object, old, names.get(core))
    };
    let (about, time) = (
        at("involvedObject", "involvedObject"),
        at("eventTime", "eventTime"),
    );
    let namespace = about.get("namespace");
    let own = object.namespace();
    if time.is_null() {
        let fits = if namespace.is_empty() {
            own == "default"
        } else {
            namespace.text() == own
        };
        causes.extend((!fits).then(|| namespace.invalid("does not match event.namespace")));
    } else {
        if namespace.is_empty() && !matches!(own, "default" | "kube-system") {
            causes.push(namespace.invalid("does not match event.namespace"));
        }
        let reporter = at(
            "reportingComponent",
            if new_api {
                "reportingController"
            } else {
                "reportingComponent"
            },
        );
        if reporter.is_empty() {
            causes.push(reporter.required(""));
        }
        reporter.form(formats::qualified_name, causes);
        for (field, max, required) in [
            ("reportingInstance", 128, true),
            ("action", 128, true),
            ("reason", 128, true),
            ("message", 1024, false),
        ] {
            let text = at(field, field);
            if required && text.is_empty() {
                causes.push(text.required(""));
            }
            if text.len() > max {
                causes.push(text.invalid_as("", &format!("can have at most {max} characters")));
            }
        }
    }
    causes.extend(
        formats::dns_subdomain(own)
            .iter()
            .map(|p| Cause::invalid("namespace", &own.into(), p)),
    );
    if new_api {
        match old {
            None => strict_create(&at, causes),
            Some(_) => strict_update(&at, causes),
        }
    }
}

fn series(series: &At<'_>, causes: &mut Vec<Cause>) {
    if series.is_null() {
        return;
    }
    if series.get("count").int().unwrap_or(0) < 2 {
        causes.push(series.get("count").invalid_as("", "should be at least 2"));
    }
    if series.get("lastObservedTime").is_null() {
        causes.push(series.get("lastObservedTime").required(""));
    }
}

fn strict_create<'v>(at: &impl Fn(&'static str, &str) -> At<'v>, causes: &mut Vec<Cause>) {
    series(&at("series", "series"), causes);
    if at("eventTime", "eventTime").is_null() {
        causes.push(Cause::required("eventTime", ""));
    }
    let kind = at("type", "type");
    if !matches!(kind.text(), "Normal" | "Warning") {
        causes.push(kind.invalid_as("", &format!("has invalid value: {}", kind.text())));
    }
    for field in ["firstTimestamp", "lastTimestamp", "count", "source"] {
        let old_field = at(field, field);
        let set = match old_field.value {
            Value::Object(map) => map.values().any(|v| v != ""),
            Value::Number(n) => n.as_i64() != Some(0),
            other => !other.is_null(),
        };
        causes.extend(set.then(|| old_field.invalid_as("", "needs to be unset")));
    }
}

fn strict_update<'v>(at: &impl Fn(&'static str, &str) -> At<'v>, causes: &mut Vec<Cause>) {
    let whole = at("series", "series");
    if whole.is_changed() {
        series(&whole, causes);
    }
    for field in [
        "involvedObject",
        "reason",
        "message",
        "source",
        "firstTimestamp",
        "lastTimestamp",
        "count",
        "reason",
        "type",
        "eventTime",
    ] {
        frozen(&at(field, field), causes);
    }
    for field in ["action", "related"] {
        frozen(&at(field, field), causes);
    }
    frozen(&at("reportingComponent", "reportingController"), causes);
    frozen(&at("reportingInstance", "reportingInstance"), causes);
}

fn frozen(at: &At<'_>, causes: &mut Vec<Cause>) {
    if !at.is_changed() {
        return;
    }
    causes.push(match (at.path.as_str(), at.value) {
        ("involvedObject" | "related", _) => {
            at.invalid_struct("core/v1.ObjectReference", "field is immutable")
        }
        ("source", _) => at.invalid_struct("core/v1.EventSource", "field is immutable"),
        ("count", _) => at.invalid_as(at.int().unwrap_or(0), "field is immutable"),
        (_, Value::Null) if at.path.ends_with("Time") || at.path.ends_with("stamp") => {
            at.invalid_as(Value::Null, "field is immutable")
        }
        _ => at.invalid("field is immutable"),
    });
}

/// Leases: the times that their holder sets.
pub const LEASE: &[Rule] = &[Rule::By(lease)];

fn lease(spec: &At<'_>, causes: &mut Vec<Cause>) {
    let (duration, transitions) = (
        spec.get("leaseDurationSeconds"),
        spec.get("leaseTransitions"),
    );
    if duration.int().is_some_and(|n| n <= 0) {
        causes.push(duration.invalid("must be greater than 0"));
    }
    transitions.check(&[Check::AtLeast(0)], causes);
}
