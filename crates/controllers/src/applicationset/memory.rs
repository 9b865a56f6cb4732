//! What is remembered of a set between two reconciles, so that one in which nothing changes costs
//! little. Main type: [`Memory`].

use super::{REFRESH, REFRESH_TIMESTAMP};
use std::{collections::BTreeSet, sync::Arc};
use tiphys_api::{Application, ApplicationSet, constants::DELETED_APPLICATIONS};
use tiphys_appset::reconcile::Settings;
use tiphys_engine::spec::Destination;
use tiphys_sources::Remembered;

/// The last reconcile of a set.
#[derive(Clone, Default)]
pub(super) struct Memory {
    /// What it generated.
    pub generated: Option<Arc<Remembered>>,
    /// What it saw, if it had nothing to do.
    pub settled: Option<Arc<Settled>>,
    /// The version of the set whose request for a refresh was answered, where a dry run leaves the
    /// request in place.
    pub answered: Option<String>,
    /// What it left, to be kept when the set is deleted.
    pub last: Option<Arc<Last>>,
}

/// A set and its Applications after a reconcile.
pub(super) struct Last {
    pub set: Arc<ApplicationSet>,
    pub owned: Vec<Arc<Application>>,
}

/// All that a plan depends on besides the time.
pub(super) struct Settled {
    pub set: Arc<ApplicationSet>,
    pub generated: Arc<Remembered>,
    /// All of the namespace, in the order of the store.
    pub applications: Vec<Arc<Application>>,
    pub projects: BTreeSet<String>,
    pub clusters: Arc<[Destination]>,
    pub settings: Settings,
}

impl Settled {
    /// Whether a plan would be the same: no record was replaced, and nobody wrote the set but to
    /// ask for a refresh.
    pub fn is_as(&self, now: &Self) -> bool {
        let is_same = |(a, b): (&Arc<Application>, &Arc<Application>)| Arc::ptr_eq(a, b);
        Arc::ptr_eq(&self.generated, &now.generated)
            && self.applications.len() == now.applications.len()
            && self.applications.iter().zip(&now.applications).all(is_same)
            && self.projects == now.projects
            && self.clusters == now.clusters
            && self.settings == now.settings
            && (Arc::ptr_eq(&self.set, &now.set) || is_same_set(&self.set, &now.set))
    }

    /// Whether the time alone changes nothing: no steps wait, and nothing is kept for a while.
    pub fn is_timeless(&self) -> bool {
        let annotations = &self.set.metadata.annotations;
        self.set.spec.strategy.is_none() && !annotations.contains_key(DELETED_APPLICATIONS)
    }
}

fn is_same_set(a: &ApplicationSet, b: &ApplicationSet) -> bool {
    let annotations = |set: &ApplicationSet| {
        let mut annotations = set.metadata.annotations.clone();
        annotations.remove(REFRESH);
        annotations.remove(REFRESH_TIMESTAMP);
        annotations
    };
    let (am, bm) = (&a.metadata, &b.metadata);
    a.spec == b.spec
        && a.status == b.status
        && am.uid == bm.uid
        && am.labels == bm.labels
        && am.finalizers == bm.finalizers
        && am.deletion_timestamp == bm.deletion_timestamp
        && annotations(a) == annotations(b)
}
