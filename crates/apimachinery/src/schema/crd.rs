//! Types of custom resources, from the structural schema in their CRD.
//!
//! Main function: [`from_structural`]. `metadata` is always the built-in ObjectMeta, whatever the
//! CRD declares.

use super::{Schema, SchemaError, openapi::Reader};
use serde_json::Value;

/// Parses `spec.versions[].schema.openAPIV3Schema`; the custom resource's type is [`Schema::root`].
pub fn from_structural(schema: &Value) -> Result<Schema, SchemaError> {
    let mut reader = Reader {
        structural: true,
        ..Reader::default()
    };
    let root = reader.node(schema, "openAPIV3Schema", 0)?;
    reader.builder.root(root);
    reader.builder.finish()
}
