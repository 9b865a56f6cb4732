//! Claims and volumes: binding, waiting for a consumer, provisioning, reclaiming.
//!
//! A claim takes the smallest free volume that fits; if there is none and its storage class exists,
//! a volume is provisioned. This cluster has a provisioner for every class but
//! `kubernetes.io/no-provisioner`.

use super::{
    fields::{rfc3339, set_spec, text},
    kind::Kind,
    plan::{Change, Note, Plan},
    workload::claim::selects,
};
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use tiphys_apimachinery::{Object, quantity::Quantity};

/// The default class of claims.
pub const STANDARD: &str = "standard";
const DEFAULT_CLASS: &str = "storageclass.kubernetes.io/is-default-class";
const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";
const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";
const PROVISIONER: &str = "sim.tiphys.dev/volumes";

/// The default class of the cluster, to be created.
pub fn standard_class() -> Object {
    let mut class = class_named(STANDARD);
    class.set_annotation(DEFAULT_CLASS, "true");
    class
}

/// A class with this name whose volumes are provisioned immediately.
pub fn class_named(name: &str) -> Object {
    let mut class = Object::skeleton(&Kind::StorageClass.gvk(), "", name);
    for (field, value) in [
        ("provisioner", PROVISIONER.into()),
        ("reclaimPolicy", "Delete".into()),
        ("allowVolumeExpansion", Value::Bool(true)),
    ] {
        class.0.insert(field.into(), value);
    }
    class
        .0
        .insert("volumeBindingMode".into(), "Immediate".into());
    class
}

/// Whether this is the default class.
pub fn is_default(class: &Object) -> bool {
    class.annotation(DEFAULT_CLASS) == Some("true")
}

/// Whether a class binds only when a pod uses the claim.
pub fn waits_for_consumer(class: &Object) -> bool {
    class.str_at("/volumeBindingMode") == "WaitForFirstConsumer"
}

/// Whether a claim is bound permanently.
pub fn is_bound(claim: &Object) -> bool {
    claim.annotation(BIND_COMPLETED).is_some() && claim.str_at("/status/phase") == "Bound"
}

/// The input of a claim's next step besides the claim.
pub struct ClaimWorld<'a> {
    pub volumes: &'a [Arc<Object>],
    pub class: Option<&'a Object>,
    pub default_class: Option<&'a Object>,
    /// Whether a pod that uses the claim is waiting for a node.
    pub has_consumer: bool,
}

/// The next step of a PersistentVolumeClaim.
pub fn reconcile_claim(claim: &Object, world: &ClaimWorld<'_>) -> Plan {
    let mut plan = Plan::default();
    if claim.deletion_timestamp().is_some() {
        return plan;
    }
    let named = claim.str_at("/spec/volumeName");
    let volume = world.volumes.iter().find(|v| v.name() == named);
    if claim.annotation(BIND_COMPLETED).is_some() {
        match volume {
            Some(volume) if refers_to(volume, claim) => settle(&mut plan, claim, volume),
            _ => lose(&mut plan, claim),
        }
        return plan;
    }
    if !named.is_empty() {
        // If the volume does not exist yet or belongs to another claim, the claim waits.
        match volume.filter(|v| is_free_for(v, claim)) {
            Some(volume) => bind(&mut plan, claim, volume),
            None => pend(&mut plan, claim),
        }
        return plan;
    }
    if claim
        .pointer("/spec/storageClassName")
        .is_none_or(Value::is_null)
        && let Some(class) = world.default_class
    {
        let mut classed = claim.clone();
        set_spec(&mut classed, "storageClassName", class.name().into());
        plan.update(classed, None);
        return plan;
    }
    let waits = world.class.is_some_and(waits_for_consumer) && !world.has_consumer;
    match best(claim, world.volumes) {
        Some(volume) if !waits || volume.pointer("/spec/claimRef").is_some() => {
            bind(&mut plan, claim, volume)
        }
        _ => {
            pend(&mut plan, claim);
            provision(&mut plan, claim, world.class, waits);
        }
    }
    plan
}

