//! Which deletions of a set wait for a confirmation, and what is kept of what is deleted.

use serde_json::json;
use std::collections::BTreeSet;
use std::time::Duration;
use tiphys_api::constants::{DELETE_LIMIT, DELETED_APPLICATIONS, DELETION_APPROVED};
use tiphys_api::meta::Time;
use tiphys_api::{Application, ApplicationSet};
use tiphys_appset::reconcile::{Change, DeleteLimit, Done, Existing, Plan, Settings, plan};
use tiphys_appset::tombstone::{self, Tombstone};
use tiphys_engine::spec::in_cluster;

pub const NOW: i64 = 1_700_000_000;

pub fn set(annotations: serde_json::Value) -> ApplicationSet {
    let set = json!({
        "metadata": {"name": "set", "namespace": "argocd", "annotations": annotations},
        "spec": {"generators": [{"list": {"elements": []}}], "template": {
            "metadata": {"name": "x"},
            "spec": {"project": "default", "destination": {}},
        }},
    });
    serde_json::from_value(set).expect("a set")
}

pub fn app(name: &str, path: &str) -> Application {
    let app = json!({
        "metadata": {
            "name": name, "namespace": "argocd", "uid": format!("uid-{name}"),
            "labels": {"team": "a"}, "annotations": {"argocd.argoproj.io/refresh": "normal"},
            "finalizers": ["resources-finalizer.argocd.argoproj.io"],
            "ownerReferences": [{
                "apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "name": "set",
                "uid": "", "controller": true, "blockOwnerDeletion": true,
            }],
        },
        "spec": {
            "project": "default",
            "source": {"repoURL": "https://example.com/r", "path": path},
            "destination": {"server": "https://kubernetes.default.svc", "namespace": "default"},
        },
    });
    serde_json::from_value(app).expect("an Application")
}

/// `prefix0`, `prefix1`…; the path is the number.
pub fn apps(prefix: &str, count: usize) -> Vec<Application> {
    (0..count)
        .map(|n| app(&format!("{prefix}{n}"), &n.to_string()))
        .collect()
}

pub fn time(seconds: i64) -> Time {
    Time { seconds, nanos: 0 }
}

fn planned(
    set: &ApplicationSet,
    desired: &[Application],
    live: &[Application],
    settings: &Settings,
    seconds: i64,
) -> Plan {
    let projects = BTreeSet::from(["default".to_owned()]);
    let existing = Existing {
        applications: live,
        projects: &projects,
        clusters: &[in_cluster()],
        local_names: &[],
        broken_clusters: &[],
    };
    plan(set, Ok(desired), &existing, settings, time(seconds))
}

fn deletes(plan: &Plan) -> usize {
    plan.deletes.len()
}

/// The set after its plan was carried out and the status written.
fn after(set: &ApplicationSet, plan: &Plan, seconds: i64) -> ApplicationSet {
    let settings = Settings::default();
    let mut set = set.clone();
    set.status = plan.conclude(&set, &Done::Completely, &[], &settings, time(seconds));
    set
}

#[test]
fn what_is_held() {
    // Own limit, limit of the settings; live, wanted of them, new ones; deleted now.
    type Case<'a> = (
        &'a str,
        Option<&'a str>,
        &'a str,
        usize,
        usize,
        usize,
        usize,
    );
    let cases: [Case<'_>; 21] = [
        ("few are deleted", None, "", 10, 0, 0, 10),
        ("one more than the limit, and all", None, "", 11, 0, 0, 0),
        ("many, but half stays", None, "", 40, 20, 0, 20),
        ("many, and less than half stays", None, "", 40, 19, 0, 0),
        (
            "new ones replace nothing of the lost",
            None,
            "",
            40,
            0,
            40,
            0,
        ),
        ("nothing is deleted", None, "", 40, 40, 3, 0),
        ("own number", Some("30"), "", 40, 10, 0, 30),
        ("own number, one more", Some("30"), "", 40, 9, 0, 0),
        ("own share", Some("20%"), "", 40, 28, 0, 0),
        ("own share, few", Some("20%"), "", 40, 30, 0, 10),
        ("both", Some("3,10%"), "", 40, 36, 0, 4),
        ("both, one more", Some("3,10%"), "", 40, 35, 0, 0),
        ("none at all", Some("0,0%"), "", 40, 39, 0, 0),
        ("no limit", Some("0"), "", 40, 0, 0, 40),
        ("no limit either", Some("100%"), "", 40, 0, 0, 40),
        ("of the settings", None, "2,0%", 40, 38, 0, 2),
        ("of the settings, one more", None, "2,0%", 40, 37, 0, 0),
        ("own before the settings", Some("0"), "2", 40, 0, 0, 40),
        ("settings without limit", None, "0", 40, 0, 0, 40),
        (
            "not a limit: nothing is deleted",
            Some("many"),
            "",
            40,
            39,
            0,
            0,
        ),
        ("not a limit either", Some("120%"), "0", 40, 39, 0, 0),
    ];
    for (what, own, general, live, wanted, new, expected) in cases {
        let annotations = own.map_or(json!({}), |own| json!({DELETE_LIMIT: own}));
        let mut settings = Settings::default();
        if !general.is_empty() {
            settings.delete_limit = DeleteLimit::parse(general).expect("a limit");
        }
        let live = apps("app", live);
        let mut desired = live[..wanted].to_vec();
        for n in 0..new {
            desired.push(app(&format!("new{n}"), &format!("new{n}")));
        }
        let plan = planned(&set(annotations), &desired, &live, &settings, NOW);
        assert_eq!(deletes(&plan), expected, "{what}");
        let lost = live.len() - wanted;
        assert_eq!(plan.held.is_some(), expected < lost, "{what}");
        // What is not deleted is not changed, and the rest is written.
        assert_eq!(plan.writes.len(), new, "{what}");
    }
}

