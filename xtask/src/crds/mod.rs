//! `cargo xtask crds`: generates the CRDs of Application, AppProject, ApplicationSet and
//! AppRepository from the Rust types, and compares them with genuine ones.

mod compare;
mod required;

use anyhow::Context;
use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::{Map, Value, json};
use std::{fs, path::Path};
use tiphys_api::{AppProject, AppRepository, Application, ApplicationSet};

/// The parts of a CRD other than the schema.
struct Kind {
    group: &'static str,
    part_of: &'static str,
    kind: &'static str,
    plural: &'static str,
    singular: &'static str,
    short_names: &'static [&'static str],
    columns: Value,
    /// Where the schema requires fields: pointer, and their names.
    required: &'static [(&'static str, &'static [&'static str])],
    subresources: Value,
}

/// Writes `deploy/crds/*.yaml`, or with `check` compares them.
///
/// # Errors
/// If a file cannot be written, or is out of date.
pub fn run(root: &Path, check: bool) -> anyhow::Result<()> {
    let folder = root.join("deploy/crds");
    fs::create_dir_all(&folder)?;
    for (file, text) in files()? {
        let path = folder.join(file);
        if check {
            let found = fs::read_to_string(&path).with_context(|| {
                format!("{} is missing: run `cargo xtask crds`", path.display())
            })?;
            anyhow::ensure!(
                found == text,
                "{} is not fresh: run `cargo xtask crds`",
                path.display()
            );
        } else {
            fs::write(&path, text)?;
        }
    }
    Ok(())
}

/// Compares them with the CRDs in a folder of Argo CD's manifests.
///
/// # Errors
/// If there is nothing to compare, or a difference that is not meant.
pub fn compare(folder: &Path) -> anyhow::Result<()> {
    let ours: Vec<String> = files()?.into_iter().map(|(_, text)| text).collect();
    compare::run(&ours, folder)
}

fn files() -> anyhow::Result<Vec<(&'static str, String)>> {
    let application = Kind {
        group: "argoproj.io",
        part_of: "argocd",
        kind: "Application",
        plural: "applications",
        singular: "application",
        short_names: &["app", "apps"],
        columns: json!([
            {"jsonPath": ".status.sync.status", "name": "Sync Status", "type": "string"},
            {"jsonPath": ".status.health.status", "name": "Health Status", "type": "string"},
            {"jsonPath": ".status.sync.revision", "name": "Revision", "priority": 10, "type": "string"},
            {"jsonPath": ".spec.project", "name": "Project", "priority": 10, "type": "string"}
        ]),
        required: &[],
        subresources: json!({}),
    };
    let project = Kind {
        group: "argoproj.io",
        part_of: "argocd",
        kind: "AppProject",
        plural: "appprojects",
        singular: "appproject",
        short_names: &["appproj", "appprojs"],
        columns: Value::Null,
        required: &[],
        subresources: json!({}),
    };
    let set = Kind {
        group: "argoproj.io",
        part_of: "argocd",
        kind: "ApplicationSet",
        plural: "applicationsets",
        singular: "applicationset",
        short_names: &["appset", "appsets"],
        columns: Value::Null,
        required: &[],
        subresources: json!({"status": {}}),
    };
    Ok(vec![
        (
            "application-crd.yaml",
            definition::<Application>(&application)?,
        ),
        (
            "applicationset-crd.yaml",
            definition::<ApplicationSet>(&set)?,
        ),
        ("appproject-crd.yaml", definition::<AppProject>(&project)?),
        (
            "apprepository-crd.yaml",
            definition::<AppRepository>(&app_repository())?,
        ),
    ])
}

/// As kubeapps has it, and a status.
fn app_repository() -> Kind {
    let ready = ".status.conditions[?(@.type==\"Ready\")]";
    Kind {
        group: tiphys_api::app_repository::GROUP,
        part_of: "kubeapps",
        kind: "AppRepository",
        plural: "apprepositories",
        singular: "apprepository",
        short_names: &["apprepos"],
        columns: json!([
            {"jsonPath": ".spec.type", "name": "Type", "type": "string"},
            {"jsonPath": ".spec.url", "name": "URL", "type": "string"},
            {"jsonPath": format!("{ready}.status"), "name": "Ready", "type": "string"},
            {"jsonPath": ".status.charts", "name": "Charts", "type": "integer"},
            {"jsonPath": ".status.lastSyncTime", "name": "Last Sync", "type": "date"},
            {"jsonPath": ".status.nextSyncTime", "name": "Next Sync", "priority": 10, "type": "string"},
            {"jsonPath": ".status.lastError", "name": "Message", "priority": 10, "type": "string"}
        ]),
        required: &[
            ("/properties/spec", &["type", "url"]),
            (
                "/properties/spec/properties/auth/properties/header",
                &["secretKeyRef"],
            ),
            (
                "/properties/spec/properties/auth/properties/header/properties/secretKeyRef",
                &["name", "key"],
            ),
            (
                "/properties/spec/properties/auth/properties/customCA",
                &["secretKeyRef"],
            ),
            (
                "/properties/spec/properties/auth/properties/customCA/properties/secretKeyRef",
                &["name", "key"],
            ),
        ],
        subresources: json!({"status": {}}),
    }
}

