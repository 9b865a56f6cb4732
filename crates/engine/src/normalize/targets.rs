//! Prepares the desired objects for a comparison: fills in namespaces, sets the tracking metadata,
//! and removes duplicates and excluded kinds.
//!
//! Main function: [`prepare`]. It does not see the live state. Objects that were prepared before
//! with the same rules are reused.

use crate::{
    base::{Condition, ConditionType, KindInfo},
    marks,
    normalize::{crd, unstored},
    permit,
    rules::CompareRules,
    track,
};
use std::{
    cell::LazyCell,
    collections::{BTreeMap, HashMap},
    sync::Arc,
};
use tiphys_apimachinery::{GroupKind, Kept, Object, ResourceKey};

/// One desired object.
#[derive(Debug)]
pub struct Target {
    pub key: ResourceKey,
    /// The object to apply.
    pub object: Arc<Kept>,
    /// Whether its kind is namespaced; `None`: the cluster does not know the kind.
    pub namespaced: Option<bool>,
    role: Role,
    /// Also a hook for the deletion of the Application, in any role.
    on_delete: bool,
    /// Why it could not be prepared; it is then unchanged.
    pub fault: Option<String>,
    /// The rendered object that it was prepared from.
    rendered: Arc<Kept>,
}

/// The object's role in a sync.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Resource,
    Hook,
    /// A hook of no type that a sync knows.
    Nothing,
    /// The settings exclude its kind.
    Excluded,
}

/// All desired objects, in the order of keys.
#[derive(Debug, Default)]
pub struct Targets {
    /// The rendered objects that they were prepared from, in the original order.
    rendered: Vec<Arc<Kept>>,
    all: Vec<Arc<Target>>,
    /// Whether those kinds are namespaced that only the objects themselves define.
    expected: BTreeMap<GroupKind, bool>,
    /// Warnings about objects that were left out or could not be prepared.
    pub warnings: Vec<Condition>,
}

impl Targets {
    /// The objects that are compared and applied.
    pub fn resources(&self) -> impl Iterator<Item = &Target> {
        self.all
            .iter()
            .filter(|t| t.role == Role::Resource)
            .map(|t| &**t)
    }

    /// The keys of all objects, including hooks and excluded ones.
    pub fn keys(&self) -> impl Iterator<Item = &ResourceKey> {
        self.all.iter().map(|t| &t.key)
    }

    /// Compresses all objects (see `Kept`).
    pub fn rest(&self) {
        self.rendered
            .iter()
            .chain(self.all.iter().map(|t| &t.object))
            .for_each(|o| o.rest());
    }

    /// Hooks of a sync.
    pub fn hooks(&self) -> Vec<Arc<Kept>> {
        self.all
            .iter()
            .filter(|t| t.role == Role::Hook)
            .map(|t| t.object.clone())
            .collect()
    }

    /// Hooks for the deletion of the Application.
    pub fn delete_hooks(&self) -> Vec<Arc<Kept>> {
        self.all
            .iter()
            .filter(|t| t.on_delete)
            .map(|t| t.object.clone())
            .collect()
    }

    /// The rendered objects, with known ones replaced by the equal objects in memory.
    fn recognise(&self, objects: Vec<Arc<Kept>>) -> Vec<Arc<Kept>> {
        let by_name = LazyCell::new(|| {
            self.rendered
                .iter()
                .map(|o| (name(o), o))
                .collect::<HashMap<_, _>>()
        });
        let known = |(index, object): (usize, Arc<Kept>)| {
            let there = self
                .rendered
                .get(index)
                .filter(|known| same(known, &object));
            let elsewhere = || {
                by_name
                    .get(&name(&object))
                    .copied()
                    .filter(|known| same(known, &object))
            };
            there.or_else(elsewhere).cloned().unwrap_or(object)
        };
        objects.into_iter().enumerate().map(known).collect()
    }
}

