//! Cluster IPs and node ports. Main type: [`Allocations`]; the registry reports every stored
//! service to it.

mod node_ports;

use crate::reader::Reader;
use crate::status::{Cause, Status};
use serde_json::{Map, Value, json};
use std::collections::{HashMap, HashSet};
use std::net::Ipv4Addr;
use std::sync::{Mutex, MutexGuard};
use tiphys_apimachinery::Object;

use crate::validation;
use crate::validation::rules::At;

/// The service network, a /16; the first address is the API server's.
const NETWORK: [u8; 2] = [10, 0];

/// The addresses and ports in use, and the position of the next search. An address is not reused
/// soon after its service was deleted.
#[derive(Debug, Default)]
pub struct Allocations(Mutex<Used>);

#[derive(Debug, Default)]
struct Used {
    services: HashMap<String, (String, Vec<u16>)>,
    addresses: HashSet<String>,
    ports: HashSet<u16>,
    next_address: u16,
    next_port: u16,
}

impl Allocations {
    fn lock(&self) -> MutexGuard<'_, Used> {
        self.0
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Records a stored or removed service.
    pub fn note(&self, service: &Object, removed: bool) {
        let mut used = self.lock();
        let key = format!("{}/{}", service.namespace(), service.name());
        if let Some((address, ports)) = used.services.remove(&key) {
            used.addresses.remove(&address);
            used.ports.retain(|p| !ports.contains(p));
        }
        if !removed {
            let (address, ports) = (
                service.str_at("/spec/clusterIP").to_owned(),
                given_ports(service),
            );
            used.addresses.insert(address.clone());
            used.ports.extend(&ports);
            used.services.insert(key, (address, ports));
        }
    }
}

/// The owner of the allocations.
pub trait Allocator: Reader {
    fn allocations(&self) -> &Allocations;
}

/// A text field of a service's spec.
fn text<'a>(spec: &'a Map<String, Value>, field: &str) -> &'a str {
    spec.get(field).and_then(Value::as_str).unwrap_or("")
}

fn texts(spec: &Map<String, Value>, field: &str) -> Vec<String> {
    let list = spec
        .get(field)
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    list.filter_map(Value::as_str).map(str::to_owned).collect()
}

fn spec_of(service: &Object) -> Map<String, Value> {
    service
        .0
        .get("spec")
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default()
}

fn needs_node_ports(spec: &Map<String, Value>) -> bool {
    matches!(text(spec, "type"), "NodePort" | "LoadBalancer")
}

/// Whether ports without a node port get one.
fn allocates_node_ports(spec: &Map<String, Value>) -> bool {
    match text(spec, "type") {
        "NodePort" => true,
        "LoadBalancer" => spec.get("allocateLoadBalancerNodePorts") != Some(&Value::Bool(false)),
        _ => false,
    }
}

fn needs_health_port(spec: &Map<String, Value>) -> bool {
    text(spec, "type") == "LoadBalancer" && text(spec, "externalTrafficPolicy") == "Local"
}

fn number(map: &Map<String, Value>, field: &str) -> i64 {
    map.get(field).and_then(Value::as_i64).unwrap_or(0)
}

