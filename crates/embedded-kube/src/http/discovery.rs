//! Discovery: the groups, versions and resources that are served, in the legacy and the aggregated
//! form.

use super::negotiate::{self, Form};
use super::{Shared, json_response};
use crate::catalog::{CRD_TABLE, Catalog, Resource, crd::version_priority};
use crate::status::Status;
use axum::body::Body;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{HeaderMap, Response};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::sync::Arc;
use tiphys_apimachinery::gvk::join_api_version;

/// `/`: the list of paths.
pub fn index(shared: &Shared) -> Response<Body> {
    let catalog = shared.registry.catalog();
    let mut paths = vec!["/api".to_owned(), "/api/v1".to_owned(), "/apis".to_owned()];
    for (group, versions) in grouped(&catalog)
        .iter()
        .filter(|(group, _)| !group.is_empty())
    {
        paths.push(format!("/apis/{group}"));
        paths.extend(
            versions
                .iter()
                .map(|(version, _)| format!("/apis/{group}/{version}")),
        );
    }
    paths.extend(
        [
            "/healthz",
            "/livez",
            "/openapi/v2",
            "/openapi/v3",
            "/readyz",
            "/version",
        ]
        .map(str::to_owned),
    );
    json_response(&json!({"paths": paths}))
}

type Versions = Vec<(String, Vec<Arc<Resource>>)>;

/// The groups in order, each with its versions, the preferred one first.
pub fn grouped(catalog: &Catalog) -> Vec<(String, Versions)> {
    let mut groups: Vec<(String, Versions)> = Vec::new();
    for resource in &catalog.order {
        let at = groups
            .iter()
            .position(|(group, _)| *group == resource.group)
            .unwrap_or_else(|| {
                groups.push((resource.group.clone(), Vec::new()));
                groups.len() - 1
            });
        let versions = &mut groups[at].1;
        match versions
            .iter_mut()
            .find(|(version, _)| *version == resource.version)
        {
            Some((_, list)) => list.push(resource.clone()),
            None => versions.push((resource.version.clone(), vec![resource.clone()])),
        }
    }
    for (_, versions) in &mut groups {
        versions.sort_by_key(|(version, _)| std::cmp::Reverse(version_priority(version)));
    }
    groups
}

pub fn core_versions(shared: &Shared, headers: &HeaderMap) -> Result<Response<Body>, Status> {
    if negotiate::index_form(headers)? == Form::GroupDiscovery {
        return Ok(aggregated(shared, |group| group.is_empty()));
    }
    Ok(json_response(&json!({
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": ""}],
    })))
}

pub fn groups(shared: &Shared, headers: &HeaderMap) -> Result<Response<Body>, Status> {
    if negotiate::index_form(headers)? == Form::GroupDiscovery {
        return Ok(aggregated(shared, |group| !group.is_empty()));
    }
    let catalog = shared.registry.catalog();
    let all = grouped(&catalog);
    let list: Vec<Value> = all
        .iter()
        .filter(|(group, _)| !group.is_empty())
        .map(|(group, v)| api_group(group, v))
        .collect();
    Ok(json_response(
        &json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": list}),
    ))
}

fn api_group(group: &str, versions: &Versions) -> Value {
    let one = |version: &String| json!({"groupVersion": join_api_version(group, version), "version": version});
    let list: Vec<Value> = versions.iter().map(|(version, _)| one(version)).collect();
    json!({"name": group, "preferredVersion": list.first(), "versions": list})
}

pub fn group(shared: &Shared, name: &str) -> Result<Response<Body>, Status> {
    let catalog = shared.registry.catalog();
    let found = grouped(&catalog)
        .into_iter()
        .find(|(group, _)| group == name)
        .ok_or_else(Status::no_such_path)?;
    let mut value = api_group(name, &found.1);
    value["kind"] = "APIGroup".into();
    value["apiVersion"] = "v1".into();
    Ok(json_response(&value))
}