#[test]
fn what_is_already_being_deleted_does_not_count() {
    let mut live = apps("app", 30);
    for app in &mut live[..20] {
        app.metadata.deletion_timestamp = Some(time(NOW - 5));
    }
    // Ten of ten would go: that many are always deleted.
    let plan = planned(&set(json!({})), &[], &live, &Settings::default(), NOW);
    assert_eq!((deletes(&plan), plan.held.is_some()), (30, false));
    // Eleven of eleven wait; the others go on.
    live[19].metadata.deletion_timestamp = None;
    let plan = planned(&set(json!({})), &[], &live, &Settings::default(), NOW);
    assert_eq!((deletes(&plan), plan.held.is_some()), (19, true));
}

#[test]
fn policies_that_delete_nothing_hold_nothing() {
    let live = apps("app", 30);
    for policy in ["create-only", "create-update"] {
        let settings = Settings {
            policy: policy.to_owned(),
            ..Settings::default()
        };
        let plan = planned(&set(json!({})), &[], &live, &settings, NOW);
        assert_eq!((deletes(&plan), plan.held), (0, None), "{policy}");
        assert_eq!(plan.tombstones, None);
    }
}

#[test]
fn the_condition_says_what_waits_and_keeps_its_time() {
    let live = apps("app", 12);
    let settings = Settings::default();
    let first = planned(&set(json!({})), &live[..1], &live, &settings, NOW);
    let told = after(&set(json!({})), &first, NOW);
    let error = |set: &ApplicationSet| {
        let conditions = set.status.conditions.iter();
        conditions
            .filter(|c| c.type_ == "ErrorOccurred")
            .map(|c| (c.status.clone(), c.reason.clone(), c.message.clone()))
            .next()
    };
    let message = "Skipping deletion of Applications: the set would delete 11 of 12 (app1, app2, \
                   app3, app4, app5, app6, app7, app8, app9, app10 and 1 more, list f9c58f86); \
                   confirm it by argocd.argoproj.io/deletion-approved";
    let (status, reason, said) = error(&told).expect("a condition");
    assert_eq!(
        (status.as_str(), reason.as_str()),
        ("True", "DeletionsNotConfirmed")
    );
    assert_eq!(said, message);
    assert_eq!(told.status.health.status, "Degraded");
    // Later reconciles write the same status.
    let second = planned(&told, &live[..1], &live, &settings, NOW + 60);
    assert_eq!(after(&told, &second, NOW + 60).status, told.status);
    // What is lost comes back: all is well.
    let third = planned(&told, &live, &live, &settings, NOW + 120);
    let well = after(&told, &third, NOW + 120);
    assert_eq!(error(&well).expect("a condition").0, "False");
    assert_eq!(well.status.health.status, "Healthy");
}

