//! Concise constructors for objects to sync.

use serde_json::{Value, json};
use tiphys_apimachinery::Object;

pub const NS: &str = "app-ns";

pub fn object(value: Value) -> Object {
    Object::from_value(value).expect("a map")
}

/// An object of a built-in kind in the destination namespace.
pub fn make(kind: &str, name: &str) -> Object {
    let api_version = match kind {
        "Deployment" | "StatefulSet" => "apps/v1",
        "Job" => "batch/v1",
        "ClusterRole" => "rbac.authorization.k8s.io/v1",
        "CustomResourceDefinition" => "apiextensions.k8s.io/v1",
        "Widget" => "example.com/v1",
        _ => "v1",
    };
    let mut o =
        object(json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}}));
    if !cluster_scoped(kind) {
        o.set_namespace(NS);
    }
    o
}

pub fn cluster_scoped(kind: &str) -> bool {
    ["Namespace", "ClusterRole", "CustomResourceDefinition"].contains(&kind)
}

pub fn with(mut object: Object, annotations: &[(&str, &str)]) -> Object {
    for (key, value) in annotations {
        object.set_annotation(key, value);
    }
    object
}

pub fn wave(object: Object, wave: i64) -> Object {
    with(
        object,
        &[("argocd.argoproj.io/sync-wave", &wave.to_string())],
    )
}

pub fn options(object: Object, options: &str) -> Object {
    with(object, &[("argocd.argoproj.io/sync-options", options)])
}

/// A Job that is a hook.
pub fn hook_job(name: &str, types: &str, policies: &str) -> Object {
    let o = with(make("Job", name), &[("argocd.argoproj.io/hook", types)]);
    if policies.is_empty() {
        o
    } else {
        with(o, &[("argocd.argoproj.io/hook-delete-policy", policies)])
    }
}

/// The CRD of `example.com/Widget`.
pub fn widget_crd() -> Object {
    let mut o = make("CustomResourceDefinition", "widgets.example.com");
    o.0.insert(
        "spec".into(),
        json!({"group": "example.com", "names": {"kind": "Widget"}, "scope": "Namespaced"}),
    );
    o
}
