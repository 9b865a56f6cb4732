//! What `tiphys up` knows of the Applications at one moment: a row each, and whether everything is
//! as it should be. Main type: [`View`].

use super::{NAMESPACE, table::Row};
use std::collections::BTreeSet;
use tiphys_api::{Application, constants};
use tiphys_cluster::{AppKey, AppStates, Records};
use tiphys_engine::tree::why;

/// All Applications at one moment.
#[derive(Default)]
pub struct View {
    pub rows: Vec<Row>,
}

impl View {
    /// `wanted`: names of Applications that were asked for, and are waited for until they exist.
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

    /// One line for each Application that waiting cannot help, as long as nothing else runs that
    /// may.
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

/// The Applications that an Application is made of, as far as they are looked after here.
fn children(app: &Application) -> impl Iterator<Item = String> {
    let resources =
        app.status.resources.iter().filter(|r| {
            r.group == constants::GROUP && r.kind == "Application" && !r.requires_pruning
        });
    resources
        .filter(|r| r.namespace.is_empty() || r.namespace == NAMESPACE)
        .map(|r| r.name.clone())
}
