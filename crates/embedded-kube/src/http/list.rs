//! Lists: consistent, narrowed by selectors, in pieces when a limit is given.
//!
//! Main function: [`list`].

use super::negotiate::{self, Form};
use super::paging::{self, Wanted};
use super::selectors::Filter;
use super::{Call, bytes_response, json_response, object, table};
use crate::catalog::Resource;
use crate::registry::{Stored, stored::table_key};
use crate::status::Status;
use axum::body::Body;
use bytes::{BufMut, BytesMut};
use http::Response;
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

/// A page in the form that is wanted.
pub fn answer(call: &Call<'_>, form: Form, page: &Page) -> Result<Response<Body>, Status> {
    let beta = negotiate::is_beta(&call.parts.headers);
    let mut meta = json!({"resourceVersion": page.revision.to_string()});
    if let Some(token) = &page.next {
        meta["continue"] = token.as_str().into();
    }
    if call.resource.custom.is_some() && matches!(form, Form::Object) && page.next.is_none() {
        // Lists without a Go type say so.
        meta["continue"] = "".into();
    }
    if let Some(remaining) = page.remaining {
        meta["remainingItemCount"] = remaining.into();
    }
    match form {
        Form::Object | Form::GroupDiscovery => Ok(objects(&call.resource, &meta, &page.items)),
        Form::Metadata => Err(negotiate::wrong_number(&call.resource, true)),
        Form::MetadataList => {
            let items: Vec<Value> = page.items.iter().map(|s| object::metadata_only(&call.resource, &s.object())).collect();
            let list = json!({"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": meta, "items": none_is_null(items)});
            Ok(json_response(&negotiate::in_version(beta, list)))
        }
        Form::Table => {
            let include = table::Include::from_query(call.query.get("includeObject"))?;
            let table = table::table(&call.resource, &page.items, meta, include, call.registry().now());
            Ok(json_response(&negotiate::in_version(beta, table)))
        }
    }
}

/// Go's empty lists that were never made.
fn none_is_null(items: Vec<Value>) -> Value {
    if items.is_empty() { Value::Null } else { items.into() }
}

pub fn objects(resource: &Resource, meta: &Value, items: &[Arc<Stored>]) -> Response<Body> {
    let mut meta = meta.clone();
    if resource.custom.is_some() && meta.get("continue").is_none() {
        // Lists without a Go type always say it.
        meta["continue"] = "".into();
    }
    let size: usize = items.iter().map(|s| s.bytes.len() + 1).sum();
    let mut out = BytesMut::with_capacity(size + 200);
    let head =
        format!("{{\"kind\":\"{}\",\"apiVersion\":\"{}\",\"metadata\":{meta},\"items\":[", resource.list_kind, resource.api_version());
    out.put_slice(head.as_bytes());
    for (i, item) in items.iter().enumerate() {
        if i > 0 {
            out.put_u8(b',');
        }
        let bytes = object::bytes(resource, item);
        if resource.custom.is_some() {
            out.put_slice(&bytes);
        } else {
            untyped(&bytes, &mut out);
        }
    }
    out.put_slice(b"]}\n");
    bytes_response(out.freeze())
}

/// An object without its type, which the items of a typed list do not repeat.
fn untyped(bytes: &[u8], out: &mut BytesMut) {
    let (mut depth, mut start, mut first) = (0_u32, 1, true);
    let mut at = 0;
    out.put_u8(b'{');
    while at < bytes.len() {
        match bytes[at] {
            b'"' => at = end_of_string(bytes, at + 1),
            b'{' | b'[' => depth += 1,
            end @ (b'}' | b']' | b',') => {
                if depth == 1 {
                    let member = &bytes[start..at];
                    start = at + 1;
                    if !member.is_empty() && !member.starts_with(b"\"apiVersion\":") && !member.starts_with(b"\"kind\":") {
                        if !std::mem::take(&mut first) {
                            out.put_u8(b',');
                        }
                        out.put_slice(member);
                    }
                }
                depth -= u32::from(end != b',');
            }
            _ => {}
        }
        at += 1;
    }
    out.put_u8(b'}');
}

/// Where the string ends whose text begins at `at`.
fn end_of_string(bytes: &[u8], mut at: usize) -> usize {
    while let Some(found) = bytes.get(at..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
        if bytes[at + found] == b'"' {
            return at + found;
        }
        at += found + 2;
    }
    bytes.len()
}

pub fn page(call: &Call<'_>, filter: &Filter) -> Result<Page, Status> {
    let namespace = call.target.namespace.as_deref();
    let wanted = Wanted::of(call)?;
    let (revision, all) = match (filter.name(), namespace) {
        (Some(name), Some(_)) => (call.registry().revision(), one(call, name)),
        (Some(name), None) if !call.resource.namespaced => (call.registry().revision(), one(call, name)),
        _ => match wanted.revision {
            Some(revision) => {
                (revision, call.registry().list_stored_at(&call.resource, namespace, revision).map_err(|_| wanted.too_old())?)
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
    // Whether what is left would match is not looked at.
    let more = limit > 0 && position < all.len();
    let next = more.then(|| paging::write_token(revision.cast_signed(), &format!("{}\0", key(&all[position - 1], namespace))));
    let remaining = (more && filter.is_everything()).then(|| all.len() - position);
    Ok(Page { revision, items, next, remaining })
}

fn one(call: &Call<'_>, name: &str) -> Vec<Arc<Stored>> {
    call.registry().get_stored(&call.resource, &call.namespace, name).into_iter().collect()
}

/// The key of an object in what is listed.
fn key(stored: &Stored, namespace: Option<&str>) -> String {
    if namespace.is_some() { stored.meta.name.clone() } else { table_key(&stored.meta.namespace, &stored.meta.name) }
}

#[cfg(test)]
mod tests {
    use super::untyped;
    use bytes::BytesMut;

    #[test]
    fn only_the_type_at_the_top_is_left_out() {
        for (typed, wanted) in [
            (
                r#"{"apiVersion":"v1","data":{"kind":"a,b","x":"\"}"},"kind":"ConfigMap","metadata":{"apiVersion":[1,{}]}}"#,
                r#"{"data":{"kind":"a,b","x":"\"}"},"metadata":{"apiVersion":[1,{}]}}"#,
            ),
            (r#"{"apiVersion":"v1","kind":"A"}"#, "{}"),
            (r#"{"action":"x","apiVersion":"v1","kind":"A","z":1}"#, r#"{"action":"x","z":1}"#),
        ] {
            let mut out = BytesMut::new();
            untyped(typed.as_bytes(), &mut out);
            assert_eq!(out, wanted.as_bytes());
        }
    }
}
