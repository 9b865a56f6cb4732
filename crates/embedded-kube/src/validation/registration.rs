//! APIServices: which server serves a version of a group. Main function: [`service`].

use super::rules::At;
use crate::status::Cause;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use tiphys_apimachinery::Object;
use tiphys_kube_schema::formats;

pub fn service(object: &Object, old: Option<&Object>, causes: &mut Vec<Cause>) {
    let spec = At::of(object, old, "spec");
    let (group, version) = (spec.get("group"), spec.get("version"));
    let wanted = format!("{}.{}", version.text(), group.text());
    for (field, name) in [
        ("metadata.generateName", object.generate_name()),
        ("metadata.name", object.name()),
    ] {
        if !name.is_empty() && name != wanted && formats::path_segment(name).is_empty() {
            let detail = format!("must be `spec.version+\".\"+spec.group`: {wanted:?}");
            causes.push(Cause::invalid(field, &name.into(), &detail));
        }
    }
    if group.is_empty() && version.text() != "v1" {
        causes.push(group.required("only v1 may have an empty group and it better be legacy kube"));
    }
    if !group.is_empty() {
        group.form(formats::dns_subdomain, causes);
    }
    version.form(formats::dns1035_label, causes);
    for (field, most) in [("groupPriorityMinimum", 20_000), ("versionPriority", 1_000)] {
        let priority = spec.get(field);
        let number = priority.int().unwrap_or(0);
        if !(1..=most).contains(&number) {
            causes.push(
                priority.invalid_as(number, &format!("must be positive and less than {most}")),
            );
        }
    }
    let (own, bundle, insecure) = (
        spec.get("service"),
        spec.get("caBundle"),
        spec.get("insecureSkipTLSVerify"),
    );
    if own.is_null() {
        if !bundle.is_empty() {
            let bytes = format!(
                "{} bytes",
                STANDARD
                    .decode(bundle.text())
                    .map_or(0, |bytes| bytes.len())
            );
            causes.push(bundle.invalid_as(bytes, "local APIServices may not have a caBundle"));
        }
        if insecure.is_true() {
            causes.push(insecure.invalid("local APIServices may not have insecureSkipTLSVerify"));
        }
        return;
    }
    for field in ["namespace", "name"] {
        let word = own.get(field);
        if word.is_empty() {
            causes.push(word.required(""));
        }
    }
    let port = own.get("port");
    if let Some(problem) = formats::port_number(port.int().unwrap_or(0)) {
        causes.push(port.invalid(&format!("port is not valid: {problem}")));
    }
    if insecure.is_true() && !bundle.is_empty() {
        causes.push(insecure.invalid("may not be true if caBundle is present"));
    }
}

/// Validates a status.
pub fn status(object: &Object, old: Option<&Object>, causes: &mut Vec<Cause>) {
    for condition in At::of(object, old, "status").get("conditions").items() {
        let status = condition.get("status");
        if !matches!(status.text(), "True" | "False" | "Unknown") {
            causes.push(status.not_supported(&["True", "False", "Unknown"]));
        }
    }
}
