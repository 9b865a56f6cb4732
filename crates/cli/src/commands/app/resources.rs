//! `app resources`.

use super::{
    AppRef,
    states::{age, unreadable},
};
use crate::{
    client::{ConnectArgs, Failure},
    output::{
        self,
        sort::{self, Field, SortBy},
        table,
        tree::Nodes,
    },
};
use jiff::Timestamp;
use serde::Serialize;
use tiphys_api::{
    resource::{ApplicationTree, ResourceNode},
    rpc::application::ResourcesQuery,
};

#[derive(clap::Args)]
pub struct Resources {
    /// The application
    app: String,
    /// Lists only orphaned resources
    #[arg(long)]
    orphaned: Option<bool>,
    /// Namespace of the application
    #[arg(long, short = 'N', value_name = "NAMESPACE")]
    app_namespace: Option<String>,
    /// Output format. One of: tree|tree=detailed
    #[arg(
        long,
        default_value = "",
        hide_default_value = true,
        value_name = "FORMAT"
    )]
    output: String,
    /// The name of the application's project
    #[arg(long)]
    project: Option<String>,
    #[command(flatten)]
    sort_by: SortBy,
}

#[derive(Serialize)]
struct Item {
    #[serde(flatten)]
    node: ResourceNode,
    orphaned: bool,
}

const FIELDS: &[Field<Item>] = &[
    ("group", |item| item.node.resource_ref.group.as_str().into()),
    ("kind", |item| item.node.resource_ref.kind.as_str().into()),
    ("namespace", |item| {
        item.node.resource_ref.namespace.as_str().into()
    }),
    ("name", |item| item.node.resource_ref.name.as_str().into()),
    ("orphaned", |item| item.orphaned.into()),
    ("health", |item| {
        let health = item.node.health.as_ref();
        health.map(|health| health.status.as_str()).into()
    }),
    ("created", |item| {
        sort::created(item.node.created_at.as_ref())
    }),
    ("age", |item| sort::age(item.node.created_at.as_ref())),
];

impl Resources {
    pub async fn run(self, args: &ConnectArgs) -> Result<(), Failure> {
        let app = AppRef::new(&self.app, self.app_namespace.as_deref());
        let client = super::super::connect(args).await?;
        let query = ResourcesQuery {
            application_name: app.name.clone(),
            app_namespace: app.namespace(),
            project: Some(self.project.unwrap_or_default()),
            ..Default::default()
        };
        let tree: ApplicationTree = client
            .unary("/application.ApplicationService/ResourceTree", query)
            .await?;
        let unreadable = unreadable(&tree);
        let is_tree = is_tree(&self.output);
        let mut items = items(tree, self.orphaned, is_tree);
        self.sort_by.sort(&mut items, FIELDS)?;
        let now = Timestamp::now().as_second();
        output::print(&format!("{}{unreadable}", rows(&items, &self.output, now)));
        Ok(())
    }
}

fn is_tree(format: &str) -> bool {
    matches!(format, "tree" | "tree=detailed")
}

/// What is shown of the nodes: in a tree all, else only the Application's own resources, and of
/// orphaned ones all.
fn items(tree: ApplicationTree, orphaned: Option<bool>, is_tree: bool) -> Vec<Item> {
    let item = |orphaned| move |node| Item { node, orphaned };
    let own = tree.nodes.into_iter().map(item(false));
    let others = tree.orphaned_nodes.into_iter().map(item(true));
    own.chain(others)
        .filter(|item| orphaned.is_none_or(|wanted| wanted == item.orphaned))
        .filter(|item| is_tree || item.orphaned || item.node.parent_refs.is_empty())
        .collect()
}

fn rows(items: &[Item], format: &str, now: i64) -> String {
    let mut text = "GROUP\tKIND\tNAMESPACE\tNAME\tORPHANED".to_owned();
    text += if format == "tree=detailed" {
        "\tAGE\tHEALTH\tREASON\n"
    } else {
        "\n"
    };
    let mut row = |branch: &str, node: &ResourceNode, orphaned: bool| {
        let r = &node.resource_ref;
        text += &format!(
            "{branch}{}\t{}\t{}\t{}\t{}",
            r.group,
            r.kind,
            r.namespace,
            r.name,
            if orphaned { "Yes" } else { "No" }
        );
        if format == "tree=detailed" {
            let (health, reason) = node
                .health
                .as_ref()
                .map_or(("", ""), |h| (&h.status, &h.message));
            text += &format!("\t{}\t{health}\t{reason}", age(node, now));
        }
        text.push('\n');
    };
    if is_tree(format) {
        for orphaned in [false, true] {
            let those = items.iter().filter(|item| item.orphaned == orphaned);
            let nodes: Vec<ResourceNode> = those.map(|item| item.node.clone()).collect();
            Nodes::new(&nodes).walk(|branch, node| row(branch, node, orphaned));
        }
    } else {
        for item in items {
            row("", &item.node, item.orphaned);
        }
    }
    table::align(&text, 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn kinds_that_could_not_be_read_are_named() {
        let tree = |kinds: serde_json::Value| -> ApplicationTree {
            serde_json::from_value(json!({"unreadableKinds": kinds})).expect("a tree")
        };
        let kinds = json!([{"kind": "Pod", "message": "pods is forbidden"},
            {"group": "metrics.k8s.io", "kind": "*", "message": "away"}]);
        let expected = "
Objects may be missing, because these kinds could not be read:
  Pod: pods is forbidden
  *.metrics.k8s.io: away
";
        assert_eq!(unreadable(&tree(kinds)), expected);
        assert_eq!(unreadable(&tree(json!([]))), "");
    }

    #[test]
    fn formats() {
        let tree: ApplicationTree = serde_json::from_value(json!({
            "nodes": [
                {"group": "apps", "kind": "Deployment", "namespace": "n", "name": "web", "uid": "1"},
                {"group": "apps", "kind": "ReplicaSet", "namespace": "n", "name": "web-1", "uid": "2", "parentRefs": [{"uid": "1"}],
                 "health": {"status": "Healthy"}},
            ],
            "orphanedNodes": [{"kind": "ConfigMap", "namespace": "n", "name": "lost"}],
        }))
        .expect("a tree");
        let expected = "\
GROUP  KIND        NAMESPACE  NAME  ORPHANED
apps   Deployment  n          web   No
       ConfigMap   n          lost  Yes
";
        let shown = |orphaned, format: &str| {
            let items = items(tree.clone(), orphaned, is_tree(format));
            rows(&items, format, 0)
        };
        assert_eq!(shown(None, ""), expected);
        assert!(!shown(Some(true), "").contains("Deployment"));
        let text = shown(Some(false), "tree=detailed");
        assert!(
            text.contains("└─apps  ReplicaSet  n          web-1  No        <unknown>  Healthy"),
            "{text}"
        );
        assert!(!text.contains("lost"));
    }
}
