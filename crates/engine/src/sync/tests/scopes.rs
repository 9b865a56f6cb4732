//! Kinds whose scope is not known when a sync is planned, or is another one when a step is executed:
//! permission counts for the scope in which the object is written (S-25).

use super::sim::{NS, Sim, make, options, says, wave, widget_crd, with};
use crate::{
    sync::{OperationPhase, Refused},
    types::HealthStatus,
};

const REFUSED: &str = "resource example.com:Widget is not permitted in project p";

/// Defines Widgets, as if someone else did.
fn define(sim: &mut Sim, scope: &str) {
    let mut crd = widget_crd();
    crd.0["spec"]["scope"] = scope.into();
    crd.set_label("untracked", "");
    sim.put(crd);
}

/// A Widget of a kind that the cluster does not have. Its project permits one scope only.
fn planned(hook: bool, namespaced: bool) -> Sim {
    let mut widget = options(make("Widget", "w"), "SkipDryRunOnMissingResource=true");
    if hook {
        widget = with(widget, &[("argocd.argoproj.io/hook", "PreSync")]);
    }
    let mut sim = Sim::new(vec![widget]);
    sim.unknown_kinds.insert("Widget".into());
    sim.permitted_scopes.insert("Widget".into(), namespaced);
    sim.keep_plan();
    sim
}

const OTHERWISE: [(bool, &str); 2] = [(true, "Cluster"), (false, "Namespaced")];

#[test]
fn s25_a_kind_that_turns_out_to_have_a_scope_that_is_not_permitted() {
    for hook in [false, true] {
        for (namespaced, scope) in OTHERWISE {
            let mut sim = planned(hook, namespaced);
            define(&mut sim, scope);
            assert_eq!(
                says(&sim.run()),
                format!("Failed: one or more objects failed to apply, reason: {REFUSED}"),
                "{scope}"
            );
            assert_eq!(sim.result("w"), format!("SyncFailed Failed {REFUSED}"));
            assert!(sim.live("Widget", "w").is_none(), "{scope}");
        }
    }
}

#[test]
fn s25_a_kind_that_turns_out_to_have_a_scope_that_is_permitted() {
    for (namespaced, scope, key) in [
        (true, "Namespaced", "example.com/Widget/app-ns/w"),
        (false, "Cluster", "example.com/Widget//w"),
    ] {
        for hook in [false, true] {
            let mut sim = planned(hook, namespaced);
            define(&mut sim, scope);
            let last = sim.run();
            assert_eq!(last.phase, OperationPhase::Succeeded, "{}", last.message);
            let keys: Vec<String> = sim.world.keys().map(ToString::to_string).collect();
            assert!(keys.contains(&key.to_owned()), "{scope}: {keys:?}");
        }
    }
}

/// The definition comes during the sync, and the sync waits for an object that is found in the other
/// scope than it was planned in.
#[test]
fn s25_a_definition_that_comes_during_the_sync() {
    for (permitted, phase) in [
        (true, OperationPhase::Failed),
        (false, OperationPhase::Succeeded),
    ] {
        let mut sim = Sim::new(vec![
            make("Deployment", "first"),
            wave(
                options(make("Widget", "w"), "SkipDryRunOnMissingResource=true"),
                1,
            ),
            wave(make("ConfigMap", "last"), 2),
        ])
        .healthy("first", &[HealthStatus::Progressing, HealthStatus::Healthy]);
        sim.unknown_kinds.insert("Widget".into());
        sim.permitted_scopes.insert("Widget".into(), permitted);
        sim.keep_plan();
        let waiting = sim.run_to_wait();
        assert_eq!(waiting.phase, OperationPhase::Running);
        define(&mut sim, "Cluster");
        sim.idle(&waiting);
        assert_eq!(sim.run().phase, phase, "{:?}", sim.messages);
        let made = phase == OperationPhase::Succeeded;
        assert_eq!(sim.live("Widget", "w").is_some(), made);
        assert_eq!(sim.live("ConfigMap", "last").is_some(), made);
        if !made {
            assert_eq!(sim.result("w"), format!("SyncFailed Failed {REFUSED}"));
        }
    }
}

/// A process that resumes the sync, or a further attempt, knows the scope before anything is applied.
#[test]
fn s25_a_scope_that_is_known_when_the_sync_is_planned_again() {
    for (namespaced, scope) in OTHERWISE {
        let mut sim = planned(false, namespaced);
        define(&mut sim, scope);
        sim.keep_plan();
        assert_eq!(
            says(&sim.run()),
            format!("Failed: one or more synchronization tasks are not valid: {REFUSED}")
        );
        assert_eq!(sim.result("w"), format!("SyncFailed - {REFUSED}"));
        assert!(sim.log.is_empty(), "{:?}", sim.log);
    }
}

#[test]
fn s25_a_known_kind_that_gets_another_scope() {
    let mut sim = Sim::new(vec![make("Widget", "w")]);
    sim.permitted_scopes.insert("Widget".into(), true);
    sim.keep_plan();
    define(&mut sim, "Cluster");
    assert_eq!(
        says(&sim.run()),
        "Failed: one or more objects failed to apply (dry run)"
    );
    assert_eq!(sim.result("w"), format!("SyncFailed Failed {REFUSED}"));
    assert!(sim.live("Widget", "w").is_none());
}

/// A definition in the sync says what scope its kind will have; the cluster may know better.
#[test]
fn s25_a_definition_of_the_sync_that_the_cluster_has_otherwise() {
    let mut sim = Sim::new(vec![widget_crd(), make("Widget", "w")]);
    sim.unknown_kinds.insert("Widget".into());
    sim.permitted_scopes.insert("Widget".into(), true);
    sim.keep_plan();
    while sim.wet_log().is_empty() {
        sim.turn();
    }
    define(&mut sim, "Cluster");
    assert_eq!(sim.run().phase, OperationPhase::Failed);
    assert_eq!(sim.result("w"), format!("SyncFailed Failed {REFUSED}"));
    assert!(sim.live("Widget", "w").is_none());
}

/// As an aggregated API that is away while the sync is planned.
#[test]
fn s25_a_prune_of_a_kind_that_comes_back() {
    for (permitted, namespaced) in [(true, true), (false, false)] {
        let mut sim = Sim::new(vec![]).existing(make("Widget", "w"));
        sim.unknown_kinds.insert("Widget".into());
        sim.permitted_scopes.insert("Widget".into(), namespaced);
        sim.keep_plan();
        sim.unknown_kinds.clear();
        let last = sim.run();
        assert_eq!(
            last.phase == OperationPhase::Succeeded,
            permitted,
            "{}",
            last.message
        );
        assert_eq!(sim.live("Widget", "w").is_none(), permitted);
    }
}

#[test]
fn each_scope_has_its_own_answer() {
    let only = |permitted: bool| {
        Refused::ask(|namespaced| match namespaced == permitted {
            true => Ok(()),
            false => Err(format!("not in {NS}")),
        })
    };
    assert_eq!(
        (only(true).at(true), only(true).at(false)),
        (None, Some("not in app-ns"))
    );
    assert_eq!(
        (only(false).at(true), only(false).at(false)),
        (Some("not in app-ns"), None)
    );
    assert!(Refused::default().at(false).is_none());
}
