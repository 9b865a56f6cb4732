//! Patches of live objects that would store a mask: answers have one in place of each value of a
//! Secret and of each password in a URL, and clients send back what they were shown. The cluster
//! would take it as the new value.

use crate::{ApiError, ports::LiveRef};
use serde_json::Value;
use tiphys_api::{access::has_hidden, constants};
use tiphys_engine::diff::has_mask;
use tiphys_rpc::heavy;

type IsMasked = fn(&str) -> bool;

/// Refuses such a patch of an object that is shown with masks.
pub(super) async fn refuse(object: &LiveRef, patch: &str) -> Result<(), ApiError> {
    let is_masked: IsMasked = match (object.group.as_str(), object.kind.as_str()) {
        ("", "Secret") => has_mask,
        (constants::GROUP, _) => has_hidden,
        _ => return Ok(()),
    };
    let patch = patch.to_owned();
    let found = heavy::run(move || {
        let patch = serde_json::from_str::<Value>(&patch);
        patch.map(|patch| written(&patch, is_masked))
    });
    match found.await {
        Ok(None) => Ok(()),
        Ok(Some(field)) => Err(ApiError::invalid(format!(
            "{field}: this is what stands for a value that is shown to nobody; give the value \
             itself, or leave the field out of the patch"
        ))),
        // Its error may repeat a value.
        Err(_) => Err(ApiError::invalid(format!(
            "failed to patch {} {}/{}: the patch is not valid JSON",
            object.kind, object.namespace, object.name
        ))),
    }
}

/// The first field that the patch sets to a mask. A JSON patch is a list of operations, any other
/// one is a part of the object.
fn written(patch: &Value, is_masked: IsMasked) -> Option<String> {
    let Value::Array(operations) = patch else {
        return masked(patch, "", is_masked);
    };
    let writes = |operation: &&Value| operation["op"] != "test";
    operations.iter().filter(writes).find_map(|operation| {
        let path = operation["path"].as_str().unwrap_or_default();
        masked(&operation["value"], path, is_masked)
    })
}

fn masked(value: &Value, field: &str, is_masked: IsMasked) -> Option<String> {
    match value {
        Value::String(text) => is_masked(text).then(|| field.to_owned()),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .find_map(|(i, item)| masked(item, &format!("{field}[{i}]"), is_masked)),
        Value::Object(members) => members.iter().find_map(|(key, member)| {
            let dot = if field.is_empty() { "" } else { "." };
            masked(member, &format!("{field}{dot}{key}"), is_masked)
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}
