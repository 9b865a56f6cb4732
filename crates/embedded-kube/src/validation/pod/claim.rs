//! The spec of a PersistentVolumeClaim, also as a template in pods and StatefulSets. Main function:
//! [`spec`].

use super::super::rules::{At, Check, Rule, label_selector};
use crate::status::Cause;
use tiphys_apimachinery::quantity::Quantity;
use tiphys_kube_schema::formats::{dns_label, dns_subdomain};

const MODES: [&str; 4] = [
    "ReadOnlyMany",
    "ReadWriteMany",
    "ReadWriteOnce",
    "ReadWriteOncePod",
];
const SOURCE: &[Rule] = &[
    Rule::Field("name", &[Check::Required("")]),
    Rule::Field("kind", &[Check::Required("")]),
    Rule::By(source_group),
];

fn source_group(at: &At<'_>, causes: &mut Vec<Cause>) {
    let (group, kind) = (at.get("apiGroup"), at.get("kind"));
    if group.is_empty() && kind.text() != "PersistentVolumeClaim" {
        causes.push(at.invalid_as(
            kind.text(),
            "must be 'PersistentVolumeClaim' when referencing the default apiGroup",
        ));
    }
}

/// A claim that already had an API group may keep an invalid one.
fn named_a_group(before: &serde_json::Value) -> bool {
    ["dataSource", "dataSourceRef"].iter().any(|source| {
        before[*source]
            .get("apiGroup")
            .is_some_and(|group| !group.is_null())
    })
}

/// Validates the spec of a new claim.
pub fn spec(at: &At<'_>, causes: &mut Vec<Cause>) {
    let modes = at.get("accessModes");
    modes.check(
        &[Check::Required("at least 1 access mode is required")],
        causes,
    );
    label_selector(&at.get("selector"), causes);
    for mode in modes.items().iter().filter(|m| !MODES.contains(&m.text())) {
        causes.push(Cause::not_supported(&modes.path, mode.value, &MODES));
    }
    let items = modes.items();
    let known: Vec<&str> = items
        .iter()
        .map(At::text)
        .filter(|m| MODES.contains(m))
        .collect();
    if known.contains(&"ReadWriteOncePod") && known.iter().any(|m| *m != "ReadWriteOncePod") {
        causes.push(modes.forbidden("may not use ReadWriteOncePod with other access modes"));
    }
    let size = At::new(
        at.get("resources.requests.storage").value,
        format!("{}.resources[storage]", at.path),
    );
    match size.text().parse::<Quantity>() {
        _ if size.is_null() => causes.push(size.required("")),
        Ok(quantity) if quantity <= Quantity::ZERO => {
            causes.push(size.invalid("must be greater than zero"))
        }
        _ => {}
    }
    at.get("storageClassName")
        .check(&[Check::Form(dns_subdomain)], causes);
    let mode = at.get("volumeMode");
    if !mode.is_null() && !["Block", "Filesystem"].contains(&mode.text()) {
        causes.push(mode.not_supported(&["Block", "Filesystem"]));
    }
    sources(at, causes);
    at.get("volumeAttributesClassName")
        .check(&[Check::Form(dns_subdomain)], causes);
}

/// `dataSource` and `dataSourceRef` must be equal, unless only one can be set.
fn sources(at: &At<'_>, causes: &mut Vec<Cause>) {
    let (old, new) = (at.get("dataSource"), at.get("dataSourceRef"));
    let strict = !at.old.is_some_and(named_a_group);
    let check = |source: &At<'_>, causes: &mut Vec<Cause>| {
        source.walk(SOURCE, causes);
        if strict {
            source
                .get("apiGroup")
                .check(&[Check::Form(dns_subdomain)], causes);
        }
    };
    if !old.is_null() {
        check(&old, causes);
    }
    if !new.is_null() {
        check(&new, causes);
        new.get("namespace")
            .check(&[Check::Form(dns_label)], causes);
    }
    if old.is_null() || new.is_null() {
        return;
    }
    // The API server shows a field path here, which is an empty struct in JSON.
    let shown = || serde_json::json!({});
    if !new.get("namespace").is_empty() {
        causes.push(at.invalid_as(
            shown(),
            "may not be specified when dataSourceRef.namespace is specified",
        ));
    } else if ["apiGroup", "kind", "name"]
        .iter()
        .any(|f| old.get(f).value != new.get(f).value)
    {
        causes.push(at.invalid_as(shown(), "must match dataSourceRef"));
    }
}
