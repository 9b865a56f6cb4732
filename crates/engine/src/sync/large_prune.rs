//! Detects a sync that would delete most of an Application, which is more likely a mistake in Git
//! than intended.
//!
//! Main type: [`LargePrune`]. This module must not know plans: it judges a comparison before an
//! operation starts.

use super::options::{SyncOptions, prune_value};
use crate::types::{Comparison, Entry};

/// This many resources are always pruned without asking.
pub const DEFAULT_LIMIT: u32 = 10;

/// More resources than the limit would be pruned, and fewer than half of the current number would
/// remain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LargePrune {
    pub prunes: usize,
    /// The number of live resources.
    pub live: usize,
}

impl LargePrune {
    /// `limit` 0: no prune is too large.
    pub fn of(comparison: &Comparison, limit: u32) -> Option<Self> {
        let default = SyncOptions::parse(&comparison.rules.sync_options).prune;
        let goes = |e: &&Entry| {
            let live = e.live.as_deref().filter(|_| e.requires_pruning);
            live.is_some_and(|live| {
                prune_value(&live.object(), default.as_deref()) != Some("false")
            })
        };
        let resources = || {
            comparison
                .entries
                .iter()
                .map(AsRef::as_ref)
                .filter(|e| !e.hook)
        };
        let prunes = resources().filter(goes).count();
        let wanted = resources().filter(|e| e.desired.is_some()).count();
        let live = prunes
            + resources()
                .filter(|e| e.desired.is_some() && e.live.is_some())
                .count();
        let too_many = limit > 0 && prunes > usize::try_from(limit).unwrap_or(usize::MAX);
        (too_many && wanted * 2 < live).then_some(Self { prunes, live })
    }
}

/// `PruneLimit=N`: how many resources an automated sync may always prune; 0 means no limit. `None`:
/// the option is not set.
///
/// # Errors
/// If the value is not a number; the message names the option.
pub fn limit<S: AsRef<str>>(options: &[S]) -> Result<Option<u32>, String> {
    let mut said = None;
    for option in options.iter().map(AsRef::as_ref) {
        if let Some(("PruneLimit", number)) = option.split_once('=') {
            let wrong = |_| {
                format!(
                    "sync option \"{option}\": the value must be a number of resources, or 0 for no limit"
                )
            };
            said = Some(number.parse().map_err(wrong)?);
        }
    }
    Ok(said)
}
