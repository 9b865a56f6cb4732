//! The status of a Service: a LoadBalancer gets an address after a short delay.

use super::super::{
    fields::{Cond, conditions, set_condition},
    plan::{Note, Plan},
};
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use tiphys_apimachinery::Object;

/// The address of the load balancer with this index, in the networks reserved for documentation.
pub fn address(index: usize) -> String {
    let (network, host) = match index / 254 {
        0 => ("203.0.113", index % 254),
        1 => ("198.51.100", index % 254),
        _ => ("192.0.2", index % 254),
    };
    format!("{network}.{}", host + 1)
}

/// Whether a load balancer should serve the Service.
pub fn wants_balancer(service: &Object) -> bool {
    service.str_at("/spec/type") == "LoadBalancer"
        && service.str_at("/spec/loadBalancerClass").is_empty()
        && service.deletion_timestamp().is_none()
}

/// The load balancer address of a Service.
pub fn given_address(service: &Object) -> &str {
    service.str_at("/status/loadBalancer/ingress/0/ip")
}

/// Plans the load balancer's part of the status. `due` is when it is ready, `free` an unused
/// address.
pub fn balance(plan: &mut Plan, service: &Object, due: Timestamp, free: &str, now: Timestamp) {
    let mut status = service
        .pointer("/status")
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default();
    let mut notes = Vec::new();
    if wants_balancer(service) {
        if !given_address(service).is_empty() {
            return;
        }
        if due > now {
            return plan.wake_at(due);
        }
        let wanted = service.str_at("/spec/loadBalancerIP");
        let ip = if wanted.is_empty() { free } else { wanted };
        status.insert(
            "loadBalancer".into(),
            json!({"ingress": [{"ip": ip, "ipMode": "VIP"}]}),
        );
        notes.push(Note::normal("EnsuredLoadBalancer", "Ensured load balancer"));
    } else if !given_address(service).is_empty() && service.str_at("/spec/type") != "LoadBalancer" {
        status.insert("loadBalancer".into(), Value::Object(Map::new()));
        notes.push(Note::normal("DeletedLoadBalancer", "Deleted load balancer"));
    } else {
        return;
    }
    let mut list = conditions(service);
    if !list.is_empty() {
        let ready = wants_balancer(service);
        set_condition(
            &mut list,
            Cond {
                kind: "LoadBalancerReady",
                status: ready,
                reason: "",
                message: "",
            },
            now,
        );
        status.insert("conditions".into(), Value::Array(list));
    }
    plan.status(service, Value::Object(status), notes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_of_documentation_networks() {
        for (index, want) in [
            (0, "203.0.113.1"),
            (253, "203.0.113.254"),
            (254, "198.51.100.1"),
            (600, "192.0.2.93"),
        ] {
            assert_eq!(address(index), want);
        }
    }
}