impl Target {
    fn new(
        index: usize,
        rendered: Arc<Kept>,
        rules: &CompareRules,
        kinds: &dyn KindInfo,
        expected: &BTreeMap<GroupKind, bool>,
    ) -> Self {
        let mut object = Object::clone(&rendered.object());
        unstored::prepare(&mut object);
        let kind = object.gvk().group_kind();
        let namespaced = kinds.is_namespaced(&kind);
        let scope = namespaced.or_else(|| expected.get(&kind).copied());
        fill_namespace(&mut object, rules, scope);
        let fault = track::obstacle(&object, &rules.tracking).map(|why| {
            let label =
                "Failed to normalize target state: failed to set app instance label on resource";
            format!("{label} {}/{}: {why}", object.kind(), object.name())
        });
        track::set(&mut object, &rules.tracking, &rules.dest_namespace);
        let mut key = object.key();
        if key.name.is_empty() && !object.generate_name().is_empty() {
            key.name = format!("{}{index}", object.generate_name());
        }
        let excluded = permit::is_excluded(rules, &kind);
        let role = if excluded {
            Role::Excluded
        } else {
            role(&object)
        };
        let on_delete = !excluded && is_delete_hook(&object);
        Self {
            key,
            object: Arc::new(object.into()),
            namespaced,
            role,
            on_delete,
            fault,
            rendered,
        }
    }

    /// A desired object that is not in Git.
    pub fn added(object: Object, namespaced: bool) -> Self {
        let key = object.key();
        let object = Arc::new(Kept::from(object));
        let rendered = object.clone();
        Self {
            key,
            object,
            namespaced: Some(namespaced),
            role: Role::Resource,
            on_delete: false,
            fault: None,
            rendered,
        }
    }
}

fn is_delete_hook(object: &Object) -> bool {
    marks::is_pre_delete_hook(object) || marks::is_post_delete_hook(object)
}

fn role(object: &Object) -> Role {
    if (is_delete_hook(object) && !marks::runs_in_sync(object)) || marks::is_ignored(object) {
        return Role::Nothing;
    }
    if marks::is_sync_hook(object) {
        Role::Hook
    } else {
        Role::Resource
    }
}

fn name(object: &Kept) -> (&str, &str, &str, &str) {
    (
        object.api_version(),
        object.kind(),
        object.namespace(),
        object.name(),
    )
}

/// Usually both are the same object; a newly rendered one is parsed once.
fn same(a: &Arc<Kept>, b: &Arc<Kept>) -> bool {
    Arc::ptr_eq(a, b) || a == b
}

/// Prepares the objects for comparison. `known` must come from the same rules and kinds with the
/// same scopes.
pub fn prepare(
    objects: Vec<Arc<Kept>>,
    rules: &CompareRules,
    kinds: &dyn KindInfo,
    known: Option<&Arc<Targets>>,
) -> Arc<Targets> {
    let rendered = match known {
        Some(known) => known.recognise(objects),
        None => objects,
    };
    if let Some(known) = known
        && known.rendered.len() == rendered.len()
        && known
            .rendered
            .iter()
            .zip(&rendered)
            .all(|(a, b)| Arc::ptr_eq(a, b))
    {
        return known.clone();
    }
    let expected = crd::expected_scopes(&rendered, kinds);
    let prepared: HashMap<*const Kept, &Arc<Target>> = known
        .iter()
        .filter(|k| k.expected == expected)
        .flat_map(|k| &k.all)
        .map(|t| (Arc::as_ptr(&t.rendered), t))
        .collect();
    let target = |(index, object): (usize, &Arc<Kept>)| {
        // The placeholder for a generated name depends on the object's index in the list.
        let ready = prepared
            .get(&Arc::as_ptr(object))
            .filter(|t| !t.object.name().is_empty());
        ready.map_or_else(
            || Arc::new(Target::new(index, object.clone(), rules, kinds, &expected)),
            |t| Arc::clone(t),
        )
    };
    let mut all: Vec<Arc<Target>> = rendered.iter().enumerate().map(target).collect();
    all.sort_by(|a, b| a.key.cmp(&b.key));
    let mut warnings = Vec::new();
    for repeated in all
        .chunk_by(|a, b| a.key == b.key)
        .filter(|chunk| chunk.len() > 1)
    {
        let message = format!(
            "Resource {} appeared {} times among application resources.",
            repeated[0].key,
            repeated.len()
        );
        warnings.push(Condition::new(
            ConditionType::RepeatedResourceWarning,
            message,
        ));
    }
    // The last one wins, as with `kubectl apply`.
    all.reverse();
    all.dedup_by(|a, b| a.key == b.key);
    all.reverse();
    warnings.extend(all.iter().filter(|t| t.role == Role::Excluded).map(|t| {
        let message = format!(
            "Resource {}/{} {} is excluded in the settings",
            t.key.group, t.key.kind, t.key.name
        );
        Condition::new(ConditionType::ExcludedResourceWarning, message)
    }));
    warnings.extend(
        all.iter()
            .filter(|t| t.role != Role::Excluded)
            .filter_map(|t| {
                let message = t.fault.clone()?;
                Some(Condition::new(ConditionType::ComparisonError, message))
            }),
    );
    Arc::new(Targets {
        rendered,
        all,
        expected,
        warnings,
    })
}

