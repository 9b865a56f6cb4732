//! From rendered objects to comparable ones: [`targets`] for what Git wants as a whole, [`object`]
//! for one object before it is compared, [`unstored`] for what no API server keeps.

mod endpoints;
pub mod object;
pub mod secret;
pub mod targets;
pub mod unstored;
