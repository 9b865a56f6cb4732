//! Hours and days of the simulated cluster pass without waiting for them.

use crate::simulation::world::World;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tiphys_embedded_kube::{Data, Options};
use tiphys_testkit::namespaced;

const JOBS: &str = "/apis/batch/v1/namespaces/default/jobs";
const HOUR: u64 = 3600;

fn pass(world: &World, seconds: u64) {
    world.advance(Duration::from_secs(seconds));
}

fn pod(name: &str, behaviour: &str, spec: &Value) -> Value {
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "annotations": {"sim.tiphys.dev/behaviour": behaviour}},
        "spec": {"containers": [{"name": "c", "image": "registry.example/app:1"}]},
    });
    for (field, value) in spec.as_object().expect("a map") {
        pod["spec"][field] = value.clone();
    }
    pod
}

fn get_pod(world: &World, name: &str) -> Value {
    world
        .api
        .find(&format!("/api/v1/namespaces/default/pods/{name}"))
        .expect("it exists")
}

fn create_pod(world: &World, pod: &Value) {
    world.api.create("/api/v1/namespaces/default/pods", pod);
}

fn cron(schedule: &str, spec: &Value, command: &[&str]) -> Value {
    let pod = json!({"restartPolicy": "Never", "containers": [{"name": "c", "image": "registry.example/app:1", "command": command}]});
    let mut cron = json!({
        "apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "w"},
        "spec": {"schedule": schedule, "jobTemplate": {"spec": {"template": {"spec": pod}}}},
    });
    for (field, value) in spec.as_object().expect("a map") {
        cron["spec"][field] = value.clone();
    }
    cron
}

fn create_cron(world: &World, cron: &Value) {
    world
        .api
        .create(&namespaced("batch/v1", "default", "cronjobs"), cron);
}

fn get_cron(world: &World) -> Value {
    world
        .api
        .find("/apis/batch/v1/namespaces/default/cronjobs/w")
        .expect("it exists")
}

/// How often each reason was given of objects of a kind.
fn said(world: &World, kind: &str, reason: &str) -> i64 {
    let events = world.api.list("/api/v1/namespaces/default/events");
    let of = events
        .iter()
        .filter(|e| e["involvedObject"]["kind"] == kind && e["reason"] == reason);
    of.map(|e| e["count"].as_i64().unwrap_or(1)).sum()
}

#[test]
fn a_cron_job_runs_through_a_day() {
    let (world, began) = (World::start(), Instant::now());
    create_cron(&world, &cron("*/15 * * * *", &json!({}), &["true"]));
    pass(&world, 30);
    for hour in 1..=24 {
        pass(&world, HOUR);
        assert_eq!(
            world.api.list(JOBS).len(),
            3,
            "three are kept, after {hour} h"
        );
    }
    let status = &get_cron(&world)["status"];
    assert_eq!(status["lastScheduleTime"], "2026-03-05T10:00:00Z");
    assert!(
        (3..=5).contains(&said(&world, "CronJob", "SawCompletedJob")),
        "events live for an hour"
    );
    assert_eq!(world.api.list("/api/v1/namespaces/default/pods").len(), 3);
    eprintln!("a day in {:?}", began.elapsed());
}

#[test]
fn a_schedule_follows_its_time_zone_and_summer_time() {
    let world = World::starting_at("2026-03-27T00:00:00Z", Options::default());
    create_cron(
        &world,
        &cron(
            "30 9 * * *",
            &json!({"timeZone": "Europe/Berlin"}),
            &["true"],
        ),
    );
    let mut times = Vec::new();
    for _ in 0..4 {
        pass(&world, 24 * HOUR);
        times.push(
            get_cron(&world)["status"]["lastScheduleTime"]
                .as_str()
                .expect("it ran")
                .to_owned(),
        );
    }
    // The clocks are set forward on the 29th.
    assert_eq!(
        times,
        [
            "2026-03-27T08:30:00Z",
            "2026-03-28T08:30:00Z",
            "2026-03-29T07:30:00Z",
            "2026-03-30T07:30:00Z"
        ]
    );
}

