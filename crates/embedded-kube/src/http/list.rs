//! Lists: consistent, narrowed by selectors, in pieces when a limit is given.
//!
//! Main function: [`list`]. The pieces of one list are cut from a snapshot that is kept for a while.

use super::negotiate::{self, Form};
use super::selectors::Filter;
use super::{Call, bytes_response, json_response, object, table};
use crate::catalog::Resource;
use crate::registry::{Stored, stored::table_key};
use crate::status::Status;
use axum::body::Body;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::{BufMut, BytesMut};
use http::Response;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

/// How many unfinished lists are remembered.
const SNAPSHOTS: usize = 128;

struct Snapshot {
    table: String,
    namespace: Option<String>,
    revision: u64,
    items: Arc<Vec<Arc<Stored>>>,
}

/// The unfinished lists.
#[derive(Default)]
pub struct Snapshots(Mutex<VecDeque<Snapshot>>);

impl Snapshots {
    fn keep(&self, snapshot: Snapshot) {
        let mut kept = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        kept.push_back(snapshot);
        while kept.len() > SNAPSHOTS {
            kept.pop_front();
        }
    }

    fn find(&self, table: &str, namespace: Option<&str>, revision: u64) -> Option<Arc<Vec<Arc<Stored>>>> {
        let kept = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let same = |s: &&Snapshot| s.revision == revision && s.table == table && s.namespace.as_deref() == namespace;
        kept.iter().find(same).map(|s| s.items.clone())
    }
}

/// A page of a list.
struct Page {
    revision: u64,
    items: Vec<Arc<Stored>>,
    next: Option<String>,
    remaining: Option<usize>,
}

pub fn list(call: &Call<'_>) -> Result<Response<Body>, Status> {
    let form = negotiate::form(&call.parts.headers)?;
    let beta = negotiate::is_beta(&call.parts.headers);
    let filter = Filter::from_query(&call.query, &call.resource, &call.query.list_problems())?;
    let mut page = page(call, &filter)?;
    page.items = call.registry().as_served(&call.resource, page.items)?;
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
            let include = table::Include::from_query(call.query.get("includeObject"));
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
    let (mut depth, mut in_string, mut start, mut first) = (0_u32, false, 1, true);
    let mut at = 0;
    out.put_u8(b'{');
    while at < bytes.len() {
        match bytes[at] {
            b'\\' if in_string => at += 1,
            b'"' => in_string = !in_string,
            _ if in_string => {}
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

fn page(call: &Call<'_>, filter: &Filter) -> Result<Page, Status> {
    let limit = usize::try_from(call.query.number("limit")?.unwrap_or(0)).unwrap_or(0);
    // Who takes what the cache has takes all of it.
    let limit = if call.query.get("resourceVersion") == Some("0") { 0 } else { limit };
    let namespace = call.target.namespace.as_deref();
    let (revision, all, start) = match call.query.get("continue") {
        Some(token) => {
            let (revision, start) = read_token(token)?;
            let items = call.shared.snapshots.find(&call.resource.table, namespace, revision).ok_or_else(|| {
                Status::expired(
                    "The provided continue parameter is too old to display a consistent list result. You must start a new list \
                     without the continue parameter.",
                )
            })?;
            (revision, items, Some(start))
        }
        None => {
            check_revision(call)?;
            let (revision, items) = match (filter.name(), namespace) {
                (Some(name), Some(_)) => (call.registry().revision(), one(call, name)),
                (Some(name), None) if !call.resource.namespaced => (call.registry().revision(), one(call, name)),
                _ => call.registry().list_stored(&call.resource, namespace),
            };
            (revision, Arc::new(items), None)
        }
    };
    let first = start.map_or(0, |start| all.partition_point(|s| key(s) <= start));
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
    let next = more.then(|| write_token(revision, &key(&all[position - 1])));
    let remaining = (more && filter.is_everything()).then(|| all.len() - position);
    if more && first == 0 {
        let (table, namespace) = (call.resource.table.clone(), namespace.map(str::to_owned));
        call.shared.snapshots.keep(Snapshot { table, namespace, revision, items: all });
    }
    Ok(Page { revision, items, next, remaining })
}

fn one(call: &Call<'_>, name: &str) -> Vec<Arc<Stored>> {
    call.registry().get_stored(&call.resource, &call.namespace, name).into_iter().collect()
}

fn key(stored: &Stored) -> String {
    table_key(&stored.meta.namespace, &stored.meta.name)
}

/// `resourceVersion` and `resourceVersionMatch` of a list.
fn check_revision(call: &Call<'_>) -> Result<(), Status> {
    let Some(version) = call.query.get("resourceVersion") else { return Ok(()) };
    let asked = object::revision(version).map_err(|status| Status::bad_request(format!("invalid resource version: {}", status.message)))?;
    object::check_not_ahead(call.registry(), asked)?;
    // Old states are not kept; the client is told to list again.
    if call.query.get("resourceVersionMatch") == Some("Exact") && asked != call.registry().revision() {
        return Err(Status::expired("The resourceVersion for the provided list is too old."));
    }
    Ok(())
}

fn write_token(revision: u64, last: &str) -> String {
    URL_SAFE_NO_PAD.encode(json!({"v": "meta.k8s.io/v1", "rv": revision, "start": last}).to_string())
}

fn read_token(token: &str) -> Result<(u64, String), Status> {
    let bad = || Status::bad_request("invalid continue token: continue key is not valid: it was not made by this server");
    let bytes = URL_SAFE_NO_PAD.decode(token).map_err(|_| {
        let wrong = |b: u8| !(b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'));
        let at = token.bytes().position(wrong).unwrap_or(token.len().saturating_sub(1));
        Status::bad_request(format!("invalid continue token: continue key is not valid: illegal base64 data at input byte {at}"))
    })?;
    let value: Value = serde_json::from_slice(&bytes).map_err(|_| match crate::gotypes::syntax_error(&bytes) {
        Some(why) => Status::bad_request(format!("invalid continue token: continue key is not valid: {why}")),
        None => bad(),
    })?;
    let start = value["start"].as_str().ok_or_else(bad)?;
    Ok((value["rv"].as_u64().ok_or_else(bad)?, start.to_owned()))
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
