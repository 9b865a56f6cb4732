//! Claims and volumes created by an administrator. What a provisioner creates is not compared: the
//! real cluster has none.

use super::*;

fn claim(spec: Value) -> Value {
    let base = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "w"}, "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "$NS-manual", "resources": {"requests": {"storage": "1Gi"}}}});
    with(base, json!({"spec": spec}))
}

fn volume(name: &str, spec: Value) -> Value {
    let base = json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": format!("$NS-{name}")}, "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "$NS-manual", "capacity": {"storage": "2Gi"}, "persistentVolumeReclaimPolicy": "Retain", "hostPath": {"path": "/tmp/x"}}});
    with(base, json!({"spec": spec}))
}

fn class(binding: &str) -> Value {
    json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "$NS-manual"}, "provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": binding})
}

pub fn all() -> Vec<Scenario> {
    let c = "persistentvolumeclaims/w";
    let bound = || until("persistentvolumeclaims/w", "/status/phase", "Bound");
    let mounted = pod(
        "p",
        json!({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "w"}}]}),
    );
    vec![
        scenario(
            "claim-without-volume",
            vec![
                create(claim(json!({}))),
                until(c, "/status/phase", "Pending"),
                Step::Pass(2),
                rest(),
            ],
        ),
        scenario(
            "claim-without-class",
            vec![
                create(claim(json!({"storageClassName": ""}))),
                until(c, "/status/phase", "Pending"),
                Step::Pass(2),
                rest(),
            ],
        ),
        scenario(
            "claim-binds",
            vec![
                create(volume("a", json!({}))),
                until("persistentvolumes/$NS-a", "/status/phase", "Available"),
                create(claim(json!({}))),
                bound(),
                rest(),
            ],
        ),
        scenario(
            "claim-takes-the-smallest-that-fits",
            vec![
                create(volume("small", json!({"capacity": {"storage": "500Mi"}}))),
                create(volume("big", json!({"capacity": {"storage": "9Gi"}}))),
                create(volume("right", json!({"capacity": {"storage": "1Gi"}}))),
                create(volume("shared", json!({"accessModes": ["ReadOnlyMany"]}))),
                Step::Pass(2),
                create(claim(json!({}))),
                bound(),
                rest(),
            ],
        ),
        scenario(
            "volume-retained",
            vec![
                create(volume("a", json!({}))),
                create(claim(json!({}))),
                bound(),
                delete(c, "Background"),
                gone(c),
                until("persistentvolumes/$NS-a", "/status/phase", "Released"),
                rest(),
            ],
        ),
        scenario(
            "claim-waits-for-a-consumer",
            vec![
                create(class("WaitForFirstConsumer")),
                create(volume("a", json!({}))),
                create(claim(json!({}))),
                Step::Pass(2),
                Step::Note("waiting"),
                create(mounted.clone()),
                bound(),
                until("pods/p", "/status/phase", "Running"),
                rest(),
            ],
        ),
        scenario(
            "claim-in-use-is-protected",
            vec![
                create(volume("a", json!({}))),
                create(claim(json!({}))),
                bound(),
                create(mounted),
                until("pods/p", "/status/phase", "Running"),
                delete(c, "Background"),
                Step::Pass(1),
                Step::Note("kept"),
                delete("pods/p", "Background"),
                gone(c),
                rest(),
            ],
        ),
    ]
}
