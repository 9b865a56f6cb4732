//! The order in which steps run: S-1 to S-4, and the waves of prunes (S-45, S-46).

use super::{
    plans::lines,
    sim::{Sim, hook_job, make, options, wave, widget_crd, with},
};
use crate::sync::order;
use serde_json::json;

#[test]
fn s1_order_is_phase_wave_kind_name() {
    let sim = Sim::new(vec![
        hook_job("fail", "SyncFail", ""),
        hook_job("post", "PostSync", ""),
        make("Deployment", "b"),
        make("Deployment", "a"),
        make("ConfigMap", "z"),
        wave(make("ConfigMap", "late"), 1),
        wave(make("Deployment", "early"), -1),
        hook_job("pre", "PreSync", ""),
    ]);
    let expected = [
        "PreSync/0 Job pre",
        "Sync/-1 Deployment early",
        "Sync/0 ConfigMap z",
        "Sync/0 Deployment a",
        "Sync/0 Deployment b",
        "Sync/1 ConfigMap late",
        "PostSync/0 Job post",
        "SyncFail/0 Job fail",
    ];
    assert_eq!(lines(&sim), expected);
}

#[test]
fn s2_kind_ranks() {
    let ordered = "Namespace NetworkPolicy ResourceQuota LimitRange PodSecurityPolicy PodDisruptionBudget ServiceAccount Secret SecretList \
        ConfigMap StorageClass PersistentVolume PersistentVolumeClaim CustomResourceDefinition ClusterRole ClusterRoleList ClusterRoleBinding \
        ClusterRoleBindingList Role RoleList RoleBinding RoleBindingList Service DaemonSet Pod ReplicationController ReplicaSet Deployment \
        HorizontalPodAutoscaler StatefulSet Job CronJob IngressClass Ingress APIService Widget";
    let ranks: Vec<usize> = ordered.split_whitespace().map(order::kind_rank).collect();
    assert!(ranks.is_sorted_by(|a, b| a < b), "{ranks:?}");
    assert_eq!(order::kind_rank("Gizmo"), order::kind_rank("Widget"));
}

#[test]
fn s3_a_namespace_moves_before_what_it_contains() {
    let mut inside = wave(make("ConfigMap", "inside"), -5);
    inside.set_namespace("made");
    let sim = Sim::new(vec![
        wave(make("Namespace", "made"), 3),
        inside,
        wave(make("ConfigMap", "elsewhere"), -6),
    ]);
    assert_eq!(
        lines(&sim),
        [
            "Sync/-6 ConfigMap elsewhere",
            "Sync/-5 Namespace made",
            "Sync/-5 ConfigMap inside"
        ]
    );
}

#[test]
fn s4_a_crd_moves_before_its_resources() {
    let sim = Sim::new(vec![
        wave(widget_crd(), 2),
        wave(make("Widget", "w"), 1),
        hook_job("pre", "PreSync", ""),
    ]);
    assert_eq!(
        lines(&sim),
        [
            "PreSync/0 Job pre",
            "Sync/1 CustomResourceDefinition widgets.example.com",
            "Sync/1 Widget w"
        ]
    );
    let into_hook_phase = Sim::new(vec![
        widget_crd(),
        with(
            make("Widget", "w"),
            &[("argocd.argoproj.io/hook", "PreSync")],
        ),
    ]);
    assert_eq!(
        lines(&into_hook_phase)[0],
        "PreSync/0 CustomResourceDefinition widgets.example.com"
    );
}

fn prune_waves(prunes: &[i64], creates: &[i64], last: &[i64]) -> Vec<i64> {
    let name = |w: &i64| format!("p{}", w + 10);
    let mut sim = Sim::new(
        creates
            .iter()
            .map(|w| wave(make("ConfigMap", &format!("c{}", w + 10)), *w))
            .collect(),
    );
    for w in prunes {
        let o = wave(make("ConfigMap", &name(w)), *w);
        sim.put(if last.contains(w) {
            options(o, "PruneLast=true")
        } else {
            o
        });
    }
    let plan = sim.plan();
    let wave_of = |w: &i64| {
        plan.steps()
            .find(|s| s.key.name == name(w))
            .expect("a prune step")
            .wave
    };
    prunes.iter().map(wave_of).collect()
}

#[test]
fn s45_prune_waves_are_mirrored() {
    assert_eq!(prune_waves(&[0, 1, 2, 3, 4], &[], &[]), [4, 3, 2, 1, 0]);
    assert_eq!(prune_waves(&[1, 3, 4], &[0, 2], &[]), [4, 3, 1]);
    assert_eq!(prune_waves(&[-2, 5], &[0], &[]), [5, -2]);
}

#[test]
fn s46_prune_last() {
    assert_eq!(prune_waves(&[0, 1, 2], &[7], &[0]), [8, 1, 0]);
    assert_eq!(prune_waves(&[0, 3], &[], &[0]), [4, 0]);
    let mut sim =
        Sim::new(vec![wave(make("ConfigMap", "c"), -3)]).sync_options(&["PruneLast=true"]);
    sim.put(wave(make("ConfigMap", "p"), -7));
    // The wave before the move counts, and at least 0.
    assert_eq!(lines(&sim), ["Sync/-3 ConfigMap c", "Sync/1 ConfigMap p"]);
}

#[test]
fn only_a_definition_with_group_and_kind_defines_a_kind() {
    // Neither an object that resembles one, nor one without a group.
    let mut like_one = widget_crd();
    like_one
        .0
        .insert("apiVersion".into(), "example.org/v1".into());
    like_one.set_name("like");
    let mut without = widget_crd();
    without
        .0
        .insert("spec".into(), json!({"names": {"kind": "ConfigMap"}}));
    without.set_name("configmaps");
    let sim = Sim::new(vec![
        wave(like_one, 2),
        wave(without, 2),
        wave(make("Widget", "w"), 1),
        wave(make("ConfigMap", "c"), 1),
    ]);
    let expected = [
        "Sync/1 ConfigMap c",
        "Sync/1 Widget w",
        "Sync/2 CustomResourceDefinition configmaps",
        "Sync/2 CustomResourceDefinition like",
    ];
    assert_eq!(lines(&sim), expected);
}

#[test]
fn several_definitions_and_namespaces_move_each_to_its_own_place() {
    let inside = |name: &str, namespace: &str, at: i64| {
        let mut o = wave(make("Secret", name), at);
        o.set_namespace(namespace);
        o
    };
    let sim = Sim::new(vec![
        inside("a", "one", 1),
        inside("b", "two", 2),
        inside("c", "three", 3),
        wave(make("Namespace", "three"), 9),
        wave(make("Namespace", "two"), 8),
        wave(make("Namespace", "one"), 7),
    ]);
    let expected = [
        "Sync/1 Namespace one",
        "Sync/1 Secret a",
        "Sync/2 Namespace two",
        "Sync/2 Secret b",
        "Sync/3 Namespace three",
        "Sync/3 Secret c",
    ];
    assert_eq!(lines(&sim), expected);
}
