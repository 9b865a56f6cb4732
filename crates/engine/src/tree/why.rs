//! Explains in one line why a resource is not Healthy, from the objects that it owns.
//!
//! Main functions: [`explain`] adds the line to the nodes, [`lines`] reads it for display as text.

use std::collections::BTreeMap;
use tiphys_api::resource::{InfoItem, ResourceNode};

/// The name of the info item that [`explain`] adds.
pub const REASON: &str = "Reason";
/// Reasons of Pods that are still starting: another Pod may have a more specific one.
const STARTING: [&str; 5] = [
    "Pending",
    "ContainerCreating",
    "PodInitializing",
    "Running",
    "",
];
/// Longest chain of owners. Deeper ones do not occur, but cycles could.
const DEPTH_LIMIT: usize = 32;

/// Adds the reason to each resource of the Application that is not Healthy because of an object
/// that it owns.
pub fn explain(nodes: &mut [ResourceNode]) {
    if !nodes
        .iter()
        .any(|n| n.parent_refs.is_empty() && is_troubled(n))
    {
        return;
    }
    let below = Below::new(nodes);
    let roots =
        (0..nodes.len()).filter(|i| nodes[*i].parent_refs.is_empty() && is_troubled(&nodes[*i]));
    let found: Vec<(usize, String)> = roots
        .filter_map(|root| Some((root, reason(nodes, &below, root)?)))
        .collect();
    for (root, value) in found {
        nodes[root].info.push(InfoItem {
            name: REASON.to_owned(),
            value,
        });
    }
}

/// One line for each resource of the Application that is Progressing, Degraded or Missing, in the
/// order of the tree.
pub fn lines(nodes: &[ResourceNode]) -> Vec<String> {
    nodes
        .iter()
        .filter(|n| n.parent_refs.is_empty())
        .filter_map(line)
        .collect()
}

fn line(node: &ResourceNode) -> Option<String> {
    let health = node.health.as_ref().filter(|h| {
        matches!(
            h.status.as_str(),
            "Progressing" | "Degraded" | "Missing" | "Unknown"
        )
    })?;
    if let Some(reason) = info(node, REASON) {
        return Some(reason.to_owned());
    }
    let said = if health.message.is_empty() {
        &health.status
    } else {
        &health.message
    };
    Some(format!(
        "{} {}: {said}",
        node.resource_ref.kind, node.resource_ref.name
    ))
}

fn is_troubled(node: &ResourceNode) -> bool {
    node.health
        .as_ref()
        .is_some_and(|h| matches!(h.status.as_str(), "Progressing" | "Degraded"))
}

fn info<'a>(node: &'a ResourceNode, name: &str) -> Option<&'a str> {
    node.info
        .iter()
        .find(|i| i.name == name)
        .map(|i| i.value.as_str())
}

/// The nodes that each node owns, by its uid.
struct Below(BTreeMap<String, Vec<usize>>);

impl Below {
    fn new(nodes: &[ResourceNode]) -> Self {
        let mut below: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (i, node) in nodes.iter().enumerate() {
            for parent in node.parent_refs.iter().filter(|p| !p.uid.is_empty()) {
                below.entry(parent.uid.clone()).or_default().push(i);
            }
        }
        Self(below)
    }

    fn of(&self, node: &ResourceNode) -> &[usize] {
        self.0
            .get(&node.resource_ref.uid)
            .map_or(&[], Vec::as_slice)
    }

    /// Everything below a node. Of several revisions (ReplicaSets of a Deployment) only the newest,
    /// which is the one being rolled out.
    fn all(&self, nodes: &[ResourceNode], root: usize) -> Vec<usize> {
        let (mut found, mut open) = (Vec::new(), vec![(root, 0)]);
        while let Some((at, depth)) = open.pop() {
            let children = self.of(&nodes[at]);
            let newest = children.iter().filter_map(|c| revision(&nodes[*c])).max();
            for child in children
                .iter()
                .copied()
                .filter(|c| revision(&nodes[*c]).is_none_or(|r| Some(r) == newest))
            {
                if depth < DEPTH_LIMIT && !found.contains(&child) {
                    found.push(child);
                    open.push((child, depth + 1));
                }
            }
        }
        found.sort_unstable();
        found
    }
}

