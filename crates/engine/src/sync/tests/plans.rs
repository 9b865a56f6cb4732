//! The content of plans: S-5 to S-20, what needs no dry run (S-22), and whether a step creates the
//! namespace (S-72, S-73).

use super::sim::{NS, Sim, hook_job, make, object, options, wave, widget_crd, with};
use crate::sync::{
    SyncPhase, SyncRequest, hook, options as sync_options,
    request::{ResourceSelector, deletion_confirmed},
    step::Action,
    wave as waves,
};
use serde_json::json;
use tiphys_apimachinery::Object;

/// `<phase>/<wave> <kind> <name>` of every step.
pub(super) fn lines(sim: &Sim) -> Vec<String> {
    sim.plan()
        .steps()
        .map(|s| format!("{}/{} {} {}", s.phase, s.wave, s.gvk.kind, s.key.name))
        .collect()
}

#[test]
fn s5_waves() {
    let cases: [(&[(&str, &str)], i64); 6] = [
        (&[], 0),
        (&[("argocd.argoproj.io/sync-wave", "3")], 3),
        (&[("argocd.argoproj.io/sync-wave", "-3")], -3),
        (
            &[
                ("argocd.argoproj.io/sync-wave", "soon"),
                ("helm.sh/hook-weight", "7"),
            ],
            7,
        ),
        (
            &[
                ("argocd.argoproj.io/sync-wave", "1"),
                ("helm.sh/hook-weight", "7"),
            ],
            1,
        ),
        (&[("helm.sh/hook-weight", "x")], 0),
    ];
    for (annotations, expected) in cases {
        assert_eq!(
            waves::of(&with(make("ConfigMap", "c"), annotations)),
            expected,
            "{annotations:?}"
        );
    }
}

/// (annotations, is a hook, phases)
type HookCase = (
    &'static [(&'static str, &'static str)],
    bool,
    &'static [SyncPhase],
);

#[test]
fn s6_s7_s8_s9_s10_s12_which_phases_a_hook_has() {
    use SyncPhase::{PostSync, PreSync, Sync, SyncFail};
    const HOOK: &str = "argocd.argoproj.io/hook";
    const HELM: &str = "helm.sh/hook";
    let cases: [HookCase; 15] = [
        (&[], false, &[Sync]),
        (&[(HOOK, "Skip")], false, &[]),
        (&[(HOOK, "Skip,PreSync")], true, &[PreSync]),
        (&[(HOOK, "PreSync,PostSync")], true, &[PreSync, PostSync]),
        (
            &[(HOOK, " PostSync ,, PreSync,PreSync")],
            true,
            &[PreSync, PostSync],
        ),
        (&[(HOOK, "SyncFail")], true, &[SyncFail]),
        (&[(HOOK, "Sync"), (HELM, "pre-install")], true, &[Sync]),
        (
            &[(HOOK, "Garbage"), (HELM, "pre-install")],
            true,
            &[PreSync],
        ),
        (&[(HOOK, "Garbage")], true, &[]),
        (&[(HELM, "pre-install,pre-upgrade")], true, &[PreSync]),
        (&[(HELM, "post-upgrade")], true, &[PostSync]),
        (&[(HELM, "post-install")], true, &[PostSync]),
        (&[(HELM, "crd-install")], false, &[Sync]),
        (&[(HELM, "pre-delete")], true, &[]),
        (&[(HELM, "test")], true, &[]),
    ];
    for (annotations, is_hook, phases) in cases {
        let o = with(make("Job", "j"), annotations);
        assert_eq!(hook::is_hook(&o), is_hook, "{annotations:?}");
        assert_eq!(hook::phases(&o), phases, "{annotations:?}");
    }
    assert!(hook::is_pre_delete(&with(
        make("Job", "j"),
        &[(HELM, "pre-delete")]
    )));
    assert!(hook::is_post_delete(&with(
        make("Job", "j"),
        &[(HOOK, "PostDelete")]
    )));
    for other in ["PreSync", "Skip", "Garbage"] {
        let other = with(make("Job", "j"), &[(HOOK, other), (HELM, "pre-install")]);
        assert!(!hook::is_pre_delete(&other) && !hook::is_post_delete(&other));
    }
}

