//! What a comparison tells readers in the same process: each resource with its difference, and the tree.

use super::Controller;
use serde_json::Value;
use std::{collections::BTreeSet, sync::Arc};
use tiphys_api::resource::{ApplicationTree, ResourceDiff};
use tiphys_apimachinery::Object;
use tiphys_cluster::{app_state::AppKey, cache::LiveCache, clusters::LiveCluster};
use tiphys_engine::{
    diff, tree,
    types::{Comparison, Entry},
};

impl Controller {
    /// Publishes resources and tree. Returns what the tree says of images and external addresses.
    pub(super) fn publish(&self, key: &AppKey, comparison: &Comparison, cluster: &LiveCluster) -> (Vec<String>, Vec<String>) {
        let managed: Vec<_> = comparison.entries.iter().map(resource_diff).collect();
        let tree = tree_of(comparison, &cluster.cache);
        let summary = tree::summary(&tree);
        self.states.publish(key, &managed, tree);
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
    let (mut desired, mut live) = (entry.desired.clone(), entry.live.as_deref().cloned());
    let (mut normalized, mut predicted) = (entry.diff.normalized_live.clone(), entry.diff.predicted_live.clone());
    if entry.gvk.group.is_empty() && entry.gvk.kind == "Secret" {
        (desired, live) = diff::mask_secret(desired.as_ref(), live.as_ref(), &BTreeSet::new());
        let as_object = |v: &Value| Object::from_value(v.clone()).ok();
        let value = |o: Option<Object>| Arc::new(o.map_or(Value::Null, Object::into_value));
        let (predicted_masked, normalized_masked) =
            diff::mask_secret(as_object(&predicted).as_ref(), as_object(&normalized).as_ref(), &BTreeSet::new());
        normalized = value(normalized_masked);
        predicted = value(predicted_masked);
    }
    let text = |o: Option<Object>| o.map_or_else(|| "null".to_owned(), |o| Value::Object(o.0).to_string());
    ResourceDiff {
        group: entry.gvk.group.clone(),
        kind: entry.gvk.kind.clone(),
        namespace: entry.key.namespace.clone(),
        name: entry.key.name.clone(),
        target_state: text(desired),
        resource_version: live.as_ref().map(|l| l.resource_version().to_owned()).unwrap_or_default(),
        live_state: text(live),
        diff: String::new(),
        hook: entry.hook,
        normalized_live_state: normalized.to_string(),
        predicted_live_state: predicted.to_string(),
        modified: entry.diff.modified,
    }
}
