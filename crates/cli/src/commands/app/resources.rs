//! `app resources`.

use super::{AppRef, states::age};
use crate::{
    client::{ConnectArgs, Failure},
    output::{self, table, tree::Nodes},
};
use jiff::Timestamp;
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
}

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
        output::print(&rows(
            &tree,
            self.orphaned,
            &self.output,
            Timestamp::now().as_second(),
        ));
        Ok(())
    }
}

fn rows(tree: &ApplicationTree, orphaned: Option<bool>, format: &str, now: i64) -> String {
    let (own, others) = (orphaned != Some(true), orphaned != Some(false));
    let lists = [
        (&tree.nodes, "No", own),
        (&tree.orphaned_nodes, "Yes", others),
    ];
    let mut text = "GROUP\tKIND\tNAMESPACE\tNAME\tORPHANED".to_owned();
    text += if format == "tree=detailed" {
        "\tAGE\tHEALTH\tREASON\n"
    } else {
        "\n"
    };
    for (nodes, is_orphaned, _) in lists.into_iter().filter(|(_, _, wanted)| *wanted) {
        let mut row = |branch: &str, node: &ResourceNode| {
            let r = &node.resource_ref;
            text += &format!(
                "{branch}{}\t{}\t{}\t{}\t{is_orphaned}",
                r.group, r.kind, r.namespace, r.name
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
        match format {
            "tree" | "tree=detailed" => Nodes::new(nodes).walk(row),
            // Only the Application's own resources; of orphaned ones all.
            _ => nodes
                .iter()
                .filter(|n| is_orphaned == "Yes" || n.parent_refs.is_empty())
                .for_each(|n| row("", n)),
        }
    }
    table::align(&text, 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

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
        assert_eq!(rows(&tree, None, "", 0), expected);
        assert!(!rows(&tree, Some(true), "", 0).contains("Deployment"));
        let text = rows(&tree, Some(false), "tree=detailed", 0);
        assert!(
            text.contains("└─apps  ReplicaSet  n          web-1  No        <unknown>  Healthy"),
            "{text}"
        );
        assert!(!text.contains("lost"));
    }
}
