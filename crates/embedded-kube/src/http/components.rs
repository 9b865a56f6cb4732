//! `componentstatuses`: the control plane components that old tools check. The list is fixed, not
//! stored.

use super::negotiate::{self, Form};
use super::selectors::Filter;
use super::{Call, json_response, list, object, table};
use crate::base::Stored;
use crate::status::Status;
use axum::body::Body;
use http::{Response, StatusCode};
use serde_json::{Value, json};
use std::sync::Arc;
use tiphys_apimachinery::Object;

const NAMES: [&str; 3] = ["controller-manager", "scheduler", "etcd-0"];

fn one(name: &str) -> Option<Arc<Stored>> {
    let value = json!({
        "kind": "ComponentStatus", "apiVersion": "v1", "metadata": {"name": name},
        "conditions": [{"type": "Healthy", "status": "True", "message": "ok"}],
    });
    Some(Arc::new(Stored::new(
        &Arc::new(Object::from_value(value).ok()?),
        0,
    )))
}

pub fn get(call: &Call<'_>) -> Result<Response<Body>, Status> {
    let found = NAMES
        .contains(&call.name())
        .then(|| one(call.name()))
        .flatten();
    let found = found.ok_or_else(|| Status::not_found("", "componentstatus", call.name()))?;
    object::respond(call, &found, StatusCode::OK)
}

pub fn all(call: &Call<'_>) -> Result<Response<Body>, Status> {
    let filter = Filter::from_query(&call.query, &call.resource, &call.query.list_problems())?;
    let items: Vec<Arc<Stored>> = NAMES
        .iter()
        .filter_map(|n| one(n))
        .filter(|one| filter.matches(one))
        .collect();
    Ok(match negotiate::form(&call.parts.headers)? {
        Form::Object | Form::GroupDiscovery => list::objects(&call.resource, &json!({}), &items),
        Form::Metadata => return Err(negotiate::wrong_number(&call.resource, true)),
        Form::MetadataList => {
            let items: Vec<Value> = items
                .iter()
                .map(|s| object::metadata_only(&call.resource, &s.object()))
                .collect();
            json_response(
                &json!({"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": {}, "items": items}),
            )
        }
        Form::Table => {
            let include = table::Include::from_query(call.query.get("includeObject"))?;
            json_response(&table::table(
                &call.resource,
                &items,
                json!({}),
                include,
                call.registry().now(),
            ))
        }
    })
}
