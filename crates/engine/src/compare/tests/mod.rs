//! The results of comparisons, one scenario each, with Argo CD's messages. A test that proves one
//! of the behaviours in `docs/behaviours/controller.md` begins with its id. Those of C-10, C-26,
//! C-30 and C-40 (local manifests, settings and the content of the status) are tested in the
//! controllers crate; C-26 only for a single source, because the integrity of sources is not
//! verified yet. Argo CD's error for a permission that cannot be checked (C-21) cannot occur:
//! projects and clusters are in memory, and an invalid pattern permits nothing. Nor is a project
//! asked about a kind without API information (C-69): discovery's error is reported first.

mod health;
mod pairs;
mod spending;

use super::compare;
use crate::{
    marks,
    track::{self, TRACKING_ID},
    types::*,
};
use serde_json::{Value, json};
use std::{collections::BTreeMap, sync::Arc};
use tiphys_apimachinery::{GroupKind, Kept, Object, ResourceKey};

struct Kinds;

impl KindInfo for Kinds {
    fn is_namespaced(&self, gk: &GroupKind) -> Option<bool> {
        match gk.kind.as_str() {
            "ConfigMap" | "Pod" | "Job" | "Deployment" | "Secret" | "Application" => Some(true),
            "Namespace" => Some(false),
            _ => None,
        }
    }
}

fn object(value: Value) -> Object {
    Object::from_value(value).expect("a map")
}

fn config_map(name: &str, data: &str) -> Object {
    object(
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"key": data}}),
    )
}

fn annotated(mut object: Object, key: &str, value: &str) -> Object {
    object.set_annotation(key, value);
    object
}

