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
    CompareRules::new(
        Tracking::annotation("app"),
        "argocd",
        "app",
        "https://kubernetes.default.svc",
        "prod",
    )
}

fn entry(desired: Option<Object>, live: Option<Object>) -> Arc<Entry> {
    let any = live.as_ref().or(desired.as_ref()).expect("one of them");
    let node = live.as_ref().map_or_else(
        || missing(any),
        |live| managed(live, None, &Customizations::default()),
    );
    let kept = |object: Object| Arc::new(object.into());
    Arc::new(Entry {
        node,
        ..Entry::new(any.key(), any.gvk(), desired.map(kept), live.map(kept))
    })
}

fn of_kind(api_version: &str, kind: &str, name: &str) -> Object {
    object(
        json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": "prod", "uid": format!("uid-{name}")}}),
    )
}

#[test]
fn children_hang_below_what_owns_them() {
    let deployment = entry(None, Some(of_kind("apps/v1", "Deployment", "web")));
    let missing = entry(Some(of_kind("v1", "ConfigMap", "gone")), None);
    let children = |uid: &str| match uid {
        "uid-web" => vec![node(&of_kind("apps/v1", "ReplicaSet", "web-1"))],
        // A cycle must end.
        "uid-web-1" => vec![
            node(&of_kind("v1", "Pod", "web-1-a")),
            node(&of_kind("apps/v1", "Deployment", "web")),
        ],
        _ => Vec::new(),
    };
    let tree = build(&[deployment, missing], &rules(), &children);
    let names: Vec<(&str, &str)> = tree
        .nodes
        .iter()
        .map(|n| {
            (
                n.resource_ref.name.as_str(),
                n.parent_refs.first().map_or("-", |p| p.name.as_str()),
            )
        })
        .collect();
    assert_eq!(
        names,
        [
            ("web", "web-1"),
            ("web-1", "web"),
            ("web-1-a", "web-1"),
            ("gone", "-")
        ]
    );
    assert_eq!(
        tree.nodes[3].health.as_ref().map(|h| h.status.as_str()),
        Some("Missing")
    );
}

#[test]
fn what_the_project_forbids_is_not_shown() {
    let mut rules = rules();
    rules.project.namespace_blacklist = vec![crate::types::KindRule {
        group: "apps".into(),
        kind: "ReplicaSet".into(),
        name: String::new(),
    }];
    let children = |uid: &str| {
        if uid == "uid-web" {
            vec![node(&of_kind("apps/v1", "ReplicaSet", "web-1"))]
        } else {
            Vec::new()
        }
    };
    let tree = build(
        &[entry(None, Some(of_kind("apps/v1", "Deployment", "web")))],
        &rules,
        &children,
    );
    assert_eq!(tree.nodes.len(), 1);
}

fn items(object: &Object) -> Vec<(String, String)> {
    let items = info::of(object).map(|i| i.items).unwrap_or_default();
    items
        .into_iter()
        .map(|InfoItem { name, value }| (name, value))
        .collect()
}

/// Spec and status of a Pod, whether it is deleted, its reason, and how many containers are ready.
type PodState = (Value, Value, bool, &'static str, &'static str);

fn waiting(reason: &str) -> Value {
    json!({"waiting": {"reason": reason}})
}

fn pods_without_init_containers() -> Vec<PodState> {
    let one = json!([{"name": "c", "image": "i"}]);
    vec![
        (
            json!({"containers": one}),
            json!({"phase": "Pending"}),
            false,
            "Pending",
            "0/1",
        ),
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
            json!({"containers": one}),
            json!({"phase": "Running"}),
            true,
            "Terminating",
            "0/1",
        ),
        (
            json!({"containers": one}),
            json!({"phase": "Succeeded", "reason": "Evicted"}),
            true,
            "Evicted",
            "0/1",
        ),
        (
            json!({"containers": one}),
            json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]}),
            false,
            "SchedulingGated",
            "0/1",
        ),
        (
            json!({"containers": one}),
            json!({"phase": "Failed", "containerStatuses": [{"state": {"terminated": {"exitCode": 137, "signal": 9}}}]}),
            false,
            "Signal:9",
            "0/1",
        ),
        (
            json!({"containers": one}),
            json!({"phase": "Failed", "containerStatuses": [{"state": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}}]}),
            false,
            "OOMKilled",
            "0/1",
        ),
        // One has completed, another is still running.
        (
            json!({"containers": [{"name": "c"}, {"name": "d"}]}),
            json!({"phase": "Running", "containerStatuses": [
                {"state": {"terminated": {"exitCode": 0, "reason": "Completed"}}}, {"ready": true, "state": {"running": {}}}]}),
            false,
            "Running",
            "1/2",
        ),
        (
            json!({"containers": one}),
            json!({"phase": "Running", "reason": "NodeLost"}),
            true,
            "Unknown",
            "0/1",
        ),
    ]
}

