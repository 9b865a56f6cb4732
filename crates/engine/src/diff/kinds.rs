//! The type of an object by its kind.
//!
//! Only kinds that are compiled into `kubectl` count as typed. All others (CRDs and aggregated
//! APIs) are compared as plain JSON, as custom resources are.

use tiphys_apimachinery::{
    Gvk,
    schema::{self, TypeRef},
};

pub fn type_of(gvk: &Gvk) -> Option<TypeRef<'static>> {
    if matches!(
        gvk.group.as_str(),
        "apiextensions.k8s.io" | "apiregistration.k8s.io"
    ) {
        return None;
    }
    let builtin = schema::builtin();
    builtin
        .type_for(gvk)
        .or_else(|| builtin.type_for(&successor(gvk)?))
}

/// The version that replaced a beta version with the same fields, for objects and records of that
/// age.
fn successor(gvk: &Gvk) -> Option<Gvk> {
    let workload = matches!(
        gvk.kind.as_str(),
        "Deployment" | "StatefulSet" | "DaemonSet" | "ReplicaSet"
    );
    let group = match (gvk.group.as_str(), gvk.version.as_str()) {
        ("apps", "v1beta1" | "v1beta2") | ("extensions", "v1beta1") if workload => "apps",
        ("extensions", "v1beta1") if gvk.kind == "NetworkPolicy" => "networking.k8s.io",
        (
            group @ ("batch" | "policy" | "coordination.k8s.io" | "admissionregistration.k8s.io"),
            "v1beta1",
        ) => group,
        (
            group @ ("rbac.authorization.k8s.io" | "storage.k8s.io" | "scheduling.k8s.io"),
            "v1beta1" | "v1alpha1",
        ) => group,
        _ => return None,
    };
    Some(Gvk::new(group, "v1", &gvk.kind))
}
