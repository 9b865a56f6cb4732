//! Claims are bound at once, each to a volume made for it.

use super::{
    fields::text,
    kind::Kind,
    plan::{Change, Note, Plan},
};
use serde_json::{Value, json};
use tiphys_apimachinery::Object;

/// The next step of a PersistentVolumeClaim. `volume` is the one it names, or that was made for it.
pub fn reconcile_claim(claim: &Object, volume: Option<&Object>) -> Plan {
    let mut plan = Plan::default();
    if claim.deletion_timestamp().is_some() {
        return plan;
    }
    if claim.str_at("/status/phase") == "Bound" && !claim.str_at("/spec/volumeName").is_empty() {
        grow(&mut plan, claim);
        return plan;
    }
    let name = match claim.str_at("/spec/volumeName") {
        "" => format!("pvc-{}", claim.uid()),
        name => name.to_owned(),
    };
    let wanted = claim.pointer("/spec/resources/requests/storage").cloned().unwrap_or_else(|| "1Gi".into());
    let modes = claim.pointer("/spec/accessModes").cloned().unwrap_or_else(|| json!(["ReadWriteOnce"]));
    if volume.is_none() {
        // A claim that names a volume somebody else has to make waits for it.
        if !claim.str_at("/spec/volumeName").is_empty() && claim.annotation(BOUND).is_none() {
            plan.status(claim, json!({"phase": "Pending"}), Vec::new());
            return plan;
        }
        let message = format!("Successfully provisioned volume {name}");
        plan.create(new_volume(claim, &name, &wanted, &modes), Some(Note::normal("ProvisioningSucceeded", message)));
    }
    let mut bound = claim.clone();
    super::fields::set_spec(&mut bound, "volumeName", name.into());
    bound.set_annotation(BOUND, "yes");
    bound.set_annotation("pv.kubernetes.io/bound-by-controller", "yes");
    if bound != *claim {
        plan.push(Change::Update(bound.clone()));
    }
    let capacity = volume.and_then(|v| v.pointer("/spec/capacity").cloned()).unwrap_or_else(|| json!({"storage": wanted}));
    plan.status(&bound, json!({"phase": "Bound", "accessModes": modes, "capacity": capacity}), Vec::new());
    plan
}

const BOUND: &str = "pv.kubernetes.io/bind-completed";

/// A claim that asks for more than it has gets it.
fn grow(plan: &mut Plan, claim: &Object) {
    let (asked, has) = (claim.pointer("/spec/resources/requests/storage"), claim.pointer("/status/capacity/storage"));
    let (Some(asked), Some(has)) = (asked, has) else { return };
    if bytes(asked) > bytes(has) {
        let mut status = claim.pointer("/status").cloned().unwrap_or_else(|| json!({}));
        status["capacity"]["storage"] = asked.clone();
        plan.status(claim, status, Vec::new());
    }
}

/// A storage quantity in bytes, roughly; enough to compare two.
fn bytes(quantity: &Value) -> f64 {
    let text = quantity.as_str().unwrap_or("0");
    let at = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let unit = match &text[at..] {
        "Ki" => 1024f64,
        "Mi" => 1024f64.powi(2),
        "Gi" => 1024f64.powi(3),
        "Ti" => 1024f64.powi(4),
        "k" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        "T" => 1e12,
        _ => 1.0,
    };
    text[..at].parse::<f64>().unwrap_or(0.0) * unit
}

fn new_volume(claim: &Object, name: &str, storage: &Value, modes: &Value) -> Object {
    let mut volume = Object::skeleton(&Kind::PersistentVolume.gvk(), "", name);
    volume.set_annotation("pv.kubernetes.io/provisioned-by", PROVISIONER);
    let class = claim.str_at("/spec/storageClassName");
    let reference = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": claim.namespace(), "name": claim.name(), "uid": claim.uid(),
    });
    let mut spec = json!({
        "capacity": {"storage": storage}, "accessModes": modes, "claimRef": reference, "persistentVolumeReclaimPolicy": "Delete",
        "volumeMode": if text(claim.pointer("/spec").unwrap_or(&Value::Null), "volumeMode").is_empty() { "Filesystem" } else { claim.str_at("/spec/volumeMode") },
        "hostPath": {"path": format!("/var/lib/sim-volumes/{name}"), "type": "DirectoryOrCreate"},
    });
    if !class.is_empty() {
        spec["storageClassName"] = class.into();
    }
    volume.0.insert("spec".into(), spec);
    volume
}

const PROVISIONER: &str = "sim.tiphys.dev/volumes";

/// The next step of a PersistentVolume. `claim` is the one its `claimRef` names, if it still is that one.
pub fn reconcile_volume(volume: &Object, claim: Option<&Object>) -> Plan {
    let mut plan = Plan::default();
    if volume.deletion_timestamp().is_some() {
        return plan;
    }
    let wanted_uid = volume.str_at("/spec/claimRef/uid");
    let phase = match claim {
        Some(claim) if claim.str_at("/spec/volumeName") == volume.name() => "Bound",
        Some(_) => return plan,
        None if wanted_uid.is_empty() => "Available",
        None if volume.annotation("pv.kubernetes.io/provisioned-by") == Some(PROVISIONER)
            && volume.str_at("/spec/persistentVolumeReclaimPolicy") == "Delete" =>
        {
            plan.delete(volume, None);
            return plan;
        }
        None => "Released",
    };
    if volume.str_at("/status/phase") != phase {
        plan.status(volume, json!({"phase": phase}), Vec::new());
    }
    plan
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_compare() {
        for (a, b) in [("2Gi", "1Gi"), ("1Gi", "1G"), ("1Ti", "900Gi"), ("1Mi", "1000k")] {
            assert!(bytes(&json!(a)) > bytes(&json!(b)), "{a} > {b}");
        }
    }
}
