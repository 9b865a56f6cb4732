//! Tables for `tree`.

use super::*;
use crate::{customize::Customizations, types::Tracking};
use serde_json::{Value, json};
use std::sync::Arc;
use tiphys_api::resource::InfoItem;

fn object(value: Value) -> Object {
    Object::from_value(value).expect("a map")
}

fn node(live: &Object) -> ResourceNode {
    super::node(live, &Customizations::default())
}

fn rules() -> CompareRules {
    CompareRules::new(Tracking::annotation("app"), "argocd", "app", "https://kubernetes.default.svc", "prod")
}

fn entry(desired: Option<Object>, live: Option<Object>) -> Arc<Entry> {
    let any = live.as_ref().or(desired.as_ref()).expect("one of them");
    let node = live.as_ref().map_or_else(|| missing(any), |live| managed(live, None, &Customizations::default()));
    let kept = |object: Object| Arc::new(object.into());
    Arc::new(Entry { node, ..Entry::new(any.key(), any.gvk(), desired.map(kept), live.map(kept)) })
}

fn of_kind(api_version: &str, kind: &str, name: &str) -> Object {
    object(json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": "prod", "uid": format!("uid-{name}")}}))
}

#[test]
fn children_hang_below_what_owns_them() {
    let deployment = entry(None, Some(of_kind("apps/v1", "Deployment", "web")));
    let missing = entry(Some(of_kind("v1", "ConfigMap", "gone")), None);
    let children = |uid: &str| match uid {
        "uid-web" => vec![node(&of_kind("apps/v1", "ReplicaSet", "web-1"))],
        // A circle must end.
        "uid-web-1" => vec![node(&of_kind("v1", "Pod", "web-1-a")), node(&of_kind("apps/v1", "Deployment", "web"))],
        _ => Vec::new(),
    };
    let tree = build(&[deployment, missing], &rules(), &children);
    let names: Vec<(&str, &str)> =
        tree.nodes.iter().map(|n| (n.resource_ref.name.as_str(), n.parent_refs.first().map_or("-", |p| p.name.as_str()))).collect();
    assert_eq!(names, [("web", "web-1"), ("web-1", "web"), ("web-1-a", "web-1"), ("gone", "-")]);
    assert_eq!(tree.nodes[3].health.as_ref().map(|h| h.status.as_str()), Some("Missing"));
}

#[test]
fn what_the_project_forbids_is_not_shown() {
    let mut rules = rules();
    rules.project.namespace_blacklist =
        vec![crate::types::KindRule { group: "apps".into(), kind: "ReplicaSet".into(), name: String::new() }];
    let children = |uid: &str| if uid == "uid-web" { vec![node(&of_kind("apps/v1", "ReplicaSet", "web-1"))] } else { Vec::new() };
    let tree = build(&[entry(None, Some(of_kind("apps/v1", "Deployment", "web")))], &rules, &children);
    assert_eq!(tree.nodes.len(), 1);
}

fn items(object: &Object) -> Vec<(String, String)> {
    let items = info::of(object).map(|i| i.items).unwrap_or_default();
    items.into_iter().map(|InfoItem { name, value }| (name, value)).collect()
}

#[test]
fn fact_100_pods_tell_their_state_in_one_word() {
    let waiting = |reason: &str| json!({"waiting": {"reason": reason}});
    // (spec, status, deleted, reason, containers)
    let one = json!([{"name": "c", "image": "i"}]);
    let table = [
        (json!({"containers": one}), json!({"phase": "Pending"}), false, "Pending", "0/1"),
        (
            json!({"containers": one}),
            json!({"phase": "Running", "containerStatuses": [{"ready": true, "state": {"running": {}}}]}),
            false,
            "Running",
            "1/1",
        ),
        (
            json!({"containers": one}),
            json!({"phase": "Running", "containerStatuses": [{"state": waiting("CrashLoopBackOff")}]}),
            false,
            "CrashLoopBackOff",
            "0/1",
        ),
        (
            json!({"containers": one}),
            json!({"phase": "Failed", "containerStatuses": [{"state": {"terminated": {"exitCode": 3}}}]}),
            false,
            "ExitCode:3",
            "0/1",
        ),
        (
            json!({"containers": one, "initContainers": [{"name": "a"}, {"name": "b"}]}),
            json!({"phase": "Pending", "initContainerStatuses": [{"name": "a", "state": {"terminated": {"exitCode": 0}}}, {"name": "b", "state": {"running": {}}}]}),
            false,
            "Init:1/2",
            "0/1",
        ),
        (json!({"containers": one}), json!({"phase": "Running"}), true, "Terminating", "0/1"),
        (json!({"containers": one}), json!({"phase": "Running", "reason": "NodeLost"}), true, "Unknown", "0/1"),
    ];
    for (spec, status, deleted, reason, containers) in table {
        let mut pod = object(json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec, "status": status}));
        if deleted {
            pod.metadata_mut().insert("deletionTimestamp".into(), "2026-01-01T00:00:00Z".into());
        }
        let items = items(&pod);
        let value = |name: &str| items.iter().find(|(n, _)| n == name).map_or("", |(_, v)| v.as_str());
        assert_eq!((value("Status Reason"), value("Containers")), (reason, containers), "{:?}", pod.0);
    }
}

#[test]
fn fact_100_services_and_ingresses_tell_where_they_lead() {
    let service = object(
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"type": "LoadBalancer", "selector": {"app": "web"}},
        "status": {"loadBalancer": {"ingress": [{"ip": "10.0.0.1"}]}}}),
    );
    let networking = info::of(&service).and_then(|i| i.networking).expect("networking");
    assert_eq!((networking.target_labels["app"].as_str(), networking.ingress[0].ip.as_str()), ("web", "10.0.0.1"));

    let ingress = object(json!({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "i", "namespace": "prod",
            "annotations": {"link.argocd.argoproj.io/docs": "Docs|https://docs", "link.argocd.argoproj.io/bad": "javascript:alert(1)"}},
        "spec": {"tls": [{"secretName": "t"}], "rules": [{"host": "a.example", "http": {"paths": [{"path": "/x*", "backend": {"service": {"name": "web"}}}]}}]}}));
    let networking = info::of(&ingress).and_then(|i| i.networking).expect("networking");
    assert_eq!(networking.external_urls, ["Docs|https://docs", "https://a.example/x"]);
    assert_eq!((networking.target_refs[0].name.as_str(), networking.target_refs[0].namespace.as_str()), ("web", "prod"));
}

#[test]
fn replica_sets_tell_their_revision() {
    let mut set = of_kind("apps/v1", "ReplicaSet", "r");
    assert_eq!(items(&set), []);
    set.set_annotation("deployment.kubernetes.io/revision", "7");
    assert_eq!(items(&set), [("Revision".to_owned(), "Rev:7".to_owned())]);
}
