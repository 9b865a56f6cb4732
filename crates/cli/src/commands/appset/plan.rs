//! `appset plan`: which Applications a set would create, change and delete.
//!
//! The server generates; what follows from that is decided here as the controller does it.

use super::{GENERATE, get, qualified, rollout::Rollout, sets, split};
use crate::{
    client::{Client, ConnectArgs, Failure},
    commands::{app, apply::source::is_url, connect},
    output::{self, table},
};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};
use std::{collections::BTreeSet, path::Path};
use tiphys_api::{
    Application, ApplicationSet,
    cluster::ClusterList,
    project::AppProjectList,
    rpc::{
        application::ApplicationQuery,
        application_set::{ApplicationSetGenerateRequest, ApplicationSetGenerateResponse},
        cluster::ClusterQuery,
        project::ProjectQuery,
    },
};
use tiphys_appset::reconcile::{Change, Existing, Plan, Settings, plan};
use tiphys_engine::spec::{Destination, in_cluster};

#[derive(clap::Args)]
pub struct PlanCommand {
    /// A file with one ApplicationSet (- reads standard input), or the name of an existing one
    #[arg(value_name = "FILE|NAME")]
    set: String,
    /// Output format. One of: json|yaml|wide|name
    #[arg(long, short, default_value = "wide", value_name = "FORMAT")]
    output: String,
    /// The policy of the controller, if it has one: sync|create-only|create-update|create-delete
    #[arg(long, default_value = "")]
    policy: String,
    /// Return non-zero exit code when something would change [default: true]
    #[arg(long, require_equals = true, num_args = 0..=1, default_missing_value = "true")]
    exit_code: Option<bool>,
    /// Return specified exit code when something would change
    #[arg(long, default_value_t = 1, value_name = "CODE")]
    diff_exit_code: u8,
    /// Namespace of the ApplicationSet
    #[arg(long, short = 'N', value_name = "NAMESPACE")]
    appset_namespace: Option<String>,
}

impl PlanCommand {
    pub async fn run(self, args: &ConnectArgs) -> Result<(), Failure> {
        let (tells, code) = (self.exit_code.unwrap_or(true), self.diff_exit_code);
        match self.changes(args).await {
            Ok(true) if tells => Err(Failure::exit(code)),
            Ok(_) => output::arrived().map_err(Failure::unlike_a_difference),
            Err(e) => Err(e.unlike_a_difference()),
        }
    }

    /// Prints the plan. Whether something would change.
    async fn changes(self, args: &ConnectArgs) -> Result<bool, Failure> {
        if !["json", "yaml", "wide", "", "name"].contains(&self.output.as_str()) {
            return Err(output::unknown_format(&self.output));
        }
        let client = connect(args).await?;
        let set = self.set(&client).await?;
        let settings = Settings {
            policy_override: self.policy.is_empty(),
            policy: self.policy,
            ..Settings::default()
        };
        let Planned {
            plan,
            live,
            rollout,
            unseen,
        } = planned(&client, &set, &settings).await?;
        let report = Report {
            rollout,
            unseen,
            ..Report::new(&set, &plan, &live)
        };
        output::print(&match self.output.as_str() {
            "name" => report.names(),
            "wide" | "" => report.text()?,
            format => output::document(&report, format)?,
        });
        Ok(!report.is_empty())
    }

    /// The set as it would be: a file's takes the place of an existing one, as with `--upsert`.
    async fn set(&self, client: &Client) -> Result<ApplicationSet, Failure> {
        let named = async |namespace: String, name: String| get(client, namespace, name).await;
        if self.set != "-" && !is_url(&self.set) && !Path::new(&self.set).exists() {
            let (namespace, name) = split(&self.set, self.appset_namespace.clone());
            return named(namespace, name).await;
        }
        let mut found = sets(&self.set, self.appset_namespace.clone()).await?;
        let (Some(mut set), true) = (found.pop(), found.is_empty()) else {
            return Err(Failure::error("Input file must contain one ApplicationSet"));
        };
        let m = &set.metadata;
        let mut old = match named(m.namespace.clone(), m.name.clone()).await {
            Ok(existing) => existing,
            Err(e) if e.status == Some(tonic::Code::NotFound) => {
                if set.metadata.namespace.is_empty() {
                    let settings = app::settings(client).await?;
                    set.metadata.namespace = settings.controller_namespace;
                }
                return Ok(set);
            }
            Err(e) => return Err(e),
        };
        old.metadata.labels.extend(set.metadata.labels);
        old.metadata.annotations.extend(set.metadata.annotations);
        old.spec = set.spec;
        Ok(old)
    }
}

