//! kubectl's three-way patch: changes from the live object to the new configuration, deletions from
//! the last applied one to it.
//!
//! Main functions: [`create`], and [`explain`] for users. They do not know where the three
//! documents come from; see [`super::last_applied`].

pub use super::explain::{Cause, Change, explain};

use super::{
    PatchError, json_merge,
    strategic::{DiffOptions, MergeOptions, as_map, diff_maps, maps_have_conflicts, merge_maps},
};
use crate::schema::TypeRef;
use serde_json::Value;

/// The patch for `current` with the changes from `original` (the last applied configuration; null
/// if unknown) to `modified`.
///
/// With a type it is a strategic merge patch, without one a JSON merge patch. Unless `overwrite` is
/// set, a strategic patch for fields that were also changed in `current` is refused as
/// [`PatchError::Conflict`].
pub fn create(
    original: &Value,
    modified: &Value,
    current: &Value,
    ty: Option<TypeRef<'_>>,
    overwrite: bool,
) -> Result<Value, PatchError> {
    let Some(ty) = ty else {
        return json_merge::create_three_way(original, modified, current);
    };
    let (original, modified, current) = (as_map(original)?, as_map(modified)?, as_map(current)?);
    let changes = DiffOptions {
        ignore_deletions: true,
        set_element_order: true,
        ..DiffOptions::default()
    };
    let deletions = DiffOptions {
        ignore_changes_and_additions: true,
        set_element_order: true,
        ..DiffOptions::default()
    };
    let delta = diff_maps(current, modified, ty, changes)?;
    let deleted = diff_maps(original, modified, ty, deletions)?;
    let patch = merge_maps(deleted, delta, ty, MergeOptions::default())?;
    if !overwrite {
        let changed = diff_maps(original, current, ty, DiffOptions::default())?;
        if maps_have_conflicts(&patch, &changed, ty)? {
            return Err(PatchError::Conflict {
                patch: pretty(&Value::Object(patch)),
                changed: pretty(&Value::Object(changed)),
            });
        }
    }
    Ok(Value::Object(patch))
}

/// An apply must not change an object's identity: refuses patches that contain apiVersion, kind or
/// metadata.name.
pub fn check_identity_unchanged(patch: &Value) -> Result<(), PatchError> {
    let touched = patch
        .get("apiVersion")
        .or_else(|| patch.get("kind"))
        .or_else(|| patch.pointer("/metadata/name"));
    match touched {
        None => Ok(()),
        Some(_) => Err(PatchError::Precondition(
            "at least one of apiVersion, kind and name was changed".into(),
        )),
    }
}

/// A patch as printed in a conflict.
pub(super) fn pretty(value: &Value) -> String {
    tiphys_gocompat::yaml::to_string(value)
}
