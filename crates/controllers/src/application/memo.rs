//! What one reconcile of an Application leaves for the next.
//!
//! Main type: [`Memo`]. Nothing in it is needed: without it the next look only takes longer.

use super::{
    prepare,
    repeats::Repeats,
    sources::{RenderedSources, RequestedSources},
    start, supersede, touched,
};
use jiff::Timestamp;
use rand::Rng;
use std::sync::Arc;
use tiphys_apimachinery::ResourceKey;
use tiphys_cluster::clusters::PAUSE_AFTER_FAILURE;
use tiphys_engine::types::Comparison;

/// What is remembered of an Application between looks. Losing it costs time, and at most one
/// automatic sync that was to wait.
pub struct Memo {
    pub desired: Option<RenderedSources>,
    /// Why there were no manifests of these sources when they were last asked for.
    pub unloadable: Option<(RequestedSources, String)>,
    /// There have been none since, told of or not.
    pub outage: Option<Outage>,
    pub comparison: Option<Arc<Comparison>>,
    /// What readers see the resources of.
    pub published: Option<Arc<Comparison>>,
    /// How often in a row the live state could not be had.
    pub lost_sight: u32,
    /// What it then needed the kinds of.
    pub unseen: Vec<ResourceKey>,
    pub running: Option<prepare::Running>,
    /// The server itself has shown it to this process, or taken a change of it: it is not from the
    /// past.
    pub proved: bool,
    pub syncing: Option<supersede::Syncing>,
    pub last_start: Option<start::Start>,
    /// The last automatic sync that was started.
    pub automated: Option<Repeats>,
    /// Whether a revision concerns it that was compared, but not synced.
    pub touched: Option<(touched::Question, bool)>,
    /// This Application's share of every jitter.
    pub share: f64,
    pub failures: u32,
}

/// A time in which no manifests could be had: the repository cannot be reached, or what it has
/// cannot be rendered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outage {
    pub since: Timestamp,
    /// When they are asked for again, unless somebody demands it.
    pub next: Timestamp,
    attempts: u32,
}

impl Outage {
    /// The longer it lasts, the more rarely it is asked, from every ten seconds to every minute;
    /// and when the time is over in which it is nobody's concern.
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
            published: None,
            lost_sight: 0,
            unseen: Vec::new(),
            running: None,
            proved: false,
            syncing: None,
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

    /// That no manifests can be had is no concern yet.
    pub fn untold_outage(&self) -> Option<Outage> {
        self.outage.filter(|_| self.unloadable.is_none())
    }

    /// Lets the objects rest, unless a sync goes on with them.
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

    /// What came of loading these sources the last time.
    pub fn loaded(&self, wanted: &RequestedSources) -> Option<Result<RenderedSources, String>> {
        let failed = self
            .unloadable
            .as_ref()
            .filter(|(sources, _)| sources == wanted)
            .map(|(_, why)| Err(why.clone()));
        failed.or_else(|| self.desired.clone().filter(|d| d.wanted == *wanted).map(Ok))
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
            outage = Some(goes_on);
            asked.push(now.duration_since(begin).as_secs());
        }
        assert_eq!(asked, [10, 30, 60, 75, 125, 185, 245, 305, 365]);
        assert_eq!(outage.map(|o| o.since), Some(begin));
    }
}
