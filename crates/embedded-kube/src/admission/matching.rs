//! Decides whether a policy, binding or webhook matches a request, by its rules and its namespace
//! and object selectors.
//!
//! Main function: [`matches`].

use super::request::{Objects, Operation, Request};
use crate::catalog::Resource;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use tiphys_apimachinery::Object;
use tiphys_apimachinery::selector::LabelSelector;

fn list<'v>(value: &'v Value, field: &str) -> &'v [Value] {
    value[field].as_array().map_or(&[], Vec::as_slice)
}

/// The resource that a rule matches; none if the request does not match. `rules` is the name of the
/// field, which differs between policies and webhooks.
pub fn matches(
    request: &Request<'_>,
    objects: Objects<'_>,
    criteria: &Value,
    rules: &str,
) -> Result<Option<Arc<Resource>>, String> {
    let namespace = in_namespaces(request, objects, &criteria["namespaceSelector"]);
    if namespace == Ok(false) {
        return Ok(None);
    }
    let object = has_labels(objects, &criteria["objectSelector"]);
    if object == Ok(false) {
        return Ok(None);
    }
    let equivalent = criteria["matchPolicy"] != "Exact";
    if named(request, list(criteria, "excludeResourceRules"), equivalent).is_some() {
        return Ok(None);
    }
    let rules = list(criteria, rules);
    let found = match rules {
        // A binding without rules does not restrict its policy; a webhook without rules is never
        // called.
        [] if criteria["clientConfig"].is_null() => Some(request.resource.clone()),
        rules => named(request, rules, equivalent),
    };
    // Selectors that cannot be evaluated matter only if everything else matches.
    match found {
        Some(found) => namespace.and(object).map(|_| Some(found)),
        None => Ok(None),
    }
}

/// The first resource, the request's own or another version of it, that a rule matches.
fn named(request: &Request<'_>, rules: &[Value], equivalent: bool) -> Option<Arc<Resource>> {
    let fits = |resource: &Resource| {
        let names = |rule: &Value| {
            let names = list(rule, "resourceNames");
            names.is_empty() || names.iter().any(|name| name == request.name)
        };
        rules
            .iter()
            .any(|rule| allows(request, rule, resource) && names(rule))
    };
    if fits(request.resource) {
        return Some(request.resource.clone());
    }
    if !equivalent || rules.is_empty() {
        return None;
    }
    let catalog = request.cluster.catalog();
    let others = catalog
        .order
        .iter()
        .filter(|r| r.table == request.resource.table && r.gvr() != request.resource.gvr());
    others.into_iter().find(|other| fits(other)).cloned()
}

fn allows(request: &Request<'_>, rule: &Value, resource: &Resource) -> bool {
    let any = |field: &str, wanted: &str| {
        list(rule, field)
            .iter()
            .any(|one| one == "*" || one == wanted)
    };
    let inside = !request.namespace.is_empty() && !request.is_namespace();
    let scope = match rule["scope"].as_str() {
        Some("Namespaced") => inside,
        Some("Cluster") => !inside,
        _ => true,
    };
    let resources = || {
        list(rule, "resources")
            .iter()
            .filter_map(Value::as_str)
            .any(|text| {
                let (of, part) = text.split_once('/').unwrap_or((text, ""));
                (of == "*" || of == resource.resource)
                    && (part == "*" || part == request.subresource)
            })
    };
    scope
        && any("operations", request.operation.word())
        && any("apiGroups", &resource.group)
        && any("apiVersions", &resource.version)
        && resources()
}

fn selector(value: &Value) -> Result<LabelSelector, String> {
    if value.is_null() {
        Ok(LabelSelector::everything())
    } else {
        LabelSelector::from_json(value).map_err(|e| e.to_string())
    }
}

fn in_namespaces(
    request: &Request<'_>,
    objects: Objects<'_>,
    value: &Value,
) -> Result<bool, String> {
    if request.namespace.is_empty() && !request.is_namespace() {
        return Ok(true);
    }
    let selector = selector(value)?;
    if selector.is_everything() {
        return Ok(true);
    }
    let own = request.is_namespace()
        && request.subresource.is_empty()
        && request.operation != Operation::Delete;
    let labels: BTreeMap<String, String> = match objects.new.filter(|_| own) {
        Some(new) => new.labels(),
        None => {
            let found = request
                .cluster
                .stored("/namespaces", "", request.namespace)
                .map(|stored| stored.object());
            found
                .ok_or_else(|| format!("namespaces \"{}\" not found", request.namespace))?
                .labels()
        }
    };
    Ok(selector.matches(&labels))
}

fn has_labels(objects: Objects<'_>, value: &Value) -> Result<bool, String> {
    let selector = selector(value)?;
    let selects = |object: Option<&Object>| object.is_some_and(|o| selector.matches_object(o));
    Ok(selector.is_everything() || selects(objects.new) || selects(objects.old))
}