#[test]
fn s6_skipped_objects_have_no_step() {
    assert!(
        lines(&Sim::new(vec![with(
            make("ConfigMap", "c"),
            &[("argocd.argoproj.io/hook", "Skip")]
        )]))
        .is_empty()
    );
}

#[test]
fn s7_one_object_may_have_a_step_in_several_phases() {
    let sim = Sim::new(vec![hook_job("j", "PreSync,PostSync", "")]);
    let keys: Vec<String> = sim
        .plan()
        .steps()
        .map(|s| s.step_key().to_string())
        .collect();
    assert_eq!(
        keys,
        ["batch/Job/app-ns/j:PreSync", "batch/Job/app-ns/j:PostSync"]
    );
}

#[test]
fn s10_hooks_of_unknown_type_are_neither_applied_nor_pruned() {
    let ignored = with(
        make("ConfigMap", "c"),
        &[("argocd.argoproj.io/hook", "Garbage")],
    );
    assert!(hook::is_ignored(&ignored));
    assert!(lines(&Sim::new(vec![ignored.clone()])).is_empty());
    assert!(lines(&Sim::new(vec![]).existing(ignored)).is_empty());
}

#[test]
fn s11_delete_policies_of_both_notations_add_up() {
    use hook::DeletePolicy::{BeforeHookCreation, HookFailed, HookSucceeded};
    const OWN: &str = "argocd.argoproj.io/hook-delete-policy";
    const HELM: &str = "helm.sh/hook-delete-policy";
    let policies =
        |annotations: &[(&str, &str)]| hook::delete_policies(&with(make("Job", "j"), annotations));
    assert_eq!(policies(&[]), [BeforeHookCreation]);
    assert_eq!(policies(&[(OWN, "garbage")]), [BeforeHookCreation]);
    assert_eq!(
        policies(&[(OWN, "HookFailed"), (HELM, "hook-succeeded")]),
        [HookSucceeded, HookFailed]
    );
    assert_eq!(
        policies(&[(HELM, "before-hook-creation")]),
        [BeforeHookCreation]
    );
    assert_eq!(
        policies(&[(HELM, "hook-failed, hook-succeeded"), (OWN, "garbage")]),
        [HookSucceeded, HookFailed]
    );
    assert_eq!(
        policies(&[(OWN, "BeforeHookCreation,HookSucceeded")]),
        [BeforeHookCreation, HookSucceeded]
    );
}

#[test]
fn a_hook_is_held_by_one_finalizer_of_ours() {
    let prepared = |finalizers: &[&str]| {
        let mut job = hook_job("j", "PreSync", "");
        job.set_finalizers(finalizers.iter().map(|f| (*f).to_owned()).collect());
        hook::prepare(&job, "op", SyncPhase::PreSync).finalizers()
    };
    for (before, after) in [
        (&[][..], &[hook::HOOK_FINALIZER][..]),
        (&[hook::HOOK_FINALIZER], &[hook::HOOK_FINALIZER]),
        (
            &["example.com/keep"],
            &["example.com/keep", hook::HOOK_FINALIZER],
        ),
    ] {
        assert_eq!(prepared(before), after);
    }
}

#[test]
fn s12_lists_in_annotations() {
    assert_eq!(sync_options::csv(Some(" a, b ,,a,c=d")), ["a", "b", "c=d"]);
    assert!(sync_options::csv(None).is_empty());
    let o = options(
        make("ConfigMap", "c"),
        "Prune=false , Prune=confirm,Replace=true",
    );
    assert_eq!(sync_options::value(&o, "Prune"), Some("false"));
    assert!(sync_options::has(&o, "Replace=true") && !sync_options::has(&o, "Replace"));
}

