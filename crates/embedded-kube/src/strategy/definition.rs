//! CustomResourceDefinitions: defaults, status and checks. A valid definition is established at once.

use crate::registry::{Registry, meta::timestamp};
use crate::status::Cause;
use serde_json::{Map, Value, json};
use tiphys_apimachinery::object::map_entry;
use tiphys_apimachinery::{Object, schema};

/// Keeps a definition until its objects are gone.
pub const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

pub fn fill_in(object: &mut Object) {
    let spec = map_entry(&mut object.0, "spec");
    let names = map_entry(spec, "names");
    let kind = names.get("kind").and_then(Value::as_str).unwrap_or("").to_owned();
    let missing = |map: &Map<String, Value>, key: &str| map.get(key).and_then(Value::as_str).unwrap_or("").is_empty();
    if missing(names, "singular") {
        names.insert("singular".into(), kind.to_lowercase().into());
    }
    if missing(names, "listKind") {
        names.insert("listKind".into(), format!("{kind}List").into());
    }
    let conversion = map_entry(spec, "conversion");
    if missing(conversion, "strategy") {
        conversion.insert("strategy".into(), "None".into());
    }
}

/// The status of a definition that is served, and its finalizer.
pub fn prepare(registry: &Registry, object: &mut Object) {
    let now = timestamp(registry.now());
    let spec = object.0.get("spec").cloned().unwrap_or(Value::Null);
    let versions = spec["versions"].as_array().cloned().unwrap_or_default();
    let storage = versions.iter().find(|v| v["storage"] == true).and_then(|v| v["name"].as_str()).unwrap_or("").to_owned();
    if object.deletion_timestamp().is_none() {
        let mut finalizers = object.finalizers();
        if !finalizers.iter().any(|f| f == CLEANUP) {
            finalizers.push(CLEANUP.to_owned());
        }
        object.set_finalizers(finalizers);
    }
    let status = map_entry(&mut object.0, "status");
    status.insert("acceptedNames".into(), spec["names"].clone());
    let mut stored = status.get("storedVersions").and_then(Value::as_array).cloned().unwrap_or_default();
    if !stored.iter().any(|v| v == storage.as_str()) {
        stored.push(storage.into());
    }
    status.insert("storedVersions".into(), stored.into());
    let condition = |kind: &str, reason: &str, message: &str| json!({"type": kind, "status": "True", "reason": reason, "message": message, "lastTransitionTime": now});
    if !status.contains_key("conditions") {
        let names = condition("NamesAccepted", "NoConflicts", "no conflicts found");
        let established = condition("Established", "InitialNamesAccepted", "the initial names have been accepted");
        status.insert("conditions".into(), json!([names, established]));
    }
}

pub fn check(object: &Object, old: Option<&Object>) -> Vec<Cause> {
    let mut causes = Vec::new();
    let spec = object.0.get("spec").cloned().unwrap_or(Value::Null);
    let names = &spec["names"];
    for (field, value) in [("spec.group", &spec["group"]), ("spec.names.plural", &names["plural"]), ("spec.names.kind", &names["kind"])] {
        if value.as_str().unwrap_or("").is_empty() {
            causes.push(Cause::required(field, ""));
        }
    }
    let wanted = format!("{}.{}", names["plural"].as_str().unwrap_or(""), spec["group"].as_str().unwrap_or(""));
    if object.name() != wanted {
        let value = object.name().into();
        causes.push(Cause::invalid("metadata.name", &value, "must be spec.names.plural+\".\"+spec.group"));
    }
    if !matches!(spec["scope"].as_str(), Some("Cluster" | "Namespaced")) {
        causes.push(Cause::not_supported("spec.scope", &spec["scope"], &["Cluster", "Namespaced"]));
    }
    let group = spec["group"].as_str().unwrap_or("");
    let taken = |kind: &&schema::ResourceInfo| kind.group == group;
    if schema::resources().iter().any(|r| taken(&r)) {
        causes.push(Cause::invalid("spec.group", &group.into(), "the group of built-in kinds cannot be extended"));
    }
    versions(&spec, &mut causes);
    if let Some(old) = old {
        for (pointer, field) in [("/spec/scope", "spec.scope"), ("/spec/group", "spec.group"), ("/spec/names/plural", "spec.names.plural")]
        {
            if old.pointer(pointer) != object.pointer(pointer) {
                causes.push(Cause::invalid(field, object.pointer(pointer).unwrap_or(&Value::Null), "field is immutable"));
            }
        }
    }
    causes
}

fn versions(spec: &Value, causes: &mut Vec<Cause>) {
    let versions = spec["versions"].as_array().cloned().unwrap_or_default();
    if versions.is_empty() {
        causes.push(Cause::required("spec.versions", "must have at least one version"));
        return;
    }
    if versions.iter().filter(|v| v["storage"] == true).count() != 1 {
        causes.push(Cause::invalid("spec.versions", &Value::Array(Vec::new()), "must have exactly one version marked as storage version"));
    }
    if spec.pointer("/conversion/strategy").and_then(Value::as_str) == Some("Webhook") {
        causes.push(Cause::forbidden("spec.conversion.strategy", "webhook conversion is not supported by this embedded API server"));
    }
    for (i, version) in versions.iter().enumerate() {
        let field = format!("spec.versions[{i}]");
        if version["name"].as_str().unwrap_or("").is_empty() {
            causes.push(Cause::required(&format!("{field}.name"), ""));
        }
        let at = format!("{field}.schema.openAPIV3Schema");
        match version.pointer("/schema/openAPIV3Schema") {
            None | Some(Value::Null) => causes.push(Cause::required(&at, "schemas are required")),
            Some(raw) => {
                if let Err(error) = schema::crd::from_structural(raw) {
                    causes.push(Cause::invalid(&at, &Value::Null, &error.to_string()));
                }
            }
        }
    }
}
