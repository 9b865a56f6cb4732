//! Lists: consistent, filtered by selectors, and paged if there is a limit.
//!
//! Main function: [`list`].

use super::list_body::{Item, ListBody};
use super::negotiate::{self, Form};
use super::paging::{self, PageRequest};
use super::selectors::Filter;
use super::{Call, json_response, object, table};
use crate::base::Stored;
use crate::base::stored::table_key;
use crate::catalog::Resource;
use crate::status::Status;
use axum::body::Body;
use http::Response;
use http::header::{CONTENT_TYPE, HeaderValue};
use serde_json::{Value, json};
use std::sync::Arc;

/// A page of a list.
pub struct Page {
    revision: u64,
    pub items: Vec<Arc<Stored>>,
    next: Option<String>,
    remaining: Option<usize>,
}

pub fn list(call: &Call<'_>) -> Result<Response<Body>, Status> {
    let form = negotiate::form(&call.parts.headers)?;
    let filter = Filter::from_query(&call.query, &call.resource, &call.query.list_problems())?;
    let mut page = page(call, &filter)?;
    page.items = call.registry().as_served(&call.resource, page.items)?;
    answer(call, form, &page)
}

/// A page in the requested form.
pub fn answer(call: &Call<'_>, form: Form, page: &Page) -> Result<Response<Body>, Status> {
    let beta = negotiate::is_beta(&call.parts.headers);
    let mut meta = json!({"resourceVersion": page.revision.to_string()});
    if let Some(token) = &page.next {
        meta["continue"] = token.as_str().into();
    }
    if call.resource.custom.is_some() && matches!(form, Form::Object) && page.next.is_none() {
        // Lists without a Go type include the empty field.
        meta["continue"] = "".into();
    }
    if let Some(remaining) = page.remaining {
        meta["remainingItemCount"] = remaining.into();
    }
    match form {
        Form::Object | Form::GroupDiscovery => Ok(objects(&call.resource, &meta, &page.items)),
        Form::Metadata => Err(negotiate::wrong_number(&call.resource, true)),
        Form::MetadataList => {
            let items: Vec<Value> = page
                .items
                .iter()
                .map(|s| object::metadata_only(&call.resource, &s.object()))
                .collect();
            let list = json!({"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": meta, "items": none_is_null(items)});
            Ok(json_response(&negotiate::in_version(beta, list)))
        }
        Form::Table => {
            let include = table::Include::from_query(call.query.get("includeObject"))?;
            let table = table::table(
                &call.resource,
                &page.items,
                meta,
                include,
                call.registry().now(),
            );
            Ok(json_response(&negotiate::in_version(beta, table)))
        }
    }
}

/// Go's nil slices, which are written as null.
fn none_is_null(items: Vec<Value>) -> Value {
    if items.is_empty() {
        Value::Null
    } else {
        items.into()
    }
}

pub fn objects(resource: &Resource, meta: &Value, items: &[Arc<Stored>]) -> Response<Body> {
    let mut meta = meta.clone();
    if resource.custom.is_some() && meta.get("continue").is_none() {
        // Lists without a Go type always include it.
        meta["continue"] = "".into();
    }
    let head = format!(
        "{{\"kind\":\"{}\",\"apiVersion\":\"{}\",\"metadata\":{meta},\"items\":[",
        resource.list_kind,
        resource.api_version()
    );
    let items = items
        .iter()
        .map(|item| Item::new(object::bytes(resource, item), resource.custom.is_none()))
        .collect();
    let mut response = Response::new(Body::new(ListBody::new(head, items)));
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

pub fn page(call: &Call<'_>, filter: &Filter) -> Result<Page, Status> {
    let namespace = call.target.namespace.as_deref();
    let wanted = PageRequest::of(call)?;
    // A single object is never paged, so it is returned as of an older revision only for `Exact`.
    let as_it_was = call.query.get("resourceVersionMatch") == Some("Exact");
    let named = filter
        .name()
        .filter(|_| namespace.is_some() || !call.resource.namespaced);
    let (revision, all) = match named {
        Some(name) if !as_it_was => (call.registry().revision(), one(call, name)),
        _ => match wanted.revision {
            Some(revision) => {
                let mut all = call
                    .registry()
                    .list_stored_at(&call.resource, namespace, revision)
                    .map_err(|_| wanted.too_old())?;
                all.retain(|stored| named.is_none_or(|name| stored.meta.name == name));
                (revision, all)
            }
            None => call.registry().list_stored(&call.resource, namespace),
        },
    };
    let first = all.partition_point(|s| key(s, namespace) < wanted.start);
    let limit = wanted.limit;
    let mut items = Vec::new();
    let mut position = first;
    while position < all.len() && (limit == 0 || items.len() < limit) {
        if filter.matches(&all[position]) {
            items.push(all[position].clone());
        }
        position += 1;
    }
    // The remaining objects are not matched against the filter.
    let more = limit > 0 && position < all.len();
    let next = more.then(|| {
        paging::write_token(
            revision.cast_signed(),
            &format!("{}\0", key(&all[position - 1], namespace)),
        )
    });
    let remaining = (more && filter.is_everything()).then(|| all.len() - position);
    Ok(Page {
        revision,
        items,
        next,
        remaining,
    })
}

fn one(call: &Call<'_>, name: &str) -> Vec<Arc<Stored>> {
    call.registry()
        .get_stored(&call.resource, &call.namespace, name)
        .into_iter()
        .collect()
}

/// The key of an object within the listed collection.
fn key(stored: &Stored, namespace: Option<&str>) -> String {
    if namespace.is_some() {
        stored.meta.name.clone()
    } else {
        table_key(&stored.meta.namespace, &stored.meta.name)
    }
}
