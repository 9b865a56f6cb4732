//! Labels objects that are assigned to a node with the zone and region of that node. Main function:
//! [`admit`].

use crate::reader::Reader;
use tiphys_apimachinery::{Gvr, Object};

const LABELS: [&str; 2] = [
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
];

/// Labels a pod or a Binding; `at` is the path of its node name.
pub fn admit(cluster: &dyn Reader, object: &mut Object, at: &str) {
    let name = object.str_at(at);
    let node = (!name.is_empty()).then(|| cluster.get(&Gvr::new("", "v1", "nodes"), "", name));
    let Some(Ok(node)) = node else { return };
    for key in LABELS {
        if let Some(value) = node.label(key) {
            object.set_label(key, value);
        }
    }
}
