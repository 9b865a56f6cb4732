//! The functions of Masterminds/sprig that Helm offers to templates.
//!
//! Main function: [`functions`]. Each file has the table of its theme. Where Go would go through a map in another order each time, the order
//! here is that of the keys.

mod args;
mod cast;
mod decimal;
mod dicts;
mod json;
mod json_read;
mod lists;
mod numbers;
mod paths;
mod regexp;
mod strings;
mod values;
mod words;

use crate::template::{Function, Object};

/// All functions with their names.
pub fn functions() -> impl Iterator<Item = (&'static str, Function)> {
    [dicts::TABLE, lists::TABLE, numbers::TABLE, paths::TABLE, regexp::TABLE, strings::TABLE, values::TABLE].into_iter().flatten().copied()
}

/// What JSON shows of an object that writes itself as text.
fn json_text(object: &dyn Object) -> Option<String> {
    object.text()
}
