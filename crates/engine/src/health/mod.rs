//! How well a live object is, read from nothing but the object itself.
//!
//! Main function: [`of`]. Each kind has a file under `kinds/`; kinds without one have no health, which is different from being healthy.
//! It must not know of Applications or Git; the worst of many is taken in [`aggregate`].

pub mod aggregate;
mod kinds;
mod view;

use crate::{
    error::EngineError,
    marks,
    types::{Health, HealthStatus},
};
use tiphys_apimachinery::Object;

/// The health of a live object; `None` for kinds that have none. An object that cannot be read is `Unknown` with the reason.
pub fn of(live: &Object) -> Option<Health> {
    assess(live).unwrap_or_else(|error| Some(Health::new(HealthStatus::Unknown, error.to_string())))
}

/// As [`of`], but what cannot be read is an error.
pub fn assess(live: &Object) -> Result<Option<Health>, EngineError> {
    if live.deletion_timestamp().is_some() && !marks::has_hook_finalizer(live) {
        return Ok(Some(Health::new(HealthStatus::Progressing, "Pending deletion")));
    }
    let Some(check) = kinds::check_for(live.group(), live.kind()) else { return Ok(None) };
    check(live).map(Some)
}

/// Whether objects of this kind have a health at all.
pub fn is_assessed(group: &str, kind: &str) -> bool {
    kinds::check_for(group, kind).is_some()
}
