//! Pods and Jobs.

use super::super::{
    kind::Kind,
    pod::{BEHAVIOUR, ENDED, SAID},
};
use super::{Cluster, counts};
use serde_json::{Value, json};

fn pod(policy: &str, command: &[&str], image: &str) -> Value {
    let container = json!({"name": "c", "image": image, "command": command});
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"restartPolicy": policy, "containers": [container]}})
}

fn job(command: &[&str], more: Value) -> Value {
    let mut spec = json!({"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i", "command": command}]}}});
    if let (Value::Object(spec), Value::Object(more)) = (&mut spec, more) {
        spec.extend(more);
    }
    json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": spec})
}

#[test]
fn a_server_starts_and_stays() {
    let mut cluster = Cluster::new();
    cluster.apply(pod("Always", &[], "nginx"));
    cluster.pass(0.2);
    assert_eq!(
        cluster.get(Kind::Pod, "p").str_at("/spec/nodeName"),
        "node-1"
    );
    assert_ne!(
        cluster.get(Kind::Pod, "p").str_at("/status/phase"),
        "Running"
    );
    cluster.pass(3600.0);
    let pod = cluster.get(Kind::Pod, "p");
    assert_eq!(pod.str_at("/status/phase"), "Running");
    assert_eq!(
        (pod.str_at("/status/podIP"), pod.str_at("/status/hostIP")),
        ("10.1.0.1", "10.0.0.11")
    );
    assert_eq!(
        pod.str_at("/status/containerStatuses/0/state/running/startedAt"),
        "2026-03-01T10:00:00Z"
    );
    assert_eq!(cluster.condition(Kind::Pod, "p", "Ready").0, "True");
    assert_eq!(
        cluster.events("p"),
        ["Scheduled", "Pulled", "Created", "Started"]
    );
    cluster.delete(Kind::Pod, "p");
    cluster.pass(0.2);
    assert!(cluster.get(Kind::Pod, "p").deletion_timestamp().is_some());
    cluster.pass(0.2);
    assert!(cluster.find(Kind::Pod, "p").is_none());
    assert_eq!(
        cluster.events("p").last().map(String::as_str),
        Some("Killing")
    );
}

#[test]
fn commands_end_as_they_say() {
    for (command, after, phase, code) in [
        (&["true"][..], 1.1, "Succeeded", 0),
        (&["sh", "-c", "sleep 5"], 5.4, "Succeeded", 0),
        (&["sh", "-c", "exit 3"], 1.1, "Failed", 1),
    ] {
        let mut cluster = Cluster::new();
        cluster.apply(pod("Never", command, "busybox:1"));
        cluster.pass(after - 0.2);
        assert_eq!(
            cluster.get(Kind::Pod, "p").str_at("/status/phase"),
            "Running",
            "{command:?}"
        );
        cluster.pass(0.2);
        let pod = cluster.get(Kind::Pod, "p");
        assert_eq!(pod.str_at("/status/phase"), phase, "{command:?}");
        assert_eq!(
            pod.i64_at("/status/containerStatuses/0/state/terminated/exitCode"),
            Some(code)
        );
        assert_eq!(cluster.condition(Kind::Pod, "p", "Ready").0, "False");
    }
}

#[test]
fn a_program_that_runs_elsewhere_ends_when_it_is_said() {
    let mut cluster = Cluster::new();
    cluster.apply(pod("OnFailure", &["/bin/elsewhere", "exit 1"], "i"));
    let state = |cluster: &Cluster| {
        let pod = cluster.get(Kind::Pod, "p");
        let restarts = pod.i64_at("/status/containerStatuses/0/restartCount");
        (pod.str_at("/status/phase").to_owned(), restarts)
    };
    let end = |cluster: &mut Cluster, how: &str| {
        cluster.edit(Kind::Pod, "p", |pod| pod.set_annotation(ENDED, how));
        cluster.pass(0.0);
    };
    cluster.pass(3600.0);
    assert_eq!(state(&cluster), ("Running".to_owned(), Some(0)));
    end(&mut cluster, "0:1");
    let waiting = "/status/containerStatuses/0/state/waiting/reason";
    let reason = cluster.get(Kind::Pod, "p").str_at(waiting).to_owned();
    assert_eq!(reason, "CrashLoopBackOff");
    // What is known is of the first run.
    cluster.pass(3600.0);
    assert_eq!(state(&cluster), ("Running".to_owned(), Some(1)));
    end(&mut cluster, "1:0");
    assert_eq!(state(&cluster).0, "Succeeded");

    let mut failing = Cluster::new();
    failing.apply(pod("Never", &["/bin/elsewhere"], "i"));
    failing.pass(3600.0);
    failing.edit(Kind::Pod, "p", |pod| {
        pod.set_annotation(SAID, "no such host")
    });
    end(&mut failing, "0:1");
    let said = "/status/containerStatuses/0/state/terminated/message";
    assert_eq!(failing.get(Kind::Pod, "p").str_at(said), "no such host");
}

