//! What depends on the kind: which fields exist, what is filled in, what is refused.
//!
//! Main functions: [`check_fields`], [`prepare_create`], [`prepare_update`], [`validate`], called by the registry in this order.

use crate::catalog::Resource;
use crate::registry::{FieldValidation, Part, Registry, WriteOptions};
use crate::status::Status;
use tiphys_apimachinery::Object;
use tiphys_apimachinery::schema;

/// Drops fields that the type does not have, and fills in what a CustomResourceDefinition has as default. Returns warnings.
pub fn check_fields(resource: &Resource, object: &mut Object, options: &WriteOptions) -> Result<Vec<String>, Status> {
    let mut findings = options.findings.clone();
    if let Some(ty) = resource.ty() {
        let mut value = std::mem::take(object).into_value();
        findings.extend(schema::prune(&mut value, ty).into_iter().map(|path| format!("unknown field \"{path}\"")));
        if resource.custom.is_some() {
            schema::apply_defaults(&mut value, ty);
        }
        *object = Object::from_value(value).map_err(Status::internal)?;
    }
    match options.validation {
        _ if findings.is_empty() => Ok(findings),
        FieldValidation::Ignore => Ok(Vec::new()),
        FieldValidation::Warn => Ok(findings),
        FieldValidation::Strict => Err(Status::bad_request(format!(
            "{} in version \"{}\" cannot be handled as a {}: strict decoding error: {}",
            resource.kind,
            resource.version,
            resource.kind,
            findings.join(", ")
        ))),
    }
}

/// Fills in a new object.
pub fn prepare_create(registry: &Registry, resource: &Resource, object: &mut Object) -> Result<(), Status> {
    let _ = (registry, resource, object);
    Ok(())
}

/// Fills in a changed object.
pub fn prepare_update(registry: &Registry, resource: &Resource, old: &Object, new: &mut Object, part: Part) -> Result<(), Status> {
    let _ = (registry, resource, old, new, part);
    Ok(())
}

/// The cluster IP of the service `kubernetes`.
pub const API_SERVICE_IP: &str = "10.96.0.1";

/// Refuses what must not be stored; returns warnings.
pub fn validate(resource: &Resource, object: &Object, old: Option<&Object>) -> Result<Vec<String>, Status> {
    let _ = (resource, object, old);
    Ok(Vec::new())
}

/// Whether an update without a resourceVersion overwrites what is there.
pub fn allows_blind_update(resource: &Resource) -> bool {
    resource.custom.is_none() && !matches!(resource.resource.as_str(), "customresourcedefinitions" | "leases")
}