struct Planned {
    /// What the controller would do now.
    plan: Plan,
    /// The Applications of the set's namespace.
    live: Vec<Application>,
    /// In which order it would sync those of the set.
    rollout: Option<Rollout>,
    /// Destinations that are no clusters of the user's list.
    unseen: BTreeSet<String>,
}

/// The addresses among the destinations that the known clusters do not have.
fn unseen(generated: &[Application], clusters: &[Destination]) -> BTreeSet<String> {
    let local = in_cluster().server;
    let servers = generated.iter().map(|app| &app.spec.destination.server);
    let is_known = |server: &String| clusters.iter().any(|known| known.server == *server);
    servers
        .filter(|server| !server.is_empty() && **server != local && !is_known(server))
        .cloned()
        .collect()
}

async fn planned(
    client: &Client,
    set: &ApplicationSet,
    settings: &Settings,
) -> Result<Planned, Failure> {
    let request = ApplicationSetGenerateRequest {
        application_set: Some(set.clone()),
    };
    let mut generated: ApplicationSetGenerateResponse = client.unary(GENERATE, request).await?;
    for app in &mut generated.applications {
        app.metadata.namespace.clone_from(&set.metadata.namespace);
    }
    let query = ApplicationQuery {
        app_namespace: Some(set.metadata.namespace.clone()),
        ..ApplicationQuery::default()
    };
    let live = app::list(client, query).await?;
    let projects: AppProjectList = client
        .unary("/project.ProjectService/List", ProjectQuery::default())
        .await?;
    let projects: BTreeSet<String> = projects
        .items
        .into_iter()
        .map(|p| p.metadata.name)
        .collect();
    let clusters: ClusterList = client
        .unary("/cluster.ClusterService/List", ClusterQuery::default())
        .await?;
    let clusters = clusters.items.into_iter().map(|cluster| Destination {
        server: cluster.server,
        name: cluster.name,
        project: cluster.project,
    });
    let mut clusters: Vec<Destination> = clusters.collect();
    // The list has only those that the user may see: whether there are others is left open.
    let unseen = unseen(&generated.applications, &clusters);
    clusters.extend(unseen.iter().map(|server| Destination {
        server: server.clone(),
        name: String::new(),
        project: String::new(),
    }));
    // Nor does the list tell whether the local cluster is disabled.
    let local = in_cluster();
    if clusters.iter().all(|c| c.server != local.server) {
        clusters.push(local);
    }
    let existing = Existing {
        applications: &live,
        projects: &projects,
        clusters: &clusters,
        // It is among the clusters.
        local_names: &[],
        broken_clusters: &[],
    };
    let now = Timestamp::now().into();
    let plan = plan(set, Ok(&generated.applications), &existing, settings, now);
    let rollout = Rollout::of(set, &generated.applications);
    Ok(Planned {
        plan,
        live,
        rollout,
        unseen,
    })
}

/// A change of an Application: its fields before and after.
#[derive(Debug, Serialize)]
struct Update {
    name: String,
    /// A JSON merge patch.
    patch: Value,
    #[serde(skip)]
    before: Value,
    #[serde(skip)]
    after: Value,
}

/// What would be done.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    #[serde(rename = "applicationSet")]
    set: String,
    create: Vec<Application>,
    update: Vec<Update>,
    delete: Vec<String>,
    /// Deletions that would wait for a confirmation.
    held: Vec<String>,
    /// Creations that would wait with them.
    held_create: Vec<String>,
    /// Why something would not be done.
    problems: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rollout: Option<Rollout>,
    /// Destinations that may not exist.
    #[serde(rename = "unknownClusters", skip_serializing_if = "BTreeSet::is_empty")]
    unseen: BTreeSet<String>,
}

impl Report {
    fn new(set: &ApplicationSet, plan: &Plan, live: &[Application]) -> Self {
        let mut report = Self {
            set: qualified(set),
            create: Vec::new(),
            update: Vec::new(),
            delete: Vec::new(),
            held: Vec::new(),
            held_create: Vec::new(),
            problems: plan.refused.values().cloned().collect(),
            rollout: None,
            unseen: BTreeSet::new(),
        };
        for change in plan.writes.iter().chain(&plan.deletes) {
            match change {
                Change::Create(app) => report.create.push((**app).clone()),
                Change::Update { name, patch, after } => {
                    let before = live.iter().find(|app| app.metadata.name == *name);
                    report.update.push(Update {
                        name: name.clone(),
                        patch: patch.clone(),
                        before: before.map(shown).unwrap_or_default(),
                        after: shown(after),
                    });
                }
                Change::Delete { name, .. } => report.delete.push(name.clone()),
            }
        }
        if let Some(held) = &plan.held {
            report.held.clone_from(&held.names);
            report.held_create.clone_from(&held.replacements);
        }
        let error = plan.status.conditions.iter();
        let error = error.filter(|c| c.type_ == "ErrorOccurred" && c.status == "True");
        // The conditions of a set that exists may be those of its last reconcile.
        let told = &set.status.conditions;
        report.problems.extend(
            error
                .filter(|c| plan.held.is_some() || !told.contains(c))
                .map(|c| c.message.clone()),
        );
        report
    }

