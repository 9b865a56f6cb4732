//! What is taken over from an earlier comparison.
//!
//! Main type: [`Memory`]. The result is the same without it, only slower: an entry is taken over
//! whole, and only when nothing that it depends on is another.

use super::pairing::Pair;
use crate::{
    normalize::targets::Targets,
    types::{CompareRules, Comparison, Entry, Judged, KindInfo},
};
use std::sync::Arc;
use tiphys_apimachinery::Kept;

/// Whether anything may be taken over: the rules and what the cluster says of the kinds must be the
/// same.
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

/// The entries of an earlier comparison, asked for in the order of their keys.
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

    /// The entry of a pair of which neither side has changed.
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
        // A hook that is only live gets its wave from the desired one of its name.
        let complete = entry.desired.is_some() || !entry.hook || self.same_targets;
        // What could not be judged then may be judged now.
        entry.judged == Judged::Yes && !entry.unreadable && same_desired && same_live && complete
    }
}

/// One object, or one state of it that was read twice.
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
