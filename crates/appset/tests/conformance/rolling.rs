//! Reports 09 to 11: RollingSync beside an application controller that is slow to see what changed.

use crate::reports::{read, report, set};
use crate::suite::world::World;
use serde_json::json;
use std::collections::BTreeMap;
use tiphys_api::Application;
use tiphys_api::ApplicationSet;
use tiphys_api::meta::Time;
use tiphys_api::source::ApplicationSource;
use tiphys_appset::reconcile::{Change, Done, Existing, Settings, plan};
use tiphys_engine::spec::in_cluster;

struct Played {
    set: ApplicationSet,
    apps: BTreeMap<String, Application>,
    /// What is in the clusters.
    applied: BTreeMap<String, Option<ApplicationSource>>,
    /// The operations, with the names of those that were synced with what is wanted now before.
    operations: Vec<(String, Vec<String>)>,
    operations_fail: bool,
    seconds: i64,
    /// Everything is done so fast that this many things happen in a second.
    fast: Option<usize>,
    /// A sync ends seconds after it began, and is compared with a refresh only.
    is_late: bool,
    happened: usize,
}

impl Played {
    fn new(set: ApplicationSet) -> Self {
        Self {
            set,
            apps: BTreeMap::new(),
            applied: BTreeMap::new(),
            operations: Vec::new(),
            operations_fail: false,
            seconds: 1_700_000_000,
            fast: None,
            is_late: false,
            happened: 0,
        }
    }

    fn now(&mut self) -> Time {
        self.happened += 1;
        if self
            .fast
            .is_none_or(|fast| self.happened.is_multiple_of(fast))
        {
            self.seconds += 1;
        }
        Time {
            seconds: self.seconds,
            nanos: 0,
        }
    }

    fn status(&self, name: &str) -> &str {
        let all = &self.set.status.application_status;
        let found = all.iter().find(|status| status.application == name);
        found.map_or("", |status| status.status.as_str())
    }

    /// One reconcile of the set.
    fn reconcile(&mut self) {
        let now = self.now();
        let generated = World::new(&json!({})).generate(&self.set);
        assert_eq!(generated.failure, None);
        let settings = Settings {
            progressive_syncs: true,
            ..Settings::default()
        };
        let applications: Vec<Application> = self.apps.values().cloned().collect();
        let existing = Existing {
            applications: &applications,
            projects: &["default".to_owned()].into(),
            clusters: &[in_cluster()],
            local_names: &[],
            broken_clusters: &[],
        };
        let plan = plan(
            &self.set,
            Ok(&generated.applications),
            &existing,
            &settings,
            now,
        );
        for write in &plan.writes {
            let (Change::Create(app) | Change::Update { after: app, .. }) = write else {
                panic!("{write:?}");
            };
            self.apps.insert(write.name().to_owned(), (**app).clone());
        }
        assert!(plan.deletes.is_empty());
        let owned: Vec<&Application> = self.apps.values().collect();
        let status = plan.conclude(&self.set, &Done::Completely, &owned, &settings, now);
        self.set.status = status;
    }

    fn is_current(&self, name: &str) -> bool {
        let wanted = &self.apps[name].spec.source;
        wanted.is_some() && self.applied.get(name) == Some(wanted)
    }

    /// Runs the operations, and compares the Applications: all, or those that were synced.
    fn control(&mut self, refreshes: bool) {
        let names: Vec<String> = self.apps.keys().cloned().collect();
        for name in &names {
            let now = self.now();
            let others = names.iter().filter(|other| *other != name);
            let current = others.filter(|other| self.is_current(other)).cloned();
            let current = current.collect();
            let fails = self.operations_fail;
            let app = self.apps.get_mut(name).expect("a name");
            let runs = app.operation.take().is_some();
            if runs {
                let phase = if fails { "Failed" } else { "Succeeded" };
                let state = json!({
                    "phase": phase, "startedAt": "1970-01-01T00:00:00Z",
                    "operation": {"initiatedBy": {
                        "username": "applicationset-controller", "automated": true,
                    }},
                    "syncResult": {"revision": "aaa", "source": app.spec.source},
                });
                let mut state: tiphys_api::operation::OperationState =
                    serde_json::from_value(state).expect("a state");
                state.started_at = Some(now);
                if self.is_late {
                    self.seconds += 5;
                }
                state.finished_at = Some(Time {
                    seconds: self.seconds,
                    ..now
                });
                app.status.operation_state = Some(state.into());
                if !fails {
                    self.applied.insert(name.clone(), app.spec.source.clone());
                }
                self.operations.push((name.clone(), current));
            }
            if !(refreshes || runs && !self.is_late) {
                continue;
            }
            let now = match self.fast {
                Some(_) => now,
                None => Time {
                    seconds: now.seconds + 1,
                    ..now
                },
            };
            self.seconds += i64::from(self.fast.is_none());
            let is_current = self.applied.get(name) == Some(&app.spec.source);
            let status = &mut *app.status;
            status.sync.status = if is_current { "Synced" } else { "OutOfSync" }.to_owned();
            status.sync.revision = "aaa".to_owned();
            status.health.status = "Healthy".to_owned();
            let mut compared = status.sync.compared_to.clone().into_inner();
            compared.source = app.spec.source.clone().unwrap_or_default();
            compared.destination = app.spec.destination.clone();
            status.sync.compared_to = compared.into();
            status.reconciled_at = Some(now);
        }
    }