/// The object as the cluster has it after a sync by the Application `app`.
fn live(mut object: Object) -> Object {
    object.set_namespace("prod");
    track::set(&mut object, &rules().tracking, "prod");
    let uid = format!("uid-{}", object.name());
    object.metadata_mut().insert("uid".into(), uid.into());
    object
        .metadata_mut()
        .insert("resourceVersion".into(), "7".into());
    object
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

fn by_key(objects: Vec<Object>) -> BTreeMap<ResourceKey, Arc<Kept>> {
    objects
        .into_iter()
        .map(|o| (o.key(), Arc::new(o.into())))
        .collect()
}

fn run_with(rules: &CompareRules, desired: Vec<Object>, live: Vec<Object>) -> Comparison {
    compare(
        desired.into(),
        &by_key(live),
        rules,
        &Kinds,
        None,
        &DryRuns::new(),
    )
}

fn run(desired: Vec<Object>, live: Vec<Object>) -> Comparison {
    run_with(&rules(), desired, live)
}

fn messages(comparison: &Comparison) -> Vec<String> {
    comparison
        .conditions
        .iter()
        .map(|c| format!("{}: {}", c.kind, c.message))
        .collect()
}

#[test]
fn c1_nothing_wanted_and_nothing_there_is_synced() {
    let c = run(vec![], vec![]);
    assert_eq!(
        (c.sync, c.entries.len(), c.conditions.len(), c.health.status),
        (SyncStatus::Synced, 0, 0, HealthStatus::Healthy)
    );
}

#[test]
fn c2_c33_what_is_missing_is_out_of_sync_and_missing() {
    let c = run(vec![config_map("a", "1")], vec![]);
    assert_eq!(
        (c.sync, c.entries[0].status),
        (SyncStatus::OutOfSync, Some(SyncStatus::OutOfSync))
    );
    assert_eq!(
        c.entries[0].health.as_ref().map(|h| h.status),
        Some(HealthStatus::Missing)
    );
    assert_eq!(c.health, Health::new(HealthStatus::Missing, ""));
    assert!(!c.entries[0].requires_pruning);
}

#[test]
fn c3_c4_what_is_extra_is_out_of_sync_and_to_be_pruned() {
    let c = run(vec![], vec![live(config_map("a", "1"))]);
    assert_eq!(
        (c.sync, c.entries[0].requires_pruning),
        (SyncStatus::OutOfSync, true)
    );
    let extraneous = annotated(
        config_map("a", "1"),
        marks::COMPARE_OPTIONS,
        "IgnoreExtraneous",
    );
    let c = run(vec![], vec![live(extraneous)]);
    assert_eq!(
        (c.sync, c.entries[0].status),
        (SyncStatus::Synced, Some(SyncStatus::OutOfSync))
    );
}

#[test]
fn equal_and_changed_objects() {
    let c = run(vec![config_map("a", "1")], vec![live(config_map("a", "1"))]);
    assert_eq!(
        (c.sync, c.entries[0].status, c.entries[0].diff.modified),
        (SyncStatus::Synced, Some(SyncStatus::Synced), false)
    );
    let c = run(vec![config_map("a", "2")], vec![live(config_map("a", "1"))]);
    assert_eq!(
        (c.sync, c.entries[0].diff.modified),
        (SyncStatus::OutOfSync, true)
    );
    assert_eq!(c.entries[0].diff.read().predicted_live["data"]["key"], "2");
    assert_eq!(c.entries[0].diff.read().normalized_live["data"]["key"], "1");
}

#[test]
fn c5_c6_c7_c8_hooks_are_no_drift() {
    let hook = |name| annotated(config_map(name, "1"), marks::HOOK, "PreSync");
    let c = run(vec![hook("a")], vec![]);
    assert_eq!(
        (c.sync, c.hooks.len(), c.entries.len()),
        (SyncStatus::Synced, 1, 0)
    );
    let waved = annotated(hook("a"), marks::SYNC_WAVE, "3");
    let c = run(vec![waved], vec![live(hook("a"))]);
    let entry = &c.entries[0];
    assert_eq!(
        (c.sync, entry.hook, entry.status, entry.sync_wave),
        (SyncStatus::Synced, true, None, 3)
    );
    let c = run(
        vec![annotated(config_map("a", "1"), marks::HOOK, "Skip")],
        vec![],
    );
    assert_eq!(
        (c.sync, c.entries[0].status, c.health.status),
        (SyncStatus::Synced, None, HealthStatus::Healthy)
    );
}

#[test]
fn hooks_of_the_deletion_wait_for_it() {
    let on_delete = annotated(config_map("a", "1"), marks::HOOK, "PostDelete");
    let both = annotated(config_map("b", "1"), marks::HOOK, "PreSync,PreDelete");
    let c = run(vec![on_delete, both], vec![]);
    assert_eq!(
        (c.hooks.len(), c.delete_hooks.len(), c.entries.len()),
        (1, 2, 0)
    );
}

#[test]
fn an_old_hook_in_the_place_of_a_resource_is_out_of_sync() {
    let mut hook = annotated(
        object(json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}})),
        marks::HOOK,
        "PreSync",
    );
    let applied =
        json!({"metadata": {"annotations": {(marks::HOOK): "PreSync"}, "name": "j"}}).to_string();
    hook.set_annotation("kubectl.kubernetes.io/last-applied-configuration", &applied);
    let wanted =
        object(json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}}));
    let comparison = run_with(&rules(), vec![wanted], vec![live(hook)]);
    assert_eq!(
        (comparison.sync, comparison.entries[0].hook),
        (SyncStatus::OutOfSync, false)
    );
}

#[test]
fn c9_errors_make_everything_unknown_and_nothing_extra() {
    let desired = Desired {
        objects: vec![],
        errors: vec![Condition::new(
            ConditionType::ComparisonError,
            "Failed to load target state: x",
        )],
    };
    let c = compare(
        desired,
        &by_key(vec![live(config_map("a", "1"))]),
        &rules(),
        &Kinds,
        None,
        &DryRuns::new(),
    );
    assert_eq!(
        (c.sync, c.entries[0].status, c.entries[0].requires_pruning),
        (SyncStatus::Unknown, Some(SyncStatus::Unknown), false)
    );
    assert_eq!(
        messages(&c),
        ["ComparisonError: Failed to load target state: x"]
    );
}

