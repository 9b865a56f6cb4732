//! Fills in the API server's default values, so that they do not show as drift.
//!
//! Main function: [`apply`]. It walks a value along its type; the rule for a type is found by the
//! type's name, so the defaults of a container apply wherever containers occur. Rules only add
//! fields, they never overwrite one.

mod core;
mod fields;
mod others;
mod workloads;

use serde_json::{Map, Value};
use tiphys_apimachinery::schema::{TypeKind, TypeRef};

pub(super) type Fields = Map<String, Value>;
pub(super) type Rule = fn(&mut Fields);

/// Fills in the defaults of an object of this type.
pub fn apply(object: &mut Value, ty: TypeRef<'_>) {
    match object {
        Value::Object(map) => {
            if let Some(rule) = ty.name().and_then(rule_for) {
                rule(map);
            }
            for (key, value) in map
                .iter_mut()
                .filter(|(_, v)| v.is_object() || v.is_array())
            {
                if let Some(field) = ty.field(key) {
                    apply(value, field);
                }
            }
        }
        Value::Array(list) => {
            let Some(items) = ty
                .items()
                .filter(|i| matches!(i.kind(), TypeKind::Object | TypeKind::Map))
            else {
                return;
            };
            list.iter_mut().for_each(|item| apply(item, items));
        }
        _ => {}
    }
}

fn rule_for(name: &str) -> Option<Rule> {
    let name = name.strip_prefix("io.k8s.api.")?;
    core::rule_for(name)
        .or_else(|| workloads::rule_for(name))
        .or_else(|| others::rule_for(name))
}
