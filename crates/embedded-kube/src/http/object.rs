//! Responses with a single object, in the version and form that the client requests.

use super::negotiate::{self, Form};
use super::{Call, bytes_response, json_response, table};
use crate::base::Stored;
use crate::catalog::Resource;
use crate::convert;
use crate::convert::annotated;
use crate::convert::annotated::TEMPLATE_GENERATION;
use crate::registry::Registry;
use crate::status::Status;
use axum::body::Body;
use bytes::Bytes;
use http::{Response, StatusCode};
use serde_json::{Value, json};
use std::num::IntErrorKind;
use std::sync::Arc;
use tiphys_apimachinery::{Object, object::map_entry};
use tiphys_kube_schema::gotypes;

pub fn get(call: &Call<'_>) -> Result<Response<Body>, Status> {
    if call.query.flag("export") {
        return Err(Status::bad_request(
            "the export parameter, deprecated since v1.14, is no longer supported",
        ));
    }
    let asked =
        revision(call.query.get("resourceVersion").unwrap_or("0")).map_err(|status| match call
            .resource
            .table
            .as_str()
        {
            // The real server reads events from the store itself, not from a cache.
            "/events" => {
                Status::bad_request(format!("invalid resource version: {}", status.message))
            }
            _ => status,
        })?;
    let stored = call
        .registry()
        .get_stored(&call.resource, &call.namespace, call.name())?;
    check_not_ahead(call.registry(), asked)?;
    respond(call, &stored, StatusCode::OK)
}

/// Parses a revision sent by a client.
pub fn revision(text: &str) -> Result<u64, Status> {
    text.parse().map_err(|error: std::num::ParseIntError| {
        let problem = if *error.kind() == IntErrorKind::PosOverflow { "value out of range" } else { "invalid syntax" };
        let why = format!("resourceVersion: Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: {problem}");
        Status::new(500, "", why)
    })
}

/// Rejects a revision that has not been assigned yet.
pub fn check_not_ahead(registry: &Registry, asked: u64) -> Result<(), Status> {
    let current = registry.revision();
    if asked <= current {
        return Ok(());
    }
    let mut status = Status::new(
        504,
        "Timeout",
        format!("Timeout: Too large resource version: {asked}, current: {current}"),
    );
    let details = status.details.get_or_insert_default();
    details.retry_after_seconds = 1;
    let message = "Too large resource version".to_owned();
    details.causes = vec![crate::status::Cause {
        reason: "ResourceVersionTooLarge",
        message,
        field: String::new(),
    }];
    Err(status)
}

/// A response with an object and the given code.
pub fn respond(
    call: &Call<'_>,
    stored: &Arc<Stored>,
    code: StatusCode,
) -> Result<Response<Body>, Status> {
    let served = call
        .registry()
        .as_served(&call.resource, vec![stored.clone()])?;
    let stored = served.first().unwrap_or(stored);
    let beta = negotiate::is_beta(&call.parts.headers);
    let mut response = match call.form()? {
        Form::Object | Form::GroupDiscovery => bytes_response(bytes(&call.resource, stored)),
        Form::MetadataList => return Err(negotiate::wrong_number(&call.resource, false)),
        Form::Metadata => json_response(&negotiate::in_version(
            beta,
            metadata_only(&call.resource, &stored.object()),
        )),
        Form::Table => {
            let include = table::Include::from_query(call.query.get("includeObject"))?;
            // An object from a dry run has none.
            let meta = match stored.meta.revision {
                0 if stored.object().resource_version().is_empty() => json!({}),
                0 => json!({"resourceVersion": stored.object().resource_version()}),
                revision => json!({"resourceVersion": revision.to_string()}),
            };
            let now = call.registry().now();
            let table = table::table(
                &call.resource,
                std::slice::from_ref(stored),
                meta,
                include,
                now,
            );
            json_response(&negotiate::in_version(beta, table))
        }
    };
    *response.status_mut() = code;
    Ok(response)
}

/// The JSON of an object in the resource's version.
pub fn bytes(resource: &Resource, stored: &Stored) -> Bytes {
    if resource.is_storage() && !convert::is_older(resource) {
        return stored.bytes.clone();
    }
    let mut object = (*stored.object()).clone();
    convert::from_storage(resource, &mut object);
    serde_json::to_vec(&object)
        .expect("a JSON tree serialises")
        .into()
}

/// `PartialObjectMetadata` of an object in its storage version.
pub fn metadata_only(resource: &Resource, object: &Object) -> Value {
    let mut metadata = object.0.get("metadata").cloned().unwrap_or_default();
    // Internally this is a field; it is an annotation only in a versioned object.
    if let Some(key) = annotated::key(&resource.table)
        && let Some(annotations) = metadata
            .get_mut("annotations")
            .and_then(Value::as_object_mut)
    {
        annotations.remove(key);
        if annotations.is_empty() {
            metadata
                .as_object_mut()
                .and_then(|m| m.remove("annotations"));
        }
    }
    // A custom object keeps its metadata as applied, but metadata alone is encoded through Go's
    // struct.
    if let (true, Some(map), Some(of)) = (
        resource.custom.is_some(),
        metadata.as_object_mut(),
        gotypes::find("meta/v1.ObjectMeta"),
    ) {
        gotypes::drop_empty(map, of);
    }
    json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata})
}

/// An object with metadata only, as in the bookmark that ends the initial list of a watch.
pub fn blank(resource: &Resource, metadata: Value) -> Object {
    let mut object = Object::default();
    object
        .0
        .insert("apiVersion".into(), resource.api_version().into());
    object.0.insert("kind".into(), resource.kind.clone().into());
    object.0.insert("metadata".into(), metadata);
    if let Some(of) = resource.go_type() {
        gotypes::normalize(&mut object.0, of).expect("metadata of ours is of the right types");
    }
    // Internally this number is always present.
    if matches!(
        resource.table.as_str(),
        "apps/deployments" | "apps/replicasets" | "apps/statefulsets"
    ) {
        map_entry(&mut object.0, "spec").insert("replicas".into(), 0.into());
    }
    if resource.table == "apps/daemonsets" {
        object.set_annotation(TEMPLATE_GENERATION, "0");
    }
    object
}