#[test]
fn c18_a_resource_of_another_application_is_told() {
    let mut other = live(config_map("a", "1"));
    other.set_annotation(TRACKING_ID, "team_other:/ConfigMap:prod/a");
    let c = run(vec![config_map("a", "1")], vec![other]);
    assert_eq!(
        messages(&c),
        ["SharedResourceWarning: ConfigMap/a is part of applications argocd/app and team/other"]
    );
}

#[test]
fn c24_a_copied_mark_is_not_managed() {
    let mut copy = live(config_map("a", "1"));
    copy.set_name("copy");
    let c = run(vec![], vec![copy]);
    assert_eq!(
        (c.sync, c.entries[0].status, c.entries[0].requires_pruning),
        (SyncStatus::Synced, None, false)
    );
}

#[test]
fn c19_a_namespace_must_come_from_somewhere() {
    let rules = CompareRules {
        dest_namespace: String::new(),
        ..rules()
    };
    let c = run_with(&rules, vec![config_map("a", "1")], vec![]);
    assert_eq!(
        messages(&c),
        ["InvalidSpecError: Namespace for a /v1, Kind=ConfigMap is missing."]
    );
}

#[test]
fn c20_c21_what_the_project_forbids_is_unknown_or_not_looked_at() {
    let mut rules = rules();
    rules.project.namespace_blacklist = vec![KindRule {
        group: String::new(),
        kind: "ConfigMap".into(),
        name: String::new(),
    }];
    let c = run_with(
        &rules,
        vec![config_map("a", "1")],
        vec![live(config_map("b", "1"))],
    );
    assert_eq!(
        (c.entries.len(), c.entries[0].status),
        (1, Some(SyncStatus::Unknown))
    );
}

#[test]
fn c25_deletions_that_must_be_confirmed() {
    let careful = annotated(config_map("a", "1"), marks::SYNC_OPTIONS, "Prune=confirm");
    assert!(run(vec![careful], vec![]).entries[0].requires_deletion_confirmation);
    let rules = CompareRules {
        sync_options: vec!["Delete=confirm".into()],
        ..rules()
    };
    assert!(
        run_with(&rules, vec![config_map("a", "1")], vec![]).entries[0]
            .requires_deletion_confirmation
    );
    let careless = annotated(config_map("a", "1"), marks::SYNC_OPTIONS, "Delete=false");
    assert!(!run_with(&rules, vec![careless], vec![]).entries[0].requires_deletion_confirmation);
}

#[test]
fn c22_c23_a_managed_namespace_is_not_extra() {
    let mut namespace = object(
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "prod", "labels": {"team": "a"}}}),
    );
    namespace.set_annotation(TRACKING_ID, "app:/Namespace:prod/prod");
    let metadata = NamespaceMetadata {
        labels: BTreeMap::from([("team".to_owned(), "a".to_owned())]),
        ..Default::default()
    };
    let mut rules = CompareRules {
        managed_namespace: Some(metadata),
        ..rules()
    };
    let c = run_with(&rules, vec![], vec![namespace.clone()]);
    assert!(!c.entries[0].requires_pruning);
    rules.managed_namespace.as_mut().expect("set above").changed = true;
    assert_eq!(run_with(&rules, vec![], vec![]).sync, SyncStatus::OutOfSync);
}

fn ignoring(rule: IgnoreRule) -> CompareRules {
    CompareRules {
        ignore_differences: vec![IgnoreRule {
            kind: "ConfigMap".into(),
            ..rule
        }],
        ..rules()
    }
}

