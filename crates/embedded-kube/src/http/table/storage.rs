//! The rows of volumes, claims and other storage kinds.

use super::cells::{access_modes, list, or_default, or_none, shown, text};
use serde_json::Value;
use tiphys_apimachinery::Object;

/// The cells of an object; `None` for kinds unrelated to storage.
pub fn cells(table: &str, o: &Object, age: &dyn Fn() -> Value) -> Option<Vec<Value>> {
    let name = || Value::from(o.name());
    Some(match table {
        "/persistentvolumes" => volume(o, age()),
        "/persistentvolumeclaims" => claim(o, age()),
        "storage.k8s.io/storageclasses" => vec![
            match or_default(o, "storageclass.kubernetes.io/is-default-class") {
                plain if plain == o.name() => {
                    or_default(o, "storageclass.beta.kubernetes.io/is-default-class")
                }
                marked => marked,
            },
            o.str_at("/provisioner").into(),
            shown(o.0.get("reclaimPolicy"), "Delete").into(),
            shown(o.0.get("volumeBindingMode"), "Immediate").into(),
            flag(o, "/allowVolumeExpansion", false),
            age(),
        ],
        "storage.k8s.io/csidrivers" => driver(o, age()),
        "storage.k8s.io/csinodes" => vec![name(), list(o, "/spec/drivers").len().into(), age()],
        "storage.k8s.io/csistoragecapacities" => vec![name(), super::kinds::created(o)],
        "storage.k8s.io/volumeattributesclasses" => {
            vec![name(), o.str_at("/driverName").into(), age()]
        }
        "storage.k8s.io/volumeattachments" => vec![
            name(),
            o.str_at("/spec/attacher").into(),
            o.str_at("/spec/source/persistentVolumeName").into(),
            o.str_at("/spec/nodeName").into(),
            flag(o, "/status/attached", false),
            age(),
        ],
        _ => return None,
    })
}

fn flag(o: &Object, pointer: &str, default: bool) -> Value {
    o.pointer(pointer)
        .and_then(Value::as_bool)
        .unwrap_or(default)
        .into()
}

fn driver(o: &Object, age: Value) -> Vec<Value> {
    let audience = |r: &Value| text(r, "audience").to_owned();
    let requests = o.pointer("/spec/tokenRequests").filter(|r| r.is_array());
    let requests = requests.map(|_| {
        list(o, "/spec/tokenRequests")
            .iter()
            .map(audience)
            .collect::<Vec<_>>()
            .join(",")
    });
    let modes: Vec<&str> = list(o, "/spec/volumeLifecycleModes")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    vec![
        o.name().into(),
        flag(o, "/spec/attachRequired", true),
        flag(o, "/spec/podInfoOnMount", false),
        flag(o, "/spec/storageCapacity", false),
        requests.unwrap_or_else(|| "<unset>".to_owned()).into(),
        flag(o, "/spec/requiresRepublish", false),
        or_none(&modes.join(",")).into(),
        age,
    ]
}

/// The class of a volume or claim: the legacy annotation takes precedence.
fn class(o: &Object) -> String {
    o.annotation("volume.beta.kubernetes.io/storage-class")
        .unwrap_or_else(|| o.str_at("/spec/storageClassName"))
        .to_owned()
}

fn volume(o: &Object, age: Value) -> Vec<Value> {
    let claim = o
        .pointer("/spec/claimRef")
        .map(|c| format!("{}/{}", text(c, "namespace"), text(c, "name")))
        .unwrap_or_default();
    let phase = if o.deletion_timestamp().is_some() {
        "Terminating"
    } else {
        o.str_at("/status/phase")
    };
    vec![
        o.name().into(),
        shown(o.pointer("/spec/capacity/storage"), "0").into(),
        access_modes(list(o, "/spec/accessModes")).into(),
        o.str_at("/spec/persistentVolumeReclaimPolicy").into(),
        phase.into(),
        claim.into(),
        class(o).into(),
        shown(o.pointer("/spec/volumeAttributesClassName"), "<unset>").into(),
        o.str_at("/status/reason").into(),
        age,
        shown(o.pointer("/spec/volumeMode"), "<unset>").into(),
    ]
}

fn claim(o: &Object, age: Value) -> Vec<Value> {
    let bound = !o.str_at("/spec/volumeName").is_empty();
    let phase = if o.deletion_timestamp().is_some() {
        "Terminating"
    } else {
        o.str_at("/status/phase")
    };
    let when_bound = |text: String| if bound { text } else { String::new() };
    vec![
        o.name().into(),
        phase.into(),
        o.str_at("/spec/volumeName").into(),
        when_bound(shown(o.pointer("/status/capacity/storage"), "0")).into(),
        when_bound(access_modes(list(o, "/status/accessModes"))).into(),
        class(o).into(),
        shown(o.pointer("/spec/volumeAttributesClassName"), "<unset>").into(),
        age,
        shown(o.pointer("/spec/volumeMode"), "<unset>").into(),
    ]
}