fn pods_with_init_containers() -> Vec<PodState> {
    let one = json!([{"name": "c", "image": "i"}]);
    vec![
        (
            json!({"containers": one, "initContainers": [{"name": "a"}, {"name": "b"}]}),
            json!({"phase": "Pending", "initContainerStatuses": [{"name": "a", "state": {"terminated": {"exitCode": 0}}}, {"name": "b", "state": {"running": {}}}]}),
            false,
            "Init:1/2",
            "0/1",
        ),
        // Containers are reported once the Pod is initialized, whatever the state of a sidecar.
        (
            json!({"containers": one, "initContainers": [{"name": "a", "restartPolicy": "Always"}]}),
            json!({"phase": "Running", "conditions": [{"type": "Initialized", "status": "True"}],
                "initContainerStatuses": [{"name": "a", "started": false, "state": waiting("CrashLoopBackOff")}],
                "containerStatuses": [{"ready": true, "state": {"running": {}}}]}),
            false,
            "Init:CrashLoopBackOff",
            "1/2",
        ),
        (
            json!({"containers": one, "initContainers": [{"name": "a"}]}),
            json!({"phase": "Pending", "initContainerStatuses": [{"name": "a", "state": waiting("ErrImagePull")}]}),
            false,
            "Init:ErrImagePull",
            "0/1",
        ),
        (
            json!({"containers": one, "initContainers": [{"name": "a"}]}),
            json!({"phase": "Pending", "initContainerStatuses": [{"name": "a", "state": waiting("PodInitializing")}]}),
            false,
            "Init:0/1",
            "0/1",
        ),
        (
            json!({"containers": one, "initContainers": [{"name": "a"}]}),
            json!({"phase": "Failed", "initContainerStatuses": [{"name": "a", "state": {"terminated": {"exitCode": 1, "signal": 15}}}]}),
            false,
            "Init:Signal:15",
            "0/1",
        ),
        // A sidecar counts as a container.
        (
            json!({"containers": one, "initContainers": [{"name": "a", "restartPolicy": "Always"}]}),
            json!({"phase": "Running", "initContainerStatuses": [{"name": "a", "started": true, "ready": true, "state": {"running": {}}}],
                "containerStatuses": [{"ready": true, "state": {"running": {}}}]}),
            false,
            "Running",
            "2/2",
        ),
    ]
}

#[test]
fn c100_pods_tell_their_state_in_one_word() {
    let table = pods_without_init_containers()
        .into_iter()
        .chain(pods_with_init_containers());
    for (spec, status, deleted, reason, containers) in table {
        let mut pod = object(
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec, "status": status}),
        );
        if deleted {
            pod.metadata_mut()
                .insert("deletionTimestamp".into(), "2026-01-01T00:00:00Z".into());
        }
        let items = items(&pod);
        let value = |name: &str| {
            items
                .iter()
                .find(|(n, _)| n == name)
                .map_or("", |(_, v)| v.as_str())
        };
        assert_eq!(
            (value("Status Reason"), value("Containers")),
            (reason, containers),
            "{:?}",
            pod.0
        );
    }
}

#[test]
fn c100_services_and_ingresses_tell_where_they_lead() {
    let service = object(
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"type": "LoadBalancer", "selector": {"app": "web"}},
        "status": {"loadBalancer": {"ingress": [{"ip": "10.0.0.1"}]}}}),
    );
    let networking = info::of(&service)
        .and_then(|i| i.networking)
        .expect("networking");
    assert_eq!(
        (
            networking.target_labels["app"].as_str(),
            networking.ingress[0].ip.as_str()
        ),
        ("web", "10.0.0.1")
    );

    let ingress = object(
        json!({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "i", "namespace": "prod",
            "annotations": {"link.argocd.argoproj.io/docs": "Docs|https://docs", "link.argocd.argoproj.io/bad": "javascript:alert(1)"}},
        "spec": {"tls": [{"secretName": "t"}], "rules": [{"host": "a.example", "http": {"paths": [{"path": "/x*", "backend": {"service": {"name": "web"}}}]}}]}}),
    );
    let networking = info::of(&ingress)
        .and_then(|i| i.networking)
        .expect("networking");
    assert_eq!(
        networking.external_urls,
        ["Docs|https://docs", "https://a.example/x"]
    );
    assert_eq!(
        (
            networking.target_refs[0].name.as_str(),
            networking.target_refs[0].namespace.as_str()
        ),
        ("web", "prod")
    );
}