/// Allocates the addresses and ports that the type of a service requires. Its errors come before
/// those of validation. For a new service outside of a dry run, the address is stored in an object
/// that contains the service's name, so the name is checked here.
pub fn allocate(
    allocator: &dyn Allocator,
    object: &mut Object,
    old: Option<&Object>,
    dry_run: bool,
) -> Result<(), Status> {
    let name = object.name().to_owned();
    let key = format!("{}/{name}", object.namespace());
    let invalid = |causes: Vec<Cause>| Status::invalid("", "Service", &name, causes);
    let before = old.map(spec_of);
    let mut spec = spec_of(object);
    if let Some(before) = &before {
        carry_over(&mut spec, before);
    } else if !text(&spec, "clusterIP").is_empty() && texts(&spec, "clusterIPs").is_empty() {
        spec.insert("clusterIPs".into(), json!([spec["clusterIP"]]));
    }
    families(&mut spec, before.as_ref()).map_err(invalid)?;
    let mut used = allocator.allocations().lock();
    let was_external = before
        .as_ref()
        .is_none_or(|b| text(b, "type") == "ExternalName");
    if text(&spec, "type") != "ExternalName" && was_external && text(&spec, "clusterIP") != "None" {
        address(
            &mut used,
            &mut spec,
            &key,
            name_problems(&name, dry_run || old.is_some()),
            dry_run,
        )
        .map_err(|cause| invalid(vec![cause]))?;
    }
    let mut ports = node_ports::Ports::new(&mut used, &spec, dry_run);
    if needs_node_ports(&spec) {
        match &before {
            None => ports
                .create(&mut spec)
                .map_err(|cause| invalid(vec![cause]))?,
            Some(before) => {
                ports
                    .update(&mut spec, before)
                    .map_err(|cause| invalid(vec![cause]))?;
                node_ports::distinct(&spec)?;
            }
        }
    }
    if needs_health_port(&spec) && !before.as_ref().is_some_and(needs_health_port) {
        ports.health(&mut spec)?;
    }
    drop(used);
    if let Some(before) = &before {
        drop_what_the_type_lacks(&mut spec, before);
    }
    if text(&spec, "type") == "ExternalName"
        && matches!(text(&spec, "internalTrafficPolicy"), "Cluster" | "Local")
    {
        // It is not visible, but its sender owns it. Invalid values are rejected later.
        spec.remove("internalTrafficPolicy");
    }
    object.0.insert("spec".into(), spec.into());
    Ok(())
}

/// An update without the allocated values keeps them; `clusterIP` and `clusterIPs` are kept
/// consistent.
fn carry_over(spec: &mut Map<String, Value>, before: &Map<String, Value>) {
    let external = |spec: &Map<String, Value>| text(spec, "type") == "ExternalName";
    let own_ips = texts(spec, "clusterIPs");
    if !external(before) && !external(spec) {
        for field in ["clusterIP", "clusterIPs"] {
            let empty = text(spec, field).is_empty() && texts(spec, field).is_empty();
            if let (true, Some(value)) = (empty, before.get(field)) {
                spec.insert(field.into(), value.clone());
            }
        }
    }
    if allocates_node_ports(before) && allocates_node_ports(spec) {
        keep_node_ports(spec, before);
    }
    if needs_health_port(before)
        && needs_health_port(spec)
        && number(spec, "healthCheckNodePort") == 0
    {
        spec.insert(
            "healthCheckNodePort".into(),
            before
                .get("healthCheckNodePort")
                .cloned()
                .unwrap_or(Value::Null),
        );
    }
    let (was, now) = (
        text(before, "clusterIP").to_owned(),
        text(spec, "clusterIP").to_owned(),
    );
    let same_list = texts(before, "clusterIPs") == texts(spec, "clusterIPs");
    if was == now && own_ips.is_empty() && !texts(before, "clusterIPs").is_empty() {
        spec.insert("clusterIPs".into(), before["clusterIPs"].clone());
    } else if was != now && same_list {
        match now.is_empty() {
            true => spec.remove("clusterIPs"),
            false => spec.insert("clusterIPs".into(), json!([now])),
        };
    }
}

/// Keeps the node ports by port name.
fn keep_node_ports(spec: &mut Map<String, Value>, before: &Map<String, Value>) {
    let list = |spec: &Map<String, Value>| {
        spec.get("ports")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default()
    };
    let (old_ports, new_ports) = (list(before), list(spec));
    let port = |p: &Value| p["nodePort"].as_i64().unwrap_or(0);
    let kept: HashSet<i64> = new_ports
        .iter()
        .map(port)
        .filter(|n| *n != 0 && old_ports.iter().any(|o| port(o) == *n))
        .collect();
    for entry in spec
        .get_mut("ports")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
        .filter_map(Value::as_object_mut)
    {
        let same_name = |o: &&Value| o["name"].as_str().unwrap_or("") == text(entry, "name");
        let known = old_ports.iter().rev().find(same_name).map_or(0, port);
        if number(entry, "nodePort") == 0 && known != 0 && !kept.contains(&known) {
            entry.insert("nodePort".into(), known.into());
        }
    }
}