fn pend(plan: &mut Plan, claim: &Object) {
    plan.status(claim, json!({"phase": "Pending"}), Vec::new());
}

fn lose(plan: &mut Plan, claim: &Object) {
    if claim.str_at("/status/phase") != "Lost" {
        let note = Note::warning(
            "ClaimLost",
            "Bound claim has lost its PersistentVolume. Data on the volume is lost!",
        );
        plan.status(claim, json!({"phase": "Lost"}), vec![note]);
    }
}

fn refers_to(volume: &Object, claim: &Object) -> bool {
    let at = |field: &str| {
        volume
            .pointer("/spec/claimRef")
            .map_or("", |r| text(r, field))
    };
    at("namespace") == claim.namespace()
        && at("name") == claim.name()
        && (at("uid").is_empty() || at("uid") == claim.uid())
}

fn is_free_for(volume: &Object, claim: &Object) -> bool {
    volume.deletion_timestamp().is_none()
        && (volume.pointer("/spec/claimRef").is_none() || refers_to(volume, claim))
}

fn storage(object: &Object, pointer: &str) -> Option<Quantity> {
    object.str_at(pointer).parse().ok()
}

fn mode(object: &Object) -> &str {
    match object.str_at("/spec/volumeMode") {
        "" => "Filesystem",
        mode => mode,
    }
}

/// The volume reserved for the claim, or the smallest one that fits.
fn best<'a>(claim: &Object, volumes: &'a [Arc<Object>]) -> Option<&'a Arc<Object>> {
    let wanted = storage(claim, "/spec/resources/requests/storage");
    let modes = |o: &Object| {
        o.pointer("/spec/accessModes")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default()
    };
    let asked = modes(claim);
    let selector = claim.pointer("/spec/selector");
    let fits = |v: &&Arc<Object>| {
        let has = modes(v);
        is_free_for(v, claim)
            && v.str_at("/spec/storageClassName") == claim.str_at("/spec/storageClassName")
            && mode(v) == mode(claim)
            && asked.iter().all(|m| has.contains(m))
            && selector.is_none_or(|s| selects(Some(s), v))
            && storage(v, "/spec/capacity/storage")
                .zip(wanted)
                .is_none_or(|(has, wants)| has >= wants)
    };
    let size = |v: &Object| storage(v, "/spec/capacity/storage").map_or(i64::MAX, |q| q.value());
    volumes
        .iter()
        .filter(fits)
        .min_by_key(|v| (v.pointer("/spec/claimRef").is_none(), size(v)))
}

fn bind(plan: &mut Plan, claim: &Object, volume: &Object) {
    if volume.str_at("/spec/claimRef/uid") != claim.uid() {
        let mut taken = volume.clone();
        if volume.pointer("/spec/claimRef").is_none() {
            taken.set_annotation(BOUND_BY_CONTROLLER, "yes");
        }
        set_spec(&mut taken, "claimRef", reference(claim));
        plan.update(taken, None);
    }
    let mut bound = claim.clone();
    if claim.str_at("/spec/volumeName").is_empty() {
        set_spec(&mut bound, "volumeName", volume.name().into());
        bound.set_annotation(BOUND_BY_CONTROLLER, "yes");
    }
    bound.set_annotation(BIND_COMPLETED, "yes");
    plan.push(Change::Update(bound.clone()));
    settle(plan, &bound, volume);
}

