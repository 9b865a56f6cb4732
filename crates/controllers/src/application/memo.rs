//! What one look at an Application leaves for the next.
//!
//! Main type: [`Memo`]. Nothing in it is needed: without it the next look only takes longer.

use super::{
    operation,
    sources::{Desired, Wanted},
    start, supersede,
};
use rand::Rng;
use std::sync::Arc;
use tiphys_engine::types::Comparison;

/// What is remembered of an Application between looks. Losing it costs time, nothing else.
pub struct Memo {
    pub desired: Option<Desired>,
    /// Why there were no manifests of these sources when they were last asked for.
    pub unloadable: Option<(Wanted, String)>,
    pub comparison: Option<Arc<Comparison>>,
    /// What readers see the resources of.
    pub published: Option<Arc<Comparison>>,
    /// How often in a row the live state could not be had.
    pub lost_sight: u32,
    pub running: Option<operation::Running>,
    /// The server itself has shown it to this process, or taken a change of it: it is not from the past.
    pub proved: bool,
    pub syncing: Option<supersede::Syncing>,
    pub last_start: Option<start::Start>,
    /// This Application's share of every jitter.
    pub share: f64,
    pub failures: u32,
}

impl Default for Memo {
    fn default() -> Self {
        Self {
            desired: None,
            unloadable: None,
            comparison: None,
            published: None,
            lost_sight: 0,
            running: None,
            proved: false,
            syncing: None,
            last_start: None,
            share: rand::rng().random(),
            failures: 0,
        }
    }
}

impl Memo {
    pub fn forget(&mut self) {
        self.desired = None;
        self.unloadable = None;
        self.comparison = None;
        self.published = None;
    }

    /// Lets the objects rest, unless a sync goes on with them.
    pub fn rest(&self) {
        if self.running.is_none() {
            self.desired.iter().flat_map(|d| &d.manifests).flat_map(|m| m.objects.iter()).for_each(|o| o.rest());
            self.comparison.iter().for_each(|c| c.rest());
        }
    }

    /// What came of loading these sources the last time.
    pub fn loaded(&self, wanted: &Wanted) -> Option<Result<Desired, String>> {
        let failed = self.unloadable.as_ref().filter(|(sources, _)| sources == wanted).map(|(_, why)| Err(why.clone()));
        failed.or_else(|| self.desired.clone().filter(|d| d.wanted == *wanted).map(Ok))
    }
}