#[test]
fn ignored_differences_do_not_count() {
    let rule = ignoring;
    let by_pointer = rule(IgnoreRule {
        json_pointers: vec!["/data/key".into()],
        ..Default::default()
    });
    let pair = || (vec![config_map("a", "2")], vec![live(config_map("a", "1"))]);
    let (desired, there) = pair();
    assert_eq!(
        run_with(&by_pointer, desired, there).sync,
        SyncStatus::Synced
    );
    let by_jq = rule(IgnoreRule {
        jq_path_expressions: vec![".data | .key".into()],
        ..Default::default()
    });
    let (desired, there) = pair();
    assert_eq!(run_with(&by_jq, desired, there).sync, SyncStatus::Synced);
    let elsewhere = rule(IgnoreRule {
        json_pointers: vec!["/data/key".into()],
        name: "b".into(),
        ..Default::default()
    });
    let (desired, there) = pair();
    assert_eq!(
        run_with(&elsewhere, desired, there).sync,
        SyncStatus::OutOfSync
    );
}

#[test]
fn c12_what_cannot_be_marked_is_told_and_hides_nothing_else() {
    let with = |metadata: Value| {
        object(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}))
    };
    let odd = with(json!({"name": "a", "annotations": {"retries": 3}}));
    let c = run(
        vec![odd, config_map("b", "2")],
        vec![live(config_map("a", "1")), live(config_map("b", "1"))],
    );
    assert_eq!(
        (c.sync, c.entries[0].status, c.entries[1].status),
        (
            SyncStatus::Unknown,
            Some(SyncStatus::Unknown),
            Some(SyncStatus::OutOfSync)
        )
    );
    assert!(
        c.entries.iter().all(|e| !e.requires_pruning),
        "both are in Git"
    );
    let text = "ComparisonError: Failed to normalize target state: failed to set app instance label on resource ConfigMap/a: failed to get \
        annotations from target object /v1, Kind=ConfigMap prod/a: .metadata.annotations accessor error: contains non-string value in the \
        map under key \"retries\": 3 is of the type int64, expected string";
    assert_eq!(messages(&c), [text]);
    let hook = annotated(
        with(json!({"name": "h", "labels": {"a": true}})),
        marks::HOOK,
        "PreSync",
    );
    assert_eq!(
        messages(&run(vec![hook.clone()], vec![])),
        Vec::<String>::new(),
        "the mark is an annotation"
    );
    let labels = CompareRules {
        tracking: Tracking {
            method: TrackingMethod::Label,
            ..rules().tracking
        },
        ..rules()
    };
    let told = |object: Object| messages(&run_with(&labels, vec![object], vec![])).join("\n");
    assert!(
        told(hook).ends_with("under key \"a\": true is of the type bool, expected string"),
        "a hook would be applied as well"
    );
    let text =
        ".metadata.labels accessor error: x is of the type string, expected map[string]interface{}";
    assert!(told(with(json!({"name": "a", "labels": "x"}))).ends_with(text));
    assert_eq!(
        told(with(json!({"name": "a", "labels": {"a": null}}))),
        "",
        "null is no label"
    );
}

#[test]
fn an_application_is_compared_in_the_form_that_its_controller_gives_it() {
    let child = |spec: Value| {
        object(
            json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": "a"}, "spec": spec}),
        )
    };
    let there = || {
        live(child(
            json!({"project": "default", "source": {"repoURL": "r", "path": "p"}}),
        ))
    };
    let written = |project: &str| json!({"project": project, "syncPolicy": {}, "source": {"repoURL": "r", "path": "p", "directory": {"recurse": false}}});
    assert_eq!(
        run(vec![child(written(""))], vec![there()]).sync,
        SyncStatus::Synced,
        "self-heal would undo it for ever"
    );
    assert_eq!(
        run(vec![child(written("other"))], vec![there()]).sync,
        SyncStatus::OutOfSync
    );
    let automated = json!({"project": "default", "syncPolicy": {"automated": {}}, "source": {"repoURL": "r", "path": "p"}});
    assert_eq!(
        run(vec![child(automated)], vec![there()]).sync,
        SyncStatus::OutOfSync,
        "that says something"
    );
}