#[test]
fn concurrency_policies_forbid_and_replace() {
    for (policy, running, reason) in [
        ("Allow", 5, ""),
        ("Forbid", 1, "JobAlreadyActive"),
        ("Replace", 1, "SuccessfulDelete"),
    ] {
        let world = World::start();
        create_cron(
            &world,
            &cron(
                "* * * * *",
                &json!({"concurrencyPolicy": policy}),
                &["sleep", "2h"],
            ),
        );
        pass(&world, 5 * 60 + 5);
        assert_eq!(world.api.list(JOBS).len(), running, "{policy}");
        assert_eq!(
            get_cron(&world)["status"]["active"]
                .as_array()
                .map(Vec::len),
            Some(running),
            "{policy}"
        );
        assert!(
            reason.is_empty() || said(&world, "CronJob", reason) > 0,
            "{policy}"
        );
    }
}

#[test]
fn a_rollout_that_hangs_exceeds_its_deadline_after_ten_minutes() {
    let world = World::start();
    let labels = json!({"app": "w"});
    let template = json!({
        "metadata": {"labels": labels, "annotations": {"sim.tiphys.dev/behaviour": "never-ready"}},
        "spec": {"containers": [{"name": "c", "image": "registry.example/app:1"}]},
    });
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "w"}, "spec": {"selector": {"matchLabels": labels}, "template": template}});
    world.api.create(
        &namespaced("apps/v1", "default", "deployments"),
        &deployment,
    );
    let reason = || {
        let found = world
            .api
            .find("/apis/apps/v1/namespaces/default/deployments/w")
            .expect("it exists");
        let conditions = found["status"]["conditions"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        conditions
            .iter()
            .find(|c| c["type"] == "Progressing")
            .map(|c| c["reason"].clone())
    };
    pass(&world, 590);
    assert_eq!(reason(), Some("ReplicaSetUpdated".into()));
    pass(&world, 20);
    assert_eq!(reason(), Some("ProgressDeadlineExceeded".into()));
}

#[test]
fn a_crashing_container_is_restarted_ever_more_rarely() {
    let world = World::start();
    create_pod(&world, &pod("p", "crash-loop", &json!({})));
    let restarts =
        || get_pod(&world, "p")["status"]["containerStatuses"][0]["restartCount"].as_i64();
    // Each run takes 0.7 s, then 10, 20, 40, 80, 160 and 300 s pass.
    let mut seen = Vec::new();
    for seconds in [5, 11, 21, 41, 81, 161, 301, 301] {
        pass(&world, seconds);
        seen.push(restarts().expect("a number"));
    }
    assert_eq!(seen, [0, 1, 2, 3, 4, 5, 6, 7]);
    pass(&world, HOUR);
    let status = get_pod(&world, "p")["status"]["containerStatuses"][0].clone();
    assert_eq!(
        (
            &status["lastState"]["terminated"]["reason"],
            &status["lastState"]["terminated"]["exitCode"]
        ),
        (&json!("Error"), &json!(1))
    );
    assert!(
        status["restartCount"]
            .as_i64()
            .is_some_and(|n| (17..=20).contains(&n)),
        "{status}"
    );
}

