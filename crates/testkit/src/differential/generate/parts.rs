//! Requests to subresources other than status and scale.

use super::super::script::Step;
use super::Generator;
use super::mutate::{mutate, pick};
use super::operations::path_of;
use serde_json::{Map, Value, json};

impl Generator {
    pub(super) fn part(&mut self) {
        let Some(made) = self.target() else { return };
        let parts: Vec<String> = made
            .kind
            .subresources
            .iter()
            .filter(|s| !matches!(s.as_str(), "status" | "scale"))
            .cloned()
            .collect();
        if parts.is_empty() {
            return;
        }
        let part = pick(&mut self.rng, &parts).clone();
        let (method, content_type, mut body) = self.part_body(&part, &made.name, &made.sample);
        if self.chance(30) {
            mutate(&mut self.rng, &mut body, &Map::new());
        }
        let query = self.write_parameters(&made.kind).text();
        let path = format!("{}/{part}", path_of(&made));
        self.push(Step {
            method: method.into(),
            path,
            query,
            content_type: content_type.into(),
            body: Some(body),
            ..Step::default()
        });
    }

    fn part_body(
        &mut self,
        part: &str,
        name: &str,
        sample: &Map<String, Value>,
    ) -> (&'static str, &'static str, Value) {
        let metadata = json!({"name": name});
        match part {
            "eviction" => {
                let options = pick(
                    &mut self.rng,
                    &[
                        Value::Null,
                        json!({"gracePeriodSeconds": 0}),
                        json!({"dryRun": ["All"]}),
                    ],
                )
                .clone();
                (
                    "POST",
                    "",
                    json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata, "deleteOptions": options}),
                )
            }
            "binding" => {
                let target = json!({"apiVersion": "v1", "kind": "Node", "name": "n"});
                (
                    "POST",
                    "",
                    json!({"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}),
                )
            }
            "token" => {
                let spec = json!({"audiences": ["a"], "expirationSeconds": 3600});
                (
                    "POST",
                    "",
                    json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}),
                )
            }
            "ephemeralcontainers" => {
                let container = json!({"name": "debug", "image": "busybox:1", "targetContainerName": "a", "stdin": true});
                (
                    "PATCH",
                    "application/strategic-merge-patch+json",
                    json!({"spec": {"ephemeralContainers": [container]}}),
                )
            }
            "resize" => {
                let amounts = json!({"requests": {"cpu": "200m"}, "limits": {"memory": "1Gi"}});
                let container = json!({"name": "a", "resources": amounts});
                (
                    "PATCH",
                    "application/strategic-merge-patch+json",
                    json!({"spec": {"containers": [container]}}),
                )
            }
            "approval" => {
                let kind = *pick(&mut self.rng, &["Approved", "Denied", "Failed", "Other"]);
                let condition =
                    json!({"type": kind, "status": "True", "reason": "R", "message": "m"});
                let mut object = Value::Object(sample.clone());
                object["metadata"] = metadata;
                object["status"] = json!({"conditions": [condition]});
                ("PUT", "", object)
            }
            _ => {
                let finalizers = pick(
                    &mut self.rng,
                    &[json!([]), json!(["kubernetes"]), json!(["example.com/x"])],
                )
                .clone();
                (
                    "PUT",
                    "",
                    json!({"metadata": metadata, "spec": {"finalizers": finalizers}}),
                )
            }
        }
    }
}
