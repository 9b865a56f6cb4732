//! kubectl's three-way patch.
use super::PatchError;
use crate::schema::TypeRef;
use serde_json::Value;

/// The patch for `current` that applies what changed from `original` to `modified`; without a type, as a JSON merge patch.
pub fn create(original: &Value, modified: &Value, current: &Value, ty: Option<TypeRef<'_>>, _overwrite: bool) -> Result<Value, PatchError> {
    match ty {
        None => super::json_merge::create_three_way(original, modified, current),
        Some(_) => Err(PatchError::invalid("strategic merge patch is not ready yet")),
    }
}

/// A patch as an error message shows it.
pub(super) fn pretty(value: &Value) -> String {
    tiphys_gocompat::yaml::to_string(value)
}