    /// Reconciles, with a controller that refreshes only now and then.
    fn play(&mut self, rounds: usize) {
        for round in 0..rounds {
            self.reconcile();
            self.control(round % 3 == 2);
        }
    }

    fn tag(&mut self, tag: &str) {
        let template = self.set.spec.template.spec.source.as_mut();
        let helm = template.and_then(|source| source.helm.as_mut());
        helm.expect("a chart").parameters[0].value = tag.to_owned();
    }

    fn synced(&mut self) -> Vec<String> {
        let operations = std::mem::take(&mut self.operations);
        operations.into_iter().map(|(name, _)| name).collect()
    }
}

#[test]
fn a_step_waits_for_the_new_sources_of_the_one_before() {
    let Some(folder) = report("09-rolling-stale-status") else {
        return;
    };
    let mut played = Played::new(set(&folder, "appset.yaml"));
    played.tag("v1");
    played.play(20);
    assert_eq!(played.synced(), ["dev", "prod"]);
    assert_eq!(
        (played.status("dev"), played.status("prod")),
        ("Healthy", "Healthy")
    );

    // Both say Synced and Healthy, of v1.
    played.tag("v2");
    for _ in 0..20 {
        played.reconcile();
        if !played.is_current("dev") {
            assert_ne!(played.status("dev"), "Healthy");
            assert_eq!(played.status("prod"), "Waiting");
        }
        played.control(false);
        played.reconcile();
        played.control(true);
    }
    let operations = std::mem::take(&mut played.operations);
    let [(first, _), (second, before)] = operations.as_slice() else {
        panic!("{operations:?}");
    };
    assert_eq!((first.as_str(), second.as_str()), ("dev", "prod"));
    assert_eq!(*before, ["dev"]);
    assert!(played.is_current("dev") && played.is_current("prod"));
    assert_eq!(
        (played.status("dev"), played.status("prod")),
        ("Healthy", "Healthy")
    );
}

#[test]
fn a_member_that_was_changed_in_the_cluster_is_synced_once() {
    let Some(folder) = report("10-rolling-drift") else {
        return;
    };
    let mut played = Played::new(set(&folder, "appset.yaml"));
    played.play(20);
    played.synced();
    played.applied.insert("dev".to_owned(), None);
    played.control(true);
    played.play(12);
    assert_eq!(played.synced(), ["dev"]);
    assert_eq!(played.status("dev"), "Healthy");

    // One that stays out of sync is not synced for ever.
    played.operations_fail = true;
    played.applied.insert("dev".to_owned(), None);
    played.control(true);
    played.play(20);
    assert_eq!(played.synced(), ["dev"]);
    assert_eq!(
        (played.status("dev"), played.status("prod")),
        ("Progressing", "Healthy")
    );
}

/// A set of the Applications dev and prod, a step each.
fn two_steps() -> ApplicationSet {
    let step = |env: &str| {
        let expression = json!({"key": "env", "operator": "In", "values": [env]});
        json!({"matchExpressions": [expression]})
    };
    let set = json!({
        "metadata": {"name": "roll", "namespace": "argocd"},
        "spec": {
            "goTemplate": true,
            "generators": [{"list": {"elements": [{"env": "dev"}, {"env": "prod"}]}}],
            "strategy": {
                "type": "RollingSync",
                "rollingSync": {"steps": [step("dev"), step("prod")]},
            },
            "template": {
                "metadata": {"name": "{{.env}}", "labels": {"env": "{{.env}}"}},
                "spec": {
                    "project": "default",
                    "source": {"repoURL": "https://example.com/r", "path": "new"},
                    "destination": {
                        "server": "https://kubernetes.default.svc", "namespace": "{{.env}}",
                    },
                },
            },
        },
    });
    serde_json::from_value(set).expect("an ApplicationSet")
}

