//! Invariants of comparing and syncing, tested on random Applications.

use proptest::{collection::vec, prelude::*, sample::Index};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};
use tiphys_apimachinery::{GroupKind, Kept, Object, ResourceKey, packed::PackedText};
use tiphys_engine::{
    compare::compare,
    health::{self, Assessed},
    sync::{self, Decision, Effect, Observed, Outcome, Progress, SyncPlan, SyncRequest, record},
    track,
    types::{CompareRules, Comparison, DryRuns, KindInfo, SyncStatus, Tracking},
};

const KINDS: [(&str, &str); 6] = [
    ("v1", "ConfigMap"),
    ("v1", "Secret"),
    ("v1", "Service"),
    ("apps/v1", "Deployment"),
    ("batch/v1", "Job"),
    ("example.com/v1", "Widget"),
];

struct Kinds;

impl KindInfo for Kinds {
    fn is_namespaced(&self, _: &GroupKind) -> Option<bool> {
        Some(true)
    }
}

/// No kind is known.
struct NoKinds;

impl KindInfo for NoKinds {
    fn is_namespaced(&self, _: &GroupKind) -> Option<bool> {
        None
    }
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

fn request() -> SyncRequest {
    SyncRequest {
        operation_id: "op".into(),
        prune: true,
        dest_namespace: "prod".into(),
        ..SyncRequest::default()
    }
}

/// The part in which objects of a kind differ.
fn body(kind: &str, number: u8) -> Value {
    let template = json!({"metadata": {"labels": {"app": "a"}}, "spec": {"restartPolicy": "Never",
        "containers": [{"name": "c", "image": format!("image:{number}"), "resources": {"limits": {"cpu": format!("{}m", u32::from(number) * 100)}}}]}});
    match kind {
        "Deployment" => {
            json!({"spec": {"replicas": number, "selector": {"matchLabels": {"app": "a"}}, "template": template}})
        }
        "Job" => json!({"spec": {"template": template}}),
        "Service" => {
            json!({"spec": {"ports": [{"port": u32::from(number) + 1}], "selector": null}})
        }
        "ConfigMap" => json!({"data": {"number": number.to_string()}}),
        "Secret" => json!({"data": {"number": "bnVtYmVy"}, "type": "Opaque"}),
        _ => json!({"spec": {"number": number, "list": [1, {"deep": [number]}], "nothing": {}}}),
    }
}

prop_compose! {
    fn resource()(kind in 0..KINDS.len(), name in 0..5, number in 0_u8..3, wave in -1_i8..3, options in 0..6) -> Object {
        let (api_version, kind) = KINDS[kind];
        let mut o = Object::from_value(json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": format!("n{name}")}})).expect("a map");
        o.0.extend(body(kind, number).as_object().cloned().unwrap_or_default());
        o.set_annotation("argocd.argoproj.io/sync-wave", &wave.to_string());
        match options {
            0 => o.set_annotation("argocd.argoproj.io/sync-options", "Replace=true"),
            1 => o.set_annotation("argocd.argoproj.io/sync-options", "PruneLast=true,ServerSideApply=true"),
            2 => o.set_annotation("argocd.argoproj.io/hook", "PreSync"),
            _ => {}
        }
        o
    }
}

/// Objects with distinct keys.
fn resources() -> impl Strategy<Value = Vec<Object>> {
    vec(resource(), 0..12).prop_map(|list| {
        let mut seen = BTreeSet::new();
        list.into_iter().filter(|o| seen.insert(o.key())).collect()
    })
}

/// The object as a cluster has it after a sync.
fn live(object: &Object, number: usize) -> Object {
    let mut o = object.clone();
    o.set_namespace("prod");
    track::set(&mut o, &rules().tracking, "prod");
    o.metadata_mut()
        .insert("uid".into(), format!("uid-{number}").into());
    o.metadata_mut()
        .insert("resourceVersion".into(), number.to_string().into());
    o
}

fn cluster(objects: &[Object]) -> BTreeMap<ResourceKey, Arc<Kept>> {
    let all = objects.iter().enumerate().map(|(i, o)| live(o, i + 1));
    all.map(|o| (o.key(), Arc::new(o.into()))).collect()
}

fn compared(
    desired: Vec<Object>,
    live: &BTreeMap<ResourceKey, Arc<Kept>>,
    previous: Option<&Comparison>,
) -> Comparison {
    compare(
        desired.into(),
        live,
        &rules(),
        &Kinds,
        previous,
        &DryRuns::new(),
    )
}

/// The visible result of one entry.
type Verdict = (ResourceKey, Option<SyncStatus>, bool, PackedText);

/// The visible result of a comparison.
fn verdicts(c: &Comparison) -> (SyncStatus, Vec<Verdict>) {
    let entries = c.entries.iter().map(|e| {
        (
            e.key.clone(),
            e.status,
            e.requires_pruning,
            e.diff.predicted_live.clone(),
        )
    });
    (c.sync, entries.collect())
}

/// The whole content of a comparison, as text.
fn everything(c: &Comparison) -> String {
    format!(
        "{} {:?}\n{:#?}\n{:#?}\n{:?} {:?}",
        c.sync, c.health, c.conditions, c.entries, c.hooks, c.delete_hooks
    )
}

/// Executes a plan on a cluster where everything succeeds immediately, and returns the last
/// decision.
fn carried_out(plan: &SyncPlan, live: &mut BTreeMap<ResourceKey, Arc<Kept>>) -> Decision {
    let (mut progress, request) = (Progress::new("op"), request());
    let healthy = |_: &Object| Ok(Assessed::Without);
    for turn in 1000.. {
        let seen = live.clone();
        let observed = Observed {
            live: &|key| seen.get(key).map(|o| o.object()),
            health: &healthy,
        };
        let decision = sync::next(plan, observed, &progress, &request, request.started_at);
        if decision.phase.completed() || turn > 1200 {
            return decision;
        }
        let carry_out = |(i, effect): (usize, &Effect)| carry_out(live, turn * 100 + i, i, effect);
        let outcomes: Vec<Outcome> = decision.effects.iter().enumerate().map(carry_out).collect();
        progress = record(
            plan,
            decision.progress,
            &decision.effects,
            &outcomes,
            &healthy,
            request.started_at,
        );
    }
    unreachable!("the loop returns")
}

fn carry_out(
    live: &mut BTreeMap<ResourceKey, Arc<Kept>>,
    version: usize,
    index: usize,
    effect: &Effect,
) -> Outcome {
    let key = &effect.step().key;
    let result = match effect {
        Effect::DryRun(_) => None,
        Effect::Apply(write) | Effect::RunHook(write) => {
            let mut object = write
                .step
                .target
                .as_deref()
                .cloned()
                .expect("a write has a target");
            let uid = live
                .get(key)
                .map_or_else(|| format!("uid-{version}"), |o| o.uid().to_owned());
            object.metadata_mut().insert("uid".into(), uid.into());
            object
                .metadata_mut()
                .insert("resourceVersion".into(), version.to_string().into());
            live.insert(key.clone(), Arc::new(object.clone().into()));
            Some(object)
        }
        Effect::Prune { .. } | Effect::DeleteHook { .. } => {
            live.remove(key).map(|_| None).unwrap_or_default()
        }
        Effect::RemoveFinalizer { finalizer, .. } => live.get_mut(key).map(|o| {
            let mut object = Object::clone(&o.object());
            let rest = object
                .finalizers()
                .into_iter()
                .filter(|f| f != finalizer)
                .collect();
            object.set_finalizers(rest);
            object
                .metadata_mut()
                .insert("resourceVersion".into(), version.to_string().into());
            *o = Arc::new(object.clone().into());
            object
        }),
        Effect::MigrateManagers { .. } | Effect::Read { .. } => {
            live.get(key).map(|o| Object::clone(&o.object()))
        }
    };
    Outcome::ok(index, result, "")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_was_applied_is_synced(objects in resources()) {
        let c = compared(objects.clone(), &cluster(&objects), None);
        let drift: Vec<_> = c.entries.iter().filter(|e| e.diff.modified).map(|e| &e.diff).collect();
        prop_assert!(c.sync == SyncStatus::Synced && drift.is_empty(), "{drift:#?}");
    }

    #[test]
    fn a_plan_never_deletes_what_is_wanted(desired in resources(), there in resources()) {
        let c = compared(desired.clone(), &cluster(&there), None);
        // An object that became a hook is desired only as a hook: it replaces the resource of that
        // name.
        let resources = desired.iter().filter(|o| o.annotation("argocd.argoproj.io/hook").is_none());
        let wanted: BTreeSet<ResourceKey> = resources.map(|o| live(o, 0).key()).collect();
        let plan = sync::plan(&c, &request(), &Kinds);
        for step in plan.steps().filter(|s| s.is_prune()) {
            prop_assert!(!wanted.contains(&step.key), "{}", step.key);
        }
    }

    #[test]
    fn the_order_of_the_input_changes_nothing(desired in resources(), there in resources(), swaps in vec(any::<(Index, Index)>(), 1..20)) {
        let live = cluster(&there);
        let mut shuffled = desired.clone();
        if !shuffled.is_empty() {
            swaps.iter().for_each(|(a, b)| shuffled.swap(a.index(desired.len()), b.index(desired.len())));
        }
        let (one, other) = (compared(desired, &live, None), compared(shuffled, &live, None));
        prop_assert_eq!(verdicts(&one), verdicts(&other));
        prop_assert_eq!(sync::plan(&one, &request(), &Kinds), sync::plan(&other, &request(), &Kinds));
    }

    #[test]
    fn a_previous_comparison_changes_nothing(
        before in resources(), desired in resources(), there in resources(), kept in vec(any::<bool>(), 12), known in any::<bool>(),
    ) {
        let live = cluster(&there);
        // Before, some of it was missing, some was in another state, and the kinds may have been
        // unknown.
        let was: Vec<Object> = there.iter().zip(&kept).filter(|(_, kept)| **kept).map(|(o, _)| o.clone()).collect();
        let mut was = cluster(&was);
        was.values_mut().zip(kept.iter().rev()).filter(|(_, kept)| !**kept).for_each(|(o, _)| {
            let mut older = Object::clone(&o.object());
            older.set_label("before", "yes");
            let version = format!("0{}", older.resource_version());
            older.metadata_mut().insert("resourceVersion".into(), version.into());
            *o = Arc::new(older.into());
        });
        was.iter_mut().for_each(|(key, o)| if let Some(now) = live.get(key).filter(|now| ***now == **o) { *o = now.clone(); });
        let scope: &dyn KindInfo = if known { &Kinds } else { &NoKinds };
        let previous = compare(before.into(), &was, &rules(), scope, None, &DryRuns::new());
        previous.rest();
        prop_assert_eq!(everything(&compared(desired.clone(), &live, Some(&previous))), everything(&compared(desired, &live, None)));
    }

    #[test]
    fn a_finished_sync_is_finished(desired in resources(), there in resources()) {
        let mut live = cluster(&there);
        let plan = sync::plan(&compared(desired.clone(), &live, None), &request(), &Kinds);
        let end = carried_out(&plan, &mut live);
        prop_assert!(end.phase == sync::OperationPhase::Succeeded && end.effects.is_empty(), "{}: {}", end.phase, end.message);
        let assess = |live: &Object| health::assess(live).map(Assessed::from);
        let observed = Observed { live: &|key| live.get(key).map(|o| o.object()), health: &assess };
        let again = sync::next(&plan, observed, &end.progress, &request(), request().started_at);
        prop_assert_eq!((again.effects, again.phase, again.message), (vec![], end.phase, end.message));
        // After the sync, everything is Synced.
        prop_assert_eq!(compared(desired, &live, None).sync, SyncStatus::Synced);
    }
}