/// Sets the IP families and their policy, on an IPv4-only cluster.
fn families(
    spec: &mut Map<String, Value>,
    before: Option<&Map<String, Value>>,
) -> Result<(), Vec<Cause>> {
    if text(spec, "type") == "ExternalName"
        || before.is_some_and(|b| prefers_two_as_before(b, spec))
    {
        return Ok(());
    }
    let selectorless = text(spec, "clusterIP") == "None"
        && spec
            .get("selector")
            .and_then(Value::as_object)
            .is_none_or(Map::is_empty);
    if spec.get("ipFamilyPolicy").is_none_or(Value::is_null) {
        let known = before
            .map(|b| text(b, "ipFamilyPolicy"))
            .filter(|p| !p.is_empty());
        let policy = known.unwrap_or(if selectorless {
            "RequireDualStack"
        } else {
            "SingleStack"
        });
        spec.insert("ipFamilyPolicy".into(), policy.into());
    }
    let mut causes = Vec::new();
    validation::service::cluster_ips(&At::new(&Value::Object(spec.clone()), "spec"), &mut causes);
    if !causes.is_empty() {
        return Err(causes);
    }
    let policy = text(spec, "ipFamilyPolicy").to_owned();
    release_second(spec, before, &policy, &mut causes);
    let mut all = families_of_addresses(spec, &mut causes);
    if selectorless && causes.is_empty() {
        if all.is_empty() {
            all.push("IPv4".to_owned());
        }
        if all.len() == 1 && policy != "SingleStack" {
            all.push(if all[0] == "IPv4" {
                "IPv6".to_owned()
            } else {
                "IPv4".to_owned()
            });
        }
    } else if causes.is_empty() {
        causes.extend(not_configured(&policy, &all));
        if all.is_empty() {
            all.push("IPv4".to_owned());
        }
    }
    spec.insert("ipFamilies".into(), all.into());
    if causes.is_empty() {
        Ok(())
    } else {
        Err(causes)
    }
}

/// Whether a service that prefers dual-stack is updated without changing its type, addresses or
/// families.
fn prefers_two_as_before(before: &Map<String, Value>, spec: &Map<String, Value>) -> bool {
    let prefers = |spec: &Map<String, Value>| text(spec, "ipFamilyPolicy") == "PreferDualStack";
    let same = |field: &str| texts(before, field) == texts(spec, field);
    text(before, "type") == text(spec, "type")
        && prefers(spec)
        && (prefers(before) || text(before, "ipFamilyPolicy").is_empty())
        && same("clusterIPs")
        && same("ipFamilies")
}

fn refuse_policy(policy: &str, detail: &str) -> Cause {
    Cause::invalid("spec.ipFamilyPolicy", &policy.into(), detail)
}

/// Removes the second address and family of a service that becomes single-stack and whose lists did
/// not change; rejects lists that contradict the policy.
fn release_second(
    spec: &mut Map<String, Value>,
    before: Option<&Map<String, Value>>,
    policy: &str,
    causes: &mut Vec<Cause>,
) {
    for (field, words) in [
        ("clusterIPs", ["cluster IP", "cluster IPs"]),
        ("ipFamilies", ["IP family", "IP families"]),
    ] {
        let count = texts(spec, field).len();
        if let Some(before) = before {
            let same = texts(before, field) == texts(spec, field);
            if policy == "SingleStack" && same && count > 1 {
                spec.insert(field.into(), json!([texts(spec, field)[0]]));
            } else if policy != "SingleStack" && count > 0 && count < texts(before, field).len() {
                let detail = format!(
                    "must be 'SingleStack' to release the secondary {}",
                    words[0]
                );
                causes.push(refuse_policy(policy, &detail));
            }
        }
        if policy == "SingleStack" && texts(spec, field).len() == 2 {
            let detail = format!(
                "must be 'RequireDualStack' or 'PreferDualStack' when multiple {} are specified",
                words[1]
            );
            causes.push(refuse_policy(policy, &detail));
        }
    }
}