#[test]
fn a_bad_image_waits() {
    let mut cluster = Cluster::new();
    cluster.apply(pod("Always", &[], "not!valid"));
    cluster.pass(60.0);
    let pod = cluster.get(Kind::Pod, "p");
    assert_eq!(pod.str_at("/status/phase"), "Pending");
    assert_eq!(
        pod.str_at("/status/containerStatuses/0/state/waiting/reason"),
        "InvalidImageName"
    );
    assert_eq!(cluster.engine.next_wake(), None);
}

#[test]
fn the_annotation_makes_pods_slow_crashing_or_never_ready() {
    let with = |text: &str| {
        let mut value = pod("Always", &[], "nginx");
        value["metadata"]["annotations"] = json!({ BEHAVIOUR: text });
        value
    };
    let mut cluster = Cluster::new();
    cluster.apply(with("slow=10s"));
    cluster.pass(9.0);
    assert_ne!(
        cluster.get(Kind::Pod, "p").str_at("/status/phase"),
        "Running"
    );
    cluster.pass(2.0);
    assert_eq!(cluster.condition(Kind::Pod, "p", "Ready").0, "True");

    let mut cluster = Cluster::new();
    cluster.apply(with("never-ready"));
    cluster.pass(60.0);
    assert_eq!(
        cluster.condition(Kind::Pod, "p", "Ready"),
        ("False".into(), "ContainersNotReady".into())
    );

    let mut cluster = Cluster::new();
    cluster.apply(with("crash-loop"));
    cluster.pass(2.0);
    let status = "/status/containerStatuses/0";
    let pod = cluster.get(Kind::Pod, "p");
    assert_eq!(
        pod.str_at(&format!("{status}/state/waiting/reason")),
        "CrashLoopBackOff"
    );
    assert_eq!(
        pod.i64_at(&format!("{status}/lastState/terminated/exitCode")),
        Some(1)
    );
    assert_eq!(pod.i64_at(&format!("{status}/restartCount")), Some(0));
    cluster.pass(10.0);
    let pod = cluster.get(Kind::Pod, "p");
    assert_eq!(pod.i64_at(&format!("{status}/restartCount")), Some(1));
    assert!(
        pod.str_at(&format!("{status}/state/waiting/message"))
            .starts_with("back-off 20s restarting failed container=c pod=p_d(")
    );
}