/// The status of a bound claim; a claim that requests more than its volume has is expanded.
fn settle(plan: &mut Plan, claim: &Object, volume: &Object) {
    let mut capacity = volume
        .pointer("/spec/capacity")
        .cloned()
        .unwrap_or_else(|| json!({}));
    let asked = storage(claim, "/spec/resources/requests/storage");
    let grows = is_bound(claim) && volume.annotation(PROVISIONED_BY).is_some();
    if grows
        && storage(volume, "/spec/capacity/storage")
            .zip(asked)
            .is_some_and(|(has, wants)| wants > has)
    {
        capacity["storage"] = claim.str_at("/spec/resources/requests/storage").into();
        let mut grown = volume.clone();
        set_spec(&mut grown, "capacity", capacity.clone());
        plan.update(grown, None);
    }
    let mut status = claim
        .pointer("/status")
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default();
    status.insert("phase".into(), "Bound".into());
    status.insert(
        "accessModes".into(),
        volume
            .pointer("/spec/accessModes")
            .cloned()
            .unwrap_or_else(|| json!([])),
    );
    status.insert("capacity".into(), capacity);
    plan.status(claim, Value::Object(status), Vec::new());
}

fn reference(claim: &Object) -> Value {
    json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": claim.namespace(), "name": claim.name(), "uid": claim.uid(),
        "resourceVersion": claim.resource_version(),
    })
}

/// Provisions a volume for a claim, or reports why not.
fn provision(plan: &mut Plan, claim: &Object, class: Option<&Object>, waits: bool) {
    let name = claim.str_at("/spec/storageClassName");
    if waits {
        return plan.remark(Note::normal(
            "WaitForFirstConsumer",
            "waiting for first consumer to be created before binding",
        ));
    }
    if name.is_empty() {
        let message = "no persistent volumes available for this claim and no storage class is set";
        return plan.remark(Note::normal("FailedBinding", message));
    }
    let Some(class) = class else {
        return plan.remark(Note::warning(
            "ProvisioningFailed",
            format!("storageclass.storage.k8s.io \"{name}\" not found"),
        ));
    };
    let provisioner = class.str_at("/provisioner");
    if provisioner == "kubernetes.io/no-provisioner" {
        return plan.remark(Note::warning(
            "ProvisioningFailed",
            format!("no volume plugin matched name: {provisioner}"),
        ));
    }
    let mut asked = claim.clone();
    for key in [
        "volume.beta.kubernetes.io/storage-provisioner",
        "volume.kubernetes.io/storage-provisioner",
    ] {
        asked.set_annotation(key, provisioner);
    }
    if asked != *claim {
        let message = format!(
            "Waiting for a volume to be created either by the external provisioner '{provisioner}' or manually by the system \
             administrator. If volume creation is delayed, please verify that the provisioner is running and correctly registered."
        );
        return plan.update(asked, Some(Note::normal("ExternalProvisioning", message)));
    }
    let volume = new_volume(claim, class, provisioner);
    let message = format!("Successfully provisioned volume {}", volume.name());
    plan.create(volume, Some(Note::normal("ProvisioningSucceeded", message)));
}

fn new_volume(claim: &Object, class: &Object, provisioner: &str) -> Object {
    let name = format!("pvc-{}", claim.uid());
    let mut volume = Object::skeleton(&Kind::PersistentVolume.gvk(), "", &name);
    volume.set_annotation(PROVISIONED_BY, provisioner);
    let policy = match class.str_at("/reclaimPolicy") {
        "" => "Delete",
        policy => policy,
    };
    // A driver's name must not contain a slash; a provisioner's may.
    let driver = provisioner.replace('/', ".");
    let mut spec = json!({
        "capacity": {"storage": claim.pointer("/spec/resources/requests/storage").cloned().unwrap_or_else(|| "1Gi".into())},
        "accessModes": claim.pointer("/spec/accessModes"), "claimRef": reference(claim), "persistentVolumeReclaimPolicy": policy,
        "volumeMode": mode(claim), "storageClassName": class.name(), "csi": {"driver": driver, "volumeHandle": name},
    });
    if let Some(options) = class.0.get("mountOptions") {
        spec["mountOptions"] = options.clone();
    }
    volume.0.insert("spec".into(), spec);
    volume
}

