//! A snapshot of the Applications for `tiphys up`: a row for each, and whether everything is Synced
//! and Healthy. Main type: [`View`].

use super::{NAMESPACE, table::Row};
use std::collections::BTreeSet;
use tiphys_api::{Application, constants};
use tiphys_cluster::{AppKey, AppStates, Records};
use tiphys_engine::tree::why;

/// A snapshot of all Applications.
#[derive(Default)]
pub struct View {
    pub rows: Vec<Row>,
}

impl View {
    /// `wanted`: names of Applications that must exist.
    pub fn now(records: &Records, states: &AppStates, wanted: &BTreeSet<String>) -> Self {
        let mut rows = Vec::new();
        let mut named = wanted.clone();
        for record in records.applications.list() {
            let (namespace, name) = (record.meta.namespace.as_str(), record.meta.name.as_str());
            let row = match record.value() {
                Ok(app) => {
                    named.extend(children(&app));
                    let key = AppKey::new(namespace, name);
                    let reasons = states
                        .get(&key)
                        .map(|s| why::lines(&s.tree.nodes))
                        .unwrap_or_default();
                    Row::of(&app, &reasons, states.is_lasting(&key))
                }
                Err(problem) => Row::unreadable(name, &problem),
            };
            rows.push(row);
        }
        let missing: Vec<Row> = named
            .iter()
            .filter(|name| rows.iter().all(|r| r.name != **name))
            .map(|name| Row::missing(name))
            .collect();
        rows.extend(missing);
        Self { rows }
    }

    pub fn is_well(&self) -> bool {
        self.rows.iter().all(Row::is_well)
    }

    /// One line for each Application that is not Synced and Healthy.
    pub fn left(&self) -> String {
        self.rows
            .iter()
            .filter(|r| !r.is_well())
            .map(|r| format!("  {}", r.line()))
            .collect::<Vec<_>>()
            .join("\n")
    }

    /// One line for each Application that cannot recover by waiting, if nothing that could recover
    /// it is still running.
    pub fn hopeless(&self) -> Option<String> {
        let lasting: Vec<&Row> = self.rows.iter().filter(|r| r.lasting).collect();
        let others_run = self.rows.iter().any(|r| !r.lasting && r.is_running());
        (!lasting.is_empty() && !others_run).then(|| {
            lasting
                .iter()
                .map(|r| format!("  {}", r.line()))
                .collect::<Vec<_>>()
                .join("\n")
        })
    }

    /// The Applications without any resource.
    pub fn empty(&self) -> Vec<&str> {
        self.rows
            .iter()
            .filter(|r| r.empty)
            .map(|r| r.name.as_str())
            .collect()
    }
}

/// The child Applications of an Application, as far as they are reconciled here.
fn children(app: &Application) -> impl Iterator<Item = String> {
    let resources =
        app.status.resources.iter().filter(|r| {
            r.group == constants::GROUP && r.kind == "Application" && !r.requires_pruning
        });
    resources
        .filter(|r| r.namespace.is_empty() || r.namespace == NAMESPACE)
        .map(|r| r.name.clone())
}
