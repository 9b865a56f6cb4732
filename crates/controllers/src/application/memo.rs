//! What is remembered about an Application between reconciles.
//!
//! Main type: [`Memo`]. Losing it only makes the next reconcile slower.

use super::{
    repeats::Repeats,
    requested::{RenderedSources, RequestedSources},
    running::{Running, Syncing},
    start,
};
use jiff::Timestamp;
use rand::Rng;
use std::sync::Arc;
use tiphys_apimachinery::ResourceKey;
use tiphys_cluster::clusters::PAUSE_AFTER_FAILURE;
use tiphys_engine::types::Comparison;
use tiphys_sources::SignatureTrust;

/// What is remembered about an Application between reconciles. Losing it costs time only.
pub struct Memo {
    pub desired: Option<RenderedSources>,
    /// Why manifests could not be loaded last time.
    pub unloadable: Option<Unloadable>,
    /// Since then there have been no manifests, reported or not.
    pub outage: Option<Outage>,
    pub comparison: Option<Arc<Comparison>>,
    /// The server of the cluster that it is of.
    pub compared_on: String,
    /// The comparison that readers see.
    pub published: Option<Arc<Comparison>>,
    /// How many times in a row the live state could not be loaded.
    pub lost_sight: u32,
    /// The resources whose kinds were needed then.
    pub unseen: Vec<ResourceKey>,
    pub running: Option<Running>,
    /// This process has read it from the server itself, or written to it: it is not a stale state.
    pub proved: bool,
    pub syncing: Option<Syncing>,
    /// The attempt, by its id, whose end was counted last, and its phase.
    pub counted_end: Option<(String, String)>,
    pub last_start: Option<start::Start>,
    /// The last automatic sync that was started.
    pub automated: Option<Repeats>,
    /// Whether the compared revision, which was not synced, affects the Application.
    pub touched: Option<(PathsQuestion, bool)>,
    /// This Application's share of every jitter.
    pub share: f64,
    pub failures: u32,
}

/// The inputs; the same inputs have the same answer.
#[derive(Clone, Debug, PartialEq)]
pub struct PathsQuestion {
    pub wanted: RequestedSources,
    /// The revisions of the last sync.
    pub from: Vec<String>,
    /// The compared revisions.
    pub to: Vec<String>,
    pub annotation: String,
}

/// Sources without manifests.
pub struct Unloadable {
    pub wanted: RequestedSources,
    /// What was demanded of them.
    pub trust: SignatureTrust,
    pub why: String,
}

/// A period without manifests: the repository is unreachable, or its content cannot be rendered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outage {
    pub since: Timestamp,
    /// When loading is retried, unless a refresh is requested earlier.
    pub next: Timestamp,
    attempts: u32,
    /// It was tried to compare with what the previous process compared with.
    pub was_restored: bool,
}

impl Outage {
    /// The longer it lasts, the rarer the retries, from every ten seconds to every minute; and one
    /// when the grace period ends.
    pub fn goes_on(known: Option<Self>, now: Timestamp, patience: Timestamp) -> Self {
        let attempts = known.map_or(0, |outage| outage.attempts) + 1;
        let next = now + PAUSE_AFTER_FAILURE * attempts.min(6);
        let next = if now < patience {
            next.min(patience)
        } else {
            next
        };
        Self {
            since: known.map_or(now, |outage| outage.since),
            next,
            attempts,
            was_restored: known.is_some_and(|outage| outage.was_restored),
        }
    }
}

impl Default for Memo {
    fn default() -> Self {
        Self {
            desired: None,
            unloadable: None,
            outage: None,
            comparison: None,
            compared_on: String::new(),
            published: None,
            lost_sight: 0,
            unseen: Vec::new(),
            running: None,
            proved: false,
            syncing: None,
            counted_end: None,
            last_start: None,
            automated: None,
            touched: None,
            share: rand::rng().random(),
            failures: 0,
        }
    }
}

impl Memo {
    pub fn forget(&mut self) {
        self.desired = None;
        self.unloadable = None;
        self.outage = None;
        self.comparison = None;
        self.published = None;
    }

    /// The outage, while it need not be reported yet.
    pub fn untold_outage(&self) -> Option<Outage> {
        self.outage.filter(|_| self.unloadable.is_none())
    }

    /// Compresses the objects, unless a sync still uses them.
    pub fn rest(&self) {
        if self.running.is_none() {
            self.desired
                .iter()
                .flat_map(|d| &d.manifests)
                .flat_map(|m| m.objects.iter())
                .for_each(|o| o.rest());
            self.comparison.iter().for_each(|c| c.rest());
        }
    }

    /// Sources were loaded.
    pub fn remember(&mut self, desired: &RenderedSources) {
        self.desired = Some(desired.clone());
        (self.unloadable, self.outage) = (None, None);
    }

    /// The last result of loading these sources.
    pub fn loaded(
        &self,
        wanted: &RequestedSources,
        trust: &SignatureTrust,
    ) -> Option<Result<RenderedSources, String>> {
        let failed = self
            .unloadable
            .as_ref()
            .filter(|failed| failed.wanted == *wanted && failed.trust == *trust)
            .map(|failed| Err(failed.why.clone()));
        let is_same = |d: &RenderedSources| d.wanted == *wanted && d.trust == *trust;
        failed.or_else(|| self.desired.clone().filter(is_same).map(Ok))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn c9_a_repository_that_is_away_is_asked_more_and_more_rarely_and_at_the_end_of_patience() {
        let begin: Timestamp = "2026-01-01T00:00:00Z".parse().expect("a time");
        let patience = begin + Duration::from_secs(75);
        let (mut outage, mut now, mut asked) = (None, begin, Vec::new());
        for _ in 0..9 {
            let goes_on = Outage::goes_on(outage, now, patience);
            now = goes_on.next;
            let was_restored = !asked.is_empty();
            assert_eq!(goes_on.was_restored, was_restored, "once");
            outage = Some(Outage {
                was_restored: true,
                ..goes_on
            });
            asked.push(now.duration_since(begin).as_secs());
        }
        assert_eq!(asked, [10, 30, 60, 75, 125, 185, 245, 305, 365]);
        assert_eq!(outage.map(|o| o.since), Some(begin));
    }
}