/// What was Healthy with other sources does not let the next step begin.
#[test]
fn a_step_waits_for_a_comparison_of_the_one_before() {
    let mut played = Played::new(two_steps());
    played.play(20);
    let names = ["dev", "prod"];
    assert_eq!(names.map(|name| played.status(name)), ["Healthy"; 2]);

    let dev = played.apps.get_mut("dev").expect("a name");
    let before = dev.status.clone();
    let sync = &mut dev.status.sync;
    let mut compared = sync.compared_to.clone().into_inner();
    compared.source.path = "old".to_owned();
    sync.compared_to = compared.into();
    let prod = played.apps.get_mut("prod").expect("a name");
    prod.status.sync.revision = "bbb".to_owned();
    prod.status.sync.status = "OutOfSync".to_owned();
    for _ in 0..3 {
        played.reconcile();
        let statuses = names.map(|name| played.status(name));
        assert_eq!(statuses, ["Healthy", "Waiting"]);
        assert_eq!(played.apps["prod"].operation, None);
    }

    played.apps.get_mut("dev").expect("a name").status = before;
    played.reconcile();
    assert_eq!(played.status("prod"), "Pending");
    played.reconcile();
    assert!(played.apps["prod"].operation.is_some());
}

/// Times have whole seconds: a sync may begin, and end, in the second in which its Application
/// became pending.
#[test]
fn what_is_done_within_a_second_is_synced_once() {
    let Some(folder) = report("09-rolling-stale-status") else {
        return;
    };
    for fast in [2, 5, 11, 40, 100] {
        let mut played = Played::new(set(&folder, "appset.yaml"));
        played.fast = Some(fast);
        played.play(400);
        let mut first = played.synced();
        first.sort();
        let names: Vec<String> = played.apps.keys().cloned().collect();
        assert_eq!(first, names, "{fast}");
        played.tag("new");
        played.play(400);
        let mut second = played.synced();
        second.sort();
        assert_eq!(second, names, "{fast}");
        for name in &names {
            assert_eq!(played.status(name), "Healthy", "{fast}: {name}");
        }
    }
}

/// A busy controller ends a sync seconds before it compares: until then nobody knows whose it was.
#[test]
fn a_sync_that_is_not_compared_yet_is_not_repeated() {
    let Some(folder) = report("09-rolling-stale-status") else {
        return;
    };
    for fast in [5, 40, 100] {
        let mut played = Played::new(set(&folder, "appset.yaml"));
        (played.fast, played.is_late) = (Some(fast), true);
        let names = ["dev", "prod"];
        for tag in ["old", "new"] {
            played.tag(tag);
            for round in 0..400 {
                played.reconcile();
                played.control(round % 7 == 6);
            }
            let mut synced = played.synced();
            synced.sort();
            assert_eq!(synced, names, "{fast}: {tag}");
        }
        assert_eq!(names.map(|name| played.status(name)), ["Healthy"; 2]);
    }
}

/// The first comparison of an Application that is being synced brings no news.
#[test]
fn what_is_compared_first_while_it_is_synced_is_synced_once() {
    let Some(folder) = report("09-rolling-stale-status") else {
        return;
    };
    let mut played = Played::new(set(&folder, "appset.yaml"));
    for _ in 0..4 {
        played.reconcile();
    }
    assert!(played.apps["dev"].operation.is_some());
    let source = played.apps["dev"].spec.source.clone();
    for (phase, revision, finished) in [
        // It begins: nobody knows yet what it syncs.
        ("Running", None, None),
        ("Running", Some("aaa"), None),
        ("Succeeded", Some("aaa"), Some("2030-01-01T00:00:09Z")),
    ] {
        let mut state = json!({
            "phase": phase, "startedAt": "2030-01-01T00:00:00Z", "operation": {},
        });
        if let Some(revision) = revision {
            state["syncResult"] = json!({"revision": revision, "source": source});
        }
        if let Some(finished) = finished {
            state["finishedAt"] = json!(finished);
        }
        let state: tiphys_api::operation::OperationState =
            serde_json::from_value(state).expect("a state");
        let app = played.apps.get_mut("dev").expect("a name");
        app.operation = app.operation.take().filter(|_| finished.is_none());
        let status = &mut *app.status;
        status.operation_state = Some(state.into());
        status.sync.status = "OutOfSync".to_owned();
        status.sync.revision = "aaa".to_owned();
        status.health.status = "Missing".to_owned();
        for _ in 0..3 {
            played.reconcile();
            assert_eq!(played.status("dev"), "Progressing", "{phase} {revision:?}");
        }
        let is_asked = played.apps["dev"].operation.is_some();
        assert_eq!(is_asked, finished.is_none(), "{phase} {revision:?}");
    }
    // Another revision is news.
    let app = played.apps.get_mut("dev").expect("a name");
    app.status.sync.revision = "bbb".to_owned();
    played.reconcile();
    assert_ne!(played.status("dev"), "Progressing");
}