/// The next step of a PersistentVolume. `claim` is the claim in its `claimRef`, if it still is the
/// same one.
pub fn reconcile_volume(volume: &Object, claim: Option<&Object>, now: Timestamp) -> Plan {
    let mut plan = Plan::default();
    if volume.deletion_timestamp().is_some() {
        return plan;
    }
    let taken = !volume.str_at("/spec/claimRef/uid").is_empty();
    let phase = match claim {
        _ if !taken => "Available",
        Some(claim) if claim.str_at("/spec/volumeName") == volume.name() => "Bound",
        Some(claim) if claim.str_at("/spec/volumeName").is_empty() => return plan,
        _ => "Released",
    };
    if volume.str_at("/status/phase") != phase {
        let mut status: Map<String, Value> = volume
            .pointer("/status")
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default();
        status.insert("phase".into(), phase.into());
        status.insert("lastPhaseTransitionTime".into(), rfc3339(now).into());
        plan.status(volume, Value::Object(status), Vec::new());
    }
    let ours = volume.annotation(PROVISIONED_BY).is_some();
    if phase == "Released"
        && ours
        && volume.str_at("/spec/persistentVolumeReclaimPolicy") == "Delete"
    {
        plan.delete(volume, None);
    }
    plan
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(value: Value) -> Object {
        Object::from_value(value).expect("a map")
    }

    fn claim(spec: Value) -> Object {
        let base = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "c", "namespace": "n", "uid": "u"}, "spec": spec});
        object(base)
    }

    fn volume(name: &str, size: &str, modes: Value, class: &str) -> Arc<Object> {
        Arc::new(object(json!({
            "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name},
            "spec": {"capacity": {"storage": size}, "accessModes": modes, "storageClassName": class},
        })))
    }

    #[test]
    fn the_smallest_volume_that_fits_is_taken() {
        let wants = claim(
            json!({"accessModes": ["ReadWriteOnce"], "storageClassName": "s", "resources": {"requests": {"storage": "1Gi"}}}),
        );
        let once = || json!(["ReadWriteOnce"]);
        let volumes = [
            volume("small", "500Mi", once(), "s"),
            volume("big", "9Gi", once(), "s"),
            volume("other", "1Gi", once(), "t"),
            volume("read", "1Gi", json!(["ReadOnlyMany"]), "s"),
            volume(
                "right",
                "2Gi",
                json!(["ReadOnlyMany", "ReadWriteOnce"]),
                "s",
            ),
        ];
        assert_eq!(best(&wants, &volumes).map(|v| v.name()), Some("right"));
        assert_eq!(best(&wants, &volumes[..1]).map(|v| v.name()), None);
    }

    #[test]
    fn a_claim_without_a_volume_says_what_it_waits_for() {
        let delayed = object(
            json!({"metadata": {"name": "s"}, "provisioner": "x", "volumeBindingMode": "WaitForFirstConsumer"}),
        );
        let world = |class, has_consumer| ClaimWorld {
            volumes: &[],
            class,
            default_class: None,
            has_consumer,
        };
        let of = |class: &str, world: &ClaimWorld<'_>| {
            let plan = reconcile_claim(&claim(json!({"storageClassName": class})), world);
            plan.remarks.first().map(|n| n.reason).or(plan
                .writes
                .iter()
                .flat_map(|w| &w.notes)
                .map(|n| n.reason)
                .next())
        };
        assert_eq!(of("", &world(None, false)), Some("FailedBinding"));
        assert_eq!(of("s", &world(None, false)), Some("ProvisioningFailed"));
        assert_eq!(
            of("s", &world(Some(&delayed), false)),
            Some("WaitForFirstConsumer")
        );
        assert_eq!(
            of("s", &world(Some(&delayed), true)),
            Some("ExternalProvisioning")
        );
    }
}