#[test]
fn a_pod_without_a_node_or_a_claim_waits_for_it() {
    let mut cluster = Cluster::new();
    let mut value = pod("Always", &[], "nginx");
    value["spec"]["volumes"] =
        json!([{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]);
    value["spec"]["nodeSelector"] = json!({"zone": "a"});
    cluster.apply(value);
    cluster.pass(5.0);
    assert_eq!(
        cluster.condition(Kind::Pod, "p", "PodScheduled"),
        ("False".into(), "Unschedulable".into())
    );
    let claim =
        json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
    cluster.apply(json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"}, "spec": claim}));
    cluster.edit(Kind::Node, "node-2", |n| n.set_label("zone", "a"));
    cluster.pass(5.0);
    assert_eq!(
        cluster.get(Kind::Pod, "p").str_at("/spec/nodeName"),
        "node-2"
    );
    assert_eq!(cluster.condition(Kind::Pod, "p", "PodScheduled").0, "True");
    let claim = cluster.get(Kind::PersistentVolumeClaim, "data");
    assert_eq!(
        (
            claim.str_at("/status/phase"),
            claim.str_at("/status/capacity/storage")
        ),
        ("Bound", "1Gi")
    );
    let volume = claim.str_at("/spec/volumeName").to_owned();
    assert_eq!(
        cluster
            .get(Kind::PersistentVolume, &volume)
            .str_at("/status/phase"),
        "Bound"
    );
    cluster.delete(Kind::PersistentVolumeClaim, "data");
    cluster.pass(1.0);
    assert!(
        cluster.find(Kind::PersistentVolume, &volume).is_none(),
        "a volume goes with its claim"
    );
}

#[test]
fn a_job_completes() {
    let mut cluster = Cluster::new();
    cluster.apply(job(&["true"], json!({"completions": 3, "parallelism": 2})));
    cluster.pass(0.5);
    assert_eq!(
        counts(
            &cluster.get(Kind::Job, "j"),
            &["active", "ready", "succeeded"]
        ),
        [2, 2, 0]
    );
    cluster.pass(5.0);
    let job = cluster.get(Kind::Job, "j");
    assert_eq!(
        counts(&job, &["active", "succeeded", "failed", "terminating"]),
        [0, 3, 0, 0]
    );
    let types: Vec<&str> = job
        .pointer("/status/conditions")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|c| c["type"].as_str())
        .collect();
    assert_eq!(types, ["SuccessCriteriaMet", "Complete"]);
    assert!(
        !job.str_at("/status/startTime").is_empty()
            && !job.str_at("/status/completionTime").is_empty()
    );
    assert_eq!(
        job.pointer("/status/uncountedTerminatedPods"),
        Some(&json!({}))
    );
    assert_eq!(
        cluster.events("j"),
        [
            "SuccessfulCreate",
            "SuccessfulCreate",
            "SuccessfulCreate",
            "Completed"
        ]
    );
    assert!(
        cluster
            .all(Kind::Pod)
            .iter()
            .all(|p| p.finalizers().is_empty())
    );
}

#[test]
fn a_job_fails_after_its_retries() {
    let mut cluster = Cluster::new();
    cluster.apply(job(&["false"], json!({"backoffLimit": 1})));
    cluster.pass(5.0);
    assert_eq!(
        counts(&cluster.get(Kind::Job, "j"), &["active", "failed"]),
        [0, 1],
        "it waits before it tries again"
    );
    cluster.pass(15.0);
    let job = cluster.get(Kind::Job, "j");
    assert_eq!(counts(&job, &["active", "failed"]), [0, 2]);
    assert_eq!(
        cluster.condition(Kind::Job, "j", "FailureTarget"),
        ("True".into(), "BackoffLimitExceeded".into())
    );
    assert_eq!(
        cluster.condition(Kind::Job, "j", "Failed"),
        ("True".into(), "BackoffLimitExceeded".into())
    );
    assert_eq!(
        cluster.events("j").last().map(String::as_str),
        Some("BackoffLimitExceeded")
    );
    cluster.pass(3600.0);
    assert_eq!(cluster.all(Kind::Pod).len(), 2);
}

#[test]
fn a_job_can_be_suspended_overdue_or_short_lived() {
    let mut cluster = Cluster::new();
    cluster.apply(job(
        &["sleep", "60"],
        json!({"suspend": true, "ttlSecondsAfterFinished": 5}),
    ));
    cluster.pass(5.0);
    assert_eq!(
        cluster.condition(Kind::Job, "j", "Suspended"),
        ("True".into(), "JobSuspended".into())
    );
    assert!(cluster.all(Kind::Pod).is_empty());
    cluster.edit(Kind::Job, "j", |j| {
        super::fields::set_spec(j, "suspend", false.into())
    });
    cluster.pass(10.0);
    assert_eq!(
        cluster.condition(Kind::Job, "j", "Suspended"),
        ("False".into(), "JobResumed".into())
    );
    assert_eq!(counts(&cluster.get(Kind::Job, "j"), &["active"]), [1]);
    cluster.pass(52.0);
    assert_eq!(cluster.condition(Kind::Job, "j", "Complete").0, "True");
    cluster.pass(5.0);
    assert!(
        cluster.find(Kind::Job, "j").is_none(),
        "its time to live is over"
    );

    let mut cluster = Cluster::new();
    cluster.apply(job(&["sleep", "60"], json!({"activeDeadlineSeconds": 3})));
    cluster.pass(5.0);
    assert_eq!(
        cluster.condition(Kind::Job, "j", "Failed"),
        ("True".into(), "DeadlineExceeded".into())
    );
    assert!(cluster.all(Kind::Pod).is_empty());
}

#[test]
fn an_indexed_job_runs_each_index_once() {
    let mut cluster = Cluster::new();
    cluster.apply(job(
        &["true"],
        json!({"completions": 4, "parallelism": 2, "completionMode": "Indexed"}),
    ));
    cluster.pass(10.0);
    let job = cluster.get(Kind::Job, "j");
    assert_eq!(job.str_at("/status/completedIndexes"), "0-3");
    assert_eq!(cluster.condition(Kind::Job, "j", "Complete").0, "True");
    assert_eq!(cluster.all(Kind::Pod).len(), 4);
}

#[test]
fn a_cron_job_starts_jobs_and_keeps_a_few() {
    let mut cluster = Cluster::new();
    let template = job(&["true"], json!({}))["spec"].clone();
    cluster.apply(json!({
        "apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "c"},
        "spec": {"schedule": "*/5 * * * *", "successfulJobsHistoryLimit": 2, "jobTemplate": {"spec": template}},
    }));
    cluster.pass(300.5);
    assert_eq!(cluster.all(Kind::Job).len(), 1);
    assert_eq!(
        cluster
            .get(Kind::CronJob, "c")
            .str_at("/status/active/0/kind"),
        "Job"
    );
    cluster.pass(1200.0);
    cluster.pass(10.0);
    let jobs = cluster.all(Kind::Job);
    assert_eq!(jobs.len(), 2);
    assert_eq!(
        cluster
            .get(Kind::CronJob, "c")
            .str_at("/status/lastScheduleTime"),
        "2026-03-01T10:25:00Z"
    );
    assert!(
        cluster
            .get(Kind::CronJob, "c")
            .pointer("/status/active")
            .is_none()
    );
    cluster.edit(Kind::CronJob, "c", |c| {
        super::fields::set_spec(c, "suspend", true.into())
    });
    cluster.pass(3600.0);
    assert_eq!(
        cluster
            .get(Kind::CronJob, "c")
            .str_at("/status/lastScheduleTime"),
        "2026-03-01T10:25:00Z"
    );
}
