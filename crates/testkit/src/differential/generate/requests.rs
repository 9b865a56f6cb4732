//! Requests about the protocol: documents, unknown paths, wrong methods and bodies.

use super::super::script::Step;
use super::Generator;
use super::mutate::pick;
use super::operations::path_of;
use serde_json::json;

/// Documents that do not depend on other users of the server.
const DOCUMENTS: [&str; 22] = [
    "/version",
    "/healthz",
    "/livez",
    "/readyz",
    "/healthz/ping",
    "/api",
    "/api/v1",
    "/apis/apps",
    "/apis/apps/v1",
    "/apis/batch/v1",
    "/apis/autoscaling",
    "/apis/autoscaling/v2",
    "/apis/networking.k8s.io/v1",
    "/apis/policy/v1",
    "/apis/rbac.authorization.k8s.io/v1",
    "/apis/storage.k8s.io/v1",
    "/apis/coordination.k8s.io/v1",
    "/apis/apiextensions.k8s.io/v1",
    "/apis/diff.example.com",
    "/apis/diff.example.com/v1",
    "/apis/diff.example.com/v1beta1",
    "/apis/events.k8s.io/v1",
];

/// All groups, versions and resources in one document.
const AGGREGATED: [&str; 3] = [
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json",
    "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json",
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
];

const ODD_PATHS: [&str; 14] = [
    "/nothing",
    "/api/v2",
    "/api/v1/bogus",
    "/apis/bogus.example.com",
    "/apis/bogus.example.com/v1/things",
    "/apis/apps/v1beta1/deployments",
    "/api/v1/namespaces/${ns}/bogus",
    "/api/v1/namespaces/${ns}/configmaps/a/status",
    "/api/v1/namespaces/${ns}/pods/a/bogus",
    "/apis/apps/v1/namespaces/${ns}/deployments/a/bogus",
    "/api/v1/namespaces/${ns}/nodes",
    "/api/v1/configmaps/a",
    "/apis/apps/v1/namespaces/${ns}/deployments/",
    "/apis/diff.example.com/v1/namespaces/${ns}/widgets/a/bogus",
];

impl Generator {
    pub(super) fn document(&mut self) {
        if self.chance(15) {
            let path = (*pick(&mut self.rng, &["/api", "/apis"])).to_owned();
            let accept = (*pick(&mut self.rng, &AGGREGATED)).to_owned();
            self.push(Step {
                method: "GET".into(),
                path,
                accept,
                ..Step::default()
            });
            return;
        }
        let path = (*pick(&mut self.rng, &DOCUMENTS)).to_owned();
        self.push(Step {
            method: "GET".into(),
            path,
            ..Step::default()
        });
    }

    pub(super) fn odd(&mut self) {
        match self.rng.below(4) {
            0 => {
                let method =
                    (*pick(&mut self.rng, &["GET", "POST", "PUT", "DELETE", "PATCH"])).to_owned();
                let path = (*pick(&mut self.rng, &ODD_PATHS)).to_owned();
                let body = (method != "GET" && method != "DELETE")
                    .then(|| json!({"metadata": {"name": "a"}}));
                let content_type = if method == "PATCH" {
                    "application/merge-patch+json".to_owned()
                } else {
                    String::new()
                };
                self.push(Step {
                    method,
                    path,
                    body,
                    content_type,
                    ..Step::default()
                });
            }
            1 => {
                let Some(made) = self.target() else { return };
                let (method, path) = match self.rng.below(4) {
                    0 => ("POST", path_of(&made)),
                    1 => ("PUT", made.kind.collection()),
                    2 => ("PATCH", made.kind.collection()),
                    _ => ("OPTIONS", path_of(&made)),
                };
                let body = (method != "OPTIONS").then(|| json!({"metadata": {"name": "a"}}));
                let content_type = if method == "PATCH" {
                    "application/merge-patch+json".to_owned()
                } else {
                    String::new()
                };
                self.push(Step {
                    method: method.into(),
                    path,
                    body,
                    content_type,
                    ..Step::default()
                });
            }
            _ => self.odd_body(),
        }
    }

    fn odd_body(&mut self) {
        let kind = self.kind();
        let (api, name) = (kind.api_version.clone(), self.name(&kind));
        let k = &kind.kind;
        // A LimitRange without a name gets a random one, and could be anywhere in a list.
        let nameless = if k == "LimitRange" { "[]" } else { "{}" };
        let texts = [
            String::new(),
            "{".to_owned(),
            "[]".to_owned(),
            "null".to_owned(),
            "\"text\"".to_owned(),
            nameless.to_owned(),
            format!(
                "{{\"apiVersion\":\"{api}\",\"kind\":\"{k}\",\"metadata\":{{\"name\":\"{name}\",\"name\":\"{name}\"}}}}"
            ),
            format!(
                "{{\"apiVersion\":\"{api}\",\"kind\":\"Wrong\",\"metadata\":{{\"name\":\"{name}\"}}}}"
            ),
            format!(
                "{{\"apiVersion\":\"wrong/v1\",\"kind\":\"{k}\",\"metadata\":{{\"name\":\"{name}\"}}}}"
            ),
            format!("{{\"kind\":\"{k}\",\"metadata\":{{\"name\":\"{name}\"}}}}"),
            format!("{{\"apiVersion\":\"{api}\",\"kind\":\"{k}\",\"metadata\":\"text\"}}"),
            format!("{{\"apiVersion\":\"{api}\",\"kind\":\"{k}\",\"metadata\":{{\"name\":7}}}}"),
            format!(
                "{{\"apiVersion\":\"{api}\",\"kind\":\"{k}\",\"metadata\":{{\"name\":\"{name}\",\"labels\":{{\"a\":1}}}}}}"
            ),
            format!(
                "{{\"apiVersion\":\"{api}\",\"kind\":\"{k}\",\"metadata\":{{\"name\":\"{name}\",\"namespace\":\"other\"}}}}"
            ),
            format!("{{\"apiVersion\":\"{api}\",\"kind\":\"{k}\"}} x"),
            format!("apiVersion: {api}\nkind: {k}\nmetadata:\n  name: {name}\n"),
            format!("apiVersion: {api}\nkind: {k}\nmetadata:\n  name: {name}\n  name: {name}\n"),
        ];
        let text = pick(&mut self.rng, &texts).clone();
        let types = [
            "application/json",
            "application/json",
            "application/yaml",
            "",
            "text/plain",
            "application/json; charset=utf-8",
        ];
        let content_type = if text.starts_with("apiVersion") {
            "application/yaml"
        } else {
            pick(&mut self.rng, &types)
        }
        .to_owned();
        let query = if kind.dry_run {
            "dryRun=All".to_owned()
        } else {
            String::new()
        };
        self.push(Step {
            method: "POST".into(),
            path: kind.collection(),
            query,
            content_type,
            text: Some(text),
            ..Step::default()
        });
    }
}
