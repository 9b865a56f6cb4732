//! Roles and their bindings.

use super::rules::{self, At};
use crate::status::Cause;
use tiphys_apimachinery::Object;
use tiphys_kube_schema::formats;

const GROUP: &str = "rbac.authorization.k8s.io";

/// Roles (`namespaced`) and cluster roles.
pub fn role(object: &Object, old: Option<&Object>, namespaced: bool, causes: &mut Vec<Cause>) {
    for rule in At::of(object, old, "rules").items() {
        if rule.get("verbs").is_empty() {
            causes.push(
                rule.get("verbs")
                    .required("verbs must contain at least one value"),
            );
        }
        let urls = rule.get("nonResourceURLs");
        let [groups, resources] = ["apiGroups", "resources"].map(|field| rule.get(field));
        if !urls.is_empty() {
            if namespaced {
                causes.push(urls.invalid("namespaced rules cannot apply to non-resource URLs"));
            }
            if ![&groups, &resources, &rule.get("resourceNames")]
                .iter()
                .all(|list| list.is_empty())
            {
                causes.push(
                    urls.invalid(
                        "rules cannot apply to both regular resources and non-resource URLs",
                    ),
                );
            }
            continue;
        }
        if groups.is_empty() {
            causes.push(groups.required("resource rules must supply at least one api group"));
        }
        if resources.is_empty() {
            causes.push(resources.required("resource rules must supply at least one resource"));
        }
    }
    let aggregation = At::of(object, old, "aggregationRule");
    if !aggregation.is_null() && !namespaced {
        let selectors = aggregation.get("clusterRoleSelectors");
        if selectors.is_empty() {
            causes.push(selectors.required(
                "at least one clusterRoleSelector required if aggregationRule is non-nil",
            ));
        }
        for selector in selectors.items() {
            let before = causes.len();
            rules::label_selector(&selector, causes);
            if causes.len() > before {
                causes
                    .push(selector.invalid_as(serde_json::Value::Null, "invalid label selector."));
            }
        }
    }
}

pub fn binding(object: &Object, old: Option<&Object>, namespaced: bool, causes: &mut Vec<Cause>) {
    let role = At::of(object, old, "roleRef");
    let (group, kind, name) = (role.get("apiGroup"), role.get("kind"), role.get("name"));
    if group.text() != GROUP {
        causes.push(group.not_supported(&[GROUP]));
    }
    let kinds: &[&str] = if namespaced {
        &["Role", "ClusterRole"]
    } else {
        &["ClusterRole"]
    };
    if !kinds.contains(&kind.text()) {
        causes.push(kind.not_supported(kinds));
    }
    match name.is_empty() {
        true => causes.push(name.required("")),
        false => name.form(formats::path_segment, causes),
    }
    for subject in At::of(object, old, "subjects").items() {
        self::subject(&subject, namespaced, causes);
    }
    if role.is_changed() {
        causes.push(role.invalid_struct("rbac/v1.RoleRef", "cannot change roleRef"));
    }
}

fn subject(subject: &At<'_>, namespaced: bool, causes: &mut Vec<Cause>) {
    let (name, group, kind) = (
        subject.get("name"),
        subject.get("apiGroup"),
        subject.get("kind"),
    );
    if name.is_empty() {
        causes.push(name.required(""));
    }
    match kind.text() {
        "ServiceAccount" => {
            if !name.is_empty() {
                name.form(formats::dns_subdomain, causes);
            }
            if !group.is_empty() {
                causes.push(group.not_supported(&[""]));
            }
            if !namespaced && subject.get("namespace").is_empty() {
                causes.push(subject.get("namespace").required(""));
            }
        }
        "User" | "Group" if group.text() != GROUP => causes.push(group.not_supported(&[GROUP])),
        "User" | "Group" => {}
        _ => causes.push(kind.not_supported(&["ServiceAccount", "User", "Group"])),
    }
}
