//! Predicts server-side apply: the ownership of fields decides what an apply changes.
//!
//! Main function: [`structured`].

use super::{allocated, fill_in, result, type_of};
use crate::base::Diff;
use serde_json::Value;
use tiphys_apimachinery::{
    Object,
    patch::{
        apply::{ApplyError, ApplyOptions, apply},
        last_applied,
    },
};

/// The field manager that Argo CD and Tiphys apply with.
pub const MANAGER: &str = "argocd-controller";

/// The result of a forced apply of the desired object by `manager`.
pub fn structured(desired: &Object, live: &Object, manager: &str) -> Result<Diff, ApplyError> {
    let ty = type_of(&desired.gvk());
    let mut config = desired.clone();
    config.metadata_mut().remove("managedFields");
    let options = ApplyOptions {
        manager,
        force: true,
        api_version: desired.api_version(),
        ..ApplyOptions::default()
    };
    let mut merged = apply(Some(live), &config, &options, ty)?;
    allocated::keep(&mut merged, live);
    // A change of ownership alone is not a difference.
    match live.metadata("managedFields").cloned() {
        Some(fields) => merged.metadata_mut().insert("managedFields".into(), fields),
        None => merged.metadata_mut().remove("managedFields"),
    };
    if merged == *live {
        return Ok(result(
            Value::Object(live.0.clone()),
            Value::Object(merged.0),
        ));
    }
    let [live, predicted] = [live.clone(), merged].map(|mut object| {
        object.remove_annotation(last_applied::ANNOTATION);
        let mut value = object.into_value();
        if let Some(ty) = ty {
            fill_in(&mut value, ty);
        }
        value
    });
    Ok(result(live, predicted))
}