#[test]
fn c13_rules_that_cannot_be_followed_make_everything_unknown() {
    let faulty = ignoring(IgnoreRule {
        jq_path_expressions: vec![".data | mop(.)".into()],
        ..Default::default()
    });
    let c = run_with(
        &faulty,
        vec![config_map("a", "2")],
        vec![live(config_map("a", "1"))],
    );
    assert_eq!(
        (c.sync, c.entries[0].status),
        (SyncStatus::Unknown, Some(SyncStatus::Unknown))
    );
    let text = "ComparisonError: Failed to compare desired state to live state: ignoreDifferences: jqPathExpressions \".data | mop(.)\": \
        function not defined: mop/1; or name the fields in jsonPointers";
    assert_eq!(messages(&c), [text]);
    // A valid expression that matches no field of this object changes nothing.
    let unfit = ignoring(IgnoreRule {
        jq_path_expressions: vec![".data | map(.)".into(), ".data.key".into()],
        ..Default::default()
    });
    let c = run_with(
        &unfit,
        vec![config_map("a", "2")],
        vec![live(config_map("a", "1"))],
    );
    assert_eq!((c.sync, messages(&c)), (SyncStatus::Synced, vec![]));
}

#[test]
fn c23_a_namespace_in_git_wins_over_the_metadata_of_the_application() {
    let namespace = |team: &str| {
        object(
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "prod", "labels": {"team": team}}}),
        )
    };
    let metadata = NamespaceMetadata {
        labels: BTreeMap::from([("team".to_owned(), "b".to_owned())]),
        ..Default::default()
    };
    let rules = CompareRules {
        managed_namespace: Some(metadata),
        ..rules()
    };
    let mut there = namespace("a");
    there.set_annotation(TRACKING_ID, "app:/Namespace:prod/prod");
    let with =
        |desired: Vec<Object>| run_with(&rules, desired, vec![there.clone()]).entries[0].status;
    assert_eq!(with(vec![namespace("a")]), Some(SyncStatus::Synced));
    assert_eq!(with(vec![]), Some(SyncStatus::OutOfSync));
    // Neither another object of that name nor another namespace is the destination.
    let elsewhere =
        object(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "elsewhere"}}));
    for other in [config_map("prod", "1"), elsewhere] {
        let entries = run_with(&rules, vec![other], vec![there.clone()]).entries;
        let destination = entries
            .iter()
            .find(|e| e.key.kind == "Namespace" && e.key.name == "prod")
            .expect("compared");
        assert_eq!(
            (destination.status, destination.requires_pruning),
            (Some(SyncStatus::OutOfSync), false)
        );
    }
}

