//! Strategic merge patch.
use super::PatchError;
use crate::schema::TypeRef;
use serde_json::Value;

/// Applies a patch to a copy of `doc`.
pub fn apply(_doc: &Value, _patch: &Value, _ty: TypeRef<'_>) -> Result<Value, PatchError> {
    Err(PatchError::invalid("strategic merge patch is not ready yet"))
}

/// The patch that makes `modified` of `original`.
pub fn create_two_way(_original: &Value, _modified: &Value, _ty: TypeRef<'_>) -> Result<Value, PatchError> {
    Err(PatchError::invalid("strategic merge patch is not ready yet"))
}
