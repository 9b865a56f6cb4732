//! ReplicaSets, Deployments, StatefulSets and DaemonSets.

use super::super::{
    fields::{set_spec, spec_i64},
    kind::Kind,
};
use super::{Cluster, counts, template, workload};
use serde_json::{Value, json};

fn set_image(cluster: &mut Cluster, kind: Kind, image: &str) {
    cluster.edit(kind, "web", |d| set_spec(d, "template", template(image)));
}

fn images(cluster: &Cluster) -> Vec<String> {
    cluster
        .all(Kind::Pod)
        .iter()
        .map(|p| p.str_at("/spec/containers/0/image").to_owned())
        .collect()
}

#[test]
fn a_deployment_becomes_available() {
    let mut cluster = Cluster::new();
    cluster.apply(workload("Deployment", 3, json!({})));
    cluster.pass(0.1);
    assert_eq!(
        cluster.condition(Kind::Deployment, "web", "Progressing"),
        ("True".into(), "ReplicaSetUpdated".into())
    );
    assert_eq!(
        cluster.condition(Kind::Deployment, "web", "Available"),
        ("False".into(), "MinimumReplicasUnavailable".into())
    );
    cluster.pass(1.0);
    let deployment = cluster.get(Kind::Deployment, "web");
    let names = [
        "observedGeneration",
        "replicas",
        "updatedReplicas",
        "readyReplicas",
        "availableReplicas",
        "unavailableReplicas",
    ];
    assert_eq!(counts(&deployment, &names), [1, 3, 3, 3, 3, 0]);
    assert_eq!(
        cluster.condition(Kind::Deployment, "web", "Available"),
        ("True".into(), "MinimumReplicasAvailable".into())
    );
    assert_eq!(
        cluster.condition(Kind::Deployment, "web", "Progressing"),
        ("True".into(), "NewReplicaSetAvailable".into())
    );
    assert_eq!(
        deployment.annotation("deployment.kubernetes.io/revision"),
        Some("1")
    );
    let sets = cluster.all(Kind::ReplicaSet);
    assert_eq!(sets.len(), 1);
    let hash = sets[0].label("pod-template-hash").expect("it has one");
    assert_eq!(sets[0].name(), format!("web-{hash}"));
    let progress = super::fields::condition(&deployment, "Progressing").expect("it was checked");
    assert_eq!(
        progress["message"],
        format!("ReplicaSet \"web-{hash}\" has successfully progressed.")
    );
    assert!(
        cluster
            .all(Kind::Pod)
            .iter()
            .all(|p| p.label("pod-template-hash") == Some(hash)
                && p.name().starts_with(&format!("web-{hash}-")))
    );
    assert_eq!(cluster.events("web"), ["ScalingReplicaSet"]);
    assert_eq!(cluster.engine.next_wake(), None);
    let writes = cluster.store.writes();
    cluster.pass(3600.0);
    assert_eq!(cluster.store.writes(), writes);
}