    fn is_empty(&self) -> bool {
        self.create.is_empty()
            && self.update.is_empty()
            && self.delete.is_empty()
            && self.held.is_empty()
            && self.problems.is_empty()
    }

    /// What would be done to which Application.
    fn rows(&self) -> Vec<(&'static str, &str)> {
        let created = self.create.iter().map(|app| app.metadata.name.as_str());
        let mut rows: Vec<(&str, &str)> = created.map(|name| ("create", name)).collect();
        rows.extend(self.update.iter().map(|u| ("update", u.name.as_str())));
        for (word, names) in [
            ("delete", &self.delete),
            ("held", &self.held),
            ("held", &self.held_create),
        ] {
            rows.extend(names.iter().map(|name| (word, name.as_str())));
        }
        rows
    }

    fn names(&self) -> String {
        let rows = self.rows().into_iter();
        rows.map(|(word, name)| format!("{word} {name}\n"))
            .collect()
    }

    fn text(&self) -> Result<String, Failure> {
        let rows = self.rows();
        let mut out = String::new();
        if !rows.is_empty() {
            let cells = rows.iter();
            let cells = cells.map(|(word, name)| vec![(*word).to_owned(), (*name).to_owned()]);
            out += &table::table(&["CHANGE", "APPLICATION"], cells);
        }
        for update in &self.update {
            out += &format!("\n===== {} ======\n", update.name);
            out += &app::diff::difference(&update.before, &update.after)?;
        }
        let rollout = self.rollout.as_ref().filter(|_| !rows.is_empty());
        out += &rollout.map(Rollout::text).unwrap_or_default();
        for problem in &self.problems {
            out += &format!("\n{problem}\n");
        }
        for server in &self.unseen {
            out += &format!(
                "\nThe cluster {server} is not known to you: if there is none, its Applications \
                 are refused\n"
            );
        }
        if !out.is_empty() {
            out.push('\n');
        }
        let counts = [
            (self.create.len(), "to create"),
            (self.update.len(), "to update"),
            (self.delete.len(), "to delete"),
            (self.held.len() + self.held_create.len(), "held"),
        ];
        let counts = counts.map(|(count, what)| format!("{count} {what}"));
        out += &format!("ApplicationSet '{}': {}\n", self.set, counts.join(", "));
        Ok(out)
    }
}

/// The fields of an Application that a set writes.
fn shown(app: &Application) -> Value {
    let m = &app.metadata;
    let whole = json!({
        "labels": m.labels, "annotations": m.annotations, "finalizers": m.finalizers,
    });
    let mut metadata = whole.as_object().cloned().unwrap_or_default();
    metadata.retain(|_, value| !is_empty(value));
    json!({"metadata": metadata, "operation": app.operation, "spec": app.spec})
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The user's list may lack it, or it may not exist.
    #[test]
    fn clusters_that_are_not_known_are_named() {
        let app = |destination: Value| {
            let whole = json!({"metadata": {"name": "a"}, "spec": {"destination": destination}});
            serde_json::from_value::<Application>(whole).expect("an Application")
        };
        let generated = [
            app(json!({"server": "https://known"})),
            app(json!({"server": "https://other"})),
            app(json!({"server": in_cluster().server})),
            app(json!({"name": "east"})),
        ];
        let known = Destination {
            server: "https://known".to_owned(),
            name: String::new(),
            project: String::new(),
        };
        let unseen = unseen(&generated, &[known]);
        assert_eq!(unseen, BTreeSet::from(["https://other".to_owned()]));
        let nothing = BTreeSet::new();
        let existing = Existing {
            applications: &[],
            projects: &nothing,
            clusters: &[],
            local_names: &[],
            broken_clusters: &[],
        };
        let set = ApplicationSet::default();
        let now = Timestamp::now().into();
        let plan = plan(&set, Ok(&[]), &existing, &Settings::default(), now);
        let report = Report {
            unseen,
            ..Report::new(&set, &plan, &[])
        };
        let text = report.text().expect("a text");
        assert!(
            text.contains("cluster https://other is not known to you"),
            "{text}"
        );
    }
}