fn revision(node: &ResourceNode) -> Option<i64> {
    if node.resource_ref.kind == "ControllerRevision" {
        return None;
    }
    info(node, "Revision")?.strip_prefix("Rev:")?.parse().ok()
}

/// The reported state of a Pod.
struct PodState<'a> {
    name: &'a str,
    word: &'a str,
    containers: &'a str,
}

impl<'a> PodState<'a> {
    fn of(node: &'a ResourceNode) -> Option<Self> {
        let is_pod = node.resource_ref.group.is_empty() && node.resource_ref.kind == "Pod";
        is_pod.then(|| Self {
            name: &node.resource_ref.name,
            word: info(node, "Status Reason").unwrap_or_default(),
            containers: info(node, "Containers").unwrap_or_default(),
        })
    }

    fn is_ready(&self) -> bool {
        self.word == "Running"
            && self
                .containers
                .split_once('/')
                .is_some_and(|(ready, all)| ready == all)
    }

    fn is_done(&self) -> bool {
        matches!(self.word, "Completed" | "Succeeded")
    }

    fn text(&self) -> String {
        match self.word {
            "" => format!("pod {}", self.name),
            "Running" => format!(
                "pod {} Running, {} containers ready",
                self.name, self.containers
            ),
            word => format!("pod {} {word}", self.name),
        }
    }
}

