//! Migrates field ownership from client-side to server-side apply: fields that a client owns with
//! operation Update become owned with operation Apply.
//!
//! Main functions: [`managed_fields`] (the new list), [`json_patch`] (the request that kubectl
//! sends), [`owners`]. They only need `metadata.managedFields`, and no types.

use super::{
    PatchError,
    apply::{fieldset::FieldSet, path::PathElement},
    last_applied,
};
use crate::object::Object;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// kubectl's manager for the last-applied annotation of a migrated object.
pub const LAST_APPLIED_MANAGER: &str = "kubectl-last-applied";

/// The set that contains only the last-applied annotation; a manager that updates it uses
/// client-side apply.
pub fn last_applied_field() -> FieldSet {
    let mut set = FieldSet::default();
    set.insert(
        &["metadata", "annotations", last_applied::ANNOTATION]
            .map(|f| PathElement::Field(f.to_owned())),
    );
    set
}

/// The managers that own all of `fields` in an entry with this operation (`Apply`, `Update`).
/// Invalid entries own nothing.
pub fn owners(object: &Object, operation: &str, fields: &FieldSet) -> BTreeSet<String> {
    let owns = |entry: &&Value| {
        text(entry, "operation") == operation
            && set_of(entry).is_ok_and(|owned| fields.difference(&owned).is_empty())
    };
    entries(object)
        .iter()
        .filter(owns)
        .map(|entry| text(entry, "manager").to_owned())
        .collect()
}

/// managedFields after migrating the updates of `clients` to `applier`: if there is no entry of the
/// applier, the first entry of a client becomes it; a client's entry of the same version is merged
/// into it; all other entries of clients are removed.
///
/// None: there is nothing to migrate.
pub fn managed_fields(
    object: &Object,
    clients: &BTreeSet<String>,
    applier: &str,
    subresource: &str,
) -> Result<Option<Vec<Value>>, PatchError> {
    let before = entries(object);
    let mut list = before.to_vec();
    for client in clients {
        let is = |entry: &Value, manager: &str, operation: &str| {
            text(entry, "manager") == manager
                && text(entry, "operation") == operation
                && text(entry, "subresource") == subresource
        };
        let of_client = |entry: &Value| is(entry, client, "Update");
        let target = match list.iter().position(|e| is(e, applier, "Apply")) {
            Some(found) => found,
            None => {
                let Some(found) = list.iter().position(of_client) else {
                    continue;
                };
                list[found]["operation"] = "Apply".into();
                list[found]["manager"] = applier.into();
                found
            }
        };
        let mut fields = set_of(&list[target])?;
        let version = text(&list[target], "apiVersion").to_owned();
        if let Some(same) = list
            .iter()
            .find(|e| of_client(e) && text(e, "apiVersion") == version)
        {
            fields.extend(set_of(same)?);
        }
        list[target]["fieldsV1"] = fields.to_json();
        list.retain(|entry| !of_client(entry));
    }
    Ok((list != before).then_some(list))
}

/// The JSON patch that migrates the fields on the server, if there are any. It includes the
/// resourceVersion, so that a concurrent change becomes a conflict.
pub fn json_patch(
    object: &Object,
    clients: &BTreeSet<String>,
    applier: &str,
    subresource: &str,
) -> Result<Option<Value>, PatchError> {
    let moved = managed_fields(object, clients, applier, subresource)?;
    Ok(moved.map(|list| {
        json!([
            {"op": "replace", "path": "/metadata/managedFields", "value": list},
            {"op": "replace", "path": "/metadata/resourceVersion", "value": object.resource_version()},
        ])
    }))
}

fn entries(object: &Object) -> &[Value] {
    object
        .metadata("managedFields")
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

fn text<'a>(entry: &'a Value, field: &str) -> &'a str {
    entry.get(field).and_then(Value::as_str).unwrap_or("")
}

fn set_of(entry: &Value) -> Result<FieldSet, PatchError> {
    let fields = entry.get("fieldsV1").unwrap_or(&Value::Null);
    FieldSet::from_json(fields)
        .map_err(|e| PatchError::Invalid(format!("failed to convert fields to set: {e}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(manager: &str, operation: &str, version: &str, field: &str) -> Value {
        json!({"manager": manager, "operation": operation, "apiVersion": version, "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {field: {}}}})
    }

    fn moved(list: Value) -> Option<Value> {
        let object = Object::from_value(
            json!({"metadata": {"resourceVersion": "7", "managedFields": list}}),
        )
        .expect("a map");
        managed_fields(&object, &BTreeSet::from(["old".to_owned()]), "new", "")
            .expect("readable")
            .map(Value::Array)
    }

    #[test]
    fn a_client_becomes_an_applier() {
        let (update, apply) = (
            entry("old", "Update", "v1", "f:a"),
            entry("new", "Apply", "v1", "f:a"),
        );
        let mut union = apply.clone();
        union["fieldsV1"]["f:data"]["f:b"] = json!({});
        for (before, after) in [
            (json!([]), None),
            (json!([entry("other", "Update", "v1", "f:a")]), None),
            (json!([update]), Some(json!([apply]))),
            (
                json!([apply, entry("old", "Update", "v1", "f:b")]),
                Some(json!([union])),
            ),
            // Paths of another version cannot be merged with these.
            (
                json!([apply, entry("old", "Update", "v2", "f:b")]),
                Some(json!([apply])),
            ),
            (
                json!([update, entry("old", "Update", "v2", "f:b")]),
                Some(json!([apply])),
            ),
        ] {
            assert_eq!(moved(before.clone()), after, "{before}");
        }
    }

    #[test]
    fn the_annotation_tells_who_applies_client_side() {
        let fields = json!({"f:metadata": {"f:annotations": {format!("f:{}", last_applied::ANNOTATION): {}}}});
        let entry = json!({"manager": "kubectl-client-side-apply", "operation": "Update", "fieldsV1": fields});
        let object = Object::from_value(
            json!({"metadata": {"resourceVersion": "7", "managedFields": [entry]}}),
        )
        .expect("a map");
        let clients = owners(&object, "Update", &last_applied_field());
        assert_eq!(
            clients.iter().collect::<Vec<_>>(),
            ["kubectl-client-side-apply"]
        );
        assert!(owners(&object, "Apply", &last_applied_field()).is_empty());
        let patch = json_patch(&object, &clients, "kubectl", "")
            .expect("readable")
            .expect("a patch");
        assert_eq!(
            patch[1],
            json!({"op": "replace", "path": "/metadata/resourceVersion", "value": "7"})
        );
        assert_eq!(patch[0]["value"][0]["operation"], "Apply");
    }
}