/// A field that was applied client-side and is no longer desired can only be removed by a
/// client-side apply.
#[test]
fn c28_with_server_side_apply_only_owned_fields_count() {
    let mut there = live(config_map("a", "1"));
    let mut before = config_map("a", "1");
    for object in [&mut there, &mut before] {
        object
            .0
            .insert("data".into(), json!({"key": "1", "old": "x"}));
    }
    let applied = serde_json::to_string(&before).expect("JSON");
    there.set_annotation("kubectl.kubernetes.io/last-applied-configuration", &applied);
    let fields = json!({"f:data": {"f:key": {}}});
    there.metadata_mut().insert(
        "managedFields".into(),
        json!([{"manager": "argocd-controller", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": fields}]),
    );
    for (options, status) in [
        (vec![], SyncStatus::OutOfSync),
        (vec!["ServerSideApply=true".to_owned()], SyncStatus::Synced),
    ] {
        let rules = CompareRules {
            sync_options: options,
            ..rules()
        };
        let c = run_with(&rules, vec![config_map("a", "1")], vec![there.clone()]);
        assert_eq!(
            c.entries[0].status,
            Some(status),
            "{:?} {:#}",
            rules.sync_options,
            c.entries[0].diff.predicted_live.read()
        );
    }
}

#[test]
fn a_change_of_the_tracking_method_is_no_drift() {
    let mut labelled = live(config_map("a", "1"));
    labelled.remove_annotation(TRACKING_ID);
    labelled.set_label(DEFAULT_LABEL_KEY, "app");
    assert_eq!(
        run(vec![config_map("a", "1")], vec![labelled]).sync,
        SyncStatus::Synced
    );
}

#[test]
fn defaults_and_zero_values_are_no_drift() {
    let deployment = |extra: Value| {
        let mut d = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "nginx:1", "ports": [{"containerPort": 80}],
                "resources": {"limits": {"cpu": "1000m", "memory": "1024Mi"}}}]}}}});
        tiphys_apimachinery::patch::json_merge::apply_in_place(&mut d, &extra).expect("a patch");
        object(d)
    };
    let there = deployment(
        json!({"spec": {"replicas": 1, "strategy": {"type": "RollingUpdate"}, "template": {"spec": {
        "containers": [{"name": "c", "image": "nginx:1", "imagePullPolicy": "IfNotPresent", "ports": [{"containerPort": 80, "protocol": "TCP"}],
            "resources": {"limits": {"cpu": "1", "memory": "1Gi"}}}], "restartPolicy": "Always"}}}, "status": {"replicas": 1}}),
    );
    let wanted = deployment(
        json!({"spec": {"paused": false, "template": {"spec": {"hostNetwork": false, "volumes": [], "nodeSelector": {}}}}}),
    );
    let c = run(vec![wanted], vec![live(there)]);
    assert_eq!(
        c.entries[0].status,
        Some(SyncStatus::Synced),
        "{:#}\n{:#}",
        c.entries[0].diff.normalized_live.read(),
        c.entries[0].diff.predicted_live.read()
    );
}

#[test]
fn c29_unchanged_pairs_are_taken_over() {
    let there = by_key(vec![live(config_map("a", "1"))]);
    let first = compare(
        vec![config_map("a", "1")].into(),
        &there,
        &rules(),
        &Kinds,
        None,
        &DryRuns::new(),
    );
    let again = compare(
        vec![config_map("a", "1")].into(),
        &there,
        &rules(),
        &Kinds,
        Some(&first),
        &DryRuns::new(),
    );
    assert!(
        first.entries[0]
            .diff
            .normalized_live
            .is_shared_with(&again.entries[0].diff.normalized_live)
    );
    let other_rules = CompareRules {
        ignore_aggregated_roles: true,
        ..rules()
    };
    let fresh = compare(
        vec![config_map("a", "1")].into(),
        &there,
        &other_rules,
        &Kinds,
        Some(&first),
        &DryRuns::new(),
    );
    assert!(
        !first.entries[0]
            .diff
            .normalized_live
            .is_shared_with(&fresh.entries[0].diff.normalized_live)
    );
}

#[test]
fn of_twins_under_two_groups_one_stays() {
    let mut new = live(object(
        json!({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "i"}}),
    ));
    let mut old = new.clone();
    old.0
        .insert("apiVersion".into(), "extensions/v1beta1".into());
    new.set_annotation(TRACKING_ID, "app:networking.k8s.io/Ingress:prod/i");
    let wanted = object(
        json!({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "i"}}),
    );
    let c = run(vec![wanted], vec![new, old]);
    assert_eq!(c.entries.len(), 1);
    assert_eq!(c.entries[0].key.group, "networking.k8s.io");
}