#[test]
fn a_rollout_keeps_to_its_limits() {
    let mut cluster = Cluster::new();
    cluster.apply(workload(
        "Deployment",
        4,
        json!({"strategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}}}),
    ));
    cluster.pass(2.0);
    set_image(&mut cluster, Kind::Deployment, "nginx:2");
    for _ in 0..60 {
        cluster.pass(0.1);
        let pods = cluster.all(Kind::Pod);
        let live = pods
            .iter()
            .filter(|p| p.deletion_timestamp().is_none())
            .count();
        let ready = pods
            .iter()
            .filter(|p| {
                super::super::workload::pods::is_ready(p) && p.deletion_timestamp().is_none()
            })
            .count();
        assert!(live <= 5 && ready >= 3, "{live} pods, {ready} ready");
    }
    assert_eq!(images(&cluster), ["nginx:2"; 4]);
    let deployment = cluster.get(Kind::Deployment, "web");
    assert_eq!(
        counts(
            &deployment,
            &[
                "observedGeneration",
                "replicas",
                "updatedReplicas",
                "availableReplicas"
            ]
        ),
        [2, 4, 4, 4]
    );
    assert_eq!(
        cluster.condition(Kind::Deployment, "web", "Progressing"),
        ("True".into(), "NewReplicaSetAvailable".into())
    );
    assert_eq!(
        deployment.annotation("deployment.kubernetes.io/revision"),
        Some("2")
    );
    // Back to the first template: the first ReplicaSet is reused, with a new revision number. A
    // typed client also writes empty fields; that must not create a new revision.
    cluster.edit(Kind::Deployment, "web", |d| {
        let mut value = template("nginx:1");
        value["metadata"]["creationTimestamp"] = Value::Null;
        value["spec"]["containers"][0]["resources"] = json!({});
        set_spec(d, "template", value);
    });
    cluster.pass(6.0);
    assert_eq!(images(&cluster), ["nginx:1"; 4]);
    assert_eq!(cluster.all(Kind::ReplicaSet).len(), 2);
    assert_eq!(
        cluster
            .get(Kind::Deployment, "web")
            .annotation("deployment.kubernetes.io/revision"),
        Some("3")
    );
}

#[test]
fn a_stuck_rollout_exceeds_its_deadline_and_recovers() {
    let mut cluster = Cluster::new();
    cluster.apply(workload(
        "Deployment",
        2,
        json!({"progressDeadlineSeconds": 30}),
    ));
    cluster.pass(2.0);
    set_image(&mut cluster, Kind::Deployment, "bad!image");
    cluster.pass(25.0);
    assert_eq!(
        cluster.condition(Kind::Deployment, "web", "Progressing"),
        ("True".into(), "ReplicaSetUpdated".into())
    );
    cluster.pass(10.0);
    assert_eq!(
        cluster.condition(Kind::Deployment, "web", "Progressing"),
        ("False".into(), "ProgressDeadlineExceeded".into())
    );
    assert_eq!(
        cluster.condition(Kind::Deployment, "web", "Available").0,
        "True",
        "the old pods still serve"
    );
    set_image(&mut cluster, Kind::Deployment, "nginx:3");
    cluster.pass(5.0);
    assert_eq!(images(&cluster), ["nginx:3"; 2]);
    assert_eq!(
        cluster.condition(Kind::Deployment, "web", "Progressing"),
        ("True".into(), "NewReplicaSetAvailable".into())
    );
}

#[test]
fn a_deployment_scales_pauses_and_recreates() {
    let mut cluster = Cluster::new();
    cluster.apply(workload("Deployment", 1, json!({})));
    cluster.pass(2.0);
    cluster.edit(Kind::Deployment, "web", |d| {
        set_spec(d, "replicas", 3.into())
    });
    cluster.pass(2.0);
    assert_eq!(
        counts(
            &cluster.get(Kind::Deployment, "web"),
            &["replicas", "availableReplicas"]
        ),
        [3, 3]
    );
    assert_eq!(
        cluster.events("web"),
        ["ScalingReplicaSet", "ScalingReplicaSet"]
    );
    cluster.edit(Kind::Deployment, "web", |d| {
        set_spec(d, "paused", true.into())
    });
    set_image(&mut cluster, Kind::Deployment, "nginx:2");
    cluster.pass(5.0);
    assert_eq!(
        cluster.condition(Kind::Deployment, "web", "Progressing"),
        ("Unknown".into(), "DeploymentPaused".into())
    );
    assert_eq!(images(&cluster), ["nginx:1"; 3]);
    cluster.edit(Kind::Deployment, "web", |d| {
        set_spec(d, "strategy", json!({"type": "Recreate"}))
    });
    cluster.edit(Kind::Deployment, "web", |d| {
        set_spec(d, "paused", false.into())
    });
    for _ in 0..40 {
        cluster.pass(0.1);
        let mut kinds = images(&cluster);
        kinds.dedup();
        assert!(kinds.len() <= 1, "Recreate never mixes: {kinds:?}");
    }
    assert_eq!(images(&cluster), ["nginx:2"; 3]);
    assert_eq!(
        cluster.condition(Kind::Deployment, "web", "Progressing"),
        ("True".into(), "NewReplicaSetAvailable".into())
    );
}

#[test]
fn a_refused_pod_is_told_and_tried_again() {
    let mut cluster = Cluster::new();
    cluster
        .store
        .refuse_pods(Some("pods \"x\" is forbidden: exceeded quota"));
    cluster.apply(workload("Deployment", 2, json!({})));
    cluster.pass(5.0);
    assert_eq!(
        cluster.condition(Kind::Deployment, "web", "ReplicaFailure"),
        ("True".into(), "FailedCreate".into())
    );
    let set = cluster.all(Kind::ReplicaSet)[0].name().to_owned();
    assert!(
        cluster.events(&set).len() <= 2,
        "the same refusal is counted, not repeated"
    );
    cluster.store.refuse_pods(None);
    cluster.pass(60.0);
    assert_eq!(
        counts(
            &cluster.get(Kind::Deployment, "web"),
            &["availableReplicas"]
        ),
        [2]
    );
    assert_eq!(
        cluster
            .condition(Kind::Deployment, "web", "ReplicaFailure")
            .0,
        ""
    );
}

#[test]
fn old_replica_sets_are_forgotten() {
    let mut cluster = Cluster::new();
    cluster.apply(workload(
        "Deployment",
        1,
        json!({"revisionHistoryLimit": 2}),
    ));
    for version in 2..7 {
        cluster.pass(5.0);
        set_image(&mut cluster, Kind::Deployment, &format!("nginx:{version}"));
    }
    cluster.pass(5.0);
    assert_eq!(cluster.all(Kind::ReplicaSet).len(), 3);
    cluster.delete(Kind::Deployment, "web");
    cluster.pass(5.0);
    assert!(cluster.all(Kind::Pod).is_empty() && cluster.all(Kind::ReplicaSet).is_empty());
}

#[test]
fn a_stateful_set_works_in_order() {
    let mut cluster = Cluster::new();
    let claim = json!({"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
    cluster.apply(workload(
        "StatefulSet",
        3,
        json!({"serviceName": "web", "volumeClaimTemplates": [claim]}),
    ));
    cluster.pass(0.5);
    let names = |cluster: &Cluster| {
        cluster
            .all(Kind::Pod)
            .iter()
            .map(|p| p.name().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        names(&cluster),
        ["web-0", "web-1"],
        "the second is made when the first is ready"
    );
    cluster.pass(3.0);
    assert_eq!(names(&cluster), ["web-0", "web-1", "web-2"]);
    let set = cluster.get(Kind::StatefulSet, "web");
    assert_eq!(
        counts(
            &set,
            &[
                "observedGeneration",
                "replicas",
                "readyReplicas",
                "currentReplicas",
                "updatedReplicas"
            ]
        ),
        [1, 3, 3, 3, 3]
    );
    assert_eq!(
        set.str_at("/status/currentRevision"),
        set.str_at("/status/updateRevision")
    );
    let pod = cluster.get(Kind::Pod, "web-2");
    assert_eq!(
        (
            pod.str_at("/spec/hostname"),
            pod.str_at("/spec/volumes/0/persistentVolumeClaim/claimName")
        ),
        ("web-2", "data-web-2")
    );
    assert_eq!(
        cluster
            .get(Kind::PersistentVolumeClaim, "data-web-2")
            .str_at("/status/phase"),
        "Bound"
    );

    set_image(&mut cluster, Kind::StatefulSet, "nginx:2");
    cluster.pass(0.1);
    assert!(
        cluster
            .get(Kind::Pod, "web-2")
            .deletion_timestamp()
            .is_some(),
        "the last is replaced first"
    );
    assert!(
        cluster
            .get(Kind::Pod, "web-0")
            .deletion_timestamp()
            .is_none()
    );
    assert_ne!(
        cluster
            .get(Kind::StatefulSet, "web")
            .str_at("/status/currentRevision"),
        cluster
            .get(Kind::StatefulSet, "web")
            .str_at("/status/updateRevision")
    );
    cluster.pass(5.0);
    assert_eq!(images(&cluster), ["nginx:2"; 3]);
    let set = cluster.get(Kind::StatefulSet, "web");
    assert_eq!(
        set.str_at("/status/currentRevision"),
        set.str_at("/status/updateRevision")
    );
    assert_eq!(
        counts(&set, &["currentReplicas", "updatedReplicas"]),
        [3, 3]
    );

    cluster.edit(Kind::StatefulSet, "web", |s| {
        set_spec(s, "replicas", 1.into())
    });
    cluster.pass(3.0);
    assert_eq!(names(&cluster), ["web-0"]);
    assert!(
        cluster
            .find(Kind::PersistentVolumeClaim, "data-web-2")
            .is_some(),
        "claims stay"
    );
}

#[test]
fn a_partition_keeps_the_first_pods_as_they_are() {
    let mut cluster = Cluster::new();
    let partition = json!({"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}, "podManagementPolicy": "Parallel"});
    cluster.apply(workload("StatefulSet", 3, partition));
    cluster.pass(0.1);
    assert_eq!(cluster.all(Kind::Pod).len(), 3, "in parallel");
    cluster.pass(2.0);
    set_image(&mut cluster, Kind::StatefulSet, "nginx:2");
    cluster.pass(3.0);
    assert_eq!(images(&cluster), ["nginx:1", "nginx:1", "nginx:2"]);
    cluster.delete(Kind::Pod, "web-0");
    cluster.pass(3.0);
    assert_eq!(
        images(&cluster),
        ["nginx:1", "nginx:1", "nginx:2"],
        "below the partition a pod comes back as it was"
    );
}

#[test]
fn a_daemon_set_has_a_pod_on_each_node() {
    let mut cluster = Cluster::new();
    cluster.apply(workload("DaemonSet", 0, json!({})));
    cluster.pass(2.0);
    let on = |cluster: &Cluster| {
        cluster
            .all(Kind::Pod)
            .iter()
            .map(|p| p.str_at("/spec/nodeName").to_owned())
            .collect::<std::collections::BTreeSet<_>>()
    };
    assert_eq!(
        on(&cluster).into_iter().collect::<Vec<_>>(),
        ["node-1", "node-2"]
    );
    let names = [
        "observedGeneration",
        "desiredNumberScheduled",
        "currentNumberScheduled",
        "numberReady",
        "updatedNumberScheduled",
        "numberAvailable",
        "numberUnavailable",
    ];
    assert_eq!(
        counts(&cluster.get(Kind::DaemonSet, "web"), &names),
        [1, 2, 2, 2, 2, 2, 0]
    );
    set_image(&mut cluster, Kind::DaemonSet, "nginx:2");
    cluster.pass(0.1);
    let stopping = cluster
        .all(Kind::Pod)
        .iter()
        .filter(|p| p.deletion_timestamp().is_some())
        .count();
    assert_eq!(stopping, 1, "one at a time");
    cluster.pass(5.0);
    assert_eq!(images(&cluster), ["nginx:2"; 2]);
    assert_eq!(
        counts(
            &cluster.get(Kind::DaemonSet, "web"),
            &["updatedNumberScheduled", "numberAvailable"]
        ),
        [2, 2]
    );
    cluster.edit(Kind::DaemonSet, "web", |d| {
        let mut value = template("nginx:2");
        value["spec"]["nodeSelector"] = json!({"kubernetes.io/hostname": "node-2"});
        set_spec(d, "template", value);
    });
    cluster.pass(5.0);
    assert_eq!(on(&cluster).into_iter().collect::<Vec<_>>(), ["node-2"]);
    assert_eq!(
        spec_i64(&cluster.get(Kind::DaemonSet, "web"), "replicas", 0),
        0
    );
    assert_eq!(cluster.all(Kind::ControllerRevision).len(), 3);
    assert!(
        cluster
            .all(Kind::ControllerRevision)
            .iter()
            .all(|r| r.pointer("/data/spec/template/$patch") == Some(&Value::from("replace")))
    );
}
