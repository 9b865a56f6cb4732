//! From rendered objects to comparable ones: [`targets`] for all desired objects, [`object`] for
//! one object before it is compared, [`unstored`] for fields that no API server stores, [`crd`] for
//! kinds that the objects bring with them.

pub mod crd;
mod endpoints;
pub mod object;
pub mod secret;
pub mod targets;
pub mod unstored;
