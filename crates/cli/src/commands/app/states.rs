//! The rows about an Application's resources: the results of the latest operation, then the other
//! resources. Main function: [`states`].

use super::select::{Selected, includes};
use crate::output::{
    table,
    tree::{self},
};
use std::collections::BTreeMap;
use tiphys_api::{Application, resource::ApplicationTree, status::ResourceStatus};

/// The state of one resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceState {
    pub group: String,
    pub kind: String,
    pub namespace: String,
    pub name: String,
    pub status: String,
    pub health: String,
    pub hook: String,
    pub message: String,
}

fn key(group: &str, kind: &str, namespace: &str, name: &str) -> String {
    format!("{group}/{kind}/{namespace}/{name}")
}

impl ResourceState {
    pub fn key(&self) -> String {
        key(&self.group, &self.kind, &self.namespace, &self.name)
    }

    /// Merges a newer state. True if anything changed.
    pub fn merge(&mut self, newer: &Self) -> bool {
        let mut changed = false;
        let fields = [
            (&mut self.status, &newer.status),
            (&mut self.health, &newer.health),
            (&mut self.hook, &newer.hook),
            (&mut self.message, &newer.message),
        ];
        for (own, newer) in fields {
            if !newer.is_empty() && own != newer {
                own.clone_from(newer);
                changed = true;
            }
        }
        changed
    }

    /// A row printed while waiting, to be aligned with others.
    pub fn waiting_row(&self, time: &str) -> String {
        waiting_row([
            time,
            &self.group,
            &self.kind,
            &self.namespace,
            &self.name,
            &self.status,
            &self.health,
            &self.hook,
            &self.message,
        ])
    }

    fn row(&self) -> Vec<String> {
        let s = self.clone();
        vec![
            s.group,
            s.kind,
            s.namespace,
            s.name,
            s.status,
            s.health,
            s.hook,
            s.message,
        ]
    }
}

/// A row of the table printed while waiting; most cells have a minimum width and are right-aligned.
pub fn waiting_row(
    [
        time,
        group,
        kind,
        namespace,
        name,
        status,
        health,
        hook,
        message,
    ]: [&str; 9],
) -> String {
    format!(
        "{time}\t{group:>5}\t{kind:>10}\t{namespace:>10}\t{name:>20}\t{status:>8}\t{health:>7}\t{hook:>10}\t{message}\n"
    )
}

/// The header above such rows.
pub fn waiting_header() -> String {
    waiting_row([
        "TIMESTAMP",
        "GROUP",
        "KIND",
        "NAMESPACE",
        "NAME",
        "STATUS",
        "HEALTH",
        "HOOK",
        "MESSAGE",
    ])
}

fn health(resource: &ResourceStatus) -> String {
    resource
        .health
        .as_ref()
        .map(|h| h.status.clone())
        .unwrap_or_default()
}

pub fn states(app: &Application, selected: &[Selected]) -> Vec<ResourceState> {
    let resources = app.status.resources.iter();
    let mut rest: BTreeMap<String, &ResourceStatus> = resources
        .map(|r| (key(&r.group, &r.kind, &r.namespace, &r.name), r))
        .collect();
    let results = app
        .status
        .operation_state
        .as_ref()
        .and_then(|o| o.sync_result.as_ref());
    let mut states = Vec::new();
    for result in results.iter().flat_map(|r| &r.resources) {
        let resource = rest.remove(&key(
            &result.group,
            &result.kind,
            &result.namespace,
            &result.name,
        ));
        let (status, health) = match resource.filter(|_| result.hook_type.is_empty()) {
            Some(resource) => (resource.status.clone(), health(resource)),
            None => (result.hook_phase.clone(), result.status.clone()),
        };
        states.push(ResourceState {
            group: result.group.clone(),
            kind: result.kind.clone(),
            namespace: result.namespace.clone(),
            name: result.name.clone(),
            status,
            health,
            hook: result.hook_type.clone(),
            message: result.message.clone(),
        });
    }
    states.extend(rest.values().map(|r| ResourceState {
        group: r.group.clone(),
        kind: r.kind.clone(),
        namespace: r.namespace.clone(),
        name: r.name.clone(),
        status: r.status.clone(),
        health: health(r),
        ..Default::default()
    }));
    states.retain(|s| includes(selected, [&s.group, &s.kind, &s.namespace, &s.name]));
    states
}

/// The same with each resource once: what is said of it later is merged into what was said before.
pub fn distinct(app: &Application, selected: &[Selected]) -> Vec<ResourceState> {
    let (mut known, mut places) = (Vec::<ResourceState>::new(), BTreeMap::new());
    for state in states(app, selected) {
        match places.get(&state.key()) {
            Some(place) => {
                let own: &mut ResourceState = &mut known[*place];
                own.merge(&state);
            }
            None => {
                places.insert(state.key(), known.len());
                known.push(state);
            }
        }
    }
    known
}

