//! `cargo xtask codegen --from DIR [--structs FILE]`: writes the schema data of crates/apimachinery
//! from the documents of a real API server.
//!
//! DIR contains `openapi-v2-<version>.json`, `discovery-api.json` and `discovery-apis.json`
//! (aggregated discovery, v2). Only facts are taken: names, types, merge keys; no descriptions. The
//! formats are described in schema/builtin.rs and schema/discovery.rs.
//!
//! FILE is client-go's applyconfigurations/internal/internal.go of the same version, the only
//! source for which fields are plain structs (`default: {}`). Without it they are taken from the
//! existing file.

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value};
use std::{
    collections::BTreeSet,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

/// Defaults of list-map keys, which OpenAPI v2 does not contain: structured merge uses them to look
/// up an element.
const KEY_DEFAULTS: &[(&str, &str, &str)] = &[
    ("io.k8s.api.core.v1.ContainerPort", "protocol", "\"TCP\""),
    ("io.k8s.api.core.v1.LocalObjectReference", "name", "\"\""),
    ("io.k8s.api.core.v1.ServicePort", "protocol", "\"TCP\""),
];

/// Required lists and maps that the API server's Go structs omit when empty (`omitempty`), which no
/// document says.
const LEFT_OUT: &[(&str, &str)] = &[
    (
        "io.k8s.api.admissionregistration.v1.ValidatingAdmissionPolicyBindingSpec",
        "validationActions",
    ),
    ("io.k8s.api.networking.v1.IPAddressSpec", "parentRef"),
    ("io.k8s.api.resource.v1.CounterSet", "counters"),
    (
        "io.k8s.api.resource.v1.DeviceCounterConsumption",
        "counters",
    ),
];

pub fn run(args: &[String]) -> Result<()> {
    let (from, structs) = match args {
        [from, dir] if from == "--from" => (PathBuf::from(dir), None),
        [from, dir, structs, file] if from == "--from" && structs == "--structs" => {
            (PathBuf::from(dir), Some(PathBuf::from(file)))
        }
        _ => bail!(
            "usage: cargo xtask codegen --from DIR [--structs FILE]   (DIR has openapi-v2-<version>.json and the two discovery files)"
        ),
    };
    let (version, openapi) = find_openapi(&from)?;
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .context("xtask lies in the workspace")?;
    let schema_dir = root.join("crates/apimachinery/src/schema");
    let declared = fs::read_to_string(schema_dir.join("discovery.rs"))?;
    if !declared.contains(&format!("KUBERNETES_VERSION: &str = \"{version}\"")) {
        bail!(
            "set KUBERNETES_VERSION in {} to \"{version}\" first",
            schema_dir.join("discovery.rs").display()
        );
    }
    let data = schema_dir.join("data");
    let structs = match structs {
        Some(file) => structs_in_client_go(
            &fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?,
        ),
        None => {
            structs_in_data(&fs::read_to_string(data.join("definitions.txt")).unwrap_or_default())
        }
    };
    let definitions = definitions(&read_json(&openapi)?, &version, &structs)?;
    let mut resources = format!("# Kubernetes {version}; written by `cargo xtask codegen`\n");
    for file in ["discovery-api.json", "discovery-apis.json"] {
        append_resources(&read_json(&from.join(file))?, &mut resources)
            .with_context(|| file.to_owned())?;
    }
    fs::create_dir_all(&data)?;
    for (name, text) in [
        ("definitions.txt", definitions),
        ("resources.txt", resources),
    ] {
        println!("{}: {} bytes", data.join(name).display(), text.len());
        fs::write(data.join(name), text)?;
    }
    Ok(())
}

fn find_openapi(dir: &Path) -> Result<(String, PathBuf)> {
    for entry in fs::read_dir(dir).with_context(|| format!("reading {}", dir.display()))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if let Some(version) = name
            .strip_prefix("openapi-v2-")
            .and_then(|n| n.strip_suffix(".json"))
        {
            return Ok((version.to_owned(), dir.join(&name)));
        }
    }
    bail!("{} has no openapi-v2-<version>.json", dir.display())
}

/// The definition and field of every plain struct.
type Structs = BTreeSet<(String, String)>;

