//! Names, labels, annotations and finalizers.

use crate::catalog::Resource;
use crate::status::Cause;
use serde_json::Value;
use tiphys_apimachinery::Object;
use tiphys_apimachinery::selector::{is_label_value, is_qualified_name};

const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an \
                     alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and \
                         end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
                         '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end \
                     with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is \
                     '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const NAME: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric \
                    character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
                    '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const MAX_ANNOTATIONS: usize = 256 * 1024;

/// An RFC 1123 label without the length limit.
pub fn is_label(name: &str) -> bool {
    let alphanumeric = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let bytes = name.as_bytes();
    bytes.iter().all(|b| alphanumeric(b) || *b == b'-') && bytes.first().is_some_and(alphanumeric) && bytes.last().is_some_and(alphanumeric)
}

/// An RFC 1123 subdomain without the length limit.
fn is_subdomain(name: &str) -> bool {
    !name.is_empty() && name.split('.').all(is_label)
}

fn name_problems(resource: &Resource, name: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let limit = |max: usize, problems: &mut Vec<String>| {
        if name.len() > max {
            problems.push(format!("must be no more than {max} characters"));
        }
    };
    match resource.table.as_str() {
        table if table.starts_with("rbac.authorization.k8s.io/") => {
            if name == "." || name == ".." {
                problems.push(format!("may not be '{name}'"));
            }
            problems.extend(['/', '%'].iter().filter(|c| name.contains(**c)).map(|c| format!("may not contain '{c}'")));
        }
        "/namespaces" | "/services" => {
            limit(63, &mut problems);
            if !is_label(name) {
                problems.push(LABEL.to_owned());
            }
        }
        _ => {
            limit(253, &mut problems);
            if !is_subdomain(name) {
                problems.push(SUBDOMAIN.to_owned());
            }
        }
    }
    problems
}

pub fn check(resource: &Resource, object: &Object) -> Vec<Cause> {
    let mut causes = Vec::new();
    let name = object.name();
    for problem in name_problems(resource, name) {
        causes.push(Cause::invalid("metadata.name", &name.into(), &problem));
    }
    check_map(object, "labels", &mut causes);
    check_map(object, "annotations", &mut causes);
    labels(object.metadata("labels"), "metadata.labels", &mut causes);
    if let Some(Value::Object(annotations)) = object.metadata("annotations") {
        let size: usize = annotations.iter().map(|(k, v)| k.len() + v.as_str().map_or(0, str::len)).sum();
        for key in annotations.keys().filter(|k| !is_qualified_name(&k.to_lowercase())) {
            causes.push(Cause::invalid("metadata.annotations", &key.as_str().into(), NAME));
        }
        if size > MAX_ANNOTATIONS {
            let message = format!("Too long: may not be more than {MAX_ANNOTATIONS} bytes");
            causes.push(Cause { reason: "FieldValueTooLong", message, field: "metadata.annotations".into() });
        }
    }
    for finalizer in object.finalizers() {
        if !is_qualified_name(&finalizer) {
            causes.push(Cause::invalid("metadata.finalizers", &finalizer.into(), NAME));
        }
    }
    owners(object, &mut causes);
    causes
}

/// Custom resources come here without having been read into typed metadata.
fn check_map(object: &Object, field: &str, causes: &mut Vec<Cause>) {
    let fits = match object.metadata(field) {
        None | Some(Value::Null) => true,
        Some(Value::Object(map)) => map.values().all(|v| v.is_string()),
        Some(_) => false,
    };
    if !fits {
        let value = object.metadata(field).cloned().unwrap_or(Value::Null);
        causes.push(Cause::type_invalid(&format!("metadata.{field}"), &value, "must be a map of strings to strings"));
    }
}

/// Keys and values of labels.
pub fn labels(labels: Option<&Value>, field: &str, causes: &mut Vec<Cause>) {
    for (key, value) in labels.and_then(Value::as_object).into_iter().flatten() {
        if !is_qualified_name(key) {
            causes.push(Cause::invalid(field, &key.as_str().into(), NAME));
        }
        let text = value.as_str().unwrap_or("");
        if text.len() > 63 {
            causes.push(Cause::invalid(field, value, "must be no more than 63 characters"));
        } else if !is_label_value(text) {
            causes.push(Cause::invalid(field, value, VALUE));
        }
    }
}

fn owners(object: &Object, causes: &mut Vec<Cause>) {
    let owners = object.owner_references();
    for owner in &owners {
        for (field, value) in [("apiVersion", &owner.api_version), ("kind", &owner.kind), ("name", &owner.name), ("uid", &owner.uid)] {
            if value.is_empty() {
                let word = if field == "apiVersion" { "version" } else { field };
                causes.push(Cause::invalid(&format!("metadata.ownerReferences.{field}"), &"".into(), &format!("{word} must not be empty")));
            }
        }
    }
    if owners.iter().filter(|o| o.controller == Some(true)).count() > 1 {
        let detail = "Only one reference can have Controller set to true. Found \"true\" in references for ";
        causes.push(Cause::invalid("metadata.ownerReferences", &Value::Array(Vec::new()), detail.trim_end_matches(" in references for ")));
    }
}
