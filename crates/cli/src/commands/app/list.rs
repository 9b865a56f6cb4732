//! `app list`.

use crate::{
    client::{ConnectArgs, Failure},
    output::{self, summary, table},
};
use std::collections::BTreeMap;
use tiphys_api::{Application, rpc::application::ApplicationQuery};
use tiphys_engine::spec;

#[derive(clap::Args)]
pub struct List {
    /// Output format. One of: wide|name|json|yaml
    #[arg(long, short, default_value = "wide", value_name = "FORMAT")]
    output: String,
    /// List apps by label. Supports '=', '==', '!=', in, notin, exists & not exists
    #[arg(long, short = 'l')]
    selector: Option<String>,
    /// Filter by project name
    #[arg(long, short = 'p')]
    project: Vec<String>,
    /// List apps by source repo URL
    #[arg(long, short = 'r')]
    repo: Option<String>,
    /// Only list applications in namespace
    #[arg(long, short = 'N', value_name = "NAMESPACE")]
    app_namespace: Option<String>,
    /// List apps by cluster name or url
    #[arg(long, short = 'c')]
    cluster: Option<String>,
    /// List apps by path
    #[arg(long, short = 'P')]
    path: Option<String>,
}

impl List {
    pub async fn run(self, args: &ConnectArgs) -> Result<(), Failure> {
        let client = super::super::connect(args).await?;
        let query = ApplicationQuery {
            selector: Some(self.selector.clone().unwrap_or_default()),
            app_namespace: Some(self.app_namespace.clone().unwrap_or_default()),
            ..Default::default()
        };
        let mut apps = super::list(&client, query).await?;
        apps.retain(|app| self.wants(app));
        output::print(&match self.output.as_str() {
            "yaml" | "json" => output::document(&apps, &self.output)?,
            "name" => apps
                .iter()
                .map(|app| summary::qualified_name(app) + "\n")
                .collect(),
            "wide" | "" => rows(&apps, self.output == "wide"),
            other => return Err(output::unknown_format(other)),
        });
        Ok(())
    }

    fn wants(&self, app: &Application) -> bool {
        let source = summary::source(app);
        let is = |asked: &Option<String>, have: &[&str]| {
            asked
                .as_deref()
                .is_none_or(|a| a.is_empty() || have.contains(&a))
        };
        let destination = &app.spec.destination;
        (self.project.is_empty() || self.project.iter().any(|p| p == spec::project_name(app)))
            && is(&self.repo, &[&source.repo_url])
            && is(&self.path, &[&source.path])
            && is(&self.cluster, &[&destination.server, &destination.name])
    }
}

fn policy(app: &Application) -> &'static str {
    match (summary::is_automated(app), summary::prunes(app)) {
        (false, _) => "Manual",
        (true, false) => "Auto",
        (true, true) => "Auto-Prune",
    }
}

/// The types of conditions, each with its number.
fn conditions(app: &Application) -> String {
    let mut counts = BTreeMap::<&str, usize>::new();
    app.status
        .conditions
        .iter()
        .for_each(|c| *counts.entry(&c.type_).or_default() += 1);
    if counts.is_empty() {
        return "<none>".into();
    }
    let items: Vec<String> = counts
        .into_iter()
        .map(|(kind, n)| {
            if n > 1 {
                format!("{kind}({n})")
            } else {
                kind.to_owned()
            }
        })
        .collect();
    items.join(",")
}

/// The table of Applications.
pub fn rows(apps: &[Application], wide: bool) -> String {
    let mut header = vec![
        "NAME",
        "CLUSTER",
        "NAMESPACE",
        "PROJECT",
        "STATUS",
        "HEALTH",
        "SYNCPOLICY",
        "CONDITIONS",
    ];
    if wide {
        header.extend(["REPO", "PATH", "TARGET"]);
    }
    let rows = apps.iter().map(|app| {
        let mut row = vec![
            summary::qualified_name(app),
            summary::server(app).to_owned(),
            app.spec.destination.namespace.clone(),
            spec::project_name(app).to_owned(),
            app.status.sync.status.clone(),
            app.status.health.status.clone(),
            policy(app).to_owned(),
            conditions(app),
        ];
        if wide {
            let source = summary::source(app);
            row.extend([source.repo_url, source.path, source.target_revision]);
        }
        row
    });
    table::table(&header, rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_row_of_an_application() {
        let app: Application = serde_json::from_value(json!({
            "metadata": {"name": "a", "namespace": "argocd"},
            "spec": {
                "source": {"repoURL": "r", "path": "p", "targetRevision": "HEAD"},
                "destination": {"name": "in-cluster", "namespace": "n"}, "project": "", "syncPolicy": {"automated": {"enabled": false}},
            },
            "status": {
                "sync": {"status": "OutOfSync"}, "health": {"status": "Missing"},
                "conditions": [{"type": "SyncError"}, {"type": "ComparisonError"}, {"type": "SyncError"}],
            },
        }))
        .expect("an Application");
        let text = rows(std::slice::from_ref(&app), true);
        let expected = "\
NAME      CLUSTER     NAMESPACE  PROJECT  STATUS     HEALTH   SYNCPOLICY  CONDITIONS                    REPO  PATH  TARGET
argocd/a  in-cluster  n          default  OutOfSync  Missing  Manual      ComparisonError,SyncError(2)  r     p     HEAD
";
        assert_eq!(text, expected);
    }
}
