//! Environment variables, and the pod field selectors that they share with volumes.

use super::super::rules::{At, Check, Rule};
use super::volume::no_backsteps;
use crate::status::Cause;
use tiphys_apimachinery::quantity::Quantity;
use tiphys_kube_schema::formats::{
    config_key, dns_label, dns_subdomain, qualified_name, relaxed_env_var_name,
};

const ENV_FIELDS: [&str; 9] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];
/// What may be asked for in a field path at all.
const LABELS: [&str; 14] = [
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.serviceAccountName",
    "spec.schedulerName",
    "status.phase",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];
const RESOURCES: [&str; 6] = [
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];
const SIZES: [&str; 13] = [
    "1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei",
];

const KEY_OF: &[Rule] = &[
    Rule::By(|at, causes| at.get("name").form(dns_subdomain, causes)),
    Rule::Field("key", &[Check::Required(""), Check::Form(config_key)]),
];
const FILE_KEY: &[Rule] = &[
    Rule::Field(
        "key",
        &[Check::Required(""), Check::Form(relaxed_env_var_name)],
    ),
    Rule::Field("volumeName", &[Check::Required(""), Check::Form(dns_label)]),
    Rule::Field("path", &[Check::Required("")]),
    Rule::By(|at, causes| no_backsteps(&at.get("path"), causes)),
];

/// One source of a variable's value.
const SOURCES: &[(&str, &[Rule])] = &[
    (
        "fieldRef",
        &[Rule::By(|at, causes| {
            field_selector(at, &ENV_FIELDS, causes)
        })],
    ),
    (
        "resourceFieldRef",
        &[Rule::By(|at, causes| resource_selector(at, false, causes))],
    ),
    ("configMapKeyRef", KEY_OF),
    ("secretKeyRef", KEY_OF),
    ("fileKeyRef", FILE_KEY),
];

/// `env` of a container.
pub fn variables(all: &At<'_>, causes: &mut Vec<Cause>) {
    for variable in all.items() {
        variable.get("name").check(
            &[Check::Required(""), Check::Form(relaxed_env_var_name)],
            causes,
        );
        let from = variable.get("valueFrom");
        if from.is_null() {
            continue;
        }
        let mut found = 0;
        for (field, rules) in SOURCES {
            let part = from.get(field);
            if !part.is_null() {
                found += 1;
                part.walk(rules, causes);
            }
        }
        let problem = match found {
            0 => {
                "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
            }
            _ if !variable.get("value").is_empty() => {
                "may not be specified when `value` is not empty"
            }
            1 => continue,
            _ => "may not have more than one field specified at a time",
        };
        causes.push(from.invalid_as("", problem));
    }
}

/// `envFrom` of a container. Some causes name the whole list.
pub fn from(all: &At<'_>, causes: &mut Vec<Cause>) {
    for source in all.items() {
        source
            .get("prefix")
            .check(&[Check::Form(relaxed_env_var_name)], causes);
        let given: Vec<At<'_>> = ["configMapRef", "secretRef"]
            .iter()
            .map(|f| source.get(f))
            .filter(|at| !at.is_null())
            .collect();
        for part in &given {
            let name = part.get("name");
            if name.is_empty() {
                causes.push(name.required(""));
            } else {
                let prefix = masked(name.text());
                causes.extend(dns_subdomain(&prefix).iter().map(|p| name.invalid(p)));
            }
        }
        match given.len() {
            0 => causes
                .push(all.invalid_as("", "must specify one of: `configMapRef` or `secretRef`")),
            1 => {}
            _ => causes
                .push(all.invalid_as("", "may not have more than one field specified at a time")),
        }
    }
}

/// A name prefix may end with a dash.
fn masked(name: &str) -> String {
    match name.strip_suffix('-') {
        Some(stem) if !stem.is_empty() => format!("{stem}a"),
        _ => name.to_owned(),
    }
}

/// `metadata.labels['x']` as path and subscript.
fn subscripted(path: &str) -> Option<(&str, &str)> {
    let (path, rest) = path.strip_suffix("']")?.split_once("['")?;
    (!path.is_empty()).then_some((path, rest))
}

/// A `fieldRef`.
pub fn field_selector(at: &At<'_>, allowed: &[&str], causes: &mut Vec<Cause>) {
    let (version, field) = (at.get("apiVersion"), at.get("fieldPath"));
    if version.is_empty() || field.is_empty() {
        let missing = if version.is_empty() { version } else { field };
        causes.push(missing.required(""));
        return;
    }
    let convert = |why: String| field.invalid(&format!("error converting fieldPath: {why}"));
    if version.text() != "v1" {
        causes.push(convert(format!(
            "unsupported pod version: {}",
            version.text()
        )));
        return;
    }
    if let Some((path, subscript)) = subscripted(field.text()) {
        let key = match path {
            "metadata.annotations" => subscript.to_lowercase(),
            "metadata.labels" => subscript.to_owned(),
            _ => {
                causes.push(convert(format!(
                    "field label does not support subscript: {}",
                    field.text()
                )));
                return;
            }
        };
        causes.extend(
            qualified_name(&key)
                .iter()
                .map(|p| at.invalid_as(key.as_str(), p)),
        );
        return;
    }
    let path = if field.text() == "spec.host" {
        "spec.nodeName"
    } else {
        field.text()
    };
    if !LABELS.contains(&path) {
        causes.push(convert(format!(
            "field label not supported: {}",
            field.text()
        )));
    } else if !allowed.contains(&path) {
        causes.push(Cause::not_supported(&field.path, &path.into(), allowed));
    }
}

/// A `resourceFieldRef`; in a volume it must name its container.
pub fn resource_selector(at: &At<'_>, volume: bool, causes: &mut Vec<Cause>) {
    let (container, resource) = (at.get("containerName"), at.get("resource"));
    let name = resource.text();
    let huge = name.starts_with("requests.hugepages-") || name.starts_with("limits.hugepages-");
    if volume && container.is_empty() {
        causes.push(container.required(""));
    } else if resource.is_empty() {
        causes.push(resource.required(""));
    } else if !RESOURCES.contains(&name) && !huge {
        causes.push(resource.not_supported(&RESOURCES));
    }
    let divisor = at.get("divisor");
    let Ok(amount) = divisor.text().parse::<Quantity>() else {
        return;
    };
    if amount.is_zero() {
        return;
    }
    let (allowed, listed, of): (&[&str], String, &str) = match name.rsplit('.').next().unwrap_or("")
    {
        "cpu" if RESOURCES.contains(&name) => (&["1m", "1"], "1m and 1".into(), "cpu"),
        "memory" if RESOURCES.contains(&name) => (&SIZES, SIZES.join(", "), "memory"),
        "ephemeral-storage" if RESOURCES.contains(&name) => {
            (&SIZES, SIZES.join(", "), "local ephemeral storage")
        }
        _ if huge => (&SIZES, SIZES.join(", "), "hugepages"),
        _ => return,
    };
    if !allowed.contains(&amount.to_string().as_str()) {
        causes.push(divisor.invalid_as(
            name,
            &format!("only divisor's values {listed} are supported with the {of} resource"),
        ));
    }
}