#[test]
fn c100_pods_tell_their_node_restarts_and_requests() {
    let pod = |phase: &str, restarts: i64| {
        let container = json!({"name": "c", "image": "b", "resources": {"requests": {"cpu": "100m", "memory": "1Ki"}}});
        object(
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "labels": {"app": "web"}},
            "spec": {"nodeName": "n", "containers": [container], "initContainers": [{"name": "i", "image": "a"}]},
            "status": {"phase": phase, "initContainerStatuses": [{"name": "i", "restartCount": restarts, "state": {"terminated": {"exitCode": 0}}}],
                "containerStatuses": [{"restartCount": restarts, "state": {"running": {}}}]}}),
        )
    };
    let pairs = |list: &[(&str, &str)]| {
        list.iter()
            .map(|(n, v)| ((*n).to_owned(), (*v).to_owned()))
            .collect::<Vec<_>>()
    };
    let running = [
        ("Status Reason", "Running"),
        ("Node", "n"),
        ("Containers", "0/1"),
        ("Restart Count", "6"),
        ("cpu", "100"),
        ("memory", "1024000"),
    ];
    assert_eq!(items(&pod("Running", 3)), pairs(&running));
    assert_eq!(
        items(&pod("Succeeded", 0)),
        pairs(&[
            ("Status Reason", "Succeeded"),
            ("Node", "n"),
            ("Containers", "0/1")
        ]),
        "it holds nothing"
    );
    let info = info::of(&pod("Running", 0)).expect("shown");
    assert_eq!(
        (
            info.images,
            info.networking.expect("networking").labels["app"].as_str()
        ),
        (vec!["a".to_owned(), "b".to_owned()], "web")
    );
}

#[test]
fn c100_only_load_balancers_have_addresses() {
    let status = json!({"loadBalancer": {"ingress": [{"ip": "10.0.0.1"}, {"hostname": "h", "ip": "10.0.0.2"}, {}]}});
    let networking = |kind: &str| {
        let spec = json!({"type": kind, "selector": {"app": "web"}});
        let service = object(
            json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": spec, "status": status}),
        );
        let networking = info::of(&service)
            .and_then(|i| i.networking)
            .expect("networking");
        networking
            .ingress
            .iter()
            .map(|i| format!("{}{}", i.hostname, i.ip))
            .collect::<Vec<_>>()
    };
    assert_eq!(networking("LoadBalancer"), ["10.0.0.1", "h"]);
    assert_eq!(networking("ClusterIP"), Vec::<String>::new());
}

#[test]
fn c100_the_addresses_of_an_ingress() {
    let rule = |host: &str, path: &str| {
        let backend = json!({"service": {"name": format!("to-{host}")}});
        json!({"host": host, "http": {"paths": [{"path": path, "backend": backend}]}})
    };
    let urls = |annotations: Value, tls: Value, rules: Value, balancer: Value| {
        let ingress = json!({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "i", "namespace": "ns", "annotations": annotations},
            "spec": {"tls": tls, "rules": rules}, "status": {"loadBalancer": {"ingress": balancer}}});
        info::of(&object(ingress))
            .and_then(|i| i.networking)
            .expect("networking")
            .external_urls
    };
    let none = || json!({});
    assert_eq!(
        urls(
            none(),
            json!([]),
            json!([rule("a", "/"), rule("b", "/x/*")]),
            json!([])
        ),
        ["http://a/", "http://b/x/"]
    );
    assert_eq!(
        urls(
            none(),
            json!([{"secretName": "s"}]),
            json!([rule("a", "")]),
            json!([])
        ),
        ["https://a"],
        "one certificate is for all"
    );
    assert_eq!(
        urls(
            none(),
            json!([{"host": "a"}]),
            json!([rule("a", ""), rule("b", "")]),
            json!([])
        ),
        ["http://b", "https://a"]
    );
    assert_eq!(
        urls(
            none(),
            json!([]),
            json!([rule("", "/x")]),
            json!([{"ip": "10.0.0.1"}])
        ),
        ["http://10.0.0.1/x"],
        "without a host"
    );
    assert_eq!(
        urls(none(), json!([]), json!([rule("", "/x")]), json!([])),
        Vec::<String>::new()
    );
    let unwanted = json!({"argocd.argoproj.io/ignore-default-links": "true", "link.argocd.argoproj.io/own": "https://own"});
    assert_eq!(
        urls(unwanted, json!([]), json!([rule("a", "/")]), json!([])),
        ["https://own"]
    );
    let old = json!({"apiVersion": "extensions/v1beta1", "kind": "Ingress", "metadata": {"name": "i", "namespace": "ns"},
        "spec": {"backend": {"serviceName": "first"}, "rules": [{"http": {"paths": [{"backend": {"serviceName": "second"}}]}}]}});
    let targets = info::of(&object(old))
        .and_then(|i| i.networking)
        .expect("networking")
        .target_refs;
    let targets: Vec<_> = targets
        .iter()
        .map(|t| (t.kind.as_str(), t.namespace.as_str(), t.name.as_str()))
        .collect();
    assert_eq!(
        targets,
        [("Service", "ns", "first"), ("Service", "ns", "second")]
    );
}

