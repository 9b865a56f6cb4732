//! `app list`.

use super::{
    follow::{Scope, follow},
    views,
};
use crate::{
    client::{Client, ConnectArgs, Failure},
    output::{
        self,
        sort::{self, Field, SortBy},
        summary, table,
    },
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
    /// After listing, go on and print what changes, until Ctrl-C: a row, a name or a document for
    /// each change
    #[arg(long, short)]
    watch: bool,
    #[command(flatten)]
    sort_by: SortBy,
}

/// What lists of Applications can be sorted by.
pub const FIELDS: &[Field<Application>] = &[
    ("name", |app| summary::qualified_name(app).into()),
    ("cluster", |app| summary::server(app).into()),
    ("namespace", |app| {
        app.spec.destination.namespace.as_str().into()
    }),
    ("project", |app| spec::project_name(app).into()),
    ("status", |app| app.status.sync.status.as_str().into()),
    ("health", |app| app.status.health.status.as_str().into()),
    ("syncpolicy", |app| policy(app).into()),
    ("conditions", |app| app.status.conditions.len().into()),
    ("repo", |app| summary::source(app).repo_url.into()),
    ("path", |app| summary::source(app).path.into()),
    ("target", |app| summary::source(app).target_revision.into()),
    ("created", |app| {
        sort::created(app.metadata.creation_timestamp.as_ref())
    }),
    ("age", |app| {
        sort::age(app.metadata.creation_timestamp.as_ref())
    }),
];

impl List {
    pub async fn run(self, args: &ConnectArgs) -> Result<(), Failure> {
        let client = super::super::connect(args).await?;
        let list = super::read_list(&client, self.query()).await?;
        let mut apps = list.items;
        apps.retain(|app| self.wants(app));
        self.sort_by.sort(&mut apps, FIELDS)?;
        if self.watch {
            return self
                .follow(&client, apps, list.metadata.resource_version)
                .await;
        }
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

    fn query(&self) -> ApplicationQuery {
        ApplicationQuery {
            selector: Some(self.selector.clone().unwrap_or_default()),
            app_namespace: Some(self.app_namespace.clone().unwrap_or_default()),
            ..Default::default()
        }
    }

    /// Prints the list, and then what becomes of it. `version` is that of the list.
    async fn follow(
        &self,
        client: &Client,
        apps: Vec<Application>,
        version: String,
    ) -> Result<(), Failure> {
        let (query, filter) = (self.query(), |app: &Application| self.wants(app));
        let scope = Scope::Many(&query, &filter);
        match self.output.as_str() {
            format @ ("yaml" | "json") => {
                let mut documents = views::Documents::new(format);
                follow(client, scope, apps, version, &mut documents).await
            }
            "name" => follow(client, scope, apps, version, &mut views::Names).await,
            "wide" | "" => {
                let mut table = views::Table::new(self.output == "wide");
                follow(client, scope, apps, version, &mut table).await
            }
            other => Err(output::unknown_format(other)),
        }
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

pub fn header(wide: bool) -> Vec<&'static str> {
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
    header
}

pub fn row(app: &Application, wide: bool) -> Vec<String> {
    cells(
        app,
        &app.status.sync.status,
        &app.status.health.status,
        wide,
    )
}

/// The last row of an Application while a list is watched.
pub fn row_of_deleted(app: &Application, wide: bool) -> Vec<String> {
    cells(app, "Deleted", "", wide)
}

fn cells(app: &Application, status: &str, health: &str, wide: bool) -> Vec<String> {
    let mut row = vec![
        summary::qualified_name(app),
        summary::server(app).to_owned(),
        app.spec.destination.namespace.clone(),
        spec::project_name(app).to_owned(),
        status.to_owned(),
        health.to_owned(),
        policy(app).to_owned(),
        conditions(app),
    ];
    if wide {
        let source = summary::source(app);
        row.extend([source.repo_url, source.path, source.target_revision]);
    }
    row
}

/// The table of Applications.
pub fn rows(apps: &[Application], wide: bool) -> String {
    table::table(&header(wide), apps.iter().map(|app| row(app, wide)))
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
