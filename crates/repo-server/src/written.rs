//! Objects as they were sent last: most requests are for what has not changed since.
//!
//! Main type: [`Written`].

use std::sync::Arc;

/// Cache size for objects as JSON.
const WRITTEN_BYTES: u64 = 128 << 20;

/// The digest of the objects, the namespace that those without one are in, and what their mark is
/// made of.
type WrittenKey = [String; 6];

/// Objects as they were sent last.
pub(crate) type Written = moka::sync::Cache<WrittenKey, Arc<[String]>>;

pub(crate) fn nothing_written() -> Written {
    let weigh = |_: &WrittenKey, texts: &Arc<[String]>| {
        let bytes: usize = texts.iter().map(|text| 50 + text.len()).sum();
        u32::try_from(bytes + 500).unwrap_or(u32::MAX)
    };
    moka::sync::Cache::builder()
        .weigher(weigh)
        .max_capacity(WRITTEN_BYTES)
        .build()
}
