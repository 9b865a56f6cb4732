//! Services.

use super::{at, list, text};
use crate::status::Cause;
use serde_json::Value;
use std::collections::HashSet;
use tiphys_apimachinery::Object;

const TYPES: [&str; 4] = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];

pub fn check(object: &Object, old: Option<&Object>, causes: &mut Vec<Cause>) {
    let spec = at(object, "/spec");
    let kind = text(&spec, "type");
    if !TYPES.contains(&kind) {
        causes.push(Cause::not_supported("spec.type", &spec["type"], &TYPES));
    }
    let headless = text(&spec, "clusterIP") == "None";
    if list(&spec, "ports").is_empty() && !headless && kind != "ExternalName" {
        causes.push(Cause::required("spec.ports", ""));
    }
    if kind == "ExternalName" && text(&spec, "externalName").is_empty() {
        causes.push(Cause::required("spec.externalName", ""));
    }
    ports(&spec, causes);
    let before = old.map(|o| o.str_at("/spec/clusterIP").to_owned()).unwrap_or_default();
    let keeps = kind != "ExternalName" && old.is_some_and(|o| o.str_at("/spec/type") != "ExternalName");
    if keeps && !before.is_empty() && before != text(&spec, "clusterIP") {
        causes.push(Cause::invalid("spec.clusterIPs[0]", &spec["clusterIPs"], "may not change once set"));
    }
}

fn ports(spec: &Value, causes: &mut Vec<Cause>) {
    let all = list(spec, "ports");
    let (mut names, mut numbers) = (HashSet::new(), HashSet::new());
    for (i, port) in all.iter().enumerate() {
        let field = format!("spec.ports[{i}]");
        let name = text(port, "name");
        if name.is_empty() && all.len() > 1 {
            causes.push(Cause::required(&format!("{field}.name"), ""));
        } else if !name.is_empty() && !names.insert(name) {
            causes.push(Cause::duplicate(&format!("{field}.name"), &name.into()));
        }
        let number = port["port"].as_i64().unwrap_or(0);
        if !(1..=65535).contains(&number) {
            causes.push(Cause::invalid(&format!("{field}.port"), &number.into(), "must be between 1 and 65535, inclusive"));
        }
        match port.get("targetPort") {
            Some(Value::Number(n)) if n.as_i64().is_none_or(|n| !(1..=65535).contains(&n)) => {
                let detail = "must be between 1 and 65535, inclusive";
                causes.push(Cause::invalid(&format!("{field}.targetPort"), &port["targetPort"], detail));
            }
            _ => {}
        }
        if !matches!(text(port, "protocol"), "TCP" | "UDP" | "SCTP") {
            causes.push(Cause::not_supported(&format!("{field}.protocol"), &port["protocol"], &["SCTP", "TCP", "UDP"]));
        }
        if !numbers.insert((number, text(port, "protocol"))) {
            causes.push(Cause::duplicate(&field, port));
        }
    }
}
