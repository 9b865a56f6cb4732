//! Maps a change to the objects that have to be reconciled.
//!
//! Main function: [`changed`]. It only queues keys; reconciling one object too many is harmless,
//! missing one is not.

use super::{
    engine::Engine,
    kind::{Key, Kind},
    storage,
    store::SimStore,
    workload::claim::{selects, selects_map, takes},
};
use tiphys_apimachinery::Object;

/// Queues all objects that a change may affect; `new` is absent if the object is deleted.
pub fn changed<S: SimStore>(
    engine: &mut Engine<S>,
    key: &Key,
    old: Option<&Object>,
    new: Option<&Object>,
) {
    // A deleted Service leaves Endpoints behind.
    if new.is_some() || key.kind == Kind::Service {
        engine.enqueue(key.clone());
    }
    let counts = matches!(
        key.kind,
        Kind::Pod | Kind::Service | Kind::PersistentVolumeClaim
    ) || old.is_none()
        || new.is_none();
    if counts && !key.namespace.is_empty() {
        other(engine, &key.namespace);
    }
    for object in [old, new].into_iter().flatten() {
        if let Some(owner) = object.controller_of()
            && let Some(kind) = Kind::of_api_version(&owner.api_version, &owner.kind)
        {
            engine.enqueue(Key::new(kind, &key.namespace, &owner.name));
        }
    }
    for other in concerned(engine, key, old, new) {
        engine.enqueue(other);
    }
}

/// An object that is not simulated was created or deleted: quotas count it.
pub fn other<S: SimStore>(engine: &mut Engine<S>, namespace: &str) {
    let quotas: Vec<Key> = engine
        .cache
        .in_namespace(Kind::ResourceQuota, namespace)
        .filter_map(|q| Key::of(q))
        .collect();
    quotas.into_iter().for_each(|quota| engine.enqueue(quota));
}

fn concerned<S: SimStore>(
    engine: &Engine<S>,
    key: &Key,
    old: Option<&Object>,
    new: Option<&Object>,
) -> Vec<Key> {
    let namespace = key.namespace.as_str();
    let cache = &engine.cache;
    let both = || [old, new].into_iter().flatten();
    // The objects of a kind in this namespace for which `fits` holds.
    let matching = |kind: Kind, fits: &dyn Fn(&Object) -> bool| -> Vec<Key> {
        cache
            .in_namespace(kind, namespace)
            .filter(|o| fits(o))
            .filter_map(|o| Key::of(o))
            .collect()
    };
    let orphan = new.filter(|o| o.controller_of().is_none());
    let adopters = |kinds: &[Kind]| -> Vec<Key> {
        let Some(orphan) = orphan else {
            return Vec::new();
        };
        kinds
            .iter()
            .flat_map(|kind| matching(*kind, &|o| takes(o, orphan)))
            .collect()
    };
    let unscheduled = |pod: &Object| pod.str_at("/spec/nodeName").is_empty();
    match key.kind {
        Kind::Pod => {
            let mut keys = matching(Kind::Service, &|s| {
                both().any(|p| selects_map(s.pointer("/spec/selector"), p))
            });
            keys.extend(matching(Kind::PodDisruptionBudget, &|b| {
                both().any(|p| selects(b.pointer("/spec/selector"), p))
            }));
            if old.is_none() {
                keys.extend(matching(Kind::PersistentVolumeClaim, &|c| {
                    !storage::is_bound(c)
                }));
            }
            keys.extend(adopters(&[
                Kind::ReplicaSet,
                Kind::ReplicationController,
                Kind::StatefulSet,
                Kind::DaemonSet,
            ]));
            keys
        }
        Kind::ReplicaSet => {
            let mut keys = adopters(&[Kind::Deployment]);
            keys.extend(scalers(engine, key));
            keys
        }
        Kind::Deployment | Kind::StatefulSet | Kind::ReplicationController => scalers(engine, key),
        Kind::Node => {
            let taints = |o: Option<&Object>| o.and_then(|n| n.pointer("/spec/taints")).cloned();
            let drives_away = new.is_none() || taints(old) != taints(new);
            let concerned = |p: &Object| {
                unscheduled(p) || (drives_away && p.str_at("/spec/nodeName") == key.name)
            };
            let pods = cache
                .of_kind(Kind::Pod)
                .filter(|p| concerned(p))
                .filter_map(|p| Key::of(p));
            pods.chain(cache.of_kind(Kind::DaemonSet).filter_map(|d| Key::of(d)))
                .collect()
        }
        Kind::PersistentVolumeClaim => {
            let mut keys = matching(Kind::Pod, &unscheduled);
            keys.extend(
                both().map(|c| Key::new(Kind::PersistentVolume, "", c.str_at("/spec/volumeName"))),
            );
            // Its claims may be owned by the set.
            if old.is_none() {
                keys.extend(matching(Kind::StatefulSet, &|s| {
                    s.pointer("/spec/volumeClaimTemplates").is_some()
                }));
            }
            keys
        }
        Kind::PersistentVolume => {
            let named = both().map(|v| {
                Key::new(
                    Kind::PersistentVolumeClaim,
                    v.str_at("/spec/claimRef/namespace"),
                    v.str_at("/spec/claimRef/name"),
                )
            });
            named.chain(waiting_claims(engine)).collect()
        }
        Kind::StorageClass => waiting_claims(engine).collect(),
        Kind::Service => vec![Key::new(Kind::Endpoints, namespace, &key.name)],
        Kind::Endpoints => vec![Key::new(Kind::Service, namespace, &key.name)],
        Kind::ServiceAccount | Kind::ConfigMap if new.is_none() => {
            vec![Key::new(Kind::Namespace, "", namespace)]
        }
        _ => Vec::new(),
    }
}

fn waiting_claims<S: SimStore>(engine: &Engine<S>) -> impl Iterator<Item = Key> {
    engine
        .cache
        .of_kind(Kind::PersistentVolumeClaim)
        .filter(|c| !storage::is_bound(c))
        .filter_map(|c| Key::of(c))
}

fn scalers<S: SimStore>(engine: &Engine<S>, key: &Key) -> Vec<Key> {
    let all = engine
        .cache
        .in_namespace(Kind::HorizontalPodAutoscaler, &key.namespace);
    let aims = |h: &&std::sync::Arc<Object>| {
        h.str_at("/spec/scaleTargetRef/name") == key.name
            && h.str_at("/spec/scaleTargetRef/kind") == key.kind.name()
    };
    all.filter(aims).filter_map(|h| Key::of(h)).collect()
}