/// A kind that neither the cluster nor a CRD among the objects defines is assumed to be namespaced.
fn fill_namespace(object: &mut Object, rules: &CompareRules, namespaced: Option<bool>) {
    if namespaced == Some(false) {
        object.set_namespace("");
    } else if object.namespace().is_empty() {
        object.set_namespace(&rules.dest_namespace);
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

        fn failure(&self, gk: &GroupKind) -> Option<String> {
            (gk.group == "unreachable.io").then(|| "503".into())
        }
    }

    fn object(kind: &str, metadata: Value) -> Object {
        Object::from_value(json!({"apiVersion": "v1", "kind": kind, "metadata": metadata}))
            .expect("a map")
    }

    fn rules() -> CompareRules {
        CompareRules::new(
            Tracking::annotation("app"),
            "argocd",
            "app",
            "https://kubernetes.default.svc",
            "prod",
        )
    }

    fn prepared(objects: Vec<Object>, rules: &CompareRules) -> Arc<Targets> {
        prepare(
            objects.into_iter().map(|o| Arc::new(o.into())).collect(),
            rules,
            &Kinds,
            None,
        )
    }

    fn keys(targets: &Targets) -> Vec<String> {
        targets.resources().map(|t| t.key.to_string()).collect()
    }

    #[test]
    fn namespaces_are_filled_in_by_scope() {
        let objects = vec![
            object("ConfigMap", json!({"name": "a"})),
            object("ConfigMap", json!({"name": "b", "namespace": "other"})),
            object("Namespace", json!({"name": "c", "namespace": "wrong"})),
            object("Widget", json!({"name": "d", "labels": null})),
        ];
        let targets = prepared(objects, &rules());
        assert_eq!(
            keys(&targets),
            [
                "/ConfigMap/other/b",
                "/ConfigMap/prod/a",
                "/Namespace//c",
                "/Widget/prod/d"
            ]
        );
        assert_eq!(
            targets.all[2]
                .object
                .object()
                .annotation(track::TRACKING_ID),
            Some("app:/Namespace:prod/c")
        );
        assert!(targets.warnings.is_empty());
    }

    #[test]
    fn the_scope_of_a_kind_that_comes_with_its_crd_is_the_one_in_git() {
        let listed = |group: &str, scope: &str, with_crd: bool| -> Vec<Arc<Kept>> {
            let widget = |namespace: &str| json!({"apiVersion": format!("{group}/v1"), "kind": "Widget", "metadata": {"name": "w", "namespace": namespace}});
            let names = json!({"kind": "Widget", "plural": "widgets"});
            let crd = json!({
                "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "metadata": {"name": format!("widgets.{group}")},
                "spec": {"group": group, "names": names, "scope": scope, "versions": [{"name": "v1", "served": true}]},
            });
            [widget("a"), widget("b")]
                .into_iter()
                .chain(with_crd.then_some(crd))
                .map(|o| Arc::new(Object::from_value(o).expect("a map").into()))
                .collect()
        };
        let widgets = |targets: &Targets| -> Vec<(String, Option<String>)> {
            let id = |t: &Target| {
                let object = t.object.object();
                object.annotation(track::TRACKING_ID).map(str::to_owned)
            };
            targets
                .resources()
                .filter(|t| t.key.kind == "Widget")
                .map(|t| (t.key.to_string(), id(t)))
                .collect()
        };
        let one = |key: &str, id: &str| (key.to_owned(), Some(id.to_owned()));
        let cluster = prepare(listed("own.io", "Cluster", true), &rules(), &Kinds, None);
        assert_eq!(
            widgets(&cluster),
            [one("own.io/Widget//w", "app:own.io/Widget:prod/w")]
        );
        assert_eq!(cluster.warnings.len(), 1, "{:?}", cluster.warnings);
        // Nothing that was prepared for another scope is used again.
        let both = [
            one("own.io/Widget/a/w", "app:own.io/Widget:a/w"),
            one("own.io/Widget/b/w", "app:own.io/Widget:b/w"),
        ];
        for objects in [
            listed("own.io", "Namespaced", true),
            listed("own.io", "Cluster", false),
        ] {
            let targets = prepare(objects, &rules(), &Kinds, Some(&cluster));
            assert_eq!(widgets(&targets), both);
        }
        // The cluster may have a kind that could not be discovered, with another scope.
        let unsure = prepare(
            listed("unreachable.io", "Cluster", true),
            &rules(),
            &Kinds,
            None,
        );
        assert_eq!(widgets(&unsure).len(), 2);
    }

    #[test]
    fn c14_c15_c16_the_last_duplicate_wins_and_is_told() {
        let objects = vec![
            object("Namespace", json!({"name": "a", "namespace": "x"})),
            object(
                "Namespace",
                json!({"name": "a", "namespace": "y", "labels": {"last": "yes"}}),
            ),
            object("Job", json!({"generateName": "run-"})),
            object("Job", json!({"generateName": "run-"})),
        ];
        let targets = prepared(objects, &rules());
        assert_eq!(
            keys(&targets),
            ["/Job/prod/run-2", "/Job/prod/run-3", "/Namespace//a"]
        );
        assert_eq!(targets.all[2].object.object().label("last"), Some("yes"));
        let message = "Resource /Namespace//a appeared 2 times among application resources.";
        assert_eq!(
            targets.warnings,
            [Condition::new(
                ConditionType::RepeatedResourceWarning,
                message
            )]
        );
    }

    #[test]
    fn c17_excluded_kinds_are_left_out_aloud() {
        let exclusion = ExclusionRule {
            kinds: vec!["ConfigMap".into()],
            ..ExclusionRule::default()
        };
        let rules = CompareRules {
            exclusions: [exclusion].into(),
            ..rules()
        };
        let targets = prepared(vec![object("ConfigMap", json!({"name": "a"}))], &rules);
        assert_eq!(keys(&targets), Vec::<String>::new());
        assert_eq!(
            targets.warnings[0].message,
            "Resource /ConfigMap a is excluded in the settings"
        );
    }

    #[test]
    fn what_was_prepared_is_used_again() {
        let list = |names: &[&str]| -> Vec<Arc<Kept>> {
            names
                .iter()
                .map(|n| Arc::new(object("ConfigMap", json!({"name": n})).into()))
                .collect()
        };
        let first = prepare(list(&["a", "b", "c"]), &rules(), &Kinds, None);
        assert!(
            Arc::ptr_eq(
                &first,
                &prepare(list(&["a", "b", "c"]), &rules(), &Kinds, Some(&first))
            ),
            "rendered anew, but the same"
        );
        let moved = prepare(list(&["new", "c", "a"]), &rules(), &Kinds, Some(&first));
        assert_eq!(
            keys(&moved),
            [
                "/ConfigMap/prod/a",
                "/ConfigMap/prod/c",
                "/ConfigMap/prod/new"
            ]
        );
        assert!(
            Arc::ptr_eq(&moved.all[0], &first.all[0]) && Arc::ptr_eq(&moved.all[1], &first.all[2])
        );
        let jobs = || -> Vec<Arc<Kept>> {
            vec![Arc::new(
                object("Job", json!({"generateName": "run-"})).into(),
            )]
        };
        let first = prepare(jobs(), &rules(), &Kinds, None);
        let moved = prepare(
            list(&["a"]).into_iter().chain(jobs()).collect(),
            &rules(),
            &Kinds,
            Some(&first),
        );
        assert_eq!(keys(&moved), ["/ConfigMap/prod/a", "/Job/prod/run-1"]);
    }
}