/// Report 11: a sync that failed is not repeated by the set, and the next step waits.
#[test]
fn a_failed_sync_is_asked_for_once() {
    let Some(folder) = report("11-rolling-sync-failed") else {
        return;
    };
    let expected = read(&folder, "expected.yaml");
    let mut played = Played::new(set(&folder, "appset.yaml"));
    // After all that the files tell: 2026-01-10T10:05:00Z.
    played.seconds = 1_768_039_500;
    // The set makes its Applications, which then become as the files say.
    played.reconcile();
    let applications = read(&folder, "applications.yaml");
    for live in applications.as_array().expect("a list") {
        let name = live["name"].as_str().expect("a name");
        let app = played.apps.get_mut(name).expect("an Application");
        app.status = serde_json::from_value(live["status"].clone()).expect("a status");
    }
    let before = serde_json::from_value(read(&folder, "status.yaml"));
    played.set.status = before.expect("a status");

    let check = |played: &Played, round: &str, step: u32| {
        for name in ["dev", "prod"] {
            assert_eq!(expected[round][name], played.status(name), "{round} {name}");
        }
        let mut conditions = played.set.status.conditions.iter();
        let rollout = conditions.find(|c| c.type_ == "RolloutProgressing");
        let rollout = rollout.expect("it rolls out");
        let ends = rollout.message.ends_with(&format!("step {step}"));
        assert!(rollout.status == "True" && ends, "{round}: {rollout:?}");
    };
    played.reconcile();
    check(&played, "round1", 1);
    let statuses = &played.set.status.application_status;
    let dev = statuses.iter().find(|status| status.application == "dev");
    assert_eq!(
        dev.expect("it has one").message,
        "Application resource completed a sync, updating status from Pending to Progressing"
    );
    // Argo CD 3.6.0 asks once more in this round; here the sync that failed is known already.
    assert_eq!(played.apps["dev"].operation, None);

    for _ in 0..3 {
        let before = (played.set.status.clone(), played.apps.clone());
        played.reconcile();
        check(&played, "round2", 1);
        assert_eq!((&played.set.status, &played.apps), (&before.0, &before.1));
    }

    // Somebody syncs it by hand.
    let dev = played.apps.get_mut("dev").expect("an Application");
    dev.status.sync.status = "Synced".to_owned();
    played.reconcile();
    check(&played, "after_manual_sync", 2);
}

/// Under the policies that change no existing Application there is no change to wait for, and the
/// rollout cannot sync what was changed in the cluster.
#[test]
fn a_rollout_does_not_wait_for_what_the_policy_never_writes() {
    let mut played = Played::new(two_steps());
    played.play(20);
    let names = ["dev", "prod"];
    assert_eq!(names.map(|name| played.status(name)), ["Healthy"; 2]);
    let policy = json!({"applicationsSync": "create-only"});
    played.set.spec.sync_policy = serde_json::from_value(policy).expect("a policy");
    let source = played.set.spec.template.spec.source.as_mut();
    source.expect("a source").path = "newer".to_owned();
    let before = played.set.status.application_status.clone();
    for (sync, health) in [
        ("Synced", "Healthy"),
        ("Synced", "Degraded"),
        ("OutOfSync", "Healthy"),
    ] {
        let dev = played.apps.get_mut("dev").expect("a name");
        dev.status.sync.status = sync.to_owned();
        dev.status.health.status = health.to_owned();
        played.reconcile();
        played.reconcile();
        assert_eq!(
            played.set.status.application_status, before,
            "{sync} {health}"
        );
        assert_eq!(played.apps["dev"].operation, None);
    }

    // Where changes are written, this one is.
    played.set.spec.sync_policy = None;
    played.reconcile();
    assert_eq!(played.status("dev"), "Pending");
}

/// Nothing starts the sync of an Application that cannot be written, so that it is not pending,
/// and the next step waits.
#[test]
fn an_invalid_application_is_not_pending() {
    let mut played = Played::new(two_steps());
    played.play(20);
    let names = ["dev", "prod"];
    assert_eq!(names.map(|name| played.status(name)), ["Healthy"; 2]);
    let spec = &mut played.set.spec.template.spec;
    spec.project = "gone".to_owned();
    let source = spec.source.as_mut();
    source.expect("a source").path = "newer".to_owned();
    played.reconcile();
    let before = played.set.status.application_status.clone();
    for _ in 0..3 {
        assert_eq!(names.map(|name| played.status(name)), ["Waiting"; 2]);
        played.reconcile();
        assert_eq!(played.set.status.application_status, before);
    }

    played.synced();
    played.set.spec.template.spec.project = "default".to_owned();
    played.play(20);
    assert_eq!(played.synced(), ["dev", "prod"]);
    assert_eq!(names.map(|name| played.status(name)), ["Healthy"; 2]);
}