#[test]
fn an_approval_counts_for_what_was_told_before_it() {
    let live = apps("app", 40);
    let settings = Settings::default();
    let told = |annotations| {
        let set = set(annotations);
        let plan = planned(&set, &live[..2], &live, &settings, NOW);
        after(&set, &plan, NOW)
    };
    let stamp = |seconds: i64| time(seconds).timestamp().to_string();
    // The approval; the Applications that are wanted then; how many are deleted.
    let cases: [(&str, String, Vec<Application>, usize); 8] = [
        ("afterwards", stamp(NOW + 1), live[..2].to_vec(), 38),
        ("in the same second", stamp(NOW), live[..2].to_vec(), 38),
        ("before", stamp(NOW - 1), live[..2].to_vec(), 0),
        ("not a time", "yes".to_owned(), live[..2].to_vec(), 0),
        ("of fewer", stamp(NOW + 1), live[..1].to_vec(), 0),
        ("of more", stamp(NOW + 1), live[..3].to_vec(), 0),
        ("of as many others", stamp(NOW + 1), live[38..].to_vec(), 0),
        (
            "of others that are not named",
            stamp(NOW + 1),
            [&live[..1], &live[39..]].concat(),
            0,
        ),
    ];
    for (what, approval, wanted, expected) in cases {
        let set = {
            let mut set = told(json!({}));
            let annotations = &mut set.metadata.annotations;
            annotations.insert(DELETION_APPROVED.to_owned(), approval);
            set
        };
        let plan = planned(&set, &wanted, &live, &settings, NOW + 60);
        assert_eq!(deletes(&plan), expected, "{what}");
        assert_eq!(plan.held.is_none(), expected > 0, "{what}");
    }
    // Without a condition that told it, an approval approves nothing.
    let early = set(json!({DELETION_APPROVED: stamp(NOW)}));
    assert_eq!(deletes(&planned(&early, &[], &live, &settings, NOW)), 0);
    // Nor does it make a wrong limit right.
    let wrong = told(json!({DELETE_LIMIT: "many", DELETION_APPROVED: stamp(NOW + 1)}));
    assert_eq!(
        deletes(&planned(&wrong, &live[..2], &live, &settings, NOW + 60)),
        0
    );
}

#[test]
fn what_takes_the_place_of_held_ones_waits_with_them() {
    let live = apps("old", 20);
    let mut desired = apps("new", 20);
    desired.push(app("other", "elsewhere"));
    let plan = planned(&set(json!({})), &desired, &live, &Settings::default(), NOW);
    let held = plan.held.expect("they wait");
    assert_eq!((held.names.len(), held.replacements.len()), (20, 20));
    assert!(
        held.message
            .contains(" and create 20 in their place (new0, "),
        "{}",
        held.message
    );
    let writes: Vec<&str> = plan.writes.iter().map(Change::name).collect();
    assert_eq!(writes, ["other"]);
}

#[test]
fn an_invalid_application_and_held_deletions_are_both_told() {
    let live = apps("app", 20);
    let mut bad = app("bad", "bad");
    bad.spec.project = "nowhere".to_owned();
    let settings = Settings::default();
    let first = planned(&set(json!({})), &[bad.clone()], &live, &settings, NOW);
    let mut told = after(&set(json!({})), &first, NOW);
    let conditions = &told.status.conditions;
    let message = &conditions
        .iter()
        .find(|c| c.type_ == "ErrorOccurred")
        .expect("it")
        .message;
    assert!(
        message.starts_with("application references project nowhere"),
        "{message}"
    );
    assert!(
        message.contains("; Skipping deletion of Applications"),
        "{message}"
    );
    let approval = time(NOW + 1).timestamp().to_string();
    told.metadata
        .annotations
        .insert(DELETION_APPROVED.to_owned(), approval);
    let second = planned(&told, &[bad], &live, &settings, NOW + 60);
    assert_eq!((deletes(&second), second.held), (20, None));
}

/// The set with the annotation that a plan writes.
fn kept(set: &ApplicationSet, plan: &Plan) -> ApplicationSet {
    let mut set = set.clone();
    if let Some(written) = &plan.tombstones {
        set.metadata.annotations.remove(DELETED_APPLICATIONS);
        let value = written.value.clone();
        let values = value.map(|value| (DELETED_APPLICATIONS.to_owned(), value));
        set.metadata.annotations.extend(values);
    }
    set
}

fn names(stones: &[Tombstone]) -> Vec<&str> {
    stones.iter().map(Tombstone::name).collect()
}