/// Parses the YAML in the Go file line by line; it is generated, so its indentation does not vary.
fn structs_in_client_go(text: &str) -> Structs {
    let (mut definition, mut field) = (String::new(), String::new());
    let mut structs = Structs::new();
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("- name: ") {
            definition = short_name(name);
        } else if let Some(name) = line.strip_prefix("    - name: ") {
            field = name.to_owned();
        } else if line == "      default: {}" {
            structs.insert((definition.clone(), field.clone()));
        }
    }
    structs
}

fn structs_in_data(text: &str) -> Structs {
    let mut definition = "";
    let mut structs = Structs::new();
    for line in text.lines() {
        let mut columns = line.split('\t');
        let name = columns.next().unwrap_or("");
        if let Some(name) = name.strip_prefix('=') {
            definition = name;
        } else if columns.any(|c| c == "z") {
            structs.insert((definition.to_owned(), name.to_owned()));
        }
    }
    structs
}

fn read_json(path: &Path) -> Result<Value> {
    let bytes = fs::read(path).with_context(|| format!("reading {}", path.display()))?;
    serde_json::from_slice(&bytes).with_context(|| format!("parsing {}", path.display()))
}

/// Go structs without fields, which the document does not distinguish from a map.
const EMPTY: &[&str] =
    &["io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceSubresourceStatus"];

/// Any JSON, which structured merge treats as atomic although the document does not say so.
const RAW: &str = "io.k8s.apimachinery.pkg.runtime.RawExtension";

fn definitions(document: &Value, version: &str, structs: &Structs) -> Result<String> {
    let definitions = document
        .get("definitions")
        .and_then(Value::as_object)
        .context("no `definitions`")?;
    let mut out = format!("# Kubernetes {version}; written by `cargo xtask codegen`\n");
    for (name, schema) in definitions {
        let map = schema.as_object().context("a definition is a map")?;
        let properties = map.get("properties").and_then(Value::as_object);
        let ty = match properties {
            Some(_) => "o".to_owned(),
            None if EMPTY.contains(&name.as_str()) => "o".to_owned(),
            None => type_code(name, map)?,
        };
        write!(out, "={}\t{ty}", short_name(name))?;
        marks(&mut out, map)?;
        if name == RAW {
            out.push_str("\tm:atomic");
        }
        for gvk in map
            .get("x-kubernetes-group-version-kind")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            write!(
                out,
                "\tg:{}/{}/{}",
                text(gvk, "group"),
                text(gvk, "version"),
                text(gvk, "kind")
            )?;
        }
        out.push('\n');
        let required: Vec<&str> = map
            .get("required")
            .and_then(Value::as_array)
            .map(|l| l.iter().filter_map(Value::as_str).collect())
            .unwrap_or_default();
        for (field, property) in properties.into_iter().flatten() {
            let property = property.as_object().context("a property is a map")?;
            write!(
                out,
                "{field}\t{}",
                type_code(field, property).with_context(|| format!("{name}.{field}"))?
            )?;
            if required.contains(&field.as_str()) {
                out.push_str("\t*");
            }
            if structs.contains(&(short_name(name), field.clone())) {
                out.push_str("\tz");
            }
            if LEFT_OUT.contains(&(name.as_str(), field.as_str())) {
                out.push_str("\to");
            }
            marks(&mut out, property)?;
            if let Some((_, _, default)) = KEY_DEFAULTS
                .iter()
                .find(|(of, key, _)| of == name && key == field)
            {
                write!(out, "\td:{default}")?;
            }
            out.push('\n');
        }
    }
    Ok(out)
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or("")
}

fn short_name(name: &str) -> String {
    for (prefix, mark) in [
        ("io.k8s.api.", "~"),
        ("io.k8s.apimachinery.pkg.apis.meta.v1.", "^"),
    ] {
        if let Some(rest) = name.strip_prefix(prefix) {
            return format!("{mark}{rest}");
        }
    }
    name.to_owned()
}

