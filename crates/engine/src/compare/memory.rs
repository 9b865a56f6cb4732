//! Reuses entries of an earlier comparison.
//!
//! Main type: [`Memory`]. It changes only the speed, never the result: an entry is reused as a
//! whole, and only if nothing that it depends on has changed.

use super::pairing::Pair;
use crate::{
    normalize::targets::Targets,
    types::{CompareRules, Comparison, Entry, Judged, KindInfo},
};
use std::sync::Arc;
use tiphys_apimachinery::Kept;

/// Whether anything may be reused: the rules and the cluster's information about the kinds must be
/// unchanged.
pub fn is_usable(
    previous: &Comparison,
    rules: &CompareRules,
    kinds: &dyn KindInfo,
    failed: bool,
) -> bool {
    let basis = &previous.basis;
    basis.failed == failed
        && *previous.rules == *rules
        && basis
            .scopes
            .iter()
            .all(|(kind, scope)| kinds.is_namespaced(kind) == *scope)
}

/// The entries of an earlier comparison, looked up in the order of their keys.
pub struct Memory<'a> {
    rest: &'a [Arc<Entry>],
    same_targets: bool,
}

impl<'a> Memory<'a> {
    pub fn new(previous: Option<&'a Comparison>, targets: &Arc<Targets>) -> Self {
        let rest = previous.map_or(&[][..], |p| &p.entries);
        Self {
            rest,
            same_targets: previous.is_some_and(|p| Arc::ptr_eq(&p.basis.targets, targets)),
        }
    }

    /// The entry of a pair if neither side has changed.
    pub fn entry(&mut self, pair: &Pair<'_>) -> Option<Arc<Entry>> {
        while let Some((_, rest)) = self
            .rest
            .split_first()
            .filter(|(first, _)| first.key < *pair.key)
        {
            self.rest = rest;
        }
        self.rest
            .first()
            .filter(|e| e.key == *pair.key && self.is_same(e, pair))
            .cloned()
    }

    fn is_same(&self, entry: &Entry, pair: &Pair<'_>) -> bool {
        let same_desired = match (&entry.desired, pair.target) {
            (None, None) => true,
            (Some(before), Some(target)) => {
                Arc::ptr_eq(before, &target.object) || **before == *target.object
            }
            _ => false,
        };
        let same_live = match (&entry.live, pair.live) {
            (None, None) => true,
            (Some(before), Some(now)) => is_same_state(before, now),
            _ => false,
        };
        // A hook that exists only in the cluster gets its wave from the desired hook of the same
        // name.
        let complete = entry.desired.is_some() || !entry.hook || self.same_targets;
        // An entry that could not be judged before is judged again.
        let judged = entry.judged == Judged::Yes && entry.unreadable.is_none();
        judged && same_desired && same_live && complete
    }
}

/// The same object in memory, or the same state read twice.
fn is_same_state(before: &Arc<Kept>, now: &Arc<Kept>) -> bool {
    let same = || {
        let identity = [now.resource_version(), now.uid(), now.api_version()];
        [
            before.resource_version(),
            before.uid(),
            before.api_version(),
        ] == identity
    };
    Arc::ptr_eq(before, now) || (!now.resource_version().is_empty() && same())
}