#[test]
fn annotations_end_containers_in_other_ways() {
    let world = World::start();
    for (name, behaviour, policy) in [
        ("oom", "oom", "Never"),
        ("code", "exit=42,fail-after=30s", "Never"),
        ("fine", "exit=0", "OnFailure"),
        ("pull", "image-pull-error", "Always"),
        ("flaky", "fail-after=20m", "Always"),
    ] {
        create_pod(
            &world,
            &pod(name, behaviour, &json!({"restartPolicy": policy})),
        );
    }
    pass(&world, 10);
    let phase = |name: &str| {
        get_pod(&world, name)["status"]["phase"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    let state =
        |name: &str| get_pod(&world, name)["status"]["containerStatuses"][0]["state"].clone();
    assert_eq!(
        (phase("oom").as_str(), &state("oom")["terminated"]["reason"]),
        ("Failed", &json!("OOMKilled"))
    );
    assert_eq!(
        (phase("code"), phase("fine"), phase("flaky")),
        ("Running".into(), "Succeeded".into(), "Running".into())
    );
    assert_eq!(
        (phase("pull").as_str(), &state("pull")["waiting"]["reason"]),
        ("Pending", &json!("ImagePullBackOff"))
    );
    pass(&world, 25);
    assert_eq!(
        (
            phase("code").as_str(),
            &state("code")["terminated"]["exitCode"]
        ),
        ("Failed", &json!(42))
    );
    // It had run for long each time: it is restarted soon.
    pass(&world, 21 * 60);
    assert_eq!(
        get_pod(&world, "flaky")["status"]["containerStatuses"][0]["restartCount"],
        1
    );
    pass(&world, 21 * 60);
    assert_eq!(
        get_pod(&world, "flaky")["status"]["containerStatuses"][0]["restartCount"],
        2
    );
}

#[test]
fn init_containers_take_their_time_one_after_another() {
    let world = World::start();
    let init = |name: &str, seconds: &str| json!({"name": name, "image": "registry.example/app:1", "command": ["sleep", seconds]});
    let side =
        json!({"name": "side", "image": "registry.example/app:1", "restartPolicy": "Always"});
    create_pod(
        &world,
        &pod(
            "p",
            "",
            &json!({"initContainers": [init("one", "5"), side, init("two", "7")]}),
        ),
    );
    let states = || -> Vec<String> {
        let status = get_pod(&world, "p")["status"].clone();
        let word = |s: &Value| {
            s["state"]
                .as_object()
                .and_then(|m| m.keys().next().cloned())
                .unwrap_or_default()
        };
        let of = |field: &str| {
            status[field]
                .as_array()
                .into_iter()
                .flatten()
                .map(word)
                .collect::<Vec<_>>()
        };
        [of("initContainerStatuses"), of("containerStatuses")].concat()
    };
    for (seconds, want) in [
        (1, ["running", "waiting", "waiting", "waiting"]),
        (5, ["terminated", "running", "running", "waiting"]),
        (7, ["terminated", "running", "terminated", "running"]),
    ] {
        pass(&world, seconds);
        assert_eq!(states(), want);
    }
}

#[test]
fn a_pod_goes_on_after_a_restart_of_the_server() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = || Options {
        data: Data::Dir(folder.path().to_owned()),
        ..Options::default()
    };
    let first = World::starting_at("2026-03-04T10:00:00Z", options());
    create_pod(
        &first,
        &pod(
            "p",
            "",
            &json!({"restartPolicy": "Never", "containers": [{"name": "c", "image": "registry.example/app:1", "command": ["sleep", "60"]}]}),
        ),
    );
    pass(&first, 30);
    drop(first);
    let second = World::starting_at("2026-03-04T10:00:40Z", options());
    pass(&second, 15);
    assert_eq!(get_pod(&second, "p")["status"]["phase"], "Running");
    pass(&second, 10);
    assert_eq!(
        get_pod(&second, "p")["status"]["phase"],
        "Succeeded",
        "a minute after its start, not after the server's"
    );
}

#[test]
fn pods_of_a_deleted_node_are_collected() {
    let world = World::start();
    create_pod(
        &world,
        &pod(
            "p",
            "",
            &json!({"nodeSelector": {"kubernetes.io/hostname": "node-2"}}),
        ),
    );
    pass(&world, 5);
    world.api.delete("/api/v1/nodes/node-2");
    pass(&world, 30);
    assert_eq!(
        get_pod(&world, "p")["status"]["phase"],
        "Running",
        "the node may come back"
    );
    pass(&world, 30);
    assert_eq!(world.api.find("/api/v1/namespaces/default/pods/p"), None);
}

#[test]
fn a_log_has_the_lines_that_are_asked_for() {
    let world = World::start();
    let command = json!(["sh", "-c", "echo one; sleep 20; echo two"]);
    create_pod(
        &world,
        &pod(
            "p",
            "",
            &json!({"restartPolicy": "Never", "containers": [{"name": "c", "image": "registry.example/app:1", "command": command}]}),
        ),
    );
    let log = |query: &str| {
        world
            .api
            .get(&format!("/api/v1/namespaces/default/pods/p/log{query}"))
            .expect("an answer")
    };
    pass(&world, 0);
    let refused = log("");
    assert_eq!(
        (refused.status, &refused.body["message"]),
        (
            400,
            &json!("container \"c\" in pod \"p\" is waiting to start: ContainerCreating")
        )
    );
    pass(&world, 15);
    assert_eq!(log("").body, json!("one\n"));
    assert_eq!(
        log("?timestamps=true&tailLines=1").body,
        json!("2026-03-04T10:00:00.000000000Z one\n")
    );
    assert_eq!(
        (log("?sinceSeconds=6").body, log("?sinceSeconds=60").body),
        (json!(""), json!("one\n"))
    );
    assert_eq!(log("?limitBytes=2").body, json!("on"));
    let refused = log("?previous=true");
    assert_eq!(
        (refused.status, &refused.body["message"]),
        (
            400,
            &json!("previous terminated container \"c\" in pod \"p\" not found")
        )
    );
    // What is followed ends with the container.
    std::thread::scope(|scope| {
        let followed = scope.spawn(|| log("?follow=true&tailLines=1"));
        std::thread::sleep(Duration::from_millis(300));
        pass(&world, 20);
        assert_eq!(followed.join().expect("no panic").body, json!("one\ntwo\n"));
    });
}

#[test]
fn an_owner_of_another_namespace_owns_nothing() {
    let world = World::start();
    world.api.namespace("other");
    let map = |name: &str, owners: Value| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "ownerReferences": owners}});
    let owner = world.api.create(
        "/api/v1/namespaces/other/configmaps",
        &map("owner", json!([])),
    );
    let uid = owner["metadata"]["uid"].as_str().expect("a uid");
    let owners = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid}]);
    world.api.create(
        "/api/v1/namespaces/default/configmaps",
        &map("child", owners),
    );
    pass(&world, 1);
    assert_eq!(
        world
            .api
            .find("/api/v1/namespaces/default/configmaps/child"),
        None
    );
    let events = world.api.list("/api/v1/namespaces/default/events");
    let want = format!(
        "ownerRef [v1/ConfigMap, namespace: default, name: owner, uid: {uid}] does not exist in namespace \"default\""
    );
    assert!(
        events
            .iter()
            .any(|e| e["reason"] == "OwnerRefInvalidNamespace" && e["message"] == want.as_str()),
        "{events:?}"
    );
}

#[test]
fn a_claim_without_a_class_gets_a_volume_of_its_own_and_may_grow() {
    let world = World::start();
    let claims = "/api/v1/namespaces/default/persistentvolumeclaims";
    let spec =
        json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
    world.api.create(claims, &json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "c"}, "spec": spec}));
    pass(&world, 1);
    let claim = || world.api.find(&format!("{claims}/c")).expect("it exists");
    assert_eq!(
        (
            &claim()["spec"]["storageClassName"],
            &claim()["status"]["phase"]
        ),
        (&json!("standard"), &json!("Bound"))
    );
    world.api.patch(
        &format!("{claims}/c"),
        &json!({"spec": {"resources": {"requests": {"storage": "3Gi"}}}}),
    );
    pass(&world, 1);
    assert_eq!(claim()["status"]["capacity"]["storage"], "3Gi");
    world.api.delete(&format!("{claims}/c"));
    pass(&world, 1);
    assert!(
        world.api.list("/api/v1/persistentvolumes").is_empty(),
        "its volume goes with it"
    );
}
