//! Cluster IPs and node ports. Main type: [`Allocations`]. What is in use is read from the services themselves.

use crate::registry::Registry;
use crate::status::{Cause, Status};
use serde_json::{Map, Value, json};
use std::collections::HashSet;
use std::net::Ipv4Addr;
use std::sync::Mutex;
use tiphys_apimachinery::object::map_entry;
use tiphys_apimachinery::{Gvr, Object};

/// The service network, a /16; the first address is the API server's.
const NETWORK: [u8; 2] = [10, 0];
/// The range that node ports are taken from.
const NODE_PORTS: std::ops::RangeInclusive<u16> = 30_000..=32_767;

/// Where the search goes on. An address is not used again soon after its service went.
#[derive(Debug, Default)]
pub struct Allocations(Mutex<Next>);

#[derive(Debug, Default)]
struct Next {
    address: u16,
    port: u16,
}

struct Used {
    addresses: HashSet<String>,
    ports: HashSet<u16>,
}

fn used(registry: &Registry, except: &Object) -> Used {
    let all = registry.list(&Gvr::new("", "v1", "services"), None).unwrap_or_default();
    let others = || all.iter().filter(|s| (s.name(), s.namespace()) != (except.name(), except.namespace()));
    let addresses = others().map(|s| s.str_at("/spec/clusterIP").to_owned()).collect();
    let port = |p: &Value| p["nodePort"].as_u64().and_then(|n| u16::try_from(n).ok());
    let ports =
        others().filter_map(|s| s.pointer("/spec/ports").and_then(Value::as_array).cloned()).flatten().filter_map(|p| port(&p)).collect();
    Used { addresses, ports }
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
    let mut next = registry.allocations().0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let external = matches!(kind.as_str(), "NodePort" | "LoadBalancer");
    let mut taken: Option<Used> = None;
    let asked = object.str_at("/spec/clusterIP").to_owned();
    let known = old.map(|o| o.str_at("/spec/clusterIP").to_owned()).unwrap_or_default();
    // Another address for a service that has one is refused by validation.
    if asked.is_empty() || (asked != "None" && known.is_empty()) {
        let used = taken.get_or_insert_with(|| used(registry, object));
        let address = if asked.is_empty() { free_address(&mut next, used) } else { asked.clone() };
        if !asked.is_empty() {
            let fits = asked.parse::<Ipv4Addr>().is_ok_and(|ip| ip.octets()[..2] == NETWORK);
            if !fits {
                let detail = "failed to allocate IP ".to_owned() + &asked + ": the provided network does not match the current range";
                return Err(invalid(Cause::invalid("spec.clusterIPs", &json!([asked]), &detail)));
            }
            if used.addresses.contains(&asked) {
                let detail = format!("failed to allocate IP {asked}: provided IP is already allocated");
                return Err(invalid(Cause::invalid("spec.clusterIPs", &json!([asked]), &detail)));
            }
        }
        map_entry(&mut object.0, "spec").insert("clusterIP".into(), address.into());
    }
    let node_ports = if external { needs_ports(object) } else { Vec::new() };
    if !node_ports.is_empty() {
        let used = taken.get_or_insert_with(|| used(registry, object));
        let asked: Vec<u16> = given_ports(object);
        let own = old.map(given_ports).unwrap_or_default();
        if let Some(port) = asked.iter().find(|p| used.ports.contains(p) && !own.contains(p)) {
            let cause = Cause::invalid("spec.ports[0].nodePort", &(*port).into(), "provided port is already allocated");
            return Err(invalid(cause));
        }
        for i in node_ports {
            let Some(port) = free_port(&mut next, used, &asked) else {
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

fn free_address(next: &mut Next, used: &Used) -> String {
    for _ in 0..u16::MAX {
        next.address = next.address.wrapping_add(1);
        let [high, low] = next.address.to_be_bytes();
        let address = Ipv4Addr::new(NETWORK[0], NETWORK[1], high, low).to_string();
        let reserved = (high == 0 && low < 10) || low == 0 || low == 255;
        if !reserved && !used.addresses.contains(&address) {
            return address;
        }
    }
    String::new()
}

fn free_port(next: &mut Next, used: &Used, asked: &[u16]) -> Option<u16> {
    let size = NODE_PORTS.end() - NODE_PORTS.start() + 1;
    for _ in 0..size {
        // A step that visits every port, so that ports look as scattered as a real server's.
        next.port = (next.port + 1_117) % size;
        let port = NODE_PORTS.start() + next.port;
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