/// The families of a service, and those of its further addresses.
fn families_of_addresses(spec: &Map<String, Value>, causes: &mut Vec<Cause>) -> Vec<String> {
    let mut all = texts(spec, "ipFamilies");
    for (i, ip) in texts(spec, "clusterIPs")
        .iter()
        .enumerate()
        .take_while(|(_, ip)| *ip != "None")
    {
        if i < all.len() {
            continue;
        }
        match ip.contains(':') {
            true => {
                let list = Value::from(texts(spec, "clusterIPs"));
                causes.push(Cause::invalid(
                    &format!("spec.clusterIPs[{i}]"),
                    &list,
                    "IPv6 is not configured on this cluster",
                ));
            }
            false => all.push("IPv4".to_owned()),
        }
    }
    all
}

/// The requested features that an IPv4-only cluster lacks.
fn not_configured(policy: &str, families: &[String]) -> Vec<Cause> {
    let mut causes = Vec::new();
    if policy == "RequireDualStack" {
        causes.push(refuse_policy(
            policy,
            "this cluster is not configured for dual-stack services",
        ));
    }
    let missing = families
        .iter()
        .enumerate()
        .filter(|(_, family)| *family != "IPv4");
    let cause = |(i, family): (usize, &String)| {
        Cause::invalid(
            &format!("spec.ipFamilies[{i}]"),
            &family.as_str().into(),
            "not configured on this cluster",
        )
    };
    causes.extend(missing.map(cause));
    causes
}

/// Why no address can be stored for a service of this name.
fn name_problems(name: &str, unnamed: bool) -> Vec<String> {
    const FIELD: &str = "spec.parentRef.name";
    if unnamed {
        return Vec::new();
    }
    let problem = |detail: String| format!("{FIELD}: Invalid value: {name:?}: {detail}");
    match name {
        "" => vec![format!("{FIELD}: Required value")],
        name => tiphys_kube_schema::formats::path_segment(name)
            .into_iter()
            .map(problem)
            .collect(),
    }
}

/// The cluster IP: the requested one, or a free one.
fn address(
    used: &mut Used,
    spec: &mut Map<String, Value>,
    key: &str,
    problems: Vec<String>,
    dry_run: bool,
) -> Result<(), Cause> {
    let asked = texts(spec, "clusterIPs")
        .first()
        .cloned()
        .unwrap_or_default();
    let refuse = |why: &str| {
        Err(Cause::invalid(
            "spec.clusterIPs",
            &json!([asked]),
            &format!(
                "failed to allocate IP{}{asked}: {why}",
                if asked.is_empty() { "" } else { " " }
            ),
        ))
    };
    let ip = match asked.as_str() {
        // A dry run does not search for a free one.
        "" if dry_run => Ipv4Addr::new(NETWORK[0], NETWORK[1], 0, 0).to_string(),
        "" => free_address(used),
        ip => {
            let is_host = |ip: Ipv4Addr| {
                ip.octets()[..2] == NETWORK && !matches!(ip.octets()[2..], [0, 0] | [255, 255])
            };
            match ip.parse().is_ok_and(is_host) {
                // A dry run does not check which service has it.
                true if dry_run => {}
                false if dry_run => {
                    let [a, b] = NETWORK;
                    return refuse(&format!(
                        "the provided IP ({ip}) is not in the valid range. The range of valid IPs is {a}.{b}.0.0/16"
                    ));
                }
                false => return refuse("the provided network does not match the current range"),
                true => {}
            }
            // A second service of this name is rejected because of its name.
            let is_own = used.services.get(key).is_some_and(|(own, _)| own == ip);
            if !dry_run && used.addresses.contains(ip) && !is_own {
                return refuse("provided IP is already allocated");
            }
            ip.to_owned()
        }
    };
    if !problems.is_empty() {
        let all = if let [one] = problems.as_slice() {
            one.clone()
        } else {
            format!("[{}]", problems.join(", "))
        };
        return refuse(&format!(
            "IPAddress.networking.k8s.io {ip:?} is invalid: {all}"
        ));
    }
    spec.insert("clusterIP".into(), ip.as_str().into());
    spec.insert("clusterIPs".into(), json!([ip]));
    Ok(())
}