#[test]
fn deleted_applications_are_kept_for_a_time() {
    let live = apps("app", 4);
    let settings = Settings {
        keep_deleted: Duration::from_secs(3600),
        ..Settings::default()
    };
    let first = planned(&set(json!({})), &live[..2], &live, &settings, NOW);
    let one = kept(&set(json!({})), &first);
    let stones = tombstone::read(&one).expect("readable");
    assert_eq!(names(&stones), ["app2", "app3"]);
    let restored = stones[0].restored();
    assert_eq!(restored.spec, live[2].spec);
    assert_eq!(restored.metadata.labels, live[2].metadata.labels);
    assert_eq!(restored.metadata.finalizers, live[2].metadata.finalizers);
    assert!(
        restored.metadata.annotations.is_empty(),
        "a refresh is not repeated"
    );
    assert!(
        restored.metadata.owner_references.is_empty(),
        "no set deletes it again"
    );
    assert!(restored.metadata.uid.is_empty());
    // While they go, nothing is written again.
    let again = planned(&one, &live[..2], &live, &settings, NOW + 10);
    assert_eq!((deletes(&again), again.tombstones), (2, None));
    // A later deletion comes first.
    let second = planned(&one, &live[..1], &live[..2], &settings, NOW + 3000);
    let two = kept(&one, &second);
    assert_eq!(
        names(&tombstone::read(&two).expect("readable")),
        ["app1", "app2", "app3"]
    );
    // What is too old goes, and at last the annotation.
    let third = planned(&two, &live[..1], &live[..1], &settings, NOW + 3600);
    let three = kept(&two, &third);
    assert_eq!(names(&tombstone::read(&three).expect("readable")), ["app1"]);
    let fourth = planned(&three, &live[..1], &live[..1], &settings, NOW + 6600);
    assert_eq!(
        fourth.tombstones.as_ref().map(|written| &written.value),
        Some(&None)
    );
    assert!(
        !kept(&three, &fourth)
            .metadata
            .annotations
            .contains_key(DELETED_APPLICATIONS)
    );
    // With no grace time nothing is kept.
    let never = Settings {
        keep_deleted: Duration::ZERO,
        ..Settings::default()
    };
    let plan = planned(&set(json!({})), &live[..2], &live, &never, NOW);
    assert_eq!((deletes(&plan), plan.tombstones), (2, None));
}

#[test]
fn a_broken_annotation_is_an_error_for_readers_and_is_written_anew() {
    for text in ["", "x", "aGVsbG8=", "H4sIAAAAAAAAA6uuBQBDv6ajAgAAAA=="] {
        let set = set(json!({DELETED_APPLICATIONS: text}));
        assert!(tombstone::read(&set).is_err(), "{text:?}");
        let live = apps("app", 2);
        let plan = planned(&set, &live[..1], &live, &Settings::default(), NOW);
        let stones = tombstone::read(&kept(&set, &plan)).expect("readable");
        assert_eq!(names(&stones), ["app1"], "{text:?}");
    }
}

#[test]
fn what_is_kept_has_limits() {
    let no_limit = set(json!({DELETE_LIMIT: "0"}));
    let settings = Settings::default();
    let live = apps("app", 3000);
    let plan = planned(&no_limit, &[], &live, &settings, NOW);
    let written = plan.tombstones.as_ref().expect("they are kept");
    assert_eq!(written.missing, 0, "what is alike needs little room");
    // Values that cannot be compressed: the newest ones are kept.
    let mut live = apps("app", 300);
    let mut seed = 1_u64;
    for app in &mut live {
        let mut noise = String::new();
        while noise.len() < 2000 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            noise += &format!("{seed:x}");
        }
        app.metadata.annotations.insert("noise".to_owned(), noise);
    }
    let plan = planned(&no_limit, &[], &live, &settings, NOW);
    let written = plan.tombstones.clone().expect("they are kept");
    let bytes = written.value.as_ref().map_or(0, String::len);
    assert!((1..=128 << 10).contains(&bytes), "{bytes} bytes");
    let stones = tombstone::read(&kept(&no_limit, &plan)).expect("readable");
    assert_eq!(stones.len() + written.missing, 300);
    assert!(stones.len() > 50, "{}", stones.len());
}

#[test]
fn limits_are_a_number_a_share_or_both() {
    let limit = |count, percent| DeleteLimit { count, percent };
    let cases = [
        ("10", Ok(limit(10, 50))),
        ("25", Ok(limit(25, 50))),
        ("0", Ok(limit(0, 100))),
        ("30%", Ok(limit(10, 30))),
        ("5, 30%", Ok(limit(5, 30))),
        (" 5,0% ", Ok(limit(5, 0))),
    ];
    for (text, expected) in cases {
        assert_eq!(DeleteLimit::parse(text), expected, "{text}");
    }
    for text in [
        "", "-1", "x", "%", "101%", "5,", ",5%", "5,6", "5%,6%", "1.5", "5,6%,7%",
    ] {
        let error = DeleteLimit::parse(text).expect_err(text).to_string();
        assert!(
            error.starts_with(&format!("{text:?} is no limit")),
            "{error}"
        );
    }
}
