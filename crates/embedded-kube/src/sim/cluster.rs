//! The objects that every namespace gets: a default service account and the cluster's CA.

use super::{
    kind::{Kind, ROOT_CA},
    plan::Plan,
};
use serde_json::json;
use tiphys_apimachinery::Object;

/// Creates the objects that every namespace has.
pub fn reconcile_namespace(
    namespace: &Object,
    account: Option<&Object>,
    root_ca: Option<&Object>,
    ca: &str,
) -> Plan {
    let mut plan = Plan::default();
    if namespace.deletion_timestamp().is_some()
        || namespace.str_at("/status/phase") == "Terminating"
    {
        return plan;
    }
    let name = namespace.name();
    if account.is_none() {
        plan.create(
            Object::skeleton(&Kind::ServiceAccount.gvk(), name, "default"),
            None,
        );
    }
    if root_ca.is_none() {
        let mut map = Object::skeleton(&Kind::ConfigMap.gvk(), name, ROOT_CA);
        map.set_annotation(
            "kubernetes.io/description",
            "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters.",
        );
        map.0.insert("data".into(), json!({"ca.crt": ca}));
        plan.create(map, None);
    }
    plan
}
