//! What Git wants, made ready for a comparison: namespaces filled in, the tracking mark set, duplicates and excluded kinds taken out.
//!
//! Main function: [`prepare`]. It knows nothing of the live state.

use crate::{
    permit, track,
    types::{CompareRules, Condition, ConditionType, KindInfo},
};
use std::collections::BTreeMap;
use tiphys_apimachinery::{Object, ResourceKey};

/// The objects by key, in the order of their keys, and what users should know about those that were left out.
pub fn prepare(objects: Vec<Object>, rules: &CompareRules, kinds: &dyn KindInfo) -> (Vec<Object>, Vec<Condition>) {
    let mut by_key: BTreeMap<ResourceKey, (usize, Object)> = BTreeMap::new();
    for (index, mut object) in objects.into_iter().enumerate() {
        drop_nulls_of_metadata(&mut object);
        fill_namespace(&mut object, rules, kinds);
        track::set(&mut object, &rules.tracking, &rules.dest_namespace);
        let mut key = object.key();
        if key.name.is_empty() && !object.generate_name().is_empty() {
            key.name = format!("{}{index}", object.generate_name());
        }
        // The last one wins, as with `kubectl apply`.
        let count = by_key.get(&key).map_or(0, |(count, _)| *count);
        by_key.insert(key, (count + 1, object));
    }
    let mut conditions = Vec::new();
    for (key, (count, _)) in by_key.iter().filter(|(_, (count, _))| *count > 1) {
        let message = format!("Resource {key} appeared {count} times among application resources.");
        conditions.push(Condition::new(ConditionType::RepeatedResourceWarning, message));
    }
    by_key.retain(|key, _| {
        let excluded = permit::is_excluded(rules, &key.group_kind());
        if excluded {
            let message = format!("Resource {}/{} {} is excluded in the settings", key.group, key.kind, key.name);
            conditions.push(Condition::new(ConditionType::ExcludedResourceWarning, message));
        }
        !excluded
    });
    (by_key.into_values().map(|(_, object)| object).collect(), conditions)
}

/// A kind that the cluster does not know yet is taken as namespaced: its CRD may be part of the same Application.
fn fill_namespace(object: &mut Object, rules: &CompareRules, kinds: &dyn KindInfo) {
    let namespaced = kinds.is_namespaced(&object.gvk().group_kind()).unwrap_or(true);
    if !namespaced {
        object.set_namespace("");
    } else if object.namespace().is_empty() {
        object.set_namespace(&rules.dest_namespace);
    }
}

/// Templates often leave `labels:` or `annotations:` without entries; nothing and null mean the same there.
fn drop_nulls_of_metadata(object: &mut Object) {
    let metadata = object.metadata_mut();
    for field in ["labels", "annotations", "creationTimestamp"] {
        if metadata.get(field).is_some_and(serde_json::Value::is_null) {
            metadata.remove(field);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{ExclusionRule, Tracking};
    use serde_json::{Value, json};
    use tiphys_apimachinery::GroupKind;

    struct Kinds;
    impl KindInfo for Kinds {
        fn is_namespaced(&self, gk: &GroupKind) -> Option<bool> {
            match gk.kind.as_str() {
                "ConfigMap" | "Job" => Some(true),
                "Namespace" => Some(false),
                _ => None,
            }
        }
    }

    fn object(kind: &str, metadata: Value) -> Object {
        Object::from_value(json!({"apiVersion": "v1", "kind": kind, "metadata": metadata})).expect("a map")
    }

    fn rules() -> CompareRules {
        CompareRules::new(Tracking::annotation("app"), "argocd", "app", "https://kubernetes.default.svc", "prod")
    }

    #[test]
    fn namespaces_are_filled_in_by_scope() {
        let objects = vec![
            object("ConfigMap", json!({"name": "a"})),
            object("ConfigMap", json!({"name": "b", "namespace": "other"})),
            object("Namespace", json!({"name": "c", "namespace": "wrong"})),
            object("Widget", json!({"name": "d", "labels": null})),
        ];
        let (objects, conditions) = prepare(objects, &rules(), &Kinds);
        let keys: Vec<String> = objects.iter().map(|o| o.key().to_string()).collect();
        assert_eq!(keys, ["/ConfigMap/other/b", "/ConfigMap/prod/a", "/Namespace//c", "/Widget/prod/d"]);
        assert_eq!(objects[2].annotation(track::TRACKING_ID), Some("app:/Namespace:prod/c"));
        assert!(conditions.is_empty());
    }

    #[test]
    fn facts_14_15_16_the_last_duplicate_wins_and_is_told() {
        let objects = vec![
            object("Namespace", json!({"name": "a", "namespace": "x"})),
            object("Namespace", json!({"name": "a", "namespace": "y", "labels": {"last": "yes"}})),
            object("Job", json!({"generateName": "run-"})),
            object("Job", json!({"generateName": "run-"})),
        ];
        let (objects, conditions) = prepare(objects, &rules(), &Kinds);
        assert_eq!(objects.len(), 3);
        assert_eq!(objects[2].label("last"), Some("yes"));
        let message = "Resource /Namespace//a appeared 2 times among application resources.";
        assert_eq!(conditions, [Condition::new(ConditionType::RepeatedResourceWarning, message)]);
    }

    #[test]
    fn fact_17_excluded_kinds_are_left_out_aloud() {
        let exclusion = ExclusionRule { kinds: vec!["ConfigMap".into()], ..ExclusionRule::default() };
        let rules = CompareRules { exclusions: vec![exclusion], ..rules() };
        let (objects, conditions) = prepare(vec![object("ConfigMap", json!({"name": "a"}))], &rules, &Kinds);
        assert!(objects.is_empty());
        assert_eq!(conditions[0].message, "Resource /ConfigMap a is excluded in the settings");
    }
}
