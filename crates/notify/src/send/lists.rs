//! Lists that templates hold as JSON.
//!
//! Main functions: [`items`] and [`maps`].

use serde_json::{Error, Map, Value as Json};

/// The items of a list; none for an empty text and, as in Go, for `null`.
pub(super) fn items(text: &str) -> Result<Vec<Json>, Error> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let items: Option<Vec<Json>> = serde_json::from_str(text)?;
    Ok(items.unwrap_or_default())
}

/// The maps of a list. As in Go, each may be `null`, too.
pub(super) fn maps(text: &str) -> Result<Vec<Json>, Error> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let items: Option<Vec<Option<Map<String, Json>>>> = serde_json::from_str(text)?;
    let items = items.unwrap_or_default().into_iter();
    Ok(items
        .map(|item| item.map_or(Json::Null, Json::Object))
        .collect())
}
