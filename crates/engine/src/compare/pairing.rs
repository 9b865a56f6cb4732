//! Pairs each desired object with its live object.
//!
//! Main function: [`pair`]. It does not look at differences, and copies nothing.

use crate::{normalize::targets::Target, permit, types::CompareRules};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::Arc,
};
use tiphys_apimachinery::{Kept, ResourceKey};

/// A desired object, a live one, or both.
#[derive(Clone, Copy)]
pub struct Pair<'a> {
    pub key: &'a ResourceKey,
    pub target: Option<&'a Target>,
    pub live: Option<&'a Arc<Kept>>,
}

type Live = BTreeMap<ResourceKey, Arc<Kept>>;

/// Pairs in the order of their keys. An object that is live but not desired is a pair of its own.
pub fn pair<'a>(
    mut targets: Vec<&'a Target>,
    live: &'a Live,
    rules: &CompareRules,
) -> Vec<Pair<'a>> {
    if !targets.is_sorted_by_key(|t| &t.key) {
        targets.sort_by_key(|t| &t.key);
    }
    let (adopted, taken) = at_cluster_scope(&targets, live);
    let mut rest = live
        .iter()
        .filter(|(key, _)| !taken.contains(key))
        .peekable();
    let mut pairs = Vec::with_capacity(targets.len().max(live.len()));
    let extra = |(key, live): (&'a ResourceKey, &'a Arc<Kept>)| Pair {
        key,
        target: None,
        live: Some(live),
    };
    for target in targets {
        while let Some(other) = rest.next_if(|(key, _)| **key < target.key) {
            pairs.push(extra(other));
        }
        // An object with `generateName` gets its name from the API server, so it never exists yet.
        let named = !target.object.name().is_empty();
        let found = rest
            .next_if(|(key, _)| named && **key == target.key)
            .map(|(_, live)| live);
        let found = found.or_else(|| adopted.get(&target.key).copied());
        pairs.push(Pair {
            key: &target.key,
            target: Some(target),
            live: found,
        });
    }
    pairs.extend(rest.map(extra));
    drop_twins(&mut pairs, rules);
    pairs
}

/// If the cluster does not know a kind, live objects are looked up both with and without a
/// namespace, because a live object that is missed would be deleted. Returns the live objects by
/// their targets' keys, and their own keys.
fn at_cluster_scope<'a>(
    targets: &[&'a Target],
    live: &'a Live,
) -> (
    BTreeMap<&'a ResourceKey, &'a Arc<Kept>>,
    BTreeSet<&'a ResourceKey>,
) {
    let (mut adopted, mut taken) = (BTreeMap::new(), BTreeSet::new());
    for target in targets
        .iter()
        .filter(|t| t.namespaced.is_none() && !live.contains_key(&t.key))
    {
        if let Some((key, object)) = live.get_key_value(&target.key.without_namespace())
            && taken.insert(key)
        {
            adopted.insert(&target.key, object);
        }
    }
    (adopted, taken)
}

/// Some objects are served under two API groups (as Ingress was). Of such twins, which have the
/// same uid, only those in Git are kept, and always at least one.
fn drop_twins(pairs: &mut Vec<Pair<'_>>, rules: &CompareRules) {
    // Only objects that are not in Git are dropped.
    if pairs.iter().all(|p| p.target.is_some()) {
        return;
    }
    let mut seen = HashSet::new();
    let twins: HashSet<&str> = pairs
        .iter()
        .filter_map(uid)
        .filter(|uid| !seen.insert(*uid))
        .collect();
    let twin = |pair: &Pair<'_>| {
        let uid = uid(pair).and_then(|uid| twins.get(uid)).copied()?;
        pair.live
            .is_some_and(|live| permit::live(rules, live))
            .then_some((uid, pair.target.is_some()))
    };
    // For each uid: whether one of them is in Git, and how many are not.
    let mut left: HashMap<&str, (bool, usize)> = HashMap::new();
    for (uid, wanted) in pairs.iter().filter_map(twin) {
        let (any_wanted, others) = left.entry(uid).or_default();
        *any_wanted |= wanted;
        *others += usize::from(!wanted);
    }
    pairs.retain(|pair| {
        let Some((any_wanted, others)) = twin(pair)
            .filter(|(_, wanted)| !wanted)
            .and_then(|(uid, _)| left.get_mut(uid))
        else {
            return true;
        };
        *others -= 1;
        !*any_wanted && *others == 0
    });
}

fn uid<'a>(pair: &Pair<'a>) -> Option<&'a str> {
    pair.live
        .map(|live| live.uid())
        .filter(|uid| !uid.is_empty())
}
