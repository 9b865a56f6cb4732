//! What a comparison tells readers in the same process: each resource with its difference, and the tree.

use super::Controller;
use serde_json::Value;
use std::collections::BTreeSet;
use tiphys_api::resource::{ApplicationTree, ResourceDiff};
use tiphys_apimachinery::Object;
use tiphys_cluster::{app_state::AppKey, cache::LiveCache, clusters::LiveCluster};
use tiphys_engine::{
    diff, tree,
    types::{Comparison, Entry},
};

impl Controller {
    /// Publishes resources and tree; of resources that were published before nothing is written again. Returns what the tree says of
    /// images and external addresses.
    pub(super) fn publish(
        &self,
        key: &AppKey,
        comparison: &Comparison,
        published: Option<&Comparison>,
        cluster: &LiveCluster,
    ) -> (Vec<String>, Vec<String>) {
        let tree = tree_of(comparison, &cluster.cache);
        let summary = tree::summary(&tree);
        if published.is_some_and(|before| comparison.has_entries_of(before)) {
            self.states.publish_tree(key, tree);
        } else {
            let managed: Vec<_> = comparison.entries.iter().map(|e| resource_diff(e)).collect();
            self.states.publish(key, &managed, tree);
        }
        summary
    }

    /// Publishes the tree alone: something that a resource made has changed.
    pub(super) fn publish_tree(&self, key: &AppKey, comparison: &Comparison, cluster: &LiveCluster) {
        self.states.publish_tree(key, tree_of(comparison, &cluster.cache));
    }

    /// Nothing is known of the Application's resources.
    pub(super) fn publish_unknown(&self, key: &AppKey) {
        self.states.publish(key, &[], ApplicationTree::default());
    }
}

fn tree_of(comparison: &Comparison, cache: &LiveCache) -> ApplicationTree {
    tree::build(&comparison.entries, &comparison.rules, &|uid| cache.child_nodes(uid))
}

fn resource_diff(entry: &Entry) -> ResourceDiff {
    let (desired, live) = (entry.desired.as_deref(), entry.live.as_deref());
    let states = if entry.gvk.group.is_empty() && entry.gvk.kind == "Secret" {
        let masked = |a: Option<&Object>, b: Option<&Object>| diff::mask_secret(a, b, &BTreeSet::new());
        let object = |v: &Value| Object::from_value(v.clone()).ok();
        let (desired, live) = masked(desired, live);
        let (predicted, normalized) = masked(object(&entry.diff.predicted_live).as_ref(), object(&entry.diff.normalized_live).as_ref());
        [desired, live, normalized, predicted].map(|o| text(o.as_ref()))
    } else {
        [text(desired), text(live), entry.diff.normalized_live.to_string(), entry.diff.predicted_live.to_string()]
    };
    let [target_state, live_state, normalized_live_state, predicted_live_state] = states;
    ResourceDiff {
        group: entry.gvk.group.clone(),
        kind: entry.gvk.kind.clone(),
        namespace: entry.key.namespace.clone(),
        name: entry.key.name.clone(),
        target_state,
        resource_version: live.map(|l| l.resource_version().to_owned()).unwrap_or_default(),
        live_state,
        diff: String::new(),
        hook: entry.hook,
        normalized_live_state,
        predicted_live_state,
        modified: entry.diff.modified,
    }
}

fn text(object: Option<&Object>) -> String {
    object.map_or_else(|| "null".to_owned(), |o| serde_json::to_string(o).expect("a JSON map can be written as JSON"))
}
