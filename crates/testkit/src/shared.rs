//! Recorded cases that lie beside the repository, which a clone does not have.
//!
//! Main function: [`shared`].

use crate::skip;
use std::path::{Path, PathBuf};

/// A file or folder of `../shared`; `None`: it is not here, and the test is skipped.
///
/// # Panics
/// If `../shared` is here and lacks it, or if the skip is not allowed.
#[track_caller]
pub fn shared(path: &str) -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    if !root.is_dir() {
        skip("shared", "there is no ../shared");
        return None;
    }
    let found = root.join(path);
    assert!(found.exists(), "../shared has no {path}");
    Some(found)
}
