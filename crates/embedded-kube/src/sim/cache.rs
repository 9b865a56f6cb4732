//! The controllers' cache of the cluster, with indexes that keep the work proportional to the
//! change.
//!
//! Main type: [`Cache`]. Objects are shared, not copied. It makes no decisions.

use super::kind::{Key, Kind};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};
use tiphys_apimachinery::Object;

/// The simulated kinds' objects, by key, by owner, and those without an owner.
#[derive(Default)]
pub struct Cache {
    objects: BTreeMap<Key, Arc<Object>>,
    /// By the uid of the controlling owner.
    owned: HashMap<String, BTreeSet<Key>>,
    /// Pods and ReplicaSets without a controlling owner: candidates for adoption.
    orphans: BTreeSet<Key>,
    /// The number of pods on each node that have not ended.
    load: HashMap<String, usize>,
    /// Addresses in use, with the number of pods that have them (host network pods share one).
    addresses: HashMap<String, usize>,
}

/// Whether a resourceVersion is older than another; false if either is not a number.
fn is_older(a: &str, b: &str) -> bool {
    matches!((a.parse::<u64>(), b.parse::<u64>()), (Ok(a), Ok(b)) if a < b)
}

impl Cache {
    pub fn get(&self, key: &Key) -> Option<&Arc<Object>> {
        self.objects.get(key)
    }

    pub fn find(&self, kind: Kind, namespace: &str, name: &str) -> Option<&Arc<Object>> {
        self.objects.get(&Key::new(kind, namespace, name))
    }

    /// All objects of a kind in a namespace.
    pub fn in_namespace<'a>(
        &'a self,
        kind: Kind,
        namespace: &'a str,
    ) -> impl Iterator<Item = &'a Arc<Object>> + 'a {
        let from = Key::new(kind, namespace, "");
        self.objects
            .range(from..)
            .take_while(move |(k, _)| k.kind == kind && k.namespace == namespace)
            .map(|(_, o)| o)
    }

    /// All objects of a kind.
    pub fn of_kind(&self, kind: Kind) -> impl Iterator<Item = &Arc<Object>> {
        self.objects
            .range(Key::new(kind, "", "")..)
            .take_while(move |(k, _)| k.kind == kind)
            .map(|(_, o)| o)
    }

    pub fn keys(&self) -> impl Iterator<Item = &Key> {
        self.objects.keys()
    }

    /// The objects of a kind that the object with this uid controls.
    pub fn owned(&self, uid: &str, kind: Kind) -> Vec<Arc<Object>> {
        let keys = self
            .owned
            .get(uid)
            .into_iter()
            .flatten()
            .filter(|k| k.kind == kind);
        keys.filter_map(|k| self.objects.get(k).cloned()).collect()
    }

    /// The objects of a kind in a namespace that have no controller.
    pub fn orphans(&self, kind: Kind, namespace: &str) -> Vec<Arc<Object>> {
        let keys = self
            .orphans
            .range(Key::new(kind, namespace, "")..)
            .take_while(|k| k.kind == kind && k.namespace == namespace);
        keys.filter_map(|k| self.objects.get(k).cloned()).collect()
    }

    pub fn pods_on(&self, node: &str) -> usize {
        self.load.get(node).copied().unwrap_or(0)
    }

    pub fn address_used(&self, address: &str) -> bool {
        self.addresses.contains_key(address)
    }

    /// Stores a newer state of an object; returns the previous state if it is a change, `None` if
    /// it is not.
    pub fn put(&mut self, key: &Key, object: Arc<Object>) -> Option<Option<Arc<Object>>> {
        if let Some(old) = self.objects.get(key) {
            let (new_version, old_version) = (object.resource_version(), old.resource_version());
            if new_version == old_version || is_older(new_version, old_version) {
                return None;
            }
        }
        let old = self.objects.insert(key.clone(), object.clone());
        if let Some(old) = &old {
            self.unindex(key, old);
        }
        self.index(key, &object);
        Some(old)
    }

    /// Removes an object, if it has this uid.
    pub fn remove(&mut self, key: &Key, uid: &str) -> Option<Arc<Object>> {
        if self.objects.get(key).is_none_or(|o| o.uid() != uid) {
            return None;
        }
        let old = self.objects.remove(key)?;
        self.unindex(key, &old);
        Some(old)
    }

    fn index(&mut self, key: &Key, object: &Object) {
        match object.controller_of() {
            Some(owner) => {
                self.owned.entry(owner.uid).or_default().insert(key.clone());
            }
            None if matches!(key.kind, Kind::Pod | Kind::ReplicaSet) => {
                self.orphans.insert(key.clone());
            }
            None => {}
        }
        if key.kind == Kind::Pod {
            if let Some(node) = occupied(object) {
                *self.load.entry(node.to_owned()).or_default() += 1;
            }
            if let Some(ip) = pod_address(object) {
                *self.addresses.entry(ip.to_owned()).or_default() += 1;
            }
        }
    }

    fn unindex(&mut self, key: &Key, object: &Object) {
        match object.controller_of() {
            Some(owner) => {
                if let Some(set) = self.owned.get_mut(&owner.uid) {
                    set.remove(key);
                    if set.is_empty() {
                        self.owned.remove(&owner.uid);
                    }
                }
            }
            None => {
                self.orphans.remove(key);
            }
        }
        if key.kind == Kind::Pod {
            if let Some(node) = occupied(object) {
                lower(&mut self.load, node);
            }
            if let Some(ip) = pod_address(object) {
                lower(&mut self.addresses, ip);
            }
        }
    }
}

fn lower(counts: &mut HashMap<String, usize>, key: &str) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}

/// The node of a pod that has not ended.
fn occupied(pod: &Object) -> Option<&str> {
    let node = pod.str_at("/spec/nodeName");
    (!node.is_empty() && !matches!(pod.str_at("/status/phase"), "Succeeded" | "Failed"))
        .then_some(node)
}

fn pod_address(pod: &Object) -> Option<&str> {
    Some(pod.str_at("/status/podIP")).filter(|ip| !ip.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(version: u64, owner: &str, node: &str) -> Arc<Object> {
        let owners = if owner.is_empty() {
            json!([])
        } else {
            json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": owner, "controller": true}])
        };
        let value = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "p", "namespace": "d", "uid": "u", "resourceVersion": version.to_string(), "ownerReferences": owners},
            "spec": {"nodeName": node}, "status": {"podIP": "10.0.0.1"},
        });
        Arc::new(Object::from_value(value).expect("a map"))
    }

    #[test]
    fn indexes_follow_the_object() {
        let key = Key::new(Kind::Pod, "d", "p");
        let mut cache = Cache::default();
        assert!(cache.put(&key, pod(1, "", "")).is_some());
        assert_eq!(cache.orphans(Kind::Pod, "d").len(), 1);
        assert!(
            cache
                .put(&key, pod(3, "o", "n"))
                .is_some_and(|old| old.is_some())
        );
        assert!(
            cache.put(&key, pod(2, "", "")).is_none(),
            "an older state changes nothing"
        );
        assert_eq!(
            (
                cache.orphans(Kind::Pod, "d").len(),
                cache.owned("o", Kind::Pod).len(),
                cache.pods_on("n")
            ),
            (0, 1, 1)
        );
        assert!(cache.remove(&key, "another").is_none());
        assert!(cache.remove(&key, "u").is_some());
        assert_eq!(
            (
                cache.owned("o", Kind::Pod).len(),
                cache.pods_on("n"),
                cache.address_used("10.0.0.1")
            ),
            (0, 0, false)
        );
    }
}