#[test]
fn c100_an_ingress_tells_the_addresses_of_its_balancers() {
    let ingress = object(
        json!({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "i"},
        "status": {"loadBalancer": {"ingress": [{"ip": "10.0.0.1"}, {"hostname": "h", "ip": "10.0.0.2"}, {}]}}}),
    );
    let networking = info::of(&ingress)
        .and_then(|i| i.networking)
        .expect("networking");
    let told: Vec<_> = networking
        .ingress
        .iter()
        .map(|i| (i.hostname.as_str(), i.ip.as_str()))
        .collect();
    assert_eq!(told, [("", "10.0.0.1"), ("h", "")]);
}

#[test]
fn c100_links_are_told_beside_what_the_kind_tells() {
    for kind in ["Service", "Pod", "ConfigMap"] {
        let mut linked = of_kind("v1", kind, "x");
        linked.set_annotation("link.argocd.argoproj.io/docs", "https://docs");
        let networking = info::of(&linked)
            .and_then(|i| i.networking)
            .expect("networking");
        assert_eq!(networking.external_urls, ["https://docs"], "{kind}");
    }
}

#[test]
fn c100_istio_tells_where_it_leads() {
    let istio = |kind: &str, spec: Value| {
        let object = object(
            json!({"apiVersion": "networking.istio.io/v1", "kind": kind, "metadata": {"name": "i", "namespace": "prod"}, "spec": spec}),
        );
        info::of(&object).and_then(|i| i.networking)
    };
    let to = |host: &str| json!({"destination": {"host": host}});
    let routes = json!({"http": [{"route": [to("web"), to("api.other.svc.cluster.local")]}, {"route": [to("web")]}]});
    let service = istio("VirtualService", routes).expect("networking");
    let mut targets: Vec<_> = service
        .target_refs
        .iter()
        .map(|t| (t.kind.as_str(), t.namespace.as_str(), t.name.as_str()))
        .collect();
    targets.sort_unstable();
    assert_eq!(
        targets,
        [("Service", "other", "api"), ("Service", "prod", "web")]
    );
    let entry = istio(
        "ServiceEntry",
        json!({"workloadSelector": {"labels": {"app": "web"}}}),
    )
    .expect("networking");
    assert_eq!(
        (
            entry.target_labels["app"].as_str(),
            entry.target_refs.len(),
            entry.target_refs[0].kind.as_str()
        ),
        ("web", 1, "Pod")
    );
    assert_eq!(istio("ServiceEntry", json!({})), None);
}

#[test]
fn a_summary_has_the_links_of_the_application_and_says_whether_it_has_others() {
    let node = |group: &str, url: &str| {
        json!({"group": group, "kind": "Application", "name": "n", "images": ["b", "a"],
            "networkingInfo": {"externalURLs": [url]}})
    };
    let annotations = [
        ("link.argocd.argoproj.io/docs", "Docs|https://docs"),
        ("link.argocd.argoproj.io/same", "https://b"),
        ("link.argocd.argoproj.io/bad", "javascript:alert(1)"),
        ("other", "https://other"),
    ];
    let annotations = annotations.map(|(key, value)| (key.to_owned(), value.to_owned()));
    for (group, expected) in [("argoproj.io", true), ("other.example", false)] {
        let tree = json!({"nodes": [node(group, "https://b"), node("other.example", "https://a")]});
        let tree = serde_json::from_value(tree).expect("a tree");
        let told = summary_of(&tree, &annotations.clone().into());
        assert_eq!(told.images, ["a", "b"]);
        assert_eq!(
            told.external_urls,
            ["Docs|https://docs", "https://a", "https://b"]
        );
        assert_eq!(told.is_app_of_apps, expected);
    }
}