#[test]
fn s13_unnamed_hooks_get_names() {
    let started = "2024-05-01T10:00:00Z".parse().expect("a timestamp");
    let name = |revision, phase| {
        hook::generated_name(
            "foo-",
            &hook::generated_suffix(revision, phase, started),
            |_| false,
        )
    };
    assert_eq!(
        name("abcdef0123456789", SyncPhase::PreSync),
        "foo-abcdef0-presync-1714557600"
    );
    assert_eq!(
        name("Foo", SyncPhase::PostSync),
        "foo-foo-postsync-1714557600"
    );
    let mut unnamed = hook_job("", "PreSync", "");
    unnamed
        .metadata_mut()
        .insert("generateName".into(), "foo-".into());
    assert_eq!(
        lines(&Sim::new(vec![unnamed.clone()])),
        ["PreSync/0 Job foo-abcdef0-presync-1714557600"]
    );
    let two = [
        "PreSync/0 Job foo-abcdef0-presync-1714557600",
        "PreSync/0 Job foo-abcdef0-presync-1714557600-2",
    ];
    assert_eq!(lines(&Sim::new(vec![unnamed.clone(), unnamed])), two);
}

#[test]
fn s14_resources_are_not_named() {
    let o = object(
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "foo-", "namespace": NS}}),
    );
    let plan = Sim::new(vec![o]).plan();
    let target = plan
        .steps()
        .next()
        .and_then(|s| s.target.clone())
        .expect("a target");
    assert_eq!((target.name(), target.generate_name()), ("", "foo-"));
}

#[test]
fn s15_an_object_listed_twice_has_one_step() {
    assert_eq!(
        lines(&Sim::new(vec![
            make("ConfigMap", "c"),
            make("ConfigMap", "c")
        ])),
        ["Sync/0 ConfigMap c"]
    );
}

#[test]
fn s16_hooks_get_the_finalizer_and_the_operation_id() {
    let plan = Sim::new(vec![hook_job("j", "PreSync", "")]).plan();
    let target = plan
        .steps()
        .next()
        .and_then(|s| s.target.clone())
        .expect("a target");
    assert_eq!(target.finalizers(), [hook::HOOK_FINALIZER]);
    assert_eq!(target.annotation(hook::OPERATION_ID), Some("op-1"));
    let mut twice = hook_job("j", "PreSync", "");
    twice.set_finalizers(vec!["x".into(), hook::HOOK_FINALIZER.into()]);
    let target = Sim::new(vec![twice])
        .plan()
        .steps()
        .next()
        .and_then(|s| s.target.clone())
        .expect("a target");
    assert_eq!(target.finalizers().len(), 2);
}

#[test]
fn s17_targets_get_the_destination_namespace() {
    let mut bare = make("ConfigMap", "c");
    bare.set_namespace("");
    let plan = Sim::new(vec![bare, make("ClusterRole", "r")]).plan();
    let seen: Vec<(String, String)> = plan
        .steps()
        .map(|s| (s.key.to_string(), s.result_namespace.clone()))
        .collect();
    // For a cluster-scoped object only the result contains the namespace.
    assert_eq!(
        seen,
        [
            ("/ConfigMap/app-ns/c".to_owned(), NS.to_owned()),
            (
                "rbac.authorization.k8s.io/ClusterRole//r".to_owned(),
                NS.to_owned()
            )
        ]
    );
}

#[test]
fn a_resource_of_a_new_cluster_scoped_kind_gets_no_namespace() {
    let mut crd = widget_crd();
    crd.0["spec"]["scope"] = "Cluster".into();
    let mut sim = Sim::new(vec![crd, make("Widget", "w")]);
    sim.unknown_kinds.insert("Widget".into());
    assert!(
        sim.plan()
            .steps()
            .any(|s| s.key.to_string() == "example.com/Widget//w")
    );
}

#[test]
fn s18_live_hooks_are_not_pruned() {
    assert!(lines(&Sim::new(vec![]).existing(hook_job("old", "PreSync", ""))).is_empty());
    let helm = with(make("Job", "old"), &[("helm.sh/hook", "pre-install")]);
    assert!(lines(&Sim::new(vec![]).existing(helm)).is_empty());
}

#[test]
fn s19_no_hooks_with_the_apply_strategy_or_a_selection() {
    let mut sim = Sim::new(vec![hook_job("j", "PreSync", ""), make("ConfigMap", "c")]);
    sim.request.strategy_apply = true;
    assert_eq!(lines(&sim), ["Sync/0 ConfigMap c"]);
    sim.request.strategy_apply = false;
    sim.request.resources = vec![ResourceSelector {
        kind: "ConfigMap".into(),
        name: "c".into(),
        ..ResourceSelector::default()
    }];
    assert_eq!(lines(&sim), ["Sync/0 ConfigMap c"]);
}

