//! `cargo xtask crds`: generates the CRDs of Application, AppProject and ApplicationSet from the
//! Rust types.

use anyhow::Context;
use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::{Map, Value, json};
use std::{fs, path::Path};
use tiphys_api::{AppProject, Application, ApplicationSet};

/// The parts of a CRD other than the schema.
struct Kind {
    kind: &'static str,
    plural: &'static str,
    singular: &'static str,
    short_names: &'static [&'static str],
    columns: Value,
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

fn files() -> anyhow::Result<Vec<(&'static str, String)>> {
    let application = Kind {
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
        subresources: json!({}),
    };
    let project = Kind {
        kind: "AppProject",
        plural: "appprojects",
        singular: "appproject",
        short_names: &["appproj", "appprojs"],
        columns: Value::Null,
        subresources: json!({}),
    };
    let set = Kind {
        kind: "ApplicationSet",
        plural: "applicationsets",
        singular: "applicationset",
        short_names: &["appset", "appsets"],
        columns: Value::Null,
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
    ])
}

fn definition<T: JsonSchema>(kind: &Kind) -> anyhow::Result<String> {
    let settings = SchemaSettings::draft07().with(|s| s.inline_subschemas = true);
    let mut schema = settings
        .into_generator()
        .into_root_schema_for::<T>()
        .to_value();
    structural(&mut schema);
    require(&mut schema, "", &["metadata", "spec"]);
    if kind.kind == "Application" {
        require(&mut schema, "/properties/spec", &["destination", "project"]);
        require(
            &mut schema,
            "/properties/spec/properties/source",
            &["repoURL"],
        );
        require(
            &mut schema,
            "/properties/spec/properties/sources/items",
            &["repoURL"],
        );
    }
    if kind.kind == "ApplicationSet" {
        open_templates(&mut schema["properties"]["spec"]["properties"]["generators"]);
        require(&mut schema, "/properties/spec", &["generators", "template"]);
    }
    let mut version = json!({"name": "v1alpha1", "schema": {"openAPIV3Schema": schema}, "served": true, "storage": true, "subresources": kind.subresources});
    if !kind.columns.is_null() {
        version["additionalPrinterColumns"] = kind.columns.clone();
    }
    let name = format!("{}.argoproj.io", kind.plural);
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"labels": {"app.kubernetes.io/name": name, "app.kubernetes.io/part-of": "argocd"}, "name": name},
        "spec": {
            "group": "argoproj.io", "scope": "Namespaced",
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