#[test]
fn c100_routes_of_the_gateway_api_tell_where_they_lead() {
    let spec = json!({
        "parentRefs": [{"name": "public", "namespace": "edge"}, {"name": "own"},
            {"group": "", "kind": "Service", "name": "mesh"}, {"namespace": "nameless"}],
        "rules": [{"backendRefs": [{"name": "web", "port": 80}, {"name": "api", "namespace": "other"}]},
            {"backendRefs": [{"name": "web"}, {"group": "multicluster.x-k8s.io", "kind": "ServiceImport", "name": "far"}]}],
    });
    for kind in ["HTTPRoute", "GRPCRoute", "TCPRoute", "TLSRoute", "UDPRoute"] {
        let route = object(
            json!({"apiVersion": "gateway.networking.k8s.io/v1", "kind": kind, "spec": spec,
            "metadata": {"name": "r", "namespace": "prod", "annotations": {"link.argocd.argoproj.io/docs": "https://docs"}}}),
        );
        let networking = info::of(&route)
            .and_then(|i| i.networking)
            .expect("networking");
        assert_eq!(networking.external_urls, ["https://docs"]);
        let targets = networking.target_refs.iter();
        let targets: Vec<String> = targets
            .map(|t| format!("{}/{}/{}/{}", t.group, t.kind, t.namespace, t.name))
            .collect();
        assert_eq!(
            targets,
            [
                "/Service/other/api",
                "/Service/prod/web",
                "gateway.networking.k8s.io/Gateway/edge/public",
                "gateway.networking.k8s.io/Gateway/prod/own",
                "gateway.networking.k8s.io/Service/prod/mesh",
                "multicluster.x-k8s.io/ServiceImport/prod/far",
            ],
            "{kind}"
        );
    }
}

#[test]
fn c100_a_gateway_tells_its_addresses() {
    let gateway = |annotations: Value, listeners: Value| {
        let addresses = json!([{"type": "Hostname", "value": "lb.example"}, {"value": "10.0.0.1"},
            {"type": "IPAddress", "value": "2001:db8::1"}, {"type": "NamedAddress", "value": "x"}, {"value": ""}]);
        let gateway = json!({"apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway",
            "metadata": {"name": "g", "annotations": annotations},
            "spec": {"listeners": listeners}, "status": {"addresses": addresses}});
        info::of(&object(gateway))
            .and_then(|i| i.networking)
            .expect("networking")
    };
    let listeners = json!([
        {"hostname": "a.example", "protocol": "HTTPS", "port": 443},
        {"hostname": "a.example", "protocol": "HTTP", "port": 8080},
        {"hostname": "b.example", "protocol": "TLS", "port": 8443},
        {"protocol": "HTTP", "port": 80},
    ]);
    let told = gateway(json!({}), listeners.clone());
    let addresses = told.ingress.iter();
    let addresses: Vec<_> = addresses
        .map(|i| (i.hostname.as_str(), i.ip.as_str()))
        .collect();
    let expected = [("lb.example", ""), ("", "10.0.0.1"), ("", "2001:db8::1")];
    assert_eq!(addresses, expected);
    assert_eq!(
        told.external_urls,
        [
            "http://10.0.0.1",
            "http://[2001:db8::1]",
            "http://a.example:8080",
            "http://lb.example",
            "https://a.example",
            "https://b.example:8443",
        ]
    );
    let unwanted = json!({"argocd.argoproj.io/ignore-default-links": "true", "link.argocd.argoproj.io/own": "https://own"});
    assert_eq!(gateway(unwanted, listeners).external_urls, ["https://own"]);
    let nobody = gateway(json!({}), json!([]));
    assert!(nobody.external_urls.is_empty());
}

#[test]
fn c100_an_application_may_be_managed_elsewhere() {
    let app = |annotations: Value| {
        items(&object(
            json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": "a", "annotations": annotations}}),
        ))
    };
    assert_eq!(
        app(json!({"argocd.argoproj.io/managed-by-url": "https://x"})),
        [("managed-by-url".to_owned(), "https://x".to_owned())]
    );
    assert_eq!(app(json!({})), []);
}

#[test]
fn replica_sets_tell_their_revision() {
    let mut set = of_kind("apps/v1", "ReplicaSet", "r");
    assert_eq!(items(&set), []);
    set.set_annotation("deployment.kubernetes.io/revision", "7");
    assert_eq!(items(&set), [("Revision".to_owned(), "Rev:7".to_owned())]);
}