#[test]
fn s20_selective_sync() {
    let select = |group: &str, kind: &str, name: &str, namespace: &str| ResourceSelector {
        group: group.into(),
        kind: kind.into(),
        name: name.into(),
        namespace: namespace.into(),
    };
    let mut sim = Sim::new(vec![
        make("ConfigMap", "a"),
        make("ConfigMap", "b"),
        make("Deployment", "a"),
    ]);
    for (selector, expected) in [
        (select("", "ConfigMap", "a", ""), vec!["Sync/0 ConfigMap a"]),
        (select("", "ConfigMap", "a", NS), vec!["Sync/0 ConfigMap a"]),
        (select("", "ConfigMap", "a", "other"), vec![]),
        (
            select("apps", "Deployment", "a", ""),
            vec!["Sync/0 Deployment a"],
        ),
    ] {
        sim.request.resources = vec![selector];
        assert_eq!(lines(&sim), expected);
    }
}

#[test]
fn s22_a_resource_whose_crd_comes_along_is_not_dry_run() {
    let mut sim = Sim::new(vec![widget_crd(), make("Widget", "w")]);
    sim.unknown_kinds.insert("Widget".into());
    let plan = sim.plan();
    let widget = plan
        .steps()
        .find(|s| s.gvk.kind == "Widget")
        .expect("a step for the widget");
    assert!(widget.skip_dry_run && widget.invalid.is_none());
}

#[test]
fn s72_s73_create_namespace() {
    let sim = Sim::new(vec![make("ConfigMap", "c")]).sync_options(&["CreateNamespace=true"]);
    assert_eq!(
        lines(&sim),
        ["PreSync/0 Namespace app-ns", "Sync/0 ConfigMap c"]
    );
    assert_eq!(
        sim.plan().steps().next().expect("the namespace").action,
        Action::CreateNamespace { always: false }
    );
    let managed = Sim::new(vec![make("ConfigMap", "c"), make("Namespace", NS)])
        .sync_options(&["CreateNamespace=true"]);
    assert_eq!(
        lines(&managed),
        ["Sync/0 Namespace app-ns", "Sync/0 ConfigMap c"]
    );
    // Another namespace, another object of that name, or a kind in another group is not the
    // destination.
    let of_another_group = object(
        json!({"apiVersion": "example.com/v1", "kind": "Namespace", "metadata": {"name": NS}}),
    );
    for other in [
        make("Namespace", "other"),
        make("ConfigMap", NS),
        of_another_group,
    ] {
        let sim = Sim::new(vec![other]).sync_options(&["CreateNamespace=true"]);
        assert_eq!(lines(&sim)[0], "PreSync/0 Namespace app-ns");
    }
    let mut nowhere =
        Sim::new(vec![make("ConfigMap", "c")]).sync_options(&["CreateNamespace=true"]);
    nowhere.request.dest_namespace = String::new();
    assert_eq!(lines(&nowhere), ["Sync/0 ConfigMap c"]);
}

#[test]
fn a_plan_as_text_says_what_is_done_and_how() {
    let mut sim = Sim::new(vec![
        options(
            make("ConfigMap", "a"),
            "ServerSideApply=true,Validate=false",
        ),
        options(
            make("ConfigMap", "b"),
            "Replace=true,Force=true,ServerSideApply=true",
        ),
        hook_job("j", "PostSync", "HookSucceeded"),
        make("Widget", "w"),
        widget_crd(),
    ])
    .existing(make("Pod", "gone"))
    .existing(options(make("Pod", "kept"), "Prune=false"))
    .existing(options(make("Pod", "asked"), "Prune=confirm"))
    .sync_options(&["CreateNamespace=true"]);
    sim.unknown_kinds.insert("Widget".into());
    let text = sim.plan().to_string();
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let expected = [
        "sync of abcdef0123456789: 9 steps",
        "PreSync",
        "wave 0",
        "create     Namespace app-ns (if missing)",
        "Sync",
        "wave 0, after PreSync wave 0 to be healthy and complete",
        "apply      ConfigMap app-ns/a (server-side, without validation)",
        "replace    ConfigMap app-ns/b (force)",
        "apply      apiextensions.k8s.io/CustomResourceDefinition widgets.example.com",
        "ask        Pod app-ns/asked",
        "prune      Pod app-ns/gone",
        "keep       Pod app-ns/kept",
        "apply      example.com/Widget app-ns/w (not checked before: its kind is not there yet)",
        "PostSync",
        "wave 0, after Sync wave 0 to be healthy and complete",
        "run hook   batch/Job app-ns/j (HookSucceeded)",
        "blocked",
        "Pod app-ns/asked: waiting for pruning confirmation",
        "Pod app-ns/kept: ignored (no prune)",
    ];
    assert_eq!(lines, expected, "{text}");
}