fn definition<T: JsonSchema>(kind: &Kind) -> anyhow::Result<String> {
    let settings = SchemaSettings::draft07().with(|s| s.inline_subschemas = true);
    let mut schema = settings
        .into_generator()
        .into_root_schema_for::<T>()
        .to_value();
    structural(&mut schema);
    let top: &[&str] = match kind.kind {
        // As kubeapps has it.
        "AppRepository" => &["spec"],
        _ => &["metadata", "spec"],
    };
    require(&mut schema, "", top);
    for (pointer, fields) in kind.required {
        require(&mut schema, pointer, fields);
    }
    if kind.part_of == "argocd" {
        required::constrain(&mut schema);
    }
    if kind.kind == "ApplicationSet" {
        open_templates(&mut schema["properties"]["spec"]["properties"]["generators"]);
    }
    let mut version = json!({"name": "v1alpha1", "schema": {"openAPIV3Schema": schema}, "served": true, "storage": true, "subresources": kind.subresources});
    if !kind.columns.is_null() {
        version["additionalPrinterColumns"] = kind.columns.clone();
    }
    let name = format!("{}.{}", kind.plural, kind.group);
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"labels": {"app.kubernetes.io/name": name, "app.kubernetes.io/part-of": kind.part_of}, "name": name},
        "spec": {
            "group": kind.group, "scope": "Namespaced",
            "names": {"kind": kind.kind, "listKind": format!("{}List", kind.kind), "plural": kind.plural, "shortNames": kind.short_names, "singular": kind.singular},
            "versions": [version]
        }
    });
    Ok(format!(
        "# Made by `cargo xtask crds` from crates/api; do not edit.\n{}",
        tiphys_gocompat::yaml::to_string(&crd)
    ))
}

/// Converts a JSON schema to a structural one: no titles, no `null` among the types, no format
/// unknown to Kubernetes.
fn structural(schema: &mut Value) {
    let Value::Object(map) = schema else { return };
    for word in [
        "$schema",
        "title",
        "description",
        "default",
        "minimum",
        "maximum",
        "definitions",
    ] {
        map.remove(word);
    }
    if let Some(Value::Array(types)) = map.get("type") {
        let first = types
            .iter()
            .find(|t| *t != "null")
            .cloned()
            .unwrap_or_default();
        map.insert("type".into(), first);
    }
    if let Some(Value::Array(variants)) = map.get("anyOf").cloned() {
        let rest: Vec<_> = variants
            .into_iter()
            .filter(|v| v["type"] != "null")
            .collect();
        if let [Value::Object(only)] = rest.as_slice() {
            map.remove("anyOf");
            map.extend(only.clone());
        }
    }
    if map
        .get("format")
        .and_then(Value::as_str)
        .is_some_and(|f| f.starts_with("uint"))
    {
        map.remove("format");
    }
    // Where unknown fields are kept, this says it already.
    if map.get("additionalProperties") == Some(&Value::Bool(true)) {
        map.remove("additionalProperties");
    }
    if map.contains_key("properties")
        && map.get("additionalProperties") == Some(&Value::Bool(false))
    {
        map.remove("additionalProperties");
    }
    map.remove("required");
    // Some of our types have a field named `kind`, so only the values below these keywords are
    // schemas.
    if let Some(Value::Object(properties)) = map.get_mut("properties") {
        properties.values_mut().for_each(structural);
    }
    for word in ["items", "additionalProperties"] {
        if let Some(inner) = map.get_mut(word) {
            structural(inner);
        }
    }
}

/// Leaves the fields of the templates of generators open: two dozen copies of an Application's spec
/// would make the definition too large for a client-side `kubectl apply`. The controller checks
/// them.
fn open_templates(schema: &mut Value) {
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        for (name, property) in properties {
            if name == "template" {
                *property = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
            } else {
                open_templates(property);
            }
        }
    }
    if let Some(items) = schema.get_mut("items") {
        open_templates(items);
    }
}

fn require(schema: &mut Value, pointer: &str, fields: &[&str]) {
    if let Some(Value::Object(map)) = schema.pointer_mut(pointer) {
        let _: &mut Map<String, Value> = map;
        map.insert("required".into(), json!(fields));
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_committed_crds_are_fresh() {
        if let Err(e) = super::run(&crate::root(), true) {
            panic!("{e:#}");
        }
    }
}
