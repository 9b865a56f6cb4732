//! Defaults of volume sources, in pods and in PersistentVolumes. Main function: [`source`].

use super::{map_at, set, set_text};
use serde_json::{Map, Value};

/// Default strings: the source, its field, the string.
const TEXTS: [(&str, &str, &str); 6] = [
    ("rbd", "pool", "rbd"),
    ("rbd", "user", "admin"),
    ("rbd", "keyring", "/etc/ceph/keyring"),
    ("iscsi", "iscsiInterface", "default"),
    ("scaleIO", "storageMode", "ThinProvisioned"),
    ("scaleIO", "fsType", "xfs"),
];

pub fn source(of: &mut Map<String, Value>) {
    if let Some(host) = map_at(of, "hostPath") {
        set(host, "type", "");
    }
    for (source, field, text) in TEXTS {
        map_at(of, source)
            .into_iter()
            .for_each(|source| set_text(source, field, text));
    }
    if let Some(disk) = map_at(of, "azureDisk") {
        for (field, text) in [
            ("cachingMode", "ReadWrite"),
            ("fsType", "ext4"),
            ("kind", "Shared"),
        ] {
            set(disk, field, text);
        }
        set(disk, "readOnly", false);
    }
}