fn type_code(name: &str, map: &Map<String, Value>) -> Result<String> {
    if let Some(reference) = map.get("$ref").and_then(Value::as_str) {
        return Ok(format!(
            "@{}",
            short_name(reference.rsplit('/').next().unwrap_or(reference))
        ));
    }
    let format = map.get("format").and_then(Value::as_str).unwrap_or("");
    let nested = |key: &str| map.get(key).and_then(Value::as_object);
    Ok(match map.get("type").and_then(Value::as_str) {
        Some("string")
            if format == "int-or-string"
                || name == "io.k8s.apimachinery.pkg.api.resource.Quantity" =>
        {
            "q".into()
        }
        Some("string") => "s".into(),
        Some("integer") => "i".into(),
        Some("number") => "n".into(),
        Some("boolean") => "b".into(),
        Some("array") => format!(
            "[{}",
            type_code("", nested("items").context("an array has items")?)?
        ),
        Some("object") => match nested("additionalProperties") {
            Some(values) => format!("{{{}", type_code("", values)?),
            None => "x".into(),
        },
        None => "x".into(),
        Some(other) => bail!("unknown type {other}"),
    })
}

/// Format and enum may belong to the elements of a list or map; there is one place for them in the
/// line.
fn innermost(map: &Map<String, Value>) -> &Map<String, Value> {
    let inner = map
        .get("items")
        .or_else(|| map.get("additionalProperties"))
        .and_then(Value::as_object);
    inner.map_or(map, innermost)
}

fn marks(out: &mut String, map: &Map<String, Value>) -> Result<()> {
    let inner = innermost(map);
    if let Some(format) = inner
        .get("format")
        .and_then(Value::as_str)
        .filter(|f| *f != "int-or-string")
    {
        write!(out, "\tf:{format}")?;
    }
    if let Some(list) = map.get("x-kubernetes-list-type").and_then(Value::as_str) {
        let keys = map
            .get("x-kubernetes-list-map-keys")
            .and_then(Value::as_array);
        let keys: Vec<&str> = keys
            .map(|k| k.iter().filter_map(Value::as_str).collect())
            .unwrap_or_default();
        write!(out, "\tl:{list}")?;
        if !keys.is_empty() {
            write!(out, ":{}", keys.join(","))?;
        }
    }
    for (mark, key) in [
        ("m", "x-kubernetes-map-type"),
        ("p", "x-kubernetes-patch-strategy"),
        ("k", "x-kubernetes-patch-merge-key"),
    ] {
        if let Some(value) = map.get(key).and_then(Value::as_str) {
            write!(out, "\t{mark}:{value}")?;
        }
    }
    if let Some(values) = inner.get("enum").and_then(Value::as_array) {
        let values: Vec<&str> = values.iter().filter_map(Value::as_str).collect();
        write!(out, "\te:{}", values.join("|"))?;
    }
    Ok(())
}

fn append_resources(document: &Value, out: &mut String) -> Result<()> {
    for group in list(document, "items") {
        let name = group
            .pointer("/metadata/name")
            .and_then(Value::as_str)
            .unwrap_or("");
        for version in list(group, "versions") {
            let version_name = text(version, "version");
            writeln!(out, ">{name}/{version_name}")?;
            for resource in list(version, "resources") {
                let scope = if text(resource, "scope") == "Namespaced" {
                    "N"
                } else {
                    "C"
                };
                writeln!(
                    out,
                    "{}\t{}\t{}\t{scope}\t{}\t{}\t{}",
                    text(resource, "resource"),
                    text(resource, "singularResource"),
                    resource
                        .pointer("/responseKind/kind")
                        .and_then(Value::as_str)
                        .context("a resource has a kind")?,
                    words(resource, "verbs"),
                    words(resource, "shortNames"),
                    words(resource, "categories"),
                )?;
                for sub in list(resource, "subresources") {
                    let kind = sub
                        .get("responseKind")
                        .context("a subresource has a kind")?;
                    // A kind without a version has the version that is being listed.
                    let of = match (text(kind, "group"), text(kind, "version")) {
                        (_, "") => String::new(),
                        (group, version) => format!("{group}/{version}/"),
                    };
                    writeln!(
                        out,
                        "+{}\t{of}{}\t{}",
                        text(sub, "subresource"),
                        text(kind, "kind"),
                        words(sub, "verbs")
                    )?;
                }
            }
        }
    }
    Ok(())
}

fn list<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    value
        .get(key)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

fn words(value: &Value, key: &str) -> String {
    list(value, key)
        .filter_map(Value::as_str)
        .collect::<Vec<_>>()
        .join(",")
}
