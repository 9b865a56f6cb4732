//! Starts and stops the watches as kinds come and go.
//!
//! Main function: [`keep`]. New CRDs and API services trigger another discovery, and so do
//! failures.

use super::{
    Shared,
    feed::{Feed, Scope},
};
use crate::{
    discovery::Kind,
    watch::{Target, follow, listen},
};
use hashbrown::HashMap;
use std::{
    sync::{Arc, Weak},
    time::Duration,
};
use tiphys_apimachinery::GroupKind;
use tiphys_engine::permit;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// Delays of discovery after a CRD or API service changed: the server needs a moment to serve a new
/// kind.
const ASK_AGAIN: [Duration; 4] = [
    Duration::from_millis(50),
    Duration::from_millis(400),
    Duration::from_secs(2),
    Duration::from_secs(8),
];
/// While discovery of some groups fails: the first delay and how often it doubles. Unknown kinds
/// cannot be applied.
const ASK_THE_REST: (Duration, u32) = (Duration::from_secs(1), 6);
/// Interval of discovery without any trigger.
const ASK_ANYWAY: Duration = Duration::from_secs(300);

/// The watches of one kind.
struct Running {
    kind: Arc<Kind>,
    cancel: CancellationToken,
}

/// Whether the cache follows a kind at all.
pub(super) fn is_followed(shared: &Shared, kind: &Kind) -> bool {
    let options = &shared.options;
    kind.can("list")
        && kind.can("watch")
        && (kind.namespaced || options.namespaces.is_empty() || options.cluster_resources)
        && !permit::excluded(
            &options.exclusions,
            &options.inclusions,
            &kind.gvk.group_kind(),
            shared.discovery.cluster().server(),
        )
}

/// Starts the watches for the current kinds; returns the running ones for [`keep`].
pub(super) struct Keeper {
    running: HashMap<GroupKind, Running>,
    cancel: CancellationToken,
}

impl Keeper {
    pub fn new(cancel: CancellationToken) -> Self {
        Self {
            running: HashMap::new(),
            cancel,
        }
    }

    /// Starts and stops watches to match the kinds.
    pub fn adjust(&mut self, shared: &Arc<Shared>) {
        let kinds = shared.discovery.kinds();
        let wanted: HashMap<GroupKind, Arc<Kind>> = kinds
            .preferred_kinds()
            .filter(|k| is_followed(shared, k))
            .map(|k| (k.gvk.group_kind(), k.clone()))
            .collect();
        let stop: Vec<GroupKind> = self
            .running
            .iter()
            .filter(|(gk, r)| wanted.get(*gk).is_none_or(|k| k.gvk != r.kind.gvk))
            .map(|(gk, _)| gk.clone())
            .collect();
        for gk in stop {
            if let Some(running) = self.running.remove(&gk) {
                running.cancel.cancel();
                // In another version the objects are the same; the new list updates them.
                if !wanted.contains_key(&gk) {
                    let mut store = shared.write();
                    let slot = store.slot_for(&running.kind);
                    let effects = store.drop_kind(slot);
                    drop(store);
                    effects
                        .into_iter()
                        .for_each(|e| shared.publish(&running.kind, e));
                }
            }
        }
        for (gk, kind) in wanted {
            if !self.running.contains_key(&gk) {
                let cancel = self.cancel.child_token();
                start(shared, &kind, &cancel);
                self.running.insert(gk, Running { kind, cancel });
            }
        }
    }
}

fn start(shared: &Arc<Shared>, kind: &Arc<Kind>, cancel: &CancellationToken) {
    let cluster = shared.discovery.cluster();
    let scopes = scopes(shared, kind);
    let slot = {
        let mut store = shared.write();
        let slot = store.slot_for(kind);
        store.slot_mut(slot).readings.begin(&scopes);
        slot
    };
    shared.pending.send_modify(|n| *n += scopes.len());
    for scope in scopes {
        let target = Target {
            path: kind.collection_path(scope.namespace()),
            field_selector: scope.field_selector(),
            lists: shared.lists.clone(),
            tap: None,
        };
        let is_whole = !matches!(scope, Scope::AllBut(_));
        let listener = is_whole
            .then(|| {
                cluster
                    .taps()
                    .listen(&kind.collection_path(""), scope.namespace())
            })
            .flatten();
        let feed = Feed::new(shared, kind.clone(), slot, scope);
        match listener {
            Some(listener) => tokio::spawn(listen(
                cluster.clone(),
                target,
                listener,
                feed,
                cancel.clone(),
            )),
            None => tokio::spawn(follow(cluster.clone(), target, feed, cancel.clone())),
        };
    }
}

/// One scope for each watch of a kind. If this process already watches a scope, that watch is
/// shared.
fn scopes(shared: &Shared, kind: &Kind) -> Vec<Scope> {
    let only = &shared.options.namespaces;
    if kind.namespaced && !only.is_empty() {
        return only.iter().cloned().map(Scope::In).collect();
    }
    let watched = shared
        .discovery
        .cluster()
        .taps()
        .namespaces(&kind.collection_path(""));
    if watched.iter().all(|namespace| !namespace.is_empty()) && !watched.is_empty() {
        return watched
            .iter()
            .cloned()
            .map(Scope::In)
            .chain([Scope::AllBut(watched.clone())])
            .collect();
    }
    vec![Scope::All]
}

/// Runs until cancelled or until the cache has no other references.
pub(super) async fn keep(
    shared: Weak<Shared>,
    mut keeper: Keeper,
    mut changed: watch::Receiver<u64>,
    cancel: CancellationToken,
) {
    let (definitions, discovery) = {
        let Some(strong) = shared.upgrade() else {
            return;
        };
        (strong.definitions.clone(), strong.discovery.clone())
    };
    let (mut asked, mut in_vain) = (ASK_AGAIN.len(), 0);
    loop {
        let incomplete = in_vain > 0 || !discovery.kinds().failures.is_empty();
        let anyway = if incomplete {
            ASK_THE_REST.0 * (1 << in_vain.min(ASK_THE_REST.1))
        } else {
            ASK_ANYWAY
        };
        let pause = ASK_AGAIN.get(asked).copied().unwrap_or(anyway);
        tokio::select! {
            () = cancel.cancelled() => return,
            result = changed.changed() => {
                let (Ok(()), Some(shared)) = (result, shared.upgrade()) else { return };
                changed.mark_unchanged();
                keeper.adjust(&shared);
            }
            () = definitions.notified() => asked = 0,
            () = tokio::time::sleep(pause) => {
                asked = (asked + 1).min(ASK_AGAIN.len());
                let answer = discovery.refresh().await;
                in_vain = if answer.as_ref().is_ok_and(|kinds| kinds.failures.is_empty()) { 0 } else { in_vain + 1 };
                if let Err(error) = answer {
                    tracing::warn!(%error, "discovery failed; the kinds known before are kept");
                }
            }
        }
    }
}