#[test]
fn options_of_the_live_object_count_too() {
    let flags = |desired: &str, there: &str| {
        let sim = Sim::new(vec![options(make("ConfigMap", "c"), desired)])
            .existing(options(make("ConfigMap", "c"), there));
        let plan = sim.plan();
        let step = plan.steps().next().expect("one step");
        (step.replace, step.force)
    };
    assert_eq!(flags("", ""), (false, false));
    assert_eq!(flags("", "Replace=true"), (true, false));
    assert_eq!(flags("", "Force=true"), (false, true));
    assert_eq!(flags("Replace=true,Force=true", ""), (true, true));
}

#[test]
fn an_effect_as_text_is_its_verb_and_object() {
    let mut sim = Sim::new(vec![make("Deployment", "web")]);
    sim.turn();
    let effects: Vec<String> = sim
        .decide()
        .effects
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(effects, [format!("apply apps/Deployment/{NS}/web")]);
}

#[test]
fn sync_options_are_exact_words() {
    let o = crate::sync::SyncOptions::parse(&[
        "Validate=false",
        "Prune=confirm",
        "PrunePropagationPolicy=background",
        "replace=true",
    ]);
    assert!(!o.validate && !o.replace && o.prune.as_deref() == Some("confirm"));
    assert_eq!(o.propagation, crate::sync::Propagation::Background);
    assert_eq!(
        crate::sync::SyncOptions::parse::<&str>(&[]),
        crate::sync::SyncOptions::default()
    );
}

#[test]
fn a_confirmation_counts_from_the_start_of_the_operation() {
    let since = "2024-05-01T10:00:00.7Z".parse().expect("a timestamp");
    assert!(deletion_confirmed(Some("2024-05-01T10:00:00Z"), since));
    assert!(!deletion_confirmed(Some("2024-05-01T09:59:59Z"), since));
    assert!(!deletion_confirmed(Some("yes"), since) && !deletion_confirmed(None, since));
}

#[test]
fn a_plan_can_be_printed_and_stored() {
    let sim = Sim::new(vec![
        hook_job("migrate", "PreSync", "HookSucceeded"),
        make("ConfigMap", "c"),
        options(
            wave(make("Deployment", "web"), 1),
            "Replace=true,Force=true",
        ),
        hook_job("report", "SyncFail", ""),
    ])
    .existing(options(make("ConfigMap", "old"), "Prune=false"));
    let expected = "\
sync of abcdef0123456789: 5 steps
PreSync
  wave 0
    run hook   batch/Job app-ns/migrate (HookSucceeded)
Sync
  wave 0, after PreSync wave 0 to be healthy and complete
    apply      ConfigMap app-ns/c
    keep       ConfigMap app-ns/old
  wave 1, after Sync wave 0 to be healthy and complete
    replace    apps/Deployment app-ns/web (force)
SyncFail
  wave 0, after a failure of the sync
    run hook   batch/Job app-ns/report (BeforeHookCreation)
blocked
    ConfigMap app-ns/old: ignored (no prune)
";
    assert_eq!(sim.plan().to_string(), expected);
    let stored = serde_json::to_value(sim.plan()).expect("a plan is JSON");
    let back: crate::sync::SyncPlan = serde_json::from_value(stored).expect("and back");
    assert_eq!(back.to_string(), expected);
    assert_eq!(
        SyncRequest::default(),
        serde_json::from_value(json!({})).expect("every field has a default")
    );
    assert!(Object::default().0.is_empty());
}