fn reason(nodes: &[ResourceNode], below: &Below, root: usize) -> Option<String> {
    let this = &nodes[root].resource_ref;
    let all = below.all(nodes, root);
    let pods: Vec<PodState<'_>> = all
        .iter()
        .filter_map(|i| PodState::of(&nodes[*i]))
        .collect();
    let troubled = || pods.iter().filter(|p| !p.is_ready() && !p.is_done());
    let worst = troubled()
        .find(|p| !STARTING.contains(&p.word))
        .or_else(|| troubled().next());
    if let Some(pod) = worst {
        let counts = matches!(
            this.kind.as_str(),
            "Deployment" | "StatefulSet" | "DaemonSet" | "ReplicaSet" | "Rollout"
        );
        let ready = pods.iter().filter(|p| p.is_ready()).count();
        let ratio = if counts {
            format!(" {ready}/{}", pods.len())
        } else {
            String::new()
        };
        return Some(format!(
            "{} {}{ratio}: {}",
            this.kind,
            this.name,
            pod.text()
        ));
    }
    if let Some(own) = PodState::of(&nodes[root]) {
        let message = nodes[root]
            .health
            .as_ref()
            .map(|h| h.message.as_str())
            .filter(|m| !m.is_empty());
        let word = if own.word.is_empty() {
            None
        } else {
            Some(own.word)
        };
        let said: Vec<&str> = word.into_iter().chain(message).collect();
        return (!said.is_empty()).then(|| format!("Pod {}: {}", this.name, said.join(": ")));
    }
    let below = all.iter().map(|i| &nodes[*i]).filter(|n| is_troubled(n));
    let told = below
        .filter_map(|n| Some((n, n.health.as_ref()?.message.as_str())))
        .find(|(_, message)| !message.is_empty())?;
    Some(format!(
        "{} {}: {} {}: {}",
        this.kind, this.name, told.0.resource_ref.kind, told.0.resource_ref.name, told.1
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn nodes(value: Value) -> Vec<ResourceNode> {
        let mut nodes: Vec<ResourceNode> = serde_json::from_value(value).expect("nodes");
        explain(&mut nodes);
        nodes
    }

    fn pod(name: &str, owner: &str, word: &str, containers: &str) -> Value {
        json!({"kind": "Pod", "name": name, "uid": name, "parentRefs": [{"uid": owner}],
            "info": [{"name": "Status Reason", "value": word}, {"name": "Containers", "value": containers}]})
    }

    fn owned(kind: &str, name: &str, owner: &str, revision: i64) -> Value {
        json!({"group": "apps", "kind": kind, "name": name, "uid": name, "parentRefs": [{"uid": owner}],
            "info": [{"name": "Revision", "value": format!("Rev:{revision}")}]})
    }

    fn root(kind: &str, name: &str, status: &str, message: &str) -> Value {
        json!({"group": "apps", "kind": kind, "name": name, "uid": name, "health": {"status": status, "message": message}})
    }

    #[test]
    fn a_deployment_names_the_pod_that_keeps_it() {
        let web = |word: &str| {
            lines(&nodes(json!([
                root(
                    "Deployment",
                    "web",
                    "Progressing",
                    "Waiting for rollout to finish: 0 of 2 updated replicas are available..."
                ),
                owned("ReplicaSet", "web-1", "web", 1),
                owned("ReplicaSet", "web-2", "web", 2),
                pod("web-1-a", "web-1", "Running", "1/1"),
                pod("web-2-a", "web-2", "ContainerCreating", "0/1"),
                pod("web-2-b", "web-2", word, "0/1"),
            ])))
        };
        assert_eq!(
            web("ImagePullBackOff"),
            ["Deployment web 0/2: pod web-2-b ImagePullBackOff"]
        );
        assert_eq!(
            web("Pending"),
            ["Deployment web 0/2: pod web-2-a ContainerCreating"]
        );
        assert_eq!(
            web("Running"),
            ["Deployment web 0/2: pod web-2-a ContainerCreating"]
        );
    }

    #[test]
    fn others_say_what_they_have_to_say() {
        let running = json!([
            root("StatefulSet", "db", "Progressing", ""),
            pod("db-0", "db", "Running", "0/1"),
            pod("db-1", "db", "Running", "1/1")
        ]);
        assert_eq!(
            lines(&nodes(running)),
            ["StatefulSet db 1/2: pod db-0 Running, 0/1 containers ready"]
        );
        let job = json!([
            root(
                "Job",
                "migrate",
                "Degraded",
                "Job has reached the specified backoff limit"
            ),
            pod("m", "migrate", "Error", "0/1")
        ]);
        assert_eq!(lines(&nodes(job)), ["Job migrate: pod m Error"]);
        let quota = json!([
            root("Deployment", "web", "Degraded", "exceeded quota"),
            owned("ReplicaSet", "web-1", "web", 1)
        ]);
        assert_eq!(lines(&nodes(quota)), ["Deployment web: exceeded quota"]);
        let claim = json!([
            root("PersistentVolumeClaim", "data", "Progressing", ""),
            root("Service", "ok", "Healthy", "")
        ]);
        assert_eq!(
            lines(&nodes(claim)),
            ["PersistentVolumeClaim data: Progressing"]
        );
        let deep = json!([root("Kafka", "k", "Progressing", ""), {"kind": "StrimziPodSet", "name": "k-0", "uid": "k-0", "parentRefs": [{"uid": "k"}],
            "health": {"status": "Degraded", "message": "no storage"}}]);
        assert_eq!(
            lines(&nodes(deep)),
            ["Kafka k: StrimziPodSet k-0: no storage"]
        );
    }

    #[test]
    fn what_is_healthy_is_not_explained_and_a_circle_ends() {
        let healthy = json!([
            root("Deployment", "web", "Healthy", ""),
            pod("p", "web", "CrashLoopBackOff", "0/1")
        ]);
        assert!(
            nodes(healthy)
                .iter()
                .all(|n| n.info.iter().all(|i| i.name != REASON))
        );
        let circle = json!([
            root("A", "a", "Progressing", ""),
            owned("B", "b", "a", 1),
            owned("C", "c", "b", 1),
            owned("B", "b", "c", 1)
        ]);
        assert_eq!(lines(&nodes(circle)), ["A a: Progressing"]);
    }
}
