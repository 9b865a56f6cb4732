//! Server-Side Diff: the difference to the API server's own result of an apply
//! (`ServerSideDiff=true`).
//!
//! Main function: [`server_side`]. The caller made the dry run. What mutating webhooks added to its
//! result is removed again, unless the option asks to include it.

use super::{MANAGER, Options, for_comparison, ignore, left_behind, result, type_of, typed_form};
use crate::base::Diff;
use serde_json::Value;
use tiphys_apimachinery::{
    Object,
    patch::{
        apply::{self, fieldset::FieldSet, path::PathElement},
        last_applied,
    },
};

/// Compares the live object with the result of a server-side dry run of the desired one under our
/// field manager.
pub fn server_side(
    desired: &Object,
    live: &Object,
    predicted: &Object,
    include_webhooks: bool,
    options: &Options<'_>,
) -> Result<Diff, String> {
    as_written(
        Some(desired),
        &typed_form(live),
        predicted,
        include_webhooks,
        options,
    )
    .map_err(|e| format!("error calculating server side diff: serverSideDiff error: {e}"))
}

/// The same for a live object that is already in Go's form.
pub(super) fn as_written(
    desired: Option<&Object>,
    live: &Object,
    predicted: &Object,
    include_webhooks: bool,
    options: &Options<'_>,
) -> Result<Diff, String> {
    let predicted = match include_webhooks {
        true => predicted.clone(),
        false => without_mutations(predicted, live).map_err(|why| {
            let (kind, name) = (predicted.kind(), predicted.name());
            format!("error removing non config mutations for resource {kind}/{name}: {why}")
        })?,
    };
    let (mut live, mut predicted) = (live.clone(), typed_form(&predicted));
    ignore::trusted_managers(&mut predicted, &mut live, options);
    if let Some(desired) = desired {
        predicted = left_behind::removed(desired, &live, predicted, options);
    }
    let [live, predicted] = [live, predicted].map(|mut object| {
        for_comparison(&mut object, options);
        for field in ["managedFields", "resourceVersion"] {
            object.metadata_mut().remove(field);
        }
        object.remove_annotation(last_applied::ANNOTATION);
        object.into_value()
    });
    Ok(result(live, predicted))
}

/// The live object with the predicted values of the fields that we own: the fields that were
/// applied, without what was added on the way.
fn without_mutations(predicted: &Object, live: &Object) -> Result<Object, String> {
    let ty = type_of(&predicted.gvk());
    let owned = owned_by(predicted, MANAGER)?;
    let mut foreign = apply::all_fields(predicted, ty).difference(&owned);
    keep_parents(&mut foreign, &owned);
    let mut removed = apply::difference(live, predicted, ty)
        .map_err(|e| format!("error comparing predicted resource to live resource: {e}"))?
        .removed;
    removed = removed.difference(&foreign);
    let foreign = without_keys(&foreign);
    let own = apply::without_fields(predicted, &foreign, ty);
    let merged = apply::merged(live, &own, ty)
        .map_err(|e| format!("error applying predicted live to live state: {e}"))?;
    Ok(apply::without_fields(&merged, &removed, ty))
}

fn owned_by(object: &Object, manager: &str) -> Result<FieldSet, String> {
    let entries = object
        .metadata("managedFields")
        .and_then(Value::as_array)
        .filter(|list| !list.is_empty());
    let entries = entries.ok_or_else(|| {
        format!(
            "predictedLive for resource {}/{} must have the managedFields",
            object.kind(),
            object.name()
        )
    })?;
    let mut owned = FieldSet::default();
    for entry in entries
        .iter()
        .filter(|e| e.get("manager").and_then(Value::as_str) == Some(manager))
    {
        let fields = entry
            .get("fieldsV1")
            .ok_or("an entry of managedFields has no fieldsV1")?;
        owned.extend(
            FieldSet::from_json(fields)
                .map_err(|e| format!("error building managedFields set: {e}"))?,
        );
    }
    if owned.is_empty() {
        Err(format!("no managed fields found for manager: {manager}"))
    } else {
        Ok(owned)
    }
}

/// A map is not foreign if we own a field in it: removing the map would remove our field too.
pub(super) fn keep_parents(foreign: &mut FieldSet, owned: &FieldSet) {
    foreign
        .members
        .retain(|step| !owned.children.contains_key(step));
    for (step, children) in &mut foreign.children {
        if let Some(owned) = owned.children.get(step) {
            keep_parents(children, owned);
        }
    }
    foreign.children.retain(|_, set| !set.is_empty());
}

/// Without the fields that identify a list element by several keys: without them the element could
/// not be found again.
fn without_keys(set: &FieldSet) -> FieldSet {
    let mut kept = FieldSet::default();
    for path in set.paths() {
        let names = |keys: &[(String, Value)], field: &str| {
            keys.len() > 1 && keys.iter().any(|(name, _)| name == field)
        };
        let is_key = path.last().is_some_and(|last| match last {
            PathElement::Field(field) => path
                .iter()
                .any(|step| matches!(step, PathElement::Key(keys) if names(keys, field))),
            _ => false,
        });
        if !is_key {
            kept.insert(&path);
        }
    }
    kept
}