/// The table below the Application's summary.
pub fn rows(app: &Application) -> String {
    let header = [
        "GROUP",
        "KIND",
        "NAMESPACE",
        "NAME",
        "STATUS",
        "HEALTH",
        "HOOK",
        "MESSAGE",
    ];
    table::table(&header, states(app, &[]).iter().map(ResourceState::row))
}

/// The kinds that could not be read, below a tree that may lack objects of them; empty if there are
/// none.
pub fn unreadable(tree: &ApplicationTree) -> String {
    if tree.unreadable_kinds.is_empty() {
        return String::new();
    }
    let lines: String = tree
        .unreadable_kinds
        .iter()
        .map(|kind| match kind.group.as_str() {
            "" => format!("  {}: {}\n", kind.kind, kind.message),
            group => format!("  {}.{group}: {}\n", kind.kind, kind.message),
        })
        .collect();
    format!("\nObjects may be missing, because these kinds could not be read:\n{lines}")
}

/// The same as a tree, including objects that the resources own.
pub fn tree(app: &Application, nodes: &ApplicationTree, detailed: bool, now: i64) -> String {
    let by_name: BTreeMap<String, ResourceState> = states(app, &[])
        .into_iter()
        .map(|s| (format!("{}/{}", s.kind, s.name), s))
        .collect();
    let header = if detailed {
        "KIND/NAME\tSTATUS\tHEALTH\tAGE\tMESSAGE\tREASON\n"
    } else {
        "KIND/NAME\tSTATUS\tHEALTH\tMESSAGE\n"
    };
    let mut text = header.to_owned();
    tree::Nodes::new(&nodes.nodes).walk(|branch, node| {
        let name = format!("{}/{}", node.resource_ref.kind, node.resource_ref.name);
        let (own_health, reason) = node
            .health
            .as_ref()
            .map_or(("", ""), |h| (&h.status, &h.message));
        let (status, health, message) = match by_name.get(&name) {
            Some(s) => (s.status.as_str(), s.health.as_str(), s.message.as_str()),
            None => ("", own_health, ""),
        };
        text += &match detailed {
            true => format!(
                "{branch}{name}\t{status}\t{health}\t{}\t{message}\t{reason}\n",
                age(node, now)
            ),
            false => format!("{branch}{name}\t{status}\t{health}\t{message}\n"),
        };
    });
    table::align(&text, 0)
}

/// The age of a resource, as kubectl prints it.
pub fn age(node: &tiphys_api::resource::ResourceNode, now: i64) -> String {
    node.created_at.as_ref().map_or("<unknown>".into(), |t| {
        crate::output::time::age(now - t.seconds)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn app() -> Application {
        serde_json::from_value(json!({"status": {
            "resources": [
                {"kind": "Service", "namespace": "n", "name": "b", "status": "Synced", "health": {"status": "Healthy"}},
                {"kind": "ConfigMap", "namespace": "n", "name": "a", "status": "OutOfSync"},
            ],
            "operationState": {"syncResult": {"revision": "r", "resources": [
                {"group": "batch", "version": "v1", "kind": "Job", "namespace": "n", "name": "h", "hookType": "PreSync",
                 "hookPhase": "Succeeded", "message": "done"},
                {"group": "", "version": "v1", "kind": "Service", "namespace": "n", "name": "b", "status": "Synced", "message": "created"},
            ]}},
        }}))
        .expect("an Application")
    }

    #[test]
    fn results_come_first() {
        let expected = "\
GROUP  KIND       NAMESPACE  NAME  STATUS     HEALTH   HOOK     MESSAGE
batch  Job        n          h     Succeeded           PreSync  done
       Service    n          b     Synced     Healthy           created
       ConfigMap  n          a     OutOfSync                    \n";
        assert_eq!(rows(&app()), expected);
    }

    #[test]
    fn merging_keeps_what_is_known() {
        let mut state = ResourceState {
            status: "OutOfSync".into(),
            health: "Missing".into(),
            ..Default::default()
        };
        assert!(!state.merge(&ResourceState {
            status: "OutOfSync".into(),
            ..Default::default()
        }));
        assert!(state.merge(&ResourceState {
            status: "Synced".into(),
            ..Default::default()
        }));
        assert_eq!(
            (state.status.as_str(), state.health.as_str()),
            ("Synced", "Missing")
        );
    }

    #[test]
    fn a_tree_of_resources() {
        let nodes: ApplicationTree = serde_json::from_value(json!({"nodes": [
            {"kind": "Service", "name": "b", "uid": "1"},
            {"kind": "EndpointSlice", "name": "b-x", "uid": "2", "parentRefs": [{"uid": "1"}], "health": {"status": "Healthy"}},
        ]}))
        .expect("a tree");
        let text = tree(&app(), &nodes, false, 0);
        let expected = "\
KIND/NAME            STATUS  HEALTH   MESSAGE
Service/b            Synced  Healthy  created
└─EndpointSlice/b-x          Healthy  \n";
        assert_eq!(text, expected);
        assert!(tree(&app(), &nodes, true, 0).contains("<unknown>"));
    }
}