#[test]
fn a_strategy_without_rolling_updates_gets_none() {
    let deployment = || {
        object(
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {
            "replicas": null, "strategy": {"type": "Recreate", "rollingUpdate": null}, "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}, "creationTimestamp": null}, "spec": {"containers": [{"name": "c", "image": "nginx"}]}}}}),
        )
    };
    let mut there = deployment();
    let spec = there
        .0
        .get_mut("spec")
        .and_then(Value::as_object_mut)
        .expect("a spec");
    spec.insert("replicas".into(), 1.into());
    spec.insert("strategy".into(), json!({"type": "Recreate"}));
    let c = run(vec![deployment()], vec![live(there)]);
    assert_eq!(
        c.entries[0].status,
        Some(SyncStatus::Synced),
        "{}",
        c.entries[0].diff.predicted_live.read()
    );
}

#[test]
fn c27_a_server_side_difference_is_asked_for_and_taken_from_the_answer() {
    let rules = CompareRules {
        server_side_diff: Some(ServerSideDiff {
            include_webhooks: true,
        }),
        ..rules()
    };
    let there = by_key(vec![live(config_map("a", "1"))]);
    let with = |answers: &DryRuns, previous: Option<&Comparison>| {
        compare(
            vec![config_map("a", "1"), config_map("new", "1")].into(),
            &there,
            &rules,
            &Kinds,
            previous,
            answers,
        )
    };
    let first = with(&DryRuns::new(), None);
    let key = first.entries[0].key.clone();
    assert_eq!(
        (&first.unanswered, first.entries[0].status),
        (&vec![key.clone()], Some(SyncStatus::Unknown))
    );
    for (data, status) in [
        ("1", SyncStatus::Synced),
        ("changed by a webhook", SyncStatus::OutOfSync),
    ] {
        let answers = DryRuns::from([(key.clone(), Ok(live(config_map("a", data))))]);
        let answered = with(&answers, Some(&first));
        assert_eq!(
            (answered.unanswered.len(), answered.entries[0].status),
            (0, Some(status)),
            "{data}"
        );
        // An unchanged pair is not asked about again.
        assert!(with(&DryRuns::new(), Some(&answered)).unanswered.is_empty());
    }
    let refused = with(
        &DryRuns::from([(key, Err("denied by a policy".into()))]),
        None,
    );
    assert_eq!(
        (refused.sync, refused.entries[0].status),
        (SyncStatus::Unknown, Some(SyncStatus::Unknown))
    );
    let text = "ComparisonError: Failed to compare desired state to live state: failed to calculate diff: error calculating server side diff: \
        serverSideDiff error: error running server side apply in dryrun mode for resource ConfigMap/a: denied by a policy";
    assert_eq!(messages(&refused), [text]);
    assert_eq!(with(&DryRuns::new(), Some(&refused)).unanswered.len(), 1);
}

#[test]
fn c27_what_was_added_to_an_answer_counts_where_it_is_wanted() {
    let mut answer = live(config_map("a", "1"));
    answer
        .0
        .insert("data".into(), json!({"key": "1", "added": "by a webhook"}));
    // No manager owns the field that was added.
    let owned = json!({"f:metadata": {"f:annotations": {"f:argocd.argoproj.io/tracking-id": {}}}, "f:data": {"f:key": {}}});
    let entry = json!({"manager": "argocd-controller", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": owned});
    answer
        .metadata_mut()
        .insert("managedFields".into(), json!([entry]));
    let there = by_key(vec![live(config_map("a", "1"))]);
    let answers: DryRuns = there
        .keys()
        .map(|key| (key.clone(), Ok(answer.clone())))
        .collect();
    for (include_webhooks, expected) in [(false, SyncStatus::Synced), (true, SyncStatus::OutOfSync)]
    {
        let rules = CompareRules {
            server_side_diff: Some(ServerSideDiff { include_webhooks }),
            ..rules()
        };
        let c = compare(
            vec![config_map("a", "1")].into(),
            &there,
            &rules,
            &Kinds,
            None,
            &answers,
        );
        assert_eq!(
            (c.sync, c.entries[0].status),
            (expected, Some(expected)),
            "{include_webhooks}: {:?}",
            messages(&c)
        );
    }
}
