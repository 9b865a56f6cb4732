//! The status of an Ingress: the address of the one simulated ingress controller, after a short
//! delay.

use super::super::plan::{Note, Plan};
use jiff::Timestamp;
use serde_json::{Value, json};
use tiphys_apimachinery::Object;

/// The address of the ingress controller, in a network reserved for documentation.
pub const ADDRESS: &str = "192.0.2.254";

/// The next step of an Ingress; `due` is when it gets its address.
pub fn reconcile(ingress: &Object, due: Timestamp, now: Timestamp) -> Plan {
    let mut plan = Plan::default();
    let known = ingress
        .pointer("/status/loadBalancer/ingress")
        .and_then(Value::as_array)
        .is_some_and(|l| !l.is_empty());
    if known || ingress.deletion_timestamp().is_some() {
        return plan;
    }
    if due > now {
        plan.wake_at(due);
    } else {
        plan.status(
            ingress,
            json!({"loadBalancer": {"ingress": [{"ip": ADDRESS}]}}),
            vec![Note::normal("Sync", "Scheduled for sync")],
        );
    }
    plan
}
