//! Which live object belongs to which desired one.
//!
//! Main function: [`pair`]. It decides nothing about differences.

use crate::types::{CompareRules, KindInfo};
use std::{collections::BTreeMap, sync::Arc};
use tiphys_apimachinery::{Object, ResourceKey};

/// A desired object, a live one, or both.
pub type Pair = (Option<Object>, Option<Arc<Object>>);
pub type Live = BTreeMap<ResourceKey, Arc<Object>>;

/// Pairs by key, in the order of keys. What is live without being desired comes as a pair of its own.
pub fn pair(desired: Vec<Object>, mut live: Live, rules: &CompareRules, kinds: &dyn KindInfo) -> Vec<(ResourceKey, Pair)> {
    drop_aliases(&desired, &mut live);
    let mut pairs = Vec::with_capacity(desired.len().max(live.len()));
    for (index, object) in desired.into_iter().enumerate() {
        let found = take_live(&object, &mut live, rules, kinds);
        let mut key = object.key();
        if key.name.is_empty() {
            key.name = format!("{}{index}", object.generate_name());
        }
        pairs.push((key, (Some(object), found)));
    }
    pairs.extend(live.into_iter().map(|(key, object)| (key, (None, Some(object)))));
    pairs.sort_by(|(a, _), (b, _)| a.cmp(b));
    pairs
}

/// Takes out the live object. Of a kind that the cluster does not know both scopes are looked at: to miss it would mean to delete it.
fn take_live(object: &Object, live: &mut Live, rules: &CompareRules, kinds: &dyn KindInfo) -> Option<Arc<Object>> {
    let mut key = object.key();
    if key.namespace.is_empty() {
        key.namespace.clone_from(&rules.dest_namespace);
    }
    match kinds.is_namespaced(&key.group_kind()) {
        Some(true) => live.remove(&key),
        Some(false) => live.remove(&key.without_namespace()),
        None => live.remove(&key).or_else(|| live.remove(&key.without_namespace())),
    }
}

/// Some objects are served under two groups (as Ingress was). Of such twins, told by their uid, only those in Git stay; and always one.
fn drop_aliases(desired: &[Object], live: &mut Live) {
    let mut by_uid: BTreeMap<&str, Vec<&ResourceKey>> = BTreeMap::new();
    for (key, object) in live.iter().filter(|(_, o)| !o.uid().is_empty()) {
        by_uid.entry(object.uid()).or_default().push(key);
    }
    let mut dropped = Vec::new();
    for twins in by_uid.into_values().filter(|keys| keys.len() > 1) {
        let unwanted = twins.iter().filter(|key| !desired.iter().any(|d| d.key() == ***key));
        dropped.extend(unwanted.take(twins.len() - 1).map(|key| (*key).clone()));
    }
    for key in dropped {
        live.remove(&key);
    }
}