/// The CRD was just deleted: discovery may still know the kind, but the API server does not.
#[test]
fn a_kind_that_the_sync_defines_again_is_not_checked_before() {
    let told = Sim::new(vec![widget_crd(), make("Widget", "w")])
        .plan()
        .to_string();
    assert!(
        told.contains(
            "example.com/Widget app-ns/w (not checked before: its kind is not there yet)"
        ),
        "{told}"
    );
    let told = Sim::new(vec![widget_crd(), make("Widget", "w")])
        .existing(widget_crd())
        .plan()
        .to_string();
    assert!(!told.contains("not checked before"), "{told}");
}

#[test]
fn a_plan_says_why_something_waits_or_is_blocked() {
    let wanted = vec![
        hook_job("pre", "PreSync", ""),
        widget_crd(),
        make("Widget", "w"),
        hook_job("fail", "SyncFail", ""),
        make("Gizmo", "g"),
    ];
    let existing = [
        ("kept", "Prune=false"),
        ("asked", "Prune=confirm"),
        ("gone", ""),
    ];
    let new = || {
        let sim = Sim::new(wanted.clone());
        existing.iter().fold(sim, |sim, (name, option)| {
            sim.existing(options(make("ConfigMap", name), option))
        })
    };
    let mut sim = new();
    sim.unknown_kinds.extend(["Widget".into(), "Gizmo".into()]);
    sim.not_permitted.insert("fail".into());
    let told = sim.plan().to_string();
    for line in [
        "  wave 0, after PreSync wave 0 to be healthy and complete",
        "  wave 0, after a failure of the sync",
        "    refuse     batch/Job app-ns/fail (BeforeHookCreation)",
        "    apply      example.com/Widget app-ns/w (not checked before: its kind is not there yet)",
        "    ask        ConfigMap app-ns/asked",
        "    ConfigMap app-ns/kept: ignored (no prune)",
        "    ConfigMap app-ns/asked: waiting for pruning confirmation",
        "    batch/Job app-ns/fail: resource batch:Job is not permitted in project p",
    ] {
        assert!(told.lines().any(|l| l == line), "{line}\n{told}");
    }
    assert!(
        told.contains("could not find the requested resource"),
        "{told}"
    );
    let mut sim = new();
    sim.request.prune = false;
    assert!(
        sim.plan()
            .to_string()
            .contains("    ConfigMap app-ns/gone: ignored (requires pruning)\n")
    );
    sim.request.strategy_apply = true;
    assert!(
        sim.plan()
            .to_string()
            .contains("    batch/Job app-ns/pre: hooks do not run with the apply strategy\n")
    );
    sim.request.strategy_apply = false;
    sim.request.resources = vec![ResourceSelector {
        kind: "ConfigMap".into(),
        name: "gone".into(),
        ..ResourceSelector::default()
    }];
    assert!(
        sim.plan()
            .to_string()
            .contains("    batch/Job app-ns/pre: hooks do not run in a selective sync\n")
    );
    let mut sim = new()
        .sync_options(&["ApplyOutOfSyncOnly=true"])
        .existing(make("Widget", "w"));
    sim.modified.insert("w".into(), false);
    assert!(
        sim.plan()
            .to_string()
            .contains("    keep       example.com/Widget app-ns/w (in sync)\n")
    );
}

#[test]
fn respected_differences_are_applied_as_they_are_live() {
    let replicas = |n: u64| {
        let mut o = make("Deployment", "d");
        o.0.insert("spec".into(), json!({"replicas": n}));
        o
    };
    for (option, expected) in [("", 2), ("RespectIgnoreDifferences=true", 7)] {
        let sim = Sim::new(vec![replicas(2)])
            .existing(replicas(7))
            .sync_options(&[option])
            .ignoring("/spec/replicas");
        let plan = sim.plan();
        let target = plan
            .steps()
            .next()
            .and_then(|s| s.target.as_ref())
            .expect("a target");
        assert_eq!(
            target.pointer("/spec/replicas"),
            Some(&json!(expected)),
            "{option}"
        );
    }
}
