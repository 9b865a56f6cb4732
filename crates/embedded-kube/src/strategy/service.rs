//! Cluster IPs and node ports. Main type: [`Allocations`], which the registry tells of every stored service.

use crate::registry::Registry;
use crate::status::{Cause, Status};
use serde_json::{Map, Value, json};
use std::collections::{HashMap, HashSet};
use std::net::Ipv4Addr;
use std::sync::{Mutex, MutexGuard};
use tiphys_apimachinery::Object;
use tiphys_apimachinery::object::map_entry;

/// The service network, a /16; the first address is the API server's.
const NETWORK: [u8; 2] = [10, 0];
/// The range that node ports are taken from.
const NODE_PORTS: std::ops::RangeInclusive<u16> = 30_000..=32_767;

/// What is in use and where the search goes on. An address is not used again soon after its service went.
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
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// A service was stored, or removed.
    pub fn note(&self, service: &Object, removed: bool) {
        let mut used = self.lock();
        let key = format!("{}/{}", service.namespace(), service.name());
        if let Some((address, ports)) = used.services.remove(&key) {
            used.addresses.remove(&address);
            used.ports.retain(|p| !ports.contains(p));
        }
        if !removed {
            let (address, ports) = (service.str_at("/spec/clusterIP").to_owned(), given_ports(service));
            used.addresses.insert(address.clone());
            used.ports.extend(&ports);
            used.services.insert(key, (address, ports));
        }
    }
}

/// Gives a service what its type needs and it does not have.
pub fn allocate(registry: &Registry, object: &mut Object, old: Option<&Object>) -> Result<(), Status> {
    let kind = object.str_at("/spec/type").to_owned();
    let name = object.name().to_owned();
    let invalid = |cause| Status::invalid("", "Service", &name, vec![cause]);
    if kind == "ExternalName" {
        let spec = map_entry(&mut object.0, "spec");
        for field in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy"] {
            spec.remove(field);
        }
        return Ok(());
    }
    carry_over(object, old);
    let mut used = registry.allocations().lock();
    let external = matches!(kind.as_str(), "NodePort" | "LoadBalancer");
    let asked = object.str_at("/spec/clusterIP").to_owned();
    let known = old.map(|o| o.str_at("/spec/clusterIP").to_owned()).unwrap_or_default();
    // Another address for a service that has one is refused by validation.
    if asked.is_empty() || (asked != "None" && known.is_empty()) {
        let address = if asked.is_empty() { free_address(&mut used) } else { asked.clone() };
        if !asked.is_empty() {
            let fits = asked.parse::<Ipv4Addr>().is_ok_and(|ip| ip.octets()[..2] == NETWORK);
            if !fits {
                let detail = "failed to allocate IP ".to_owned() + &asked + ": the provided network does not match the current range";
                return Err(invalid(Cause::invalid("spec.clusterIPs", &json!([asked]), &detail)));
            }
            // A second service of this name is refused for its name.
            let key = format!("{}/{name}", object.namespace());
            let is_own = used.services.get(&key).is_some_and(|(own, _)| *own == asked);
            if used.addresses.contains(&asked) && !is_own {
                let detail = format!("failed to allocate IP {asked}: provided IP is already allocated");
                return Err(invalid(Cause::invalid("spec.clusterIPs", &json!([asked]), &detail)));
            }
        }
        map_entry(&mut object.0, "spec").insert("clusterIP".into(), address.into());
    }
    let node_ports = if external { needs_ports(object) } else { Vec::new() };
    if !node_ports.is_empty() {
        let asked: Vec<u16> = given_ports(object);
        let own = old.map(given_ports).unwrap_or_default();
        if let Some(port) = asked.iter().find(|p| used.ports.contains(p) && !own.contains(p)) {
            let cause = Cause::invalid("spec.ports[0].nodePort", &(*port).into(), "provided port is already allocated");
            return Err(invalid(cause));
        }
        for i in node_ports {
            let Some(port) = free_port(&mut used, &asked) else {
                return Err(Status::internal("failed to allocate a nodePort: range is full"));
            };
            used.ports.insert(port);
            if let Some(map) = port_at(object, i) {
                map.insert("nodePort".into(), port.into());
            }
        }
    }
    finish(object);
    Ok(())
}

/// An update that leaves out what the server allocated keeps it.
fn carry_over(object: &mut Object, old: Option<&Object>) {
    let Some(old) = old else { return };
    let new_spec = map_entry(&mut object.0, "spec");
    for field in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "healthCheckNodePort"] {
        let empty = match new_spec.get(field) {
            None | Some(Value::Null) => true,
            Some(value) => value == "",
        };
        if let (true, Some(value)) = (empty, old.pointer(&format!("/spec/{field}"))) {
            new_spec.insert(field.into(), value.clone());
        }
    }
    if !matches!(old.str_at("/spec/type"), "NodePort" | "LoadBalancer") {
        return;
    }
    let before = old.pointer("/spec/ports").and_then(Value::as_array).cloned().unwrap_or_default();
    let ports = new_spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten();
    for port in ports.filter_map(Value::as_object_mut).filter(|p| !p.contains_key("nodePort")) {
        let same = |b: &&Value| Some(&b["port"]) == port.get("port") && Some(&b["protocol"]) == port.get("protocol");
        if let Some(number) = before.iter().find(same).and_then(|b| b.get("nodePort")) {
            port.insert("nodePort".into(), number.clone());
        }
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

fn free_port(used: &mut Used, asked: &[u16]) -> Option<u16> {
    let size = NODE_PORTS.end() - NODE_PORTS.start() + 1;
    for _ in 0..size {
        // A step that visits every port, so that ports look as scattered as a real server's.
        used.next_port = (used.next_port + 1_117) % size;
        let port = NODE_PORTS.start() + used.next_port;
        if !used.ports.contains(&port) && !asked.contains(&port) {
            return Some(port);
        }
    }
    None
}

fn port_at(object: &mut Object, i: usize) -> Option<&mut Map<String, Value>> {
    map_entry(&mut object.0, "spec").get_mut("ports")?.as_array_mut()?.get_mut(i)?.as_object_mut()
}

fn given_ports(object: &Object) -> Vec<u16> {
    let ports = object.pointer("/spec/ports").and_then(Value::as_array).into_iter().flatten();
    ports.filter_map(|p| u16::try_from(p["nodePort"].as_u64()?).ok()).filter(|p| *p > 0).collect()
}

/// The positions of ports that need a node port.
fn needs_ports(object: &Object) -> Vec<usize> {
    let ports = object.pointer("/spec/ports").and_then(Value::as_array).into_iter().flatten().enumerate();
    ports.filter(|(_, p)| p["nodePort"].as_u64().unwrap_or(0) == 0).map(|(i, _)| i).collect()
}

/// The fields that follow from the others.
fn finish(object: &mut Object) {
    let spec = map_entry(&mut object.0, "spec");
    let address = spec.get("clusterIP").cloned().unwrap_or(Value::Null);
    spec.insert("clusterIPs".into(), json!([address]));
    if spec.get("ipFamilies").is_none_or(|f| f.as_array().is_none_or(Vec::is_empty)) {
        spec.insert("ipFamilies".into(), json!(["IPv4"]));
    }
    if spec.get("ipFamilyPolicy").is_none_or(Value::is_null) {
        spec.insert("ipFamilyPolicy".into(), "SingleStack".into());
    }
}