/// A service that changed its type loses the fields of the old type, unless the request contains
/// them.
fn drop_what_the_type_lacks(spec: &mut Map<String, Value>, before: &Map<String, Value>) {
    let (was, is) = (
        text(before, "type").to_owned(),
        text(spec, "type").to_owned(),
    );
    let same = |field: &str, spec: &Map<String, Value>| before.get(field) == spec.get(field);
    if was != "ExternalName" && is == "ExternalName" {
        if same("clusterIP", spec) && same("clusterIPs", spec) {
            spec.remove("clusterIP");
            spec.remove("clusterIPs");
        }
        for field in ["ipFamilies", "ipFamilyPolicy"] {
            if same(field, spec) {
                spec.remove(field);
            }
        }
    }
    if needs_node_ports(before) && !needs_node_ports(spec) {
        let numbers = |spec: &Map<String, Value>| -> HashSet<i64> {
            let ports = spec
                .get("ports")
                .and_then(Value::as_array)
                .into_iter()
                .flatten();
            ports
                .filter_map(|p| p["nodePort"].as_i64())
                .filter(|n| *n != 0)
                .collect()
        };
        if numbers(before).is_superset(&numbers(spec)) {
            let ports = spec
                .get_mut("ports")
                .and_then(Value::as_array_mut)
                .into_iter()
                .flatten();
            ports
                .filter_map(Value::as_object_mut)
                .for_each(|port| drop(port.remove("nodePort")));
        }
    }
    if needs_health_port(before) && !needs_health_port(spec) && same("healthCheckNodePort", spec) {
        spec.remove("healthCheckNodePort");
    }
    if was == "LoadBalancer" && is != "LoadBalancer" {
        for field in ["allocateLoadBalancerNodePorts", "loadBalancerClass"] {
            if same(field, spec) {
                spec.remove(field);
            }
        }
    }
    let external = |spec: &Map<String, Value>| {
        validation::service::is_external(&At::new(&Value::Object(spec.clone()), "spec"))
    };
    if external(before) && !external(spec) && same("externalTrafficPolicy", spec) {
        spec.remove("externalTrafficPolicy");
    }
}

fn free_address(used: &mut Used) -> String {
    for _ in 0..u16::MAX {
        used.next_address = used.next_address.wrapping_add(1);
        let [high, low] = used.next_address.to_be_bytes();
        let address = Ipv4Addr::new(NETWORK[0], NETWORK[1], high, low).to_string();
        let reserved = (high == 0 && low < 10) || low == 0 || low == 255;
        if !reserved && !used.addresses.contains(&address) {
            return address;
        }
    }
    String::new()
}

fn given_ports(object: &Object) -> Vec<u16> {
    let ports = object
        .pointer("/spec/ports")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let health = object.i64_at("/spec/healthCheckNodePort");
    ports
        .filter_map(|p| p["nodePort"].as_i64())
        .chain(health)
        .filter_map(|p| u16::try_from(p).ok())
        .filter(|p| *p > 0)
        .collect()
}