/// `APIResourceList` of a group and version.
pub fn resources(shared: &Shared, group: &str, version: &str) -> Result<Response<Body>, Status> {
    let catalog = shared.registry.catalog();
    let mut list = Vec::new();
    for resource in catalog
        .order
        .iter()
        .filter(|r| r.group == group && r.version == version)
    {
        let mut entry = json!({
            "name": resource.resource, "singularName": resource.singular, "namespaced": resource.namespaced, "kind": resource.kind,
            "verbs": resource.told_verbs(),
        });
        if !resource.short_names.is_empty() {
            entry["shortNames"] = resource.short_names.clone().into();
        }
        if !resource.categories.is_empty() {
            entry["categories"] = resource.categories.clone().into();
        }
        if resource.allows("get") && resource.allows("create") {
            entry["storageVersionHash"] = storage_version_hash(resource).into();
        }
        list.push(entry);
        for sub in &resource.subresources {
            let mut entry = json!({
                "name": format!("{}/{}", resource.resource, sub.name), "singularName": "", "namespaced": resource.namespaced,
                "kind": sub.kind, "verbs": sub.verbs,
            });
            if (sub.group.as_str(), sub.version.as_str()) != (group, version) {
                entry["group"] = sub.group.clone().into();
                entry["version"] = sub.version.clone().into();
            }
            list.push(entry);
        }
    }
    if list.is_empty() {
        return Err(unknown(&catalog, group));
    }
    let group_version = join_api_version(group, version);
    let mut answer =
        json!({"kind": "APIResourceList", "groupVersion": group_version, "resources": list});
    // The core group is described in the format it had originally.
    if !group.is_empty() {
        answer["apiVersion"] = "v1".into();
    }
    Ok(json_response(&answer))
}

/// Lets clients detect a change of the storage version.
fn storage_version_hash(resource: &Resource) -> String {
    // Definitions are still hashed with their first storage version.
    let version = if resource.table == CRD_TABLE {
        "v1beta1"
    } else {
        &resource.storage_version
    };
    let kind = format!("{}/{version}/{}", resource.storage_group, resource.kind);
    STANDARD.encode(&Sha256::digest(kind.as_bytes())[..8])
}

/// The response to an unknown path inside a group: built-in groups answer in their own way.
pub fn unknown(catalog: &Catalog, group: &str) -> Status {
    if is_always_there(catalog, group) {
        Status::not_served()
    } else {
        Status::no_such_path()
    }
}

/// Whether the group is one of the server's own.
pub fn is_always_there(catalog: &Catalog, group: &str) -> bool {
    catalog
        .order
        .iter()
        .any(|r| r.group == group && r.custom.is_none())
}

fn aggregated(shared: &Shared, wanted: impl Fn(&str) -> bool) -> Response<Body> {
    let catalog = shared.registry.catalog();
    let mut items = Vec::new();
    for (group, versions) in grouped(&catalog)
        .into_iter()
        .filter(|(group, _)| wanted(group))
    {
        let versions: Vec<Value> = versions
            .iter()
            .map(|(version, list)| {
                let resources: Vec<Value> = list.iter().map(|r| aggregated_resource(r)).collect();
                json!({"version": version, "resources": resources, "freshness": "Current"})
            })
            .collect();
        let metadata = if group.is_empty() {
            json!({})
        } else {
            json!({"name": group})
        };
        items.push(json!({"metadata": metadata, "versions": versions}));
    }
    let mut response = json_response(&json!({
        "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items
    }));
    // Clients distinguish the two forms by the media type.
    let media = HeaderValue::from_static(
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
    );
    response.headers_mut().insert(CONTENT_TYPE, media);
    response
}

/// For built-in kinds, the group and version are omitted if they are those of the list.
fn response_kind(resource: &Resource, group: &str, version: &str, kind: &str) -> Value {
    let repeats = resource.custom.is_none()
        && (group, version) == (resource.group.as_str(), resource.version.as_str());
    let (group, version) = if repeats { ("", "") } else { (group, version) };
    json!({"group": group, "version": version, "kind": kind})
}

fn aggregated_resource(resource: &Resource) -> Value {
    let mut entry = json!({
        "resource": resource.resource,
        "responseKind": response_kind(resource, &resource.group, &resource.version, &resource.kind),
        "scope": if resource.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": resource.singular,
        "verbs": resource.told_verbs(),
    });
    if !resource.short_names.is_empty() {
        entry["shortNames"] = resource.short_names.clone().into();
    }
    if !resource.categories.is_empty() {
        entry["categories"] = resource.categories.clone().into();
    }
    if !resource.subresources.is_empty() {
        let subs = resource.subresources.iter().map(|sub| {
            json!({
                "subresource": sub.name,
                "responseKind": response_kind(resource, &sub.group, &sub.version, &sub.kind),
                "verbs": sub.verbs,
            })
        });
        entry["subresources"] = subs.collect::<Vec<_>>().into();
    }
    entry
}
