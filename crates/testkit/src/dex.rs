//! The Dex that `scripts/control-plane` builds. Main function: [`program_or_skip`].

use std::path::PathBuf;

/// The program that `DEX` names; `None`: there is none, and the test is skipped.
pub fn program_or_skip() -> Option<PathBuf> {
    let named = std::env::var_os("DEX").map(PathBuf::from);
    if named.is_none() {
        crate::skip("dex", "DEX names no dex (scripts/control-plane builds one)");
    }
    named
}
